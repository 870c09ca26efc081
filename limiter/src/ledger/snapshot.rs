//! One partition, written out and read back.
//!
//! A chunk stands by itself: the kinds it needs, and then slots of 44 bytes: key
//! (16), kind (4, an index into the chunk's kinds), count (3 × 8), all most
//! significant byte first. The first chunk of a partition carries the marks and
//! books as well.

use alloc::vec::Vec;
use core::num::NonZeroU64;

use prost::Message;

use super::{
    kind::{Kind, KindIndex, Kinds},
    shard::{Book, Mark, Shard},
    slots::Slot,
    upstream::StreamEntry,
};
use crate::{
    count::Count,
    key::{CounterKey, RuleId},
    quota::{Algorithm, Quota},
    time::{Micros, Timestamp},
    window::Window,
    wire::RuleSet,
};

const SLOT_BYTES: usize = 44;
const SLOTS_PER_CHUNK: usize = 16_384;

#[derive(Clone, PartialEq, Message)]
struct Chunk {
    #[prost(message, repeated, tag = "1")]
    kinds: Vec<KindEntry>,
    #[prost(bytes = "vec", tag = "2")]
    slots: Vec<u8>,
    #[prost(message, repeated, tag = "3")]
    marks: Vec<MarkEntry>,
    #[prost(message, repeated, tag = "4")]
    books: Vec<BookEntry>,
    #[prost(message, optional, tag = "5")]
    rules: Option<RuleSet>,
    /// What is on its way to the aggregator above.
    #[prost(message, optional, tag = "6")]
    stream: Option<StreamEntry>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct KindEntry {
    #[prost(fixed64, tag = "1")]
    rule: u64,
    #[prost(uint64, tag = "2")]
    limit: u64,
    #[prost(uint64, tag = "3")]
    window_us: u64,
    #[prost(uint32, tag = "4")]
    algorithm: u32,
    #[prost(uint64, tag = "5")]
    capacity: u64,
    /// Calendar months that the window has; 0: it is `window_us` long.
    #[prost(uint32, tag = "6")]
    window_months: u32,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct MarkEntry {
    #[prost(fixed64, tag = "1")]
    source: u64,
    #[prost(fixed64, tag = "2")]
    epoch: u64,
    #[prost(uint64, tag = "3")]
    sequence: u64,
    #[prost(uint64, tag = "4")]
    heard_us: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct BookEntry {
    #[prost(fixed64, tag = "1")]
    rule: u64,
    #[prost(uint64, tag = "2")]
    hits: u64,
    #[prost(uint64, tag = "3")]
    returned: u64,
}

/// Writes a shard, chunk by chunk; `rules` go with the first.
pub(super) fn write(
    shard: &Shard,
    kinds: &Kinds,
    rules: Option<RuleSet>,
    sink: &mut dyn FnMut(&[u8]),
) {
    let kinds: Vec<KindEntry> = kinds.iter().map(entry).collect();
    let marks = shard.marks.iter();
    let mut marks: Vec<MarkEntry> = marks
        .map(|(source, mark)| mark_entry(*source, mark))
        .collect();
    marks.sort_unstable_by_key(|entry| entry.source);
    let books = shard.books.iter();
    let mut books: Vec<BookEntry> = books
        .map(|(rule, book)| BookEntry {
            rule: rule.0,
            hits: book.hits,
            returned: book.returned,
        })
        .collect();
    books.sort_unstable_by_key(|entry| entry.rule);
    let mut chunk = Chunk {
        kinds: kinds.clone(),
        marks,
        books,
        slots: Vec::new(),
        rules,
        stream: shard.stream.entry(),
    };
    for slot in shard.slots.iter() {
        chunk.slots.extend_from_slice(&slot.key.to_bytes());
        chunk.slots.extend_from_slice(&slot.kind.0.to_be_bytes());
        for word in slot.count.to_words() {
            chunk.slots.extend_from_slice(&word.to_be_bytes());
        }
        if chunk.slots.len() >= SLOTS_PER_CHUNK * SLOT_BYTES {
            sink(&chunk.encode_to_vec());
            chunk = Chunk {
                kinds: kinds.clone(),
                ..Chunk::default()
            };
        }
    }
    sink(&chunk.encode_to_vec());
}

/// Reads a chunk back into a shard. Returns the rules in it, or what is wrong
/// with it.
pub(super) fn read(
    bytes: &[u8],
    shard: &mut Shard,
    kinds: &mut Kinds,
) -> Result<Option<RuleSet>, &'static str> {
    let chunk = Chunk::decode(bytes).map_err(|_| "a snapshot chunk does not decode")?;
    let met: Option<Vec<KindIndex>> = chunk
        .kinds
        .iter()
        .map(|entry| Some(kinds.intern(kind(entry)?)))
        .collect();
    let met = met.ok_or("a snapshot names an impossible quota")?;
    let (slots, rest) = chunk.slots.as_chunks::<SLOT_BYTES>();
    if !rest.is_empty() {
        return Err("a snapshot slot is cut short");
    }
    for bytes in slots {
        shard
            .slots
            .put(slot(bytes, &met).ok_or("a snapshot slot names no kind")?);
    }
    for entry in chunk.marks {
        let mark = Mark {
            epoch: entry.epoch,
            sequence: entry.sequence,
            heard: Timestamp::from_micros(entry.heard_us),
        };
        shard.marks.insert(entry.source, mark);
    }
    for entry in &chunk.books {
        let book = Book {
            hits: entry.hits,
            returned: entry.returned,
        };
        shard.books.insert(RuleId(entry.rule), book);
    }
    if let Some(stream) = chunk.stream {
        shard.stream.restore(stream);
    }
    Ok(chunk.rules)
}

fn slot(bytes: &[u8; SLOT_BYTES], kinds: &[KindIndex]) -> Option<Slot> {
    let (key, rest) = bytes.split_first_chunk::<16>()?;
    let (kind, words) = rest.split_first_chunk::<4>()?;
    let mut counts = words
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_be_bytes(*word));
    Some(Slot {
        key: CounterKey::from_bytes(*key),
        kind: *kinds.get(u32::from_be_bytes(*kind) as usize)?,
        count: Count::from_words([counts.next()?, counts.next()?, counts.next()?]),
    })
}

const fn mark_entry(source: u64, mark: &Mark) -> MarkEntry {
    MarkEntry {
        source,
        epoch: mark.epoch,
        sequence: mark.sequence,
        heard_us: mark.heard.as_micros(),
    }
}

const fn entry(kind: &Kind) -> KindEntry {
    KindEntry {
        rule: kind.rule.0,
        limit: kind.quota.limit.get(),
        window_us: kind.quota.window.longest().get(),
        window_months: kind.quota.window.fixed().is_none() as u32,
        algorithm: match kind.quota.algorithm {
            Algorithm::SlidingWindow => 0,
            Algorithm::FixedWindow => 1,
            Algorithm::TokenBucket => 2,
        },
        capacity: kind.quota.capacity(),
    }
}

fn kind(entry: &KindEntry) -> Option<Kind> {
    let window = match entry.window_months {
        0 => Window::new(Micros::new(entry.window_us))?,
        1 => Window::MONTH,
        _ => return None,
    };
    let algorithm = match entry.algorithm {
        0 => Algorithm::SlidingWindow,
        1 => Algorithm::FixedWindow,
        2 => Algorithm::TokenBucket,
        _ => return None,
    };
    let quota = Quota::new(NonZeroU64::new(entry.limit)?, window, algorithm)
        .with_burst(NonZeroU64::new(entry.capacity)?);
    Some(Kind {
        rule: RuleId(entry.rule),
        quota,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_comes_back_with_its_window_also_if_that_is_a_month() {
        let limit = NonZeroU64::MIN;
        for window in [Window::MONTH, Window::new(Micros::from_secs(1)).unwrap()] {
            let quota = Quota::new(limit, window, Algorithm::FixedWindow);
            let rule = RuleId(7);
            let known = Kind { rule, quota };
            assert_eq!(kind(&entry(&known)), Some(known));
        }
    }
}
