//! The links of slices in the words of the services that must know them.
//!
//! ```text
//!   slices with their links ──> settings of `paths`: packets, ports and links of each slice
//!                           └─> settings of `labels`: the links over which each slice may have flows
//! ```
//!
//! In: the slices as they are admitted. Out: settings. It decides no way through the network: the service `paths` does.

use burnet_sdk::view::LinkId;
use config::Config;
use config::slices::{Slice, link_name};
use flow::{DatapathId, Field, Match};
use hose::Checks;
use monitor::AppSpec;
use paths_contract::SliceLinks;
use serde_json::{Map, Value, json};
use slicer::{Isolation, SlicePlan};
use std::collections::BTreeMap;

/// OFPVID_PRESENT: the bit of vlan_vid that is set if the packet has a tag.
const VLAN_PRESENT: u16 = 0x1000;

/// The services without which nobody follows the links of slices.
const NEEDED: [(&str, &str); 3] = [
    (discovery_contract::SERVICE, discovery::NEEDS),
    (flows_contract::SERVICE, flows::NEEDS),
    (paths_contract::SERVICE, paths::NEEDS),
];

/// Whether this node lays the virtual links of slices, and follows whether their links are up.
pub fn has_service(config: &Config) -> bool {
    NEEDED.iter().all(|(name, needs)| matches!(config.network_share(name, needs), Ok(Some(_))))
}

/// Refuses a slice with a link that this node cannot lay. `is_cable`: whether the network has a cable between the ports of a link.
///
/// # Errors
/// A sentence that names the slice and the link, and says what to add.
pub fn check(slice: &Slice, has_service: bool, is_cable: impl Fn(LinkId) -> bool) -> Result<(), String> {
    let mut links = slice.links.iter().flatten().map(|link| link.id);
    match links.find(|link| !has_service && !is_cable(*link)) {
        None => Ok(()),
        Some(link) => Err(format!(
            "slice {}: link {} leads over several switches, and only the services {} lay such links: add [network] to burnet.toml, or start the node \
             with --network",
            slice.name,
            link_name(link),
            NEEDED.map(|(name, _)| name).join(", ")
        )),
    }
}

/// Fills the settings of services in.
pub fn add_to(services: &mut [AppSpec], slices: &[Slice], has_service: bool) {
    let has_links = slices.iter().any(|slice| slice.links.iter().flatten().next().is_some());
    for service in services {
        match service.name.as_str() {
            paths_contract::SERVICE if has_service && has_links => {
                service.settings.insert("slices".to_owned(), of_paths(slices));
            }
            labels_contract::SERVICE => {
                add_to_labels(&mut service.settings, slices, has_service && has_links)
            }
            _ => {}
        }
    }
}

fn of_paths(slices: &[Slice]) -> Value {
    let of_slice = |slice: &Slice| {
        let at =
            |is_own: bool| slice.ports.iter().filter(move |port| port.is_own == is_own).map(|port| port.at);
        let links = SliceLinks {
            packets: if slice.is_read_only { Vec::new() } else { packets(slice) },
            ports: at(false).collect(),
            own_ports: at(true).collect(),
            links: slice.links.iter().flatten().map(|link| link.id).collect(),
            rates_bps: rates_bps(slice),
        };
        (slice.name.clone(), links)
    };
    json!(slices.iter().map(of_slice).collect::<BTreeMap<String, SliceLinks>>())
}

/// What the VNICs of a slice at each switch may send and receive together. None if its links are not judged.
pub fn rates_bps(slice: &Slice) -> BTreeMap<DatapathId, u64> {
    let mut rates: BTreeMap<DatapathId, u64> = BTreeMap::new();
    for vnic in slice.vnics.iter().filter(|_| slice.admission == Checks::Fabric) {
        let sum = rates.entry(vnic.at.switch).or_default();
        *sum = sum.saturating_add(vnic.rate.bps());
    }
    rates
}

/// The packets of a slice between switches. A slice whose plan is wrong is refused elsewhere, and has none here.
fn packets(slice: &Slice) -> Vec<Match> {
    let mut packets = slice.plan().map(|plan| between_switches(&plan)).unwrap_or_default();
    let mut seen = Vec::new();
    packets.retain(|packet| {
        !seen.contains(packet) && {
            seen.push(packet.clone());
            true
        }
    });
    packets
}

