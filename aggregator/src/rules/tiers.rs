//! Tiers: who is on which plan, and what a rule says of each.
//!
//! A rule that sets tiers apart is read into several: one for each tier that it
//! names, and one for everybody else. They differ in what must hold besides the
//! match. A tier is the first of the file whose conditions hold; so a rule for one
//! wants that no earlier one's hold, and the rule for everybody else that those of no
//! tier that it names do. Nothing that enforces rules has to know of tiers.

use std::collections::HashSet;

use limiter::{
    quota::{Algorithm, Quota},
    rule::{Condition, KeyPart, NESTING_MAX, Rule, RuleError, text},
    window::Window,
};

use super::{at::At, conditions, suggest, tree::Entry};

pub(super) const FIELDS: &[&str] = &["name", "when"];

/// The most tiers of a file.
pub(super) const TIERS_MAX: usize = 32;

/// How deep the conditions of a tier may nest: that it is not this tier nests them
/// once more, and that it is none of several twice.
const TIER_NESTING_MAX: usize = NESTING_MAX - 2;

/// A tier of the file.
pub(super) struct Tier {
    name: String,
    when: Vec<Condition>,
}

/// A rule for a tier: the tier's place in the file, and the rule without what says so.
pub(super) type ForTier = (usize, Rule);

/// Reads the tiers of a file, noting what is wrong.
pub(super) fn read(at: &At<'_>) -> Option<Vec<Tier>> {
    let what = "a list of tiers, as in [{ name: paid, when: { headers: { x-plan: paid } } }]";
    if !at.node.is_list() {
        return at.expected(what);
    }
    let items = at.items(what)?;
    if items.len() > TIERS_MAX {
        let count = items.len();
        return at.refuse(format_args!("at most {TIERS_MAX} tiers, got {count}"));
    }
    let mut names = HashSet::new();
    let tiers: Vec<_> = items.iter().map(|at| tier(at, &mut names)).collect();
    tiers.into_iter().collect()
}

fn tier<'a>(at: &At<'a>, names: &mut HashSet<&'a str>) -> Option<Tier> {
    let fields = at.fields(FIELDS)?;
    let name = fields.need("name").and_then(|at| {
        let name = at.text("a name")?;
        at.checked(text::token(name))?;
        match names.insert(name) {
            true => Some(name),
            false => at.refuse("another tier has this name already"),
        }
    });
    let when = fields.need("when").and_then(|at| {
        let when = conditions::alternative(&at)?;
        fits(&at, &when)?;
        Some(when)
    });
    Some(Tier {
        name: name?.into(),
        when: when?,
    })
}

/// Checks that rules can have these conditions as those of a tier.
fn fits(at: &At<'_>, when: &[Condition]) -> Option<()> {
    let nested = |list: Vec<Condition>| vec![Condition::None(vec![list])];
    let quota = Quota::new(
        std::num::NonZeroU64::MIN,
        Window::MONTH,
        Algorithm::FixedWindow,
    );
    let rule = Rule {
        when: nested(nested(when.to_vec())),
        // A key that any list of keys could be about.
        key: vec![KeyPart::Path],
        ..Rule::new("tier", quota)
    };
    match rule.validate() {
        Ok(()) => Some(()),
        Err(RuleError::Nesting) => at.refuse(format_args!(
            "the conditions of a tier nest at most {TIER_NESTING_MAX} deep"
        )),
        Err(error) => at.refuse(error),
    }
}

/// The tiers as they are told of a rule's requests: with its lists of keys. What is
/// wrong is noted at this place.
pub(super) fn for_key(at: &At<'_>, tiers: &[Tier], listed: Option<&KeyPart>) -> Option<Vec<Tier>> {
    let tiers = tiers.iter().map(|tier| {
        Some(Tier {
            name: tier.name.clone(),
            when: conditions::for_key(at, &tier.when, listed)?,
        })
    });
    tiers.collect()
}

/// Reads what a rule says of each tier, each by `read`. Without tiers, since something
/// is wrong with them, any name will do, and nothing comes of it.
pub(super) fn overrides(
    at: &At<'_>,
    tiers: Option<&[Tier]>,
    read: impl Fn(&At<'_>, &str) -> Option<Rule>,
) -> Option<Vec<ForTier>> {
    let what = "a mapping of tiers to what is otherwise for them, or to unlimited";
    let entries = at.entries(what)?;
    if entries.is_empty() {
        return at.refuse("no tier is set apart; leave the field out");
    }
    let names = tiers.unwrap_or_default().iter().map(|tier| &*tier.name);
    let names: Vec<&str> = names.collect();
    let one = |entry: &Entry| {
        let place = names.iter().position(|name| *name == entry.key);
        let place = place.or_else(|| tiers.is_none().then_some(0));
        let Some(place) = place else {
            let message = match names.is_empty() {
                true => "unknown tier; the file has no tiers".to_owned(),
                false => suggest::unknown("tier", &entry.key, &names),
            };
            at.notes.add(entry.place, &at.entry(entry).path, message);
            return None;
        };
        Some((place, read(&at.entry(entry), &entry.key)?))
    };
    let rules: Vec<_> = entries.iter().map(one).collect();
    let mut rules: Vec<ForTier> = rules.into_iter().collect::<Option<_>>()?;
    tiers?;
    rules.sort_by_key(|(place, _)| *place);
    Some(rules)
}

/// The rules that a rule with these overrides is: that for everybody else first.
pub(super) fn expand(mut base: Rule, overrides: Vec<ForTier>, tiers: &[Tier]) -> Vec<Rule> {
    let apart: Vec<usize> = overrides.iter().map(|(place, _)| *place).collect();
    let earlier = |place: usize, passed_over: &[usize]| -> Vec<Condition> {
        let before = tiers.iter().enumerate().take(place);
        let before = before.filter(|(place, _)| !passed_over.contains(place));
        let lists: Vec<_> = before.map(|(_, tier)| tier.when.clone()).collect();
        match lists.is_empty() {
            true => Vec::new(),
            false => vec![Condition::None(lists)],
        }
    };
    let when = |place: usize, passed_over: &[usize]| -> Vec<Condition> {
        let own = tiers.get(place).map(|tier| tier.when.clone());
        let mut when = own.unwrap_or_default();
        when.extend(earlier(place, passed_over));
        when
    };
    // Of none of them: whether an earlier one of them holds makes no difference.
    let lists: Vec<_> = apart.iter().map(|&place| when(place, &apart)).collect();
    if !lists.is_empty() {
        base.when = vec![Condition::None(lists)];
    }
    let mut rules = vec![base];
    for (place, mut rule) in overrides {
        rule.tier = tiers.get(place).map(|tier| tier.name.clone());
        rule.when = when(place, &[]);
        rules.push(rule);
    }
    rules
}
