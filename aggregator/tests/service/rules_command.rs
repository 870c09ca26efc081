//! `weir rules get`, `put`, `history`, `rollback` on a service that runs.

use std::process::Command;

use serde_json::{Value, json};

use crate::{
    common::{client::check, messages::RULES},
    rules_client::without_file,
    server::TestServer,
};

/// Runs it: what it printed, what it complained of, and its exit code.
fn rules(server: &TestServer, args: &[&str]) -> (String, String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .env("WEIR_URL", format!("http://{}", server.address))
        .env_remove("WEIR_TOKEN")
        .arg("rules")
        .args(args)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (out, err, output.status.code().unwrap())
}

#[test]
fn rules_are_put_shown_and_put_back_from_a_script() {
    let (place, server) = without_file();
    let run = |args: &[&str]| rules(&server, args);
    let file = place.write("rules.yaml", RULES);
    let file = file.to_str().unwrap();
    let (said, _, code) = run(&["put", file, "--dry-run"]);
    assert_eq!(code, 0);
    assert!(
        said.starts_with("nothing is changed; revision 0 stays"),
        "{said}"
    );
    assert!(said.contains("+ wide: new, counts from nothing"), "{said}");
    assert_eq!(run(&["get"]).2, 1);
    let (said, _, code) = run(&["put", file]);
    assert_eq!(
        (said.lines().next(), code),
        (Some("revision 1 is in force"), 0)
    );
    assert_eq!(run(&["get"]).0, RULES.trim());
    place.write("rules.yaml", &RULES.replace("limit: 3,", "limit: 4,"));
    let (_, complaint, code) = run(&["put", file, "--if-match", "7"]);
    assert_eq!(code, 3);
    assert!(complaint.contains("revision 1 is in force"), "{complaint}");
    let (said, _, _) = run(&["put", file, "--if-match", "1"]);
    assert!(
        said.contains("~ three: counts go on\n    limit: 3 -> 4"),
        "{said}"
    );
    let (said, _, code) = run(&["rollback", "1"]);
    assert_eq!(
        (said.lines().next(), code),
        (Some("revision 3 is in force"), 0)
    );
    let (said, _, _) = run(&["history"]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 4, "{said}");
    assert!(
        lines[1].contains("3  ") && lines[1].ends_with("back to 1: 1 changed"),
        "{said}"
    );
    assert!(lines[1].contains(" GMT "), "{said}");
    let out = place.file("old.yaml");
    assert_eq!(
        run(&["get", "--revision", "2", "-o", out.to_str().unwrap()]).2,
        0
    );
    assert!(std::fs::read_to_string(out).unwrap().contains("limit: 4,"));
}

#[test]
fn the_lists_that_a_file_names_are_put_with_it() {
    let (place, server) = without_file();
    let rules_text = "version: 1\ndomain: d\ntiers: [{ name: vip, when: { key_in: vips.txt } }]\n\
         rules:\n  - { name: r, key: [header.x], limit: 1, window: 1h, per_tier: { vip: unlimited } }\n";
    let file = place.write("rules.yaml", rules_text);
    place.write("vips.txt", "alice\n# bob\n");
    let run = |args: &[&str]| rules(&server, args);
    let (_, complaint, code) = run(&["put", file.to_str().unwrap()]);
    assert_eq!(code, 0, "{complaint}");
    let in_force = run(&["get"]).0;
    assert!(
        in_force.ends_with("lists: { vips.txt: [alice] }"),
        "{in_force}"
    );
    let tier = |key: &str| {
        let asked = json!({"rule": "r", "key": key});
        check(server.address, &asked).json()["rule_tier"].clone()
    };
    assert_eq!((tier("alice"), tier("bob")), (json!("vip"), Value::Null));
}

#[test]
fn a_file_with_errors_is_complained_of_by_name_line_and_column() {
    let (place, server) = without_file();
    let file = place.write("bad.yaml", &RULES.replace("limit: 3,", "limit: 0,"));
    let (said, complaint, code) = rules(&server, &["put", file.to_str().unwrap()]);
    assert_eq!((&*said, code), ("", 1));
    assert!(complaint.contains("bad.yaml:6:"), "{complaint}");
    assert!(complaint.contains("rules[2].limit: "), "{complaint}");
    let away = rules(&server, &["get", "--url", "http://127.0.0.1:1"]);
    assert_eq!(away.2, 69);
}
