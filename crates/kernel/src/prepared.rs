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
use crate::dispatch::Kernel;
use crate::ownership::ToNote;
use crate::reported_rules::stays;
use crate::rule_key::{RuleKey, taken_place};
use crate::rules::Age;
use crate::shapes::{Prepared, PreparedShape, is_decided_by_shape};
use abi::command::{Command, What};
use abi::prepared::{PreparedRule, RULE_LEN, RuleShape, RuleUse};
use abi::{Frame, ZoneId};

/// How many commands of a zone are looked at in advance: about as many memory reads as a processor can have under way
/// at once.
const COMMANDS_AHEAD: usize = 16;

impl Kernel {
    /// Reads the places of the next prepared rules in a switch's record in advance, if the record is large. The reads
    /// follow each other closely. So the processor waits for several at once, and [`Self::on_prepared`] finds the
    /// places in the cache. Returns after how many commands to call it again. It decides nothing.
    #[inline]
    pub fn look_ahead(&self, zone: ZoneId, commands: &[u8]) -> usize {
        let of_zone = self.zones.get(usize::from(zone.0)).and_then(Option::as_ref);
        let is_large =
            |(datapath, _)| self.sessions.datapaths.get(&datapath).is_some_and(|it| it.record.is_large());
        if let Some(of_zone) = of_zone
            && self.sessions.last_commanded.is_some_and(is_large)
        {
            self.look_at(&of_zone.prepared, commands);
        }
        COMMANDS_AHEAD
    }

    /// Computes all keys first, and then reads all places. Few instructions between two reads let the processor wait for several at once.
    #[inline(never)]
    fn look_at(&self, of_zone: &Prepared, commands: &[u8]) {
        let mut keys = [RuleKey(0); COMMANDS_AHEAD];
        let (mut known, mut of_switch) = (0, None);
        for (rule, key) in commands.chunks_exact(RULE_LEN).zip(&mut keys) {
            let Some((shape, RuleUse { datapath, values, .. })) =
                rule.try_into().ok().and_then(|it| of_zone.find(it))
            else {
                break;
            };
            if *of_switch.get_or_insert(datapath) != datapath {
                break;
            }
            *key = self.ownership.keys.of_values(datapath, (shape.table_id, shape.priority), &values);
            known += 1;
        }
        let Some(there) = of_switch.and_then(|it| self.sessions.datapaths.get(&it)) else { return };
        std::hint::black_box(keys[..known].iter().fold(0, |read, key| read ^ there.record.first_place(*key)));
    }

    /// Accepts a flow mod of a zone if the decision on its shape allows it. `None`: [`Self::on_command`] decides, and
    /// nothing has changed. For a rule to be sent, it records nothing until [`Self::on_sent`] reports that it was sent.
    #[inline]
    pub fn on_prepared<'a>(
        &mut self,
        zone: ZoneId,
        frame: &Frame<'a>,
        now_ms: u64,
    ) -> Option<PreparedRule<'a>> {
        let bytes: &'a [u8; RULE_LEN] = frame.bytes.try_into().ok()?;
        let Kernel { zones, sessions, ownership, budgets, precedence, receivers, .. } = self;
        let there = zones.get_mut(usize::from(zone.0))?.as_mut()?;
        let (shape, of_use) = there.prepared.find(bytes)?;
        let RuleUse { datapath, values, .. } = of_use;
        let is_here = sessions.last_commanded == Some((datapath, shape.openflow));
        let is_alone =
            receivers.selective.is_empty() && !precedence.compares(zone) && !precedence.is_pending();
        let has_tokens = there.rates.commands.as_ref().is_none_or(|rate| rate.has_left(1));
        if !(is_here && is_alone && has_tokens && shape.allows(&there.grant, &of_use)) {
            return None;
        }
        let key = ownership.keys.of_values(datapath, (shape.table_id, shape.priority), &values);
        let slot = sessions.datapaths.get_mut(&datapath)?.record.slot(key, zone)?;
        if !slot.is_sure {
            // A rule that replaces an existing one needs no new entry.
            let left = budgets
                .lease
                .as_mut()
                .filter(|it| it.left > 0 && it.datapath == datapath && it.table_id == shape.table_id)?;
            left.left -= 1;
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
