//! Processes each message of a controller.
//!
//! In: a message. Out: the answer and the effects of the message, or the error with the reason.

use flow::{ErrorCode, PortNo};
use openflow::message::*;
use openflow::{Body, HEADER_LEN, MAX_MESSAGE_LEN, Message, Version};
use std::time::Duration;

use super::packet_in::Origin;
use super::validate::ActionContext;
use super::{COPIES_MAX, Effects, Switch};
use crate::fragment;
use crate::frame::ETHERNET_HEADER_BYTES;
use crate::packet::Packet;
use crate::refusal::Refusal;
use crate::session::{Asker, ControllerId, Parting, State};

/// How many bytes of a refused message the error repeats: as many as fit into one message. The specification requires
/// at least 64 bytes (1.3.5, 7.5.4). Open vSwitch also sends as much as fits.
const ERROR_DATA_BYTES: usize = MAX_MESSAGE_LEN - HEADER_LEN - 4;

/// Bits of `ofp_capabilities` in 1.0: flow, table and port statistics, and matching on addresses in ARP.
const CAPABILITIES_V10: u32 = 0x87;
/// Bits of `ofp_capabilities` in 1.3: flow, table, port and group statistics.
const CAPABILITIES_V13: u32 = 0x0f;
/// 1.0: every action from OUTPUT to ENQUEUE.
const ACTIONS_V10: u32 = 0xfff;

/// A message, and its original bytes if it was received as bytes.
#[derive(Clone, Copy)]
pub(super) struct Heard<'a> {
    pub(super) message: &'a Message,
    pub(super) bytes: Option<&'a [u8]>,
}

impl Switch {
    /// Processes a controller's message that is not given as bytes.
    pub fn on_message(
        &mut self,
        controller: ControllerId,
        message: &Message,
        now: Duration,
        effects: &mut Effects,
    ) {
        self.hear(controller, Heard { message, bytes: None }, now, effects);
    }

    /// Processes a controller's message with its original bytes. An error repeats these bytes.
    pub fn on_received(
        &mut self,
        controller: ControllerId,
        message: &Message,
        bytes: &[u8],
        now: Duration,
        effects: &mut Effects,
    ) {
        self.hear(controller, Heard { message, bytes: Some(bytes) }, now, effects);
    }

    fn hear(&mut self, controller: ControllerId, heard: Heard<'_>, now: Duration, effects: &mut Effects) {
        let message = heard.message;
        let Some(session) = self.sessions.get(controller.0) else { return };
        match session.state {
            State::Closed => {}
            State::AwaitsHello => self.first_message(controller, message, effects),
            State::Open(version) => {
                let asker = Asker { controller, version, xid: message.xid };
                match self.profiled {
                    None => _ = self.obey(asker, heard, now, effects),
                    Some(_) => self.hear_modelled(asker, heard, now, effects),
                }
            }
        }
    }

    /// Carries a message out, or answers with an error. Returns whether it carried it out.
    pub(super) fn obey(
        &mut self,
        asker: Asker,
        heard: Heard<'_>,
        now: Duration,
        effects: &mut Effects,
    ) -> bool {
        let (message, version) = (heard.message, asker.version);
        let result = if message.version == version {
            self.act(heard, asker, now, effects)
        } else if matches!(message.body, Body::Hello(_)) {
            Ok(())
        } else {
            Err(Refusal::BadVersion)
        };
        if let Err(refusal) = result {
            let (kind, code) = refusal.codes(version);
            self.send_error(asker, kind, code, heard.beginning(), effects);
            return false;
        }
        true
    }

    /// Answers bytes that could not be decoded with the error that decoding returned. `beginning` is the start of the
    /// bytes.
    pub fn on_bad_input(
        &mut self,
        controller: ControllerId,
        xid: u32,
        error: ErrorCode,
        beginning: &[u8],
        effects: &mut Effects,
    ) {
        let version = self.version(controller).unwrap_or(self.options.versions.highest());
        let data = beginning[..beginning.len().min(ERROR_DATA_BYTES)].to_vec();
        let ErrorCode { kind, code } = openflow::error::to_version(error, version);
        self.send_error(Asker { controller, version, xid }, kind, code, data, effects);
    }

