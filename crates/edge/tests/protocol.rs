//! The protocol of agents to the byte: damaged datagrams first, then each message as text and in hexadecimal (`protocol.golden`).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use edge::protocol::{
    DATAGRAM_MAX, ENTRIES_MAX, Entry, Header, Key, Malformed, Message, NO_CAP, RATES_MAX, RateOf, What, read,
    write,
};
use edge::vnic::{AgentId, Flow, RATE_MAX_BPS, VnicId};
use proptest::prelude::*;

const A: u64 = 0xa0a1_a2a3_a4a5_a6a7;
const B: u64 = 0xb0b1_b2b3_b4b5_b6b7;

fn key() -> Key {
    Key(std::array::from_fn(|index| index as u8))
}

fn flow(sender: u32, receiver: u32) -> Flow {
    Flow { sender: VnicId(sender), receiver: VnicId(receiver) }
}

fn rate(sender: u32, receiver: u32, rate_bps: u64) -> RateOf {
    RateOf { flow: flow(sender, receiver), rate_bps }
}

fn entry(what: What, sender: u32, receiver: u32, rate_bps: u64) -> Entry {
    Entry { what, flow: flow(sender, receiver), rate_bps }
}

/// From agent 1 to agent 2, or back.
fn header(there: bool, to_session: u64, sequence: u64) -> Header {
    let (one, two) = (AgentId(1), AgentId(2));
    let (from, to, from_session) = if there { (one, two, A) } else { (two, one, B) };
    Header { from, to, from_session, to_session, sequence }
}

