//! The messages that a probe sends: rules for test flows, their removal, test packets, and requests.
//!
//! In: test flows, ports and priorities. Out: bodies of messages, the same for OpenFlow 1.0 and 1.3. All rules have cookies of the probe,
//! so that a later probe knows them. It sends nothing.

use crate::flows::TestFlow;
use flow::{Action, Instruction, Match, PortNo};
use openflow::Body;
use openflow::message::{
    FLOW_ADD, FLOW_DELETE, FLOW_DELETE_STRICT, FLOW_MOD_SEND_FLOW_REMOVED, FLOW_MODIFY_STRICT, FlowModFields,
    FlowStatsRequest, GROUP_ANY, MultipartRequest, NO_BUFFER, PacketOut, RequestBody, TABLE_ALL,
};

/// The upper half of all cookies of a probe's rules. The lower half is the number of the flow.
pub const COOKIE: u64 = 0x6275_726e << 32;
/// The bits of a cookie that say whether a rule is a probe's.
pub const COOKIE_MASK: u64 = 0xffff_ffff << 32;
/// The priority of test rules, unless their order of priorities is measured.
pub const PRIORITY: u16 = 0x8000;

/// Twelve hours.
const LASTING_S: u16 = 43_200;

/// Whether a rule with this cookie is a probe's.
pub const fn is_ours(cookie: u64) -> bool {
    cookie & COOKIE_MASK == COOKIE
}

/// How a test rule is added.
#[derive(Clone, Copy, Debug)]
pub struct RuleForm {
    /// Its priority.
    pub priority: u16,
    /// Where it sends packets.
    pub out: PortNo,
    /// The packet that it sends, if that is not [`NO_BUFFER`].
    pub buffer_id: u32,
    /// Its idle time-out; 0 for none.
    pub idle_timeout_s: u16,
    /// Its hard time-out; 0 for none.
    pub hard_timeout_s: u16,
    /// Whether the switch reports its removal.
    pub is_reported: bool,
}

impl RuleForm {
    /// A rule without time-outs that sends packets there.
    pub fn to(out: PortNo) -> Self {
        RuleForm {
            priority: PRIORITY,
            out,
            buffer_id: NO_BUFFER,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            is_reported: false,
        }
    }

    /// The same with a time-out that no probe reaches. Some switches evict no other rules (Open vSwitch).
    pub fn evictable(self) -> Self {
        RuleForm { hard_timeout_s: LASTING_S, ..self }
    }

    /// The same with this priority.
    pub fn with_priority(self, priority: u16) -> Self {
        RuleForm { priority, ..self }
    }

    /// The message that adds it.
    pub fn add_for(self, flow: TestFlow) -> Body {
        self.body(flow, FLOW_ADD)
    }

    /// The message that changes the rule of this flow into it.
    pub fn modify_for(self, flow: TestFlow) -> Body {
        self.body(flow, FLOW_MODIFY_STRICT)
    }

    /// The message that deletes it.
    pub fn delete_for(self, flow: TestFlow) -> Body {
        self.body(flow, FLOW_DELETE_STRICT)
    }

    fn body(self, flow: TestFlow, command: u8) -> Body {
        let deletes = command == FLOW_DELETE_STRICT;
        let fields = FlowModFields {
            cookie: if deletes { 0 } else { COOKIE | u64::from(flow.number) },
            command,
            priority: self.priority,
            buffer_id: self.buffer_id,
            idle_timeout_s: self.idle_timeout_s,
            hard_timeout_s: self.hard_timeout_s,
            flags: if self.is_reported { FLOW_MOD_SEND_FLOW_REMOVED } else { 0 },
            ..FlowModFields::default()
        };
        let instructions = if deletes { Vec::new() } else { output(self.out) };
        Body::FlowMod(fields.with(flow.matching(), instructions))
    }
}

fn output(port: PortNo) -> Vec<Instruction> {
    let action = if port == PortNo::CONTROLLER { Action::to_controller() } else { Action::output(port) };
    vec![Instruction::ApplyActions(vec![action])]
}

/// A rule for all packets that no other rule takes.
fn for_the_rest(command: u8, instructions: Vec<Instruction>) -> Body {
    let cookie = COOKIE | u64::from(u32::MAX);
    let fields = FlowModFields { cookie, command, priority: 0, ..FlowModFields::default() };
    Body::FlowMod(fields.with(Match::any(), instructions))
}

/// Sends all packets without a rule to the controller (the table-miss entry of OpenFlow 1.3; 1.0 needs none). `bytes`: how much of each;
/// fewer than all allows the switch to buffer it.
pub fn add_miss(bytes: u16) -> Body {
    let action = Action::Output { port: PortNo::CONTROLLER, max_len: bytes };
    for_the_rest(FLOW_ADD, vec![Instruction::ApplyActions(vec![action])])
}

/// Drops all packets without a rule (needed by OpenFlow 1.0, which would send them to the controller).
pub fn add_drop() -> Body {
    for_the_rest(FLOW_ADD, Vec::new())
}

/// Removes the rule for packets without a rule.
pub fn delete_rest() -> Body {
    for_the_rest(FLOW_DELETE_STRICT, Vec::new())
}

/// Removes all rules of all tables: those of probes, or also those of others. OpenFlow 1.0 cannot tell them apart.
pub fn delete_all(only_ours: bool) -> Body {
    let (cookie, cookie_mask) = if only_ours { (COOKIE, COOKIE_MASK) } else { (0, 0) };
    let fields = FlowModFields {
        command: FLOW_DELETE,
        table_id: TABLE_ALL,
        cookie,
        cookie_mask,
        ..FlowModFields::default()
    };
    Body::FlowMod(fields.with(Match::any(), Vec::new()))
}

/// A test packet that leaves by this port.
pub fn packet_out(frame: Vec<u8>, port: PortNo) -> Body {
    Body::PacketOut(PacketOut {
        buffer_id: NO_BUFFER,
        in_port: PortNo::CONTROLLER,
        actions: vec![Action::output(port)],
        data: frame,
    })
}

/// Sends a packet that came in at a port out of another: the buffered one, or the given bytes.
pub fn release(buffer_id: u32, data: Vec<u8>, in_port: PortNo, port: PortNo) -> Body {
    Body::PacketOut(PacketOut { buffer_id, in_port, actions: vec![Action::output(port)], data })
}

/// Asks for all flow entries.
pub fn flow_stats() -> Body {
    flow_stats_of(Match::any())
}

/// Asks for the flow entries within this match.
pub fn flow_stats_of(matching: Match) -> Body {
    request(RequestBody::Flow(FlowStatsRequest {
        table_id: TABLE_ALL,
        out_port: PortNo::ANY,
        out_group: GROUP_ANY,
        cookie: 0,
        cookie_mask: 0,
        matching,
    }))
}

/// A request in one part.
pub fn request(body: RequestBody) -> Body {
    Body::MultipartRequest(MultipartRequest { flags: 0, body })
}
