//! `cargo fuzz run rules`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::rules::run(data));
