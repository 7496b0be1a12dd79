//! The owners of the rules, groups and meters on the switches.
//!
//! ```text
//!   command ──> check_owner ──> the rule that it means, or whose that is (Refusal) ──sent──> on_sent ──> Record, Owned
//! ```
//!
//! In: commands within the bounds of their capability, and which of them were sent. Out: refusals, and questions to
//! switches. It records a command only after the worker has sent it.

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
use flow::{DatapathId, Match};
use std::collections::BTreeMap;

/// What to record of a command once it is sent. The type is small and plain, so that storing it for each rule need not
/// drop an old value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ToNote {
    /// The new state of a rule.
    Rule { datapath: DatapathId, key: RuleKey, then: Then },
    /// A rule of this zone, with its place in the record; see [`crate::prepared`].
    Prepared { datapath: DatapathId, key: RuleKey, zone: ZoneId, stays: bool, age: Age, slot: Slot },
    /// Some rules of this zone may be gone, or of any zone if it is `None`. It is not known which.
    Doubt { datapath: DatapathId, zone: Option<ZoneId> },
    /// The owner of a group or meter; [`Ownership::change`] has the details.
    Owned,
}

/// The state of a rule once the command was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Then {
    /// This zone owns it. `stays`: it stays until its end is reported. `age`: since when the zone has owned it.
    Has { zone: ZoneId, stays: bool, age: Age },
    /// It was this owner's, and is gone.
    Gone(Owner),
}

/// The rule that a command addresses, and the record of it.
pub(crate) type MeantRule = (RuleKey, Option<Known>);

/// The owners, and what to record of the last decided command.
#[derive(Clone, Debug)]
pub(crate) struct Ownership {
    pub owned: Owned,
    pub keys: RuleKeys,
    /// What to record if the last decided command is sent.
    pub to_note: Option<ToNote>,
    /// The change of a group or meter, if [`ToNote::Owned`] is to be noted.
    pub change: Option<Box<Change>>,
    /// The last grant of each zone, even of a detached one: the effects of its groups were checked against it.
    grants: BTreeMap<ZoneId, Grant>,
}

impl Ownership {
    /// Creates an empty record. `seed` as for [`crate::Kernel::new`].
    pub fn new(seed: u64) -> Ownership {
        Ownership {
            owned: Owned::default(),
            keys: RuleKeys::new(seed),
            to_note: None,
            change: None,
            grants: BTreeMap::new(),
        }
    }

    /// The zone's new grant applies from now on.
    pub fn on_grant(&mut self, zone: ZoneId, grant: &Grant) {
        let bounds = grant.clone().with_quotas(Quotas::default());
        if self.grants.get(&zone) != Some(&bounds) {
            self.owned.on_other_grant(zone);
            self.grants.insert(zone, bounds);
        }
    }

    /// The rule that a strict command addresses, with the record of it. Refuses the command if another zone owns the
    /// rule, and asks the switch whether the rule still exists.
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
        // A rule for all tables addresses a rule of each. Its cookie protects those of others. A modify of 1.0 adds a
        // missing rule.
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
                let holds = |capability| there.is_some_and(|it| it.grant.holds(capability));
                let may_delete = || {
                    known.owner == Owner::Foreign
                        && names_foreign_rule(it)
                        && holds(Capability::RuleDeleteForeign)
                };
                if holds(Capability::RuleWriteOthers) || may_delete() {
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

    /// An app's rule for all packets at priority 0 of this table, if one has it. A table-miss rule of the kernel would replace it.
    pub fn table_miss_of_app(
        &self,
        there: &Datapath,
        datapath: DatapathId,
        table_id: u8,
    ) -> Option<(RuleKey, Known)> {
        let any = Match::any();
        let matched = Matched::Any { is_complete: true, rule: &any };
        let key = self.keys.of_taken(there.openflow, datapath, (table_id, 0), matched);
        let known = there.record.known(key)?;
        matches!(known.owner, Owner::Zone(_)).then_some((key, known))
    }

    /// The worker sent the last decided command. See [`crate::Kernel::on_sent`].
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

    /// The same for a command that was not prepared.
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

    /// Takes a receipt for an app before the app receives it. If it settles a claim, returns `Some` with the receipt
    /// for the app, if it gets one.
    pub fn on_receipt<'r>(&mut self, receipt: &Receipt<'r>) -> Option<Option<Receipt<'r>>> {
        let is_done = receipt.outcome == Outcome::Programmed;
        let (_, Claimant { ticket, wants_receipt }) = self.owned.settle(receipt.ticket, is_done)?;
        Some((wants_receipt || !is_done).then_some(Receipt { ticket, ..*receipt }))
    }
}

/// Whether this deletes one rule by its whole cookie, and that cookie is of no app of this node. The switch then deletes no other rule.
/// OpenFlow 1.0 has no cookie in a delete; there, only the record of the owners protects other rules.
pub(crate) fn names_foreign_rule(it: &FlowMod<'_>) -> bool {
    it.command == flow_command::DELETE_STRICT
        && it.cookie_mask == u64::MAX
        && Owner::of_cookie(it.cookie) == Some(Owner::Foreign)
}

/// A rule of another owner. The kernel asks the switch whether it still has the rule.
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
    // The table's number at a 1.0 switch is unknown.
    let asked_of = if *openflow == OpenFlowVersion::V1_0 { ALL_TABLES } else { it.table_id };
    if record.seek(key, asked_of, known.owner, it.matching, now_ms) {
        effects.push(Effect::Ask { datapath, asked: Asked::Rule });
    }
    match known.owner {
        Owner::Zone(owner) => Refusal::OthersRule(owner),
        Owner::Foreign => Refusal::ForeignRule,
    }
}

/// Records the new owner of a rule.
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
