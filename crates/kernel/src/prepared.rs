//! A short way for rules of a known shape: the kernel decides once on the shape, and then checks only the values of
//! each rule.
//!
//! ```text
//!   flow mod that passed ──> Kernel::prepare ──> the shape, with what was decided on it, in its zone
//!   next flow mod ──> Kernel::on_prepared ──> same shape? values within bounds? whose rule? room? ──> PreparedRule
//!                                   └── anything else ──> None: Kernel::on_command decides
//! ```
//!
//! A shape consists of the table, priority, time-outs, flags and cookie, and of the fields and the action. The kernel
//! compares it with the zone's grant once. It keeps the decision with the zone, and drops it when the grant changes.
//! For each rule it checks the values: the switch, the output, the buffered packet, the rule's owner, the space for it,
//! and the quotas.
//!
//! In: whole frames. Out: an accepted rule, or nothing. It refuses nothing, and only changes counts. Without a result
//! it changes nothing.

use crate::capability::Capability;
use crate::decision::Effect;
use crate::dispatch::Kernel;
use crate::ownership::ToNote;
use crate::reported_rules::stays;
use crate::rule_key::{RuleKey, RuleKeys, taken_place};
use crate::rules::Age;
use crate::shapes::{Prepared, PreparedShape, is_decided_by_shape};
use abi::command::{Command, What};
use abi::prepared::{PreparedRule, RULE_LEN, RuleShape, RuleUse};
use abi::{Frame, ZoneId};
use flow::DatapathId;

/// How many commands of a zone are looked at in advance: about as many memory reads as a processor can have under way
/// at once.
pub const COMMANDS_AHEAD: usize = 32;

/// The next commands of a zone that are rules of one shape for one switch, with their keys.
pub struct RulesAhead<'a> {
    zone: ZoneId,
    frames: &'a [[u8; RULE_LEN]],
    /// The shape's place among those of the zone, and its number.
    shape: (usize, u64),
    keys: [RuleKey; COMMANDS_AHEAD],
}

impl RulesAhead<'_> {
    /// How many there are; at most [`COMMANDS_AHEAD`].
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

