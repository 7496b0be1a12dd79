//! Whatever happens on the way, the switches end up with exactly what is wanted, and the rules of others.
//!
//! In: seeds. Out: a world of random puts, removals, lost sessions, restarts, foreign rules and full tables. The oracle is the set of rules
//! that a switch in memory reports to another controller, behind the real southbound, in OpenFlow 1.0 and 1.3.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod command_frame;
mod world;

use flow::canonical::{write_instructions, write_match};
use flow::text::{parse_instructions, parse_match};
use flow::{DatapathId, PortNo};
use flows::change::Put;
use flows::policy::{Foreign, Settings};
use flows_contract::{Hop, Hops, Items, Path, Phase, Rule, SetOptions, hop_bytes};
use openflow::Body;
use openflow::message::FlowModFields;
use std::collections::{BTreeMap, BTreeSet};
use world::{Line, World, line};

/// A small generator (SplitMix64), so that a seed means the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ it >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ it >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^ it >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A wanted rule: switch, table, priority, match, instructions.
type Wish = (u64, u8, u16, String, String);

fn items(wishes: &[Wish]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, (switch, table_id, priority, matching, instructions)) in wishes.iter().enumerate() {
        let (mut rule, mut done) = (Vec::new(), Vec::new());
        write_match(&parse_match(matching).unwrap(), &mut rule);
        write_instructions(&parse_instructions(instructions).unwrap(), &mut done).unwrap();
        Items::new(&mut bytes).rule(&Rule {
            switch: DatapathId(*switch),
            table_id: *table_id,
            stage: number as u8 % 3,
            priority: *priority,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            matching: &rule,
            instructions: &done,
        });
    }
    bytes
}

fn wish_line((_, table_id, priority, matching, instructions): &Wish) -> Line {
    line(*table_id, *priority, &parse_match(matching).unwrap(), &parse_instructions(instructions).unwrap())
}

const MATCHES: [&str; 8] = [
    "in_port=1",
    "in_port=2,dl_dst=00:00:00:00:00:02",
    "ip,nw_dst=10.0.0.0/8",
    "tcp,nw_src=10.0.0.1,tp_dst=80",
    "arp,arp_tpa=10.0.0.9",
    "dl_vlan=7",
    "dl_type=0x88cc",
    "udp,in_port=3,tp_src=53",
];

const INSTRUCTIONS: [&str; 4] =
    ["output:1", "output:2", "set_field:00:00:00:00:00:09->eth_dst,output:3", "drop"];

/// What is wanted, by owner and name.
type Model = BTreeMap<(u32, String), (u64, Vec<Wish>)>;

struct Trial {
    world: World,
    random: Random,
    model: Model,
    /// The rules of the other controller, by switch.
    foreign: Vec<BTreeSet<Line>>,
    is_v10: bool,
    version: u64,
}

impl Trial {
    fn new(seed: u64, is_v10: bool, max_entries: u32) -> Trial {
        let world = World::new(3, is_v10, max_entries);
        let foreign = vec![BTreeSet::new(); 3];
        Trial { world, random: Random(seed), model: Model::new(), foreign, is_v10, version: 0 }
    }

    fn name_owners(&mut self) {
        for owner in 0..2 {
            assert_eq!(self.world.engine.owner(&format!("app{owner}")), owner);
        }
    }

    fn wish(&mut self) -> Wish {
        let random = &mut self.random;
        let table_id = if self.is_v10 { 0 } else { random.below(2) as u8 };
        let matching = MATCHES[random.below(8) as usize].to_owned();
        let mut instructions = INSTRUCTIONS[random.below(4) as usize].to_owned();
        if instructions == "drop" {
            instructions = String::new();
        }
        (1 + random.below(3), table_id, 100 + random.below(2) as u16, matching, instructions)
    }

    fn put(&mut self) {
        let count = 1 + self.random.below(5);
        let mut wishes: Vec<Wish> = (0..count).map(|_| self.wish()).collect();
        wishes.sort();
        wishes.dedup_by_key(|wish| (wish.0, wish.1, wish.2, wish.3.clone()));
        let (owner, name) = (self.random.below(2) as u32, format!("set{}", self.random.below(3)));
        let in_order = self.random.chance(50);
        self.version += 1;
        let (version, items, now_ms) = (self.version, items(&wishes), self.world.now_ms);
        let options = SetOptions { in_order, permanent: false };
        let put = Put { owner, name: &name, version, options, items: &items };
        if self.world.act(|engine, send| engine.put(&put, now_ms, send)).is_ok() {
            self.model.insert((owner, name), (version, wishes));
        }
    }

