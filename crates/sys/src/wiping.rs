//! An allocator that wipes what is given back: what a program let go of is no longer in its memory.
//!
//! Values of ours that hold secrets wipe themselves; buffers of libraries (HTTP, TLS, JSON) do not, and a
//! grown vector leaves its old place as it was. With this allocator all of them are zero once they are freed.
//! Stacks and registers are not its business: a secret is moved through them in pieces, by code that copies
//! bytes from one heap block to another.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ptr,
};

/// The system's allocator, with every block zeroed before it is given back.
///
/// ```no_run
/// #[global_allocator]
/// static MEMORY: sys::wiping::Wiping = sys::wiping::Wiping;
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Wiping;

// SAFETY: blocks come from `System` and go back to it with the layout they came with. `realloc` hands out
// what `alloc` of the new layout returned, copies no more than both blocks hold, and gives the old one back
// only after that; if there is no new block the old one stays as it was.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Wiping {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller owns `layout.size()` bytes at `block` and uses them no more. They may never have been
        // written, so they are written through the pointer and not looked at as a slice of `u8`.
        unsafe { wipe(block, layout.size()) };
        // SAFETY: `block` came from `System` with this layout.
        unsafe { System.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // The system's own would move the bytes and leave the old place as it was.
        // SAFETY: the caller promises that `new_size` with this alignment is a layout.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: the caller promises that `new_size` is not zero.
        let new = unsafe { self.alloc(new_layout) };
        if !new.is_null() {
            // SAFETY: both blocks hold at least as many bytes, and two blocks never overlap.
            unsafe { ptr::copy_nonoverlapping(block, new, layout.size().min(new_size)) };
            // SAFETY: the caller gives the old block up when a new one is returned.
            unsafe { self.dealloc(block, layout) };
        }
        new
    }
}

/// Zeroes `size` bytes in a way that the compiler must not leave out, although nobody reads them any more.
///
/// # Safety
/// `block` points to `size` bytes that may be written.
#[expect(unsafe_code, reason = "the bytes are only known by their address")]
unsafe fn wipe(block: *mut u8, size: usize) {
    // SAFETY: the caller promises as much.
    unsafe { block.write_bytes(0, size) };
    // SAFETY: no instruction at all. But as far as the compiler knows the bytes are read here, so that the
    // zeros above must be there.
    unsafe {
        std::arch::asm!("/* {0} */", in(reg) block, options(nostack, preserves_flags, readonly))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(
        unsafe_code,
        reason = "the allocator is called as a collection calls it"
    )]
    fn a_block_that_grows_keeps_its_bytes() {
        let layout = Layout::array::<u8>(16).unwrap();

        // SAFETY: the layout is not empty; the block is given back with the layout it has in the end.
        unsafe {
            let block = Wiping.alloc(layout);
            block.write_bytes(7, 16);
            let grown = Wiping.realloc(block, layout, 4096);
            let kept = std::slice::from_raw_parts(grown, 16).to_vec();
            Wiping.dealloc(grown, Layout::array::<u8>(4096).unwrap());
            assert_eq!(kept, [7; 16]);
        }
    }

    #[test]
    #[expect(unsafe_code, reason = "the bytes of a raw block are looked at")]
    fn wiped_bytes_are_zero() {
        let mut bytes = [7_u8; 64];

        // SAFETY: the array holds 64 bytes and may be written.
        unsafe { wipe(bytes.as_mut_ptr(), bytes.len()) };

        assert_eq!(bytes, [0; 64]);
    }
}
