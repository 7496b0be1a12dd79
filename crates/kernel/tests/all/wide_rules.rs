//! Random commands, compared with a switch that executes them: no rule of a later app takes all packets of an earlier one,
//! and no rule goes that takes none.

use crate::ordered;

use abi::ZoneId;
use abi::command::{FlowMod, Subscribe, What};
use abi::event::kind;
use flow::Match;
use flow::canonical::{read_match, write_instructions, write_match};
use flow::relation::covers;
use flow::text::{parse_instructions, parse_match};
use kernel::{Bounds, Capability, Effect, Grant};
use ordered::*;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

const ADD: u8 = 0;
const MODIFY: u8 = 1;
const MODIFY_STRICT: u8 = 2;
const DELETE: u8 = 3;
const DELETE_STRICT: u8 = 4;

/// The cookie bits that an app may choose.
const OF_APP: u64 = (1 << 48) - 1;

/// A rule in the switch.
#[derive(Clone, Debug, PartialEq)]
struct Held {
    owner: ZoneId,
    cookie: u64,
    table_id: u8,
    priority: u16,
    matching: Match,
    to: Option<u8>,
}

/// A command of an app.
#[derive(Clone, Debug)]
struct Asked {
    zone: ZoneId,
    command: u8,
    table_id: u8,
    priority: u16,
    matching: Match,
    to: Option<u8>,
    cookie: u64,
    cookie_mask: u64,
}

impl Asked {
    /// Whether a modify or delete reaches a rule.
    fn reaches(&self, it: &Held) -> bool {
        let is_strict = matches!(self.command, MODIFY_STRICT | DELETE_STRICT);
        let is_meant = match is_strict {
            true => it.priority == self.priority && it.matching == self.matching,
            false => covers(&self.matching, &it.matching),
        };
        let is_in_table = it.table_id == self.table_id || self.table_id == 255;
        is_meant && is_in_table && it.owner == self.zone && (it.cookie ^ self.cookie) & self.cookie_mask == 0
    }

    /// The switch executes it.
    fn change(&self, rules: &mut Vec<Held>) {
        let Asked { zone: owner, command, table_id, priority, ref matching, to, cookie, .. } = *self;
        match command {
            ADD => {
                rules.retain(|it| (it.table_id, it.priority, &it.matching) != (table_id, priority, matching));
                rules.push(Held { owner, cookie, table_id, priority, matching: matching.clone(), to });
            }
            MODIFY | MODIFY_STRICT => {
                rules.iter_mut().filter(|it| self.reaches(it)).for_each(|it| it.to = to)
            }
            _ => rules.retain(|it| !self.reaches(it)),
        }
    }
}

/// The tables that all of these packets reach.
fn reached(rules: &[Held], wanted: &Match) -> Vec<u8> {
    let mut tables = vec![0];
    for table_id in 0..8 {
        if tables.contains(&table_id) {
            let passing = rules.iter().filter(|it| it.table_id == table_id && covers(&it.matching, wanted));
            tables.extend(passing.filter_map(|it| it.to));
        }
    }
    tables
}

/// The rules of the later app that keep all packets from the earlier one.
fn blinding<'a>(rules: &'a [Held], wanted: Option<&Match>) -> Vec<&'a Held> {
    let Some(wanted) = wanted else { return Vec::new() };
    let tables = reached(rules, wanted);
    let takes = |it: &&Held| {
        it.owner == LATER && it.to.is_none() && covers(&it.matching, wanted) && tables.contains(&it.table_id)
    };
    rules.iter().filter(takes).collect()
}

/// Both apps' priorities do not meet, so that no rule shadows another.
fn node() -> Node {
    let within = |priorities| Bounds { priorities, ..Bounds::default() };
    let grant = |priorities, rank| {
        Grant::nothing().with(Capability::PacketIn).with_rules(within(priorities)).with_rank(rank)
    };
    Node::with(grant(0..=30, 2), grant(31..=60, 1))
}

fn any_match() -> impl Strategy<Value = Match> {
    let texts = ["", "", "arp", "ip", "ip,nw_dst=10.0.0.0/8", "in_port=1", "arp,in_port=1"];
    prop::sample::select(texts.to_vec()).prop_map(|text| parse_match(text).unwrap())
}

fn any_command() -> impl Strategy<Value = Asked> {
    let table = prop_oneof![9 => 0..4_u8, 1 => Just(255)];
    let filter = prop_oneof![3 => Just(0), 1 => Just(1)];
    (any::<bool>(), 0..5_u8, table, 0..2_u16, any_match(), prop::option::of(1..5_u8), 0..2_u64, filter)
        .prop_map(|(is_before, command, table_id, priority, matching, to, cookie, cookie_mask)| {
            let (zone, lowest) = if is_before { (BEFORE, 40) } else { (LATER, 10) };
            let table_id = if command < DELETE { table_id % 4 } else { table_id };
            let to = to.filter(|to| *to > table_id);
            let cookie_mask = if command == ADD { 0 } else { cookie_mask };
            let priority = lowest + priority;
            Asked { zone, command, table_id, priority, matching, to, cookie, cookie_mask }
        })
}

