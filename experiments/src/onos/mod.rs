//! The experiments of the ONOS paper (HotSDN 2014, section 3), and further ones.
//!
//! ```text
//!   experiment ──> a node with the services of the network view, and the probe in it ──> claims and a figure
//!              ──> emulated switches in this process
//!              ──> engines of the services in this process, for what needs no node
//! ```
//!
//! Each experiment starts its own node and network, and ends them.

mod arrivals;
mod bed;
mod clock;
pub(crate) mod cores;
mod discovered;
mod engines;
mod failover;
mod flows;
mod generic_graph;
mod http_client;
mod install;
mod notification;
mod paper;
mod planner;
pub mod probe;
mod protocol;
mod reroute;
mod rest;
mod rest_load;
mod rest_streams;
mod scale;
pub mod scale_part;
mod state_change;
mod wan;

use crate::paper::{Experiment, Paper};

/// The paper for the command line.
pub const PAPER: Paper = Paper {
    name: "onos",
    about: "ONOS (HotSDN 2014): the global network view, paths and intents",
    source,
    experiments: &EXPERIMENTS,
    as_root: &[],
    with: &[],
    again: &[],
};

/// An error means that the file with the numbers is malformed.
fn source() -> Result<String, String> {
    let paper = paper::paper()?;
    Ok(format!("The paper: {}. {}", paper.paper, paper.how))
}

const EXPERIMENTS: [Experiment; 8] = [
    Experiment { name: "table1", about: "a switch and a link are added to the view", run: state_change::run },
    Experiment { name: "table2", about: "an interface goes down, and 1,000 flows move", run: reroute::run },
    Experiment { name: "table3", about: "1,000 paths of six switches are added", run: install::run },
    Experiment {
        name: "notification",
        about: "an app that follows the view, and one that polls",
        run: notification::run,
    },
    Experiment {
        name: "failover",
        about: "what hosts lose when a link of their path fails",
        run: failover::run,
    },
    Experiment {
        name: "discovery",
        about: "how soon 414 links are found, and a failed one is noticed",
        run: discovered::run,
    },
    Experiment {
        name: "scale",
        about: "memory of each object, and the cost of a change among many",
        run: scale::run,
    },
    Experiment {
        name: "rest",
        about: "reads, single intents and a thousand clients of the stream over REST",
        run: rest::run,
    },
];
