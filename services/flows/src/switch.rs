//! One switch: its entries, what is under way to it, and what waits for its window.
//!
//! ```text
//!   Due, Removing ──queue──> [ window of commands with receipts ] ──receipt──> Installed, Failed, gone
//! ```
//!
//! In: entries that are due, receipts. Out: commands, as many at a time as the window has room for. A receipt counts only if its command is
//! under way in this session and is the last one for its entry.

use crate::key::{EntryKey, EntryKind};
use crate::outgoing::{Context, RuleHead, Send};
use crate::slot::{ENDS, MARK, PRESENT, QUEUED, SENT, Slot, State};
use crate::together::Together;
use crate::wanted::What;
use crate::window::TURN;
use burnet_sdk::{BUNDLE_MAX, NO_ROOM, Outcome};
use flow::{DatapathId, ErrorCode};
use flows_contract::{Failure, FailureKind, Tables};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// The most commands without a receipt at one switch; [`crate::window`] bounds those of all switches. A session keeps 2,048 such
/// commands of all apps, and one app may have as many as it leaves for the others. So two other apps have some 760 and 380 of them beside
/// this window. More commands wait in the queue, so the switch's own confirmations pace a large difference.
pub const WINDOW: usize = 512;

/// If the service gathers commands, and fewer than this wait for a switch, they wait for the answer to those that are under way.
/// Then one message to the switch has all of them, with one barrier. So a busy switch gets fewer messages, and an idle switch gets
/// its commands at once.
const BURST: usize = 32;

/// After a refusal that can pass, nothing is sent to the switch for this time. It doubles up to [`PAUSE_MS_MAX`].
const PAUSE_MS: u64 = 20;

/// The longest pause.
const PAUSE_MS_MAX: u64 = 1_000;

/// An entry that was refused so often has failed. An audit tries it again.
const ATTEMPTS_MAX: u8 = 5;

/// The same for a rule that the kernel refuses because the table has as many rules as it may have.
const ATTEMPTS_IF_FULL_MAX: u8 = 2;

/// The most rules that are removed after one audit because no set wants them. The next audit finds the rest.
pub const LEFTOVERS_MAX: usize = 16_384;

/// Errors of OpenFlow 1.3.5, 7.5.4: OFPET_FLOW_MOD_FAILED, GROUP_MOD_FAILED, METER_MOD_FAILED.
const FLOW_MOD_FAILED: u16 = 5;
const GROUP_MOD_FAILED: u16 = 6;
const METER_MOD_FAILED: u16 = 12;

/// The hasher of the entries: a key of a rule is a hash already.
#[derive(Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        // The map takes the upper bits of a hash for its control bytes, and the ids of groups have none there.
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 ^= number;
    }
}

/// The entries of a switch.
pub type Slots = HashMap<EntryKey, Slot, BuildHasherDefault<KeyHasher>>;

/// A command under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub(crate) ticket: u64,
    pub(crate) key: EntryKey,
    pub(crate) is_removal: bool,
}

/// A rule in the switch that no set wants, and that is to be removed.
#[derive(Debug)]
pub struct Leftover {
    /// Its key.
    pub key: EntryKey,
    /// Its table.
    pub table_id: u8,
    /// Its priority.
    pub priority: u16,
    /// Its match.
    pub matching: Box<[u8]>,
    /// The whole cookie, if it is a rule of another controller.
    pub foreign: Option<u64>,
}

/// One switch.
#[derive(Debug)]
pub struct Switch {
    /// Its datapath id.
    pub datapath: DatapathId,
    /// Whether its OpenFlow version is 1.0, which has no groups and meters.
    pub is_v10: bool,
    /// Whether its tables are known.
    pub tables: Tables,
    /// Its entries.
    pub slots: Slots,
    /// The reading of its tables that is under way.
    pub reading: crate::progress::Progress,
    /// Whether commands are sent only by [`Switch::flush`].
    gathers: bool,
    /// What changes as a bundle.
    pub(crate) together: Together,
    pub(crate) queue: VecDeque<EntryKey>,
    flights: VecDeque<Flight>,
    leftovers: VecDeque<Leftover>,
    paused_until_ms: u64,
    pause_ms: u64,
    /// It waits for its turn, because as many commands as may be are under way to all switches.
    waits_for_window: bool,
}

