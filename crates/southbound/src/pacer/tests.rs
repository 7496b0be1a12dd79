//! The pacer against brute force: every promise is checked on the whole list of what came and what went.
//!
//! One software switch gets the commands in the pacer's order, and another one as they came. Both must have the same tables.

use super::*;
use abi::command::{FlowMod, GroupMod};
use flow::canonical::{write_instructions, write_match};
use flow::relation::overlaps;
use flow::{Action, DatapathId, Field, Instruction, Match, PortNo};
use openflow::message::{
    self, FlowModFields, FlowStats, FlowStatsRequest, Hello, MultipartRequest, ReplyBody, RequestBody,
    TABLE_ALL,
};
use openflow::{Body, Message, Version};
use proptest::prelude::*;
use software_switch::{ControllerId, Effects, Switch, SwitchOptions};
use std::time::Duration;

const RATE: CommandRate = CommandRate { milli_per_s: 8_000, burst: 3 };
const ORDERS: [PriorityOrder; 3] =
    [PriorityOrder::AsTheyCome, PriorityOrder::Ascending, PriorityOrder::Descending];

/// A flow mod, from a world so small that many of them meet.
#[derive(Clone, Debug, PartialEq)]
struct Rule {
    command: u8,
    table_id: u8,
    priority: u16,
    matching: Match,
    /// Whether a modify or a delete selects the rules of its own zone.
    only_own: bool,
    checks_overlap: bool,
    output: u16,
    /// Whether it sends to its zone's group, and not to a port.
    to_group: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    FlowMods(Vec<Rule>),
    /// A group mod of this command, for the group of its zone.
    Group(u16),
    Barrier,
    /// A packet-out or a question, which waits only behind a barrier.
    Ask,
}

/// A command, and the time since the one before.
#[derive(Clone, Debug)]
struct Coming {
    after_ms: u64,
    zone: ZoneId,
    what: What,
}

#[derive(Clone, Debug)]
struct Gone {
    at_ms: u64,
    number: usize,
    cost: u32,
    /// The zones that had something with a cost waiting before.
    waiting: Vec<ZoneId>,
}

fn matches() -> impl Strategy<Value = Match> {
    let ipv4 = || Match::any().with(Field::EthType, 0x0800_u16);
    prop_oneof![
        Just(Match::any()),
        (1..4_u32).prop_map(|port| Match::any().with(Field::InPort, PortNo(port))),
        (0..3_u32).prop_map(move |host| ipv4().with(Field::Ipv4Dst, 0x0a00_0000 + host)),
        Just(ipv4().with_masked(Field::Ipv4Dst, 0x0a00_0000_u32, 0xffff_fffe_u32)),
        (1..3_u32, 0..3_u32).prop_map(move |(port, host)| {
            ipv4().with(Field::Ipv4Dst, 0x0a00_0000 + host).with(Field::InPort, PortNo(port))
        }),
    ]
}

fn rule() -> impl Strategy<Value = Rule> {
    let command = prop_oneof![6 => Just(0_u8), 1 => 1..5_u8];
    let flags = (any::<bool>(), prop::bool::weighted(0.1), prop::bool::weighted(0.2));
    (command, 0..2_u8, 0..4_u16, matches(), flags, 1..9_u16).prop_map(
        |(command, table_id, priority, matching, (only_own, checks_overlap, to_group), output)| Rule {
            table_id: if command >= 3 && priority == 3 { TABLE_ALL } else { table_id },
            command,
            priority,
            matching,
            only_own,
            checks_overlap,
            output,
            to_group,
        },
    )
}

fn coming() -> impl Strategy<Value = Vec<Coming>> {
    let what = prop_oneof![
        12 => rule().prop_map(|rule| What::FlowMods(vec![rule])),
        1 => prop::collection::vec(rule(), 1..9).prop_map(What::FlowMods),
        2 => (0..3_u16).prop_map(What::Group),
        2 => Just(What::Barrier),
        1 => Just(What::Ask),
    ];
    let after_ms = prop_oneof![6 => Just(0_u64), 1 => 1..400_u64];
    let one = (after_ms, 0..4_u16, what).prop_map(|(after_ms, zone, what)| {
        let zone = if zone == 0 { ZoneId::KERNEL } else { ZoneId(zone) };
        Coming { after_ms, zone, what }
    });
    prop::collection::vec(one, 1..60)
}

