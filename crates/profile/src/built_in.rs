//! The profiles that are built in: the files of the folder `profiles`.
//!
//! In: a name, or what a switch reports of itself. Out: a profile, its text, or the name of the one that fits best. It reads no file:
//! the compiler did.

use crate::file::BadProfile;
use crate::switch::Description;
use crate::whole::Profile;

macro_rules! texts {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../../profiles/", $name, ".toml")))),+]
    };
}

/// Name and text of each, by name.
const TEXTS: [(&str, &str); 17] = texts![
    "broadcom-956846k",
    "dell-8132f",
    "fulcrum-monaco",
    "hp-5406zl",
    "hp-procurve-j9451a",
    "ibm-g8264",
    "intel-fm6000",
    "noviswitch-1132",
    "null",
    "ovs-1.7-x3210",
    "ovs-3.1",
    "pica8-p3290",
    "quanta-lb4g",
    "quanta-lb4g-software",
    "tango-1",
    "tango-2",
    "tango-3",
];

/// The names, in their order.
pub fn names() -> impl ExactSizeIterator<Item = &'static str> {
    TEXTS.iter().map(|(name, _)| *name)
}

/// The text of a built-in profile.
pub fn text(name: &str) -> Option<&'static str> {
    let index = TEXTS.binary_search_by_key(&name, |(name, _)| name).ok()?;
    Some(TEXTS[index].1)
}

/// A built-in profile. None: there is none of this name.
pub fn built_in(name: &str) -> Option<Profile> {
    // A test reads all of them, so that none is refused here.
    Profile::from_toml(name, text(name)?, &text).ok()
}

/// The built-in profile that recognises a switch best. Among equals, the first by name.
pub fn recognise(description: &Description<'_>) -> Option<Profile> {
    let fits = names().filter_map(built_in).filter_map(|profile| {
        let fit = profile.switch.recognises(description)?;
        Some((fit, profile))
    });
    fits.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, profile)| profile)
}

impl Profile {
    /// Reads a profile that may be based on a built-in one. `file` is its name in messages.
    ///
    /// # Errors
    /// All faults with their lines, as [`Profile::from_toml`] lists them.
    pub fn parse(file: &str, text: &str) -> Result<Self, BadProfile> {
        Profile::from_toml(file, text, &self::text)
    }
}
