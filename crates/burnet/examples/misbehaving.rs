//! The misbehaving app as a separate program, for tests of a whole node.

use std::process::ExitCode;

fn main() -> ExitCode {
    burnet_sdk::run::<misbehaving::Misbehaving>()
}
