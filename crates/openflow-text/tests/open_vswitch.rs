//! What we print for a message is what Open vSwitch's `ovs-ofctl ofp-print` prints for its bytes.
//!
//! Needs `ovs-ofctl`; without it the tests say so by name and pass.

#![allow(clippy::unwrap_used, reason = "a test may")]

#[path = "../../openflow/tests/captured/mod.rs"]
mod captured;
#[path = "../../openflow/tests/corpus/mod.rs"]
mod corpus;
#[path = "../../openflow/tests/strategy/mod.rs"]
mod strategy;

use std::fs;
use std::process::Command;

use flow::{Field, Match, PortNo};
use openflow::hex;
use openflow::{Body, Message, Version};
use openflow_text::text::to_text;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// What Open vSwitch cannot read it shows as a "decode error"; we show what it says. Besides that we differ, on purpose, where
/// a line of ours has these words:
const DIFFERENT_ON_PURPOSE: [(&str, &str); 5] = [
    (
        "unknown element",
        "Open vSwitch dumps the whole hello for an element that it does not know; we print the element",
    ),
    (
        "TABLE_FEATURES reply",
        "Open vSwitch sums up what tables share and drops what it does not know; we print each property",
    ),
    (
        "OFPT_EXPERIMENTER ",
        "Open vSwitch opens Nicira's messages; an experimenter's message is kept whole here",
    ),
    ("OFPST_EXPERIMENTER ", "the same"),
    ("experimenter(0x00002320,", "Nicira's longer actions (learn, for one) are kept whole too"),
];

