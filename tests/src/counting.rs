//! A global allocator that counts: what was allocated, and how much is held.
//!
//! A bench or a test that wants to know makes it its own:
//! `#[global_allocator] static ALLOCATOR: Counting = Counting;`

#![expect(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Hands everything on to the system's allocator.
#[derive(Debug)]
pub struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Allocations that this thread has made so far, grown ones counted again.
#[must_use]
pub fn allocations() -> u64 {
    TAKEN.with(Cell::get)
}

/// Bytes that the process holds.
#[must_use]
pub fn bytes_held() -> usize {
    HELD.load(Relaxed)
}

fn taken(bytes: usize) {
    HELD.fetch_add(bytes, Relaxed);
    // A thread that is ending has nothing left to count in.
    let _ = TAKEN.try_with(|taken| taken.set(taken.get() + 1));
}

// SAFETY: every call is handed on as it is, and counted beside.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: the caller keeps the promises that this method asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        taken(size);
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(ptr, layout, size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }
}
