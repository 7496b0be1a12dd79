//! `[switch."of:…"]` and `[switch."*"]`: which profile applies to which switch, and how the node paces it.
//!
//! In: what is written. Out: the same, checked. [`super::switch_paces`] reads the profiles.

use flow::DatapathId;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// In `recognise`: all built-in profiles.
pub const BUILT_IN: &str = "built-in";

/// Profiles in one list. Each is compared with the description of each switch.
pub const RECOGNISED_MAX: usize = 64;

/// The switches of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SwitchKey {
    /// `"*"`: all that have no section of their own.
    Others,
    /// The switch with this id.
    One(DatapathId),
}

impl TryFrom<String> for SwitchKey {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "*" {
            return Ok(SwitchKey::Others);
        }
        match text.parse() {
            Ok(datapath) => Ok(SwitchKey::One(datapath)),
            Err(why) => Err(format!("{why}; or \"*\" for all other switches")),
        }
    }
}

impl From<SwitchKey> for String {
    fn from(key: SwitchKey) -> String {
        key.to_string()
    }
}

impl fmt::Display for SwitchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwitchKey::Others => f.write_str("*"),
            SwitchKey::One(datapath) => datapath.fmt(f),
        }
    }
}

/// How fast the node sends rules to a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// So fast that all rules go to the hardware table at once.
    Hardware,
    /// So fast as the switch sets up flows.
    #[default]
    Setup,
    /// At once.
    None,
}

/// A section.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchTable {
    /// The name of a built-in profile, or the path of a file.
    pub profile: Option<String>,
    /// Only for `"*"`: profiles that apply to the switches whose descriptions they recognise.
    pub recognise: Vec<String>,
    /// How fast the node sends rules.
    pub pace: Pace,
    /// The part of rules that are in the data plane by the profile before a receipt says `programmed`: 0.5 to 1.
    #[serde(deserialize_with = "quantile")]
    pub programmed_quantile: Quantile,
}

/// A probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quantile(pub f64);

impl Default for Quantile {
    /// All rules.
    fn default() -> Self {
        Quantile(1.0)
    }
}

fn quantile<'de, D: Deserializer<'de>>(input: D) -> Result<Quantile, D::Error> {
    let number = f64::deserialize(input)?;
    if (0.5..=1.0).contains(&number) {
        return Ok(Quantile(number));
    }
    Err(D::Error::custom(format!("{number} is out of range: write 0.5 to 1")))
}

/// All sections.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Switches(pub BTreeMap<SwitchKey, SwitchTable>);

impl Switches {
    /// Paths of profiles are relative to this folder.
    pub(super) fn resolve(&mut self, folder: &Path) {
        let names =
            self.0.values_mut().flat_map(|table| table.profile.iter_mut().chain(&mut table.recognise));
        for name in names {
            if let Some(path) = as_path(name) {
                // The path is valid UTF-8, because the file is. Only the folder may not be.
                *name = folder.join(path).to_string_lossy().into_owned();
            }
        }
    }
}

/// The path, if it is one and not the name of a built-in profile, which has no slash.
pub(super) fn as_path(name: &str) -> Option<PathBuf> {
    let is_path = name.contains('/') || name.ends_with(".toml");
    is_path.then(|| PathBuf::from(name))
}

impl<'de> Deserialize<'de> for Switches {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_map(Sections)
    }
}

struct Sections;

impl<'de> Visitor<'de> for Sections {
    type Value = Switches;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sections such as [switch.\"of:0000000000000001\"]")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Switches, A::Error> {
        let mut sections = BTreeMap::new();
        while let Some(key) = map.next_key::<SwitchKey>()? {
            if sections.contains_key(&key) {
                return Err(A::Error::custom(format!("the switch {key} has two sections: leave one out")));
            }
            let table: SwitchTable = map.next_value()?;
            if let Some(flaw) = flaw(key, &table) {
                return Err(A::Error::custom(flaw));
            }
            sections.insert(key, table);
        }
        Ok(Switches(sections))
    }
}

/// What is wrong with a section, and what to do.
fn flaw(key: SwitchKey, table: &SwitchTable) -> Option<String> {
    let SwitchTable { profile, recognise, .. } = table;
    if key != SwitchKey::Others && !recognise.is_empty() {
        return Some(format!(
            "[switch.{:?}] names one switch, and recognise finds profiles for unnamed ones: write profile, or move recognise to \
             [switch.\"*\"]",
            key.to_string()
        ));
    }
    if recognise.len() > RECOGNISED_MAX {
        return Some(format!("recognise lists {} profiles: write at most {RECOGNISED_MAX}", recognise.len()));
    }
    (profile.is_none() && recognise.is_empty()).then(|| {
        let or = if key == SwitchKey::Others { " or recognise" } else { "" };
        format!("[switch.{:?}] has no profile: add profile{or}, or leave the section out", key.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Switches, String> {
        #[derive(Deserialize)]
        struct File {
            switch: Switches,
        }
        toml::from_str::<File>(text).map(|file| file.switch).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_write() {
        let check = |text: &str, expected: &str| {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        };
        check("[switch.s1]\nprofile = 'null'", "'s1' is not a datapath id");
        check("[switch.s1]\nprofile = 'null'", "or \"*\" for all other switches");
        check(
            "[switch.1]\npace = 'setup'",
            "[switch.\"of:0000000000000001\"] has no profile: add profile, or leave",
        );
        check("[switch.'*']\npace = 'setup'", "add profile or recognise");
        check("[switch.1]\nprofile = 'a'\nrecognise = ['built-in']", "move recognise to [switch.\"*\"]");
        check(
            "[switch.1]\nprofile = 'a'\n[switch.0x1]\nprofile = 'b'",
            "of:0000000000000001 has two sections",
        );
        check("[switch.1]\nprofile = 'a'\npace = 'fast'", "unknown variant `fast`");
        check("[switch.1]\nprofile = 'a'\nprogrammed_quantile = 0.4", "0.4 is out of range: write 0.5 to 1");
        check("[switch.1]\nprofil = 'a'", "unknown field `profil`");
        let many = vec!["'a.toml'"; RECOGNISED_MAX + 1].join(", ");
        check(
            &format!("[switch.'*']\nrecognise = [{many}]"),
            "recognise lists 65 profiles: write at most 64",
        );
    }

    #[test]
    fn paths_start_at_the_folder_of_the_file_and_names_stay() {
        let text = "[switch.1]\nprofile = 'ovs-3.1'\n[switch.'*']\nprofile = 'lab/hp.toml'\nrecognise = ['built-in', '/a/b']\npace = 'none'";
        let mut switches = read(text).unwrap();
        switches.resolve(Path::new("/etc/burnet"));
        let (one, others) = (&switches.0[&SwitchKey::One(DatapathId(1))], &switches.0[&SwitchKey::Others]);
        assert_eq!((one.profile.as_deref(), one.pace), (Some("ovs-3.1"), Pace::Setup));
        assert_eq!(others.profile.as_deref(), Some("/etc/burnet/lab/hp.toml"));
        assert_eq!(
            (&others.recognise[..], others.pace),
            (&["built-in".to_owned(), "/a/b".to_owned()][..], Pace::None)
        );
        // The kernel process gets it as JSON.
        let json = serde_json::to_value(&switches).unwrap();
        assert_eq!(serde_json::from_value::<Switches>(json).unwrap(), switches);
    }
}
