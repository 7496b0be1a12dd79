//! The networks of the settings: which ports are in which network, tagged or not.
//!
//! ```text
//!   [[networks]] vlan, tagged, untagged ──> of each port: the network of a frame with this tag, or none
//! ```
//!
//! In: settings. Out: checked memberships, or a sentence that names the contradiction. It sees no frame.

use burnet_sdk::{DatapathId, PortNo};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use view::ConnectPoint;

/// The most memberships of ports in networks. With more the app refuses to start: each is two rules.
pub const MEMBERSHIPS_MAX: usize = 4_096;

/// A network as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    vlan: u16,
    #[serde(default)]
    tagged: Vec<ConnectPoint>,
    #[serde(default)]
    untagged: Vec<ConnectPoint>,
}

/// The members of one network at one switch: the ports, and whether their frames have a tag.
pub type Members = BTreeMap<PortNo, Tag>;

/// Whether the frames of a network have a tag at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// They have.
    Tagged,
    /// They have none.
    Untagged,
}

/// The networks of all switches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(BTreeMap<DatapathId, BTreeMap<u16, Members>>);

impl Networks {
    /// Reads and checks the settings.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn read(written: Vec<Written>) -> Result<Networks, String> {
        let (mut networks, mut access) = (Networks::default(), BTreeMap::new());
        let (mut vlans, mut count) = (BTreeSet::new(), 0);
        for Written { vlan, tagged, untagged } in written {
            if !(1..=4094).contains(&vlan) {
                return Err(format!("networks: vlan = {vlan}: write 1 to 4094"));
            }
            if !vlans.insert(vlan) {
                return Err(format!("networks: two have the VLAN {vlan}"));
            }
            for at in &untagged {
                if let Some(other) = access.insert(*at, vlan) {
                    return Err(format!("networks: {at} is untagged in VLAN {other} and in VLAN {vlan}"));
                }
            }
            count += tagged.len() + untagged.len();
            let of = |ports: Vec<ConnectPoint>, tag| ports.into_iter().map(move |at| (at, tag));
            for (at, tag) in of(tagged, Tag::Tagged).chain(of(untagged, Tag::Untagged)) {
                networks.add(at, vlan, tag)?;
            }
        }
        match count <= MEMBERSHIPS_MAX {
            true => Ok(networks),
            false => Err(format!("networks: {count} ports are in them; at most {MEMBERSHIPS_MAX} can be")),
        }
    }

    fn add(&mut self, at: ConnectPoint, vlan: u16, tag: Tag) -> Result<(), String> {
        if at.port >= PortNo(0xffff_ff00) || at.port == PortNo(0) {
            return Err(format!("networks: {at} is no port that can be in a network"));
        }
        let members = self.0.entry(at.switch).or_default().entry(vlan).or_default();
        match members.insert(at.port, tag) {
            None => Ok(()),
            Some(_) => Err(format!("networks: {at} is twice in VLAN {vlan}")),
        }
    }

    /// The networks of a switch, by their VLAN.
    pub fn of_switch(&self, switch: DatapathId) -> impl Iterator<Item = (u16, &Members)> {
        self.0.get(&switch).into_iter().flatten().map(|(vlan, members)| (*vlan, members))
    }

    /// The ports of a switch that are in a network.
    pub fn ports_of(&self, switch: DatapathId) -> BTreeSet<PortNo> {
        self.of_switch(switch).flat_map(|(_, members)| members.keys().copied()).collect()
    }

    /// The network of a frame that came in at a port with this tag. `None`: it is in no network, and is dropped.
    pub fn network_of(&self, switch: DatapathId, port: PortNo, tag: Option<u16>) -> Option<(u16, &Members)> {
        let wanted = if tag.is_some() { Tag::Tagged } else { Tag::Untagged };
        let is_it = |(vlan, members): &(u16, &Members)| {
            members.get(&port) == Some(&wanted) && tag.is_none_or(|tag| tag == *vlan)
        };
        self.of_switch(switch).find(is_it)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn networks(text: &str) -> Result<Networks, String> {
        let settings =
            burnet_sdk::Settings::from_json(format!("{{\"networks\": {text}}}").as_bytes()).unwrap();
        #[derive(Deserialize)]
        struct All {
            networks: Vec<Written>,
        }
        settings.read::<All>().and_then(|all| Networks::read(all.networks))
    }

    #[test]
    fn contradictions_are_refused_with_the_port_and_the_networks() {
        let check = |text: &str, part: &str| {
            let why = networks(text).unwrap_err();
            assert!(why.contains(part), "{why}");
        };
        check(r#"[{"vlan": 0}]"#, "vlan = 0: write 1 to 4094");
        check(r#"[{"vlan": 4095}]"#, "vlan = 4095");
        check(r#"[{"vlan": 5}, {"vlan": 5}]"#, "two have the VLAN 5");
        check(r#"[{"vlan": 5, "ports": []}]"#, "unknown field `ports`");
        check(r#"[{"vlan": 5, "tagged": ["1"]}]"#, "is no connect point");
        check(
            r#"[{"vlan": 5, "untagged": ["1/1"]}, {"vlan": 6, "untagged": ["1/1"]}]"#,
            "of:0000000000000001/1 is untagged in VLAN 5 and in VLAN 6",
        );
        check(r#"[{"vlan": 5, "untagged": ["1/1"], "tagged": ["1/1"]}]"#, "is twice in VLAN 5");
        check(r#"[{"vlan": 5, "tagged": ["1/4294967294"]}]"#, "is no port that can be in a network");
    }

    proptest! {
        /// A frame is in a network exactly if the settings say so of its port and its tag.
        #[test]
        fn a_frame_is_in_the_network_that_the_settings_say(
            ports in proptest::collection::btree_map((1..4_u16, 1..5_u32), any::<bool>(), 0..8),
            port in 1..5_u32,
            tag in proptest::option::of(1..5_u16),
        ) {
            // An untagged port is in one network: the last one that names it.
            let mut access = BTreeMap::new();
            access.extend(ports.iter().filter(|(_, tagged)| !**tagged).map(|((vlan, port), _)| (*port, *vlan)));
            let of = |vlan: u16, tagged: bool| {
                let is_it = |((v, p), t): &(&(u16, u32), &bool)| *v == vlan && **t == tagged && (tagged || access[p] == vlan);
                ports.iter().filter(is_it).map(|((_, port), _)| format!("\"1/{port}\"")).collect::<Vec<_>>().join(",")
            };
            let all: Vec<_> = (1..4).map(|vlan| format!("{{\"vlan\": {vlan}, \"tagged\": [{}], \"untagged\": [{}]}}", of(vlan, true), of(vlan, false))).collect();
            let networks = networks(&format!("[{}]", all.join(","))).unwrap();
            let found = networks.network_of(DatapathId(1), PortNo(port), tag).map(|(vlan, _)| vlan);
            let expected = match tag {
                Some(vlan) => Some(vlan).filter(|vlan| ports.get(&(*vlan, port)) == Some(&true)),
                None => access.get(&port).copied(),
            };
            prop_assert_eq!(found, expected);
        }
    }
}
