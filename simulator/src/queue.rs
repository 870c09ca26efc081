//! What will happen, in order.

use std::{cmp::Reverse, collections::BinaryHeap};

use limiter::time::Timestamp;

/// Events by their instant; those of one instant in the order they were put in.
pub(crate) struct Queue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    next: u64,
}

struct Entry<E> {
    at: Timestamp,
    order: u64,
    event: E,
}

impl<E> Queue<E> {
    /// Nothing will happen.
    pub(crate) const fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            next: 0,
        }
    }

    /// `event` will happen at `at`.
    pub(crate) fn push(&mut self, at: Timestamp, event: E) {
        let order = self.next;
        self.next += 1;
        self.heap.push(Reverse(Entry { at, order, event }));
    }

    /// When something happens next.
    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// What happens next.
    pub(crate) fn pop(&mut self) -> Option<(Timestamp, E)> {
        self.heap
            .pop()
            .map(|Reverse(entry)| (entry.at, entry.event))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Entry<E> {}
