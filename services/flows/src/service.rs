//! The shell of the service: events of the SDK to the engine, commands of the engine to the SDK, answers to callers.
//!
//! In: queries, receipts, reports, the time. Out: commands and answers. It decides nothing about rules.

use crate::change::Put;
use crate::counters::{READINGS_MAX, Readings};
use crate::engine::Engine;
use crate::json_set::wanted_items;
use crate::kept::{Answered, Course, Delayed, Kept, Loaded};
use crate::looks::{self, Looks};
use crate::outgoing::{BundledRule, RuleHead, Send};
use crate::policy::Settings;
use crate::report::{FLOWS, METERS, METERS_REQUEST, flows_request};
use crate::streams::Streams;
use crate::switch::Switch;
use crate::waiting::{Asked, Waiting, What as Wanted};
use crate::wanted::Scratch;
use crate::{listing, permitted};
use burnet_sdk::{
    App, Caller, Commands, FlowBuilder, Form, GroupMod, Interests, Level, MeterMod, Outcome, Query,
    QueryReply, Receipt, StatsReply, StatsRequest, SwitchUp, Ticket, What,
};
use flow::DatapathId;
use flows_contract::{
    Change, Follow, Grant, PAGE_DEFAULT, PAGE_MAX, Question, Refusal, SERVICE, SetOptions, SetPage,
    SetSummary, WantedSet, is_batch, read_batch, status, write_refusals,
};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What the service needs of its node: tables of a manifest.
pub const NEEDS: &str = include_str!("../needs.toml");

/// The version byte of OpenFlow 1.0.
const V1_0: u8 = 1;

/// A status and the payload of an answer.
type Reply = (u16, Vec<u8>);

/// A batch that is not answered yet, because some of its changes wait for the store.
#[derive(Debug, Default)]
struct Open {
    refusals: Vec<Refusal>,
    waiting: usize,
    is_json: bool,
}

/// The service.
pub struct Flows {
    engine: Engine,
    started: Instant,
    streams: Streams,
    kept: Kept,
    readings: Readings,
    looks: Looks,
    waiting: Waiting,
    open: BTreeMap<u64, Open>,
    grants: BTreeMap<u32, (Vec<u8>, Grant)>,
    scratch: Scratch,
}

/// Runs the service until its zone ends.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Flows>()
}

/// The way of the engine's commands to the switches.
fn sender(out: &mut Commands) -> impl FnMut(DatapathId, &Send<'_>) -> u64 {
    |switch, send| match *send {
        Send::Rule { head, matching, instructions } => {
            let rule = written(out.rule(switch), &head, matching);
            match head.is_removed {
                true => rule.delete().send_with_receipt().0,
                false => rule.instruction_bytes(instructions).send_with_receipt().0,
            }
        }
        Send::Foreign { table_id, priority, cookie, matching } => {
            let rule = out.rule(switch).table(table_id).priority(priority).matching_bytes(matching);
            rule.with_cookie(cookie, u64::MAX).delete().send_with_receipt().0
        }
        Send::Group { command, group_type, group_id, buckets } => {
            out.command(switch, What::GroupMod(GroupMod { command, group_type, group_id, buckets })).0
        }
        Send::Meter { command, flags, meter_id, bands } => {
            out.command(switch, What::MeterMod(MeterMod { command, flags, meter_id, bands })).0
        }
        Send::Bundle(rules) => {
            let bundle = out.bundle(switch, |bundle| {
                for BundledRule { head, matching, instructions } in rules {
                    let rule = written(bundle.rule(), head, matching);
                    match head.is_removed {
                        true => rule.delete().send(),
                        false => rule.instruction_bytes(instructions).send(),
                    }
                }
            });
            bundle.0
        }
        Send::Read(multipart) => read_tables(out, switch, multipart, u8::MAX),
    }
}

/// A rule with all but its instructions.
fn written<'o>(rule: FlowBuilder<'o>, head: &RuleHead, matching: &[u8]) -> FlowBuilder<'o> {
    let rule = rule.table(head.table_id).priority(head.priority).cookie(head.cookie).matching_bytes(matching);
    rule.idle_timeout_s(head.idle_timeout_s).hard_timeout_s(head.hard_timeout_s)
}

