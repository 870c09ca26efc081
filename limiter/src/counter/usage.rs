//! How much each tenant keeps here, and the most it may.

use alloc::boxed::Box;

use ahash::RandomState;
use hashbrown::HashMap;

use super::add::{AddError, TooMuch};

/// What a name takes beside its text, in bytes: its entry in a table.
const ENTRY_BYTES: u64 = 96;

/// The most that one tenant may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantLimits {
    /// Counters.
    pub counters_max: u64,
    /// Bytes of memory in counters and idempotency keys together, names included.
    pub bytes_max: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    counters: u64,
    bytes: u64,
}

/// What all tenants keep.
pub(super) struct Usage {
    limits: TenantLimits,
    tenants: HashMap<Box<str>, Used, RandomState>,
}

/// Something that is to be kept: how many counters, and how many bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    counters: u64,
    bytes: u64,
}

impl Load {
    /// That of a counter filed under `name`.
    pub(super) const fn counter(name: &str) -> Self {
        Self {
            counters: 1,
            bytes: ENTRY_BYTES + name.len() as u64,
        }
    }

    /// That of an idempotency key filed under `name`.
    pub(super) const fn told(name: &str) -> Self {
        Self {
            counters: 0,
            bytes: ENTRY_BYTES + name.len() as u64,
        }
    }

    /// Both.
    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            counters: self.counters + other.counters,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl Usage {
    pub(super) fn new(limits: TenantLimits, hash: &RandomState) -> Self {
        Self {
            limits,
            tenants: HashMap::with_hasher(hash.clone()),
        }
    }

    /// Whether so much more fits.
    pub(super) fn room(&self, tenant: &str, load: Load) -> Result<(), AddError> {
        let used = self.tenants.get(tenant).copied().unwrap_or_default();
        let limits = &self.limits;
        let over = |what, used: u64, more: u64, most: u64| {
            let too_much = TooMuch { what, most };
            match more > 0 && used.saturating_add(more) > most {
                true => Err(AddError::TooMuch(too_much)),
                false => Ok(()),
            }
        };
        let counters = limits.counters_max;
        over(
            "tenant_counters_max",
            used.counters,
            load.counters,
            counters,
        )?;
        over(
            "tenant_counter_bytes_max",
            used.bytes,
            load.bytes,
            limits.bytes_max,
        )
    }

    /// Takes note of something that is kept.
    pub(super) fn add(&mut self, tenant: &str, load: Load) {
        let used = match self.tenants.get_mut(tenant) {
            Some(used) => used,
            None => self.tenants.entry(tenant.into()).or_default(),
        };
        used.counters = used.counters.saturating_add(load.counters);
        used.bytes = used.bytes.saturating_add(load.bytes);
    }

    /// Takes note of something that is kept no longer.
    pub(super) fn remove(&mut self, tenant: &str, load: Load) {
        let Some(used) = self.tenants.get_mut(tenant) else {
            return;
        };
        used.counters = used.counters.saturating_sub(load.counters);
        used.bytes = used.bytes.saturating_sub(load.bytes);
        if used.bytes == 0 {
            self.tenants.remove(tenant);
        }
    }
}
