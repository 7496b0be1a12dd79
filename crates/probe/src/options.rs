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

/// A part of the measurement that can be left out. Later parts use what earlier ones found, or a cautious guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// What the idle switch needs for each type of message.
    Delays,
    /// Packet-outs and packet-ins at saturation, and what bounds packet-ins.
    Rates,
    /// What a barrier reply means, and which messages overtake others.
    Barriers,
    /// How many rules a second it takes, and which of them go to software.
    SetUp,
    /// What modifies, deletes and statistics cost.
    Changes,
    /// How often it looks for expired rules.
    Timeouts,
    /// How many packets it keeps.
    Buffers,
    /// The size of the table, and what happens when it is full.
    Table,
    /// The cost of adds by the order of priorities.
    Orders,
    /// Delays at five rates and under polling, which judge the profile.
    Loads,
    /// The size of the table for other kinds of matches.
    Matches,
    /// The set-up rate once more, for as long as there is time.
    Longer,
}

impl Part {
    /// All of them, in the order in which they are measured.
    pub const ALL: [Part; 12] = [
        Part::Delays,
        Part::Rates,
        Part::Barriers,
        Part::SetUp,
        Part::Changes,
        Part::Timeouts,
        Part::Buffers,
        Part::Table,
        Part::Orders,
        Part::Loads,
        Part::Matches,
        Part::Longer,
    ];
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
    /// What it measures. The cables are checked in any case.
    pub parts: Vec<Part>,
    /// Removes foreign rules instead of refusing a switch that has some.
    pub clear: bool,
    /// The probe adds no more rules than this. A table without an end is "at least" as large.
    pub table_max: u32,
    /// From one test frame to the next while the probe waits for rules to take effect. It is the resolution of such times.
    pub watch_tick_ns: u64,
    /// How much longer than in hardware a frame must take to count as forwarded by software. The driver's own jitter is below it.
    pub transit_margin_ns: u64,
    /// How often a single observation is repeated, where a machine that is busy for a moment would make it wrong.
    pub repetitions: usize,
    /// How long the whole probe takes at most, if four fillings of the table do not take longer.
    pub time_max_ns: u64,
}

/// The largest default table: the largest published one (65,000) and some more.
const TABLE_MAX: u32 = 70_000;

impl Options {
    /// What must be the same for the records of an earlier probe to be of use.
    pub fn settings(&self) -> String {
        let ports = self.ports.each_ref().map(|it| format!("{}={}", it.port, it.interface)).join(",");
        format!("ports {ports}, at most {} rules, parts {:?}", self.table_max, self.parts)
    }

    /// Whether the switch is a real one: it may have caches, and the switch or this machine may be busy with what nobody knows of.
    pub fn is_real(&self) -> bool {
        self.repetitions > 1
    }

    /// The defaults for virtual time, in which nothing jitters.
    pub fn simulated(name: &str, date: &str) -> Self {
        let port = |number| TestPort { port: PortNo(number), interface: format!("veth{number}") };
        Options {
            name: name.to_owned(),
            date: date.to_owned(),
            ports: [port(1), port(2)],
            versions: vec![Version::V1_0, Version::V1_3],
            parts: Part::ALL.to_vec(),
            clear: false,
            table_max: TABLE_MAX,
            watch_tick_ns: 100_000,
            transit_margin_ns: 20_000,
            repetitions: 1,
            time_max_ns: 300_000_000_000,
        }
    }

    /// The defaults for sockets and a clock that jitters.
    pub fn real(name: &str, date: &str, ports: [TestPort; 2]) -> Self {
        Options {
            ports,
            watch_tick_ns: 500_000,
            transit_margin_ns: 1_000_000,
            repetitions: 3,
            ..Options::simulated(name, date)
        }
    }
}
