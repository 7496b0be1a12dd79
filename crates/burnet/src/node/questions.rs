//! What the node asks of switches on its own behalf, as bodies of multipart requests of OpenFlow 1.3 (7.3.5).
//!
//! Never sends them.

use abi::ZoneId;
use abi::zone_id::COOKIE_MASK;
use kernel::Asked;

/// `ofp_multipart_type`.
mod multipart {
    pub const FLOW: u16 = 1;
    pub const AGGREGATE: u16 = 2;
    pub const TABLE: u16 = 3;
    pub const TABLE_FEATURES: u16 = 12;
}

/// The type and the body of a multipart request.
pub type Question = (u16, Vec<u8>);

/// All flow entries of a switch.
pub fn all_flows() -> Question {
    (multipart::FLOW, flows(0, 0))
}

/// What the kernel wants to know.
pub fn of_the_kernel(asked: Asked) -> Question {
    match asked {
        Asked::TableSizes => (multipart::TABLE_FEATURES, Vec::new()),
        Asked::TableCounts => (multipart::TABLE, Vec::new()),
        Asked::RulesOf(zone) => (multipart::AGGREGATE, owned_by(zone)),
    }
}

fn owned_by(zone: ZoneId) -> Vec<u8> {
    flows(zone.stamp(0), !COOKIE_MASK)
}

/// All tables, any out port, any group, any match, and these cookies (`ofp_flow_stats_request`, 7.3.5.2).
fn flows(cookie: u64, cookie_mask: u64) -> Vec<u8> {
    let mut body = vec![0xff, 0, 0, 0];
    body.extend([0xff; 8]);
    body.extend([0; 4]);
    body.extend(cookie.to_be_bytes());
    body.extend(cookie_mask.to_be_bytes());
    body.extend([0, 1, 0, 4, 0, 0, 0, 0]);
    body
}
