//! Whether two rules have the same identity, according to the kernel and to the switch.
//!
//! One app adds a rule. Another app adds, changes or deletes one. If the kernel refuses because the rule belongs to
//! the first app, the switch must replace, change or delete that rule when it gets the command. If the kernel allows
//! the command, the switch must leave the first rule unchanged.
//!
//! One difference is left out on purpose. For Open vSwitch, a match that has an Ethernet field with a mask of zeros
//! is for Ethernet frames only. A match without such a field is for every packet. But its ports carry only Ethernet
//! frames, and with equal priority either rule may win. So the kernel treats both as the same rule.

use super::dice::Dice;
use super::forms::{Meaning, Names};
use super::peer::{self, Peer};
use abi::command::{self, Command, FlowMod, What};
use abi::event::{self, OpenFlowVersion, SwitchUp};
use abi::zone_id::COOKIE_MASK;
use abi::{Frame, ZoneId};
use flow::canonical::InstructionWriter;
use flow::vendor::{NICIRA, ONF};
use flow::{DatapathId, PortNo};
use kernel::{Capability, Decision, Grant, Kernel, OnOverlap, Refusal, VendorParts, Vendors};
use openflow::message::*;
use openflow::{Body, Message, Version};
use std::fmt;
use system_tests::Result;

const SWITCH: DatapathId = DatapathId(1);
const FIRST: ZoneId = ZoneId(1);
const SECOND: ZoneId = ZoneId(2);

/// How many cases are sent to a switch at once.
const BATCH: usize = 100;

const COMMANDS: [u8; 3] = [FLOW_ADD, FLOW_MODIFY_STRICT, FLOW_DELETE_STRICT];
const TABLES: [u8; 6] = [0, 0, 0, 1, 2, TABLE_ALL];
const PRIORITIES: [u16; 5] = [5, 5, 5, 6, u16::MAX];

/// A rule as an app names it.
#[derive(Clone, Debug)]
struct Rule {
    table_id: u8,
    priority: u16,
    matching: Vec<u8>,
}

/// Two rules, and the second app's command.
#[derive(Clone, Debug)]
struct Case {
    first: Rule,
    second: Rule,
    command: u8,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in [&self.first, &self.second] {
            let Rule { table_id, priority, matching } = rule;
            writeln!(f, "  table {table_id}, priority {priority}, match {matching:02x?}")?;
        }
        write!(f, "  the second by command {}", self.command)
    }
}

/// The counts of the cases by result.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// The kernel and the switch treat the rules as one.
    pub same: u32,
    /// The kernel and the switch treat the rules as two.
    pub different: u32,
    /// The kernel, 1.0 or the switch refuses one of the two for another reason.
    pub left_out: u32,
}

/// Whether two rules are one, according to the kernel.
enum KernelAnswer {
    Same,
    Different { cookie_mask: u64 },
    Neither,
}

fn roll(dice: &mut Dice, openflow: OpenFlowVersion, names: Names) -> Case {
    let meaning = Meaning::roll(dice, openflow, names);
    let other = match dice.below(100) {
        0..55 => meaning.clone(),
        55..80 => meaning.changed(dice),
        _ => Meaning::roll(dice, openflow, names),
    };
    let first = Rule {
        table_id: dice.pick(&TABLES),
        priority: dice.pick(&PRIORITIES),
        matching: meaning.write(dice, openflow, names),
    };
    let second = Rule {
        table_id: if dice.chance(70) { first.table_id } else { dice.pick(&TABLES) },
        priority: if dice.chance(70) { first.priority } else { dice.pick(&PRIORITIES) },
        matching: other.write(dice, openflow, names),
    };
    Case { first, second, command: dice.pick(&COMMANDS) }
}

fn instructions(port: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    InstructionWriter::new(&mut bytes).apply_actions(|actions| {
        actions.output(PortNo(port), 0);
    });
    bytes
}

