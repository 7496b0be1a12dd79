//! The misbehaving app as a program of its own, for tests of a whole node.

use std::process::ExitCode;

fn main() -> ExitCode {
    burnet_sdk::run::<misbehaving::Misbehaving>()
}
