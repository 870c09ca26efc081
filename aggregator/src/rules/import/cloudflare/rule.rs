//! One rule of a ruleset.

use limiter::{
    quota::Algorithm,
    rule::{
        Action, Cost, KeyPart, Response, WINDOW_MAX,
        response::{Body, STATUS_DEFAULT},
    },
    time::Micros,
};

use super::{expression, field};
use crate::rules::{
    at::At,
    fields::Fields,
    import::{
        build::{make, quota},
        expr::Expr,
        report::Draft,
        source::{fields, flag, list, number, number_of, text},
    },
};

const RULE: &[&str] = &[
    "description",
    "expression",
    "action",
    "enabled",
    "ref",
    "id",
    "action_parameters",
    "ratelimit",
];
const RULE_HARMLESS: &[&str] = &[
    "version",
    "last_updated",
    "logging",
    "categories",
    "position",
];
const LIMIT: &[&str] = &[
    "characteristics",
    "period",
    "requests_per_period",
    "mitigation_timeout",
    "counting_expression",
    "requests_to_origin",
    "score_per_period",
    "score_response_header_name",
];

/// The highest score that a response can name.
const SCORE_MAX: u64 = 1_000_000;

/// Reads a rule; what is wrong with its form has been noted.
pub(super) fn read(at: &At<'_>) -> Option<Draft> {
    let mut draft = Draft::new(at, "rule");
    let rule = fields(at, RULE, RULE_HARMLESS, &mut draft)?;
    let names = ["description", "ref", "id"].into_iter();
    let mut names = names.filter_map(|field| text(&rule, field).filter(|name| !name.is_empty()));
    if let Some(name) = names.next() {
        draft.name = name;
    }
    if rule.get("enabled").is_some() && !flag(&rule, "enabled") {
        draft.say("not enabled: no rule");
        return Some(draft);
    }
    let Some(limit) = rule.get("ratelimit") else {
        draft.refuse("it limits no rate");
        return Some(draft);
    };
    let limit = fields(&limit, LIMIT, &[], &mut draft)?;
    let when = rule.need("expression")?.text("an expression")?;
    let action = action(&rule, &mut draft)?;
    body(&limit, when, action, &mut draft)?;
    Some(draft)
}

fn body(
    limit: &Fields<'_>,
    when: &str,
    (action, response): (Action, Option<Response>),
    draft: &mut Draft,
) -> Option<()> {
    let (requests, cost) = spent(limit, draft)?;
    limit.need("period")?;
    let period = number(limit, "period")?;
    let timeout = number(limit, "mitigation_timeout").unwrap_or(0);
    let expr = match expression::read(when, draft) {
        Ok(expr) => expr,
        Err(wrong) => {
            draft.refuse(wrong.to_string());
            return Some(());
        }
    };
    if let Err(why) = counting(limit, when, &expr, draft) {
        draft.refuse(why);
        return Some(());
    }
    if flag(limit, "requests_to_origin") {
        draft.approximate(
            "requests_to_origin: what a cache answers is not counted there; here all requests \
             that reach the proxy are",
        );
    }
    let key = match key(limit, draft) {
        Ok(key) => key,
        Err(why) => {
            draft.refuse(why);
            return Some(());
        }
    };
    let penalty = Micros::from_secs(timeout.min(WINDOW_MAX.get()));
    let quota = quota(
        draft,
        requests,
        Micros::from_secs(period),
        Algorithm::SlidingWindow,
    );
    make(draft, quota, key, expr, |rule| {
        rule.action = action;
        rule.cost = cost;
        rule.penalty = penalty;
        rule.response = response;
    });
    Some(())
}

/// What is counted: requests, or the scores that their responses name.
fn spent(limit: &Fields<'_>, draft: &mut Draft) -> Option<(u64, Cost)> {
    let Some(score) = limit.get("score_per_period") else {
        let requests = limit.need("requests_per_period")?;
        return Some((number_of(&requests)?, Cost::default()));
    };
    let name = limit.need("score_response_header_name")?;
    let name = name.text("the name of a header")?.to_ascii_lowercase();
    draft.approximate(
        "score_per_period: a request counts 1 until its response says more, or nothing",
    );
    let cost = Cost::ResponseHeader {
        name,
        max: SCORE_MAX,
        upfront: 1,
        default: 0,
    };
    Some((number_of(&score)?, cost))
}

fn action(rule: &Fields<'_>, draft: &mut Draft) -> Option<(Action, Option<Response>)> {
    let mut answer = None;
    if let Some(parameters) = rule.get("action_parameters") {
        let parameters = fields(&parameters, &["response"], &[], draft)?;
        if let Some(response) = parameters.get("response") {
            answer = Some(response_of(&response, draft)?);
        }
    }
    Some((act(rule, draft)?, answer))
}

fn response_of(at: &At<'_>, draft: &mut Draft) -> Option<Response> {
    let known = ["status_code", "content", "content_type"];
    let fields = fields(at, &known, &[], draft)?;
    let status = number(&fields, "status_code").map(u16::try_from);
    let content_type = text(&fields, "content_type");
    Some(Response {
        // One that no status can be is refused with the rule.
        status: status.map_or(STATUS_DEFAULT, |status| status.unwrap_or(u16::MAX)),
        body: text(&fields, "content").map(|text| Body {
            content_type: content_type.unwrap_or_else(|| "text/plain".into()),
            text,
        }),
        headers: Vec::new(),
    })
}

fn act(rule: &Fields<'_>, draft: &mut Draft) -> Option<Action> {
    let at = rule.need("action")?;
    match at.text("an action")? {
        "block" => Some(Action::Deny),
        "log" => Some(Action::Shadow),
        challenge @ ("challenge" | "js_challenge" | "managed_challenge") => {
            draft.approximate(format!(
                "{challenge}: there is no challenge to pass here; it denies"
            ));
            Some(Action::Deny)
        }
        _ => at.expected("block, log, challenge, js_challenge or managed_challenge"),
    }
}

/// Counting something else than what is matched takes two rules in one.
fn counting(limit: &Fields<'_>, when: &str, expr: &Expr, draft: &Draft) -> Result<(), String> {
    let counted = text(limit, "counting_expression").unwrap_or_default();
    if counted.is_empty() || counted == when {
        return Ok(());
    }
    let mut aside = draft.clone();
    match expression::read(&counted, &mut aside) {
        Ok(counted) if counted == *expr => Ok(()),
        Ok(_) => {
            Err("counting_expression: a rule counts the requests it limits, and no others".into())
        }
        Err(wrong) => Err(format!("counting_expression: {wrong}")),
    }
}

fn key(limit: &Fields<'_>, draft: &mut Draft) -> Result<Vec<KeyPart>, String> {
    let mut key = Vec::new();
    for at in list(limit, "characteristics") {
        let Some(name) = at.text("a characteristic") else {
            continue;
        };
        match name {
            "cf.colo.id" => {}
            "cf.unique_visitor_id" => {
                draft.approximate(
                    "cf.unique_visitor_id: clients behind one address are counted as one",
                );
                key.push(crate::rules::import::build::WHOLE_ADDRESS);
            }
            name => key.push(characteristic(name)?),
        }
    }
    Ok(key)
}

fn characteristic(name: &str) -> Result<KeyPart, String> {
    let part = field::whole(name).map_err(|wrong| {
        format!(
            "characteristic {name:?} cannot be counted per: {}",
            wrong.what
        )
    })?;
    Ok(match part {
        part @ (KeyPart::Header(_) | KeyPart::Cookie(_) | KeyPart::Query(_)) => {
            KeyPart::Optional(Box::new(part))
        }
        part => part,
    })
}
