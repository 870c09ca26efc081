//! What makes a rule one that can be enforced.

use alloc::{string::String, vec::Vec};

use super::{
    Attribute, AttributeValueError, Condition, Expect, HostPattern, KeyPart, PathPattern,
    REFUNDS_MAX, Rule, refund, response::ResponseError, text, text::TextError,
};
use crate::{list::List, quota::Algorithm, time::Micros, window::Window};

/// The largest limit, burst or cost: a lease carries millionths of a hit.
pub const HITS_MAX: u64 = 1_000_000_000_000;

/// The longest window or penalty: a leap year.
pub const WINDOW_MAX: Micros = Micros::from_secs(366 * 86_400);

/// The longest that a request may be held for the region.
pub const HOLD_MAX: Micros = Micros::from_secs(10);

/// The most that a rule may be over its limit, in millionths of it: all of it.
pub const TOLERANCE_PPM_MAX: u32 = 1_000_000;

/// The most conditions a rule, or one of its alternatives, may have side by side.
pub const CONDITIONS_MAX: usize = 32;

/// The most conditions a rule may have in all, those of alternatives included.
pub const CONDITIONS_ALL_MAX: usize = 1_000;

/// How deep alternatives may nest.
pub const NESTING_MAX: usize = 4;

/// The most values a condition may list.
pub const VALUES_MAX: usize = 1_000;

/// The most parts a key may have.
pub const KEY_PARTS_MAX: usize = 16;

/// Why a rule cannot be enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Its name.
    #[error("name: {0}")]
    Name(TextError),
    /// Its tier, or its name and its tier together.
    #[error("tier: {0}, together with the rule's name")]
    Tier(TextError),
    /// A text in a condition.
    #[error("condition: {0}")]
    Condition(TextError),
    /// A condition with nothing to compare with, or too much.
    #[error("a condition lists 1 to {VALUES_MAX} values, got {0}")]
    Values(usize),
    /// Too many conditions.
    #[error("at most {CONDITIONS_MAX} conditions, got {0}")]
    Conditions(usize),
    /// Too many conditions, those of alternatives included.
    #[error("at most {CONDITIONS_ALL_MAX} conditions in all, got {0}")]
    ConditionsInAll(usize),
    /// A list of keys, and no key.
    #[error("key_in looks up the rule's key, and the rule has none that requests differ in")]
    NoKeyToList,
    /// A list of values where one of blocks should be, or the reverse.
    #[error("addresses are looked up in a list of blocks, anything else in one of values")]
    ListKind,
    /// Alternatives within alternatives, too deep.
    #[error("alternatives nest at most {NESTING_MAX} deep")]
    Nesting,
    /// A part of the key that is optional twice.
    #[error("a part of a key is optional once")]
    OptionalTwice,
    /// A text in the key.
    #[error("key: {0}")]
    Key(TextError),
    /// Too many parts of the key.
    #[error("a key has at most {KEY_PARTS_MAX} parts, got {0}")]
    KeyParts(usize),
    /// More bits than an address has.
    #[error("an IPv4 address has 32 bits, an IPv6 address 128, got {v4} and {v6}")]
    AddressBits {
        /// The bits of an IPv4 address that were to count.
        v4: u8,
        /// The bits of an IPv6 address that were to count.
        v6: u8,
    },
    /// A value that an attribute never has.
    #[error("condition: {0}")]
    Attribute(AttributeValueError),
    /// Segments count from 1.
    #[error("the first segment of a path is 1, got 0")]
    SegmentZero,
    /// A limit, burst or local cap out of range.
    #[error("{what} is at least {min} and at most {HITS_MAX}, got {got}")]
    Hits {
        /// Which of them.
        what: &'static str,
        /// The least allowed.
        min: u64,
        /// What was given.
        got: u64,
    },
    /// A cost, or a number of one, out of range.
    #[error("{what} is at least {min} and at most {max}, got {got}")]
    Cost {
        /// Which of them.
        what: &'static str,
        /// The least allowed.
        min: u64,
        /// The most allowed.
        max: u64,
        /// What was given.
        got: u64,
    },
    /// The header that a cost is read from.
    #[error("cost: {0}")]
    CostHeader(TextError),
    /// A status that no response has.
    #[error("a refund is for statuses from 100 to 599, or classes from 1xx to 5xx")]
    RefundStatus,
    /// Too many statuses.
    #[error("a refund lists at most {REFUNDS_MAX} statuses, got {0}")]
    Refunds(usize),
    /// A span of time that is too long.
    #[error("{what} is at most {max}, got {got}")]
    Span {
        /// Which of them.
        what: &'static str,
        /// The most allowed.
        max: Micros,
        /// What was given.
        got: Micros,
    },
    /// A bucket that refills by the calendar.
    #[error("a token bucket refills evenly, which months do not; say a span, as in 30d")]
    MonthlyBucket,
    /// An answer that no client can be given.
    #[error("response: {0}")]
    Response(ResponseError),
    /// More than all of the limit.
    #[error("tolerance is at most {TOLERANCE_PPM_MAX} millionths of the limit, got {0}")]
    Tolerance(u32),
}

