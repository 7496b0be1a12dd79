//! The table of nftables that counts the bytes of each flow, as text for `nft -f -`.
//!
//! In: an interface, and the VNICs. Out: text. It runs nothing.
//!
//! Two sets with counters have an element for each pair of addresses: one for untagged frames, one for tagged ones. Only frames between known
//! VNICs are counted, so that forged addresses cannot fill a set. Nothing is dropped: the policy is to accept.

use super::agents::Agents;
use super::device::Device;
use crate::meter::FLOWS_MAX;
use crate::vnic::{AgentId, Directory, Vnic};

/// The set of untagged frames. Its key is source and destination.
pub(super) const UNTAGGED: &str = "untagged";

/// The set of tagged frames. Its key is VLAN, source and destination.
pub(super) const TAGGED: &str = "tagged";

/// A counter without a frame for this long goes away. It is longer than a flow lives without a packet, and shorter than the meter remembers.
const TIMEOUT_S: u32 = 10;

/// The commands that remove the table, whether it is there or not.
pub(super) fn removal(device: &Device) -> String {
    let table = device.table();
    format!("table netdev {table}\ndelete table netdev {table}\n")
}

/// The commands that replace the table by a new one.
pub(super) fn ruleset(device: &Device, directory: &Directory, me: AgentId, of_agents: &Agents) -> String {
    let table = device.table();
    let size = FLOWS_MAX;
    let sets = known(directory, me);
    let known: String = sets.iter().map(|(name, key, list)| known_set(name, key, list)).collect();
    let agents = agents(of_agents);
    let counting = |name: &str, key: &str| {
        format!(
            "  set {name} {{ typeof {key}; flags dynamic,timeout; timeout {TIMEOUT_S}s; size {size}; counter; }}\n"
        )
    };
    let untagged_key = "ether saddr . ether daddr";
    let tagged_key = "vlan id . ether saddr . ether daddr";
    [
        removal(device),
        format!("table netdev {table} {{\n  comment \"burnet edge: removed when the agent ends\"\n"),
        known,
        counting(UNTAGGED, untagged_key),
        counting(TAGGED, tagged_key),
        format!(
            "  chain of_tagged {{\n    vlan id . ether saddr @tagged_senders vlan id . ether daddr @tagged_receivers \
             update @{TAGGED} {{ {tagged_key} }}\n  }}\n"
        ),
        format!(
            "  chain arriving {{\n    type filter hook ingress device \"{device}\" priority -500; policy accept;\n    \
             ether type 8021q goto of_tagged\n{agents}    ether saddr @senders ether daddr @receivers \
             update @{UNTAGGED} {{ {untagged_key} }}\n  }}\n}}\n"
        ),
    ]
    .concat()
}

/// The rules that let datagrams of peers pass uncounted. The shaper has a class for them. If they counted, agents would tell each other the rates of
/// what they tell. All else that goes to the agent's port is counted: a tenant must not hide traffic behind the number of a port.
fn agents(agents: &Agents) -> String {
    let Some(mac) = agents.mac else { return String::new() };
    let port = agents.own.port();
    let rule = |(is_v6, ip): (bool, &str)| {
        let peers = agents.peers.iter().filter(|peer| peer.is_ipv6() == is_v6).map(ToString::to_string);
        let peers: Vec<String> = peers.collect();
        let own = agents.own_ip(is_v6).map(|own| format!(" {ip} daddr {own}")).unwrap_or_default();
        match peers.is_empty() || !agents.has_version(is_v6) {
            true => String::new(),
            false => format!(
                "    ether daddr {mac} {ip} saddr {{ {} }}{own} udp dport {port} return\n",
                peers.join(", ")
            ),
        }
    };
    [(false, "ip"), (true, "ip6")].map(rule).concat()
}

/// The commands that replace the known addresses in one step. The counters stay.
pub(super) fn new_addresses(device: &Device, directory: &Directory, me: AgentId) -> String {
    let table = device.table();
    let replace = |(name, _, list): (&str, &str, String)| {
        let flush = format!("flush set netdev {table} {name}\n");
        let add = format!("add element netdev {table} {name} {{ {list} }}\n");
        if list.is_empty() { flush } else { flush + &add }
    };
    known(directory, me).into_iter().map(replace).collect()
}

