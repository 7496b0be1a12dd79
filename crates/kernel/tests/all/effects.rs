//! Quotas count the effects of commands, not the commands: packets that a packet-out becomes, packet-ins that an app
//! causes, statistics.
//!
//! The test compares the charges with the frames that leave the emulated switch.

use crate::emulated;

use abi::Frame;
use abi::command::{StatsRequest, What};
use abi::event::{self, StatsReply};
use emulated::*;
use kernel::quota::{NodeRate, Rate, Use};
use kernel::{Capability, Effect, Grant, Kernel, NodeRates, Quota, QuotaKind, Quotas};
use proptest::prelude::*;
use std::sync::Arc;

fn grant(quotas: Quotas) -> Grant {
    Grant::everywhere(&Capability::GRANT_ALL).with_quotas(quotas)
}

fn all() -> Grant {
    grant(Quotas::default())
}

fn quota(hard: u32) -> Option<Quota> {
    Some(Quota { soft: hard, hard })
}

/// An app that may send this many packets a second.
fn packets(hard: u32) -> World {
    World::with(grant(Quotas { packet_outs_per_s: quota(hard), ..Quotas::default() }))
}

fn beyond(kind: &str, hard: u32) -> String {
    format!(
        "quota {kind}: the hard limit {hard} is reached; the operator raises it by {kind} in the app's quotas"
    )
}

#[test]
fn a_packet_out_counts_what_it_becomes() {
    let check = |actions: &str, becomes: u32| {
        let mut world = packets(100);
        assert_eq!(world.group(APP, ADD, 1, &["output:2", "output:3"]), "sent");
        assert_eq!(world.group(APP, ADD, 2, &["group:1", "output:4"]), "sent");
        let passed = (0..1_000).take_while(|_| world.packet_out(&arp(1), actions) == "sent").count();
        assert_eq!(passed, 100 / becomes as usize, "{actions}");
        assert_eq!(world.packet_out(&arp(1), actions), beyond("packet_outs_per_s", 100));
        assert!(world.left().len() <= 100, "{actions}");
    };
    check("output:2", 1);
    check("output:2,output:3,set_field:9->arp_op,output:4", 3);
    check("flood", PORTS);
    check("all,output:2", PORTS + 1);
    check("group:1", 2);
    check("group:2", 3);
    check("output:2,group:2", 4);
    check("output:TABLE", PORTS);
    check("dec_ttl", 1);
}

#[test]
fn what_rules_make_of_a_packet_counts_for_who_puts_it_into_the_tables() {
    let mut world = packets(60);
    let ten = "output:2,output:3,".repeat(5);
    assert_eq!(world.rule(OTHER, 0, "arp", &format!("{ten}goto_table:1")), "sent");
    assert_eq!(world.rule(OTHER, 1, "arp", &ten), "sent");
    assert_eq!(world.packet_out(&arp(1), "output:TABLE"), "sent");
    assert_eq!(world.left().len(), 20);
    let passed = (0..100).take_while(|_| world.packet_out(&arp(1), "output:TABLE") == "sent").count();
    assert_eq!(passed, 2, "three times twenty");
}

#[test]
fn without_a_quota_a_few_packets_each_are_free_and_copies_are_not() {
    let mut world = World::with(all());
    assert!((0..200_000).all(|_| world.asks_packet_out(60, "output:2") == "sent"));
    assert!((0..20_000).all(|_| world.asks_packet_out(60, "flood") == "sent"), "of a small switch");
    let two_hundred = "output:2,output:3,".repeat(100);
    let passed = (0..1_000).take_while(|_| world.asks_packet_out(60, &two_hundred) == "sent").count();
    assert_eq!(passed, 20_000 / 184);
    let copies = beyond("copies_per_switch_per_s", 20_000);
    assert_eq!(world.asks_packet_out(60, &two_hundred), copies);
    assert_eq!(world.asks_packet_out(60, "flood"), "sent");
    let mut large = World::with(all());
    let passed = (0..1_000).take_while(|_| large.asks_packet_out(30_000, &two_hundred) == "sent").count();
    assert_eq!(passed, 20_000 / (184 * 20), "a packet of 30,000 bytes is twenty of the usual size");
    let quotas = Quotas { copies_per_switch_per_s: quota(184), ..Quotas::default() };
    let mut little = World::with(grant(quotas));
    let passed = (0..9).take_while(|_| little.asks_packet_out(60, &two_hundred) == "sent").count();
    assert_eq!(passed, 1);
}

