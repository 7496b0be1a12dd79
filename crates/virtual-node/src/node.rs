//! A node in virtual time: sessions, one kernel, a zone for each slice, the service of labels, and the tenants' controllers.
//!
//! ```text
//!   message of a switch ──> Line (Session) ──event──> Kernel ──frames──> SliceZone ──bytes──> Tenant
//!   message for a switch <── Line (Session) <─command─ Kernel <─frames── SliceZone <──bytes── Tenant
//!                                                                            └─reports──> Service ──labels──> SliceZone
//! ```
//!
//! In: messages of switches, datagrams of agents, time. Out: messages for switches, datagrams for agents. All that follows from an event happens at
//! its moment. It does what a worker of a node does (`node::worker`), and decides nothing itself. It has no clock, no socket and no thread.

use crate::circles::Circles;
use crate::line::{Heard, Line};
use crate::own_work::{self, OwnCommand};
use crate::plan::{NodePlan, SlicePart};
use crate::service::{Service, Told};
use crate::slice_zone::{Said, SliceZone};
use crate::tenant::{HeardLabel, Refused, Tenant, begins_at};
use abi::command::{Command, What};
use abi::event::{Event, kind, write};
use abi::header::{FLAG_RECEIPT, FLAG_REFUSAL};
use abi::{Frame, Outcome, Receipt, ZoneId};
use edge::vnic::AgentId;
use flow::{DatapathId, ErrorCode};
use kernel::{Decision, Effect, Kernel, Unanswered};
use node::switch_requests;
use openflow::{Body, Message};
use slice::SliceSettings;
use slicer::{Connection, Event as SliceEvent};
use southbound::Tag;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The most steps that follow from one event. With more, slices or controllers answer each other without end, and the rehearsal ends.
const STEPS_MAX: usize = 1 << 20;

/// The most lines for the operator that are kept. Further ones are counted.
const LINES_MAX: usize = 64;

/// How often sessions, kernel and slices look at their time-outs.
const TICK_MS: u64 = 1_000;

/// How long commands wait for the table sizes of a switch, as in a node.
const SIZES_WAIT_MS: u64 = 10;

/// No error, in a receipt that has none.
const NO_ERROR: ErrorCode = ErrorCode { kind: 0, code: 0 };

/// Something that is under way within the node.
enum Step {
    /// A frame for a zone.
    Deliver(ZoneId, Vec<u8>),
    /// What a slice wants.
    Said(ZoneId, Said),
    /// A message of a tenant's controller.
    FromTenant(ZoneId, DatapathId, Vec<u8>),
}

/// A slice with its tenant.
pub(crate) struct Member {
    pub(crate) zone: SliceZone,
    pub(crate) tenant: Tenant,
    pub(crate) settings: SliceSettings,
    /// What its tenant's controller got.
    pub(crate) packet_ins: u64,
    /// Commands that the kernel refused: the sentence, and how often.
    pub(crate) refused: BTreeMap<String, u64>,
    /// Commands that wait for the table sizes of a switch, and until when.
    waits: Option<(DatapathId, u64)>,
    held: VecDeque<Vec<u8>>,
}

/// The node.
pub struct Node {
    kernel: Kernel,
    lines: Vec<Line>,
    places: BTreeMap<DatapathId, usize>,
    pub(crate) members: Vec<Member>,
    pub(crate) service: Service,
    events: VecDeque<Heard>,
    steps: VecDeque<Step>,
    effects: Vec<Effect>,
    outgoing: Vec<(usize, Message)>,
    /// The lines that may have something to send.
    touched: BTreeSet<usize>,
    now_ms: u64,
    next_tick_ms: u64,
    /// What the operator would read in the log.
    pub(crate) log: Vec<String>,
    /// Why the rehearsal cannot go on.
    trouble: Option<String>,
    pub(crate) circles: Circles,
}

fn zone_of(place: usize) -> ZoneId {
    // There are at most 64 slices.
    ZoneId(place as u16 + 1)
}

