//! Finds profiles by name or file, and gives them to the switches of a network.
//!
//! In: names of built-in profiles and paths of files, each with the switch that plays it. Out: the profiles, or the wish that cannot be
//! met and why. It reads the files, and nothing else.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use profile::file::TEXT_BYTES_MAX;
use profile::{Profile, built_in};

use crate::topology::Topology;
use software_switch::Profiles;

/// How many names of switches an error shows.
const NAMES_SHOWN: usize = 8;

/// The wish that a switch plays a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileWish {
    /// The switch, by its name, its datapath id or its label. `None`: every switch without a profile of its own.
    pub switch: Option<String>,
    /// The name of a built-in profile, or a file.
    pub profile: String,
}

/// `NAME`, `FILE`, `SWITCH=NAME` or `SWITCH=FILE`. What is before the first `=` is no switch if it has a `/`.
impl FromStr for ProfileWish {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (switch, profile) = match text.split_once('=') {
            Some((switch, profile)) if !switch.contains('/') => (Some(switch.to_owned()), profile),
            _ => (None, text),
        };
        if profile.is_empty() || switch.as_deref() == Some("") {
            return Err(format!("'{text}' names no profile: write NAME, FILE.toml, s1=NAME or s1=FILE.toml"));
        }
        Ok(ProfileWish { switch, profile: profile.to_owned() })
    }
}

impl fmt::Display for ProfileWish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.switch.iter().try_for_each(|switch| write!(f, "{switch}="))?;
        f.write_str(&self.profile)
    }
}

/// The profile of this name, or in this file. A path is relative to the folder.
///
/// # Errors
/// There is none, with those that there are; or the file has problems, with their lines.
pub fn read(name: &str, folder: &Path) -> Result<Profile, String> {
    if let Some(profile) = built_in(name) {
        return Ok(profile);
    }
    let file = folder.join(name);
    let text = text_of(&file)?;
    Profile::parse(&file.display().to_string(), &text).map_err(|bad| bad.to_string())
}

/// The text of a profile's file.
///
/// # Errors
/// It cannot be read.
pub fn text_of(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let unread = |error: std::io::Error| format!("{shown} cannot be read: {error}");
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let names: Vec<_> = profile::built_in::names().collect();
            format!("{shown} is neither a file nor a built-in profile: {}", names.join(", "))
        }
        _ => unread(error),
    })?;
    let mut text = String::new();
    // One byte more than a profile may have, so that its reader refuses it.
    let limit = u64::try_from(TEXT_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_string(&mut text).map_err(unread)?;
    Ok(text)
}

/// Gives the wanted profiles to switches, in place of those that they have. A file is read once. A wish for all switches takes all
/// earlier profiles away.
///
/// # Errors
/// The index of a wish that cannot be met, and why: a profile that is not there or has a problem, an unknown switch, a second wish for
/// the same switch.
pub fn assign(
    wishes: &[ProfileWish],
    topology: &Topology,
    folder: &Path,
    profiles: &mut Profiles,
) -> Result<(), (usize, String)> {
    let mut found = BTreeMap::<&str, Arc<Profile>>::new();
    let mut assigned = BTreeMap::<Option<&str>, Arc<Profile>>::new();
    for (index, ProfileWish { switch, profile: name }) in wishes.iter().enumerate() {
        let refused = |why| (index, why);
        let switch =
            switch.as_deref().map(|switch| name_of(switch, topology)).transpose().map_err(refused)?;
        let profile = match found.get(name.as_str()) {
            Some(profile) => profile.clone(),
            None => Arc::new(read(name, folder).map_err(refused)?),
        };
        found.insert(name, profile.clone());
        if assigned.insert(switch, profile).is_some() {
            let whose = switch.map_or("all switches have".to_owned(), |switch| format!("{switch} has"));
            return Err(refused(format!("{whose} a profile already: leave out {name}")));
        }
    }
    if assigned.contains_key(&None) {
        *profiles = Profiles::default();
    }
    for (switch, profile) in assigned {
        match switch {
            None => profiles.set_for_all(profile),
            Some(switch) => profiles.set(switch, profile),
        }
    }
    Ok(())
}

