//! The app around the virtual switches: events and sockets in, commands and bytes out.
//!
//! In: events of the node, and sockets that are ready. Out: commands to the node, bytes to controllers, log lines. It decides nothing about
//! messages: `slicer` does.

mod clock;
mod linking;
mod operators;
mod room;

use self::clock::Clock;
use crate::connection::Socket;
use crate::dialing::Dialing;
use crate::journals::Journals;
use crate::labels::{Labels, PortLabel, Wish, link_id};
use crate::links::Links;
use crate::network;
use crate::published::Published;
use crate::settings::{LabelSettings, STANDALONE, SliceSettings};
use crate::standalone::{AFTER_MS, Learning};
use crate::state::{CLIENTS_MAX, Client};
use crate::summary;
use crate::vnics::Vnics;
use abi::ZoneId;
use burnet_sdk::stream::Update;
use burnet_sdk::{
    App, Commands, DatapathId, FlowRemoved, Interests, Level, Listener, PacketIn, PortStatus, QueryReply,
    Ready, Receipt, Settings, SocketApp, Sockets, StatsReply, SwitchError, SwitchUp, Ticket, Wait,
};
use openflow::Version;
use rustls::ClientConfig;
use slice_contract::{Network, Summary};
use slicer::abi_frames::{each_event, write_command};
use slicer::{CONTROLLERS_MAX, Connection, Event, FlowChange, LinkLabel, Outcome, Output, Slicer};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes that are read from one controller before the others have their turn.
const READ_BYTES: usize = 32 << 10;
/// Tokens of sockets: that of the listener, then those of its clients, then those of connections.
const LISTENER: usize = 0;
const FIRST_CLIENT: usize = 1;
const FIRST_CONNECTION: usize = FIRST_CLIENT + CLIENTS_MAX;

/// Ports of VNICs whose flows are traced before other events have their turn.
const TRACED_AT_ONCE: usize = 4;

/// A slice with its sockets.
pub struct Slice {
    settings: SliceSettings,
    /// The place of each switch in the plan.
    places: BTreeMap<DatapathId, usize>,
    clock: Clock,
    /// Known from the first event on, since the numbers of groups and meters depend on the zone.
    switches: Option<Switches>,
    up: BTreeSet<DatapathId>,
    dialing: Dialing,
    /// What encrypts connections, if the slice has TLS.
    tls: Option<Arc<ClientConfig>>,
    sockets: BTreeMap<Connection, Socket>,
    /// Connections for which bytes wait that the socket was not offered yet: each noted one once.
    unflushed: Vec<Connection>,
    /// The learning switch of each virtual switch that no controller is connected to.
    standalone: BTreeMap<DatapathId, Learning>,
    /// Since when a switch that is up has had no controller.
    alone_since_ms: BTreeMap<DatapathId, u64>,
    /// Why a connection ended or failed last. A line is logged when that changes.
    troubles: BTreeMap<Connection, String>,
    outputs: Vec<Output>,
    buffer: Vec<u8>,
    listener: Option<UnixListener>,
    clients: Vec<Client>,
    summary: Published<Summary>,
    network: Published<Network>,
    /// Whether the slice was asked to delete what it loses.
    is_withdrawing: bool,
    /// The switches that it has lost by that. It dials nothing for them.
    lost: BTreeSet<DatapathId>,
    /// Only on a node with labels.
    labels: Option<Labels>,
    vnics: Vnics,
    /// Only on a node with a state folder.
    journals: Option<Journals>,
    /// Whether the operator was told that flows were left out.
    has_told_cut: bool,
    /// Whether the operator was told that a controller cannot receive labels.
    has_told_v10: bool,
}

/// The virtual switches in their zone.
struct Switches {
    own: ZoneId,
    slicer: Slicer,
    links: Links,
}