impl Node {
    /// A node to which these switches connect, in the order of the network.
    ///
    /// # Errors
    /// A slice cannot run: a sentence that names it.
    pub fn new(plan: NodePlan) -> Result<Node, String> {
        let mut kernel = Kernel::new(plan.seed);
        kernel.fill_tables_to(plan.limits.table_room());
        kernel.know_rules_up_to(plan.limits.rules_per_switch);
        kernel.limit_punts(plan.limits.punts());
        kernel.on_overlap(plan.limits.on_overlap.to_kernel());
        let mut events = VecDeque::new();
        let lines = plan.switches.iter().map(|_| Line::new(&plan.southbound, 0, &mut events)).collect();
        let hoses: Vec<_> =
            plan.slices.iter().map(|it| (it.settings.name.clone(), it.hose.clone())).collect();
        let service = Service::new(&plan.links, &plan.reserved, &hoses, plan.keys)?;
        let mut node = Node {
            kernel,
            lines,
            places: plan.switches.iter().copied().zip(0..).collect(),
            members: Vec::new(),
            service,
            events,
            steps: VecDeque::new(),
            effects: Vec::new(),
            outgoing: Vec::new(),
            touched: (0..plan.switches.len()).collect(),
            now_ms: 0,
            next_tick_ms: TICK_MS,
            log: Vec::new(),
            trouble: None,
            circles: Circles::default(),
        };
        for (place, part) in plan.slices.into_iter().enumerate() {
            node.attach(zone_of(place), part)?;
        }
        node.settle();
        Ok(node)
    }

    fn attach(&mut self, own: ZoneId, part: SlicePart) -> Result<(), String> {
        let SlicePart { settings, grant, version, controller, .. } = part;
        let zone = SliceZone::new(own, &settings)?;
        self.kernel.attach(own, &format!("slice.{}", settings.name), grant, 0);
        let subscription = zone.subscription();
        let tenant = Tenant::new(version, settings.labels, controller);
        let (refused, held) = Default::default();
        let (packet_ins, waits) = (0, None);
        self.members.push(Member { zone, tenant, settings, packet_ins, refused, waits, held });
        self.steps.push_back(Step::Said(own, Said::Command(subscription)));
        Ok(())
    }

    /// Why the rehearsal cannot go on, if it cannot.
    pub fn trouble(&self) -> Option<String> {
        let ended = |(datapath, place): (&DatapathId, &usize)| {
            let why = self.lines.get(*place)?.end()?;
            Some(format!("the session of {datapath} ended: {why}"))
        };
        self.trouble.clone().or_else(|| self.places.iter().find_map(ended))
    }

    /// A switch has sent a message. What the same switch gets is appended to `out`; [`Node::take_outgoing`] has the rest.
    pub fn hear(&mut self, switch: usize, message: &Message, now_ms: u64, out: &mut Vec<Message>) {
        self.now_ms = self.now_ms.max(now_ms);
        if let Body::PacketIn(packet) = &message.body
            && let Some(why) = self.circles.look(switch, packet, self.now_ms)
        {
            self.trouble.get_or_insert(why);
        }
        if let Some(line) = self.lines.get_mut(switch) {
            line.hear(message, self.now_ms, &mut self.events);
            self.touched.insert(switch);
        }
        self.settle();
        let (own, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.outgoing).into_iter().partition(|(to, _)| *to == switch);
        out.extend(own.into_iter().map(|(_, message)| message));
        self.outgoing = others;
    }

    /// Messages for switches that were no answer to the last message of the same switch.
    pub fn take_outgoing(&mut self) -> Vec<(usize, Message)> {
        std::mem::take(&mut self.outgoing)
    }

    /// A datagram of an agent for the service of labels.
    pub fn on_datagram(&mut self, from: AgentId, datagram: &[u8], now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        self.service.on_datagram(from, datagram, self.now_ms);
        self.settle();
    }

    /// Datagrams of the service for agents.
    pub fn take_datagrams(&mut self) -> Vec<(AgentId, Vec<u8>)> {
        self.service.take_datagrams()
    }

    /// A tenant's controller sends a message that its app did not decide on.
    ///
    /// # Errors
    /// There is no such slice.
    pub fn say(&mut self, slice: &str, datapath: DatapathId, body: Body, now_ms: u64) -> Result<(), String> {
        self.now_ms = self.now_ms.max(now_ms);
        let place = self.members.iter().position(|it| it.settings.name == slice);
        let place = place.ok_or_else(|| format!("there is no slice {slice}"))?;
        let mut out = Vec::new();
        self.members[place].tenant.say(datapath, body, &mut out);
        self.take_from_tenant(zone_of(place), out);
        self.settle();
        Ok(())
    }

