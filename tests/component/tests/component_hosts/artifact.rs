//! The components that are shipped: how large they may be, and what they ask of a host.

use std::fs;

use weir_tests::binaries;

/// The most that each may weigh, in bytes.
const LIMITER_MAX: u64 = 420 * 1024;
const MIDDLEWARE_MAX: u64 = 600 * 1024;

/// All that the middleware may ask for: what `wit/middleware/middleware.wit` names, and
/// types that those use.
const MIDDLEWARE_IMPORTS: [&str; 8] = [
    "wasi:cli/environment@0.3.0",
    "wasi:clocks/monotonic-clock@0.3.0",
    "wasi:clocks/system-clock@0.3.0",
    "wasi:clocks/types@0.3.0",
    "wasi:http/client@0.3.0",
    "wasi:http/handler@0.3.0",
    "wasi:http/types@0.3.0",
    "wasi:random/random@0.3.0",
];

#[test]
fn the_components_are_small() {
    for (path, most) in [
        (binaries::limiter_component(), LIMITER_MAX),
        (binaries::middleware_component(), MIDDLEWARE_MAX),
    ] {
        let size = fs::metadata(&path).expect("it is there").len();
        assert!(size <= most, "{}: {size} bytes", path.display());
    }
}

#[test]
fn the_middleware_asks_for_what_its_world_names_and_is_a_handler() {
    let (engine, component) = crate::site::component();
    let shape = component.component_type();
    let mut imports: Vec<&str> = shape.imports(engine).map(|(name, _)| name).collect();
    imports.sort_unstable();
    assert_eq!(imports, MIDDLEWARE_IMPORTS);
    let world = include_str!("../../../../wit/middleware/middleware.wit");
    for name in imports.iter().filter(|name| !name.contains("/types@")) {
        assert!(world.contains(&format!("import {name};")), "{name}");
    }
    let exports: Vec<&str> = shape.exports(engine).map(|(name, _)| name).collect();
    assert_eq!(exports, ["wasi:http/handler@0.3.0"]);
}

/// Not even WASI: what Rust's library would ask for of files, clocks and streams is
/// nothing that a limiter needs.
#[test]
fn the_component_asks_a_host_for_nothing_and_has_one_interface() {
    let (engine, component) = weir_component::component();
    let shape = component.component_type();
    // Types that the interface uses are imported, too, as far as an import goes: no
    // function is among them.
    let imports: Vec<&str> = shape.imports(engine).map(|(name, _)| name).collect();
    assert!(
        imports
            .iter()
            .all(|name| *name == "weir:limiter/types@0.1.0"),
        "{imports:?}"
    );
    let exports: Vec<&str> = shape.exports(engine).map(|(name, _)| name).collect();
    assert_eq!(exports, ["weir:limiter/source@0.1.0"]);
}