/// What the lines of the golden file say.
fn messages() -> Vec<(Header, Message)> {
    let entries = vec![
        entry(What::Reset, 0, 0, 0),
        entry(What::Began, 11, 12, 9_800_000),
        entry(What::Rate, 11, 12, 1),
        entry(What::Ended, 13, 12, 0),
        entry(What::Shaped, 12, 11, 4_900_000),
        entry(What::Unshaped, 14, 12, 0),
    ];
    vec![
        (header(true, 0, 0), Message::Hello),
        (header(false, A, 0), Message::Welcome),
        (header(true, B, 1), Message::Feedback(vec![rate(11, 12, 5_000_000), rate(13, 12, 0)])),
        (header(true, B, 2), Message::Report { number: 1, entries }),
        (header(false, A, 1), Message::Again { first: 3, last: 7 }),
        (header(true, B, 3), Message::Beat { newest: 9 }),
        (header(false, A, 2), Message::Caps(vec![rate(11, 12, 4_444_444_444), rate(13, 14, NO_CAP)])),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn damaged_datagrams_are_refused_with_the_place() {
    let feedback = write(&header(true, B, 1), &Message::Feedback(vec![rate(11, 12, 5)]), &key());
    let reset = entry(What::Reset, 0, 0, 0);
    let report =
        write(&header(true, B, 1), &Message::Report { number: 1, entries: vec![reset, reset] }, &key());
    let check = |bytes: &[u8], change: &[(usize, u8)], expected: &str| {
        let mut damaged = bytes.to_vec();
        change.iter().for_each(|(at, byte)| damaged[*at] = *byte);
        assert_eq!(read(&damaged).unwrap_err().to_string(), expected);
    };
    check(&feedback[..55], &[], "a datagram of 55 bytes; it has 56 to 1232");
    check(&[0; 1233], &[], "a datagram of 1233 bytes; it has 56 to 1232");
    check(&feedback, &[(0, b'b')], "it does not begin with BEDG");
    check(&feedback, &[(4, 2)], "version 2; this program has 1");
    check(&feedback, &[(7, 73)], "byte 6: a length of 73, but there are 72 bytes");
    check(&feedback, &[(5, 0)], "byte 5: 0 is not a valid kind of message");
    check(&feedback, &[(5, 8)], "byte 5: 8 is not a valid kind of message");
    check(&feedback, &[(5, 1)], "a message of kind 1 with a body of 16 bytes");
    check(&feedback, &[(5, 6)], "a message of kind 6 with a body of 16 bytes");
    check(&feedback, &[(5, 5), (47, 0)], "byte 40: a value that is not allowed");
    // A session of 0, and rates beyond a terabit a second.
    let no_session: Vec<(usize, u8)> = (16..24).map(|at| (at, 0)).collect();
    check(&feedback, &no_session, "byte 16: a value that is not allowed");
    let no_session: Vec<(usize, u8)> = (24..32).map(|at| (at, 0)).collect();
    check(&feedback, &no_session, "byte 24: a value that is not allowed");
    check(&feedback, &[(39, 0)], "byte 32: a value that is not allowed");
    check(&feedback, &[(48, 1)], "byte 48: a value that is not allowed");
    check(&feedback, &[(5, 7), (48, 1)], "byte 48: a value that is not allowed");
    // A reset that is not first, an unknown entry, a reserved byte.
    check(&report, &[], "byte 68: a value that is not allowed");
    check(&report, &[(48, 6)], "byte 48: a value that is not allowed");
    check(&report, &[(49, 1)], "byte 49: a value that is not allowed");
    check(&report, &[(47, 0)], "byte 40: a value that is not allowed");
}

#[test]
fn each_message_is_what_the_golden_file_says() {
    let golden = include_str!("protocol.golden");
    let lines: Vec<(&str, &str)> = golden
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit_once(" = ").unwrap())
        .collect();
    assert_eq!(lines.len(), messages().len());
    for ((header, message), (text, bytes)) in messages().iter().zip(lines) {
        assert_eq!(message.to_string(), text);
        assert_eq!(hex(&write(header, message, &key())), bytes, "{text}");
        let bytes = unhex(bytes);
        let envelope = read(&bytes).unwrap();
        assert_eq!((&envelope.header, &envelope.message), (header, message));
        assert!(envelope.is_signed_with(&key()) && !envelope.is_signed_with(&Key([0; 32])));
    }
}

#[test]
fn the_largest_messages_fit_into_a_datagram_and_larger_ones_are_cut() {
    let rates = |count| Message::Feedback(vec![rate(1, 2, 3); count]);
    let report = |count| Message::Report { number: 1, entries: vec![entry(What::Rate, 1, 2, 3); count] };
    for (largest, larger) in
        [(rates(RATES_MAX), rates(RATES_MAX + 1)), (report(ENTRIES_MAX), report(ENTRIES_MAX + 1))]
    {
        let bytes = write(&header(true, B, 1), &largest, &key());
        assert!(bytes.len() <= DATAGRAM_MAX && bytes.len() + 20 > DATAGRAM_MAX);
        assert_eq!(write(&header(true, B, 1), &larger, &key()), bytes);
        assert_eq!(read(&bytes).unwrap().message, largest);
    }
}

fn any_message() -> impl Strategy<Value = Message> {
    let rates = || {
        let one =
            (any::<u32>(), any::<u32>(), 0..=RATE_MAX_BPS).prop_map(|(from, to, bps)| rate(from, to, bps));
        prop::collection::vec(one, 1..=RATES_MAX)
    };
    let kinds = [What::Began, What::Rate, What::Ended, What::Shaped, What::Unshaped];
    let one = (0..kinds.len(), any::<u32>(), any::<u32>(), 0..=RATE_MAX_BPS)
        .prop_map(move |(kind, from, to, bps)| entry(kinds[kind], from, to, bps));
    prop_oneof![
        rates().prop_map(Message::Feedback),
        rates().prop_map(Message::Caps),
        Just(Message::Caps(Vec::new())),
        (1..u64::MAX, prop::collection::vec(one, 1..=ENTRIES_MAX))
            .prop_map(|(number, entries)| Message::Report { number, entries }),
        (1..1000u64, 0..1000u64).prop_map(|(first, more)| Message::Again { first, last: first + more }),
        any::<u64>().prop_map(|newest| Message::Beat { newest }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(message in any_message(), sequence in 1..u64::MAX) {
        let header = header(true, B, sequence);
        let bytes = write(&header, &message, &key());
        let envelope = read(&bytes).unwrap();
        prop_assert!(envelope.is_signed_with(&key()));
        prop_assert_eq!((envelope.header, envelope.message), (header, message));
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..9u8) {
        // With the right beginning, the rest is looked at too.
        let length = (bytes.len() as u16).to_be_bytes();
        for (at, byte) in [b'B', b'E', b'D', b'G', 1, kind, length[0], length[1]].into_iter().enumerate() {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        match read(&bytes) {
            Ok(envelope) => prop_assert!(!envelope.is_signed_with(&key())),
            Err(Malformed::Size(size)) => prop_assert_eq!(size, bytes.len()),
            Err(_) => {}
        }
    }
}
