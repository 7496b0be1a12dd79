//! The shell of the service: events of the node to the engine, and the engine's effects to the node.
//!
//! In: events. Out: commands. It decides only who may ask, and in which order changes are made.

use crate::bounds::HostsSettings;
use crate::engine::{Effect, Engine, Plan, Refused};
use crate::probe;
use crate::punting::{self, MATCHES};
use crate::storage::{Heard, Storage};
use burnet_sdk::flow::text::parse_match;
use burnet_sdk::stream::{Table, Update};
use burnet_sdk::{
    App, Commands, DatapathId, Form, Interests, Level, Outcome, PacketIn, PortNo, Query, QueryReply, Receipt,
    Settings, SwitchUp, Ticket,
};
use discovery_contract::Follow;
use hosts_contract::question::{PAGE_DEFAULT, PAGE_MAX};
use hosts_contract::{Filter, Grant, INCIDENT_TOPIC, Incident, Page, Question, SERVICE, status};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use view::{ConnectPoint, HostId, Key, Kind, Object, Record, Stamp};

/// The most changes that wait for the store. Further ones are refused: callers can ask again.
const CHANGES_WAITING_MAX: usize = 64;

/// How long after its end the stream of discovery is opened again.
const FOLLOW_AGAIN_MS: u64 = 500;

/// The service.
pub struct Hosts {
    settings: HostsSettings,
    engine: Engine,
    storage: Storage,
    /// The table as others follow it.
    table: Table,
    clock: Clock,
    /// Counts the changes of this run.
    sequence: u64,
    discovery: Following,
    changes: VecDeque<(Ticket, Question)>,
    /// The rules whose receipts are awaited, with their switches: at most as many as the switches have rules of this service.
    rules: HashMap<Ticket, DatapathId>,
    effects: Vec<Effect>,
}

/// The stream of discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Following {
    Open(Ticket),
    AgainAt(u64),
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

