//! The numbers of switches: places in a list that entries refer to.
//!
//! ```text
//!   a set that is accepted, a session ──> number ──no set wants the switch, and it is away──> free
//! ```
//!
//! A set can name any switch, also one that does not exist. So a refused set gives no numbers, and a number is free again when
//! no set and no session needs it. Sets cannot take all numbers: switches that connect have as many for themselves.
//!
//! In: datapath ids. Out: numbers. It sends nothing.

use crate::engine::Engine;
use crate::switch::Switch;
use flow::DatapathId;
use flows_contract::Tables;
use std::collections::{HashMap, HashSet};

/// The most switches that are known when a set names one more. Beyond it, the set is refused with the status `FULL`.
pub const SWITCHES_MAX: usize = 16_384;

/// The most switches that are known when one more connects. Beyond it, the switch gets no rules.
const CONNECTED_MAX: usize = 2 * SWITCHES_MAX;

/// Numbers for the switches of a set that is not accepted yet: those behind the last number are for new switches.
#[derive(Debug, Default)]
pub struct Provisional {
    first: u32,
    numbers: HashMap<DatapathId, u32>,
    new: Vec<DatapathId>,
}

impl Provisional {
    /// The new switch with this number.
    pub fn new_switch(&self, number: u32) -> Option<DatapathId> {
        self.new.get(number.checked_sub(self.first)? as usize).copied()
    }
}

impl Engine {
    /// How many switches are known.
    pub fn known_switches(&self) -> usize {
        self.by_datapath.len()
    }

    /// Numbers for one set.
    pub(crate) fn provisional(&self) -> Provisional {
        // The list is not longer than `CONNECTED_MAX`.
        Provisional { first: self.switches.len() as u32, ..Provisional::default() }
    }

    /// The number of a switch that a set names. `None`: there are [`SWITCHES_MAX`].
    pub(crate) fn number_in(&self, provisional: &mut Provisional, datapath: DatapathId) -> Option<u32> {
        if let Some(number) = self.by_datapath.get(&datapath).or(provisional.numbers.get(&datapath)) {
            return Some(*number);
        }
        if self.by_datapath.len() + provisional.new.len() >= SWITCHES_MAX {
            return None;
        }
        let number = provisional.first + provisional.new.len() as u32;
        provisional.new.push(datapath);
        provisional.numbers.insert(datapath, number);
        Some(number)
    }

    /// The set is accepted: its new switches get numbers. Returns them by provisional number.
    pub(crate) fn accept(&mut self, provisional: &Provisional) -> HashMap<u32, u32> {
        let new = (provisional.first..).zip(&provisional.new);
        new.map(|(provisional, datapath)| (provisional, self.add_switch(*datapath))).collect()
    }

    /// The number of a switch that is connected. `None`: there are `CONNECTED_MAX`.
    pub(crate) fn switch_number(&mut self, datapath: DatapathId) -> Option<u32> {
        match self.by_datapath.get(&datapath) {
            Some(number) => Some(*number),
            None if self.by_datapath.len() >= CONNECTED_MAX => None,
            None => Some(self.add_switch(datapath)),
        }
    }

    fn add_switch(&mut self, datapath: DatapathId) -> u32 {
        let number = match self.free.pop() {
            Some(number) => {
                self.switches[number as usize] = Switch::new(datapath, self.gathers);
                number
            }
            None => {
                self.switches.push(Switch::new(datapath, self.gathers));
                self.switches.len() as u32 - 1
            }
        };
        self.by_datapath.insert(datapath, number);
        number
    }

