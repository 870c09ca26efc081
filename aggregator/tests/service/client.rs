//! The commands that ask a service: what they print, and what their exit codes
//! mean.

use std::process::{Command, Output};

use aggregator::auth::Token;

use crate::{
    common::client::{get, until},
    server::{Place, TestServer},
    stub::{Answer, Stub},
};

fn weir(url: &str, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(args)
        .env("WEIR_URL", url)
        .env_remove("WEIR_TOKEN")
        .output()
        .unwrap()
}

fn url(server: &TestServer) -> String {
    format!("http://{}", server.address)
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn complained(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

#[test]
fn a_check_says_what_is_left_and_exits_3_once_nothing_is() {
    let place = Place::new();
    let server = place.start();
    let url = url(&server);
    let check = |more: &[&str]| weir(&url, &[&["check", "three", "a", "GET"], more].concat());
    let allowed = check(&[]);
    assert_eq!(code(&allowed), 0, "{}", complained(&allowed));
    assert_eq!(said(&allowed), "allowed by three: 2 of 3 left");
    let json = check(&["--cost", "2", "--format", "json"]);
    let answer: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((code(&json), &answer["remaining"]), (0, &0.into()));
    let denied = check(&[]);
    assert_eq!(code(&denied), 3);
    let text = said(&denied);
    assert!(
        text.starts_with("denied by three: 0 of 3 left, try again in "),
        "{text}"
    );
    let hopeless = check(&["--cost", "4"]);
    assert!(said(&hopeless).ends_with("so large a cost never is"));
}

#[test]
fn what_the_service_refuses_is_said_in_its_words_with_exit_1() {
    let place = Place::new();
    let server = place.start();
    let refused = weir(&url(&server), &["check", "no-such-rule", "a"]);
    assert_eq!(code(&refused), 1);
    let text = complained(&refused);
    assert!(text.starts_with("weir: There is no such rule: "), "{text}");
    assert_eq!(said(&refused), "");
}

#[test]
fn a_service_that_cannot_be_reached_is_exit_69_and_one_that_is_no_service_exit_1() {
    let nobody = weir("http://127.0.0.1:1", &["check", "three", "a", "GET"]);
    assert_eq!(code(&nobody), 69);
    let text = complained(&nobody);
    assert!(text.contains("cannot reach http://127.0.0.1:1"), "{text}");
    let other = Stub::start(vec![Answer::of(502, "<html>")]);
    let strange = weir(&other.url(), &["check", "three", "a", "GET"]);
    assert_eq!(code(&strange), 1);
    assert!(complained(&strange).contains("not as weir does: status 502"));
    let wrong = weir("127.0.0.1:8080", &["check", "three", "a", "GET"]);
    assert_eq!(code(&wrong), 1);
    assert!(
        complained(&wrong).contains("as in http://"),
        "{}",
        complained(&wrong)
    );
}

#[test]
fn the_token_that_was_made_opens_the_door_and_is_in_no_complaint() {
    let mut place = Place::new();
    let args = ["token", "new", "--name", "cli", "--rights", "check,read"];
    let made = said(&weir("", &args));
    let (token, entry) = made.split_once("\n\n").unwrap();
    let file = place.write("tokens.yaml", &format!("tokens:\n{entry}\n"));
    place.settings.token_file = Some(file);
    let server = place.launch();
    until("ready", || get(server.address, "/readyz").status == 200);
    let url = url(&server);
    let without = weir(&url, &["check", "wide", "a"]);
    assert_eq!(code(&without), 1);
    assert!(complained(&without).contains("A token is needed"));
    let with = weir(&url, &["check", "wide", "a", "--token", token]);
    assert_eq!(code(&with), 0, "{}", complained(&with));
    let by_environment = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["check", "wide", "a", "--url", &url])
        .env("WEIR_TOKEN", token)
        .output()
        .unwrap();
    assert_eq!(code(&by_environment), 0);
    let stranger = Token::random().unwrap();
    let refused = weir(&url, &["check", "wide", "a", "--token", stranger.reveal()]);
    assert_eq!(code(&refused), 1);
    assert!(!complained(&refused).contains(stranger.reveal()));
    let help = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["check", "--help"])
        .env("WEIR_TOKEN", token)
        .output()
        .unwrap();
    assert!(!said(&help).contains(token), "{}", said(&help));
}