impl Switch {
    /// A switch that is not connected. `gathers`: what is to be sent waits for [`Switch::flush`].
    pub fn new(datapath: DatapathId, gathers: bool) -> Switch {
        Switch {
            gathers,
            datapath,
            is_v10: false,
            tables: Tables::Away,
            slots: Slots::default(),
            reading: Default::default(),
            together: Together::default(),
            queue: VecDeque::new(),
            flights: VecDeque::new(),
            leftovers: VecDeque::new(),
            paused_until_ms: 0,
            pause_ms: PAUSE_MS,
            waits_for_window: false,
        }
    }

    /// Whether commands may be sent to it.
    pub fn is_ready(&self) -> bool {
        self.tables == Tables::Known
    }

    /// How many commands are under way or wait.
    pub fn pending(&self) -> usize {
        self.queue.len() + self.flights.len() + self.leftovers.len() + self.together.entries()
    }

    /// Until when it is paused. `None`: nothing waits for the end of a pause.
    pub fn resumes_at_ms(&self) -> Option<u64> {
        let waits = self.has_to_send() && !self.waits_for_window;
        let has_room = self.flights.len() < WINDOW && !self.waits_for_answer();
        (waits && self.is_ready() && has_room).then_some(self.paused_until_ms)
    }

    /// Whether something waits that may be sent. While a bundle is under way, nothing may.
    fn has_to_send(&self) -> bool {
        let waits = !self.queue.is_empty() || !self.leftovers.is_empty() || self.together.waits();
        waits && !self.together.is_under_way()
    }

    /// Whether what waits is so little that it waits for the answer to what is under way.
    fn waits_for_answer(&self) -> bool {
        let is_little = self.queue.len() + self.leftovers.len() < BURST && !self.together.waits();
        self.gathers && !self.flights.is_empty() && is_little
    }

    /// Gives an entry another state, and counts it.
    pub fn set_state(&mut self, key: EntryKey, state: State, at: &mut Context<'_, '_>) {
        let is_ready = self.is_ready();
        if let Some(slot) = self.slots.get_mut(&key) {
            at.sets.set_state(slot, state, (is_ready, is_ready));
            at.notes.changed(self.datapath, key);
        }
    }

    /// Drops an entry.
    pub fn drop_slot(&mut self, key: EntryKey, at: &mut Context<'_, '_>) {
        if let Some(slot) = self.slots.remove(&key) {
            at.sets.drop_slot(slot, self.is_ready());
            at.notes.changed(self.datapath, key);
        }
    }

    /// An entry is due, or is to be removed: it is sent when the window has room.
    pub fn enqueue(&mut self, key: EntryKey) {
        let Some(slot) = self.slots.get_mut(&key).filter(|slot| !slot.has(QUEUED)) else { return };
        slot.set(QUEUED, true);
        if !self.together.take(key) {
            self.queue.push_back(key);
        }
    }

    /// A rule that no set wants is to be removed. It stays for the next audit if too many wait.
    pub fn leave_over(&mut self, leftover: Leftover) {
        if self.leftovers.len() < LEFTOVERS_MAX {
            self.leftovers.push_back(leftover);
        }
    }

    /// Sends what waits, unless it waits for [`Switch::flush`].
    pub fn pump(&mut self, at: &mut Context<'_, '_>) {
        if !self.gathers {
            self.flush(at);
        }
    }

    /// Sends what waits, as far as the windows go.
    pub fn flush(&mut self, at: &mut Context<'_, '_>) {
        if self.waits_for_answer() {
            return;
        }
        if at.window.is_contended() {
            return self.wait_for_window(at);
        }
        self.send_some(usize::MAX, at);
    }

    /// It is the turn of this switch, which waited for others' receipts.
    pub fn take_turn(&mut self, at: &mut Context<'_, '_>) {
        self.waits_for_window = false;
        self.send_some(TURN, at);
    }

    fn send_some(&mut self, most: usize, at: &mut Context<'_, '_>) {
        for _ in 0..most {
            if !self.may_send(at.now_ms) {
                return;
            }
            if at.window.is_full() {
                break;
            }
            if let Some(key) = self.queue.pop_front() {
                self.send_entry(key, at);
            } else if self.together.waits() {
                self.send_together(at);
            } else if let Some(leftover) = self.leftovers.pop_front() {
                self.send_leftover(&leftover, at);
            }
        }
        self.wait_for_window(at);
    }

    /// Whether something waits that only the window of all switches can hold back.
    fn may_send(&self, now_ms: u64) -> bool {
        self.has_to_send() && self.is_ready() && self.flights.len() < WINDOW && now_ms >= self.paused_until_ms
    }

