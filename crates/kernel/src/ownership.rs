//! Whose the rules, groups and meters of the switches are.
//!
//! ```text
//!   command ──> check_owner ──> the rule that it means, or whose that is (Refusal) ──sent──> on_sent ──> Record, Owned
//! ```
//!
//! In: commands within the bounds of their capability, and which of them were sent. Out: refusals, and questions to switches. Nothing of a command is
//! remembered before it is on its way.

use crate::bounds::{ALL_TABLES, Scratch, command as flow_command};
use crate::capability::Capability;
use crate::datapath::Datapath;
use crate::datapaths::Datapaths;
use crate::decision::{Effect, Refusal};
use crate::fanout::UsualParts;
use crate::grant::Grant;
use crate::own_messages::Asked;
use crate::owned::{Change, Claimant, Owned};
use crate::quota::Quotas;
use crate::rule_key::{Matched, RuleKey, RuleKeys};
use crate::rules::{Age, Known, Owner, Slot};
use crate::sessions::Sessions;
use crate::zones::Zone;
use abi::command::FlowMod;
use abi::{OpenFlowVersion, Outcome, Receipt, ZoneId};
use flow::DatapathId;
use std::collections::BTreeMap;

/// What is remembered of a command once it is on its way to its switch. A few plain words, so that to put it aside for each rule costs no look at what
/// was there before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ToNote {
    /// The future of a rule.
    Rule { datapath: DatapathId, key: RuleKey, then: Then },
    /// A rule of this zone's, with where it is to be written down; see [`crate::prepared`].
    Prepared { datapath: DatapathId, key: RuleKey, zone: ZoneId, stays: bool, age: Age, slot: Slot },
    /// Some rules of this zone, or of any zone if it is `None`, may be gone, and it is not known which.
    Doubt { datapath: DatapathId, zone: Option<ZoneId> },
    /// Whose group or meter: [`Ownership::change`] says it.
    Owned,
}

/// The state of a rule once the command was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Then {
    /// This zone owns it. It may stay until its end is reported. The age says since when.
    Has { zone: ZoneId, stays: bool, age: Age },
    /// It was this one's, and is gone.
    Gone(Owner),
}

/// The rule that a command means, and what is known of it.
pub(crate) type MeantRule = (RuleKey, Option<Known>);

/// The owners, and what follows from the command that was decided on last.
#[derive(Clone, Debug)]
pub(crate) struct Ownership {
    pub owned: Owned,
    pub keys: RuleKeys,
    /// What follows from the command that was decided on last, if it is sent.
    pub to_note: Option<ToNote>,
    /// The change of a group or meter, if [`ToNote::Owned`] is to be noted.
    pub change: Option<Box<Change>>,
    /// The grant that each zone had last, be it there now or not: what its groups may do was compared with that.
    grants: BTreeMap<ZoneId, Grant>,
}

impl Ownership {
    /// Nobody owns anything. `seed` as for [`crate::Kernel::new`].
    pub fn new(seed: u64) -> Ownership {
        Ownership {
            owned: Owned::default(),
            keys: RuleKeys::new(seed),
            to_note: None,
            change: None,
            grants: BTreeMap::new(),
        }
    }

    /// What was decided by a zone's grant before is decided by this one from now on.
    pub fn on_grant(&mut self, zone: ZoneId, grant: &Grant) {
        let bounds = grant.clone().with_quotas(Quotas::default());
        if self.grants.get(&zone) != Some(&bounds) {
            self.owned.on_other_grant(zone);
            self.grants.insert(zone, bounds);
        }
    }

