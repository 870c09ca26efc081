//! `cargo fuzz run path`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::path::run(data));
