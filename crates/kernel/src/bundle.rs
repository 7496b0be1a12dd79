//! Decides on the flow mods of a bundle, which a switch applies all together or not at all.
//!
//! ```text
//!   begin_bundle ──> on_bundled for each flow mod: decided on as if it was alone ──> sent ──> on_bundle_over
//!                          └── one is refused: nothing is sent ──> on_bundle_over
//! ```
//!
//! A switch applies a bundle some time after it was decided on, or never. So what is recorded holds in both cases. An added rule has its
//! owner at once. A deleted rule keeps its owner, and its owner's rules become uncertain. Until the bundle is over, no rule leaves the
//! record of the switch, and evictions there wait.
//!
//! In: the flow mods of a bundle, and its end. Out: decisions. It never sends anything, and never knows whether the switch applied them.

use crate::capability::Capability;
use crate::decision::{Decision, Effect, Refusal};
use crate::dispatch::Kernel;
use crate::ownership::{Then, ToNote};
use crate::rules::Owner;
use abi::command::{Bundle, Command, FlowMod, What};
use abi::{Frame, Malformed, ZoneId};
use flow::DatapathId;

/// A rule of priority 0. The table-miss rules of the kernel have this priority. A switch could apply a bundle after the kernel has added
/// one of them, and replace it.
const OF_PRIORITY_0: &str = "a flow mod of priority 0 cannot be in a bundle: send it alone";

/// The app may change rules of others, and does it here. If the switch refuses the bundle, their rules would have the wrong owner.
const OF_OTHERS: &str = "a flow mod that replaces or strictly deletes a rule of another owner cannot be in a bundle: send it alone";

/// If the switch refuses the bundle, the kernel would know the rule as it is not.
const OF_WIDE: &str =
    "a flow mod that changes a rule for all packets of an app cannot be in a bundle: send it alone";

/// A packet would leave the buffer whether or not the rule is applied.
const WITH_BUFFER: &str = "a flow mod in a bundle cannot release a buffered packet: send it alone";

impl Kernel {
    /// Decides on a bundle as a whole. [`Self::on_bundled`] decides on its flow mods.
    pub(crate) fn decide_bundle<'a>(
        &mut self,
        zone: ZoneId,
        command: &Command<'a>,
        bundle: Bundle<'a>,
    ) -> Result<Decision<'a>, Refusal> {
        self.require(zone, Capability::RuleWrite)?;
        self.sessions.check_here(command.datapath)?;
        Ok(Decision::Bundle { ticket: command.ticket, wants_receipt: command.wants_receipt, bundle })
    }

    /// A bundle for this switch begins. [`Self::on_bundle_over`] must follow, whatever happens to it, unless the switch disconnects.
    pub fn begin_bundle(&mut self, datapath: DatapathId) {
        if let Some(there) = self.sessions.datapaths.get_mut(&datapath) {
            there.begin_bundle();
        }
    }

    /// Decides on a flow mod of a bundle as [`Self::on_command`] does, and records it at once.
    ///
    /// # Errors
    /// Why it is refused. Then nothing of the bundle may be sent, and [`Self::on_failed`] must follow.
    pub fn on_bundled<'a>(
        &mut self,
        zone: ZoneId,
        frame: &Frame<'a>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Command<'a>, Refusal> {
        let decided = match self.on_command(zone, frame, now_ms, effects) {
            Decision::Send(command @ Command { what: What::FlowMod(it), .. }) => {
                self.check_bundled(zone, &it).map(|()| command)
            }
            Decision::Refuse(refusal) => return Err(refusal),
            _ => {
                let reason = "a bundle holds flow mods only";
                Err(Refusal::Malformed(Malformed { offset: 0, reason }))
            }
        };
        match decided {
            Ok(command) => {
                self.note_bundled(zone);
                Ok(command)
            }
            Err(refusal) => {
                self.precedence.forget_place();
                self.ownership.to_note = None;
                if let Some(Some(zone)) = self.zones.get_mut(usize::from(zone.0)) {
                    zone.counters.refusals += 1;
                }
                Err(refusal)
            }
        }
    }

    /// What a flow mod may do alone, and not in a bundle.
    fn check_bundled(&self, zone: ZoneId, it: &FlowMod<'_>) -> Result<(), Refusal> {
        if it.priority == 0 {
            return Err(Refusal::NotInBundle(OF_PRIORITY_0));
        }
        if it.buffer_id.is_some() {
            return Err(Refusal::NotInBundle(WITH_BUFFER));
        }
        if self.precedence.changes_wide() {
            return Err(Refusal::NotInBundle(OF_WIDE));
        }
        let owner = match self.ownership.to_note {
            Some(ToNote::Rule { datapath, key, then: Then::Has { .. } }) => {
                let there = self.sessions.datapaths.get(&datapath);
                there.and_then(|there| there.record.known(key)).map(|known| known.owner)
            }
            Some(ToNote::Rule { then: Then::Gone(owner), .. }) => Some(owner),
            _ => None,
        };
        match owner {
            Some(owner) if owner != Owner::Zone(zone) => Err(Refusal::NotInBundle(OF_OTHERS)),
            _ => Ok(()),
        }
    }

    /// Records what holds whether or not the switch applies the flow mod.
    fn note_bundled(&mut self, zone: ZoneId) {
        if let Some(ToNote::Rule { datapath, then: Then::Gone(_), .. }) = self.ownership.to_note {
            self.ownership.to_note = Some(ToNote::Doubt { datapath, zone: Some(zone) });
        }
        self.precedence.keep_deleted_wide();
        self.on_sent();
    }

    /// A bundle for this switch is over: the switch has answered, or the commit was never sent. The evictions that waited for it follow.
    pub fn on_bundle_over(&mut self, datapath: DatapathId, effects: &mut Vec<Effect>) {
        if let Some(there) = self.sessions.datapaths.get_mut(&datapath) {
            there.end_bundle();
            if !there.record.is_in_bundle() {
                self.precedence.end_waiting(datapath);
            }
        }
        self.precedence.say_evictions(effects);
    }
}