    /// The first message must be a hello, with which both sides agree on a version (1.3.5, 6.3.1).
    fn first_message(&mut self, controller: ControllerId, message: &Message, effects: &mut Effects) {
        let Body::Hello(theirs) = &message.body else {
            effects.close.push((controller, Parting::NoHello));
            return;
        };
        let versions = self.options.versions;
        match versions.agree(message.version, theirs) {
            Some(version) => self.open(controller, version),
            None => {
                let asker = Asker { controller, version: versions.highest(), xid: message.xid };
                let text =
                    format!("this switch speaks {versions}, the controller's hello said {}", message.version);
                let ErrorCode { kind, code } = openflow::error::HELLO_INCOMPATIBLE;
                self.send_error(asker, kind, code, text.into_bytes(), effects);
                effects.close.push((controller, Parting::NoVersion));
            }
        }
    }

    /// Opens a session with a controller. The switch ends what it did on its own.
    fn open(&mut self, controller: ControllerId, version: Version) {
        self.sessions[controller.0].state = State::Open(version);
        self.versions_spoken |= 1u32.checked_shl(version.0.into()).unwrap_or(0);
        self.addresses.clear();
    }

    fn act(
        &mut self,
        heard: Heard<'_>,
        asker: Asker,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let message = heard.message;
        let Asker { controller, version, .. } = asker;
        let session = &mut self.sessions[controller.0];
        if session.role == ROLE_SLAVE && changes_the_switch(&message.body) {
            return Err(Refusal::IsSlave);
        }
        let answer = match &message.body {
            Body::Hello(_) | Body::Error(_) | Body::EchoReply(_) => return Ok(()),
            Body::EchoRequest(payload) => Body::EchoReply(payload.clone()),
            Body::FeaturesRequest => {
                session.features_asked = true;
                Body::FeaturesReply(self.features(version))
            }
            Body::GetConfigRequest => {
                let miss_send_len = session.miss_send_len;
                Body::GetConfigReply(SwitchConfig { flags: self.fragments, miss_send_len })
            }
            Body::SetConfig(config) => return self.set_config(*config, asker),
            Body::PacketOut(packet_out) => return self.packet_out(packet_out, now, effects),
            Body::FlowMod(flow_mod) => {
                return match heard.ranked(flow_mod) {
                    Some(ranked) => self.flow_mod(&ranked, version, now, effects),
                    None => self.flow_mod(flow_mod, version, now, effects),
                };
            }
            Body::GroupMod(group_mod) => return self.group_mod(group_mod, now, effects),
            Body::PortMod(port_mod) => return self.port_mod(port_mod, version, effects),
            Body::TableMod(table_mod) => return self.table_mod(table_mod),
            Body::MeterMod(meter_mod) => return self.meter_mod(meter_mod, now, effects),
            Body::MultipartRequest(request) => return self.multipart(asker, request, now, effects),
            // The switch processes messages in order, so all earlier ones are done.
            Body::BarrierRequest => Body::BarrierReply,
            Body::QueueGetConfigRequest(request) => {
                Body::QueueGetConfigReply(self.queues(request.port, version)?)
            }
            Body::RoleRequest(role) => Body::RoleReply(self.change_role(controller, *role)?),
            Body::GetAsyncRequest => Body::GetAsyncReply(session.asynchronous),
            Body::SetAsync(wanted) => {
                session.asynchronous = *wanted;
                return Ok(());
            }
            Body::BundleControl(control) if self.options.bundles => {
                self.bundle_control(control, message, asker, now, effects)?
            }
            Body::BundleAdd(add) if self.options.bundles => return self.bundle_add(add, message, asker, now),
            Body::Experimenter(_) | Body::BundleControl(_) | Body::BundleAdd(_) => {
                return Err(Refusal::BadExperimenter);
            }
            _ => return Err(Refusal::BadType),
        };
        effects.messages.push(asker.answer(answer));
        Ok(())
    }