    fn remove(&mut self) {
        let (owner, name) = (self.random.below(2) as u32, format!("set{}", self.random.below(3)));
        let now_ms = self.world.now_ms;
        let _ = self.world.act(|engine, send| engine.remove(owner, &name, u64::MAX, now_ms, send));
        self.model.remove(&(owner, name));
    }

    /// The service starts again, and its callers put their sets again, some of them late.
    fn restart(&mut self) {
        self.world.restart();
        self.name_owners();
        for ((owner, name), (version, wishes)) in self.model.clone() {
            if self.random.chance(30) {
                self.message();
            }
            let (now_ms, items) = (self.world.now_ms, items(&wishes));
            let options = SetOptions::default();
            let put = Put { owner, name: &name, version, options, items: &items };
            self.world.act(|engine, send| engine.put(&put, now_ms, send)).unwrap();
        }
    }

    fn message(&mut self) {
        for _ in 0..self.random.below(6) {
            let number = self.random.below(3) as usize;
            match self.random.chance(50) {
                true => self.world.push_on(number),
                false => self.world.pull(number),
            };
        }
    }

    /// The other controller adds a rule of its own, or removes everything that it can name, also rules that are wanted.
    fn meddle(&mut self) {
        let number = self.random.below(3) as usize;
        let wish = self.wish();
        let (table_id, matching) = (wish.1, parse_match(&wish.3).unwrap());
        let fields = FlowModFields { table_id, priority: 50, cookie: 0xf00d, ..FlowModFields::default() };
        let fields = match self.random.chance(70) {
            true => {
                let instructions = parse_instructions("output:4").unwrap();
                self.foreign[number].insert(line(table_id, 50, &matching, &instructions));
                fields.with(matching, instructions)
            }
            false => {
                let fields = FlowModFields { priority: wish.2, command: 4, ..fields };
                fields.with(matching, Vec::new())
            }
        };
        self.world.switches[number].say_as_other(Body::FlowMod(fields));
    }

    fn step(&mut self) {
        let number = self.random.below(3) as usize;
        match self.random.below(100) {
            0..30 => self.put(),
            30..38 => self.remove(),
            38..44 => {
                let reach_it = self.random.below(4) as usize;
                self.world.disconnect(number, reach_it);
            }
            44..54 => self.world.connect(number),
            54..58 => self.meddle(),
            58..60 => self.restart(),
            60..64 => self.world.tick(1_000),
            _ => self.message(),
        }
    }

    fn check(&mut self, seed: u64) {
        for number in 0..3 {
            let wishes = self.model.values().flat_map(|(_, wishes)| wishes);
            let wanted = wishes.filter(|wish| wish.0 == number as u64 + 1).map(wish_line);
            let expected: BTreeSet<Line> = wanted.chain(self.foreign[number].iter().cloned()).collect();
            let found = self.world.switches[number].rules();
            assert_eq!(found, expected, "seed {seed}, switch {}", number + 1);
        }
        for (owner, name) in self.model.keys() {
            let set = self.world.engine.sets().number(*owner, name).unwrap();
            let state = self.world.engine.state(set).unwrap();
            assert_eq!(state.phase, Phase::Installed, "seed {seed}: {name} of {owner}: {state:?}");
        }
        assert_eq!(self.world.engine.sets().len(), self.model.len(), "seed {seed}");
    }
}

fn run(seeds: std::ops::Range<u64>, is_v10: bool) {
    for seed in seeds {
        let mut trial = Trial::new(seed, is_v10, 1_000);
        trial.name_owners();
        (0..80).for_each(|_| trial.step());
        trial.world.settle();
        trial.check(seed);
        // Nothing is sent to switches that have what is wanted.
        let before = trial.world.flow_mods;
        trial.world.settle();
        assert_eq!(trial.world.flow_mods, before, "seed {seed}");
    }
}

