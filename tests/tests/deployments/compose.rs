//! The files for `docker compose`.

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use weir_tests::binaries;

use crate::files::{list, path, string, text, yaml};
use crate::serve::{Mounted, checks, takes};

const FILES: &[&str] = &["one-region.yaml"];

/// Tokens as `tokens.sh` makes them.
struct Secrets(TempDir);

impl Secrets {
    /// Runs the script on a copy of its folder.
    fn made() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let script = folder.path().join("tokens.sh");
        fs::copy(path("compose/tokens.sh"), &script).expect("a copy");
        let status = Command::new("sh")
            .arg(&script)
            .env("WEIR", binaries::weir())
            .status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "tokens.sh fails"
        );
        Self(folder)
    }

    fn read(&self, name: &str) -> String {
        let file = self.0.path().join("secrets").join(name);
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

fn services(file: &str) -> Vec<(String, Value)> {
    let read = yaml(&format!("compose/{file}"));
    let services = read["services"].as_object().expect("services").clone();
    services
        .into_iter()
        .map(|(name, service)| (name, merged(service)))
        .collect()
}

/// A service with what it takes over (`<<`) in its place.
fn merged(mut service: Value) -> Value {
    let taken_over = service
        .as_object_mut()
        .and_then(|fields| fields.remove("<<"));
    for (name, value) in taken_over
        .as_ref()
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        if service.get(name).is_none() {
            service[name] = value.clone();
        }
    }
    service
}

/// What a service has mounted: where from, and where it sees it.
fn mounts(service: &Value) -> Vec<(String, String)> {
    list(&service["volumes"])
        .map(|volume| {
            let mut parts = string(volume).split(':');
            let mut next = || parts.next().expect("two parts").to_owned();
            (next(), next())
        })
        .collect()
}

#[test]
fn every_file_and_volume_that_is_mounted_is_there() {
    let secrets = Secrets::made();
    for file in FILES {
        let volumes = yaml(&format!("compose/{file}"))["volumes"].clone();
        for (name, service) in services(file) {
            for (from, _) in mounts(&service) {
                match from.strip_prefix("./secrets/") {
                    Some(secret) => assert!(!secrets.read(secret).is_empty()),
                    None if from.starts_with('.') => {
                        let there = path("compose").join(&from).exists();
                        assert!(there, "{file}, {name}: no {from}");
                    }
                    None => assert!(volumes.get(&from).is_some(), "{file}, {name}: no {from}"),
                }
            }
            for (other, _) in service["depends_on"].as_object().into_iter().flatten() {
                assert!(services(file).iter().any(|(name, _)| name == other));
            }
        }
    }
}

#[test]
fn the_service_takes_what_each_container_is_told() {
    let secrets = Secrets::made();
    let mut taken = 0;
    for file in FILES {
        for (name, service) in services(file) {
            if service["image"] != "weir:0.1.0" {
                continue;
            }
            let arguments: Vec<String> = list(&service["command"])
                .map(|argument| string(argument).to_owned())
                .collect();
            let mounted: Mounted = mounts(&service)
                .into_iter()
                .filter(|(from, _)| from.starts_with("./"))
                .map(|(from, to)| match from.strip_prefix("./secrets/") {
                    Some(secret) => (to, secrets.read(secret)),
                    None => (to, text(&format!("compose/{from}"))),
                })
                .collect();
            takes(&format!("{file}, {name}"), &arguments, &mounted);
            taken += 1;
        }
    }
    assert!(taken > 0);
    checks("compose/rules.yaml", &text("compose/rules.yaml"));
}

#[test]
fn a_secret_is_made_once_and_kept() {
    let secrets = Secrets::made();
    let before = secrets.read("tokens.yaml");
    let script = secrets.0.path().join("tokens.sh");
    let status = Command::new("sh").arg(script).status();
    assert!(status.is_ok_and(|status| status.success()));
    assert_eq!(secrets.read("tokens.yaml"), before);
    assert!(secrets.read("edge-token").starts_with("weir_"));
}