impl App for Slice {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings: SliceSettings = settings.read()?;
        settings.check()?;
        let places = settings.switches.iter().enumerate().map(|(place, it)| (it.datapath, place));
        Ok(Slice {
            places: places.collect(),
            clock: Clock::new(since_1970_ms()),
            switches: None,
            up: BTreeSet::new(),
            dialing: Dialing::new(settings.controllers.len()),
            tls: settings.tls.as_ref().map(crate::tls::client).transpose()?,
            sockets: BTreeMap::new(),
            unflushed: Vec::new(),
            standalone: BTreeMap::new(),
            alone_since_ms: BTreeMap::new(),
            troubles: BTreeMap::new(),
            outputs: Vec::new(),
            buffer: vec![0; READ_BYTES],
            listener: None,
            clients: Vec::new(),
            summary: Published::each(summary::INTERVAL_MS),
            network: Published::each(network::INTERVAL_MS),
            is_withdrawing: false,
            lost: BTreeSet::new(),
            labels: settings.has_labels.then(|| labels_of(&settings)),
            vnics: Vnics::new(&settings.vnic_ports, settings.has_labels, settings.is_read_only),
            journals: settings.journals.as_deref().map(Journals::new).transpose()?,
            has_told_cut: false,
            has_told_v10: false,
            settings,
        })
    }

    fn interests(&self) -> Interests {
        let all = Interests::none().switches().ports().flow_removed().packets().ticks();
        // An observer has no rules, and hears what those of others send.
        if self.settings.is_read_only { all } else { all.of_own_rules() }
    }

    fn on_start(&mut self, out: &mut Commands) {
        if self.settings.labels != LabelSettings::None && !self.settings.has_labels {
            let why = "its controllers receive no labels: the node has no service of labels; add [network] to burnet.toml";
            out.log(Level::Warning, why);
        }
    }

    fn on_switch_up(&mut self, up: &SwitchUp, out: &mut Commands) {
        if !self.places.contains_key(&up.datapath) || self.lost.contains(&up.datapath) {
            return;
        }
        self.up.insert(up.datapath);
        self.hear(&abi::Event::SwitchUp(*up), out);
        for port in up.ports {
            let facts = port.facts();
            self.on_port(up.datapath, facts.port_no, facts.live, out);
        }
        let now_ms = self.clock.now_ms;
        self.dialing.on_switch_up(up.datapath, now_ms);
        self.dial(out);
    }

    fn on_switch_down(&mut self, datapath: DatapathId, out: &mut Commands) {
        self.up.remove(&datapath);
        self.standalone.remove(&datapath);
        self.alone_since_ms.remove(&datapath);
        self.dialing.on_switch_down(datapath);
        self.hear(&abi::Event::SwitchDown(datapath), out);
        // Those that are under way have no virtual switch yet.
        self.sockets.retain(|connection, _| connection.datapath != datapath);
        let changed = self.switches.as_mut().map(|it| it.links.on_switch_down(datapath));
        self.tell_links(changed.unwrap_or_default(), out);
    }

    fn on_port_status(&mut self, status: &PortStatus, out: &mut Commands) {
        self.hear(&abi::Event::PortStatus(*status), out);
        let facts = status.port.facts();
        self.on_port(status.datapath, facts.port_no, facts.live && !status.is_gone(), out);
    }

    fn on_packet_in(&mut self, packet: &PacketIn, out: &mut Commands) {
        // The virtual switch knows all of a whole packet, and nothing of one that waits in the switch's buffer. So it could not let a
        // switch of 1.0 tag the latter, which that switch buffers even if it sends all of it.
        let is_cut = packet.data.len() < usize::from(packet.total_len);
        let buffer_id = packet.buffer_id.filter(|_| is_cut);
        self.hear(&abi::Event::PacketIn(PacketIn { buffer_id, ..*packet }), out);
    }

    fn on_flow_removed(&mut self, removed: &FlowRemoved, out: &mut Commands) {
        self.hear(&abi::Event::FlowRemoved(*removed), out);
    }

    fn on_switch_error(&mut self, error: &SwitchError, out: &mut Commands) {
        self.hear(&abi::Event::SwitchError(*error), out);
    }

    fn on_stats_reply(&mut self, reply: &StatsReply, out: &mut Commands) {
        self.hear(&abi::Event::StatsReply(*reply), out);
    }

    fn on_receipt(&mut self, datapath: DatapathId, receipt: &Receipt, out: &mut Commands) {
        self.clock.read_for_event();
        let (now_ms, ticket) = (self.clock.now_ms, Ticket(receipt.ticket));
        if self.switches.as_mut().is_some_and(|it| it.links.on_refused(ticket, receipt.reason, now_ms)) {
            return self.wake(out);
        }
        if self.labels.as_mut().is_some_and(|labels| labels.on_refused(ticket, receipt.reason, now_ms)) {
            return self.follow_flows(out);
        }
        self.hear(&abi::Event::Receipt(datapath, *receipt), out);
        if self.is_withdrawing {
            self.serve_clients(out);
        }
    }

    fn on_query_reply(&mut self, reply: &QueryReply, out: &mut Commands) {
        self.clock.read_for_event();
        let now_ms = self.clock.now_ms;
        let answer = if reply.status == 0 { Ok(reply.payload) } else { Err((reply.status, reply.payload)) };
        let Slice { labels: Some(labels), switches, .. } = self else { return };
        labels.on_reply(Ticket(reply.ticket), answer, now_ms, || flows_of(switches));
        self.follow_flows(out);
    }

    fn on_stream(&mut self, stream: Ticket, update: &Update, out: &mut Commands) {
        self.clock.read_for_event();
        let now_ms = self.clock.now_ms;
        let changed = self.switches.as_mut().and_then(|it| it.links.on_stream(stream, update, now_ms));
        if let Some(changed) = changed {
            self.tell_links(changed, out);
            self.flush(out);
            return self.wake(out);
        }
        let Some(labels) = &mut self.labels else { return };
        let was_stale = labels.is_stale();
        let mut changed = Vec::new();
        labels.on_stream(stream, update, now_ms, &mut changed);
        let (is_stale, agents) = (labels.is_stale(), labels.take_agents());
        for PortLabel { datapath, port, label } in changed {
            let label =
                label.map(|it| LinkLabel { label_kbps: it.label_kbps, capacity_kbps: it.capacity_kbps });
            self.feed(Event::Label { datapath, port, label }, out);
        }
        if is_stale != was_stale {
            self.feed(Event::LabelsStale(is_stale), out);
        }
        if let Some(agents) = agents {
            self.vnics.on_agents(&agents, now_ms);
            self.shape(out);
        }
        self.flush(out);
        self.follow_flows(out);
    }

    fn on_caught_up(&mut self, out: &mut Commands) {
        self.clock.read();
        self.flush(out);
        self.follow_links(out);
        self.follow_flows(out);
        self.save(out);
    }

    fn on_tick(&mut self, _: u64, out: &mut Commands) {
        self.clock.read();
        let now_ms = self.clock.now_ms;
        let mut failed = Vec::new();
        let may_take = self.may_take();
        for (connection, socket) in &mut self.sockets {
            let slicer = self.switches.as_ref().map(|it| &it.slicer);
            if !may_take || slicer.is_some_and(|it| !it.may_take_for(connection.datapath)) {
                socket.on_unread(now_ms);
            }
            let facts = slicer.and_then(|it| it.controller(*connection));
            if let Err(why) = socket.on_time(now_ms, facts.map(|facts| facts.version)) {
                failed.push((*connection, why));
            }
            note_unflushed(&mut self.unflushed, *connection, socket);
        }
        failed.into_iter().for_each(|(connection, why)| self.lose(connection, &why, out));
        self.serve_clients(out);
        self.feed(Event::Time, out);
        if self.settings.is_standalone {
            self.stand_in(out);
        }
        self.shape(out);
        self.flush(out);
        self.follow_links(out);
        self.follow_flows(out);
        self.save(out);
        self.dial(out);
        self.publish(out);
    }

    fn on_wake(&mut self, out: &mut Commands) {
        self.clock.read();
        self.follow_links(out);
        self.follow_flows(out);
        self.save(out);
        self.dial(out);
    }
}

