//! Decides which messages answer a packet-in, from a few of their bytes.
//!
//! A flow mod or packet-out answers the packet-in whose buffer it names. For controllers that name no buffers, every
//! flow mod and packet-out counts, as in cbench. It never decodes a message: it reads only the type, the length and
//! the bytes that decide.

use openflow::Version;
use openflow::message::NO_BUFFER;

/// Which messages count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Flow mods and packet-outs that name a buffer. Each packet-in counts once, whatever else the controller sends
    /// for it.
    Buffers,
    /// As in cbench: every flow mod that adds or strictly modifies a rule, and every packet-out whose frame is not
    /// LLDP.
    Messages,
    /// Only flow mods, as [`Counting::Messages`] counts them. A packet-out answers an announcement of a host, and nothing else. So a packet-in
    /// counts once, whether the controller releases the packet by its buffer or by a packet-out.
    FlowMods,
}

/// What a controller's message means to the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A flow mod. If it is an answer, the buffer that it names ([`NO_BUFFER`] if it names none).
    FlowMod(Option<u32>),
    /// A packet-out, with the same content.
    PacketOut(Option<u32>),
    /// Any other message, which is decoded and replied to.
    Other,
}

const TYPE_PACKET_OUT: u8 = 13;
const TYPE_FLOW_MOD: u8 = 14;
const ETHERTYPE_VLAN: [u8; 2] = [0x81, 0x00];
const ETHERTYPE_LLDP: [u8; 2] = [0x88, 0xcc];

impl Counting {
    /// Classifies a whole message.
    #[inline]
    pub(crate) fn look_at(self, version: Version, message: &[u8]) -> Said {
        match message.get(1) {
            Some(&TYPE_FLOW_MOD) => Said::FlowMod(self.flow_mod(version, message)),
            Some(&TYPE_PACKET_OUT) => Said::PacketOut(self.packet_out(version, message)),
            _ => Said::Other,
        }
    }

    #[inline]
    fn flow_mod(self, version: Version, message: &[u8]) -> Option<u32> {
        // 1.0, 5.3.3: after the match of 40 bytes. 1.3.5, 7.3.4.1: before it.
        let (command_at, buffer_at) = if version == Version::V1_0 { (57, 64) } else { (25, 32) };
        let buffer_id = number(message, buffer_at)?;
        match self {
            Counting::Buffers => (buffer_id != NO_BUFFER).then_some(buffer_id),
            // Add and strict modify, in both versions.
            Counting::Messages | Counting::FlowMods => {
                matches!(message.get(command_at)?, 0 | 2).then_some(buffer_id)
            }
        }
    }

    #[inline]
    fn packet_out(self, version: Version, message: &[u8]) -> Option<u32> {
        let buffer_id = number(message, 8)?;
        match self {
            Counting::Buffers => (buffer_id != NO_BUFFER).then_some(buffer_id),
            Counting::Messages | Counting::FlowMods => (!is_lldp(version, message)).then_some(buffer_id),
        }
    }
}

