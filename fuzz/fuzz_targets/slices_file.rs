//! Slices files.
#![no_main]

#[path = "../checks/slices.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::slices_file(bytes));