#[test]
fn made_tokens_differ_and_json_has_the_token_and_its_entry() {
    let args = [
        "token",
        "new",
        "--name",
        "n",
        "--tenant",
        "t",
        "--rights",
        "sync",
        "--requests-per-second",
        "9",
        "--format",
        "json",
    ];
    let made = || {
        let output = weir("", &args);
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let (one, other) = (made(), made());
    assert_ne!(one["token"], other["token"]);
    assert_eq!(one["entry"]["requests_per_second"], 9);
    assert_eq!(one["entry"]["rights"], serde_json::json!(["sync"]));
    let wrong = weir("", &["token", "new", "--name", "n", "--rights", "sync,all"]);
    assert_eq!(code(&wrong), 2);
    assert!(complained(&wrong).contains("expected a right"));
}

#[test]
fn a_counter_s_value_is_printed_alone_and_its_state_is_the_exit_code() {
    let never = r#"{"type":"urn:weir:problem:never-written","title":"There is no such counter"}"#;
    let stub = Stub::start(vec![
        Answer::of(200, r#"{"counter_id":"a","value":42,"applied":true}"#),
        Answer::of(200, r#"{"counter_id":"a","value":7,"applied":false}"#),
        Answer::of(200, r#"{"counter_id":"a","value":7}"#),
        Answer::of(404, never),
        Answer::of(200, r#"{"counter_id":"a","value":0}"#),
    ]);
    let counter = |args: &[&str]| weir(&stub.url(), &[&["counter"], args].concat());
    let done = counter(&["add", "a"]);
    assert_eq!((code(&done), &*said(&done)), (0, "42"));
    let over = counter(&["add", "a", "-3", "--min", "5", "--namespace", "n"]);
    assert_eq!((code(&over), &*said(&over)), (3, "7"));
    let read = counter(&["get", "a/b", "--format", "json", "--namespace", "n&m"]);
    assert_eq!(said(&read), r#"{"counter_id":"a","value":7}"#);
    let never = counter(&["get", "a"]);
    assert_eq!((code(&never), &*said(&never)), (5, ""));
    assert_eq!(said(&counter(&["reset", "a"])), "0");
    let asked = stub.asked();
    let heads: Vec<&str> = asked.iter().map(|asked| asked.head.as_str()).collect();
    assert_eq!(
        heads,
        [
            "POST /v1/counter/increment",
            "POST /v1/counter/increment",
            "GET /v1/counter/a%2Fb?namespace=n%26m",
            "GET /v1/counter/a",
            "POST /v1/counter/reset",
        ]
    );
    let body =
        |place: usize| -> serde_json::Value { serde_json::from_str(&asked[place].body).unwrap() };
    assert_eq!(body(0), serde_json::json!({"counter_id": "a", "delta": 1}));
    let second = serde_json::json!({"counter_id": "a", "delta": -3, "min": 5, "namespace": "n"});
    assert_eq!(body(1), second);
    assert_eq!(body(4), serde_json::json!({"counter_id": "a"}));
}

#[test]
fn a_watch_prints_every_change_and_says_when_it_was_ended() {
    let events =
        ": here\n\ndata: {\"value\":null}\n\ndata: {\"value\":1}\n\ndata: {\"value\":5}\n\n";
    let stub = Stub::start(vec![Answer::of(200, events)]);
    let watched = weir(&stub.url(), &["counter", "watch", "a"]);
    assert_eq!(said(&watched), "none\n1\n5");
    assert_eq!(code(&watched), 1);
    assert!(complained(&watched).contains("ended the watch"));
    assert_eq!(stub.asked()[0].head, "GET /v1/counter/a/watch");
}

#[test]
fn there_are_completions_for_three_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let script = weir("", &["completions", shell]);
        assert_eq!(code(&script), 0);
        assert!(said(&script).contains("weir"), "{shell}");
    }
    assert_eq!(code(&weir("", &["completions", "dos"])), 2);
}
