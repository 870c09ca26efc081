//! The rule book: rule files as they were put in force, by whom, and when.
//!
//! The ledger keeps the rules, this the texts that say them. A text goes on record
//! just before its rules do. A crash between the two leaves a text without rules:
//! nobody was told of it, and [`RuleBook::forget_after`] takes it back. A record
//! of a revision replaces what there was from that revision on, so replaying the log
//! comes to the same.
//!
//! What is kept is bounded: so many revisions, and so many bytes of their texts. The
//! text in force is always kept.

use std::{collections::VecDeque, sync::Arc};

use limiter::{
    journal::{Journal, ReplayError},
    time::Timestamp,
};
use prost::Message;

use crate::rules::RuleText;

/// The most revisions that are remembered.
const REVISIONS_MAX: usize = 100;

/// The most bytes of texts that are kept, beside the text in force.
const TEXT_BYTES_MAX: usize = 8 << 20;

/// Where rules came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::serve) enum Origin {
    /// The rule file.
    File,
    /// A client, over HTTP.
    Api,
    /// A client, who went back to this revision.
    Rollback(u64),
}

/// What is on record of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve) struct Revision {
    /// Grows with every change, from 1.
    pub(in crate::serve) number: u64,
    /// When, by the region's clock.
    pub(in crate::serve) at: Timestamp,
    /// What the token of whoever did it is called; none if none was asked for.
    pub(in crate::serve) by: Option<String>,
    pub(in crate::serve) origin: Origin,
    /// What it changed, in one line.
    pub(in crate::serve) summary: String,
    /// How long the text is.
    pub(in crate::serve) bytes: u64,
    /// None if it is no longer kept.
    pub(in crate::serve) text: Option<RuleText>,
}

/// The latest changes.
#[derive(Default)]
pub(super) struct RuleBook {
    /// The oldest first.
    revisions: VecDeque<Arc<Revision>>,
    /// The last record that a snapshot contains.
    contains: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Record {
    #[prost(uint64, tag = "1")]
    number: u64,
    #[prost(uint64, tag = "2")]
    at_us: u64,
    #[prost(string, optional, tag = "3")]
    by: Option<String>,
    /// 1: the file, 2: a client.
    #[prost(uint32, tag = "4")]
    origin: u32,
    /// Of a client that went back; else 0.
    #[prost(uint64, tag = "5")]
    back_to: u64,
    #[prost(string, tag = "6")]
    summary: String,
    #[prost(uint64, tag = "7")]
    bytes: u64,
    #[prost(string, optional, tag = "8")]
    text: Option<String>,
}

impl RuleBook {
    /// Puts a revision on record.
    pub(super) fn enter(&mut self, revision: Revision, journal: &mut dyn Journal) {
        journal.append(&Record::from(&revision).encode_to_vec());
        self.push(revision);
    }

    /// Every revision that is remembered, the latest first.
    pub(super) fn revisions(&self) -> Vec<Arc<Revision>> {
        self.revisions.iter().rev().cloned().collect()
    }

    /// The text of a revision, if it is kept.
    pub(super) fn text(&self, number: u64) -> Option<&RuleText> {
        let mut latest = self.revisions.iter().rev();
        latest
            .find(|revision| revision.number == number)?
            .text
            .as_ref()
    }

    /// Forgets texts whose rules did not come to be on record.
    pub(super) fn forget_after(&mut self, number: u64) {
        self.revisions.retain(|revision| revision.number <= number);
    }

    /// Writes all of it, as chunks that [`Self::restore`] takes one by one.
    pub(super) fn snapshot(&self, chunk: &mut dyn FnMut(&[u8])) {
        for revision in &self.revisions {
            chunk(&Record::from(&**revision).encode_to_vec());
        }
    }

    /// Takes note that a snapshot holds all records up to this one.
    pub(super) fn contain(&mut self, contains: u64) {
        self.contains = contains;
    }

    /// Reads back one chunk of a snapshot.
    pub(super) fn restore(&mut self, chunk: &[u8]) -> Result<(), ReplayError> {
        self.read(self.contains, chunk)
    }

    /// Applies a record from the log, unless a snapshot contains it.
    pub(super) fn replay(&mut self, position: u64, record: &[u8]) -> Result<(), ReplayError> {
        if position <= self.contains {
            return Ok(());
        }
        self.read(position, record)
    }

    fn read(&mut self, position: u64, record: &[u8]) -> Result<(), ReplayError> {
        let what = "a revision of the rules does not decode";
        let record = Record::decode(record).map_err(|_| ReplayError { position, what })?;
        self.push(record.into());
        Ok(())
    }

