//! Messages of controllers: who may say what, and the answers that need no physical switch.
//!
//! ```text
//!   bytes of one message ──> hello, version, role, limit ──> the part that carries it out, or an error with its beginning
//! ```
//!
//! In: connections and messages. Out: answers, and ends of connections. It holds no socket.

use crate::buffers::BUFFERS_MAX;
use crate::controller::OFFERED;
use crate::controller::{Asker, Controller, State, agree, offer_of};
use crate::floor::{Floor, floor_mod};
use crate::held;
use crate::output::{Command, LimitKind};
use crate::pending::Asked;
use crate::refusal::*;
use crate::rules::Wish;
use crate::virtual_switch::{Obeyed, Turn, VirtualSwitch};
use flow::{Match, PortNo};
use openflow::message::*;
use openflow::{Body, Header, Message, Version};

/// Malformed messages of one connection. With one more it ends: the controller does not speak OpenFlow.
const MALFORMED_MAX: u32 = 64;
/// Bits of `ofp_capabilities` in 1.0: flow, table and port statistics, matching on addresses in ARP.
const CAPABILITIES_V10: u32 = 0x87;
/// Bits of `ofp_capabilities` in 1.3: flow, table and port statistics.
const CAPABILITIES_V13: u32 = 0x07;
/// 1.0: every action from OUTPUT to ENQUEUE.
const ACTIONS_V10: u32 = 0xfff;
/// OFPC_FRAG_NORMAL.
const FRAG_NORMAL: u16 = 0;

impl VirtualSwitch {
    /// A connection stands: the switch says hello. While the physical switch is away, there is no virtual one.
    pub(crate) fn on_controller_up(&mut self, controller: usize, turn: &mut Turn<'_>) {
        let Some(it) = self.controllers.get_mut(controller) else { return };
        *it = Controller { state: State::AwaitsHello, ..Controller::closed(it.serial + 1) };
        if self.physical.is_none() {
            return self.end(controller, format!("switch {} is not connected", self.datapath), turn);
        }
        let hello = Hello { elements: vec![HelloElement::VersionBitmap(vec![OFFERED])] };
        self.tell(controller, &Message { version: Version::V1_3, xid: 0, body: Body::Hello(hello) }, turn);
    }

    /// A connection ended.
    pub(crate) fn on_controller_down(&mut self, controller: usize, turn: &mut Turn<'_>) {
        let Some(it) = self.controllers.get_mut(controller) else { return };
        *it = Controller::closed(it.serial + 1);
        self.change_floor(turn);
    }

    /// A controller sent one whole message.
    pub(crate) fn on_message(&mut self, controller: usize, bytes: &[u8], turn: &mut Turn<'_>) {
        let Some(it) = self.controllers.get(controller) else { return };
        let (state, serial) = (it.state, it.serial);
        let message = Message::decode(bytes);
        match (state, message) {
            (State::Closed, _) => {}
            (State::AwaitsHello, Ok(Message { version, xid, body: Body::Hello(hello) })) => {
                self.on_hello(controller, version, xid, &hello, turn);
            }
            (State::AwaitsHello, _) => {
                self.end(controller, "the controller's first message was no hello", turn);
            }
            (State::Open(version), Ok(message)) => {
                let asker = Asker { controller, serial, version, xid: message.xid };
                let obeyed = self.obey(asker, message, bytes, turn);
                if let Err(refusal) = obeyed {
                    self.refuse(asker, refusal.error, bytes, turn);
                }
            }
            (State::Open(version), Err(bad)) => {
                let xid = Header::read(bytes).map_or(0, |header| header.xid);
                self.on_malformed(Asker { controller, serial, version, xid }, bad.error, bytes, turn);
            }
        }
    }

