//! What the service says of itself when asked whether it is ready.

use std::sync::{PoisonError, RwLock};

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
pub struct HealthBoard(RwLock<Health>);

impl HealthBoard {
    pub(super) const fn new() -> Self {
        Self(RwLock::new(Health::Recovering))
    }

    /// What was last put up.
    pub fn read(&self) -> Health {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Puts up something else. Nothing follows [`Health::Stopping`].
    pub(super) fn set(&self, health: Health) {
        let mut board = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if *board != Health::Stopping {
            *board = health;
        }
    }
}

impl Health {
    /// Whether requests are taken in, here or for another member.
    pub(super) const fn admits(&self) -> bool {
        matches!(self, Self::Serving { .. } | Self::Leaving)
    }

    /// Why requests are not counted; none if they are.
    pub fn obstacle(&self) -> Option<String> {
        match self {
            Self::Recovering => Some("the log is being read".to_owned()),
            Self::Serving { rules_revision: 0 } => Some("no rules are loaded".to_owned()),
            Self::Serving { .. } => None,
            Self::NoRoom(why) => Some(format!("nothing can be written: {why}")),
            Self::Away(why) => Some(format!("the shared store cannot be reached: {why}")),
            Self::Leaving => Some("the partitions are handed over".to_owned()),
            Self::Joining => Some("some partitions have no owner yet".to_owned()),
            Self::Stopping => Some("the service is stopping".to_owned()),
        }
    }
}