    fn push(&mut self, revision: Revision) {
        self.forget_after(revision.number.saturating_sub(1));
        self.revisions.push_back(Arc::new(revision));
        while self.revisions.len() > REVISIONS_MAX {
            self.revisions.pop_front();
        }
        let mut bytes = 0_usize;
        for revision in self.revisions.iter_mut().rev().skip(1) {
            bytes = bytes.saturating_add(revision.text.as_ref().map_or(0, RuleText::len));
            if bytes > TEXT_BYTES_MAX {
                Arc::make_mut(revision).text = None;
            }
        }
    }
}

impl From<&Revision> for Record {
    fn from(revision: &Revision) -> Self {
        let (origin, back_to) = match revision.origin {
            Origin::File => (1, 0),
            Origin::Api => (2, 0),
            Origin::Rollback(number) => (2, number),
        };
        Self {
            number: revision.number,
            at_us: revision.at.as_micros(),
            by: revision.by.clone(),
            origin,
            back_to,
            summary: revision.summary.clone(),
            bytes: revision.bytes,
            text: revision.text.as_ref().map(|text| text.as_str().to_owned()),
        }
    }
}

impl From<Record> for Revision {
    fn from(record: Record) -> Self {
        Self {
            number: record.number,
            at: Timestamp::from_micros(record.at_us),
            by: record.by,
            origin: match (record.origin, record.back_to) {
                (1, _) => Origin::File,
                (_, 0) => Origin::Api,
                (_, number) => Origin::Rollback(number),
            },
            summary: record.summary,
            bytes: record.bytes,
            text: record.text.as_deref().map(RuleText::new),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the records, and calls the first 1.
    #[derive(Default)]
    struct Kept(Vec<Vec<u8>>);

    impl Journal for Kept {
        fn append(&mut self, record: &[u8]) -> u64 {
            self.0.push(record.to_vec());
            self.0.len() as u64
        }
    }

    fn revision(number: u64, text: &str) -> Revision {
        Revision {
            number,
            at: Timestamp::from_millis(number),
            by: Some("ci".to_owned()),
            origin: Origin::Rollback(7),
            summary: "1 changed".to_owned(),
            bytes: text.len() as u64,
            text: Some(RuleText::new(text)),
        }
    }

    fn numbers(book: &RuleBook) -> Vec<u64> {
        book.revisions()
            .iter()
            .map(|revision| revision.number)
            .collect()
    }

    #[test]
    fn a_book_comes_back_from_a_snapshot_and_the_log_after_it() {
        let (mut book, mut log) = (RuleBook::default(), Kept::default());
        (1..=3).for_each(|number| book.enter(revision(number, "a"), &mut log));
        let mut chunks = Vec::new();
        book.snapshot(&mut |chunk| chunks.push(chunk.to_vec()));
        let contains = log.0.len() as u64;
        book.enter(revision(4, "b"), &mut log);
        let mut again = RuleBook::default();
        again.contain(contains);
        chunks
            .iter()
            .for_each(|chunk| again.restore(chunk).unwrap());
        for (record, position) in log.0.iter().zip(1..) {
            again.replay(position, record).unwrap();
        }
        assert_eq!(again.revisions(), book.revisions());
        assert_eq!(numbers(&again), [4, 3, 2, 1]);
    }

    #[test]
    fn a_text_whose_rules_were_never_in_force_makes_room_for_the_next() {
        let (mut book, mut log) = (RuleBook::default(), Kept::default());
        book.enter(revision(1, "a"), &mut log);
        book.enter(revision(2, "lost"), &mut log);
        book.forget_after(1);
        assert_eq!(numbers(&book), [1]);
        book.enter(revision(2, "next"), &mut log);
        let mut again = RuleBook::default();
        for (record, position) in log.0.iter().zip(1..) {
            again.replay(position, record).unwrap();
        }
        assert_eq!(again.revisions(), book.revisions());
        assert_eq!(again.text(2).unwrap().as_str(), "next");
    }

    #[test]
    fn so_many_revisions_are_kept_and_so_many_bytes_of_their_texts() {
        let (mut book, mut log) = (RuleBook::default(), Kept::default());
        (1..=150).for_each(|number| book.enter(revision(number, "a"), &mut log));
        assert_eq!(book.revisions().len(), REVISIONS_MAX);
        assert_eq!(numbers(&book)[0], 150);
        let long = "x".repeat(TEXT_BYTES_MAX / 2);
        (151..=155).for_each(|number| book.enter(revision(number, &long), &mut log));
        let kept: Vec<u64> = (100..=155)
            .filter(|number| book.text(*number).is_some())
            .collect();
        assert_eq!(kept, [153, 154, 155]);
    }
}
