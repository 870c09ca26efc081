//! The component that is shipped: how large it may be, and what it asks of a host.

use std::fs;

use weir_tests::binaries;

/// The most that it may weigh, in bytes.
const SIZE_MAX: usize = 420 * 1024;

#[test]
fn the_component_is_small() {
    let size = fs::metadata(binaries::limiter_component())
        .expect("it is there")
        .len();
    assert!(size <= SIZE_MAX as u64, "{size} bytes");
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
