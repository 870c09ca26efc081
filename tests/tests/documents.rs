//! What the documents tell people to type is taken as printed.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::process::Command;

use weir_tests::binaries;

fn document(path: &str) -> String {
    fs::read_to_string(binaries::workspace().join(path)).expect("the document is there")
}

#[test]
fn the_rule_file_of_the_readme_is_taken_as_printed() {
    let readme = document("README.md");
    let (_, rest) = readme.split_once("```yaml\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let file = folder.path().join("rules.yaml");
    fs::write(&file, example).expect("a file");
    let output = Command::new(binaries::weir())
        .args(["rules", "check"])
        .arg(&file)
        .output()
        .expect("weir runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("2 rules"), "{text}");
}

#[test]
fn every_make_target_that_a_document_names_is_there() {
    let makefile = document("Makefile");
    for path in ["README.md", "CONTRIBUTING.md", "deploy/README.md"] {
        let text = document(path);
        let named = text.match_indices("make ").filter_map(|(at, word)| {
            let (before, rest) = text.split_at(at);
            let typed = before.ends_with(['`', ' ']);
            let target = rest
                .strip_prefix(word)?
                .split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit()));
            let command = before.ends_with('`') || before.ends_with("\n    ");
            target.take(1).next().filter(|_| typed && command)
        });
        for target in named {
            assert!(
                makefile.contains(&format!("\n{target}:")),
                "{path} names `make {target}`"
            );
        }
    }
}