/// Asks for statistics, with a receipt: a refusal must not be silent.
fn read_tables(out: &mut Commands, switch: DatapathId, multipart: u16, table_id: u8) -> u64 {
    let flows = flows_request(table_id);
    let body: &[u8] = match multipart {
        FLOWS => &flows,
        METERS => &METERS_REQUEST,
        _ => &[],
    };
    out.command(switch, What::StatsRequest(StatsRequest { multipart, body })).0
}

impl App for Flows {
    fn new(settings: &burnet_sdk::Settings) -> Result<Self, String> {
        let settings: Settings = settings.read()?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let term = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Ok(Flows {
            engine: Engine::new(&settings, 0)?.gathering(),
            started: Instant::now(),
            streams: Streams::new(term),
            kept: Kept::default(),
            readings: Readings::default(),
            looks: Looks::default(),
            waiting: Waiting::default(),
            open: BTreeMap::new(),
            grants: BTreeMap::new(),
            scratch: Scratch::default(),
        })
    }

    fn interests(&self) -> Interests {
        Interests::none().switches().ticks()
    }

    fn on_start(&mut self, out: &mut Commands) {
        self.kept.load(out);
        // The node tells a service who calls it. So a call of itself tells its own number, which is in the cookies of its rules.
        out.query(SERVICE, &Question::Switches.to_bytes());
    }

    fn on_switch_up(&mut self, up: &SwitchUp, out: &mut Commands) {
        let is_v10 = up.openflow as u8 == V1_0;
        self.engine.on_up(up.datapath, is_v10, self.now_ms(), &mut sender(out));
    }

    fn on_switch_down(&mut self, datapath: DatapathId, out: &mut Commands) {
        self.engine.on_down(datapath, self.now_ms(), &mut sender(out));
    }

    fn on_stats_reply(&mut self, reply: &StatsReply, out: &mut Commands) {
        let StatsReply { datapath, ticket, more, body, .. } = *reply;
        let now_ms = self.now_ms();
        if !self.engine.on_report(datapath, (ticket, more), body, now_ms, &mut sender(out)) {
            let looked = self.looks.on_report(&self.engine, (ticket, more), body);
            answer_look(looked, out);
            self.readings.on_report(&self.engine, datapath, (ticket, more), body, out);
        }
        if !more {
            self.begin_waiting(out);
        }
    }

    fn on_receipt(&mut self, datapath: DatapathId, receipt: &Receipt, out: &mut Commands) {
        let Receipt { ticket, outcome, error, reason } = *receipt;
        if datapath.0 == 0 && outcome == Outcome::Programmed {
            return;
        }
        if datapath.0 == 0 {
            let refusal =
                QueryReply { ticket, status: abi_refused(outcome), more: false, payload: reason.as_bytes() };
            return self.on_call_over(&refusal, out);
        }
        if outcome != Outcome::Programmed {
            self.readings.on_refused(ticket, reason, out);
            answer_look(self.looks.on_refused(&self.engine, ticket, reason), out);
        }
        let now_ms = self.now_ms();
        self.engine.on_receipt(datapath, (ticket, outcome, error), reason, now_ms, &mut sender(out));
        if outcome != Outcome::Programmed {
            self.begin_waiting(out);
        }
    }

    fn on_query(&mut self, query: &Query, out: &mut Commands) {
        if query.caller.name == SERVICE {
            self.engine.policy.own_zone = u16::try_from(query.caller.number).ok();
        }
        let answered = match (self.grant_of(&query.caller), query.form) {
            (Err(why), _) => Some((status::NOT_GRANTED, why.into_bytes())),
            (Ok(grant), Form::Stream) => self.follow(&grant, query, out),
            (Ok(grant), Form::Query) if is_batch(query.payload) => self.batch(&grant, query, out),
            (Ok(grant), Form::Query) => self.question(&grant, query, out),
        };
        if let Some((status, payload)) = answered {
            out.answer(Ticket(query.ticket), status, false, &payload);
        }
    }

    fn on_query_over(&mut self, over: &burnet_sdk::QueryOver, _: &mut Commands) {
        self.open.remove(&over.ticket);
        self.readings.on_over(over.ticket);
        self.looks.on_over(over.ticket);
        self.waiting.on_over(over.ticket);
    }

    fn on_query_reply(&mut self, reply: &QueryReply, out: &mut Commands) {
        self.on_call_over(reply, out);
    }

    fn on_credit(&mut self, _: Ticket, out: &mut Commands) {
        self.streams.send_more(&self.engine, out);
    }

