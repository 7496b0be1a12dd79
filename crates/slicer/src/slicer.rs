//! All virtual switches of one slice.
//!
//! In: events. Out: what to do, in order. It finds the switch that an event is for, and carries frames of discovery protocols over virtual
//! links.

use crate::controller::State;
use crate::discovery::Links;
use crate::event::Event;
use crate::flows::Flows;
use crate::hops::hops_of;
use crate::label::LabelForm;
use crate::loss::{Loss, Lost};
use crate::output::{ADD, Connection, Output};
use crate::pending::AWAITED_OF_SLICE_MAX;
use crate::plan::{BadPlan, End, SlicePlan};
use crate::port::PortFacts;
use crate::refusal::Refusal;
use crate::rule_table::{Idle, physical_priority};
use crate::shaper::Shaping;
use crate::virtual_switch::{Counters, Turn, VirtualSwitch};
use crate::vnic::{FlowChange, Vnic, Wiring};
use crate::withdrawal::Going;
use abi::zone_id::COOKIE_MASK;
use flow::DatapathId;
use flow::text::{instructions_to_string, match_to_string};
use openflow::Version;
use openflow::message::{FlowMod, ROLE_MASTER, ROLE_SLAVE};
use std::collections::{BTreeMap, BTreeSet};

/// A controller whose handshake is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerFacts {
    /// The version that both speak.
    pub version: Version,
    /// Its role, as in `ofp_controller_role` (1.3.5, 7.3.9).
    pub role: u32,
}

impl ControllerFacts {
    /// The name of the role.
    pub fn role_name(&self) -> &'static str {
        match self.role {
            ROLE_MASTER => "master",
            ROLE_SLAVE => "slave",
            _ => "equal",
        }
    }
}

/// A slice: the virtual switches of one tenant.
#[derive(Clone, Debug)]
pub struct Slicer {
    pub(crate) switches: BTreeMap<DatapathId, VirtualSwitch>,
    links: Links,
    /// The switches of which something is not in the journal.
    unsaved: BTreeSet<DatapathId>,
    /// Changes of all switches that have no answer yet, and will have one.
    awaited: usize,
    /// Only if somebody wants to know them.
    pub(crate) flows: Option<Flows>,
}

impl Slicer {
    /// A slice whose physical switches are not connected yet.
    ///
    /// # Errors
    /// The plan cannot be carried out: a sentence that names the slice and the wrong value.
    pub fn new(plan: &SlicePlan) -> Result<Slicer, BadPlan> {
        plan.check()?;
        let switches = plan.switches.iter().enumerate();
        let switches =
            switches.map(|(index, switch)| (switch.datapath, VirtualSwitch::new(plan, switch, index)));
        Ok(Slicer {
            switches: switches.collect(),
            links: Links::default(),
            unsaved: BTreeSet::new(),
            awaited: 0,
            flows: None,
        })
    }

    /// The same slice, which traces the flows between these VNICs.
    ///
    /// # Errors
    /// A VNIC is at a port that the slice does not have.
    pub fn tracing(mut self, plan: &SlicePlan, vnics: &[Vnic]) -> Result<Slicer, BadPlan> {
        let wiring = Wiring::new(plan, vnics)?;
        let packets = |at: &End| {
            let space = self.switches.get(&at.datapath).map(|switch| &switch.space);
            space.map_or_else(Vec::new, |space| space.packets_of(at.port))
        };
        let starts = wiring.vnics.keys().map(|at| (*at, packets(at))).collect();
        self.flows = Some(Flows::new(wiring, starts));
        Ok(self)
    }

    /// The same slice, whose controllers receive labels in this form.
    #[must_use]
    pub fn telling_labels(mut self, form: LabelForm) -> Slicer {
        self.switches.values_mut().for_each(|switch| switch.label_form = form);
        self
    }

    /// The same slice, which can hold these ports, by the numbers that the tenant sees, to these rates in kbit/s. It does when
    /// [`Event::Shape`] says so. Half of the slice's meters at a switch are the most.
    #[must_use]
    pub fn shaping_ports(mut self, ports: impl IntoIterator<Item = (End, u32)>) -> Slicer {
        for (End { datapath, port }, rate_kbps) in ports {
            let switch = self.switches.get_mut(&datapath);
            // What has no number is not shaped, and `shaping` says so.
            let _has_number = switch.is_some_and(|switch| switch.add_shaper(port, rate_kbps));
        }
        self
    }

