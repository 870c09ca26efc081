//! What one request spends under a rule: a number, or what a header says.
//!
//! A header is a client's or a service's word, and bounded: what is no whole number
//! from 1 up costs the default, and more than the most costs the most. So nobody
//! rides for free by writing nonsense, unless the rule says that nonsense is free.

use alloc::string::String;

use super::{HITS_MAX, RuleError, text};
use crate::request::Request;

/// What one request spends under a rule, in hits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Always as much.
    Fixed(u64),
    /// What a header of the request says, from 1 to `max`.
    RequestHeader {
        /// The header, in lower case.
        name: String,
        /// The most that a request spends, whatever it says.
        max: u64,
        /// What it spends if the header is not there or holds no such number. With
        /// 0 the rule has no word on such a request.
        default: u64,
    },
    /// `upfront` as the request comes. Once its response is there, what a header
    /// of that says in its place, from 0 to `max`.
    ResponseHeader {
        /// The header, in lower case.
        name: String,
        /// The most that a request spends, whatever its response says.
        max: u64,
        /// What it spends until then, and for good if no response comes.
        upfront: u64,
        /// What it spends if the header is not there or holds no such number.
        default: u64,
    },
}

impl Cost {
    /// The most that one request can spend.
    pub const fn most(&self) -> u64 {
        match self {
            Self::Fixed(cost) => *cost,
            Self::RequestHeader { max, .. } | Self::ResponseHeader { max, .. } => *max,
        }
    }

    /// The most that one request can spend as it comes: what has to fit.
    pub const fn most_upfront(&self) -> u64 {
        match self {
            Self::Fixed(cost) => *cost,
            Self::RequestHeader { max, .. } => *max,
            Self::ResponseHeader { upfront, .. } => *upfront,
        }
    }

    /// What this request spends as it comes.
    pub(crate) fn of_request(&self, request: &impl Request) -> u64 {
        match self {
            Self::Fixed(cost) => *cost,
            Self::RequestHeader { name, max, default } => {
                number(request.header(name)).map_or(*default, |cost| match cost {
                    0 => *default,
                    cost => cost.min(*max),
                })
            }
            Self::ResponseHeader { upfront, .. } => *upfront,
        }
    }

    /// The header of the response that it hangs on.
    pub fn response_header(&self) -> Option<&str> {
        match self {
            Self::ResponseHeader { name, .. } => Some(name),
            Self::Fixed(_) | Self::RequestHeader { .. } => None,
        }
    }

    /// What a request spends in all whose response has this header, or none; none
    /// if the response has no say.
    pub fn of_response(&self, header: Option<&[u8]>) -> Option<u64> {
        match self {
            Self::ResponseHeader { max, default, .. } => {
                Some(number(header).map_or(*default, |cost| cost.min(*max)))
            }
            Self::Fixed(_) | Self::RequestHeader { .. } => None,
        }
    }

    pub(super) fn validate(&self) -> Result<(), RuleError> {
        let hits = |what, min, max, got| match min <= got && got <= max {
            true => Ok(()),
            false => Err(RuleError::Cost {
                what,
                min,
                max,
                got,
            }),
        };
        match self {
            Self::Fixed(cost) => hits("cost", 1, HITS_MAX, *cost),
            Self::RequestHeader { name, max, default } => {
                text::header_name(name).map_err(RuleError::CostHeader)?;
                hits("max", 1, HITS_MAX, *max)?;
                hits("default", 0, *max, *default)
            }
            Self::ResponseHeader {
                name,
                max,
                upfront,
                default,
            } => {
                text::header_name(name).map_err(RuleError::CostHeader)?;
                hits("max", 1, HITS_MAX, *max)?;
                hits("upfront", 1, *max, *upfront)?;
                hits("default", 0, *max, *default)
            }
        }
    }
}

impl Default for Cost {
    fn default() -> Self {
        Self::Fixed(1)
    }
}

impl From<u64> for Cost {
    fn from(cost: u64) -> Self {
        Self::Fixed(cost)
    }
}

/// A whole number in decimal digits, blanks around it aside. One too large to hold
/// is the largest there is.
fn number(value: Option<&[u8]>) -> Option<u64> {
    let digits = value?.trim_ascii();
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    plain.then(|| {
        digits.iter().fold(0_u64, |sum, digit| {
            let digit = u64::from(digit.wrapping_sub(b'0'));
            sum.saturating_mul(10).saturating_add(digit)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_that_says_nothing_useful_costs_the_default_and_too_much_the_most() {
        let cost = Cost::ResponseHeader {
            name: "x-cost".into(),
            max: 100,
            upfront: 2,
            default: 3,
        };
        let of = |value: &[u8]| cost.of_response(Some(value)).unwrap();
        for nonsense in ["", " ", "-1", "+1", "1.5", "0x10", "1 2", "ten", "\u{661}"] {
            assert_eq!(of(nonsense.as_bytes()), 3, "{nonsense:?}");
        }
        assert_eq!(of(b"\xff"), 3);
        assert_eq!(cost.of_response(None), Some(3));
        assert_eq!(
            (of(b"0"), of(b" 7 "), of(b"100"), of(b"101")),
            (0, 7, 100, 100)
        );
        assert_eq!(of(&[b'9'; 4_096]), 100, "more than any number can hold");
        assert_eq!((cost.most(), cost.most_upfront()), (100, 2));
    }

    #[test]
    fn a_cost_that_its_own_most_forbids_is_refused() {
        let header = |max, default| Cost::RequestHeader {
            name: "x-cost".into(),
            max,
            default,
        };
        assert_eq!(header(100, 0).validate(), Ok(()));
        assert!(header(0, 0).validate().is_err());
        assert!(header(100, 101).validate().is_err());
        assert!(header(HITS_MAX + 1, 1).validate().is_err());
        let response = |upfront| Cost::ResponseHeader {
            name: "X-Cost".into(),
            max: 5,
            upfront,
            default: 1,
        };
        assert!(response(1).validate().is_err(), "in lower case");
    }
}