    /// When it wants [`Node::on_time`] next.
    pub fn next_ms(&self) -> u64 {
        let tenants = self.members.iter().filter_map(|it| it.tenant.next_ms());
        let waits = self.members.iter().filter_map(|it| it.waits.map(|(_, until_ms)| until_ms));
        let others = [self.service.next_ms(), self.kernel.asks_next_ms()].into_iter().flatten();
        let next_ms = tenants.chain(waits).chain(others).fold(self.next_tick_ms, u64::min);
        // What was due in this millisecond has been done.
        next_ms.max(self.now_ms + 1)
    }

    /// Time has passed.
    pub fn on_time(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        self.service.on_time(self.now_ms);
        if self.now_ms >= self.next_tick_ms {
            self.next_tick_ms = self.now_ms + TICK_MS;
            self.tick();
        }
        for place in 0..self.members.len() {
            let mut out = Vec::new();
            let tenant = &mut self.members[place].tenant;
            if tenant.next_ms().is_some_and(|due_ms| due_ms <= self.now_ms) {
                tenant.on_time(self.now_ms, &mut out);
            }
            self.take_from_tenant(zone_of(place), out);
        }
        self.settle();
    }

    fn tick(&mut self) {
        self.kernel.check_meters(self.now_ms, &mut self.effects);
        for (place, line) in self.lines.iter_mut().enumerate() {
            line.on_tick(self.now_ms, &mut self.events);
            self.touched.insert(place);
        }
        let mut frame = Vec::new();
        write::tick(&mut frame, 0, self.now_ms);
        let receivers: Vec<ZoneId> = self.kernel.receivers_of(kind::TICK).iter().collect();
        self.steps.extend(receivers.into_iter().map(|zone| Step::Deliver(zone, frame.clone())));
    }

    /// Does all that follows, until nothing does.
    fn settle(&mut self) {
        for _ in 0..STEPS_MAX {
            if let Some(event) = self.events.pop_front() {
                self.on_event(event);
            } else if let Some(step) = self.steps.pop_front() {
                self.go(step);
            } else if !self.follow() {
                return;
            }
            self.carry_out_effects();
        }
        let why = format!("more than {STEPS_MAX} steps follow from one event at {} ms", self.now_ms);
        self.trouble.get_or_insert(why);
        self.events.clear();
        self.steps.clear();
    }

    /// What is left when all events are handled. Returns whether something follows.
    fn follow(&mut self) -> bool {
        self.kernel.ask_for_owners(self.now_ms, &mut self.effects);
        self.carry_out_effects();
        self.report_ready();
        self.unhold();
        self.follow_flows();
        self.tell_labels();
        let touched = std::mem::take(&mut self.touched);
        for place in touched {
            let Some(line) = self.lines.get_mut(place) else { continue };
            let messages = line.take(self.now_ms, &mut self.events);
            self.outgoing.extend(messages.into_iter().map(|message| (place, message)));
        }
        !self.events.is_empty() || !self.steps.is_empty()
    }

    /// A line for the operator.
    fn note(&mut self, line: String) {
        if self.log.len() < LINES_MAX && !self.log.contains(&line) {
            self.log.push(line);
        }
    }

    fn on_event(&mut self, event: Heard) {
        match event {
            Heard::All(bytes) => self.on_frame(bytes),
            Heard::Zone(ZoneId::KERNEL, bytes) => {
                if !self.kernel.on_own_answer(&bytes, self.now_ms) {
                    self.kernel.on_meter_answer(&bytes, &mut self.effects);
                }
                self.report_ready();
            }
            Heard::Zone(zone, bytes) => self.on_answer(zone, bytes),
        }
    }

    fn on_frame(&mut self, bytes: Vec<u8>) {
        let Ok(frame) = Frame::read(&bytes) else { return };
        let is_packet = frame.header.kind.get() == kind::PACKET_IN;
        if is_packet && self.kernel.is_held(frame.datapath()) {
            // A worker keeps them. Here, hosts send nothing before switches have reported their rules.
            return self
                .note(format!("{} sent packet-ins before it had reported its rules", frame.datapath()));
        }
        let receivers = self.kernel.on_event(&frame, self.now_ms, &mut self.effects);
        let receivers: Vec<ZoneId> = receivers.map(|set| set.iter().collect()).unwrap_or_default();
        self.steps.extend(receivers.into_iter().map(|zone| Step::Deliver(zone, bytes.clone())));
    }