    /// The state of the meter at a port. `None`: it has no number.
    pub fn shaping(&self, End { datapath, port }: End) -> Option<Shaping> {
        self.switches.get(&datapath)?.shaping(port)
    }

    /// Traces up to this number of VNICs whose packets meet rules that changed. What changed is appended to `out`. Returns whether more VNICs are due.
    pub fn trace_flows(&mut self, vnics: usize, out: &mut Vec<FlowChange>) -> bool {
        self.flows.as_mut().is_some_and(|flows| flows.advance(vnics, out))
    }

    /// Whether [`Slicer::trace_flows`] has something to do.
    pub fn has_flows_due(&self) -> bool {
        self.flows.as_ref().is_some_and(Flows::is_due)
    }

    /// All flows with their paths, as [`Slicer::trace_flows`] has told them.
    pub fn flows(&self) -> Vec<FlowChange> {
        self.flows.as_ref().map(Flows::all).unwrap_or_default()
    }

    /// The ports of VNICs for which there are so many rules that some of their flows were left out.
    pub fn flows_cut(&self) -> usize {
        self.flows.as_ref().map_or(0, Flows::cut)
    }

    /// From now on, notes what changes, for [`Slicer::write_journal`].
    pub fn keep_journals(&mut self) {
        self.switches.values_mut().for_each(VirtualSwitch::keep_journal);
    }

    /// Whether something is not in the journals.
    pub fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// The switches of which something is not in the journal.
    pub fn unsaved(&self) -> Vec<DatapathId> {
        self.unsaved.iter().copied().collect()
    }

    /// Appends to `out` what changed at a switch since the last call. If that is more than is noted, or `wants_all`, it appends the
    /// content of a whole file in its place. Returns whether it did.
    pub fn write_journal(&mut self, datapath: DatapathId, wants_all: bool, out: &mut Vec<u8>) -> bool {
        self.unsaved.remove(&datapath);
        self.switches.get_mut(&datapath).is_some_and(|switch| switch.write_journal(wants_all, out))
    }

