//! A request as the rules see it, fetched from the host as needed.
//!
//! A host charges for every value: one header alone is cheaper than all of them,
//! and all of them are cheaper than two. So the rules are asked beforehand what
//! they look at, and nothing is fetched that no rule wants.

use core::cell::OnceCell;
use core::net::{IpAddr, SocketAddr};

use limiter::request::Request;
use limiter::rule::Attribute;
use limiter::ruleset::{Needs, RuleSet};
use limiter::time::Timestamp;

use crate::pairs::Pairs;

/// Where the client's address may come from, if the peer is a trusted proxy.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// What a host knows of the request at hand, each at a price.
pub trait Host {
    /// All headers, in the proxy-wasm encoding.
    fn headers(&self) -> Vec<u8>;
    /// One header, by its lower-case name.
    fn header(&self, name: &str) -> Option<Vec<u8>>;
    /// The peer's address with its port, as text.
    fn peer(&self) -> Option<Vec<u8>>;
    /// What it knows of the request that the request does not say; none if it does not.
    fn attribute(&self, attribute: &Attribute) -> Option<Vec<u8>>;
    /// The host's wall clock.
    fn now(&self) -> Timestamp;
}

/// How a request's headers are best fetched under some rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Fetch {
    /// No rule looks at a header.
    #[default]
    Nothing,
    /// They look at this one alone.
    One(String),
    /// They look at several.
    All,
}

impl Fetch {
    /// The best way for rules with these needs.
    #[must_use]
    pub fn best_for(needs: Needs) -> Self {
        let pseudo = [
            (needs.method, ":method"),
            (needs.host, ":authority"),
            (needs.path, ":path"),
            (needs.forwarded_for, FORWARDED_FOR),
        ];
        let mut names = needs.headers;
        names.extend(
            pseudo
                .iter()
                .filter(|(needed, _)| *needed)
                .map(|(_, name)| (*name).to_owned()),
        );
        match (names.pop(), names.is_empty()) {
            (None, _) => Self::Nothing,
            (Some(name), true) => Self::One(name),
            (Some(_), false) => Self::All,
        }
    }
}

/// What is fetched of a request under some rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wants {
    headers: Fetch,
    attributes: Vec<Attribute>,
}

impl Wants {
    /// What these rules ever look at.
    #[must_use]
    pub fn of(rules: &RuleSet) -> Self {
        let needs = rules.needs();
        Self {
            attributes: needs.attributes.clone(),
            headers: Fetch::best_for(needs),
        }
    }
}

/// The request at hand.
#[derive(Debug)]
pub struct HostRequest<'a, H> {
    host: &'a H,
    rules: &'a RuleSet,
    wants: &'a Wants,
    all: OnceCell<Pairs>,
    /// In the order of what is wanted.
    attributes: OnceCell<Vec<Option<Vec<u8>>>>,
    one: OnceCell<Option<Vec<u8>>>,
    address: OnceCell<Option<IpAddr>>,
}

impl<'a, H: Host> HostRequest<'a, H> {
    /// The request that `host` has at hand, under `rules` that want this of it.
    pub const fn new(host: &'a H, rules: &'a RuleSet, wants: &'a Wants) -> Self {
        Self {
            host,
            rules,
            wants,
            all: OnceCell::new(),
            attributes: OnceCell::new(),
            one: OnceCell::new(),
            address: OnceCell::new(),
        }
    }

    fn all(&self) -> &Pairs {
        self.all.get_or_init(|| Pairs::new(self.host.headers()))
    }

    fn value(&self, name: &str) -> Option<&[u8]> {
        match &self.wants.headers {
            Fetch::One(only) if only == name => {
                self.one.get_or_init(|| self.host.header(name)).as_deref()
            }
            _ => self.all().first(name),
        }
    }

    /// The peer, seen past trusted proxies. None for a peer without an address
    /// of the Internet.
    fn client(&self) -> Option<IpAddr> {
        let peer = self.host.peer()?;
        let peer: SocketAddr = str::from_utf8(&peer).ok()?.parse().ok()?;
        if self.rules.trusted_proxies.is_empty() {
            return Some(peer.ip().to_canonical());
        }
        let list = match self.wants.headers {
            Fetch::One(_) => self.value(FORWARDED_FOR).unwrap_or_default().to_vec(),
            _ => self.forwarded_for(),
        };
        Some(self.rules.client_address(peer.ip(), &list))
    }

    /// All such headers as one list: each proxy may have added its own.
    fn forwarded_for(&self) -> Vec<u8> {
        let lists = self
            .all()
            .iter()
            .filter(|(name, _)| *name == FORWARDED_FOR.as_bytes());
        let lists: Vec<&[u8]> = lists.map(|(_, value)| value).collect();
        lists.join(&b","[..])
    }
}

impl<H: Host> Request for HostRequest<'_, H> {
    fn method(&self) -> &[u8] {
        self.value(":method").unwrap_or_default()
    }

    fn host(&self) -> &[u8] {
        self.value(":authority").unwrap_or_default()
    }

    fn path(&self) -> &[u8] {
        self.value(":path").unwrap_or_default()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.value(name)
    }

    fn address(&self) -> Option<IpAddr> {
        *self.address.get_or_init(|| self.client())
    }

    fn attribute(&self, attribute: &Attribute) -> Option<&[u8]> {
        let wanted = &self.wants.attributes;
        let known = self.attributes.get_or_init(|| {
            let of = |attribute| self.host.attribute(attribute);
            wanted.iter().map(of).collect()
        });
        let place = wanted.iter().position(|other| other == attribute)?;
        known.get(place)?.as_deref()
    }
}

#[cfg(test)]
mod tests;