    pub(super) fn send_error(
        &mut self,
        asker: Asker,
        kind: u16,
        code: u16,
        mut data: Vec<u8>,
        effects: &mut Effects,
    ) {
        self.counters.errors += 1;
        let is_full = (kind, code) == Refusal::TableFull.codes(asker.version);
        self.counters.rules_refused += u64::from(is_full);
        let experimenter = openflow::error::experimenter_of(ErrorCode { kind, code });
        // The experimenter's number takes four bytes more.
        data.truncate(ERROR_DATA_BYTES - if experimenter.is_some() { 4 } else { 0 });
        let body = Body::Error(ErrorMessage { kind, code, experimenter, data });
        effects.messages.push(asker.answer(body));
    }

    /// Refuses a message of a bundle.
    pub(super) fn refuse_bundled(
        &mut self,
        message: &Message,
        refusal: Refusal,
        asker: Asker,
        effects: &mut Effects,
    ) {
        let (kind, code) = refusal.codes(asker.version);
        let beginning = Heard { message, bytes: None }.beginning();
        self.send_error(Asker { xid: message.xid, ..asker }, kind, code, beginning, effects);
    }

    fn features(&self, version: Version) -> FeaturesReply {
        let v10 = version == Version::V1_0;
        FeaturesReply {
            datapath_id: self.datapath_id,
            n_buffers: self.buffers.count(),
            n_tables: if v10 { 1 } else { self.tables.len() as u8 },
            auxiliary_id: 0,
            capabilities: if v10 { CAPABILITIES_V10 } else { CAPABILITIES_V13 },
            actions: if v10 { ACTIONS_V10 } else { 0 },
            ports: if v10 { self.describe_ports(version) } else { Vec::new() },
        }
    }

    pub(super) fn describe_ports(&self, version: Version) -> Vec<Port> {
        self.ports.values().map(|port| port.describe(version)).collect()
    }

    /// The handling of fragments is a setting of the switch; the length of a packet-in is a setting of each
    /// controller. 1.0 has no error for "fragments are not reassembled", so the setting then stays unchanged.
    fn set_config(&mut self, wanted: SwitchConfig, asker: Asker) -> Result<(), Refusal> {
        match wanted.flags {
            fragment::NORMAL | fragment::DROP => self.fragments = wanted.flags,
            _ if asker.version == Version::V1_0 => {}
            _ => return Err(Refusal::SwitchConfigFlags),
        }
        self.sessions[asker.controller.0].miss_send_len = wanted.miss_send_len;
        Ok(())
    }

    fn packet_out(
        &mut self,
        wanted: &PacketOut,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        self.counters.packet_outs += 1;
        if !can_come_from(wanted.in_port) {
            return Err(Refusal::BadPort);
        }
        self.check_actions(&wanted.actions, ActionContext::PacketOut)?;
        let frame = match wanted.buffer_id {
            NO_BUFFER => wanted.data.clone(),
            buffer_id => self.buffers.take(buffer_id, now)?.frame,
        };
        if frame.len() < ETHERNET_HEADER_BYTES {
            return Err(Refusal::BadPacket);
        }
        self.copies_left = COPIES_MAX;
        let mut packet = Packet::new(frame, wanted.in_port);
        let _ = self.carry_out(&wanted.actions, &mut packet, Origin::PACKET_OUT, now, effects);
        Ok(())
    }

    pub(super) fn port_mod(
        &mut self,
        wanted: &PortMod,
        version: Version,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let port = self.ports.get_mut(&wanted.port_no).ok_or(Refusal::PortModPort)?;
        if port.modify(wanted, version)? {
            self.tell_port_status(PORT_MODIFIED, wanted.port_no, effects);
        }
        Ok(())
    }