    /// Takes the state of a switch from the journal of an earlier process. When the physical switch connects, the rules are compared with it;
    /// until then, [`Slicer::may_take_for`] says that messages wait. Call it before anything happens to the switch, and after
    /// [`Slicer::number_rules_from`].
    ///
    /// # Errors
    /// A phrase: the journal is damaged. Nothing has changed.
    pub fn recall(&mut self, datapath: DatapathId, journal: &[u8]) -> Result<(), &'static str> {
        self.switches.get_mut(&datapath).map_or(Ok(()), |switch| switch.recall(journal))
    }

    /// Numbers the rules from here on, so that those that an earlier run of this slice left in the switches have others. A number has 48 bits.
    pub fn number_rules_from(&mut self, first: u64) {
        for switch in self.switches.values_mut() {
            switch.rules.number_from(first & COOKIE_MASK);
            switch.leftovers.number_from(first & COOKIE_MASK);
        }
    }

    /// Begins to delete what the slice loses from the physical switches. [`Slicer::withdrawn`] says when that is done. A switch that is lost as a whole
    /// ends its connections, and gets no rule any more.
    pub fn withdraw(&mut self, now_ms: u64, loss: &Loss, out: &mut Vec<Output>) {
        let turn = &mut Turn { now_ms, out };
        let switches: Vec<DatapathId> = self.switches.keys().copied().collect();
        for datapath in switches {
            let hosts = loss.hosts.clone();
            let going = match loss.switches.get(&datapath) {
                Some(Lost::All(_)) => Going::All,
                Some(Lost::Ports(ports)) => Going::Parts { ports: ports.clone(), hosts },
                None if hosts.is_empty() => continue,
                None => Going::Parts { ports: BTreeSet::new(), hosts },
            };
            self.at(datapath, |switch| switch.withdraw(going, turn));
        }
    }

    /// When [`Event::Time`] is due, because there was no room for a delete.
    pub fn withdrawal_due_ms(&self) -> Option<u64> {
        self.switches.values().filter_map(VirtualSwitch::withdrawal_due_ms).min()
    }

    /// The switches that keep some of what the slice loses, each with the reason. `None`: answers of switches are missing.
    pub fn withdrawn(&self) -> Option<Vec<(DatapathId, String)>> {
        let mut kept = Vec::new();
        for switch in self.switches.values().filter(|switch| switch.withdrawing.is_some()) {
            if let Err(why) = switch.withdrawal_end()? {
                kept.push((switch.datapath, why.clone()));
            }
        }
        Some(kept)
    }

    /// Something happened at `now_ms`, in milliseconds of a clock that never steps back. What is to be done is appended to `out`, in
    /// order. An event for a switch that is not in the slice has no effect.
    pub fn on_event(&mut self, now_ms: u64, event: Event<'_>, out: &mut Vec<Output>) {
        let mut turn = Turn { now_ms, out };
        let turn = &mut turn;
        match event {
            Event::Label { datapath, port, label } => {
                self.at(datapath, |switch| switch.on_label(port, label, turn));
            }
            Event::Shape { at: End { datapath, port }, is_wanted } => {
                self.at(datapath, |switch| switch.on_shape(port, is_wanted, turn));
            }
            Event::LabelsStale(is_stale) => {
                self.switches.values_mut().for_each(|switch| switch.on_stale(is_stale, turn));
            }
            Event::Link { link, is_up } => self.links.set(&link, is_up),
            Event::Time => {
                let waits = |switch: &&VirtualSwitch| switch.rules.bare().next().is_some();
                let due: Vec<DatapathId> =
                    self.switches.values().filter(waits).map(|switch| switch.datapath).collect();
                due.into_iter().for_each(|datapath| self.at(datapath, |switch| switch.end_bare_rules(turn)));
                self.switches.values_mut().for_each(|switch| switch.go_on_withdrawing(turn));
            }
            Event::ControllerUp(Connection { datapath, controller }) => {
                self.at(datapath, |switch| switch.on_controller_up(controller, turn));
            }
            Event::ControllerDown(Connection { datapath, controller }) => {
                self.at(datapath, |switch| switch.on_controller_down(controller, turn));
            }
            Event::Message(Connection { datapath, controller }, bytes) => {
                self.at(datapath, |switch| switch.on_message(controller, bytes, turn));
                self.carry_probes(datapath, turn);
            }
            Event::SwitchUp { datapath, version, ports } => {
                self.at(datapath, |switch| switch.on_switch_up(version, ports, turn));
            }
            Event::SwitchDown(datapath) => self.at(datapath, |switch| switch.on_switch_down(turn)),
            Event::PacketIn(packet) => self.at(packet.datapath, |switch| switch.on_packet_in(&packet, turn)),
            Event::PortStatus { datapath, reason, port } => {
                self.at(datapath, |switch| switch.on_port_status(reason, port, turn));
            }
            Event::FlowRemoved { datapath, removed } => {
                self.at(datapath, |switch| switch.on_flow_removed(&removed, turn));
            }
            Event::Answer { datapath, ticket, outcome } => {
                self.at(datapath, |switch| switch.on_answer(ticket, outcome, turn));
                // Messages that waited for a group or meter are carried out by an answer.
                self.carry_probes(datapath, turn);
            }
            Event::Statistics { datapath, ticket, more, body } => {
                self.at(datapath, |switch| switch.on_statistics(ticket, more, body, turn));
            }
        }
    }

    fn at(&mut self, datapath: DatapathId, act: impl FnOnce(&mut VirtualSwitch)) {
        let Some(switch) = self.switches.get_mut(&datapath) else { return };
        let before = switch.pending.awaited();
        act(switch);
        self.awaited = self.awaited + switch.pending.awaited() - before;
        if switch.has_unsaved() {
            self.unsaved.insert(datapath);
        }
        let Some(flows) = &mut self.flows else { return switch.rules.forget_touched() };
        for number in switch.rules.take_touched() {
            let at = |port| End { datapath, port };
            let rule = switch.rules.get(number);
            let hops = rule.map(|rule| hops_of(rule, &switch.space, &switch.groups, at));
            flows.set_rule(datapath, number, hops.unwrap_or_default());
        }
    }

    /// Frames of discovery protocols that left a switch arrive at the other ends of its virtual links.
    fn carry_probes(&mut self, datapath: DatapathId, turn: &mut Turn<'_>) {
        let Some(switch) = self.switches.get_mut(&datapath) else { return };
        for (port, frame) in std::mem::take(&mut switch.probes) {
            let Some(peer) = self.links.peer(End { datapath, port }) else { continue };
            self.at(peer.datapath, |switch| switch.on_probe(peer.port, &frame, turn));
        }
    }

    /// What a flow mod of the tenant would become in the physical switch: each piece in the syntax of `ovs-ofctl`. Nothing is changed.
    ///
    /// # Errors
    /// Why it would be refused. `None`: the switch is not in the slice.
    pub fn explain(&self, datapath: DatapathId, flow_mod: &FlowMod) -> Result<Vec<String>, Option<Refusal>> {
        let switch = self.switches.get(&datapath).ok_or(None)?;
        switch.explain(flow_mod).map_err(Some)
    }

    /// What is known of a controller whose handshake is done.
    pub fn controller(&self, connection: Connection) -> Option<ControllerFacts> {
        let controller = self.switches.get(&connection.datapath)?.controllers.get(connection.controller)?;
        Some(ControllerFacts { version: controller.version()?, role: controller.role })
    }

    /// Whether there is room for packet-ins of a connection: its controller reads its messages. At first there is. All other messages are
    /// told all the same.
    pub fn set_room(&mut self, Connection { datapath, controller }: Connection, has_room: bool) {
        let switch = self.switches.get_mut(&datapath);
        if let Some(it) = switch.and_then(|switch| switch.controllers.get_mut(controller)) {
            it.has_room = has_room;
        }
    }

    /// What a virtual switch has counted, if there is one.
    pub fn counters(&self, datapath: DatapathId) -> Option<Counters> {
        Some(self.switches.get(&datapath)?.counters)
    }

    /// Whether messages of controllers may be read: the kernel does not owe too many answers.
    pub fn may_take(&self) -> bool {
        self.awaited < AWAITED_OF_SLICE_MAX
    }

    /// Whether messages for this switch may be read.
    pub fn may_take_for(&self, datapath: DatapathId) -> bool {
        let may_take = |switch: &VirtualSwitch| !switch.pending.is_busy() && !switch.recall.is_open();
        self.switches.get(&datapath).is_none_or(may_take)
    }

    /// How many rules the tenant has in a virtual switch, and how many pieces they are while all ports are open.
    pub fn rules(&self, datapath: DatapathId) -> Option<(usize, usize)> {
        let rules = &self.switches.get(&datapath)?.rules;
        Some((rules.len(), rules.pieces()))
    }
}

