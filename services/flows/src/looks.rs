//! Looks: what is in a switch for one packet, read when a caller asks, beside what is wanted there.
//!
//! ```text
//!   question ──> requests for rules, groups, meters ──parts of replies──> Look: rules with their claims, rules that are missing
//! ```
//!
//! In: questions, parts of reports. Out: one answer each. Nothing is kept after the answer, and nothing is corrected: audits do that.

use crate::engine::Engine;
use crate::key::{EntryKey, EntryKind};
use crate::listing::{hex, object};
use crate::policy::own_part;
use crate::report::{FLOWS, GROUPS, METERS, RuleEntry, meters, raw_groups, rules};
use crate::slot::{Slot, State};
use crate::switch::Switch;
use crate::wanted::{Scratch, What};
use flow::canonical::{read_instructions, read_match};
use flow::frame::FrameFields;
use flow::{DatapathId, Match, MatchEntry};
use flows_contract::{Claim, LOOK_RULES_MAX, Look, SeenGroup, SeenRule};
use std::collections::HashSet;
use view::{Object, Rule, RuleId};

/// The most looks at once, with those that wait. Each reads a switch. Beyond it, a question is answered as busy.
pub const LOOKS_MAX: usize = 16;

/// The requests of a look, in the order of its tickets.
pub const KINDS: [u16; 3] = [FLOWS, GROUPS, METERS];

/// A look that is under way.
#[derive(Debug)]
struct Looking {
    query: u64,
    /// The caller waits no more. The look counts until the switch has answered, so that callers that leave early cannot exceed the bound.
    is_over: bool,
    tickets: [Option<u64>; 3],
    fields: FrameFields,
    /// The rules of table 0 that the switch has for the packet.
    seen: HashSet<EntryKey>,
    look: Look,
}

/// The looks that are under way.
#[derive(Debug, Default)]
pub struct Looks(Vec<Looking>);

/// An answer: the query and its payload, or why there is none.
pub type Answer = (u64, Result<Look, String>);

impl Looks {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// A caller's question has become these requests.
    pub fn begin(
        &mut self,
        query: u64,
        switch: DatapathId,
        is_v10: bool,
        packet: &Match,
        tickets: [Option<u64>; 3],
    ) {
        let mut fields = FrameFields::read(&[]);
        for entry in packet.entries() {
            if let MatchEntry::Field { field, value, .. } = entry {
                fields.set(*field, *value);
            }
        }
        let (rules, groups, meters, missing) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let look = Look { switch, is_v10, rules, groups, meters, missing, left_out: 0 };
        self.0.push(Looking { query, is_over: false, tickets, fields, seen: HashSet::new(), look });
    }

    /// A part of a reply. Returns the answer if it was the last one.
    pub fn on_report(&mut self, engine: &Engine, (ticket, more): (u64, bool), body: &[u8]) -> Option<Answer> {
        let (at, kind) = self.find(ticket)?;
        let looking = &mut self.0[at];
        let switch = engine.switch(looking.look.switch);
        match KINDS[kind] {
            FLOWS => rules(body).for_each(|entry| looking.see_rule(engine, switch, &entry)),
            GROUPS => {
                let seen = raw_groups(body).map(|(number, group_type, buckets)| SeenGroup {
                    number,
                    group_type,
                    buckets: hex(buckets),
                });
                looking.look.groups.extend(seen.take(LOOK_RULES_MAX - looking.look.groups.len()));
            }
            _ => {
                let room = LOOK_RULES_MAX - looking.look.meters.len();
                looking.look.meters.extend(meters(body).filter_map(|(key, _)| meter(key)).take(room));
            }
        }
        if !more {
            looking.tickets[kind] = None;
        }
        self.end_if_read(engine, at)
    }

    /// A request was refused, or the switch did not answer it. A switch without groups or meters has none.
    pub fn on_refused(&mut self, engine: &Engine, ticket: u64, reason: &str) -> Option<Answer> {
        let (at, kind) = self.find(ticket)?;
        if KINDS[kind] == FLOWS {
            let looking = self.0.remove(at);
            return (!looking.is_over).then(|| (looking.query, Err(reason.to_owned())));
        }
        self.0[at].tickets[kind] = None;
        self.end_if_read(engine, at)
    }

    /// The caller waits no more.
    pub fn on_over(&mut self, query: u64) {
        self.0.iter_mut().filter(|looking| looking.query == query).for_each(|looking| looking.is_over = true);
    }

    fn find(&self, ticket: u64) -> Option<(usize, usize)> {
        self.0
            .iter()
            .enumerate()
            .find_map(|(at, looking)| Some((at, looking.tickets.iter().position(|it| *it == Some(ticket))?)))
    }

