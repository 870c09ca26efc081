//! What may be named where.

use crate::house::{House, names, places};

/// Foreign crates that are named in one place only, so that each can be replaced
/// there. An empty list of places: not in use, and to be entered here first.
const ONE_PLACE: &[(&str, &[&str])] = &[
    // The filter speaks the ABI itself; the SDK is for the yardstick.
    ("proxy_wasm", &["edge-filter/examples/noop.rs"]),
    (
        "wit_bindgen",
        &[
            "edge-filter/src/component/exports.rs",
            "edge-filter/src/middleware/exports.rs",
        ],
    ),
    // Hosts of components: the compiler is large, and nothing else is to wait for it.
    ("wasmtime", &["tests/component/"]),
    ("wasmtime_wasi", &["tests/component/"]),
    ("wasmtime_wasi_http", &["tests/component/"]),
    ("worker_macros", &[]),
    ("axum", &["aggregator/src/serve/http/"]),
    ("hyper", &["aggregator/src/serve/http/"]),
    ("hyper_util", &["aggregator/src/serve/http/"]),
    ("futures_util", &["aggregator/src/serve/http/"]),
    (
        "http_body_util",
        &["aggregator/src/serve/http/", "tests/component/tests/"],
    ),
    ("tonic", &[]),
    ("redb", &[]),
    ("fjall", &[]),
    ("rocksdb", &[]),
    ("rusqlite", &[]),
    ("redis", &["aggregator/src/shared/"]),
    ("postgres", &["aggregator/src/shared/"]),
    ("crc32fast", &["aggregator/src/store/"]),
    ("ring", &["aggregator/src/auth/"]),
    ("subtle", &["aggregator/src/auth/"]),
    (
        "tokio_rustls",
        &["aggregator/src/serve/http/", "aggregator/tests/"],
    ),
    ("rustls", &["aggregator/src/serve/http/"]),
    ("rcgen", &["aggregator/tests/"]),
    ("ureq", &["aggregator/src/client/", "aggregator/examples/"]),
    ("base64", &["edge-filter/src/claims.rs"]),
    ("httpdate", &["aggregator/src/cli/"]),
    ("clap_complete", &["aggregator/src/cli/"]),
    (
        "tokio",
        &[
            "aggregator/src/serve/",
            "aggregator/tests/",
            "tests/component/tests/",
        ],
    ),
    (
        "clap",
        &[
            "aggregator/src/cli/",
            "aggregator/src/config/",
            "aggregator/src/main.rs",
        ],
    ),
    ("prometheus_client", &["aggregator/src/serve/metrics"]),
    ("granit_parser", &["aggregator/src/rules/"]),
    (
        "serde_saphyr",
        &[
            "aggregator/src/config/",
            "aggregator/src/rules/tests/",
            "tests/tests/deployments/",
        ],
    ),
    ("promql_parser", &["tests/tests/deployments/alerts.rs"]),
    ("signal_hook", &["tests/src/bin/demo/interrupt.rs"]),
];

/// Who reads a clock.
const CLOCKS: &[&str] = &[
    "aggregator/src/serve/clock.rs",
    "aggregator/tests/service/server.rs",
    "simulator/examples/",
    "simulator/tests/",
    "tests/",
];

/// The two halves of the core, each with the other's name.
const HALVES: [(&str, &str); 2] = [
    ("limiter/src/edge/", "ledger"),
    ("limiter/src/ledger/", "edge"),
];

fn one_place(house: &House) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in house.rust() {
        if file.path.starts_with("tests/tests/tidy/") {
            continue; // Breaks the rules to show that they see it.
        }
        for (n, line) in file.code() {
            for (name, allowed) in ONE_PLACE {
                if names(line, name) && !allowed.iter().any(|place| file.path.starts_with(place)) {
                    wrong.push(format!(
                        "{}:{n} names {name}, kept to {allowed:?}",
                        file.path
                    ));
                }
            }
        }
    }
    wrong
}

fn halves(house: &House) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in house.rust() {
        let within = |half: &&(&str, &str)| file.path.starts_with(half.0);
        let Some((_, other)) = HALVES.iter().find(within) else {
            continue;
        };
        for (n, line) in file.code() {
            if !places(line, other).is_empty() {
                wrong.push(format!("{}:{n} names the other half, {other}", file.path));
            }
        }
    }
    wrong
}

fn clocks(house: &House) -> Vec<String> {
    let mut wrong = Vec::new();
    let bans = house.text("clippy.toml");
    for read in ["SystemTime::now", "Instant::now"] {
        if !bans.contains(&format!("\"std::time::{read}\"")) {
            wrong.push(format!("clippy.toml does not ban std::time::{read}"));
        }
    }
    for file in house.rust() {
        if CLOCKS.iter().any(|place| file.path.starts_with(place)) {
            continue;
        }
        for (n, line) in file.code() {
            if ["SystemTime::now", "Instant::now", "::elapsed("]
                .iter()
                .any(|read| line.contains(read))
            {
                wrong.push(format!(
                    "{}:{n} reads a clock; time is an argument",
                    file.path
                ));
            }
        }
    }
    wrong
}

#[test]
fn a_foreign_crate_is_named_in_one_place() {
    crate::hold(one_place);
    let files = [("limiter/src/a.rs", "//! A.\nuse axum::Router;\n")];
    crate::finds(one_place, &files, "limiter/src/a.rs:2 names axum");
    let inside = [("limiter/src/a.rs", "let x = ::redb::Database::open();\n")];
    crate::finds(one_place, &inside, "names redb");
}

#[test]
fn the_halves_of_the_core_do_not_know_of_each_other() {
    crate::hold(halves);
    let files = [(
        "limiter/src/edge/a.rs",
        "use crate::{key, ledger::Ledger};\n",
    )];
    crate::finds(
        halves,
        &files,
        "limiter/src/edge/a.rs:1 names the other half",
    );
}

#[test]
fn a_clock_is_read_where_a_host_is_and_nowhere_else() {
    crate::hold(clocks);
    let files = [("limiter/src/a.rs", "let now = Instant::now();\n")];
    crate::finds(clocks, &files, "limiter/src/a.rs:1 reads a clock");
    crate::finds(clocks, &files, "clippy.toml does not ban");
}