    fn on_caught_up(&mut self, out: &mut Commands) {
        self.tell(out);
    }

    fn on_wake(&mut self, out: &mut Commands) {
        self.tell(out);
    }

    fn on_tick(&mut self, _: u64, out: &mut Commands) {
        let now_ms = self.now_ms();
        self.kept.on_tick(now_ms, out);
        self.engine.on_tick(now_ms, &mut sender(out));
        self.begin_waiting(out);
        self.streams.on_tick(&self.engine);
        self.tell(out);
    }
}

/// Answers the app that asked what a switch has, once the switch has said all of it.
fn answer_look(looked: Option<looks::Answer>, out: &mut Commands) {
    let Some((query, look)) = looked else { return };
    let (status, payload) = match look {
        Ok(look) => json(&look),
        Err(why) => (status::NO_ANSWER_OF_SWITCH, why.into_bytes()),
    };
    out.answer(Ticket(query), status, false, &payload);
}

/// What a receipt for a call means as a status of an answer.
fn abi_refused(outcome: Outcome) -> u16 {
    match outcome {
        Outcome::Refused => burnet_sdk::query_status::NOT_GRANTED,
        _ => burnet_sdk::query_status::SERVICE_GONE,
    }
}

impl Flows {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Parses a grant if it differs from the caller's last one.
    fn grant_of(&mut self, caller: &Caller<'_>) -> Result<Grant, String> {
        match self.grants.get(&caller.number) {
            Some((bytes, grant)) if bytes == caller.grant => Ok(grant.clone()),
            _ => {
                let grant = Grant::from_bytes(caller.grant)?;
                self.grants.insert(caller.number, (caller.grant.to_vec(), grant.clone()));
                Ok(grant)
            }
        }
    }

    /// Sends what waits for the end of a pause, streams what has changed, and writes the log.
    fn tell(&mut self, out: &mut Commands) {
        let now_ms = self.now_ms();
        let resumes_at_ms = self.engine.resume(now_ms, &mut sender(out));
        if let Some(at_ms) = resumes_at_ms {
            out.wake_after(Duration::from_millis(at_ms.saturating_sub(now_ms)));
        }
        self.streams.send(&mut self.engine, out);
        self.engine.notes.lines.drain(..).for_each(|line| out.log(Level::Warning, &line));
    }

    fn follow(&mut self, grant: &Grant, query: &Query, out: &mut Commands) -> Option<Reply> {
        let follow = match Follow::from_bytes(query.payload) {
            Ok(follow) => follow,
            Err(why) => return Some((status::BAD_QUESTION, why.into_bytes())),
        };
        let may = if follow.states { grant.check_write() } else { grant.check_read() };
        if let Err(why) = may {
            return Some((status::NOT_GRANTED, why.into_bytes()));
        }
        if follow.states {
            let owner = self.engine.owner(query.caller.name);
            self.streams.follow_states(owner, query, out);
        } else {
            let kinds = if follow.kinds.is_empty() { listing::KINDS.to_vec() } else { follow.kinds };
            let kinds = kinds.into_iter().filter(|kind| kind.service() == SERVICE).collect();
            self.engine.notes.is_followed = true;
            self.streams.follow_table(kinds, query, out);
        }
        None
    }

    fn batch(&mut self, grant: &Grant, query: &Query, out: &mut Commands) -> Option<Reply> {
        if let Err(why) = grant.check_write() {
            return Some((status::NOT_GRANTED, why.into_bytes()));
        }
        let changes = match read_batch(query.payload) {
            Ok(changes) => changes,
            Err(why) => return Some((status::BAD_QUESTION, why.into_bytes())),
        };
        let mut open = Open::default();
        for (number, change) in changes.iter().enumerate() {
            // A batch is shorter than 4 GiB.
            let number = number as u32;
            match self.change(grant, query, number, change, out) {
                Ok(is_delayed) => open.waiting += usize::from(is_delayed),
                // What is not there is removed already.
                Err((status::NOT_FOUND, _)) => {}
                Err((status, reason)) => open.refusals.push(Refusal { number, status, reason }),
            }
        }
        // The switches work on this batch while the next ones are read.
        self.engine.resume(self.now_ms(), &mut sender(out));
        self.answer_or_wait(query.ticket, open)
    }