#[inline]
fn number(message: &[u8], at: usize) -> Option<u32> {
    message.get(at..at + 4)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Whether the frame of a packet-out is LLDP, with or without a VLAN tag.
fn is_lldp(version: Version, message: &[u8]) -> bool {
    // 1.0, 5.3.6: 16 bytes and the actions. 1.3.5, 7.3.7: 24 bytes and the actions.
    let (length_at, actions_at) = if version == Version::V1_0 { (14, 16) } else { (16, 24) };
    let Some(&[high, low]) = message.get(length_at..).and_then(|rest| rest.first_chunk()) else {
        return false;
    };
    let frame = message.get(actions_at + usize::from(u16::from_be_bytes([high, low]))..).unwrap_or_default();
    let ethertype = |at: usize| frame.get(at..at + 2);
    match ethertype(12) {
        Some(tag) if tag == ETHERTYPE_VLAN => ethertype(16) == Some(&ETHERTYPE_LLDP),
        found => found == Some(&ETHERTYPE_LLDP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{Action, Match, PortNo};
    use openflow::message::{FLOW_DELETE, FLOW_MODIFY, FLOW_MODIFY_STRICT, FlowModFields, PacketOut};
    use openflow::{Body, Message};

    const VERSIONS: [Version; 2] = [Version::V1_0, Version::V1_3];

    fn encoded(version: Version, body: Body) -> Vec<u8> {
        let mut bytes = Vec::new();
        Message { version, xid: 9, body }.encode(&mut bytes).unwrap();
        bytes
    }

    fn flow_mod(command: u8, buffer_id: u32) -> Body {
        let fields = FlowModFields { command, buffer_id, ..FlowModFields::default() };
        Body::FlowMod(fields.with(Match::default(), Vec::new()))
    }

    fn packet_out(buffer_id: u32, data: &[u8]) -> Body {
        let actions = vec![Action::Output { port: PortNo(1), max_len: 0 }];
        Body::PacketOut(PacketOut { buffer_id, in_port: PortNo(2), actions, data: data.to_vec() })
    }

    fn check(counting: Counting, body: &Body, expected: Said) {
        for version in VERSIONS {
            let bytes = encoded(version, body.clone());
            assert_eq!(counting.look_at(version, &bytes), expected, "{counting:?} {version} {body:?}");
        }
    }

    #[test]
    fn a_message_too_short_for_what_it_is_answers_nothing() {
        for version in VERSIONS {
            for counting in [Counting::Buffers, Counting::Messages, Counting::FlowMods] {
                let whole = encoded(version, flow_mod(0, 5));
                assert_eq!(counting.look_at(version, &whole[..20]), Said::FlowMod(None));
                let whole = encoded(version, packet_out(5, &[]));
                assert_eq!(counting.look_at(version, &whole[..10]), Said::PacketOut(None));
                assert_eq!(counting.look_at(version, &[]), Said::Other);
            }
        }
        // Actions whose length exceeds the message.
        let mut lying = encoded(Version::V1_0, packet_out(5, &[1; 60]));
        lying[14..16].fill(0xff);
        assert_eq!(Counting::Messages.look_at(Version::V1_0, &lying), Said::PacketOut(Some(5)));
    }

    #[test]
    fn who_names_a_buffer_answers() {
        check(Counting::Buffers, &flow_mod(0, 5), Said::FlowMod(Some(5)));
        check(Counting::Buffers, &flow_mod(0, NO_BUFFER), Said::FlowMod(None));
        check(Counting::Buffers, &packet_out(6, &[]), Said::PacketOut(Some(6)));
        check(Counting::Buffers, &packet_out(NO_BUFFER, &[1; 60]), Said::PacketOut(None));
        check(Counting::Buffers, &Body::BarrierRequest, Said::Other);
    }

    #[test]
    fn cbench_counts_what_adds_and_what_is_no_probe() {
        check(Counting::Messages, &flow_mod(0, NO_BUFFER), Said::FlowMod(Some(NO_BUFFER)));
        check(Counting::Messages, &flow_mod(FLOW_MODIFY_STRICT, 1), Said::FlowMod(Some(1)));
        check(Counting::Messages, &flow_mod(FLOW_MODIFY, 1), Said::FlowMod(None));
        check(Counting::Messages, &flow_mod(FLOW_DELETE, 1), Said::FlowMod(None));
        let mut frame = [1; 60];
        check(Counting::Messages, &packet_out(NO_BUFFER, &frame), Said::PacketOut(Some(NO_BUFFER)));
        frame[12..14].copy_from_slice(&ETHERTYPE_LLDP);
        check(Counting::Messages, &packet_out(NO_BUFFER, &frame), Said::PacketOut(None));
        frame[12..14].copy_from_slice(&ETHERTYPE_VLAN);
        check(Counting::Messages, &packet_out(NO_BUFFER, &frame), Said::PacketOut(Some(NO_BUFFER)));
        frame[16..18].copy_from_slice(&ETHERTYPE_LLDP);
        check(Counting::Messages, &packet_out(NO_BUFFER, &frame), Said::PacketOut(None));
    }

    #[test]
    fn flow_mods_are_counted_as_cbench_does() {
        check(Counting::FlowMods, &flow_mod(0, NO_BUFFER), Said::FlowMod(Some(NO_BUFFER)));
        check(Counting::FlowMods, &flow_mod(FLOW_MODIFY_STRICT, 1), Said::FlowMod(Some(1)));
        check(Counting::FlowMods, &flow_mod(FLOW_DELETE, 1), Said::FlowMod(None));
        check(Counting::FlowMods, &packet_out(5, &[]), Said::PacketOut(Some(5)));
    }
}
