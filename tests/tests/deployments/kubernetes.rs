//! The manifests for Kubernetes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use weir_tests::aggregator::Aggregator;
use weir_tests::http;

use crate::files::{documents, list, string};
use crate::serve::{Mounted, checks, takes};

/// What each kind of region is told. Each goes with `weir.yaml`.
const CONFIGURATIONS: &[&str] = &["kubernetes/config-one-region.yaml"];

const SERVICE: &str = "kubernetes/weir.yaml";
const ENVOY: &str = "kubernetes/envoy.yaml";

fn all() -> Vec<(&'static str, Value)> {
    let files = CONFIGURATIONS.iter().copied().chain([SERVICE, ENVOY]);
    files
        .flat_map(|name| {
            documents(name)
                .into_iter()
                .map(move |document| (name, document))
        })
        .collect()
}

/// The document of this kind and name.
fn find(file: &str, kind: &str, name: &str) -> Value {
    let found = documents(file)
        .into_iter()
        .find(|one| one["kind"] == kind && one["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("deploy/{file} has no {kind} {name}"))
}

/// The pods that a file describes.
fn templates() -> Vec<Value> {
    let one = |(_, document): (&str, Value)| document["spec"].get("template").cloned();
    all().into_iter().filter_map(one).collect()
}

fn containers(template: &Value) -> impl Iterator<Item = &Value> {
    let spec = &template["spec"];
    list(&spec["initContainers"]).chain(list(&spec["containers"]))
}

#[test]
fn every_document_says_what_it_is_and_none_names_a_namespace() {
    for (file, document) in all() {
        for field in ["apiVersion", "kind"] {
            assert!(document[field].is_string(), "{file}: {field} is missing");
        }
        let metadata = &document["metadata"];
        assert!(metadata["name"].is_string(), "{file}: a name is missing");
        assert!(
            metadata.get("namespace").is_none(),
            "{file} has a namespace"
        );
    }
}

#[test]
fn what_selects_pods_finds_those_of_the_same_file() {
    for (file, document) in all() {
        let spec = &document["spec"];
        let selectors = [
            &spec["selector"]["matchLabels"],
            &spec["podSelector"]["matchLabels"],
        ];
        let plain = (document["kind"] == "Service").then_some(&spec["selector"]);
        for selector in selectors.into_iter().chain(plain) {
            let Some(wanted) = selector.as_object() else {
                continue;
            };
            let pods: Vec<Value> = documents(file)
                .into_iter()
                .map(|one| one["spec"]["template"]["metadata"]["labels"].clone())
                .collect();
            let fits = |pod: &Value| wanted.iter().all(|(key, value)| &pod[key] == value);
            assert!(pods.iter().any(fits), "{file}: nobody is {selector}");
        }
    }
}

#[test]
fn what_a_container_mounts_is_there() {
    let kinds = ["ConfigMap", "Secret"];
    for template in templates() {
        let spec = &template["spec"];
        let volumes: BTreeSet<&str> = list(&spec["volumes"])
            .map(|volume| string(&volume["name"]))
            .collect();
        for container in containers(&template) {
            for mount in list(&container["volumeMounts"]) {
                let name = string(&mount["name"]);
                let claimed = name == "data";
                assert!(claimed || volumes.contains(name), "no volume {name}");
            }
        }
    }
    for file in CONFIGURATIONS {
        let held = documents(file);
        assert!(held.iter().all(|one| kinds.contains(&string(&one["kind"]))));
        for (kind, name) in sources() {
            find(file, kind, &name);
        }
    }
}

/// The kinds and names of what the aggregator's pod has mounted.
fn sources() -> Vec<(&'static str, String)> {
    let pod = find(SERVICE, "StatefulSet", "weir")["spec"]["template"]["spec"].clone();
    let one = |volume: &Value| {
        let map = volume["configMap"]["name"]
            .as_str()
            .map(|name| ("ConfigMap", name));
        let secret = volume["secret"]["secretName"]
            .as_str()
            .map(|name| ("Secret", name));
        map.or(secret).map(|(kind, name)| (kind, name.to_owned()))
    };
    list(&pod["volumes"]).filter_map(one).collect()
}

/// Every file that the aggregator's container sees with this configuration.
fn mounted(file: &str) -> Mounted {
    let pod = find(SERVICE, "StatefulSet", "weir")["spec"]["template"]["spec"].clone();
    let mut files = BTreeMap::new();
    for mount in list(&pod["containers"][0]["volumeMounts"]) {
        let volume = list(&pod["volumes"]).find(|volume| volume["name"] == mount["name"]);
        let Some(volume) = volume else { continue };
        let data = match volume["configMap"]["name"].as_str() {
            Some(name) => find(file, "ConfigMap", name)["data"].clone(),
            None => {
                find(file, "Secret", string(&volume["secret"]["secretName"]))["stringData"].clone()
            }
        };
        for (name, content) in data.as_object().into_iter().flatten() {
            let path = format!("{}/{name}", string(&mount["mountPath"]));
            files.insert(path, string(content).to_owned());
        }
    }
    files
}

#[test]
fn the_service_takes_what_its_container_is_told() {
    let pod = find(SERVICE, "StatefulSet", "weir")["spec"]["template"]["spec"].clone();
    let arguments: Vec<String> = list(&pod["containers"][0]["args"])
        .map(|argument| string(argument).to_owned())
        .collect();
    for file in CONFIGURATIONS {
        let mounted = mounted(file);
        takes(file, &arguments, &mounted);
        for (path, content) in mounted
            .iter()
            .filter(|(path, _)| path.ends_with("/rules.yaml"))
        {
            checks(&format!("{file}, {path}"), content);
        }
    }
}

#[test]
fn a_pod_has_time_to_end_in_order() {
    let pod = find(SERVICE, "StatefulSet", "weir")["spec"]["template"]["spec"].clone();
    let grace = pod["terminationGracePeriodSeconds"]
        .as_u64()
        .expect("a number");
    for file in CONFIGURATIONS {
        let settings = mounted(file)
            .remove("/etc/weir/weir.yaml")
            .expect("settings");
        let ms = |name: &str| -> u64 {
            let line = settings.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.trim().parse().ok())
                .unwrap_or_else(|| panic!("{file} says no {name}"))
        };
        let drain = (ms("drain_delay_ms:") + ms("drain_timeout_ms:")) / 1000;
        assert!(
            drain + 10 <= grace,
            "{file}: {drain} s and a commit in {grace} s"
        );
    }
}

#[test]
fn probes_ask_paths_that_are_open_to_those_without_a_token_on_ports_that_there_are() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let tokens = folder.path().join("tokens.yaml");
    let held = &mounted(CONFIGURATIONS[0])["/etc/weir-tokens/tokens.yaml"];
    std::fs::write(&tokens, held).expect("a file");
    let tokens = tokens.to_string_lossy().into_owned();
    let rules = "version: 1\ndomain: a\nrules: [{ name: a, limit: 1, window: 1m }]\n";
    let aggregator = Aggregator::start_with(rules, &["--token-file", &tokens]);
    let pod = find(SERVICE, "StatefulSet", "weir")["spec"]["template"]["spec"].clone();
    let container = &pod["containers"][0];
    for probe in ["livenessProbe", "readinessProbe"] {
        let asks = &container[probe]["httpGet"];
        let named = list(&container["ports"]).any(|port| port["name"] == asks["port"]);
        assert!(named, "{probe} asks a port that is not there");
        let answer = http::send(aggregator.address(), &http::get(string(&asks["path"]), &[]));
        assert_eq!(answer.expect("an answer").status, 200, "{probe}");
    }
    let closed = http::send(aggregator.address(), &http::get("/metrics", &[]));
    assert_eq!(closed.expect("an answer").status, 401);
}

#[test]
fn no_container_is_root_or_may_become_it() {
    for template in templates() {
        let pod = &template["spec"]["securityContext"];
        assert_eq!(pod["runAsNonRoot"], true, "{template}");
        assert!(pod["runAsUser"].as_u64().is_some_and(|user| user > 0));
        for container in containers(&template) {
            let held = &container["securityContext"];
            assert_eq!(held["allowPrivilegeEscalation"], false, "{container}");
            assert_eq!(held["readOnlyRootFilesystem"], true, "{container}");
            assert_eq!(held["capabilities"]["drop"][0], "ALL", "{container}");
            assert!(container["resources"]["requests"]["memory"].is_string());
        }
    }
}
