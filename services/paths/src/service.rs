//! The shell of the service: events of the node to the engine, and the engine's effects to the node.
//!
//! In: events. Out: commands. It decides only who may ask. The file `changes` has the questions that change intents.

use crate::engine::{Effect, Engine, Event};
use crate::network::LeftOut;
use crate::pending::Pending;
use crate::publish::Tables;
use crate::questions::{self, Refused};
use crate::rule_sets::{self, RuleSets};
use crate::storage::{self, Storage};
use crate::virtual_links::{self, VirtualLinks, is_of_link};
use crate::waiting::Waiting;
use crate::writing::Writing;
use burnet_sdk::stream::Update;
use burnet_sdk::{
    App, Commands, Form, Interests, Level, Outcome, Query, QueryOver, QueryReply, Receipt, Settings, Ticket,
};
use flows_contract::Items;
use paths_contract::{Follow, FollowLinks, Grant, Question, SliceLinks, status};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use view::{Batch, IntentId, Kind, Notice, Object, Snapshot};

/// The settings: `[network.paths]` of `burnet.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PathsSettings {
    /// After a restart: how long the network must not change before intents of before are compiled.
    pub settle_ms: u64,
    /// The slices with their links. The node fills them in.
    pub slices: BTreeMap<String, SliceLinks>,
}

impl Default for PathsSettings {
    fn default() -> PathsSettings {
        PathsSettings { settle_ms: 1_000, slices: BTreeMap::new() }
    }
}

/// The bits of a version below the start time of the run: a million changes a millisecond.
const VERSION_BITS: u32 = 20;

/// The service.
pub struct Paths {
    pub(crate) engine: Engine,
    pub(crate) storage: Storage,
    rule_sets: RuleSets,
    pub(crate) tables: Tables,
    links: VirtualLinks,
    clock: Clock,
    effects: Vec<Effect>,
    link_effects: Vec<virtual_links::Effect>,
    /// The intents with a write under way, and the questions behind: together at most [`storage::WRITES_MAX`].
    pub(crate) pending: Pending,
    pub(crate) waiting: Waiting,
    /// The intents whose hosts are at another place than the store has. They are written as the store takes them.
    moved: BTreeSet<u64>,
    is_view_complete: bool,
    /// Whether the log says that switches or links are left out.
    has_told_left_out: bool,
}

/// The time since 1970 in milliseconds, which never goes back.
#[derive(Debug)]
struct Clock {
    began: Instant,
    began_ms: u64,
}

impl Clock {
    fn start() -> Clock {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { began: Instant::now(), began_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX / 2) }
    }

    fn now_ms(&self) -> u64 {
        self.began_ms + u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX / 2)
    }
}

