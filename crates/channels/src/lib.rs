//! The only room that opens outbound connections.
