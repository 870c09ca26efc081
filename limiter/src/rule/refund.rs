//! Statuses of a response for which a request has spent nothing.

use core::fmt;

use super::RuleError;

/// The most of them that a rule may list.
pub const REFUNDS_MAX: usize = 32;

/// A status, or all of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMatch {
    /// This one: 100 to 599.
    One(u16),
    /// All that begin with this digit: 1 to 5.
    Class(u8),
}

impl StatusMatch {
    /// Whether a status is one of these.
    pub fn holds(self, status: u16) -> bool {
        match self {
            Self::One(one) => one == status,
            Self::Class(class) => u16::from(class) == status / 100,
        }
    }

    /// It as a rule file has it: `404` or `5xx`.
    pub fn parse(text: &str) -> Option<Self> {
        let found = match text.strip_suffix("xx") {
            Some(class) => Self::Class(class.parse().ok()?),
            None => Self::One(text.parse().ok()?),
        };
        let canonical = text
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_digit());
        (found.is_valid() && canonical).then_some(found)
    }

    const fn is_valid(self) -> bool {
        match self {
            Self::One(status) => status >= 100 && status <= 599,
            Self::Class(class) => class >= 1 && class <= 5,
        }
    }
}

impl fmt::Display for StatusMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(status) => write!(f, "{status}"),
            Self::Class(class) => write!(f, "{class}xx"),
        }
    }
}

pub(super) fn validate(statuses: &[StatusMatch]) -> Result<(), RuleError> {
    match statuses.iter().find(|status| !status.is_valid()) {
        Some(_) => Err(RuleError::RefundStatus),
        None if statuses.len() > REFUNDS_MAX => Err(RuleError::Refunds(statuses.len())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_class_holds_its_hundred_and_a_status_itself() {
        let class = StatusMatch::parse("5xx").unwrap();
        assert!(class.holds(500) && class.holds(599) && !class.holds(499));
        let one = StatusMatch::parse("404").unwrap();
        assert!(one.holds(404) && !one.holds(403));
        for text in ["5xx", "404"] {
            assert_eq!(StatusMatch::parse(text).unwrap().to_string(), text);
        }
        for wrong in ["", "xx", "6xx", "0xx", "99", "600", "+404", "4x", "5XX"] {
            assert_eq!(StatusMatch::parse(wrong), None, "{wrong}");
        }
    }
}
