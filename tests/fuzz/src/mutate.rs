//! Inputs made of others: a few small changes, and parts of a second one.

use oorandom::Rand64;

/// The largest input made.
const LEN_MAX: usize = 16 << 10;

/// Bytes that mean something somewhere.
const TELLING: &[u8] = b"\0\x01\x7f\x80\xff\n \"'*/:,.-{}[]?%&#|>0129";

/// Changes one input a little, with parts of another.
#[must_use]
pub fn mutate(one: &[u8], other: &[u8], random: &mut Rand64) -> Vec<u8> {
    let mut input = one.to_vec();
    for _ in 0..random.rand_range(1..6) {
        change(&mut input, other, random);
    }
    input.truncate(LEN_MAX);
    input
}

fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Rand64) {
    let at = place(input.len(), random);
    match random.rand_range(0..7) {
        0 => {
            let bit = 1_u8 << random.rand_range(0..8);
            if let Some(byte) = input.get_mut(at) {
                *byte ^= bit;
            }
        }
        1 => {
            let telling = TELLING.get(place(TELLING.len(), random));
            if let (Some(byte), Some(telling)) = (input.get_mut(at), telling) {
                *byte = *telling;
            }
        }
        2 => {
            let telling = TELLING.get(place(TELLING.len(), random));
            input.insert(at, telling.copied().unwrap_or_default());
        }
        3 => {
            let end = input.len().min(at + 1 + place(16, random));
            input.drain(at..end);
        }
        4 => {
            let end = input.len().min(at + 1 + place(32, random));
            let part = input.get(at..end).unwrap_or_default().to_vec();
            let to = place(input.len(), random);
            input.splice(to..to, part);
        }
        5 => {
            let from = place(other.len(), random);
            let end = other.len().min(from + 1 + place(64, random));
            let part = other.get(from..end).unwrap_or_default().to_vec();
            input.splice(at..at, part);
        }
        _ => input.truncate(at),
    }
}

/// A place in so many; 0 if there is none.
fn place(len: usize, random: &mut Rand64) -> usize {
    let len = u64::try_from(len).unwrap_or(u64::MAX).max(1);
    usize::try_from(random.rand_range(0..len)).unwrap_or(0)
}
