//! The hello: negotiates the OpenFlow version (1.3.5, 6.3.1).
//!
//! It sends nothing: it builds our hello and evaluates the peer's.

use crate::config::Versions;
use openflow::message::{Hello, HelloElement};
use openflow::{Body, Message, Version};

/// Our hello. Its header has the highest enabled version. From 1.3 on, it also has the bitmap of all.
pub fn ours(versions: Versions, xid: u32) -> Message {
    let version = versions.highest();
    let elements = match version {
        Version::V1_0 => Vec::new(),
        _ => vec![HelloElement::VersionBitmap(vec![versions.bitmap()])],
    };
    Message { version, xid, body: Body::Hello(Hello { elements }) }
}

/// The version to use with a peer whose hello had `version` in its header. The error is a text for the peer.
///
/// If both sides sent a bitmap, it is the highest version in both. Otherwise it is the lower of the two headers.
pub fn negotiate(ours: Versions, version: Version, hello: &Hello) -> Result<Version, String> {
    let common = match bitmap(hello) {
        Some(theirs) if ours.v1_3 => ours.highest_common(theirs),
        _ => Some(version.min(ours.highest())).filter(|lower| ours.contains(*lower)),
    };
    common.ok_or_else(|| {
        format!(
            "this controller supports {}; the hello of the switch offers {}",
            spoken(ours),
            offered(version, hello)
        )
    })
}

/// Versions 0 to 31. No higher ones exist.
fn bitmap(hello: &Hello) -> Option<u32> {
    hello.elements.iter().find_map(|element| match element {
        HelloElement::VersionBitmap(words) => Some(words.first().copied().unwrap_or(0)),
        HelloElement::Unknown { .. } => None,
    })
}

fn spoken(versions: Versions) -> String {
    named(versions.bitmap())
}

fn offered(version: Version, hello: &Hello) -> String {
    match bitmap(hello) {
        Some(theirs) => named(theirs),
        None => format!("OpenFlow {version}"),
    }
}

fn named(bitmap: u32) -> String {
    let names: Vec<String> = (0..32u8)
        .filter(|bit| bitmap & 1 << bit != 0)
        .map(|bit| format!("OpenFlow {}", Version(bit)))
        .collect();
    if names.is_empty() { "no version".to_owned() } else { names.join(" and ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Versions = Versions { v1_0: true, v1_3: true };
    const ONLY_1_0: Versions = Versions { v1_0: true, v1_3: false };
    const ONLY_1_3: Versions = Versions { v1_0: false, v1_3: true };

    fn hello(bitmap: Option<u32>) -> Hello {
        Hello { elements: bitmap.map(|word| HelloElement::VersionBitmap(vec![word])).into_iter().collect() }
    }

    /// A peer that sends `version`, and perhaps a bitmap of wire versions.
    fn check(ours: Versions, version: u8, bitmap: Option<u32>, expected: Option<Version>) {
        let found = negotiate(ours, Version(version), &hello(bitmap)).ok();
        assert_eq!(found, expected, "{ours:?} with 0x{version:02x} and {bitmap:?}");
    }

    #[test]
    fn without_a_version_in_common_there_is_none() {
        check(ONLY_1_3, 0x01, None, None);
        check(BOTH, 0x02, None, None);
        check(BOTH, 0x03, None, None);
        check(BOTH, 0x00, None, None);
        check(BOTH, 0x06, Some(1 << 5 | 1 << 6), None);
        check(BOTH, 0x04, Some(0), None);
        check(ONLY_1_3, 0x04, Some(1 << 1), None);
        check(Versions { v1_0: false, v1_3: false }, 0x04, None, None);
    }

    #[test]
    fn the_reason_names_what_both_speak() {
        let reason = negotiate(BOTH, Version(3), &hello(None)).unwrap_err();
        assert_eq!(
            reason,
            "this controller supports OpenFlow 1.0 and OpenFlow 1.3; the hello of the switch offers OpenFlow 1.2"
        );
    }

    #[test]
    fn the_highest_version_in_both_bitmaps_is_taken() {
        check(BOTH, 0x06, Some(1 << 1 | 1 << 4 | 1 << 6), Some(Version::V1_3));
        check(BOTH, 0x06, Some(1 << 1 | 1 << 6), Some(Version::V1_0));
    }

    #[test]
    fn without_a_bitmap_the_lower_header_counts() {
        check(BOTH, 0x01, None, Some(Version::V1_0));
        check(BOTH, 0x04, None, Some(Version::V1_3));
        check(BOTH, 0x06, None, Some(Version::V1_3));
        check(ONLY_1_0, 0x04, Some(1 << 1 | 1 << 4), Some(Version::V1_0));
    }
}
