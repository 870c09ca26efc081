//! Rules as they are written into a message.

use alloc::{
    boxed::Box,
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};

use prost::bytes::Bytes;

use super::{codes, features, lists};
use crate::{
    address::Cidr,
    key::HashSeed,
    list::List,
    quota::Algorithm,
    rule::{Condition, Cost, Expect, KeyPart, QuotaHeaders, Response, Rule, StatusMatch, TellWhen},
    ruleset::RuleSet,
    time::Micros,
    wire::{self, AddressPart, HeaderCondition, Values, condition, header_condition, key_part},
};

impl From<&RuleSet> for wire::RuleSet {
    fn from(set: &RuleSet) -> Self {
        Self::for_one_who_has(set, &[])
    }
}

impl wire::RuleSet {
    /// A set for a reader that has lists of these identities.
    pub fn for_one_who_has(set: &RuleSet, lists: &[u64]) -> Self {
        let seed = set.seed();
        let list = |list: &Arc<List>| match lists.contains(&list.id().0) {
            true => lists::kept(list),
            false => (&**list).into(),
        };
        Self {
            revision: set.revision,
            domain: set.domain().into(),
            trusted_proxies: texts(&set.trusted_proxies),
            seed: match seed == HashSeed::default() {
                true => Bytes::new(),
                false => Bytes::copy_from_slice(&seed.0),
            },
            rules: set.rules().map(wire::Rule::from).collect(),
            lists: set.lists().iter().map(list).collect(),
        }
    }
}

impl From<&Rule> for wire::Rule {
    fn from(rule: &Rule) -> Self {
        let quota = &rule.quota;
        Self {
            name: rule.identity().into_owned(),
            tier: rule.tier.clone().unwrap_or_default(),
            conditions: rule.all_conditions().map(Into::into).collect(),
            tier_conditions: u32::try_from(rule.when.len()).unwrap_or(u32::MAX),
            key: rule.key.iter().map(Into::into).collect(),
            limit: match rule.unlimited {
                true => 0,
                false => quota.limit.get(),
            },
            window_us: quota.window.fixed().map_or(0, Micros::get),
            window_months: quota.window.fixed().is_none().into(),
            algorithm: codes::algorithm_code(quota.algorithm),
            burst: match quota.algorithm {
                Algorithm::TokenBucket => quota.capacity(),
                Algorithm::FixedWindow | Algorithm::SlidingWindow => 0,
            },
            cost: match &rule.cost {
                Cost::RequestHeader { default, .. } => (*default).max(1),
                cost => cost.most_upfront(),
            },
            count_denied: rule.count_denied,
            scope: codes::scope_code(rule.scope),
            consistency: codes::consistency_code(rule.consistency),
            local_cap: rule.local_cap,
            tolerance_ppm: rule.tolerance_ppm,
            hold_us: rule.hold.get(),
            no_lease: codes::fallback_code(rule.on_failure.no_lease),
            lease_expired: codes::fallback_code(rule.on_failure.lease_expired),
            action: codes::action_code(rule.action),
            penalty_us: rule.penalty.get(),
            requires: features::of(rule),
            commit: codes::commit_code(rule.commit),
            response: rule.response.as_ref().map(wire::Response::from),
            header_cost: header_cost(&rule.cost),
            refund: rule.refund.iter().map(refund).collect(),
            quota_headers: quota_headers(rule.quota_headers),
        }
    }
}

fn header_cost(cost: &Cost) -> Option<wire::HeaderCost> {
    let (name, response, max, default) = match cost {
        Cost::Fixed(_) => return None,
        Cost::RequestHeader { name, max, default } => (name, false, *max, *default),
        Cost::ResponseHeader {
            name, max, default, ..
        } => (name, true, *max, *default),
    };
    Some(wire::HeaderCost {
        name: name.clone(),
        response,
        max,
        default,
    })
}

fn refund(status: &StatusMatch) -> u32 {
    match status {
        StatusMatch::One(status) => (*status).into(),
        StatusMatch::Class(class) => (*class).into(),
    }
}