impl App for Hosts {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings: HostsSettings = settings.read()?;
        settings.check()?;
        let clock = Clock::start();
        let discovery = Following::AgainAt(clock.now_ms());
        Ok(Hosts {
            engine: Engine::new(settings.clone()),
            settings,
            storage: Storage::default(),
            table: Table::new(),
            clock,
            sequence: 0,
            discovery,
            changes: VecDeque::new(),
            rules: HashMap::new(),
            effects: Vec::new(),
        })
    }

    fn interests(&self) -> Interests {
        let matches = MATCHES.iter().filter_map(|text| parse_match(text).ok());
        matches.fold(Interests::none().switches(), Interests::packets_within)
    }

    fn on_start(&mut self, out: &mut Commands) {
        self.storage.load(out);
        self.finish(out);
    }

    fn on_switch_up(&mut self, up: &SwitchUp, out: &mut Commands) {
        if self.settings.punt {
            let tickets = punting::add_rules(up.datapath, out);
            self.rules.extend(tickets.into_iter().map(|ticket| (ticket, up.datapath)));
        }
    }

    fn on_switch_down(&mut self, datapath: DatapathId, _: &mut Commands) {
        self.rules.retain(|_, switch| *switch != datapath);
    }

    fn on_packet_in(&mut self, packet: &PacketIn, out: &mut Commands) {
        let at = ConnectPoint { switch: packet.datapath, port: packet.in_port };
        let now_ms = self.clock.now_ms();
        self.engine.on_frame(at, packet.data, now_ms, &mut self.effects);
        self.carry_out(out);
    }

    fn on_receipt(&mut self, _: DatapathId, receipt: &Receipt, out: &mut Commands) {
        let ticket = Ticket(receipt.ticket);
        if self.discovery == Following::Open(ticket) {
            self.discovery = Following::AgainAt(self.clock.now_ms() + FOLLOW_AGAIN_MS);
        } else if let Some(switch) = self.rules.remove(&ticket) {
            if receipt.outcome != Outcome::Programmed {
                let text =
                    format!("{switch} does not send all frames that tell of hosts: {}", receipt.reason);
                out.log(Level::Warning, &text);
            }
        } else if receipt.outcome == Outcome::Refused {
            let heard = self.storage.refused(ticket, receipt.reason, self.clock.now_ms());
            self.take(heard, out);
        }
    }

    fn on_stream(&mut self, stream: Ticket, update: &Update, out: &mut Commands) {
        if self.discovery != Following::Open(stream) {
            return;
        }
        let now_ms = self.clock.now_ms();
        match *update {
            Update::Begin { .. } => self.engine.on_view_begin(),
            Update::Complete { .. } => self.engine.on_view_complete(now_ms),
            Update::Entry { value, .. } | Update::Put { value, .. } => match Record::from_bytes(value) {
                Ok(record) => self.engine.on_view_put(&record.object, now_ms, &mut self.effects),
                Err(why) => out.log(Level::Error, &format!("discovery: {why}")),
            },
            Update::Removed { key, .. } => {
                if let Ok(key) = String::from_utf8_lossy(key).parse() {
                    self.engine.on_view_removed(key, &mut self.effects);
                }
            }
            Update::Missed { .. } => {}
            Update::Ended { .. } => self.discovery = Following::AgainAt(now_ms + FOLLOW_AGAIN_MS),
        }
        self.carry_out(out);
    }

    fn on_query(&mut self, query: &Query, out: &mut Commands) {
        let ticket = Ticket(query.ticket);
        let said = match query.form {
            Form::Stream => match check_follow(query) {
                Ok(()) => return self.table.follow(query, out),
                Err(refused) => Err(refused),
            },
            _ => read(query),
        };
        match said {
            Ok(question) if question.writes() => self.queue(ticket, question, out),
            Ok(question) => match self.read_only(&question) {
                Some(answer) => out.answer(ticket, status::DONE, false, &answer),
                None => out.answer(ticket, status::NOT_FOUND, false, b"id: there is no such host"),
            },
            Err(refused) => refuse(ticket, &refused, out),
        }
    }

    fn on_query_reply(&mut self, reply: &QueryReply, out: &mut Commands) {
        let now_ms = self.clock.now_ms();
        let heard = self.storage.hear(reply, now_ms, out);
        self.take(heard, out);
    }

    fn on_credit(&mut self, _: Ticket, out: &mut Commands) {
        self.table.send(out);
    }

    fn on_caught_up(&mut self, out: &mut Commands) {
        self.finish(out);
    }

    fn on_wake(&mut self, out: &mut Commands) {
        let now_ms = self.clock.now_ms();
        self.engine.on_time(now_ms, &mut self.effects);
        self.carry_out(out);
        if self.storage.retry_at_ms().is_some_and(|at_ms| at_ms <= now_ms) {
            self.storage.load(out);
        }
        self.finish(out);
    }
}

impl Hosts {
    /// Sends changes to followers, and asks for the next wake-up.
    fn finish(&mut self, out: &mut Commands) {
        self.table.send(out);
        let now_ms = self.clock.now_ms();
        if matches!(self.discovery, Following::AgainAt(at_ms) if at_ms <= now_ms) {
            // They decide where an edge is.
            let kinds = Follow { kinds: vec![Kind::Switch, Kind::Port, Kind::Link] };
            self.discovery = Following::Open(out.follow(Kind::Port.service(), &kinds.to_bytes()));
        }
        let again_ms = match self.discovery {
            Following::AgainAt(at_ms) => Some(at_ms),
            Following::Open(_) => None,
        };
        let times = [self.engine.next_due(), self.storage.retry_at_ms(), again_ms];
        if let Some(next_ms) = times.into_iter().flatten().min() {
            out.wake_after(Duration::from_millis(next_ms.saturating_sub(now_ms).max(1)));
        }
    }

