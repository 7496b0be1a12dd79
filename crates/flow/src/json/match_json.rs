//! Matches in JSON.

use super::object::Scalar;
use crate::canonical::MAX_UNKNOWN_FIELDS;
use crate::field::{CLASS_BASIC, Field};
use crate::matching::{Match, MatchEntry};
use crate::value::{self, Style};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;

/// An object with a key for each entry, in their order.
///
/// ```
/// use flow::{Field, Match, PortNo};
/// let rule = Match::any().with(Field::InPort, PortNo(1)).with_masked(Field::Ipv4Src, 0x0a000000u32, 0xff000000u32);
/// let json = serde_json::to_string(&rule).unwrap();
/// assert_eq!(json, r#"{"in_port":1,"ipv4_src":"10.0.0.0/8"}"#);
/// assert_eq!(serde_json::from_str::<Match>(&json).unwrap(), rule);
/// ```
impl Serialize for Match {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.entries().len()))?;
        for entry in self.entries() {
            match entry {
                MatchEntry::Field { field, value, mask: Some(mask) } => {
                    let text = value::show_masked(Style::of(*field), *value, *mask);
                    map.serialize_entry(field.name(), &text)?;
                }
                MatchEntry::Field { field, value, mask: None } => {
                    map.serialize_entry(field.name(), &Value { field: *field, value: *value })?;
                }
                MatchEntry::Unknown { header, body } => {
                    map.serialize_entry(&unknown_key(*header), &value::show_hex(body))?;
                }
            }
        }
        map.end()
    }
}

/// A field's value without a mask: a number if the field is numeric, else a string.
pub(super) struct Value {
    pub(super) field: Field,
    pub(super) value: u128,
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = value::show(Style::of(self.field), self.value);
        match text.parse::<u64>() {
            Ok(number) => serializer.serialize_u64(number),
            Err(_) => serializer.serialize_str(&text),
        }
    }
}

/// `oxm:0xHHHHHHHH`.
pub(super) fn unknown_key(header: u32) -> String {
    format!("oxm:{header:#010x}")
}

/// The header and the payload of a field of another class.
pub(crate) fn read_unknown(key: &str, hex: &str) -> Result<(u32, Vec<u8>), String> {
    let header = key.strip_prefix("oxm:").and_then(value::read_number);
    let Some(header) = header.and_then(|header| u32::try_from(header).ok()) else {
        return Err(
            "expected a field of OpenFlow 1.3 (in_port, eth_type, ipv4_src …) or oxm:0xHHHHHHHH".to_owned()
        );
    };
    let body = value::read_hex(hex)?;
    if header >> 16 == u32::from(CLASS_BASIC) {
        return Err("class 0x8000 is OpenFlow's own: write the field by its name".to_owned());
    }
    if (header & 0xff) as usize != body.len() {
        return Err(format!("the header says {} bytes, found {}", header & 0xff, body.len()));
    }
    if header >> 16 == 0xffff && body.len() < 4 {
        return Err("an experimenter's field begins with its 4-byte number".to_owned());
    }
    Ok((header, body))
}

fn read_entry(key: &str, scalar: &Scalar) -> Result<MatchEntry, String> {
    let text = scalar.text()?;
    let Some(field) = Field::from_name(key) else {
        let (header, body) = read_unknown(key, &text)?;
        return Ok(MatchEntry::Unknown { header, body });
    };
    let (value, mask) = value::read_masked(Style::of(field), field.bits(), &text)?;
    match mask {
        Some(_) if !field.maskable() => Err("this field takes no mask".to_owned()),
        Some(mask) if value & !mask != 0 => {
            let inside = value::show_masked(Style::of(field), value & mask, mask);
            Err(format!("bits outside the mask: expected {inside}, found '{text}'"))
        }
        _ => Ok(MatchEntry::Field { field, value, mask }),
    }
}

/// The largest number of fields, the same as in bytes: all of OpenFlow's and [`MAX_UNKNOWN_FIELDS`]. One more is
/// refused.
const MAX_FIELDS: usize = 40 + MAX_UNKNOWN_FIELDS;

struct MatchVisitor;

impl<'de> Visitor<'de> for MatchVisitor {
    type Value = Match;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with match fields as keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Match, A::Error> {
        let mut rule = Match::any();
        while let Some(key) = map.next_key::<String>()? {
            let entry = read_entry(&key, &map.next_value()?)
                .map_err(|fault| A::Error::custom(format!("{key}: {fault}")))?;
            if rule.entries().iter().any(|there| there.same_field(&entry)) {
                return Err(A::Error::custom(format!("{key}: the field appears twice")));
            }
            if rule.entries().len() == MAX_FIELDS {
                return Err(A::Error::custom(format!("a match has at most {MAX_FIELDS} fields")));
            }
            rule.append(entry);
        }
        Ok(rule)
    }
}

impl<'de> Deserialize<'de> for Match {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MatchVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check_refused(json: &str, words: &[&str]) {
        let refused = serde_json::from_str::<Match>(json).unwrap_err().to_string();
        assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
    }

    #[test]
    fn wrong_input_is_refused_by_its_key() {
        check_refused("[]", &["match fields"]);
        check_refused(r#"{"ip_src":"10.0.0.1"}"#, &["ip_src", "ipv4_src", "oxm:"]);
        check_refused(r#"{"ipv4_src":"10.0.0"}"#, &["ipv4_src", "an IPv4 address", "'10.0.0'"]);
        check_refused(r#"{"ipv4_src":"10.0.0.1/8"}"#, &["ipv4_src", "outside the mask", "10.0.0.0/8"]);
        check_refused(r#"{"eth_type":"0x0800/0xffff"}"#, &["eth_type", "no mask"]);
        check_refused(r#"{"vlan_vid":8192}"#, &["vlan_vid", "13 bits"]);
        check_refused(r#"{"in_port":-1}"#, &["in_port", "negative"]);
        check_refused(r#"{"in_port":[1]}"#, &["in_port", "a list"]);
        check_refused(r#"{"in_port":1,"in_port":1}"#, &["in_port", "twice"]);
        check_refused(r#"{"oxm:0x80000004":"00000001"}"#, &["oxm:0x80000004", "by its name"]);
        check_refused(r#"{"oxm:0x00010004":"00"}"#, &["oxm:0x00010004", "4 bytes"]);
        check_refused(r#"{"oxm:0x00010001":"0g"}"#, &["oxm:0x00010001", "hexadecimal"]);
    }

    #[test]
    fn numbers_are_read_in_each_form() {
        for json in [r#"{"tcp_dst":22}"#, r#"{"tcp_dst":"22"}"#, r#"{"tcp_dst":"0x16"}"#] {
            assert_eq!(serde_json::from_str::<Match>(json).unwrap(), Match::any().with(Field::TcpDst, 22u8));
        }
    }

    proptest! {
        #[test]
        fn a_match_comes_back(rule in crate::arbitrary::rule()) {
            let json = serde_json::to_string(&rule).unwrap();
            prop_assert_eq!(serde_json::from_str::<Match>(&json).unwrap(), rule.clone());
            let value = serde_json::to_value(&rule).unwrap();
            prop_assert_eq!(serde_json::from_value::<Match>(value).unwrap(), rule);
        }

        #[test]
        fn no_text_panics(key in "[a-z0-9_:]{0,12}", value in "\\PC{0,20}") {
            let _ = serde_json::from_value::<Match>(serde_json::json!({ key: value.clone() }));
            for field in Field::all() {
                let _ = serde_json::from_value::<Match>(serde_json::json!({ field.name(): value.clone() }));
            }
        }
    }
}
