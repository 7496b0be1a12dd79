//! The numbers that have names in JSON, and their names.
//!
//! The names are the specification's constants without their prefix, in lower case. Never touches a value: see
//! [`super::words`].

use openflow::version::Version;

/// The names of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vocabulary {
    /// The number is one of these; any other stays a number.
    One(Names),
    /// The number is a set of bits: a list of their names, and one number for the bits that have none.
    Bits(Names),
    /// An array of such sets.
    EachBits(Names),
    /// An array of OXM headers: the field's name, followed by `/mask` if the header has the mask bit.
    EachOxmHeader,
}
use Vocabulary::{Bits, EachBits, EachOxmHeader, One};

/// Numbers (of `Bits`: the bit itself, as a mask) and their names.
pub(crate) type Names = &'static [(u64, &'static str)];

const ALL_ONES: u64 = 0xffff_ffff;

/// The names of the number under `key`. `scope` is the type of the message (`multipart` of a multipart message), or the
/// key of the object or list around it (with the way from `properties` on, for a table's).
pub(super) fn vocabulary(version: Version, scope: &str, key: &str) -> Option<Vocabulary> {
    let old = version == Version::V1_0;
    Some(match (scope, key) {
        ("multipart_request" | "multipart_reply", "flags") => Bits(&[(1, "more")]),
        ("packet_in", "reason") => One(PACKET_IN_REASONS),
        ("flow_removed", "reason") => One(FLOW_REMOVED_REASONS),
        ("port_status", "reason") => One(PORT_REASONS),
        ("flow_mod", "command") => One(FLOW_COMMANDS),
        ("flow_mod" | "flows", "flags") => Bits(if old { FLOW_FLAGS_1_0 } else { FLOW_FLAGS_1_3 }),
        ("group_mod" | "meter_mod", "command") => One(&[(0, "add"), (1, "modify"), (2, "delete")]),
        ("meter_mod" | "meters", "flags") | ("meter_features", "capabilities") => Bits(METER_FLAGS),
        ("meter_features", "band_types") => Bits(&[(1 << 1, "drop"), (1 << 2, "dscp_remark")]),
        ("role_request" | "role_reply", "role") => One(ROLES),
        ("bundle_control", "control_type") => One(BUNDLE_CONTROLS),
        ("bundle_control" | "bundle_add_message", "flags") => Bits(&[(1, "atomic"), (2, "ordered")]),
        ("set_config" | "get_config_reply", "flags") => One(FRAGMENTS),
        ("features_reply", "capabilities") => Bits(if old { CAPABILITIES_1_0 } else { CAPABILITIES_1_3 }),
        ("features_reply", "actions") if old => Bits(ACTION_BITS_1_0),
        ("group_features", "types") => {
            Bits(&[(1, "all"), (2, "select"), (4, "indirect"), (8, "fast_failover")])
        }
        ("group_features", "capabilities") => Bits(GROUP_CAPABILITIES),
        ("group_features", "actions") => EachBits(ACTION_BITS_1_3),
        ("get_async_reply" | "set_async", "packet_in_mask") => EachBits(PACKET_IN_REASON_BITS),
        ("get_async_reply" | "set_async", "port_status_mask") => EachBits(PORT_REASON_BITS),
        ("get_async_reply" | "set_async", "flow_removed_mask") => EachBits(FLOW_REMOVED_REASON_BITS),
        ("ports" | "port", _) | ("port_mod", "config" | "mask" | "advertise") => return of_port(old, key),
        ("properties.instructions.ids", "type") => One(INSTRUCTION_TYPES),
        ("properties.actions.ids", "type") => One(ACTION_TYPES_1_3),
        ("properties.oxm", "oxm_ids") => EachOxmHeader,
        (_, "type") if scope.starts_with("properties.") => One(TABLE_PROPERTIES),
        _ => return of_any(key),
    })
}

/// Keys that mean the same wherever they are.
fn of_any(key: &str) -> Option<Vocabulary> {
    Some(One(match key {
        "buffer_id" => &[(ALL_ONES, "no_buffer")],
        "out_group" | "watch_group" => &[(ALL_ONES, "any")],
        "group_id" => &[(0xffff_fffc, "all"), (ALL_ONES, "any")],
        "group_type" => &[(0, "all"), (1, "select"), (2, "indirect"), (3, "fast_failover")],
        "meter_id" => &[(ALL_ONES, "all"), (0xffff_fffe, "controller"), (0xffff_fffd, "slowpath")],
        "queue_id" => &[(ALL_ONES, "all")],
        "table_id" => &[(0xff, "all")],
        _ => return None,
    }))
}