fn cookie(zone: ZoneId, rule: &Rule) -> u64 {
    zone.stamp(u64::from(rule.output))
}

/// What a rule does, for the rule of a zone.
fn instructions(zone: ZoneId, rule: &Rule, version: Version) -> Vec<Instruction> {
    let to_group = rule.to_group && version != Version::V1_0;
    let output = Action::Output { port: PortNo(rule.output.into()), max_len: 0 };
    vec![Instruction::ApplyActions(vec![if to_group { Action::Group(zone.0.into()) } else { output }])]
}

fn concern(it: &Coming, version: Version) -> Concern {
    let change = |rule: &Rule| {
        let (mut matching, mut written) = (Vec::new(), Vec::new());
        write_match(&rule.matching, &mut matching);
        write_instructions(&instructions(it.zone, rule, version), &mut written).unwrap();
        let flow_mod = FlowMod {
            command: rule.command,
            table_id: rule.table_id,
            priority: rule.priority,
            matching: &matching,
            instructions: &written,
            cookie_mask: fields(it.zone, rule, version).cookie_mask,
            flags: fields(it.zone, rule, version).flags,
            ..FlowMod::ADD
        };
        RuleChange::of(&flow_mod, cookie(it.zone, rule), version)
    };
    match &it.what {
        What::FlowMods(rules) => Concern::Rules(rules.iter().map(change).collect()),
        What::Group(command) => Concern::Shared(SharedChange::of_group(&GroupMod {
            command: *command,
            group_type: 0,
            group_id: it.zone.0.into(),
            buckets: &[],
        })),
        What::Barrier | What::Ask => Concern::Nothing,
    }
}

fn cost(what: &What) -> u32 {
    match what {
        What::FlowMods(rules) => u32::try_from(rules.len()).unwrap(),
        What::Group(_) => 1,
        What::Barrier | What::Ask => 0,
    }
}

/// Plays commands, and lets time pass until all have gone.
fn play(all: &[Coming], order: PriorityOrder, version: Version) -> Vec<Gone> {
    let (mut pacer, mut now_ms, mut gone) = (Pacer::new(RATE, order, 0), 0, Vec::new());
    for (number, it) in all.iter().enumerate() {
        for _ in 0..it.after_ms {
            now_ms += 1;
            go_on(&mut pacer, now_ms, &mut gone);
        }
        let (cost, concern) = (cost(&it.what), concern(it, version));
        let is_free = it.what == What::Ask && !pacer.has_barrier(it.zone);
        if is_free || pacer.may_go_now(it.zone, cost, &concern, now_ms) {
            gone.push(Gone { at_ms: now_ms, number, cost, waiting: waiting(&pacer) });
            pacer.spend(cost);
        } else {
            assert_eq!(pacer.check_room(it.zone, 8), Ok(()));
            let (zone, is_barrier) = (it.zone, it.what == What::Barrier);
            pacer.hold(Waiting { what: number, zone, cost, concern, is_barrier, bytes: 8 }, now_ms);
        }
    }
    let end_ms = now_ms + pacer.wait_ms() + 1_000;
    while let Some(due_ms) = pacer.due_ms() {
        assert!(due_ms <= end_ms, "{} commands wait beyond {end_ms} ms", pacer.waiting());
        now_ms = now_ms.max(due_ms);
        go_on(&mut pacer, now_ms, &mut gone);
    }
    gone
}

fn go_on(pacer: &mut Pacer<usize>, now_ms: u64, gone: &mut Vec<Gone>) {
    loop {
        let waiting = waiting(pacer);
        let Some(it) = pacer.next(now_ms, |_| true) else { return };
        gone.push(Gone { at_ms: now_ms, number: it.what, cost: it.cost, waiting });
    }
}

fn waiting(pacer: &Pacer<usize>) -> Vec<ZoneId> {
    pacer.iter().filter(|it| it.cost > 0).map(|it| it.zone).collect()
}

/// The rate, by brute force: every span from one command to another.
fn check_rate(gone: &[Gone]) {
    for (first, from) in gone.iter().enumerate() {
        let mut sum = 0_u64;
        for it in &gone[first..] {
            sum += u64::from(it.cost);
            // A bundle beyond the burst goes when the bucket is full.
            let beyond = u64::from(it.cost.saturating_sub(RATE.burst));
            let allowed =
                u64::from(RATE.burst) * 1_000_000 + (it.at_ms - from.at_ms) * u64::from(RATE.milli_per_s);
            assert!((sum - beyond) * 1_000_000 <= allowed || it.cost == 0, "{sum} from {from:?} to {it:?}");
        }
    }
}

