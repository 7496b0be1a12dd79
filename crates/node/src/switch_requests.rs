//! The node's own requests to switches, as bodies of multipart requests of OpenFlow 1.3 (7.3.5).
//!
//! In: questions of the kernel. Out: commands in the order in which a switch must get them. It does not send them.

use abi::ZoneId;
use abi::command::{Command, StatsRequest, What};
use abi::zone_id::COOKIE_MASK;
use flow::DatapathId;
use kernel::{Asked, Wanted};

/// `ofp_multipart_type`.
mod multipart {
    pub const FLOW: u16 = 1;
    pub const AGGREGATE: u16 = 2;
    pub const TABLE: u16 = 3;
    pub const GROUP_DESC: u16 = 7;
    pub const METER_CONFIG: u16 = 10;
    pub const TABLE_FEATURES: u16 = 12;
}

/// The type and the body of a multipart request.
pub type SwitchRequest = (u16, Vec<u8>);

/// All flow entries of a switch.
pub fn all_flows() -> SwitchRequest {
    (multipart::FLOW, flows(ALL_TABLES, 0, 0, &[]))
}

/// A question of the kernel; for a single rule, `wanted` is the rule.
fn of_the_kernel(asked: Asked, wanted: Option<&Wanted>) -> SwitchRequest {
    match asked {
        Asked::TableSizes => (multipart::TABLE_FEATURES, Vec::new()),
        Asked::TableCounts => (multipart::TABLE, Vec::new()),
        Asked::RulesOf(zone) => (multipart::AGGREGATE, owned_by(zone)),
        Asked::Owners | Asked::Record => all_flows(),
        Asked::Groups => (multipart::GROUP_DESC, Vec::new()),
        Asked::Meters => (multipart::METER_CONFIG, ALL_METERS.to_vec()),
        Asked::Rule => match wanted {
            Some(rule) => {
                let (cookie, mask) = rule.zone.map_or((0, 0), |zone| (zone.stamp(0), !COOKIE_MASK));
                (multipart::FLOW, flows(rule.table_id, cookie, mask, &rule.matching))
            }
            None => all_flows(),
        },
    }
}

/// Asks a question of the kernel. `send` returns whether the session has taken a command, which has the question's ticket. Returns whether
/// the question was taken.
///
/// A barrier precedes it, so that the answer includes all earlier commands. A question about owners needs none, because the kernel knows
/// what it has sent.
pub fn ask(
    datapath: DatapathId,
    asked: Asked,
    wanted: Option<&Wanted>,
    mut send: impl FnMut(&Command<'_>) -> bool,
) -> bool {
    let barrier = Command { datapath, ticket: asked.ticket(), wants_receipt: false, what: What::Barrier };
    let is_of_owners = matches!(asked, Asked::Owners | Asked::Groups | Asked::Meters);
    if !is_of_owners && !send(&barrier) {
        return false;
    }
    let mut question = |(multipart, body): SwitchRequest| {
        send(&Command { what: What::StatsRequest(StatsRequest { multipart, body: &body }), ..barrier })
    };
    // 1.0 cannot filter by cookie: the switch must report all of its rules.
    let may_ask_for_all = matches!(asked, Asked::RulesOf(_) | Asked::Rule);
    let is_asked = question(of_the_kernel(asked, wanted)) || may_ask_for_all && question(all_flows());
    if is_asked && matches!(asked, Asked::TableSizes | Asked::Owners) {
        // The reply to the barrier shows at once that the switch has ignored the question. If the barrier cannot be sent, a timeout shows it.
        send(&Command { wants_receipt: true, ..barrier });
    }
    is_asked
}

/// OFPM_ALL, and four bytes of padding (`ofp_meter_multipart_request`, 7.3.5.11).
const ALL_METERS: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

fn owned_by(zone: ZoneId) -> Vec<u8> {
    flows(ALL_TABLES, zone.stamp(0), !COOKIE_MASK, &[])
}

/// OFPTT_ALL.
const ALL_TABLES: u8 = 0xff;

/// Entries of this table with these cookies and within this match, for any output port and group
/// (`ofp_flow_stats_request`, 7.3.5.2).
fn flows(table_id: u8, cookie: u64, cookie_mask: u64, matching: &[u8]) -> Vec<u8> {
    let mut body = vec![table_id, 0, 0, 0];
    body.extend([0xff; 8]);
    body.extend([0; 4]);
    body.extend(cookie.to_be_bytes());
    body.extend(cookie_mask.to_be_bytes());
    // OFPMT_OXM, its length without the padding, and the padding (7.2.3.1). A match from a flow mod fits 16 bits.
    let length = u16::try_from(4 + matching.len()).unwrap_or(u16::MAX);
    body.extend([0, 1]);
    body.extend(length.to_be_bytes());
    body.extend_from_slice(matching);
    body.resize(body.len().next_multiple_of(8), 0);
    body
}