    fn wait_for_window(&mut self, at: &mut Context<'_, '_>) {
        if self.may_send(at.now_ms) && !std::mem::replace(&mut self.waits_for_window, true) {
            at.window.wait(self.datapath);
        }
    }

    fn fly(&mut self, flight: Flight, at: &mut Context<'_, '_>) {
        at.window.on_sent();
        self.flights.push_back(flight);
    }

    fn send_entry(&mut self, key: EntryKey, at: &mut Context<'_, '_>) {
        let Some(slot) = self.slots.get_mut(&key) else { return };
        slot.set(QUEUED, false);
        let is_removal = match slot.state {
            State::Due => false,
            State::Removing => true,
            _ => return,
        };
        let Some(body) = slot.body.clone() else { return };
        let Some(what) = body.what(slot.place(), at.scratch) else { return };
        if let Some(reason) = unsupported(self.is_v10, &what) {
            return self.fail(key, FailureKind::Unsupported, reason, at);
        }
        // The content in the slot belongs to this body and this place: `Slot::point_to` sets all three together.
        let command = command(&what, (key, slot.content()), is_removal, slot.has(PRESENT));
        let ticket = (at.send)(self.datapath, &command);
        slot.set_ticket(ticket);
        slot.set(SENT, true);
        slot.set(ENDS, matches!(what, What::Rule { idle_timeout_s, hard_timeout_s, .. } if (idle_timeout_s, hard_timeout_s) != (0, 0)));
        let state = if is_removal { State::RemoveSent } else { State::Sent };
        at.sets.set_state(slot, state, (true, true));
        self.fly(Flight { ticket, key, is_removal }, at);
    }

    fn send_leftover(&mut self, leftover: &Leftover, at: &mut Context<'_, '_>) {
        let Leftover { key, table_id, priority, ref matching, foreign } = *leftover;
        // A set may want a rule with this key by now.
        if self.slots.contains_key(&key) {
            return;
        }
        if let Some(cookie) = foreign {
            let ticket = (at.send)(self.datapath, &Send::Foreign { table_id, priority, cookie, matching });
            return self.fly(Flight { ticket, key, is_removal: true }, at);
        }
        let (idle_timeout_s, hard_timeout_s, cookie) = (0, 0, 0);
        let head = RuleHead { is_removed: true, table_id, priority, idle_timeout_s, hard_timeout_s, cookie };
        let send = Send::Rule { head, matching, instructions: &[] };
        let ticket = (at.send)(self.datapath, &send);
        self.fly(Flight { ticket, key, is_removal: true }, at);
    }

    /// The outcome of a command. A ticket of an earlier session, or of nobody, changes nothing.
    pub fn on_receipt(
        &mut self,
        ticket: u64,
        outcome: Outcome,
        error: ErrorCode,
        reason: &str,
        at: &mut Context<'_, '_>,
    ) {
        if self.on_together(ticket, outcome, error, reason, at) {
            return self.pump(at);
        }
        let Ok(number) = self.flights.binary_search_by_key(&ticket, |flight| flight.ticket) else { return };
        let Some(flight) = self.flights.remove(number) else { return };
        at.window.on_over(1);
        self.on_outcome(flight, outcome, error, reason, at);
        self.pump(at);
    }

    /// The outcome of a command for an entry.
    pub(crate) fn on_outcome(
        &mut self,
        flight: Flight,
        outcome: Outcome,
        error: ErrorCode,
        reason: &str,
        at: &mut Context<'_, '_>,
    ) {
        let ticket = flight.ticket;
        let awaited = if flight.is_removal { State::RemoveSent } else { State::Sent };
        let slot = self.slots.get(&flight.key);
        let is_last = slot.is_some_and(|slot| slot.is_last(ticket) && slot.state == awaited);
        if is_last {
            match outcome {
                Outcome::Programmed => self.on_programmed(flight, at),
                Outcome::Failed => self.on_failed(flight, error, reason, at),
                Outcome::Refused => self.on_refused(flight, error, reason, at),
                Outcome::Unknown => self.on_unknown(flight, at),
            }
        } else if outcome == Outcome::Unknown {
            self.reading.is_wanted = true;
        } else if outcome == Outcome::Programmed && !flight.is_removal {
            // Something else is wanted by now, but the switch has this one.
            self.slots.entry(flight.key).and_modify(|slot| slot.set(PRESENT, true));
        } else if outcome != Outcome::Programmed {
            at.notes.line(|| {
                format!("{}: a rule that no set wants could not be removed: {reason}", self.datapath)
            });
        }
    }

