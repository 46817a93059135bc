//! Channels as their callers see them: real gates, real servers on the loopback interface.

mod draft;
mod echo;
mod http;
mod kept;
mod network;
mod plan;
mod server;
mod tls;
mod world;
