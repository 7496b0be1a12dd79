//! The numbers of the quotas in [`super::kind::SOFT_LIMIT`].

/// Commands per second.
pub const COMMANDS_PER_S: u16 = 1;
/// Packets per second that packet-outs cause.
pub const PACKET_OUTS_PER_S: u16 = 2;
/// Rules of the app on one switch.
pub const RULES_PER_DATAPATH: u16 = 3;
/// Entries of all apps in the tables of one switch.
pub const TABLE_ENTRIES: u16 = 4;
/// Processor time of the app, in hundredths of one core.
pub const CPU_PERCENT: u16 = 5;
/// Memory of the app, in KiB.
pub const MEMORY_KIB: u16 = 6;
/// Open descriptors of the app's process with the most.
pub const OPEN_FILES: u16 = 7;
/// Threads of all processes of the app.
pub const PROCESSES: u16 = 8;
/// How long data in the app's ring has been unread, in milliseconds.
pub const LAG_MS: u16 = 9;
/// Bytes of the app in the store.
pub const STORE_BYTES: u16 = 10;
/// Copies per second that one switch makes of packet-outs, beyond the first few of each.
pub const COPIES_PER_SWITCH_PER_S: u16 = 11;
/// Bytes per second of the packets that packet-outs cause.
pub const PACKET_OUT_BYTES_PER_S: u16 = 12;
/// Packet-ins per second that the app's rules and packet-outs cause.
pub const PACKET_INS_CAUSED_PER_S: u16 = 13;
/// Statistics requests per second.
pub const STATS_PER_S: u16 = 14;
