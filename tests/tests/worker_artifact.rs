//! What is deployed: how large it may be, what the module may ask of its host, and
//! that the configuration at the top is taken.

use std::fs;
use std::process::Command;

use weir_tests::binaries;
use weir_tests::wasm::Names;
use weir_tests::workerd::copy_modules;

/// The most all of it may weigh, compressed, in KiB.
const KIB_MAX: f64 = 1024.0;

/// All that the module may ask for.
const IMPORTS: [&str; 7] = [
    "answer",
    "attribute",
    "header",
    "headers",
    "keep",
    "log",
    "peer",
];

#[test]
fn the_module_asks_for_nothing_but_what_is_written_down() {
    let module = fs::read(binaries::worker().join("weir.wasm")).expect("the module is there");
    let names = Names::of(&module);
    for (from, name) in &names.imports {
        assert!(
            from == "weir" && IMPORTS.contains(&name.as_str()),
            "imports {from}.{name}"
        );
    }
    let unused = IMPORTS
        .iter()
        .filter(|name| !names.imports.iter().any(|(_, used)| used == *name));
    assert_eq!(unused.count(), 0, "{names:?}");
}

#[test]
fn wrangler_takes_the_configuration_and_what_it_would_upload_is_small() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let path = binaries::workspace().join("wrangler.toml");
    let documented = fs::read_to_string(path).expect("the configuration is there");
    // What would be built is built already.
    let here = documented
        .replace("target/worker/main.js", "main.js")
        .replace("CARGO_TARGET_DIR=target make worker", "true");
    assert!(here.contains("main = \"main.js\"") && here.contains("command = \"true\""));
    fs::write(folder.path().join("wrangler.toml"), here).expect("a file");
    assert!(!copy_modules(folder.path()).is_empty());
    fs::write(folder.path().join("rules.bin"), [0; 128]).expect("a file");
    let output = Command::new(binaries::wrangler())
        .args(["deploy", "--dry-run"])
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .envs([
            ("CI", "1"),
            ("NO_COLOR", "1"),
            ("WRANGLER_SEND_METRICS", "false"),
            ("CLOUDFLARE_CF_FETCH_ENABLED", "false"),
        ])
        .output()
        .expect("wrangler runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, complaints) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}{complaints}");
    assert!(
        !said.contains("WARNING") && !complaints.contains("WARNING"),
        "{said}{complaints}"
    );
    assert!(said.contains("WEIR_OBJECTS (Region)"), "{said}");
    let size = said
        .split("gzip: ")
        .nth(1)
        .and_then(|rest| rest.split(" KiB").next());
    let size: f64 = size
        .and_then(|size| size.parse().ok())
        .expect("it says the size");
    eprintln!("{size} KiB compressed");
    assert!(size < KIB_MAX, "{size} KiB");
}
