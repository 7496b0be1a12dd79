//! The app around the engine: events in, commands out, questions answered.
//!
//! In: events of the node. Out: commands to it. It decides nothing about links: the engine does.

use crate::engine::{Command, Engine, Event};
use crate::frame::{BDDP, LLDP, Signer};
use crate::notes::{Heard, Notes, Wanted};
use crate::published::Published;
use crate::time::{DiscoverySettings, Now};
use burnet_sdk::flow::text::parse_match;
use burnet_sdk::{
    App, Commands, DatapathId, Form, Interests, Labels, Level, PacketIn, PortNo, PortRecord, PortStatus,
    Query, QueryReply, Receipt, Settings, StatsReply, SwitchUp, Ticket,
};
use discovery_contract::{
    ANNOTATION_BYTES_MAX, ANNOTATIONS_MAX, Filter, Follow, Grant, INCIDENT_TOPIC, PAGE_DEFAULT, PAGE_MAX,
    Page, Question, SERVICE, status,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use view::{Annotations, ConnectPoint, Key, LinkState, Object, Port, Record, Switch, SwitchState};

/// The priority of the rules that bring probes up: above those of all apps.
const PRIORITY: u16 = 65_001;

/// The whole frame (`OFPCML_NO_BUFFER`).
const WHOLE_FRAME: u16 = 0xffff;

/// `OFPMP_DESC`, and the fields of its answer (OpenFlow 1.3.5, 7.3.5.1).
const DESCRIPTION: u16 = 0;
const DESCRIPTION_FIELDS: [(&str, usize); 5] =
    [("manufacturer", 256), ("hardware", 256), ("software", 256), ("serial_number", 32), ("datapath", 256)];

/// The service.
pub struct Discovery {
    engine: Engine,
    published: Published,
    notes: Notes,
    began: Instant,
    commands: Vec<Command>,
    /// What a new switch gets after apps know of it: its rules, the question about its description, and the first probes of its
    /// ports. It is carried out when the app is woken, which is at once, or before the next event: so it is of one switch.
    later: Vec<Command>,
}

impl App for Discovery {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings: DiscoverySettings = settings.read()?;
        settings.check()?;
        let signer =
            Signer { key: settings.secret()?.map_or_else(random, Ok)?, run: u64::from_be_bytes(random()?) };
        Ok(Discovery {
            engine: Engine::new(settings, signer, unix_ms()),
            published: Published::default(),
            notes: Notes::default(),
            began: Instant::now(),
            commands: Vec::new(),
            later: Vec::new(),
        })
    }

    fn interests(&self) -> Interests {
        [LLDP, BDDP]
            .iter()
            .filter_map(|ether_type| parse_match(&format!("dl_type={ether_type:#x}")).ok())
            .fold(Interests::none().switches().ports().ticks().experimenters(), Interests::packets_within)
    }

    fn on_start(&mut self, out: &mut Commands) {
        self.notes.load(out);
    }

    fn on_switch_up(&mut self, up: &SwitchUp, out: &mut Commands) {
        let switch = Switch {
            id: up.datapath,
            state: SwitchState::Up,
            // The numbers of the versions on the wire.
            openflow: if up.openflow as u8 == 1 { "1.0" } else { "1.3" }.to_owned(),
            n_tables: up.n_tables,
            n_buffers: up.n_buffers,
            description: BTreeMap::new(),
            since_ms: unix_ms(),
            annotations: Annotations::new(),
        };
        let ports = up.ports.iter().map(|record| port(up.datapath, record)).collect();
        self.feed(Event::SwitchUp(switch, ports), out);
    }

    fn on_switch_down(&mut self, datapath: DatapathId, out: &mut Commands) {
        self.feed(Event::SwitchDown(datapath), out);
    }

    fn on_port_status(&mut self, status: &PortStatus, out: &mut Commands) {
        let port = port(status.datapath, status.port);
        let event = if status.is_gone() { Event::PortGone(port.id) } else { Event::PortChanged(port) };
        self.feed(event, out);
    }

    fn on_labels(&mut self, labels: &Labels, out: &mut Commands) {
        let of_port = |label: burnet_sdk::Label| {
            (ConnectPoint { switch: labels.datapath, port: label.port }, label.label_kbps)
        };
        let (switch, is_stale) = (labels.datapath, labels.is_stale);
        self.feed(Event::Labels { switch, is_stale, labels: labels.iter().map(of_port).collect() }, out);
    }

    fn on_packet_in(&mut self, packet: &PacketIn, out: &mut Commands) {
        let at = ConnectPoint { switch: packet.datapath, port: packet.in_port };
        self.feed(Event::Frame(at, packet.data), out);
    }

    fn on_stats_reply(&mut self, reply: &StatsReply, out: &mut Commands) {
        if reply.multipart == DESCRIPTION {
            self.feed(Event::Described(reply.datapath, description(reply.body)), out);
        }
    }

    fn on_wake(&mut self, out: &mut Commands) {
        self.feed(Event::Time, out);
    }

    fn on_tick(&mut self, _: u64, out: &mut Commands) {
        self.notes.load(out);
        self.feed(Event::Time, out);
    }

    fn on_query(&mut self, query: &Query, out: &mut Commands) {
        let ticket = Ticket(query.ticket);
        let grant = Grant::from_bytes(query.caller.grant);
        let answer = match (grant, query.form) {
            (Err(why), _) => Err((status::NOT_GRANTED, why)),
            (Ok(grant), Form::Stream) => match follow(grant, query.payload) {
                Ok(kinds) => return self.published.follow(&kinds, query, out),
                Err(refusal) => Err(refusal),
            },
            (Ok(grant), _) => self.answer(ticket, grant, query.payload, out),
        };
        match answer {
            Ok(None) => {}
            Ok(Some(payload)) => out.answer(ticket, status::DONE, false, &payload),
            Err((status, why)) => out.answer(ticket, status, false, why.as_bytes()),
        }
        self.write_next(out);
    }

    fn on_query_reply(&mut self, reply: &QueryReply, out: &mut Commands) {
        let heard = self.notes.hear(reply, out);
        self.on_heard(heard, out);
    }

    fn on_receipt(&mut self, _: DatapathId, receipt: &Receipt, out: &mut Commands) {
        let heard = self.notes.refused(Ticket(receipt.ticket), receipt.reason);
        self.on_heard(heard, out);
    }

    fn on_credit(&mut self, _: Ticket, out: &mut Commands) {
        self.published.send(out);
    }

    fn on_caught_up(&mut self, out: &mut Commands) {
        self.published.send(out);
    }
}

