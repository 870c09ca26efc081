//! Rule files, and what is made of them.

use std::sync::Arc;

use aggregator::rules::{Described, RuleFile};
use limiter::key::HashSeed;
use limiter::ruleset::{Explained, RuleSet};
use limiter::wire;

/// The bytes are a rule file.
pub fn run(data: &[u8]) {
    let Ok(file) = RuleFile::parse("fuzz", data) else {
        return;
    };
    let rules = file
        .into_rule_set(1, HashSeed([7; 16]))
        .unwrap_or_else(|error| panic!("a file that was taken makes no rules: {error}"));
    let sent = wire::RuleSet::from(&rules);
    let read = RuleSet::try_from(sent)
        .unwrap_or_else(|error| panic!("rules that are sent cannot be read: {error}"));
    assert_eq!(read, rules, "what is sent is not what arrives");
    resolve(&Arc::new(rules));
}

/// Whatever rules say of a request, they say it alike.
fn resolve(rules: &Arc<RuleSet>) {
    let headers = ["host: api.example.com", "x-api-key: 8fa3", "cookie: a=b; c"];
    let headers = headers.map(str::to_owned);
    let requests = ["GET /", "POST /v1/x//y?q=%zz&q2=a+b", "PUT *"];
    for line in requests {
        let request = Described::new(line, &headers, Some([192, 0, 2, 7].into()));
        let Ok(request) = request else { continue };
        let hits = rules.resolve(&request).hits;
        for place in 0..rules.len() {
            let hit = hits.iter().find(|hit| hit.rule == place);
            let explained = match rules.explain(place, &request) {
                Some(Explained::Applies { key, .. }) => Some(key),
                Some(Explained::Not(_)) | None => None,
            };
            assert_eq!(hit.map(|hit| hit.key), explained, "rule {place}");
        }
    }
}