fn kernel(openflow: OpenFlowVersion) -> Kernel {
    let mut kernel = Kernel::new(7);
    // This test is about equal rules, not about precedence.
    kernel.on_overlap(OnOverlap::Report);
    let all_of = |vendor| VendorParts { vendor, kind: None, subtype: None };
    for zone in [FIRST, SECOND] {
        let vendors = Vendors::new([NICIRA, ONF].map(all_of).to_vec());
        kernel.attach(zone, "app", Grant::everywhere(&Capability::GRANT_ALL).with_vendors(vendors), 0);
    }
    let mut bytes = Vec::new();
    let up = SwitchUp { datapath: SWITCH, n_buffers: 0, n_tables: 8, openflow, ports: &[] };
    event::write::switch_up(&mut bytes, 1, &up);
    kernel.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
    kernel.on_no_answer(SWITCH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
    kernel
}

fn word(kernel: &mut Kernel, zone: ZoneId, command: u8, rule: &Rule, instructions: &[u8]) -> KernelAnswer {
    let Rule { table_id, priority, ref matching } = *rule;
    let what = What::FlowMod(FlowMod { command, table_id, priority, matching, instructions, ..FlowMod::ADD });
    let mut bytes = Vec::new();
    let command = Command { datapath: SWITCH, ticket: 1, wants_receipt: false, what };
    assert!(command::write::command(&mut bytes, &command));
    match kernel.on_command(zone, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new()) {
        Decision::Send(Command { what: What::FlowMod(FlowMod { cookie_mask, .. }), .. }) => {
            kernel.on_sent();
            KernelAnswer::Different { cookie_mask }
        }
        Decision::Refuse(Refusal::OthersRule(FIRST)) => KernelAnswer::Same,
        _ => KernelAnswer::Neither,
    }
}

/// Appends a flow mod, if the version can express it.
fn say(version: Version, xid: u32, rule: &Rule, it: FlowModFields, port: u32, out: &mut Vec<u8>) -> bool {
    let is_strict = matches!(it.command, FLOW_MODIFY_STRICT | FLOW_DELETE_STRICT);
    // As in southbound: 1.0 cannot restrict a strict command to a cookie.
    let cookie_mask =
        if version == Version::V1_0 && is_strict { it.cookie_mask & COOKIE_MASK } else { it.cookie_mask };
    let fields = FlowModFields { table_id: rule.table_id, priority: rule.priority, cookie_mask, ..it };
    let instructions = if it.command == FLOW_DELETE_STRICT { Vec::new() } else { instructions(port) };
    openflow::write::flow_mod(version, xid, &fields, &rule.matching, &instructions, out).is_ok()
}

const OF_FIRST: u64 = 0x11;
const OF_SECOND: u64 = 0x22;

/// Appends the commands of one case; `None` if there is nothing to compare. Returns the kernel's answer.
fn ask(
    openflow: OpenFlowVersion,
    version: Version,
    number: u32,
    case: &Case,
    out: &mut Vec<u8>,
) -> Option<bool> {
    let mut kernel = kernel(openflow);
    if !matches!(
        word(&mut kernel, FIRST, FLOW_ADD, &case.first, &instructions(1)),
        KernelAnswer::Different { .. }
    ) {
        return None;
    }
    let (is_same, cookie_mask) = match word(&mut kernel, SECOND, case.command, &case.second, &instructions(2))
    {
        KernelAnswer::Same => (true, 0),
        // An accepted command is sent with its owner's mask.
        KernelAnswer::Different { cookie_mask, .. } => (false, cookie_mask),
        KernelAnswer::Neither => return None,
    };
    let xid = number * 4;
    let start = out.len();
    let everything = FlowModFields { table_id: TABLE_ALL, command: FLOW_DELETE, ..FlowModFields::default() };
    openflow::write::flow_mod(version, xid, &everything, &[], &[], out).ok()?;
    let first =
        FlowModFields { cookie: FIRST.stamp(OF_FIRST), command: FLOW_ADD, ..FlowModFields::default() };
    let cookie = SECOND.stamp(OF_SECOND);
    let second = FlowModFields { cookie, cookie_mask, command: case.command, ..FlowModFields::default() };
    let is_said = say(version, xid + 1, &case.first, first, 1, out)
        && say(version, xid + 2, &case.second, second, 2, out);
    if !is_said {
        out.truncate(start);
        return None;
    }
    let all = FlowStatsRequest::default();
    let body = Body::MultipartRequest(MultipartRequest { flags: 0, body: RequestBody::Flow(all) });
    Message { version, xid: xid + 3, body }.encode(out).ok()?;
    Some(is_same)
}

/// The switch's flow entries after a case, if it accepted both commands.
fn entries(answers: &[Message], number: u32) -> Option<Vec<&FlowStats>> {
    let mut entries = Vec::new();
    for answer in answers.iter().filter(|answer| answer.xid / 4 == number) {
        match &answer.body {
            Body::MultipartReply(MultipartReply { body: ReplyBody::Flow(flows), .. }) => {
                entries.extend(flows)
            }
            _ => return None,
        }
    }
    Some(entries)
}

/// Whether the first rule is unchanged.
fn is_untouched(entries: &[&FlowStats]) -> bool {
    let sends_to = |entry: &FlowStats, port: u32| {
        let actions = entry.instructions.iter().map(|instruction| format!("{instruction:?}"));
        actions.collect::<String>().contains(&format!("PortNo({port})"))
    };
    entries.iter().any(|entry| entry.cookie == FIRST.stamp(OF_FIRST) && sends_to(entry, 1))
}

/// Compares this many random pairs on a switch.
///
/// # Errors
/// The first pair for which kernel and switch disagree.
pub fn compare(peer: &mut dyn Peer, version: Version, seed: u64, cases: usize) -> Result<Tally> {
    let openflow = if version == Version::V1_0 { OpenFlowVersion::V1_0 } else { OpenFlowVersion::V1_3 };
    let mut dice = Dice::new(seed);
    let mut tally = Tally::default();
    for _ in 0..cases.div_ceil(BATCH) {
        let batch: Vec<Case> = (0..BATCH).map(|_| roll(&mut dice, openflow, peer.names())).collect();
        let mut bytes = Vec::new();
        let asked = |(number, case)| ask(openflow, version, number, case, &mut bytes);
        let words: Vec<Option<bool>> = (0..).zip(&batch).map(asked).collect();
        let answers = peer::ask(peer, &bytes)?;
        for ((number, case), word) in (0..).zip(&batch).zip(words) {
            let entries = entries(&answers, number);
            match (word, entries) {
                (Some(is_same), Some(entries)) if is_same == is_untouched(&entries) => {
                    let says = if is_same { "one rule" } else { "two" };
                    return Err(format!(
                        "OpenFlow {version}, seed {seed}: the kernel says {says}, the switch does not:\n{case}\n  left: {entries:?}"
                    ));
                }
                (Some(true), Some(_)) => tally.same += 1,
                (Some(false), Some(_)) => tally.different += 1,
                _ => tally.left_out += 1,
            }
        }
    }
    Ok(tally)
}