fn check_all_went_once(all: &[Coming], gone: &[Gone]) {
    let mut numbers: Vec<usize> = gone.iter().map(|it| it.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..all.len()).collect::<Vec<_>>());
}

/// Whether a command of a zone may go before an earlier one of it, by the words of the promise.
fn may_overtake(all: &[Coming], earlier: usize, later: usize, order: PriorityOrder) -> bool {
    let zone = all[earlier].zone;
    let mut between = all[earlier..=later].iter().filter(|it| it.zone == zone);
    if all[later].what == What::Ask {
        return between.all(|it| it.what != What::Barrier);
    }
    // One that did not wait separates nothing.
    let between = between.filter(|it| it.what != What::Ask || std::ptr::eq(*it, &all[earlier]));
    let adds: Option<Vec<&Rule>> = between
        .map(|it| match &it.what {
            What::FlowMods(rules) if rules.len() == 1 && rules[0].command == 0 => Some(&rules[0]),
            _ => None,
        })
        .collect();
    let Some(adds) = adds else { return false };
    let (one, other) = (adds[0], adds[adds.len() - 1]);
    let is_apart = one.table_id != other.table_id || !overlaps(&one.matching, &other.matching);
    order != PriorityOrder::AsTheyCome && is_apart
}

fn check_order_of_zones(all: &[Coming], gone: &[Gone], order: PriorityOrder) {
    for (place, it) in gone.iter().enumerate() {
        for before in &gone[..place] {
            let same_zone = all[it.number].zone == all[before.number].zone;
            if same_zone && before.number > it.number {
                let (earlier, later) = (it.number, before.number);
                assert!(
                    may_overtake(all, earlier, later, order),
                    "{later} went before {earlier} of its zone"
                );
            }
        }
    }
}

fn fields(zone: ZoneId, rule: &Rule, version: Version) -> FlowModFields {
    let is_1_0 = version == Version::V1_0;
    FlowModFields {
        cookie: cookie(zone, rule),
        cookie_mask: if rule.only_own && rule.command > 0 && !is_1_0 {
            !abi::zone_id::COOKIE_MASK
        } else {
            0
        },
        table_id: if is_1_0 { 0 } else { rule.table_id },
        command: rule.command,
        priority: rule.priority,
        flags: if rule.checks_overlap && rule.command == 0 { message::FLOW_MOD_CHECK_OVERLAP } else { 0 },
        ..FlowModFields::default()
    }
}

/// The rules of a switch that gets commands in this order.
fn tables<'a>(commands: impl Iterator<Item = &'a Coming>, version: Version) -> Vec<FlowStats> {
    let (mut switch, controller) =
        (Switch::new(DatapathId(1), "s1", SwitchOptions::default()), ControllerId(0));
    let mut effects = Effects::default();
    switch.on_connected(controller, &mut effects);
    let mut hear = |body: Body| {
        effects.messages.clear();
        switch.on_message(controller, &Message { version, xid: 1, body }, Duration::ZERO, &mut effects);
        effects.messages.last().map(|(_, message)| message.body.clone())
    };
    hear(Body::Hello(Hello::default()));
    for it in commands {
        match &it.what {
            What::FlowMods(rules) => {
                for rule in rules {
                    let instructions = instructions(it.zone, rule, version);
                    let flow_mod = fields(it.zone, rule, version).with(rule.matching.clone(), instructions);
                    hear(Body::FlowMod(flow_mod));
                }
            }
            What::Group(command) if version != Version::V1_0 => {
                hear(Body::GroupMod(message::GroupMod {
                    command: *command,
                    group_type: 0,
                    group_id: it.zone.0.into(),
                    buckets: Vec::new(),
                }));
            }
            What::Group(_) | What::Barrier | What::Ask => {}
        }
    }
    let everything = FlowStatsRequest::default();
    let request = MultipartRequest { flags: 0, body: RequestBody::Flow(everything) };
    let Some(Body::MultipartReply(reply)) = hear(Body::MultipartRequest(request)) else { panic!("no reply") };
    let ReplyBody::Flow(mut flows) = reply.body else { panic!("no rules") };
    flows.sort_by_key(|flow| format!("{flow:?}"));
    flows
}

