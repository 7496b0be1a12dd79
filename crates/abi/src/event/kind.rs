//! The numbers of the event types. They are also the bits of a subscription.

/// A switch is connected; with its ports.
pub const SWITCH_UP: u16 = 1;
/// A switch is disconnected.
pub const SWITCH_DOWN: u16 = 2;
/// A packet-in.
pub const PACKET_IN: u16 = 3;
/// A port was added, removed or changed.
pub const PORT_STATUS: u16 = 4;
/// A rule was removed.
pub const FLOW_REMOVED: u16 = 5;
/// A switch answered a command of this app with an error.
pub const SWITCH_ERROR: u16 = 6;
/// A reply, or a part of one, to a statistics request of this app.
pub const STATS_REPLY: u16 = 7;
/// The receipt for a command of this app.
pub const RECEIPT: u16 = 8;
/// Packet-ins were dropped because this app was too slow.
pub const DROPPED: u16 = 9;
/// A published message of a service or an app.
pub const TOPIC: u16 = 10;
/// A call to this service.
pub const QUERY: u16 = 11;
/// An answer, or a part of one, to a call of this app.
pub const QUERY_REPLY: u16 = 12;
/// The time, about once per second.
pub const TICK: u16 = 13;
/// The zone will end: finish, and return.
pub const SHUTDOWN: u16 = 14;
/// This app exceeds a soft limit, or is below it again.
pub const SOFT_LIMIT: u16 = 15;
/// More credit for an answer of this service.
pub const QUERY_CREDIT: u16 = 20;
/// A call to this service ended before its last part.
pub const QUERY_OVER: u16 = 21;
/// An experimenter message of a switch, which is no answer to the node.
pub const EXPERIMENTER: u16 = 22;

/// The bit of a type in a subscription.
pub const fn bit(kind: u16) -> u64 {
    1 << kind
}

/// A further bit of a subscription with [`PACKET_IN`]: only packet-ins that the app's own rules send. The kernel then adds no
/// table-miss rule for the app. A switch with OpenFlow 1.0 does not name the rule: the app receives what any action sends.
pub const OF_OWN_RULES: u64 = 1 << 63;

/// All types that an app can subscribe to. The others are addressed to one app.
pub const SUBSCRIBABLE: u64 = bit(SWITCH_UP)
    | bit(SWITCH_DOWN)
    | bit(PACKET_IN)
    | bit(PORT_STATUS)
    | bit(FLOW_REMOVED)
    | bit(TOPIC)
    | bit(TICK)
    | bit(EXPERIMENTER);
