//! Which crate may use which, and what every crate has in common.

use crate::house::House;

/// Our crates, and which of ours each may use. `limiter` is the only one that
/// both sides share.
const CRATES: &[(&str, &[&str])] = &[
    ("limiter", &[]),
    ("edge-filter", &["limiter"]),
    ("simulator", &["limiter"]),
    ("aggregator", &["limiter", "simulator"]),
    (
        "tests",
        &["limiter", "simulator", "edge-filter", "aggregator"],
    ),
    ("tests/fuzz", &["limiter", "edge-filter", "aggregator"]),
    ("tests/component", &["limiter"]),
];

/// What the core may use from elsewhere: nothing that waits, listens or looks at
/// a clock.
const CORE: &[&str] = &[
    "ahash",
    "hashbrown",
    "prost",
    "siphasher",
    "smallvec",
    "thiserror",
];

/// The names in the tables of a manifest that `[name]` selects.
fn dependencies(manifest: &str, table: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if let Some(name) = line.strip_prefix('[') {
            inside = table(name.trim_end_matches(']'));
        } else if let (true, Some((name, _))) = (inside, line.split_once('=')) {
            let name = name.trim().split('.').next().unwrap_or_default();
            if !name.is_empty() && !name.starts_with('#') {
                names.push(name);
            }
        }
    }
    names
}

fn shipped(table: &str) -> bool {
    table.ends_with("dependencies") && !table.ends_with("dev-dependencies")
}

fn direction(house: &House) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, may_use) in CRATES {
        let manifest = house.text(&format!("{name}/Cargo.toml"));
        for dependency in dependencies(manifest, |table| table.ends_with("dependencies")) {
            let ours = CRATES.iter().any(|(known, _)| *known == dependency);
            if ours && !may_use.contains(&dependency) {
                wrong.push(format!("{name} may not use {dependency}"));
            }
        }
    }
    wrong
}

fn core(house: &House) -> Vec<String> {
    let mut wrong: Vec<String> = dependencies(house.text("limiter/Cargo.toml"), shipped)
        .into_iter()
        .filter(|dependency| !CORE.contains(dependency))
        .map(|dependency| format!("limiter may not use {dependency}: it is the core"))
        .collect();
    if !house.text("limiter/src/lib.rs").contains("#![no_std]\n") {
        wrong.push("limiter/src/lib.rs must say `#![no_std]`".to_owned());
    }
    wrong
}

fn common(house: &House) -> Vec<String> {
    let mut wrong = Vec::new();
    let workspace = house.text("Cargo.toml");
    for manifest in house.ending("/Cargo.toml") {
        let folder = manifest.path.trim_end_matches("/Cargo.toml");
        let must = [
            ("[lints]\nworkspace = true", "the workspace's lints"),
            ("version.workspace = true", "the workspace's version"),
            ("license.workspace = true", "the workspace's licence"),
            (
                "rust-version.workspace = true",
                "the workspace's Rust version",
            ),
            ("description = ", "a description"),
        ];
        for (text, what) in must {
            if !manifest.text.contains(text) {
                wrong.push(format!("{} lacks {what}: `{text}`", manifest.path));
            }
        }
        if !workspace.contains(&format!("\"{folder}\"")) {
            wrong.push(format!("{folder} is no member of the workspace"));
        }
        if !CRATES.iter().any(|(name, _)| *name == folder) {
            wrong.push(format!("what {folder} may use is written nowhere"));
        }
    }
    wrong
}

/// The name of the test binary that this path is the root of.
fn test_binary(path: &str) -> Option<&str> {
    let (_, below) = path
        .split_once("/tests/")
        .or_else(|| path.split_once("tests/"))?;
    let name = below.trim_end_matches("/main.rs").trim_end_matches(".rs");
    let root = path.ends_with(".rs") && !name.contains('/') && !path.contains("/src/");
    root.then_some(name)
}

fn run(house: &House) -> Vec<String> {
    let makefile = house.text("Makefile");
    house
        .rust()
        .filter_map(|file| test_binary(&file.path))
        .filter(|name| {
            let (family, _) = name.split_once('_').unwrap_or((name, ""));
            let named = |what: &str| makefile.contains(&format!("--test {what}"));
            !named(&format!("{name} "))
                && !named(&format!("{name}\n"))
                && !named(&format!("'{family}_*'"))
        })
        .map(|name| format!("`make test` does not run the test {name}"))
        .collect()
}

#[test]
fn make_test_runs_every_test() {
    crate::hold(run);
    let files = [
        ("Makefile", "\t--test a --test 'b_*'\n"),
        ("x/tests/c.rs", ""),
    ];
    crate::finds(run, &files, "does not run the test c");
    let known = [
        ("Makefile", "\t--test a --test 'b_*'\n"),
        ("x/tests/a/main.rs", ""),
        ("tests/tests/b_c.rs", ""),
    ];
    assert!(run(&House::of(&known)).is_empty());
}

#[test]
fn dependencies_point_at_the_core() {
    crate::hold(direction);
    let manifest = "[package]\nname = 'x'\n[dev-dependencies]\naggregator.workspace = true\n";
    crate::finds(
        direction,
        &[("edge-filter/Cargo.toml", manifest)],
        "edge-filter may not use aggregator",
    );
}

#[test]
fn the_core_has_no_clock_no_io_and_nothing_that_waits() {
    crate::hold(core);
    let manifest = "[dependencies]\ntokio = { version = \"1\" }\n";
    let files = [("limiter/Cargo.toml", manifest), ("limiter/src/lib.rs", "")];
    crate::finds(core, &files, "limiter may not use tokio");
    crate::finds(core, &files, "must say `#![no_std]`");
}

#[test]
fn every_crate_has_the_workspace_s_lints_and_version() {
    crate::hold(common);
    let files = [
        ("Cargo.toml", "members = []"),
        ("new/Cargo.toml", "[package]"),
    ];
    for part in [
        "lacks the workspace's lints",
        "no member",
        "written nowhere",
    ] {
        crate::finds(common, &files, part);
    }
}
