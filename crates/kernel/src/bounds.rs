//! Checks whether a command stays within the bounds of the capability that it needs.
//!
//! ```text
//!   flow mod, group mod, packet-out + Bounds ──> Ok, or the first thing that goes beyond them (Excess)
//! ```
//!
//! The question is always: which packets can this command touch, and what can it make of them? Both must lie within the
//! flowspace, whatever else is in the switch's tables. In doubt the answer is no. Examples are an unknown action, a
//! field that a switch might ignore, and a packet in the switch's buffer. `crate::owned` decides the ownership of
//! groups and meters.
//!
//! A comparison with a large flowspace is slow. So the check compares the packets once after each change, not at each
//! output. A command may change packets [`MAX_CHANGES`] times. The check counts the comparisons, so that the worker can
//! bound its turn.
//!
//! In: a command that was parsed without error. Out: yes, or the excess. It does not allocate once its [`Scratch`] has
//! grown, with two exceptions. One is a rule that lies only within several matches of the flowspace together. The other
//! is a field or action of another class than OpenFlow's.

use crate::buffers::{Handed, Within};
use crate::excess::{Excess, TooMany};
use crate::fanout::UsualParts;
use crate::grant::{Bounds, BoundsHere};
use crate::owned::Owned;
use abi::command::{FlowMod, GroupMod, MeterMod, PacketOut};
use flow::canonical::{
    RawBand, actions_raw, bands_raw, buckets_raw, find_field, has_prerequisites, instructions_raw,
    read_match_into,
};
use flow::frame::FrameFields;
use flow::reach::{Way, way_of};
use flow::relation::{MAX_PIECES, covers, is_covered_by_one, overlaps, within};
use flow::rewrite::{is_changed_with, may_set, rewrite};
use flow::{Action, DatapathId, Field, Match, MatchEntry, PortNo};

/// `ofp_flow_mod_command`.
pub(crate) mod command {
    pub const ADD: u8 = 0;
    pub const MODIFY: u8 = 1;
    pub const MODIFY_STRICT: u8 = 2;
    pub const DELETE: u8 = 3;
    pub const DELETE_STRICT: u8 = 4;
}

/// OFPTT_ALL: every table, in a delete.
pub(crate) const ALL_TABLES: u8 = 0xff;

/// `ofp_group_mod_command` OFPGC_DELETE: the switch ignores its buckets.
const GROUP_DELETE: u16 = 2;

/// OFPIT_CLEAR_ACTIONS (1.3.5, 7.2.4).
const CLEAR_ACTIONS: u16 = 5;

/// How often the actions of one command may change packets that are bounded by a flowspace. The kernel refuses a
/// command with more. The limit allows a header rewrite for each of a few dozen ports.
pub const MAX_CHANGES: u32 = 64;

/// Memory that each command reuses.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// The match of this command. It is unset if the match has only usual fields and no flowspace bounds it.
    rule: Match,
    /// Whether each of its fields has its prerequisites; `None` until the check has run.
    is_complete: Option<bool>,
    /// The known fields of its packets after the actions so far, once an action has changed them.
    after: Match,
    has_after: bool,
    /// Memory for a match of the flowspace that an action changes.
    changed_space: Match,
    /// The ingress port of this command's packets, if it is known.
    in_port: Option<PortNo>,
    /// Changes of packets in this command.
    changes: u32,
    /// Whether packets were changed since they were last compared, or came in by one of the app's own ports and were never compared.
    unchecked: bool,
    /// Whether the action set sends packets to a port that is not the app's own, or to a group.
    sets_way_out: bool,
    /// Whether the command is a packet-out.
    is_packet_out: bool,
    /// Whether packets outside the flowspace enter a group that may take any.
    pub(crate) relies_on_groups: bool,
    /// Matches that were compared since the last [`Scratch::take_compared`].
    compared: u64,
}

impl Scratch {
    /// Returns the number of matches compared since the last call, and resets it. It is the cost of the decisions.
    pub fn take_compared(&mut self) -> u64 {
        std::mem::take(&mut self.compared)
    }

