//! The lock of the gate; tests of this room run it under a scheduler that tries many interleavings.

#[cfg(test)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard};
use std::sync::PoisonError;
#[cfg(not(test))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// Takes the lock, also after a panic elsewhere: every change under it is completed before the next line
/// that can fail, and a gate that no longer closes would be worse.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