impl Rule {
    /// Checks that it can be enforced. Every rule of a
    /// [`RuleSet`](crate::ruleset::RuleSet) has been checked.
    pub fn validate(&self) -> Result<(), RuleError> {
        text::name(&self.name).map_err(RuleError::Name)?;
        if let Some(tier) = &self.tier {
            text::token(tier).map_err(RuleError::Tier)?;
            text::name(&self.identity()).map_err(RuleError::Tier)?;
        }
        let listed = self.listed_part();
        let count = conditions(&self.conditions, listed, NESTING_MAX)?;
        let count = count.saturating_add(conditions(&self.when, listed, NESTING_MAX)?);
        at_most(count, CONDITIONS_ALL_MAX).map_err(RuleError::ConditionsInAll)?;
        at_most(self.key.len(), KEY_PARTS_MAX).map_err(RuleError::KeyParts)?;
        self.key.iter().try_for_each(key_part)?;
        self.validate_hits()?;
        span("window", self.quota.window.longest(), WINDOW_MAX)?;
        if self.quota.window == Window::MONTH && self.quota.algorithm == Algorithm::TokenBucket {
            return Err(RuleError::MonthlyBucket);
        }
        span("penalty", self.penalty, WINDOW_MAX)?;
        span("hold", self.hold, HOLD_MAX)?;
        if self.tolerance_ppm > TOLERANCE_PPM_MAX {
            return Err(RuleError::Tolerance(self.tolerance_ppm));
        }
        match &self.response {
            Some(response) => response.validate().map_err(RuleError::Response),
            None => Ok(()),
        }
    }

    fn validate_hits(&self) -> Result<(), RuleError> {
        hits("limit", 1, self.quota.limit.get())?;
        hits("burst", 1, self.quota.capacity())?;
        self.cost.validate()?;
        refund::validate(&self.refund)?;
        hits("local_cap", 0, self.local_cap)
    }
}

/// Checks conditions that stand side by side, and says how many there are with
/// those of their alternatives.
fn conditions(
    side_by_side: &[Condition],
    listed: Option<&KeyPart>,
    nesting: usize,
) -> Result<usize, RuleError> {
    at_most(side_by_side.len(), CONDITIONS_MAX).map_err(RuleError::Conditions)?;
    side_by_side.iter().try_fold(0_usize, |sum, one| {
        let inner = match one {
            Condition::Any(lists) | Condition::None(lists) => alternatives(lists, listed, nesting)?,
            Condition::KeyIn(list) => key_in(list, listed).map(|()| 0)?,
            plain => condition(plain).map(|()| 0)?,
        };
        Ok(sum.saturating_add(inner).saturating_add(1))
    })
}

fn alternatives(
    lists: &[Vec<Condition>],
    listed: Option<&KeyPart>,
    nesting: usize,
) -> Result<usize, RuleError> {
    let nesting = nesting.checked_sub(1).ok_or(RuleError::Nesting)?;
    count(lists)?;
    lists.iter().try_fold(0_usize, |sum, list| {
        count(list)?;
        Ok(sum.saturating_add(conditions(list, listed, nesting)?))
    })
}

