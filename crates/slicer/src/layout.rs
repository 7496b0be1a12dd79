//! The pieces of a tenant's rule in the physical switch.
//!
//! In: a match and instructions of the tenant. Out: the matches and instructions of the physical switch, or the refusal. It changes
//! nothing, so that `explain` shows what a flow mod would become.

use crate::flattening::{Flat, flatten};
use crate::port::VirtualPort;
use crate::refusal::*;
use crate::rule_table::{Idle, RulePiece, key_of, physical_priority, twin_of};
use crate::space::{Piece, VLAN_PRESENT};
use crate::translation::{Scene, Start, depends_on_tag, has_tag};
use crate::virtual_switch::VirtualSwitch;
use flow::relation::intersection;
use flow::{Action, EXACT_PRIORITY_V10, Field, Instruction, Match, PortNo, is_exact_in_v10};
use openflow::message::FlowModFields;
use openflow::{Body, Message, Version};

impl VirtualSwitch {
    pub(crate) fn scene(&self) -> Scene<'_> {
        Scene { space: &self.space, groups: &self.groups, on: self.on() }
    }

    /// The pieces of a rule. Those of closed ports are marked: they count for the limit, and must be possible when the port opens.
    pub(crate) fn lay_out(
        &self,
        priority: u16,
        matching: &Match,
        instructions: &[Instruction],
    ) -> Result<Vec<RulePiece>, Refusal> {
        let flat = flatten(instructions)?;
        let meter = match flat.meter {
            Some(id) => Some(self.physical_meter(id)?),
            None => None,
        };
        let mut pieces = self.space.narrow(matching)?;
        if pieces.is_empty() {
            // The rule is in the tenant's table alone.
            return self.check_ways(&flat.actions).map(|()| Vec::new());
        }
        // Actions of 1.0 on the tag of packets that may have one or not become two rules of 1.3.
        if self.on() != Version::V1_0 && self.space.tag.is_none() && depends_on_tag(&flat.actions) {
            pieces = pieces.into_iter().flat_map(split_by_tag).collect();
        }
        let mut laid = Vec::with_capacity(pieces.len());
        for piece in pieces {
            self.lay_piece(piece, (physical_priority(priority), meter), &flat, &mut laid)?;
        }
        if laid.is_empty() {
            return Err(Refusal::new(FLOW_MOD_EPERM, "no host of the slice sends packets of this match"));
        }
        if self.on() == Version::V1_0 {
            laid.iter().try_for_each(|piece| check_v10(priority, piece))?;
        }
        Ok(laid)
    }

    /// Whether the slice has all ways of a rule that no packet hits.
    fn check_ways(&self, actions: &[Action]) -> Result<(), Refusal> {
        actions.iter().try_for_each(|action| match action {
            Action::Output { port, .. } | Action::Enqueue { port, .. } => self.check_way(*port),
            Action::Group(id) if !self.groups.contains_key(id) => Err(Refusal::no_group(*id)),
            Action::Experimenter { experimenter, .. } => {
                let why = format!("actions of experimenter {experimenter:#010x} are unknown");
                Err(Refusal::new(ACTION_EXPERIMENTER, why))
            }
            _ => Ok(()),
        })
    }

    fn check_way(&self, port: PortNo) -> Result<(), Refusal> {
        match port {
            PortNo::CONTROLLER | PortNo::IN_PORT | PortNo::FLOOD | PortNo::ALL => Ok(()),
            port => self.space.port_for_output(port).map(drop),
        }
    }

    fn physical_meter(&self, id: u32) -> Result<u32, Refusal> {
        let there = self.meters.get(&id).map(|meter| meter.physical);
        there.ok_or_else(|| Refusal::new(METER_INVALID, format!("there is no meter {id}")))
    }

    /// Lays a piece, or its parts for single hosts if the actions must rewrite addresses that it leaves open. `priority` is that in the
    /// physical switch.
    fn lay_piece(
        &self,
        piece: Piece,
        (priority, meter): (u16, Option<u32>),
        flat: &Flat,
        laid: &mut Vec<RulePiece>,
    ) -> Result<(), Refusal> {
        let start = Start {
            in_port: Some(piece.in_port),
            is_dressed: piece.is_dressed,
            known: piece.matching.clone(),
        };
        let Some(actions) = self.scene().translate_if_known(start, &flat.actions)? else {
            let parts = self.space.by_host(&piece);
            return parts
                .into_iter()
                .try_for_each(|part| self.lay_piece(part, (priority, meter), flat, laid));
        };
        // A rule has one meter: that of the port is the operator's.
        let meter = self.meter_at(piece.in_port).or(meter);
        let applied = (!actions.is_empty()).then_some(Instruction::ApplyActions(actions));
        let instructions = meter.map(Instruction::Meter).into_iter().chain(applied).collect();
        let is_open = self.space.port(piece.in_port).is_some_and(VirtualPort::receives);
        let idle = if is_open { Idle::Unknown } else { Idle::Closed };
        let place = key_of(priority, &piece.matching).into();
        laid.push(RulePiece { matching: piece.matching, place, instructions, idle });
        Ok(())
    }

    /// Two matches of a tenant can become one in the physical switch, because the flowspace narrows them. Then two rules of one priority would
    /// share a piece, and the switch has only one of them. So the later rule is refused. `laid`: numbers of rules or of those that they
    /// replace, and their pieces.
    pub(crate) fn check_places<'a>(
        &self,
        laid: impl IntoIterator<Item = (Option<u64>, &'a [RulePiece])>,
    ) -> Result<(), Refusal> {
        let mut taken = Vec::new();
        let mut is_free = true;
        for (number, pieces) in laid {
            for piece in pieces {
                is_free &= self.rules.at(&piece.place).is_none_or(|other| Some(other) == number);
                taken.push(&piece.place);
            }
        }
        taken.sort_unstable();
        if is_free && taken.windows(2).all(|two| two[0] != two[1]) {
            return Ok(());
        }
        let why = "another rule of its priority has the same packets of the slice's flowspace";
        Err(Refusal::new(OVERLAP, why))
    }

    /// Two of the highest priorities are one in the physical switch. So rules of both may not overlap.
    pub(crate) fn check_priority(&self, priority: u16, matching: &Match) -> Result<(), Refusal> {
        let same_or_overlapping =
            |other: u16| self.rules.find(other, matching).or_else(|| self.rules.overlapping(other, matching));
        match twin_of(priority).and_then(same_or_overlapping) {
            Some(rule) => {
                let why = format!(
                    "it overlaps a rule of priority {}, and for a slice that is the same as {priority}",
                    rule.priority
                );
                Err(Refusal::new(OVERLAP, why))
            }
            None => Ok(()),
        }
    }
}