    /// An answer to a command of a zone. The kernel hears it first.
    fn on_answer(&mut self, zone: ZoneId, bytes: Vec<u8>) {
        let Ok(frame) = Frame::read(&bytes) else { return };
        let event = Event::read(&frame);
        let has_failed = match &event {
            Ok(Event::SwitchError(_)) => true,
            Ok(Event::Receipt(_, receipt)) => receipt.outcome != Outcome::Programmed,
            _ => false,
        };
        if has_failed {
            self.kernel.on_failed(frame.datapath(), zone);
        }
        if self.kernel.has_claims()
            && let Ok(Event::Receipt(datapath, receipt)) = &event
            && let Some(heard) = self.kernel.on_receipt(receipt)
        {
            return heard.into_iter().for_each(|receipt| self.tell_receipt(zone, *datapath, &receipt));
        }
        self.kernel.charge_answer(zone, &bytes, self.now_ms);
        let mut cut_down = Vec::new();
        let seen = self.kernel.cut_down(zone, &bytes, &mut cut_down).map(<[u8]>::to_vec);
        self.steps.push_back(Step::Deliver(zone, seen.unwrap_or(bytes)));
    }

    /// Tells zones of switches that are ready for them.
    fn report_ready(&mut self) {
        while let Some(datapath) = self.kernel.next_ready() {
            let Some(up) = self.kernel.switch(datapath) else { continue };
            let mut frame = Vec::new();
            write::switch_up(&mut frame, 0, &up);
            let receivers: Vec<ZoneId> = self.kernel.receivers_of(kind::SWITCH_UP).iter().collect();
            self.steps.extend(receivers.into_iter().map(|zone| Step::Deliver(zone, frame.clone())));
        }
    }

    fn name_of(&self, zone: ZoneId) -> String {
        let member = usize::from(zone.0).checked_sub(1).and_then(|place| self.members.get(place));
        member.map_or_else(|| zone.to_string(), |member| member.settings.name.clone())
    }

    fn member(&mut self, zone: ZoneId) -> Option<&mut Member> {
        self.members.get_mut(usize::from(zone.0).checked_sub(1)?)
    }

    fn go(&mut self, step: Step) {
        let now_ms = self.now_ms;
        let mut said = Vec::new();
        let zone = match step {
            Step::Deliver(zone, frame) => {
                let Some(member) = self.member(zone) else { return };
                member.zone.hear(&frame, now_ms, &mut said);
                zone
            }
            Step::FromTenant(zone, datapath, bytes) => {
                let Some(member) = self.member(zone) else { return };
                let from = Connection { datapath, controller: 0 };
                member.zone.feed(SliceEvent::Message(from, &bytes), now_ms, &mut said);
                zone
            }
            Step::Said(zone, what) => return self.on_said(zone, what),
        };
        self.say_all(zone, said);
    }

    fn say_all(&mut self, zone: ZoneId, said: Vec<Said>) {
        self.steps.extend(said.into_iter().map(|what| Step::Said(zone, what)));
    }

    fn on_said(&mut self, zone: ZoneId, what: Said) {
        let now_ms = self.now_ms;
        let Some(member) = self.member(zone) else { return };
        match what {
            Said::Dial(connection) => member.tenant.on_connected(connection.datapath),
            Said::Tell(to, bytes, why) => {
                let mut out = Vec::new();
                /// OFPT_PACKET_IN of either version.
                const PACKET_IN: u8 = 10;
                member.packet_ins += u64::from(bytes.get(1) == Some(&PACKET_IN));
                let refused = member.tenant.on_bytes(to, &bytes, now_ms, &mut out);
                refused.into_iter().for_each(|refused| explain(member, refused, why.clone()));
                self.take_from_tenant(zone, out);
            }
            Said::Command(frame) if member.waits.is_some() => member.held.push_back(frame),
            Said::Command(frame) => self.execute(zone, &frame),
            Said::Line(line) => {
                let line = format!("slice {}: {line}", member.settings.name);
                self.note(line);
            }
        }
    }