#[derive(Clone, Debug)]
enum Step {
    Command(Asked),
    /// The earlier app wants these packets.
    Listen(Match),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![9 => any_command().prop_map(Step::Command), 1 => any_match().prop_map(Step::Listen)]
}

fn send(node: &mut Node, it: &Asked) -> String {
    let text = it.to.map_or("drop".to_owned(), |to| format!("goto_table:{to}"));
    let mut instructions = Vec::new();
    write_instructions(&parse_instructions(&text).unwrap(), &mut instructions).unwrap();
    let Asked { command, table_id, cookie, cookie_mask, .. } = *it;
    let rest =
        FlowMod { command, table_id, cookie, cookie_mask, instructions: &instructions, ..FlowMod::ADD };
    node.rule(it.zone, it.priority, &it.matching, rest)
}

fn listen(node: &mut Node, matching: &Match) {
    let mut packets = Vec::new();
    write_match(matching, &mut packets);
    let events = kind::bit(kind::PACKET_IN);
    node.command(BEFORE, What::Subscribe(Subscribe { events, packets: &packets }));
}

/// The switch reports its rules, if it is asked.
fn report(node: &mut Node, rules: &[Held]) {
    node.now_ms += 20_000;
    let mut effects = Vec::new();
    node.kernel.ask_for_owners(node.now_ms, &mut effects);
    if !effects.contains(&Effect::Ask { datapath: SWITCH, asked: kernel::Asked::Owners }) {
        return;
    }
    let entry = |it: &Held| {
        let mut matching = Vec::new();
        write_match(&it.matching, &mut matching);
        let text = it.to.map_or("drop".to_owned(), |to| format!("goto_table:{to}"));
        reported_with(it.table_id, it.priority, it.owner.stamp(it.cookie & OF_APP), &matching, &text)
    };
    node.answer(kernel::Asked::Owners, &rules.iter().flat_map(entry).collect::<Vec<_>>());
}

/// The node deletes the rules that are to go. Each of them takes all packets.
fn evict(node: &mut Node, rules: &mut Vec<Held>, wanted: Option<&Match>) -> Result<(), TestCaseError> {
    for eviction in node.kernel.take_evictions() {
        let matching = read_match(&eviction.matching).unwrap();
        let place = (eviction.table_id, eviction.priority, &matching);
        let is_it = |it: &Held| (it.table_id, it.priority, &it.matching) == place;
        let needed = blinding(rules, wanted);
        prop_assert!(needed.into_iter().any(is_it), "{:?} {:?}", eviction, rules);
        rules.retain(|it| !is_it(it));
    }
    Ok(())
}

proptest! {
    #[test]
    fn after_any_commands_no_rule_takes_all_packets_of_an_app_before_and_none_goes_without_reason(
        steps in prop::collection::vec(any_step(), 1..40)
    ) {
        let (mut node, mut rules, mut wanted) = (node(), Vec::new(), None);
        for step in steps {
            match &step {
                Step::Command(asked) => {
                    let said = send(&mut node, asked);
                    let mut then = rules.clone();
                    asked.change(&mut then);
                    let would_blind = blinding(&then, wanted.as_ref());
                    if said == "sent" {
                        let is_its = |it: &&Held| asked.command < DELETE && asked.zone == LATER && !rules.contains(it);
                        prop_assert!(!would_blind.iter().any(is_its), "{:?} {:?}", asked, would_blind);
                        rules = then;
                    } else {
                        let is_known = said.contains("app number") || said.contains("table-miss");
                        prop_assert!(is_known, "{}", said);
                        // A loose modify names a match, and may change rules that the kernel does not know.
                        let is_needed = asked.command != ADD || said.contains("belongs to") || !would_blind.is_empty();
                        prop_assert!(is_needed || said.contains("table-miss"), "{:?}: {}", asked, said);
                    }
                }
                Step::Listen(matching) => {
                    listen(&mut node, matching);
                    wanted = Some(matching.clone());
                    evict(&mut node, &mut rules, wanted.as_ref())?;
                    report(&mut node, &rules);
                }
            }
            evict(&mut node, &mut rules, wanted.as_ref())?;
            let bad = blinding(&rules, wanted.as_ref());
            prop_assert!(bad.is_empty(), "{:?} {:?}", step, bad);
        }
    }
}
