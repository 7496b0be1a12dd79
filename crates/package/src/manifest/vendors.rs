//! The vendor extensions that an app requests: the list of the capability `vendor`.
//!
//! ```toml
//! "vendor" = ["nicira:action:14", "nicira:field", "0x12345678"]
//! ```
//!
//! In: TOML. Out: [`VendorList`]. There is no form for "every vendor": each is named. It never tells what an extension
//! does.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use flow::vendor::{PartKind, VendorName};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::asks::Requestable;
use super::bounds::listed;

/// Extensions of one vendor: all, all of a kind, or one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VendorParts {
    /// The vendor's number.
    pub vendor: u32,
    /// The kind; `None` for every kind.
    pub kind: Option<PartKind>,
    /// The subtype within that kind; `None` for every one.
    pub subtype: Option<u32>,
}

impl VendorParts {
    fn lie_within(&self, wider: &VendorParts) -> bool {
        self.vendor == wider.vendor
            && wider.kind.is_none_or(|kind| self.kind == Some(kind))
            && wider.subtype.is_none_or(|subtype| self.subtype == Some(subtype))
    }
}

impl fmt::Display for VendorParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", VendorName(self.vendor))?;
        let Some(kind) = self.kind else { return Ok(()) };
        write!(f, ":{}", kind.name())?;
        self.subtype.map_or(Ok(()), |subtype| write!(f, ":{subtype}"))
    }
}

impl FromStr for VendorParts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.splitn(3, ':');
        let VendorName(vendor) = words.next().unwrap_or_default().parse()?;
        let kind = words.next().map(|word| read_kind(text, word)).transpose()?;
        let subtype = words.next().map(|word| read_subtype(text, word)).transpose()?;
        Ok(VendorParts { vendor, kind, subtype })
    }
}

fn read_kind(text: &str, word: &str) -> Result<PartKind, String> {
    let found = PartKind::NAMES.iter().find(|(_, name)| *name == word);
    found.map(|(kind, _)| *kind).ok_or_else(|| {
        let names: Vec<&str> = PartKind::NAMES.iter().map(|(_, name)| *name).collect();
        format!("`{text}`: a vendor's part is one of {}", names.join(", "))
    })
}

fn read_subtype(text: &str, word: &str) -> Result<u32, String> {
    let number = match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => word.parse(),
    };
    number.map_err(|_| format!("`{text}`: the subtype is a number of 32 bits, such as 14 or 0xe"))
}

/// All requested extensions; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VendorList(BTreeSet<VendorParts>);

impl VendorList {
    /// Iterates over the entries.
    pub fn iter(&self) -> impl Iterator<Item = &VendorParts> {
        self.0.iter()
    }
}

impl Serialize for VendorList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(ToString::to_string))
    }
}

impl<'de> Deserialize<'de> for VendorList {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let texts = Vec::<String>::deserialize(input)?;
        let parts: Result<BTreeSet<_>, String> = texts.iter().map(|text| text.parse()).collect();
        let parts = parts.map_err(D::Error::custom)?;
        if parts.is_empty() {
            return Err(D::Error::custom(
                "name at least one vendor, such as \"nicira:action:14\", or leave the key out",
            ));
        }
        Ok(VendorList(parts))
    }
}

impl Requestable for VendorList {
    fn words(&self, _: &str) -> String {
        format!("use vendor extensions, whose effects Burnet cannot check: {}", listed(&self.0))
    }

    fn lies_within(&self, wider: &VendorList) -> bool {
        self.0.iter().all(|one| wider.0.iter().any(|other| one.lie_within(other)))
    }

    fn danger(&self, _: &str) -> Option<&'static str> {
        Some("a vendor's action can write and delete any rule, and send any packet, whatever else is granted")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<VendorList, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_list_that_names_nobody_is_refused_with_what_to_write() {
        let check = |json: &str, expected: &str| {
            let refused = read(json).unwrap_err();
            assert!(refused.contains(expected), "{json}: {refused}");
        };
        check("[]", "name at least one vendor");
        check("true", "expected a sequence");
        check(r#"["cisco"]"#, "`cisco` is no vendor");
        check(r#"["nicira:rule"]"#, "action, instruction, field, band, statistics, message");
        check(r#"["nicira:action:x"]"#, "the subtype is a number");
        check(r#"["nicira:action:1:2"]"#, "the subtype is a number");
        check(r#"["nicira:action:4294967296"]"#, "the subtype is a number");
    }

    #[test]
    fn a_list_reads_as_it_prints() {
        let list =
            read(r#"["nicira:action:14", "nicira:field", "0x12345678", "onf:statistics:0x10"]"#).unwrap();
        let printed = serde_json::to_string(&list).unwrap();
        assert_eq!(read(&printed), Ok(list));
        assert!(printed.contains("nicira:action:14") && printed.contains("onf:statistics:16"));
    }

    #[test]
    fn one_list_lies_within_another_part_by_part() {
        let check = |these: &str, those: &str, expected: bool| {
            assert_eq!(read(these).unwrap().lies_within(&read(those).unwrap()), expected, "{these} {those}");
        };
        check(r#"["nicira:action:14"]"#, r#"["nicira:action"]"#, true);
        check(r#"["nicira:action"]"#, r#"["nicira:action:14"]"#, false);
        check(r#"["nicira:action:14"]"#, r#"["nicira"]"#, true);
        check(r#"["nicira"]"#, r#"["nicira:action", "nicira:field"]"#, false);
        check(r#"["nicira"]"#, r#"["onf"]"#, false);
    }
}
