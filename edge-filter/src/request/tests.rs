//! What the rules get to see of a request, and what is fetched for it.

use core::cell::Cell;
use core::num::NonZeroU64;
use std::sync::Arc;

use limiter::key::HashSeed;
use limiter::quota::{Algorithm, Quota};
use limiter::rule::{KeyPart, Rule};
use limiter::time::Micros;
use limiter::window::Window;

use super::*;
use crate::pairs::encode;

/// A host that counts what it is asked for.
#[derive(Default)]
struct Fake {
    headers: Vec<(&'static str, &'static str)>,
    peer: &'static str,
    whole: Cell<u32>,
    single: Cell<u32>,
    peers: Cell<u32>,
    attributes: Cell<u32>,
}

impl Host for Fake {
    fn headers(&self) -> Vec<u8> {
        self.whole.set(self.whole.get() + 1);
        encode(&self.headers)
    }

    fn header(&self, name: &str) -> Option<Vec<u8>> {
        self.single.set(self.single.get() + 1);
        let (_, value) = self.headers.iter().find(|(n, _)| *n == name)?;
        Some(value.as_bytes().to_vec())
    }

    fn peer(&self) -> Option<Vec<u8>> {
        self.peers.set(self.peers.get() + 1);
        Some(self.peer.as_bytes().to_vec())
    }

    fn attribute(&self, attribute: &Attribute) -> Option<Vec<u8>> {
        self.attributes.set(self.attributes.get() + 1);
        (*attribute == Attribute::Country).then(|| b"NO".to_vec())
    }

    fn now(&self) -> Timestamp {
        Timestamp::default()
    }
}

fn rules(keys: &[&[KeyPart]], trusted: &[&str]) -> Arc<RuleSet> {
    let window = Window::new(Micros::from_secs(60)).expect("a window");
    let quota = Quota::new(NonZeroU64::MIN, window, Algorithm::FixedWindow);
    let rule = |(n, key): (usize, &&[KeyPart])| {
        let mut rule = Rule::new(format!("rule-{n}"), quota);
        rule.key = key.to_vec();
        rule
    };
    let trusted = trusted
        .iter()
        .map(|text| text.parse().expect("a block"))
        .collect();
    let rules = keys.iter().enumerate().map(rule).collect();
    Arc::new(RuleSet::new("test", 1, trusted, HashSeed::default(), rules).expect("valid rules"))
}

fn per_address() -> [KeyPart; 1] {
    [KeyPart::Address {
        v4_bits: 32,
        v6_bits: 64,
    }]
}

fn address(
    peer: &'static str,
    headers: &[(&'static str, &'static str)],
    trusted: &[&str],
) -> Option<String> {
    let rules = rules(&[&per_address(), &[KeyPart::Method]], trusted);
    let host = Fake {
        peer,
        headers: headers.to_vec(),
        ..Fake::default()
    };
    let wants = Wants::of(&rules);
    HostRequest::new(&host, &rules, &wants)
        .address()
        .map(|address| address.to_string())
}

#[test]
fn one_header_is_fetched_alone() {
    let rules = rules(&[&[KeyPart::Header("x-api-key".into())]], &[]);
    let wants = Wants::of(&rules);
    assert_eq!(wants.headers, Fetch::One("x-api-key".into()));
    let host = Fake {
        headers: vec![("x-api-key", "a")],
        ..Fake::default()
    };
    let query = rules.resolve(&HostRequest::new(&host, &rules, &wants));
    assert_eq!(query.hits.len(), 1);
    assert_eq!(
        (host.single.get(), host.whole.get(), host.peers.get()),
        (1, 0, 0)
    );
}

#[test]
fn several_headers_are_fetched_at_once() {
    let rules = rules(
        &[&[KeyPart::Header("x-api-key".into())], &[KeyPart::Path]],
        &[],
    );
    let wants = Wants::of(&rules);
    let host = Fake {
        headers: vec![("x-api-key", "a"), (":path", "/a?b")],
        ..Fake::default()
    };
    let query = rules.resolve(&HostRequest::new(&host, &rules, &wants));
    assert_eq!(query.hits.len(), 2);
    assert_eq!(
        (host.single.get(), host.whole.get(), host.peers.get()),
        (0, 1, 0)
    );
}

#[test]
fn a_rule_per_address_fetches_no_header_and_the_address_once() {
    let rules = rules(&[&per_address(), &per_address()], &[]);
    let wants = Wants::of(&rules);
    assert_eq!(wants.headers, Fetch::Nothing);
    let host = Fake {
        peer: "192.0.2.7:1234",
        ..Fake::default()
    };
    let query = rules.resolve(&HostRequest::new(&host, &rules, &wants));
    assert_eq!(query.hits.len(), 2);
    assert_eq!(
        (host.single.get(), host.whole.get(), host.peers.get()),
        (0, 0, 1)
    );
}

#[test]
fn a_stranger_claims_another_address_in_vain() {
    let spoofed = [("x-forwarded-for", "198.51.100.1")];
    assert_eq!(
        address("192.0.2.7:1234", &spoofed, &["10.0.0.0/8"]).as_deref(),
        Some("192.0.2.7")
    );
    assert_eq!(
        address("192.0.2.7:1234", &spoofed, &[]).as_deref(),
        Some("192.0.2.7")
    );
}

#[test]
fn a_trusted_proxy_is_seen_past_over_several_headers() {
    let lists = [
        ("x-forwarded-for", "198.51.100.1, 192.0.2.7"),
        ("x-forwarded-for", "10.0.0.2"),
    ];
    assert_eq!(
        address("10.0.0.1:1234", &lists, &["10.0.0.0/8"]).as_deref(),
        Some("192.0.2.7")
    );
}

#[test]
fn the_list_is_fetched_alone_when_no_rule_looks_at_anything_else() {
    let rules = rules(&[&per_address()], &["10.0.0.0/8"]);
    let wants = Wants::of(&rules);
    assert_eq!(wants.headers, Fetch::One("x-forwarded-for".into()));
    let host = Fake {
        peer: "10.0.0.1:1",
        headers: vec![("x-forwarded-for", "192.0.2.7")],
        ..Fake::default()
    };
    let request = HostRequest::new(&host, &rules, &wants);
    assert_eq!(
        request.address().map(|a| a.to_string()).as_deref(),
        Some("192.0.2.7")
    );
    assert_eq!((host.single.get(), host.whole.get()), (1, 0));
}

#[test]
fn a_peer_without_an_address_has_none() {
    assert_eq!(address("/tmp/socket", &[], &[]), None);
    assert_eq!(address("", &[], &[]), None);
}

#[test]
fn what_the_host_knows_is_asked_for_once_and_only_if_a_rule_wants_it() {
    let country = KeyPart::Attribute(Attribute::Country);
    let asn = KeyPart::Attribute(Attribute::Asn);
    let country = std::slice::from_ref(&country);
    let rules = rules(&[country, country, &[asn]], &[]);
    let host = Fake::default();
    let wants = Wants::of(&rules);
    let query = rules.resolve(&HostRequest::new(&host, &rules, &wants));
    let hit: Vec<usize> = query.hits.iter().map(|hit| hit.rule).collect();
    assert_eq!(hit, [0, 1], "nobody knows the network");
    assert_eq!(host.attributes.get(), 2, "one of each");
    assert_eq!(host.whole.get() + host.single.get(), 0);
}
