//! Flow mods of one shape: written whole once, and then copied with other values.
//!
//! ```text
//!   flow mod of port, destination and source with one output ──> RuleTemplate::of ──> RuleTemplate::write ──> the same with other values
//! ```
//!
//! In: a message that was written, and what it says. Out: messages that differ in that alone. Never writes what the version cannot say.

use crate::header::HEADER_LEN;
use crate::version::Version;
use flow::PortNo;
use flow::canonical::RuleValues;

/// What differs between two messages of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleWords {
    /// The transaction id.
    pub xid: u32,
    /// The packet in the switch, or [`crate::message::NO_BUFFER`].
    pub buffer_id: u32,
    /// Match and output.
    pub values: RuleValues,
}

/// A flow mod whose values can be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleTemplate(Bytes);

/// By version; with these lengths nothing else is in the message.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Bytes {
    V10([u8; LEN_V10]),
    V13([u8; LEN_V13]),
}

/// `ofp_flow_mod` of 1.0 with one output (1.0.0, 5.3.3), and where its values are.
const LEN_V10: usize = HEADER_LEN + 40 + 24 + 8;
mod v10 {
    pub const IN_PORT: usize = 12;
    pub const ETH_SRC: usize = 14;
    pub const ETH_DST: usize = 20;
    pub const BUFFER: usize = 64;
    pub const OUTPUT: usize = 76;
}

/// `ofp_flow_mod` of 1.3 with a match of three fields and one applied output (1.3.5, 7.3.4.1).
const LEN_V13: usize = HEADER_LEN + 40 + 4 + 28 + 24;
mod v13 {
    pub const BUFFER: usize = 32;
    pub const IN_PORT: usize = 56;
    pub const ETH_DST: usize = 64;
    pub const ETH_SRC: usize = 74;
    pub const OUTPUT: usize = 92;
}

/// In every message (1.3.5, 7.1).
const XID: usize = 4;

#[inline(always)]
fn put<const LEN: usize, const N: usize>(message: &mut [u8; LEN], at: usize, bytes: [u8; N]) {
    message[at..at + N].copy_from_slice(&bytes);
}

#[inline(always)]
fn address(number: u64) -> [u8; 6] {
    let [_, _, address @ ..] = number.to_be_bytes();
    address
}

#[inline(always)]
fn put_v10(message: &mut [u8; LEN_V10], words: &RuleWords, [in_port, output]: [u16; 2]) {
    put(message, XID, words.xid.to_be_bytes());
    put(message, v10::IN_PORT, in_port.to_be_bytes());
    put(message, v10::ETH_SRC, address(words.values.eth_src));
    put(message, v10::ETH_DST, address(words.values.eth_dst));
    put(message, v10::BUFFER, words.buffer_id.to_be_bytes());
    put(message, v10::OUTPUT, output.to_be_bytes());
}

#[inline(always)]
fn put_v13(message: &mut [u8; LEN_V13], words: &RuleWords) {
    put(message, XID, words.xid.to_be_bytes());
    put(message, v13::BUFFER, words.buffer_id.to_be_bytes());
    put(message, v13::IN_PORT, words.values.in_port.0.to_be_bytes());
    put(message, v13::ETH_DST, address(words.values.eth_dst));
    put(message, v13::ETH_SRC, address(words.values.eth_src));
    put(message, v13::OUTPUT, words.values.output.0.to_be_bytes());
}

/// The port's number in 1.0 and the output's, if it has both.
#[inline(always)]
fn ports_of_v10(values: &RuleValues) -> Option<[u16; 2]> {
    let is_port = |port: PortNo| port.0 < 0xff00;
    let both = is_port(values.in_port) && is_port(values.output);
    // Below 2^16.
    both.then_some([values.in_port.0 as u16, values.output.0 as u16])
}

impl RuleTemplate {
    /// The template of a message that was written with these values; `None`: it is of another shape.
    pub fn of(message: &[u8], words: &RuleWords) -> Option<RuleTemplate> {
        let [version, ..] = message else { return None };
        let bytes = match Version(*version) {
            Version::V1_0 => Bytes::V10(message.try_into().ok()?),
            Version::V1_3 => Bytes::V13(message.try_into().ok()?),
            _ => return None,
        };
        let template = RuleTemplate(bytes);
        // Other values are written where these are found.
        let mut again = Vec::new();
        let values = RuleValues {
            in_port: PortNo(words.values.in_port.0 ^ 1),
            eth_dst: words.values.eth_dst ^ 1,
            eth_src: words.values.eth_src ^ 1,
            output: PortNo(words.values.output.0 ^ 1),
        };
        let others = RuleWords { xid: !words.xid, buffer_id: !words.buffer_id, values };
        let is_replaced = template.write(&others, &mut again);
        let RuleTemplate(there_and_back) = RuleTemplate::taken(&again)?;
        let mut written = Vec::new();
        let is_same = RuleTemplate(there_and_back).write(words, &mut written) && written == message;
        (is_replaced && is_same && again != message).then_some(template)
    }

