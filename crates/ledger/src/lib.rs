//! The log's bytes, read-only.