fn check(all: &[Coming], order: PriorityOrder, version: Version) {
    let gone = play(all, order, version);
    check_all_went_once(all, &gone);
    check_rate(&gone);
    check_order_of_zones(all, &gone, order);
    let as_sent = tables(gone.iter().map(|it| &all[it.number]), version);
    assert_eq!(as_sent, tables(all.iter(), version), "{order:?} {gone:#?}");
}

proptest! {
    #[test]
    fn every_promise_holds_and_the_tables_end_as_if_nothing_had_waited(all in coming(), order in 0..3_usize, is_1_0: bool) {
        check(&all, ORDERS[order], if is_1_0 { Version::V1_0 } else { Version::V1_3 });
    }

    /// Zones whose rules have nothing to do with each other: while two wait, each has as much as the other, but for one command of each.
    #[test]
    fn zones_take_turns(coming in coming(), order in 0..3_usize) {
        let mut all = coming;
        for it in &mut all {
            match &mut it.what {
                What::FlowMods(rules) => rules.iter_mut().for_each(|rule| {
                    *rule = Rule {
                        command: 0,
                        table_id: u8::try_from(it.zone.0 % 5).unwrap(),
                        ..rule.clone()
                    };
                }),
                What::Group(_) => it.what = What::Barrier,
                What::Barrier | What::Ask => {}
            }
        }
        let gone = play(&all, ORDERS[order], Version::V1_3);
        let zones = [ZoneId(1), ZoneId(2), ZoneId(3)];
        for (one, other) in zones.into_iter().flat_map(|one| zones.map(|other| (one, other))) {
            check_turns(&all, &gone, one, other);
        }
        check_turns_of_node(&all, &gone);
    }

    /// The bounds, by counting all that waits again for each command.
    #[test]
    fn a_queue_takes_what_its_bounds_allow(coming in prop::collection::vec((0..5_u16, 1..40_000_usize, 0..3_usize), 1..400)) {
        let mut pacer = Pacer::new(CommandRate { milli_per_s: 1, burst: 100 }, PriorityOrder::AsTheyCome, 0);
        let mut model: Vec<(ZoneId, usize)> = Vec::new();
        for (zone, bytes, goes) in coming {
            let zone = if zone == 0 { ZoneId::KERNEL } else { ZoneId(zone) };
            let of = |zone: ZoneId| model.iter().filter(move |it| it.0 == zone);
            let left = WAITING_MAX - model.len();
            let left_bytes = WAITING_BYTES_MAX - model.iter().map(|it| it.1).sum::<usize>();
            let own_bytes = of(zone).map(|it| it.1).sum::<usize>();
            let fits = match zone {
                ZoneId::KERNEL => left > 0 && bytes <= left_bytes,
                _ => of(zone).count() + crate::receipts::KEPT < left && own_bytes + bytes <= left_bytes,
            };
            let checked = pacer.check_room(zone, bytes);
            prop_assert_eq!(checked.is_ok(), fits);
            if let Err(full) = checked {
                prop_assert_eq!(full.waiting, model.len());
            } else {
                let concern = Concern::Nothing;
                pacer.hold(Waiting { what: (), zone, cost: 1, concern, is_barrier: false, bytes }, 0);
                model.push((zone, bytes));
            }
            for _ in 0..goes.saturating_sub(1) {
                let Some(it) = pacer.next(0, |_| true) else { break };
                let place = model.iter().position(|other| *other == (it.zone, it.bytes));
                model.remove(place.unwrap());
            }
            prop_assert_eq!(pacer.waiting(), model.len());
        }
    }
}

/// While both wait, what one has had more than the other is at most a command of each.
fn check_turns(all: &[Coming], gone: &[Gone], one: ZoneId, other: ZoneId) {
    let dearest =
        |zone| gone.iter().filter(|it| all[it.number].zone == zone).map(|it| it.cost).max().unwrap_or(0);
    let most = i64::from(dearest(one)) + i64::from(dearest(other));
    for (from, _) in gone.iter().enumerate() {
        let both_wait = |it: &&Gone| it.waiting.contains(&one) && it.waiting.contains(&other);
        let mut ahead = 0;
        for it in gone[from..].iter().take_while(both_wait) {
            let zone = all[it.number].zone;
            ahead += if zone == one { i64::from(it.cost) } else { 0 };
            ahead -= if zone == other { i64::from(it.cost) } else { 0 };
            assert!(ahead.abs() <= most, "{one} is {ahead} before {other}: {gone:#?}");
        }
    }
}