    fn end_if_read(&mut self, engine: &Engine, at: usize) -> Option<Answer> {
        if self.0[at].tickets.iter().any(Option::is_some) {
            return None;
        }
        let mut looking = self.0.remove(at);
        if looking.is_over {
            return None;
        }
        looking.look.missing = looking.missing(engine);
        Some((looking.query, Ok(looking.look)))
    }
}

fn meter(key: EntryKey) -> Option<u32> {
    match key.kind() {
        EntryKind::Meter(number) => Some(number),
        _ => None,
    }
}

impl Looking {
    fn see_rule(&mut self, engine: &Engine, switch: Option<&Switch>, entry: &RuleEntry<'_>) {
        let key = entry.key();
        let (Ok(matching), Ok(instructions)) =
            (read_match(entry.matching), read_instructions(entry.instructions))
        else {
            self.look.left_out += 1;
            return;
        };
        if entry.table_id == 0 {
            if !may_match(&matching, &self.fields) {
                return;
            }
            self.seen.insert(key);
        }
        if self.look.rules.len() >= LOOK_RULES_MAX {
            self.look.left_out += 1;
            return;
        }
        let content = entry.content(key);
        let slot = switch.and_then(|switch| switch.slots.get(&key));
        let claim = |(switch, slot): (&Switch, &Slot)| {
            // Some switches report instructions in another form. Then the cookie says what was installed.
            let by_cookie = !switch.reading.rules_exact && own_part(entry.cookie) == slot.content();
            claim(engine, switch, key, slot.content() == content || by_cookie)
        };
        self.look.rules.push(SeenRule {
            id: RuleId { switch: self.look.switch, number: key.number() },
            table_id: entry.table_id,
            priority: entry.priority,
            matching,
            instructions,
            cookie: entry.cookie,
            packets: entry.packets,
            bytes: entry.bytes,
            duration_s: entry.duration_s,
            is_own: engine.policy.is_own(entry.cookie, [Some(content), slot.map(Slot::content)]),
            wanted: switch.zip(slot).and_then(claim),
        });
    }

    /// The wanted rules for the packet that the switch does not have. In tables behind the first one, earlier ones may have changed the packet,
    /// so only rules of table 0 are certain.
    fn missing(&self, engine: &Engine) -> Vec<Rule> {
        let Some(switch) = engine.switch(self.look.switch) else { return Vec::new() };
        let mut scratch = Scratch::default();
        let mut missing = Vec::new();
        let slots = switch
            .slots
            .iter()
            .filter(|(key, slot)| key.is_rule() && is_wanted(slot) && !self.seen.contains(key));
        for (key, slot) in slots {
            let Some(body) = &slot.body else { continue };
            let is_for_it = body.wanted(slot.place(), &mut scratch).is_some_and(|wanted| match wanted.what {
                What::Rule { table_id: 0, matching, .. } => {
                    read_match(matching).is_ok_and(|matching| matching.matches(&self.fields))
                }
                _ => false,
            });
            if let Some(Object::Rule(rule)) =
                is_for_it.then(|| object(engine, switch, *key, &mut scratch)).flatten()
            {
                missing.push(rule);
            }
        }
        missing.sort_by_key(|rule| (std::cmp::Reverse(rule.priority), rule.id));
        missing.truncate(LOOK_RULES_MAX);
        missing
    }
}

fn is_wanted(slot: &Slot) -> bool {
    !matches!(slot.state, State::Orphan | State::Removing | State::RemoveSent)
}

fn claim(engine: &Engine, switch: &Switch, key: EntryKey, is_same: bool) -> Option<Claim> {
    let Object::Rule(rule) = object(engine, switch, key, &mut Scratch::default())? else { return None };
    Some(Claim { owner: rule.owner, set: rule.set, state: rule.state, is_same })
}

