//! What tests share: a world with its own home, clock and ids.
