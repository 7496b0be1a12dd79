//! The experiments of the switch-models paper (HotSDN 2013), and further ones.
//!
//! ```text
//!   profile ──> switch in virtual time with clients and a controller ──> delays ──> claims and a figure
//!          └──> the same switch under the probe ──> profile of an emulator ──┘
//! ```
//!
//! No hardware switch is at hand. The target is the software switch with a built-in profile.

mod controller;
mod curves;
mod delays;
mod dilation;
mod fig2;
mod fig3;
mod fig3_slow;
mod fig8;
mod found;
mod judged;
pub mod paced;
mod pacing;
mod packet_key;
mod paper;
mod players;
mod recovery;
mod scale;
mod table1;
pub mod testbed;
mod virtual_bed;
mod workloads;

use crate::paper::{Experiment, Paper};

/// The paper for the command line.
pub const PAPER: Paper = Paper {
    name: "models",
    about: "Switch models (HotSDN 2013): what OpenFlow switches of three vendors do, and when",
    source,
    experiments: &EXPERIMENTS,
    as_root: &AS_ROOT,
    with: &[("fig3", "fig3-slow")],
    again: &[],
};

/// An error means that the file with the numbers is malformed.
fn source() -> Result<String, String> {
    let paper = paper::paper()?;
    Ok(format!("The paper: {}. {}", paper.paper, paper.how))
}

/// Those with processes in namespaces.
const AS_ROOT: [&str; 6] =
    ["fig3-slow", "testbed-hp", "testbed-monaco", "testbed-quanta", "starved", "null-profile"];

const EXPERIMENTS: [Experiment; 18] = [
    Experiment {
        name: "table1",
        about: "table sizes and set-up rates, from outside",
        run: table1::run_table,
    },
    Experiment {
        name: "fig2",
        about: "completion times of queries for 64 bytes, over each switch",
        run: fig2::run_figure,
    },
    Experiment {
        name: "fig3",
        about: "throughput of queries for 5 MB, and full tables",
        run: fig3::run_figure,
    },
    Experiment {
        name: "fig3-slow",
        about: "figure 3 with Redis: Monaco seven times slower; needs root; `fig3` runs it too",
        run: fig3_slow::run_figure,
    },
    Experiment { name: "fig5", about: "HP: completion, ingress and egress", run: delays::fig5 },
    Experiment { name: "fig6", about: "Monaco: completion, ingress and egress", run: delays::fig6 },
    Experiment { name: "fig7", about: "Quanta: completion, ingress and egress", run: delays::fig7 },
    Experiment {
        name: "fig8",
        about: "QQ plots: both emulators beside their target, pools of five runs",
        run: fig8::run_figure,
    },
    Experiment {
        name: "workloads",
        about: "loads that the probe has not seen: Poisson arrivals and bursts",
        run: workloads::run_all,
    },
    Experiment {
        name: "recovery",
        about: "profiles from seeds that the probe must find, in virtual time",
        run: recovery::run_all,
    },
    Experiment {
        name: "pacing",
        about: "1,000 rules at once, which a node sends no faster than the switch takes them",
        run: pacing::run_all,
    },
    Experiment {
        name: "dilation",
        about: "a load that is too much in real time, ten times slower; in real time",
        run: dilation::run_all,
    },
    Experiment { name: "scale", about: "an hour of a hundred switches in virtual time", run: scale::run_all },
    Experiment {
        name: "testbed-hp",
        about: "figures 5 and 8 with processes, in real time; needs root",
        run: testbed::figures::hp,
    },
    Experiment {
        name: "testbed-monaco",
        about: "figures 6 and 8 with processes, in real time; needs root",
        run: testbed::figures::monaco,
    },
    Experiment {
        name: "testbed-quanta",
        about: "figures 7 and 8 with processes, in real time; needs root",
        run: testbed::figures::quanta,
    },
    Experiment {
        name: "starved",
        about: "what the meter of validity says beside busy loops; needs root",
        run: testbed::figures::starved,
    },
    Experiment {
        name: "null-profile",
        about: "what a proxy with the null profile adds to queries, in real time; needs root",
        run: testbed::null::round_trip,
    },
];