#[test]
fn the_switches_end_with_what_is_wanted_and_the_rules_of_others() {
    run(0..150, false);
}

#[test]
fn the_same_holds_in_openflow_1_0() {
    run(1_000..1_150, true);
}

#[test]
fn a_full_table_fails_the_set_and_room_heals_it() {
    for seed in 0..40 {
        let mut trial = Trial::new(seed, false, 3);
        trial.name_owners();
        (0..40).for_each(|_| trial.step());
        trial.world.settle();
        for number in 0..3 {
            // The other controller makes room: its own rules go.
            for table_id in 0..4 {
                let fields = FlowModFields {
                    table_id,
                    cookie: 0xf00d,
                    cookie_mask: u64::MAX,
                    command: 3,
                    ..FlowModFields::default()
                };
                let all = fields.with(flow::Match::any(), Vec::new());
                trial.world.switches[number].say_as_other(Body::FlowMod(all));
            }
            trial.foreign[number].clear();
        }
        // The new version of a set waits for room beside the old one. So the owners remove their sets, and put what fits.
        let model = std::mem::take(&mut trial.model);
        for (owner, name) in model.keys() {
            let now_ms = trial.world.now_ms;
            trial.world.act(|engine, send| engine.remove(*owner, name, u64::MAX, now_ms, send)).unwrap();
        }
        for ((owner, name), (version, wishes)) in model {
            let fits = |at: (u64, u8)| {
                let all = trial.model.values().flat_map(|(_, wishes)| wishes).chain(&wishes);
                all.filter(|wish| (wish.0, wish.1) == at).count() <= 3
            };
            if (1..4).all(|switch| (0..2).all(|table| fits((switch, table)))) {
                let (items, now_ms) = (items(&wishes), trial.world.now_ms);
                let options = SetOptions::default();
                let put = Put { owner, name: &name, version: version + 1, options, items: &items };
                trial.world.act(|engine, send| engine.put(&put, now_ms, send)).unwrap();
                trial.model.insert((owner, name), (version, wishes));
            }
        }
        trial.world.settle();
        trial.check(seed);
    }
}

/// The rules of the other controller go, but for those that the operator's lists name.
#[test]
fn foreign_rules_are_removed_by_policy_and_those_on_a_list_stay() {
    for seed in 0..40 {
        let is_v10 = seed % 2 == 0;
        let policy = Settings {
            foreign: Foreign::Remove,
            ignore_matches: vec!["arp".to_owned()],
            ignore_tables: if is_v10 { Vec::new() } else { vec![1] },
            ignore_cookies: vec!["beef".to_owned()],
            ..Settings::default()
        };
        let mut trial = Trial::new(seed, is_v10, 1_000);
        trial.world = World::with(policy, 3, is_v10, 1_000);
        trial.name_owners();
        for _ in 0..40 {
            trial.step();
            trial.meddle();
        }
        let fields = FlowModFields { priority: 60, cookie: 0xbeef, ..FlowModFields::default() };
        let (named, instructions) =
            (parse_match("dl_vlan=9").unwrap(), parse_instructions("output:4").unwrap());
        trial.foreign[0].insert(line(0, 60, &named, &instructions));
        trial.world.switches[0].say_as_other(Body::FlowMod(fields.with(named, instructions)));
        trial.world.settle();
        let stays = |line: &Line| {
            line.contains(" arp,") || line.contains("priority=60") || !is_v10 && line.starts_with("table=1 ")
        };
        trial.foreign.iter_mut().for_each(|rules| rules.retain(stays));
        trial.check(seed);
    }
}

/// A restart with every rule in place sends no flow mod at all.
#[test]
fn a_restart_adds_and_removes_nothing() {
    for seed in 0..20 {
        let mut trial = Trial::new(seed, seed % 2 == 0, 1_000);
        trial.name_owners();
        (0..10).for_each(|_| trial.put());
        trial.world.settle();
        trial.check(seed);
        let before = trial.world.flow_mods;
        trial.restart();
        trial.world.settle();
        trial.check(seed);
        assert_eq!(trial.world.flow_mods, before, "seed {seed}");
    }
}

