//! Attacks that consist of a few commands to each switch. Each command is answered with a receipt.
//!
//! ```text
//!   TRIES ──by name──> stages, one after the other ──commands──> kernel ──receipts──> counted, and told in the log
//! ```
//!
//! The stages before the last one prepare the attack and may be allowed. The last stage is the attack. A try never
//! sends more than a few thousand commands to a switch.

mod amplification;
mod bytes;
mod defaults;
mod identity;
mod indirect_effects;
mod shadowing;
mod vendor;

use burnet_sdk::{Commands, DatapathId, PacketIn};

/// One attack.
#[derive(Clone, Copy, Debug)]
pub struct Try {
    /// Its name in the settings.
    pub name: &'static str,
    /// How often `command` is called for each switch. The next call waits for all receipts of the call before.
    pub stages: u8,
    /// Sends the commands of a stage to a switch. Returns how many receipts will come.
    pub command: fn(u8, DatapathId, &mut Commands) -> u32,
    /// What it does with a packet-in, if it receives any.
    pub on_packet: Option<fn(&PacketIn, &mut Commands)>,
}

impl Try {
    const fn once(name: &'static str, command: fn(u8, DatapathId, &mut Commands) -> u32) -> Try {
        Try::stages(name, 1, command)
    }

    const fn twice(name: &'static str, command: fn(u8, DatapathId, &mut Commands) -> u32) -> Try {
        Try::stages(name, 2, command)
    }

    const fn stages(
        name: &'static str,
        stages: u8,
        command: fn(u8, DatapathId, &mut Commands) -> u32,
    ) -> Try {
        Try { name, stages, command, on_packet: None }
    }
}

/// All tries, by file.
pub const TRIES: &[&[Try]] = &[
    vendor::TRIES,
    identity::TRIES,
    indirect_effects::TRIES,
    amplification::TRIES,
    defaults::TRIES,
    shadowing::TRIES,
];

/// The number of a group and of a meter of another app, if an app has one.
pub const FOREIGN: u32 = 77;

/// The try with this name.
pub fn find(name: &str) -> Option<&'static Try> {
    TRIES.iter().copied().flatten().find(|tried| tried.name == name)
}

/// How far a try has come, and its results so far.
#[derive(Debug)]
pub(crate) struct Progress {
    tried: &'static Try,
    stage: u8,
    outstanding: u32,
    came: Came,
}

/// The results of a try's commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Came {
    /// Commands that the kernel refused.
    pub(crate) denied: u64,
    /// Commands that were carried out.
    pub(crate) worked: u64,
    /// Commands that the kernel accepted, and that the switch did not carry out.
    pub(crate) reached: u64,
}

impl Came {
    /// The text for the log.
    pub(crate) fn told(self) -> String {
        let Came { denied, worked, reached } = self;
        format!("{denied} denied, {worked} worked, {reached} refused by switches")
    }
}

impl Progress {
    pub(crate) fn begin(tried: &'static Try, switches: &[DatapathId], out: &mut Commands) -> Progress {
        let mut progress = Progress { tried, stage: 0, outstanding: 0, came: Came::default() };
        progress.command(switches, out);
        progress
    }

    fn command(&mut self, switches: &[DatapathId], out: &mut Commands) {
        self.came = Came::default();
        self.outstanding =
            switches.iter().map(|datapath| (self.tried.command)(self.stage, *datapath, out)).sum();
    }

    /// Takes a receipt or an answer. Returns the line to log if it was the last one of a stage.
    pub(crate) fn on_came(
        &mut self,
        count: impl FnOnce(&mut Came),
        switches: &[DatapathId],
        out: &mut Commands,
    ) -> Option<String> {
        count(&mut self.came);
        self.outstanding = self.outstanding.checked_sub(1)?;
        if self.outstanding > 0 {
            return None;
        }
        let came = self.came.told();
        if self.stage + 1 == self.tried.stages {
            return Some(format!("tried commands: {came}"));
        }
        self.stage += 1;
        self.command(switches, out);
        Some(format!("prepared by commands: {came}"))
    }

    pub(crate) fn on_packet(&self, packet: &PacketIn, out: &mut Commands) {
        if let Some(on_packet) = self.tried.on_packet {
            on_packet(packet, out);
        }
    }
}

/// Whether the try subscribes to packet-ins.
pub(crate) fn hears_packets(tried: &Try) -> bool {
    tried.on_packet.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_try_has_a_name_of_its_own_and_commands_that_can_be_read() {
        let mut names = BTreeSet::new();
        for tried in TRIES.iter().copied().flatten() {
            assert!(names.insert(tried.name), "{} is there twice", tried.name);
            for stage in 0..tried.stages {
                let mut out = Commands::new();
                let receipts = (tried.command)(stage, DatapathId(1), &mut out);
                assert!(receipts > 0 && !out.frames().is_empty(), "{} stage {stage}", tried.name);
                assert_eq!(out.too_long(), 0, "{}", tried.name);
            }
        }
    }

    #[test]
    fn the_next_stage_begins_when_all_receipts_of_this_one_are_there() {
        fn commands(_: u8, datapath: DatapathId, out: &mut Commands) -> u32 {
            out.barrier(datapath);
            1
        }
        const TWO: Try = Try::twice("two", commands);
        let (switches, mut out) = ([DatapathId(1), DatapathId(2)], Commands::new());
        let mut progress = Progress::begin(&TWO, &switches, &mut out);
        let mut told = |count: fn(&mut Came)| progress.on_came(count, &switches, &mut out);
        assert_eq!(told(|came| came.worked += 1), None);
        let prepared = "prepared by commands: 1 denied, 1 worked, 0 refused by switches";
        assert_eq!(told(|came| came.denied += 1).as_deref(), Some(prepared));
        assert_eq!(told(|came| came.reached += 1), None);
        let tried = "tried commands: 1 denied, 0 worked, 1 refused by switches";
        assert_eq!(told(|came| came.denied += 1).as_deref(), Some(tried));
        assert_eq!(told(|came| came.denied += 1), None, "nothing more was asked");
    }
}
