//! Matches, read from text.

use super::BadText;
use super::names::{self, Extension, SHORTHANDS};
use super::words::{Token, words};
use crate::canonical::MAX_UNKNOWN_FIELDS;
use crate::field::Field;
use crate::matching::{Match, MatchEntry};
use crate::value::{self, Style};

/// `OFPVID_PRESENT`: the bit of vlan_vid that is set if the packet has a tag.
const VLAN_PRESENT: u128 = 0x1000;

/// Reads a match as ovs-ofctl does, with fields in any order. The entries are sorted, so that prerequisites come first.
///
/// # Errors
/// An unknown field, an invalid value, a mask that is not allowed, or a field with two values. Also a name whose field
/// depends on a protocol (`tp_src`, `nw_src`) that is missing.
///
/// ```
/// use flow::{Field, text::{match_to_string, parse_match}};
/// let rule = parse_match("in_port=1 dl_type=0x800, nw_proto=6, tp_dst=22").unwrap();
/// assert_eq!(rule.get(Field::TcpDst), Some((22, 0xffff)));
/// assert_eq!(match_to_string(&rule), "tcp,in_port=1,tp_dst=22");
/// assert_eq!(parse_match("ip,nw_scr=10.0.0.1").unwrap_err().offset, 3);
/// ```
pub fn parse_match(text: &str) -> Result<Match, BadText> {
    let words = words(text)?;
    let mut rule = Match::any();
    // The kind of packet determines the meaning of other words, wherever it is in the text.
    let mut rest = Vec::new();
    for word in &words {
        if !read_ether_type(word, &mut rule)? {
            rest.push(word);
        }
    }
    let mut last = Vec::new();
    for word in rest {
        if !read_protocol(word, &mut rule)? {
            last.push(word);
        }
    }
    for word in last {
        read_field(word, &mut rule)?;
    }
    Ok(rule.sorted())
}

fn read_ether_type(word: &Token<'_>, rule: &mut Match) -> Result<bool, BadText> {
    if let Some(shorthand) = SHORTHANDS.iter().find(|shorthand| shorthand.name == word.key) {
        word.bare(())?;
        put(word, rule, Field::EthType, shorthand.eth_type.into(), None)?;
        if let Some(ip_proto) = shorthand.ip_proto {
            put(word, rule, Field::IpProto, ip_proto.into(), None)?;
        }
        return Ok(true);
    }
    if !matches!(word.key, "dl_type" | "eth_type") {
        return Ok(false);
    }
    read_value(word, rule, Field::EthType)?;
    Ok(true)
}

fn read_protocol(word: &Token<'_>, rule: &mut Match) -> Result<bool, BadText> {
    let field = match word.key {
        "nw_proto" if is_arp(rule) => Field::ArpOp,
        "nw_proto" | "ip_proto" => Field::IpProto,
        _ => return Ok(false),
    };
    read_value(word, rule, field)?;
    Ok(true)
}

fn is_arp(rule: &Match) -> bool {
    matches!(rule.get(Field::EthType), Some((0x0806 | 0x8035, _)))
}

fn read_field(word: &Token<'_>, rule: &mut Match) -> Result<(), BadText> {
    match word.key {
        "dl_vlan" => read_dl_vlan(word, rule),
        "dl_vlan_pcp" => {
            if rule.get(Field::VlanVid).is_none() {
                rule.set_masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT);
            }
            read_value(word, rule, Field::VlanPcp)
        }
        "vlan_tci" => read_vlan_tci(word, rule),
        "nw_tos" => read_nw_tos(word, rule),
        "nw_src" | "ip_src" if is_arp(rule) => read_value(word, rule, Field::ArpSpa),
        "nw_dst" | "ip_dst" if is_arp(rule) => read_value(word, rule, Field::ArpTpa),
        "tp_src" => {
            read_value(word, rule, transport(word, rule, [Field::TcpSrc, Field::UdpSrc, Field::SctpSrc])?)
        }
        "tp_dst" => {
            read_value(word, rule, transport(word, rule, [Field::TcpDst, Field::UdpDst, Field::SctpDst])?)
        }
        "icmp_type" if is_icmp6(rule) => read_value(word, rule, Field::Icmpv6Type),
        "icmp_code" if is_icmp6(rule) => read_value(word, rule, Field::Icmpv6Code),
        name => match (names::field_named(name), names::extension_in_match(name)) {
            (Some(field), _) => read_value(word, rule, field),
            (None, Some(extension)) => read_extension(word, rule, extension),
            (None, None) => read_unknown(word, rule),
        },
    }
}

