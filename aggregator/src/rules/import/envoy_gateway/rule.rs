//! One limit of a policy.

use limiter::{
    quota::Algorithm,
    rule::{Action, Scope},
};

use super::{route::Target, selector};
use crate::rules::{
    at::At,
    fields::Fields,
    import::{
        build::{make, note_unit, quota, unit},
        expr::Expr,
        report::Draft,
        source::{fields, flag, list, number},
    },
};

const RULE: &[&str] = &["clientSelectors", "limit", "cost", "shared", "shadowMode"];
const RULE_HARMLESS: &[&str] = &["name", "xRateLimitHeaders"];

/// Reads a limit into its draft; what is wrong with its form has been noted.
pub(super) fn read(at: &At<'_>, local: bool, target: &Target, draft: &mut Draft) -> Option<()> {
    let rule = fields(at, RULE, RULE_HARMLESS, draft)?;
    let limit = rule.need("limit")?;
    let limit = fields(&limit, &["requests", "unit", "fromMetadata"], &[], draft)?;
    if limit.get("fromMetadata").is_some() {
        draft.drop(
            "limit.fromMetadata: a limit stands in the rule; the one given beside it holds for all",
        );
    }
    let unit_at = limit.need("unit")?;
    let length = unit_at.scalar().and_then(unit);
    let expected = || unit_at.expected("Second, Minute, Hour, Day, Week, Month or Year");
    let length = length.or_else(expected)?;
    note_unit(draft, unit_at.scalar().unwrap_or_default());
    limit.need("requests")?;
    let requests = number(&limit, "requests")?;
    let cost = match cost(&rule, draft) {
        Ok(cost) => cost,
        Err(why) => {
            draft.refuse(why);
            return Some(());
        }
    };
    alone(&rule, local, target, draft);
    let mut when = Vec::new();
    let mut key = Vec::new();
    let selectors = list(&rule, "clientSelectors");
    let read = target.when.clone().and_then(|target| {
        when.push(target);
        for selector in &selectors {
            let (holds, parts) = selector::read(selector)?;
            when.push(holds);
            key.extend(parts);
        }
        Ok(())
    });
    if let Err(why) = read {
        draft.refuse(why);
        return Some(());
    }
    let quota = quota(draft, requests, length, Algorithm::FixedWindow);
    let shadow = flag(&rule, "shadowMode");
    make(draft, quota, key, Expr::All(when), |rule| {
        rule.cost = cost.into();
        rule.count_denied = !local;
        if local {
            rule.scope = Scope::Pop;
        }
        if shadow {
            rule.action = Action::Shadow;
        }
    });
    Some(())
}

/// Notes among whom the limit is shared there, where it is not so here.
fn alone(rule: &Fields<'_>, local: bool, target: &Target, draft: &mut Draft) {
    if local {
        draft.approximate(
            "local: a bucket in each Envoy, filled once a unit; here a window in each of its workers",
        );
    } else if !flag(rule, "shared") && !target.one_route {
        draft
            .approximate("not shared: counted for each route there, for all of them together here");
    }
}

/// Hits that a request spends: what it counts as it comes, and once more as its
/// response goes.
fn cost(rule: &Fields<'_>, draft: &mut Draft) -> Result<u64, String> {
    let Some(cost) = rule.get("cost") else {
        return Ok(1);
    };
    let request = match cost.peek("request") {
        Some(at) => part("cost.request", &at, draft)?,
        None => 1,
    };
    let response = match cost.peek("response") {
        Some(at) => part("cost.response", &at, draft)?,
        None => 0,
    };
    if response > 0 {
        draft.approximate(
            "cost.response: counted as the response goes there, as the request comes here",
        );
    }
    match request.saturating_add(response) {
        0 => Err("cost.request.number 0: it counts nothing".into()),
        cost => Ok(cost),
    }
}

fn part(name: &str, at: &At<'_>, draft: &mut Draft) -> Result<u64, String> {
    let inner = fields(at, &["from", "number", "metadata"], &[], draft);
    let Some(inner) = inner else {
        return Ok(1);
    };
    match inner.get("from").and_then(|from| from.scalar()) {
        Some("Number") => Ok(number(&inner, "number").unwrap_or(1)),
        _ => Err(format!(
            "{name}: it stands in metadata of the proxy's own, which no rule reads"
        )),
    }
}
