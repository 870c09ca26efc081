//! A region: a ledger that can crash, and comes back from its disk.

use std::{rc::Rc, sync::Arc};

use limiter::{
    ledger::{Ledger, SyncError},
    ruleset::RuleSet,
    time::Timestamp,
    wire::{SyncReply, SyncRequest},
};
use prost::{DecodeError, Message};

use crate::{
    disk::{self, Disk},
    load::{self, Held, Load},
    setup::Setup,
};

/// One region.
pub(crate) struct Region {
    /// None while it is down.
    ledger: Option<Ledger>,
    disk: Disk,
    /// What it had to do.
    pub(crate) load: Load,
    keys_max: Option<u64>,
    /// Which of its lives: what a life had not answered when it ended never is.
    pub(crate) life: u64,
}

/// A message taken in.
pub(crate) struct Synced {
    /// Without its claims.
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

/// An answer, and when it may leave.
type Taken = Result<(Reply, Timestamp), SyncError>;

impl Reply {
    fn of(message: SyncReply) -> Self {
        let body = message.encode_to_vec();
        Self { message, body }
    }
}

/// Reads a message.
#[inline(never)]
fn read(body: &[u8]) -> Result<SyncRequest, DecodeError> {
    SyncRequest::decode(body)
}

impl Region {
    /// Empty books with these rules in force.
    pub(crate) fn new(place: usize, setup: &Setup, rules: &Arc<RuleSet>) -> Self {
        let mut disk = Disk::new(setup.commit);
        if setup.restarts.iter().all(|restart| restart.region != place) {
            disk = disk.unread();
        }
        let mut ledger = disk::ledger();
        let written = setup.start.before(setup.commit);
        ledger.set_rules(Arc::clone(rules), setup.start, disk.at(written));
        let mut region = Self {
            ledger: None,
            disk,
            load: Load::until(setup.end()),
            keys_max: setup.region_keys_max,
            life: 0,
        };
        region.begin(ledger);
        region
    }

    /// A life begins with these books.
    fn begin(&mut self, mut ledger: Ledger) {
        if let Some(keys_max) = self.keys_max {
            ledger.set_keys_max(keys_max);
        }
        self.ledger = Some(ledger);
    }

    /// What it holds.
    pub(crate) fn held(&self) -> Held {
        self.ledger
            .as_ref()
            .map_or_else(Held::default, |ledger| Held {
                keys: ledger.keys() as u64,
                bytes: ledger.bytes(),
            })
    }

    /// Its books; none while it is down.
    pub(crate) const fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    /// Takes in a message; none if it is down.
    pub(crate) fn sync(&mut self, body: &[u8], now: Timestamp) -> Option<Result<Synced, String>> {
        self.ledger.as_ref()?;
        let mut request = match read(body) {
            Ok(request) => request,
            Err(error) => return Some(Err(error.to_string())),
        };
        self.load.received(&request, body.len(), now);
        let (written, ask) = (self.disk.written, load::is_ask(&request));
        // What is claimed is of no interest afterwards, and most of a message.
        let claims = std::mem::take(&mut request.claims);
        let kept = request.clone();
        request.claims = claims;
        let taken = if ask {
            self.ask(request, now)
        } else {
            self.flush(request, now)
        };
        let (reply, leaves_at) = match taken? {
            Ok(taken) => taken,
            Err(error) => return Some(Err(error.to_string())),
        };
        self.load.answered(ask, reply.body.len(), now);
        self.load.logged(self.disk.written - written, now);
        Some(Ok(Synced {
            request: kept,
            reply: Rc::new(reply),
            leaves_at,
        }))
    }

    /// Counts a flush and answers it. Apart from [`Self::ask`], so that whoever
    /// counts instructions can tell the two.
    #[inline(never)]
    fn flush(&mut self, request: SyncRequest, now: Timestamp) -> Option<Taken> {
        let ledger = self.ledger.as_mut()?;
        let message = ledger.sync(request, now, self.disk.at(now));
        let leaves_at = match &message {
            Ok(message) if !message.acks.is_empty() => self.disk.all_durable_at(now),
            _ => now,
        };
        Some(message.map(|message| (Reply::of(message), leaves_at)))
    }

    /// Answers an ask: that is on no disk, and waits for none.
    #[inline(never)]
    fn ask(&mut self, request: SyncRequest, now: Timestamp) -> Option<Taken> {
        let ledger = self.ledger.as_mut()?;
        let message = ledger.sync(request, now, self.disk.at(now));
        Some(message.map(|message| (Reply::of(message), now)))
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
        self.begin(ledger);
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
