//! `weir serve` as a manifest runs it: its arguments, and the files that are mounted
//! for it, without being started.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use tempfile::TempDir;
use weir_tests::binaries;

/// Files by the path that the container sees.
pub(crate) type Mounted = BTreeMap<String, String>;

/// Runs `weir` with `--dry-run` on these files. Every path that is named for the
/// container is one of a temporary folder here; so what is not mounted is not there.
pub(crate) fn takes(what: &str, arguments: &[String], mounted: &Mounted) {
    let folder = TempDir::new().expect("a temporary folder");
    let root = folder.path().to_string_lossy().into_owned();
    let here = |text: &str| text.replace("/etc/weir", &format!("{root}/etc/weir"));
    for (path, content) in mounted {
        let file = folder.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, here(content)).expect("a file");
    }
    let output = Command::new(binaries::weir())
        .args(arguments.iter().map(|argument| here(argument)))
        .arg("--dry-run")
        .env_clear()
        .output()
        .expect("weir runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {said}");
}

/// Rules as `weir rules check` takes them.
pub(crate) fn checks(what: &str, rules: &str) {
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("rules.yaml");
    fs::write(&file, rules).expect("a file");
    let output = Command::new(binaries::weir())
        .args(["rules", "check"])
        .arg(&file)
        .output()
        .expect("weir runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{what}: {said}");
}

#[test]
#[should_panic(expected = "lissten")]
fn a_configuration_that_is_wrong_is_not_taken() {
    let file = "/etc/weir/weir.yaml".to_owned();
    let arguments = ["serve", "--config", &file].map(str::to_owned);
    takes(
        "a test",
        &arguments,
        &Mounted::from([(file, "lissten: 1\n".to_owned())]),
    );
}