fn of_port(old: bool, key: &str) -> Option<Vocabulary> {
    Some(Bits(match key {
        "config" | "mask" if old => PORT_CONFIG_1_0,
        "config" | "mask" => PORT_CONFIG_1_3,
        "state" if old => PORT_STATE_1_0,
        "state" => PORT_STATE_1_3,
        "curr" | "advertised" | "supported" | "peer" | "advertise" if old => PORT_FEATURES_1_0,
        "curr" | "advertised" | "supported" | "peer" | "advertise" => PORT_FEATURES_1_3,
        _ => return None,
    }))
}

const PACKET_IN_REASONS: Names = &[(0, "no_match"), (1, "action"), (2, "invalid_ttl")];
const PACKET_IN_REASON_BITS: Names = &[(1, "no_match"), (2, "action"), (4, "invalid_ttl")];
const PORT_REASONS: Names = &[(0, "add"), (1, "delete"), (2, "modify")];
const PORT_REASON_BITS: Names = &[(1, "add"), (2, "delete"), (4, "modify")];
const FLOW_REMOVED_REASONS: Names =
    &[(0, "idle_timeout"), (1, "hard_timeout"), (2, "delete"), (3, "group_delete")];
const FLOW_REMOVED_REASON_BITS: Names =
    &[(1, "idle_timeout"), (2, "hard_timeout"), (4, "delete"), (8, "group_delete")];
const FLOW_COMMANDS: Names =
    &[(0, "add"), (1, "modify"), (2, "modify_strict"), (3, "delete"), (4, "delete_strict")];
const FLOW_FLAGS_1_0: Names = &[(1, "send_flow_rem"), (2, "check_overlap"), (4, "emerg")];
const FLOW_FLAGS_1_3: Names = &[
    (1, "send_flow_rem"),
    (2, "check_overlap"),
    (4, "reset_counts"),
    (8, "no_pkt_counts"),
    (16, "no_byt_counts"),
];
const METER_FLAGS: Names = &[(1, "kbps"), (2, "pktps"), (4, "burst"), (8, "stats")];
const ROLES: Names = &[(0, "nochange"), (1, "equal"), (2, "master"), (3, "slave")];
const BUNDLE_CONTROLS: Names = &[
    (0, "open_request"),
    (1, "open_reply"),
    (2, "close_request"),
    (3, "close_reply"),
    (4, "commit_request"),
    (5, "commit_reply"),
    (6, "discard_request"),
    (7, "discard_reply"),
];
const FRAGMENTS: Names = &[(0, "frag_normal"), (1, "frag_drop"), (2, "frag_reasm")];
const CAPABILITIES_1_0: Names = &[
    (1, "flow_stats"),
    (2, "table_stats"),
    (4, "port_stats"),
    (8, "stp"),
    (0x20, "ip_reasm"),
    (0x40, "queue_stats"),
    (0x80, "arp_match_ip"),
];
const CAPABILITIES_1_3: Names = &[
    (1, "flow_stats"),
    (2, "table_stats"),
    (4, "port_stats"),
    (8, "group_stats"),
    (0x20, "ip_reasm"),
    (0x40, "queue_stats"),
    (0x100, "port_blocked"),
];
const GROUP_CAPABILITIES: Names =
    &[(1, "select_weight"), (2, "select_liveness"), (4, "chaining"), (8, "chaining_checks")];
