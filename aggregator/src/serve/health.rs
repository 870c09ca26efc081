//! What the service says of itself when asked whether it is ready.

use std::{
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Whether requests are counted, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// The log is being read.
    Recovering,
    /// Requests are counted.
    Serving {
        /// The revision of the rules in force; 0 without any.
        rules_revision: u64,
    },
    /// The disk takes nothing more. Nothing is counted until it does.
    NoRoom(String),
    /// The disk has not answered for as long as a request may take, so that nobody
    /// who waits for it is answered. What comes is taken all the same.
    Stalled(Duration),
    /// The shared store cannot be reached. Nothing is counted until it can.
    Away(String),
    /// Partitions are handed over to other members, who answer by now.
    Leaving,
    /// Some partitions of the shared store have no owner yet.
    Joining,
    /// The service is on its way out.
    Stopping,
}

/// The health as of now, for everyone to see.
#[derive(Debug)]
pub struct HealthBoard {
    health: RwLock<Health>,
    draining: AtomicBool,
}

impl HealthBoard {
    pub(super) const fn new() -> Self {
        Self {
            health: RwLock::new(Health::Recovering),
            draining: AtomicBool::new(false),
        }
    }

    /// What was last put up.
    pub fn read(&self) -> Health {
        self.health
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Puts up something else. Nothing follows [`Health::Stopping`].
    pub(super) fn set(&self, health: Health) {
        let mut board = self.health.write().unwrap_or_else(PoisonError::into_inner);
        if *board != Health::Stopping {
            *board = health;
        }
    }

    /// From now on no new requests are wanted, though those that come are answered.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether the service is about to stop.
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Why requests should go elsewhere; none if they should come.
    pub fn obstacle(&self) -> Option<String> {
        let draining = "the service is about to stop; what comes is still answered";
        let draining = || self.is_draining().then(|| draining.to_owned());
        self.read().obstacle().or_else(draining)
    }
}

impl Health {
    /// Whether requests are taken in, here or for another member.
    pub(super) const fn admits(&self) -> bool {
        matches!(
            self,
            Self::Serving { .. } | Self::Leaving | Self::Stalled(_)
        )
    }

    /// Why requests are not counted; none if they are.
    pub fn obstacle(&self) -> Option<String> {
        match self {
            Self::Recovering => Some("the log is being read".to_owned()),
            Self::Serving { rules_revision: 0 } => Some("no rules are loaded".to_owned()),
            Self::Serving { .. } => None,
            Self::NoRoom(why) => Some(format!("nothing can be written: {why}")),
            Self::Stalled(patience) => Some(format!(
                "the disk has not finished a write for {} ms (request_timeout_ms)",
                patience.as_millis()
            )),
            Self::Away(why) => Some(format!("the shared store cannot be reached: {why}")),
            Self::Leaving => Some("the partitions are handed over".to_owned()),
            Self::Joining => Some("some partitions have no owner yet".to_owned()),
            Self::Stopping => Some("the service is stopping".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_drains_is_not_ready_and_what_ails_it_comes_first() {
        let board = HealthBoard::new();
        let serving = Health::Serving { rules_revision: 1 };
        board.set(serving.clone());
        assert_eq!(board.obstacle(), None);
        board.drain();
        assert!(
            board
                .obstacle()
                .is_some_and(|why| why.contains("about to stop"))
        );
        board.set(Health::NoRoom("full".to_owned()));
        assert!(board.obstacle().is_some_and(|why| why.contains("full")));
        board.set(Health::Stopping);
        board.set(serving);
        assert_eq!(board.read(), Health::Stopping);
    }
}
