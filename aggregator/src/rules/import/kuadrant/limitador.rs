//! Limitador's limits: a list, each of a namespace.

use limiter::{quota::Algorithm, time::Micros};

use super::cel::Reader;
use crate::rules::{
    at::At,
    fields::Fields,
    import::{
        build::{make, quota},
        entries::Entries,
        expr::Expr,
        report::Draft,
        run::Read,
        source::{fields, list, number_of, text},
    },
};

const LIMIT: &[&str] = &[
    "namespace",
    "max_value",
    "seconds",
    "conditions",
    "variables",
];
const LIMIT_HARMLESS: &[&str] = &["name", "id"];

pub(super) fn read(at: &At<'_>, entries: &Entries, found: &mut Read) -> Option<()> {
    let mut namespace = None;
    for one in at.items("a list of limits")? {
        let mut draft = Draft::new(&one, "limit");
        let limit = fields(&one, LIMIT, LIMIT_HARMLESS, &mut draft)?;
        draft
            .notes
            .retain(|note| note.fidelity != crate::rules::import::Fidelity::Exact);
        let own = limit.need("namespace")?.text("a namespace")?;
        let first = *namespace.get_or_insert(own);
        first.clone_into(&mut found.domain);
        if own != first {
            draft.approximate(format!(
                "namespace {own}: in one domain with {first}, asked about every request"
            ));
        }
        let names = ["name", "id"]
            .into_iter()
            .find_map(|field| text(&limit, field));
        draft.name = names.unwrap_or_else(|| own.to_owned());
        read_limit(&limit, entries, &mut draft)?;
        found.drafts.push(draft);
    }
    Some(())
}

fn read_limit(limit: &Fields<'_>, entries: &Entries, draft: &mut Draft) -> Option<()> {
    let max = number_of(&limit.need("max_value")?)?;
    let seconds = number_of(&limit.need("seconds")?)?;
    let mut reader = Reader { entries, draft };
    let texts = |name: &str| {
        let items = list(limit, name);
        items
            .iter()
            .filter_map(|at| at.text("an expression"))
            .collect::<Vec<_>>()
    };
    let conditions = texts("conditions")
        .into_iter()
        .map(|text| reader.predicate(text));
    let conditions: Result<Vec<_>, String> = conditions.collect();
    let key = texts("variables").into_iter().map(|text| reader.part(text));
    let key: Result<Vec<_>, String> = key.collect();
    match conditions.and_then(|conditions| Ok((conditions, key?))) {
        Ok((conditions, key)) => {
            let window = Micros::from_secs(seconds.min(u64::MAX / 1_000_000));
            let quota = quota(draft, max, window, Algorithm::FixedWindow);
            make(draft, quota, key, Expr::All(conditions), |_| {});
        }
        Err(why) => draft.refuse(why),
    }
    Some(())
}
