//! The only room that sends a signal.
