//! What a request spends, when that is given back, and what a client is told of its
//! quota: `cost`, `refund` and `ratelimit_headers`.

use limiter::rule::{Cost, HeaderForm, QuotaHeaders, StatusMatch, TellWhen, text};
use serde::Serialize;

use super::{
    at::At,
    fields::Fields,
    numbers,
    words::{self, Words},
};

pub(super) const REQUEST: &[&str] = &["header", "max", "default"];
pub(super) const RESPONSE: &[&str] = &["response_header", "max", "upfront", "default"];
pub(super) const REFUND: &[&str] = &["status"];
pub(super) const HEADERS: &[&str] = &["form", "when"];

pub(super) const FORM: Words<HeaderForm> = &[
    ("draft", HeaderForm::Draft),
    ("x-ratelimit", HeaderForm::XRateLimit),
    ("both", HeaderForm::Both),
    ("none", HeaderForm::None),
];

pub(super) const WHEN: Words<TellWhen> =
    &[("denied", TellWhen::Denied), ("always", TellWhen::Always)];

/// What a request spends unless its header says otherwise, and before its response
/// does.
const DEFAULT: u64 = 1;

/// Reads a `cost`: a number, or the header that says it.
pub(super) fn read(at: &At<'_>) -> Option<Cost> {
    if !at.node.is_map() {
        return numbers::hits(at, 1).map(Cost::Fixed);
    }
    if at.peek("response_header").is_some() {
        return response(&at.fields(RESPONSE)?);
    }
    let fields = at.fields(REQUEST)?;
    if at.peek("header").is_none() {
        return at.refuse("expected a number, { header, max } or { response_header, max }");
    }
    let name = fields.need("header").and_then(|at| header(&at));
    let max = fields.need("max").and_then(|at| numbers::hits(&at, 1));
    let default = within(&fields, "default", DEFAULT, 0, max?)?;
    Some(Cost::RequestHeader {
        name: name?,
        max: max?,
        default,
    })
}

fn response(fields: &Fields<'_>) -> Option<Cost> {
    let name = fields.need("response_header").and_then(|at| header(&at));
    let max = fields.need("max").and_then(|at| numbers::hits(&at, 1));
    let upfront = within(fields, "upfront", DEFAULT, 1, max?)?;
    let default = within(fields, "default", upfront, 0, max?)?;
    Some(Cost::ResponseHeader {
        name: name?,
        max: max?,
        upfront,
        default,
    })
}

fn header(at: &At<'_>) -> Option<String> {
    let name = at.text("the name of a header")?.to_ascii_lowercase();
    at.checked(text::header_name(&name))?;
    Some(name)
}

/// A number of hits that `max` allows.
fn within(fields: &Fields<'_>, name: &str, default: u64, min: u64, max: u64) -> Option<u64> {
    let Some(at) = fields.get(name) else {
        return Some(default);
    };
    let hits = numbers::hits(&at, min)?;
    match hits <= max {
        true => Some(hits),
        false => at.refuse(format_args!(
            "expected at most {max}, its `max`, got {hits}"
        )),
    }
}

/// Reads a `refund`.
pub(super) fn refund(at: &At<'_>) -> Option<Vec<StatusMatch>> {
    let what = "a status as 404, or a class as 5xx";
    let status = |at: &At<'_>| {
        let status = at.text(what).map(StatusMatch::parse)?;
        status.or_else(|| at.expected(what))
    };
    let statuses = at.fields(REFUND)?.need("status")?;
    let items = statuses.items(what)?;
    if items.is_empty() {
        return statuses.expected(what);
    }
    let read: Vec<_> = items.iter().map(status).collect();
    read.into_iter().collect()
}

/// Reads `ratelimit_headers`: a form, or a form and when.
pub(super) fn headers(at: &At<'_>) -> Option<QuotaHeaders> {
    let plain = QuotaHeaders::default();
    if !at.node.is_map() {
        let form = words::read(at, FORM)?;
        return Some(QuotaHeaders { form, ..plain });
    }
    let fields = at.fields(HEADERS)?;
    Some(QuotaHeaders {
        form: fields.or("form", plain.form, |at| words::read(at, FORM)),
        when: fields.or("when", plain.when, |at| words::read(at, WHEN)),
    })
}

/// A cost as a report has it: a number where it is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum CostSaid {
    /// Hits.
    Hits(u64),
    /// What says how many, in words.
    Words(String),
}

impl CostSaid {
    pub(super) fn of(cost: &Cost) -> Self {
        match cost {
            Cost::Fixed(hits) => Self::Hits(*hits),
            Cost::RequestHeader { name, max, default } => Self::Words(format!(
                "as request header {name} says, at most {max}, else {default}"
            )),
            Cost::ResponseHeader {
                name,
                max,
                upfront,
                default,
            } => Self::Words(format!(
                "{upfront}, then as response header {name} says, at most {max}, else {default}"
            )),
        }
    }
}

/// A cost as a rule file has it.
pub(super) fn written(cost: &Cost) -> String {
    match cost {
        Cost::Fixed(hits) => hits.to_string(),
        Cost::RequestHeader { name, max, default } => {
            format!("{{ header: {name:?}, max: {max}, default: {default} }}")
        }
        Cost::ResponseHeader {
            name,
            max,
            upfront,
            default,
        } => format!(
            "{{ response_header: {name:?}, max: {max}, upfront: {upfront}, default: {default} }}"
        ),
    }
}

/// The statuses of a refund as a rule file has them.
pub(super) fn statuses(refund: &[StatusMatch]) -> Vec<String> {
    refund.iter().map(ToString::to_string).collect()
}

/// A refund as a rule file has it.
pub(super) fn written_refund(refund: &[StatusMatch]) -> String {
    format!("{{ status: [{}] }}", statuses(refund).join(", "))
}

/// Headers as a rule file has them.
pub(super) fn written_headers(headers: QuotaHeaders) -> String {
    let (form, when) = said(headers);
    format!("{{ form: {form}, when: {when} }}")
}

/// Headers in words.
pub(super) fn headers_said(headers: QuotaHeaders) -> String {
    let (form, when) = said(headers);
    match headers.form {
        HeaderForm::None => form.to_owned(),
        _ => format!("{form}, {when}"),
    }
}

fn said(headers: QuotaHeaders) -> (&'static str, &'static str) {
    (
        words::name(FORM, &headers.form),
        words::name(WHEN, &headers.when),
    )
}

/// A cost that no request could ever pay is a slip of the pen.
pub(super) fn fits(at: &At<'_>, cost: &Cost, capacity: u64) -> Option<()> {
    let upfront = cost.most_upfront();
    match upfront <= capacity {
        true => Some(()),
        false => at.refuse(format_args!(
            "expected at most {capacity}, the most the rule ever allows at once, got {upfront}"
        )),
    }
}