impl SocketApp for Slice {
    fn on_listeners(&mut self, listeners: Vec<Listener>, _: &mut Commands) -> Result<(), String> {
        self.listener = listeners.into_iter().find_map(|listener| match listener {
            Listener::Unix(listener) => Some(listener),
            Listener::Tcp(_) => None,
        });
        Ok(())
    }

    fn sockets<'a>(&'a self, sockets: &mut Sockets<'a>) {
        self.listener.iter().for_each(|listener| sockets.add(LISTENER, listener, Wait::Readable));
        for (place, client) in self.clients.iter().enumerate() {
            if let Some(wait) = client.waits_for() {
                sockets.add(FIRST_CLIENT + place, client, wait);
            }
        }
        let may_take = self.may_take();
        for (connection, socket) in &self.sockets {
            let may_read = socket.may_read() && may_take && self.may_take_for(*connection);
            let wait = match (may_read, socket.wants_room()) {
                (true, true) => Wait::Either,
                (false, true) => Wait::Writable,
                (true, false) => Wait::Readable,
                // The kernel's answers wake the service.
                (false, false) => continue,
            };
            if let Some(token) = self.token_of(*connection) {
                sockets.add(token, socket, wait);
            }
        }
    }

    fn on_socket(&mut self, token: usize, ready: Ready, out: &mut Commands) {
        self.clock.read();
        match token.checked_sub(FIRST_CONNECTION) {
            None if token == LISTENER => self.accept(out),
            // A client that has its answer was removed. Another client may be at its place: that does no harm.
            None => self.serve_clients(out),
            Some(number) => {
                let (place, controller) = (number / CONTROLLERS_MAX, number % CONTROLLERS_MAX);
                let Some(switch) = self.settings.switches.get(place) else { return };
                self.serve(Connection { datapath: switch.datapath, controller }, ready, out);
                self.flush(out);
                self.follow_flows(out);
                self.save(out);
            }
        }
    }
}

