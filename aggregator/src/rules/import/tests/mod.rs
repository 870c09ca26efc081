//! What importing promises.
//!
//! `tests/golden/import/FORMAT` holds configurations beside the rules they become
//! (`.rules.yaml`) and what is said of them (`.report.txt`). `WEIR_BLESS=1` writes
//! both anew. A first line `# map: a=header.x` says where an entry comes from.

mod aws_waf;
mod cloudflare;
mod envoy_gateway;
mod envoy_ratelimit;
mod kuadrant;

use std::{
    env, fs,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use limiter::{
    key::HashSeed,
    rule::Rule,
    ruleset::{Explained, RuleSet},
};
use proptest::prelude::*;

use super::{
    run::{Imported, Options, Source, parse},
    *,
};
use crate::rules::{Described, Format, Problems, RuleFile};

fn golden(source: Source) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/import");
    let files = fs::read_dir(folder.join(source.name())).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| is_source(path)).collect();
    files.sort();
    files
}

fn is_source(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    !name.ends_with(".rules.yaml") && !name.ends_with(".report.txt")
}

/// The options that the first lines of a configuration ask for.
fn options(text: &str) -> Options {
    let mut options = Options::default();
    let maps = text.lines().map_while(|line| line.strip_prefix("# map: "));
    maps.for_each(|map| options.entries.add(map.parse().unwrap()));
    options
}

fn import(source: Source, text: &str) -> Result<Imported, Problems> {
    parse("f", text.as_bytes(), source, &options(text))
}

/// The rules that a configuration becomes.
fn file(source: Source, text: &str) -> RuleFile {
    let rules = import(source, text).unwrap().rules.unwrap();
    RuleFile::parse("rules", rules.as_bytes()).unwrap()
}

fn rules(source: Source, text: &str) -> Arc<RuleSet> {
    let file = file(source, text);
    Arc::new(file.into_rule_set(1, HashSeed::default()).unwrap())
}

fn rule(source: Source, text: &str) -> Rule {
    let mut rules = file(source, text).rules;
    assert_eq!(rules.len(), 1, "{rules:?}");
    rules.remove(0)
}

/// What is said of a configuration.
fn report(source: Source, text: &str) -> String {
    import(source, text).unwrap().report
}

fn wrong(source: Source, text: &str) -> String {
    import(source, text).unwrap_err().to_string()
}

fn request(line: &str, headers: &[&str], address: &str) -> Described {
    let headers: Vec<_> = headers.iter().map(ToString::to_string).collect();
    let address: Option<IpAddr> = (!address.is_empty()).then(|| address.parse().unwrap());
    Described::new(line, &headers, address).unwrap()
}

/// The rules that a request meets, each with the values that it counts under.
fn met(rules: &Arc<RuleSet>, request: &Described) -> Vec<String> {
    let hits = rules.resolve(request).hits;
    let one = |place| {
        let Some(Explained::Applies { values, .. }) = rules.explain(place, request) else {
            panic!("a rule that is hit applies");
        };
        let text = |value: Option<Vec<u8>>| match value {
            Some(value) => String::from_utf8(value).unwrap(),
            None => "(missing)".into(),
        };
        let mut said = vec![rules.rule(place).unwrap().name.clone()];
        said.extend(values.into_iter().map(text));
        said.join(" ")
    };
    hits.iter().map(|hit| one(hit.rule)).collect()
}

fn compare(source: Source, path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let imported = parse(name, text.as_bytes(), source, &options(&text));
    let imported = imported.unwrap_or_else(|problems| panic!("{problems}"));
    let beside = [
        ("rules.yaml", imported.rules.unwrap()),
        ("report.txt", imported.report),
    ];
    for (kind, said) in beside {
        let beside = path.with_extension(kind);
        if env::var_os("WEIR_BLESS").is_some() {
            fs::write(&beside, &said).unwrap();
        }
        assert_eq!(said, fs::read_to_string(&beside).unwrap(), "{beside:?}");
    }
}

#[test]
fn configurations_become_the_rules_and_reports_beside_them() {
    for source in Source::ALL {
        let files = golden(source);
        assert!(files.len() >= 6, "{}", source.name());
        files.iter().for_each(|file| compare(source, file));
    }
}

