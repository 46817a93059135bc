//! Secrets, sealed with where they may go.
