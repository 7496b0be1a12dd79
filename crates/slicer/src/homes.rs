//! Where addresses are, as far as the rules of a slice say it.
//!
//! A rule for one destination that sends to one port of a VNIC says that the address is behind that port. So packets that have this address
//! as their source come from there, and from no other VNIC. Without this, a rule without an input port would make flows of all VNICs of its switch.
//!
//! In: hops. Out: homes. It follows no packet.

use crate::hops::{Hop, exact};
use crate::plan::End;
use crate::vnic::Wiring;
use flow::rewrite::may_set;
use flow::{Field, Match};
use std::collections::{BTreeMap, BTreeSet};

/// The bit of an Ethernet address that stands for several receivers.
const GROUP_BIT: u128 = 1 << 40;

/// An address: the field in which it is a source, and its value.
pub(crate) type Address = (Field, u128);

/// The fields in which an address is a source, each with that in which it is a destination.
const FIELDS: [(Field, Field); 3] =
    [(Field::EthSrc, Field::EthDst), (Field::Ipv4Src, Field::Ipv4Dst), (Field::Ipv6Src, Field::Ipv6Dst)];

/// The homes of addresses, and how many hops say so.
#[derive(Clone, Debug, Default)]
pub(crate) struct Homes {
    homes: BTreeMap<Address, BTreeMap<End, usize>>,
}

impl Homes {
    /// Counts what a hop of this switch says. Returns the addresses with a new home.
    pub(crate) fn add(&mut self, at: End, hop: &Hop, wiring: &Wiring) -> Vec<Address> {
        let Some((end, addresses)) = said_by(at, hop, wiring) else { return Vec::new() };
        let is_new = |address: &Address| {
            let count = self.homes.entry(*address).or_default().entry(end).or_default();
            *count += 1;
            *count == 1
        };
        addresses.into_iter().filter(is_new).collect()
    }

    /// Takes back what a hop said. Returns the addresses that lost a home.
    pub(crate) fn remove(&mut self, at: End, hop: &Hop, wiring: &Wiring) -> Vec<Address> {
        let Some((end, addresses)) = said_by(at, hop, wiring) else { return Vec::new() };
        let is_lost = |address: &Address| self.forget(*address, end);
        addresses.into_iter().filter(is_lost).collect()
    }

    /// Returns whether that was the last hop that said so.
    fn forget(&mut self, address: Address, end: End) -> bool {
        let Some(ends) = self.homes.get_mut(&address) else { return false };
        let Some(count) = ends.get_mut(&end) else { return false };
        *count -= 1;
        if *count > 0 {
            return false;
        }
        ends.remove(&end);
        if ends.is_empty() {
            self.homes.remove(&address);
        }
        true
    }

    /// Whether an address has homes, and none of them is this one.
    pub(crate) fn is_elsewhere(&self, address: Address, end: End) -> bool {
        self.homes.get(&address).is_some_and(|ends| !ends.contains_key(&end))
    }
}

/// The single sources of packets, without those fields that were rewritten on the way.
pub(crate) fn sources<'a>(
    packets: &'a Match,
    rewritten: &'a BTreeSet<Field>,
) -> impl Iterator<Item = Address> + 'a {
    let sources = FIELDS.iter().filter(|(source, _)| !rewritten.contains(source));
    sources.filter_map(|(source, _)| Some((*source, exact(packets, *source)?)))
}

/// The fields of sources that an action may write.
pub(crate) fn written_sources(action: &flow::Action) -> impl Iterator<Item = Field> {
    FIELDS.iter().map(|(source, _)| *source).filter(|source| may_set(action, *source))
}

fn said_by(at: End, hop: &Hop, wiring: &Wiring) -> Option<(End, Vec<Address>)> {
    let [way] = hop.ways.as_slice() else { return None };
    let end = End { datapath: at.datapath, port: way.port };
    if !wiring.vnics.contains_key(&end) {
        return None;
    }
    let one = |(source, destination): &(Field, Field)| {
        let is_kept = !way.rewrites.iter().any(|action| may_set(action, *destination));
        let address = exact(&hop.matching, *destination).filter(|_| is_kept)?;
        let is_group = *destination == Field::EthDst && address & GROUP_BIT != 0;
        (!is_group).then_some((*source, address))
    };
    Some((end, FIELDS.iter().filter_map(one).collect()))
}

/// Whether packets can be a flow that counts. Frames by which hosts and controllers find each other are none: they are few, and go everywhere.
pub(crate) fn may_count(packets: &Match) -> bool {
    /// ARP, LLDP and BDDP.
    const FINDING: [u128; 3] = [0x0806, 0x88cc, 0x8942];
    let is_finding = exact(packets, Field::EthType).is_some_and(|kind| FINDING.contains(&kind));
    let full = Field::EthDst.full_mask();
    let is_for_all = packets.get(Field::EthDst).is_some_and(|(address, mask)| {
        // One multicast address is that of an application. All of them, and the broadcast address, are for finding.
        address & mask & GROUP_BIT != 0 && (mask != full || address == full)
    });
    !is_finding && !is_for_all
}
