//! `weir counter` on a service that runs, and whose counters are whose.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Output, Stdio},
};

use aggregator::auth::{Digest, Token};

use crate::{
    common::client::{get, until},
    server::{Place, TestServer},
};

fn weir(server: &TestServer, token: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command
        .env("WEIR_URL", format!("http://{}", server.address))
        .env("WEIR_TOKEN", token)
        .arg("counter");
    command
}

/// Runs it: what it printed, and its exit code.
fn counter(server: &TestServer, token: &str, args: &[&str]) -> (String, i32) {
    let Output { status, stdout, .. } = weir(server, token).args(args).output().unwrap();
    let said = String::from_utf8(stdout).unwrap().trim().to_owned();
    (said, status.code().unwrap())
}

#[test]
fn a_counter_is_added_to_read_and_reset_by_its_name_whatever_that_is() {
    let place = Place::new();
    let server = place.start();
    let run = |args: &[&str]| counter(&server, "", args);
    for name in ["signups", "a/b c?é", "increment", "reset"] {
        assert_eq!(run(&["get", name]), (String::new(), 5), "{name}");
        assert_eq!(run(&["add", name]), ("1".to_owned(), 0), "{name}");
        assert_eq!(run(&["add", name, "-5"]), ("-4".to_owned(), 0));
        assert_eq!(run(&["get", name]), ("-4".to_owned(), 0));
        let other = run(&["get", name, "--namespace", "other"]);
        assert_eq!(other, (String::new(), 5));
        assert_eq!(run(&["reset", name]), ("0".to_owned(), 0));
        assert_eq!(run(&["get", name]), ("0".to_owned(), 0));
    }
}

#[test]
fn a_seat_that_is_not_there_is_not_taken_and_one_that_is_taken_twice_counts_once() {
    let place = Place::new();
    let server = place.start();
    let run = |args: &[&str]| counter(&server, "", args);
    let take = |key| run(&["add", "seats", "--max", "1", "--idempotency-key", key]);
    assert_eq!(take("a"), ("1".to_owned(), 0));
    assert_eq!(take("a"), ("1".to_owned(), 0));
    assert_eq!(take("b"), ("1".to_owned(), 3));
    let (json, code) = run(&["get", "seats", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["value"], code), (&1.into(), 0));
}

#[test]
fn a_watch_prints_the_counter_as_it_is_and_every_change() {
    let place = Place::new();
    let mut server = place.start();
    let mut watch = weir(&server, "")
        .args(["watch", "signups"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert_eq!(next(), "none");
    counter(&server, "", &["add", "signups", "7"]);
    assert_eq!(next(), "7");
    counter(&server, "", &["add", "signups"]);
    assert_eq!(next(), "8");
    server.begin_stop();
    assert_eq!(
        watch.wait().unwrap().code(),
        Some(1),
        "the service ended it"
    );
}

fn entry(name: &str, tenant: &str, rights: &str, token: &Token) -> String {
    let sha256 = Digest::of(token.reveal().as_bytes());
    format!("  - {{ name: {name}, tenant: {tenant}, rights: [{rights}], sha256: \"{sha256}\" }}\n")
}

fn tokens(entries: &[String]) -> String {
    format!("tokens:\n{}", entries.concat())
}

/// A service that asks for tokens.
fn guarded(place: &mut Place, entries: &[String]) -> TestServer {
    place.settings.token_file = Some(place.write("tokens.yaml", &tokens(entries)));
    let server = place.launch();
    until("ready", || get(server.address, "/readyz").status == 200);
    server
}

#[test]
fn a_tenant_s_counters_are_its_own() {
    let [ours, theirs, reader] = [(); 3].map(|()| Token::random().unwrap());
    let entries = [
        entry("ours", "us", "count, read", &ours),
        entry("theirs", "them", "count, read", &theirs),
        entry("reader", "us", "read", &reader),
    ];
    let mut place = Place::new();
    let server = guarded(&mut place, &entries);
    let run = |token: &Token, args: &[&str]| counter(&server, token.reveal(), args);
    assert_eq!(run(&ours, &["add", "a", "5"]), ("5".to_owned(), 0));
    assert_eq!(run(&theirs, &["get", "a"]), (String::new(), 5));
    assert_eq!(run(&theirs, &["add", "a"]), ("1".to_owned(), 0));
    assert_eq!(run(&ours, &["get", "a"]), ("5".to_owned(), 0));
    assert_eq!(run(&reader, &["get", "a"]), ("5".to_owned(), 0));
    for args in [&["add", "a"][..], &["reset", "a"]] {
        assert_eq!(run(&reader, args), (String::new(), 1));
    }
    assert_eq!(run(&ours, &["get", "a"]), ("5".to_owned(), 0));
}

#[test]
fn a_watch_ends_with_its_token_and_with_no_other() {
    let [leaves, stays] = [(); 2].map(|()| Token::random().unwrap());
    let staying = entry("stays", "t", "count, read", &stays);
    let mut place = Place::new();
    let entries = [entry("leaves", "t", "read", &leaves), staying.clone()];
    let server = guarded(&mut place, &entries);
    let watch = |token: &Token| {
        let mut watch = weir(&server, token.reveal())
            .args(["watch", "a"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
        (watch, lines.map(Result::unwrap))
    };
    let (mut ended, mut last) = watch(&leaves);
    let (mut other, mut lines) = watch(&stays);
    assert_eq!(
        (last.next(), lines.next()),
        (Some("none".into()), Some("none".into()))
    );
    place.write("tokens.yaml", &tokens(&[staying]));
    until("it has ended", || ended.try_wait().unwrap().is_some());
    assert_eq!(last.next(), None);
    counter(&server, stays.reveal(), &["add", "a"]);
    assert_eq!(lines.next(), Some("1".into()));
    other.kill().unwrap();
    other.wait().unwrap();
}
