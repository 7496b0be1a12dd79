//! The reasons for an error, and their numbers in each version.
//!
//! It never decides what is refused. It only knows the error codes.

use flow::ErrorCode;
use openflow::Version;

/// A reason to answer a message with an error (1.3.5, 7.5.4; 1.0, 5.4.4).
/// Its value is the error's type and code in 1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Refusal {
    BadVersion = number(1, 0),
    BadType = number(1, 1),
    BadMultipart = number(1, 2),
    BadExperimenter = number(1, 3),
    BufferEmpty = number(1, 7),
    BufferUnknown = number(1, 8),
    BadTableId = number(1, 9),
    IsSlave = number(1, 10),
    BadPort = number(1, 11),
    BadPacket = number(1, 12),
    MultipartOverflow = number(1, 13),
    ActionType = number(2, 0),
    ActionExperimenter = number(2, 2),
    ActionOutPort = number(2, 4),
    ActionOutGroup = number(2, 9),
    ActionArgument = number(2, 5),
    ActionSetType = number(2, 13),
    ActionInconsistent = number(2, 10),
    InstructionUnsupported = number(3, 1),
    InstructionTableId = number(3, 2),
    InstructionExperimenter = number(3, 5),
    MatchField = number(4, 6),
    MatchPrerequisite = number(4, 9),
    TableFull = number(5, 1),
    FlowModTableId = number(5, 2),
    Overlap = number(5, 3),
    FlowModCommand = number(5, 6),
    FlowModFlags = number(5, 7),
    /// 1.0: an emergency rule with a time-out. 1.3 has no emergency rules.
    EmergencyTimeout = number(5, 5),
    GroupExists = number(6, 0),
    GroupInvalid = number(6, 1),
    GroupOutOfGroups = number(6, 3),
    GroupOutOfBuckets = number(6, 4),
    GroupLoop = number(6, 7),
    GroupUnknown = number(6, 8),
    GroupChained = number(6, 9),
    GroupType = number(6, 10),
    GroupCommand = number(6, 11),
    GroupBadWatch = number(6, 13),
    PortModPort = number(7, 0),
    PortModHwAddr = number(7, 1),
    PortModConfig = number(7, 2),
    PortModAdvertise = number(7, 3),
    TableModTable = number(8, 0),
    TableModConfig = number(8, 1),
    QueuePort = number(9, 0),
    QueueUnknown = number(9, 1),
    SwitchConfigFlags = number(10, 0),
    RoleStale = number(11, 0),
    RoleBad = number(11, 2),
    MeterExists = number(12, 1),
    MeterInvalid = number(12, 2),
    MeterUnknown = number(12, 3),
    MeterCommand = number(12, 4),
    MeterFlags = number(12, 5),
    MeterRate = number(12, 6),
    MeterBurst = number(12, 7),
    MeterBand = number(12, 8),
    MeterBandValue = number(12, 9),
    MeterOutOfMeters = number(12, 10),
    MeterOutOfBands = number(12, 11),
    TableFeaturesTable = number(13, 0),
    TableFeaturesType = number(13, 2),
    TableFeaturesArgument = number(13, 4),
    BundleBadId = bundle_failed(2),
    BundleClosed = bundle_failed(4),
    OutOfBundles = bundle_failed(5),
    BundleBadType = bundle_failed(6),
    BundleFlags = bundle_failed(7),
    BundledUnsupported = bundle_failed(10),
    BundledTooMany = bundle_failed(12),
    BundledFailed = bundle_failed(13),
    BundleTimeout = bundle_failed(14),
}

/// Type and code in one number.
const fn number(kind: u16, code: u16) -> u32 {
    (kind as u32) << 16 | code as u32
}

/// An error about bundles, which is the ONF's in 1.3.
const fn bundle_failed(code: u16) -> u32 {
    let ErrorCode { kind, code } = openflow::error::bundle_failed(code);
    number(kind, code)
}

impl Refusal {
    /// Error type and code in the numbers of a version. If 1.0 has no such error, it gets the nearest one.
    pub(crate) const fn codes(self, version: Version) -> (u16, u16) {
        if matches!(self, Refusal::EmergencyTimeout) {
            return (3, 3);
        }
        let number = self as u32;
        let error = ErrorCode { kind: (number >> 16) as u16, code: number as u16 };
        let ErrorCode { kind, code } = openflow::error::to_version(error, version);
        (kind, code)
    }
}
