//! The lines that the README has for loading the component do what it says.

use std::fs;

use wasmtime::{Store, component::Linker};
use weir_component::rules::{alone, compiled, set};
use weir_component::wit::Limiter;
use weir_component::wit::weir::limiter::types::{Attempt, Settings};
use weir_tests::binaries::workspace;

/// What stands in the README between `bindgen!` and the end of the example.
fn printed() -> Vec<String> {
    let readme = fs::read_to_string(workspace().join("README.md")).expect("the README");
    let (_, rest) = readme
        .split_once("wasmtime::component::bindgen!")
        .expect("the example");
    let (lines, _) = rest.split_once("```").expect("its end");
    lines
        .lines()
        .skip(1)
        .map(|line| line.trim().to_owned())
        .collect()
}

#[test]
fn the_lines_of_the_readme_load_the_component_and_limit() -> wasmtime::Result<()> {
    let (engine, component) = weir_component::component().clone();
    let rules = compiled(&set(1, vec![alone(1)]));
    let now = weir_tests::wait::wall_us;
    let (random, hash_seeds) = (7, (1, 2, 3, 4));

    let mut store = Store::new(&engine, ());
    let weir = Limiter::instantiate(&mut store, &component, &Linker::new(&engine))?;
    let source = weir.weir_limiter_source();
    let settings = Settings {
        source: random,
        epoch: now(),
        hash_seeds,
        pop: None,
        keys_max: None,
        flush_interval_ms: None,
    };
    source
        .call_configure(&mut store, &settings)?
        .expect("settings");
    source.call_set_rules(&mut store, &rules)?.expect("rules");
    let key = source
        .call_counter_of(&mut store, "per-key", &[b"8fa3".to_vec()])?
        .expect("the rule");
    let answer = source.call_check_key(
        &mut store,
        key.rule,
        key.high,
        key.low,
        1,
        Attempt::First,
        now(),
    )?;

    assert_eq!(answer & 3, 1);
    let answer = source.call_check_key(
        &mut store,
        key.rule,
        key.high,
        key.low,
        1,
        Attempt::First,
        now(),
    )?;
    assert_eq!(answer & 3, 2);
    Ok(())
}

#[test]
fn the_readme_prints_what_the_test_above_does() {
    let packed = |text: &str| {
        text.split_whitespace()
            .collect::<String>()
            .replace(",}", "}")
            .replace(",)", ")")
    };
    let test = packed(include_str!("readme.rs"));
    let lines = printed();
    assert!(lines.len() > 8, "{lines:?}");
    // The component is loaded once for all tests, so these are spelled otherwise there.
    let elsewhere =
        |line: &str| line.starts_with("let engine =") || line.starts_with("let component =");
    for line in lines
        .iter()
        .filter(|line| !line.is_empty() && !elsewhere(line))
    {
        let code = line.split(" // ").next().unwrap_or(line);
        assert!(test.contains(&packed(code)), "{line}");
    }
}
