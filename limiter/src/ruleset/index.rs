//! Which rules could match a request at all: a tree that is walked with a request.
//!
//! Rules that ask for one of some values of the same thing (a host, a segment of the
//! path, a header) are told apart by it: one look finds those that ask for the value
//! that the request has, and the others of them are never asked. What is looked at
//! first is what tells most rules apart; then the same is done with the rules of each
//! value, and with the rules that do not ask for it at all. So a request is asked
//! about a few rules, however many there are, as long as they can be told apart.
//!
//! Values are compared by hash, so that a stranger may slip in now and then: rules
//! that are found are still asked in full. A rule that applies to nothing is not in
//! the tree.

use alloc::{boxed::Box, string::String, vec::Vec};

use ahash::RandomState;
use hashbrown::HashMap;

use super::{compiled::Compiled, test::Test};
use crate::{
    request::{Request, parts},
    rule::{Attribute, Expect, HostPattern, PathPattern},
};

/// So many rules are asked one by one.
const FEW: usize = 4;

/// A look costs about as much as asking so many rules.
const SPARED_LEAST: usize = 2;

/// The most values of one condition that rules are told apart by.
const VALUES_MAX: usize = 256;

/// Segments of a path that rules are told apart by.
const SEGMENTS: usize = 4;

/// How often the rules are told apart on one way through the tree.
const DEPTH_MAX: usize = 12;

/// The most entries in the tree for each rule on average, and for all together. A
/// rule stands under each of its values.
const ENTRIES_PER_RULE: usize = 8;
const ENTRIES_LEAST: usize = 1 << 16;

#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    root: Node,
}

#[derive(Clone, Debug, Default)]
struct Node {
    /// Rules that are asked, in order.
    places: Vec<usize>,
    split: Option<Box<Split>>,
}

#[derive(Clone, Debug)]
struct Split {
    aspect: Aspect,
    by_value: HashMap<u64, Node, RandomState>,
    /// Rules that do not ask for it.
    rest: Node,
}

/// What rules are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Aspect {
    Host,
    /// A segment of the path; the first is 0.
    Segment(usize),
    Method,
    Header(String),
    Attribute(Attribute),
    Cookie(String),
    Query(String),
}

impl Index {
    pub(super) fn new(rules: &[Compiled]) -> Self {
        let mut entries = rules
            .len()
            .saturating_mul(ENTRIES_PER_RULE)
            .max(ENTRIES_LEAST);
        let applies = |rule: &Compiled| !rule.tests.iter().any(|test| matches!(test, Test::Never));
        let places = rules.iter().enumerate();
        let places = places.filter(|(_, rule)| applies(rule));
        let places = places.map(|(place, _)| place).collect();
        Self {
            root: Node::new(rules, places, DEPTH_MAX, &mut entries),
        }
    }

    /// Hands out every rule that could match, each once. Says whether they came
    /// in order.
    #[inline]
    pub(super) fn candidates(&self, request: &impl Request, mut take: impl FnMut(usize)) -> bool {
        if self.root.split.is_none() {
            self.root.places.iter().for_each(|&place| take(place));
            return true;
        }
        self.root.visit(request, &mut take);
        false
    }
}

impl Node {
    fn new(rules: &[Compiled], places: Vec<usize>, depth: usize, entries: &mut usize) -> Self {
        let leaf = |places| Self {
            places,
            split: None,
        };
        if places.len() <= FEW || depth == 0 {
            return leaf(places);
        }
        let Some(aspect) = most_telling(rules, &places, *entries) else {
            return leaf(places);
        };
        let mut rest = Vec::new();
        let mut by_value: HashMap<u64, Vec<usize>, RandomState> = HashMap::with_hasher(hashes());
        for place in places {
            match values(rules, place, &aspect) {
                Some(hashes) => {
                    *entries = entries.saturating_sub(hashes.len());
                    for hash in hashes {
                        by_value.entry(hash).or_default().push(place);
                    }
                }
                None => rest.push(place),
            }
        }
        let mut split = Split {
            aspect,
            by_value: HashMap::with_hasher(hashes()),
            rest: Self::new(rules, rest, depth - 1, entries),
        };
        for (hash, places) in by_value {
            let node = Self::new(rules, places, depth - 1, entries);
            split.by_value.insert(hash, node);
        }
        Self {
            places: Vec::new(),
            split: Some(Box::new(split)),
        }
    }

    fn visit<R: Request>(&self, request: &R, take: &mut impl FnMut(usize)) {
        let mut node = self;
        loop {
            node.places.iter().for_each(|&place| take(place));
            let Some(split) = &node.split else { return };
            let hash = split.aspect.hash_in(request);
            if let Some(child) = hash.and_then(|hash| split.by_value.get(&hash)) {
                child.visit(request, take);
            }
            node = &split.rest;
        }
    }
}

impl Aspect {
    /// The hash of a request's value; none if it has none.
    fn hash_in(&self, request: &impl Request) -> Option<u64> {
        Some(match self {
            Self::Host => hash_host(parts::host_only(request.host())),
            Self::Segment(place) => hash(parts::segments(request.path()).nth(*place)?),
            Self::Method => hash(request.method()),
            Self::Header(name) => hash(request.header(name)?),
            Self::Attribute(attribute) => hash(request.attribute(attribute)?),
            Self::Cookie(name) => hash(parts::cookie(request.header("cookie")?, name.as_bytes())?),
            Self::Query(name) => hash_of(parts::query(request.path(), name.as_bytes())?),
        })
    }
}