/// While an app waits, the node has no two turns in a row.
fn check_turns_of_node(all: &[Coming], gone: &[Gone]) {
    let with_cost: Vec<&Gone> = gone.iter().filter(|it| it.cost > 0).collect();
    for pair in with_cost.windows(2) {
        let both = pair.iter().all(|it| all[it.number].zone == ZoneId::KERNEL);
        let waits = |it: &Gone| it.waiting.iter().any(|zone| *zone != ZoneId::KERNEL);
        assert!(!(both && waits(pair[0]) && waits(pair[1])), "{gone:#?}");
    }
}

fn add(zone: u16, priority: u16, host: u32) -> Coming {
    let matching = Match::any().with(Field::EthType, 0x0800_u16).with(Field::Ipv4Dst, host);
    let rule = Rule {
        command: 0,
        table_id: 0,
        priority,
        matching,
        only_own: false,
        checks_overlap: false,
        output: 1,
        to_group: false,
    };
    Coming { after_ms: 0, zone: ZoneId(zone), what: What::FlowMods(vec![rule]) }
}

/// The priorities in the order in which they went.
fn priorities(all: &[Coming], order: PriorityOrder) -> Vec<u16> {
    let gone = play(all, order, Version::V1_3);
    let priority = |it: &Gone| match &all[it.number].what {
        What::FlowMods(rules) => rules[0].priority,
        _ => 0,
    };
    gone.iter().map(priority).collect()
}

#[test]
fn adds_that_wait_go_in_the_cheap_order_and_a_barrier_stops_it() {
    let mut all: Vec<Coming> =
        (0..).zip([50, 50, 50, 3, 1, 2, 9]).map(|(host, it)| add(1, it, host)).collect();
    assert_eq!(priorities(&all, PriorityOrder::AsTheyCome), [50, 50, 50, 3, 1, 2, 9]);
    assert_eq!(priorities(&all, PriorityOrder::Ascending), [50, 50, 50, 1, 2, 3, 9]);
    assert_eq!(priorities(&all, PriorityOrder::Descending), [50, 50, 50, 9, 3, 2, 1]);
    all.insert(5, Coming { after_ms: 0, zone: ZoneId(1), what: What::Barrier });
    assert_eq!(priorities(&all, PriorityOrder::Ascending), [50, 50, 50, 1, 3, 0, 2, 9]);
}

#[test]
fn adds_that_a_packet_may_both_match_keep_their_order() {
    let all: Vec<Coming> = [50, 50, 50, 3, 1, 2].map(|priority| add(1, priority, 7)).to_vec();
    assert_eq!(priorities(&all, PriorityOrder::Ascending), [50, 50, 50, 3, 1, 2]);
}

/// The delete of the group also deletes the rule that uses it. Until then, the switch refuses the add.
#[test]
fn an_add_that_checks_for_overlap_waits_for_the_delete_of_another_zones_group() {
    let group = |command| Coming { after_ms: 0, zone: ZoneId(3), what: What::Group(command) };
    let change = |zone, change: fn(&mut Rule)| {
        let mut it = add(zone, 7, 1);
        if let What::FlowMods(rules) = &mut it.what {
            rules.iter_mut().for_each(change);
        }
        it
    };
    let through_group = change(3, |rule| rule.to_group = true);
    let checking = change(2, |rule| {
        rule.checks_overlap = true;
        rule.output = 7;
    });
    let spent = (0..3).map(|host| add(3, 50, 100 + host));
    let all: Vec<Coming> =
        spent.chain([group(0), through_group, add(3, 50, 200), group(2), checking]).collect();
    for order in ORDERS {
        check(&all, order, Version::V1_3);
    }
}

