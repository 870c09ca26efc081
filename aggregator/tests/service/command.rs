//! The `weir` command as a person runs it.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Output, Stdio},
};

use crate::common::{
    client::{get, sync, until},
    messages::{RULES, flush},
};

fn weir(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(args)
        .output()
        .unwrap()
}

fn error_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_is_not_understood_exits_2_and_what_fails_exits_1() {
    assert_eq!(weir(&["serve", "--no-such-flag"]).status.code(), Some(2));
    assert_eq!(weir(&["verify", "no/such/dir"]).status.code(), Some(1));
    assert_eq!(weir(&["--version"]).status.code(), Some(0));
}

#[test]
fn an_address_that_others_can_reach_is_refused_before_anything_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let output = weir(&[
        "serve",
        "--listen",
        "0.0.0.0:0",
        "--data-dir",
        data.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        error_of(&output).contains("127.0.0.1"),
        "{}",
        error_of(&output)
    );
    assert!(!data.exists());
}

#[test]
fn a_bad_rule_file_at_start_is_shown_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let rules = dir.path().join("rules.yaml");
    std::fs::write(&rules, RULES.replace("limit: 3,", "limitt: 3,")).unwrap();
    let rules = rules.to_str().unwrap();
    for args in [&["serve", "--rules", rules][..], &["rules", "check", rules]] {
        let output = weir(args);
        assert_eq!(output.status.code(), Some(1));
        let said = error_of(&output) + &String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("rules.yaml:6:"), "{said}");
    }
}

#[test]
fn sigterm_ends_the_service_in_order_with_0_and_its_data_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (rules, data) = (dir.path().join("rules.yaml"), dir.path().join("data"));
    std::fs::write(&rules, RULES).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["serve", "--listen", "127.0.0.1:0", "--log-format", "json"])
        .arg("--rules")
        .arg(&rules)
        .arg("--data-dir")
        .arg(&data)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line
        .trim()
        .strip_prefix("listening on http://")
        .unwrap()
        .parse()
        .unwrap();
    until("ready", || get(address, "/readyz").status == 200);
    sync(address, &flush(1, "secret-key", 5)).reply();
    let pid = child.id().to_string();
    Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", error_of(&output));
    for line in error_of(&output).lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
        assert!(!line.contains("secret-key"), "{line}");
    }
    let verified = weir(&["verify", data.to_str().unwrap()]);
    assert_eq!(verified.status.code(), Some(0), "{}", error_of(&verified));
}
