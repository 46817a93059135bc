//! `lych mcp` as a client sees it, with a daemon that the test plays.

#[cfg(test)]
mod autostart;
#[cfg(test)]
mod relay;
#[cfg(test)]
mod stage;