/// What tells most of these rules apart; none if nothing does, or it would take more
/// entries than are left.
fn most_telling(rules: &[Compiled], places: &[usize], entries: usize) -> Option<Aspect> {
    let mut tally: HashMap<Aspect, Tally, RandomState> = HashMap::with_hasher(hashes());
    for &place in places {
        for (aspect, hashes) in tests(rules, place).flat_map(told_apart) {
            let tally = tally.entry(aspect).or_default();
            if tally.latest != Some(place) {
                tally.latest = Some(place);
                tally.asking += 1;
                tally.values.extend(hashes);
            }
        }
    }
    tally
        .into_iter()
        .filter(|(_, tally)| tally.values.len() <= entries)
        .map(|(aspect, tally)| (tally.spared(), aspect))
        .filter(|(spared, _)| *spared >= SPARED_LEAST)
        .max_by(|(a, first), (b, second)| a.cmp(b).then_with(|| second.cmp(first)))
        .map(|(_, aspect)| aspect)
}

/// Who asks for one thing.
#[derive(Default)]
struct Tally {
    /// The place of the rule that was counted last.
    latest: Option<usize>,
    /// How many rules do.
    asking: usize,
    /// The hashes of all that they ask for.
    values: Vec<u64>,
}

impl Tally {
    /// Rules that are not asked if the request has the value that most ask for.
    fn spared(mut self) -> usize {
        self.values.sort_unstable();
        let runs = self.values.chunk_by(|one, next| one == next);
        let most = runs.map(<[u64]>::len).max().unwrap_or_default();
        self.asking.saturating_sub(most)
    }
}

/// Operators choose what is hashed here.
const fn hashes() -> RandomState {
    RandomState::with_seeds(5, 6, 7, 8)
}

fn tests(rules: &[Compiled], place: usize) -> impl Iterator<Item = &Test> {
    rules.get(place).into_iter().flat_map(|rule| &rule.tests)
}

/// The hashes of the values that a rule asks for; none if it asks for none.
fn values(rules: &[Compiled], place: usize, aspect: &Aspect) -> Option<Vec<u64>> {
    let mut all = tests(rules, place).flat_map(told_apart);
    all.find_map(|(other, hashes)| (other == *aspect).then_some(hashes))
}

/// What a test tells rules apart by, and the hashes of the values it asks for, each
/// once.
fn told_apart(test: &Test) -> Vec<(Aspect, Vec<u64>)> {
    let named = |aspect: fn(String) -> Aspect, name: &str, expect| {
        let hashes = expected(expect)?;
        Some((aspect(name.into()), hashes))
    };
    let one = match test {
        Test::Host(patterns) => hosts(patterns).map(|hashes| (Aspect::Host, hashes)),
        Test::Method(methods) => {
            let hashes = methods.iter().map(|method| hash(method.as_bytes()));
            Some((Aspect::Method, hashes.collect()))
        }
        Test::Header(name, expect) => named(Aspect::Header, name, expect),
        Test::Cookie(name, expect) => named(Aspect::Cookie, name, expect),
        Test::Query(name, expect) => named(Aspect::Query, name, expect),
        Test::Attribute(attribute, expect) => {
            expected(expect).map(|hashes| (Aspect::Attribute(attribute.clone()), hashes))
        }
        Test::Path(patterns) => return segments(patterns),
        Test::Never
        | Test::Address(_)
        | Test::AddressIn(_)
        | Test::KeyIn(..)
        | Test::Any(_)
        | Test::None(_) => None,
    };
    let few = one
        .into_iter()
        .map(|(aspect, hashes)| (aspect, once(hashes)));
    few.filter(|(_, hashes)| hashes.len() <= VALUES_MAX)
        .collect()
}

fn once(mut hashes: Vec<u64>) -> Vec<u64> {
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

fn expected(expect: &Expect) -> Option<Vec<u64>> {
    match expect {
        Expect::OneOf(values) => Some(values.iter().map(|value| hash(value.as_bytes())).collect()),
        Expect::Present | Expect::Absent | Expect::In(_) | Expect::Like(_) => None,
    }
}

/// The hosts of a test, if it names all of them in full.
fn hosts(patterns: &[HostPattern]) -> Option<Vec<u64>> {
    let exact = |pattern: &HostPattern| match pattern {
        HostPattern::Exactly(name) => Some(hash_host(name)),
        HostPattern::Below(_) => None,
    };
    patterns.iter().map(exact).collect()
}

/// The segments that every path has that fits one of these patterns.
fn segments(patterns: &[PathPattern]) -> Vec<(Aspect, Vec<u64>)> {
    let at = |place| {
        let literals = patterns.iter().map(|pattern| pattern.literal(place));
        let hashes: Option<Vec<u64>> = literals.map(|literal| literal.map(hash)).collect();
        let hashes = once(hashes?);
        (hashes.len() <= VALUES_MAX).then_some((Aspect::Segment(place), hashes))
    };
    (0..SEGMENTS).filter_map(at).collect()
}

fn hash(value: &[u8]) -> u64 {
    hash_of(value.iter().copied())
}

fn hash_host(host: &[u8]) -> u64 {
    hash_of(host.iter().map(u8::to_ascii_lowercase))
}

/// FNV-1a, 64 bits (draft-eastlake-fnv). Rules are an operator's, so no secret is
/// needed: a client that makes values collide is asked about a few rules more.
fn hash_of(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
