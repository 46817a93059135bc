//! Looks at every process; cannot signal one.
