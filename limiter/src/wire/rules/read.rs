//! Rules as they are read from a message.

use alloc::{boxed::Box, string::String, vec::Vec};
use core::num::NonZeroU64;

use super::{FieldError, Trouble, codes, features, lists::Lists};
use crate::{
    address::Cidr,
    quota::{Algorithm, Quota},
    rule::{
        Condition, Cost, Expect, KeyPart, OnFailure, QuotaHeaders, Response, Rule, StatusMatch,
        TellWhen, response::Body,
    },
    time::Micros,
    window::Window,
    wire::{self, HeaderCondition, Values, condition, header_condition, key_part},
};

pub(super) fn rule(sent: &wire::Rule, lists: &Lists) -> Result<Rule, Trouble> {
    if sent.requires & !features::KNOWN != 0 {
        return Err(Trouble::Unknown);
    }
    let conditions: Result<Vec<_>, _> = sent
        .conditions
        .iter()
        .map(|one| condition(one, lists))
        .collect();
    let mut conditions = conditions?;
    let when = usize::try_from(sent.tier_conditions).unwrap_or(usize::MAX);
    let when = conditions.split_off(conditions.len().saturating_sub(when));
    let (name, tier) = names(sent)?;
    let key: Result<_, _> = sent.key.iter().map(key_part).collect();
    Ok(Rule {
        name,
        tier,
        conditions,
        when,
        unlimited: is_unlimited(sent),
        key: key?,
        scope: codes::scope(sent.scope)?,
        consistency: codes::consistency(sent.consistency)?,
        on_failure: OnFailure {
            no_lease: codes::fallback(sent.no_lease)?,
            lease_expired: codes::fallback(sent.lease_expired)?,
        },
        action: codes::action(sent.action)?,
        quota: quota(sent)?,
        cost: cost(sent),
        refund: refund(&sent.refund)?,
        count_denied: sent.count_denied,
        local_cap: sent.local_cap,
        tolerance_ppm: sent.tolerance_ppm,
        hold: Micros::new(sent.hold_us),
        penalty: Micros::new(sent.penalty_us),
        commit: codes::commit(sent.commit),
        response: sent.response.as_ref().map(response).transpose()?,
        quota_headers: quota_headers(sent),
    })
}

/// What a rule is called, and its tier.
fn names(sent: &wire::Rule) -> Result<(String, Option<String>), FieldError> {
    if sent.tier.is_empty() {
        return Ok((sent.name.clone(), None));
    }
    let name = sent.name.strip_suffix(&*sent.tier);
    let name = name.and_then(|name| name.strip_suffix('@'));
    let name = name.ok_or_else(|| FieldError::Tier(sent.tier.clone()))?;
    Ok((name.into(), Some(sent.tier.clone())))
}

const fn is_unlimited(sent: &wire::Rule) -> bool {
    sent.limit == 0 && sent.requires & features::UNLIMITED != 0
}

fn cost(sent: &wire::Rule) -> Cost {
    let Some(header) = &sent.header_cost else {
        return Cost::Fixed(sent.cost);
    };
    let (name, max, default) = (header.name.clone(), header.max, header.default);
    match header.response {
        false => Cost::RequestHeader { name, max, default },
        true => Cost::ResponseHeader {
            name,
            max,
            upfront: sent.cost,
            default,
        },
    }
}

fn refund(sent: &[u32]) -> Result<Vec<StatusMatch>, FieldError> {
    let status = |code: &u32| match code {
        0..=9 => narrow("refund", *code).map(StatusMatch::Class),
        code => narrow("refund", *code).map(StatusMatch::One),
    };
    sent.iter().map(status).collect()
}

fn quota_headers(sent: &wire::Rule) -> QuotaHeaders {
    let sent = sent.quota_headers.unwrap_or_default();
    QuotaHeaders {
        form: codes::header_form(sent.form),
        when: match sent.always {
            true => TellWhen::Always,
            false => TellWhen::Denied,
        },
    }
}

fn response(sent: &wire::Response) -> Result<Response, Trouble> {
    let headers = sent.headers.iter();
    let headers = headers.map(|header| (header.name.clone(), header.value.clone()));
    Ok(Response {
        status: narrow("status", sent.status)?,
        body: sent.body.clone().map(|text| Body {
            content_type: sent.content_type.clone(),
            text,
        }),
        headers: headers.collect(),
    })
}

