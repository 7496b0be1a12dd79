//! `burnet bench`: how fast a controller is, and how fast it could be on this machine.
//!
//! ```text
//!   southbound   this process: load::Load ──packet-ins──> a controller
//!   compare      both sides of a comparison, in turn
//!   services     two apps of its own: bench-caller ──queries, a stream──> bench-service
//!   suite        Burnet's own figures, by the others' means
//!   meter        emulated networks, in turn on an idle and on a starved machine
//!   profiles     many emulated switches with a profile, in real or in virtual time
//!   sink         this process: load::Sink, which answers at once
//! ```
//!
//! It measures and prints. It does not judge whether a figure is good enough.

pub mod args;
mod cbench;
mod compare;
mod figure;
mod flow_controller;
pub(crate) mod measurement;
mod meter;
mod overload;
mod profiles;
mod services;
mod sink;
mod southbound;
mod suite;
pub mod target;
mod watch;

use std::process::ExitCode;

use self::args::{BenchArgs, BenchCommand};
use burnet::cli::CommandError;

/// Carries out `burnet bench`.
pub fn bench(args: &BenchArgs) -> Result<ExitCode, CommandError> {
    node::descriptors::take_what_is_allowed();
    match &args.command {
        BenchCommand::Southbound(args) => southbound::southbound(args),
        BenchCommand::Compare(args) => compare::compare(args),
        BenchCommand::Services(args) => services::services(args),
        BenchCommand::Suite(args) => suite::suite(args),
        BenchCommand::Meter(args) => meter::meter(args),
        BenchCommand::Profiles(args) => profiles::profiles(args),
        BenchCommand::Sink(args) => sink::sink(args),
    }
}
