//! Messages of the controller on their way to the model.
//!
//! In: whole messages. Out: inputs of the model. Only hellos, errors and echo replies pass at once.

use flow::ErrorCode;
use openflow::message::*;
use openflow::view::PacketOutView;
use openflow::{Body, Header, Message};
use profile::MessageType;
use profile::model::{self, Input, Packet};

use super::Proxy;
use crate::commands::{Commands, Passage};
use crate::held::Held;
use crate::wire::{self, Numbered, kind};

/// OFPBRC_BAD_EXPERIMENTER (1.0: OFPBRC_BAD_VENDOR).
const BAD_EXPERIMENTER: ErrorCode = ErrorCode { kind: 1, code: 3 };
/// Nicira's number, and its messages that change rules: NXT_FLOW_MOD and NXT_FLOW_MOD_TABLE_ID.
const NICIRA: u32 = 0x0000_2320;
const NICIRA_RULES: [u32; 2] = [13, 15];

/// What the model learns of a message.
struct Heard {
    kind: MessageType,
    rule: Option<model::Rule>,
    packet: Packet,
    entries: u32,
    flow_mod: Option<Box<FlowMod>>,
    refusal: Option<ErrorCode>,
}

impl Heard {
    fn plain(kind: MessageType) -> Self {
        Heard { kind, rule: None, packet: Packet::None, entries: 0, flow_mod: None, refusal: None }
    }

    /// A message that the proxy refuses. It takes its turn as any other: its error comes behind the answers to earlier messages.
    fn refused(error: ErrorCode) -> Self {
        Heard { refusal: Some(error), ..Heard::plain(MessageType::Other) }
    }
}

impl Proxy {
    pub(super) fn on_controller_message(
        &mut self,
        now_ns: u64,
        header: Header,
        message: &[u8],
        out: &mut Commands,
    ) -> Passage {
        match header.kind {
            kind::HELLO => {
                wire::hello(message, &mut out.to_switch);
                return Passage::Taken;
            }
            kind::ERROR | kind::ECHO_REPLY => return Passage::Unchanged,
            _ => {}
        }
        if self.version.is_none() {
            self.begin_session(header.version, out);
        }
        if self.model.is_none() {
            return Passage::Unchanged;
        }
        self.own.avoid(header.xid);
        let at_ns = self.settle(now_ns, out);
        let heard = self.hear(header, message);
        if heard.kind == MessageType::Barrier && self.is_full() {
            self.barriers.on_request();
        }
        let bytes = self.held.copy_of(message);
        let Heard { kind, rule, packet, entries, flow_mod, refusal } = heard;
        let held = Held { bytes, since_ns: now_ns, came_ns: now_ns, flow_mod, refusal, ..Held::default() };
        let id = self.held.hold(held);
        self.tell_model(at_ns, Input::Message(model::Message { id, kind, rule, packet, entries }));
        self.settle(now_ns, out);
        Passage::Taken
    }

    fn hear(&self, header: Header, message: &[u8]) -> Heard {
        match header.kind {
            kind::ECHO_REQUEST => return Heard::plain(MessageType::Echo),
            kind::PACKET_OUT => {
                let buffer = PacketOutView::read(message).map(|view| view.buffer_id);
                return Heard {
                    packet: self.packet(buffer.unwrap_or(NO_BUFFER), true),
                    ..Heard::plain(MessageType::PacketOut)
                };
            }
            kind::FLOW_MOD => return self.hear_flow_mod(message),
            _ if self.is_full() && changes_rules_otherwise(header, message) => {
                return Heard::refused(BAD_EXPERIMENTER);
            }
            _ => {}
        }
        match wire::numbered(header.version, header.kind) {
            Some(Numbered::BarrierRequest) => Heard::plain(MessageType::Barrier),
            Some(Numbered::StatisticsRequest) => {
                Heard { entries: self.entries(message), ..Heard::plain(MessageType::Statistics) }
            }
            _ => Heard::plain(MessageType::Other),
        }
    }

    /// The packet that a message sends. The paper's model has no buffers: the switch knows the id.
    fn packet(&self, buffer: u32, is_given: bool) -> Packet {
        match buffer {
            NO_BUFFER if is_given => Packet::Given,
            NO_BUFFER => Packet::None,
            _ if !self.is_full() => Packet::None,
            buffer => Packet::Buffered(buffer),
        }
    }

    fn hear_flow_mod(&self, message: &[u8]) -> Heard {
        let Ok(Message { body: Body::FlowMod(mut flow_mod), .. }) = Message::decode(message) else {
            // The proxy cannot read it. The switch says why.
            return Heard::plain(MessageType::Other);
        };
        if let Some(error) = self.refusal_of_meter(&flow_mod) {
            return Heard::refused(error);
        }
        let (kind, rule) = self.model_rule(&flow_mod);
        let packet = match kind {
            MessageType::Add | MessageType::Modify => self.packet(flow_mod.buffer_id, false),
            // A delete ignores the buffer (1.3.5, 7.3.4.1).
            _ => {
                flow_mod.buffer_id = NO_BUFFER;
                Packet::None
            }
        };
        let flow_mod = self.is_full().then(|| Box::new(flow_mod));
        Heard { rule, packet, flow_mod, ..Heard::plain(kind) }
    }

    /// How many entries the answer of a request for statistics has.
    fn entries(&self, message: &[u8]) -> u32 {
        const FLOW: u16 = 1;
        const AGGREGATE: u16 = 2;
        if !matches!(wire::statistics_type(message), Some(FLOW | AGGREGATE)) {
            return 1;
        }
        let Ok(Message { body: Body::MultipartRequest(request), .. }) = Message::decode(message) else {
            return 1;
        };
        match request.body {
            RequestBody::Flow(of) | RequestBody::Aggregate(of) => {
                u32::try_from(self.shadow.book.count(&of)).unwrap_or(u32::MAX)
            }
            _ => 1,
        }
    }
}

/// Whether an experimenter message changes rules past the model: a bundle, or a flow mod of Nicira's extension.
fn changes_rules_otherwise(header: Header, message: &[u8]) -> bool {
    header.kind == kind::EXPERIMENTER
        && wire::experimenter(message).is_some_and(|(whose, which)| match whose {
            ONF_EXPERIMENTER => [ONF_BUNDLE_CONTROL, ONF_BUNDLE_ADD].contains(&which),
            NICIRA => NICIRA_RULES.contains(&which),
            _ => false,
        })
}