    /// The rule that a strict command means, with what is known of it, unless that is another's. Of one that is refused the switch is asked whether
    /// it has it still.
    #[inline]
    #[expect(
        clippy::too_many_arguments,
        reason = "one step of a decision, and nothing that would be a type of its own"
    )]
    pub fn check_owner(
        &mut self,
        (zone, there): (ZoneId, Option<&Zone>),
        sessions: &mut Sessions,
        datapath: DatapathId,
        it: &FlowMod<'_>,
        (usual, scratch): (&UsualParts, &mut Scratch),
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<MeantRule>, Refusal> {
        let openflow = sessions.check_here(datapath)?;
        // One of all tables means a rule of each, and its cookie keeps it from those of others. A modify of 1.0 that finds nothing adds.
        let adds = it.command == flow_command::MODIFY && openflow == OpenFlowVersion::V1_0;
        let is_loose = matches!(it.command, flow_command::MODIFY | flow_command::DELETE) && !adds;
        if is_loose || it.table_id == ALL_TABLES {
            return Ok(None);
        }
        let Some(switch) = sessions.datapaths.get_mut(&datapath) else {
            return Err(Refusal::NoSuchSwitch(datapath));
        };
        let matched = match &usual.fields {
            Some(fields) => Matched::Usual(fields),
            None => Matched::Any { is_complete: scratch.is_complete(), rule: scratch.rule() },
        };
        let key = self.keys.of_taken(openflow, datapath, (it.table_id, it.priority), matched);
        match switch.record.known(key) {
            Some(known) if known.owner == Owner::Zone(zone) => Ok(Some((key, Some(known)))),
            Some(known) => {
                let others_too = there.is_some_and(|it| it.grant.holds(Capability::RuleWriteOthers));
                if others_too {
                    return Ok(Some((key, Some(known))));
                }
                Err(refuse_others(switch, datapath, it, (key, known), now_ms, effects))
            }
            None if it.command == flow_command::DELETE_STRICT => Ok(Some((key, None))),
            None => {
                let room = switch.record.room(now_ms);
                if room.ask {
                    effects.push(Effect::Ask { datapath, asked: Asked::Record });
                }
                if room.is_free { Ok(Some((key, None))) } else { Err(Refusal::TooManyRules(datapath)) }
            }
        }
    }

    /// The command that was decided on last is on its way to its switch. See [`crate::Kernel::on_sent`].
    #[inline(always)]
    pub fn on_prepared_sent(&mut self, datapaths: &mut Datapaths) -> bool {
        let Some(ToNote::Prepared { datapath, key, zone, stays, age, slot }) = self.to_note else {
            return false;
        };
        self.to_note = None;
        if let Some(Datapath { record, .. }) = datapaths.get_mut(&datapath) {
            record.note_at(slot, key, zone, stays, age);
        }
        true
    }

    /// The same of one that was not prepared.
    #[inline]
    pub fn on_sent(&mut self, datapaths: &mut Datapaths) {
        match self.to_note.take() {
            Some(ToNote::Rule { datapath, key, then }) => note_rule(datapaths, datapath, key, then),
            Some(ToNote::Doubt { datapath, zone }) => doubt_rules(datapaths, datapath, zone),
            Some(ToNote::Owned) => {
                let Some(change) = self.change.take() else { return };
                // A deleted group or meter deletes the rules that name it, of any owner.
                if let Some(datapath) = change.deletes_at() {
                    doubt_rules(datapaths, datapath, None);
                }
                self.owned.on_sent(*change);
            }
            Some(ToNote::Prepared { .. }) | None => {}
        }
    }

    /// A receipt for an app, before the app hears it. `Some` if it settles a claim: as the app is to hear it, if it is to.
    pub fn on_receipt<'r>(&mut self, receipt: &Receipt<'r>) -> Option<Option<Receipt<'r>>> {
        let is_done = receipt.outcome == Outcome::Programmed;
        let (_, Claimant { ticket, wants_receipt }) = self.owned.settle(receipt.ticket, is_done)?;
        Some((wants_receipt || !is_done).then_some(Receipt { ticket, ..*receipt }))
    }
}

/// A rule that is not this zone's. The switch is asked whether it has it still.
#[cold]
fn refuse_others(
    switch: &mut Datapath,
    datapath: DatapathId,
    it: &FlowMod<'_>,
    (key, known): (RuleKey, Known),
    now_ms: u64,
    effects: &mut Vec<Effect>,
) -> Refusal {
    let Datapath { record, openflow, .. } = switch;
    // What number a switch of 1.0 gives its table nobody knows.
    let asked_of = if *openflow == OpenFlowVersion::V1_0 { ALL_TABLES } else { it.table_id };
    if record.sought.seek(key, asked_of, known.owner, it.matching, now_ms) {
        effects.push(Effect::Ask { datapath, asked: Asked::Rule });
    }
    match known.owner {
        Owner::Zone(owner) => Refusal::OthersRule(owner),
        Owner::Foreign => Refusal::ForeignRule,
    }
}

/// Whose rule it is from now on.
#[inline]
fn note_rule(datapaths: &mut Datapaths, datapath: DatapathId, key: RuleKey, then: Then) {
    let Some(Datapath { record, .. }) = datapaths.get_mut(&datapath) else { return };
    match then {
        Then::Has { zone, stays, age } => record.note(key, zone, stays, age),
        Then::Gone(owner) => record.forget(key, owner),
    }
}

/// Some rules of this zone may be gone; `None`: of any zone.
#[cold]
pub(crate) fn doubt_rules(datapaths: &mut Datapaths, datapath: DatapathId, zone: Option<ZoneId>) {
    if let Some(there) = datapaths.get_mut(&datapath) {
        there.record.doubt(zone);
    }
}