    fn on_programmed(&mut self, flight: Flight, at: &mut Context<'_, '_>) {
        self.pause_ms = PAUSE_MS;
        if flight.is_removal {
            return self.drop_slot(flight.key, at);
        }
        let parity = self.reading.parity;
        if let Some(slot) = self.slots.get_mut(&flight.key) {
            slot.attempts = 0;
            slot.set(PRESENT, true);
            slot.set(MARK, parity);
        }
        self.set_state(flight.key, State::Installed, at);
    }

    /// The switch did not answer the barrier in time. The command is sent again: it changes nothing if it was carried out.
    fn on_unknown(&mut self, flight: Flight, at: &mut Context<'_, '_>) {
        self.reading.is_wanted = true;
        let state = if flight.is_removal { State::Removing } else { State::Due };
        self.set_state(flight.key, state, at);
        self.enqueue(flight.key);
    }

    fn on_failed(&mut self, flight: Flight, error: ErrorCode, reason: &str, at: &mut Context<'_, '_>) {
        if flight.is_removal {
            at.notes.line(|| format!("{}: a removal failed: {reason}", self.datapath));
            return self.drop_slot(flight.key, at);
        }
        let Some(slot) = self.slots.get_mut(&flight.key) else { return };
        slot.set(SENT, false);
        slot.attempts = slot.attempts.saturating_add(1);
        // A group or meter exists already, or does not exist yet: the other command is right.
        let (exists, unknown) =
            (is_error(error, 0), is_error(error, 8) || error.kind == METER_MOD_FAILED && error.code == 2);
        if !flight.key.is_rule() && slot.attempts < 2 && error.kind != FLOW_MOD_FAILED && (exists || unknown)
        {
            slot.set(PRESENT, exists);
            return self.again(flight.key, at);
        }
        let kind = if is_full(error) { FailureKind::TableFull } else { FailureKind::Switch };
        self.fail(flight.key, kind, reason.to_owned(), at);
    }

    /// The kernel or southbound refused the command. Some reasons pass: a slow connection, a rule whose owner is being asked, a count of rules
    /// that is too high until the switch is asked for it.
    fn on_refused(&mut self, flight: Flight, error: ErrorCode, reason: &str, at: &mut Context<'_, '_>) {
        self.paused_until_ms = at.now_ms + self.pause_ms;
        self.pause_ms = (self.pause_ms * 2).min(PAUSE_MS_MAX);
        let Some(slot) = self.slots.get_mut(&flight.key) else { return };
        // Nothing is wrong with the command: others have the room. The pause bounds how often it is sent.
        if error != NO_ROOM {
            slot.attempts = slot.attempts.saturating_add(1);
        }
        let (kind, attempts_max) = match is_full(error) {
            true => (FailureKind::TableFull, ATTEMPTS_IF_FULL_MAX),
            false => (FailureKind::Refused, ATTEMPTS_MAX),
        };
        if slot.attempts < attempts_max {
            let state = if flight.is_removal { State::Removing } else { State::Due };
            self.set_state(flight.key, state, at);
            return self.enqueue(flight.key);
        }
        match flight.is_removal {
            true => {
                at.notes.line(|| format!("{}: a removal was refused: {reason}", self.datapath));
                self.drop_slot(flight.key, at);
            }
            false => self.fail(flight.key, kind, reason.to_owned(), at),
        }
    }

    fn again(&mut self, key: EntryKey, at: &mut Context<'_, '_>) {
        self.set_state(key, State::Due, at);
        self.enqueue(key);
    }

    fn fail(&mut self, key: EntryKey, failure: FailureKind, reason: String, at: &mut Context<'_, '_>) {
        let number = self.slots.get(&key).and_then(Slot::set_number);
        if let Some(set) = number.and_then(|number| at.sets.get_mut(number)) {
            let rule = if key.is_rule() { key.number() } else { 0 };
            set.failure = Some(Box::new(Failure { switch: self.datapath, rule, failure, reason }));
        }
        self.set_state(key, State::Failed, at);
        if let Some(number) = number {
            at.sets.touch(number);
        }
    }

