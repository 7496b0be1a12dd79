//! The one binary.

#[allow(dead_code, reason = "the command line that calls it is not written yet")]
mod ofp;

fn main() {}
