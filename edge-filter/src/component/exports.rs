//! What a host calls, and nothing more. The only place that names `wit_bindgen`, which
//! makes Rust of `wit/limiter.wit`.

#![expect(unsafe_code, reason = "the boundary to the host, written by a macro")]

use std::cell::RefCell;

use limiter::edge::{Identity, Settings};
use limiter::time::{Micros, Timestamp};

use super::asked::Asked;
use super::checked::{packed, passed};
use super::instance::Instance;
use crate::config;

wit_bindgen::generate!({ path: "../wit/limiter.wit", world: "limiter" });

use exports::weir::limiter::source::Guest;
pub(super) use weir::limiter::types;

thread_local! {
    static INSTANCE: RefCell<Option<Instance>> = const { RefCell::new(None) };
}

struct Component;

export!(Component);

/// Nothing runs beside a call, so that nobody else holds the instance.
fn with<T>(act: impl FnOnce(&mut Instance) -> T) -> Option<T> {
    INSTANCE.with(|cell| cell.try_borrow_mut().ok()?.as_mut().map(act))
}

impl Guest for Component {
    fn configure(settings: types::Settings) -> Result<(), String> {
        let identity = Identity {
            source: settings.source,
            epoch: settings.epoch,
            pop: config::text("pop", settings.pop)
                .map_err(|error| error.to_string())?
                .unwrap_or_default(),
        };
        let (a, b, c, d) = settings.hash_seeds;
        let bounds = bounds(settings.keys_max, settings.flush_interval_ms, [a, b, c, d])?;
        INSTANCE.set(Some(Instance::new(identity, bounds)));
        Ok(())
    }

    fn set_rules(compiled: Vec<u8>) -> Result<u64, String> {
        with(|instance| instance.set_rules(&compiled))
            .unwrap_or_else(|| Err("the source is not configured yet".to_owned()))
    }

    fn revision() -> u64 {
        with(|instance| instance.rules().revision).unwrap_or(0)
    }

    fn needed() -> types::Needs {
        let needs = with(|instance| {
            let rules = instance.rules();
            (rules.needs(), response_headers(rules))
        });
        let (needs, response_headers) = needs.unwrap_or_default();
        let mut headers = needs.headers;
        headers.extend(needs.forwarded_for.then(|| "x-forwarded-for".to_owned()));
        types::Needs {
            method: needs.method,
            host: needs.host,
            path: needs.path,
            peer: needs.address,
            headers,
            attributes: needs.attributes.iter().map(ToString::to_string).collect(),
            response_headers,
        }
    }

    fn counter_of(rule: String, values: Vec<Vec<u8>>) -> Result<types::Counter, String> {
        let values: Vec<&[u8]> = values.iter().map(|value| &**value).collect();
        with(|instance| instance.counter_of(&rule, &values))
            .unwrap_or_else(|| Err("the source is not configured yet".to_owned()))
    }

    fn check_key(
        rule: u64,
        high: u64,
        low: u64,
        cost: u64,
        attempt: types::Attempt,
        now: u64,
    ) -> u64 {
        let now = Timestamp::from_micros(now);
        let counter = types::Counter { rule, high, low };
        with(|instance| packed(&instance.check_key(counter, cost, attempt, now), now)).unwrap_or(0)
    }

    fn check_batch(checks: Vec<types::KeyCheck>, attempt: types::Attempt, now: u64) -> Vec<u64> {
        let now = Timestamp::from_micros(now);
        let answers = with(|instance| {
            let checks = checks.iter();
            let check = |check: &types::KeyCheck| {
                packed(
                    &instance.check_key(check.counter, check.cost, attempt, now),
                    now,
                )
            };
            checks.map(check).collect()
        });
        answers.unwrap_or_else(|| vec![0; checks.len()])
    }

    fn check(request: types::Request, attempt: types::Attempt, now: u64) -> types::Decision {
        let now = Timestamp::from_micros(now);
        let decided = with(|instance| {
            let query = instance.resolve(&Asked::new(&request, instance.rules()))?;
            let verdict = instance.decide(&query, attempt, now);
            Some(instance.checked(&query, &verdict, now))
        });
        decided.flatten().unwrap_or_else(passed)
    }

    fn settle(ticket: u64, response: Option<types::Response>, now: u64) {
        let now = Timestamp::from_micros(now);
        with(|instance| instance.settle(ticket, response.as_ref(), now));
    }

    fn due() -> u64 {
        with(|instance| instance.limiter().poll_timeout().as_micros()).unwrap_or(u64::MAX)
    }

    fn drain(now: u64, last: bool) -> Vec<types::Outgoing> {
        with(|instance| instance.drain(Timestamp::from_micros(now), last)).unwrap_or_default()
    }

    fn apply(answers: Vec<types::Answer>, now: u64) -> Vec<types::Trouble> {
        with(|instance| instance.apply(answers, Timestamp::from_micros(now))).unwrap_or_default()
    }

    fn metrics(now: u64) -> Vec<types::Metric> {
        let read = |instance: &mut Instance| {
            let told = instance.metrics(Timestamp::from_micros(now));
            told.iter().map(metric).collect()
        };
        with(read).unwrap_or_default()
    }
}

/// What bounds a source; or which field is wrong.
fn bounds(
    keys_max: Option<u32>,
    flush_interval_ms: Option<u32>,
    hash_seeds: [u64; 4],
) -> Result<Settings, String> {
    let keys = config::keys_max("keys-max", keys_max).map_err(|error| error.to_string())?;
    let interval = config::flush_interval_ms("flush-interval-ms", flush_interval_ms)
        .map_err(|error| error.to_string())?;
    Ok(Settings {
        keys_max: usize::try_from(keys).unwrap_or(usize::MAX),
        flush_interval: Micros::from_millis(u64::from(interval)),
        hash_seeds,
    })
}

/// Headers of responses that rules look at, each once.
fn response_headers(rules: &limiter::ruleset::RuleSet) -> Vec<String> {
    let named = rules.rules().filter(|rule| rule.limits());
    let mut names: Vec<String> = named
        .filter_map(|rule| rule.cost.response_header().map(ToOwned::to_owned))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A name that carries its labels, as `metrics` has them, taken apart.
fn metric((name, value): &(String, i64)) -> types::Metric {
    let mut parts = name.split(';');
    let name = parts.next().unwrap_or_default().to_owned();
    let label = |part: &str| {
        let (name, value) = part.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    types::Metric {
        name,
        labels: parts.filter_map(label).collect(),
        value: *value,
    }
}
