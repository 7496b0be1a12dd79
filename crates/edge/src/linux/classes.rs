//! The classes of HTB, as lines for tc.
//!
//! In: changes of the shaper, and the VNICs. Out: lines. It runs nothing.
//!
//! | minor number | class |
//! |---|---|
//! | 1 | the NIC |
//! | 2 | datagrams of agents: 1 %, and at most 5 % |
//! | 3 | frames of no VNIC: 1 %, and what nobody else needs |
//! | 100 + slot | VNIC |
//! | 300 + slot | other packets of a VNIC |
//! | 1000 + slot | flow |
//!
//! The numbers are hexadecimal, as tc has them.

use super::agents::Agents;
use super::device::{Device, MAJOR};
use super::filters::{self, Target};
use crate::shaper::{Change, Deed, Place, Rates};
use crate::vnic::{Address, Directory};
use std::collections::BTreeMap;

const NIC: u16 = 1;
const AGENTS: u16 = 2;
const REST: u16 = 3;
const VNICS: u16 = 0x100;
const OTHERS: u16 = 0x300;
const FLOWS: u16 = 0x1000;

/// The least burst: two of the largest frames.
const BURST_MIN_BYTES: u64 = 2 * 1514;

/// A burst lasts this part of a second. Shorter bursts need more wake-ups.
const BURST_PER_SECOND: u64 = 4000;

/// On slow links it lasts 8 ms, but at most ten frames. A timer of a busy machine is late by milliseconds. What does not fit into a burst
/// by then is lost.
const SLOW_BURST_PER_SECOND: u64 = 125;
const SLOW_BURST_MAX_BYTES: u64 = 10 * 1514;

/// What a class may queue: 20 ms of the NIC, within these bounds. The lower one is the largest packet that Linux leaves uncut.
const QUEUE_PER_SECOND: u64 = 50;
const QUEUE_MIN_BYTES: u64 = 64 * 1024;
const QUEUE_MAX_BYTES: u64 = 4 * 1024 * 1024;

/// What the class for other packets of a VNIC may queue at least: the first window of a TCP connection. When a flow gets a class of its
/// own, what waits here is sent in addition. So there should be little: 20 ms of the guarantee, not of the NIC.
const OTHERS_QUEUE_MIN_BYTES: u64 = 16 * 1024;

/// What datagrams of agents may queue: about 80. Feedback that waits longer is worthless, since a new one is sent.
const AGENTS_QUEUE_BYTES: u64 = 10_000;

/// How many bytes a class sends in its turn when it borrows, if its VNIC has the whole NIC; at least one frame.
const TURN_BYTES: u64 = 60_000;
const TURN_MIN_BYTES: u64 = 1514;

/// The classes of one NIC. It remembers the addresses of each filter, so that the filter can be removed when the directory has other ones.
#[derive(Debug)]
pub(super) struct Classes {
    device: Device,
    nic_bps: u64,
    /// The addresses of the last filter of each class. There are at most as many as slots.
    filters: BTreeMap<u16, (Address, Address)>,
}

impl Classes {
    pub(super) fn new(device: Device, nic_bps: u64) -> Self {
        Classes { device, nic_bps, filters: BTreeMap::new() }
    }

    /// The lines that make the root, the fixed classes and the fixed filters.
    pub(super) fn setup(&self, agents: &Agents) -> Vec<String> {
        let (device, nic) = (&self.device, self.nic_bps);
        let whole = Rates { rate_bps: nic, ceiling_bps: nic };
        let small = Rates { rate_bps: (nic / 100).max(8000), ceiling_bps: (nic / 100).max(8000) };
        let few = Rates { ceiling_bps: (nic / 20).max(8000), ..small };
        let rest = Rates { ceiling_bps: nic, ..small };
        let mut lines = vec![
            format!("qdisc add dev {device} root handle {MAJOR}: htb default {REST:x}"),
            self.class("add", None, NIC, whole, TURN_BYTES),
            format!("{} prio 0", self.class("add", Some(NIC), AGENTS, few, TURN_MIN_BYTES)),
            format!("{} prio 7", self.class("add", Some(NIC), REST, rest, TURN_MIN_BYTES)),
        ];
        lines.push(self.queue(AGENTS, AGENTS_QUEUE_BYTES));
        lines.push(self.queue(REST, self.queue_bytes()));
        lines.extend(filters::fixed(device, agents, AGENTS, REST));
        lines
    }