    /// The controller's hello (1.3.5, 6.3.1).
    fn on_hello(&mut self, controller: usize, header: Version, xid: u32, hello: &Hello, turn: &mut Turn<'_>) {
        if let Some(version) = agree(header, hello) {
            self.controllers[controller].state = State::Open(version);
            // A controller of 1.3 misses nothing without its floor. One of 1.0 would not receive packets that hit no rule.
            if !self.change_floor(turn) && version == Version::V1_0 {
                let why = format!("the slice is above its limit {}", LimitKind::FlowMods);
                self.end(controller, why, turn);
            }
            return;
        }
        let offer = offer_of(header, hello);
        let why = format!("the controller offers OpenFlow {offer}; a slice speaks 1.0 and 1.3");
        let flow::ErrorCode { kind, code } = openflow::error::HELLO_INCOMPATIBLE;
        let error = ErrorMessage { kind, code, experimenter: None, data: why.clone().into_bytes() };
        self.tell(controller, &Message { version: Version::V1_3, xid, body: Body::Error(error) }, turn);
        self.end(controller, why, turn);
    }

    fn on_malformed(&mut self, asker: Asker, error: flow::ErrorCode, bytes: &[u8], turn: &mut Turn<'_>) {
        self.refuse(asker, error, bytes, turn);
        let Some(it) = self.controllers.get_mut(asker.controller) else { return };
        it.malformed += 1;
        if it.malformed > MALFORMED_MAX {
            let why = format!("the controller sent more than {MALFORMED_MAX} malformed messages");
            self.end(asker.controller, why, turn);
            self.change_floor(turn);
        }
    }

    /// Carries a message out.
    fn obey(&mut self, asker: Asker, message: Message, bytes: &[u8], turn: &mut Turn<'_>) -> Obeyed {
        if message.version != asker.version {
            let is_hello = matches!(message.body, Body::Hello(_));
            let why = "the message has another version than its connection";
            return if is_hello { Ok(()) } else { Err(Refusal::new(BAD_VERSION, why)) };
        }
        let has_to_wait = self.claims > 0 || self.recall.is_open();
        if has_to_wait && waits(&message.body) || self.recall.is_open() && waits_for_recall(&message.body) {
            let held =
                held::Message { controller: asker.controller, serial: asker.serial, bytes: bytes.to_vec() };
            let why = "too many messages wait for a group or meter";
            return if self.held.keep(held) { Ok(()) } else { Err(Refusal::new(REQUEST_EPERM, why)) };
        }
        self.check_right(asker, &message.body)?;
        self.check_limit(&message.body, turn)?;
        match message.body {
            Body::FlowMod(flow_mod) => {
                let wish = Wish { asker, bytes, flow_mod };
                self.on_flow_mod(&wish, turn)?;
                self.release(&wish, turn)
            }
            Body::PacketOut(packet_out) => self.on_packet_out(asker, packet_out, bytes, turn),
            Body::GroupMod(group_mod) => self.on_group_mod(asker, &group_mod, bytes, turn),
            Body::MeterMod(meter_mod) => self.on_meter_mod(asker, &meter_mod, bytes, turn),
            Body::PortMod(port_mod) => self.on_port_mod(asker, &port_mod, turn),
            Body::MultipartRequest(request) => self.on_statistics_request(asker, request, bytes, turn),
            Body::BarrierRequest => self.on_barrier(asker, turn),
            Body::SetConfig(config) => self.set_config(asker, config),
            Body::TableMod(wanted) => check_table_mod(wanted),
            Body::SetAsync(wanted) => {
                self.controllers[asker.controller].wanted = wanted;
                Ok(())
            }
            Body::Hello(_) | Body::Error(_) | Body::EchoReply(_) => Ok(()),
            other => {
                let answer = self.answer_to(asker, other)?;
                self.answer(asker, answer, turn);
                Ok(())
            }
        }
    }

