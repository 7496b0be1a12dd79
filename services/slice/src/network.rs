//! The network that the tenant of a slice sees, for the other parts of the node.
//!
//! In: the settings, and which switches and links are up. Out: a network, when it is due and differs from the last one. It publishes nothing.

use crate::settings::{EndSettings, SliceSettings};
use flow::{DatapathId, PortNo};
use slice_contract::{Network, NetworkLink, NetworkPort, NetworkSwitch};

/// How often a network may be published, in milliseconds.
const INTERVAL_MS: u64 = 1_000;

/// The network that was published last.
#[derive(Debug, Default)]
pub(crate) struct PublishedNetwork {
    last: Option<Network>,
    due_ms: u64,
}

impl PublishedNetwork {
    /// The network to publish now, if there is one.
    pub(crate) fn due(&mut self, now_ms: u64, network: impl FnOnce() -> Network) -> Option<&Network> {
        if now_ms < self.due_ms {
            return None;
        }
        self.due_ms = now_ms + INTERVAL_MS;
        let network = network();
        if self.last.as_ref() == Some(&network) {
            return None;
        }
        Some(self.last.insert(network))
    }
}

/// The network. The second argument says whether a switch is connected; the third, whether a link is up, by its place in the settings.
pub(crate) fn network(
    settings: &SliceSettings,
    is_switch_up: impl Fn(DatapathId) -> bool,
    is_link_up: impl Fn(usize) -> bool,
) -> Network {
    let switches = settings.switches.iter().map(|switch| NetworkSwitch {
        id: switch_id(switch.datapath),
        shown_as: switch_id(switch.shown_as),
        up: is_switch_up(switch.datapath),
        ports: switch
            .ports
            .iter()
            .map(|port| NetworkPort { port: port.port.0, shown_as: port.shown_as.0 })
            .collect(),
    });
    let point = |end: &EndSettings| {
        let port = physical_port(settings, end)?;
        Some(format!("{}/{}", switch_id(end.datapath), port.0))
    };
    let links = settings.links.iter().enumerate().filter_map(|(place, [from, to])| {
        Some(NetworkLink { id: format!("{}-{}", point(from)?, point(to)?), up: is_link_up(place) })
    });
    let vnics = settings.vnics.iter().filter_map(|(name, end)| Some((name.clone(), point(end)?)));
    Network {
        slice: settings.name.clone(),
        switches: switches.collect(),
        links: links.collect(),
        vnics: vnics.collect(),
        cut: false,
    }
}

/// A switch in the words of the network view.
fn switch_id(datapath: DatapathId) -> String {
    format!("of:{:016x}", datapath.0)
}

fn physical_port(settings: &SliceSettings, end: &EndSettings) -> Option<PortNo> {
    let switch = settings.switches.iter().find(|switch| switch.datapath == end.datapath)?;
    switch.ports.iter().find(|port| port.shown_as == end.shown_as).map(|port| port.port)
}
