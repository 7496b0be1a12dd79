//! One slice that owns all, with a learning controller: pings pass, as without a node between.

use config::NodeLimits;
use edge::vnic::VnicId;
use emulator::topology::{Endpoint, Topology};
use emulator::{SwitchOptions, Versions as SwitchVersions};
use flow::{DatapathId, Match, PortNo};
use kernel::{Capability, Grant};
use labels_contract::Hose;
use openflow::Version;
use slice::settings::{IsolationSettings, LabelSettings, LimitsSettings, PortSettings, SwitchSettings};
use slice::{SliceSettings, settings};
use southbound::SouthboundConfig;
use std::collections::BTreeMap;
use std::time::Duration;
use virtual_node::servers::{Server, ServerVnic};
use virtual_node::{Learning, NodePlan, SlicePart, Stage, StagePlan};

/// The settings of a slice that has all ports of a network.
pub fn owner_of_all(topology: &Topology) -> SliceSettings {
    let mut ports: BTreeMap<usize, Vec<PortNo>> = BTreeMap::new();
    for link in &topology.links {
        for end in [link.one, link.two] {
            if let Endpoint::Switch { index, port } = end {
                ports.entry(index).or_default().push(port);
            }
        }
    }
    let port = |port: &PortNo| PortSettings { port: *port, shown_as: *port, is_edge: false };
    let switch = |(index, ports): (&usize, &Vec<PortNo>)| {
        let datapath = topology.switches[*index].datapath_id;
        SwitchSettings { datapath, shown_as: datapath, ports: ports.iter().map(port).collect() }
    };
    SliceSettings {
        name: "all".to_owned(),
        controllers: Vec::new(),
        tls: None,
        isolation: IsolationSettings::Flowspace(vec![Match::any()]),
        is_read_only: false,
        is_standalone: false,
        switches: ports.iter().map(switch).collect(),
        links: Vec::new(),
        vnics: BTreeMap::new(),
        vnic_ports: Vec::<settings::VnicPortSettings>::new(),
        labels: LabelSettings::None,
        has_labels: true,
        follows_links: false,
        limits: LimitsSettings::default(),
        groups: None,
        meters: None,
        journals: None,
    }
}

fn stage(shape: &str, tenant: Version, switches: SwitchVersions) -> Stage {
    stage_with(shape, tenant, switches, Vec::new())
}

fn stage_with(shape: &str, tenant: Version, switches: SwitchVersions, servers: Vec<Server>) -> Stage {
    stage_that_may(shape, (tenant, switches), servers, &CAN)
}

/// What a slice needs.
const CAN: [Capability; 5] = [
    Capability::PacketIn,
    Capability::RuleWrite,
    Capability::StatsRead,
    Capability::ViewRead,
    Capability::PacketOut,
];

fn stage_that_may(
    shape: &str,
    (tenant, switches): (Version, SwitchVersions),
    servers: Vec<Server>,
    can: &[Capability],
) -> Stage {
    let topology: Topology = shape.parse().expect("a shape");
    let slice = SlicePart {
        settings: owner_of_all(&topology),
        grant: Grant::everywhere(can),
        hose: Hose::default(),
        version: tenant,
        controller: Box::new(Learning::default()),
    };
    let node = NodePlan {
        switches: topology.switches.iter().map(|switch| switch.datapath_id).collect(),
        southbound: SouthboundConfig::default(),
        limits: NodeLimits::default(),
        links: Vec::new(),
        reserved: Vec::new(),
        slices: vec![slice],
        keys: Vec::new(),
        seed: 7,
    };
    let options = SwitchOptions { versions: switches, ..SwitchOptions::default() };
    Stage::new(StagePlan { topology, options, node, servers }).expect("a stage")
}

/// How many pings of all pairs come back within a second.
fn pings(stage: &mut Stage) -> (usize, usize) {
    let second = Duration::from_secs(1);
    stage.run_until(second).expect("it goes on");
    let names: Vec<String> =
        stage.simulation().network().hosts().iter().map(|host| host.name().to_owned()).collect();
    for from in &names {
        for to in names.iter().filter(|to| *to != from) {
            stage.simulation().ping(from, to, 1).expect("hosts");
        }
    }
    stage.run_until(2 * second).expect("it goes on");
    (stage.simulation().take_replies().len(), names.len() * (names.len() - 1))
}

#[test]
fn pings_pass_a_slice_between_versions() {
    let check = |tenant: Version, switches: SwitchVersions| {
        let mut stage = stage("linear,3", tenant, switches);
        let (came_back, sent) = pings(&mut stage);
        let log = stage.node().log().to_vec();
        assert_eq!(came_back, sent, "a tenant of {tenant} on switches of {switches:?}: {log:?}");
        assert!(stage.node().packet_ins("all") > 0 && stage.node().errors("all").is_empty());
    };
    check(Version::V1_0, SwitchVersions::Only13);
    check(Version::V1_3, SwitchVersions::Only13);
    check(Version::V1_3, SwitchVersions::Only10);
    check(Version::V1_0, SwitchVersions::Only10);
}

#[test]
fn the_same_run_has_the_same_digest() {
    let digest = |tenant| {
        let mut stage = stage("tree,2", tenant, SwitchVersions::Both);
        pings(&mut stage);
        stage.digest()
    };
    assert_eq!(digest(Version::V1_3), digest(Version::V1_3));
    assert_ne!(digest(Version::V1_3), digest(Version::V1_0), "the tenant's messages differ");
}

#[test]
fn a_switch_of_another_network_is_no_part_of_the_slice() {
    let mut stage = stage("single,2", Version::V1_3, SwitchVersions::Both);
    stage.run_until(Duration::from_millis(10)).expect("it goes on");
    assert_eq!(stage.node().rules("all", DatapathId(9)), None);
    assert!(stage.node().rules("all", DatapathId(1)).is_some());
}

/// A server with one VNIC of a slice, which is the host at a place.
fn server(host: usize, slice: u32) -> Server {
    let topology: Topology = "single,2".parse().expect("a shape");
    let id = VnicId(host as u32 + 1);
    let (mac, guarantee_bps) = (topology.hosts[host].mac, 1_000_000);
    Server {
        nic_bps: 10_000_000,
        vnics: vec![ServerVnic { id, slice, mac, host, guarantee_bps, strict: false }],
    }
}

#[test]
fn frames_that_reach_a_host_of_another_slice_are_counted() {
    // The only slice of the node lets all hosts reach each other. They belong to two, or to one.
    for (slices, is_crossed) in [([0, 1], true), ([0, 0], false)] {
        let servers = vec![server(0, slices[0]), server(1, slices[1])];
        let mut stage = stage_with("single,2", Version::V1_3, SwitchVersions::Both, servers);
        let (came_back, sent) = pings(&mut stage);
        assert_eq!(came_back, sent);
        assert_eq!(stage.crossed() > 0, is_crossed, "{slices:?}: {}", stage.crossed());
    }
}

#[test]
fn the_kernel_holds_a_slice_to_its_grant() {
    let versions = (Version::V1_3, SwitchVersions::Both);
    // All but packet.out.
    let mut stage = stage_that_may("single,2", versions, Vec::new(), &CAN[..4]);
    let (came_back, _) = pings(&mut stage);
    assert_eq!(came_back, 0);
    let refused = stage.node().refused("all");
    assert!(refused.len() == 1 && refused[0].0.contains("packet.out") && refused[0].1 > 0, "{refused:?}");
    let errors = stage.node().errors("all");
    assert!(errors.iter().any(|(it, _)| it.message == "OFPT_PACKET_OUT" && it.why.is_some()), "{errors:?}");
}
