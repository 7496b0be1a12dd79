//! The explanation of a packet's way: reads one switch after the other, and only those that the packet reaches.
//!
//! ```text
//!   a packet at a port ──question──> what flows reads from the switch ──take──> … ──response──> JSON
//! ```
//!
//! In: a packet, a snapshot of the view, and looks of the service `flows`. Out: the next question, and in the end the response. It asks nobody itself and reads
//! no clock. A switch that does not answer ends the way there, and the response says so.

mod names;
mod shown;

use crate::http::{Problem, Response};
use crate::steps::{self, Steps, Turn};
use burnet_sdk::DatapathId;
use burnet_sdk::view::{ConnectPoint, Snapshot};
use explain::{Bucket, GROUP_NONE, Group, GroupKind, Network, Packet, Rule, Tables, Way, trace};
use flow::canonical::{buckets_raw, read_actions};
use flow::{Field, PortNo};
use flows_contract::{Look, Question, SeenGroup};
use std::collections::BTreeMap;

/// The most switches that are read for one explanation. A flood reaches more; the rest of its way is left out, and the response says so.
pub const READS_MAX: usize = 64;

/// What is to be explained.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Where the packet enters the network.
    pub at: ConnectPoint,
    /// Where it should leave the network.
    pub to: Option<ConnectPoint>,
    /// The packet.
    pub packet: Packet,
}

/// What the switches and the service `flows` say of one switch.
#[derive(Debug)]
struct Read {
    at: ConnectPoint,
    packet: Packet,
    look: Look,
}

/// An explanation that is under way.
#[derive(Debug)]
pub struct Explaining {
    asked: Asked,
    view: Snapshot,
    /// The names of apps by the numbers of their zones.
    apps: BTreeMap<u16, String>,
    network: Network,
    reads: Vec<Read>,
    /// Switches that were not read, and why.
    unread: BTreeMap<DatapathId, String>,
    way: Way,
}

impl Explaining {
    /// Begins.
    pub fn new(asked: Asked, view: Snapshot, apps: BTreeMap<u16, String>) -> Explaining {
        let links = view.links().map(|link| (link.id.from, link.id.to)).collect();
        let network = Network::new(links);
        let mut explaining = Explaining {
            asked,
            view,
            apps,
            network,
            reads: Vec::new(),
            unread: BTreeMap::new(),
            way: Way::default(),
        };
        explaining.go_on();
        explaining
    }

    fn go_on(&mut self) {
        self.way = trace(&self.network, self.asked.at, self.asked.packet.clone());
    }

    /// What was read for a packet that arrives here.
    fn look(&self, at: ConnectPoint, packet: &Packet) -> Option<&Look> {
        let fits = |read: &&Read| read.at == at && read.packet.is_same_but_older(packet);
        self.reads.iter().find(fits).map(|read| &read.look)
    }
}

impl Steps for Explaining {
    fn question(&mut self) -> Option<steps::Question> {
        let need = self.way.needs.iter().find(|need| !self.unread.contains_key(&need.at.switch))?;
        let switch = need.at.switch;
        if self.reads.len() >= READS_MAX {
            self.unread.insert(switch, format!("{READS_MAX} switches were read already"));
            return None;
        }
        let packet = need.packet.to_match().with(Field::InPort, need.at.port);
        let payload = Question::Look { switch, packet }.to_bytes();
        Some(steps::Question { service: flows_contract::SERVICE, payload })
    }

    fn take(&mut self, status: u16, payload: &[u8]) {
        let unread = &self.unread;
        let Some(need) = self.way.needs.iter().find(|need| !unread.contains_key(&need.at.switch)).cloned()
        else {
            return;
        };
        match read_look(status, payload) {
            Err(why) => {
                self.unread.insert(need.at.switch, why);
            }
            Ok(look) => {
                let tables = tables(&look, &self.view);
                self.network.fill(&need, tables);
                self.reads.push(Read { at: need.at, packet: need.packet, look });
                self.go_on();
            }
        }
    }

    /// It holds what up to 64 switches have said.
    fn turn(&self) -> Turn {
        Turn::Few
    }

    fn stop(&mut self) {
        for need in &self.way.needs {
            let late = || "there was no time left to read it".to_owned();
            self.unread.entry(need.at.switch).or_insert_with(late);
        }
    }

    fn response(self: Box<Self>) -> Result<Response, Problem> {
        Ok(Response::value(&shown::shown(&self)))
    }
}

/// What the service `flows` has seen in a switch, or why not.
fn read_look(status: u16, payload: &[u8]) -> Result<Look, String> {
    match status {
        flows_contract::status::DONE => {
            serde_json::from_slice(payload).map_err(|why| format!("what was read is damaged: {why}"))
        }
        _ if payload.is_empty() => Err(format!("the service flows does not answer (status {status})")),
        _ => Err(String::from_utf8_lossy(payload).into_owned()),
    }
}

/// What a switch reports, as the tracer needs it. Whether a port is live, the view knows.
fn tables(look: &Look, view: &Snapshot) -> Tables {
    let rule = |rule: &flows_contract::SeenRule| Rule {
        table_id: rule.table_id,
        priority: rule.priority,
        matching: rule.matching.clone(),
        instructions: rule.instructions.clone(),
    };
    Tables {
        is_v10: look.is_v10,
        rules: look.rules.iter().map(rule).collect(),
        groups: look.groups.iter().filter_map(|it| Some((it.number, group(it)?))).collect(),
        meters: look.meters.iter().copied().collect(),
        ports: view.ports_of(look.switch).map(|port| (port.id.port, port.live)).collect(),
    }
}

/// A group. `None`: it is damaged, or of an unknown type.
fn group(seen: &SeenGroup) -> Option<Group> {
    let kind = match seen.group_type {
        0 => GroupKind::All,
        1 => GroupKind::Select,
        2 => GroupKind::Indirect,
        3 => GroupKind::FastFailover,
        _ => return None,
    };
    let bytes = bytes(&seen.buckets)?;
    let bucket = |raw: flow::canonical::RawBucket<'_>| {
        let actions = read_actions(raw.actions).ok()?;
        Some(Bucket { weight: raw.weight, watch_port: raw.watch_port, watch_group: raw.watch_group, actions })
    };
    let buckets = buckets_raw(&bytes).map(|raw| bucket(raw.ok()?)).collect::<Option<Vec<_>>>()?;
    Some(Group { kind, buckets })
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if digits.len() % 2 == 1 { None } else { digits.chunks(2).map(byte).collect() }
}

/// Whether a bucket watches something: for the words about it.
fn watched(bucket: &Bucket) -> Option<String> {
    match (bucket.watch_port, bucket.watch_group) {
        (PortNo::ANY, GROUP_NONE) => None,
        (PortNo::ANY, group) => Some(format!("group {group}")),
        (port, _) => Some(format!("port {port}")),
    }
}
