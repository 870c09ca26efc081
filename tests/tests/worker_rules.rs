//! Rules of a Worker: compiled from a file, and changed while requests come, by the
//! aggregator or an operator. A change needs no deployment.

use std::fs;
use std::process::Command;
use std::time::Duration;

use weir_tests::binaries;

use weir_tests::region::Region;
use weir_tests::rules::per_header;
use weir_tests::upstream::Upstream;
use weir_tests::wait::{wait_until, wait_within};
use weir_tests::workerd::{Setup, Workerd, compiled};

/// A window that no test sees the end of, in seconds.
const LONG: u64 = 24 * 3_600;

/// How long it may take until rules are in force.
const WITHIN: Duration = Duration::from_secs(2);

/// Asks until a key that has spent four hits is denied.
fn denied_soon(workerd: &Workerd, key: &str) -> bool {
    let denied = || (workerd.get("/", &[("x-api-key", key)]).status == 429).then_some(());
    wait_within(WITHIN, denied).is_some()
}

#[test]
fn rules_come_from_the_aggregator_and_change_with_it_within_two_seconds() {
    let region = Region::start(vec![per_header("per-key", "x-api-key", 100_000, LONG)]);
    let origin = Upstream::start();
    // None are bundled.
    let setup = Setup::new(b"", origin.address())
        .aggregator(region.address())
        .variable("WEIR_TOKEN", "weir_secret");
    let workerd = Workerd::start(setup);
    wait_until("the isolate runs the rules", || {
        workerd.get("/", &[("x-api-key", "one")]).status == 200 && region.hits() >= 4
    });
    let bearer = ("authorization".to_owned(), "Bearer weir_secret".to_owned());
    let calls = region.calls();
    assert!(calls.iter().all(|(call, _)| call.headers.contains(&bearer)));
    region.set_rules(vec![per_header("per-key", "x-api-key", 4, LONG)]);
    assert!(
        denied_soon(&workerd, "one"),
        "not in force within {WITHIN:?}"
    );
}

#[test]
fn rules_that_an_operator_puts_are_everywhere_within_two_seconds_and_outlive_a_restart() {
    let origin = Upstream::start();
    let rules = |revision, limit| {
        compiled(
            revision,
            vec![per_header("per-key", "x-api-key", limit, LONG)],
        )
    };
    let setup = Setup::new(&rules(1, 100_000), origin.address());
    let mut workerd = Workerd::start(setup);
    for _ in 0..4 {
        assert_eq!(workerd.get("/", &[("x-api-key", "one")]).status, 200);
    }
    wait_until("they are in the books", || workerd.books("hits") == Some(4));
    let put = workerd.put_rules(&rules(2, 4));
    assert_eq!(put.status, 200, "{}", put.text());
    assert!(
        denied_soon(&workerd, "one"),
        "not in force within {WITHIN:?}"
    );
    let refused = workerd.put_rules(b"rules: []");
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(
        refused.text().contains("weir rules compile"),
        "{}",
        refused.text()
    );
    workerd.restart();
    // The isolate starts with the rules it was deployed with, and the objects know
    // better.
    assert!(denied_soon(&workerd, "one"), "forgotten at the restart");
    assert_eq!(workerd.books("revision"), Some(2 * 4));
}

#[test]
fn objects_learn_rules_of_a_new_deployment_from_the_first_isolate_that_has_them() {
    let origin = Upstream::start();
    let rules = compiled(7, vec![per_header("per-key", "x-api-key", 2, LONG)]);
    let old = compiled(3, vec![per_header("per-key", "x-api-key", 100, LONG)]);
    let setup = Setup::new(&rules, origin.address()).object_rules(&old);
    let workerd = Workerd::start(setup);
    assert_eq!(workerd.books("revision"), Some(3 * 4));
    let told: Vec<u16> = (0..3)
        .map(|_| workerd.get("/", &[("x-api-key", "one")]).status)
        .collect();
    assert_eq!(told, [200, 200, 429]);
    wait_until("an object has them", || {
        workerd
            .books("revision")
            .is_some_and(|sum| sum >= 3 * 3 + 7)
    });
    wait_until("what was admitted is in the books", || {
        workerd.books("hits") == Some(2)
    });
}

#[test]
fn a_rule_file_that_was_compiled_is_what_the_worker_enforces() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let (file, out) = (folder.path().join("r.yaml"), folder.path().join("r.bin"));
    let text = "version: 1\n\
                domain: api.example.com\n\
                rules:\n  \
                  - name: per-country\n    \
                    key: [country, asn]\n    \
                    match: { paths: \"/v1/**\" }\n    \
                    limit: 2\n    \
                    window: 1d\n    \
                    algorithm: fixed_window\n    \
                    hold: 1s\n    \
                    response: { status: 403, body: \"slow down\" }\n";
    fs::write(&file, text).expect("a file");
    let compile = || {
        let mut command = Command::new(binaries::weir());
        command.args(["rules", "compile"]).arg(&file).arg("-o");
        command.arg(&out).output().expect("the command runs")
    };
    let output = compile();
    assert!(output.status.success(), "{output:?}");
    let rules = fs::read(&out).expect("it was written");
    let origin = Upstream::start();
    let workerd = Workerd::start(Setup::new(&rules, origin.address()));
    let at = |country: &str| {
        let cf = format!(r#"{{"colo": "VIE", "country": "{country}", "asn": 64500}}"#);
        let answer = workerd.get("/v1/x?y", &[("cf-blob", &cf)]);
        (answer.status, answer.text())
    };
    let told = [at("AT"), at("AT"), at("AT"), at("DE")].map(|(status, _)| status);
    assert_eq!(told, [200, 200, 403, 200]);
    assert_eq!(at("AT").1, "slow down");
    // Without Cloudflare's word there is no country, and no rule applies.
    assert_eq!(workerd.get("/v1/x", &[]).status, 200);
    fs::write(&file, text.replace("limit: 2", "limit: none")).expect("a file");
    let output = compile();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("r.yaml:7:"),
        "{said}"
    );
}
