//! The slices of a rehearsal as a node has them, with their tenants, and the servers of their VNICs.
//!
//! In: judged slices, an emulated network, options. Out: what a node in virtual time is made of. It starts nothing.

use super::network::{Emulated, VnicHost};
use burnet::cli::slice::PacketArgs;
use burnet::slice_plan::rehearse::Cast;
use burnet::slice_plan::substrate::Description;
use burnet::slices::{NodeServices, zone};
use burnet_sdk::view::LinkId;
use config::NodeLimits;
use config::slices::{LabelForm, Slice, link_name};
use edge::vnic::VnicId;
use hose::Bandwidth;
use labels_contract::Hose;
use openflow::Version;
use rehearsal::{LinkNo, ServerNo, SliceNo, Tenant};
use slice::{SliceSettings, link_id};
use southbound::SouthboundConfig;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use virtual_node::servers::{Server, ServerVnic, agent_of, key};
use virtual_node::{
    Controller, Learning, Multipath, NodePlan, Observer, Place, SERVICE, SlicePart, StagePlan, Surroundings,
};

/// The most slices of a rehearsal with packets.
pub(super) const SLICES_MAX: usize = 64;
/// VNICs of a slice have numbers from a multiple of this on.
const NUMBERS_OF_SLICE: u32 = 1_024;
/// The seed, if the operator gave none.
const SEED: u64 = 1;
/// What a tenant believes is left of the link of a server, of which no label tells.
const NO_LIMIT_BPS: u64 = u64::MAX;

/// The services of a node in virtual time: it has labels, and nobody lays links of several hops.
const SERVICES: NodeServices = NodeServices { labels: true, links: false };

/// The number of a VNIC among all.
pub(super) fn vnic_id(slice: usize, vnic: usize) -> VnicId {
    // Both are bounded.
    VnicId(slice as u32 * NUMBERS_OF_SLICE + vnic as u32 + 1)
}

/// What is rehearsed.
///
/// # Errors
/// A sentence that names the slice: it cannot be rehearsed with packets.
pub(super) fn stage_plan(
    description: &Description,
    cast: &Cast<'_>,
    emulated: &Emulated,
    args: &PacketArgs,
) -> Result<StagePlan, String> {
    check(cast, args)?;
    let fabric = Arc::new(cast.network.fabric.clone());
    let mut slices = Vec::new();
    for (number, slice) in cast.slices.iter().enumerate() {
        let (settings, grant) = zone(slice, SERVICES)?;
        let is_learning = args.learning.contains(&slice.name);
        let controller: Box<dyn Controller> = match is_learning {
            _ if slice.is_read_only => Box::new(Observer),
            true => Box::new(Learning::default()),
            false => {
                let around = around(cast, number, &settings, &emulated.vnics[number], fabric.clone());
                Box::new(Multipath::new(around, tenant(cast, number)))
            }
        };
        let hose = hose(slice, number, &settings, &emulated.vnics[number]);
        slices.push(SlicePart { grant, hose, version: version(slice, is_learning), controller, settings });
    }
    let rate = |link: &LinkNo| Bandwidth::from_bps(cast.network.fabric.link(*link).capacity_bps);
    let reserved = description.reserved.iter().map(|(link, kbps)| (*link, Bandwidth::from_kbps(*kbps)));
    let servers = servers(cast, emulated);
    let node = NodePlan {
        switches: emulated.topology.switches.iter().map(|switch| switch.datapath_id).collect(),
        southbound: SouthboundConfig::default(),
        limits: NodeLimits::default(),
        links: cast.network.links.iter().map(|(id, link)| (*id, rate(link))).collect(),
        reserved: reserved.collect(),
        slices,
        keys: (0..servers.len()).map(|it| (agent_of(it), key(SERVICE, agent_of(it)))).collect(),
        seed: args.seed.unwrap_or(SEED),
    };
    let mut options = emulator::SwitchOptions::default();
    options.max_entries = args.table_entries.unwrap_or(options.max_entries);
    Ok(StagePlan { topology: emulated.topology.clone(), options, node, servers })
}

fn check(cast: &Cast<'_>, args: &PacketArgs) -> Result<(), String> {
    if cast.slices.len() > SLICES_MAX {
        return Err(format!(
            "{} slices are more than the {SLICES_MAX} of a rehearsal with packets: leave --packets out",
            cast.slices.len()
        ));
    }
    let names: Vec<&str> = cast.slices.iter().map(|slice| slice.name.as_str()).collect();
    let named = args.learning.iter().chain(args.rules.iter().map(|rule| &rule.slice));
    for name in named {
        if !names.contains(&name.as_str()) {
            return Err(format!("there is no slice {name}; there are {}", names.join(", ")));
        }
    }
    for slice in &cast.slices {
        let mut links = slice.links.iter().flatten().map(|link| link.id);
        if let Some(link) = links.find(|link| !cast.network.links.contains_key(link)) {
            return Err(format!(
                "slice {}: link {} is no cable; a rehearsal with packets has no service that lays links of several hops",
                slice.name,
                link_name(link)
            ));
        }
    }
    Ok(())
}