/// What a question gets: an answer now, an answer later, or a refusal.
type Answer = Result<Option<Vec<u8>>, (u16, String)>;

impl Discovery {
    fn now(&self) -> Now {
        let us = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        Now { us, unix_ms: unix_ms() }
    }

    fn feed(&mut self, event: Event<'_>, out: &mut Commands) {
        let mut later = std::mem::take(&mut self.later);
        self.carry_out(&mut later, out);
        let now = self.now();
        let new_switch = if let Event::SwitchUp(switch, _) = &event { Some(switch.id) } else { None };
        let mut commands = std::mem::take(&mut self.commands);
        self.engine.on_event(event, now, &mut commands);
        if new_switch.is_some() {
            later.extend(commands.extract_if(.., |command| is_to(command) == new_switch));
        }
        self.carry_out(&mut commands, out);
        let wait_us = if later.is_empty() { self.engine.next_us().saturating_sub(now.us) } else { 0 };
        (self.commands, self.later) = (commands, later);
        out.wake_after(Duration::from_micros(wait_us));
    }

    fn carry_out(&mut self, commands: &mut Vec<Command>, out: &mut Commands) {
        for command in commands.drain(..) {
            match command {
                Command::AddRules(switch) => add_rules(switch, out),
                Command::Describe(switch) => {
                    out.request_stats(switch, DESCRIPTION, &[]);
                }
                Command::Send(from, frame) => {
                    out.packet_out(from.switch).frame(&frame).output(from.port).send();
                }
                Command::Publish((key, record)) => self.published.change(key, record.as_ref(), out),
                Command::Report(incident) => {
                    let claimed =
                        incident.claimed.map_or("no port".to_owned(), |claimed| claimed.to_string());
                    let refusal = format!("{:?}", incident.refusal).to_lowercase();
                    let line = format!(
                        "a probe at {} is refused, and makes no link: it is {refusal} and names {claimed}",
                        incident.at
                    );
                    out.log(Level::Warning, &line);
                    // Plain fields, which JSON can always represent.
                    out.publish(INCIDENT_TOPIC, &serde_json::to_vec(&incident).unwrap_or_default());
                }
            }
        }
        // What one event changes belongs together: a link goes with its port.
        out.settle_shared();
    }

