//! Reads the match of most rules in one step: port, addresses and EtherType without masks.
//!
//! In: the TLVs of a match. Out: its fields, or `None` for any other match, which the general readers then read. It
//! never reports what is wrong with a match.

use super::tlv::field_header;
use crate::{Field, MacAddr, PortNo};

/// The fields of the match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsualFields {
    /// The input port.
    pub in_port: Option<PortNo>,
    /// The destination address.
    pub eth_dst: Option<MacAddr>,
    /// The source address.
    pub eth_src: Option<MacAddr>,
    /// The EtherType.
    pub eth_type: Option<u16>,
}

/// What differs between two rules that match port, destination and source and have one output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleValues {
    /// By which port a packet comes.
    pub in_port: PortNo,
    /// To whom it is: the address as a number of 48 bits.
    pub eth_dst: u64,
    /// From whom it is.
    pub eth_src: u64,
    /// By which port it leaves.
    pub output: PortNo,
}

const IN_PORT: u32 = field_header(Field::InPort, false);
const ETH_DST: u32 = field_header(Field::EthDst, false);
const ETH_SRC: u32 = field_header(Field::EthSrc, false);
const ETH_TYPE: u32 = field_header(Field::EthType, false);

/// Whether a match begins with one of these fields without a mask. Then it does not match every packet, whatever
/// follows. These fields have no prerequisites.
#[inline]
pub fn begins_with_usual(tlvs: &[u8]) -> bool {
    tlvs.first_chunk()
        .is_some_and(|header| matches!(u32::from_be_bytes(*header), IN_PORT | ETH_DST | ETH_SRC | ETH_TYPE))
}

/// How long a match of port, destination and source is.
const SWITCHED_LEN: usize = 28;

/// How long a match of all four fields is.
const USUAL_LEN_MAX: usize = SWITCHED_LEN + 6;

/// The match of a learning switch, in its usual order. Three headers are compared in place, and no length is read.
#[inline]
fn port_and_addresses(tlvs: &[u8; SWITCHED_LEN]) -> Option<UsualFields> {
    let word = |at: usize| u32::from_be_bytes(std::array::from_fn(|byte| tlvs[at + byte]));
    let address = |at: usize| Some(MacAddr(std::array::from_fn(|byte| tlvs[at + byte])));
    let is_it = word(0) == IN_PORT && word(8) == ETH_DST && word(18) == ETH_SRC;
    is_it.then(|| UsualFields {
        in_port: Some(PortNo(word(4))),
        eth_dst: address(12),
        eth_src: address(22),
        eth_type: None,
    })
}

impl UsualFields {
    /// The fields of a match that has only these fields, each once and without a mask, in any order. It uses no 128-bit
    /// numbers and no table, and needs a third of the instructions of the general reader.
    ///
    /// ```
    /// use flow::{PortNo, canonical::UsualFields};
    /// let in_port_1 = [0x80, 0x00, 0x00, 0x04, 0, 0, 0, 1];
    /// assert_eq!(UsualFields::read(&in_port_1).unwrap().in_port, Some(PortNo(1)));
    /// assert_eq!(UsualFields::read(&[]), Some(UsualFields::default()));
    /// assert_eq!(UsualFields::read(&in_port_1[..7]), None);
    /// ```
    #[inline]
    pub fn read(tlvs: &[u8]) -> Option<UsualFields> {
        match <&[u8; SWITCHED_LEN]>::try_from(tlvs).ok().and_then(port_and_addresses) {
            Some(fields) => Some(fields),
            None => UsualFields::read_one_by_one(tlvs),
        }
    }

    fn read_one_by_one(mut tlvs: &[u8]) -> Option<UsualFields> {
        if tlvs.len() > USUAL_LEN_MAX {
            return None;
        }
        let mut fields = UsualFields::default();
        while let Some((header, rest)) = tlvs.split_first_chunk::<4>() {
            let (is_again, rest) = match u32::from_be_bytes(*header) {
                IN_PORT => {
                    let (port, rest) = rest.split_first_chunk()?;
                    (fields.in_port.replace(PortNo(u32::from_be_bytes(*port))).is_some(), rest)
                }
                ETH_DST => {
                    let (address, rest) = rest.split_first_chunk()?;
                    (fields.eth_dst.replace(MacAddr(*address)).is_some(), rest)
                }
                ETH_SRC => {
                    let (address, rest) = rest.split_first_chunk()?;
                    (fields.eth_src.replace(MacAddr(*address)).is_some(), rest)
                }
                ETH_TYPE => {
                    let (kind, rest) = rest.split_first_chunk()?;
                    (fields.eth_type.replace(u16::from_be_bytes(*kind)).is_some(), rest)
                }
                _ => return None,
            };
            if is_again {
                return None;
            }
            tlvs = rest;
        }
        tlvs.is_empty().then_some(fields)
    }
}

