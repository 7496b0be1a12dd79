//! Probes as frames: LLDP (IEEE 802.1AB) on a cable, and the same content as a broadcast across switches of others (BDDP).
//!
//! ```text
//!   chassis: 7, "dpid:0000000000000001" | port: 2, number | TTL | 02:62:75, 1, run, stamp, signature | end
//! ```
//!
//! Chassis and port have the form of os-ken's probes, so that tools which know those can read them. The signature covers all from
//! the EtherType to the stamp.
//!
//! In: probes, or frames of anybody. Out: the other of the two, or why a frame is no probe. It never panics on a frame, and does not
//! know which ports exist.

use crate::signature::{self, KEY_BYTES, SIGNATURE_BYTES};
use discovery_contract::Refusal;
use flow::{DatapathId, MacAddr, PortNo};
use view::{ConnectPoint, LinkKind};

/// The EtherType of LLDP.
pub const LLDP: u16 = 0x88cc;

/// The EtherType of BDDP, which controllers use for LLDP that switches of others forward.
pub const BDDP: u16 = 0x8942;

/// The nearest bridge, which forwards no frame to this address (IEEE 802.1AB, 7.1).
const NEAREST_BRIDGE: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e];

const BROADCAST: [u8; 6] = [0xff; 6];

/// How long other systems may remember a probe, in seconds: the ecosystem's usual value.
const TTL_S: u16 = 120;

/// A locally administered identifier, so it is no other organisation's: 02, "bu".
const ORGANISATION: [u8; 4] = [0x02, 0x62, 0x75, 0x01];

/// The number of the organisation's run and stamp, and the signature.
const SIGNED_BYTES: usize = ORGANISATION.len() + 16 + SIGNATURE_BYTES;

/// The types of TLVs (IEEE 802.1AB, table 8-1).
mod tlv {
    pub const END: u16 = 0;
    pub const CHASSIS: u16 = 1;
    pub const PORT: u16 = 2;
    pub const TTL: u16 = 3;
    pub const ORGANISATION: u16 = 127;
}

/// A chassis id that was assigned locally.
const CHASSIS_LOCAL: u8 = 7;

/// What a chassis id begins with.
const DATAPATH: &[u8] = b"dpid:";

/// A port id that is a number of a part of the system.
const PORT_COMPONENT: u8 = 2;

/// The bytes before the EtherType.
const TYPE_AT: usize = 12;

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// `Direct` for LLDP, `Indirect` for BDDP.
    pub kind: LinkKind,
    /// The port that sent it.
    pub from: ConnectPoint,
    /// Its number. No two probes of one run have the same.
    pub stamp: u64,
}

/// Why a frame is no probe of this service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAProbe {
    /// It is of another system, or of another run of this service.
    Foreign,
    /// It has the form of a probe and is none.
    Refused {
        /// Why.
        refusal: Refusal,
        /// The port that it names.
        claimed: Option<ConnectPoint>,
    },
}

/// Writes and reads the probes of one run.
pub struct Signer {
    /// The secret.
    pub key: [u8; KEY_BYTES],
    /// The number of the run, which is no secret.
    pub run: u64,
}

impl Signer {
    /// The frame of a probe. `mac` is the address of the port that sends it.
    pub fn write(&self, probe: &Probe, mac: MacAddr) -> Vec<u8> {
        let (to, ether_type) = match probe.kind {
            LinkKind::Indirect => (BROADCAST, BDDP),
            _ => (NEAREST_BRIDGE, LLDP),
        };
        let mut frame = Vec::with_capacity(96);
        frame.extend_from_slice(&to);
        frame.extend_from_slice(&mac.0);
        frame.extend_from_slice(&ether_type.to_be_bytes());
        let chassis = format!("dpid:{:016x}", probe.from.switch.0);
        push(&mut frame, tlv::CHASSIS, &[&[CHASSIS_LOCAL], chassis.as_bytes()]);
        push(&mut frame, tlv::PORT, &[&[PORT_COMPONENT], &probe.from.port.0.to_be_bytes()]);
        push(&mut frame, tlv::TTL, &[&TTL_S.to_be_bytes()]);
        let (run, stamp) = (self.run.to_be_bytes(), probe.stamp.to_be_bytes());
        push(&mut frame, tlv::ORGANISATION, &[&ORGANISATION, &run, &stamp, &[0; SIGNATURE_BYTES]]);
        let signed = frame.len() - SIGNATURE_BYTES;
        let signature = signature::sign(&self.key, &frame[TYPE_AT..signed]);
        frame.truncate(signed);
        frame.extend_from_slice(&signature);
        push(&mut frame, tlv::END, &[]);
        frame
    }