    /// The answer to a question that the virtual switch answers itself.
    fn answer_to(&mut self, asker: Asker, body: Body) -> Result<Body, Refusal> {
        let controller = &self.controllers[asker.controller];
        Ok(match body {
            Body::EchoRequest(payload) => Body::EchoReply(payload),
            Body::FeaturesRequest => Body::FeaturesReply(self.features(asker.version)),
            Body::GetConfigRequest => Body::GetConfigReply(SwitchConfig {
                flags: FRAG_NORMAL,
                miss_send_len: controller.miss_send_len,
            }),
            Body::GetAsyncRequest => Body::GetAsyncReply(controller.wanted),
            Body::RoleRequest(role) => Body::RoleReply(self.change_role(asker.controller, role)?),
            Body::QueueGetConfigRequest(request) => {
                let is_all = request.port == PortNo::ANY && asker.version != Version::V1_0;
                let is_there = self.space.port(request.port).is_some_and(|port| port.facts.is_some());
                if !is_all && !is_there {
                    return Err(Refusal::new(
                        QUEUE_PORT,
                        format!("port {} is not in the slice", request.port),
                    ));
                }
                Body::QueueGetConfigReply(QueueGetConfigReply { port: request.port, queues: Vec::new() })
            }
            Body::Experimenter(message) => self.answer_experimenter(asker, &message)?,
            Body::BundleControl(_) | Body::BundleAdd(_) => {
                return Err(Refusal::new(BAD_EXPERIMENTER, "a slice knows no experimenter's messages"));
            }
            _ => return Err(Refusal::new(BAD_TYPE, "a switch does not take such a message")),
        })
    }

    /// A slave and an observer change nothing.
    fn check_right(&self, asker: Asker, body: &Body) -> Obeyed {
        let changes = matches!(
            body,
            Body::FlowMod(_) | Body::PacketOut(_) | Body::GroupMod(_) | Body::PortMod(_) | Body::MeterMod(_)
        ) || matches!(body, Body::TableMod(_));
        if changes && self.controllers[asker.controller].role == ROLE_SLAVE {
            return Err(Refusal::new(IS_SLAVE, "a slave changes nothing"));
        }
        if changes && self.is_read_only {
            let error = if matches!(body, Body::FlowMod(_)) { FLOW_MOD_EPERM } else { REQUEST_EPERM };
            return Err(Refusal::new(error, "this slice only observes"));
        }
        Ok(())
    }

    fn check_limit(&mut self, body: &Body, turn: &mut Turn<'_>) -> Obeyed {
        let (limit, error) = match body {
            Body::FlowMod(_) => (LimitKind::FlowMods, FLOW_MOD_EPERM),
            Body::GroupMod(_) | Body::MeterMod(_) | Body::PortMod(_) => (LimitKind::FlowMods, REQUEST_EPERM),
            Body::PacketOut(_) => (LimitKind::PacketOuts, REQUEST_EPERM),
            Body::MultipartRequest(_) => (LimitKind::Statistics, REQUEST_EPERM),
            _ => return Ok(()),
        };
        if self.take(limit, turn) {
            return Ok(());
        }
        Err(Refusal::new(error, format!("the slice is above its limit {limit}")))
    }

    fn features(&self, version: Version) -> FeaturesReply {
        let is_v10 = version == Version::V1_0;
        FeaturesReply {
            datapath_id: self.shown_as,
            n_buffers: BUFFERS_MAX as u32,
            n_tables: 1,
            auxiliary_id: 0,
            capabilities: if is_v10 { CAPABILITIES_V10 } else { CAPABILITIES_V13 },
            actions: if is_v10 { ACTIONS_V10 } else { 0 },
            ports: if is_v10 { self.describe_ports(version) } else { Vec::new() },
        }
    }

    /// The ports that there are now.
    pub(crate) fn describe_ports(&self, version: Version) -> Vec<Port> {
        self.space.ports().filter_map(|port| port.describe(version)).collect()
    }

    /// Fragments are handled as the physical switch does. 1.0 has no error for another wish, which then has no effect.
    fn set_config(&mut self, asker: Asker, wanted: SwitchConfig) -> Obeyed {
        if wanted.flags != FRAG_NORMAL && asker.version != Version::V1_0 {
            return Err(Refusal::new(SWITCH_CONFIG_FLAGS, "a slice cannot change how fragments are handled"));
        }
        self.controllers[asker.controller].miss_send_len = wanted.miss_send_len;
        Ok(())
    }

