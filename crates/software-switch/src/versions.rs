//! Which OpenFlow versions a switch offers, and the version on which it agrees with a controller.
//!
//! In: the controller's hello. Out: the highest common version, if there is one. It keeps no state.

use openflow::Version;
use openflow::message::{Hello, HelloElement};
use std::fmt;

/// The set of versions that a switch may speak. It is never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versions {
    /// Only OpenFlow 1.0.
    Only10,
    /// Only OpenFlow 1.3.
    Only13,
    /// Both. The highest version that the controller also speaks is used.
    Both,
}

impl Versions {
    /// The highest version, which the header of the switch's hello carries.
    pub(crate) const fn highest(self) -> Version {
        match self {
            Versions::Only10 => Version::V1_0,
            Versions::Only13 | Versions::Both => Version::V1_3,
        }
    }

    const fn bitmap(self) -> u32 {
        match self {
            Versions::Only10 => 1 << Version::V1_0.0,
            Versions::Only13 => 1 << Version::V1_3.0,
            Versions::Both => 1 << Version::V1_0.0 | 1 << Version::V1_3.0,
        }
    }

    /// The switch's hello. A 1.0 hello has no elements.
    pub(crate) fn hello(self) -> Hello {
        match self {
            Versions::Only10 => Hello::default(),
            _ => Hello { elements: vec![HelloElement::VersionBitmap(vec![self.bitmap()])] },
        }
    }

    /// The version that both sides speak (1.3.5, 6.3.1): the highest in both bitmaps. If a side has no bitmap, it is
    /// the lower of the two headers' versions, if the switch speaks that one.
    pub(crate) fn agree(self, header: Version, theirs: &Hello) -> Option<Version> {
        let bitmap = theirs.elements.iter().find_map(|element| match element {
            HelloElement::VersionBitmap(words) => words.first().copied(),
            HelloElement::Unknown { .. } => None,
        });
        let common = match bitmap.filter(|_| self != Versions::Only10) {
            Some(bitmap) => bitmap & self.bitmap(),
            None => 1u32.checked_shl(header.min(self.highest()).0.into())? & self.bitmap(),
        };
        let highest = u8::try_from(common.checked_ilog2()?).ok()?;
        Some(Version(highest))
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Versions::Only10 => "1.0",
            Versions::Only13 => "1.3",
            Versions::Both => "1.0 and 1.3",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ours: Versions, header: Version, bitmap: Option<u32>, expected: Option<Version>) {
        let elements = bitmap.map(|bits| HelloElement::VersionBitmap(vec![bits])).into_iter().collect();
        assert_eq!(ours.agree(header, &Hello { elements }), expected, "{ours:?} {header} {bitmap:?}");
    }

    #[test]
    fn who_has_no_version_in_common_does_not_agree() {
        check(Versions::Only13, Version::V1_0, None, None);
        check(Versions::Both, Version(0), None, None);
        check(Versions::Both, Version(6), Some(1 << 6), None);
        check(Versions::Only10, Version(0), Some(0x12), None);
    }

    #[test]
    fn the_highest_common_version_is_taken() {
        check(Versions::Both, Version::V1_0, None, Some(Version::V1_0));
        check(Versions::Both, Version(6), None, Some(Version::V1_3));
        check(Versions::Both, Version(6), Some(0x7e), Some(Version::V1_3));
        check(Versions::Both, Version(6), Some(0x42), Some(Version::V1_0));
        check(Versions::Only10, Version(4), Some(0x12), Some(Version::V1_0));
    }
}
