//! What a count is filed under: a 128-bit name that every POP computes alike.
//!
//! A counter is known by its domain, its rule and the values of the rule's key.
//! All of that is hashed into one [`CounterKey`], so that a counter costs the
//! same to carry and to store however long the values are. The hash is
//! SipHash-1-3 with a 128-bit result and a key that the rules carry: it is the
//! same on every platform and in every release, and who does not know the key
//! cannot make two counters collide.

use core::{fmt, hash::Hasher};

use siphasher::sip128::{Hasher128, SipHasher13};

/// The name of one counter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterKey(pub u128);

/// A rule's identity: a hash of its name, the same in every revision.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u64);

/// The secret that names are hashed with. All zero unless one is configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashSeed(pub [u8; 16]);

/// How many shards the region's books are cut into, and each source's flushes
/// with them.
pub const PARTITIONS: u32 = 64;

/// Builds a [`CounterKey`] value by value. Copying one that has taken in a
/// rule's constant part saves hashing it again for every request.
#[derive(Clone, Copy, Debug)]
pub struct KeyHasher(SipHasher13);

impl CounterKey {
    /// Sixteen bytes, most significant first, as on the wire and on disk.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// The inverse of [`Self::to_bytes`].
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// The shard it lives in: less than [`PARTITIONS`].
    pub const fn partition(self) -> u32 {
        (self.0 >> 122) as u32
    }
}

impl KeyHasher {
    /// A hasher that has taken in nothing.
    pub fn new(seed: HashSeed) -> Self {
        Self(SipHasher13::new_with_key(&seed.0))
    }

    /// Takes in one value. Its length goes in first, so that no two lists of
    /// values look alike.
    pub fn value(&mut self, bytes: &[u8]) {
        self.0.write_u64(bytes.len() as u64);
        self.0.write(bytes);
    }

    /// Takes in one value that is not in memory as it counts.
    ///
    /// The same as [`Self::value`] of all its bytes.
    pub fn value_of(&mut self, mut bytes: impl Iterator<Item = u8> + Clone) {
        self.0.write_u64(bytes.clone().count() as u64);
        let mut chunk = [0; 32];
        loop {
            let mut filled = 0;
            for (slot, byte) in chunk.iter_mut().zip(&mut bytes) {
                *slot = byte;
                filled += 1;
            }
            match chunk.get(..filled) {
                None | Some([]) => return,
                Some(some) => self.0.write(some),
            }
        }
    }

    /// Takes in that a value is missing, which is not the same as empty.
    pub fn missing(&mut self) {
        self.0.write_u64(u64::MAX);
    }

    /// The name.
    pub fn finish(&self) -> CounterKey {
        CounterKey(self.0.finish128().as_u128())
    }

    /// The name as a rule's identity.
    pub fn finish_rule(&self) -> RuleId {
        RuleId(self.0.finish128().h1)
    }
}

impl fmt::Debug for CounterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(values: &[&[u8]]) -> CounterKey {
        let mut hasher = KeyHasher::new(HashSeed::default());
        for value in values {
            hasher.value(value);
        }
        hasher.finish()
    }

    #[test]
    fn where_one_value_ends_and_the_next_begins_matters() {
        assert_ne!(name(&[b"ab", b"c"]), name(&[b"a", b"bc"]));
        assert_ne!(name(&[b"ab"]), name(&[b"ab", b""]));
    }

    #[test]
    fn a_value_read_byte_by_byte_has_the_same_name() {
        for len in 0..100 {
            let value = alloc::vec![b'x'; len];
            let mut hasher = KeyHasher::new(HashSeed::default());
            hasher.value_of(value.iter().copied());
            assert_eq!(hasher.finish(), name(&[&value]), "{len}");
        }
    }

    #[test]
    fn a_missing_value_is_not_an_empty_one() {
        let mut missing = KeyHasher::new(HashSeed::default());
        missing.missing();
        assert_ne!(missing.finish(), name(&[b""]));
    }

    #[test]
    fn a_name_is_the_same_in_every_release() {
        assert_eq!(
            format_key(name(&[b"api.example.com", b"per-key", b"8fa3"])),
            GOLDEN
        );
    }

    const GOLDEN: &str = "ebc68e4ca090218eb3710abad8bb724a";

    fn format_key(key: CounterKey) -> alloc::string::String {
        alloc::format!("{key:?}")
    }

    #[test]
    fn every_partition_is_below_the_number_of_partitions() {
        assert_eq!(CounterKey(u128::MAX).partition(), PARTITIONS - 1);
        assert_eq!(CounterKey(0).partition(), 0);
    }
}