    /// The same without a reset.
    pub(crate) fn compared(&self) -> u64 {
        self.compared
    }

    /// Leaves out matches that were compared for no app's command.
    pub(crate) fn set_compared(&mut self, count: u64) {
        self.compared = count;
    }

    /// Adds matches that other code compared for a decision.
    pub(crate) fn count_compared(&mut self, count: u64) {
        self.compared += count;
    }

    /// The match of this command.
    pub(crate) fn rule(&self) -> &Match {
        &self.rule
    }

    /// The match, to be parsed into.
    pub(crate) fn rule_mut(&mut self) -> &mut Match {
        self.is_complete = None;
        &mut self.rule
    }

    /// Whether each field of the match has its prerequisites.
    pub(crate) fn is_complete(&mut self) -> bool {
        *self.is_complete.get_or_insert_with(|| has_prerequisites(&self.rule))
    }

    /// Starts the next command.
    fn begin(&mut self) {
        (self.changes, self.unchecked, self.has_after) = (0, false, false);
        (self.sets_way_out, self.is_packet_out) = (false, false);
    }

    /// The known fields of the packets after the actions so far. The next action changes them.
    fn after(&mut self) -> &mut Match {
        if !self.has_after {
            self.after.copy_from(&self.rule);
            self.has_after = true;
        }
        &mut self.after
    }

    /// Counts an action that changes packets. Compare them before they leave.
    fn count_change(&mut self) -> Result<(), Excess> {
        self.unchecked = true;
        self.count_harmless_change()
    }

    /// Counts an action that leaves packets of the flowspace within it.
    fn count_harmless_change(&mut self) -> Result<(), Excess> {
        self.changes += 1;
        if self.changes > MAX_CHANGES { Err(Excess::TooMany(TooMany::Changes(MAX_CHANGES))) } else { Ok(()) }
    }
}

/// A capability's bounds, and the other parts of the grant that affect them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reaches<'g> {
    /// The bounds.
    pub bounds: &'g Bounds,
    /// The packets and ports at the switch of the command.
    pub here: BoundsHere<'g>,
    /// Whether the app holds `packet.in`. Without it, the app may send nothing to the controller.
    pub hears_packets: bool,
    /// Whether the app may change other apps' rules. Only then can a delete reach them.
    pub others_too: bool,
    /// Whether the app's own rules may turn a packet-out's frame into a packet outside its flowspace; see
    /// `own_rules_go_beyond`.
    pub own_rules_go_beyond: bool,
    /// The switch of the command.
    pub datapath: DatapathId,
    /// The groups that have an owner, with what they do.
    pub owned: &'g Owned,
}

/// Whether rules within these bounds of `rule.write` may turn a frame within the flowspace of `packet.out` into one
/// outside it, at any switch.
pub(crate) fn own_rules_go_beyond(packet_out: &Bounds, rule_write: &Bounds) -> bool {
    let mut named = packet_out.switches.keys().chain(rule_write.switches.keys());
    go_beyond_here(packet_out.elsewhere(), rule_write.elsewhere())
        || named.any(|datapath| go_beyond_here(packet_out.at(*datapath), rule_write.at(*datapath)))
}

/// They cannot if the flowspace of `packet.out` contains all packets that the rules touch, or none of them: the rules'
/// results are among the packets that they touch.
fn go_beyond_here(packet_out: BoundsHere<'_>, rule_write: BoundsHere<'_>) -> bool {
    let Some(frames) = packet_out.flowspace else { return false };
    let Some(rules) = rule_write.flowspace else { return true };
    // By its own ports, a rule may send any packet.
    if rule_write.own_ports.iter().any(|port| !packet_out.owns(*port)) {
        return true;
    }
    let all_within = rules.iter().all(|rule| within(rule, frames));
    let none_within = || rules.iter().all(|rule| !frames.iter().any(|frame| overlaps(rule, frame)));
    !(all_within || rule_write.own_ports.is_empty() && none_within())
}

