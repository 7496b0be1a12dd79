//! Where rules land, against a list that is searched from its start for everything.

use super::driver::{Caller, Draw, MS, Selected};
use profile::model::*;
use profile::*;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
struct Listed {
    rule: Rule,
    place: Place,
    added: u64,
    used: u64,
    packets: u64,
}

/// The list, oldest rule first.
struct Oracle<'a> {
    profile: &'a Profile,
    list: Vec<Listed>,
    /// When rules were put into hardware while the software table takes what comes too fast.
    fast_adds: Vec<u64>,
    steps: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    Added,
    Refused,
    Ignored,
}

impl Oracle<'_> {
    fn count(&self, wanted: impl Fn(&Listed) -> bool) -> u64 {
        self.list.iter().filter(|listed| wanted(listed)).count() as u64
    }

    /// Counted in parts of which every class takes a whole number.
    fn has_room(&self, hardware: &Hardware, class: u8) -> bool {
        let memory = hardware.capacities[usize::from(class)].memory;
        let of_memory = |index: usize| hardware.capacities[index].memory == memory;
        let whole: u64 = hardware.capacities.iter().map(|class| u64::from(class.entries)).product();
        let part = |class: u8| whole / u64::from(hardware.capacities[usize::from(class)].entries);
        let in_hardware = self.list.iter().filter(|listed| listed.place == Place::Hardware);
        let classes =
            in_hardware.filter_map(|listed| listed.rule.class).filter(|class| of_memory(usize::from(*class)));
        classes.map(part).sum::<u64>() + part(class) <= whole
    }

    fn software_has_room(&self) -> bool {
        let used = self.count(|listed| listed.place == Place::Software);
        self.profile
            .software
            .as_ref()
            .is_some_and(|software| software.entries.is_none_or(|entries| used < u64::from(entries)))
    }

    fn put_in_software(&mut self, rule: Rule) -> End {
        if !self.software_has_room() {
            return End::Refused;
        }
        self.push(rule, Place::Software);
        End::Added
    }

    fn push(&mut self, rule: Rule, place: Place) {
        self.list.push(Listed { rule, place, added: self.steps, used: self.steps, packets: 0 });
    }

    /// Whether a bucket of `burst` tokens, refilled once in `1 / rate`, is empty.
    fn is_too_fast(&self, now: u64) -> bool {
        let Some(SoftwareUse::AboveRate { rate_per_s, burst_rules }) =
            self.profile.software.as_ref().map(|software| software.when)
        else {
            return false;
        };
        let (rate, full) = (rate_per_s as u64, u64::from(burst_rules) * 1_000_000_000);
        let (mut tokens, mut at) = (full, 0);
        for add in &self.fast_adds {
            tokens = (tokens + (add - at) * rate).min(full) - 1_000_000_000;
            at = *add;
        }
        (tokens + (now - at) * rate).min(full) < 1_000_000_000
    }

    fn add(&mut self, rule: Rule, now: u64) -> End {
        self.steps += 1;
        let steps = self.steps;
        if let Some(listed) = self.list.iter_mut().find(|listed| listed.rule.id == rule.id) {
            (listed.added, listed.used) = (steps, steps);
            return End::Added;
        }
        let profile = self.profile;
        let Some(hardware) = &profile.hardware else {
            if profile.software.is_some() {
                return self.put_in_software(rule);
            }
            self.push(rule, Place::Hardware);
            return End::Added;
        };
        let Some(class) = rule.class else { return self.put_in_software(rule) };
        if self.is_too_fast(now) && self.software_has_room() {
            return self.put_in_software(rule);
        }
        while !self.has_room(hardware, class) {
            match hardware.when_full {
                WhenFull::Refuse => return End::Refused,
                WhenFull::Ignore => return End::Ignored,
                WhenFull::Spill => return self.put_in_software(rule),
                WhenFull::Evict => self.evict(&hardware.evict, hardware, class),
            }
        }
        // If the software table is full, an add without a token goes to hardware too.
        if !self.is_too_fast(now) {
            self.fast_adds.push(now);
        }
        self.push(rule, Place::Hardware);
        End::Added
    }

    fn evict(&mut self, keys: &[Victim], hardware: &Hardware, class: u8) {
        let memory_of = |class: u8| hardware.capacities[usize::from(class)].memory;
        let helps = |listed: &&Listed| {
            listed.place == Place::Hardware && listed.rule.class.map(memory_of) == Some(memory_of(class))
        };
        let mut candidates: Vec<Listed> = self.list.iter().filter(helps).copied().collect();
        let most = u64::MAX;
        let key = |listed: &Listed, victim: &Victim| match victim {
            Victim::Oldest => listed.added,
            Victim::Newest => most - listed.added,
            Victim::LeastRecentlyUsed => listed.used,
            Victim::MostRecentlyUsed => most - listed.used,
            Victim::LeastUsed => listed.packets,
            Victim::MostUsed => most - listed.packets,
            Victim::LowestPriority => u64::from(listed.rule.priority),
            Victim::HighestPriority => most - u64::from(listed.rule.priority),
            Victim::Random => 0,
        };
        candidates.sort_by_key(|listed| keys.iter().map(|victim| key(listed, victim)).collect::<Vec<_>>());
        let victim = candidates[0].rule.id;
        let has_room = self.software_has_room();
        let index = self.list.iter().position(|listed| listed.rule.id == victim).unwrap();
        if has_room {
            self.list[index].place = Place::Software;
        } else {
            self.list.remove(index);
        }
    }

    fn places(&self) -> BTreeMap<RuleId, Place> {
        self.list.iter().map(|listed| (listed.rule.id, listed.place)).collect()
    }
}