impl Drop for Slice {
    /// The node ends the zone: nothing that the tenant has done is lost.
    fn drop(&mut self) {
        self.clock.read();
        let now_ms = self.clock.now_ms;
        if let (Some(journals), Some(switches)) = (&mut self.journals, &mut self.switches) {
            journals.write(&mut switches.slicer, now_ms);
        }
    }
}

/// The number of the first rule of this run: it is higher than those of earlier runs, whose rules may still be in the switches.
fn first_number() -> u64 {
    /// A run adds fewer rules in a second, on average.
    const RULES_PER_S: u64 = 1 << 16;
    (since_1970_ms() / 1_000).saturating_mul(RULES_PER_S).max(1)
}

fn since_1970_ms() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}

/// The slice's side of labels. Later processes have greater numbers.
fn labels_of(settings: &SliceSettings) -> Labels {
    let session = since_1970_ms();
    // Links are the same in each zone.
    let links = settings.plan(ZoneId(1)).physical_links();
    Labels::new(&settings.name, session, links.iter().map(link_id))
}

/// The socket is to be offered what waits for it, once.
fn note_unflushed(unflushed: &mut Vec<Connection>, connection: Connection, socket: &mut Socket) {
    if !std::mem::replace(&mut socket.is_noted, true) {
        unflushed.push(connection);
    }
}

fn flows_of(switches: &Option<Switches>) -> Vec<FlowChange> {
    switches.as_ref().map(|it| it.slicer.flows()).unwrap_or_default()
}

impl Slice {
    fn token_of(&self, connection: Connection) -> Option<usize> {
        let place = self.places.get(&connection.datapath)?;
        Some(FIRST_CONNECTION + place * CONTROLLERS_MAX + connection.controller)
    }

    /// The virtual switches; none while the zone's number is unknown.
    fn switches(&mut self, out: &Commands) -> Option<&mut Switches> {
        if self.switches.is_none() {
            let own = out.own_zone()?;
            let plan = self.settings.plan(own);
            // `new` has checked the settings.
            let mut slicer = self.settings.slicer(own).ok()?;
            slicer.number_rules_from(first_number());
            let now_ms = self.clock.now_ms;
            if let Some(journals) = &mut self.journals {
                journals.recall(&mut slicer, self.places.keys().copied(), now_ms);
            }
            let links = Links::new(&plan, self.settings.follows_links, link_id);
            self.switches = Some(Switches { own, slicer, links });
        }
        self.switches.as_mut()
    }

