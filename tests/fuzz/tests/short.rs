//! Every target on its corpus, and for a while on what is made of it.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use aggregator::rules::import::Source;
use oorandom::Rand64;
use weir_fuzz::mutate::mutate;
use weir_fuzz::{TARGETS, Target};

/// Inputs made for each target. `WEIR_FUZZ_INPUTS` says otherwise.
const INPUTS: u64 = 20_000;

fn house() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
}

/// The corpus of a target, and what other tests keep of its kind.
fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let read = |path: &Path| fs::read(path).expect("a file");
    let mut inputs: Vec<(String, Vec<u8>)> = Vec::new();
    for path in files(&house().join("tests/fuzz/corpus").join(name)) {
        inputs.push((path.display().to_string(), read(&path)));
    }
    let golden = house().join("tests/golden");
    if name == "rules" {
        for path in files(&golden.join("rules")) {
            inputs.push((path.display().to_string(), read(&path)));
        }
    }
    if name == "import" {
        for (number, source) in (b'0'..).zip(Source::ALL) {
            for path in files(&golden.join("import").join(source.name())) {
                let text = [&[number], &*read(&path)].concat();
                inputs.push((path.display().to_string(), text));
            }
        }
    }
    inputs
}

/// Runs a target; an input that makes it panic is kept and named.
fn run((name, target): Target, what: &str, input: &[u8]) {
    let ran = catch_unwind(AssertUnwindSafe(|| target(input)));
    if ran.is_err() {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-found"));
        fs::write(&kept, input).expect("the finding is kept");
        panic!("{name}: {what}, kept as {}", kept.display());
    }
}

#[test]
fn no_input_of_the_corpora_makes_a_reader_panic() {
    for target in TARGETS {
        let corpus = corpus(target.0);
        assert!(corpus.len() >= 5, "{} has a corpus", target.0);
        for (file, input) in corpus {
            run(target, &file, &input);
        }
    }
}

#[test]
fn no_input_made_of_them_does() {
    let wanted = std::env::var("WEIR_FUZZ_INPUTS").ok();
    let inputs = wanted.and_then(|text| text.parse().ok()).unwrap_or(INPUTS);
    for target in TARGETS {
        let corpus = corpus(target.0);
        let count = u64::try_from(corpus.len()).expect("a few");
        let mut random = Rand64::new(1);
        let mut any = || {
            let place = random.rand_range(0..count);
            let found = corpus.get(usize::try_from(place).expect("a few"));
            found.map_or(&[][..], |(_, input)| &**input)
        };
        let pairs: Vec<(&[u8], &[u8])> = (0..inputs).map(|_| (any(), any())).collect();
        for (number, (one, other)) in pairs.into_iter().enumerate() {
            let input = mutate(one, other, &mut random);
            run(target, &format!("input {number}"), &input);
        }
    }
}
