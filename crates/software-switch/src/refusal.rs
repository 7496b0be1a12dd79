//! The reasons for an error, and their numbers in each version.
//!
//! It never decides what is refused. It only knows the error codes.

use flow::ErrorCode;
use openflow::Version;

/// A reason to answer a message with an error (1.3.5, 7.5.4; 1.0, 5.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    BadVersion,
    BadType,
    BadMultipart,
    BadExperimenter,
    BufferEmpty,
    BufferUnknown,
    BadTableId,
    IsSlave,
    BadPort,
    BadPacket,
    MultipartOverflow,
    ActionType,
    ActionExperimenter,
    ActionOutPort,
    ActionOutGroup,
    ActionArgument,
    ActionSetType,
    ActionInconsistent,
    InstructionUnsupported,
    InstructionTableId,
    InstructionExperimenter,
    MatchField,
    MatchPrerequisite,
    TableFull,
    FlowModTableId,
    Overlap,
    FlowModCommand,
    FlowModFlags,
    /// 1.0: an emergency rule with a time-out.
    EmergencyTimeout,
    GroupExists,
    GroupInvalid,
    GroupOutOfGroups,
    GroupOutOfBuckets,
    GroupLoop,
    GroupUnknown,
    GroupChained,
    GroupType,
    GroupCommand,
    GroupBadWatch,
    PortModPort,
    PortModHwAddr,
    PortModConfig,
    PortModAdvertise,
    TableModTable,
    TableModConfig,
    QueuePort,
    QueueUnknown,
    SwitchConfigFlags,
    RoleStale,
    RoleBad,
    MeterExists,
    MeterInvalid,
    MeterUnknown,
    MeterCommand,
    MeterFlags,
    MeterRate,
    MeterBurst,
    MeterBand,
    MeterBandValue,
    MeterOutOfMeters,
    MeterOutOfBands,
    TableFeaturesTable,
    TableFeaturesType,
    TableFeaturesArgument,
}

impl Refusal {
    /// Error type and code in the numbers of a version. If 1.0 has no such error, it gets the nearest one.
    pub(crate) const fn codes(self, version: Version) -> (u16, u16) {
        if matches!(self, Refusal::EmergencyTimeout) {
            return (3, 3);
        }
        let (kind, code) = self.codes_v13();
        let ErrorCode { kind, code } = openflow::error::to_version(ErrorCode { kind, code }, version);
        (kind, code)
    }

    const fn codes_v13(self) -> (u16, u16) {
        use Refusal::*;
        match self {
            BadVersion => (1, 0),
            BadType => (1, 1),
            BadMultipart => (1, 2),
            BadExperimenter => (1, 3),
            BufferEmpty => (1, 7),
            BufferUnknown => (1, 8),
            BadTableId => (1, 9),
            IsSlave => (1, 10),
            BadPort => (1, 11),
            BadPacket => (1, 12),
            MultipartOverflow => (1, 13),
            ActionType => (2, 0),
            ActionExperimenter => (2, 2),
            ActionOutPort => (2, 4),
            ActionArgument => (2, 5),
            ActionOutGroup => (2, 9),
            ActionInconsistent => (2, 10),
            ActionSetType => (2, 13),
            InstructionUnsupported => (3, 1),
            InstructionTableId => (3, 2),
            InstructionExperimenter => (3, 5),
            MatchField => (4, 6),
            MatchPrerequisite => (4, 9),
            TableFull => (5, 1),
            FlowModTableId => (5, 2),
            Overlap => (5, 3),
            FlowModCommand => (5, 6),
            FlowModFlags => (5, 7),
            // Only 1.0 has emergency rules.
            EmergencyTimeout => (5, 5),
            GroupExists => (6, 0),
            GroupInvalid => (6, 1),
            GroupOutOfGroups => (6, 3),
            GroupOutOfBuckets => (6, 4),
            GroupLoop => (6, 7),
            GroupUnknown => (6, 8),
            GroupChained => (6, 9),
            GroupType => (6, 10),
            GroupCommand => (6, 11),
            GroupBadWatch => (6, 13),
            PortModPort => (7, 0),
            PortModHwAddr => (7, 1),
            PortModConfig => (7, 2),
            PortModAdvertise => (7, 3),
            TableModTable => (8, 0),
            TableModConfig => (8, 1),
            QueuePort => (9, 0),
            QueueUnknown => (9, 1),
            SwitchConfigFlags => (10, 0),
            RoleStale => (11, 0),
            RoleBad => (11, 2),
            MeterExists => (12, 1),
            MeterInvalid => (12, 2),
            MeterUnknown => (12, 3),
            MeterCommand => (12, 4),
            MeterFlags => (12, 5),
            MeterRate => (12, 6),
            MeterBurst => (12, 7),
            MeterBand => (12, 8),
            MeterBandValue => (12, 9),
            MeterOutOfMeters => (12, 10),
            MeterOutOfBands => (12, 11),
            TableFeaturesTable => (13, 0),
            TableFeaturesType => (13, 2),
            TableFeaturesArgument => (13, 4),
        }
    }
}