    /// Frees the numbers of switches that are away and that no set wants.
    pub(crate) fn forget_switches(&mut self) {
        let is_unwanted = |switch: &Switch| switch.tables == Tables::Away && switch.slots.is_empty();
        let mut unwanted: Vec<u32> = self.by_datapath.values().copied().collect();
        unwanted.retain(|number| self.switches.get(*number as usize).is_some_and(is_unwanted));
        if unwanted.is_empty() {
            return;
        }
        // A later step of a set may still refer to it.
        let planned: HashSet<u32> = self.sets.planned_switches().collect();
        for number in unwanted.into_iter().filter(|number| !planned.contains(number)) {
            let switch = &self.switches[number as usize];
            self.by_datapath.remove(&switch.datapath);
            self.free.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Put;
    use crate::plain_rule::plain_rule;
    use crate::policy::Settings;
    use flows_contract::{Items, SetOptions, status};

    /// A rule for each of these switches.
    fn rules(switches: impl Iterator<Item = u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for switch in switches {
            Items::new(&mut bytes).rule(&plain_rule(switch, 7));
        }
        bytes
    }

    fn put(engine: &mut Engine, name: &str, version: u64, items: &[u8]) -> Result<(), u16> {
        let owner = engine.owner("app");
        let put = Put { owner, name, version, options: SetOptions::default(), items };
        engine.put(&put, 0, &mut |_, _| 1).map_err(|(status, _)| status)
    }

    const INVENTED: u64 = SWITCHES_MAX as u64;

    #[test]
    fn refused_sets_with_invented_switches_take_no_numbers() {
        let mut engine = Engine::new(&Settings::default(), 0).unwrap();
        // Each names a rule twice.
        for number in 0..4 {
            let switches = (1..=INVENTED / 4).map(|switch| number * INVENTED + switch);
            let twice = rules(switches.chain([number * INVENTED + 1]));
            assert_eq!(put(&mut engine, "s", 1, &twice), Err(status::BAD_QUESTION));
        }
        assert_eq!(put(&mut engine, "s", 1, &rules(0..INVENTED + 1)), Err(status::FULL));
        assert_eq!(engine.known_switches(), 0);
        let mut asked = Vec::new();
        engine.on_up(DatapathId(5), false, 0, &mut |switch, _| {
            asked.push(switch);
            1
        });
        assert_eq!(asked, [DatapathId(5); 3], "a real switch is read");
    }

    #[test]
    fn even_accepted_sets_leave_numbers_for_switches_that_connect() {
        let mut engine = Engine::new(&Settings::default(), 0).unwrap();
        assert_eq!(put(&mut engine, "s", 1, &rules(0..INVENTED)), Ok(()));
        assert_eq!(put(&mut engine, "t", 1, &rules(INVENTED..INVENTED + 1)), Err(status::FULL));
        engine.on_up(DatapathId(INVENTED + 7), false, 0, &mut |_, _| 1);
        assert!(engine.switch(DatapathId(INVENTED + 7)).is_some());
    }

    #[test]
    fn switches_that_nobody_wants_and_that_are_away_give_their_numbers_back() {
        let mut engine = Engine::new(&Settings::default(), 0).unwrap();
        engine.on_up(DatapathId(1), false, 0, &mut |_, _| 1);
        for version in 1..=5 {
            // Each set wants other switches. The switch that is connected is always among them.
            let first = version * INVENTED;
            let switches = std::iter::once(1).chain(first..first + INVENTED - 1);
            assert_eq!(put(&mut engine, "s", version, &rules(switches)), Ok(()), "version {version}");
            let wanted = DatapathId(first);
            engine.on_tick(version * 2_000, &mut |_, _| 1);
            assert_eq!(engine.switch(wanted).map(|switch| switch.slots.len()), Some(1), "it is wanted");
            engine.remove(0, "s", version, 0, &mut |_, _| 1).unwrap();
            engine.on_tick(version * 2_000 + 1_000, &mut |_, _| 1);
            assert_eq!(engine.known_switches(), 1, "after version {version}");
        }
        engine.on_down(DatapathId(1), 0, &mut |_, _| 1);
        engine.on_tick(20_000, &mut |_, _| 1);
        assert_eq!((engine.known_switches(), engine.switches().count()), (0, 0));
    }
}