#[test]
fn an_add_does_not_wait_for_those_that_come_after_its_batch() {
    let mut all: Vec<Coming> = (0..).zip([50, 50, 50, 9, 8]).map(|(host, it)| add(1, it, host)).collect();
    all.extend((100..200).map(|host| Coming { after_ms: 125, ..add(1, 1, host) }));
    let gone = priorities(&all, PriorityOrder::Ascending);
    let last = gone.iter().position(|priority| *priority == 9).unwrap();
    assert!(last < 10, "it went as number {last}");
}

#[test]
fn a_thousand_rules_of_one_zone_go_at_the_rate_and_a_further_zone_has_room() {
    let rules = |zone| (0..1_000).map(move |host| add(zone, 1, host + 10_000 * u32::from(zone)));
    let all: Vec<Coming> = rules(1).chain([add(2, 1, 1)]).collect();
    let gone = play(&all, PriorityOrder::AsTheyCome, Version::V1_3);
    // Three at once, then one each 125 ms; the other zone had the next turn but one.
    assert_eq!(gone.last().unwrap().at_ms, (1_001 - 3) * 125);
    assert!(gone.iter().position(|it| it.number == 1_000).unwrap() <= 4);
}

#[test]
fn a_full_queue_refuses_with_the_time_until_all_have_gone() {
    let mut pacer = Pacer::new(RATE, PriorityOrder::AsTheyCome, 0);
    let hold = |pacer: &mut Pacer<()>, zone: u16, bytes: usize| {
        pacer.check_room(ZoneId(zone), bytes)?;
        let (what, zone, concern, is_barrier) = ((), ZoneId(zone), Concern::Nothing, false);
        pacer.hold(Waiting { what, zone, cost: 1, concern, is_barrier, bytes }, 0);
        Ok::<(), QueueFull>(())
    };
    let mut taken = 0;
    let full = loop {
        match hold(&mut pacer, 1, 100) {
            Ok(()) => taken += 1,
            Err(full) => break full,
        }
    };
    assert_eq!((taken, full), (2_044, QueueFull { waiting: 2_044, wait_ms: (2_044 - 3) * 125 }));
    assert_eq!(hold(&mut pacer, 2, 100), Ok(()));
    // Bytes are shared in the same way.
    assert!(hold(&mut pacer, 3, WAITING_BYTES_MAX / 2).is_ok());
    assert!(hold(&mut pacer, 4, WAITING_BYTES_MAX / 2).is_err());
    assert_eq!((pacer.take_all().len(), pacer.waiting(), pacer.wait_ms()), (2_046, 0, 0));
    assert_eq!(hold(&mut pacer, 1, 100), Ok(()));
}

#[test]
fn what_may_not_go_for_another_reason_is_tried_again_soon() {
    let mut pacer = Pacer::new(RATE, PriorityOrder::AsTheyCome, 0);
    pacer.spend(3);
    let (zone, concern) = (ZoneId(1), Concern::Rules(Vec::new()));
    pacer.hold(Waiting { what: (), zone, cost: 1, concern, is_barrier: false, bytes: 8 }, 0);
    assert_eq!(pacer.due_ms(), Some(125));
    assert!(pacer.next(125, |_| false).is_none());
    assert_eq!(pacer.due_ms(), Some(135));
    assert!(pacer.next(135, |_| true).is_some());
    assert_eq!(pacer.due_ms(), None);
}

/// Attackers fill the queue with all that they may, and a victim's rule comes last. Returns how many commands go before it.
fn ahead_of_the_victim(attacks: impl Fn(u16, u32) -> What, attackers: u16, order: PriorityOrder) -> usize {
    let mut pacer = Pacer::new(RATE, order, 0);
    let hold = |pacer: &mut Pacer<u16>, zone: u16, what: What| {
        let it = Coming { after_ms: 0, zone: ZoneId(zone), what };
        if pacer.check_room(it.zone, 100).is_ok() {
            let (cost, concern) = (cost(&it.what), concern(&it, Version::V1_3));
            let (zone, is_barrier) = (it.zone, it.what == What::Barrier);
            pacer.hold(Waiting { what: zone.0, zone, cost, concern, is_barrier, bytes: 100 }, 0);
            return true;
        }
        false
    };
    for zone in 1..=attackers {
        let mut number = 0;
        while hold(&mut pacer, zone, attacks(zone, number)) {
            number += 1;
        }
    }
    let victim = 100;
    let What::FlowMods(mut rules) = add(victim, 7, 1).what else { unreachable!() };
    rules[0].to_group = true;
    assert!(hold(&mut pacer, victim, What::FlowMods(rules)));
    let (mut now_ms, mut ahead) = (0, 0);
    loop {
        match pacer.next(now_ms, |_| true) {
            Some(it) if it.zone == ZoneId(victim) => return ahead,
            Some(it) => ahead += usize::from(it.cost > 0),
            None => now_ms = pacer.due_ms().unwrap(),
        }
    }
}

