//! Runs of the model of a switch.
#![no_main]

#[path = "../checks/model.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::model(bytes));
