//! Messages to bytes.
//!
//! In: a header, a message and a key. Out: a signed datagram. It never fails: a message beyond the bounds is cut, and the caller
//! keeps to [`RATES_MAX`] and [`ENTRIES_MAX`].

use super::{
    DATAGRAM_MAX, ENTRIES_MAX, Entry, HEADER_BYTES, Header, Key, MAGIC, Message, RATES_MAX, RateOf,
    SIGNATURE_BYTES, VERSION,
};

/// The datagram of a message. Rates beyond [`RATES_MAX`] and entries beyond [`ENTRIES_MAX`] are left out.
pub fn write(header: &Header, message: &Message, key: &Key) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(DATAGRAM_MAX);
    bytes.extend_from_slice(&MAGIC);
    // The length comes at the end.
    bytes.extend_from_slice(&[VERSION, message.kind(), 0, 0]);
    bytes.extend_from_slice(&header.from.0.to_be_bytes());
    bytes.extend_from_slice(&header.to.0.to_be_bytes());
    for number in [header.from_session, header.to_session, header.sequence] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    debug_assert_eq!(bytes.len(), HEADER_BYTES);
    body(message, &mut bytes);
    let length = (bytes.len() + SIGNATURE_BYTES) as u16;
    bytes[6..8].copy_from_slice(&length.to_be_bytes());
    let signature = key.sign(&bytes);
    bytes.extend_from_slice(&signature);
    bytes
}

fn body(message: &Message, bytes: &mut Vec<u8>) {
    match message {
        Message::Hello | Message::Welcome => {}
        Message::Feedback(rates) | Message::Caps(rates) => {
            rates.iter().take(RATES_MAX).for_each(|rate| write_rate(*rate, bytes));
        }
        Message::Report { number, entries } => {
            bytes.extend_from_slice(&number.to_be_bytes());
            for Entry { what, flow, rate_bps } in entries.iter().take(ENTRIES_MAX) {
                bytes.extend_from_slice(&[what.number(), 0, 0, 0]);
                write_rate(RateOf { flow: *flow, rate_bps: *rate_bps }, bytes);
            }
        }
        Message::Again { first, last } => {
            bytes.extend_from_slice(&first.to_be_bytes());
            bytes.extend_from_slice(&last.to_be_bytes());
        }
        Message::Beat { newest } => bytes.extend_from_slice(&newest.to_be_bytes()),
    }
}

fn write_rate(rate: RateOf, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&rate.flow.sender.0.to_be_bytes());
    bytes.extend_from_slice(&rate.flow.receiver.0.to_be_bytes());
    bytes.extend_from_slice(&rate.rate_bps.to_be_bytes());
}
