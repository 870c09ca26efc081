//! How often tenants and tokens may ask: a token bucket each, of one second.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use core::num::NonZeroU32;
use limiter::{
    count::Count,
    quota::{Algorithm, Quota},
    time::{Micros, Timestamp},
    window::Window,
};

use smallvec::SmallVec;

use super::{Guest, Refused};
use crate::auth::{Name, Tokens};

/// Evaluated by the compiler, which would not build it otherwise.
const SECOND: Window = match Window::new(Micros::from_secs(1)) {
    Some(second) => second,
    None => unreachable!(),
};

/// Every tenant's bucket, and those of tokens that have one.
#[derive(Default)]
pub(super) struct Rates {
    tenants: Buckets,
    tokens: Buckets,
}

type Buckets = HashMap<Name, Arc<Bucket>>;

struct Bucket {
    per_second: NonZeroU32,
    spent: Mutex<Count>,
}

impl Rates {
    /// The buckets for these tokens. Those that stay keep what was spent.
    pub(super) fn for_tokens(&self, tokens: Option<&Tokens>, tenant_rate: NonZeroU32) -> Self {
        let mut rates = Self::default();
        let Some(tokens) = tokens else {
            let everyone = Name::nobody_in_particular();
            keep(&mut rates.tenants, &self.tenants, &everyone, tenant_rate);
            return rates;
        };
        for holder in tokens.holders() {
            keep(
                &mut rates.tenants,
                &self.tenants,
                &holder.tenant,
                tenant_rate,
            );
            if let Some(rate) = holder.requests_per_second {
                keep(&mut rates.tokens, &self.tokens, &holder.name, rate);
            }
        }
        rates
    }

    /// Spends one request from the guest's token and tenant, or from neither.
    pub(super) fn spend(&self, guest: &Guest, now: Timestamp) -> Result<(), Refused> {
        let token = guest.token.as_ref().and_then(|name| self.tokens.get(name));
        let tenant = self.tenants.get(&guest.tenant);
        let asked = [("token", token), ("tenant", tenant)];
        // Always in this order, so that no two wait for each other.
        let mut taken = SmallVec::<[_; 2]>::new();
        for (whose, bucket) in asked {
            let Some(bucket) = bucket else { continue };
            let spent = bucket.spent.lock().unwrap_or_else(PoisonError::into_inner);
            let quota = bucket.quota();
            if !spent.allows(&quota, 1, now) {
                return Err(Refused::TooFast {
                    whose,
                    per_second: bucket.per_second,
                    wait: spent.retry_after(&quota, 1, now).unwrap_or(Micros::ZERO),
                });
            }
            taken.push((quota, spent));
        }
        for (quota, mut spent) in taken {
            spent.add(&quota, 1, now);
        }
        Ok(())
    }
}

/// Takes over a bucket, if it has the same rate, or begins a full one.
fn keep(buckets: &mut Buckets, before: &Buckets, name: &Name, per_second: NonZeroU32) {
    let same = |bucket: &&Arc<Bucket>| bucket.per_second == per_second;
    let bucket = match before.get(name).filter(same) {
        Some(bucket) => Arc::clone(bucket),
        None => Arc::new(Bucket {
            per_second,
            spent: Mutex::default(),
        }),
    };
    buckets.insert(name.clone(), bucket);
}

impl Bucket {
    fn quota(&self) -> Quota {
        Quota::new(self.per_second.into(), SECOND, Algorithm::TokenBucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(token: Option<&str>) -> Guest {
        Guest {
            tenant: Name::nobody_in_particular(),
            token: token.map(|name| name.parse().unwrap()),
            digest: None,
        }
    }

    fn rate(per_second: u32) -> NonZeroU32 {
        NonZeroU32::new(per_second).unwrap()
    }

    #[test]
    fn a_second_s_worth_may_come_at_once_and_then_only_what_flows_back() {
        let rates = Rates::default().for_tokens(None, rate(4));
        let now = Timestamp::from_millis(10_000);
        let spend = |now| rates.spend(&guest(None), now);
        for _ in 0..4 {
            spend(now).unwrap();
        }
        let refused = Refused::TooFast {
            whose: "tenant",
            per_second: rate(4),
            wait: Micros::from_millis(250),
        };
        assert_eq!(spend(now), Err(refused));
        let later = now.after(Micros::from_millis(250));
        spend(later).unwrap();
        assert!(spend(later).is_err());
    }

    #[test]
    fn who_is_refused_for_its_tenant_has_not_spent_from_its_token() {
        let mut rates = Rates::default().for_tokens(None, rate(1));
        let none = Buckets::new();
        keep(&mut rates.tokens, &none, &"a".parse().unwrap(), rate(2));
        let at = Timestamp::from_millis;
        rates.spend(&guest(Some("a")), at(0)).unwrap();
        let refused = rates.spend(&guest(Some("a")), at(0));
        let tenant = |refused| {
            matches!(
                refused,
                Err(Refused::TooFast {
                    whose: "tenant",
                    ..
                })
            )
        };
        assert!(tenant(refused));
        // Half a second gives the token its first back, so that two are there.
        let bucket = &rates.tokens[&"a".parse::<Name>().unwrap()];
        let left = bucket
            .spent
            .lock()
            .unwrap()
            .remaining(&bucket.quota(), at(500));
        assert_eq!(left, 2);
    }
}