/// The version that a tenant's controller speaks: the one in which its labels were meant.
pub(super) fn version(slice: &Slice, is_learning: bool) -> Version {
    match slice.labels {
        // The paper's controller, and the learning switch of `emulator`, are of 1.0.
        LabelForm::Paper => Version::V1_0,
        LabelForm::None if is_learning => Version::V1_0,
        _ => Version::V1_3,
    }
}

/// What the tenant of a slice knows of its network.
fn around(
    cast: &Cast<'_>,
    number: usize,
    settings: &SliceSettings,
    hosts: &[VnicHost],
    fabric: Arc<rehearsal::Fabric>,
) -> Surroundings {
    let slice = cast.slices[number];
    let shown = |at: burnet_sdk::view::ConnectPoint| -> Option<Place> {
        let switch = settings.switches.iter().find(|switch| switch.datapath == at.switch)?;
        let port = switch.ports.iter().find(|port| port.port == at.port)?;
        Some((at.switch, port.shown_as))
    };
    let vnic = |(vnic, host): (&config::slices::Vnic, &VnicHost)| {
        let place = shown(vnic.at).unwrap_or((vnic.at.switch, vnic.at.port));
        (vnic.name.clone(), host.mac, place)
    };
    let ends = |(id, link): (&LinkId, &LinkNo)| Some((*link, [shown(id.from)?, shown(id.to)?]));
    Surroundings {
        fabric,
        slice: SliceNo(number as u32),
        vnics: slice.vnics.iter().zip(hosts).map(vnic).collect(),
        links: cast.network.links.iter().filter_map(ends).collect(),
    }
}

/// A tenant that has found no link yet, and heard nothing: it takes each link for free.
fn tenant(cast: &Cast<'_>, number: usize) -> Tenant {
    let between = cast.network.links.len();
    let of_servers = (between..cast.network.fabric.links().count()).map(|number| LinkNo(number as u32));
    let plan = rehearsal::Plan { links: Some(of_servers.collect()), ..cast.plans[number].clone() };
    let links = cast.network.fabric.links();
    let told = links.map(|(link, it)| if link.index() < between { it.capacity_bps } else { NO_LIMIT_BPS });
    Tenant::new(plan, told.collect())
}

/// What a slice is promised. Each of its VNICs has an agent, whatever the file says.
fn hose(slice: &Slice, number: usize, settings: &SliceSettings, hosts: &[VnicHost]) -> Hose {
    let vnic = |(place, (vnic, host)): (usize, (&config::slices::Vnic, &VnicHost))| {
        let promised = labels_contract::Vnic {
            rate_bps: vnic.rate.bps(),
            number: Some(vnic_id(number, place).0),
            agent: Some(agent_of(host.server.0).0),
        };
        (vnic.name.clone(), promised)
    };
    // Links are the same in each zone.
    let links = settings.plan(abi::ZoneId(1)).physical_links();
    let both_ways = links.iter().map(link_id).flat_map(|link| [link, link.reversed()]);
    let links: BTreeSet<LinkId> = both_ways.collect();
    Hose {
        vnics: slice.vnics.iter().zip(hosts).enumerate().map(vnic).collect(),
        links: Some(links.into_iter().collect()),
        step_percent: slice.step.map(|step| step.percent()),
    }
}

/// The servers with their VNICs, by number.
fn servers(cast: &Cast<'_>, emulated: &Emulated) -> Vec<Server> {
    let mut vnics: BTreeMap<usize, Vec<ServerVnic>> = BTreeMap::new();
    for (number, (slice, hosts)) in cast.slices.iter().zip(&emulated.vnics).enumerate() {
        for (place, (vnic, host)) in slice.vnics.iter().zip(hosts).enumerate() {
            vnics.entry(host.server.0).or_default().push(ServerVnic {
                id: vnic_id(number, place),
                slice: number as u32,
                mac: host.mac,
                host: host.host,
                guarantee_bps: vnic.rate.bps(),
                strict: vnic.edge.is_some_and(|edge| edge.is_strict),
            });
        }
    }
    let fabric = &cast.network.fabric;
    let server = |number: usize| Server {
        nic_bps: fabric.nic_bps(ServerNo(number)),
        vnics: vnics.remove(&number).unwrap_or_default(),
    };
    (0..fabric.servers()).map(server).collect()
}
