//! Lists of values: a hundred thousand keys are data, not a hundred thousand rules.
//!
//! A list keeps 64 bits of each value's hash and answers in one look whether a value
//! is in it. The hash is SipHash, with a seed of the list's own that is made of all
//! its values: who does not know the whole list cannot make a value that is taken for
//! one of them. That one is by chance has a probability of 2^-64 for each value listed.
//!
//! Blocks of addresses are listed as well, each under its prefix: an address is looked
//! up once for each length of prefix that the list has.

use alloc::{borrow::ToOwned, boxed::Box, string::String, vec::Vec};
use core::{fmt, net::IpAddr};

use crate::{
    address::{self, Cidr},
    key::{HashSeed, KeyHasher},
};

mod table;

use table::Table;

/// The most values that the lists of one set of rules may have together.
pub const LISTED_MAX: usize = 1_000_000;

/// The most lists that one set of rules may have.
pub const LISTS_MAX: usize = 64;

/// The identity of a list: another if a value of it, its name or the rules' seed is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListId(pub u64);

/// A list of values, or of blocks of addresses.
#[derive(Clone)]
pub struct List {
    name: String,
    id: ListId,
    seed: HashSeed,
    table: Table,
    blocks: Option<Lengths>,
}

/// Lengths of prefixes that a list of blocks has, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub(crate) v4: Box<[u8]>,
    pub(crate) v6: Box<[u8]>,
}

impl List {
    /// A list of values, which are compared to the byte. One that comes twice is
    /// there once.
    pub fn of_values<'a>(
        name: &str,
        rules_seed: HashSeed,
        values: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Self {
        let own = |hasher: KeyHasher| {
            let hash = move |value| {
                let mut hasher = hasher;
                hasher.value(value);
                short(&hasher)
            };
            values.clone().map(hash).collect()
        };
        Self::new(name, rules_seed, None, own)
    }

    /// A list of blocks of addresses.
    pub fn of_blocks(name: &str, rules_seed: HashSeed, blocks: &[Cidr]) -> Self {
        let lengths = |v4: bool| {
            let those = blocks.iter().filter(|block| block.base().is_ipv4() == v4);
            let mut lengths: Vec<u8> = those.map(Cidr::bits).collect();
            lengths.sort_unstable();
            lengths.dedup();
            lengths.into_boxed_slice()
        };
        let lengths = Lengths {
            v4: lengths(true),
            v6: lengths(false),
        };
        let own = |hasher: KeyHasher| {
            let hash = |block: &Cidr| in_block(hasher, block.base(), block.bits());
            blocks.iter().map(hash).collect()
        };
        Self::new(name, rules_seed, Some(lengths), own)
    }

    /// A list of what hashes to these.
    fn new(
        name: &str,
        rules_seed: HashSeed,
        blocks: Option<Lengths>,
        hashes: impl Fn(KeyHasher) -> Vec<u64>,
    ) -> Self {
        let mut content = hashes(KeyHasher::new(rules_seed));
        content.sort_unstable();
        content.dedup();
        let mut hasher = KeyHasher::new(rules_seed);
        hasher.value(name.as_bytes());
        hasher.value(&[u8::from(blocks.is_some())]);
        content
            .iter()
            .for_each(|hash| hasher.value(&hash.to_be_bytes()));
        let seed = HashSeed(hasher.finish().to_bytes());
        Self {
            name: name.to_owned(),
            id: ListId(short(&KeyHasher::new(seed))),
            table: Table::new(hashes(KeyHasher::new(seed)).into_iter()),
            seed,
            blocks,
        }
    }

    /// One that was sent: hashes with this seed.
    pub(crate) fn sent(
        name: String,
        id: ListId,
        seed: HashSeed,
        hashes: impl ExactSizeIterator<Item = u64>,
        blocks: Option<Lengths>,
    ) -> Self {
        Self {
            name,
            id,
            seed,
            table: Table::new(hashes),
            blocks,
        }
    }

    /// What it is called, as in the rule file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its identity.
    pub const fn id(&self) -> ListId {
        self.id
    }

    /// How many values it has.
    pub const fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether it has none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is one of blocks of addresses.
    pub const fn is_of_blocks(&self) -> bool {
        self.blocks.is_some()
    }

    /// Whether a value is in it.
    pub fn has(&self, value: &[u8]) -> bool {
        let mut hasher = self.hasher();
        hasher.value(value);
        self.has_hashed(&hasher)
    }

