//! One rule of a web ACL.

use limiter::{
    quota::Algorithm,
    rule::{Action, Attribute, KeyPart, Response, response::STATUS_DEFAULT},
    time::Micros,
};

use super::{field, statement};
use crate::rules::{
    at::At,
    fields::Fields,
    import::{
        build::{WHOLE_ADDRESS, make, quota},
        expr::Expr,
        report::Draft,
        source::{fields, list, number, number_of, text},
    },
};

const RULE: &[&str] = &["Name", "Statement", "Action", "OverrideAction"];
const RULE_HARMLESS: &[&str] = &[
    "Priority",
    "VisibilityConfig",
    "RuleLabels",
    "CaptchaConfig",
    "ChallengeConfig",
];
const LIMIT: &[&str] = &[
    "Limit",
    "EvaluationWindowSec",
    "AggregateKeyType",
    "ScopeDownStatement",
    "ForwardedIPConfig",
    "CustomKeys",
];

/// Of each rate, if the statement does not say.
const WINDOW_SECS: u64 = 300;

/// Reads a rule; what is wrong with its form has been noted.
pub(super) fn read(at: &At<'_>) -> Option<Draft> {
    let mut draft = Draft::new(at, "rule");
    let rule = fields(at, RULE, RULE_HARMLESS, &mut draft)?;
    if let Some(name) = text(&rule, "Name") {
        draft.name = name;
    }
    let statement = rule.need("Statement")?;
    let Some(rate) = statement.peek("RateBasedStatement") else {
        draft.refuse("it limits no rate");
        return Some(draft);
    };
    let limit = fields(&rate, LIMIT, &[], &mut draft)?;
    let requests = number_of(&limit.need("Limit")?)?;
    let window = number(&limit, "EvaluationWindowSec").unwrap_or(WINDOW_SECS);
    let response = response(&rule, &mut draft);
    let action = match action(&rule, &mut draft)? {
        Ok(action) => action,
        Err(why) => {
            draft.refuse(why);
            return Some(draft);
        }
    };
    let read = key(&limit, &mut draft).and_then(|key| Ok((key, scope(&limit, &mut draft)?)));
    match read {
        Ok((key, when)) => {
            let quota = quota(
                &mut draft,
                requests,
                Micros::from_secs(window),
                Algorithm::SlidingWindow,
            );
            make(&mut draft, quota, key, when, |rule| {
                rule.action = action;
                rule.count_denied = true;
                rule.response = response;
            });
        }
        Err(why) => draft.refuse(why),
    }
    Some(draft)
}

/// What the rule does; or why a rule of ours cannot.
fn action(rule: &Fields<'_>, draft: &mut Draft) -> Option<Result<Action, String>> {
    let at = rule.need("Action")?;
    let [entry] = at.entries("one action")? else {
        return at.expected("one action");
    };
    let inner = at.entry(entry);
    if inner.peek("CustomRequestHandling").is_some() {
        draft.drop("Action.CustomRequestHandling: no header is added to requests");
    }
    Some(match &*entry.key {
        "Block" => {
            if inner.peek("CustomResponse").is_none() {
                draft.say("a denied client gets 429, not 403");
            }
            Ok(Action::Deny)
        }
        "Count" => Ok(Action::Shadow),
        test @ ("Captcha" | "Challenge") => {
            draft.approximate(format!("{test}: there is no test to pass here; it denies"));
            Ok(Action::Deny)
        }
        other => Err(format!("Action {other}: nothing that a limit does")),
    })
}

/// What a blocked client is answered, if the rule says so itself.
fn response(rule: &Fields<'_>, draft: &mut Draft) -> Option<Response> {
    let custom = rule.get("Action")?.peek("Block")?.peek("CustomResponse")?;
    let known = ["ResponseCode", "ResponseHeaders"];
    let fields = fields(&custom, &known, &[], draft)?;
    let code = number(&fields, "ResponseCode").and_then(|code| u16::try_from(code).ok());
    let header = |at: &At<'_>| {
        let name = at.peek("Name")?.scalar()?.to_ascii_lowercase();
        Some((name, at.peek("Value")?.scalar()?.to_owned()))
    };
    let response = Response {
        status: code.unwrap_or(STATUS_DEFAULT),
        body: None,
        headers: list(&fields, "ResponseHeaders")
            .iter()
            .filter_map(header)
            .collect(),
    };
    match response.validate() {
        Ok(()) => Some(response),
        Err(why) => {
            draft.drop(format!("Action.Block.CustomResponse: {why}"));
            None
        }
    }
}

fn scope(limit: &Fields<'_>, draft: &mut Draft) -> Result<Expr, String> {
    match limit.get("ScopeDownStatement") {
        Some(at) => statement::read(&at, draft).map_err(|why| format!("ScopeDownStatement: {why}")),
        None => Ok(Expr::True),
    }
}

fn key(limit: &Fields<'_>, draft: &mut Draft) -> Result<Vec<KeyPart>, String> {
    match text(limit, "AggregateKeyType").as_deref() {
        Some("IP") | None => Ok(vec![WHOLE_ADDRESS]),
        Some("CONSTANT") => Ok(Vec::new()),
        Some("FORWARDED_IP") => {
            forwarded(limit, draft);
            Ok(vec![WHOLE_ADDRESS])
        }
        Some("CUSTOM_KEYS") => {
            let keys = list(limit, "CustomKeys");
            keys.iter().map(|at| custom(at, limit, draft)).collect()
        }
        Some(other) => Err(format!("AggregateKeyType {other} is not understood")),
    }
}

fn forwarded(limit: &Fields<'_>, draft: &mut Draft) {
    let config = limit.get("ForwardedIPConfig");
    let header = config.and_then(|config| config.peek("HeaderName")?.scalar().map(str::to_owned));
    draft.approximate(format!(
        "FORWARDED_IP: the client is who trusted_proxies say it is, not who {} claims",
        header.as_deref().unwrap_or("a header")
    ));
}

fn custom(at: &At<'_>, limit: &Fields<'_>, draft: &mut Draft) -> Result<KeyPart, String> {
    let entries = at.entries("one part of a key").unwrap_or_default();
    let [entry] = entries else {
        return Err("CustomKeys: each is one part of a key".into());
    };
    let inner = at.entry(entry);
    match &*entry.key {
        "IP" => Ok(WHOLE_ADDRESS),
        "ForwardedIP" => {
            forwarded(limit, draft);
            Ok(WHOLE_ADDRESS)
        }
        "HTTPMethod" => Ok(KeyPart::Method),
        "Header" => field::named(&inner, field::header, draft),
        "Cookie" => field::named(&inner, KeyPart::Cookie, draft),
        "QueryArgument" => field::named(&inner, KeyPart::Query, draft),
        "UriPath" => {
            field::transformed(&inner, &KeyPart::Path, draft)?;
            Ok(KeyPart::Path)
        }
        "ASN" => Ok(KeyPart::Attribute(Attribute::Asn)),
        "JA4Fingerprint" => field::fingerprint(&inner).map(KeyPart::Attribute),
        other => Err(format!(
            "CustomKeys: {other} is nothing that a rule counts per"
        )),
    }
}
