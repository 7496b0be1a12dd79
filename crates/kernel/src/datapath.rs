//! The kernel's record of a switch: enough to describe the switch to a zone that attaches later.
//!
//! It does not know the session; southbound does.

use crate::buffers::Buffers;
use crate::charge::{Copies, FlowAnswer};
use crate::entries::Entries;
use crate::fanout::Fanout;
use crate::later_punts::LaterPunts;
use crate::metering::Metering;
use crate::punt::{PuntCounters, Punts};
use crate::record::Record;
use crate::rule_report::{Inquiry, RuleReport};
use crate::zone_set::ZoneSet;
use abi::event::{OpenFlowVersion, PortRecord, PortStatus, SwitchUp};
use flow::DatapathId;
use std::collections::BTreeMap;

/// A connected switch.
#[derive(Clone, Debug)]
pub struct Datapath {
    n_buffers: u32,
    n_tables: u8,
    pub(crate) openflow: OpenFlowVersion,
    ports: Vec<PortRecord>,
    /// For each table, the largest number of packets that a rule makes of one packet.
    fanouts: BTreeMap<u8, u64>,
    /// The kernel's table-miss rules behind table 0.
    pub(crate) later_punts: LaterPunts,
    /// The zones whose packet-outs caused packet-ins in this session.
    pub(crate) senders_up: ZoneSet,
    pub(crate) flow_answer: FlowAnswer,
    pub(crate) buffers: Buffers,
    pub(crate) copies: Copies,
    pub(crate) entries: Entries,
    pub(crate) punts: Punts,
    pub(crate) metering: Metering,
    pub(crate) record: Record,
    pub(crate) inquiry: Inquiry,
}

/// What the kernel keeps about a switch, in addition to what the switch reported.
#[derive(Clone, Debug)]
pub struct OfSwitch {
    /// The switch.
    pub datapath: DatapathId,
    /// The numbers of its dropped packet-ins.
    pub dropped: PuntCounters,
    /// Whether the table-miss rule has a meter there.
    pub metering: Metering,
    /// Its report of the rules that it had when it connected.
    pub rule_report: RuleReport,
}

/// The limit of ports for one switch. Zones that attach later do not learn of further ports. The limit is what one
/// switch-up frame holds.
pub const MAX_PORTS: usize = 3000;

impl Datapath {
    /// Creates the record from the switch-up event.
    pub fn new(up: &SwitchUp<'_>) -> Self {
        let ports = up.ports[..up.ports.len().min(MAX_PORTS)].to_vec();
        Datapath {
            n_buffers: up.n_buffers,
            n_tables: up.n_tables,
            openflow: up.openflow,
            ports,
            fanouts: BTreeMap::new(),
            later_punts: LaterPunts::default(),
            senders_up: ZoneSet::EMPTY,
            flow_answer: FlowAnswer::default(),
            buffers: Buffers::default(),
            copies: Copies::default(),
            entries: Entries::default(),
            punts: Punts::default(),
            metering: Metering::default(),
            record: Record::default(),
            inquiry: Inquiry::default(),
        }
    }

    /// A bundle of an app begins.
    pub(crate) fn begin_bundle(&mut self) {
        self.record.begin_bundle();
        self.entries.be_in_bundle(true);
    }

    /// A bundle of an app is over.
    pub(crate) fn end_bundle(&mut self) {
        self.record.end_bundle();
        self.entries.be_in_bundle(self.record.is_in_bundle());
    }

    /// How many packets one packet becomes here, at least one.
    pub(crate) fn packets(&self, fanout: Fanout) -> u64 {
        fanout.packets(self.flooded(), self.by_tables()).max(1)
    }

    /// The kernel accepted a rule of this table. `fanout` is what the rule makes of one packet.
    pub(crate) fn note_fanout(&mut self, table_id: u8, fanout: Fanout) {
        let packets = fanout.packets(self.flooded(), 0);
        let most = self.fanouts.entry(table_id).or_default();
        *most = packets.max(*most);
    }

    /// Whether it has this table. With OpenFlow 1.0 there is only one.
    pub(crate) fn has_table(&self, table_id: u8) -> bool {
        self.openflow != OpenFlowVersion::V1_0 && table_id < self.n_tables
    }

    /// How many packets a flooded packet becomes.
    fn flooded(&self) -> u64 {
        self.ports.len().max(1) as u64
    }

    /// How many packets the tables may make of one packet, which passes each table once. The number is that of a flood,
    /// or higher because of rules that the kernel accepted in this session.
    fn by_tables(&self) -> u64 {
        self.fanouts.values().sum::<u64>().max(self.flooded())
    }

    /// Records a change of a port.
    pub fn on_port_status(&mut self, status: &PortStatus<'_>) {
        let place = self.ports.iter().position(|port| port.port_no() == status.port.port_no());
        match place {
            Some(index) if status.is_gone() => drop(self.ports.remove(index)),
            Some(index) => self.ports[index] = *status.port,
            None if !status.is_gone() && self.ports.len() < MAX_PORTS => self.ports.push(*status.port),
            None => {}
        }
    }

    /// The record's content, for display.
    pub fn kept(&self, datapath: DatapathId) -> OfSwitch {
        let (dropped, metering) = (self.punts.counters(), self.metering.clone());
        OfSwitch { datapath, dropped, metering, rule_report: self.inquiry.report() }
    }

    /// The switch-up event with the present state.
    pub fn switch_up(&self, datapath: DatapathId) -> SwitchUp<'_> {
        SwitchUp {
            datapath,
            n_buffers: self.n_buffers,
            n_tables: self.n_tables,
            openflow: self.openflow,
            ports: &self.ports,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::event::PortFacts;
    use flow::{MacAddr, PortNo};

    fn port(number: u32, live: bool) -> PortRecord {
        PortRecord::new(PortFacts {
            port_no: PortNo(number),
            hw_addr: MacAddr::default(),
            live,
            administratively_up: true,
            curr_speed_kbps: 0,
            name: "p",
        })
    }

    fn ports_after(reason: u8, changed: PortRecord) -> Vec<(u32, bool)> {
        let ports = [port(1, true), port(2, true)];
        let mut datapath = Datapath::new(&SwitchUp {
            datapath: DatapathId(1),
            n_buffers: 0,
            n_tables: 1,
            openflow: OpenFlowVersion::V1_3,
            ports: &ports,
        });
        datapath.on_port_status(&PortStatus { datapath: DatapathId(1), reason, port: &changed });
        datapath.ports.iter().map(|port| (port.port_no().0, port.facts().live)).collect()
    }

    #[test]
    fn a_deleted_port_is_gone_and_a_new_one_is_there() {
        assert_eq!(ports_after(1, port(1, true)), [(2, true)]);
        assert_eq!(ports_after(0, port(3, true)), [(1, true), (2, true), (3, true)]);
    }

    #[test]
    fn a_changed_port_is_changed_and_an_unknown_one_added() {
        assert_eq!(ports_after(2, port(2, false)), [(1, true), (2, false)]);
        assert_eq!(ports_after(2, port(9, false)), [(1, true), (2, true), (9, false)]);
        assert_eq!(ports_after(1, port(9, false)), [(1, true), (2, true)]);
    }
}
