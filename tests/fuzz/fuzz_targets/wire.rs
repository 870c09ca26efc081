//! `cargo fuzz run wire`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::wire::run(data));
