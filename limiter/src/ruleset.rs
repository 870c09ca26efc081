//! A set of rules that is enforced, replaced and numbered as one.
//!
//! A set is checked whole when it is made, and never changes after: whoever
//! holds one holds rules that can be enforced. What can be worked out once is:
//! the constant part of every counter's name, the order in which conditions are
//! checked, and an index of which rules could match a host and path at all.

use alloc::{string::String, sync::Arc, vec::Vec};
use core::net::IpAddr;

use ahash::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::{
    address::{self, Cidr},
    key::{CounterKey, HashSeed, RuleId},
    list::List,
    request::{Hit, Query, Request},
    rule::Rule,
};

mod compiled;
mod error;
mod explain;
mod index;
mod needs;
mod part;
mod test;
#[cfg(test)]
mod tests;

use compiled::Compiled;
pub use error::RuleSetError;
pub use explain::{Explained, Unmet};
use index::Index;
pub use needs::Needs;
use test::Test;

/// The most rules that a set may hold.
pub const RULES_MAX: usize = 10_000;

/// The most blocks of trusted proxies that a set may hold.
pub const PROXIES_MAX: usize = 1_000;

/// All the rules of a domain at one revision.
#[derive(Clone, Debug)]
pub struct RuleSet {
    /// Grows with every change; zero before any rule was ever set.
    pub revision: u64,
    /// The proxies whose word on the client's address is taken.
    pub trusted_proxies: Vec<Cidr>,
    domain: String,
    seed: HashSeed,
    rules: Vec<Compiled>,
    ids: HashMap<RuleId, usize, RandomState>,
    index: Index,
    sees_responses: bool,
    lists: Vec<Arc<List>>,
}

impl RuleSet {
    /// Checks the rules and puts them together.
    ///
    /// Every rule must be one that can be enforced ([`Rule::validate`]), and
    /// its name the only one of its kind.
    pub fn new(
        domain: impl Into<String>,
        revision: u64,
        trusted_proxies: Vec<Cidr>,
        seed: HashSeed,
        rules: Vec<Rule>,
    ) -> Result<Self, RuleSetError> {
        let domain = domain.into();
        error::check_sizes(&domain, &trusted_proxies, &rules)?;
        let mut rules_compiled: Vec<Compiled> = Vec::with_capacity(rules.len());
        let mut ids = HashMap::with_capacity_and_hasher(rules.len(), hash_state());
        for (place, rule) in rules.into_iter().enumerate() {
            let tests = error::check_rule(place, &rule)?;
            let compiled = Compiled::new(&domain, seed, rule, tests);
            if let Some(other) = ids.insert(compiled.id, place) {
                return Err(error::same_id(other, &rules_compiled, &compiled));
            }
            rules_compiled.push(compiled);
        }
        Ok(Self {
            revision,
            trusted_proxies,
            index: Index::new(&rules_compiled),
            sees_responses: rules_compiled.iter().any(|one| one.rule.sees_responses()),
            lists: error::check_lists(&rules_compiled)?,
            domain,
            seed,
            rules: rules_compiled,
            ids,
        })
    }

    /// No rules at all, as before any was ever set.
    pub fn empty() -> Self {
        Self {
            revision: 0,
            trusted_proxies: Vec::new(),
            domain: String::new(),
            seed: HashSeed::default(),
            rules: Vec::new(),
            ids: HashMap::with_hasher(hash_state()),
            index: Index::default(),
            sees_responses: false,
            lists: Vec::new(),
        }
    }

    /// Whose rules these are.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The secret that counters are named with.
    pub const fn seed(&self) -> HashSeed {
        self.seed
    }

