//! What the operator reads in the log.

use crate::node::Node;
use crate::switch::Switch;
use openflow::Version;
use southbound::SouthboundConfig;
use std::io;
use std::sync::{Arc, Mutex};

/// Where a test's lines go.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs `act`, and gives back what it wrote into the log.
pub fn lines_of(act: impl FnOnce()) -> Vec<String> {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .without_time()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, act);
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// There is one line with all of these in it.
pub fn check(lines: &[String], expected: &[&str]) {
    let found = lines.iter().filter(|line| expected.iter().all(|part| line.contains(part))).count();
    assert_eq!(found, 1, "{expected:?} in {lines:#?}");
}

#[test]
fn a_damaged_message_is_named_with_its_peer_its_field_and_its_offset() {
    let lines = lines_of(|| {
        let mut node = Node::new(SouthboundConfig::default());
        let mut switch = Switch::up(&mut node, Version::V1_3, 7);
        switch.say_bytes(&[4, 10, 0, 10, 0, 0, 0, 1, 0, 0]);
        node.until("an error", |_| switch.has_heard(|body| matches!(body, openflow::Body::Error(_))));
    });
    let damaged = ["WARN", "peer=127.0.0.1:", "OFPT_PACKET_IN", "field=\"buffer_id\"", "offset=8"];
    check(&lines, &damaged);
    check(&lines, &["INFO", "switch up", "datapath=of:0000000000000007", "version=1.3"]);
}

#[test]
fn the_end_of_a_session_is_one_line_with_the_reason_and_whose_fault_it_is() {
    let lines = lines_of(|| {
        let mut node = Node::new(SouthboundConfig::default());
        let switch = Switch::up(&mut node, Version::V1_3, 7);
        drop(switch);
        node.until("it is down", |node| node.downs() == 1);
        let mut stranger = Switch::silent(&node);
        stranger.say_bytes(b"GET / HTTP/1.1\r\n\r\n");
        node.until("it is closed", |_| {
            stranger.pump();
            stranger.closed
        });
    });
    check(&lines, &["switch down: the switch closed the connection", "fault=the network"]);
    check(
        &lines,
        &["no switch connected: the first message must be OFPT_HELLO", "field=\"type\"", "offset=1"],
    );
}

#[test]
fn a_duplicate_datapath_id_is_shouted_about() {
    let lines = lines_of(|| {
        let mut node = Node::new(SouthboundConfig::default());
        let mut first = Switch::up(&mut node, Version::V1_3, 7);
        let mut second = Switch::silent(&node);
        second.shake_hands(Version::V1_3, 7);
        node.until("it is closed", |node| {
            node.now_ms += 1;
            if first.has_heard(|body| matches!(body, openflow::Body::EchoRequest(_))) {
                first.heard.clear();
                first.say(Version::V1_3, openflow::Body::EchoReply(Vec::new()));
            }
            second.pump();
            second.closed
        });
    });
    check(
        &lines,
        &["ERROR", "switch refused: datapath id of:0000000000000007 is in use by the session with"],
    );
}
