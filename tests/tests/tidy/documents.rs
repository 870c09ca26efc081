//! Documents tell of what is there, and nothing tells of somebody's machine.

use crate::house::House;

/// Folders that somebody's machine has and a reader's has not.
const MACHINES: [&str; 4] = ["home", "root", "Users", "work"];

/// Documents that everyone looks for.
const EXPECTED: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];

/// The paths that a text names: in backticks, or as the target of a link.
fn paths(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (n, line) in (1..).zip(text.lines()) {
        let ticked = line.split('`').skip(1).step_by(2);
        let links = line.split("](").skip(1);
        let links = links.filter_map(|rest| rest.split([')', '#']).next());
        let plain = |path: &&str| {
            let shape = |c: char| c.is_ascii_alphanumeric() || "/_.-".contains(c);
            !path.is_empty() && path.chars().all(shape)
        };
        found.extend(ticked.filter(plain).map(|path| (n, path)));
        found.extend(links.filter(plain).map(|path| (n, path)));
    }
    found
}

fn named(house: &House) -> Vec<String> {
    let mut wrong = Vec::new();
    for document in house.ending(".md") {
        let folder = document.path.rsplit_once('/').map(|(folder, _)| folder);
        for (n, path) in paths(&document.text) {
            let path = path.trim_start_matches("./").trim_end_matches('/');
            let (first, nested) = path.split_once('/').unwrap_or((path, ""));
            let ours = !nested.is_empty() && (house.has(first) || is_file(path));
            let ours = ours || (nested.is_empty() && is_file(path));
            let beside = folder.is_some_and(|folder| house.has(&format!("{folder}/{path}")));
            if ours && !house.has(path) && !beside {
                wrong.push(format!(
                    "{}:{n} names {path}, which is not there",
                    document.path
                ));
            }
        }
    }
    wrong
}

/// Whether this is how our files are called. Rule and configuration files in
/// examples are the reader's own.
fn is_file(path: &str) -> bool {
    [".rs", ".md", ".proto", ".wit"]
        .iter()
        .any(|end| path.ends_with(end))
}

fn machines(house: &House) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in &house.files {
        for (n, line) in (1..).zip(file.text.lines()) {
            let absolute = MACHINES.iter().any(|name| {
                line.match_indices(&format!("/{name}/"))
                    .any(|(at, _)| !line.split_at(at).0.ends_with(|c: char| c.is_alphanumeric()))
            });
            if absolute {
                wrong.push(format!(
                    "{}:{n} has a path of somebody's machine",
                    file.path
                ));
            }
        }
    }
    wrong
}

fn expected(house: &House) -> Vec<String> {
    let mut wrong: Vec<String> = EXPECTED
        .iter()
        .filter(|path| house.text(path).is_empty())
        .map(|path| format!("{path} is missing"))
        .collect();
    let version = house
        .text("Cargo.toml")
        .lines()
        .find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
        .unwrap_or("?");
    let entry = format!("\n## {version}");
    if !house.text("CHANGELOG.md").contains(&entry) {
        wrong.push(format!("CHANGELOG.md has no entry `## {version}`"));
    }
    wrong
}

#[test]
fn documents_name_only_paths_that_exist() {
    crate::hold(named);
    let files = [
        ("a/b.rs", ""),
        (
            "README.md",
            "See `a/b.rs`, [it](a/b.rs)\nand `a/c.rs`, [x](d.md).",
        ),
    ];
    crate::finds(named, &files, "README.md:2 names a/c.rs");
    crate::finds(named, &files, "README.md:2 names d.md");
    assert_eq!(named(&House::of(&files)).len(), 2);
}

#[test]
fn no_file_knows_of_somebody_s_machine() {
    crate::hold(machines);
    let text = format!("cd /{}/me\n", MACHINES[0]);
    crate::finds(machines, &[("a.md", &text)], "a.md:1 has a path");
}

#[test]
fn the_version_has_an_entry_and_every_document_is_there() {
    crate::hold(expected);
    let files = [
        ("Cargo.toml", "version = \"7.0.0\""),
        ("CHANGELOG.md", "\n## 6.0.0\n"),
    ];
    crate::finds(expected, &files, "no entry `## 7.0.0`");
    crate::finds(expected, &files, "README.md is missing");
}