/// The name by which the network knows a switch.
fn name_of<'t>(switch: &str, topology: &'t Topology) -> Result<&'t str, String> {
    if let Some(index) = topology.switch_named(switch) {
        return Ok(&topology.switches[index].name);
    }
    let names = topology.switches.iter().map(|plan| plan.name.as_str());
    let known: Vec<&str> = names.take(NAMES_SHOWN).collect();
    let more = if topology.switches.len() > known.len() { ", …" } else { "" };
    Err(format!("there is no switch {switch}; the switches are {}{more}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(before: &[&str], wishes: &[&str]) -> Result<[Option<String>; 2], (usize, String)> {
        let topology: Topology = "linear,2".parse().unwrap();
        let mut profiles = Profiles::default();
        for texts in [before, wishes] {
            let wishes: Vec<ProfileWish> = texts.iter().map(|text| text.parse().unwrap()).collect();
            assign(&wishes, &topology, Path::new(""), &mut profiles)?;
        }
        Ok(["s1", "s2"].map(|switch| profiles.of(switch).map(|profile| profile.name.clone())))
    }

    #[test]
    fn a_wish_is_read_as_it_is_written() {
        for text in ["null", "s1=null", "s1=a/b=c.toml", "./a=b.toml"] {
            assert_eq!(text.parse::<ProfileWish>().unwrap().to_string(), text);
        }
        assert_eq!("./a=b.toml".parse::<ProfileWish>().unwrap().switch, None);
        for text in ["", "s1=", "=null"] {
            assert!(text.parse::<ProfileWish>().unwrap_err().contains("names no profile"), "{text}");
        }
    }

    #[test]
    fn a_switch_with_a_profile_of_its_own_does_not_play_that_of_all() {
        let of = |wishes: &[&str]| assigned(&[], wishes).unwrap().map(Option::unwrap_or_default);
        assert_eq!(of(&["s2=tango-1", "null"]), ["null", "tango-1"]);
        assert_eq!(of(&["s1=null"]), ["null", ""]);
        assert_eq!(of(&["of:0000000000000002=null"]), ["", "null"]);
    }

    #[test]
    fn later_wishes_go_before_earlier_ones() {
        let of =
            |before: &[&str], then: &[&str]| assigned(before, then).unwrap().map(Option::unwrap_or_default);
        assert_eq!(of(&["null", "s1=tango-1"], &["s1=tango-2"]), ["tango-2", "null"]);
        assert_eq!(of(&["null", "s1=tango-1"], &["tango-3"]), ["tango-3", "tango-3"]);
    }

    #[test]
    fn a_wish_that_cannot_be_met_is_named_with_what_there_is() {
        let check = |wishes: &[&str], index: usize, words: &str| {
            let (found, why) = assigned(&[], wishes).unwrap_err();
            assert!(found == index && why.contains(words), "{found}: {why}");
        };
        check(&["cisco"], 0, "cisco is neither a file nor a built-in profile: broadcom-956846k, ");
        check(&["null", "s9=null"], 1, "there is no switch s9; the switches are s1, s2");
        check(&["null", "s1=/no/such.toml"], 1, "/no/such.toml is neither");
        check(&["null", "tango-1"], 1, "all switches have a profile already: leave out tango-1");
        check(&["s1=null", "of:0000000000000001=tango-1"], 1, "s1 has a profile already");
    }

    #[test]
    fn a_file_is_looked_for_in_the_folder_and_its_problems_have_lines() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles");
        assert_eq!(read("quanta-lb4g-software.toml", &folder).ok(), built_in("quanta-lb4g-software"));
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(read("Cargo.toml", here).unwrap_err().contains("Cargo.toml:1: "));
        assert!(read("", here).unwrap_err().contains("cannot be read"));
    }
}