/// The sets of known addresses: name, key, and elements. All may send; only the VNICs of this server receive here.
fn known(directory: &Directory, me: AgentId) -> [(&'static str, &'static str, String); 4] {
    let of = |tagged: bool, mine: bool| {
        let vnics = directory.vnics().filter(move |vnic| vnic.address.vlan.is_some() == tagged);
        elements(vnics.filter(|vnic| !mine || vnic.agent == Some(me)))
    };
    [
        ("senders", "ether saddr", of(false, false)),
        ("receivers", "ether daddr", of(false, true)),
        ("tagged_senders", "vlan id . ether saddr", of(true, false)),
        ("tagged_receivers", "vlan id . ether daddr", of(true, true)),
    ]
}

fn known_set(name: &str, key: &str, elements: &str) -> String {
    // nft does not accept an empty list.
    let list = if elements.is_empty() { String::new() } else { format!(" elements = {{ {elements} }};") };
    format!("  set {name} {{ typeof {key};{list} }}\n")
}

fn elements<'a>(vnics: impl Iterator<Item = &'a Vnic>) -> String {
    let element = |vnic: &Vnic| match vnic.address.vlan {
        Some(vlan) => format!("{vlan} . {}", vnic.address.mac),
        None => vnic.address.mac.to_string(),
    };
    vnics.map(element).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vnic::{Address, SliceId, VnicId};
    use flow::MacAddr;

    fn no_agents() -> Agents {
        Agents::new(None, "0.0.0.0:6655".parse().unwrap(), &[])
    }

    #[test]
    fn only_datagrams_of_peers_to_the_interface_itself_are_not_counted() {
        let rules = |own: &str| {
            let peers = ["10.9.0.2:6655", "10.9.0.3:6656"].map(|peer| peer.parse().unwrap());
            agents(&Agents::new(Some(MacAddr([2, 0, 0, 0, 0, 9])), own.parse().unwrap(), &peers))
        };
        let start = "    ether daddr 02:00:00:00:00:09 ip saddr { 10.9.0.2, 10.9.0.3 }";
        assert_eq!(rules("0.0.0.0:6655"), format!("{start} udp dport 6655 return\n"));
        assert_eq!(rules("10.9.0.1:6655"), format!("{start} ip daddr 10.9.0.1 udp dport 6655 return\n"));
        assert_eq!(rules("[fd00::1]:6655"), "", "peers of the other version");
        assert_eq!(agents(&no_agents()), "");
    }

    #[test]
    fn only_known_vnics_are_counted_and_only_own_ones_as_receivers() {
        let vnic = |id: u8, agent, vlan| Vnic {
            id: VnicId(id.into()),
            slice: SliceId(1),
            agent: Some(AgentId(agent)),
            address: Address { vlan, mac: MacAddr([2, 0, 0, 0, 0, id]) },
            guarantee_bps: 1,
            strict: false,
        };
        let directory = Directory::new([vnic(1, 1, None), vnic(2, 2, None), vnic(3, 1, Some(7))]).unwrap();
        let text = ruleset(&Device::new("h1-eth0").unwrap(), &directory, AgentId(1), &no_agents());
        let has = |part: &str| assert!(text.contains(part), "{part} is not in {text}");
        has("table netdev burnet_edge_h1_2deth0\ndelete table netdev burnet_edge_h1_2deth0\n");
        has("goto of_tagged\n    ether saddr @senders");
        has("set senders { typeof ether saddr; elements = { 02:00:00:00:00:01, 02:00:00:00:00:02 }; }");
        has("set receivers { typeof ether daddr; elements = { 02:00:00:00:00:01 }; }");
        has("set tagged_senders { typeof vlan id . ether saddr; elements = { 7 . 02:00:00:00:00:03 }; }");
        assert_eq!(
            new_addresses(&Device::new("e").unwrap(), &directory, AgentId(2)),
            "flush set netdev burnet_edge_e senders\n\
             add element netdev burnet_edge_e senders { 02:00:00:00:00:01, 02:00:00:00:00:02 }\n\
             flush set netdev burnet_edge_e receivers\n\
             add element netdev burnet_edge_e receivers { 02:00:00:00:00:02 }\n\
             flush set netdev burnet_edge_e tagged_senders\n\
             add element netdev burnet_edge_e tagged_senders { 7 . 02:00:00:00:00:03 }\n\
             flush set netdev burnet_edge_e tagged_receivers\n"
        );
        let nobody = ruleset(&Device::new("e").unwrap(), &Directory::default(), AgentId(1), &no_agents());
        assert!(nobody.contains("set receivers { typeof ether daddr; }"));
    }
}
