//! The shell of the service: events of the node to the engine, and the engine's effects to the node.
//!
//! In: events, and connections of agents. Out: commands. It decides only who may ask.

mod servers;
mod settings;

pub use settings::LabelsSettings;

use crate::agents::Agents;
use crate::engine::{Effect, Engine, Refused};
use crate::history::{History, SAMPLE_MS};
use crate::lines::Lines;
use crate::measured::Measured;
use crate::reported::Reported;
use crate::reservations::Reservations;
use crate::slice_links::SliceLinks;
use burnet_sdk::stream::{Table, Update};
use burnet_sdk::{
    App, Commands, DatapathId, Form, Interests, Level, Listener, Outcome, Query, Ready, Receipt, Settings,
    SocketApp, Sockets, Ticket,
};
use edge::vnic::AgentId;
use hose::{Bandwidth, SliceNo};
use labels_contract::{Flow, Follow, Grant, Label, Question, STATE_KEY, TimedLabel, shares, status};
use serde::Serialize;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use view::{Batch, Kind, Link, LinkState, Notice, Object, Snapshot};

/// The service.
pub struct Labels {
    engine: Engine,
    /// What each slice is told, as it follows it. A slice that is gone has an empty table as long as it has readers.
    tables: BTreeMap<String, Table>,
    history: History,
    /// The slice that was looked at last, and when the next one has its turn.
    next_look: (Option<SliceNo>, u64),
    began: Instant,
    effects: Vec<Effect>,
    /// A slice is gone, and its table may have readers.
    has_orphans: bool,
    /// No link carries more than this, whatever its ports say.
    link_rate: Bandwidth,
    agents: Agents,
    lines: Lines,
    reported: Reported,
    /// What intents reserve, if the node has intents.
    reservations: Option<Reservations>,
    /// Only on a node that lays virtual links.
    slice_links: Option<SliceLinks>,
    measured: Measured,
}

impl App for Labels {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings: LabelsSettings = settings.read()?;
        settings.check()?;
        let mut labels = Labels {
            engine: Engine::default(),
            tables: BTreeMap::new(),
            history: History::default(),
            next_look: (None, SAMPLE_MS),
            began: Instant::now(),
            effects: Vec::new(),
            has_orphans: false,
            link_rate: settings.link_rate()?,
            agents: Agents::new(AgentId(settings.number), session(), settings.keys()?),
            lines: Lines::default(),
            reported: Reported::default(),
            reservations: settings.intents.then(Reservations::default),
            slice_links: settings.follows_links.then(SliceLinks::default),
            measured: Measured::default(),
        };
        labels.engine.begin(0);
        labels.engine.on_reserved(&[], settings.intents, 0, &mut labels.effects);
        if settings.follows_links {
            labels.engine.expect_virtual_links();
        }
        for (name, hose) in settings.slices {
            let done = labels.engine.put(&name, &hose, 0, &mut labels.effects);
            done.map_err(|(_, why)| why)?;
        }
        Ok(labels)
    }

    fn interests(&self) -> Interests {
        Interests::none().view(&[Kind::Link])
    }

    fn on_start(&mut self, out: &mut Commands) {
        self.finish(out);
    }

    fn on_view(&mut self, changes: &Batch, _: &Snapshot, out: &mut Commands) {
        for notice in changes.iter() {
            self.on_notice(notice);
        }
        self.finish(out);
    }

    fn on_receipt(&mut self, _: DatapathId, receipt: &Receipt, out: &mut Commands) {
        let (now_ms, ticket) = (self.now_ms(), Ticket(receipt.ticket));
        if let Some(links) = self.slice_links.as_mut().filter(|_| receipt.outcome == Outcome::Refused) {
            links.on_refused(ticket, now_ms);
        }
        if let Some(reservations) = self.reservations.as_mut().filter(|_| receipt.outcome == Outcome::Refused)
        {
            reservations.on_refused(ticket, receipt.reason, now_ms);
            self.finish(out);
        }
    }

    fn on_stream(&mut self, stream: Ticket, update: &Update, out: &mut Commands) {
        let now_ms = self.now_ms();
        let is_of_links = self.slice_links.as_ref().is_some_and(|it| it.has(stream));
        let said = self.slice_links.as_mut().and_then(|it| it.on_stream(stream, update, now_ms));
        if let Some((slice, link, hops)) = said {
            self.engine.on_virtual_link(&slice, link, &hops, now_ms, &mut self.effects);
        }
        if is_of_links {
            return self.finish(out);
        }
        let is_mine = self.reservations.as_mut().is_some_and(|it| it.on_stream(stream, update, now_ms));
        // The end of a snapshot follows.
        if is_mine && !matches!(update, Update::Entry { .. }) {
            self.finish(out);
        }
    }

    fn on_query(&mut self, query: &Query, out: &mut Commands) {
        let answered = match query.form {
            Form::Stream => self.follow(query, out).map(|()| None),
            _ => self.on_question(query).map(Some),
        };
        let ticket = Ticket(query.ticket);
        match answered {
            Ok(Some(payload)) => out.answer(ticket, status::DONE, false, &payload),
            Ok(None) => {}
            Err((status, why)) => out.answer(ticket, status, false, why.as_bytes()),
        }
        self.finish(out);
    }

    fn on_credit(&mut self, _: Ticket, out: &mut Commands) {
        self.finish(out);
    }

    fn on_wake(&mut self, out: &mut Commands) {
        let now_ms = self.now_ms();
        self.engine.on_time(now_ms, &mut self.effects);
        self.look(now_ms);
        self.look_at_agents(now_ms, out);
        self.finish(out);
    }
}

