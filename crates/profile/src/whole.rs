//! A whole profile, and what follows from its numbers.

use crate::barrier::Barrier;
use crate::cpu::Cpu;
use crate::delay::Delay;
use crate::hardware::Hardware;
use crate::install::Install;
use crate::measurement::Measurement;
use crate::packet_in::PacketIn;
use crate::provenance::Sources;
use crate::software::{Software, SoftwareUse};
use crate::switch::Switch;
use crate::timeouts::Timeouts;

/// The profile of a model of switch. The default has no delay and no limit.
///
/// A packet without a rule passes `packet_in` (bound, buffer), the CPU, and the delay at ingress. A flow mod passes the CPU, then the
/// choice of the table (`software`, `hardware`), the install buffer, the hardware, and the lateness of `barrier`. A packet that is sent
/// by a flow mod or a packet-out passes the delay at egress.
///
/// Without `hardware` and without `software`, the table has no limit and no cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// Its name: lower-case letters, digits, `.` and `-`.
    pub name: String,
    /// One sentence for people.
    pub about: String,
    /// Which switch it is.
    pub switch: Switch,
    /// The management CPU.
    pub cpu: Cpu,
    /// The residual delays.
    pub delay: Delay,
    /// Packet-ins and buffers.
    pub packet_in: PacketIn,
    /// The hardware table. None: the switch has none.
    pub hardware: Option<Hardware>,
    /// The install buffer. None: rules go from the CPU to the hardware at once.
    pub install: Option<Install>,
    /// The software table. None: the switch has none.
    pub software: Option<Software>,
    /// Time-outs and counters.
    pub timeouts: Timeouts,
    /// Barriers.
    pub barrier: Barrier,
    /// The measurement.
    pub measurement: Measurement,
    /// Where each value is from.
    pub sources: Sources,
}

impl Profile {
    /// No delay, no limit, every packet-in at once.
    pub fn null() -> Self {
        Profile { name: "null".to_owned(), ..Profile::default() }
    }

    /// How many new flows a second the CPU can set up, each with one packet-in and one add to an empty table. None: any number.
    pub fn setup_rate_per_s(&self) -> Option<f64> {
        let add_us = self.cpu.add.service_us.mean_us() + self.add_blocks_us();
        let each_us = self.cpu.packet_in.service_us.mean_us() + add_us;
        (each_us > 0.0).then(|| 1e6 / each_us)
    }

    /// How long the CPU waits for the hardware at an add to an empty table, in microseconds. It does not wait behind an install buffer.
    pub(crate) fn add_blocks_us(&self) -> f64 {
        let waits = |hardware: &&Hardware| hardware.cpu_waits && self.install.is_none();
        self.hardware.as_ref().filter(waits).map_or(0.0, |hardware| hardware.add.at(0, 0, 0))
    }

    /// How many rules a switch says that it has room for: its largest class of matches, and the software table. None: no end is known.
    pub fn table_size(&self) -> Option<u32> {
        let largest = |hardware: &Hardware| {
            let has_end = hardware.capacities.iter().all(|class| !class.at_least);
            hardware.capacities.iter().map(|class| class.entries).max().filter(|_| has_end)
        };
        match (&self.hardware, &self.software) {
            (Some(hardware), None) => largest(hardware),
            (None, Some(software)) => software.bound(),
            (Some(hardware), Some(software)) => Some(largest(hardware)?.saturating_add(software.bound()?)),
            (None, None) => None,
        }
    }

    /// Whether there is a table, so that the model decides which rules have room.
    pub fn has_table(&self) -> bool {
        self.hardware.is_some() || self.software.is_some()
    }

    /// How many adds a second all go to hardware: the lowest of the bound of the software table, the install buffer, and the set-up
    /// by the CPU. None: any number.
    pub fn hardware_rate_per_s(&self) -> Option<f64> {
        let above = self.software.as_ref().and_then(|software| match software.when {
            SoftwareUse::AboveRate { rate_per_s, .. } => Some(rate_per_s),
            SoftwareUse::Only | SoftwareUse::WhenFull => None,
        });
        let install = self.install.map(|install| install.rate_per_s);
        [above, install, self.setup_rate_per_s()].into_iter().flatten().reduce(f64::min)
    }
}
