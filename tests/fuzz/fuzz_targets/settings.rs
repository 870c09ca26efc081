//! `cargo fuzz run settings`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::settings::run(data));
