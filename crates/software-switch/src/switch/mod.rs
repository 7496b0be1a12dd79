//! A switch: its state, its ports, its connections, and the frames and time that reach it.
//!
//! In: frames, connections that open and end, link states, the time. Out: [`Effects`]. Messages of controllers come in
//! by `dispatch`, and frames pass the tables in `pipeline`. It never does I/O and never reads a clock.

mod bundles;
mod dispatch;
mod modelled;
mod packet_in;
mod pipeline;
mod rules;
mod standalone;
mod statistics;
mod table_features;
mod validate;

use flow::{DatapathId, MacAddr, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use std::collections::BTreeMap;
use std::time::Duration;

use crate::action_set::ActionSet;
use crate::address_table::AddressTable;
use crate::buffer::PacketBuffers;
use crate::fragment;
use crate::frame::ETHERNET_HEADER_BYTES;
use crate::group::Groups;
use crate::meter::Meters;
use crate::options::SwitchOptions;
use crate::packet::Packet;
use crate::pipeline_tables::PipelineTables;
use crate::port::SwitchPort;
use crate::profiled::Profiled;
use crate::session::{ControllerId, Parting, Session, SessionId, State};
use crate::table::FlowTable;
use crate::tables::FlowTables;

/// How many copies groups may make of one packet. Without a bound, groups that copy into other groups could fill the
/// memory. Copies above the bound are not sent.
const COPIES_MAX: u32 = 4096;

/// What the caller must do after an event of a switch. The caller owns it and may reuse it.
#[derive(Debug, Default)]
pub struct Effects {
    /// Messages for controllers, in order.
    pub messages: Vec<(ControllerId, Message)>,
    /// Frames that leave by ports, in order.
    pub frames: Vec<(PortNo, Vec<u8>)>,
    /// Controllers whose connection the caller closes after it has sent the messages, with the reason.
    pub close: Vec<(ControllerId, Parting)>,
}

/// What a switch has counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounters {
    /// Frames that it received.
    pub frames_in: u64,
    /// Packet-ins that it sent. A packet counts once for each controller that received it.
    pub packet_ins: u64,
    /// Packets for the controller that no controller received.
    pub packet_ins_unheard: u64,
    /// Flow mods that it received.
    pub flow_mods: u64,
    /// Packet-outs that it received.
    pub packet_outs: u64,
    /// Error messages that it sent.
    pub errors: u64,
    /// Messages of controllers that a switch with a profile lost, since too many waited for its CPU. A caller that asks
    /// [`Switch::takes_messages`] loses only those that the profile's own queue loses (`queue_full`).
    pub messages_lost: u64,
    /// Rules for which a table had no room: it sent an error, or ignored the rule as its profile says.
    pub rules_refused: u64,
}

impl std::iter::Sum for SwitchCounters {
    fn sum<I: Iterator<Item = SwitchCounters>>(all: I) -> SwitchCounters {
        all.fold(SwitchCounters::default(), |a, b| SwitchCounters {
            frames_in: a.frames_in + b.frames_in,
            packet_ins: a.packet_ins + b.packet_ins,
            packet_ins_unheard: a.packet_ins_unheard + b.packet_ins_unheard,
            flow_mods: a.flow_mods + b.flow_mods,
            packet_outs: a.packet_outs + b.packet_outs,
            errors: a.errors + b.errors,
            messages_lost: a.messages_lost + b.messages_lost,
            rules_refused: a.rules_refused + b.rules_refused,
        })
    }
}

/// The state of a switch, for an overview of all switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchView {
    /// The switch's name.
    pub name: String,
    /// Whether it has agreed on a version with a controller.
    pub connected: bool,
    /// The number of flow entries in all tables.
    pub flow_entries: usize,
    /// Its ports, and whether each is live.
    pub ports: Vec<(PortNo, bool)>,
}

/// An OpenFlow switch. A copy has the same state and the same connections.
#[derive(Clone, Debug)]
pub struct Switch {
    datapath_id: DatapathId,
    name: String,
    options: SwitchOptions,
    ports: BTreeMap<PortNo, SwitchPort>,
    tables: FlowTables,
    /// Which tables are in the pipeline, and their sizes.
    pipeline: PipelineTables,
    groups: Groups,
    meters: Meters,
    buffers: PacketBuffers,
    /// Indexed by [`ControllerId`].
    sessions: Vec<Session>,
    /// How many connections there have been.
    sessions_begun: u64,
    /// The versions that controllers have spoken, one bit each. A rule of one version may not be expressible in
    /// another.
    versions_spoken: u32,
    /// The addresses that it has learned while it stands alone.
    addresses: AddressTable,
    /// How it handles fragments (OFPC_FRAG_).
    fragments: u16,
    /// The latest generation id that any controller has sent (1.3.5, 6.3.5).
    generation_id: Option<u64>,
    counters: SwitchCounters,
    /// How many more copies may be made of the current packet.
    copies_left: u32,
    /// An empty action set, kept only to reuse its memory.
    spare_set: ActionSet,
    /// What it has in addition while it plays a profile.
    profiled: Option<Box<Profiled>>,
}