#[test]
fn bytes_count_as_often_as_they_leave() {
    let mut world = World::with(grant(Quotas { packet_out_bytes_per_s: quota(6_000), ..Quotas::default() }));
    let passed = (0..100).take_while(|_| world.packet_out(&arp(1), "output:2,output:3") == "sent").count();
    assert_eq!(passed, 6_000 / 120);
    let left: usize = world.left().iter().map(|(_, frame)| frame.len()).sum();
    assert_eq!(left, 6_000);
    assert_eq!(world.packet_out(&arp(1), "output:2"), beyond("packet_out_bytes_per_s", 6_000));
}

#[test]
fn a_command_has_a_bounded_number_of_actions() {
    let mut world = World::with(all());
    let outputs = |count: usize| "output:2,".repeat(count);
    let many = "257 actions are more than the 256 there may be in one command: use several, or a group";
    assert_eq!(world.rule(APP, 0, "arp", &outputs(256)), "sent");
    assert_eq!(world.rule(APP, 0, "arp", &outputs(257)), format!("rule.write: {many}"));
    let apart = format!("{}write_actions({})", outputs(256), "output:2");
    assert_eq!(world.rule(APP, 0, "arp", &apart), format!("rule.write: {many}"));
    assert_eq!(world.packet_out(&arp(1), &outputs(256)), "sent");
    assert_eq!(world.packet_out(&arp(1), &outputs(257)), format!("packet.out: {many}"));
    let bucket = outputs(4);
    assert_eq!(world.group(APP, ADD, 1, &vec![bucket.as_str(); 256]), "sent");
    let more = world.group(APP, ADD, 2, &vec![bucket.as_str(); 257]);
    assert!(more.starts_with("rule.write: 1028 actions are more than the 1024"), "{more}");
}

#[test]
fn one_packet_becomes_a_bounded_number_of_packets_by_groups_too() {
    let mut world = World::with(all());
    let bucket = "output:2,output:3";
    assert_eq!(world.group(APP, ADD, 1, &vec![bucket; 128]), "sent");
    assert_eq!(world.group(APP, ADD, 2, &["group:1", "group:1", "group:1", "group:1"]), "sent");
    let most = "one packet may become 1024 packets, with all groups that it goes through";
    assert_eq!(world.group(APP, MODIFY, 2, &["group:1"; 5]), format!("rule.write: {most}"));
    assert_eq!(world.group(APP, MODIFY, 1, &vec![bucket; 129]), format!("rule.write: {most}"));
    assert_eq!(world.rule(APP, 0, "arp", "group:2"), "sent");
    assert_eq!(world.rule(APP, 0, "arp", "group:2,output:1"), format!("rule.write: {most}"));
    assert_eq!(world.packet_out(&arp(1), "group:2,output:2"), format!("packet.out: {most}"));
    let five = "group:1,".repeat(5);
    assert_eq!(world.rule(APP, 0, "arp", &five), "rule.write: a command may send a packet to 4 groups");
    let floods = "one packet may be flooded 4 times, and go into the tables as often";
    assert_eq!(world.rule(APP, 0, "arp", "flood,all,flood,all"), "sent");
    assert_eq!(world.rule(APP, 0, "arp", "flood,all,flood,all,flood"), format!("rule.write: {floods}"));
    let tables = "output:TABLE,".repeat(5);
    assert_eq!(world.packet_out(&arp(1), &tables), format!("packet.out: {floods}"));
}

