//! One partition of the counters.

use ahash::RandomState;

use super::{
    Counter, Seen,
    entry::{Slot, Told},
    id::{CounterId, tenant_of},
    record::Record,
    table::{Named, Table},
    usage::{Load, Usage},
};
use crate::time::Timestamp;

/// One partition: its counters, and what callers were told.
pub(super) struct Shard {
    /// The position of the last record it has taken in.
    pub(super) contains: u64,
    slots: Table<Slot>,
    told: Table<Told>,
    /// Whether the sweep is done with the counters and at what was told.
    sweeps_told: bool,
}

impl Shard {
    pub(super) fn new(hash: &RandomState) -> Self {
        Self {
            contains: 0,
            slots: Table::new(hash),
            told: Table::new(hash),
            sweeps_told: false,
        }
    }

    /// What a counter is. That there is none may rest on any record of the
    /// partition: it may have been deleted.
    pub(super) fn read(&self, id: &CounterId, now: Timestamp) -> Seen {
        let slot = self.slots.find(id.as_text());
        Seen {
            counter: slot.filter(|slot| !slot.is_over(now)).map(|slot| Counter {
                value: slot.value,
                expires: slot.expires,
            }),
            rests_on: slot.map_or(self.contains, |slot| slot.at),
        }
    }

    /// What was told under this name, unless that is long ago.
    pub(super) fn told(&self, name: &str, now: Timestamp) -> Option<&Told> {
        self.told.find(name).filter(|told| !told.is_over(now))
    }

    /// Whether there is room for a counter because it is there already, ended or
    /// not.
    pub(super) fn keeps(&self, id: &CounterId) -> bool {
        self.slots.find(id.as_text()).is_some()
    }

    /// Takes in what a record says of a counter.
    pub(super) fn take(&mut self, id: &CounterId, record: Record, at: u64, usage: &mut Usage) {
        if record.deleted && self.slots.remove(id.as_text()).is_some() {
            usage.remove(id.tenant(), Load::counter(id.as_text()));
        }
        if let Some(state) = record.state {
            let is_new = self.slots.put(Slot {
                id: id.clone(),
                value: state.value,
                expires: state.expires(),
                at,
            });
            if is_new {
                usage.add(id.tenant(), Load::counter(id.as_text()));
            }
        }
        if let Some(answer) = record.told {
            self.remember(Told::new(answer, at), usage);
        }
    }

    /// Remembers what somebody was told.
    pub(super) fn remember(&mut self, told: Told, usage: &mut Usage) {
        let name = told.name.clone();
        if self.told.put(told) {
            usage.add(tenant_of(&name), Load::told(&name));
        }
    }

    /// Looks at a few entries. Returns whether those were the last.
    pub(super) fn sweep(&mut self, now: Timestamp, usage: &mut Usage) -> bool {
        let done = match self.sweeps_told {
            false => self.slots.sweep(now, |slot| {
                usage.remove(slot.id.tenant(), Load::counter(slot.id.as_text()));
            }),
            true => self.told.sweep(now, |told| {
                usage.remove(tenant_of(&told.name), Load::told(&told.name));
            }),
        };
        let all = done && self.sweeps_told;
        self.sweeps_told ^= done;
        all
    }

    /// Everything in it, as records, one after the other in the same place: a
    /// partition is written while everybody waits.
    pub(super) fn write(&self, mut take: impl FnMut(&Record)) {
        let mut record = Record::default();
        for slot in self.slots.iter() {
            record.be_slot(slot);
            take(&record);
        }
        record = Record::default();
        for told in self.told.iter() {
            record.be_told(told);
            take(&record);
        }
    }

    pub(super) fn counters(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn keys_told(&self) -> usize {
        self.told.len()
    }
}
