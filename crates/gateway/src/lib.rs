//! One call, one gate.
