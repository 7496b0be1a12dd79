//! How much memory slices take, and how much processor time of the kernel process a packet-in takes among few slices and among many.
//!
//! ```text
//!   a node with 2 slices, then one with 100 ──20 switches, a sink for all tenants──> memory of all its processes; packet-ins at a fixed rate
//! ```
//!
//! In: numbers. Out: bytes for each slice, and microseconds. Each slice has all four ports of all switches, and a tag.

use super::traffic::{Controller, PORTS, connected};
use crate::lab::Lab;
use crate::node::{Kind, Node};
use lab::processes::{processor_time, proportional_bytes, tree};
use load::{Load, Mode};
use serde::Serialize;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

const SWITCHES: u16 = 20;
/// Few slices, and many.
pub(super) const FEW: u16 = 2;
pub(super) const MANY: u16 = 100;
const PATIENCE: Duration = Duration::from_secs(60);
/// Packet-ins a second, at which processor time is read.
const RATE_PER_S: f64 = 20_000.0;

/// What a node with some slices takes.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Taken {
    pub slices: u16,
    /// Of all processes of the node: each shared page counts once.
    pub node_bytes: u64,
    /// Of the processes of each slice: the one in the sandbox, and those around it.
    pub each_bytes: Vec<u64>,
    /// Processor time of the kernel process for a packet-in of the last slice.
    pub kernel_us: f64,
}

impl Taken {
    /// Measures a node with this number of slices.
    ///
    /// # Errors
    /// It does not start, or a slice does not connect.
    pub(super) fn measure(lab: &Lab, slices: u16) -> Result<Taken, String> {
        let sink = Controller::Sink.start(lab, None)?;
        let sections: String = (1..=slices).map(|number| section(number, slices, sink.address)).collect();
        let node = Node::start(lab, Kind::Burnet, &format!("[node]\nlog = \"error\"\n{sections}"))?;
        let last = format!("slice.{}", name(slices));
        let address = node.wait(&[&last])?;
        let mut load = connected(address, SWITCHES, 1)?;
        wait_connected(&node, slices)?;
        let each_bytes = pids(&node)?.iter().map(|pid| proportional_bytes(&tree(*pid))).collect();
        let node_bytes = proportional_bytes(&tree(node.pid()));
        let kernel_us = kernel_us(&node, &mut load, lab.time(3.0, 0.5))?;
        Ok(Taken { slices, node_bytes, each_bytes, kernel_us })
    }
}

fn name(number: u16) -> String {
    format!("t{number:03}")
}

/// The last slice owns the ports, so that the load's packets are its own.
fn section(number: u16, slices: u16, controller: SocketAddr) -> String {
    let ports = (1..=SWITCHES).flat_map(|switch| {
        (1..=PORTS).map(move |port| (switch, if number == slices { port } else { port + PORTS }))
    });
    let ports = ports.map(|(switch, port)| format!("'s{switch}:{port}'")).collect::<Vec<_>>().join(", ");
    let key = if number == slices { "own_ports" } else { "ports" };
    format!(
        "[slice.{}]\ncontrollers = ['{controller}']\nisolation = 'vlan'\ntag = {number}\n{key} = [{ports}]\n",
        name(number)
    )
}

/// The first process of each slice. The slice runs in the last one below it.
fn pids(node: &Node) -> Result<Vec<u32>, String> {
    let apps = node.ask(&json!("apps"))?;
    let is_slice =
        |app: &&Value| app["status"]["app"].as_str().is_some_and(|name| name.starts_with("slice."));
    let all = apps["apps"].as_array().into_iter().flatten().filter(is_slice);
    Ok(all
        .filter_map(|app| app["status"]["pid"].as_u64())
        .filter_map(|pid| u32::try_from(pid).ok())
        .collect())
}

/// Waits until the processes of each slice are there, and it has told its tenant's controller about all switches.
fn wait_connected(node: &Node, slices: u16) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let there = pids(node)?;
        let sockets = |pid: &u32| lab::processes::descriptors(*pid);
        let is_connected = |pid: &u32| tree(*pid).iter().any(|it| sockets(it) > usize::from(SWITCHES));
        if there.len() == usize::from(slices) && there.iter().all(is_connected) {
            // The handshakes of the last connections.
            sleep(Duration::from_millis(500));
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            return Err(format!(
                "{} of {slices} slices are connected",
                there.iter().filter(|it| is_connected(it)).count()
            ));
        }
        sleep(Duration::from_millis(50));
    }
}

fn kernel_us(node: &Node, load: &mut Load, length: Duration) -> Result<f64, String> {
    let node_view = node.ask(&json!("node"))?;
    let pid = node_view["node"]["pid"].as_u64();
    let pid =
        pid.and_then(|pid| u32::try_from(pid).ok()).ok_or("the node does not say its kernel process")?;
    let before = processor_time(&[pid]);
    let report = load.round(Mode::AtMost(RATE_PER_S), length);
    let spent = processor_time(&[pid]).saturating_sub(before);
    Ok(spent.as_secs_f64() * 1e6 / report.sent.max(1) as f64)
}
