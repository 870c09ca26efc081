//! `cargo fuzz run import`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::import::run(data));