/// Sets that nobody puts again stay for the grace time, and go then.
#[test]
fn what_nobody_wants_after_a_restart_goes_when_the_grace_time_is_over() {
    let mut trial = Trial::new(1, false, 1_000);
    trial.name_owners();
    (0..5).for_each(|_| trial.put());
    trial.world.settle();
    trial.world.restart();
    trial.world.deliver();
    trial.world.tick(3_000);
    trial.world.deliver();
    trial.check_rules_only();
    trial.model.clear();
    trial.world.settle();
    trial.check(1);
}

impl Trial {
    fn check_rules_only(&mut self) {
        let wanted = self.model.values().flat_map(|(_, wishes)| wishes).count();
        let found: usize = self.world.switches.iter_mut().map(|switch| switch.rules().len()).sum();
        assert_eq!(found, wanted);
    }
}

/// A set of rules at one switch, all of one priority.
fn put_of_priority(world: &mut World, switch: u64, priority: u16, version: u64) -> BTreeSet<Line> {
    let wish = |number: usize| {
        (switch, number as u8 % 2, priority, MATCHES[number].to_owned(), INSTRUCTIONS[number % 3].to_owned())
    };
    let wishes: Vec<Wish> = (0..2 + version as usize % 6).map(wish).collect();
    let (items, now_ms) = (items(&wishes), world.now_ms);
    let options = SetOptions { in_order: version.is_multiple_of(2), permanent: false };
    let put = Put { owner: 0, name: "s", version, options, items: &items };
    world.act(|engine, send| engine.put(&put, now_ms, send)).unwrap();
    wishes.iter().map(wish_line).collect()
}

#[test]
fn a_set_at_one_switch_changes_all_at_once_if_the_switch_has_bundles() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let mut world = World::new(1, false, 1_000);
        world.engine.owner("app");
        world.connect(0);
        let mut before = put_of_priority(&mut world, 1, 100, 1);
        world.deliver();
        for version in 2..10 {
            let after = put_of_priority(&mut world, 1, 100 + version as u16, version);
            let mut has_changed = false;
            for step in 0.. {
                let is_moving = match random.chance(50) {
                    true => world.push_on(0) || world.pull(0),
                    false => world.pull(0) || world.push_on(0),
                };
                let found = world.switches[0].rules();
                has_changed |= found == after;
                let expected = if has_changed { &after } else { &before };
                assert_eq!(found, *expected, "seed {seed}, version {version}, step {step}");
                let now_ms = world.now_ms;
                let sent = world.bundles + world.flow_mods;
                world.act(|engine, send| engine.resume(now_ms, send));
                if !is_moving && world.bundles + world.flow_mods == sent {
                    break;
                }
            }
            assert!(has_changed, "seed {seed}, version {version}");
            before = after;
        }
        // One for what was due when the tables were known, and one for each change.
        assert_eq!(world.bundles, 9, "seed {seed}");
        assert_eq!(world.engine.notes.lines, [""; 0], "seed {seed}");
    }
}

#[test]
fn a_switch_without_bundles_is_asked_once_and_gets_its_rules_alone() {
    let switch = world::WITHOUT_BUNDLES;
    let mut world = World::new(switch, false, 1_000);
    world.engine.owner("app");
    world.connect(switch as usize - 1);
    for version in 1..6 {
        let expected = put_of_priority(&mut world, switch, 100 + version as u16, version);
        world.deliver();
        assert_eq!(world.switches[switch as usize - 1].rules(), expected, "version {version}");
    }
    // Another session with the switch does not ask it again.
    world.disconnect(switch as usize - 1, 0);
    put_of_priority(&mut world, switch, 200, 6);
    world.settle();
    assert_eq!((world.bundles, world.engine.notes.lines.len()), (1, 1), "{:?}", world.engine.notes.lines);
    assert!(world.engine.notes.lines[0].contains("rule by rule"), "{:?}", world.engine.notes.lines);
}

/// Host 1 at port 1 of switch 1, two ways in the middle, host 2 at port 1 of switch 4: (from, port, to, port).
const LINKS: [(usize, u32, usize, u32); 4] = [(0, 2, 1, 1), (1, 2, 3, 2), (0, 3, 2, 1), (2, 2, 3, 3)];