/// The packets of a slice between switches, without input ports.
pub fn between_switches(plan: &SlicePlan) -> Vec<Match> {
    let without_port = |matching: &Match| {
        let mut matching = matching.clone();
        matching.remove(Field::InPort);
        matching
    };
    match &plan.isolation {
        Isolation::Vlan(tag) => vec![Match::any().with(Field::VlanVid, tag | VLAN_PRESENT)],
        Isolation::Flowspace(matches) => matches.iter().map(without_port).collect(),
        Isolation::Address(addresses) => addresses.physical_packets().to_vec(),
    }
}

/// A slice may have flows over its own links only.
fn add_to_labels(settings: &mut Map<String, Value>, slices: &[Slice], follows: bool) {
    let Some(promised) = settings.get_mut("slices").and_then(Value::as_object_mut) else { return };
    for slice in slices {
        let both = slice.links.iter().flatten().flat_map(|link| [link.id, link.id.reversed()]);
        if let Some(hose) = promised.get_mut(&slice.name) {
            hose["links"] = json!(both.collect::<Vec<LinkId>>());
        }
    }
    if follows {
        settings.insert("follows_links".to_owned(), true.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{apps, services};
    use config::{ConfigFile, Environment, RunArgs};
    use std::path::Path;

    fn config(text: &str) -> Config {
        let file = ConfigFile::parse(text, Path::new("t")).unwrap();
        let around = Environment { uid: 1000, ..Environment::default() };
        let args = RunArgs { records: Some("/r".into()), ..RunArgs::default() };
        Config::merge(file, &args, &around, &apps::ALL).unwrap()
    }

    fn slice(name: &str, more: &str) -> String {
        format!("[slice.{name}]\ncontrollers = ['127.0.0.1:1']\n{more}\n")
    }

    fn settings(specs: &[AppSpec], name: &str, key: &str) -> Value {
        let spec = specs.iter().find(|spec| spec.name == name);
        spec.and_then(|spec| spec.settings.get(key)).cloned().unwrap_or_default()
    }

    #[test]
    fn links_are_judged_by_what_vnics_at_each_switch_may_send() {
        let vnics = "vnics = { A = { port = 's1:1', rate = '8M' }, B = { port = 's1:2', rate = '2M' }, C = { port = 's2:1', rate = '4M' } }";
        let blue = format!("isolation = 'vlan'\ntag = 7\nlinks = ['s1:3-s2:3']\n{vnics}");
        for (more, expected) in
            [("", vec![(1, 10_000_000), (2, 4_000_000)]), ("\nadmission = 'edge'", vec![])]
        {
            let specs = services::wanted(&config(&format!(
                "[network]\n{}",
                slice("blue", &(more.to_owned() + "\n" + &blue))
            )))
            .unwrap();
            let told: BTreeMap<String, SliceLinks> =
                serde_json::from_value(settings(&specs, "paths", "slices")).unwrap();
            let rates: Vec<(u64, u64)> =
                told["blue"].rates_bps.iter().map(|(switch, bps)| (switch.0, *bps)).collect();
            assert_eq!(rates, expected);
        }
    }

    #[test]
    fn a_switch_of_openflow_1_0_between_can_tell_the_packets_of_each_isolation() {
        let isolations = [
            "isolation = 'vlan'\ntag = 7",
            "isolation = 'flowspace'\nmatches = ['arp,vlan_tci=0', 'ip,nw_dst=10.1.0.0/16', 'tcp,tp_dst=80']\nports = ['s1:1']",
            "isolation = 'address'\nprefix = '172.16.1.0/24'\naddresses = '10.0.0.0/24'\nhosts = { '10.0.0.1' = 's1:1' }",
        ];
        for isolation in isolations {
            let told = config(&slice("blue", isolation)).slices;
            let packets = packets(told.first().unwrap());
            assert!(!packets.is_empty());
            for packet in packets {
                let matching = packet.clone().with(Field::InPort, 1_u32);
                let output =
                    vec![flow::Instruction::ApplyActions(vec![flow::Action::output(flow::PortNo(2))])];
                let flow_mod = openflow::message::FlowModFields::default().with(matching, output);
                let body = openflow::Body::FlowMod(flow_mod);
                let written = openflow::Message { version: openflow::Version::V1_0, xid: 1, body }
                    .encode(&mut Vec::new());
                assert!(written.is_ok(), "{isolation}: {packet:?}: {written:?}");
            }
        }
    }

    #[test]
    fn the_services_know_the_links_of_slices() {
        let blue = "isolation = 'vlan'\ntag = 7\nown_ports = ['s1:1']\nlinks = ['s1:3-s2:3']";
        let eye = "isolation = 'flowspace'\nmatches = ['ip']\nread_only = true\nports = ['s1:1']";
        let red = "isolation = 'flowspace'\nmatches = ['in_port=1,ip', 'in_port=2,ip']\nports = ['s4:1']";
        let slices = slice("blue", blue) + &slice("eye", eye) + &slice("red", red);
        let specs = services::wanted(&config(&format!("[network]\n{slices}"))).unwrap();
        let told = settings(&specs, "paths", "slices");
        let mut told: BTreeMap<String, SliceLinks> = serde_json::from_value(told).unwrap();
        let parse = |text: &str| flow::text::parse_match(text).unwrap();
        let points = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>();
        let expected = SliceLinks {
            packets: vec![parse("dl_vlan=7")],
            ports: points(&["1/3", "2/3"]),
            own_ports: points(&["1/1"]),
            links: vec!["1/3-2/3".parse().unwrap()],
            rates_bps: BTreeMap::new(),
        };
        assert_eq!(told.remove("blue"), Some(expected));
        assert_eq!(told["eye"].packets, [], "an observer has no rules");
        assert_eq!(told["red"].packets, [parse("ip")], "without input ports, each once");
        let promised = settings(&specs, "labels", "slices");
        let both =
            ["of:0000000000000001/3-of:0000000000000002/3", "of:0000000000000002/3-of:0000000000000001/3"];
        assert_eq!((&promised["blue"]["links"], &promised["red"]["links"]), (&json!(both), &json!([])));
        let follows = |name: &str| settings(&specs, name, "follows_links");
        assert_eq!((follows("slice.blue"), follows("slice.red")), (json!(true), json!(false)));
        let grant = |name: &str| {
            let spec = specs.iter().find(|spec| spec.name == name).unwrap();
            spec.grant["capabilities"][paths_contract::SLICE_LINKS].clone()
        };
        assert_eq!((grant("slice.blue"), grant("slice.red")), (json!(["blue"]), Value::Null));
        // Without one of the three services, nobody follows links.
        let text = format!("[network]\nservices = ['discovery', 'paths', 'labels']\n{slices}");
        let specs = services::wanted(&config(&text)).unwrap();
        assert_eq!(settings(&specs, "paths", "slices"), Value::Null);
        assert_eq!(settings(&specs, "slice.blue", "follows_links"), json!(false));
    }

    #[test]
    fn a_node_that_lays_no_links_refuses_a_slice_with_one_of_several_hops() {
        let file = std::env::temp_dir().join(format!("burnet-no-links-{}.toml", std::process::id()));
        let network = "link_rate = '10M'\n[[link]]\nbetween = 's1:3-s3:1'\n[[link]]\nbetween = 's3:2-s2:3'\n";
        std::fs::write(&file, network).unwrap();
        let wanted = |services: &str, link: &str| {
            let blue = slice("blue", &format!("isolation = 'vlan'\nlinks = ['{link}']"));
            let mut config = config(&format!("{services}{blue}"));
            config.node.network_description = Some(file.clone());
            services::wanted(&config).err().unwrap_or_default()
        };
        let why = "slice blue: link s1:3-s2:3 leads over several switches, and only the services discovery, flows, paths lay such links: add [network] to burnet.toml, or start the node with --network";
        assert_eq!(wanted("", "s1:3-s2:3"), why);
        assert_eq!(wanted("[network]\n", "s1:3-s2:3"), "");
        assert_eq!(wanted("", "s1:3-s3:1"), "", "a cable needs nobody");
        std::fs::remove_file(&file).unwrap();
    }
}