    /// Does what the engine wants.
    fn carry_out(&mut self, out: &mut Commands) {
        let effects = std::mem::take(&mut self.effects);
        for effect in &effects {
            match effect {
                Effect::Changed(id) => self.publish(*id, out),
                Effect::Gone(id) => {
                    let key = Key::Host(*id).to_string();
                    self.table.remove(key.as_bytes());
                    out.share(key.as_bytes(), None);
                }
                Effect::Probe { at, host, address } => {
                    let frame = probe::frame(*host, *address);
                    out.packet_out(at.switch)
                        .frame(&frame)
                        .in_port(PortNo::CONTROLLER)
                        .output(at.port)
                        .send();
                }
                Effect::Report(incident) => report(incident, out),
            }
        }
        out.settle_shared();
        // The buffer is used again.
        self.effects = effects;
        self.effects.clear();
    }

    fn publish(&mut self, id: HostId, out: &mut Commands) {
        let Some(record) = self.record(id) else { return };
        self.sequence += 1;
        let record = Record { stamp: self.stamp(), ..record };
        let (key, value) = (Key::Host(id).to_string(), record.to_bytes());
        // It fits: addresses and notes are bounded.
        self.table.put(key.as_bytes(), &value);
        // If there is no room in shared memory, readers are told to follow the stream.
        out.share(key.as_bytes(), Some(&value));
    }

    fn stamp(&self) -> Stamp {
        Stamp { term: self.clock.began_ms, sequence: self.sequence, origin: 0 }
    }

    /// A host as the stream has it.
    fn record(&self, id: HostId) -> Option<Record> {
        let published = self.table.get(Key::Host(id).to_string().as_bytes());
        let stamp = published.and_then(|bytes| Record::from_bytes(bytes).ok()).map(|record| record.stamp);
        let host = self.engine.host(id)?;
        Some(Record { stamp: stamp.unwrap_or_default(), object: Object::Host(host) })
    }

    /// The answer to a question that changes nothing. `None`: there is no such host.
    fn read_only(&self, question: &Question) -> Option<Vec<u8>> {
        let json = match question {
            Question::List { filter, after, limit } => serde_json::to_vec(&self.page(filter, *after, *limit)),
            Question::Get { id } => serde_json::to_vec(&self.record(*id)?),
            Question::Incidents => serde_json::to_vec(&self.engine.incidents().collect::<Vec<_>>()),
            Question::Counts => serde_json::to_vec(&self.engine.counts()),
            _ => return None,
        };
        json.ok()
    }

    fn page(&self, filter: &Filter, after: Option<HostId>, limit: Option<usize>) -> Page {
        let limit = limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
        let mut ids = self.engine.list(filter, after).map(|host| host.id);
        let page: Vec<HostId> = ids.by_ref().take(limit).collect();
        let next = ids.next().and(page.last().copied());
        Page { hosts: page.into_iter().filter_map(|id| self.record(id)).collect(), next }
    }

    fn queue(&mut self, caller: Ticket, question: Question, out: &mut Commands) {
        if self.changes.len() >= CHANGES_WAITING_MAX {
            let why = format!("{CHANGES_WAITING_MAX} changes wait for the store: ask again later");
            return refuse(caller, &(status::NOT_STORED, why), out);
        }
        self.changes.push_back((caller, question));
        self.make_changes(out);
    }

    /// Makes the changes that wait, until one has to wait for the store.
    fn make_changes(&mut self, out: &mut Commands) {
        while !self.storage.is_writing()
            && let Some((caller, question)) = self.changes.pop_front()
        {
            match self.engine.plan(&question) {
                Err(refused) => refuse(caller, &refused, out),
                Ok(plan) if !plan.is_stored => self.complete(caller, plan, out),
                Ok(plan) => match self.storage.check_ready() {
                    Ok(()) => self.storage.write(caller, plan, out),
                    Err(why) => refuse(caller, &(status::NOT_STORED, why), out),
                },
            }
        }
    }