impl SocketApp for Labels {
    fn on_listeners(&mut self, listeners: Vec<Listener>, _: &mut Commands) -> Result<(), String> {
        self.listen(listeners)
    }

    fn sockets<'a>(&'a self, sockets: &mut Sockets<'a>) {
        self.lines.sockets(sockets);
    }

    fn on_socket(&mut self, token: usize, ready: Ready, out: &mut Commands) {
        self.on_line(token, ready, out);
        self.finish(out);
    }
}

/// A number that no other process of the service has: what was recorded before a restart is refused by it.
fn session() -> u64 {
    RandomState::new().build_hasher().finish().max(1)
}

impl Labels {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX / 2)
    }

    fn on_notice(&mut self, notice: &Notice) {
        let now_ms = self.now_ms();
        match (notice.now(), notice.before()) {
            (Some(Object::Link(link)), _) => {
                self.engine.on_stale_capacity(link.id, link.has_stale_capacity());
                self.engine.on_link(
                    link.id,
                    Some(capacity(link).min(self.link_rate)),
                    now_ms,
                    &mut self.effects,
                );
            }
            (None, Some(Object::Link(link))) => {
                self.engine.on_stale_capacity(link.id, false);
                self.engine.on_link(link.id, None, now_ms, &mut self.effects);
            }
            _ => {}
        }
    }

    /// The flows of a slice, with what meters measured.
    fn flows(&self, slice: &str) -> Result<Vec<Flow>, Refused> {
        let mut flows = self.engine.flows(slice)?;
        self.measured.fill(self.engine.promised(slice)?, &mut flows);
        Ok(flows)
    }

    /// Looks at what one slice gets. All slices have their turn within the time between two looks at one, so that none waits for all.
    fn look(&mut self, now_ms: u64) {
        let (last, due_ms) = self.next_look;
        if now_ms < due_ms {
            return;
        }
        let next = self.engine.slice_after(last);
        if let Some((_, name)) = next
            && let (Ok(hose), Ok(flows)) = (self.engine.promised(name), self.flows(name))
        {
            self.history.on_shares(name, &shares(hose, &flows), now_ms);
        }
        let slices = self.engine.counts().slices.max(1);
        self.next_look = (next.map(|(number, _)| number), now_ms + SAMPLE_MS / slices);
    }

    fn follow(&mut self, query: &Query, out: &mut Commands) -> Result<(), Refused> {
        let follow = Follow::from_bytes(query.payload).map_err(|why| (status::BAD_QUESTION, why))?;
        grant(query)?.check_follow(&follow).map_err(|why| (status::NOT_GRANTED, why))?;
        if self.engine.state(&follow.slice).is_none() {
            return Err((status::NOT_FOUND, format!("there is no slice {}", follow.slice)));
        }
        // What was told before comes first.
        self.carry_out(out);
        self.tables.entry(follow.slice).or_default().follow(query, out);
        Ok(())
    }

    fn on_question(&mut self, query: &Query) -> Result<Vec<u8>, Refused> {
        let question = Question::from_bytes(query.payload).map_err(|why| (status::BAD_QUESTION, why))?;
        grant(query)?.check(&question).map_err(|why| (status::NOT_GRANTED, why))?;
        let (now_ms, engine, effects) = (self.now_ms(), &mut self.engine, &mut self.effects);
        match question {
            Question::Report(report) => engine.on_report(&report, now_ms, effects).map(|heard| json(&heard)),
            Question::Labels { slice } => engine.labels(&slice).map(|labels| json(&labels)),
            Question::Flows { slice } => self.flows(&slice).map(|flows| json(&flows)),
            Question::Past { slice, since_s } => {
                engine.promised(&slice)?;
                Ok(json(&self.history.past(&slice, since_s, now_ms)))
            }
            Question::Promise { slice } => engine.promised(&slice).map(json),
            Question::Slices => Ok(json(&engine.standings())),
            Question::Counts => Ok(json(&engine.counts())),
            Question::Agents => Ok(json(&self.agent_standings())),
            Question::Put { slice, hose } => engine.put(&slice, &hose, now_ms, effects).map(|()| Vec::new()),
            Question::Remove { slice } => engine.remove(&slice, now_ms, effects).map(|()| Vec::new()),
        }
    }

    /// Tells slices what is due, and asks for the next wake-up.
    fn finish(&mut self, out: &mut Commands) {
        self.look_at_reservations(out);
        let now_ms = self.now_ms();
        if let Some(links) = &mut self.slice_links {
            links.on_time(now_ms, |question| out.follow(paths_contract::SERVICE, question));
        }
        self.carry_out(out);
        for table in self.tables.values_mut() {
            table.send(out);
        }
        let opens_ms = self.reservations.as_ref().and_then(Reservations::next_ms);
        let follows_ms = self.slice_links.as_ref().and_then(SliceLinks::next_ms);
        let due_ms =
            [self.engine.next_due_ms(), self.agents.next_ms(), self.lines.next_ms(), opens_ms, follows_ms];
        let due_ms = due_ms.into_iter().flatten().fold(self.next_look.1, u64::min);
        out.wake_after(Duration::from_millis(due_ms.saturating_sub(self.now_ms()).max(1)));
    }

    /// Follows what intents reserve, and brings it to the engine.
    fn look_at_reservations(&mut self, out: &mut Commands) {
        let now_ms = self.now_ms();
        let Some(reservations) = &mut self.reservations else { return };
        reservations.on_time(now_ms, |question| out.follow(paths_contract::SERVICE, question));
        reservations.take_lines().iter().for_each(|line| out.log(Level::Warning, line));
        let (changed, waits) = (reservations.take_changed(), !reservations.is_known());
        if !changed.is_empty() || self.engine.waits_for_intents() != waits {
            self.engine.on_reserved(&changed, waits, now_ms, &mut self.effects);
        }
    }

    fn carry_out(&mut self, out: &mut Commands) {
        let (mut caps, mut without) = (Vec::new(), Vec::new());
        let mut told = Told::default();
        for effect in std::mem::take(&mut self.effects) {
            let is_kept = match effect {
                Effect::Cap { agent, from, to, rate_bps } => {
                    caps.push((AgentId(agent), from, to, rate_bps));
                    true
                }
                Effect::NoCaps { agent } => {
                    without.push(AgentId(agent));
                    true
                }
                Effect::Told { slice, label: Some(label), .. } => {
                    let (key, value) = told.entry(label);
                    self.tables.entry(slice).or_default().put(key, value)
                }
                Effect::Told { slice, link, label: None } => {
                    let table = self.tables.entry(slice).or_default();
                    table.remove(link.to_string().as_bytes());
                    true
                }
                Effect::State { slice, state } => {
                    self.tables.entry(slice).or_default().put(STATE_KEY.as_bytes(), &json(&state))
                }
                Effect::Gone { slice } => {
                    self.history.remove(&slice);
                    self.empty(&slice);
                    self.has_orphans = true;
                    true
                }
            };
            if !is_kept {
                out.log(Level::Error, "a label does not fit into an entry of a stream");
            }
        }
        self.tell_caps(caps);
        self.tell_no_caps(&without);
        if self.has_orphans {
            let engine = &self.engine;
            let is_orphan = |slice: &str| engine.state(slice).is_none();
            self.tables.retain(|slice, table| table.readers() > 0 || !is_orphan(slice));
            self.has_orphans = self.tables.keys().any(|slice| is_orphan(slice));
        }
    }

    fn empty(&mut self, slice: &str) {
        let Some(table) = self.tables.get_mut(slice) else { return };
        let keys: Vec<Vec<u8>> = table.iter().map(|(key, _)| key.to_vec()).collect();
        for key in keys {
            table.remove(&key);
        }
    }
}

/// The entry that was written last. If a link changes, many slices are told the same label in a row.
#[derive(Default)]
struct Told {
    label: Option<Label>,
    /// When all labels of this turn had been computed. The clock is read for the first of them.
    at_us: Option<u64>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Told {
    /// The key and the value of a label in a table.
    fn entry(&mut self, label: Label) -> (&[u8], &[u8]) {
        if self.label != Some(label) {
            self.label = Some(label);
            let at_us = *self.at_us.get_or_insert_with(unix_us);
            (self.key, self.value) =
                (label.link.to_string().into_bytes(), json(&TimedLabel { at_us, label }));
        }
        (&self.key, &self.value)
    }
}

/// Microseconds since 1970.
fn unix_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

fn grant(query: &Query) -> Result<Grant, Refused> {
    Grant::from_bytes(query.caller.grant).map_err(|why| (status::NOT_GRANTED, why))
}

/// What a link carries. One that is down carries nothing, and has no label.
fn capacity(link: &Link) -> Bandwidth {
    match link.state {
        LinkState::Up => Bandwidth::from_kbps(link.capacity_kbps),
        _ => Bandwidth::ZERO,
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Texts, numbers and lists, which JSON can always represent.
    serde_json::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
