//! A region, or the aggregator above all of them: a ledger that can crash, and comes
//! back from its disk.

use std::{rc::Rc, sync::Arc};

use limiter::{
    ledger::{Ledger, SyncError},
    ruleset::RuleSet,
    time::Timestamp,
    wire::{Outgoing, SyncReply, SyncRequest},
};
use prost::{DecodeError, Message};

use crate::{
    disk::{self, Disk},
    load::{self, Held, Load},
    setup::Setup,
};

/// One region, or what is above.
pub(crate) struct Region {
    /// What it is called by the aggregator above; none if there is none.
    name: Option<String>,
    /// The earliest wake-up for words to that which is in the queue.
    pub(crate) wake: Option<Timestamp>,
    /// Messages to it that have neither been answered nor given up.
    under_way: Vec<u64>,
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
    /// The place after the last region is the aggregator above them.
    ///
    /// Empty books with these rules in force.
    pub(crate) fn new(place: usize, setup: &Setup, rules: &Arc<RuleSet>) -> Self {
        let mut disk = Disk::new(setup.commit);
        if setup.restarts.iter().all(|restart| restart.region != place) {
            disk = disk.unread();
        }
        let mut ledger = disk::ledger();
        let written = setup.start.before(setup.commit);
        ledger.set_rules(Arc::clone(rules), setup.start, disk.at(written));
        let below = setup.global.is_some() && place < setup.regions;
        let mut region = Self {
            name: below.then(|| format!("region-{place}")),
            wake: None,
            under_way: Vec::new(),
            ledger: None,
            disk,
            load: Load::until(setup.end()),
            keys_max: setup.region_keys_max,
            life: 0,
        };
        region.begin(ledger, setup.start);
        region
    }

    /// A life begins with these books.
    fn begin(&mut self, mut ledger: Ledger, now: Timestamp) {
        if let Some(name) = self.name.clone() {
            let epoch = now.as_micros();
            let name = limiter::ledger::Region { name, epoch };
            ledger.join(name, now, self.disk.at(now));
        }
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
        self.wake = None;
        self.under_way.clear();
        self.disk.crash(now);
    }

    /// It comes back.
    pub(crate) fn restart(&mut self, now: Timestamp) -> Result<(), String> {
        let ledger = self.disk.rebuild().map_err(|error| error.to_string())?;
        self.begin(ledger, now);
        Ok(())
    }

    /// The next message for the aggregator above, and when it may leave: all that it
    /// tells of is durable by then.
    pub(crate) fn poll(&mut self, now: Timestamp) -> Option<(Outgoing, Timestamp)> {
        let ledger = self.ledger.as_mut()?;
        let report = ledger.poll_upstream(now, self.disk.at(now))?;
        self.under_way.push(report.message.id);
        let leaves_at = if report.has_batches {
            self.disk.all_durable_at(now)
        } else {
            now
        };
        Some((report.message, leaves_at))
    }

    /// When it wants to be polled.
    pub(crate) fn timeout(&self) -> Option<Timestamp> {
        self.ledger.as_ref()?.upstream_timeout()
    }

    /// Everything it has to say is due at once.
    pub(crate) fn flush_now(&mut self) {
        if let Some(ledger) = &mut self.ledger {
            ledger.flush_upstream_now();
        }
    }

    /// It hears what became of a message: an answer, or that there is none. What is
    /// wrong with the answer, if anything.
    pub(crate) fn hear(
        &mut self,
        id: u64,
        reply: Option<&Reply>,
        now: Timestamp,
    ) -> Result<(), String> {
        let place = self.under_way.iter().position(|other| *other == id);
        let (Some(place), Some(ledger)) = (place, &mut self.ledger) else {
            return Ok(());
        };
        self.under_way.swap_remove(place);
        let Some(reply) = reply else {
            ledger.upstream_unanswered(id);
            return Ok(());
        };
        let heard = ledger.handle_upstream(id, &reply.body, now, self.disk.at(now));
        heard.map_err(|error| error.to_string())
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