    /// An event of the node.
    fn hear(&mut self, event: &abi::Event<'_>, out: &mut Commands) {
        self.clock.read_for_event();
        let (now_ms, mut outputs) = (self.clock.now_ms, std::mem::take(&mut self.outputs));
        if let Some(Switches { own, slicer, .. }) = self.switches(out) {
            each_event(event, *own, |event| slicer.on_event(now_ms, event, &mut outputs));
        }
        self.carry_out(outputs, out);
    }

    /// An event of a controller or a link.
    fn feed(&mut self, event: Event<'_>, out: &mut Commands) {
        let (now_ms, mut outputs) = (self.clock.now_ms, std::mem::take(&mut self.outputs));
        if let Some(switches) = self.switches(out) {
            switches.slicer.on_event(now_ms, event, &mut outputs);
        }
        self.carry_out(outputs, out);
    }

    /// Carries out what the virtual switches want.
    fn carry_out(&mut self, mut outputs: Vec<Output>, out: &mut Commands) {
        let now_ms = self.clock.now_ms;
        let (mut failed, mut unwritten, mut learned) = (Vec::new(), Vec::new(), Vec::new());
        for output in outputs.drain(..) {
            match output {
                Output::Tell { to, bytes } if self.settings.is_standalone && to.controller == STANDALONE => {
                    let learning = self.standalone.get_mut(&to.datapath);
                    learned.extend(learning.and_then(|it| it.on_message(&bytes)).map(|answer| (to, answer)));
                }
                Output::Tell { to, bytes } => {
                    let Some(socket) = self.sockets.get_mut(&to) else { continue };
                    note_unflushed(&mut self.unflushed, to, socket);
                    if let Err(why) = socket.tell(&bytes, now_ms) {
                        failed.push((to, why));
                    }
                    room::note(to, socket, &mut self.switches);
                }
                Output::Command { datapath, ticket, wants_receipt, command } => {
                    if !write_command(out.write_frames(), datapath, ticket, wants_receipt, &command) {
                        unwritten.push((datapath, ticket));
                    }
                }
                Output::End { connection: Connection { datapath, controller }, .. }
                    if controller >= self.settings.controllers.len() =>
                {
                    self.standalone.remove(&datapath);
                    self.alone_since_ms.remove(&datapath);
                }
                Output::End { connection, why } => self.close(connection, &why, out),
                Output::Soft { datapath, limit } => {
                    let line = format!("the slice uses more than the soft limit of {limit} at {datapath}");
                    out.log(Level::Warning, &line);
                }
            }
        }
        self.outputs = outputs;
        failed.into_iter().for_each(|(connection, why)| self.lose(connection, &why, out));
        learned.iter().for_each(|(from, message)| self.feed(Event::Message(*from, message), out));
        for (datapath, ticket) in unwritten {
            self.feed(Event::Answer { datapath, ticket, outcome: Outcome::Unknown }, out);
        }
    }

    /// The virtual switch ends a connection.
    fn close(&mut self, connection: Connection, why: &str, out: &mut Commands) {
        let now_ms = self.clock.now_ms;
        if let Some(socket) = self.sockets.remove(&connection) {
            socket.end(now_ms);
        }
        self.dialing.on_ended(connection, now_ms);
        self.say(connection, why, out);
        self.wake(out);
    }

    /// A connection failed, or could not be made.
    fn lose(&mut self, connection: Connection, why: &str, out: &mut Commands) {
        let was_connected = self.sockets.get(&connection).is_some_and(Socket::is_connected);
        self.close(connection, why, out);
        if was_connected {
            self.feed(Event::ControllerDown(connection), out);
        }
    }

    /// Logs why a connection ended, unless it ended so the last time too.
    fn say(&mut self, connection: Connection, why: &str, out: &mut Commands) {
        let known = self.troubles.insert(connection, why.to_owned());
        if known.as_deref() != Some(why) {
            let Connection { datapath, controller } = connection;
            let address =
                self.settings.controllers.get(controller).map_or_else(String::new, ToString::to_string);
            out.log(Level::Warning, &format!("controller {address} of switch {datapath}: {why}"));
        }
    }