/// Whether a rule matches the packet, or may: what a field of another class says is not known.
fn may_match(matching: &Match, fields: &FrameFields) -> bool {
    matching.entries().iter().all(|entry| match entry {
        MatchEntry::Field { mask: Some(0), .. } | MatchEntry::Unknown { .. } => true,
        MatchEntry::Field { field, value, mask } => {
            fields.get(*field).is_some_and(|there| (there ^ value) & mask.unwrap_or(field.full_mask()) == 0)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Put;
    use crate::policy::Settings;
    use flow::canonical::{write_instructions, write_match};
    use flow::text::{parse_instructions, parse_match};
    use flows_contract::{Items, SetOptions};

    const SWITCH: DatapathId = DatapathId(1);

    fn bytes(matching: &str, instructions: &str) -> (Vec<u8>, Vec<u8>) {
        let (mut rule, mut done) = (Vec::new(), Vec::new());
        write_match(&parse_match(matching).unwrap(), &mut rule);
        write_instructions(&parse_instructions(instructions).unwrap(), &mut done).unwrap();
        (rule, done)
    }

    /// An `ofp_flow_stats`. `zone`: the owner, with the cookie of this service.
    fn reported(zone: u64, table_id: u8, priority: u16, matching: &str, instructions: &str) -> Vec<u8> {
        let (rule, done) = bytes(matching, instructions);
        let content = crate::key::rule_content(EntryKey::rule(table_id, priority, &rule), &done, 0, 0);
        let mut entry = vec![0; 48];
        entry[2] = table_id;
        entry[12..14].copy_from_slice(&priority.to_be_bytes());
        entry[24..32].copy_from_slice(&(zone << 48 | content).to_be_bytes());
        entry[39] = 12;
        let match_len = 4 + rule.len();
        entry.extend([0, 1]);
        entry.extend(u16::try_from(match_len).unwrap().to_be_bytes());
        entry.extend(rule);
        entry.resize(48 + match_len.next_multiple_of(8), 0);
        entry.extend(done);
        let length = u16::try_from(entry.len()).unwrap().to_be_bytes();
        entry[..2].copy_from_slice(&length);
        entry
    }

    /// An engine in which the set `intent/7` of `paths` wants these rules of priority 9.
    fn engine(wanted: &[(&str, &str)]) -> Engine {
        let mut engine = Engine::new(&Settings::default(), 0).unwrap();
        let mut send = |_: DatapathId, _: &crate::outgoing::Send<'_>| 1;
        engine.on_up(SWITCH, false, 0, &mut send);
        let mut items = Vec::new();
        for (matching, instructions) in wanted {
            let (rule, done) = bytes(matching, instructions);
            Items::new(&mut items).rule(&flows_contract::Rule {
                switch: SWITCH,
                table_id: 0,
                stage: 0,
                priority: 9,
                idle_timeout_s: 0,
                hard_timeout_s: 0,
                matching: &rule,
                instructions: &done,
            });
        }
        let owner = engine.owner("paths");
        let options = SetOptions::default();
        let put = Put { owner, name: "intent/7", version: 1, options, items: &items };
        engine.put(&put, 0, &mut send).unwrap();
        engine
    }

    /// The look of a TCP packet at port 1, if the switch reports these rules.
    fn look(engine: &Engine, rules: &[Vec<u8>]) -> Look {
        let mut looks = Looks::default();
        let packet = parse_match("in_port=1,tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=1,tp_dst=80").unwrap();
        looks.begin(5, SWITCH, false, &packet, [Some(1), Some(2), Some(3)]);
        for rule in rules {
            assert!(looks.on_report(engine, (1, true), rule).is_none());
        }
        assert!(looks.on_report(engine, (1, false), &[]).is_none());
        assert!(looks.on_refused(engine, 2, "no groups").is_none());
        let (query, look) = looks.on_report(engine, (3, false), &[]).unwrap();
        assert_eq!((query, looks.0.len()), (5, 0));
        look.unwrap()
    }

    #[test]
    fn a_switch_that_does_not_answer_ends_the_look() {
        let engine = engine(&[]);
        let mut looks = Looks::default();
        looks.begin(5, SWITCH, false, &Match::any(), [Some(1), Some(2), Some(3)]);
        assert_eq!(looks.on_refused(&engine, 1, "away"), Some((5, Err("away".to_owned()))));
        looks.begin(6, SWITCH, true, &Match::any(), [Some(4), None, None]);
        looks.on_over(6);
        assert!(looks.on_report(&engine, (4, false), &[]).is_none());
        assert_eq!(looks.len(), 0);
    }

    #[test]
    fn each_rule_says_who_wants_it_and_missing_ones_are_named() {
        let engine = engine(&[
            ("tcp,tp_dst=80", "output:2"),
            ("ip", "output:3"),
            ("tcp", "output:4"),
            ("udp", "output:5"),
        ]);
        let own = reported(7, 0, 9, "tcp,tp_dst=80", "output:2");
        let other = reported(7, 0, 9, "ip", "drop");
        let foreign = reported(0, 0, 1, "", "output:1");
        let elsewhere = reported(0, 0, 1, "udp", "output:1");
        let later = reported(0, 2, 1, "udp", "output:1");
        let look = look(&engine, &[own, other, foreign, elsewhere, later]);
        let shown: Vec<_> = look
            .rules
            .iter()
            .map(|rule| (rule.table_id, rule.packets, rule.is_own, rule.wanted.as_ref().map(|it| it.is_same)))
            .collect();
        let expected = [
            (0, 12, true, Some(true)),
            (0, 12, true, Some(false)),
            (0, 12, false, None),
            (2, 12, false, None),
        ];
        assert_eq!(shown, expected);
        let claim = look.rules[0].wanted.as_ref().unwrap();
        assert_eq!((claim.owner.as_str(), claim.set.as_str()), ("paths", "intent/7"));
        let missing: Vec<_> =
            look.missing.iter().map(|rule| flow::text::match_to_string(&rule.matching)).collect();
        assert_eq!(missing, ["tcp"], "that for udp is for other packets");
    }
}