#[test]
fn a_rule_sends_a_packet_to_the_controller_a_few_times_at_most() {
    let mut world = World::with(all());
    let four = "controller,".repeat(4);
    let most = "one packet may go to the controller 4 times, with all groups that it goes through";
    assert_eq!(world.rule(APP, 0, "arp", &format!("{four}controller")), format!("rule.write: {most}"));
    assert_eq!(world.packet_out(&arp(1), &format!("{four}controller")), format!("packet.out: {most}"));
    assert_eq!(world.group(APP, ADD, 1, &["controller", "controller"]), "sent");
    assert_eq!(world.group(APP, MODIFY, 1, &["controller"; 5]), format!("rule.write: {most}"));
    assert_eq!(world.rule(APP, 0, "arp", "group:1,group:1,controller"), format!("rule.write: {most}"));
    assert_eq!(world.rule(APP, 0, "arp", "group:1,group:1"), "sent");
    world.hear_packets(APP);
    world.host_says(arp(1));
    assert_eq!(world.heard().len(), 4);
}

/// An app that receives packets, and may cause this many a second.
fn causes(hard: u32) -> World {
    let mut world = World::with(grant(Quotas { packet_ins_caused_per_s: quota(hard), ..Quotas::default() }));
    [APP, OTHER].into_iter().for_each(|zone| world.hear_packets(zone));
    world.punt();
    world
}

#[test]
fn what_an_apps_rule_sends_up_is_its_own_and_not_the_networks() {
    let mut world = causes(100);
    world.host_says(ip());
    assert_eq!(world.heard(), [[1, 2]], "the network's");
    assert_eq!(world.rule(APP, 0, "arp", "set_field:9->arp_op,controller"), "sent");
    assert_eq!(world.rule(OTHER, 0, "ip", "goto_table:1"), "sent");
    // A table-miss entry, whose packet-ins have the reason of the kernel's rule.
    assert_eq!(world.rule_of(OTHER, 1, 0, "", "controller"), "sent");
    world.host_says(arp(1));
    assert_eq!(world.heard(), [[1]]);
    world.host_says(ip());
    assert_eq!(world.heard(), [[2]]);
    let others_too = all().with(Capability::RuleWriteOthers);
    world.kernel.attach(OTHER, "other", others_too, 0);
    world.hear_packets(OTHER);
    world.host_says(arp(1));
    assert_eq!(world.heard(), [[1, 2]]);
    world.kernel.detach(APP);
    world.host_says(arp(1));
    assert_eq!(world.heard(), [[2]]);
}

#[test]
fn what_a_packet_out_sends_up_is_its_senders() {
    let mut world = causes(3);
    assert_eq!(world.packet_out(&arp(2), "controller"), "sent");
    assert_eq!(world.heard(), [[1]]);
    assert_eq!(world.packet_out(&arp(2), "controller,controller"), "sent");
    assert_eq!(world.heard(), [[1], [1]]);
    assert_eq!(world.packet_out(&arp(2), "controller"), beyond("packet_ins_caused_per_s", 3));
    assert_eq!(world.packet_out(&arp(2), "output:TABLE"), beyond("packet_ins_caused_per_s", 3));
    assert_eq!(world.packet_out(&arp(2), "output:2"), "sent");
}

