//! What is expected of what the host knows of a request: its country, its network,
//! its handshake, the claims of its token.

use limiter::rule::{
    Attribute, Condition, Expect,
    text::{self, TextError},
};

use super::{at::At, conditions::list, expect, fields::Fields};

/// Reads those fields.
pub(super) fn read(fields: &Fields<'_>) -> Vec<Condition> {
    let one = |attribute: Attribute, what: &str| {
        let at = fields.get(&attribute.to_string())?;
        let values = list(&at, what, |at, value| {
            at.checked(attribute.check(value)).map(|()| value.into())
        })?;
        let expect = Expect::OneOf(values);
        Some(Condition::Attribute { attribute, expect })
    };
    let mut conditions = Vec::new();
    conditions.extend(one(Attribute::Country, "a country, as in DE"));
    conditions.extend(one(
        Attribute::Asn,
        "the number of an autonomous system, as in 64500",
    ));
    conditions.extend(one(Attribute::Ja4, "a JA4 fingerprint"));
    let claims = fields.get("jwt").and_then(|at| claims(&at));
    conditions.extend(claims.into_iter().flatten());
    conditions
}

/// Reads a mapping of claims to what is expected of them.
fn claims(at: &At<'_>) -> Option<Vec<Condition>> {
    let make = |claim, expect| Condition::Attribute {
        attribute: Attribute::Jwt(claim),
        expect,
    };
    let check: fn(&str) -> Result<(), TextError> = text::value;
    expect::each(at, "claim", str::to_owned, check, make)
}
