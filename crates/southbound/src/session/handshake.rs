//! The handshake, from the first byte to an identified switch: hello, features, configuration, ports.
//!
//! It emits no event: apps receive nothing about a switch before it is up.

use super::{MAX_PORTS, Session, State, Step, TYPE_ERROR, TYPE_HELLO};
use crate::fault::{Fault, SessionEnd};
use crate::hello;
use crate::translate::error::describe;
use crate::translate::port;
use crate::turn::{Turn, message_name};
use abi::event::PortRecord;
use flow::BadInput;
use openflow::error::{BAD_TYPE, BAD_VERSION, HELLO_INCOMPATIBLE};
use openflow::message::{
    ErrorMessage, FeaturesReply, MULTIPART_MORE, MultipartReply, MultipartRequest, PORT_DELETED, Port,
    PortStatus, ReplyBody, RequestBody, SwitchConfig,
};
use openflow::{Body, Header, Message, Version};

impl Session {
    pub(super) fn on_first_message(
        &mut self,
        header: &Header,
        message: &[u8],
        turn: &mut Turn<'_>,
    ) -> Result<Step, SessionEnd> {
        if header.kind != TYPE_HELLO {
            return Err(self.before_hello(header, message, turn));
        }
        self.on_partial(message, turn)?;
        let hello = match Message::decode(message) {
            Ok(Message { body: Body::Hello(hello), .. }) => hello,
            Ok(_) => return Err(self.before_hello(header, message, turn)),
            Err(bad) => return Err(self.fatal(message, bad, turn)),
        };
        match hello::negotiate(self.limits.versions, header.version, &hello) {
            Ok(version) => self.version = version,
            Err(reason) => {
                self.send_error(header.xid, HELLO_INCOMPATIBLE, reason.as_bytes(), turn);
                return Err(SessionEnd::new(Fault::Switch, reason));
            }
        }
        self.awaited_xid = self.say(Body::FeaturesRequest, turn);
        self.enter(State::AwaitFeatures, turn.now_ms);
        Ok(Step::On)
    }

    /// Handles a peer whose first message is not a hello. If it is an error, it answers our hello, and gets no
    /// answer.
    pub(super) fn before_hello(
        &mut self,
        header: &Header,
        message: &[u8],
        turn: &mut Turn<'_>,
    ) -> SessionEnd {
        if header.kind == TYPE_ERROR
            && let Ok(Message { version, body: Body::Error(error), .. }) = Message::decode(message)
        {
            let reason = format!("the peer answered our hello with {}", describe(version, &error));
            return SessionEnd::new(Fault::Switch, reason);
        }
        let reason = format!(
            "the first message must be OFPT_HELLO, but was type {} of OpenFlow {}",
            header.kind, header.version
        );
        let bad = BadInput { offset: 1, field: "type", error: BAD_TYPE, message: reason.into() };
        self.fatal(message, bad, turn)
    }

    /// Handles a message of another version than the negotiated one. Its content cannot be read.
    pub(super) fn wrong_version(
        &mut self,
        header: &Header,
        message: &[u8],
        turn: &mut Turn<'_>,
    ) -> SessionEnd {
        let reason =
            format!("OpenFlow {} was negotiated, but a message has version {}", self.version, header.version);
        let bad = BadInput { offset: 0, field: "version", error: BAD_VERSION, message: reason.into() };
        self.fatal(message, bad, turn)
    }

    pub(super) fn on_handshake_message(
        &mut self,
        header: &Header,
        message: &[u8],
        turn: &mut Turn<'_>,
    ) -> Result<Step, SessionEnd> {
        const PACKET_IN: u8 = 10;
        if header.kind == PACKET_IN {
            // Apps do not know the switch yet, so they could not handle the packet. Its sender will try again.
            self.counters.early_packet_ins += 1;
            return Ok(Step::On);
        }
        let decoded = match Message::decode(message) {
            Ok(decoded) => decoded,
            Err(bad) => return self.damaged_in_handshake(message, bad, turn),
        };
        match decoded.body {
            Body::FeaturesReply(features) if self.state == State::AwaitFeatures => {
                return self.on_features(features, turn);
            }
            Body::MultipartReply(reply) => return self.on_description(decoded.xid, reply, turn),
            Body::PortStatus(status) => {
                self.learn_port(&status, turn);
            }
            Body::EchoRequest(_) => self.echo(header, message, turn),
            Body::Error(error) => return self.on_handshake_error(decoded.xid, &error, turn),
            // A second hello, an echo reply, a configuration: valid, and without effect.
            _ => self.counters.unasked += 1,
        }
        Ok(Step::On)
    }

    /// The replies of the handshake must be well-formed. Other malformed messages are dropped, as after the handshake.
    fn damaged_in_handshake(
        &mut self,
        message: &[u8],
        bad: BadInput,
        turn: &mut Turn<'_>,
    ) -> Result<Step, SessionEnd> {
        const FEATURES_REPLY: u8 = 6;
        const MULTIPART_REPLY: u8 = 19;
        let asked = match self.state {
            State::AwaitFeatures => FEATURES_REPLY,
            _ => MULTIPART_REPLY,
        };
        if message.get(1) == Some(&asked) {
            return Err(self.fatal(message, bad, turn));
        }
        self.damaged(message, bad, turn).map(|()| Step::On)
    }