    /// Makes a change that the store has, and answers.
    fn complete(&mut self, caller: Ticket, plan: Plan, out: &mut Commands) {
        let id = plan.id;
        self.engine.apply(plan, self.clock.now_ms(), &mut self.effects);
        self.carry_out(out);
        let record = self.record(id).map(|record| record.to_bytes());
        out.answer(caller, status::DONE, false, &record.unwrap_or_default());
    }

    fn take(&mut self, heard: Heard, out: &mut Commands) {
        match heard {
            Heard::NotMine | Heard::Nothing => {}
            Heard::Complaint(why) => out.log(Level::Warning, &why),
            Heard::Loaded(id, kept) => {
                let plan = Plan { id, kept: Some(kept), is_stored: true, removes: false };
                self.engine.apply(plan, self.clock.now_ms(), &mut self.effects);
                self.carry_out(out);
            }
            Heard::Written(caller, plan) => self.complete(caller, plan, out),
            Heard::Failed(caller, why) => refuse(caller, &(status::NOT_STORED, why), out),
        }
        self.make_changes(out);
    }
}

fn grant(query: &Query) -> Result<Grant, Refused> {
    Grant::from_bytes(query.caller.grant).map_err(|why| (status::NOT_GRANTED, why))
}

fn check_follow(query: &Query) -> Result<(), Refused> {
    grant(query)?.check_follow().map_err(|why| (status::NOT_GRANTED, why))?;
    let kinds = Follow::kinds_of(query.payload, SERVICE);
    kinds.map(drop).map_err(|why| (status::BAD_QUESTION, why))
}

fn read(query: &Query) -> Result<Question, Refused> {
    let question = Question::from_bytes(query.payload).map_err(|why| (status::BAD_QUESTION, why))?;
    grant(query)?.check(&question).map_err(|why| (status::NOT_GRANTED, why))?;
    Ok(question)
}

fn refuse(ticket: Ticket, (status, why): &Refused, out: &mut Commands) {
    out.answer(ticket, *status, false, why.as_bytes());
}

/// Tells the operator and the followers of the topic.
fn report(incident: &Incident, out: &mut Commands) {
    out.log(Level::Warning, &in_words(incident));
    out.publish(INCIDENT_TOPIC, &serde_json::to_vec(incident).unwrap_or_default());
}

fn in_words(incident: &Incident) -> String {
    use hosts_contract::IncidentKind::{
        AddressOfAnother, ConfiguredHostElsewhere, HostAtTwoPorts, PortFull, RogueDhcpServer, TableFull,
    };
    let Incident { kind, host, at, address, holder, stays_at, repeated, .. } = incident;
    let address = address.map(|address| format!(" {address}")).unwrap_or_default();
    let holder = holder.map(|holder| holder.to_string()).unwrap_or_default();
    let stays = stays_at.map(|stays_at| stays_at.to_string()).unwrap_or_default();
    let what = match kind {
        HostAtTwoPorts => {
            format!("host {host} was seen at {at}, but still answers at {stays}: it stays there")
        }
        ConfiguredHostElsewhere => {
            format!("host {host} was seen at {at}, but is configured at {stays}: it stays there")
        }
        AddressOfAnother => format!(
            "host {host} at {at} claims the address{address} of {holder} at {stays}, which still answers: it is not given away"
        ),
        RogueDhcpServer => format!(
            "a DHCP server {host} answers at {at}, which is not in dhcp_servers: its lease{address} is ignored"
        ),
        PortFull => format!("{at} has as many hosts as one port can have: {host} is not learned"),
        TableFull => format!("the table of hosts is full: {host} at {at} is not learned"),
    };
    match repeated {
        0 => what,
        more => format!("{what} ({more} more since the last report)"),
    }
}

#[cfg(test)]
mod tests;
