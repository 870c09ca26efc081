//! The region: a ledger that can crash, and comes back from its disk.

use std::{rc::Rc, sync::Arc};

use limiter::{
    ledger::Ledger,
    ruleset::RuleSet,
    time::Timestamp,
    wire::{SyncReply, SyncRequest},
};
use prost::Message;

use crate::{
    disk::{self, Disk},
    setup::Setup,
};

/// One region.
pub(crate) struct Region {
    /// None while it is down.
    ledger: Option<Ledger>,
    disk: Disk,
    /// Which of its lives: what a life had not answered when it ended never is.
    pub(crate) life: u64,
}

/// A message taken in.
pub(crate) struct Synced {
    pub(crate) request: SyncRequest,
    pub(crate) reply: Rc<Reply>,
    /// When the reply may leave: all that it acknowledges is durable by then.
    /// What it lends is on no disk, and waits for none.
    pub(crate) leaves_at: Timestamp,
}

/// A reply, as it is and as it travels.
pub(crate) struct Reply {
    pub(crate) message: SyncReply,
    pub(crate) body: Vec<u8>,
}

impl Region {
    /// Empty books with these rules in force.
    pub(crate) fn new(setup: &Setup, rules: &Arc<RuleSet>) -> Self {
        let mut disk = Disk::new(setup.commit);
        let mut ledger = disk::ledger();
        let written = setup.start.before(setup.commit);
        ledger.set_rules(Arc::clone(rules), setup.start, disk.at(written));
        Self {
            ledger: Some(ledger),
            disk,
            life: 0,
        }
    }

    /// Its books; none while it is down.
    pub(crate) const fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    /// Takes in a message; none if it is down.
    pub(crate) fn sync(&mut self, body: &[u8], now: Timestamp) -> Option<Result<Synced, String>> {
        let ledger = self.ledger.as_mut()?;
        let request = match SyncRequest::decode(body) {
            Ok(request) => request,
            Err(error) => return Some(Err(error.to_string())),
        };
        let message = match ledger.sync(request.clone(), now, self.disk.at(now)) {
            Ok(message) => message,
            Err(error) => return Some(Err(error.to_string())),
        };
        let leaves_at = if message.acks.is_empty() {
            now
        } else {
            self.disk.all_durable_at(now)
        };
        let body = message.encode_to_vec();
        Some(Ok(Synced {
            request,
            reply: Rc::new(Reply { message, body }),
            leaves_at,
        }))
    }

    /// It dies.
    pub(crate) fn crash(&mut self, now: Timestamp) {
        self.ledger = None;
        self.life += 1;
        self.disk.crash(now);
    }

    /// It comes back.
    pub(crate) fn restart(&mut self) -> Result<(), String> {
        let ledger = self.disk.rebuild().map_err(|error| error.to_string())?;
        self.ledger = Some(ledger);
        Ok(())
    }

    /// Forgets what no longer matters in one partition.
    pub(crate) fn sweep(&mut self, partition: u32, now: Timestamp) {
        if let Some(ledger) = &mut self.ledger {
            ledger.sweep(partition, now);
        }
    }

    /// Puts other rules in force.
    pub(crate) fn set_rules(&mut self, rules: Arc<RuleSet>, now: Timestamp) {
        if let Some(ledger) = &mut self.ledger {
            ledger.set_rules(rules, now, self.disk.at(now));
        }
    }

    /// Writes all of it down, so that the log can be cut.
    pub(crate) fn snapshot(&mut self, now: Timestamp) {
        if let Some(ledger) = &self.ledger {
            self.disk.write_snapshot(ledger, now);
        }
    }
}