    fn answer_or_wait(&mut self, query: u64, open: Open) -> Option<Reply> {
        if open.waiting > 0 {
            self.open.insert(query, open);
            return None;
        }
        Some(match open.refusals.first() {
            None => (status::DONE, Vec::new()),
            Some(refusal) if open.is_json => (refusal.status, refusal.reason.clone().into_bytes()),
            Some(_) => (status::SOME_REFUSED, write_refusals(&open.refusals)),
        })
    }

    /// Makes one change, or hands it to the store first. Returns whether it waits for the store.
    fn change(
        &mut self,
        grant: &Grant,
        query: &Query,
        number: u32,
        change: &Change<'_>,
        out: &mut Commands,
    ) -> Result<bool, (u16, String)> {
        let caller = query.caller.name;
        let owner = self.engine.owner(caller);
        let (Change::Put { name, .. } | Change::Remove { name, .. }) = *change;
        let known = self.engine.sets().number(owner, name).and_then(|it| self.engine.sets().get(it));
        let course = self.kept.course(caller, change, known)?;
        if let Change::Put { items, .. } = *change {
            permitted::check(grant, name, items, &mut self.scratch)?;
        }
        let stored = match course {
            Course::Stored(stored) => stored,
            Course::AtOnce => return self.make(owner, change, out).map(|()| false),
            Course::AtOnceAndForget => {
                self.make(owner, change, out)?;
                self.kept.forget(caller, name, out);
                return Ok(false);
            }
        };
        // The store must not get a set that the engine refuses.
        if let Change::Put { version, options, items, .. } = *change {
            self.engine.check_put(&Put { owner, name, version, options, items })?;
        }
        let owner_name = caller.to_owned();
        self.kept.change(Delayed { query: query.ticket, number, owner, owner_name, change: stored }, out)?;
        Ok(true)
    }

    fn make(&mut self, owner: u32, change: &Change<'_>, out: &mut Commands) -> Result<(), (u16, String)> {
        let now_ms = self.now_ms();
        match *change {
            Change::Put { name, version, options, items } => {
                self.engine.put(&Put { owner, name, version, options, items }, now_ms, &mut sender(out))
            }
            Change::Remove { name, version } => {
                self.engine.remove(owner, name, version, now_ms, &mut sender(out))
            }
        }
    }

    /// A call of another service is answered, or was refused.
    fn on_call_over(&mut self, reply: &QueryReply<'_>, out: &mut Commands) {
        let now_ms = self.now_ms();
        let Some(answer) = self.kept.on_answer(reply, now_ms, out) else { return };
        match answer {
            Answered::Nothing => {}
            Answered::Complaint(line) => out.log(Level::Error, &line),
            Answered::Loaded(loaded) => self.on_loaded(&loaded, out),
            Answered::Stored(delayed) => self.on_stored(&delayed, out),
            Answered::Refused(delayed, status, reason) => {
                self.on_delayed(delayed.query, Some(Refusal { number: delayed.number, status, reason }), out);
            }
        }
    }

    fn on_loaded(&mut self, loaded: &Loaded, out: &mut Commands) {
        let owner = self.engine.owner(&loaded.owner);
        for change in read_batch(&loaded.batch).unwrap_or_default() {
            let (Change::Put { name, .. } | Change::Remove { name, .. }) = change;
            if self.kept.was_removed_early(&loaded.owner, name) {
                self.kept.forget(&loaded.owner, name, out);
            } else if let Err((status, why)) = self.make(owner, &change, out) {
                match status {
                    // Its owner has put a later version meanwhile. That one is stored if it is permanent.
                    status::STALE => self.correct(&loaded.owner, name, out),
                    _ => {
                        out.log(Level::Error, &format!("a stored set of {} is left out: {why}", loaded.owner))
                    }
                }
            }
        }
    }

    fn on_stored(&mut self, delayed: &Delayed, out: &mut Commands) {
        let mut refusal = None;
        for change in read_batch(delayed.change.as_bytes()).unwrap_or_default() {
            if let Err((status, reason)) = self.make(delayed.owner, &change, out) {
                let (Change::Put { name, .. } | Change::Remove { name, .. }) = change;
                self.correct(&delayed.owner_name, name, out);
                refusal = Some(Refusal { number: delayed.number, status, reason });
            }
        }
        self.on_delayed(delayed.query, refusal, out);
    }

