//! What will happen, in order.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use limiter::time::Timestamp;

/// Events by their instant; those of one instant in the order they were put in.
pub(crate) struct Queue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    /// Those that were put in one after the other as they will happen: no heap has
    /// to keep in order what is.
    line: VecDeque<Entry<E>>,
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
            line: VecDeque::new(),
            next: 0,
        }
    }

    /// `event` will happen at `at`.
    pub(crate) fn push(&mut self, at: Timestamp, event: E) {
        let entry = self.entry(at, event);
        self.heap.push(Reverse(entry));
    }

    /// The same of an event that happens no earlier than any other that was put in
    /// like this.
    pub(crate) fn push_last(&mut self, at: Timestamp, event: E) {
        let entry = self.entry(at, event);
        if self.line.back().is_none_or(|last| last.at <= at) {
            self.line.push_back(entry);
        } else {
            self.heap.push(Reverse(entry));
        }
    }

    const fn entry(&mut self, at: Timestamp, event: E) -> Entry<E> {
        let order = self.next;
        self.next += 1;
        Entry { at, order, event }
    }

    /// When something happens next.
    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        let first = self.line.front().map(|entry| entry.at);
        let other = self.heap.peek().map(|Reverse(entry)| entry.at);
        first.into_iter().chain(other).min()
    }

    /// What happens next.
    pub(crate) fn pop(&mut self) -> Option<(Timestamp, E)> {
        let heap = self.heap.peek();
        let in_line = |first: &mut Entry<E>| heap.is_none_or(|Reverse(other)| *first < *other);
        let entry = self.line.pop_front_if(in_line);
        let entry = entry.or_else(|| self.heap.pop().map(|Reverse(entry)| entry));
        entry.map(|entry| (entry.at, entry.event))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_happen_by_their_instant_and_those_of_one_as_they_were_put_in() {
        let at = Timestamp::from_millis;
        let mut queue = Queue::new();
        queue.push(at(3), "c");
        queue.push_last(at(1), "a");
        queue.push(at(1), "b");
        queue.push_last(at(9), "f");
        queue.push_last(at(5), "e");
        queue.push(at(3), "d");
        assert_eq!(queue.next_at(), Some(at(1)));
        let order: Vec<&str> = std::iter::from_fn(|| queue.pop())
            .map(|next| next.1)
            .collect();
        assert_eq!(order, ["a", "b", "c", "d", "e", "f"]);
    }
}
