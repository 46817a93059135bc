//! The gate every outward beginning passes.
