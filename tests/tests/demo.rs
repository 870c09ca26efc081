//! The demo keeps its promises, and leaves nothing behind, however it ends.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use weir_tests::binaries;
use weir_tests::wait::{wait_for, wait_until};

/// The demo, with its files below `folder` and its words in `folder/said`.
fn start(folder: &Path) -> Child {
    let said = fs::File::create(folder.join("said")).expect("a file");
    Command::new(env!("CARGO_BIN_EXE_demo"))
        .env("WEIR_BIN", binaries::weir())
        .env("DEMO_SECONDS", "40")
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .stderr(said.try_clone().expect("the file twice"))
        .stdout(said)
        .spawn()
        .expect("the demo starts")
}

fn said(folder: &Path) -> String {
    fs::read_to_string(folder.join("said")).unwrap_or_default()
}

/// Nothing that was started still runs, and none of its files are left.
fn assert_clean(folder: &Path) {
    let mine = folder.to_string_lossy().into_owned();
    let running = fs::read_dir("/proc").into_iter().flatten().flatten();
    let left: Vec<String> = running
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(&mine))
        .collect();
    assert!(left.is_empty(), "still running: {left:?}");
    let names = fs::read_dir(folder).expect("the folder").flatten();
    let files: Vec<_> = names.map(|entry| entry.file_name()).collect();
    assert_eq!(files, ["said"]);
}

#[test]
fn the_demo_keeps_its_promises_on_a_narrow_terminal() {
    let folder = TempDir::new().expect("a temporary folder");
    let status = start(folder.path()).wait().expect("it ends");
    let said = said(folder.path());
    println!("{said}");
    assert_eq!(status.code(), Some(0));
    assert!(said.ends_with(" promises held\n"));
    let wide: Vec<&str> = said.lines().filter(|line| line.len() > 80).collect();
    assert!(wide.is_empty(), "{wide:?}");
    assert_clean(folder.path());
}

#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    let folder = TempDir::new().expect("a temporary folder");
    let mut demo = start(folder.path());
    wait_until("it is under way", || said(folder.path()).contains("  =\n"));
    let interrupt = Command::new("kill")
        .args(["-INT", &demo.id().to_string()])
        .status();
    assert!(interrupt.is_ok_and(|status| status.success()));
    let status = wait_for("it ends", || demo.try_wait().ok().flatten());
    assert_eq!(status.code(), Some(130));
    assert_clean(folder.path());
}
