//! The format and its verifier, tried with logs that a second writer makes: also such as ours never would.

#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is how it fails, in its helpers too"
)]

mod chain;
mod folds;
mod forge;
mod order;
mod strangers;
#[cfg(test)]
mod vectors;
mod versions;