    /// Failed entries are tried again.
    pub fn retry(&mut self, at: &mut Context<'_, '_>) {
        let failed = self.slots.iter().filter(|(_, slot)| slot.state == State::Failed);
        let keys: Vec<EntryKey> = failed.map(|(key, _)| *key).take(RETRIES_MAX).collect();
        for key in keys {
            if let Some(slot) = self.slots.get_mut(&key) {
                slot.attempts = 0;
            }
            self.again(key, at);
        }
    }

    /// The session has ended: nothing under way will be confirmed, and no table is known.
    pub fn on_down(&mut self, at: &mut Context<'_, '_>) {
        let was_ready = self.is_ready();
        self.tables = Tables::Away;
        self.end_together(at);
        at.window.on_over(self.flights.len());
        self.flights.clear();
        self.queue.clear();
        self.leftovers.clear();
        self.reading.stop();
        self.paused_until_ms = 0;
        let mut gone = Vec::new();
        for (key, slot) in &mut self.slots {
            slot.set(QUEUED | PRESENT | SENT, false);
            let state = match slot.state {
                State::Removing | State::RemoveSent | State::Orphan => {
                    gone.push(*key);
                    continue;
                }
                State::Held => State::Held,
                _ => State::Due,
            };
            at.sets.set_state(slot, state, (was_ready, false));
            at.notes.changed(self.datapath, *key);
        }
        gone.into_iter().for_each(|key| self.drop_slot(key, at));
    }

    /// Its tables are known from now on: what is due is sent.
    pub fn on_known(&mut self, at: &mut Context<'_, '_>) {
        let is_first = !self.is_ready();
        self.tables = Tables::Known;
        let mut due = Vec::new();
        for (key, slot) in &mut self.slots {
            if is_first {
                let before = slot.class(false);
                at.sets.recount(slot, before, true);
            }
            if slot.state == State::Due && !slot.has(QUEUED) {
                due.push(*key);
            }
        }
        // Rules may refer to groups and meters.
        due.sort_unstable_by_key(|key| (key.is_rule(), *key));
        let rules = due.split_off(due.partition_point(|key| !key.is_rule()));
        due.into_iter().for_each(|key| self.enqueue(key));
        // What is missing of the rules comes together, if it fits one bundle.
        if rules.len() <= BUNDLE_MAX && self.can_gather() {
            self.gather();
        }
        rules.into_iter().for_each(|key| self.enqueue(key));
        self.gathered(None);
        self.pump(at);
    }
}

/// The most failed entries that one audit tries again.
const RETRIES_MAX: usize = 64;

fn is_error(error: ErrorCode, code: u16) -> bool {
    matches!(error.kind, GROUP_MOD_FAILED | METER_MOD_FAILED) && error.code == code
}

/// OFPFMFC_TABLE_FULL, OFPGMFC_OUT_OF_GROUPS, OFPMMFC_OUT_OF_METERS (7.5.4.6, 7.5.4.7, 7.5.4.13).
fn is_full(error: ErrorCode) -> bool {
    matches!((error.kind, error.code), (FLOW_MOD_FAILED, 1) | (GROUP_MOD_FAILED, 3) | (METER_MOD_FAILED, 10))
}

/// Why OpenFlow 1.0 cannot express an entry.
fn unsupported(is_v10: bool, what: &What<'_>) -> Option<String> {
    match *what {
        _ if !is_v10 => None,
        What::Group { .. } => Some("the switch speaks OpenFlow 1.0, which has no groups".to_owned()),
        What::Meter { .. } => Some("the switch speaks OpenFlow 1.0, which has no meters".to_owned()),
        What::Rule { priority, matching, .. } => {
            let is_exact =
                flow::canonical::read_match(matching).is_ok_and(|rule| flow::is_exact_in_v10(&rule));
            (is_exact && priority != u16::MAX).then(|| {
                "the match has all fields of OpenFlow 1.0: such a rule has the priority 65535 there"
                    .to_owned()
            })
        }
    }
}