/// The packets without a tag, and those with one, if the piece does not say it.
fn split_by_tag(piece: Piece) -> Vec<Piece> {
    if has_tag(&piece.matching).is_some() {
        return vec![piece];
    }
    let untagged = Match::any().with(Field::VlanVid, 0u16);
    let tagged = Match::any().with_masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT);
    let part = |of: &Match| {
        let matching = intersection(&piece.matching, of)?.sorted();
        Some(Piece { matching, ..piece.clone() })
    };
    [part(&untagged), part(&tagged)].into_iter().flatten().collect()
}

/// Whether a switch of 1.0 can have a piece.
fn check_v10(priority: u16, piece: &RulePiece) -> Result<(), Refusal> {
    let is_expressible = |instructions: Vec<Instruction>| {
        let flow_mod = FlowModFields::default().with(piece.matching.clone(), instructions);
        let message = Message { version: Version::V1_0, xid: 0, body: Body::FlowMod(flow_mod) };
        message.encode(&mut Vec::new()).map_err(|unwritable| unwritable.to_string())
    };
    if let Err(why) = is_expressible(Vec::new()) {
        return Err(Refusal::new(MATCH_FIELD, format!("the physical switch has OpenFlow 1.0: {why}")));
    }
    if let Err(why) = is_expressible(piece.instructions.clone()) {
        return Err(Refusal::new(ACTION_TYPE, format!("the physical switch has OpenFlow 1.0: {why}")));
    }
    if priority != EXACT_PRIORITY_V10 && is_exact_in_v10(&piece.matching) {
        let why = "a switch of OpenFlow 1.0 puts an exact match above all others, and this rule has a lower priority";
        return Err(Refusal::new(FLOW_MOD_UNKNOWN, why));
    }
    Ok(())
}