fn random_profile(draw: &mut Draw) -> Profile {
    let mut profile = Profile::null();
    let capacity = |draw: &mut Draw, memory| Capacity { memory, ..Capacity::any(1 + draw.below(12) as u32) };
    let above = SoftwareUse::AboveRate {
        // Whole nanoseconds for each token.
        rate_per_s: draw.one_of(&[1.0, 2.0, 5.0, 8.0, 20.0, 40.0, 100.0]),
        burst_rules: 1 + draw.below(5) as u32,
    };
    let entries = [None, Some(draw.below(8) as u32)];
    if draw.yes() {
        profile.software = Some(Software {
            when: draw.one_of(&[SoftwareUse::WhenFull, above]),
            entries: draw.one_of(&entries),
            ..Software::default()
        });
    }
    if draw.below(5) > 0 {
        let keys = [
            Victim::Oldest,
            Victim::Newest,
            Victim::LeastRecentlyUsed,
            Victim::MostRecentlyUsed,
            Victim::LeastUsed,
            Victim::MostUsed,
            Victim::LowestPriority,
            Victim::HighestPriority,
        ];
        let memory = draw.below(2) as u8;
        profile.hardware = Some(Hardware {
            capacities: vec![capacity(draw, 0), capacity(draw, memory), capacity(draw, 0)],
            when_full: draw.one_of(&[WhenFull::Refuse, WhenFull::Ignore, WhenFull::Spill, WhenFull::Evict]),
            // Ages differ, so the order is complete.
            evict: vec![draw.one_of(&keys), draw.one_of(&[Victim::Oldest, Victim::Newest])],
            cpu_waits: draw.yes(),
            ..Hardware::default()
        });
    } else if let Some(software) = &mut profile.software {
        software.when = SoftwareUse::Only;
    }
    profile
}

fn compare(seed: u64, ends: &mut BTreeMap<String, u64>) {
    let draw = &mut Draw(seed);
    let profile = random_profile(draw);
    let mut caller = Caller::new(Model::new(&profile, seed));
    let mut oracle = Oracle { profile: &profile, list: Vec::new(), fast_adds: Vec::new(), steps: 0 };
    let mut now = 0;
    for _ in 0..400 {
        // Times differ, so that the oldest rule is one.
        now += 1 + draw.below(30 * MS);
        let id = RuleId(draw.below(40));
        match draw.below(10) {
            0..=5 => {
                let class = if id.0 % 8 == 7 { None } else { Some((id.0 % 3) as u8) };
                let (priority, none) = ((id.0 % 5) as u16, 0);
                let rule = Rule { id, priority, class, idle_timeout_s: none, hard_timeout_s: none };
                let message = caller.add(now, rule, Packet::None);
                let got = match caller.end_of(message).unwrap().1 {
                    Output::CarryOut { .. } => End::Added,
                    Output::Refuse { why: Refusal::TableFull, .. } => End::Refused,
                    Output::Lost { why: Loss::Ignored, .. } => End::Ignored,
                    other => panic!("{other:?}"),
                };
                let expected = oracle.add(rule, now);
                assert_eq!(got, expected, "seed {seed}, {rule:?}: {profile:#?}");
                *ends.entry(format!("{got:?}")).or_default() += 1;
            }
            6 | 7 => {
                caller.select(now, MessageType::Delete, Selected::One(id));
                oracle.list.retain(|listed| listed.rule.id != id);
            }
            8 => {
                let packets = draw.below(5);
                caller.input(now, Input::Used { rule: id, at_ns: now, packets });
                oracle.steps += 1;
                let steps = oracle.steps;
                if let Some(listed) = oracle.list.iter_mut().find(|listed| listed.rule.id == id) {
                    (listed.used, listed.packets) = (steps, listed.packets + packets);
                }
            }
            _ if draw.below(20) == 0 => {
                caller.select(now, MessageType::Delete, Selected::All);
                oracle.list.clear();
            }
            _ => {
                caller.select(now, MessageType::Modify, Selected::All);
            }
        }
        assert_eq!(caller.places, oracle.places(), "seed {seed}, at {now}: {profile:#?}");
        assert!(caller.rules.iter().eq(oracle.places().keys()), "seed {seed}");
        let load = caller.model.load();
        let in_software = oracle.count(|listed| listed.place == Place::Software) as usize;
        assert_eq!(load.in_software, in_software, "seed {seed}");
        *ends.entry(format!("{:?}", profile.hardware.is_some().then_some(in_software > 0))).or_default() += 1;
    }
    let evicted = caller.came.iter().filter(|(_, output)| matches!(output, Output::Evict { .. })).count();
    *ends.entry("Evicted".to_owned()).or_default() += evicted as u64;
}

#[test]
fn rules_land_where_a_searched_list_says() {
    let mut ends = BTreeMap::new();
    (0..400).for_each(|seed| compare(seed, &mut ends));
    println!("{ends:?}");
    for end in ["Added", "Refused", "Ignored", "Evicted", "Some(true)", "Some(false)", "None"] {
        assert!(ends[end] > 1000, "{end} happens: {ends:?}");
    }
}