    /// The store has another version of a set than the engine.
    fn correct(&mut self, owner: &str, name: &str, out: &mut Commands) {
        let number = self.engine.owner(owner);
        let present = self.engine.sets().number(number, name).and_then(|it| self.engine.sets().get(it));
        self.kept.correct(owner, name, present, out);
    }

    /// A change that waited for the store is made, or refused.
    fn on_delayed(&mut self, query: u64, refusal: Option<Refusal>, out: &mut Commands) {
        let Some(mut open) = self.open.remove(&query) else { return };
        open.refusals.extend(refusal);
        open.waiting -= 1;
        if let Some((status, payload)) = self.answer_or_wait(query, open) {
            out.answer(Ticket(query), status, false, &payload);
        }
    }

    fn question(&mut self, grant: &Grant, query: &Query, out: &mut Commands) -> Option<Reply> {
        let question = match Question::from_bytes(query.payload) {
            Ok(question) => question,
            Err(why) => return Some((status::BAD_QUESTION, why.into_bytes())),
        };
        let may = if question.writes() { grant.check_write() } else { grant.check_read() };
        if let Err(why) = may {
            return Some((status::NOT_GRANTED, why.into_bytes()));
        }
        match question {
            Question::Put(set) => self.put_json(grant, query, &set, out),
            Question::Remove { name } => {
                let change = Change::Remove { name: &name, version: u64::MAX };
                self.one(grant, query, &change, out)
            }
            Question::Counters { switch, table_id } => self.counters(query.ticket, switch, table_id, out),
            Question::Look { switch, packet } => self.look(query.ticket, switch, &packet, out),
            other => Some(self.list(other)),
        }
    }

    /// A connected switch, or the answer that it is not connected.
    fn connected(&self, switch: DatapathId) -> Result<&Switch, Reply> {
        let known = self.engine.switch(switch).filter(|it| it.tables != flows_contract::Tables::Away);
        known.ok_or_else(|| not_connected(switch))
    }

    /// What a switch has for a packet.
    fn look(
        &mut self,
        query: u64,
        switch: DatapathId,
        packet: &flow::Match,
        out: &mut Commands,
    ) -> Option<Reply> {
        if self.looks.len() + self.waiting.looks() >= looks::LOOKS_MAX {
            return Some(busy(looks::LOOKS_MAX));
        }
        self.ask(Asked { query, switch, what: Wanted::Look(Box::new(packet.clone())) }, out)
    }

    /// The counters of a switch.
    fn counters(
        &mut self,
        query: u64,
        switch: DatapathId,
        table_id: Option<u8>,
        out: &mut Commands,
    ) -> Option<Reply> {
        if self.readings.len() + self.waiting.counters() >= READINGS_MAX {
            return Some(busy(READINGS_MAX));
        }
        self.ask(Asked { query, switch, what: Wanted::Counters(table_id) }, out)
    }

    fn ask(&mut self, asked: Asked, out: &mut Commands) -> Option<Reply> {
        if let Err(answer) = self.connected(asked.switch) {
            return Some(answer);
        }
        self.waiting.push(asked);
        self.begin_waiting(out);
        None
    }

    /// Reads switches for those that wait, and for sessions, as far as there is room.
    fn begin_waiting(&mut self, out: &mut Commands) {
        loop {
            self.engine.on_callers_readings(self.looks.len() + self.readings.len());
            if self.engine.room_for_callers() == 0 {
                break;
            }
            let Some(asked) = self.waiting.pop() else { break };
            self.begin(asked, out);
        }
        let now_ms = self.now_ms();
        self.engine.begin_readings(now_ms, &mut sender(out));
    }

    fn begin(&mut self, Asked { query, switch, what }: Asked, out: &mut Commands) {
        let is_v10 = match self.connected(switch) {
            Ok(known) => known.is_v10,
            Err((status, payload)) => return out.answer(Ticket(query), status, false, &payload),
        };
        match what {
            Wanted::Counters(table_id) => {
                let ticket = read_tables(out, switch, FLOWS, table_id.unwrap_or(u8::MAX));
                self.readings.begin(ticket, query);
            }
            Wanted::Look(packet) => {
                let mut tickets = [None; 3];
                // OpenFlow 1.0 has neither groups nor meters.
                let count = if is_v10 { 1 } else { tickets.len() };
                for (ticket, kind) in tickets.iter_mut().zip(looks::KINDS).take(count) {
                    *ticket = Some(read_tables(out, switch, kind, u8::MAX));
                }
                self.looks.begin(query, switch, is_v10, &packet, tickets);
            }
        }
    }