    fn answer(&mut self, caller: Ticket, grant: Grant, payload: &[u8], out: &mut Commands) -> Answer {
        let question = Question::from_bytes(payload).map_err(|why| (status::BAD_QUESTION, why))?;
        grant.check(&question).map_err(|why| (status::NOT_GRANTED, why))?;
        let not_found = |key: Key| (status::NOT_FOUND, format!("key: there is no {key}"));
        match question {
            Question::List { filter, after, limit } => {
                let limit = limit.unwrap_or(PAGE_DEFAULT).min(PAGE_MAX);
                to_json(&self.list(&filter, after, limit))
            }
            Question::Get { key } => {
                self.published.get(key).map(|record| Some(record.to_vec())).ok_or_else(|| not_found(key))
            }
            Question::Annotate { key, .. } if !self.engine.tables().has(key) => Err(not_found(key)),
            Question::Annotate { key, annotations } => {
                let change = annotations.into_iter().collect();
                let wanted = self.notes.want(Wanted { caller, key, change });
                wanted.map(|()| None).map_err(|why| (status::NOT_STORED, why))
            }
            Question::Remove { key } => {
                let mut commands = Vec::new();
                self.engine.remove(key, &mut commands).map_err(|why| match why {
                    None => not_found(key),
                    Some(why) => (status::CONFLICT, why),
                })?;
                self.carry_out(&mut commands, out);
                self.published.send(out);
                Ok(Some(Vec::new()))
            }
            Question::Incidents => to_json(&self.engine.incidents()),
            Question::Counts => to_json(&self.engine.counts()),
        }
    }

    fn list(&self, filter: &Filter, after: Option<Key>, limit: usize) -> Page {
        let mut page = Page::default();
        // It was written by this service, so it can be read.
        let records = self.published.behind(after).filter_map(|bytes| Record::from_bytes(bytes).ok());
        for record in records.filter(|record| fits(filter, &record.object)) {
            if page.objects.len() == limit {
                page.next = page.objects.last().map(|last| last.object.key());
                break;
            }
            page.objects.push(record);
        }
        page
    }

    /// Writes the next change of notes, if none is being written.
    fn write_next(&mut self, out: &mut Commands) {
        while let Some(Wanted { caller, key, change }) = self.notes.next() {
            let mut notes = self.engine.tables().notes_of(key);
            for (name, value) in change {
                match value {
                    Some(value) => notes.insert(name, value),
                    None => notes.remove(&name),
                };
            }
            let bytes: usize = notes.iter().map(|(name, value)| name.len() + value.len()).sum();
            if notes.len() > ANNOTATIONS_MAX || bytes > ANNOTATION_BYTES_MAX {
                let why = format!(
                    "annotations: an object has at most {ANNOTATIONS_MAX}, with {ANNOTATION_BYTES_MAX} bytes together"
                );
                out.answer(caller, status::FULL, false, why.as_bytes());
                continue;
            }
            self.notes.write(caller, key, notes, out);
        }
    }

