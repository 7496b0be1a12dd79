//! The connection of one controller: version, role, and what it wants to hear.
//!
//! In: its hello, roles, asynchronous configuration. Out: the version, and whether it hears a message. It holds no socket and no bytes.

use openflow::Version;
use openflow::message::*;

/// The version bitmap of a virtual switch.
pub(crate) const OFFERED: u32 = 1 << Version::V1_0.0 | 1 << Version::V1_3.0;

/// OFP_DEFAULT_MISS_SEND_LEN.
const MISS_SEND_BYTES: u16 = 128;

/// What a controller hears by default (1.3.5, 7.3.10): a slave only port statuses.
const HEARD_BY_DEFAULT: AsyncConfig = AsyncConfig {
    packet_in_mask: [0b011, 0],
    port_status_mask: [0b111, 0b111],
    flow_removed_mask: [0b1111, 0],
};

/// Who sent a message, and how the answer must look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) controller: usize,
    pub(crate) serial: u64,
    pub(crate) version: Version,
    pub(crate) xid: u32,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No connection.
    Closed,
    /// The switch has sent its hello, and waits for the controller's.
    AwaitsHello,
    /// Both agreed on a version.
    Open(Version),
}

/// One controller.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    pub(crate) state: State,
    /// Which connection it is. Answers to an earlier one are dropped.
    pub(crate) serial: u64,
    pub(crate) role: u32,
    pub(crate) wanted: AsyncConfig,
    /// How many bytes of a buffered packet it wants.
    pub(crate) miss_send_len: u16,
    /// Whether it was told all labels without a request.
    pub(crate) has_labels: bool,
    /// Whether it reads what it is sent. Otherwise it gets no packet-ins.
    pub(crate) has_room: bool,
    /// Malformed messages so far.
    pub(crate) malformed: u32,
}

impl Controller {
    /// No connection.
    pub(crate) fn closed(serial: u64) -> Controller {
        Controller {
            state: State::Closed,
            serial,
            role: ROLE_EQUAL,
            wanted: HEARD_BY_DEFAULT,
            miss_send_len: MISS_SEND_BYTES,
            has_labels: false,
            has_room: true,
            malformed: 0,
        }
    }

    /// The version agreed on, if there is one.
    pub(crate) fn version(&self) -> Option<Version> {
        match self.state {
            State::Open(version) => Some(version),
            _ => None,
        }
    }

    fn hears(&self, masks: [u32; 2], reason: u8) -> bool {
        let mask = masks[usize::from(self.role == ROLE_SLAVE)];
        1u32.checked_shl(reason.into()).is_some_and(|bit| mask & bit != 0)
    }

    pub(crate) fn hears_packet_in(&self, reason: u8) -> bool {
        self.hears(self.wanted.packet_in_mask, reason)
    }

    pub(crate) fn hears_port_status(&self, reason: u8) -> bool {
        self.hears(self.wanted.port_status_mask, reason)
    }

    pub(crate) fn hears_flow_removed(&self, reason: u8) -> bool {
        self.hears(self.wanted.flow_removed_mask, reason)
    }
}

/// The version that a controller and a virtual switch speak (1.3.5, 6.3.1): the highest of both bitmaps. Without a bitmap it is the
/// header's, or 1.3 if the header's is higher.
pub(crate) fn agree(header: Version, theirs: &Hello) -> Option<Version> {
    let bitmap = theirs.elements.iter().find_map(|element| match element {
        HelloElement::VersionBitmap(words) => Some(words.first().copied().unwrap_or(0)),
        HelloElement::Unknown { .. } => None,
    });
    let bits = match bitmap {
        Some(bits) => bits,
        None => 1u32.checked_shl(header.min(Version::V1_3).0.into())?,
    };
    let highest = (bits & OFFERED).checked_ilog2()?;
    u8::try_from(highest).ok().map(Version)
}

/// Which versions a hello offers, for a line in the log.
pub(crate) fn offer_of(header: Version, theirs: &Hello) -> String {
    let bitmap = theirs.elements.iter().find_map(|element| match element {
        HelloElement::VersionBitmap(words) => words.first().copied(),
        HelloElement::Unknown { .. } => None,
    });
    let Some(bits) = bitmap else { return header.to_string() };
    let named = (0..32u8).filter(|bit| bits >> bit & 1 == 1).map(|bit| Version(bit).to_string());
    let named: Vec<String> = named.collect();
    if named.is_empty() { "no version".to_owned() } else { named.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: u8, bitmap: Option<u32>, expected: Option<Version>) {
        let elements = bitmap.map(|bits| HelloElement::VersionBitmap(vec![bits])).into_iter().collect();
        let hello = Hello { elements };
        assert_eq!(agree(Version(header), &hello), expected, "{header} {bitmap:?}");
    }

    #[test]
    fn who_offers_another_version_only_does_not_agree() {
        check(6, Some(1 << 6), None);
        check(4, Some(0), None);
        check(2, None, None);
        check(0, None, None);
        assert_eq!(
            offer_of(Version(6), &Hello { elements: vec![HelloElement::VersionBitmap(vec![1 << 6])] }),
            "1.5"
        );
    }

    #[test]
    fn the_highest_common_version_is_taken() {
        check(1, None, Some(Version::V1_0));
        check(6, None, Some(Version::V1_3));
        check(6, Some(0x7e), Some(Version::V1_3));
        check(4, Some(0x22), Some(Version::V1_0));
    }
}