impl App for Paths {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings: PathsSettings = settings.read()?;
        let clock = Clock::start();
        let now_ms = clock.now_ms();
        let PathsSettings { settle_ms, slices } = settings;
        let first_version = now_ms << VERSION_BITS;
        Ok(Paths {
            engine: Engine::new(first_version, settle_ms, now_ms),
            links: VirtualLinks::new(slices, first_version, settle_ms, now_ms),
            storage: Storage::default(),
            rule_sets: RuleSets::new(now_ms),
            tables: Tables::new(now_ms),
            clock,
            effects: Vec::new(),
            link_effects: Vec::new(),
            pending: Pending::default(),
            waiting: Waiting::default(),
            moved: BTreeSet::new(),
            is_view_complete: false,
            has_told_left_out: false,
        })
    }

    fn interests(&self) -> Interests {
        Interests::none().view(&[Kind::Switch, Kind::Link, Kind::Host])
    }

    fn on_start(&mut self, out: &mut Commands) {
        self.storage.load(out);
        self.finish(out);
    }

    /// It only notes the changes. The service acts on them when it has received all events that wait, in `on_caught_up`.
    fn on_view(&mut self, changes: &Batch, _: &Snapshot, _: &mut Commands) {
        for notice in changes.iter() {
            self.on_notice(notice);
        }
    }

    fn on_receipt(&mut self, _: flow::DatapathId, receipt: &Receipt, out: &mut Commands) {
        let (ticket, now_ms) = (Ticket(receipt.ticket), self.clock.now_ms());
        if receipt.outcome == Outcome::Refused && !self.rule_sets.on_refused(ticket, receipt.reason, now_ms) {
            let heard = self.storage.refused(ticket, receipt.reason, now_ms);
            self.on_stored(heard, out);
        }
    }

    fn on_stream(&mut self, stream: Ticket, update: &Update, _: &mut Commands) {
        let clock = &self.clock;
        self.rule_sets.on_stream(stream, update, || clock.now_ms());
    }

    fn on_query(&mut self, query: &Query, out: &mut Commands) {
        let ticket = Ticket(query.ticket);
        let answered = match query.form {
            Form::Stream => self.follow(query, out).map(|()| None),
            _ => self.on_question(query, out),
        };
        match answered {
            Ok(Some(payload)) => out.answer(ticket, status::DONE, false, &payload),
            Ok(None) => {}
            Err((status, why)) => out.answer(ticket, status, false, why.as_bytes()),
        }
    }

    fn on_query_over(&mut self, over: &QueryOver, _: &mut Commands) {
        self.pending.on_over(Ticket(over.ticket));
        self.waiting.on_over(Ticket(over.ticket));
    }

    fn on_query_reply(&mut self, reply: &QueryReply, out: &mut Commands) {
        let now_ms = self.clock.now_ms();
        if !self.rule_sets.on_reply(reply, now_ms) {
            let heard = self.storage.hear(reply, now_ms, out);
            self.on_stored(heard, out);
        }
    }

    fn on_credit(&mut self, _: Ticket, out: &mut Commands) {
        self.tables.send(&self.engine, out);
        self.links.send(out);
    }

    fn on_caught_up(&mut self, out: &mut Commands) {
        self.finish(out);
    }

    fn on_wake(&mut self, out: &mut Commands) {
        self.finish(out);
    }
}

fn grant(query: &Query) -> Result<Grant, Refused> {
    Grant::from_bytes(query.caller.grant).map_err(|why| (status::NOT_GRANTED, why))
}

impl Paths {
    pub(crate) fn tell(&mut self, event: Event<'_>) {
        self.engine.on_event(event, self.clock.now_ms(), &mut self.effects);
    }

    fn on_notice(&mut self, notice: &Notice) {
        let is_of = |object: &Object| matches!(object, Object::Switch(_) | Object::Link(_));
        if notice.now().or(notice.before()).is_some_and(is_of) {
            self.links.on_change(self.clock.now_ms());
        }
        match (notice.now(), notice.before()) {
            (Some(Object::Switch(switch)), _) => self.tell(Event::Switch(switch)),
            (Some(Object::Link(link)), _) => self.tell(Event::Link(link)),
            (Some(Object::Host(host)), _) => self.tell(Event::Host(host)),
            (None, Some(Object::Switch(switch))) => self.tell(Event::SwitchGone(switch.id)),
            (None, Some(Object::Link(link))) => self.tell(Event::LinkGone(link.id)),
            (None, Some(Object::Host(host))) => self.tell(Event::HostGone(host.id)),
            _ => {}
        }
    }

    fn follow(&mut self, query: &Query, out: &mut Commands) -> Result<(), Refused> {
        if let Some(FollowLinks { links_of }) = FollowLinks::from_bytes(query.payload) {
            grant(query)?.check_follow_links(&links_of).map_err(|why| (status::NOT_GRANTED, why))?;
            return self.links.follow(&links_of, query, out).map_err(|why| (status::NOT_FOUND, why));
        }
        grant(query)?.check_follow().map_err(|why| (status::NOT_GRANTED, why))?;
        let follow = Follow::from_bytes(query.payload).map_err(|why| (status::BAD_QUESTION, why))?;
        self.tables.follow(&follow, query, &self.engine, out);
        Ok(())
    }

