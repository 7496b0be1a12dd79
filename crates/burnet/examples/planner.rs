//! An app that wants rules by the service `flows`, and prints for tests when all of them are installed.
//!
//! In: how many sets, how many rules for each of them, and how many switches. Switch 1 gets the first half of the
//! sets, so that it has very many, and its part of the others. Out: one put for each set, again whenever the service was gone. It
//! does nothing useful.

use burnet_sdk::stream::Update;
use burnet_sdk::{App, Commands, DatapathId, Field, Interests, QueryReply, Receipt, Settings, Ticket};
use flows_contract::{Batch, Follow, Items, Phase, Rule, SERVICE, SetOptions, SetState};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlannerSettings {
    sets: u64,
    rules: u64,
    #[serde(default = "one")]
    switches: u64,
}

fn one() -> u64 {
    1
}

impl PlannerSettings {
    /// The switch of a set.
    fn switch_of(&self, set: u64) -> DatapathId {
        let is_first_half = set * 2 < self.sets;
        DatapathId(if is_first_half { 1 } else { 1 + set % self.switches.max(1) })
    }
}

struct Planner {
    settings: PlannerSettings,
    states: Option<Ticket>,
    installed: BTreeSet<Vec<u8>>,
    /// The sets that are still to be put, and those whose put is not answered yet.
    to_put: Vec<u64>,
    open: BTreeMap<Ticket, u64>,
}

/// How many puts wait for their answers. A service takes only so many bytes at a time.
const OPEN_MAX: usize = 2;

/// A rule for one Ethernet address.
fn rule(items: &mut Items<'_>, switch: DatapathId, address: u64) {
    let (mut matching, mut instructions) = (Vec::new(), Vec::new());
    burnet_sdk::MatchWriter::new(&mut matching).field(Field::EthDst, 0x0200_0000_0000 + address);
    burnet_sdk::InstructionWriter::new(&mut instructions).apply_actions(|actions| {
        actions.output(burnet_sdk::PortNo(1), 0);
    });
    items.rule(&Rule {
        switch,
        table_id: 0,
        stage: 0,
        priority: 100,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        matching: &matching,
        instructions: &instructions,
    });
}

impl Planner {
    fn put_more(&mut self, out: &mut Commands) {
        let rules = self.settings.rules;
        while self.open.len() < OPEN_MAX
            && let Some(set) = self.to_put.pop()
        {
            let switch = self.settings.switch_of(set);
            let mut batch = Batch::new();
            batch.put(&format!("set{set}"), 1, SetOptions::default(), |items| {
                (0..rules).for_each(|number| rule(items, switch, set * rules + number));
            });
            self.open.insert(out.query(SERVICE, batch.as_bytes()), set);
        }
    }

    fn note(&mut self, name: &[u8], value: &[u8]) {
        let is_installed = SetState::from_bytes(value).is_ok_and(|state| state.phase == Phase::Installed);
        match is_installed {
            true => self.installed.insert(name.to_vec()),
            false => self.installed.remove(name),
        };
        if self.installed.len() as u64 == self.settings.sets {
            println!("all {} sets are installed", self.settings.sets);
        }
    }
}

impl App for Planner {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings = settings.read()?;
        let (states, installed, to_put, open) = Default::default();
        Ok(Planner { settings, states, installed, to_put, open })
    }

    fn interests(&self) -> Interests {
        Interests::none().ticks()
    }

    fn on_tick(&mut self, _: u64, out: &mut Commands) {
        if self.states.is_none() {
            self.states = Some(out.follow(SERVICE, &Follow::STATES.to_bytes()));
            self.to_put = (0..self.settings.sets).collect();
            self.open.clear();
        }
        self.put_more(out);
    }

    fn on_stream(&mut self, stream: Ticket, update: &Update, _: &mut Commands) {
        match update {
            _ if self.states != Some(stream) => {}
            Update::Begin { .. } => self.installed.clear(),
            Update::Entry { key, value } | Update::Put { key, value, .. } => self.note(key, value),
            Update::Ended { .. } => self.states = None,
            _ => {}
        }
    }

    fn on_receipt(&mut self, _: DatapathId, receipt: &Receipt, _: &mut Commands) {
        println!("refused: {}", receipt.reason);
        self.states = None;
    }

    fn on_query_reply(&mut self, reply: &QueryReply, out: &mut Commands) {
        let Some(set) = self.open.remove(&Ticket(reply.ticket)) else { return };
        if reply.status == 0 {
            return self.put_more(out);
        }
        println!("answered: {} {}", reply.status, String::from_utf8_lossy(reply.payload));
        // The next tick puts it again.
        self.to_put.push(set);
    }
}

fn main() -> ExitCode {
    burnet_sdk::run::<Planner>()
}