    /// A learning switch begins where no controller has been connected for long, and ends where one is connected again.
    fn stand_in(&mut self, out: &mut Commands) {
        let now_ms = self.clock.now_ms;
        for datapath in self.up.difference(&self.lost).copied().collect::<Vec<_>>() {
            let connection = Connection { datapath, controller: STANDALONE };
            let mut controllers =
                (0..self.settings.controllers.len()).map(|controller| Connection { datapath, controller });
            let is_open = |it| self.switches.as_ref().is_some_and(|all| all.slicer.controller(it).is_some());
            let is_alone = !controllers.any(is_open);
            if !is_alone {
                self.alone_since_ms.remove(&datapath);
                if self.standalone.remove(&datapath).is_some() {
                    self.feed(Event::ControllerDown(connection), out);
                    out.log(
                        Level::Information,
                        &format!("switch {datapath}: a controller is connected again"),
                    );
                }
                continue;
            }
            let since_ms = *self.alone_since_ms.entry(datapath).or_insert(now_ms);
            if now_ms.saturating_sub(since_ms) < AFTER_MS || self.standalone.contains_key(&datapath) {
                continue;
            }
            let Some(hello) = Learning::hello() else { continue };
            let line = format!(
                "switch {datapath}: no controller is connected, so the slice forwards as a learning switch"
            );
            out.log(Level::Warning, &line);
            self.standalone.insert(datapath, Learning::default());
            self.feed(Event::ControllerUp(connection), out);
            self.feed(Event::Message(connection, &hello), out);
        }
    }

    /// Dials the controllers whose time has come.
    fn dial(&mut self, out: &mut Commands) {
        let now_ms = self.clock.now_ms;
        for connection in self.dialing.take_due(now_ms) {
            let Some(address) = self.settings.controllers.get(connection.controller) else { continue };
            match Socket::dial(*address, self.tls.as_ref(), now_ms) {
                Ok(socket) => drop(self.sockets.insert(connection, socket)),
                Err(why) => self.close(connection, &why, out),
            }
        }
        self.wake(out);
    }

    /// Traces flows whose rules changed, a few at a time, and says to the service of labels what is due.
    fn follow_flows(&mut self, out: &mut Commands) {
        let now_ms = self.clock.now_ms;
        let Slice { labels: Some(labels), switches: Some(switches), .. } = self else { return };
        let slicer = &mut switches.slicer;
        let is_due = labels.next_ms().is_some_and(|due_ms| due_ms <= now_ms) || slicer.has_flows_due();
        if !is_due {
            return;
        }
        let mut changes = Vec::new();
        slicer.trace_flows(TRACED_AT_ONCE, &mut changes);
        changes.into_iter().for_each(|change| labels.say(change));
        labels.on_time(
            now_ms,
            || slicer.flows(),
            |wish| match wish {
                Wish::Report(question) => out.query(labels_contract::SERVICE, &question),
                Wish::Follow(question) => out.follow(labels_contract::SERVICE, &question),
            },
        );
        labels.take_lines().iter().for_each(|line| out.log(Level::Warning, line));
        if !self.has_told_cut && slicer.flows_cut() > 0 {
            self.has_told_cut = true;
            let line = "a VNIC has so many rules before it that some of its flows are left out: labels of other slices may be too high";
            out.log(Level::Warning, line);
        }
        self.wake(out);
    }

    /// Keeps what the tenant has done, if it is time.
    fn save(&mut self, out: &mut Commands) {
        let now_ms = self.clock.now_ms;
        let Slice { journals: Some(journals), switches: Some(switches), .. } = self else { return };
        let was_due = journals.next_ms().is_some();
        let is_due = journals.on_time(&mut switches.slicer, now_ms);
        journals.take_lines().iter().for_each(|line| out.log(Level::Error, line));
        if is_due && !was_due {
            self.wake(out);
        }
    }

