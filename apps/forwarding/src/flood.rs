//! Broadcasts, and packets to unknown hosts: out of every port at the edge of the network.
//!
//! ```text
//!   packet-in at the edge ──> [ seen at another port? ] ──> a packet-out in each switch, to its ports without a link
//! ```
//!
//! In: packets, the network view, the time. Out: packet-outs. It never sends into a known link. A link that is not known yet cannot cause a
//! storm: a frame that comes back at another port is dropped.

use burnet_sdk::view::{ConnectPoint, Port, Snapshot, SwitchState};
use burnet_sdk::{Commands, DatapathId, PacketIn, PortNo};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// How long a frame is remembered: longer than it can be under way in the network.
const REMEMBERED_MS: u64 = 2_000;

/// How many frames are remembered. At the bound, all are forgotten, so a loop that is not known sends some frames twice.
const FRAMES_MAX: usize = 16_384;

#[derive(Debug, Default)]
pub(crate) struct Flood {
    /// The ports at the edge, of each switch, until the topology changes.
    edge: Option<BTreeMap<DatapathId, Vec<PortNo>>>,
    /// Where a frame came in first, and when.
    frames: HashMap<u64, (ConnectPoint, u64)>,
    now_ms: u64,
}

impl Flood {
    pub(crate) fn on_tick(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.frames.retain(|_, (_, at_ms)| now_ms.saturating_sub(*at_ms) < REMEMBERED_MS);
    }

    /// The topology has changed.
    pub(crate) fn forget_edge(&mut self) {
        self.edge = None;
    }

    pub(crate) fn send(&mut self, packet: &PacketIn, view: &Snapshot, out: &mut Commands) {
        let from = ConnectPoint { switch: packet.datapath, port: packet.in_port };
        if view.has_link(from) || self.came_elsewhere(packet.data, from) {
            return;
        }
        for (switch, ports) in self.edge.get_or_insert_with(|| edge(view)) {
            let is_here = |port: PortNo| from == ConnectPoint { switch: *switch, port };
            let mut others = ports.iter().copied().filter(|port| !is_here(*port)).peekable();
            if others.peek().is_some() {
                let packet_out = out.packet_out(*switch).frame(packet.data);
                others.fold(packet_out, |packet_out, port| packet_out.output(port)).send();
            }
        }
    }

    /// Whether the frame was received at another port before: it has gone round.
    fn came_elsewhere(&mut self, data: &[u8], from: ConnectPoint) -> bool {
        let mut hasher = DefaultHasher::new();
        data.hash(&mut hasher);
        if self.frames.len() >= FRAMES_MAX {
            self.frames.clear();
        }
        let (first, _) = *self.frames.entry(hasher.finish()).or_insert((from, self.now_ms));
        first != from
    }
}

fn edge(view: &Snapshot) -> BTreeMap<DatapathId, Vec<PortNo>> {
    let is_edge = |port: &&Port| port.live && port.id.port < PortNo::MAX && !view.has_link(port.id);
    let up = view.switches().filter(|switch| switch.state == SwitchState::Up);
    up.map(|switch| (switch.id, view.ports_of(switch.id).filter(is_edge).map(|port| port.id.port).collect()))
        .collect()
}
