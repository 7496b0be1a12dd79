//! Text into messages: damaged text first, then what people type, then what is printed.

#![allow(clippy::unwrap_used, reason = "a test may")]

#[path = "../../openflow/tests/captured/mod.rs"]
mod captured;
#[path = "../../openflow/tests/corpus/mod.rs"]
mod corpus;
#[path = "../../openflow/tests/strategy/mod.rs"]
mod strategy;

use flow::{Action, Field, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use openflow_text::text::{parse, to_text};
use proptest::prelude::*;

/// The text is refused at `offset` for the word that stands there.
fn refused(text: &str, offset: usize, word: &str) {
    let bad = parse(text, Version::V1_3, 7).expect_err(text);
    assert_eq!((bad.offset, bad.word.as_str()), (offset, word), "{text}: {bad}");
}

#[test]
fn a_flow_that_is_wrong_is_refused_at_the_word_that_is_wrong() {
    refused("in_prot=1,actions=drop", 0, "in_prot=1");
    refused("add in_port=1,priority=65536,actions=drop", 14, "priority=65536");
    refused("  add tcp,tp_dst=80,ip_dst=1,actions=drop", 20, "ip_dst=1");
    refused("flow modify in_port=1,actions=outptu:2", 30, "outptu:2");
    refused("in_port=1", 9, "");
    refused("modify cookie=1,actions=drop", 7, "cookie=1");
    refused("add cookie=1/2,actions=drop", 4, "cookie=1/2");
    refused("delete cookie=x/1", 7, "cookie=x/1");
    refused("table=256,actions=drop", 0, "table=256");
    refused("idle_timeout=,actions=drop", 0, "idle_timeout=");
    refused("out_port=nowhere,actions=drop", 0, "out_port=nowhere");
    refused("table=+1,actions=drop", 0, "table=+1");
}

#[test]
fn groups_meters_and_packet_outs_that_are_wrong_are_refused() {
    refused("group type=all", 6, "type=all");
    refused("group group_id=1", 16, "");
    refused("group group_id=1,type=some", 17, "type=some");
    refused("group group_id=1,type=all,bucket=weight:1", 33, "weight:1");
    refused("group group_id=1,type=all,bucket=output:1,bucket=outptu:2", 49, "outptu:2");
    refused("group group_id=1,type=all,buckets=1", 26, "buckets=1");
    refused("meter kbps,band=type=drop", 6, "kbps,band=type=drop");
    refused("meter meter=1,kbps,rate=1", 19, "rate=1");
    refused("meter meter=1,kbps,band=type=sink", 24, "type=sink");
    refused("meter meter=1,kbps,band=type=drop,prec_level=1", 34, "prec_level=1");
    refused("packet-out in_port=1,actions=drop", 21, "");
    refused("packet-out in_port=1,packet=0x0,actions=drop", 21, "packet=0x0");
    refused("packet-out port=1,packet=00", 11, "port=1");
}

#[test]
fn a_printed_text_that_leaves_something_out_says_what() {
    let missing = |text: &str| parse(text, Version::V1_3, 0).expect_err(text).message;
    let packet_in = "OFPT_PACKET_IN (OF1.3) (xid=0x0): cookie=0x0 total_len=42 in_port=1 (via no_match) data_len=42 (unbuffered)";
    assert!(missing(packet_in).contains("the packet's bytes"));
    assert!(
        missing("OFPT_PACKET_OUT (OF1.3) (xid=0x0): in_port=1 actions=drop data_len=42\nip")
            .contains("bytes")
    );
    assert!(missing("OFPST_TABLE reply (OF1.3) (xid=0x0):").contains("wildcards"));
    assert!(
        missing("OFPT_PORT_STATUS (OF1.3) (xid=0x0): ADD: 1(eth1): addr:02:00:00:00:00:01").contains("bits")
    );
}

#[test]
fn a_printed_text_that_is_wrong_is_refused_with_its_place() {
    refused("OFPT_NONSENSE (OF1.3) (xid=0x1):", 0, "OFPT_NONSENSE");
    refused("OFPT_BARRIER_REQUEST (OF1.3) (xid=0x1): x", 40, "x");
    refused("OFPT_BARRIER_REQUEST (OF1.3)", 0, "OFPT_BARRIER_REQUEST (OF1.3)");
    refused("OFPT_BARRIER_REQUEST (OF9.9) (xid=0x1):", 0, "OFPT_BARRIER_REQUEST (OF9.9) (xid=0x1):");
    refused("OFPT_ROLE_REQUEST (OF1.3) (xid=0x1): role=boss", 37, "role=boss");
    refused(
        "OFPT_ECHO_REQUEST (OF1.3) (xid=0x1): 2 bytes of payload\n00000000  04 |.|",
        37,
        "2 bytes of payload",
    );
    refused("OFPT_ECHO_REQUEST (OF1.3) (xid=0x1): 1 bytes of payload\nnonsense", 56, "nonsense");
    refused("OFPST_FLOW reply (OF1.3) (xid=0x1):\n cookie=0x0 actions=x", 56, "x");
}

#[test]
fn a_printed_bundle_that_is_wrong_is_refused_with_its_place() {
    refused("ONFT_BUNDLE_CONTROL (OF1.3) (xid=0x1):\n bundle_id=1 type=OPEN flags=0", 52, "type=OPEN");
    refused("ONFT_BUNDLE_CONTROL (OF1.3) (xid=0x1):\n bundle_id=1 flags=0", 40, "bundle_id=1 flags=0");
    refused(
        "ONFT_BUNDLE_CONTROL (OF1.3) (xid=0x1):\n type=OPEN_REPLY flags=0",
        40,
        "type=OPEN_REPLY flags=0",
    );
    refused(
        "ONFT_BUNDLE_CONTROL (OF1.3) (xid=0x1):\n bundle_id=1 type=OPEN_REPLY flags=atomic eager",
        81,
        "eager",
    );
    let add = "ONFT_BUNDLE_ADD_MESSAGE (OF1.3) (xid=0x1):\n bundle_id=1 flags=0";
    refused(add, add.len(), "");
    refused(&format!("{add}\n{add}"), add.len() + 1, "ONFT_BUNDLE_ADD_MESSAGE (OF1.3) (xid=0x1):");
    let inner = "OFPT_FLOW_MOD (OF1.3) (xid=0x1): ADD in_prot=1 actions=drop";
    refused(&format!("{add}\n{inner}"), add.len() + 1 + 37, "in_prot=1");
}

fn flow_mod(text: &str, version: Version) -> FlowMod {
    match parse(text, version, 7).unwrap() {
        Message { body: Body::FlowMod(flow_mod), xid: 7, .. } => flow_mod,
        other => panic!("{text} is {other:?}"),
    }
}

#[test]
fn what_a_flow_does_not_say_is_what_ovs_ofctl_takes_it_for() {
    let read = flow_mod("actions=drop", Version::V1_3);
    let expected = FlowMod {
        cookie: 0,
        cookie_mask: 0,
        table_id: 0,
        command: FLOW_ADD,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        priority: 0x8000,
        buffer_id: NO_BUFFER,
        out_port: PortNo::ANY,
        out_group: GROUP_ANY,
        flags: 0,
        matching: Match::any(),
        instructions: vec![],
    };
    assert_eq!(read, expected);
    let delete = flow_mod("delete", Version::V1_3);
    assert_eq!(delete, FlowMod { command: FLOW_DELETE, table_id: TABLE_ALL, ..expected });
}

#[test]
fn every_word_of_a_flow_is_read() {
    let text = "flow modify_strict, table=3 priority=5, idle_timeout=10 hard_timeout=20,cookie=0x5/0xff,send_flow_rem \
                check_overlap,reset_counts,in_port=LOCAL,actions=output:2,goto_table:4";
    let read = flow_mod(text, Version::V1_3);
    assert_eq!((read.command, read.table_id, read.priority), (FLOW_MODIFY_STRICT, 3, 5));
    assert_eq!((read.idle_timeout_s, read.hard_timeout_s, read.flags), (10, 20, 7));
    assert_eq!((read.cookie, read.cookie_mask), (5, 0xff));
    assert_eq!(read.matching, Match::any().with(Field::InPort, PortNo::LOCAL));
    let actions = Instruction::ApplyActions(vec![Action::output(PortNo(2))]);
    assert_eq!(read.instructions, [actions, Instruction::GotoTable(4)]);
    let delete = flow_mod("delete cookie=1/-1,out_port=4,out_group=5", Version::V1_3);
    assert_eq!((delete.cookie_mask, delete.out_port, delete.out_group), (u64::MAX, PortNo(4), 5));
    assert_eq!(flow_mod("modify cookie=9,actions=drop", Version::V1_0).cookie, 9);
}

fn printed(text: &str, expected: &str) {
    let message = parse(text, Version::V1_3, 1).expect(text);
    assert_eq!(to_text(&message), format!("{expected}\n"), "{text}");
}

#[test]
fn groups_meters_and_packet_outs_are_read() {
    printed(
        "group group_id=1,type=select,bucket=weight:5,output:2,bucket=watch_port=3,actions=3,4",
        "OFPT_GROUP_MOD (OF1.3) (xid=0x1):\n ADD group_id=1,type=select,bucket=weight:5,actions=output:2,bucket=watch_port:3,actions=output:3,output:4",
    );
    printed("group delete", "OFPT_GROUP_MOD (OF1.3) (xid=0x1):\n DEL group_id=4294967292,type=all");
    printed(
        "group delete group_id=all",
        "OFPT_GROUP_MOD (OF1.3) (xid=0x1):\n DEL group_id=4294967292,type=all",
    );
    printed(
        "meter modify meter=7,pktps,burst,stats,bands=type=drop,rate=9,burst_size=1,type=dscp_remark,rate=8,burst_size=2,prec_level=3",
        "OFPT_METER_MOD (OF1.3) (xid=0x1): MOD meter=7 pktps burst stats bands=\ntype=drop rate=9 burst_size=1\ntype=dscp_remark rate=8 burst_size=2 prec_level=3",
    );
    printed("meter delete meter=all", "OFPT_METER_MOD (OF1.3) (xid=0x1): DEL meter=all bands=");
    printed(
        "packet-out packet=0102,actions=output:1",
        "OFPT_PACKET_OUT (OF1.3) (xid=0x1): in_port=CONTROLLER actions=output:1 data_len=2\nvlan_tci=0x0000,dl_src=00:00:00:00:00:00,dl_dst=00:00:00:00:00:00,dl_type=0x0000",
    );
}

/// Types of which no text is read back, each because it leaves something out.
const NEVER_READ: [&str; 16] = [
    "OFPT_PACKET_IN ",
    "OFPT_FEATURES_REPLY ",
    "OFPT_PORT_STATUS ",
    "OFPT_PORT_MOD ",
    "OFPT_QUEUE_GET_CONFIG_REPLY ",
    "OFPST_TABLE reply",
    "OFPST_TABLE_FEATURES reply",
    "OFPST_PORT reply",
    "OFPST_PORT_DESC reply",
    "OFPST_QUEUE reply",
    "OFPST_GROUP reply",
    "OFPST_GROUP_FEATURES reply",
    "OFPST_METER reply",
    "OFPST_METER_FEATURES reply",
    // Some that are read, but not with this in them.
    "OFPT_PACKET_OUT ",
    "OFPT_ERROR ",
];

#[test]
fn what_is_printed_and_read_again_prints_the_same() {
    let bodies = corpus::bodies().into_iter().chain(corpus::variants());
    let mut read = 0;
    for (body, version) in
        bodies.flat_map(|body| [Version::V1_0, Version::V1_3].map(|version| (body.clone(), version)))
    {
        let mut bytes = Vec::new();
        if (Message { version, xid: 7, body }).encode(&mut bytes).is_err() {
            continue;
        }
        let text = to_text(&Message::decode(&bytes).unwrap());
        match parse(&text, Version::V1_3, 0) {
            Ok(message) => {
                read += 1;
                assert_eq!(to_text(&message), text);
            }
            Err(bad) => {
                let expected = NEVER_READ.iter().any(|kind| text.starts_with(kind))
                    || ["unknown", "cmd:", "type=65535", " type= flags="]
                        .iter()
                        .any(|word| text.contains(word));
                assert!(expected, "{bad}\n{text}");
            }
        }
    }
    assert!(read > 90, "{read}");
}

#[test]
fn what_is_captured_and_printed_reads_as_it_was_meant() {
    let mut read = 0;
    for message in captured::messages().iter().filter_map(|bytes| Message::decode(bytes).ok()) {
        let text = to_text(&message);
        if let Ok(again) = parse(&text, Version::V1_3, 0) {
            assert_eq!(to_text(&again), text);
            read += 1;
        }
    }
    assert!(read > 100, "{read}");
}

proptest! {
    #[test]
    fn any_message_that_is_printed_and_read_prints_the_same(message in strategy::any_message()) {
        let text = to_text(&message);
        if let Ok(again) = parse(&text, Version::V1_3, 0) {
            prop_assert_eq!(to_text(&again), text);
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = parse(&text, Version::V1_3, 0);
    }

    #[test]
    fn no_text_that_looks_like_one_panics(
        head in "(OFP(T|ST)_[A-Z_]{3,20}( request| reply)?( \\(OF1.3\\))? \\(xid=0x1\\):|flow|group|meter|packet-out|add|delete)?",
        words in proptest::collection::vec("[ ,\n]?[a-z_]{0,12}[=:(]?[a-z0-9x:/.\\[\\]()|é-]{0,10}", 0..12),
    ) {
        let _ = parse(&format!("{head} {}", words.concat()), Version::V1_0, 0);
    }
}
