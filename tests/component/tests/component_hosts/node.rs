//! The component in node: a script that asks for what the interface promises.

use std::fs;
use std::process::{Command, Output};

use weir_component::Instance;
use weir_component::rules::{alone, compiled, set};
use weir_tests::binaries;

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn node_finds_every_promise_of_the_interface_kept() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let module = folder.path().join("module");
    let output = Command::new(binaries::jco())
        .arg("transpile")
        .arg(binaries::limiter_component())
        .args(["--name", "weir", "-o"])
        .arg(&module)
        .output()
        .expect("jco runs");
    assert!(output.status.success(), "{}", said(&output));
    // It is a module, as node tells one from a script.
    fs::write(module.join("package.json"), r#"{"type": "module"}"#).expect("a file");
    let rules = compiled(&set(1, vec![alone(3)]));
    let file = folder.path().join("rules.bin");
    fs::write(&file, &rules).expect("a file");
    let mut instance = Instance::start(1);
    assert_eq!(instance.set_rules(&rules), Ok(1));
    let counter = instance.counter_of("per-key", &["a"]).expect("a counter");
    let script = binaries::workspace().join("tests/component/node/conformance.mjs");
    let output = Command::new("node")
        .arg(script)
        .arg(module.join("weir.js"))
        .arg(file)
        .arg(format!(
            "{:016x}{:016x}{:016x}",
            counter.rule, counter.high, counter.low
        ))
        .output()
        .expect("node runs");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output).trim(), "conforms");
}