    /// The payload of the answer, if it can be given now.
    fn on_question(&mut self, query: &Query, out: &mut Commands) -> Result<Option<Vec<u8>>, Refused> {
        let question = Question::from_bytes(query.payload).map_err(|why| (status::BAD_QUESTION, why))?;
        let grant = grant(query)?;
        grant.check(&question).map_err(|why| (status::NOT_GRANTED, why))?;
        if !question.writes() {
            return questions::answer(&question, &mut self.engine, &self.tables).map(Some);
        }
        self.on_change(question, &grant, query, out)
    }

    fn on_stored(&mut self, heard: storage::Heard, out: &mut Commands) {
        match heard {
            storage::Heard::NotMine | storage::Heard::Nothing => {}
            storage::Heard::Complaint(why) => {
                out.log(Level::Warning, &why);
                // The last value can be the damaged one.
                self.on_loaded();
            }
            storage::Heard::Loaded(kept) => {
                self.tell(Event::Stored(*kept));
                self.on_loaded();
            }
            storage::Heard::LoadedAll => self.on_loaded(),
            storage::Heard::Written(changes) => {
                changes.into_iter().for_each(|change| self.on_written(change, out));
            }
            storage::Heard::Failed(changes, why) => {
                changes.iter().for_each(|change| self.on_not_written(change, &why, out));
            }
        }
    }

    fn on_loaded(&mut self) {
        if self.storage.is_loaded() {
            self.tell(Event::Loaded);
        }
    }

    /// What came of a set of a virtual link. Says whether it was one.
    fn on_link_rules(&mut self, heard: &rule_sets::Heard, now_ms: u64) -> bool {
        let (links, network) = (&mut self.links, self.engine.network_mut());
        match heard {
            rule_sets::Heard::State(id, state) if is_of_link(*id) => {
                links.on_rules(*id, state.as_ref(), network, now_ms, &mut self.link_effects);
            }
            rule_sets::Heard::NotTaken(id) if is_of_link(*id) => links.on_not_taken(*id, None, network),
            rule_sets::Heard::Refused(id, why) if is_of_link(*id) => {
                links.on_not_taken(*id, Some(why), network)
            }
            rule_sets::Heard::TooLong(id) if is_of_link(*id) => {
                let why = "it has more rules than one set can have";
                links.on_not_taken(*id, Some(why), network);
            }
            rule_sets::Heard::Complete(there) => {
                links.on_rules_complete(there);
                return false;
            }
            _ => return false,
        }
        true
    }

    fn on_rules(&mut self, heard: rule_sets::Heard, now_ms: u64, out: &mut Commands) {
        if self.on_link_rules(&heard, now_ms) {
            return;
        }
        let event = match &heard {
            rule_sets::Heard::State(id, state) => Event::Rules(*id, state.as_ref()),
            rule_sets::Heard::Complete(there) => Event::RulesComplete(there),
            rule_sets::Heard::NotTaken(id) => Event::RulesNotTaken(*id),
            rule_sets::Heard::Refused(id, why) => Event::RulesRefused(*id, why),
            rule_sets::Heard::TooLong(id) => {
                Event::RulesRefused(*id, "the paths to all ends have more rules than one intent can have")
            }
            rule_sets::Heard::Complaint(why) => return out.log(Level::Warning, why),
        };
        self.engine.on_event(event, now_ms, &mut self.effects);
    }

    /// Says once that the network is larger than paths can be.
    fn tell_left_out(&mut self, out: &mut Commands) {
        let is_nothing = self.engine.network().left_out() == LeftOut::default();
        if is_nothing || std::mem::replace(&mut self.has_told_left_out, true) {
            return;
        }
        let why = format!(
            "the network has more than {} switches or {} links: the others are in no path; the question counts says how often one was left out",
            graph::SWITCHES_MAX,
            graph::LINKS_MAX
        );
        out.log(Level::Warning, &why);
    }

