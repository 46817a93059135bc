//! What the agent sees.
