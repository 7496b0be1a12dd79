//! What the operator and the driver tell a probe before it begins.
//!
//! Plain values with defaults. The probe reads no clock, so the date is one of them.

use flow::PortNo;
use openflow::Version;

/// A port of the switch with a test interface behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestPort {
    /// The port of the switch.
    pub port: PortNo,
    /// The interface's name in messages.
    pub interface: String,
}

/// How a probe measures.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the profile.
    pub name: String,
    /// The day, `2026-11-25`, for the origin of each value.
    pub date: String,
    /// The ports. Test frames enter at the first and leave at the second.
    pub ports: [TestPort; 2],
    /// The versions of OpenFlow that the probe offers.
    pub versions: Vec<Version>,
    /// Removes foreign rules instead of refusing a switch that has some.
    pub clear: bool,
    /// The probe adds no more rules than this. A table without an end is "at least" as large.
    pub table_max: u32,
    /// From one test frame to the next while the probe waits for rules to take effect. It is the resolution of such times.
    pub watch_tick_ns: u64,
    /// How much longer than in hardware a frame must take to count as forwarded by software. The driver's own jitter is below it.
    pub transit_margin_ns: u64,
    /// How long the whole probe takes at most, if four fillings of the table do not take longer.
    pub time_max_ns: u64,
}

/// The largest default table: the largest published one (65,000) and some more.
const TABLE_MAX: u32 = 70_000;

impl Options {
    /// The defaults for virtual time, in which nothing jitters.
    pub fn simulated(name: &str, date: &str) -> Self {
        let port = |number| TestPort { port: PortNo(number), interface: format!("veth{number}") };
        Options {
            name: name.to_owned(),
            date: date.to_owned(),
            ports: [port(1), port(2)],
            versions: vec![Version::V1_0, Version::V1_3],
            clear: false,
            table_max: TABLE_MAX,
            watch_tick_ns: 100_000,
            transit_margin_ns: 20_000,
            time_max_ns: 300_000_000_000,
        }
    }

    /// The defaults for sockets and a clock that jitters.
    pub fn real(name: &str, date: &str, ports: [TestPort; 2]) -> Self {
        Options {
            ports,
            watch_tick_ns: 500_000,
            transit_margin_ns: 1_000_000,
            ..Options::simulated(name, date)
        }
    }
}