fn condition(condition: &Condition) -> Result<(), RuleError> {
    match condition {
        Condition::Host(hosts) => each(hosts, |host| HostPattern::new(host).map(drop)),
        Condition::Path(paths) => each(paths, |path| PathPattern::new(path).map(drop)),
        Condition::Method(methods) => each(methods, text::token),
        Condition::Header { name, expect } => {
            text::header_name(name).map_err(RuleError::Condition)?;
            expected(expect)
        }
        Condition::Cookie { name, expect } => {
            text::token(name).map_err(RuleError::Condition)?;
            expected(expect)
        }
        Condition::Query { name, expect } => {
            text::value(name).map_err(RuleError::Condition)?;
            expected(expect)
        }
        Condition::Attribute { attribute, expect } => {
            if let Attribute::Jwt(claim) = attribute {
                text::value(claim).map_err(RuleError::Condition)?;
            }
            if let Expect::OneOf(values) = expect {
                let mut values = values.iter();
                values
                    .try_for_each(|value| attribute.check(value))
                    .map_err(RuleError::Attribute)?;
            }
            expected(expect)
        }
        Condition::Address(blocks) => count(blocks),
        Condition::AddressIn(list) => of_blocks(list, true),
        Condition::KeyIn(_) | Condition::Any(_) | Condition::None(_) | Condition::Unsupported => {
            Ok(())
        }
    }
}

fn expected(expect: &Expect) -> Result<(), RuleError> {
    let check = |value: &str| match value {
        "" => Ok(()),
        value => text::value(value),
    };
    match expect {
        Expect::OneOf(values) | Expect::Like(values) => each(values, check),
        Expect::In(list) => of_blocks(list, false),
        Expect::Present | Expect::Absent => Ok(()),
    }
}

/// A list of keys is one of what the key has.
fn key_in(list: &List, listed: Option<&KeyPart>) -> Result<(), RuleError> {
    let part = listed.ok_or(RuleError::NoKeyToList)?;
    of_blocks(list, matches!(part, KeyPart::Address { .. }))
}

fn of_blocks(list: &List, blocks: bool) -> Result<(), RuleError> {
    match list.is_of_blocks() == blocks {
        true => Ok(()),
        false => Err(RuleError::ListKind),
    }
}

fn each(values: &[String], check: impl Fn(&str) -> Result<(), TextError>) -> Result<(), RuleError> {
    count(values)?;
    let mut values = values.iter();
    values.try_for_each(|value| check(value).map_err(RuleError::Condition))
}

const fn count<T>(values: &[T]) -> Result<(), RuleError> {
    match values.len() {
        1..=VALUES_MAX => Ok(()),
        other => Err(RuleError::Values(other)),
    }
}

fn key_part(part: &KeyPart) -> Result<(), RuleError> {
    match part {
        &KeyPart::Address { v4_bits, v6_bits } if v4_bits > 32 || v6_bits > 128 => {
            Err(RuleError::AddressBits {
                v4: v4_bits,
                v6: v6_bits,
            })
        }
        KeyPart::PathSegment(0) => Err(RuleError::SegmentZero),
        KeyPart::Header(name) => text::header_name(name).map_err(RuleError::Key),
        KeyPart::Cookie(name) => text::token(name).map_err(RuleError::Key),
        KeyPart::Query(value)
        | KeyPart::Constant(value)
        | KeyPart::Attribute(Attribute::Jwt(value)) => text::value(value).map_err(RuleError::Key),
        KeyPart::Optional(inner) if matches!(**inner, KeyPart::Optional(_)) => {
            Err(RuleError::OptionalTwice)
        }
        KeyPart::Optional(inner) => key_part(inner),
        KeyPart::Address { .. }
        | KeyPart::PathSegment(_)
        | KeyPart::Attribute(_)
        | KeyPart::Path
        | KeyPart::Method
        | KeyPart::Host => Ok(()),
    }
}

const fn at_most(count: usize, max: usize) -> Result<(), usize> {
    if count <= max { Ok(()) } else { Err(count) }
}

