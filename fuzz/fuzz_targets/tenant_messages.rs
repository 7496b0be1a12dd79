//! Messages of a tenant to the virtual switch of its slice.
#![no_main]

#[path = "../checks/tenant.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::tenant_messages(bytes));