fn is_icmp6(rule: &Match) -> bool {
    rule.get(Field::IpProto).is_some_and(|(ip_proto, _)| ip_proto == 58)
}

/// The port field of TCP, UDP or SCTP, depending on the match's protocol.
fn transport(word: &Token<'_>, rule: &Match, [tcp, udp, sctp]: [Field; 3]) -> Result<Field, BadText> {
    match rule.get(Field::IpProto) {
        Some((6, _)) => Ok(tcp),
        Some((17, _)) => Ok(udp),
        Some((132, _)) => Ok(sctp),
        _ => Err(word.fault(format!("'{}' needs tcp, udp or sctp (or nw_proto) in the match", word.key))),
    }
}

fn read_value(word: &Token<'_>, rule: &mut Match, field: Field) -> Result<(), BadText> {
    let style = Style::of(field);
    let text = word.needed(style.expected())?;
    let (value, mask) = value::read_masked(style, field.bits(), text).map_err(|fault| word.fault(fault))?;
    put(word, rule, field, value, mask)
}

/// Adds a field as ovs-ofctl does: a mask of all ones and a field with a mask of zeros are left out. Bits outside the
/// mask are dropped.
fn put(
    word: &Token<'_>,
    rule: &mut Match,
    field: Field,
    value: u128,
    mask: Option<u128>,
) -> Result<(), BadText> {
    let mask = mask.unwrap_or(field.full_mask());
    let whole = mask == field.full_mask();
    if !whole && !field.maskable() {
        return Err(word.fault(format!("{} takes no mask", field.name())));
    }
    if mask == 0 {
        return Ok(());
    }
    match rule.get(field) {
        Some(there) if there != (value & mask, mask) => {
            return Err(word.fault(format!("{} is given twice, with two values", field.name())));
        }
        _ if whole => rule.set(field, value),
        _ => rule.set_masked(field, value, mask),
    }
    Ok(())
}

/// The form of 1.0: only the id, and 0xffff for no tag.
fn read_dl_vlan(word: &Token<'_>, rule: &mut Match) -> Result<(), BadText> {
    let expected = "a VLAN id from 0 to 4095, or 0xffff for no tag";
    let vid = value::read_number(word.needed(expected)?);
    let value = match vid {
        Some(0xffff) => 0,
        Some(vid) if vid < VLAN_PRESENT => vid | VLAN_PRESENT,
        _ => return Err(word.fault(format!("expected {expected}"))),
    };
    // An earlier priority implied a tag. The id is more specific.
    if rule.get(Field::VlanVid) == Some((VLAN_PRESENT, VLAN_PRESENT)) && value != 0 {
        rule.remove(Field::VlanVid);
    }
    put(word, rule, Field::VlanVid, value, None)
}

/// The whole tag: 3 bits of priority, 1 bit for presence, 12 bits of id.
fn read_vlan_tci(word: &Token<'_>, rule: &mut Match) -> Result<(), BadText> {
    let text = word.needed("a number of 16 bits, with or without a mask")?;
    let (tci, mask) = value::read_masked(Style::Decimal, 16, text).map_err(|fault| word.fault(fault))?;
    let mask = mask.unwrap_or(0xffff);
    put(word, rule, Field::VlanVid, tci & 0x1fff, Some(mask & 0x1fff))?;
    match mask >> 13 {
        0 => Ok(()),
        // Without a tag there is no priority to match.
        7 if tci & mask & VLAN_PRESENT == 0 => Ok(()),
        7 => put(word, rule, Field::VlanPcp, tci >> 13, None),
        _ => Err(word.fault("OpenFlow 1.3 matches all three bits of the priority or none")),
    }
}

/// The whole byte, of which the upper six bits are the DSCP.
fn read_nw_tos(word: &Token<'_>, rule: &mut Match) -> Result<(), BadText> {
    let expected = "a multiple of 4 from 0 to 252";
    match value::read_number(word.needed(expected)?) {
        Some(tos) if tos < 256 && tos & 3 == 0 => put(word, rule, Field::IpDscp, tos >> 2, None),
        _ => Err(word.fault(format!("expected {expected}"))),
    }
}

/// The entry for a value of a Nicira field, normalised like OpenFlow's own fields.
pub(super) fn extension_entry(extension: &Extension, value: u128, mask: Option<u128>) -> Option<MatchEntry> {
    let full = u128::MAX >> (128 - extension.bits);
    let mask = mask.unwrap_or(full);
    if mask == 0 {
        return None;
    }
    let has_mask = mask != full;
    let mut body = value_bytes(extension, value & mask);
    if has_mask {
        body.extend(value_bytes(extension, mask));
    }
    Some(MatchEntry::Unknown { header: extension.header(has_mask), body })
}

