//! A run of OXM TLVs, and the same in OpenFlow 1.0.
#![no_main]

#[path = "../checks/openflow.rs"]
#[allow(dead_code, reason = "each target uses one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::oxm_match(bytes));
