//! The table of nftables that counts the bytes of each flow, as text for `nft -f -`.
//!
//! In: an interface, and the VNICs. Out: text. It runs nothing.
//!
//! Each slice has its own sets with counters, one for untagged frames and one for tagged ones, with an element for each pair of addresses. Only
//! frames from a VNIC of the slice to one of its VNICs on this server are counted. So forged addresses cannot fill a set, and what a slice
//! sends can fill only its own. Nothing is dropped: the policy is to accept.

use super::agents::Agents;
use super::device::Device;
use crate::meter::FLOWS_MAX;
use crate::vnic::{AgentId, Directory, SliceId, Vnic};
use std::collections::BTreeMap;

/// A counter without a frame for this long goes away. It is longer than a flow lives without a packet, and shorter than the meter remembers.
const TIMEOUT_S: u32 = 10;

/// The room of a set for each pair that it can have. An element that timed out stays until the kernel cleans up, beside its successor.
const ELEMENTS_PER_PAIR: usize = 2;

/// What is counted together: a slice, and whether its frames have a tag.
type Group = (SliceId, bool);

/// Those VNICs of a group that may send, and those on this server.
type Members<'a> = (Vec<&'a Vnic>, Vec<&'a Vnic>);

/// The groups with VNICs on this server.
fn groups(directory: &Directory, me: AgentId) -> BTreeMap<Group, Members<'_>> {
    let mut groups: BTreeMap<Group, Members<'_>> = BTreeMap::new();
    for vnic in directory.vnics() {
        let (senders, receivers) = groups.entry((vnic.slice, vnic.address.vlan.is_some())).or_default();
        senders.push(vnic);
        if vnic.agent == Some(me) {
            receivers.push(vnic);
        }
    }
    groups.retain(|_, (_, receivers)| !receivers.is_empty());
    groups
}

/// How names of a group begin, and end.
fn names((slice, is_tagged): Group) -> (&'static str, u32) {
    (if is_tagged { "tagged" } else { "untagged" }, slice.0)
}

/// The names of the sets with counters. The key of untagged frames is source and destination; that of tagged ones begins with the VLAN.
pub(super) fn sets(directory: &Directory, me: AgentId) -> Vec<String> {
    let name = |group: &Group| {
        let (kind, slice) = names(*group);
        format!("{kind}_{slice}")
    };
    groups(directory, me).keys().map(name).collect()
}

/// The commands that remove the table, whether it is there or not.
pub(super) fn removal(device: &Device) -> String {
    let table = device.table();
    format!("table netdev {table}\ndelete table netdev {table}\n")
}

/// The commands that replace the table by a new one.
pub(super) fn ruleset(device: &Device, directory: &Directory, me: AgentId, of_agents: &Agents) -> String {
    let table = device.table();
    let groups = groups(directory, me);
    // Equal shares, so that the sum is what the meter knows.
    let most = FLOWS_MAX / groups.len().max(1);
    let counting: String = groups.iter().map(|(group, members)| counting(*group, members, most)).collect();
    let verdicts = |is_tagged: bool| {
        let groups = groups.iter().filter(|((_, tagged), _)| *tagged == is_tagged);
        let verdict = |(group, (_, receivers)): (&Group, &Members<'_>)| {
            let (kind, slice) = names(*group);
            elements(receivers, &format!(" : goto {kind}_of_{slice}"))
        };
        groups.map(verdict).collect::<Vec<_>>().join(", ")
    };
    [
        removal(device),
        format!("table netdev {table} {{\n  comment \"burnet edge: removed when the agent ends\"\n"),
        counting,
        known("map", "receivers", "ether daddr : verdict", &verdicts(false)),
        known("map", "tagged_receivers", "vlan id . ether daddr : verdict", &verdicts(true)),
        "  chain of_tagged {\n    vlan id . ether daddr vmap @tagged_receivers\n  }\n".to_owned(),
        format!(
            "  chain arriving {{\n    type filter hook ingress device \"{device}\" priority -500; policy accept;\n    \
             ether type 8021q goto of_tagged\n{}    ether daddr vmap @receivers\n  }}\n}}\n",
            agents(of_agents)
        ),
    ]
    .concat()
}

