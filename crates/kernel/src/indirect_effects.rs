//! The indirect effects of a command: through a group, a meter, a table or the controller, an app may do only what it
//! may do directly.
//!
//! ```text
//!   rule, packet-out ──names──> groups, meters (crate::owned: whose), what groups do (crate::group_effects), TABLE (crate::bounds), CONTROLLER
//! ```
//!
//! It also counts how many packets one packet becomes, groups included.
//!
//! In: commands whose direct effects are within the bounds of their capability. Out: whether the things that they refer
//! to are within bounds too. Most commands have one output to a port. The kernel recognizes those by their bytes and
//! accepts them.

use crate::capability::Capability;
use crate::charge::Becomes;
use crate::decision::Refusal;
use crate::dispatch::Kernel;
use crate::excess::Excess;
use crate::fanout::Fanout;
use crate::group_effects::Judged;
use crate::owned::{Asker, Change, Claimant};
use abi::ZoneId;
use abi::command::{FlowMod, GroupMod, MeterMod};
use flow::canonical::{instructions_raw, one_output};
use flow::{DatapathId, PortNo};

impl Kernel {
    /// Checks what a rule refers to, and counts the packets that it makes of one.
    #[inline]
    pub(crate) fn check_rules_indirect_effects(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        it: &FlowMod<'_>,
        output: Option<PortNo>,
    ) -> Result<(), Refusal> {
        if it.instructions.is_empty() || is_plain_port(output) {
            return Ok(());
        }
        self.look_into_rule(zone, datapath, it)
            .map_err(|excess| Refusal::Beyond(Capability::RuleWrite, excess))
    }

    #[cold]
    fn look_into_rule(&mut self, zone: ZoneId, datapath: DatapathId, it: &FlowMod<'_>) -> Result<(), Excess> {
        let fanout = Fanout::of_instructions(it.instructions);
        fanout.check_command()?;
        self.check_controller(zone, fanout)?;
        let asker = self.asker(zone, Capability::RuleWrite);
        self.ownership.owned.check_instructions(asker, datapath, it.instructions)?;
        let relies_on_groups = std::mem::take(&mut self.scratch.relies_on_groups);
        let lists =
            instructions_raw(it.instructions).map_while(Result::ok).filter_map(|raw| raw.action_bytes());
        let groups = lists.map(|actions| self.ownership.owned.fanout_of_groups(datapath, actions));
        let total = groups.fold(fanout, Fanout::and);
        total.check_all()?;
        if relies_on_groups {
            let lists =
                instructions_raw(it.instructions).map_while(Result::ok).filter_map(|raw| raw.action_bytes());
            lists.for_each(|actions| self.ownership.owned.note_takes_any(datapath, actions));
        }
        if let Some(there) = self.sessions.datapaths.get_mut(&datapath) {
            there.note_fanout(it.table_id, total);
        }
        Ok(())
    }

    /// Checks what a packet-out refers to, and counts the packets that it makes of its frame.
    #[inline]
    pub(crate) fn check_packet_outs_indirect_effects(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        actions: &[u8],
    ) -> Result<Becomes, Refusal> {
        if is_plain_port(one_output(actions)) {
            return Ok(Becomes::ONE_PACKET);
        }
        self.look_into_packet_out(zone, datapath, actions)
            .map_err(|excess| Refusal::Beyond(Capability::PacketOut, excess))
    }

    #[cold]
    fn look_into_packet_out(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        actions: &[u8],
    ) -> Result<Becomes, Excess> {
        let fanout = Fanout::of_actions(actions);
        fanout.check_command()?;
        self.check_controller(zone, fanout)?;
        let asker = self.asker(zone, Capability::PacketOut);
        self.ownership.owned.check_packet_out(asker, datapath, actions)?;
        let total = fanout.and(self.ownership.owned.fanout_of_groups(datapath, actions));
        total.check_all()?;
        if std::mem::take(&mut self.scratch.relies_on_groups) {
            self.ownership.owned.note_takes_any(datapath, actions);
        }
        let Some(there) = self.sessions.datapaths.get_mut(&datapath) else { return Ok(Becomes::ONE_PACKET) };
        if total.controllers > 0 {
            there.senders_up.insert(zone);
        }
        let packets = there.packets(total);
        // A packet that matches no other rule in the tables becomes a packet-in.
        Ok(Becomes { packets, packet_ins: u64::from(total.controllers) + u64::from(total.tables) })
    }

    /// Checks a group mod: against `rule.write`, because rules refer to groups, and against `packet.out`, because
    /// packet-outs may.
    pub(crate) fn change_group(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        it: &GroupMod<'_>,
        claimant: Claimant,
    ) -> Result<Change, Refusal> {
        let mut is_closed = true;
        self.check_bounds(zone, Capability::RuleWrite, datapath, |reaches, scratch| {
            is_closed &= reaches.closes(it);
            reaches.check_group_mod(datapath, it, scratch)
        })?;
        self.check_controller(zone, Fanout::of_group(it)).map_err(beyond)?;
        self.sessions.check_here(datapath)?;
        let judged = self.check_bounds(zone, Capability::PacketOut, datapath, |reaches, scratch| {
            is_closed &= reaches.closes(it);
            reaches.check_buckets(it, scratch)
        });
        let packet_out = match judged {
            Err(Refusal::Beyond(_, excess)) => Err(excess),
            _ => Ok(()),
        };
        let judged = Judged { packet_out, is_closed };
        let asker = self.asker(zone, Capability::RuleWrite);
        let change =
            self.ownership.owned.on_group_mod(asker, datapath, it, judged, claimant).map_err(beyond)?;
        let senders = self.ownership.owned.check_senders(&change);
        senders.map_err(|excess| Refusal::Beyond(Capability::PacketOut, excess))?;
        Ok(change)
    }

    /// Checks a meter mod.
    pub(crate) fn change_meter(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        it: &MeterMod<'_>,
        claimant: Claimant,
    ) -> Result<Change, Refusal> {
        self.check_bounds(zone, Capability::RuleWrite, datapath, |reaches, _| {
            reaches.check_meter_mod(datapath, it)
        })?;
        self.sessions.check_here(datapath)?;
        let asker = self.asker(zone, Capability::RuleWrite);
        self.ownership.owned.on_meter_mod(asker, datapath, it, claimant).map_err(beyond)
    }

    /// Only an app that may receive packet-ins may send packets to the controller.
    fn check_controller(&self, zone: ZoneId, fanout: Fanout) -> Result<(), Excess> {
        let hears = self.zone(zone).is_some_and(|zone| zone.grant.holds(Capability::PacketIn));
        if hears || fanout.controllers == 0 { Ok(()) } else { Err(Excess::Controller) }
    }

    /// The sender, with the bounds of this capability.
    fn asker(&self, zone: ZoneId, capability: Capability) -> Asker {
        let Some(it) = self.zone(zone) else {
            return Asker { zone, bounded: true, others_too: false };
        };
        let (bounded, others_too) =
            (it.grant.is_bounded(capability), it.grant.holds(Capability::RuleWriteOthers));
        Asker { zone, bounded, others_too }
    }
}

/// Returns the port if the actions are one output to a port that is not reserved.
#[inline]
fn is_plain_port(port: Option<PortNo>) -> bool {
    port.is_some_and(|port| port <= PortNo::MAX)
}

/// The refusal of a group mod or meter mod, with the capability that would allow it.
#[cold]
fn beyond(excess: Excess) -> Refusal {
    match excess {
        Excess::Reserved => Refusal::Beyond(Capability::RuleWriteOthers, excess),
        _ => Refusal::Beyond(Capability::RuleWrite, excess),
    }
}
