//! The document against the service: what it shows is asked, and what is there
//! stands in it.

use std::{fs, path::Path};

use aggregator::config::RulesFrom;
use serde_json::{Map, Value, json};

use crate::{
    common::client::{Response, get, send},
    server::Place,
};

/// The rule that the document's examples speak of.
const RULES: &str = "\
version: 1
domain: d
rules:
  - { name: per-key, key: [header.x-api-key], limit: 3, window: 1h, algorithm: fixed_window }
";

/// What depends on when it is asked, or is told in words alone.
const VARYING: [&str; 3] = ["reset_at", "retry_after", "detail"];

/// The methods that an operation can have.
const METHODS: [&str; 5] = ["get", "post", "put", "delete", "patch"];

struct Document(Value);

/// A path, a method, and what is said of them.
struct Operation<'a> {
    path: &'a str,
    method: String,
    said: &'a Value,
}

impl Document {
    fn read() -> Self {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json"));
        Self(serde_json::from_str(&text.unwrap()).unwrap())
    }

    fn paths(&self) -> &Map<String, Value> {
        self.0["paths"].as_object().unwrap()
    }

    /// In the order of their paths, so that a later example finds what an earlier
    /// one left.
    fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        self.paths().iter().flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().iter();
            let operations = methods.filter(|(name, _)| METHODS.contains(&name.as_str()));
            operations.map(move |(method, said)| Operation {
                path,
                method: method.to_uppercase(),
                said,
            })
        })
    }

    /// What is said of an answer, shared or not.
    fn response<'a>(&'a self, said: &'a Value) -> &'a Value {
        match said["$ref"].as_str() {
            Some(reference) => self.0.pointer(reference.trim_start_matches('#')).unwrap(),
            None => said,
        }
    }

    fn check(&self, schema: &Value, value: &Value, what: &str) {
        let mut whole = schema.clone();
        whole["components"] = self.0["components"].clone();
        let schema = jsonschema::validator_for(&whole).unwrap();
        if let Err(error) = schema.validate(value) {
            panic!("{what}: {error} in {value}");
        }
    }

    /// Holds an answer against what is said of its status.
    fn hold(&self, operation: &Operation<'_>, name: &str, answer: &Response) {
        let what = format!("{} {}, {name}", operation.method, operation.path);
        let told = &operation.said["responses"][answer.status.to_string()];
        assert!(told.is_object(), "{what}: {} is not in it", answer.status);
        let kind = answer.header("content-type").unwrap();
        let kind = kind.split(';').next().unwrap();
        let content = &self.response(told)["content"][kind];
        assert!(content.is_object(), "{what}: {kind} is not in it");
        if kind.ends_with("json") {
            self.check(&content["schema"], &answer.json(), &what);
        }
        if let Some(shown) = content["examples"].get(name) {
            let shown = &shown["value"];
            self.check(&content["schema"], shown, &format!("{what}, as shown"));
            assert_eq!(constant(answer.json()), constant(shown.clone()), "{what}");
        }
    }
}

/// An answer without what varies.
fn constant(mut answer: Value) -> Value {
    if let Some(members) = answer.as_object_mut() {
        for name in VARYING {
            if members.get(name).is_some_and(|value| !value.is_null()) {
                members.insert(name.to_owned(), json!("varies"));
            }
        }
    }
    answer
}

#[test]
fn every_example_in_the_document_is_answered_as_it_shows() {
    let mut place = Place::new();
    place.settings.rules_from = Some(RulesFrom::Api);
    place.write_rules(RULES);
    let server = place.start();
    let document = Document::read();
    let mut asked = 0;
    for operation in document.operations() {
        let body = &operation.said["requestBody"]["content"]["application/json"];
        for (name, example) in body["examples"].as_object().into_iter().flatten() {
            let bytes = example["value"].to_string();
            let answer = send(
                server.address,
                &operation.method,
                operation.path,
                bytes.as_bytes(),
            );
            if answer.status == 200 {
                document.check(&body["schema"], &example["value"], name);
            }
            document.hold(&operation, name, &answer);
            asked += 1;
        }
    }
    assert!(asked >= 18, "{asked}");
}

#[test]
fn every_operation_without_a_body_answers_as_the_document_says() {
    let place = Place::new();
    let server = place.start();
    let document = Document::read();
    for operation in document.operations() {
        let is_stream = operation.path.ends_with("/watch");
        if operation.said.get("requestBody").is_some() || is_stream {
            continue;
        }
        let path = operation.path.replace("{counter_id}", "a%20name");
        let path = path.replace("{revision}", "1");
        let answer = send(server.address, &operation.method, &path, b"");
        document.hold(&operation, "without a body", &answer);
    }
}

#[test]
fn what_the_service_understands_is_what_the_document_says() {
    let place = Place::new();
    let server = place.start();
    let document = Document::read();
    assert_eq!(
        get(server.address, "/v1/openapi.json").json(),
        document.0,
        "it serves another"
    );
    for (path, said) in document.paths() {
        let at = path.replace("{counter_id}", "a").replace("{revision}", "1");
        for method in METHODS {
            let known = said.get(method).is_some();
            if known {
                continue;
            }
            let answer = send(server.address, &method.to_uppercase(), &at, b"{}");
            let named_like_a_path = ["/v1/counter/increment", "/v1/counter/reset"];
            let is_a_counter = named_like_a_path.contains(&path.as_str());
            if is_a_counter && matches!(method, "get" | "delete") {
                continue;
            }
            assert_eq!(answer.status, 405, "{method} {path}");
        }
    }
    for route in routes() {
        assert!(
            document.paths().contains_key(&route),
            "{route} is not in the document"
        );
    }
}

/// Every path that the source routes.
fn routes() -> Vec<String> {
    let http = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/serve/http");
    let mut routes = Vec::new();
    for file in ["mod.rs", "counter/mod.rs", "rules/mod.rs"] {
        let text = fs::read_to_string(http.join(file)).unwrap();
        let found = text.split(".route(\"").skip(1);
        routes.extend(found.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    assert!(routes.len() >= 15, "{routes:?}");
    routes
}