#[test]
fn who_causes_too_many_packet_ins_loses_its_own() {
    let mut world = causes(10);
    let limits = kernel::PuntLimits { per_switch_per_s: Some(8), per_port_per_s: Some(8) };
    world.kernel.limit_punts(limits);
    assert_eq!(world.rule(APP, 0, "arp", "controller,controller"), "sent");
    (0..50).for_each(|_| world.host_says(arp(1)));
    world.wanted.clear();
    let heard = world.heard();
    assert_eq!(heard.iter().filter(|who| **who == [1]).count(), 10);
    assert_eq!(heard.iter().filter(|who| who.is_empty()).count(), 90);
    let (zone, kind, hard) = (APP, QuotaKind::PacketInsCausedPerS, 10);
    let dropped = Effect::RefusedByQuota { zone, kind, hard };
    assert_eq!(world.wanted.iter().filter(|effect| **effect == dropped).count(), 90);
    assert_eq!(world.kernel.zone(APP).unwrap().counters.caused_dropped, 90);
    // Other apps get no fewer packets because of it.
    (0..6).for_each(|_| world.host_says(ip()));
    assert!(world.heard().iter().all(|who| *who == [1, 2]));
    world.now_ms = 100;
    world.host_says(arp(1));
    assert_eq!(world.heard(), [vec![1], vec![]]);
}

#[test]
fn an_app_of_which_nobody_says_a_number_may_cause_ten_thousand_packet_ins() {
    let mut world = World::with(all());
    world.hear_packets(APP);
    assert_eq!(world.rule(APP, 0, "arp", "controller,controller,controller,controller"), "sent");
    (0..3_000).for_each(|_| world.host_says(arp(1)));
    assert_eq!(world.heard().iter().filter(|who| **who == [1]).count(), 10_000);
}

const FLOW: u16 = 1;
const TABLE: u16 = 3;

fn asks(world: &mut World, multipart: u16) -> String {
    world.ask(APP, What::StatsRequest(StatsRequest { multipart, body: &[] }))
}

/// The switch answers with this many bytes, in parts.
fn answers(world: &mut World, multipart: u16, bytes: usize) {
    const PART: usize = 32 << 10;
    let parts = bytes.div_ceil(PART);
    for part in 0..parts {
        let body = vec![0; PART.min(bytes - part * PART)];
        let more = part + 1 < parts;
        let reply = StatsReply { datapath: SWITCH, ticket: 7, multipart, more, body: &body };
        let mut frame = Vec::new();
        event::write::stats_reply(&mut frame, 3, &reply);
        assert!(Frame::read(&frame).is_ok());
        world.kernel.charge_answer(APP, &frame, world.now_ms);
    }
}

#[test]
fn statistics_count_what_they_cost() {
    let world = || World::with(grant(Quotas { stats_per_s: quota(1_100), ..Quotas::default() }));
    let count =
        |world: &mut World, multipart| (0..10_000).take_while(|_| asks(world, multipart) == "sent").count();
    assert_eq!(count(&mut world(), TABLE), 1_100);
    assert_eq!(count(&mut world(), FLOW), 1_100 / 16);
    let mut long = world();
    assert_eq!(asks(&mut long, FLOW), "sent");
    answers(&mut long, FLOW, 500 << 10);
    // The excess over the expected length was charged. The next answer is expected to be as long.
    assert_eq!(asks(&mut long, TABLE), "sent");
    assert_eq!(count(&mut long, FLOW), 1);
    let mut table = world();
    assert_eq!(asks(&mut table, TABLE), "sent");
    answers(&mut table, TABLE, 1_000 << 10);
    assert!(count(&mut table, TABLE) < 100);
    assert_eq!(asks(&mut table, TABLE), beyond("stats_per_s", 1_100));
    table.now_ms = 1_000;
    assert_eq!(asks(&mut table, TABLE), "sent");
}

#[test]
fn a_quota_is_the_nodes_however_many_workers_it_has() {
    let quotas = Quotas { commands_per_s: quota(1_000), packet_outs_per_s: quota(100), ..Quotas::default() };
    let rates = NodeRates::new(&quotas, 0);
    let mut workers: Vec<World> = (0..4).map(|_| World::with(all())).collect();
    for world in &mut workers {
        world.kernel.attach_sharing(APP, "app", grant(quotas.clone()), &rates, 0);
    }
    let mut sent = |now_ms: u64| {
        let mut passed = 0;
        for _ in 0..100 {
            for world in &mut workers {
                world.now_ms = now_ms;
                passed += usize::from(world.packet_out(&arp(1), "output:2") == "sent");
            }
        }
        passed
    };
    assert_eq!((sent(0), sent(0), sent(1_000)), (100, 0, 100));
}

