//! One connection as an agent's client and the gateway see it, over a real socket.

#[cfg(test)]
mod borders;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod eras;
#[cfg(test)]
mod peer;