/// The sets of a group and the chain that counts.
fn counting(group: Group, (senders, receivers): &Members<'_>, most: usize) -> String {
    let (kind, slice) = names(group);
    let tag = if group.1 { "vlan id . " } else { "" };
    let pairs = receivers.len().saturating_mul(senders.len().saturating_sub(1));
    let size = pairs.saturating_mul(ELEMENTS_PER_PAIR).clamp(1, most.max(1));
    let from = format!("{tag}ether saddr");
    let key = format!("{from} . ether daddr");
    [
        known("set", &format!("{kind}_senders_{slice}"), &from, &elements(senders, "")),
        format!(
            "  set {kind}_{slice} {{ typeof {key}; flags dynamic,timeout; timeout {TIMEOUT_S}s; size {size}; counter; }}\n"
        ),
        format!(
            "  chain {kind}_of_{slice} {{\n    {from} @{kind}_senders_{slice} update @{kind}_{slice} {{ {key} }}\n  }}\n"
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

fn known(what: &str, name: &str, key: &str, elements: &str) -> String {
    // nft does not accept an empty list.
    let list = if elements.is_empty() { String::new() } else { format!(" elements = {{ {elements} }};") };
    format!("  {what} {name} {{ typeof {key};{list} }}\n")
}

fn elements(vnics: &[&Vnic], verdict: &str) -> String {
    let element = |vnic: &&Vnic| match vnic.address.vlan {
        Some(vlan) => format!("{vlan} . {}{verdict}", vnic.address.mac),
        None => format!("{}{verdict}", vnic.address.mac),
    };
    vnics.iter().map(element).collect::<Vec<_>>().join(", ")
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

    fn vnic(id: u8, slice: u32, agent: u32, vlan: Option<u16>) -> Vnic {
        Vnic {
            id: VnicId(id.into()),
            slice: SliceId(slice),
            agent: Some(AgentId(agent)),
            address: Address { vlan, mac: MacAddr([2, 0, 0, 0, 0, id]) },
            guarantee_bps: 1,
            strict: false,
        }
    }

    #[test]
    fn only_known_vnics_are_counted_and_only_own_ones_as_receivers() {
        let vnics = [vnic(1, 1, 1, None), vnic(2, 1, 2, None), vnic(3, 1, 1, Some(7)), vnic(4, 2, 2, None)];
        let directory = Directory::new(vnics).unwrap();
        let text = ruleset(&Device::new("h1-eth0").unwrap(), &directory, AgentId(1), &no_agents());
        let has = |part: &str| assert!(text.contains(part), "{part} is not in {text}");
        has("table netdev burnet_edge_h1_2deth0\ndelete table netdev burnet_edge_h1_2deth0\n");
        has("goto of_tagged\n    ether daddr vmap @receivers\n");
        has(
            "set untagged_senders_1 { typeof ether saddr; elements = { 02:00:00:00:00:01, 02:00:00:00:00:02 }; }",
        );
        has(
            "map receivers { typeof ether daddr : verdict; elements = { 02:00:00:00:00:01 : goto untagged_of_1 }; }",
        );
        has("elements = { 7 . 02:00:00:00:00:03 : goto tagged_of_1 }; }");
        has("ether saddr @untagged_senders_1 update @untagged_1 { ether saddr . ether daddr }");
        assert!(!text.contains("_2 "), "slice 2 has no receiver here: {text}");
        assert_eq!(sets(&directory, AgentId(1)), ["untagged_1", "tagged_1"]);
        let nobody = ruleset(&Device::new("e").unwrap(), &Directory::default(), AgentId(1), &no_agents());
        assert!(nobody.contains("map receivers { typeof ether daddr : verdict; }"));
    }

    #[test]
    fn a_slice_fills_only_its_own_set_and_all_sets_together_have_the_bound() {
        let of = |slices: std::ops::RangeInclusive<u8>| {
            let two = |slice: u8| [1, 2].map(|part| vnic(slice * 2 + part, slice.into(), part.into(), None));
            Directory::new(slices.flat_map(two)).unwrap()
        };
        let sizes = |directory: &Directory| -> Vec<usize> {
            let text = ruleset(&Device::new("e").unwrap(), directory, AgentId(1), &no_agents());
            let size = |rest: &str| rest.split(';').next().unwrap().parse().unwrap();
            text.split("; size ").skip(1).map(size).collect()
        };
        assert_eq!(sizes(&of(1..=3)), [2, 2, 2], "one pair each");
        // 200 receivers here, and 20 more senders: more pairs than one of two slices may have.
        let large = (1..=220).map(|id| vnic(id, 1, if id <= 200 { 1 } else { 2 }, None));
        let small = [vnic(221, 2, 1, None), vnic(222, 2, 1, None)];
        assert_eq!(sizes(&Directory::new(large.chain(small)).unwrap()), [FLOWS_MAX / 2, 4]);
    }
}