fn way(world: &mut World) -> bool {
    let frame = vec![0; 60];
    let (mut at, mut port) = (0, 1);
    for _ in 0..5 {
        let mut effects = software_switch::Effects::default();
        let now = std::time::Duration::from_secs(1_000);
        world.switches[at].switch.on_frame(PortNo(port), frame.clone(), now, &mut effects);
        let Some((left_by, _)) = effects.frames.first() else { return false };
        if (at, left_by.0) == (3, 1) {
            return true;
        }
        let ends = LINKS.iter().flat_map(|&(a, p, b, q)| [(a, p, b, q), (b, q, a, p)]);
        let Some((.., next, next_port)) = ends.into_iter().find(|&(a, p, ..)| (a, p) == (at, left_by.0))
        else {
            return false;
        };
        (at, port) = (next, next_port);
    }
    false
}

fn hop(switch: u64, in_port: u32, out_port: u32) -> Hop {
    Hop { switch: DatapathId(switch), in_port: PortNo(in_port), out_port: PortNo(out_port) }
}

/// The two paths from host 1 to host 2.
fn put_path(world: &mut World, owner: u32, version: u64) {
    let paths = [[hop(1, 1, 2), hop(2, 1, 2), hop(4, 2, 1)], [hop(1, 1, 3), hop(3, 1, 2), hop(4, 3, 1)]];
    let mut items = Vec::new();
    let hops = hop_bytes(&paths[version as usize % 2]);
    let (table_id, priority) = (0, 9);
    Items::new(&mut items).path(&Path {
        table_id,
        priority,
        selector: &[],
        treatment: &[],
        hops: Hops::of(&hops),
    });
    let options = SetOptions { in_order: true, permanent: false };
    let put = Put { owner, name: "p", version, options, items: &items };
    let now_ms = world.now_ms;
    world.act(|engine, send| engine.put(&put, now_ms, send)).unwrap();
}

fn messages_with_a_way(world: &mut World, random: &mut Random, count: u64, when: &str) {
    for _ in 0..count {
        let number = random.below(4) as usize;
        match random.chance(50) {
            true => world.push_on(number),
            false => world.pull(number),
        };
        assert!(way(world), "{when}");
    }
}

#[test]
fn while_a_path_is_replaced_a_packet_always_has_a_way() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let mut world = World::new(4, seed % 2 == 0, 1_000);
        let owner = world.engine.owner("paths");
        (0..4).for_each(|number| world.connect(number));
        put_path(&mut world, owner, 1);
        world.deliver();
        for version in 2..12 {
            put_path(&mut world, owner, version);
            // A replaced path may be replaced again at any point.
            let count = random.below(40);
            messages_with_a_way(&mut world, &mut random, count, &format!("seed {seed}, version {version}"));
        }
        world.deliver();
        assert!(way(&mut world), "seed {seed}");
        let left: usize = world.switches.iter_mut().map(|switch| switch.rules().len()).sum();
        assert_eq!(left, 3, "seed {seed}");
    }
}

/// The service knows nothing of the path that is there. Its owner wants another one: before, while or after the switches are read.
#[test]
fn a_path_that_is_replaced_after_a_restart_always_has_a_way() {
    for seed in 0..120 {
        let mut random = Random(seed);
        let mut world = World::new(4, seed % 2 == 0, 1_000);
        let owner = world.engine.owner("paths");
        (0..4).for_each(|number| world.connect(number));
        put_path(&mut world, owner, 1);
        world.deliver();
        for round in 1..6 {
            let when = format!("seed {seed}, round {round}");
            world.restart();
            assert_eq!(world.engine.owner("paths"), owner);
            let count = random.below(60);
            messages_with_a_way(&mut world, &mut random, count, &when);
            let version = 10 * round + random.below(2);
            put_path(&mut world, owner, version);
            let count = 20 + random.below(60);
            messages_with_a_way(&mut world, &mut random, count, &when);
            if random.chance(50) {
                world.deliver();
                assert!(way(&mut world), "{when}");
            }
        }
        world.settle();
        assert!(way(&mut world), "seed {seed}");
        let left: usize = world.switches.iter_mut().map(|switch| switch.rules().len()).sum();
        assert_eq!(left, 3, "seed {seed}");
    }
}
