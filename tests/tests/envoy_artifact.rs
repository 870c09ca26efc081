//! The module that is shipped: how large it may be, what it may ask of a host and
//! be asked, and that the documented configuration loads it.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::process::Command;

use weir_tests::binaries;
use weir_tests::envoy::shipped_capabilities;

/// The most the module may weigh, in bytes.
const SIZE_MAX: usize = 400 * 1024;

/// Exports that are no capabilities: Envoy reads them without calling.
const PLAIN_EXPORTS: [&str; 2] = ["memory", "proxy_abi_version_0_2_1"];

#[test]
fn the_module_is_small() {
    let size = module().len();
    assert!(size <= SIZE_MAX, "{size} bytes");
}

#[test]
fn the_module_imports_and_exports_only_what_the_example_configuration_grants() {
    let granted = shipped_capabilities();
    let module = module();
    let names = Names::of(&module);
    for (from, name) in &names.imports {
        assert!(
            ["env", "wasi_snapshot_preview1"].contains(&from.as_str()),
            "imports {from}.{name}"
        );
        assert!(granted.contains(name), "imports {from}.{name}");
    }
    for name in &names.exports {
        assert!(
            granted.contains(name) || PLAIN_EXPORTS.contains(&name.as_str()),
            "exports {name}"
        );
    }
    assert!(
        names
            .exports
            .iter()
            .any(|name| name == "proxy_on_request_headers"),
        "{names:?}"
    );
}

#[test]
fn nothing_is_granted_that_the_module_does_not_use() {
    let module = module();
    let names = Names::of(&module);
    let used = |name: &String| {
        names.exports.contains(name) || names.imports.iter().any(|(_, n)| n == name)
    };
    let unused: Vec<String> = shipped_capabilities()
        .into_iter()
        .filter(|name| !used(name))
        .collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn envoy_accepts_the_example_configuration() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let path = binaries::workspace().join("deploy/envoy/envoy.yaml");
    let documented = fs::read_to_string(path).expect("the example configuration is there");
    assert!(documented.contains("/etc/weir/weir_envoy.wasm"));
    let here = documented.replace(
        "/etc/weir/weir_envoy.wasm",
        &binaries::envoy_wasm().to_string_lossy(),
    );
    let file = folder.path().join("envoy.yaml");
    fs::write(&file, here).expect("a file");
    let output = Command::new(binaries::envoy())
        .args(["--mode", "validate", "-c"])
        .arg(&file)
        .output()
        .expect("Envoy runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn module() -> Vec<u8> {
    fs::read(binaries::envoy_wasm()).expect("the module is there")
}

/// The names in a module's import and export sections.
#[derive(Debug, Default)]
struct Names {
    imports: Vec<(String, String)>,
    exports: Vec<String>,
}

impl Names {
    fn of(module: &[u8]) -> Self {
        let mut names = Self::default();
        let mut reader = Reader(module.get(8..).expect("a module has a header"));
        while let Some(id) = reader.byte() {
            let size = reader.number();
            let mut section = Reader(reader.bytes(size));
            match id {
                2 => names.imports = section.imports(),
                7 => names.exports = section.exports(),
                _ => {}
            }
        }
        names
    }
}

/// Reads the binary format, as far as names need it.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        bytes
    }

    /// An unsigned LEB128 number.
    fn number(&mut self) -> usize {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let byte = self.byte().expect("the module goes on");
            number |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        number
    }

    fn name(&mut self) -> String {
        let length = self.number();
        String::from_utf8_lossy(self.bytes(length)).into_owned()
    }

    /// Imports of functions; this module has no others.
    fn imports(&mut self) -> Vec<(String, String)> {
        (0..self.number())
            .map(|_| {
                let name = (self.name(), self.name());
                assert_eq!(self.byte(), Some(0), "{name:?} is no function");
                self.number();
                name
            })
            .collect()
    }

    fn exports(&mut self) -> Vec<String> {
        (0..self.number())
            .map(|_| {
                let name = self.name();
                self.byte();
                self.number();
                name
            })
            .collect()
    }
}