    fn on_heard(&mut self, heard: Heard, out: &mut Commands) {
        match heard {
            Heard::Nothing => {}
            Heard::Loaded(key, notes) => self.annotate(key, notes, out),
            Heard::Written(caller, key, notes) => {
                self.annotate(key, notes, out);
                match self.published.get(key) {
                    Some(record) => out.answer(caller, status::DONE, false, record),
                    // It went while its notes were written. They are kept for its return.
                    None => out.answer(caller, status::NOT_FOUND, false, b"key: the object is gone"),
                }
            }
            Heard::Failed(caller, why) => out.answer(caller, status::NOT_STORED, false, why.as_bytes()),
        }
        self.write_next(out);
        self.published.send(out);
    }

    fn annotate(&mut self, key: Key, notes: Annotations, out: &mut Commands) {
        let mut commands = Vec::new();
        self.engine.annotate(key, notes, &mut commands);
        self.carry_out(&mut commands, out);
    }
}

/// The switch that a command is for.
fn is_to(command: &Command) -> Option<DatapathId> {
    match command {
        Command::AddRules(switch) | Command::Describe(switch) => Some(*switch),
        Command::Send(from, _) => Some(from.switch),
        Command::Publish(_) | Command::Report(_) => None,
    }
}

fn follow(grant: Grant, payload: &[u8]) -> Result<Vec<view::Kind>, (u16, String)> {
    grant.check_follow().map_err(|why| (status::NOT_GRANTED, why))?;
    Follow::kinds_of(payload, SERVICE).map_err(|why| (status::BAD_QUESTION, why))
}

fn to_json(value: &impl serde::Serialize) -> Answer {
    // Maps with text keys and numbers, which JSON can always represent.
    Ok(Some(serde_json::to_vec(value).unwrap_or_default()))
}

fn fits(filter: &Filter, object: &Object) -> bool {
    let key = object.key();
    let at_switch = |wanted: DatapathId| match key {
        Key::Switch(id) => id == wanted,
        Key::Port(id) => id.switch == wanted,
        Key::Link(id) => id.from.switch == wanted || id.to.switch == wanted,
        _ => false,
    };
    let is_up = match object {
        Object::Switch(switch) => switch.state == SwitchState::Up,
        Object::Port(port) => port.live,
        Object::Link(link) => link.state == LinkState::Up,
        _ => false,
    };
    (filter.kinds.is_empty() || filter.kinds.contains(&key.kind()))
        && filter.switch.is_none_or(at_switch)
        && filter.up.is_none_or(|up| up == is_up)
}

fn port(switch: DatapathId, record: &PortRecord) -> Port {
    let facts = record.facts();
    Port {
        id: ConnectPoint { switch, port: facts.port_no },
        name: facts.name.to_owned(),
        mac: facts.hw_addr,
        live: facts.live,
        enabled: facts.administratively_up,
        speed_kbps: facts.curr_speed_kbps.into(),
        annotations: Annotations::new(),
    }
}

/// The texts of a description. A body that is too short has the fields that are whole.
fn description(mut body: &[u8]) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for (name, length) in DESCRIPTION_FIELDS {
        let Some((field, rest)) = body.split_at_checked(length) else { break };
        body = rest;
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(length);
        let text = String::from_utf8_lossy(&field[..end]).into_owned();
        if !text.is_empty() {
            texts.insert(name.to_owned(), text);
        }
    }
    texts
}

/// The rules that bring probes up, whatever other apps have in the switch.
fn add_rules(switch: DatapathId, out: &mut Commands) {
    for ether_type in [LLDP, BDDP] {
        let rule = out.rule(switch).priority(PRIORITY).matching(|fields| {
            fields.field(burnet_sdk::Field::EthType, ether_type);
        });
        let to_controller = rule.apply(|actions| {
            actions.output(PortNo::CONTROLLER, WHOLE_FRAME);
        });
        to_controller.send();
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Random bytes of the system.
fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    let filled = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    match filled {
        Ok(length) if length == N => Ok(bytes),
        Ok(_) => Err("the system gave too few random bytes for a key: set network.discovery.key".to_owned()),
        Err(why) => {
            Err(format!("the system gave no random bytes for a key ({why}): set network.discovery.key"))
        }
    }
}