const fn hits(what: &'static str, min: u64, got: u64) -> Result<(), RuleError> {
    if min <= got && got <= HITS_MAX {
        Ok(())
    } else {
        Err(RuleError::Hits { what, min, got })
    }
}

fn span(what: &'static str, got: Micros, max: Micros) -> Result<(), RuleError> {
    if got <= max {
        Ok(())
    } else {
        Err(RuleError::Span { what, max, got })
    }
}

#[cfg(test)]
mod tests {
    use alloc::{string::ToString, vec};
    use core::num::NonZeroU64;

    use super::*;
    use crate::quota::Quota;

    fn rule() -> Rule {
        let window = Window::new(Micros::from_secs(60)).unwrap();
        let limit = NonZeroU64::new(100).unwrap();
        Rule::new("r", Quota::new(limit, window, Default::default()))
    }

    fn wrong(change: impl Fn(&mut Rule)) -> RuleError {
        let mut rule = rule();
        change(&mut rule);
        rule.validate().unwrap_err()
    }

    #[test]
    fn a_rule_of_defaults_can_be_enforced() {
        assert_eq!(rule().validate(), Ok(()));
    }

    #[test]
    fn a_number_out_of_its_range_is_refused() {
        let hits = |what, min, got| RuleError::Hits { what, min, got };
        let costless = RuleError::Cost {
            what: "cost",
            min: 1,
            max: HITS_MAX,
            got: 0,
        };
        assert_eq!(wrong(|rule| rule.cost = 0.into()), costless);
        let over = HITS_MAX + 1;
        assert_eq!(
            wrong(|rule| rule.local_cap = over),
            hits("local_cap", 0, over)
        );
        assert_eq!(
            wrong(|rule| rule.tolerance_ppm = 1_000_001),
            RuleError::Tolerance(1_000_001)
        );
        assert_eq!(
            wrong(|rule| rule.hold = Micros::from_secs(11)).to_string(),
            "hold is at most 10s, got 11s"
        );
    }

    #[test]
    fn a_bucket_that_would_refill_by_the_calendar_is_refused() {
        let monthly = |rule: &mut Rule, algorithm| {
            rule.quota = Quota::new(rule.quota.limit, Window::MONTH, algorithm);
        };
        let wrong = wrong(|rule| monthly(rule, Algorithm::TokenBucket));
        assert_eq!(wrong, RuleError::MonthlyBucket);
        let mut right = rule();
        monthly(&mut right, Algorithm::SlidingWindow);
        assert_eq!(right.validate(), Ok(()));
    }

    #[test]
    fn a_key_that_no_request_can_have_is_refused() {
        let key = |part: KeyPart| wrong(move |rule| rule.key = vec![part.clone()]);
        assert_eq!(key(KeyPart::PathSegment(0)), RuleError::SegmentZero);
        let (v4_bits, v6_bits) = (33, 64);
        assert_eq!(
            key(KeyPart::Address { v4_bits, v6_bits }),
            RuleError::AddressBits { v4: 33, v6: 64 }
        );
        assert_eq!(
            key(KeyPart::Header("X".into())),
            RuleError::Key(TextError::UpperCase)
        );
    }

    #[test]
    fn a_condition_that_nothing_meets_is_refused() {
        let mut deep = Condition::Method(vec!["GET".into()]);
        for _ in 0..=NESTING_MAX {
            deep = Condition::Any(vec![vec![deep]]);
        }
        assert_eq!(
            wrong(|rule| rule.conditions = vec![deep.clone()]),
            RuleError::Nesting
        );
        let many = Condition::None(vec![vec![Condition::Unsupported]; CONDITIONS_ALL_MAX]);
        assert_eq!(
            wrong(|rule| rule.conditions = vec![many.clone()]),
            RuleError::ConditionsInAll(CONDITIONS_ALL_MAX + 1)
        );
        let none = Condition::Host(vec![]);
        assert_eq!(
            wrong(|rule| rule.conditions = vec![none.clone()]),
            RuleError::Values(0)
        );
    }
}