pub(crate) fn command<'a>(
    what: &What<'a>,
    (key, content): (EntryKey, u64),
    is_removed: bool,
    is_present: bool,
) -> Send<'a> {
    let command = if is_removed { 2 } else { u16::from(is_present) };
    match (*what, key.kind()) {
        (What::Group { group_type, buckets }, EntryKind::Group(group_id)) => {
            Send::Group { command, group_type, group_id, buckets: if is_removed { &[] } else { buckets } }
        }
        (What::Meter { flags, bands }, EntryKind::Meter(meter_id)) => {
            Send::Meter { command, flags, meter_id, bands: if is_removed { &[] } else { bands } }
        }
        (What::Rule { table_id, priority, idle_timeout_s, hard_timeout_s, matching, instructions }, _) => {
            let cookie = content;
            let head = RuleHead { is_removed, table_id, priority, idle_timeout_s, hard_timeout_s, cookie };
            Send::Rule { head, matching, instructions: if is_removed { &[] } else { instructions } }
        }
        // A key is made from what it names.
        _ => Send::Read(crate::report::FLOWS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Put;
    use crate::engine::Engine;
    use crate::plain_rule::plain_rule;
    use crate::policy::Settings;
    use flows_contract::{Items, Phase, SetOptions};

    const SWITCH: DatapathId = DatapathId(1);

    /// What is sent: the ticket of each command, and whether it is a rule.
    #[derive(Default)]
    struct Sent(Vec<(u64, bool)>);

    impl Sent {
        fn take(&mut self, send: &Send<'_>) -> u64 {
            let ticket = self.0.len() as u64 + 1;
            self.0.push((ticket, matches!(send, Send::Rule { .. })));
            ticket
        }
    }

    /// An engine whose only switch has empty tables, and wants one rule. Returns the ticket of the rule too.
    fn with_a_rule(sent: &mut Sent) -> (Engine, u64) {
        let mut engine = Engine::new(&Settings::default(), 0).unwrap();
        engine.owner("app");
        engine.on_up(SWITCH, false, 0, &mut |_, send| sent.take(send));
        for ticket in 1..=3 {
            engine.on_report(SWITCH, (ticket, false), &[], 0, &mut |_, send| sent.take(send));
        }
        let mut items = Vec::new();
        Items::new(&mut items).rule(&plain_rule(SWITCH.0, 7));
        let put = Put { owner: 0, name: "s", version: 1, options: SetOptions::default(), items: &items };
        engine.put(&put, 0, &mut |_, send| sent.take(send)).unwrap();
        let (ticket, is_rule) = *sent.0.last().unwrap();
        assert!(is_rule);
        (engine, ticket)
    }

    fn phase(engine: &Engine) -> Phase {
        engine.state(engine.sets().number(0, "s").unwrap()).unwrap().phase
    }

    #[test]
    fn a_rule_that_the_operators_limit_leaves_no_room_for_fails_as_in_a_full_table() {
        let mut sent = Sent::default();
        let (mut engine, mut ticket) = with_a_rule(&mut sent);
        let full = ErrorCode { kind: FLOW_MOD_FAILED, code: 1 };
        let mut now_ms = 0;
        for attempt in 1..=ATTEMPTS_IF_FULL_MAX {
            let why = "quota table entries: the hard limit 90 is reached";
            let outcome = (ticket, Outcome::Refused, full);
            engine.on_receipt(SWITCH, outcome, why, now_ms, &mut |_, send| sent.take(send));
            let has_failed = matches!(phase(&engine), Phase::Failed(failure)
                if failure.failure == FailureKind::TableFull && failure.switch == SWITCH && failure.reason == why);
            assert_eq!(has_failed, attempt == ATTEMPTS_IF_FULL_MAX, "{:?}", phase(&engine));
            now_ms += PAUSE_MS_MAX;
            engine.resume(now_ms, &mut |_, send| sent.take(send));
            ticket = sent.0.last().unwrap().0;
        }
    }

    #[test]
    fn a_rule_for_which_the_session_has_no_room_is_sent_again_until_there_is_some() {
        let mut sent = Sent::default();
        let (mut engine, mut ticket) = with_a_rule(&mut sent);
        let mut now_ms = 0;
        for _ in 0..10 * u64::from(ATTEMPTS_MAX) {
            let outcome = (ticket, Outcome::Refused, NO_ROOM);
            engine.on_receipt(SWITCH, outcome, "later", now_ms, &mut |_, send| sent.take(send));
            assert_eq!(phase(&engine), Phase::Pending);
            now_ms += PAUSE_MS_MAX;
            engine.resume(now_ms, &mut |_, send| sent.take(send));
            let (last, is_rule) = *sent.0.last().unwrap();
            assert!(is_rule && last > ticket, "it is sent again");
            ticket = last;
        }
        let none = ErrorCode { kind: 0, code: 0 };
        let outcome = (ticket, Outcome::Programmed, none);
        engine.on_receipt(SWITCH, outcome, "", now_ms, &mut |_, send| sent.take(send));
        assert_eq!(phase(&engine), Phase::Installed);
    }
}