pub(super) fn value_bytes(extension: &Extension, value: u128) -> Vec<u8> {
    value.to_be_bytes()[16 - extension.bytes()..].to_vec()
}

fn read_extension(word: &Token<'_>, rule: &mut Match, extension: &Extension) -> Result<(), BadText> {
    let text = word.needed(extension.notation.expected())?;
    let read = extension.notation.read(extension.bits, text);
    let (value, mask) = read.map_err(|fault| word.fault(fault))?;
    match extension_entry(extension, value, mask) {
        Some(entry) => put_unknown(word, rule, entry),
        None => Ok(()),
    }
}

fn put_unknown(word: &Token<'_>, rule: &mut Match, entry: MatchEntry) -> Result<(), BadText> {
    if rule.entries().iter().any(|there| there.same_field(&entry) && *there != entry) {
        return Err(word.fault(format!("{} is given twice, with two values", word.key)));
    }
    if rule.entries().len() > MAX_UNKNOWN_FIELDS {
        return Err(word.fault(format!("a match has at most {MAX_UNKNOWN_FIELDS} fields")));
    }
    rule.put(entry);
    Ok(())
}

/// `oxm:0xHHHHHHHH=hex`.
fn read_unknown(word: &Token<'_>, rule: &mut Match) -> Result<(), BadText> {
    if word.key != "oxm" {
        let message =
            "expected a field (in_port, dl_src, nw_dst, tp_src, eth_dst …) or a shorthand (ip, arp, tcp …)";
        return Err(word.fault(message));
    }
    let (header, hex) = word.needed("0xHHHHHHHH=hex")?.split_once('=').unwrap_or_default();
    let read = crate::json::read_unknown(&format!("oxm:{header}"), hex);
    let (header, body) = read.map_err(|fault| word.fault(fault))?;
    put_unknown(word, rule, MatchEntry::Unknown { header, body })
}

#[cfg(test)]
mod tests {
    use super::super::match_to_string;
    use super::*;

    fn check_refused(text: &str, offset: usize, words: &[&str]) {
        let refused = parse_match(text).unwrap_err();
        assert_eq!(refused.offset, offset, "{refused}");
        assert!(words.iter().all(|word| refused.to_string().contains(word)), "{refused}");
    }

    fn check(text: &str, again: &str) {
        assert_eq!(match_to_string(&parse_match(text).unwrap()), again, "{text}");
    }

    #[test]
    fn wrong_words_are_named_with_their_place() {
        check_refused("ip,colour=3", 3, &["'colour=3'", "expected a field"]);
        check_refused("ip,nw_src=1.2.3", 3, &["an IPv4 address", "'1.2.3'"]);
        check_refused("in_port=", 0, &["a port number"]);
        check_refused("tp_src=80", 0, &["needs tcp"]);
        check_refused("tcp,udp", 4, &["two values"]);
        check_refused("in_port=1,in_port=2", 10, &["two values"]);
        check_refused("tcp=5", 0, &["takes nothing"]);
        check_refused("dl_vlan=4096", 0, &["4095"]);
        check_refused("ip,nw_tos=33", 3, &["multiple of 4"]);
        check_refused("vlan_tci=0x2000/0x2000", 0, &["all three bits"]);
        check_refused("dl_type=0x800/0xff", 0, &["no mask"]);
        check_refused("reg0=0x100000000", 0, &["32 bits"]);
        check_refused("oxm:0x1=zz", 0, &["hexadecimal"]);
    }

    #[test]
    fn names_of_both_versions_are_read() {
        check("eth_type=0x800,ip_proto=17,udp_src=5", "udp,tp_src=5");
        check("dl_type=0x86dd nw_proto=58 icmpv6_type=1", "icmp6,icmp_type=1");
        check("arp,nw_src=10.0.0.1,nw_proto=2", "arp,arp_spa=10.0.0.1,arp_op=2");
        check("tp_dst=80,tcp", "tcp,tp_dst=80");
        check("dl_vlan_pcp=3,dl_vlan=4", "dl_vlan=4,dl_vlan_pcp=3");
        check("ip,nw_src=10.1.2.3/8,nw_dst=0.0.0.0/0", "ip,nw_src=10.0.0.0/8");
    }

    #[test]
    fn fields_without_what_they_need_keep_the_specifications_name() {
        check("tcp_src=80", "tcp_src=80");
        check("ipv4_src=10.0.0.1,arp", "arp,ipv4_src=10.0.0.1");
        check("icmpv6_type=1", "icmpv6_type=1");
    }
}