impl Kernel {
    /// Reads the next prepared rules and their places in a switch's record in advance, if the records are large together. The
    /// reads follow each other closely. So the processor waits for several at once, and [`Self::on_ahead`] finds the
    /// places in the cache. It decides nothing.
    #[inline]
    pub fn look_ahead<'a>(&self, zone: ZoneId, commands: &'a [u8]) -> Option<RulesAhead<'a>> {
        if commands.len() < 2 * RULE_LEN {
            // One rule has nothing to wait for together with.
            return None;
        }
        let (datapath, _) = self.sessions.last_commanded?;
        let switches = self.sessions.datapaths.len();
        let is_large = self.sessions.datapaths.get(&datapath)?.record.is_large(switches);
        if is_large { self.look_at(zone, datapath, commands) } else { None }
    }

    /// Computes all keys first, and then reads all places. Few instructions between two reads let the processor wait for several at once.
    #[inline(never)]
    fn look_at<'a>(&self, zone: ZoneId, datapath: DatapathId, commands: &'a [u8]) -> Option<RulesAhead<'a>> {
        let prepared = &self.zones.get(usize::from(zone.0))?.as_ref()?.prepared;
        let (frames, _) = commands.as_chunks::<RULE_LEN>();
        let (place, shape) = prepared.place_of(frames.first()?)?;
        let mut keys = [RuleKey(0); COMMANDS_AHEAD];
        let mut known = 0;
        for (rule, key) in frames.iter().zip(&mut keys) {
            let Some(of_use) = shape.shape.values(rule).filter(|it| it.datapath == datapath) else { break };
            *key = self.ownership.keys.of_values(datapath, (shape.table_id, shape.priority), &of_use.values);
            known += 1;
        }
        let record = &self.sessions.datapaths.get(&datapath)?.record;
        keys[..known].iter().for_each(|key| record.fetch(*key));
        Some(RulesAhead { zone, frames: &frames[..known], shape: (place, shape.number), keys })
    }

    /// As [`Self::on_prepared`], for one of the rules that [`Self::look_ahead`] has read.
    #[inline]
    pub fn on_ahead<'a>(
        &mut self,
        ahead: &RulesAhead<'a>,
        number: usize,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Option<PreparedRule<'a>> {
        let (bytes, key) = (ahead.frames.get(number)?, *ahead.keys.get(number)?);
        let (place, shape) = ahead.shape;
        let (zone, of_use) = (ahead.zone, RuleUse::read(bytes));
        self.pass(
            zone,
            bytes,
            (now_ms, effects),
            |prepared| Some((prepared.at(place, shape)?, of_use)),
            |_, _, _| key,
        )
    }

    /// Accepts a flow mod of a zone if the decision on its shape allows it. `None`: [`Self::on_command`] decides; no rule,
    /// count or rate has changed. For a rule to be sent, it records nothing until [`Self::on_sent`] reports that it was sent.
    #[inline]
    pub fn on_prepared<'a>(
        &mut self,
        zone: ZoneId,
        frame: &Frame<'a>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Option<PreparedRule<'a>> {
        let bytes: &'a [u8; RULE_LEN] = frame.bytes.try_into().ok()?;
        let key = |keys: &RuleKeys, shape: &PreparedShape, RuleUse { datapath, values, .. }: &RuleUse| {
            keys.of_values(*datapath, (shape.table_id, shape.priority), values)
        };
        self.pass(zone, bytes, (now_ms, effects), |prepared| prepared.find(bytes), key)
    }

    /// Accepts a flow mod by the decision on its shape. `find` returns the shape, and `key` the rule's key.
    #[inline(always)]
    fn pass<'a>(
        &mut self,
        zone: ZoneId,
        bytes: &'a [u8; RULE_LEN],
        (now_ms, effects): (u64, &mut Vec<Effect>),
        find: impl for<'p> FnOnce(&'p Prepared) -> Option<(&'p PreparedShape, RuleUse)>,
        key: impl FnOnce(&RuleKeys, &PreparedShape, &RuleUse) -> RuleKey,
    ) -> Option<PreparedRule<'a>> {
        let Kernel { zones, sessions, ownership, budgets, precedence, receivers, .. } = self;
        let there = zones.get_mut(usize::from(zone.0))?.as_mut()?;
        let (shape, of_use) = find(&there.prepared)?;
        let datapath = of_use.datapath;
        let is_here = sessions.check_here(datapath).is_ok_and(|openflow| openflow == shape.openflow);
        let is_alone =
            receivers.selective.is_empty() && !precedence.compares(zone) && !precedence.is_pending();
        let has_tokens = there.rates.commands.as_ref().is_none_or(|rate| rate.has_left(1));
        if !(is_here && is_alone && has_tokens && shape.allows(&there.grant, &of_use)) {
            return None;
        }
        let key = key(&ownership.keys, shape, &of_use);
        let slot = sessions.datapaths.get_mut(&datapath)?.record.slot(key, zone)?;
        if !slot.is_sure {
            // A rule that replaces an existing one needs no new entry. No zone with a quota of rules has a shape.
            let table = (datapath, shape.table_id);
            budgets.take_entry((zone, None), table, &mut sessions.datapaths, now_ms, effects).ok()?;
        }
        let PreparedShape { number, cookie, stays, .. } = *shape;
        if let Some(rate) = &mut there.rates.commands {
            rate.take(1, now_ms);
        }
        there.counters.commands += 1;
        ownership.to_note = Some(ToNote::Prepared { datapath, key, zone, stays, age: Age::at(now_ms), slot });
        Some(PreparedRule::of(bytes, number, cookie))
    }

    /// Takes an accepted command. If it is a rule with a suitable shape, the next rules of that shape take the short
    /// way.
    #[inline]
    pub(crate) fn prepare(&mut self, zone: ZoneId, frame: &Frame<'_>) {
        if frame.bytes.len() == RULE_LEN {
            self.keep_shape(zone, frame);
        }
    }

    fn keep_shape(&mut self, zone: ZoneId, frame: &Frame<'_>) -> Option<()> {
        let there = self.zones.get_mut(usize::from(zone.0))?.as_mut()?;
        let (_, openflow) = self.sessions.last_commanded?;
        if !is_decided_by_shape(&there.grant) || !there.prepared.has_place() {
            return None;
        }
        let shape = RuleShape::of(frame)?;
        if there.prepared.has(&shape, openflow) {
            return None;
        }
        let Command { what: What::FlowMod(it), .. } = Command::read(frame).ok()? else {
            return None;
        };
        let (table_id, priority) = taken_place(openflow, it.table_id, it.priority, it.matching);
        self.shapes += 1;
        there.prepared.keep(PreparedShape {
            shape,
            number: self.shapes,
            openflow,
            table_id,
            priority,
            cookie: zone.stamp(it.cookie),
            stays: stays(it.idle_timeout_s, it.hard_timeout_s, it.flags),
            may_release: there.grant.holds(Capability::PacketIn),
            any_port: !there.grant.is_bounded(Capability::RuleWrite) || there.grant.rules().ports.is_none(),
        });
        Some(())
    }
}