impl Reaches<'_> {
    /// Checks a flow mod. If its match has other fields than `usual`, the match is already in `scratch`.
    pub(crate) fn check_flow_mod(
        &self,
        datapath: DatapathId,
        it: &FlowMod<'_>,
        (usual, handed): (&UsualParts, Option<Handed>),
        scratch: &mut Scratch,
    ) -> Result<(), Excess> {
        scratch.begin();
        self.check_datapath(datapath)?;
        let deletes = matches!(it.command, command::DELETE | command::DELETE_STRICT);
        // A loose delete reaches only the app's own rules. They are within bounds, because the kernel checked them when
        // they were added.
        if it.command == command::DELETE && !self.others_too {
            return Ok(());
        }
        if !(it.command == command::DELETE && it.table_id == ALL_TABLES && self.bounds.tables.is_none()) {
            self.check_table(it.table_id)?;
        }
        if it.command != command::DELETE {
            self.check_priority(it.priority)?;
        }
        if self.here.flowspace.is_some() && usual.fields.is_some() {
            // The bytes were parsed before. If they cannot be parsed now, the rule is out of bounds.
            read_match_into(it.matching, scratch.rule_mut()).map_err(|_| Excess::Match)?;
        }
        self.check_match(scratch)?;
        if deletes {
            return Ok(());
        }
        self.check_buffer(it.buffer_id, handed)?;
        self.check_done(it, usual, scratch)?;
        match handed.filter(|_| self.here.flowspace.is_some()) {
            // The packet may not match the rule, and a switch may apply the rule's actions to it all the same.
            Some(handed) => {
                scratch.begin();
                self.begin_with(handed.rule_write, handed.in_port, Excess::Match, scratch)?;
                self.check_done_to(scratch.in_port, it, usual, scratch)
            }
            None => Ok(()),
        }
    }

    /// Checks what a rule does with the packets that it matches.
    fn check_done(&self, it: &FlowMod<'_>, usual: &UsualParts, scratch: &mut Scratch) -> Result<(), Excess> {
        let in_port = match it.buffer_id {
            // With a buffered packet, a 1.0 switch applies the rule's actions without checking that the rule matches
            // the packet.
            Some(_) if self.here.flowspace.is_none() => None,
            _ if self.here.flowspace.is_some() => {
                scratch.rule.get(Field::InPort).map(|(port, _)| port_of(port))
            }
            _ => find_field(it.matching, Field::InPort).map(port_of),
        };
        self.check_done_to(in_port, it, usual, scratch)
    }

    fn check_done_to(
        &self,
        in_port: Option<PortNo>,
        it: &FlowMod<'_>,
        usual: &UsualParts,
        scratch: &mut Scratch,
    ) -> Result<(), Excess> {
        // An output to a port changes no packet.
        if let Some(port) = usual.output.filter(|port| *port <= PortNo::MAX) {
            return self.check_way(Way::Port(port), None, scratch);
        }
        scratch.in_port = in_port;
        self.check_instructions(it.table_id, it.instructions, scratch)
    }

    /// Checks a group mod.
    pub fn check_group_mod(
        &self,
        datapath: DatapathId,
        it: &GroupMod<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), Excess> {
        self.check_datapath(datapath)?;
        if it.command == GROUP_DELETE {
            return Ok(());
        }
        self.check_buckets(it, scratch)
    }

    /// Checks the buckets of a group.
    pub fn check_buckets(&self, it: &GroupMod<'_>, scratch: &mut Scratch) -> Result<(), Excess> {
        scratch.begin();
        for bucket in buckets_raw(it.buckets).map_while(Result::ok) {
            // Any packet of the flowspace may enter the group, and each bucket is an action set.
            self.check_bucket(bucket.actions, scratch)?;
        }
        Ok(())
    }

    /// Whether the buckets of a group send only to ports that are the app's alone. Without bounds for packets, that does not matter.
    pub fn closes(&self, it: &GroupMod<'_>) -> bool {
        buckets_raw(it.buckets).map_while(Result::ok).all(|bucket| self.stays_own(bucket.actions))
    }

    /// Checks a meter mod.
    pub fn check_meter_mod(&self, datapath: DatapathId, it: &MeterMod<'_>) -> Result<(), Excess> {
        self.check_datapath(datapath)?;
        for band in bands_raw(it.bands) {
            match band {
                Ok(RawBand::Drop) => {}
                Ok(RawBand::RemarkDscp) if !self.flowspace().iter().any(says_dscp) => {}
                Ok(RawBand::RemarkDscp) => return Err(Excess::Rewrite),
                Ok(RawBand::Vendor(_)) | Err(_) => return Err(Excess::NotUnderstood),
            }
        }
        Ok(())
    }

    fn flowspace(&self) -> &[Match] {
        self.here.flowspace.unwrap_or_default()
    }

    /// Checks a packet-out.
    pub fn check_packet_out(
        &self,
        datapath: DatapathId,
        it: &PacketOut<'_>,
        handed: Option<Handed>,
        scratch: &mut Scratch,
    ) -> Result<(), Excess> {
        scratch.begin();
        scratch.is_packet_out = true;
        self.check_datapath(datapath)?;
        // A switch may take the command's port for that of the buffered packet.
        let handed = handed.filter(|handed| handed.in_port == it.in_port);
        self.check_buffer(it.buffer_id, handed)?;
        scratch.in_port = it.buffer_id.is_none().then_some(it.in_port);
        if let Some(handed) = handed.filter(|_| self.here.flowspace.is_some()) {
            self.begin_with(handed.packet_out, handed.in_port, Excess::Frame, scratch)?;
        } else if let Some(flowspace) = self.here.flowspace {
            let fields = FrameFields::read(it.data).from_port(it.in_port);
            let is_outside = !flowspace.iter().any(|space| space.matches(&fields));
            if is_outside && self.here.own_ports.is_empty() {
                return Err(Excess::Frame);
            }
            (scratch.has_after, scratch.unchecked) = (true, is_outside);
            scratch.after.clear();
            fields.iter().for_each(|(field, value)| scratch.after.set(field, value));
        }
        self.check_list(it.actions, true, scratch).map_err(|excess| match excess {
            Excess::Unchanged => Excess::Frame,
            other => other,
        })
    }

    /// Checks a switch.
    pub fn check_datapath(&self, datapath: DatapathId) -> Result<(), Excess> {
        if self.bounds.has_switch(datapath) { Ok(()) } else { Err(Excess::Datapath(datapath)) }
    }

    /// Checks a port that the command changes or sends to.
    pub fn check_port(&self, port: PortNo) -> Result<(), Excess> {
        match self.here.ports {
            Some(granted) if !granted.contains(&port) && !self.here.owns(port) => Err(Excess::Port(port)),
            _ => Ok(()),
        }
    }

    /// Checks a packet in the switch's buffer. With a flowspace, the app must have received it, so that something is known of it.
    /// Otherwise its fields and its ingress port are unknown, and so is the port that IN_PORT stands for. If ports are bounded,
    /// [`Self::check_way`] allows IN_PORT only if the grant names it.
    fn check_buffer(&self, buffer_id: Option<u32>, handed: Option<Handed>) -> Result<(), Excess> {
        match (buffer_id, self.here.flowspace) {
            (Some(id), Some(_)) if handed.is_none() => Err(Excess::Buffer(id)),
            _ => Ok(()),
        }
    }

    /// Begins with a buffered packet, of which only its place in the flowspace and its ingress port are known.
    fn begin_with(
        &self,
        place: Within,
        in_port: PortNo,
        outside: Excess,
        scratch: &mut Scratch,
    ) -> Result<(), Excess> {
        let flowspace = self.here.flowspace.unwrap_or_default();
        match place {
            Within::Match(place) => {
                let space = flowspace.get(usize::from(place)).ok_or(outside)?;
                scratch.after.copy_from(space);
            }
            Within::OwnPort => {
                scratch.after.clear();
                scratch.unchecked = true;
            }
            Within::Outside => return Err(outside),
        }
        scratch.after.set(Field::InPort, in_port.0.into());
        (scratch.has_after, scratch.in_port) = (true, Some(in_port));
        Ok(())
    }

    fn check_table(&self, table_id: u8) -> Result<(), Excess> {
        match &self.bounds.tables {
            Some(granted) if !granted.contains(table_id) => Err(Excess::Table(table_id)),
            _ => Ok(()),
        }
    }

    fn check_priority(&self, asked: u16) -> Result<(), Excess> {
        let (lowest, highest) = (*self.bounds.priorities.start(), *self.bounds.priorities.end());
        if asked > highest {
            Err(Excess::PriorityAbove(asked, highest))
        } else if asked < lowest {
            Err(Excess::PriorityBelow(asked, lowest))
        } else {
            Ok(())
        }
    }

    fn check_match(&self, scratch: &mut Scratch) -> Result<(), Excess> {
        let Some(flowspace) = self.here.flowspace else { return Ok(()) };
        if !scratch.is_complete() {
            return Err(Excess::Prerequisite);
        }
        if !self.here.own_ports.is_empty() && self.is_of_own_port(&scratch.rule) {
            // All of these packets are within the bounds. Whether they are within the flowspace counts where they leave.
            scratch.unchecked = true;
            return Ok(());
        }
        let Scratch { rule, compared, .. } = scratch;
        if lies_within(rule, flowspace, compared) { Ok(()) } else { Err(Excess::Match) }
    }

    /// Whether all of these packets came in by one of the app's own ports.
    fn is_of_own_port(&self, packets: &Match) -> bool {
        let whole = Field::InPort.full_mask();
        packets.get(Field::InPort).is_some_and(|(port, mask)| mask == whole && self.here.owns(port_of(port)))
    }

    /// Checks the instructions in the order in which a switch applies them (1.3.5, 5.9), not in their order in the
    /// message.
    fn check_instructions(&self, table_id: u8, bytes: &[u8], scratch: &mut Scratch) -> Result<(), Excess> {
        let bounds_packets = self.here.flowspace.is_some();
        let (mut metadata, mut goes_on, mut clears) = (None, false, false);
        // Usually the instructions are one list, and nothing needs the packets after it.
        let is_alone = instructions_raw(bytes).map_while(Result::ok).nth(1).is_none();
        for raw in instructions_raw(bytes).map_while(Result::ok) {
            if raw.is_experimenter() {
                return Err(Excess::NotUnderstood);
            } else if let Some(table_id) = raw.goto_table() {
                goes_on = true;
                self.check_table(table_id)?;
            } else if let Some(written) = raw.write_metadata() {
                metadata = Some(written);
            } else if let Some(actions) = raw.action_bytes().filter(|_| raw.is_apply()) {
                self.check_list(actions, is_alone, scratch)?;
            } else {
                clears |= raw.kind == CLEAR_ACTIONS;
            }
        }
        for raw in instructions_raw(bytes).map_while(Result::ok) {
            if let Some(actions) = raw.action_bytes().filter(|_| !raw.is_apply()) {
                self.check_action_set(actions, scratch)?;
            }
        }
        if let Some((value, mask)) = metadata.filter(|_| bounds_packets) {
            write_metadata(scratch.after(), value, mask);
            scratch.unchecked = true;
        }
        // An output in the action set and the next table get the packet in its present state. An earlier table may have put
        // an output into the set, unless there is none, or the set is cleared.
        let may_leave = scratch.sets_way_out || !(table_id == 0 || clears);
        self.check_end(may_leave, goes_on, scratch)
    }

    /// Checks the packets at the end of a rule, where an output of the action set may wait for them, or another table.
    fn check_end(&self, may_leave: bool, goes_on: bool, scratch: &mut Scratch) -> Result<(), Excess> {
        if self.here.own_ports.is_empty() {
            return self.check_after(scratch);
        }
        // If such an output waits from an earlier table, the packet was within the flowspace there. It still is, if it is
        // unchanged.
        match scratch.changes > 0 || scratch.has_after || scratch.sets_way_out {
            true if may_leave => self.check_after(scratch),
            true if goes_on => self.check_known(scratch),
            _ => Ok(()),
        }
    }

    /// Checks packets that stay in the switch, or go to the controller. They may be outside the flowspace if they came in by one of the app's own
    /// ports, but only as they came. Changed, they would seem to be packets of another app in a later table or in an event.
    fn check_known(&self, scratch: &mut Scratch) -> Result<(), Excess> {
        let packets = if scratch.has_after { &scratch.after } else { &scratch.rule };
        // A packet-out has the fields of its frame there from the beginning.
        let is_changed = scratch.changes > 0 || (scratch.has_after && !scratch.is_packet_out);
        if !is_changed && !self.here.own_ports.is_empty() && self.is_of_own_port(packets) {
            return Ok(());
        }
        self.check_after(scratch)
    }

    /// Checks an action list in order on the packets of `scratch.after`. The last changes may be unchecked when it
    /// returns. `is_alone`: nothing needs those packets after the list. Then harmless changes before the first other one are
    /// not carried out.
    fn check_list(&self, actions: &[u8], is_alone: bool, scratch: &mut Scratch) -> Result<(), Excess> {
        let mut is_harmless = is_alone;
        for raw in actions_raw(actions).map_while(Result::ok) {
            // Most actions are outputs, which change nothing: they are not read as actions.
            if let Some((port, _)) = raw.output() {
                self.check_way(Way::Port(port), scratch.in_port, scratch)?;
                // The tables may have changed the packet.
                is_harmless &= port != PortNo::TABLE;
                continue;
            }
            let action = raw.read().map_err(|_| Excess::NotUnderstood)?;
            if let Some(way) = way_of(&action) {
                self.check_way(way, scratch.in_port, scratch)?;
            }
            self.check_in_port(&action)?;
            if self.here.flowspace.is_none() || !changes_packets(&action) {
                continue;
            }
            if is_harmless && self.is_harmless(&action) {
                scratch.count_harmless_change()?;
                continue;
            }
            if std::mem::take(&mut is_harmless) {
                let before =
                    actions_raw(actions).map_while(Result::ok).take_while(|it| it.offset < raw.offset);
                let changes = before.filter_map(|it| it.read().ok()).filter(changes_packets);
                changes.for_each(|earlier| rewrite(scratch.after(), &earlier));
            }
            scratch.count_change()?;
            rewrite(scratch.after(), &action);
        }
        Ok(())
    }

    /// Whether an action changes nothing that the flowspace names.
    fn is_harmless(&self, action: &Action) -> bool {
        let Action::SetField { field: written, .. } = action else { return false };
        let named = self.here.flowspace.into_iter().flatten().flat_map(Match::entries);
        named.into_iter().all(|entry| match entry {
            MatchEntry::Field { field, .. } => !is_changed_with(*field, *written),
            MatchEntry::Unknown { .. } => false,
        })
    }

    /// Checks an action set. A switch applies it at the end of the pipeline, after other tables' actions and merged
    /// with other sets. So each action alone must leave each match of the flowspace within the flowspace. Then no order
    /// and no combination leads out of it.
    fn check_action_set(&self, actions: &[u8], scratch: &mut Scratch) -> Result<(), Excess> {
        self.check_set(actions, false, scratch)
    }

    /// Checks a bucket, which is an action set of its own. What it makes of its copy of the packet is seen nowhere else. So
    /// if it sends the copy only to own ports, it may change it in any way.
    fn check_bucket(&self, actions: &[u8], scratch: &mut Scratch) -> Result<(), Excess> {
        self.check_set(actions, self.stays_own(actions), scratch)
    }

    /// Whether a bucket sends only to own ports.
    fn stays_own(&self, actions: &[u8]) -> bool {
        let is_own = |way: Way| matches!(way, Way::Port(port) if self.here.owns(port));
        let mut ways = actions_raw(actions).map_while(Result::ok).filter_map(|raw| way_of(&raw.read().ok()?));
        !self.here.own_ports.is_empty() && ways.all(is_own)
    }

    /// `stays_own`: what the actions make of the packets is only sent to own ports.
    fn check_set(&self, actions: &[u8], stays_own: bool, scratch: &mut Scratch) -> Result<(), Excess> {
        for raw in actions_raw(actions).map_while(Result::ok) {
            let action = raw.read().map_err(|_| Excess::NotUnderstood)?;
            if let Some(way) = way_of(&action) {
                // Only the flowspace bounds the ingress port here. This check does not use it to resolve IN_PORT.
                self.check_granted(way, None)?;
                if matches!(way, Way::Table(_)) && !self.here.own_ports.is_empty() {
                    return Err(Excess::NotUnderstood);
                }
                scratch.sets_way_out |= !matches!(way, Way::Port(port) if self.here.owns(port));
            }
            self.check_in_port(&action)?;
            if stays_own {
                continue;
            }
            let Some(flowspace) = self.here.flowspace.filter(|_| changes_packets(&action)) else {
                continue;
            };
            scratch.count_change()?;
            scratch.compared += flowspace.len() as u64;
            for space in flowspace {
                scratch.changed_space.copy_from(space);
                rewrite(&mut scratch.changed_space, &action);
                if !covers(space, &scratch.changed_space) {
                    return Err(Excess::RewriteLater);
                }
            }
        }
        Ok(())
    }

    /// Compares the packets if they changed since the last comparison, or came in by one of the app's own ports.
    fn check_after(&self, scratch: &mut Scratch) -> Result<(), Excess> {
        if !std::mem::take(&mut scratch.unchecked) {
            return Ok(());
        }
        self.compare(scratch)
    }

    fn compare(&self, scratch: &mut Scratch) -> Result<(), Excess> {
        let Scratch { rule, after, has_after, compared, changes, is_packet_out, .. } = scratch;
        // Actions of an action set are compared one by one. They do not change the known fields of the packets.
        if !*has_after && self.here.own_ports.is_empty() {
            return Ok(());
        }
        let is_changed = if *is_packet_out { *changes > 0 } else { *has_after };
        let packets = if *has_after { after } else { rule };
        match self.here.flowspace {
            Some(flowspace) if !lies_within(packets, flowspace, compared) => {
                Err(if is_changed { Excess::Rewrite } else { Excess::Unchanged })
            }
            _ => Ok(()),
        }
    }

    /// If ports are bounded or the app's own, an action may not change the ingress port. Through IN_PORT, the packet could
    /// leave by a forbidden port, and in a later table it would seem to be of one of the app's own ports.
    fn check_in_port(&self, action: &Action) -> Result<(), Excess> {
        let counts = self.here.ports.is_some() || !self.here.own_ports.is_empty();
        if counts && may_set(action, Field::InPort) { Err(Excess::InPort) } else { Ok(()) }
    }

    /// Checks a packet-out's frame that the switch sends through its tables.
    fn check_own_rules(&self) -> Result<(), Excess> {
        if self.own_rules_go_beyond { Err(Excess::OwnRules) } else { Ok(()) }
    }

    /// Checks a way, and the packets that go there now. `in_port` is their ingress port, if it is known.
    fn check_way(&self, way: Way, in_port: Option<PortNo>, scratch: &mut Scratch) -> Result<(), Excess> {
        self.check_granted(way, in_port)?;
        if self.here.own_ports.is_empty() {
            return self.check_after(scratch);
        }
        match way {
            Way::Port(port) if self.here.owns(port) => Ok(()),
            Way::Group(group_id) => self.check_into_group(group_id, scratch),
            Way::Port(PortNo::IN_PORT) if in_port.is_some_and(|port| self.here.owns(port)) => Ok(()),
            Way::Port(PortNo::CONTROLLER) => self.check_known(scratch),
            Way::Port(PortNo::TABLE) if scratch.is_packet_out => {
                self.check_known(scratch)?;
                // The next action gets the packet as the app's own rules have left it, which may be outside the flowspace.
                scratch.after().clear();
                scratch.count_change()
            }
            // The tables may leave the packet outside the flowspace, while an output waits for it in the action set.
            Way::Table(_) | Way::Port(PortNo::TABLE) => Err(Excess::NotUnderstood),
            _ => self.check_after(scratch),
        }
    }

    /// Any packet may enter a closed group, if all ports of the app at this switch are its own. After a restart of the node, it is not known
    /// which groups get such packets. But with these ports, no group of the app can be made to send to those of others.
    fn check_into_group(&self, group_id: u32, scratch: &mut Scratch) -> Result<(), Excess> {
        let is_own = |port: &PortNo| *port == PortNo::TABLE || self.here.owns(*port);
        let has_others = self.here.ports.is_none_or(|ports| !ports.iter().all(is_own));
        if has_others || !self.owned.is_closed(self.datapath, group_id) {
            return self.check_after(scratch);
        }
        let was_unchecked = scratch.unchecked;
        if self.check_after(scratch).is_err() {
            // They are still to be compared before they leave otherwise.
            scratch.unchecked = was_unchecked;
            scratch.relies_on_groups = true;
        }
        Ok(())
    }

    /// Checks that the way is granted. `in_port`: the ingress port of the packets that go this way, if it is known.
    fn check_granted(&self, way: Way, in_port: Option<PortNo>) -> Result<(), Excess> {
        match way {
            Way::Port(PortNo::CONTROLLER) if self.hears_packets => Ok(()),
            Way::Port(PortNo::CONTROLLER) => Err(Excess::Controller),
            Way::Port(PortNo::IN_PORT) => self.check_port(in_port.unwrap_or(PortNo::IN_PORT)),
            Way::Port(PortNo::TABLE) => self.check_port(PortNo::TABLE).and_then(|()| self.check_own_rules()),
            Way::Port(port) => self.check_port(port),
            // `crate::owned` checks the group's owner and its buckets.
            Way::Group(_) => Ok(()),
            Way::Table(table_id) => self.check_table(table_id).and_then(|()| self.check_own_rules()),
            Way::Anywhere => Err(Excess::NotUnderstood),
        }
    }
}

