//! How the service ends, as load balancers and clients see it.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
};

use crate::{
    common::{
        client::{get, metric, sync, try_send, until},
        messages::{RULES, flush},
    },
    server::Place,
};

/// `weir serve` in a process of its own, with more flags.
fn serve(dir: &std::path::Path, flags: &[&str]) -> (Child, SocketAddr) {
    std::fs::write(dir.join("rules.yaml"), RULES).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["serve", "--listen", "127.0.0.1:0", "--rules", "rules.yaml"])
        .args(flags)
        .current_dir(dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line.trim().strip_prefix("listening on http://").unwrap();
    let address = address.parse().unwrap();
    until("ready", || get(address, "/readyz").status == 200);
    (child, address)
}

fn terminate(child: &Child) {
    let pid = child.id().to_string();
    Command::new("kill").args(["-TERM", &pid]).status().unwrap();
}

#[test]
fn one_that_is_told_to_stop_is_unready_first_and_answers_until_the_delay_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let (mut child, to) = serve(dir.path(), &["--drain-delay-ms", "3000"]);
    terminate(&child);
    until("it says so", || get(to, "/readyz").status == 503);
    let ready = get(to, "/readyz");
    assert!(ready.text().contains("about to stop"), "{}", ready.text());
    assert_eq!(metric(to, "weir_ready", ""), 0);
    // Who has not noticed is answered and counted, and is to connect anew.
    let answer = sync(to, &flush(1, "a", 5));
    assert_eq!(answer.header("connection"), Some("close"));
    answer.reply();
    assert_eq!(get(to, "/healthz").status, 200);
    until("it listens no more", || {
        try_send(to, "GET", "/healthz", b"").is_err()
    });
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let (child, to) = serve(dir.path(), &[]);
    assert_eq!(metric(to, "weir_hits_total", "rule=\"wide\""), 5);
    terminate(&child);
}

#[test]
fn a_second_signal_ends_a_drain_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (mut child, to) = serve(dir.path(), &["--drain-delay-ms", "600000"]);
    terminate(&child);
    until("it drains", || get(to, "/readyz").status == 503);
    terminate(&child);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn one_that_was_never_ready_does_not_wait_for_anybody_to_notice() {
    let mut place = Place::new();
    place.settings.rules = None;
    place.settings.drain_delay_ms = Some(600_000);
    let server = place.launch();
    until("it is open", || {
        get(server.address, "/readyz").text().contains("no rules")
    });
    // There are no rules; else it would have waited ten minutes.
    place.settings.drain_delay_ms = None;
    let mut server = server;
    server.begin_stop();
    server.end().unwrap();
}

#[test]
fn one_that_stops_with_a_full_disk_says_that_something_was_given_up() {
    let place = Place::new();
    let mut server = place.start();
    server.gate.fill();
    assert_eq!(sync(server.address, &flush(1, "a", 5)).status, 503);
    server.begin_stop();
    until("it listens no more", || {
        try_send(server.address, "GET", "/healthz", b"").is_err()
    });
    let error = server.end().unwrap_err().to_string();
    assert!(error.contains("given up"), "{error}");
}

#[test]
fn a_disk_that_does_not_answer_makes_it_unready_until_it_does() {
    let mut place = Place::new();
    place.settings.request_timeout_ms = Some(100);
    let server = place.start();
    let to = server.address;
    server.gate.hold();
    assert_eq!(sync(to, &flush(1, "a", 5)).problem(), "late");
    until("it says so", || get(to, "/readyz").status == 503);
    let ready = get(to, "/readyz").text();
    assert!(ready.contains("has not finished a write"), "{ready}");
    assert_eq!(get(to, "/healthz").status, 200);
    assert_eq!(metric(to, "weir_ready", ""), 0);
    server.gate.open();
    until("it is ready again", || get(to, "/readyz").status == 200);
    assert_eq!(metric(to, "weir_ready", ""), 1);
    assert_eq!(metric(to, "weir_hits_total", "rule=\"wide\""), 5);
}
