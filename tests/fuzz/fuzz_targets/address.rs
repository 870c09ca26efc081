//! `cargo fuzz run address`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::address::run(data));