#[test]
fn however_an_app_fills_the_queue_others_have_their_turn() {
    let rule = |zone: u16, priority: u16, number: u32| {
        let What::FlowMods(rules) = add(zone, priority, 0x0a00_0000 + u32::from(zone) * 10_000 + number).what
        else {
            unreachable!()
        };
        rules[0].clone()
    };
    let adds = |zone: u16, number: u32| What::FlowMods(vec![rule(zone, 7, number)]);
    // They all meet, and the cheapest is the last.
    let falling = |zone: u16, number: u32| {
        let priority = u16::MAX - u16::try_from(number).unwrap();
        What::FlowMods(vec![Rule { matching: Match::any(), table_id: 1, ..rule(zone, priority, 0) }])
    };
    let groups = |_: u16, number: u32| What::Group(u16::try_from(number % 3).unwrap());
    let own_deletes = |zone: u16, number: u32| {
        let own = Rule { matching: Match::any(), command: 3, only_own: true, ..rule(zone, 7, number) };
        What::FlowMods(vec![own])
    };
    let barriers =
        |zone: u16, number: u32| if number.is_multiple_of(2) { What::Barrier } else { adds(zone, number) };
    let bundles = |zone: u16, number: u32| match number {
        0 => What::FlowMods((0..512).map(|place| rule(zone, 7, place)).collect()),
        _ => adds(zone, number),
    };
    for order in ORDERS {
        for attackers in 1..=5 {
            let most = usize::from(attackers) + 1;
            let check = |attack: &dyn Fn(u16, u32) -> What, name: &str| {
                let ahead = ahead_of_the_victim(attack, attackers, order);
                assert!(ahead <= most, "{name}, {attackers} attackers, {order:?}: {ahead} before");
            };
            check(&adds, "adds");
            check(&falling, "falling priorities");
            check(&groups, "groups");
            check(&own_deletes, "deletes");
            check(&barriers, "barriers");
            check(&bundles, "bundles");
        }
    }
}

#[test]
fn an_app_that_sends_bundles_has_no_more_rules_than_one_that_does_not() {
    let rules = |zone: u16, count: u32| -> Vec<Rule> {
        let one = |host| match add(zone, 1, host + 10_000 * u32::from(zone)).what {
            What::FlowMods(rules) => rules[0].clone(),
            _ => unreachable!(),
        };
        (0..count).map(one).collect()
    };
    let bundles =
        (0..4).map(|_| Coming { after_ms: 0, zone: ZoneId(1), what: What::FlowMods(rules(1, 100)) });
    let all: Vec<Coming> = bundles.chain((0..300).map(|host| add(2, 1, host))).collect();
    let gone = play(&all, PriorityOrder::AsTheyCome, Version::V1_3);
    let mut had = [0_u32; 3];
    for it in &gone {
        had[usize::from(all[it.number].zone.0)] += it.cost;
        let [_, bundles, single] = had;
        assert!(single == 300 || bundles.abs_diff(single) <= 200, "{had:?}");
    }
    assert_eq!(had, [0, 400, 300]);
}

#[test]
fn without_a_rate_any_more_all_goes_as_it_came() {
    let mut pacer = Pacer::new(RATE, PriorityOrder::Ascending, 0);
    for number in 0..2_000_u32 {
        let it = add(u16::try_from(number % 2).unwrap() + 1, 9, number);
        let (cost, concern, zone) = (cost(&it.what), concern(&it, Version::V1_3), it.zone);
        pacer.hold(Waiting { what: number, zone, cost, concern, is_barrier: false, bytes: 8 }, 0);
    }
    pacer.end_rate(5);
    assert_eq!(pacer.due_ms(), Some(5));
    let gone: Vec<u32> = std::iter::from_fn(|| pacer.next(5, |_| true)).map(|it| it.what).collect();
    assert_eq!(gone, (0..2_000).collect::<Vec<_>>());
}