/// What `ovs-ofctl` prints for the bytes; `None` if there is no `ovs-ofctl`.
fn open_vswitch(bytes: &[u8]) -> Option<String> {
    let output = Command::new("ovs-ofctl").arg("ofp-print").arg(hex::to_text(bytes)).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn is_there(test: &str) -> bool {
    let there = open_vswitch(&[4, 20, 0, 8, 0, 0, 0, 0]).is_some();
    if !there {
        eprintln!("left out: {test} (there is no ovs-ofctl)");
    }
    there
}

#[derive(Default)]
struct Comparison {
    equal: usize,
    unreadable_for_them: usize,
    differing: Vec<String>,
}

impl Comparison {
    /// Counts the message, if its version can say it.
    fn add(&mut self, message: &Message) {
        let mut bytes = Vec::new();
        if message.encode(&mut bytes).is_ok() {
            self.add_bytes(&bytes);
        }
    }

    /// Counts the message, if it is one.
    fn add_bytes(&mut self, bytes: &[u8]) {
        let Ok(message) = Message::decode(bytes) else { return };
        let ours = to_text(&message);
        let theirs = open_vswitch(bytes).unwrap();
        if ours == theirs {
            self.equal += 1;
        } else if theirs.contains("***decode error") {
            self.unreadable_for_them += 1;
        } else if !DIFFERENT_ON_PURPOSE.iter().any(|(words, _)| ours.contains(words)) {
            self.differing
                .push(format!("{}\n--- ours\n{ours}--- Open vSwitch\n{theirs}", hex::to_text(bytes)));
        }
    }

    /// `at_least` messages were compared and found equal, and none differs.
    fn check(&self, at_least: usize) {
        assert!(self.differing.is_empty(), "{} differ:\n{}", self.differing.len(), self.differing.join("\n"));
        assert!(self.equal >= at_least, "{} equal, {} unreadable", self.equal, self.unreadable_for_them);
    }
}

fn compare(bodies: Vec<Body>) -> Comparison {
    let mut comparison = Comparison::default();
    for version in [Version::V1_0, Version::V1_3] {
        for body in &bodies {
            comparison.add(&Message { version, xid: 7, body: body.clone() });
        }
    }
    comparison
}

#[test]
fn each_type_of_message_prints_as_open_vswitch_prints_it() {
    if is_there("each_type_of_message_prints_as_open_vswitch_prints_it") {
        compare(corpus::bodies()).check(70);
    }
}

#[test]
fn messages_with_much_to_say_print_as_open_vswitch_prints_them() {
    if is_there("messages_with_much_to_say_print_as_open_vswitch_prints_them") {
        compare(corpus::variants()).check(80);
    }
}

#[test]
fn what_open_vswitch_sends_prints_as_it_prints_it() {
    if !is_there("what_open_vswitch_sends_prints_as_it_prints_it") {
        return;
    }
    let mut comparison = Comparison::default();
    for file in captured::files() {
        let text = fs::read_to_string(&file).unwrap();
        captured::blocks(&text).for_each(|block| comparison.add_bytes(&captured::bytes(block)));
    }
    comparison.check(190);
}

#[test]
fn messages_that_nobody_chose_print_as_open_vswitch_prints_them() {
    if !is_there("messages_that_nobody_chose_print_as_open_vswitch_prints_them") {
        return;
    }
    // The same ones each time.
    let mut runner = TestRunner::deterministic();
    let mut comparison = Comparison::default();
    for _ in 0..400 {
        let mut message = strategy::any_message().new_tree(&mut runner).unwrap().current();
        // Of what a packet-in may say of its packet, switches say where it came in; Open vSwitch cannot show fields
        // that lack what they stand on.
        if let Body::PacketIn(packet_in) = &mut message.body {
            packet_in.matching = Match::any().with(Field::InPort, PortNo(3));
        }
        // Of several properties of one kind, Open vSwitch shows one.
        if let Body::QueueGetConfigReply(reply) = &mut message.body {
            reply.queues.iter_mut().for_each(|queue| queue.properties.truncate(1));
        }
        comparison.add(&message);
    }
    comparison.check(100);
}

/// What `ovs-ofctl` makes of a text, as it prints it, less the transaction id.
fn read_by_open_vswitch(command: &str, text: &str) -> String {
    let output = Command::new("ovs-ofctl").args(["-O", "OpenFlow13", command, text]).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let start = printed
        .find("OFPT_")
        .unwrap_or_else(|| panic!("{text}: {}", String::from_utf8_lossy(&output.stderr)));
    printed[start..].replace("(xid=0x1)", "(xid=0x7)").replace("(xid=0x2)", "(xid=0x7)")
}

#[test]
fn text_is_read_as_open_vswitch_reads_it() {
    if !is_there("text_is_read_as_open_vswitch_reads_it") {
        return;
    }
    let flows = [
        "actions=drop",
        "in_port=1,actions=output:2",
        "table=3,priority=7,idle_timeout=4,hard_timeout=5,cookie=0x1234,tcp,nw_src=10.0.0.0/8,tp_dst=80,actions=2,3",
        "send_flow_rem check_overlap reset_counts no_packet_counts no_byte_counts ip actions=normal",
        "arp,arp_op=1,actions=CONTROLLER:128",
        "dl_vlan=5,actions=pop_vlan,output:in_port",
        "ipv6,ipv6_src=fe80::/64,actions=dec_ttl,flood",
        "udp,tp_src=0x35/0xff,actions=meter:3,output:1,write_metadata:5/0xff,goto_table:9",
        "actions=group:5",
        "actions=set_field:00:11:22:33:44:55->eth_dst,all",
    ];
    let groups = [
        "group_id=1,type=all",
        "group_id=1,type=indirect,bucket=output:5",
        "group_id=1,type=select,bucket=weight:5,output:2,bucket=actions=3,4",
        "group_id=0xff,type=fast_failover,bucket=watch_port=3,actions=3,bucket=watch_group:4,output:4",
    ];
    let flows = flows.map(|text| ("parse-flow", text, text.to_owned()));
    let groups = groups.map(|text| ("parse-group", text, format!("group {text}")));
    for (command, text, ours) in flows.into_iter().chain(groups) {
        let message = openflow_text::text::parse(&ours, Version::V1_3, 7).expect(text);
        let mut bytes = Vec::new();
        message.encode(&mut bytes).expect(text);
        assert_eq!(open_vswitch(&bytes).unwrap(), read_by_open_vswitch(command, text), "{text}");
    }
}