    /// The configuration of a table is deprecated in 1.3 and has no bits to set (1.3.5, 7.3.3).
    fn table_mod(&self, wanted: &TableMod) -> Result<(), Refusal> {
        let there = wanted.table_id == TABLE_ALL || self.pipeline.has(wanted.table_id);
        match (there, wanted.config) {
            (false, _) => Err(Refusal::TableModTable),
            (true, 0) => Ok(()),
            (true, _) => Err(Refusal::TableModConfig),
        }
    }

    /// No port has queues. In 1.0 the request names one port (1.0, 5.3.4).
    fn queues(&self, port: PortNo, version: Version) -> Result<QueueGetConfigReply, Refusal> {
        let all = port == PortNo::ANY && version != Version::V1_0;
        let there = all || self.ports.contains_key(&port);
        if there { Ok(QueueGetConfigReply { port, queues: Vec::new() }) } else { Err(Refusal::QueuePort) }
    }

    /// Changes a controller's role (1.3.5, 6.3.5). A request with an older generation id than the latest is stale. A
    /// new master makes the old one a slave, without a message to it.
    fn change_role(&mut self, controller: ControllerId, wanted: Role) -> Result<Role, Refusal> {
        let mut role = self.sessions[controller.0].role;
        match wanted.role {
            ROLE_NOCHANGE => {}
            ROLE_EQUAL => role = ROLE_EQUAL,
            ROLE_MASTER | ROLE_SLAVE => {
                let is_stale = |latest: u64| (wanted.generation_id.wrapping_sub(latest) as i64) < 0;
                if self.generation_id.is_some_and(is_stale) {
                    return Err(Refusal::RoleStale);
                }
                self.generation_id = Some(wanted.generation_id);
                role = wanted.role;
            }
            _ => return Err(Refusal::RoleBad),
        }
        if wanted.role == ROLE_MASTER {
            let masters = self.sessions.iter_mut().filter(|session| session.role == ROLE_MASTER);
            masters.for_each(|session| session.role = ROLE_SLAVE);
        }
        self.sessions[controller.0].role = role;
        Ok(Role { role, generation_id: self.generation_id.unwrap_or(u64::MAX) })
    }
}

/// Whether a packet-out may name this port as its ingress port: any port number, even of no port here, or the
/// controller. OpenFlow 1.0's NONE is allowed too, and ANY, which Open vSwitch's 1.3 controllers send. Some
/// controllers send 0, which is not a port number.
fn can_come_from(port: PortNo) -> bool {
    let is_port = port.0 <= PortNo::MAX.0;
    is_port || matches!(port, PortNo::CONTROLLER | PortNo::LOCAL | PortNo::ANY)
}

/// Whether a slave may not send this message (1.3.5, 6.3.5).
fn changes_the_switch(body: &Body) -> bool {
    match body {
        Body::PacketOut(_)
        | Body::FlowMod(_)
        | Body::GroupMod(_)
        | Body::PortMod(_)
        | Body::TableMod(_)
        | Body::MeterMod(_)
        | Body::BundleControl(_)
        | Body::BundleAdd(_) => true,
        Body::MultipartRequest(request) => {
            matches!(&request.body, RequestBody::TableFeatures(tables) if !tables.is_empty())
        }
        _ => false,
    }
}

impl Heard<'_> {
    /// The bytes that an error repeats: what the sender wrote, or would have written.
    pub(super) fn beginning(self) -> Vec<u8> {
        let mut written = Vec::new();
        let bytes = match self.bytes {
            Some(bytes) => bytes,
            None if self.message.encode(&mut written).is_ok() => &written,
            None => &[],
        };
        bytes[..bytes.len().min(ERROR_DATA_BYTES)].to_vec()
    }

    /// The flow mod with the highest priority, if it is of 1.0 and its match is exact (1.0, 3.4 and 5.3.3). One that came as bytes has it already.
    pub(super) fn ranked(self, wanted: &FlowMod) -> Option<FlowMod> {
        let is_ranked = self.message.version == Version::V1_0 && flow::is_exact_in_v10(&wanted.matching);
        is_ranked.then(|| FlowMod { priority: flow::EXACT_PRIORITY_V10, ..wanted.clone() })
    }
}
