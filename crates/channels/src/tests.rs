//! Channels as their callers see them.