    /// Reads a frame that came in anywhere.
    ///
    /// # Errors
    /// Why it is no probe of this run.
    pub fn read(&self, frame: &[u8]) -> Result<Probe, NotAProbe> {
        let content = Content::read(frame);
        let claimed = content.claimed;
        let refused = |refusal| Err(NotAProbe::Refused { refusal, claimed });
        let Some(signed_at) = content.signed_at.filter(|_| !content.is_damaged) else {
            return match content.is_damaged || claimed.is_some() {
                true => refused(Refusal::Unsigned),
                false => Err(NotAProbe::Foreign),
            };
        };
        let (Some(from), Some(kind)) = (claimed, content.kind) else { return refused(Refusal::Unsigned) };
        let value = frame.get(signed_at..signed_at + SIGNED_BYTES).unwrap_or_default();
        let number =
            |at: usize| value.get(at..).and_then(|rest| rest.first_chunk()).map(|it| u64::from_be_bytes(*it));
        let (Some(run), Some(stamp)) = (number(4), number(12)) else { return refused(Refusal::Unsigned) };
        if run != self.run {
            return Err(NotAProbe::Foreign);
        }
        let end = signed_at + SIGNED_BYTES - SIGNATURE_BYTES;
        let signature = frame.get(end..end + SIGNATURE_BYTES).unwrap_or_default();
        match signature::is_right(&self.key, frame.get(TYPE_AT..end).unwrap_or_default(), signature) {
            true => Ok(Probe { kind, from, stamp }),
            false => refused(Refusal::Forged),
        }
    }
}

fn push(frame: &mut Vec<u8>, kind: u16, parts: &[&[u8]]) {
    // The values of this file have at most 36 bytes, and the length has 9 bits.
    let length: usize = parts.iter().map(|part| part.len()).sum();
    frame.extend_from_slice(&(kind << 9 | length as u16).to_be_bytes());
    parts.iter().for_each(|part| frame.extend_from_slice(part));
}

/// What a frame says, before anything of it is believed.
#[derive(Debug, Default)]
struct Content {
    kind: Option<LinkKind>,
    claimed: Option<ConnectPoint>,
    /// Where the value of the signed TLV begins.
    signed_at: Option<usize>,
    is_damaged: bool,
}

impl Content {
    fn read(frame: &[u8]) -> Content {
        let short =
            |at: usize| frame.get(at..).and_then(|rest| rest.first_chunk()).map(|it| u16::from_be_bytes(*it));
        let kind = match short(TYPE_AT) {
            Some(LLDP) => Some(LinkKind::Direct),
            Some(BDDP) => Some(LinkKind::Indirect),
            _ => None,
        };
        let mut content = Content { kind, ..Content::default() };
        let (mut at, mut switch) = (TYPE_AT + 2, None);
        // Each step moves on by two bytes at least, so it ends.
        loop {
            let Some(head) = short(at) else { break content.is_damaged = true };
            let (kind, length) = (head >> 9, usize::from(head & 0x1ff));
            let Some(value) = frame.get(at + 2..at + 2 + length) else { break content.is_damaged = true };
            match kind {
                tlv::END => break,
                tlv::CHASSIS => switch = switch_of(value),
                tlv::PORT => content.claimed = switch.and_then(|switch| port_of(switch, value)),
                tlv::ORGANISATION if value.starts_with(&ORGANISATION) => {
                    content.signed_at = Some(at + 2);
                    content.is_damaged |= length != SIGNED_BYTES;
                }
                _ => {}
            }
            at += 2 + length;
        }
        content
    }
}

fn switch_of(chassis: &[u8]) -> Option<DatapathId> {
    let digits = chassis.strip_prefix(&[CHASSIS_LOCAL])?.strip_prefix(DATAPATH)?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok().map(DatapathId)
}

