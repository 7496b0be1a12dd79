//! The experiments of the Rosemary paper (CCS 2014, section 5), and further ones.
//!
//! Each experiment starts its own node and network, and ends them.

mod access;
mod crash;
mod interference;
mod limits;
mod memory;
mod paper;
mod recovery;
mod safe_mode;
mod table_budget;
mod throughput;
mod zone;

use crate::paper::{Experiment, Paper};

/// The paper for the command line.
pub const PAPER: Paper = Paper {
    name: "rosemary",
    about: "Rosemary (CCS 2014): apps that nobody has to trust",
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

const EXPERIMENTS: [Experiment; 14] = [
    Experiment {
        name: "fig16",
        about: "an app crashes; the firewall goes on blocking, and hosts reach each other",
        run: crash::run,
    },
    Experiment {
        name: "fig17",
        about: "an app leaks; its memory against time, with hard limits of 1.2 GB and 64 MB",
        run: memory::run,
    },
    Experiment { name: "fig18", about: "an app reads and changes data of other apps", run: access::run },
    Experiment { name: "fig19", about: "throughput by switches, at 1 Gb/s", run: throughput::fig19 },
    Experiment { name: "fig20", about: "throughput by threads, at 1 Gb/s", run: throughput::fig20 },
    Experiment {
        name: "fig21",
        about: "maximum throughput by the number of switches",
        run: throughput::fig21,
    },
    Experiment {
        name: "fig22",
        about: "maximum throughput by the number of threads",
        run: throughput::fig22,
    },
    Experiment {
        name: "price",
        about: "what the checks cost: a process zone with more and more of them beside a trusted app",
        run: throughput::price,
    },
    Experiment { name: "zone", about: "how long a zone takes to start, and its memory", run: zone::run },
    Experiment {
        name: "recovery",
        about: "how soon a killed app and a killed kernel are noticed and back",
        run: recovery::run,
    },
    Experiment {
        name: "safe-mode",
        about: "a kernel that ends again and again, and a trusted app that takes it down",
        run: safe_mode::run,
    },
    Experiment {
        name: "limits",
        about: "an app's limits of processor time, descriptors and threads",
        run: limits::run,
    },
    Experiment {
        name: "table-budget",
        about: "the 90 % rule: an app fills a switch's table",
        run: table_budget::run,
    },
    Experiment {
        name: "interference",
        about: "throughput of an innocent app while another does harm",
        run: interference::run,
    },
];
