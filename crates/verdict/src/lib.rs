//! Judges from values given to it; reads nothing.