    fn take_from_tenant(&mut self, zone: ZoneId, out: Vec<(DatapathId, Vec<u8>)>) {
        self.steps.extend(out.into_iter().map(|(datapath, bytes)| Step::FromTenant(zone, datapath, bytes)));
    }

    /// Executes a command by the kernel's decision.
    fn execute(&mut self, zone: ZoneId, bytes: &[u8]) {
        let Ok(frame) = Frame::read(bytes) else { return };
        match self.kernel.on_command(zone, &frame, self.now_ms, &mut self.effects) {
            Decision::Send(command) => {
                let cookie = if let What::FlowMod(it) = command.what { it.cookie } else { 0 };
                let tag = Tag { zone, generation: 0, ticket: command.ticket };
                match self.send(&OwnCommand { command, cookie, tag }) {
                    Ok(()) => self.kernel.on_sent(),
                    Err((error, why)) => self.refuse(zone, &frame, error, why),
                }
            }
            Decision::Refuse(refusal) => {
                let why = self.kernel.in_words(&refusal).to_string();
                self.refuse(zone, &frame, refusal.as_error().unwrap_or(NO_ERROR), why);
            }
            // A slice subscribes, and sends no bundles, queries or publications here.
            _ => {}
        }
    }

    fn send(&mut self, own: &OwnCommand<'_>) -> Result<(), (ErrorCode, String)> {
        let datapath = own.command.datapath;
        let place = self.places.get(&datapath).copied();
        let line = place.and_then(|place| self.lines.get_mut(place)).filter(|line| line.end().is_none());
        let (Some(place), Some(line)) = (place, line) else {
            return Err((NO_ERROR, format!("{datapath} is not connected")));
        };
        self.touched.insert(place);
        let sent = line.turn(self.now_ms, &mut self.events, |session, turn| {
            session.send(&own.command, own.cookie, own.tag, 0, turn)
        });
        sent.map_err(|refused| (refused.as_error().unwrap_or(NO_ERROR), refused.to_string()))
    }

    fn refuse(&mut self, zone: ZoneId, frame: &Frame<'_>, error: ErrorCode, why: String) {
        if let Some(member) = self.member(zone) {
            *member.refused.entry(why.clone()).or_default() += 1;
        }
        if frame.header.flags.get() & (FLAG_RECEIPT | FLAG_REFUSAL) != 0 {
            let ticket = frame.header.sequence.get();
            let receipt = Receipt { ticket, outcome: Outcome::Refused, error, reason: &why };
            self.tell_receipt(zone, frame.datapath(), &receipt);
        }
    }

    fn tell_receipt(&mut self, zone: ZoneId, datapath: DatapathId, receipt: &Receipt<'_>) {
        let mut frame = Vec::new();
        if write::receipt(&mut frame, 0, datapath, receipt) {
            self.steps.push_back(Step::Deliver(zone, frame));
        }
    }