/// The header of an instruction that applies one output, and nothing else.
const APPLY_ONE_OUTPUT: [u8; 4] = [0, 4, 0, 24];
const ONE_OUTPUT: [u8; 4] = [0, 0, 0, 16];

/// The port, if the instructions are one output that is applied, as in most rules.
#[inline]
pub fn one_applied_output(instructions: &[u8]) -> Option<PortNo> {
    let [a, b, c, d, _, _, _, _, output @ ..]: &[u8; 24] = instructions.try_into().ok()?;
    ([*a, *b, *c, *d] == APPLY_ONE_OUTPUT).then(|| port_of_one(output))?
}

/// The port, if the actions are one output, as in most packet-outs.
#[inline]
pub fn one_output(actions: &[u8]) -> Option<PortNo> {
    port_of_one(actions.try_into().ok()?)
}

#[inline]
fn port_of_one(action: &[u8; 16]) -> Option<PortNo> {
    let [a, b, c, d, port @ .., _, _, _, _, _, _, _, _] = action;
    ([*a, *b, *c, *d] == ONE_OUTPUT).then(|| PortNo(u32::from_be_bytes(*port)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::{read_match, write_match};
    use crate::text::parse_match;

    /// The result equals that of the general reader, if there is a result.
    fn check(bytes: &[u8], is_usual: bool) {
        let read = UsualFields::read(bytes);
        assert_eq!(read.is_some(), is_usual, "{bytes:02x?}");
        let Some(fields) = read else { return };
        let all = read_match(bytes).unwrap();
        let exact = |field| all.get(field).map(|(value, _)| value);
        let expected = [
            (Field::InPort, fields.in_port.map(|port| port.0.into())),
            (Field::EthDst, fields.eth_dst.map(|address| address.to_u64().into())),
            (Field::EthSrc, fields.eth_src.map(|address| address.to_u64().into())),
            (Field::EthType, fields.eth_type.map(u128::from)),
        ];
        expected.iter().for_each(|(field, value)| assert_eq!(exact(*field), *value, "{bytes:02x?}"));
        assert_eq!(all.entries().len(), expected.iter().flat_map(|(_, value)| value).count());
    }

    fn bytes(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_match(&parse_match(text).unwrap(), &mut bytes);
        bytes
    }

    #[test]
    fn damaged_matches_and_others_are_left_to_those_who_read_all() {
        let usual = bytes("in_port=1,dl_dst=02:00:00:00:00:01,dl_src=02:00:00:00:00:02,dl_type=0x88cc");
        let ends = [0, 8, 18, 28, 34];
        (0..=usual.len()).for_each(|end| check(&usual[..end], ends.contains(&end)));
        check(&[&usual[..], &usual[..8]].concat(), false);
        check(&bytes("dl_dst=01:00:00:00:00:00/01:00:00:00:00:00"), false);
        check(&bytes("in_port=1,dl_vlan=7"), false);
        check(&bytes("ip,nw_dst=10.0.0.1"), false);
    }

    #[test]
    fn what_a_learning_switch_matches_is_read_as_any_other() {
        let usual = bytes("in_port=7,dl_dst=02:00:00:00:00:01,dl_src=06:05:04:03:02:01");
        assert_eq!(usual.len(), SWITCHED_LEN);
        check(&usual, true);
        assert_eq!(
            port_and_addresses(usual.as_slice().try_into().unwrap()),
            UsualFields::read_one_by_one(&usual)
        );
        // Each byte of a header makes it another match, and no other byte does.
        for at in 0..usual.len() {
            let mut damaged = usual.clone();
            damaged[at] ^= 1;
            check(&damaged, ![0..4, 8..12, 18..22].iter().any(|header| header.contains(&at)));
        }
    }

    #[test]
    fn they_are_read_in_any_order() {
        let (port, address) = (bytes("in_port=0xfffffffe"), bytes("dl_src=ff:ff:ff:ff:ff:ff"));
        check(&[&port[..], &address].concat(), true);
        check(&[&address[..], &port].concat(), true);
        check(&[], true);
    }
}
