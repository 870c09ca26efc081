//! One group's way to the engine: its owner's fence, and a connection that the threads
//! of commits and snapshots take in turn.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Append, Engine, EngineError, Fence, List};

/// Cheap to clone.
#[derive(Clone)]
pub struct Link(Arc<Inner>);

struct Inner {
    engine: Mutex<Box<dyn Engine>>,
    group: u32,
    fence: Fence,
}

impl Link {
    /// A way to a group that was claimed.
    pub fn new(engine: Box<dyn Engine>, group: u32, fence: Fence) -> Self {
        let engine = Mutex::new(engine);
        Self(Arc::new(Inner {
            engine,
            group,
            fence,
        }))
    }

    /// The group.
    pub fn group(&self) -> u32 {
        self.0.group
    }

    fn with<T>(&self, act: impl FnOnce(&mut dyn Engine, u32, &Fence) -> T) -> T {
        let mut engine = self.0.engine.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut **engine, self.0.group, &self.0.fence)
    }

    pub(super) fn append(&self, append: Append<'_>) -> Result<(), EngineError> {
        self.with(|engine, group, fence| engine.append(group, fence, append))
    }

    pub(super) fn page(&self, list: List, from: u64) -> Result<Vec<Vec<u8>>, EngineError> {
        self.with(|engine, group, _| engine.page(group, list, from))
    }

    pub(super) fn begin_snapshot(&self) -> Result<(), EngineError> {
        self.with(|engine, group, fence| engine.begin_snapshot(group, fence))
    }

    pub(super) fn put_snapshot(&self, chunk: &[u8]) -> Result<(), EngineError> {
        self.with(|engine, group, fence| engine.put_snapshot(group, fence, chunk))
    }

    pub(super) fn publish_snapshot(&self, name: &str, entries: u64) -> Result<(), EngineError> {
        self.with(|engine, group, fence| engine.publish_snapshot(group, fence, name, entries))
    }
}
