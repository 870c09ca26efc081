//! Which rules could match a request at all, by its host and first segment.
//!
//! A rule that names its hosts, or the first segment of all its paths, is filed
//! under them; the rest under "any". A request then looks in at most four
//! drawers instead of trying every rule. A drawer is found by hash, so it may
//! hold a stranger now and then: rules in it are still asked in full. A rule that
//! applies to nothing is in no drawer.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hasher};

use ahash::RandomState;
use hashbrown::HashMap;

use super::{compiled::Compiled, test::Test};
use crate::{
    request::{Request, parts},
    rule::{self, HostPattern, PathPattern},
};

/// The most drawers that one rule is filed in; one that needs more is filed
/// under its hosts alone, or under "any".
const DRAWERS_PER_RULE_MAX: usize = 1_000;

#[derive(Clone, Debug)]
pub(super) struct Index {
    /// Rules that name neither, in order.
    any: Vec<usize>,
    drawers: HashMap<u64, Vec<usize>, RandomState>,
    /// Whether any drawer is labelled by host alone, segment alone, or both.
    by_host: bool,
    by_segment: bool,
    by_both: bool,
}

impl Index {
    pub(super) fn new(rules: &[Compiled]) -> Self {
        let mut index = Self {
            any: Vec::new(),
            drawers: HashMap::with_hasher(RandomState::with_seeds(5, 6, 7, 8)),
            by_host: false,
            by_segment: false,
            by_both: false,
        };
        for (place, rule) in rules.iter().enumerate() {
            if !rule.tests.iter().any(|test| matches!(test, Test::Never)) {
                index.file(place, &rule.tests);
            }
        }
        index
    }

    fn file(&mut self, place: usize, tests: &[Test]) {
        let mut hosts = tests.iter().find_map(exact_hosts).unwrap_or_default();
        let mut segments = tests.iter().find_map(first_segments).unwrap_or_default();
        if hosts.len().max(1).saturating_mul(segments.len().max(1)) > DRAWERS_PER_RULE_MAX {
            segments.clear();
        }
        match (hosts.is_empty(), segments.is_empty()) {
            (true, true) => return self.any.push(place),
            (false, true) => self.by_host = true,
            (true, false) => self.by_segment = true,
            (false, false) => self.by_both = true,
        }
        let some_or_any = |list: &mut Vec<_>| match list.is_empty() {
            true => Vec::from([None]),
            false => list.drain(..).map(Some).collect(),
        };
        let segments = some_or_any(&mut segments);
        for host in some_or_any(&mut hosts) {
            for segment in &segments {
                self.put(label(host, *segment), place);
            }
        }
    }

    fn put(&mut self, label: u64, place: usize) {
        let drawer = self.drawers.entry(label).or_default();
        if drawer.last() != Some(&place) {
            drawer.push(place);
        }
    }

    /// Hands out every rule that could match, each once. Says whether they came
    /// in order.
    #[inline]
    pub(super) fn candidates(&self, request: &impl Request, mut take: impl FnMut(usize)) -> bool {
        self.any.iter().for_each(|&place| take(place));
        if self.drawers.is_empty() {
            return true;
        }
        self.open_drawers(request, take);
        false
    }

    fn open_drawers(&self, request: &impl Request, mut take: impl FnMut(usize)) {
        let with_host = self.by_host || self.by_both;
        let host = with_host.then(|| parts::host_only(request.host()));
        let with_segment = self.by_segment || self.by_both;
        let segment = with_segment.then(|| rule::first_segment(request.path()));
        let segment = segment.flatten();
        let mut open = |host, segment| {
            let drawer = self.drawers.get(&label(host, segment));
            drawer.into_iter().flatten().for_each(|&place| take(place));
        };
        if self.by_host {
            open(host, None);
        }
        if self.by_segment && segment.is_some() {
            open(None, segment);
        }
        if self.by_both && segment.is_some() {
            open(host, segment);
        }
    }
}

/// The label of a drawer. Rules are an operator's, so no secret is needed.
fn label(host: Option<&[u8]>, segment: Option<&[u8]>) -> u64 {
    let mut hasher = RandomState::with_seeds(9, 10, 11, 12).build_hasher();
    for part in [host, segment] {
        match part {
            Some(part) => fold(&mut hasher, part),
            None => hasher.write_usize(usize::MAX),
        }
    }
    hasher.finish()
}

/// Takes in a text without its case: that of a segment is compared later.
fn fold(hasher: &mut impl Hasher, text: &[u8]) {
    hasher.write_usize(text.len());
    for piece in text.chunks(16) {
        let mut folded = [0; 16];
        for (slot, byte) in folded.iter_mut().zip(piece) {
            *slot = byte.to_ascii_lowercase();
        }
        hasher.write_u128(u128::from_ne_bytes(folded));
    }
}

/// The hosts of a test, if it names all of them in full.
fn exact_hosts<'a>(test: &'a Test) -> Option<Vec<&'a [u8]>> {
    let exact = |pattern: &'a HostPattern| match pattern {
        HostPattern::Exactly(name) => Some(&**name),
        HostPattern::Below(_) => None,
    };
    match test {
        Test::Host(patterns) => patterns.iter().map(exact).collect(),
        _ => None,
    }
}

/// The first segments of a test's paths, if all of them have one that is known.
fn first_segments(test: &Test) -> Option<Vec<&[u8]>> {
    match test {
        Test::Path(patterns) => patterns.iter().map(PathPattern::first_segment).collect(),
        _ => None,
    }
}