/// Whether a match has a DSCP field, which a meter remarks: OpenFlow's, or possibly another class's.
fn says_dscp(space: &Match) -> bool {
    let is_other = |entry: &MatchEntry| matches!(entry, MatchEntry::Unknown { .. });
    space.get(Field::IpDscp).is_some() || space.entries().iter().any(is_other)
}

/// A port has 32 bits, and a match's value has no bit outside its field.
fn port_of(value: u128) -> PortNo {
    PortNo((value & 0xffff_ffff) as u32)
}

/// [`within`], with a count of the comparisons. It compares pieces only if no single match of the flowspace covers the
/// rule.
fn lies_within(rule: &Match, flowspace: &[Match], compared: &mut u64) -> bool {
    *compared += flowspace.len() as u64;
    if is_covered_by_one(rule, flowspace) {
        return true;
    }
    *compared += if flowspace.len() > 1 { MAX_PIECES as u64 } else { 0 };
    flowspace.len() > 1 && within(rule, flowspace)
}

/// Whether an action changes a packet. An experimenter action may; `rewrite` decides how.
fn changes_packets(action: &Action) -> bool {
    !matches!(action, Action::Output { .. } | Action::Enqueue { .. } | Action::Group(_) | Action::SetQueue(_))
}

/// The metadata bits that are known after the write: the written bits, and the bits that were known before.
fn write_metadata(after: &mut Match, value: u64, mask: u64) {
    let (value, mask) = (u128::from(value), u128::from(mask));
    let (known, known_mask) = after.get(Field::Metadata).unwrap_or((0, 0));
    after.set_masked(Field::Metadata, known & !mask | value & mask, known_mask | mask);
}
