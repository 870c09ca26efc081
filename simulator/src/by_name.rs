//! Tables under counters' names. A name is a hash already, under a key that no
//! workload here knows, so that it is not hashed again.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use limiter::key::CounterKey;

/// Something of each counter.
pub(crate) type ByName<T> = HashMap<CounterKey, T, BuildHasherDefault<AsIs>>;

/// Takes a name for its own hash.
#[derive(Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "half of a name is as good a hash as all of it"
    )]
    fn write_u128(&mut self, name: u128) {
        self.0 ^= name as u64;
    }

    fn write_usize(&mut self, place: usize) {
        self.0 ^= (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
