//! The file in which a slice keeps what its tenant has made.
#![no_main]

#[path = "../checks/journal.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::slice_journal(bytes));
