//! A `RateLimitPolicy`: named limits, each with rates, counters and predicates.

use limiter::{quota::Algorithm, time::Micros};

use super::cel::Reader;
use crate::rules::{
    at::At,
    fields::Fields,
    import::{
        build::{make, quota},
        entries::Entries,
        envoy_gateway::target,
        expr::Expr,
        report::Draft,
        run::Read,
        source::{fields, list, number_of},
    },
    numbers::digits,
};

const LIMIT: &[&str] = &["rates", "counters", "when"];
const SPEC: &[&str] = &["targetRef", "limits", "defaults", "overrides", "when"];

pub(super) fn read(
    document: &At<'_>,
    routes: &[At<'_>],
    entries: &Entries,
    found: &mut Read,
) -> Option<()> {
    let Some(spec) = document.peek("spec") else {
        return document.expected("a policy with a spec");
    };
    let metadata = document.peek("metadata");
    let name = metadata
        .as_ref()
        .and_then(|at| at.peek("name")?.scalar())
        .unwrap_or("policy");
    let mut common = Draft::new(&spec, name);
    let fields = fields(&spec, SPEC, &[], &mut common)?;
    let target = target(&spec, routes, &mut common).when;
    let mut blocks = vec![spec.clone()];
    blocks.extend(
        ["defaults", "overrides"]
            .iter()
            .filter_map(|name| fields.get(name)),
    );
    if fields.get("defaults").is_some() || fields.get("overrides").is_some() {
        common.approximate(
            "defaults and overrides: what other policies make of them stands elsewhere",
        );
    }
    let mut any = false;
    for block in blocks {
        let Some(limits) = block.peek("limits") else {
            continue;
        };
        for entry in limits.entries("a mapping of limits")? {
            any = true;
            let at = limits.entry(entry);
            let mut draft = Draft::new(&at, format!("{name}/{}", entry.key));
            draft.notes.clone_from(&common.notes);
            let (target, when) = (&target, block.peek("when"));
            let of_all = OfAll {
                target,
                when,
                entries,
            };
            limit(&at, &of_all, draft, found)?;
        }
    }
    if !any {
        common.refuse("it has no limits");
        found.drafts.push(common);
    }
    Some(())
}

/// What a policy asks of all its limits.
struct OfAll<'a> {
    target: &'a Result<Expr, String>,
    when: Option<At<'a>>,
    entries: &'a Entries,
}

fn limit(at: &At<'_>, of_all: &OfAll<'_>, mut draft: Draft, found: &mut Read) -> Option<()> {
    let fields = fields(at, LIMIT, &[], &mut draft)?;
    let read = when(of_all, &fields, &mut draft);
    let rates = list(&fields, "rates");
    if rates.is_empty() {
        draft.refuse("it has no rates");
        found.drafts.push(draft);
        return Some(());
    }
    for rate in &rates {
        let mut draft = draft.clone();
        let (limit, window) = rate_of(rate, &mut draft)?;
        match read.clone() {
            Ok((key, when)) => {
                let quota = quota(&mut draft, limit, window, Algorithm::FixedWindow);
                make(&mut draft, quota, key, when, |_| {});
            }
            Err(why) => draft.refuse(why),
        }
        found.drafts.push(draft);
    }
    Some(())
}

type KeyAndWhen = (Vec<limiter::rule::KeyPart>, Expr);

fn when(of_all: &OfAll<'_>, limit: &Fields<'_>, draft: &mut Draft) -> Result<KeyAndWhen, String> {
    let entries = of_all.entries;
    let mut reader = Reader { entries, draft };
    let mut all = vec![of_all.target.clone()?];
    let mut predicates = list(limit, "when");
    predicates.extend(
        of_all
            .when
            .as_ref()
            .and_then(|at| at.items("a list"))
            .unwrap_or_default(),
    );
    for one in &predicates {
        let predicate = one.peek("predicate").and_then(|at| at.scalar());
        let predicate = predicate.ok_or("when: only predicates are understood")?;
        all.push(reader.predicate(predicate)?);
    }
    let counters = list(limit, "counters");
    let counter = |at: &At<'_>| {
        let expression = at
            .peek("expression")
            .and_then(|at| at.scalar())
            .or_else(|| at.scalar());
        reader.part(expression.ok_or("counters: only expressions are understood")?)
    };
    let key: Result<Vec<_>, String> = counters.iter().map(counter).collect();
    Ok((key?, Expr::All(all)))
}

fn rate_of(at: &At<'_>, draft: &mut Draft) -> Option<(u64, Micros)> {
    let rate = fields(at, &["limit", "window", "duration", "unit"], &[], draft)?;
    let limit = number_of(&rate.need("limit")?)?;
    if let Some(duration) = rate.get("duration") {
        let unit_at = rate.need("unit")?;
        let unit = unit_at.scalar().and_then(crate::rules::import::build::unit);
        let unit = unit.or_else(|| unit_at.expected("second, minute, hour or day"))?;
        let window = unit.get().checked_mul(number_of(&duration)?);
        return Some((limit, Micros::new(window.unwrap_or(u64::MAX))));
    }
    let window = rate.need("window")?;
    let what = "a span of time, as 10s, 5m or 1h30m";
    let read = window.scalar().and_then(span);
    Some((limit, read.or_else(|| window.expected(what))?))
}

/// A span of several units, as `1h30m`.
fn span(text: &str) -> Option<Micros> {
    let mut rest = text;
    let mut sum = 0_u64;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, after) = rest.split_at_checked(end)?;
        let unit_end = after
            .find(|letter: char| letter.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(unit_end)?;
        let unit = match unit {
            "ms" => 1_000,
            "s" => 1_000_000,
            "m" => 60_000_000,
            "h" => 3_600_000_000,
            _ => return None,
        };
        sum = digits(number)?.checked_mul(unit)?.checked_add(sum)?;
        rest = after;
    }
    (sum > 0).then(|| Micros::new(sum))
}
