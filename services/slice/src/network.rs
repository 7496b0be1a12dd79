//! The network that the tenant of a slice sees, for the other parts of the node.
//!
//! In: the settings, and which switches and links are up. Out: a network. It publishes nothing.

use crate::settings::{EndSettings, SliceSettings};
use flow::{DatapathId, PortNo};
use paths_contract::Lack;
use slice_contract::{Network, NetworkLink, NetworkPort, NetworkSwitch};
use view::{ConnectPoint, LinkId};

/// How often a network may be published, in milliseconds.
pub(crate) const INTERVAL_MS: u64 = 1_000;

/// The network. The second argument says whether a switch is connected; the others, whether a link is up and what its way lacks, by its place in the
/// settings.
pub(crate) fn network(
    settings: &SliceSettings,
    is_switch_up: impl Fn(DatapathId) -> bool,
    is_link_up: impl Fn(usize) -> bool,
    lack: impl Fn(usize) -> Option<Lack>,
) -> Network {
    let switches = settings.switches.iter().map(|switch| NetworkSwitch {
        id: switch.datapath.to_string(),
        shown_as: switch.shown_as.to_string(),
        up: is_switch_up(switch.datapath),
        ports: switch
            .ports
            .iter()
            .map(|port| NetworkPort { port: port.port.0, shown_as: port.shown_as.0 })
            .collect(),
    });
    let point =
        |end: &EndSettings| Some(ConnectPoint { switch: end.datapath, port: physical_port(settings, end)? });
    let links = settings.links.iter().enumerate().filter_map(|(place, [from, to])| {
        let id = LinkId { from: point(from)?, to: point(to)? };
        let does_not_fit = lack(place).map(|lack| lack.text(&lack.hop.to_string()));
        Some(NetworkLink { id: id.to_string(), up: is_link_up(place), does_not_fit })
    });
    let vnics = settings.vnics.iter().filter_map(|(name, end)| Some((name.clone(), point(end)?.to_string())));
    Network {
        slice: settings.name.clone(),
        switches: switches.collect(),
        links: links.collect(),
        vnics: vnics.collect(),
        cut: false,
    }
}

fn physical_port(settings: &SliceSettings, end: &EndSettings) -> Option<PortNo> {
    let switch = settings.switches.iter().find(|switch| switch.datapath == end.datapath)?;
    switch.ports.iter().find(|port| port.shown_as == end.shown_as).map(|port| port.port)
}
