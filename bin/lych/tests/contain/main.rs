//! `contain` and `incident` against the leftover of a real crash, without a daemon.

#[cfg(test)]
mod scene;
#[cfg(test)]
mod verbs;