    /// Asks for a wake-up when the next controller is to be dialled, or something is due for labels or journals.
    fn wake(&self, out: &mut Commands) {
        let traces = self.switches.as_ref().is_some_and(|it| it.slicer.has_flows_due());
        let labels = self.labels.as_ref().and_then(Labels::next_ms).filter(|_| self.switches.is_some());
        let journals = self.journals.as_ref().and_then(Journals::next_ms);
        let links = self.switches.as_ref().and_then(|it| it.links.next_ms());
        let withdraws = self.switches.as_ref().and_then(|it| it.slicer.withdrawal_due_ms());
        let due = [self.dialing.next_ms(), labels, links, journals, traces.then_some(0), withdraws];
        if let Some(next_ms) = due.into_iter().flatten().min() {
            out.wake_after(Duration::from_millis(next_ms.saturating_sub(self.clock.now_ms)));
        }
    }

    /// A controller's socket is ready.
    fn serve(&mut self, connection: Connection, ready: Ready, out: &mut Commands) {
        let now_ms = self.clock.now_ms;
        let Some(socket) = self.sockets.get_mut(&connection) else { return };
        if !socket.is_connected() {
            return match socket.finish_dial(now_ms) {
                Ok(()) => self.on_connected(connection, out),
                Err(why) => self.lose(connection, &why, out),
            };
        }
        if ready.writable {
            note_unflushed(&mut self.unflushed, connection, socket);
        }
        if ready.readable && socket.may_read() && self.may_take() && self.may_take_for(connection) {
            self.read(connection, out);
        }
    }

    /// Whether messages of controllers may be read. While the kernel owes many answers, they wait in the sockets, which slows a controller that
    /// floods.
    fn may_take(&self) -> bool {
        self.switches.as_ref().is_none_or(|it| it.slicer.may_take())
    }

    fn may_take_for(&self, connection: Connection) -> bool {
        self.switches.as_ref().is_none_or(|it| it.slicer.may_take_for(connection.datapath))
    }

    fn on_connected(&mut self, connection: Connection, out: &mut Commands) {
        let now_ms = self.clock.now_ms;
        self.dialing.on_connected(connection, now_ms);
        self.feed(Event::ControllerUp(connection), out);
    }

    /// Reads once, and hands the whole messages to the virtual switch.
    fn read(&mut self, connection: Connection, out: &mut Commands) {
        let now_ms = self.clock.now_ms;
        let Some(socket) = self.sockets.get_mut(&connection) else { return };
        match socket.read(&mut self.buffer) {
            Ok(true) => {}
            Ok(false) => return,
            Err(why) => return self.lose(connection, &why, out),
        }
        let mut inbox = std::mem::take(&mut socket.inbox);
        let trouble = loop {
            match inbox.take() {
                Ok(Some(message)) => self.feed(Event::Message(connection, message), out),
                Ok(None) => break None,
                Err(why) => break Some(why),
            }
            // The message may have ended the connection.
            let Some(socket) = self.sockets.get_mut(&connection) else { return };
            socket.on_heard(now_ms);
        };
        if let Some(why) = trouble {
            return self.lose(connection, &why, out);
        }
        if let Some(socket) = self.sockets.get_mut(&connection) {
            socket.inbox = inbox;
        }
        self.note_agreement(connection, out);
    }

    /// After a failure, the operator is told once that a controller is back.
    fn note_agreement(&mut self, connection: Connection, out: &mut Commands) {
        let facts = self.switches.as_ref().and_then(|it| it.slicer.controller(connection));
        let is_v10 = facts.is_some_and(|facts| facts.version == Version::V1_0);
        if is_v10 && self.settings.labels == LabelSettings::Speed && !self.has_told_v10 {
            self.has_told_v10 = true;
            let why = "a controller of OpenFlow 1.0 receives no labels: labels = \"speed\" needs 1.3, whose ports have a current speed";
            out.log(Level::Warning, why);
        }
        if facts.is_some() && self.troubles.remove(&connection).is_some() {
            let Connection { datapath, controller } = connection;
            let address =
                self.settings.controllers.get(controller).map_or_else(String::new, ToString::to_string);
            out.log(Level::Information, &format!("controller {address} of switch {datapath}: connected"));
        }
    }

    /// Has ports of VNICs metered whose agents are away, and others no more.
    fn shape(&mut self, out: &mut Commands) {
        if self.switches(out).is_none() {
            return;
        }
        for (at, is_wanted) in self.vnics.changes(self.clock.now_ms) {
            self.feed(Event::Shape { at, is_wanted }, out);
        }
    }
}
