//! What `deploy/` holds is right as far as that shows without a cluster: it parses, its
//! parts refer to each other, the service takes what it is told, and whatever an alert
//! or a panel asks for is there to be asked.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod alerts;
mod compose;
mod files;
mod kubernetes;
mod serve;

use weir_tests::binaries;

#[test]
fn images_are_built_with_the_tools_that_the_tests_have() {
    let dockerfile = files::text("Dockerfile");
    let makefile = std::fs::read_to_string(binaries::workspace().join("Makefile"));
    let makefile = makefile.expect("the Makefile is there");
    let version = |name: &str| {
        let line = makefile.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name}")).to_owned()
    };
    let binaryen = version("BINARYEN_VERSION := ");
    assert!(dockerfile.contains(&format!("binaryen@{binaryen}")));
    let envoy = version("ENVOY_VERSION := ");
    let image = format!("envoyproxy/envoy:v{envoy}");
    let compose = ["compose/one-region.yaml", "compose/three-regions.yaml"];
    for file in compose.into_iter().chain(["kubernetes/envoy.yaml"]) {
        assert!(
            files::text(file).contains(&image),
            "{file} runs another Envoy"
        );
    }
    let manifest = std::fs::read_to_string(binaries::workspace().join("Cargo.toml"));
    let manifest = manifest.expect("the manifest is there");
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    let version = version.expect("a version");
    for file in compose.into_iter().chain(["kubernetes/weir.yaml"]) {
        let image = format!("image: weir:{version}");
        assert!(
            files::text(file).contains(&image),
            "{file} runs another release"
        );
    }
    for stage in ["weir", "filter"] {
        assert!(
            dockerfile.contains(&format!(" AS {stage}\n")),
            "no stage {stage}"
        );
    }
}
