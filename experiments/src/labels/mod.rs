//! The experiments of "The Price of Virtualization" that are rehearsed in virtual time, and further ones.
//!
//! ```text
//!   tenants, label service, agents on a fluid network (crate `rehearsal`) ──> rates, labels, moves ──> claims and a figure
//! ```
//!
//! The decisions are those that a node, a server and a tenant's controller run. The traffic is a model.

mod bed;
mod cost;
mod draws;
mod fig1;
mod fig2;
mod fig3;
mod fig4;
mod herd;
mod liars;
mod load;
mod packets;
mod paper;
mod privacy;
mod run;
mod scale;
mod scheduler;
mod setting;

use crate::paper::{Experiment, Paper};

/// The paper for the command line.
pub const PAPER: Paper = Paper {
    name: "labels",
    about: "The Price of Virtualization (2013): labels tell tenants what others leave of each link",
    source,
    experiments: &EXPERIMENTS,
    as_root: &AS_ROOT,
    with: &[],
    again: &[("fig3", fig3::again), ("fig4a", fig4::without_again), ("fig4b", fig4::with_again)],
};

/// An error means that the file with the numbers is malformed.
fn source() -> Result<String, String> {
    let paper = paper::paper()?;
    Ok(format!("The paper: {}. {}", paper.paper, paper.how))
}

/// Those with processes in namespaces.
const AS_ROOT: [&str; 4] = ["fig3", "fig4a", "fig4b", "fig4c"];

/// Measures a part of the experiments `fig3` or `cost` in this process.
///
/// # Errors
/// It is no number of slices, or something cannot be measured.
pub fn part(part: &str) -> Result<String, String> {
    match part {
        "fig3" => fig3::part(false),
        "fig3-short" => fig3::part(true),
        other => match other.split_once(':') {
            Some(("bare", address)) => fig3::bare_part(address),
            _ => cost::part(other),
        },
    }
}

const EXPERIMENTS: [Experiment; 11] = [
    Experiment {
        name: "fig1",
        about: "without labels: two flows collide, at 10 Gb/s",
        run: fig1::run_figure,
    },
    Experiment {
        name: "fig2",
        about: "with labels: rates and both tenants' labels at t1, t2, t3, at 10 Gb/s",
        run: fig2::run_figure,
    },
    Experiment {
        name: "fig3",
        about: "the five steps of a new flow, and how soon labels reach 99 other controllers",
        run: fig3::run_figure,
    },
    Experiment {
        name: "fig4a",
        about: "without labels: three TCP flows on Mininet, at 10 Mb/s",
        run: fig4::run_without,
    },
    Experiment { name: "fig4b", about: "with labels: the same", run: fig4::run_with },
    Experiment { name: "fig4c", about: "the sum of all flows with labels and without", run: fig4::run_sums },
    Experiment {
        name: "scale",
        about: "a fat tree of 8, 16 tenants, 80 % load: labels, random, hash, one scheduler",
        run: scale::run_all,
    },
    Experiment {
        name: "herd",
        about: "tenants that all learn of a free link, damped or not",
        run: herd::run_all,
    },
    Experiment { name: "liars", about: "a tenant with rules and without traffic", run: liars::run_all },
    Experiment {
        name: "privacy",
        about: "bits a second that one tenant learns of another, labels exact or coarse",
        run: privacy::run_all,
    },
    Experiment {
        name: "cost",
        about: "what slices cost: memory, labels at scale, throughput, latency, and tenants that misbehave",
        run: cost::run_all,
    },
];