    /// The lists.
    fn list(&mut self, question: Question) -> Reply {
        let stamp = self.streams.stamp();
        let engine = &mut self.engine;
        match question {
            Question::List { kind, filter, after, limit } => {
                json(&listing::page(engine, kind, &filter, after, limit, stamp))
            }
            Question::Get { key } => {
                let found = listing::position(key).and_then(|(_, switch, entry)| {
                    listing::object(engine, engine.switch(switch)?, entry, &mut Scratch::default())
                });
                match found {
                    Some(object) => json(&view::Record { stamp, object }),
                    None => (status::NOT_FOUND, format!("key: no set wants {key}").into_bytes()),
                }
            }
            Question::Sets { owner, after, limit } => {
                json(&sets(engine, owner.as_deref(), after.as_ref(), limit))
            }
            Question::Switches => json(&engine.switches().map(listing::summary).collect::<Vec<_>>()),
            Question::Audit { switch } => match engine.audit(switch) {
                true => (status::DONE, Vec::new()),
                false => not_connected(switch),
            },
            // They are answered before.
            Question::Put(_)
            | Question::Remove { .. }
            | Question::Counters { .. }
            | Question::Look { .. } => (status::BAD_QUESTION, Vec::new()),
        }
    }

    fn put_json(
        &mut self,
        grant: &Grant,
        query: &Query,
        set: &WantedSet,
        out: &mut Commands,
    ) -> Option<Reply> {
        let owner = self.engine.owner(query.caller.name);
        let known = self.engine.sets().number(owner, &set.name).and_then(|it| self.engine.sets().get(it));
        let version = set.version.unwrap_or_else(|| known.map_or(1, |set| set.version.saturating_add(1)));
        let options = SetOptions { in_order: set.in_order, permanent: set.permanent };
        let items = match wanted_items(set) {
            Ok(items) => items,
            Err(why) => return Some((status::BAD_QUESTION, why.into_bytes())),
        };
        self.one(grant, query, &Change::Put { name: &set.name, version, options, items: &items }, out)
    }

    /// A question with one change: its answer has the status of the change.
    fn one(
        &mut self,
        grant: &Grant,
        query: &Query,
        change: &Change<'_>,
        out: &mut Commands,
    ) -> Option<Reply> {
        match self.change(grant, query, 0, change, out) {
            Ok(is_delayed) => {
                let open = Open { waiting: usize::from(is_delayed), is_json: true, ..Open::default() };
                self.answer_or_wait(query.ticket, open)
            }
            Err((status, why)) => Some((status, why.into_bytes())),
        }
    }
}

fn not_connected(switch: DatapathId) -> Reply {
    (status::NO_ANSWER_OF_SWITCH, format!("switch: {switch} is not connected").into_bytes())
}

/// The answer if as many questions as may be are open.
fn busy(readings: usize) -> Reply {
    let why = format!("{readings} switches are being read for other callers");
    (burnet_sdk::query_status::SERVICE_BUSY, why.into_bytes())
}

fn json(value: &impl serde::Serialize) -> Reply {
    // Plain data can always be written as JSON.
    (status::DONE, serde_json::to_vec(value).unwrap_or_default())
}

fn sets(
    engine: &Engine,
    owner: Option<&str>,
    after: Option<&(String, String)>,
    limit: Option<usize>,
) -> SetPage {
    let limit = limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let mut page = SetPage::default();
    for (name, number) in engine.owners().filter(|(name, _)| owner.is_none_or(|only| only == *name)) {
        let behind = match after {
            Some((owner, _)) if name < owner.as_str() => continue,
            Some((owner, set)) if name == owner => set.as_str(),
            _ => "",
        };
        for (set_number, set) in engine.sets().of(number, behind) {
            if page.sets.len() == limit {
                page.next = page.sets.last().map(|set| (set.owner.clone(), set.name.clone()));
                return page;
            }
            let Some(state) = engine.state(set_number) else { continue };
            let (owner, name) = (name.to_owned(), set.name.to_string());
            page.sets.push(SetSummary { owner, name, permanent: set.options.permanent, state });
        }
    }
    page
}

#[cfg(test)]
mod tests;