    /// Whether a value is in it that is not in memory as it is compared.
    pub fn has_bytes(&self, value: impl Iterator<Item = u8> + Clone) -> bool {
        let mut hasher = self.hasher();
        hasher.value_of(value);
        self.has_hashed(&hasher)
    }

    /// Whether an address lies in one of its blocks.
    pub fn has_address(&self, address: IpAddr) -> bool {
        let Some(lengths) = &self.blocks else {
            return false;
        };
        let lengths = match address.to_canonical() {
            IpAddr::V4(_) => &lengths.v4,
            IpAddr::V6(_) => &lengths.v6,
        };
        let hasher = self.hasher();
        let mut hashes = lengths.iter().map(|&bits| {
            let base = address::prefix(address, bits, bits);
            in_block(hasher, base, bits)
        });
        hashes.any(|hash| self.table.has(hash))
    }

    /// A hasher to take in one value, for [`Self::has_hashed`].
    pub(crate) fn hasher(&self) -> KeyHasher {
        KeyHasher::new(self.seed)
    }

    /// Whether the one value that this has taken in is in it.
    pub(crate) fn has_hashed(&self, hasher: &KeyHasher) -> bool {
        self.table.has(short(hasher))
    }

    pub(crate) const fn seed(&self) -> HashSeed {
        self.seed
    }

    pub(crate) const fn lengths(&self) -> Option<&Lengths> {
        self.blocks.as_ref()
    }

    /// All hashes, in no order.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = u64> {
        self.table.iter()
    }
}

/// Two lists are the same if their identity is.
impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for List {}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({} values, {:016x})",
            self.name,
            self.len(),
            self.id.0
        )
    }
}

/// The 64 bits of a hash that are kept.
fn short(hasher: &KeyHasher) -> u64 {
    hasher.finish_rule().0
}

fn in_block(mut hasher: KeyHasher, base: IpAddr, bits: u8) -> u64 {
    hasher.value(&[bits]);
    match base {
        IpAddr::V4(v4) => hasher.value(&v4.octets()),
        IpAddr::V6(v6) => hasher.value(&v6.octets()),
    }
    short(&hasher)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn list(values: &[&str]) -> List {
        let bytes = values.iter().map(|value| value.as_bytes());
        List::of_values("l", HashSeed::default(), bytes)
    }

    #[test]
    fn what_was_listed_is_in_it_and_nothing_else() {
        let values: Vec<String> = (0..10_000).map(|n| format!("key-{n}")).collect();
        let texts: Vec<&str> = values.iter().map(String::as_str).collect();
        let list = list(&texts);
        assert_eq!(list.len(), values.len());
        assert!(values.iter().all(|value| list.has(value.as_bytes())));
        assert!(values.iter().all(|value| list.has_bytes(value.bytes())));
        assert!((10_000..30_000).all(|n| !list.has(format!("key-{n}").as_bytes())));
        assert!(!list.has(b""));
        assert!(!List::of_values("l", HashSeed::default(), [].into_iter()).has(b""));
    }

    #[test]
    fn its_identity_is_its_name_and_its_values_in_any_order() {
        assert_eq!(list(&["a", "b"]), list(&["b", "a", "b"]));
        assert_ne!(list(&["a", "b"]), list(&["a", "c"]));
        assert_ne!(list(&["ab"]), list(&["a", "b"]));
        let other = List::of_values("other", HashSeed::default(), [&b"a"[..]].into_iter());
        assert_ne!(list(&["a"]), other);
    }

    #[test]
    fn one_value_more_changes_the_hash_of_all_of_them() {
        let (few, more) = (list(&["a", "b"]), list(&["a", "b", "c"]));
        assert!(
            !few.hashes()
                .any(|hash| more.hashes().any(|other| other == hash))
        );
    }

    #[test]
    fn an_address_is_found_in_a_block_of_any_length() {
        let blocks = ["10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "2001:db9::1"];
        let blocks = blocks.map(|block| block.parse().unwrap());
        let list = List::of_blocks("l", HashSeed::default(), &blocks);
        assert!(list.is_of_blocks());
        for (address, is_in) in [
            ("10.1.2.3", true),
            ("11.1.2.3", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("::ffff:192.0.2.7", true),
            ("2001:db8:1::5", true),
            ("2001:db9::1", true),
            ("2001:db9::2", false),
        ] {
            assert_eq!(
                list.has_address(address.parse().unwrap()),
                is_in,
                "{address}"
            );
        }
        assert!(!super::tests::list(&["10.0.0.1"]).has_address([10, 0, 0, 1].into()));
    }
}
