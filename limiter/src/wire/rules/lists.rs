//! Lists as they travel: once, and then by their identity.

use alloc::{string::ToString, sync::Arc, vec::Vec};

use prost::bytes::{BufMut, Bytes, BytesMut};

use super::{FieldError, RulesError};
use crate::{
    key::HashSeed,
    list::{Lengths, List, ListId},
    wire,
};

/// Bytes that a value takes.
const HASH_BYTES: usize = 8;

/// The lists of a message.
pub(super) struct Lists(Vec<Arc<List>>);

impl Lists {
    /// Reads them; those that were left out are among the known ones.
    pub(super) fn read(sent: Vec<wire::List>, known: &[Arc<List>]) -> Result<Self, RulesError> {
        let lists = sent.into_iter().map(|sent| {
            let id = ListId(sent.id);
            match known.iter().find(|list| list.id() == id) {
                Some(list) => Ok(Arc::clone(list)),
                None if sent.kept => Err(RulesError::ListLeftOut(sent.name)),
                None => read(sent).map(Arc::new),
            }
        });
        let lists: Result<Vec<_>, _> = lists.collect();
        Ok(Self(lists?))
    }

    pub(super) fn get(&self, id: u64) -> Result<Arc<List>, FieldError> {
        let found = self.0.iter().find(|list| list.id().0 == id);
        found.cloned().ok_or(FieldError::List(id))
    }
}

fn read(sent: wire::List) -> Result<List, RulesError> {
    let wrong = || RulesError::List(sent.name.clone());
    let seed: [u8; 16] = (&*sent.seed).try_into().map_err(|_| wrong())?;
    let (hashes, rest) = sent.hashes.as_chunks::<HASH_BYTES>();
    if !rest.is_empty() {
        return Err(wrong());
    }
    let hashes = hashes.iter().map(|bytes| u64::from_be_bytes(*bytes));
    let lengths = Lengths {
        v4: (&*sent.v4_bits).into(),
        v6: (&*sent.v6_bits).into(),
    };
    let lengths = sent.blocks.then_some(lengths);
    let (id, seed) = (ListId(sent.id), HashSeed(seed));
    Ok(List::sent(sent.name, id, seed, hashes, lengths))
}

impl From<&List> for wire::List {
    fn from(list: &List) -> Self {
        let mut hashes = BytesMut::with_capacity(list.len().saturating_mul(HASH_BYTES));
        list.hashes().for_each(|hash| hashes.put_u64(hash));
        let bits = |lengths: fn(&Lengths) -> &[u8]| {
            list.lengths()
                .map_or_else(Bytes::new, |all| Bytes::copy_from_slice(lengths(all)))
        };
        Self {
            id: list.id().0,
            name: list.name().to_string(),
            seed: Bytes::copy_from_slice(&list.seed().0),
            hashes: hashes.freeze(),
            kept: false,
            blocks: list.is_of_blocks(),
            v4_bits: bits(|lengths| &lengths.v4),
            v6_bits: bits(|lengths| &lengths.v6),
        }
    }
}

/// A list that the reader has already.
pub(super) fn kept(list: &List) -> wire::List {
    wire::List {
        id: list.id().0,
        name: list.name().to_string(),
        kept: true,
        ..wire::List::default()
    }
}