impl VirtualSwitch {
    fn explain(&self, it: &FlowMod) -> Result<Vec<String>, Refusal> {
        let pieces = self.lay_out(it.priority, &it.matching, &it.instructions)?;
        self.check_priority(it.priority, &it.matching)?;
        let known = self.rules.find(it.priority, &it.matching).map(|rule| rule.number);
        self.check_places([(known, &pieces[..])])?;
        let priority = physical_priority(it.priority);
        let pieces = pieces.iter().filter(|piece| piece.idle.is_in_switch());
        let shown = |piece: &crate::rule_table::RulePiece| {
            let matching = match_to_string(&piece.matching);
            format!("priority={priority},{matching} actions={}", instructions_to_string(&piece.instructions))
        };
        Ok(pieces.map(shown).collect())
    }

    /// The physical switch connected. It gets all rules: it may have lost them.
    fn on_switch_up(&mut self, version: Version, ports: Vec<PortFacts>, turn: &mut Turn<'_>) {
        if self.physical.is_some() {
            self.on_switch_down(turn);
        }
        self.physical = Some(version);
        if self.is_withdrawn {
            return;
        }
        let is_recalled = self.recall.is_open();
        self.space.ports_mut().for_each(|port| {
            let facts = ports.iter().find(|facts| facts.port == port.plan.port);
            port.facts = facts.cloned();
            if !is_recalled && port.reset() {
                self.unsaved.ports.note(port.plan.shown_as.0);
            }
        });
        self.lay_floor(turn);
        if is_recalled {
            return self.compare(turn);
        }
        let numbers: Vec<u64> = self.rules.iter().map(|rule| rule.number).collect();
        for number in &numbers {
            self.rules.change_pieces(*number, |rule| {
                rule.pieces.iter_mut().for_each(|piece| piece.idle = Idle::Gone)
            });
        }
        self.relay_meters(turn);
        self.relay_shapers(turn);
        self.relay_groups(ADD, turn);
        self.relay_rules(turn);
        self.ask_for_leftovers(turn);
    }

    /// The physical switch is gone, and so is the virtual one. The tenant's rules stay, for when it comes back.
    fn on_switch_down(&mut self, turn: &mut Turn<'_>) {
        self.physical = None;
        self.floor = Default::default();
        self.forget_shapers();
        self.pending.clear();
        self.leaving.clear();
        self.leftovers.on_switch_down();
        self.recall.on_switch_down();
        self.break_off_withdrawing();
        self.held.clear();
        self.claims = 0;
        let why = format!("switch {} disconnected", self.datapath);
        for controller in 0..self.controllers.len() {
            if self.controllers[controller].state != State::Closed {
                self.end(controller, why.clone(), turn);
            }
        }
    }
}
