//! What we print for a message is what Open vSwitch's `ovs-ofctl ofp-print` prints for its bytes.
//!
//! Needs `ovs-ofctl`; without it the tests say so by name and pass.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod corpus;

use std::process::Command;

use openflow::json::hex;
use openflow::text::to_text;
use openflow::{Body, Message, Version};

/// What Open vSwitch cannot read it shows as a "decode error"; we show what it says. Besides that we differ, on purpose, where
/// a line of ours has these words:
const DIFFERENT_ON_PURPOSE: [(&str, &str); 2] = [
    (
        "unknown element",
        "Open vSwitch dumps the whole hello for an element that it does not know; we print the element",
    ),
    (
        "TABLE_FEATURES reply",
        "Open vSwitch sums up what tables share and drops what it does not know; we print each property",
    ),
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
        if message.encode(&mut bytes).is_err() {
            return;
        }
        let ours = to_text(&Message::decode(&bytes).unwrap());
        let theirs = open_vswitch(&bytes).unwrap();
        if ours == theirs {
            self.equal += 1;
        } else if theirs.contains("***decode error") {
            self.unreadable_for_them += 1;
        } else if !DIFFERENT_ON_PURPOSE.iter().any(|(words, _)| ours.contains(words)) {
            self.differing
                .push(format!("{}\n--- ours\n{ours}--- Open vSwitch\n{theirs}", hex::to_text(&bytes)));
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