impl Switch {
    /// A switch without ports and without a connection.
    pub fn new(datapath_id: DatapathId, name: impl Into<String>, options: SwitchOptions) -> Self {
        let name = name.into();
        let profile = options.profiles.of(&name).cloned();
        let options = profile.iter().fold(options, |options, profile| options.of_profile(profile));
        let tables = FlowTables::new(usize::from(options.n_tables.clamp(1, 254)));
        let mut buffers = PacketBuffers::new(options.n_buffers);
        if let Some(profile) = profile.as_ref().filter(|profile| profile.packet_in.buffers_packets.is_some())
        {
            let life = Duration::from_secs_f64(profile.packet_in.buffer_life_us / 1e6);
            buffers = buffers.with_life(life.saturating_mul(options.slow_motion.max(1)));
        }
        let seed = options.seed.wrapping_add(datapath_id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let profiled =
            profile.map(|profile| Box::new(Profiled::new(&profile, tables.len(), seed, options.slow_motion)));
        Switch {
            datapath_id,
            name,
            ports: BTreeMap::new(),
            pipeline: PipelineTables::new(tables.len(), options.max_entries),
            tables,
            groups: Groups::default(),
            meters: Meters::default(),
            buffers,
            sessions: Vec::new(),
            sessions_begun: 0,
            versions_spoken: 0,
            addresses: AddressTable::default(),
            fragments: fragment::NORMAL,
            generation_id: None,
            counters: SwitchCounters::default(),
            copies_left: 0,
            spare_set: ActionSet::default(),
            profiled,
            options,
        }
    }

    /// Its datapath id.
    pub fn datapath_id(&self) -> DatapathId {
        self.datapath_id
    }

    /// Its name. The names of its ports begin with it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version agreed on with a controller, or `None` if that controller is not connected.
    pub fn version(&self, controller: ControllerId) -> Option<Version> {
        self.sessions.get(controller.0)?.version()
    }

    /// The controller's present connection.
    fn session_id(&self, controller: ControllerId) -> SessionId {
        SessionId { controller, serial: self.sessions.get(controller.0).map_or(0, |session| session.serial) }
    }

    /// The version agreed on in a connection, or `None` if it has ended.
    fn version_in(&self, session: SessionId) -> Option<Version> {
        self.version(session.controller).filter(|_| self.session_id(session.controller) == session)
    }

    /// Whether a controller has sent a features request, which every controller does first.
    pub fn is_known(&self, controller: ControllerId) -> bool {
        self.sessions.get(controller.0).is_some_and(|session| session.features_asked)
    }

    /// Whether it has agreed on a version with any controller.
    pub fn is_connected(&self) -> bool {
        self.sessions.iter().any(|session| session.version().is_some())
    }

    /// What it has counted since it was made.
    pub fn counters(&self) -> SwitchCounters {
        self.counters
    }

    /// Whether it plays a profile, so that frames and messages have effects later.
    pub fn plays_profile(&self) -> bool {
        self.profiled.is_some()
    }

    /// Whether it takes further messages of controllers. A switch whose CPU is far behind does not read its connections, and the caller
    /// of such a switch waits until time has passed. If the caller does not, messages may be lost ([`SwitchCounters::messages_lost`]).
    pub fn takes_messages(&self) -> bool {
        self.profiled.as_ref().is_none_or(|profiled| profiled.takes_messages())
    }

    /// The number of flow entries in all tables.
    pub fn flow_count(&self) -> usize {
        self.tables.iter().map(|table| table.len()).sum()
    }

    /// Adds a port with a link and sends a port status. The port's Ethernet address is made from the datapath id and
    /// the port number.
    pub fn add_port(&mut self, number: PortNo, now: Duration, effects: &mut Effects) {
        let address = MacAddr::from_u64(
            0x0200_0000_0000 | (self.datapath_id.0 & 0xff_ffff) << 16 | u64::from(number.0 & 0xffff),
        );
        self.add_named_port(number, address, format!("{}-eth{number}", self.name), now, effects);
    }

    /// Adds a port that already has an address and a name.
    pub fn add_named_port(
        &mut self,
        number: PortNo,
        address: MacAddr,
        name: String,
        now: Duration,
        effects: &mut Effects,
    ) {
        self.ports.insert(number, SwitchPort::new(number, address, name, now));
        self.tell_port_status(PORT_ADDED, number, effects);
    }

    /// Sets the state of a port's link. If it changed, sends a port status.
    pub fn set_link(&mut self, number: PortNo, up: bool, effects: &mut Effects) {
        if self.ports.get_mut(&number).is_some_and(|port| port.set_link(up)) {
            self.tell_port_status(PORT_MODIFIED, number, effects);
        }
    }

    /// Sets the speed of a port's link; without one, the port has 10 Gbit/s. If it changed, sends a port status.
    pub fn set_speed(&mut self, number: PortNo, kbps: Option<u32>, effects: &mut Effects) {
        if self.ports.get_mut(&number).is_some_and(|port| port.set_speed(kbps)) {
            self.tell_port_status(PORT_MODIFIED, number, effects);
        }
    }

    /// Removes a port from the spanning tree, so that nothing is flooded out of it, or adds it again. If the port's
    /// state changed, sends a port status.
    pub fn set_blocked(&mut self, number: PortNo, blocked: bool, effects: &mut Effects) {
        if self.ports.get_mut(&number).is_some_and(|port| port.set_blocked(blocked)) {
            self.tell_port_status(PORT_MODIFIED, number, effects);
        }
    }

    /// Whether a port is not on the spanning tree.
    pub fn is_blocked(&self, number: PortNo) -> bool {
        self.ports.get(&number).is_some_and(SwitchPort::is_blocked)
    }

    /// Its state, for an overview of all switches.
    pub fn view(&self) -> SwitchView {
        SwitchView {
            name: self.name.clone(),
            connected: self.sessions.iter().any(|session| session.version().is_some()),
            flow_entries: self.flow_count(),
            ports: self.ports.iter().map(|(number, port)| (*number, port.is_live())).collect(),
        }
    }

    fn tell_port_status(&mut self, reason: u8, number: PortNo, effects: &mut Effects) {
        let Some(port) = self.ports.get(&number) else { return };
        self.tell(effects, |session, version| {
            let port = || port.describe(version);
            session.hears_port_status(reason).then(|| Body::PortStatus(PortStatus { reason, port: port() }))
        });
    }

    /// Sends each controller a message about an event, in the controller's own version, if the controller wants it.
    fn tell(&self, effects: &mut Effects, what: impl Fn(&Session, Version) -> Option<Body>) {
        for (index, session) in self.sessions.iter().enumerate() {
            if let Some(version) = session.version()
                && let Some(body) = what(session, version)
            {
                effects.messages.push((ControllerId(index), Message { version, xid: 0, body }));
            }
        }
    }

    /// A connection to a controller is open: sends a hello.
    pub fn on_connected(&mut self, controller: ControllerId, effects: &mut Effects) {
        if self.sessions.len() <= controller.0 {
            self.sessions.resize(controller.0 + 1, Session::closed());
        }
        self.drop_messages_of(controller);
        self.sessions_begun += 1;
        let serial = self.sessions_begun;
        self.sessions[controller.0] = Session { state: State::AwaitsHello, serial, ..Session::closed() };
        if let Some(profiled) = &self.profiled {
            self.sessions[controller.0].miss_send_len = profiled.miss_send_bytes();
        }
        let versions = self.options.versions;
        let body = Body::Hello(versions.hello());
        effects.messages.push((controller, Message { version: versions.highest(), xid: 0, body }));
    }

    /// A connection to a controller has ended. Groups and buffered packets stay. After the last connection, a
    /// fail-secure switch keeps its rules and drops packets that match none. A fail-standalone switch deletes its
    /// rules (1.3.5, 6.3.2). Of a switch with a profile, messages of this connection that wait for its CPU are gone.
    pub fn on_disconnected(&mut self, controller: ControllerId) {
        self.drop_messages_of(controller);
        let Some(session) = self.sessions.get_mut(controller.0) else { return };
        let was_connected = std::mem::replace(session, Session::closed()).version().is_some();
        if was_connected && self.stands_alone() {
            self.tables = FlowTables::new(self.tables.len());
            if let Some(profiled) = &mut self.profiled {
                **profiled = profiled.blank();
            }
        }
    }

    /// Processes a frame that a port received.
    pub fn on_frame(&mut self, in_port: PortNo, frame: Vec<u8>, now: Duration, effects: &mut Effects) {
        self.counters.frames_in += 1;
        let Some(port) = self.ports.get_mut(&in_port) else { return };
        let unwanted = self.fragments == fragment::DROP && fragment::is_one(&frame);
        if !port.receives() || unwanted {
            port.rx_dropped += 1;
        } else if frame.len() < ETHERNET_HEADER_BYTES {
            port.rx_errors += 1;
        } else {
            port.rx_packets += 1;
            port.rx_bytes += frame.len() as u64;
            self.copies_left = COPIES_MAX;
            if self.stands_alone() {
                return self.switch_by_address(in_port, frame, now, effects);
            }
            self.forward(Packet::new(frame, in_port), now, effects);
        }
    }

    /// The earliest time at which a rule or an open bundle may expire, if any can. A packet that matches the rule until
    /// then may extend it.
    pub fn next_due(&self) -> Option<Duration> {
        if let Some(profiled) = &self.profiled {
            return profiled.model.next_due_ns().map(Duration::from_nanos);
        }
        let rules = self.tables.iter().filter_map(FlowTable::next_due);
        rules.chain(self.sessions.iter().filter_map(|session| session.bundles.next_due())).min()
    }

    /// Time has passed: removes the expired rules, and bundles that were never committed.
    pub fn on_tick(&mut self, now: Duration, effects: &mut Effects) {
        if self.profiled.is_some() {
            return self.run_model(now, effects);
        }
        self.expire_bundles(now, effects);
        for table_id in 0..self.tables.len() {
            if !self.tables[table_id].has_due(now) {
                continue;
            }
            for (entry, reason) in self.tables.change(table_id).expire(now) {
                self.tell_removed(table_id, &entry, reason, now, effects);
            }
        }
    }
}
