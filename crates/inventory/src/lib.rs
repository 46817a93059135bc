//! Looks at every process and writes down what was seen; it cannot signal, and nothing below it can.
//!
//! One pass reads all processes ([`take`]), then the ends of pipes and unix sockets are joined into lists of
//! holders. What costs more, or matters only for few, is read by a [`closer`] look at named processes. What
//! could not be read is listed with its reason; it is never left out and never guessed. Reading and parsing
//! are apart: a [`Source`] brings bytes, so that recorded trees can be judged like live ones.

mod closer;
mod crew;
mod descriptor;
mod named;
mod pass;
mod portable;
mod process;
mod snapshot;
mod source;
mod tcp;
mod terminal;
mod users;
mod waits;
mod wires;

pub use closer::closer;
pub use descriptor::{Access, Descriptor, NamedPipe, Target};
pub use pass::take;
pub use portable::{LSOF, Listing, PS, parse_portable, take_portable};
pub use process::{Closer, Process, Unreadable};
pub use snapshot::{SCHEMA, Snapshot};
pub use source::{Live, Look, Source};
pub use tcp::{Activity, TcpSocket, TcpState, UdpSocket};
pub use waits::{ThreadWait, Wait};
pub use wires::{Holder, Pipe, Socket};
