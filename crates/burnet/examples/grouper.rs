//! An app that changes group 7 and meter 7 of each switch again and again, and prints the results. Tests use it to
//! see who owns them.
//!
//! With `makes = true` it adds them first. It does nothing useful.

use burnet_sdk::{
    App, Commands, DatapathId, GroupMod, Interests, MeterMod, Receipt, Settings, SwitchUp, What,
};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

const ADD: u16 = 0;
const MODIFY: u16 = 1;
const NUMBER: u32 = 7;

/// OFPGT_ALL, with no buckets: it drops.
const ALL: u8 = 0;

/// OFPMF_KBPS.
const KBPS: u16 = 1;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GrouperSettings {
    makes: bool,
}

struct Grouper {
    makes: bool,
    switches: BTreeSet<DatapathId>,
    open: BTreeMap<u64, &'static str>,
}

impl Grouper {
    fn give(&mut self, datapath: DatapathId, command: u16, out: &mut Commands) {
        let verb = if command == ADD { "add" } else { "modify" };
        let group = GroupMod { command, group_type: ALL, group_id: NUMBER, buckets: &[] };
        let meter = MeterMod { command, flags: KBPS, meter_id: NUMBER, bands: &[] };
        self.open.insert(out.command(datapath, What::GroupMod(group)).0, verb);
        self.open.insert(out.command(datapath, What::MeterMod(meter)).0, verb);
    }
}

impl App for Grouper {
    fn new(settings: &Settings) -> Result<Self, String> {
        let GrouperSettings { makes } = settings.read()?;
        Ok(Grouper { makes, switches: BTreeSet::new(), open: BTreeMap::new() })
    }

    fn interests(&self) -> Interests {
        Interests::none().switches().ticks()
    }

    fn on_switch_up(&mut self, up: &SwitchUp, out: &mut Commands) {
        self.switches.insert(up.datapath);
        if self.makes {
            self.give(up.datapath, ADD, out);
        }
    }

    fn on_switch_down(&mut self, datapath: DatapathId, _: &mut Commands) {
        self.switches.remove(&datapath);
    }

    fn on_tick(&mut self, _: u64, out: &mut Commands) {
        for datapath in self.switches.clone() {
            self.give(datapath, MODIFY, out);
        }
    }

    fn on_receipt(&mut self, _: DatapathId, receipt: &Receipt, _: &mut Commands) {
        let verb = self.open.remove(&receipt.ticket).unwrap_or_default();
        println!("{verb}: {} {}", receipt.outcome, receipt.reason);
    }
}

fn main() -> ExitCode {
    burnet_sdk::run::<Grouper>()
}
