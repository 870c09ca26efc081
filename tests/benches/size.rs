//! How large the modules are, and what takes the room: their sections, and their
//! code by crate.
//!
//! A shipped module has no names any more, so the code is measured on the module
//! that cargo made, before binaryen; the shares are the same within a few points.

#![expect(
    clippy::expect_used,
    reason = "a bench that cannot measure ends at once"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use weir_tests::binaries::{envoy_wasm, target_dir, worker};

/// Aimed at. What Cloudflare takes is counted compressed.
const ENVOY_AIM: usize = 400 * 1024;
const WORKER_AIM: usize = 1024 * 1024;

fn main() {
    let built = |target: &str| target_dir().join(target).join("wasm/edge_filter.wasm");
    tell(
        "for Envoy",
        &envoy_wasm(),
        &built("wasm32-wasip1"),
        ENVOY_AIM,
    );
    let shipped = worker().join("weir.wasm");
    let built = built("wasm32-unknown-unknown");
    tell("for Cloudflare", &shipped, &built, WORKER_AIM);
}

fn tell(host: &str, shipped: &Path, built: &Path, aim: usize) {
    let shipped = fs::read(shipped).expect("the module is there");
    let built = fs::read(built).expect("the module that cargo made is there");
    println!(
        "\n{host}: {} bytes, {:.0} % of what is aimed at; before binaryen: {}",
        shipped.len(),
        shipped.len() as f64 * 100.0 / aim as f64,
        built.len()
    );
    println!("\nsections of the shipped module");
    for section in sections(&shipped) {
        println!("{:>9}  {}", section.content.len(), section.name);
    }
    println!("\ncode before binaryen, by crate, in bytes and functions");
    for (size, count, name) in by_crate(&built) {
        println!("{size:>9} {count:>6}  {name}");
    }
}

struct Section<'a> {
    id: u8,
    name: String,
    content: &'a [u8],
}

/// Reads numbers and slices off the front of a module.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<usize> {
        let mut value = 0_usize;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            value |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.bytes()?).into_owned())
    }
}

fn sections(module: &[u8]) -> Vec<Section<'_>> {
    let mut reader = Reader(module.get(8..).unwrap_or_default());
    let next = || {
        let id = reader.byte()?;
        let content = reader.bytes()?;
        let name = match id {
            0 => format!("custom: {}", Reader(content).text()?),
            1 => "types".to_owned(),
            2 => "imports".to_owned(),
            3 => "functions".to_owned(),
            4 => "tables".to_owned(),
            5 => "memory".to_owned(),
            6 => "globals".to_owned(),
            7 => "exports".to_owned(),
            9 => "elements".to_owned(),
            10 => "code".to_owned(),
            11 => "data".to_owned(),
            other => format!("section {other}"),
        };
        Some(Section { id, name, content })
    };
    std::iter::from_fn(next).collect()
}

/// Bytes of code and how many functions, for each crate, the largest first.
fn by_crate(module: &[u8]) -> Vec<(usize, usize, String)> {
    let sections = sections(module);
    let find = |id| sections.iter().find(|section| section.id == id);
    let names = sections
        .iter()
        .find(|section| section.name == "custom: name");
    let names = names.and_then(|section| names_of(section.content));
    let names = names.unwrap_or_default();
    let imports = find(2).and_then(|section| functions_imported(section.content));
    let sizes = find(10).and_then(|section| sizes_of(section.content));
    let mut sums: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (place, size) in sizes.unwrap_or_default().into_iter().enumerate() {
        let name = names.get(&(place + imports.unwrap_or(0)));
        let sum = sums.entry(crate_of(name.map_or("", String::as_str)));
        let (bytes, count) = sum.or_default();
        *bytes += size;
        *count += 1;
    }
    let mut sorted: Vec<_> = sums
        .into_iter()
        .map(|(name, (size, count))| (size, count, name))
        .collect();
    sorted.sort_unstable_by(|one, other| other.cmp(one));
    sorted
}

/// How many functions come from the host: they are numbered first.
fn functions_imported(content: &[u8]) -> Option<usize> {
    let mut reader = Reader(content);
    let mut functions = 0;
    for _ in 0..reader.number()? {
        let _module = reader.bytes()?;
        let _name = reader.bytes()?;
        if reader.byte()? != 0 {
            return None;
        }
        let _kind = reader.number()?;
        functions += 1;
    }
    Some(functions)
}

fn sizes_of(content: &[u8]) -> Option<Vec<usize>> {
    let mut reader = Reader(content);
    let count = reader.number()?;
    (0..count).map(|_| Some(reader.bytes()?.len())).collect()
}

/// The names of functions, by their numbers.
fn names_of(content: &[u8]) -> Option<BTreeMap<usize, String>> {
    let mut reader = Reader(content);
    let _name = reader.bytes()?;
    loop {
        let (kind, part) = (reader.byte()?, reader.bytes()?);
        if kind == 1 {
            let mut part = Reader(part);
            let count = part.number()?;
            return (0..count)
                .map(|_| Some((part.number()?, part.text()?)))
                .collect();
        }
    }
}

/// The crate in a function's name, mangled or not: of a trait's method, that of
/// the type it is implemented for.
fn crate_of(name: &str) -> String {
    let plain = name.trim_start_matches(['<', '&', '[', '*']);
    let plain = plain.strip_prefix("dyn ").unwrap_or(plain);
    if let Some((first, _)) = plain.split_once("::") {
        return first.to_owned();
    }
    if let Some(mangled) = name.strip_prefix("_ZN") {
        return legacy(mangled);
    }
    match name.strip_prefix("_R") {
        Some(mangled) => v0(mangled),
        None => "C, and what has no name".to_owned(),
    }
}

/// `_ZN7limiter4edge…`, or `_ZN85_$LT$limiter..wire…$u20$as$u20$…$GT$…`.
fn legacy(mangled: &str) -> String {
    let digits = mangled.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    let (length, rest) = mangled.split_at(digits);
    let part = rest.get(..length.parse().unwrap_or(0)).unwrap_or(rest);
    let part = part.trim_start_matches("_$LT$").trim_start_matches("$RF$");
    let first = part.split("..").next().unwrap_or(part);
    first.split('$').next().unwrap_or(first).to_owned()
}

/// `_RNvNtCs1234_7limiter4edge…`: the first crate named.
fn v0(mangled: &str) -> String {
    let after = mangled
        .split_once("Cs")
        .and_then(|(_, rest)| rest.split_once('_'));
    let Some((_, rest)) = after else {
        return "without a crate".to_owned();
    };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    let (length, rest) = rest.split_at(digits);
    rest.get(..length.parse().unwrap_or(0))
        .unwrap_or("?")
        .to_owned()
}
