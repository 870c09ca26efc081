//! Kinds of counts: a rule with a window and an algorithm, in as many bytes as
//! an index.
//!
//! A rule that changes its window or algorithm counts anew under other keys; the
//! old counts go on under their old kind until they are spent.

use alloc::vec::Vec;

use ahash::RandomState;
use hashbrown::HashMap;

use crate::{
    key::RuleId,
    quota::{Algorithm, Quota},
    rule::Scope,
    ruleset::RuleSet,
    window::Window,
};

type Shape = (RuleId, Window, Algorithm);

/// A kind's place in [`Kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KindIndex(pub(super) u32);

/// What the counts of one kind have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kind {
    pub(super) rule: RuleId,
    pub(super) quota: Quota,
}

/// A rule in force.
#[derive(Clone, Copy)]
struct InForce {
    kind: KindIndex,
    place: usize,
    scope: Scope,
}

/// All kinds ever met, and which of them the present rules use.
pub(super) struct Kinds {
    all: Vec<Kind>,
    by_shape: HashMap<Shape, KindIndex, RandomState>,
    by_rule: HashMap<RuleId, InForce, RandomState>,
}

impl Kinds {
    pub(super) fn new(hash: &RandomState) -> Self {
        Self {
            all: Vec::new(),
            by_shape: HashMap::with_hasher(hash.clone()),
            by_rule: HashMap::with_hasher(hash.clone()),
        }
    }

    /// The kind of a rule and quota, met for the first time or again.
    pub(super) fn intern(&mut self, kind: Kind) -> KindIndex {
        let shape = (kind.rule, kind.quota.window, kind.quota.algorithm);
        let next = KindIndex(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        let index = *self.by_shape.entry(shape).or_insert(next);
        match self.get_mut(index) {
            Some(known) => *known = kind,
            None => self.all.push(kind),
        }
        index
    }

    /// Takes in the rules that are now in force.
    pub(super) fn enforce(&mut self, rules: &RuleSet) {
        self.by_rule.clear();
        for (place, rule) in rules.rules().enumerate() {
            if let Some(id) = rules.id(place) {
                let kind = self.intern(Kind {
                    rule: id,
                    quota: rule.quota,
                });
                let scope = rule.scope;
                self.by_rule.insert(id, InForce { kind, place, scope });
            }
        }
    }

    /// The kind that a rule in force counts under, and the rule's place.
    pub(super) fn of_rule(&self, rule: RuleId) -> Option<(KindIndex, usize)> {
        let known = self.by_rule.get(&rule)?;
        Some((known.kind, known.place))
    }

    /// Whether a rule in force holds over all regions.
    pub(super) fn is_global(&self, rule: RuleId) -> bool {
        let known = self.by_rule.get(&rule);
        known.is_some_and(|known| known.scope == Scope::Global)
    }

    /// What a kind's counts have in common.
    pub(super) fn get(&self, index: KindIndex) -> Option<&Kind> {
        self.all.get(index.0 as usize)
    }

    fn get_mut(&mut self, index: KindIndex) -> Option<&mut Kind> {
        self.all.get_mut(index.0 as usize)
    }

    /// All of them, in the order of their indices.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.all.iter()
    }
}
