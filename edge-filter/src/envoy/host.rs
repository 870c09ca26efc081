//! Envoy as the shared logic sees it: the request at hand, metrics, the clock, and
//! who this worker's source is.

use limiter::edge::{Answered, Identity, Settings};
use limiter::rule::Attribute;
use limiter::time::Timestamp;

use super::abi::{self, Map, Metric};
use crate::claims::claim;
use crate::config::Config;
use crate::metrics::{Kind, Sink};
use crate::request::Host;

/// The request at hand, as Envoy knows it.
pub(super) struct Request<'a> {
    /// The settings in force.
    pub(super) config: &'a Config,
}

impl Host for Request<'_> {
    fn headers(&self) -> Vec<u8> {
        abi::map(Map::Request)
    }

    fn header(&self, name: &str) -> Option<Vec<u8>> {
        abi::map_value(Map::Request, name)
    }

    fn peer(&self) -> Option<Vec<u8>> {
        abi::property("source\0address")
    }

    fn attribute(&self, attribute: &Attribute) -> Option<Vec<u8>> {
        let value = self.header(self.config.attributes.header(attribute)?)?;
        match attribute {
            Attribute::Jwt(name) => claim(&value, name),
            Attribute::Country | Attribute::Asn | Attribute::Ja4 => Some(value),
        }
    }

    fn now(&self) -> Timestamp {
        now()
    }
}

/// The response at hand, as Envoy knows it.
pub(super) struct Response;

impl Answered for Response {
    fn status(&self) -> u16 {
        let status = abi::map_value(Map::Response, ":status");
        let status = status.and_then(|text| str::from_utf8(&text).ok()?.parse().ok());
        status.unwrap_or_default()
    }

    fn header(&self, name: &str) -> Option<Vec<u8>> {
        abi::map_value(Map::Response, name)
    }
}

/// Envoy's metrics.
pub(super) struct Metrics;

impl Sink for Metrics {
    fn define(&mut self, kind: Kind, name: &str) -> Option<u32> {
        let kind = match kind {
            Kind::Counter => Metric::Counter,
            Kind::Gauge => Metric::Gauge,
        };
        abi::define_metric(kind, name)
    }

    fn add(&mut self, id: u32, by: i64) {
        abi::increment_metric(id, by);
    }
}

pub(super) fn now() -> Timestamp {
    Timestamp::from_micros(abi::wall_clock_nanos() / 1_000)
}

/// A source that never was before: random, in its first life.
pub(super) fn identity(config: &Config) -> Identity {
    let pop = config.pop.clone().or_else(|| {
        let id = abi::property("xds\0node\0id")?;
        Some(String::from_utf8_lossy(&id).into_owned())
    });
    Identity {
        source: u64::from_le_bytes(abi::random()),
        epoch: now().as_micros(),
        pop: pop.unwrap_or_default(),
    }
}

pub(super) fn settings(config: &Config) -> Settings {
    let seed = || u64::from_le_bytes(abi::random());
    config.settings([seed(), seed(), seed(), seed()])
}
