//! What is known of the way to the region: how far its clock is off, how
//! long an answer takes, and whether there is anybody there.

use crate::time::{Micros, Timestamp};

/// How long a message may go unanswered before the region counts as away.
const PATIENCE: Micros = Micros::from_millis(500);

/// How many refusals in a row make a region count as away.
const REFUSALS: u32 = 2;

/// An answer may always take this much longer than twice what answers take.
const JITTER: Micros = Micros::from_millis(1);

/// The state of the way to the region.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// What to add to the host's clock to get the region's; none before the
    /// first answer.
    offset_us: Option<i64>,
    /// The shortest round trip seen of late.
    rtt_min: Micros,
    /// The round trip, smoothed.
    pub(crate) rtt: Micros,
    pub(crate) last_reply: Option<Timestamp>,
    /// When the first message was sent that has not been followed by a reply.
    silent_since: Option<Timestamp>,
    refusals: u32,
}

impl Link {
    /// The region's clock, if it is known.
    pub(crate) fn region_time(&self, now: Timestamp) -> Option<Timestamp> {
        self.offset_us.map(|offset| now.offset_by(offset))
    }

    /// Whether there ever was an answer.
    pub(crate) const fn has_answered(&self) -> bool {
        self.last_reply.is_some()
    }

    /// Whether the region is taken to be away: it refuses, or does not answer.
    /// One that answers late is not away.
    pub(crate) fn is_away(&self, now: Timestamp) -> bool {
        let patience = PATIENCE.max(Micros::new(self.rtt.get().saturating_mul(4)));
        self.refusals >= REFUSALS
            || self
                .silent_since
                .is_some_and(|since| now.since(since) > patience)
    }

    /// What was asked before this and is not answered is likely lost.
    pub(crate) fn overdue(&self, now: Timestamp) -> Timestamp {
        now.before(Micros::new(self.rtt.get().saturating_mul(2)).plus(JITTER))
    }

    pub(crate) fn sent(&mut self, now: Timestamp) {
        self.silent_since.get_or_insert(now);
    }

    pub(crate) fn refused(&mut self) {
        self.refusals = self.refusals.saturating_add(1);
    }

    /// Takes in the times of an answer: the offset is good to half a round
    /// trip, so that the quickest answers are the ones to believe.
    pub(crate) fn answered(&mut self, sent: Timestamp, region: Timestamp, now: Timestamp) {
        self.refusals = 0;
        self.silent_since = None;
        self.last_reply = Some(now);
        let rtt = now.since(sent);
        let smooth = |old: u64, new: u64| old.saturating_mul(7).saturating_add(new) / 8;
        self.rtt = match self.offset_us {
            None => rtt,
            Some(_) => Micros::new(smooth(self.rtt.get(), rtt.get())),
        };
        let quick = rtt.get() <= self.rtt_min.get().saturating_mul(2).saturating_add(1_000);
        if self.offset_us.is_none() || quick {
            let middle = sent.after(Micros::new(rtt.get() / 2));
            self.offset_us = Some(difference(region, middle));
        }
        let drifted = self
            .rtt_min
            .get()
            .saturating_add(self.rtt_min.get() / 64 + 1);
        self.rtt_min = match self.rtt_min {
            Micros::ZERO => rtt,
            _ => rtt.min(Micros::new(drifted)),
        };
    }
}

/// `one − other`, in microseconds.
fn difference(one: Timestamp, other: Timestamp) -> i64 {
    let span = |micros: Micros| i64::try_from(micros.get()).unwrap_or(i64::MAX);
    if one >= other {
        span(one.since(other))
    } else {
        -span(other.since(one))
    }
}