    fn on_features(&mut self, features: FeaturesReply, turn: &mut Turn<'_>) -> Result<Step, SessionEnd> {
        self.identity = super::Identity {
            datapath: features.datapath_id,
            n_buffers: features.n_buffers,
            n_tables: features.n_tables,
        };
        self.round_trip_ms = turn.now_ms.saturating_sub(self.state_since_ms);
        if features.auxiliary_id != 0 {
            let reason = format!(
                "this controller takes no auxiliary connections; {} works without this one (auxiliary_id {})",
                features.datapath_id, features.auxiliary_id
            );
            return Err(self.refuse(Fault::Operator, reason, turn));
        }
        self.say(Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: self.limits.miss_send_len }), turn);
        self.desc_xid = self.ask(RequestBody::Desc, turn);
        if self.version == Version::V1_0 {
            self.learn_ports(&features.ports, turn);
            self.enter(State::Identified, turn.now_ms);
            return Ok(Step::Identified);
        }
        self.awaited_xid = self.ask(RequestBody::PortDesc, turn);
        self.enter(State::AwaitPorts, turn.now_ms);
        Ok(Step::On)
    }

    fn ask(&mut self, body: RequestBody, turn: &mut Turn<'_>) -> u32 {
        self.say(Body::MultipartRequest(MultipartRequest { flags: 0, body }), turn)
    }

    fn on_description(
        &mut self,
        xid: u32,
        reply: MultipartReply,
        turn: &mut Turn<'_>,
    ) -> Result<Step, SessionEnd> {
        match reply.body {
            ReplyBody::Desc(desc) if xid == self.desc_xid => {
                self.desc = Some(desc);
                self.facts_changed = true;
                return Ok(self.step_after_description());
            }
            ReplyBody::PortDesc(ports) if self.state == State::AwaitPorts => {
                self.learn_ports(&ports, turn);
                if reply.flags & MULTIPART_MORE == 0 {
                    self.enter(State::Identified, turn.now_ms);
                    return Ok(Step::Identified);
                }
            }
            _ => self.counters.unasked += 1,
        }
        Ok(Step::On)
    }

    /// A switch that is identified may have waited for its description.
    fn step_after_description(&self) -> Step {
        if self.state == State::Identified { Step::Identified } else { Step::On }
    }

    fn on_handshake_error(
        &mut self,
        xid: u32,
        error: &ErrorMessage,
        turn: &mut Turn<'_>,
    ) -> Result<Step, SessionEnd> {
        self.counters.errors_in += 1;
        let text = describe(self.version, error);
        if xid == self.awaited_xid || error.kind == HELLO_INCOMPATIBLE.kind {
            let reason = format!("the switch ended the handshake with {text}");
            return Err(SessionEnd::new(Fault::Switch, reason));
        }
        turn.line(message_name(self.version, TYPE_ERROR), &text);
        if xid != self.desc_xid {
            return Ok(Step::On);
        }
        self.is_undescribed = true;
        Ok(self.step_after_description())
    }

    fn learn_ports(&mut self, ports: &[Port], turn: &mut Turn<'_>) {
        let room = MAX_PORTS.saturating_sub(self.ports.len());
        if ports.len() > room {
            turn.line(
                "OFPMP_PORT_DESC",
                &format!("the switch has more than {MAX_PORTS} ports; the rest is left out"),
            );
        }
        self.ports.extend(ports.iter().take(room).map(|it| (it.port_no.0, port::record(it))));
    }

    /// Updates the ports. Returns the port's record, for the event.
    pub(super) fn learn_port(&mut self, status: &PortStatus, turn: &mut Turn<'_>) -> PortRecord {
        let (number, record) = (status.port.port_no.0, port::record(&status.port));
        self.facts_changed = true;
        if status.reason == PORT_DELETED {
            self.ports.remove(&number);
        } else if self.ports.len() < MAX_PORTS || self.ports.contains_key(&number) {
            self.ports.insert(number, record);
        } else {
            turn.line("OFPT_PORT_STATUS", &format!("port {number} is left out: the limit is {MAX_PORTS}"));
        }
        record
    }

    pub(super) fn check_handshake(&self, now_ms: u64) -> Result<(), SessionEnd> {
        let waited_ms = now_ms.saturating_sub(self.state_since_ms);
        if waited_ms < self.limits.handshake_timeout_ms {
            return Ok(());
        }
        let missing = match self.state {
            State::AwaitHello => "OFPT_HELLO",
            State::AwaitFeatures => "OFPT_FEATURES_REPLY",
            State::AwaitPorts => "OFPMP_PORT_DESC",
            State::Identified | State::Up => return Ok(()),
        };
        Err(SessionEnd::new(Fault::Switch, format!("{missing} did not come within {waited_ms} ms")))
    }
}