    /// The lines of a change, in order. None: a VNIC is unknown, so it has no class.
    pub(super) fn lines(&mut self, change: &Change, directory: &Directory) -> Option<Vec<String>> {
        let sender = directory.get(change.place.vnic());
        let turn = self.turn(sender.map_or(0, |vnic| vnic.guarantee_bps));
        let minor = match change.place {
            Place::Vnic(_) => return Some(vec![self.vnic_line(change, turn)]),
            Place::Others(_) => OTHERS + change.slot,
            Place::Flow(_) => FLOWS + change.slot,
        };
        if let Deed::Add(_) = change.deed {
            let from = sender?.address;
            let to = match change.place {
                Place::Flow(flow) => directory.get(flow.receiver)?.address,
                _ => from,
            };
            self.filters.insert(minor, (from, to));
        }
        let (from, to) = self.filters.get(&minor).copied()?;
        Some(self.leaf_lines(change, minor, turn, from, to))
    }

    fn vnic_line(&self, change: &Change, turn_bytes: u64) -> String {
        let minor = VNICS + change.slot;
        match change.deed {
            Deed::Add(rates) | Deed::Change(rates) => {
                self.class("replace", Some(NIC), minor, rates, turn_bytes)
            }
            Deed::Remove => self.removal(minor),
        }
    }

    fn leaf_lines(&self, change: &Change, minor: u16, turn: u64, from: Address, to: Address) -> Vec<String> {
        let class = |rates| self.class("replace", Some(VNICS + change.vnic_slot), minor, rates, turn);
        let target = Target { slot: change.slot, class: minor };
        let is_flow = matches!(change.place, Place::Flow(_));
        match change.deed {
            Deed::Add(rates) => {
                let own = rates.ceiling_bps / 8 / QUEUE_PER_SECOND;
                let (limit, filter) = match is_flow {
                    true => (self.queue_bytes(), filters::of_flow(&self.device, from, to, target)),
                    false => (
                        own.clamp(OTHERS_QUEUE_MIN_BYTES, QUEUE_MAX_BYTES),
                        filters::of_vnic(&self.device, from, target),
                    ),
                };
                vec![class(rates), self.queue(minor, limit), filter]
            }
            Deed::Change(rates) => vec![class(rates)],
            // A class goes only when no filter points at it.
            Deed::Remove => {
                let filter = match is_flow {
                    true => filters::without_flow(&self.device, from, to, change.slot),
                    false => filters::without_vnic(&self.device, from, change.slot),
                };
                vec![filter, self.removal(minor)]
            }
        }
    }

    /// The bytes of a turn: spare capacity is lent in proportion to guarantees.
    fn turn(&self, guarantee_bps: u64) -> u64 {
        let part = u128::from(TURN_BYTES) * u128::from(guarantee_bps) / u128::from(self.nic_bps.max(1));
        u64::try_from(part).unwrap_or(TURN_BYTES).clamp(TURN_MIN_BYTES, TURN_BYTES)
    }

    fn class(&self, verb: &str, parent: Option<u16>, minor: u16, rates: Rates, turn_bytes: u64) -> String {
        let Rates { rate_bps, ceiling_bps } = rates;
        let burst = |bps: u64| {
            let slow = (bps / 8 / SLOW_BURST_PER_SECOND).min(SLOW_BURST_MAX_BYTES);
            (bps / 8 / BURST_PER_SECOND).max(slow).max(BURST_MIN_BYTES)
        };
        let parent = parent.map_or(format!("{MAJOR}:"), |parent| format!("{MAJOR}:{parent:x}"));
        format!(
            "class {verb} dev {} parent {parent} classid {MAJOR}:{minor:x} htb rate {rate_bps}bit ceil {ceiling_bps}bit \
             burst {} cburst {} quantum {turn_bytes}",
            self.device,
            burst(rate_bps),
            burst(ceiling_bps)
        )
    }