const ACTION_BITS_1_0: Names = &[
    (1, "output"),
    (1 << 1, "set_vlan_vid"),
    (1 << 2, "set_vlan_pcp"),
    (1 << 3, "strip_vlan"),
    (1 << 4, "set_dl_src"),
    (1 << 5, "set_dl_dst"),
    (1 << 6, "set_nw_src"),
    (1 << 7, "set_nw_dst"),
    (1 << 8, "set_nw_tos"),
    (1 << 9, "set_tp_src"),
    (1 << 10, "set_tp_dst"),
    (1 << 11, "enqueue"),
];
/// The actions that have a bit: all but an experimenter's.
const ACTION_BITS_1_3: Names = &bits_of(ACTION_TYPES_1_3);
pub(crate) const ACTION_TYPES_1_3: Names = &[
    (0, "output"),
    (11, "copy_ttl_out"),
    (12, "copy_ttl_in"),
    (15, "set_mpls_ttl"),
    (16, "dec_mpls_ttl"),
    (17, "push_vlan"),
    (18, "pop_vlan"),
    (19, "push_mpls"),
    (20, "pop_mpls"),
    (21, "set_queue"),
    (22, "group"),
    (23, "set_nw_ttl"),
    (24, "dec_nw_ttl"),
    (25, "set_field"),
    (26, "push_pbb"),
    (27, "pop_pbb"),
    (0xffff, "experimenter"),
];

/// The bit of each number but the last.
const fn bits_of(numbers: Names) -> [(u64, &'static str); ACTION_TYPES_1_3.len() - 1] {
    let mut bits = [(0, ""); ACTION_TYPES_1_3.len() - 1];
    let mut at = 0;
    while at < bits.len() {
        bits[at] = (1 << numbers[at].0, numbers[at].1);
        at += 1;
    }
    bits
}

pub(crate) const INSTRUCTION_TYPES: Names = &[
    (1, "goto_table"),
    (2, "write_metadata"),
    (3, "write_actions"),
    (4, "apply_actions"),
    (5, "clear_actions"),
    (6, "meter"),
    (0xffff, "experimenter"),
];
const PORT_CONFIG_1_0: Names = &[
    (1, "port_down"),
    (2, "no_stp"),
    (4, "no_recv"),
    (8, "no_recv_stp"),
    (0x10, "no_flood"),
    (0x20, "no_fwd"),
    (0x40, "no_packet_in"),
];
const PORT_CONFIG_1_3: Names = &[(1, "port_down"), (4, "no_recv"), (0x20, "no_fwd"), (0x40, "no_packet_in")];
/// Bits 8 and 9 are a separate number: the spanning-tree state, where `stp_listen` is 0.
const PORT_STATE_1_0: Names = &[(1, "link_down"), (0x100, "stp_learn"), (0x200, "stp_forward")];
const PORT_STATE_1_3: Names = &[(1, "link_down"), (2, "blocked"), (4, "live")];
const PORT_FEATURES_1_0: Names = &[
    (1, "10mb_hd"),
    (1 << 1, "10mb_fd"),
    (1 << 2, "100mb_hd"),
    (1 << 3, "100mb_fd"),
    (1 << 4, "1gb_hd"),
    (1 << 5, "1gb_fd"),
    (1 << 6, "10gb_fd"),
    (1 << 7, "copper"),
    (1 << 8, "fiber"),
    (1 << 9, "autoneg"),
    (1 << 10, "pause"),
    (1 << 11, "pause_asym"),
];
const PORT_FEATURES_1_3: Names = &[
    (1, "10mb_hd"),
    (1 << 1, "10mb_fd"),
    (1 << 2, "100mb_hd"),
    (1 << 3, "100mb_fd"),
    (1 << 4, "1gb_hd"),
    (1 << 5, "1gb_fd"),
    (1 << 6, "10gb_fd"),
    (1 << 7, "40gb_fd"),
    (1 << 8, "100gb_fd"),
    (1 << 9, "1tb_fd"),
    (1 << 10, "other"),
    (1 << 11, "copper"),
    (1 << 12, "fiber"),
    (1 << 13, "autoneg"),
    (1 << 14, "pause"),
    (1 << 15, "pause_asym"),
];
const TABLE_PROPERTIES: Names = &[
    (0, "instructions"),
    (1, "instructions_miss"),
    (2, "next_tables"),
    (3, "next_tables_miss"),
    (4, "write_actions"),
    (5, "write_actions_miss"),
    (6, "apply_actions"),
    (7, "apply_actions_miss"),
    (8, "match"),
    (10, "wildcards"),
    (12, "write_setfield"),
    (13, "write_setfield_miss"),
    (14, "apply_setfield"),
    (15, "apply_setfield_miss"),
    (0xfffe, "experimenter"),
    (0xffff, "experimenter_miss"),
];