    /// The rules, in their order.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = &Rule> + DoubleEndedIterator {
        self.rules.iter().map(|compiled| &compiled.rule)
    }

    /// The lists that they look at, each once.
    pub fn lists(&self) -> &[Arc<List>] {
        &self.lists
    }

    /// How many rules there are.
    pub const fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether any rule has anything to do with the response to an allowed request.
    pub const fn sees_responses(&self) -> bool {
        self.sees_responses
    }

    /// The rule at this place.
    pub fn rule(&self, index: usize) -> Option<&Rule> {
        self.rules.get(index).map(|compiled| &compiled.rule)
    }

    /// The identity of the rule at this place.
    pub fn id(&self, index: usize) -> Option<RuleId> {
        self.rules.get(index).map(|compiled| compiled.id)
    }

    /// The place of the rule of this name: of several, of that for everybody else.
    pub fn by_name(&self, name: &str) -> Option<usize> {
        let place = *self.ids.get(&compiled::rule_id(&self.domain, name))?;
        let rule = self.rule(place)?;
        (rule.name == name && rule.tier.is_none()).then_some(place)
    }

    /// The tiers that a rule of this name sets apart, in their order, and the place of
    /// the rule for each.
    pub fn tiers_of(&self, name: &str) -> impl Iterator<Item = (&str, usize)> {
        let rules = self.rules().enumerate();
        rules.filter_map(move |(place, rule)| {
            let tier = rule.tier.as_deref().filter(|_| rule.name == name)?;
            Some((tier, place))
        })
    }

    /// The place of the rule of this identity, if all of the rule is
    /// understood: hits of one that is not must not be counted by half of it.
    pub fn by_id(&self, id: RuleId) -> Option<usize> {
        let place = *self.ids.get(&id)?;
        self.rule(place)?.is_supported().then_some(place)
    }

    /// The place of the rule of this name for whoever has the key that these values
    /// name: for the tier that lists of keys alone say it is of, else for everybody
    /// else.
    pub fn for_key(&self, name: &str, values: &[&[u8]]) -> Option<usize> {
        let base = self.by_name(name)?;
        if self.rule(base)?.when.is_empty() {
            return Some(base);
        }
        let is_of = |place: usize| {
            self.rule(place).is_some_and(|rule| {
                let listed = rule.listed_part();
                let mut when = rule.when.iter().map(|one| Test::new(one, listed));
                when.all(|test| test.is_ok_and(|test| test.holds_of_key(values)))
            })
        };
        let mut tiers = self.tiers_of(name).map(|(_, place)| place);
        Some(tiers.find(|place| is_of(*place)).unwrap_or(base))
    }

    /// Which counters a request spends from, and how much: one hit for each
    /// rule that applies, in the order of the rules.
    ///
    /// A rule applies if all its conditions hold and the request has a value
    /// for every part of its key. A request without the header, cookie, query
    /// parameter, path segment or address that a rule counts per is not that
    /// rule's business; one that has it empty is counted under the empty
    /// value. Nor is a request that costs it nothing. Allocates only if more than
    /// four rules apply.
    pub fn resolve(self: &Arc<Self>, request: &impl Request) -> Query {
        let mut hits = SmallVec::new();
        let sorted = self.index.candidates(request, |place| {
            if let Some(compiled) = self.rules.get(place)
                && let Some(key) = compiled.key_for(request)
            {
                let cost = compiled.rule.cost.of_request(request);
                if cost > 0 {
                    hits.push(Hit {
                        rule: place,
                        key,
                        cost,
                    });
                }
            }
        });
        if !sorted {
            hits.sort_unstable_by_key(|hit: &Hit| hit.rule);
        }
        Query {
            rules: Arc::clone(self),
            hits,
        }
    }

    /// The counter of the rule at this place that these values name, given as
    /// text: an address as `192.0.2.7`, anything else as a request would have
    /// it, query parameters decoded. None if the rule is not there or not
    /// understood, if it takes another number of values ([`Rule::arity`]), or
    /// if a value that should be an address is none.
    pub fn key_of(&self, index: usize, values: &[&[u8]]) -> Option<CounterKey> {
        self.rules.get(index)?.key_of(values)
    }

    /// Why the rule at this place applies to a request, or does not; none if there
    /// is no such rule.
    pub fn explain(&self, index: usize, request: &impl Request) -> Option<Explained> {
        Some(explain::explain(self.rules.get(index)?, request))
    }

    /// What of a request these rules ever look at.
    pub fn needs(&self) -> Needs {
        Needs::of(self)
    }

    /// The address of the client, seen past these rules' trusted proxies.
    pub fn client_address(&self, peer: IpAddr, x_forwarded_for: &[u8]) -> IpAddr {
        address::client_address(peer, x_forwarded_for, &self.trusted_proxies)
    }
}

impl Default for RuleSet {
    fn default() -> Self {
        Self::empty()
    }
}

/// Two sets are equal if they say the same at the same revision.
impl PartialEq for RuleSet {
    fn eq(&self, other: &Self) -> bool {
        self.revision == other.revision
            && self.domain == other.domain
            && self.trusted_proxies == other.trusted_proxies
            && self.seed == other.seed
            && self.rules().eq(other.rules())
    }
}

/// Identities are hashes already, of names that an operator chose.
const fn hash_state() -> RandomState {
    RandomState::with_seeds(1, 2, 3, 4)
}
