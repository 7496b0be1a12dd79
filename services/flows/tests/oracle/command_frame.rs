//! The frame of one of the engine's commands, as the shell of the service sends it, and how a bundle reaches a session.
//!
//! In: a switch, a ticket and a command. Out: bytes. It sends nothing. The tests of the service `paths` use this file too.

use abi::command::{Bundle, Command, FlowMod, GroupMod, MeterMod, StatsRequest, What};
use abi::header::HEADER_LEN;
use abi::{Frame, ZoneId};
use flow::{DatapathId, ErrorCode};
use flows::outgoing::{BundledRule, Send};
use southbound::session::Session;
use southbound::{Tag, Turn};

/// `ofp_flow_mod_command`: add, and delete exactly this rule.
const ADD: u8 = 0;
const DELETE_STRICT: u8 = 4;

pub fn frame_of(datapath: DatapathId, ticket: u64, send: &Send<'_>) -> Vec<u8> {
    let flows_request = flows::report::flows_request(0xff);
    let what = match *send {
        Send::Rule { head, matching, instructions } => What::FlowMod(FlowMod {
            command: if head.is_removed { DELETE_STRICT } else { ADD },
            table_id: head.table_id,
            priority: head.priority,
            cookie: head.cookie,
            idle_timeout_s: head.idle_timeout_s,
            hard_timeout_s: head.hard_timeout_s,
            matching,
            instructions,
            ..FlowMod::ADD
        }),
        Send::Foreign { table_id, priority, cookie, matching } => What::FlowMod(FlowMod {
            command: DELETE_STRICT,
            table_id,
            priority,
            cookie,
            cookie_mask: u64::MAX,
            matching,
            ..FlowMod::ADD
        }),
        Send::Group { command, group_type, group_id, buckets } => {
            What::GroupMod(GroupMod { command, group_type, group_id, buckets })
        }
        Send::Meter { command, flags, meter_id, bands } => {
            What::MeterMod(MeterMod { command, flags, meter_id, bands })
        }
        Send::Bundle(rules) => return bundle_of(datapath, ticket, rules),
        Send::Read(multipart) => {
            let body: &[u8] = match multipart {
                flows::report::FLOWS => &flows_request,
                flows::report::METERS => &flows::report::METERS_REQUEST,
                _ => &[],
            };
            What::StatsRequest(StatsRequest { multipart, body })
        }
    };
    let mut bytes = Vec::new();
    let command = Command { datapath, ticket, wants_receipt: true, what };
    assert!(abi::command::write::command(&mut bytes, &command));
    bytes
}

fn bundle_of(datapath: DatapathId, ticket: u64, rules: &[BundledRule]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_LEN];
    rules.iter().for_each(|rule| bytes.extend(frame_of(datapath, 0, &rule.alone())));
    assert!(abi::command::write::finish_bundle(&mut bytes, 0, datapath, ticket));
    bytes
}

/// Sends a bundle by a session, as the kernel does: with the owner in the cookies. Returns why it is refused.
pub fn send_bundle(
    session: &mut Session,
    bundle: &Bundle<'_>,
    tag: Tag,
    turn: &mut Turn<'_>,
) -> Option<(ErrorCode, String)> {
    let frames: Vec<_> = bundle.flow_mods().collect();
    let flow_mods: Vec<Command<'_>> = frames.iter().map(|frame| stamped(frame, tag.zone)).collect();
    let refused = session.send_bundle(&flow_mods, tag, true, 0, turn).err()?;
    Some((refused.as_error().unwrap_or(ErrorCode { kind: 0, code: 0 }), refused.to_string()))
}

fn stamped<'a>(frame: &Frame<'a>, owner: ZoneId) -> Command<'a> {
    let command = Command::read(frame).unwrap();
    let What::FlowMod(it) = command.what else { panic!("{command:?}") };
    Command { what: What::FlowMod(FlowMod { cookie: owner.stamp(it.cookie), ..it }), ..command }
}