#[test]
fn strict_writes_rules_only_if_every_one_is_exact() {
    let mut exact = 0;
    for path in Source::ALL.into_iter().flat_map(golden) {
        let source = Source::ALL
            .into_iter()
            .find(|source| path.iter().any(|part| part == source.name()));
        let text = fs::read_to_string(&path).unwrap();
        let mut options = options(&text);
        options.strict = true;
        options.format = Format::Json;
        let imported = parse("f", text.as_bytes(), source.unwrap(), &options).unwrap();
        let report: serde_json::Value = serde_json::from_str(&imported.report).unwrap();
        let rules = report["rules"].as_array().unwrap();
        let all = rules.iter().all(|rule| rule["fidelity"] == "exact");
        assert_eq!(report["exact"], all, "{path:?}");
        assert_eq!(imported.rules.is_some(), all, "{path:?}");
        exact += usize::from(all);
    }
    assert!(exact >= 5);
}

#[test]
fn a_field_that_is_not_understood_is_reported_and_never_passed_over() {
    for (source, text, path) in [
        (
            Source::EnvoyRatelimit,
            "domain: d\ndescriptors:\n- key: remote_address\n  colour: red\n  rate_limit: { unit: day, requests_per_unit: 1, speed: 2 }\n",
            [
                "colour is not understood",
                "rate_limit.speed is not understood",
            ],
        ),
        (
            Source::Cloudflare,
            r#"[{"expression": "true", "action": "block", "colour": 1, "ratelimit": {"characteristics": ["cf.colo.id"], "period": 10, "requests_per_period": 5, "speed": 2}}]"#,
            [
                "colour is not understood",
                "ratelimit.speed is not understood",
            ],
        ),
        (
            Source::AwsWaf,
            r#"{"Name": "r", "Colour": 1, "Action": {"Block": {}}, "Statement": {"RateBasedStatement": {"Limit": 100, "AggregateKeyType": "IP", "Speed": 2}}}"#,
            [
                "Colour is not understood",
                "Statement.RateBasedStatement.Speed is not understood",
            ],
        ),
        (
            Source::EnvoyGateway,
            "kind: BackendTrafficPolicy\nspec:\n  targetRef: { kind: Gateway, name: g }\n  rateLimit:\n    global:\n      rules:\n      - limit: { requests: 1, unit: Hour, speed: 2 }\n        shared: true\n        colour: red\n",
            ["colour is not understood", "limit.speed is not understood"],
        ),
        (
            Source::Kuadrant,
            "- { namespace: n, max_value: 1, seconds: 60, colour: red, speed: 2 }\n",
            ["colour is not understood", "speed is not understood"],
        ),
    ] {
        let said = report(source, text);
        for path in path {
            assert!(said.contains(path), "{said}");
        }
        assert!(said.contains("0 exact, 1 approximated"), "{said}");
        let mut strict = options(text);
        strict.strict = true;
        assert_eq!(
            parse("f", text.as_bytes(), source, &strict).unwrap().rules,
            None
        );
    }
}

#[test]
fn what_is_no_configuration_is_refused_with_its_place() {
    for (source, text, said) in [
        (Source::EnvoyRatelimit, "[]", "f:1:1: expected a mapping"),
        (
            Source::EnvoyRatelimit,
            "domain: d\ndescriptors:\n- key: a\n  rate_limit: { unit: fortnight }",
            "f:4:23: descriptors[0].rate_limit.unit: expected second, minute",
        ),
        (Source::Cloudflare, "{}", "f:1:1: expected a ruleset"),
        (
            Source::Cloudflare,
            r#"[{"expression": "true", "action": "blok", "ratelimit": {}}]"#,
            "f:1:35: [0].action: expected block, log",
        ),
        (Source::AwsWaf, "a: 1", "f:1:1: expected a web ACL"),
        (
            Source::EnvoyGateway,
            "kind: Service",
            "f:1:1: expected a BackendTrafficPolicy",
        ),
        (
            Source::Kuadrant,
            "kind: Service",
            "f:1:1: expected a RateLimitPolicy",
        ),
        (
            Source::Kuadrant,
            "- { namespace: n, seconds: 1 }",
            "f:1:3: [0].max_value: missing",
        ),
    ] {
        let wrong = wrong(source, text);
        assert!(wrong.starts_with(said), "{wrong}");
    }
}

proptest! {
    #[test]
    fn no_bytes_at_all_make_an_importer_panic(
        bytes: Vec<u8>,
        file: prop::sample::Index,
        place: prop::sample::Index,
        byte: u8,
    ) {
        for source in Source::ALL {
            let files = golden(source);
            let mut spoiled = fs::read(&files[file.index(files.len())]).unwrap();
            let place = place.index(spoiled.len());
            spoiled[place] = byte;
            for bytes in [&bytes, &spoiled] {
                let _ = parse("f", bytes, source, &Options::default());
            }
        }
    }
}
