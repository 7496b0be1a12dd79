//! A node with two apps in the operator's order, and one switch that executes nothing.

use abi::command::{self, Command, FlowMod, What};
use abi::event::{self, SwitchUp};
use abi::{Frame, OpenFlowVersion, ZoneId};
use flow::canonical::{write_instructions, write_match};
use flow::text::{parse_instructions, parse_match};
use flow::{DatapathId, Instruction, Match};
use kernel::{Capability, Decision, Effect, Grant, Kernel};

pub const SWITCH: DatapathId = DatapathId(1);

/// In the operator's order, the second zone precedes the first: zone numbers decide nothing.
pub const LATER: ZoneId = ZoneId(1);
pub const BEFORE: ZoneId = ZoneId(2);

pub struct Node {
    pub kernel: Kernel,
    pub effects: Vec<Effect>,
    pub now_ms: u64,
}

pub fn writer(rank: u16) -> Grant {
    Grant::nothing().with(Capability::RuleWrite).with(Capability::PacketIn).with_rank(rank)
}

impl Node {
    pub fn with(later: Grant, before: Grant) -> Node {
        let mut kernel = Kernel::new(7);
        kernel.attach(LATER, "later", later, 0);
        kernel.attach(BEFORE, "before", before, 0);
        let mut bytes = Vec::new();
        let openflow = OpenFlowVersion::V1_3;
        let up = SwitchUp { datapath: SWITCH, openflow, n_buffers: 0, n_tables: 8, ports: &[] };
        event::write::switch_up(&mut bytes, 1, &up);
        kernel.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
        kernel.on_no_answer(SWITCH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
        Node { kernel, effects: Vec::new(), now_ms: 0 }
    }

    pub fn new() -> Node {
        Node::with(writer(2), writer(1))
    }

    /// The same with a switch that has reported these rules.
    pub fn reporting(later: Grant, before: Grant, body: &[u8]) -> Node {
        let mut node = Node::with(later, before);
        let mut bytes = Vec::new();
        let openflow = OpenFlowVersion::V1_3;
        let up = SwitchUp { datapath: SWITCH, openflow, n_buffers: 0, n_tables: 8, ports: &[] };
        event::write::switch_up(&mut bytes, 1, &up);
        node.kernel.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
        node.kernel.ask_for_owners(0, &mut Vec::new());
        node.effects = node.answer(kernel::Asked::Owners, body);
        node
    }

    /// The switch answers a question of the kernel with these rules. Returns what the kernel does in the same turn.
    pub fn answer(&mut self, asked: kernel::Asked, body: &[u8]) -> Vec<Effect> {
        let (mut bytes, ticket) = (Vec::new(), asked.ticket());
        let reply = event::StatsReply { datapath: SWITCH, ticket, multipart: 1, more: false, body };
        event::write::stats_reply(&mut bytes, 2, &reply);
        assert!(self.kernel.on_own_answer(&bytes, self.now_ms));
        let mut effects = Vec::new();
        self.kernel.ask_for_owners(self.now_ms, &mut effects);
        effects
    }

    /// `sent`, or the refusal in words.
    pub fn command(&mut self, zone: ZoneId, what: What<'_>) -> String {
        let mut bytes = Vec::new();
        let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what };
        assert!(command::write::command(&mut bytes, &command));
        self.effects.clear();
        match self.kernel.on_command(zone, &Frame::read(&bytes).unwrap(), self.now_ms, &mut self.effects) {
            Decision::Send(_) => {
                self.kernel.on_sent();
                "sent".to_owned()
            }
            Decision::Refuse(refusal) => refusal.to_string(),
            other => format!("{other:?}"),
        }
    }

    pub fn rule(&mut self, zone: ZoneId, priority: u16, matching: &Match, rest: FlowMod<'_>) -> String {
        let mut matched = Vec::new();
        write_match(matching, &mut matched);
        self.command(zone, What::FlowMod(FlowMod { priority, matching: &matched, ..rest }))
    }

    pub fn add(&mut self, zone: ZoneId, priority: u16, matching: &str) -> String {
        self.rule(zone, priority, &parse_match(matching).unwrap(), FlowMod::ADD)
    }

    /// The rules to delete now: owners and priorities.
    pub fn evicted(&mut self) -> Vec<(ZoneId, u16)> {
        self.kernel.take_evictions().iter().map(|it| (it.owner, it.priority)).collect()
    }
}

/// The earlier app passes all packets of table 0 on.
pub fn pass_all_on(node: &mut Node, table_id: u8) {
    let mut bytes = Vec::new();
    write_instructions(&[Instruction::GotoTable(table_id)], &mut bytes).unwrap();
    let rest = FlowMod { instructions: &bytes, ..FlowMod::ADD };
    node.rule(BEFORE, 30, &Match::any(), rest);
}

/// An `ofp_flow_stats` without counters (1.3.5, 7.3.5.2), with this match in canonical bytes.
pub fn reported_with(
    table_id: u8,
    priority: u16,
    cookie: u64,
    matching: &[u8],
    instructions: &str,
) -> Vec<u8> {
    let mut done = Vec::new();
    write_instructions(&parse_instructions(instructions).unwrap(), &mut done).unwrap();
    let mut entry = vec![0; 48];
    entry[2] = table_id;
    entry[12..14].copy_from_slice(&priority.to_be_bytes());
    entry[24..32].copy_from_slice(&cookie.to_be_bytes());
    entry.extend([0, 1]);
    entry.extend(u16::try_from(4 + matching.len()).unwrap().to_be_bytes());
    entry.extend(matching);
    entry.resize(entry.len().next_multiple_of(8), 0);
    entry.extend(done);
    let length = u16::try_from(entry.len()).unwrap().to_be_bytes();
    entry[..2].copy_from_slice(&length);
    entry
}