#[test]
fn workers_that_take_at_once_take_no_more_than_there_is() {
    let node = Arc::new(NodeRate::new(Quota { soft: 100_000, hard: 100_000 }, 0));
    let passed: usize = std::thread::scope(|scope| {
        let worker = || {
            let mut rate = Rate::of_node(node.clone());
            scope.spawn(move || (0..60_000).filter(|_| rate.take(1, 0) == Use::Fine).count())
        };
        let workers: Vec<_> = (0..4).map(|_| worker()).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(passed, 100_000);
}

#[test]
fn a_command_that_its_switchs_worker_cannot_take_counts_against_the_quota() {
    let quotas = Quotas { commands_per_s: quota(10), ..Quotas::default() };
    let rates = NodeRates::new(&quotas, 0);
    let mut here = World::with(all());
    here.kernel.attach_sharing(APP, "app", grant(quotas.clone()), &rates, 0);
    let mut elsewhere = Kernel::new(7);
    elsewhere.attach_sharing(APP, "app", grant(quotas), &rates, 0);
    for _ in 0..5 {
        assert_eq!(elsewhere.on_undelivered(APP, 0, &mut Vec::new()), Ok(()));
        assert_eq!(here.ask(APP, What::Barrier), "sent");
    }
    assert_eq!(here.ask(APP, What::Barrier), beyond("commands_per_s", 10));
    assert!(matches!(elsewhere.on_undelivered(APP, 0, &mut Vec::new()), Err(kernel::Refusal::Quota { .. })));
}

fn any_actions() -> impl Strategy<Value = String> {
    let one = prop::sample::select(vec![
        "output:2",
        "output:3",
        "in_port",
        "flood",
        "all",
        "group:1",
        "group:2",
        "group:3",
        "output:TABLE",
        "set_field:9->arp_op",
        "output:1",
        "controller",
    ]);
    prop::collection::vec(one, 1..6).prop_map(|actions| actions.join(","))
}

proptest! {
    /// With any groups and rules, a switch sends no more packets and packet-ins than were charged.
    #[test]
    fn no_more_leaves_a_switch_than_is_charged(
        groups in prop::collection::vec((1..4u32, prop::collection::vec(any_actions(), 0..4)), 0..6),
        rules in prop::collection::vec((0..3u8, any_actions(), any::<bool>()), 0..4),
        sent in any_actions(),
    ) {
        let mut world = packets(10_000);
        for (group_id, buckets) in &groups {
            let buckets: Vec<&str> = buckets.iter().map(String::as_str).collect();
            if world.group(APP, ADD, *group_id, &buckets) != "sent" {
                world.group(APP, MODIFY, *group_id, &buckets);
            }
        }
        for (table_id, actions, goes_on) in &rules {
            let actions = actions.replace("output:TABLE", "output:4");
            let next = if *goes_on { format!(",goto_table:{}", table_id + 1) } else { String::new() };
            world.rule(OTHER, *table_id, "arp", &actions.replace("group", "output").clone());
            world.rule(APP, *table_id, "arp", &format!("{actions}{next}"));
        }
        world.effects.messages.clear();
        world.left();
        if world.packet_out(&arp(1), &sent) == "sent" {
            let left = world.left().len() + world.heard().len();
            let rest = (0..20_000).take_while(|_| world.asks_packet_out(60, "output:2") == "sent").count();
            prop_assert!(left <= 10_000 - rest, "{left} left and {} were charged", 10_000 - rest);
        }
    }
}
