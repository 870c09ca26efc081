//! What stands in a group's lists.
//!
//! An entry of the log is one append: the number of its first record (8 bytes), how
//! many there are (4), then each with its length (4) before it. A chunk of a snapshot
//! is its partition (4), the last record that the partition contains (8), and its bytes.
//! Numbers have their least significant byte first.

use crate::store::Position;

/// The bytes of an entry before its records.
pub(super) const HEAD_BYTES: usize = 12;

/// An entry's records, and the number of the first; none if it is cut short.
pub(super) fn records(entry: &[u8]) -> Option<(u64, Vec<&[u8]>)> {
    let (first, rest) = entry.split_first_chunk::<8>()?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let mut records = Vec::new();
    for _ in 0..u32::from_le_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (record, after) = after.split_at_checked(length)?;
        records.push(record);
        rest = after;
    }
    rest.is_empty()
        .then_some((u64::from_le_bytes(*first), records))
}

/// Fills in an entry's first bytes.
pub(super) fn set_head(entry: &mut [u8], first: u64, count: u32) {
    let head = first
        .to_le_bytes()
        .into_iter()
        .chain(count.to_le_bytes())
        .collect::<Vec<u8>>();
    for (to, from) in entry.iter_mut().zip(head) {
        *to = from;
    }
}

/// A chunk of a snapshot.
pub(super) fn chunk(partition: u32, contains: Position, bytes: &[u8]) -> Vec<u8> {
    let mut chunk = Vec::with_capacity(HEAD_BYTES.saturating_add(bytes.len()));
    chunk.extend_from_slice(&partition.to_le_bytes());
    chunk.extend_from_slice(&contains.number().to_le_bytes());
    chunk.extend_from_slice(bytes);
    chunk
}

/// Its partition, what that contains, and its bytes; none if it is cut short.
pub(super) fn read_chunk(chunk: &[u8]) -> Option<(u32, Position, &[u8])> {
    let (partition, rest) = chunk.split_first_chunk::<4>()?;
    let (contains, bytes) = rest.split_first_chunk::<8>()?;
    let contains = Position::new(u64::from_le_bytes(*contains));
    Some((u32::from_le_bytes(*partition), contains, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_comes_back_as_it_was_and_not_cut_short() {
        let mut entry = vec![0; HEAD_BYTES];
        for record in [&b"one"[..], b"", b"three"] {
            entry.extend_from_slice(&u32::try_from(record.len()).unwrap().to_le_bytes());
            entry.extend_from_slice(record);
        }
        set_head(&mut entry, 7, 3);
        let (first, read) = records(&entry).unwrap();
        assert_eq!((first, read), (7, vec![&b"one"[..], b"", b"three"]));
        for end in 0..entry.len() {
            assert_eq!(records(&entry[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_chunk_comes_back_as_it_was() {
        let written = chunk(63, Position::new(9), b"abc");
        let read = read_chunk(&written);
        assert_eq!(read, Some((63, Position::new(9), &b"abc"[..])));
    }
}