fn quota(sent: &wire::Rule) -> Result<Quota, Trouble> {
    let algorithm = codes::algorithm(sent.algorithm)?;
    let limit = match NonZeroU64::new(sent.limit) {
        Some(limit) => limit,
        None if is_unlimited(sent) => NonZeroU64::MIN,
        None => return Err(FieldError::Zero("limit").into()),
    };
    let window = match sent.window_months {
        0 => Window::new(Micros::new(sent.window_us)).ok_or(FieldError::Zero("window_us"))?,
        1 => Window::MONTH,
        _ => return Err(Trouble::Unknown),
    };
    let quota = Quota::new(limit, window, algorithm);
    Ok(match (algorithm, NonZeroU64::new(sent.burst)) {
        (Algorithm::TokenBucket, Some(burst)) => quota.with_burst(burst),
        _ => quota,
    })
}

fn condition(sent: &wire::Condition, lists: &Lists) -> Result<Condition, Trouble> {
    use condition::Kind;
    let texts = |values: &Values| values.values.clone();
    Ok(match sent.kind.as_ref().ok_or(Trouble::Unknown)? {
        Kind::Hosts(values) => Condition::Host(texts(values)),
        Kind::Paths(values) => Condition::Path(texts(values)),
        Kind::Methods(values) => Condition::Method(texts(values)),
        Kind::Header(header) => {
            let (name, expect) = named(header, lists)?;
            Condition::Header { name, expect }
        }
        Kind::Addresses(values) => Condition::Address(blocks(values)?),
        Kind::Cookie(cookie) => {
            let (name, expect) = named(cookie, lists)?;
            Condition::Cookie { name, expect }
        }
        Kind::Query(query) => {
            let (name, expect) = named(query, lists)?;
            Condition::Query { name, expect }
        }
        Kind::Attribute(attribute) => {
            let (name, expect) = named(attribute, lists)?;
            let attribute = name.parse().map_err(|_| Trouble::Unknown)?;
            Condition::Attribute { attribute, expect }
        }
        Kind::KeyIn(list) => Condition::KeyIn(lists.get(*list)?),
        Kind::AddressIn(list) => Condition::AddressIn(lists.get(*list)?),
        Kind::Any(any) => Condition::Any(alternatives(any, lists)?),
        Kind::None(none) => Condition::None(alternatives(none, lists)?),
    })
}

fn blocks(values: &Values) -> Result<Vec<Cidr>, FieldError> {
    let block = |text: &String| text.parse().map_err(|_| FieldError::Address(text.clone()));
    values.values.iter().map(block).collect()
}

/// What is not understood anywhere within makes the whole rule so: an
/// alternative that is left out could widen it.
fn alternatives(sent: &wire::Alternatives, lists: &Lists) -> Result<Vec<Vec<Condition>>, Trouble> {
    let condition = |one: &wire::Condition| condition(one, lists);
    let list = |list: &wire::Conditions| list.conditions.iter().map(condition).collect();
    sent.alternatives.iter().map(list).collect()
}

fn named(sent: &HeaderCondition, lists: &Lists) -> Result<(String, Expect), Trouble> {
    use header_condition::Expect as Sent;
    let expect = match sent.expect.as_ref().ok_or(Trouble::Unknown)? {
        Sent::Present(true) => Expect::Present,
        Sent::Present(false) => Expect::Absent,
        Sent::OneOf(values) => Expect::OneOf(values.values.clone()),
        Sent::Like(values) => Expect::Like(values.values.clone()),
        Sent::InList(list) => Expect::In(lists.get(*list)?),
    };
    Ok((sent.name.clone(), expect))
}

fn key_part(sent: &wire::KeyPart) -> Result<KeyPart, Trouble> {
    use key_part::Kind;
    Ok(match sent.kind.as_ref().ok_or(Trouble::Unknown)? {
        Kind::Address(bits) => KeyPart::Address {
            v4_bits: narrow("v4_bits", bits.v4_bits)?,
            v6_bits: narrow("v6_bits", bits.v6_bits)?,
        },
        Kind::Header(name) => KeyPart::Header(name.clone()),
        Kind::Cookie(name) => KeyPart::Cookie(name.clone()),
        Kind::Query(name) => KeyPart::Query(name.clone()),
        Kind::Path(0) => KeyPart::Path,
        Kind::Path(segment) => KeyPart::PathSegment(narrow("path", *segment)?),
        Kind::Method(true) => KeyPart::Method,
        Kind::Host(true) => KeyPart::Host,
        Kind::Method(false) | Kind::Host(false) => return Err(Trouble::Unknown),
        Kind::Constant(value) => KeyPart::Constant(value.clone()),
        Kind::Attribute(name) => KeyPart::Attribute(name.parse().map_err(|_| Trouble::Unknown)?),
        Kind::Optional(part) => KeyPart::Optional(Box::new(key_part(part)?)),
    })
}

fn narrow<T: TryFrom<u32>>(field: &'static str, got: u32) -> Result<T, FieldError> {
    T::try_from(got).map_err(|_| FieldError::Range { field, got })
}