    fn removal(&self, minor: u16) -> String {
        format!("class del dev {} classid {MAJOR}:{minor:x}", self.device)
    }

    fn queue_bytes(&self) -> u64 {
        (self.nic_bps / 8 / QUEUE_PER_SECOND).clamp(QUEUE_MIN_BYTES, QUEUE_MAX_BYTES)
    }

    fn queue(&self, minor: u16, limit: u64) -> String {
        format!(
            "qdisc replace dev {} parent {MAJOR}:{minor:x} handle {minor:x}: bfifo limit {limit}",
            self.device
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vnic::{AgentId, Flow, SliceId, Vnic, VnicId};
    use flow::MacAddr;

    fn vnic(id: u8) -> Vnic {
        Vnic {
            id: VnicId(id.into()),
            slice: SliceId(1),
            agent: Some(AgentId(1)),
            address: Address { vlan: None, mac: MacAddr([2, 0, 0, 0, 0, id]) },
            guarantee_bps: 5_000_000,
            strict: false,
        }
    }

    fn directory() -> Directory {
        Directory::new([vnic(1), vnic(2)]).unwrap()
    }

    fn change(place: Place, slot: u16, deed: Deed) -> Change {
        Change { place, slot, vnic_slot: 4, deed }
    }

    #[test]
    fn each_change_has_its_lines() {
        let mut classes = Classes::new(Device::new("v0").unwrap(), 10_000_000);
        let flow = Place::Flow(Flow { sender: VnicId(1), receiver: VnicId(2) });
        let rates = Rates { rate_bps: 64_000, ceiling_bps: 3_000_000 };
        let mut check = |change: Change, expected: &[&str]| {
            let lines = classes.lines(&change, &directory()).unwrap();
            let starts = |line: &String| expected.iter().any(|start| line.starts_with(start));
            assert!(lines.len() == expected.len() && lines.iter().all(starts), "{lines:#?}");
        };
        let class = "class replace dev v0 parent bed9:104 classid bed9:1007 htb rate 64000bit ceil 3000000bit \
                     burst 3028 cburst 3028 quantum 30000";
        check(
            change(flow, 7, Deed::Add(rates)),
            &[
                class,
                "qdisc replace dev v0 parent bed9:1007 handle 1007: bfifo limit 65536",
                "filter replace dev v0 parent bed9: protocol all prio 6 handle 2:2:7 u32",
            ],
        );
        check(change(flow, 7, Deed::Change(rates)), &[class]);
        check(change(flow, 7, Deed::Remove), &["filter del dev v0", "class del dev v0 classid bed9:1007"]);
        let vnic = Place::Vnic(VnicId(1));
        check(
            change(vnic, 4, Deed::Add(rates)),
            &["class replace dev v0 parent bed9:1 classid bed9:104 htb"],
        );
    }

    #[test]
    fn a_vnic_that_left_or_has_another_address_is_removed_by_its_old_one() {
        let mut classes = Classes::new(Device::new("v0").unwrap(), 10_000_000);
        let rates = Rates { rate_bps: 1, ceiling_bps: 2 };
        let others = Place::Others(VnicId(1));
        classes.lines(&change(others, 4, Deed::Add(rates)), &directory()).unwrap();
        let mut check = |directory: &Directory| {
            let removal = classes.lines(&change(others, 4, Deed::Remove), directory).unwrap();
            assert_eq!(removal[0], "filter del dev v0 parent bed9: protocol all prio 7 handle 3:1:4 u32");
        };
        check(&Directory::default());
        let other = Address { vlan: Some(7), mac: MacAddr([2, 0, 0, 0, 0, 9]) };
        check(&Directory::new([Vnic { address: other, ..vnic(1) }]).unwrap());
        assert_eq!(classes.lines(&change(Place::Others(VnicId(9)), 1, Deed::Remove), &directory()), None);
    }
}