fn port_of(switch: DatapathId, value: &[u8]) -> Option<ConnectPoint> {
    let number = value.strip_prefix(&[PORT_COMPONENT])?.try_into().ok().map(u32::from_be_bytes)?;
    Some(ConnectPoint { switch, port: PortNo(number) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNER: Signer = Signer { key: [7; KEY_BYTES], run: 0x1122_3344_5566_7788 };

    fn probe(kind: LinkKind) -> Probe {
        let from = ConnectPoint { switch: DatapathId(0xa1), port: PortNo(3) };
        Probe { kind, from, stamp: 9 }
    }

    fn lldp() -> Vec<u8> {
        SIGNER.write(&probe(LinkKind::Direct), MacAddr::from_u64(0x0a00_0000_0003))
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let hex: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        hex.chunks(2).map(byte).collect()
    }

    #[test]
    fn a_frame_that_ends_early_is_refused_wherever_it_ends() {
        let whole = lldp();
        for length in 14..whole.len() {
            let read = SIGNER.read(&whole[..length]);
            assert!(
                matches!(read, Err(NotAProbe::Refused { refusal: Refusal::Unsigned, .. })),
                "{length}: {read:?}"
            );
        }
        assert!((0..14).all(|length| SIGNER.read(&whole[..length]).is_err()));
    }

    #[test]
    fn a_frame_with_a_changed_bit_is_never_a_probe() {
        let whole = lldp();
        // The addresses are not signed: a switch may rewrite them.
        for bit in TYPE_AT * 8..(whole.len() - 2) * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(SIGNER.read(&changed).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_frame_of_another_system_is_told_from_a_forged_one() {
        let check =
            |frame: &[u8], expected| assert_eq!(SIGNER.read(frame).unwrap_err(), expected, "{}", hex(frame));
        let refused = |refusal, claimed| NotAProbe::Refused { refusal, claimed };
        let claimed = Some(probe(LinkKind::Direct).from);
        // A host's LLDP: chassis and port by Ethernet address.
        let host = "0180c200000e 0a0000000009 88cc 0207 04 0a0000000009 0407 03 0a0000000009 0602 0078 0000";
        check(&bytes(host), NotAProbe::Foreign);
        // os-ken's probe for a switch of the same id.
        let other = "0180c200000e 0a0000000003 88cc 0216 07 647069643a30303030303030303030303030306131 \
                     0405 02 00000003 0602 0078 0000";
        check(&bytes(other), refused(Refusal::Unsigned, claimed));
        let other_key = Signer { key: [8; KEY_BYTES], ..SIGNER };
        let forged = other_key.write(&probe(LinkKind::Direct), MacAddr::from_u64(1));
        check(&forged, refused(Refusal::Forged, claimed));
        let earlier = Signer { run: 1, ..SIGNER }.write(&probe(LinkKind::Direct), MacAddr::from_u64(1));
        check(&earlier, NotAProbe::Foreign);
        let mut as_bddp = lldp();
        as_bddp[12..14].copy_from_slice(&BDDP.to_be_bytes());
        check(&as_bddp, refused(Refusal::Forged, claimed));
        check(b"", refused(Refusal::Unsigned, None));
    }

    #[test]
    fn a_probe_has_this_form() {
        assert_eq!(
            hex(&lldp()),
            "0180c200000e0a000000000388cc021607647069643a30303030303030303030303030306131040502000000030602\
             0078fe2402627501112233445566778800000000000000090d74c236ba32e50aa89d15cdfba1a6d50000"
        );
        for kind in [LinkKind::Direct, LinkKind::Indirect] {
            let mut frame = SIGNER.write(&probe(kind), MacAddr::from_u64(0x0a00_0000_0003));
            assert_eq!(SIGNER.read(&frame), Ok(probe(kind)));
            // A switch may fill a frame up.
            frame.extend_from_slice(&[0; 9]);
            assert_eq!(SIGNER.read(&frame), Ok(probe(kind)));
        }
        let broadcast = SIGNER.write(&probe(LinkKind::Indirect), MacAddr::from_u64(1));
        assert_eq!(hex(&broadcast[..14]), "ffffffffffff0000000000018942");
    }
}
