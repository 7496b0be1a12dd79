//! The emulated network of a rehearsal: described switches and links, and a host for each VNIC.
//!
//! In: a described network, slices with VNICs. Out: a topology, and which host is which VNIC. It starts nothing.

use burnet::slice_plan::rehearse::{Cast, Network};
use burnet_sdk::view::{ConnectPoint, LinkId};
use config::slices::{Slice, SliceIsolation, link_name, port_name, switch_name};
use emulator::LinkQuality;
use emulator::topology::{Endpoint, HostPlan, Link, SwitchPlan, Topology};
use flow::{DatapathId, Field, MacAddr};
use rehearsal::{LinkNo, ServerNo};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The most switches of a rehearsal with packets. Each has a session, and a virtual switch in each slice.
pub(super) const SWITCHES_MAX: usize = 256;
/// The most VNICs of one slice: the third and fourth byte of an address count them.
pub(super) const VNICS_OF_SLICE_MAX: usize = 1_000;

/// A VNIC as a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VnicHost {
    /// Its place among the hosts.
    pub host: usize,
    /// The name of the host.
    pub name: String,
    pub mac: MacAddr,
    /// Its server.
    pub server: ServerNo,
}

/// A network of switches and hosts.
#[derive(Debug)]
pub(super) struct Emulated {
    pub topology: Topology,
    /// By slice and VNIC.
    pub vnics: Vec<Vec<VnicHost>>,
}

/// The network of these slices.
///
/// # Errors
/// A sentence: what cannot be emulated.
pub(super) fn emulated(cast: &Cast<'_>) -> Result<Emulated, String> {
    let switches = switches(cast);
    if switches.len() > SWITCHES_MAX {
        return Err(format!(
            "{} switches are more than the {SWITCHES_MAX} of a rehearsal with packets: leave --packets out",
            switches.len()
        ));
    }
    let numbers: BTreeMap<DatapathId, usize> = switches.iter().copied().zip(0..).collect();
    let end = |at: ConnectPoint| Endpoint::Switch { index: numbers[&at.switch], port: at.port };
    let mut links = cables(&cast.network)?
        .into_iter()
        .map(|(id, rate_bps)| Link { one: end(id.from), two: end(id.to), quality: of_rate(rate_bps) })
        .collect::<Vec<Link>>();
    let addresses = addresses(&cast.slices);
    let (mut hosts, mut vnics, mut taken) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (slice, (plan, macs)) in
        cast.slices.iter().zip(cast.plans.iter().zip(&addresses)).map(|it| (it.0, it.1))
    {
        if slice.vnics.len() > VNICS_OF_SLICE_MAX {
            return Err(format!(
                "slice {}: more than {VNICS_OF_SLICE_MAX} VNICs cannot be rehearsed",
                slice.name
            ));
        }
        let mut of_slice = Vec::new();
        for (number, vnic) in slice.vnics.iter().enumerate() {
            let name = format!("{}:{}", slice.name, vnic.name);
            if let Some(other) = taken.insert(vnic.at, name.clone()) {
                return Err(format!(
                    "{other} and {name} are behind one port, {}: with packets, each VNIC needs a port of its own",
                    port_name(vnic.at)
                ));
            }
            let (mac, address) = macs[number];
            let server = plan.vnics[number].server;
            let quality = of_rate(cast.network.fabric.nic_bps(server));
            links.push(Link { one: Endpoint::Host { index: hosts.len() }, two: end(vnic.at), quality });
            of_slice.push(VnicHost { host: hosts.len(), name: name.clone(), mac, server });
            hosts.push(HostPlan { name, mac, address });
        }
        vnics.push(of_slice);
    }
    let switch = |id: &DatapathId| SwitchPlan {
        name: switch_name(*id),
        label: String::new(),
        datapath_id: *id,
        place: None,
    };
    let topology = Topology { switches: switches.iter().map(switch).collect(), hosts, links };
    Ok(Emulated { topology, vnics })
}

/// The switches at links and at VNICs.
fn switches(cast: &Cast<'_>) -> BTreeSet<DatapathId> {
    let at_links = cast.network.links.keys().flat_map(|id| [id.from.switch, id.to.switch]);
    let at_vnics = cast.slices.iter().flat_map(|slice| &slice.vnics).map(|vnic| vnic.at.switch);
    at_links.chain(at_vnics).collect()
}

/// Each link once, with its rate. A cable has the same rate in both directions: the lower one.
fn cables(network: &Network) -> Result<Vec<(LinkId, u64)>, String> {
    let rate = |link: &LinkNo| network.fabric.link(*link).capacity_bps;
    let mut cables = Vec::new();
    for (id, link) in &network.links {
        let Some(back) = network.links.get(&id.reversed()) else {
            return Err(format!("link {} has one direction only, and a cable has both", link_name(*id)));
        };
        if *id < id.reversed() {
            cables.push((*id, rate(link).min(rate(back))));
        }
    }
    Ok(cables)
}

fn of_rate(bits_per_s: u64) -> LinkQuality {
    LinkQuality { rate_bits_per_s: Some(bits_per_s), ..LinkQuality::default() }
}

/// The addresses of all VNICs. That of a MAC is the one in the file, unless another VNIC has the same: then frames could not be told apart.
fn addresses(slices: &[&Slice]) -> Vec<Vec<(MacAddr, Ipv4Addr)>> {
    let mut taken = BTreeSet::new();
    let mut all = Vec::new();
    for (number, slice) in (1..).zip(slices) {
        let of_vnic = |(place, vnic): (u16, &config::slices::Vnic)| {
            let [high, low] = place.to_be_bytes();
            let own = MacAddr([2, 0, 0, number, high, low]);
            let mac = vnic.edge.map(|edge| edge.mac).filter(|mac| taken.insert(*mac)).unwrap_or(own);
            (mac, address(slice, vnic.at, number, place))
        };
        all.push((1..).zip(&slice.vnics).map(of_vnic).collect());
    }
    all
}

/// The IPv4 address of a VNIC: that of its host, or one within the slice's packets if they have a prefix, or one of its own.
fn address(slice: &Slice, at: ConnectPoint, number: u8, place: u16) -> Ipv4Addr {
    let [high, low] = place.to_be_bytes();
    let own = Ipv4Addr::new(10, number, high, low);
    match &slice.isolation {
        SliceIsolation::Vlan(_) => own,
        SliceIsolation::Address(addresses) => {
            addresses.hosts.iter().find(|host| host.at == at).map_or(own, |host| host.address)
        }
        SliceIsolation::Flowspace(packets) => {
            let prefix = packets.iter().find_map(|packets| {
                let fields = [Field::Ipv4Src, Field::Ipv4Dst];
                fields.into_iter().find_map(|field| packets.matching.get(field))
            });
            let Some((value, mask)) = prefix else { return own };
            let (value, mask) = (u32::try_from(value), u32::try_from(mask & 0xffff_ffff));
            match (value, mask) {
                (Ok(value), Ok(mask)) => Ipv4Addr::from(value | u32::from(place) & !mask),
                _ => own,
            }
        }
    }
}