    /// A new master makes the old one a slave. An older generation id than the latest is stale (1.3.5, 6.3.5).
    fn change_role(&mut self, controller: usize, wanted: Role) -> Result<Role, Refusal> {
        let mut role = self.controllers[controller].role;
        match wanted.role {
            ROLE_NOCHANGE => {}
            ROLE_EQUAL => role = ROLE_EQUAL,
            ROLE_MASTER | ROLE_SLAVE => {
                let is_stale = |latest: u64| wanted.generation_id.wrapping_sub(latest).cast_signed() < 0;
                if self.generation_id.is_some_and(is_stale) {
                    return Err(Refusal::new(ROLE_STALE, "the generation id is older than the latest"));
                }
                if self.generation_id.replace(wanted.generation_id) != Some(wanted.generation_id) {
                    self.unsaved.generation.note(());
                }
                role = wanted.role;
            }
            other => return Err(Refusal::new(ROLE_BAD, format!("there is no role {other}"))),
        }
        if role == ROLE_MASTER {
            let others = self.controllers.iter_mut().enumerate().filter(|(it, _)| *it != controller);
            let masters = others.filter(|(_, it)| it.role == ROLE_MASTER);
            masters.for_each(|(_, it)| it.role = ROLE_SLAVE);
        }
        self.controllers[controller].role = role;
        let generation_id = self.generation_id.unwrap_or(u64::MAX);
        Ok(Role { role, generation_id })
    }

    /// The reply comes when the physical switch has carried out all commands before.
    fn on_barrier(&mut self, asker: Asker, turn: &mut Turn<'_>) -> Obeyed {
        if !self.pending.has_room() {
            return Err(Refusal::new(
                REQUEST_EPERM,
                "too many barriers and statistics requests are on their way",
            ));
        }
        self.order(Command::Barrier, Some(Asked::Barrier(asker)), turn);
        Ok(())
    }

    fn wanted_floor(&self) -> Floor {
        Floor::wanted(self.open().map(|(_, _, version)| version), self.on())
    }

    /// Lays the floor that the controllers need now. A change counts as a flow mod. Returns false if the slice is above its limit: then the
    /// old floor stays until the controllers change again.
    fn change_floor(&mut self, turn: &mut Turn<'_>) -> bool {
        let is_due = self.may_have_floor() && self.wanted_floor() != self.floor;
        if is_due && !self.take(LimitKind::FlowMods, turn) {
            return false;
        }
        self.lay_floor(turn);
        true
    }

    fn may_have_floor(&self) -> bool {
        self.physical.is_some() && !self.is_withdrawn
    }

    /// Lays the floor that the controllers need now.
    pub(crate) fn lay_floor(&mut self, turn: &mut Turn<'_>) {
        let wanted = self.wanted_floor();
        if !self.may_have_floor() || wanted == self.floor {
            return;
        }
        self.floor = wanted;
        let matches: Vec<Match> = self.space.entries().iter().map(|piece| piece.matching.clone()).collect();
        for matching in matches {
            self.order(Command::FlowMod(floor_mod(wanted, matching)), None, turn);
        }
    }
}

/// 1.3 has no bits for a table's configuration (1.3.5, 7.3.3), so a table mod changes nothing.
fn check_table_mod(wanted: TableMod) -> Obeyed {
    if !matches!(wanted.table_id, 0 | TABLE_ALL) {
        let why = format!("the switch of a slice has no table {}", wanted.table_id);
        return Err(Refusal::new(TABLE_MOD_TABLE, why));
    }
    if wanted.config != 0 {
        return Err(Refusal::new(TABLE_MOD_CONFIG, "tables have nothing to configure"));
    }
    Ok(())
}

/// Whether a message waits also until the rules of an earlier process are compared with the switch.
fn waits_for_recall(body: &Body) -> bool {
    matches!(body, Body::MultipartRequest(_) | Body::PortMod(_))
}

/// Whether a message waits until groups and meters are confirmed: what may refer to them, and what must stay in order with that.
fn waits(body: &Body) -> bool {
    matches!(
        body,
        Body::FlowMod(_) | Body::PacketOut(_) | Body::GroupMod(_) | Body::MeterMod(_) | Body::BarrierRequest
    )
}
