//! The module that is shipped: how large it may be, what it may ask of a host and
//! be asked, and that the documented configuration loads it.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::process::Command;

use weir_tests::binaries;
use weir_tests::envoy::shipped_capabilities;
use weir_tests::wasm::Names;

/// The most the module may weigh, in bytes.
const SIZE_MAX: usize = 400 * 1024;

/// Exports that are no capabilities: Envoy reads them without calling.
const PLAIN_EXPORTS: [&str; 2] = ["memory", "proxy_abi_version_0_2_1"];

#[test]
fn the_module_is_small() {
    let size = module().len();
    assert!(size <= SIZE_MAX, "{size} bytes");
}

#[test]
fn the_module_imports_and_exports_only_what_the_example_configuration_grants() {
    let granted = shipped_capabilities();
    let module = module();
    let names = Names::of(&module);
    for (from, name) in &names.imports {
        assert!(
            ["env", "wasi_snapshot_preview1"].contains(&from.as_str()),
            "imports {from}.{name}"
        );
        assert!(granted.contains(name), "imports {from}.{name}");
    }
    for name in &names.exports {
        assert!(
            granted.contains(name) || PLAIN_EXPORTS.contains(&name.as_str()),
            "exports {name}"
        );
    }
    assert!(
        names
            .exports
            .iter()
            .any(|name| name == "proxy_on_request_headers"),
        "{names:?}"
    );
}

#[test]
fn nothing_is_granted_that_the_module_does_not_use() {
    let module = module();
    let names = Names::of(&module);
    let used = |name: &String| {
        names.exports.contains(name) || names.imports.iter().any(|(_, n)| n == name)
    };
    let unused: Vec<String> = shipped_capabilities()
        .into_iter()
        .filter(|name| !used(name))
        .collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn envoy_accepts_the_example_configuration() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let path = binaries::workspace().join("deploy/envoy/envoy.yaml");
    let documented = fs::read_to_string(path).expect("the example configuration is there");
    assert!(documented.contains("/etc/weir/weir_envoy.wasm"));
    let here = documented.replace(
        "/etc/weir/weir_envoy.wasm",
        &binaries::envoy_wasm().to_string_lossy(),
    );
    let file = folder.path().join("envoy.yaml");
    fs::write(&file, here).expect("a file");
    let output = Command::new(binaries::envoy())
        .args(["--mode", "validate", "-c"])
        .arg(&file)
        .output()
        .expect("Envoy runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn module() -> Vec<u8> {
    fs::read(binaries::envoy_wasm()).expect("the module is there")
}