/// None for those that a rule has by default.
fn quota_headers(headers: QuotaHeaders) -> Option<wire::QuotaHeaders> {
    (headers != QuotaHeaders::default()).then(|| wire::QuotaHeaders {
        form: codes::header_form_code(headers.form),
        always: headers.when == TellWhen::Always,
    })
}

impl From<&Response> for wire::Response {
    fn from(response: &Response) -> Self {
        let body = response.body.as_ref();
        let header = |(name, value): &(String, String)| wire::Header {
            name: name.clone(),
            value: value.clone(),
        };
        Self {
            status: response.status.into(),
            content_type: body.map_or(String::new(), |body| body.content_type.clone()),
            body: body.map(|body| body.text.clone()),
            headers: response.headers.iter().map(header).collect(),
        }
    }
}

impl From<&Condition> for wire::Condition {
    fn from(condition: &Condition) -> Self {
        use condition::Kind;
        let kind = match condition {
            Condition::Host(hosts) => Some(Kind::Hosts(values(hosts))),
            Condition::Path(paths) => Some(Kind::Paths(values(paths))),
            Condition::Method(methods) => Some(Kind::Methods(values(methods))),
            Condition::Header { name, expect } => Some(Kind::Header(named(name, expect))),
            Condition::Cookie { name, expect } => Some(Kind::Cookie(named(name, expect))),
            Condition::Query { name, expect } => Some(Kind::Query(named(name, expect))),
            Condition::Attribute { attribute, expect } => {
                Some(Kind::Attribute(named(&attribute.to_string(), expect)))
            }
            Condition::KeyIn(list) => Some(Kind::KeyIn(list.id().0)),
            Condition::AddressIn(list) => Some(Kind::AddressIn(list.id().0)),
            Condition::Any(lists) => Some(Kind::Any(alternatives(lists))),
            Condition::None(lists) => Some(Kind::None(alternatives(lists))),
            Condition::Address(blocks) => Some(Kind::Addresses(Values {
                values: texts(blocks),
            })),
            // Whoever reads it does not understand it either.
            Condition::Unsupported => None,
        };
        Self { kind }
    }
}

fn values(values: &[String]) -> Values {
    Values {
        values: values.to_vec(),
    }
}

fn named(name: &str, expect: &Expect) -> HeaderCondition {
    use header_condition::Expect as Sent;
    let expect = Some(match expect {
        Expect::Present => Sent::Present(true),
        Expect::Absent => Sent::Present(false),
        Expect::OneOf(list) => Sent::OneOf(values(list)),
        Expect::Like(list) => Sent::Like(values(list)),
        Expect::In(list) => Sent::InList(list.id().0),
    });
    let name = name.into();
    HeaderCondition { name, expect }
}

fn alternatives(lists: &[Vec<Condition>]) -> wire::Alternatives {
    let list = |list: &Vec<Condition>| wire::Conditions {
        conditions: list.iter().map(Into::into).collect(),
    };
    wire::Alternatives {
        alternatives: lists.iter().map(list).collect(),
    }
}

impl From<&KeyPart> for wire::KeyPart {
    fn from(part: &KeyPart) -> Self {
        use key_part::Kind;
        let kind = match part {
            KeyPart::Address { v4_bits, v6_bits } => Kind::Address(AddressPart {
                v4_bits: (*v4_bits).into(),
                v6_bits: (*v6_bits).into(),
            }),
            KeyPart::Header(name) => Kind::Header(name.clone()),
            KeyPart::Cookie(name) => Kind::Cookie(name.clone()),
            KeyPart::Query(name) => Kind::Query(name.clone()),
            KeyPart::Path => Kind::Path(0),
            KeyPart::PathSegment(segment) => Kind::Path((*segment).into()),
            KeyPart::Method => Kind::Method(true),
            KeyPart::Host => Kind::Host(true),
            KeyPart::Constant(value) => Kind::Constant(value.clone()),
            KeyPart::Attribute(attribute) => Kind::Attribute(attribute.to_string()),
            KeyPart::Optional(part) => Kind::Optional(Box::new((&**part).into())),
        };
        Self { kind: Some(kind) }
    }
}

fn texts(blocks: &[Cidr]) -> Vec<String> {
    blocks.iter().map(ToString::to_string).collect()
}