    fn taken(message: &[u8]) -> Option<RuleTemplate> {
        let of_v10 = message.try_into().map(Bytes::V10).ok();
        of_v10.or_else(|| message.try_into().map(Bytes::V13).ok()).map(RuleTemplate)
    }

    /// Appends the message with other values. Appends nothing if OpenFlow 1.0 has no number for a port. The writer of
    /// the whole message reports that error.
    #[inline(always)]
    pub fn write(&self, words: &RuleWords, out: &mut Vec<u8>) -> bool {
        match &self.0 {
            Bytes::V10(bytes) => {
                let Some(ports) = ports_of_v10(&words.values) else { return false };
                out.extend_from_slice(bytes);
                let Some(message) = out.last_chunk_mut() else { return false };
                put_v10(message, words, ports);
            }
            Bytes::V13(bytes) => {
                out.extend_from_slice(bytes);
                let Some(message) = out.last_chunk_mut() else { return false };
                put_v13(message, words);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{FlowModFields, GROUP_ANY, NO_BUFFER};
    use crate::write;
    use flow::Field;
    use flow::canonical::{InstructionWriter, MatchWriter};

    const VERSIONS: [Version; 2] = [Version::V1_0, Version::V1_3];

    fn words(number: u32) -> RuleWords {
        let address = |times: u64| u64::from(number).wrapping_mul(times) & 0xffff_ffff_ffff;
        let values = RuleValues {
            in_port: PortNo(number % 0xff00),
            eth_dst: address(0x0001_2345_6789),
            eth_src: address(0x0098_7654_3211),
            output: PortNo(number.wrapping_mul(7) % 0xff00),
        };
        RuleWords { xid: number ^ 0x5555_aaaa, buffer_id: number.wrapping_mul(0x9e37_79b1), values }
    }

    /// The whole message; nothing if it cannot be said.
    fn message(version: Version, words: &RuleWords, priority: u16) -> Vec<u8> {
        let RuleWords { xid, buffer_id, values } = *words;
        let (mut matching, mut instructions, mut out) = (Vec::new(), Vec::new(), Vec::new());
        MatchWriter::new(&mut matching)
            .field(Field::InPort, values.in_port)
            .field(Field::EthDst, values.eth_dst)
            .field(Field::EthSrc, values.eth_src);
        InstructionWriter::new(&mut instructions).apply_actions(|actions| {
            actions.output(values.output, 0);
        });
        let fields = FlowModFields {
            cookie: 0x0001_0000_0000_0042,
            cookie_mask: 0,
            table_id: 0,
            command: 0,
            idle_timeout_s: 60,
            hard_timeout_s: 600,
            priority,
            buffer_id,
            out_port: PortNo::ANY,
            out_group: GROUP_ANY,
            flags: 1,
        };
        let _ = write::flow_mod(version, xid, &fields, &matching, &instructions, &mut out);
        out
    }

    #[test]
    fn a_template_writes_what_is_written_of_the_whole_rule() {
        for version in VERSIONS {
            let first = message(version, &words(0), 7);
            let template = RuleTemplate::of(&first, &words(0)).unwrap();
            for number in (0..2_000).chain([u32::MAX, 0xff00, 0xfeff]) {
                let mut out = vec![1, 2, 3];
                assert!(template.write(&words(number), &mut out));
                assert_eq!(out[3..], message(version, &words(number), 7), "{version} {number}");
            }
        }
    }

    #[test]
    fn what_1_0_cannot_say_is_left_to_whoever_says_why() {
        let template = RuleTemplate::of(&message(Version::V1_0, &words(3), 7), &words(3)).unwrap();
        for port in [0xff00, 0x1_0000, PortNo::MAX.0, PortNo::LOCAL.0] {
            for is_output in [false, true] {
                let mut bad = words(3);
                *(if is_output { &mut bad.values.output } else { &mut bad.values.in_port }) = PortNo(port);
                let mut out = Vec::new();
                assert!(!template.write(&bad, &mut out) && out.is_empty(), "{port:x}");
            }
        }
    }

    #[test]
    fn a_message_of_another_shape_has_no_template() {
        for version in VERSIONS {
            let whole = message(version, &words(5), 7);
            assert!(RuleTemplate::of(&whole, &words(6)).is_none(), "other values");
            assert!(RuleTemplate::of(&whole[..whole.len() - 1], &words(5)).is_none());
            assert!(RuleTemplate::of(&[&whole[..], &[0]].concat(), &words(5)).is_none());
            assert!(RuleTemplate::of(&[], &words(5)).is_none());
        }
        let no_buffer = RuleWords { buffer_id: NO_BUFFER, ..words(5) };
        assert!(RuleTemplate::of(&message(Version::V1_3, &no_buffer, 7), &no_buffer).is_some());
    }
}
