//! Why a rule applies to a request, or does not.

use alloc::{string::String, vec::Vec};

use super::{compiled::Compiled, part, test::Test};
use crate::{
    address,
    key::CounterKey,
    request::{Request, parts},
    rule::{Condition, KeyPart},
};

/// What a rule makes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Explained {
    /// It applies.
    Applies {
        /// The counter.
        key: CounterKey,
        /// Hits it spends as it comes.
        cost: u64,
        /// The value of each part of the key, as it is counted under; none for an
        /// optional part that the request has no value for.
        values: Vec<Option<Vec<u8>>>,
    },
    /// It does not.
    Not(Unmet),
}

/// The first thing that keeps a rule from applying, in the order it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmet {
    /// A condition does not hold.
    Condition(Condition),
    /// A condition that says whether it is of the rule's tier does not hold.
    Tier(Condition),
    /// Nothing limits those that the rule is for: else it would apply.
    Unlimited,
    /// The request has no value for this part of the key.
    Key(KeyPart),
    /// The request costs nothing.
    Cost,
}

pub(super) fn explain(rule: &Compiled, request: &impl Request) -> Explained {
    let listed = rule.rule.listed_part();
    let fails = |condition: &&Condition| !holds(condition, listed, request);
    if let Some(unmet) = rule.rule.conditions.iter().find(fails) {
        return Explained::Not(Unmet::Condition(unmet.clone()));
    }
    if let Some(unmet) = rule.rule.when.iter().find(fails) {
        return Explained::Not(Unmet::Tier(unmet.clone()));
    }
    let lacking =
        |part: &&KeyPart| value(part, request).is_none() && !matches!(part, KeyPart::Optional(_));
    if let Some(unmet) = rule.rule.key.iter().find(lacking) {
        return Explained::Not(Unmet::Key(unmet.clone()));
    }
    if rule.rule.unlimited {
        return Explained::Not(Unmet::Unlimited);
    }
    let cost = rule.rule.cost.of_request(request);
    if cost == 0 {
        return Explained::Not(Unmet::Cost);
    }
    let values = rule.rule.key.iter().map(|part| value(part, request));
    let mut hasher = rule.common();
    for part in &rule.rule.key {
        // None lacks a value: that was seen to above.
        part::take(&mut hasher, part, request).unwrap_or_default();
    }
    Explained::Applies {
        key: hasher.finish(),
        cost,
        values: values.collect(),
    }
}

/// Whether a condition holds. One that cannot be read never does.
fn holds(condition: &Condition, listed: Option<&KeyPart>, request: &impl Request) -> bool {
    Test::new(condition, listed).is_ok_and(|test| test.holds(request))
}

/// The value of a part of a key, as it is counted under.
fn value(part: &KeyPart, request: &impl Request) -> Option<Vec<u8>> {
    Some(match part {
        KeyPart::Address { v4_bits, v6_bits } => {
            let address = address::prefix(request.address()?, *v4_bits, *v6_bits);
            text(address)
        }
        KeyPart::Header(name) => request.header(name)?.into(),
        KeyPart::Cookie(name) => parts::cookie(request.header("cookie")?, name.as_bytes())?.into(),
        KeyPart::Query(name) => parts::query(request.path(), name.as_bytes())?.collect(),
        KeyPart::Path => parts::path_only(request.path()).into(),
        KeyPart::PathSegment(place) => {
            let place = usize::from(*place).checked_sub(1)?;
            parts::segments(request.path()).nth(place)?.into()
        }
        KeyPart::Method => request.method().into(),
        KeyPart::Host => parts::host_only(request.host()).to_ascii_lowercase(),
        KeyPart::Attribute(attribute) => request.attribute(attribute)?.into(),
        KeyPart::Constant(value) => value.clone().into_bytes(),
        KeyPart::Optional(part) => value(part, request)?,
    })
}

fn text(address: core::net::IpAddr) -> Vec<u8> {
    use core::fmt::Write;
    let mut text = String::new();
    let _ = write!(text, "{address}");
    text.into_bytes()
}
