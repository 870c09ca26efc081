//! Where the entries of a descriptor come from.
//!
//! A limit for `api_key` does not say what an API key is: the routes of the proxy
//! do, elsewhere. Whoever imports may say so (`--map api_key=header.x-api-key`);
//! what they do not say is taken from what Envoy calls its own entries, or from
//! the entry's name, and reported.

use std::{collections::BTreeMap, str::FromStr};

use limiter::rule::{KeyPart, text};

use super::build::WHOLE_ADDRESS;
use crate::rules::key;

/// What stands for the entries of descriptors, by their keys.
#[derive(Clone, Debug, Default)]
pub struct Entries(BTreeMap<String, KeyPart>);

/// Why an entry cannot come from there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// Not an entry and a part of a key.
    #[error("expected an entry and where it comes from, as in api_key=header.x-api-key")]
    Shape,
    /// Not a part of a key.
    #[error("{0}")]
    Part(String),
}

/// What an entry is, and how well that is known.
pub(super) enum Meaning {
    /// Known.
    Is(KeyPart),
    /// Taken to be this.
    Perhaps(KeyPart),
    /// Every request has it: the same for all that a route sends.
    Fixed,
    /// Nothing that a rule can look at; why.
    Nothing(&'static str),
}

impl Entries {
    /// Adds what stands for an entry.
    pub fn add(&mut self, entry: Entry) {
        self.0.insert(entry.0, entry.1);
    }

    /// Whether somebody said what this entry is.
    pub(super) fn said(&self, entry: &str) -> Option<&KeyPart> {
        self.0.get(entry)
    }

    /// What the entry of this key is.
    pub(super) fn meaning(&self, entry: &str) -> Meaning {
        if let Some(part) = self.said(entry) {
            return Meaning::Is(part.clone());
        }
        match entry {
            "remote_address" => Meaning::Is(WHOLE_ADDRESS),
            "masked_remote_address" => Meaning::Perhaps(WHOLE_ADDRESS),
            "generic_key" => Meaning::Fixed,
            "header_match" | "query_match" => {
                Meaning::Nothing("what it matches stands in the routes, not here")
            }
            "source_cluster" | "destination_cluster" => {
                Meaning::Nothing("a rule does not look at clusters")
            }
            other => by_name(other),
        }
    }
}

fn by_name(entry: &str) -> Meaning {
    let header = entry.to_ascii_lowercase();
    match header.trim_start_matches(':').trim_start_matches("req.") {
        "path" => Meaning::Perhaps(KeyPart::Path),
        "method" => Meaning::Perhaps(KeyPart::Method),
        "authority" | "host" => Meaning::Perhaps(KeyPart::Host),
        _ if text::header_name(&header).is_ok() => Meaning::Perhaps(KeyPart::Header(header)),
        _ => Meaning::Nothing("its name is no header's"),
    }
}

/// An entry and what stands for it, as in `api_key=header.x-api-key`.
#[derive(Clone, Debug)]
pub struct Entry(String, KeyPart);

impl FromStr for Entry {
    type Err = EntryError;

    fn from_str(text: &str) -> Result<Self, EntryError> {
        let (entry, part) = text.split_once('=').ok_or(EntryError::Shape)?;
        if entry.is_empty() {
            return Err(EntryError::Shape);
        }
        let part = key::parse(part).map_err(EntryError::Part)?;
        Ok(Self(entry.into(), part))
    }
}
