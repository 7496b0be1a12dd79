//! No command does by way of a group, a meter, a table or the controller what its sender may not do itself.
//!
//! ```text
//!   rule, packet-out ──names──> groups, meters (crate::owned: whose), what groups do (crate::deeds), TABLE (crate::bounds), CONTROLLER
//! ```
//!
//! In: commands that are within the bounds of their capability, as far as they say themselves what they do. Out: whether they are with what they
//! refer to. One output to a port, which most commands are, is let pass by its bytes.

use crate::capability::Capability;
use crate::decision::Refusal;
use crate::dispatch::Kernel;
use crate::excess::Excess;
use crate::fanout::{Fanout, one_applied_output, one_output};
use crate::owned::{Asker, Change, Claimant};
use abi::ZoneId;
use abi::command::{GroupMod, MeterMod};
use flow::{DatapathId, PortNo};

impl Kernel {
    /// What a rule refers to.
    #[inline]
    pub(crate) fn check_rules_deputies(
        &self,
        zone: ZoneId,
        datapath: DatapathId,
        instructions: &[u8],
    ) -> Result<(), Refusal> {
        if instructions.is_empty() || is_to_port(one_applied_output(instructions)) {
            return Ok(());
        }
        self.look_into_rule(zone, datapath, instructions)
            .map_err(|excess| Refusal::Beyond(Capability::RuleWrite, excess))
    }

    #[cold]
    fn look_into_rule(&self, zone: ZoneId, datapath: DatapathId, instructions: &[u8]) -> Result<(), Excess> {
        self.check_controller(zone, || Fanout::of_instructions(instructions))?;
        self.owned.check_instructions(self.asker(zone, Capability::RuleWrite), datapath, instructions)
    }

    /// What a packet-out refers to.
    #[inline]
    pub(crate) fn check_packet_outs_deputies(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        actions: &[u8],
    ) -> Result<(), Refusal> {
        if actions.is_empty() || is_to_port(one_output(actions)) {
            return Ok(());
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
    ) -> Result<(), Excess> {
        self.check_controller(zone, || Fanout::of_actions(actions))?;
        let asker = self.asker(zone, Capability::PacketOut);
        self.owned.check_packet_out(asker, datapath, actions)
    }

    /// A change of a group: within `rule.write`, since rules refer to it, and compared with `packet.out`, since packet-outs may.
    pub(crate) fn change_group(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        it: &GroupMod<'_>,
        claimant: Claimant,
    ) -> Result<Change, Refusal> {
        self.check_bounds(zone, Capability::RuleWrite, |reaches, scratch| {
            reaches.check_group_mod(datapath, it, scratch)
        })?;
        self.check_controller(zone, || Fanout::of_buckets(it.buckets)).map_err(beyond)?;
        self.check_here(datapath)?;
        let judged = self
            .check_bounds(zone, Capability::PacketOut, |reaches, scratch| reaches.check_buckets(it, scratch));
        let judged = match judged {
            Err(Refusal::Beyond(_, excess)) => Err(excess),
            _ => Ok(()),
        };
        let asker = self.asker(zone, Capability::RuleWrite);
        let change = self.owned.on_group_mod(asker, datapath, it, judged, claimant).map_err(beyond)?;
        let senders = self.owned.check_senders(&change);
        senders.map_err(|excess| Refusal::Beyond(Capability::PacketOut, excess))?;
        Ok(change)
    }

    /// A change of a meter.
    pub(crate) fn change_meter(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        it: &MeterMod<'_>,
        claimant: Claimant,
    ) -> Result<Change, Refusal> {
        self.check_bounds(zone, Capability::RuleWrite, |reaches, _| reaches.check_meter_mod(datapath, it))?;
        self.check_here(datapath)?;
        let asker = self.asker(zone, Capability::RuleWrite);
        self.owned.on_meter_mod(asker, datapath, it, claimant).map_err(beyond)
    }

    /// Who sends packets up may hear packets.
    fn check_controller(&self, zone: ZoneId, fanout: impl FnOnce() -> Fanout) -> Result<(), Excess> {
        let hears = self.zone(zone).is_some_and(|zone| zone.grant.holds(Capability::PacketIn));
        if hears || fanout().controllers == 0 { Ok(()) } else { Err(Excess::Controller) }
    }

    /// Who asks, by this capability.
    fn asker(&self, zone: ZoneId, capability: Capability) -> Asker {
        let Some(it) = self.zone(zone) else {
            return Asker { zone, bounded: true, others_too: false };
        };
        let (bounded, others_too) =
            (it.grant.is_bounded(capability), it.grant.holds(Capability::RuleWriteOthers));
        Asker { zone, bounded, others_too }
    }
}

/// One port, a reserved one perhaps, that is neither the controller nor the tables.
#[inline]
fn is_to_port(port: Option<PortNo>) -> bool {
    port.is_some_and(|port| port != PortNo::CONTROLLER)
}

/// What a group mod or meter mod is beyond, with the capability that would let it pass.
#[cold]
fn beyond(excess: Excess) -> Refusal {
    match excess {
        Excess::Reserved => Refusal::Beyond(Capability::RuleWriteOthers, excess),
        _ => Refusal::Beyond(Capability::RuleWrite, excess),
    }
}
