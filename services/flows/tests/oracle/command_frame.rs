//! The frame of one of the engine's commands, as the shell of the service sends it.
//!
//! In: a switch, a ticket and a command. Out: bytes. It sends nothing. The tests of the service `paths` use this file too.

use abi::command::{Command, FlowMod, GroupMod, MeterMod, StatsRequest, What};
use flow::DatapathId;
use flows::outgoing::Send;

/// `ofp_flow_mod_command`: add, and delete exactly this rule.
const ADD: u8 = 0;
const DELETE_STRICT: u8 = 4;

pub fn frame_of(datapath: DatapathId, ticket: u64, send: &Send<'_>) -> Vec<u8> {
    let flows_request = flows::report::flows_request(0xff);
    let what = match *send {
        Send::Rule {
            is_removed,
            table_id,
            priority,
            cookie,
            matching,
            instructions,
            idle_timeout_s,
            hard_timeout_s,
        } => What::FlowMod(FlowMod {
            command: if is_removed { DELETE_STRICT } else { ADD },
            table_id,
            priority,
            cookie,
            matching,
            instructions,
            idle_timeout_s,
            hard_timeout_s,
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