    /// Tells the engine the time, does what it wants, and asks for the next wake-up.
    fn finish(&mut self, out: &mut Commands) {
        let now_ms = self.clock.now_ms();
        let unknown = self.storage.on_time(now_ms, out);
        self.on_unknown(&unknown, out);
        self.rule_sets.on_time(now_ms, out);
        for heard in std::mem::take(&mut self.rule_sets.heard) {
            self.on_rules(heard, now_ms, out);
        }
        let is_complete = out.view_is_current();
        if std::mem::replace(&mut self.is_view_complete, is_complete) != is_complete {
            self.tell(Event::ViewComplete(is_complete));
            self.links.on_view_complete(is_complete, now_ms);
        }
        // Answers of the service of rules make room. They end in another call of this function.
        let is_crowded = self.rule_sets.is_crowded();
        if !is_crowded {
            self.tell(Event::Time);
        }
        // Links of slices get what intents leave. So they come after them, also when both get their ways after a restart.
        self.note_reserved();
        self.links.on_time(self.engine.network_mut(), now_ms, &mut self.link_effects);
        self.tell_left_out(out);
        self.carry_out(out);
        self.tables.send(&self.engine, out);
        self.links.send(out);
        let compile = self.engine.next_due_ms(now_ms).filter(|_| !is_crowded);
        let links = self.links.next_due_ms();
        let due = [compile, links, self.storage.next_due_ms(), self.rule_sets.next_due_ms()];
        if let Some(next_ms) = due.into_iter().flatten().min() {
            out.wake_after(Duration::from_millis(next_ms.saturating_sub(now_ms)));
        }
    }

    fn note_reserved(&mut self) {
        let reserved = self.engine.network_mut().take_reserved();
        if !reserved.is_empty() {
            self.links.on_reserved();
            self.tables.change_reserved(reserved);
        }
    }

    fn carry_out(&mut self, out: &mut Commands) {
        for effect in std::mem::take(&mut self.effects) {
            match effect {
                Effect::PutRules(id) => self.put_rules(id),
                Effect::RemoveRules(id, version) => self.rule_sets.remove(id, version),
                Effect::KeepPlaces(id) => drop(self.moved.insert(id)),
                Effect::Changed(id) | Effect::Gone(id) => self.tables.change(id),
            }
        }
        self.carry_out_links();
        self.rule_sets.send(self.clock.now_ms(), out);
        self.keep_places(out);
        self.storage.send(self.clock.now_ms(), out);
    }

    fn put_rules(&mut self, id: u64) {
        let Some(entry) = self.engine.entry(IntentId(id)) else { return };
        let engine = &self.engine;
        let write = |items: &mut Items<'_>| engine.write_rules(id, items);
        self.rule_sets.put(id, entry.version, entry.is_in_order(), write);
    }

    fn carry_out_links(&mut self) {
        for effect in std::mem::take(&mut self.link_effects) {
            match effect {
                virtual_links::Effect::Put(set) => {
                    let Some(version) = self.links.version(set) else { continue };
                    let links = &self.links;
                    // Frames of an earlier way may be on the way.
                    self.rule_sets.put(set, version, true, |items| links.write_rules(set, items));
                }
                virtual_links::Effect::Remove(set, version) => self.rule_sets.remove(set, version),
            }
        }
    }

    /// Stores where hosts are now. What callers ask goes first.
    fn keep_places(&mut self, out: &mut Commands) {
        let is_free = |id: &u64| !self.pending.has(IntentId(*id));
        let due: Vec<u64> = self.moved.iter().copied().filter(is_free).take(storage::WRITES_MAX).collect();
        for id in due {
            if !self.storage.has_room_for_places() {
                return;
            }
            self.moved.remove(&id);
            if let Some(entry) = self.engine.entry(IntentId(id)).filter(|entry| entry.is_wanted()) {
                let write = self.storage.write(Writing::Places(Box::new(entry.kept.clone())), out);
                self.pending.begin(IntentId(id), write, None);
            }
        }
    }
}

#[cfg(test)]
mod tests;
