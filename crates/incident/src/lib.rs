//! Preserve to record, in that order.
