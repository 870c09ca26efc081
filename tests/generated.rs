//! The message types are what the published `.proto` says.
//!
//! They are checked in, so that building Weir needs no protobuf compiler. After
//! a change to the `.proto`, `WEIR_BLESS=1 cargo test -p weir-tests --test
//! generated` writes them anew.
#![allow(clippy::unwrap_used, reason = "a test says no by panicking")]

use std::{env, fs, path::Path};

const PROTO: &str = "limiter/proto/sync.proto";
const GENERATED: &str = "limiter/src/wire/generated.rs";

#[test]
fn the_message_types_are_what_the_proto_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let fresh = generate(&root.join(PROTO));
    let kept = root.join(GENERATED);
    if env::var_os("WEIR_BLESS").is_some() {
        fs::write(&kept, &fresh).unwrap();
    }
    let same = fs::read_to_string(&kept).unwrap() == fresh;
    assert!(
        same,
        "{GENERATED} is not what {PROTO} says; WEIR_BLESS=1 writes it anew"
    );
}

fn generate(proto: &Path) -> String {
    let out = tempfile::tempdir().unwrap();
    let files = protox::compile([proto], [proto.parent().unwrap()]).unwrap();
    prost_build::Config::new()
        .bytes(["."])
        .btree_map(["."])
        .out_dir(out.path())
        .compile_fds(files)
        .unwrap();
    fs::read_to_string(out.path().join("weir.sync.v1.rs")).unwrap()
}
