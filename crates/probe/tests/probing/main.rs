//! Probes in virtual time, of switches whose truth is known.

mod delays;
mod models;
mod recovery;
mod tables;
mod toy;

use probe::virtual_time::{self, Ended, Subject};
use probe::{Finished, Options, Probe};
use profile::Profile;

/// Half an hour: a probe that does not end by then has failed.
const LIMIT_NS: u64 = 1_800_000_000_000;

fn options() -> Options {
    Options::simulated("toy", "2026-11-25")
}

/// Probes a switch.
fn probed(subject: &mut dyn Subject, options: Options) -> Ended {
    virtual_time::run(Probe::new(options), subject, LIMIT_NS).expect("the probe did not end")
}

/// Probes a switch, and expects a profile.
fn profile_of(subject: &mut dyn Subject) -> Profile {
    match probed(subject, options()).finished {
        Finished::Profile(profile) => *profile,
        Finished::Refused(why) => panic!("refused: {why}"),
    }
}

/// Probes a switch, and expects a refusal.
fn refusal_of(subject: &mut dyn Subject) -> String {
    match probed(subject, options()).finished {
        Finished::Profile(profile) => panic!("a profile: {profile:?}"),
        Finished::Refused(why) => why,
    }
}
