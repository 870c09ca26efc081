//! Nothing panics inside a host, and no lint is silenced without a reason.

use crate::house::{File, House};

/// The crates that run inside Envoy, an isolate or a component.
const IN_HOSTS: [&str; 2] = ["limiter/src/", "edge-filter/src/"];

/// Lints that keep panics out.
const NO_PANIC: [&str; 4] = ["unwrap_used", "expect_used", "panic", "indexing_slicing"];

/// Macros that panic and that no lint of ours looks for.
const MACROS: [&str; 5] = [
    " assert!(",
    " assert_eq!(",
    " assert_ne!(",
    " unreachable!(",
    " unimplemented!(",
];

/// Where code in a host may say that it does not panic after all, and why.
const PROVEN: &[(&str, &str)] = &[(
    "limiter/src/rule/mod.rs",
    "a constant: the compiler evaluates it, and a panic is an error of the build",
)];

/// Where lints are silenced at large: the module is not written by hand.
const WRITTEN_BY_A_PROGRAM: [&str; 1] = ["limiter/src/wire/mod.rs"];

/// Every `allow` and `expect` attribute with its line.
fn silenced(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (n, line) in (1..).zip(file.text.lines()) {
        let trimmed = line.trim();
        let begins = ["#[allow(", "#![allow(", "#[expect(", "#![expect("]
            .iter()
            .any(|start| trimmed.starts_with(start));
        if begins {
            open = Some((n, String::new()));
        }
        if let Some((_, text)) = &mut open {
            text.push_str(trimmed);
            if text.ends_with(")]") {
                found.extend(open.take());
            }
        }
    }
    found
}

fn reasons(house: &House) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in house.rust() {
        for (n, attribute) in silenced(file) {
            let (_, reason) = attribute.split_once("reason = \"").unwrap_or_default();
            if reason.split('"').next().unwrap_or_default().len() < 8 {
                wrong.push(format!(
                    "{}:{n} silences a lint without a reason",
                    file.path
                ));
            }
            let broad = ["clippy::all", "clippy::pedantic", "(warnings"];
            let broad = broad.iter().any(|lints| attribute.contains(lints));
            if broad && !WRITTEN_BY_A_PROGRAM.contains(&file.path.as_str()) {
                wrong.push(format!("{}:{n} silences more than it needs", file.path));
            }
        }
    }
    wrong
}

fn panics(house: &House) -> Vec<String> {
    let mut wrong = Vec::new();
    let lints = house.text("Cargo.toml");
    for lint in NO_PANIC {
        if !lints.contains(&format!("\n{lint} = ")) {
            wrong.push(format!("Cargo.toml does not turn on {lint}"));
        }
    }
    let in_host = |file: &&File| {
        let tested = file.is_test() || file.path.contains("/tests/");
        IN_HOSTS.iter().any(|place| file.path.starts_with(place)) && !tested
    };
    for file in house.rust().filter(in_host) {
        for (n, line) in file.code() {
            let line = format!(" {}", line.trim());
            if MACROS.iter().any(|name| line.contains(name)) {
                wrong.push(format!("{}:{n} may panic inside a host", file.path));
            }
        }
        let proven = PROVEN.iter().any(|(path, _)| *path == file.path);
        let quiet = silenced(file).into_iter().find(|(_, attribute)| {
            let clippy = |lint: &str| attribute.contains(&format!("clippy::{lint}"));
            NO_PANIC.iter().any(|lint| clippy(lint))
        });
        match (quiet, proven) {
            (Some((n, _)), false) => {
                wrong.push(format!("{}:{n} may panic inside a host", file.path));
            }
            (None, true) => wrong.push(format!("{} needs no exception", file.path)),
            _ => {}
        }
    }
    wrong
}

#[test]
fn a_lint_is_silenced_for_a_reason() {
    crate::hold(reasons);
    let files = [("a.rs", "#[allow(\n    dead_code,\n)]\nfn a() {}\n")];
    crate::finds(reasons, &files, "a.rs:1 silences a lint without a reason");
    let files = [(
        "a.rs",
        "#![allow(clippy::all, reason = \"it is too hard\")]\n",
    )];
    crate::finds(reasons, &files, "a.rs:1 silences more than it needs");
}

#[test]
fn nothing_panics_inside_a_host() {
    crate::hold(panics);
    let files = [(
        "limiter/src/a.rs",
        "//! A.\nfn a() {\n    assert!(true);\n}\n",
    )];
    crate::finds(panics, &files, "limiter/src/a.rs:3 may panic");
    crate::finds(panics, &files, "does not turn on unwrap_used");
    let quiet = "//! A.\n#[expect(clippy::panic, reason = \"never comes to that\")]\nfn a() {}\n";
    crate::finds(
        panics,
        &[("edge-filter/src/a.rs", quiet)],
        "a.rs:2 may panic",
    );
}
