//! Hands what libFuzzer makes up to the check of the same name.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::certificate(bytes));