    fn carry_out_effects(&mut self) {
        while !self.effects.is_empty() {
            std::mem::take(&mut self.effects).into_iter().for_each(|effect| self.carry_out(effect));
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Punt(datapath) => self.punt(datapath, 0, true),
            Effect::PuntFrom { datapath, table_id } => self.punt(datapath, table_id, true),
            Effect::EndPuntFrom { datapath, table_id } => self.punt(datapath, table_id, false),
            Effect::Ask { datapath, asked } => {
                let wanted = self.kernel.wanted_rule(datapath).cloned();
                let tag = Tag::of_node(asked.ticket());
                let send = |command: &Command<'_>| {
                    self.send(&OwnCommand { command: *command, cookie: 0, tag }).is_ok()
                };
                let is_asked = switch_requests::ask(datapath, asked, wanted.as_ref(), send);
                if !is_asked {
                    self.kernel.on_no_answer(datapath, asked, Unanswered::NotSent, self.now_ms);
                }
            }
            Effect::Replay(zone) => self.replay(zone),
            Effect::WaitForSizes { zone, datapath } => {
                let until_ms = self.now_ms + SIZES_WAIT_MS;
                if let Some(member) = self.member(zone) {
                    member.waits.get_or_insert((datapath, until_ms));
                }
            }
            Effect::SoftLimit { zone, kind, soft, hard, .. } => {
                let name = self.name_of(zone);
                self.note(format!("slice {name}: quota {kind}: above the soft limit {soft} of {hard}"));
            }
            Effect::Shadowed { zone, of, datapath, .. } => {
                let [name, other] = [zone, of].map(|zone| self.name_of(zone));
                self.note(format!("slice {name}: a rule shadows one of slice {other} at {datapath}"));
            }
            // Slices share priorities and evict nothing, and there are no meters, services and calls.
            _ => {}
        }
    }

    fn punt(&mut self, datapath: DatapathId, table_id: u8, is_wanted: bool) {
        own_work::punt(datapath, table_id, is_wanted, |own| self.send(own).is_ok());
    }

    /// A zone that has just subscribed receives the connected switches.
    fn replay(&mut self, zone: ZoneId) {
        for up in self.kernel.switches() {
            let mut frame = Vec::new();
            write::switch_up(&mut frame, 0, &up);
            self.steps.push_back(Step::Deliver(zone, frame));
        }
    }

    /// Commands that waited for table sizes go on.
    fn unhold(&mut self) {
        let Node { members, kernel, steps, now_ms, .. } = self;
        for (place, member) in members.iter_mut().enumerate() {
            let Some((datapath, until_ms)) = member.waits else { continue };
            if *now_ms >= until_ms || !kernel.is_asked_for_sizes(datapath) {
                member.waits = None;
                let held =
                    member.held.drain(..).map(|frame| Step::Said(zone_of(place), Said::Command(frame)));
                steps.extend(held);
            }
        }
    }

    /// Slices report their flows.
    fn follow_flows(&mut self) {
        let Node { members, service, now_ms, .. } = self;
        let mut refused = Vec::new();
        for member in members {
            while let Some(report) = member.zone.report() {
                match service.on_report(&report, *now_ms) {
                    Ok(heard) => {
                        let whys = heard.refused.iter().map(|it| it.why.clone());
                        refused.extend(whys.map(|why| (member.settings.name.clone(), why)));
                        member.zone.on_heard(&heard);
                    }
                    Err(why) => {
                        refused.push((member.settings.name.clone(), why));
                        break;
                    }
                }
            }
        }
        for (slice, why) in refused {
            self.note(format!("slice {slice}: a flow or link was refused: {why}"));
        }
    }

    /// Slices, and those who follow the event stream, hear labels.
    fn tell_labels(&mut self) {
        for told in self.service.take_told() {
            let (Told::Label(name, ..) | Told::Stale(name, _)) = &told;
            let Some(place) = self.members.iter().position(|it| it.settings.name == *name) else { continue };
            let (member, zone, now_ms) = (&mut self.members[place], zone_of(place), self.now_ms);
            let (mut said, mut out) = (Vec::new(), Vec::new());
            match told {
                Told::Stale(_, is_stale) => {
                    member.zone.feed(SliceEvent::LabelsStale(is_stale), now_ms, &mut said);
                }
                Told::Label(_, link, label) => {
                    member.zone.on_label(link, label, now_ms, &mut said);
                    let (datapath, port) = begins_at(link);
                    let shown = shown(&member.settings, datapath, port);
                    let kbps = label.map(|label| label.label_kbps);
                    let heard = HeardLabel { datapath, port: shown, kbps };
                    member.tenant.on_stream(heard, now_ms, &mut out);
                }
            }
            self.say_all(zone, said);
            self.take_from_tenant(zone, out);
        }
    }
}

/// The number of a port that the tenant sees.
fn shown(settings: &SliceSettings, datapath: DatapathId, port: flow::PortNo) -> flow::PortNo {
    let switch = settings.switches.iter().find(|it| it.datapath == datapath);
    let found = switch.and_then(|it| it.ports.iter().find(|it| it.port == port));
    found.map_or(port, |it| it.shown_as)
}

/// Keeps an error that a tenant got, with the reason: that of the kernel or the switch, or that of the slice, if it has one now.
fn explain(member: &mut Member, refused: Refused, why: Option<String>) {
    let Refused { mut error, quoted } = refused;
    error.why = why.or_else(|| {
        let Ok(Message { body: Body::FlowMod(flow_mod), .. }) = Message::decode(&quoted) else { return None };
        let explained = member.zone.slicer().explain(error.datapath, &flow_mod);
        explained.err().flatten().map(|refusal| refusal.to_string())
    });
    member.tenant.note(error);
}
