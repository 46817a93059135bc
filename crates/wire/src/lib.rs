//! What the two wings say to each other.
