//! Switches that play profiles: what they answer, when, and what packets meet meanwhile.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use flow::{Action, DatapathId, Field, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use profile::{
    BarrierKind, Capacity, Hardware, MessageType, PacketInRate, Profile, Quantiles, Software, SoftwareUse,
    Victim, WhenFull, built_in,
};
use software_switch::{ControllerId, Effects, Profiles, Switch, SwitchOptions};
use std::time::Duration;

const C0: ControllerId = ControllerId(0);
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// A switch, its clock, and everything that came out of it and when.
struct Bench {
    switch: Switch,
    now: Duration,
    version: Version,
    messages: Vec<(Duration, Body)>,
    frames: Vec<(Duration, PortNo)>,
}

impl Bench {
    fn new(profile: Profile, version: Version) -> Self {
        Bench::with(
            SwitchOptions { profiles: Profiles::for_all(profile), ..SwitchOptions::default() },
            version,
        )
    }

    fn with(options: SwitchOptions, version: Version) -> Self {
        let mut switch = Switch::new(DatapathId(1), "s1", options);
        let mut effects = Effects::default();
        (1..=2).for_each(|port| switch.add_port(PortNo(port), Duration::ZERO, &mut effects));
        connect(&mut switch, version, Duration::ZERO);
        Bench { switch, now: Duration::ZERO, version, messages: Vec::new(), frames: Vec::new() }
    }

    /// Lets time pass, event by event.
    fn pass_to(&mut self, until: Duration) {
        while let Some(due) = self.switch.next_due().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            let mut effects = Effects::default();
            self.switch.on_tick(self.now, &mut effects);
            self.take(effects);
        }
        self.now = self.now.max(until);
    }

    fn take(&mut self, effects: Effects) {
        self.messages.extend(effects.messages.into_iter().map(|(_, message)| (self.now, message.body)));
        self.frames.extend(effects.frames.into_iter().map(|(port, _)| (self.now, port)));
    }

    fn say(&mut self, body: Body) {
        let mut effects = Effects::default();
        let message = Message { version: self.version, xid: 42, body };
        self.switch.on_message(C0, &message, self.now, &mut effects);
        self.take(effects);
    }

    fn arrive(&mut self, number: u32) {
        let mut effects = Effects::default();
        self.switch.on_frame(PortNo(1), frame(number), self.now, &mut effects);
        self.take(effects);
    }

    fn errors(&self) -> Vec<(u16, u16)> {
        let code = |(_, body): &(Duration, Body)| match body {
            Body::Error(error) => Some((error.kind, error.code)),
            _ => None,
        };
        self.messages.iter().filter_map(code).collect()
    }

    fn packet_ins(&self) -> Vec<(Duration, PacketIn)> {
        let packet_in = |(at, body): &'_ (Duration, Body)| match body {
            Body::PacketIn(packet_in) => Some((*at, packet_in.clone())),
            _ => None,
        };
        self.messages.iter().filter_map(packet_in).collect()
    }
}

/// A packet of 1,500 bytes to the address with this number.
fn frame(number: u32) -> Vec<u8> {
    let mut frame = vec![0; 1500];
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    frame[30..34].copy_from_slice(&number.to_be_bytes());
    frame
}

fn connect(switch: &mut Switch, version: Version, now: Duration) {
    let mut effects = Effects::default();
    switch.on_connected(C0, &mut effects);
    let hello = Message { version, xid: 0, body: Body::Hello(Hello::default()) };
    switch.on_message(C0, &hello, now, &mut effects);
}

fn add(number: u32) -> FlowMod {
    let matching = Match::any().with(Field::EthType, 0x800u16).with(Field::Ipv4Dst, number);
    let instructions = vec![Instruction::ApplyActions(vec![Action::output(PortNo(2))])];
    FlowModFields { priority: 5, ..FlowModFields::default() }.with(matching, instructions)
}

/// A CPU that takes a millisecond for each message, and 20 for a packet that leaves.
fn slow() -> Profile {
    let mut profile = Profile::null();
    for kind in MessageType::ALL {
        profile.cpu.service_mut(kind).service_us = Quantiles::constant(1000.0);
    }
    profile.delay.egress_us = Quantiles::constant(20_000.0);
    profile.packet_in.buffers_packets = Some(10);
    profile
}

#[test]
fn a_packet_in_takes_its_time_and_the_buffered_packet_leaves_after_its_flow_mod() {
    let mut bench = Bench::new(slow(), Version::V1_0);
    bench.arrive(7);
    assert!(bench.packet_ins().is_empty());
    bench.pass_to(100 * MS);
    let (at, packet_in) = bench.packet_ins().remove(0);
    assert_eq!((at, packet_in.data.len()), (MS, 128));
    let wanted = FlowMod { buffer_id: packet_in.buffer_id, ..add(7) };
    bench.say(Body::FlowMod(wanted));
    bench.pass_to(SECOND);
    assert_eq!(bench.frames, [(121 * MS, PortNo(2))]);
    assert_eq!(bench.switch.flow_count(), 1);
}

#[test]
fn the_monaco_refuses_the_512th_rule() {
    let mut bench = Bench::new(built_in("fulcrum-monaco").unwrap(), Version::V1_0);
    (0..512).for_each(|number| bench.say(Body::FlowMod(add(number))));
    bench.pass_to(60 * SECOND);
    assert_eq!((bench.errors().len(), bench.switch.flow_count()), (1, 511));
    assert_eq!(bench.errors(), [(3, 0)], "OFPFMFC_ALL_TABLES_FULL");
    let deleted = FlowMod { command: FLOW_DELETE, table_id: TABLE_ALL, out_port: PortNo::ANY, ..add(0) };
    bench.say(Body::FlowMod(FlowMod { matching: Match::any(), ..deleted }));
    bench.say(Body::FlowMod(add(1000)));
    bench.pass_to(120 * SECOND);
    assert_eq!((bench.errors().len(), bench.switch.flow_count()), (1, 1));
}

#[test]
fn packets_do_not_meet_a_rule_before_the_data_plane_has_it() {
    let mut profile = slow();
    profile.barrier.kind = BarrierKind::Early(Quantiles::constant(250_000.0));
    let mut bench = Bench::new(profile, Version::V1_0);
    bench.say(Body::FlowMod(add(7)));
    bench.say(Body::BarrierRequest);
    bench.pass_to(100 * MS);
    assert_eq!(bench.messages, [(2 * MS, Body::BarrierReply)]);
    bench.arrive(7);
    bench.pass_to(200 * MS);
    assert_eq!((bench.packet_ins().len(), bench.frames.len()), (1, 0), "the barrier was too early");
    bench.pass_to(252 * MS);
    bench.arrive(7);
    assert_eq!((bench.packet_ins().len(), bench.frames.len()), (1, 1));
    bench.say(Body::FlowMod(FlowMod { command: FLOW_DELETE, out_port: PortNo::ANY, ..add(7) }));
    bench.pass_to(400 * MS);
    bench.arrive(7);
    assert_eq!((bench.switch.flow_count(), bench.frames.len()), (0, 2), "it is still there for packets");
    bench.pass_to(SECOND);
    bench.arrive(7);
    assert_eq!(bench.frames.len(), 2);
}

#[test]
fn statistics_count_what_the_data_plane_counts() {
    let mut bench = Bench::new(slow(), Version::V1_0);
    bench.say(Body::FlowMod(add(7)));
    bench.pass_to(SECOND);
    (0..5).for_each(|_| bench.arrive(7));
    let request = FlowStatsRequest::default();
    let body = RequestBody::Aggregate(request);
    bench.say(Body::MultipartRequest(MultipartRequest { flags: 0, body }));
    bench.pass_to(2 * SECOND);
    let Some((_, Body::MultipartReply(MultipartReply { body: ReplyBody::Aggregate(sum), .. }))) =
        bench.messages.last()
    else {
        panic!("{:?}", bench.messages)
    };
    assert_eq!((sum.flow_count, sum.packet_count, sum.byte_count), (1, 5, 7500));
}

#[test]
fn rules_in_software_forward_a_few_megabits_and_those_in_hardware_all() {
    let mut profile = built_in("hp-procurve-j9451a").unwrap();
    profile.software.as_mut().unwrap().promotion = None;
    let mut bench = Bench::new(profile, Version::V1_0);
    (0..40).for_each(|number| bench.say(Body::FlowMod(add(number))));
    bench.pass_to(10 * SECOND);
    let forwarded = |bench: &mut Bench, number: u32| {
        let before = bench.frames.len();
        let start = bench.now;
        for packet in 0..1000 {
            bench.pass_to(start + packet * MS);
            bench.arrive(number);
        }
        bench.pass_to(start + 2 * SECOND);
        bench.frames.len() - before
    };
    assert_eq!(forwarded(&mut bench, 0), 1000);
    let slow = forwarded(&mut bench, 39);
    // 3 Mb/s are 250 packets of 1500 bytes, and a tenth of a second of queue.
    assert!((250..=277).contains(&slow), "{slow} of 1000");
}

#[test]
fn time_outs_end_at_scans_and_say_so() {
    let mut profile = slow();
    profile.timeouts.scan_period_us = 5e6;
    let mut bench = Bench::new(profile, Version::V1_3);
    for (number, idle_timeout_s, hard_timeout_s) in [(1, 2, 0), (2, 0, 7), (3, 2, 0)] {
        let flags = FLOW_MOD_SEND_FLOW_REMOVED;
        bench.say(Body::FlowMod(FlowMod { idle_timeout_s, hard_timeout_s, flags, ..add(number) }));
    }
    for second in 1..12u32 {
        bench.pass_to(second * SECOND);
        bench.arrive(3);
    }
    bench.pass_to(30 * SECOND);
    let removed: Vec<(Duration, u8, u64)> = bench
        .messages
        .iter()
        .filter_map(|(at, body)| match body {
            Body::FlowRemoved(removed) => Some((*at, removed.reason, removed.packet_count)),
            _ => None,
        })
        .collect();
    let [first, second, third] = removed.as_slice() else { panic!("{removed:?}") };
    assert_eq!((first.1, second.1, third.1), (0, 1, 0));
    assert_eq!(third.2, 11, "the packets that it forwarded");
    let since_first = |at: Duration| (at - first.0).as_nanos() % (5 * SECOND).as_nanos();
    assert_eq!((since_first(second.0), since_first(third.0)), (0, 0), "scans are 5 s apart");
    assert!(
        third.0 >= 13 * SECOND && third.0 < 18 * SECOND,
        "two seconds after its last packet, and up to a scan"
    );
    assert_eq!(bench.switch.flow_count(), 0);
}

#[test]
fn a_modify_of_no_rule_takes_a_place_in_the_table() {
    let mut profile = slow();
    profile.hardware = Some(Hardware { capacities: vec![Capacity::any(2)], ..Hardware::default() });
    let mut bench = Bench::new(profile, Version::V1_0);
    (0..3)
        .for_each(|number| bench.say(Body::FlowMod(FlowMod { command: FLOW_MODIFY_STRICT, ..add(number) })));
    bench.pass_to(SECOND);
    assert_eq!((bench.errors(), bench.switch.flow_count()), (vec![(3, 0)], 2));
}

#[test]
fn an_add_that_the_switch_refuses_takes_no_place() {
    let mut profile = slow();
    profile.hardware = Some(Hardware { capacities: vec![Capacity::any(2)], ..Hardware::default() });
    let mut bench = Bench::new(profile, Version::V1_3);
    let to_nowhere = Instruction::ApplyActions(vec![Action::Group(99)]);
    (0..5).for_each(|number| {
        bench.say(Body::FlowMod(FlowMod { instructions: vec![to_nowhere.clone()], ..add(number) }))
    });
    bench.say(Body::FlowMod(FlowMod { table_id: 200, ..add(1) }));
    (0..3).for_each(|number| bench.say(Body::FlowMod(add(number))));
    bench.pass_to(SECOND);
    assert_eq!((bench.errors().len(), bench.switch.flow_count()), (7, 2));
    assert_eq!(bench.errors()[6], (5, 1), "the last: the table is full");
}

#[test]
fn a_switch_whose_queue_is_full_loses_packet_ins_and_frees_their_buffers() {
    let mut profile = slow();
    profile.cpu.queue_messages = Some(3);
    let mut bench = Bench::new(profile, Version::V1_0);
    (0..20).for_each(|number| bench.arrive(number));
    bench.pass_to(SECOND);
    assert_eq!(bench.packet_ins().len(), 4, "one in service and three in the queue");
    assert_eq!(bench.switch.counters().packet_ins_unheard, 16);
    (0..4).for_each(|number| bench.arrive(number));
    bench.pass_to(2 * SECOND);
    assert!(bench.packet_ins()[4..].iter().all(|(_, packet_in)| packet_in.buffer_id != NO_BUFFER));
}

fn to_controller() -> Vec<Instruction> {
    let action = Action::Output { port: PortNo::CONTROLLER, max_len: 128 };
    vec![Instruction::ApplyActions(vec![action])]
}

/// The rule by which a switch of 1.3 sends packets of no rule to the controller.
fn table_miss() -> FlowMod {
    FlowModFields { priority: 0, ..FlowModFields::default() }.with(Match::any(), to_controller())
}

/// Two entries, of which the oldest makes place.
fn evicting() -> Profile {
    let mut profile = slow();
    let (capacities, evict) = (vec![Capacity::any(2)], vec![Victim::Oldest]);
    let hardware = Hardware { capacities, when_full: WhenFull::Evict, evict, ..Hardware::default() };
    profile.hardware = Some(hardware);
    profile
}

#[test]
fn an_add_that_the_switch_refuses_changes_nothing_of_the_others() {
    let mut bench = Bench::new(evicting(), Version::V1_3);
    let with_time_out = |number| FlowMod { hard_timeout_s: 60, ..add(number) };
    (0..2).for_each(|number| bench.say(Body::FlowMod(with_time_out(number))));
    let to_nowhere = vec![Instruction::ApplyActions(vec![Action::Group(99)])];
    // The first has a rule already, whose time-out must stay.
    for wanted in [FlowMod { hard_timeout_s: 1, ..add(0) }, add(2)] {
        bench.say(Body::FlowMod(FlowMod { instructions: to_nowhere.clone(), ..wanted }));
    }
    let any = Match::any();
    let flags = FLOW_MOD_CHECK_OVERLAP;
    bench.say(Body::FlowMod(FlowMod { flags, ..FlowMod { matching: any, ..add(0) } }));
    bench.pass_to(30 * SECOND);
    assert_eq!((bench.errors().len(), bench.switch.flow_count()), (3, 2));
    (0..2).for_each(|number| bench.arrive(number));
    assert_eq!(bench.frames.len(), 2, "packets meet both rules");
    bench.say(Body::FlowMod(add(3)));
    bench.pass_to(40 * SECOND);
    assert_eq!((bench.errors().len(), bench.switch.flow_count()), (3, 2), "one made place");
    bench.arrive(0);
    assert_eq!(bench.frames.len(), 2, "the oldest");
}

#[test]
fn a_modify_of_no_rule_that_is_refused_evicts_nothing() {
    let mut bench = Bench::new(evicting(), Version::V1_0);
    (0..2).for_each(|number| bench.say(Body::FlowMod(add(number))));
    let flags = FLOW_MOD_CHECK_OVERLAP;
    let modify = FlowMod { command: FLOW_MODIFY_STRICT, flags, ..add(2) };
    bench.say(Body::FlowMod(FlowMod { matching: Match::any(), ..modify }));
    bench.pass_to(SECOND);
    assert_eq!((bench.errors().len(), bench.switch.flow_count()), (1, 2));
    (0..2).for_each(|number| bench.arrive(number));
    assert_eq!(bench.frames.len(), 2);
}

#[test]
fn table_statistics_have_the_size_that_the_profile_says() {
    let mut profile = built_in("ibm-g8264").unwrap();
    profile.switch.openflow.clear();
    let mut bench = Bench::new(profile, Version::V1_0);
    let sizes = |bench: &Bench| match bench.messages.last() {
        Some((_, Body::MultipartReply(MultipartReply { body: ReplyBody::Table(tables), .. }))) => {
            tables.iter().map(|table| table.max_entries).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    bench.say(Body::MultipartRequest(MultipartRequest { flags: 0, body: RequestBody::Table }));
    bench.pass_to(60 * SECOND);
    assert_eq!(sizes(&bench), [123_904]);
    let mut bench = Bench::new(Profile::null(), Version::V1_0);
    bench.say(Body::MultipartRequest(MultipartRequest { flags: 0, body: RequestBody::Table }));
    assert_eq!(sizes(&bench), [65_536], "as without a profile");
}

#[test]
fn a_table_whose_end_is_not_known_takes_more_rules_than_the_probe_did() {
    let of_two = |at_least| vec![Capacity { at_least, ..Capacity::any(2) }];
    let only = Software { when: SoftwareUse::Only, entries: Some(2), ..Software::default() };
    let in_hardware = |at_least| Profile {
        hardware: Some(Hardware { capacities: of_two(at_least), ..Hardware::default() }),
        ..Profile::null()
    };
    let in_software =
        |at_least| Profile { software: Some(Software { at_least, ..only.clone() }), ..Profile::null() };
    for (profile, expected) in
        [(in_hardware(false), 2), (in_hardware(true), 9), (in_software(false), 2), (in_software(true), 9)]
    {
        // Without a profile, this switch would have three.
        let profiles = Profiles::for_all(profile);
        let mut bench = Bench::with(
            SwitchOptions { profiles, max_entries: 3, ..SwitchOptions::default() },
            Version::V1_0,
        );
        (0..9).for_each(|number| bench.say(Body::FlowMod(add(number))));
        bench.pass_to(SECOND);
        assert_eq!((bench.switch.flow_count(), bench.errors().len()), (expected, 9 - expected));
    }
}

/// All rules are in software, which forwards ten packets a second.
fn only_software() -> Profile {
    let mut profile = slow();
    let forward_packets_per_s = Some(10.0);
    profile.software =
        Some(Software { when: SoftwareUse::Only, forward_packets_per_s, ..Software::default() });
    profile.delay.egress_us = Quantiles::constant(0.0);
    profile
}

#[test]
fn packets_that_flow_mods_release_share_the_rate_of_the_software_path() {
    for version in [Version::V1_0, Version::V1_3] {
        let mut bench = Bench::new(only_software(), version);
        if version == Version::V1_3 {
            bench.say(Body::FlowMod(table_miss()));
        }
        bench.pass_to(SECOND);
        bench.arrive(7);
        bench.pass_to(1500 * MS);
        let (_, packet_in) = bench.packet_ins().remove(0);
        assert_ne!(packet_in.buffer_id, NO_BUFFER);
        bench.say(Body::FlowMod(FlowMod { buffer_id: packet_in.buffer_id, ..add(7) }));
        bench.pass_to(1501 * MS);
        bench.arrive(7);
        bench.pass_to(4 * SECOND);
        let left: Vec<Duration> = bench.frames.iter().map(|(at, _)| *at).collect();
        assert_eq!(left, [1601 * MS, 1701 * MS], "{version:?}");
    }
}

#[test]
fn a_released_packet_for_the_controller_takes_time_of_the_cpu_and_has_a_limit() {
    let mut profile = slow();
    profile.packet_in.limit = Some(PacketInRate { rate_per_s: 0.01, burst_packets: 1 });
    profile.delay.egress_us = Quantiles::constant(0.0);
    for limited in [false, true] {
        profile.packet_in.limit = profile.packet_in.limit.filter(|_| limited);
        let mut bench = Bench::new(profile.clone(), Version::V1_0);
        bench.arrive(7);
        bench.pass_to(SECOND / 2);
        let (_, packet_in) = bench.packet_ins().remove(0);
        let instructions = to_controller();
        bench.say(Body::FlowMod(FlowMod { buffer_id: packet_in.buffer_id, instructions, ..add(7) }));
        bench.pass_to(2 * SECOND);
        let at: Vec<Duration> = bench.packet_ins().iter().map(|(at, _)| *at).collect();
        let expected = if limited { vec![MS] } else { vec![MS, 502 * MS] };
        assert_eq!(at, expected, "the flow mod and the packet-in take a millisecond each");
        profile.packet_in.limit = Some(PacketInRate { rate_per_s: 0.01, burst_packets: 1 });
    }
}

#[test]
fn a_released_packet_counts_for_its_rule() {
    let mut bench = Bench::new(slow(), Version::V1_3);
    bench.say(Body::FlowMod(table_miss()));
    bench.pass_to(SECOND);
    bench.arrive(7);
    bench.pass_to(1500 * MS);
    let (_, packet_in) = bench.packet_ins().remove(0);
    let (buffer_id, flags, idle_timeout_s) = (packet_in.buffer_id, FLOW_MOD_SEND_FLOW_REMOVED, 2);
    bench.say(Body::FlowMod(FlowMod { buffer_id, flags, idle_timeout_s, ..add(7) }));
    bench.pass_to(20 * SECOND);
    let removed = bench.messages.iter().find_map(|(at, body)| match body {
        Body::FlowRemoved(removed) => Some((*at, removed.packet_count)),
        _ => None,
    });
    assert_eq!(removed, Some((3521 * MS, 1)), "two seconds after the packet");
}

#[test]
fn what_a_controller_said_before_it_reconnected_is_gone() {
    let mut bench = Bench::new(slow(), Version::V1_0);
    (0..100).for_each(|number| bench.say(Body::FlowMod(add(number))));
    bench.say(Body::EchoRequest(b"old".to_vec()));
    bench.arrive(200);
    bench.pass_to(10 * MS + MS / 2);
    let before = bench.messages.len();
    bench.switch.on_disconnected(C0);
    connect(&mut bench.switch, Version::V1_0, bench.now);
    bench.say(Body::EchoRequest(b"new".to_vec()));
    bench.pass_to(SECOND);
    // The CPU had begun with a flow mod. Then come the packet, whose receiver is gone, and the new request.
    let answers = &bench.messages[before..];
    assert_eq!(answers, [(13 * MS, Body::EchoReply(b"new".to_vec()))]);
    assert_eq!(bench.switch.flow_count(), 10);
    bench.arrive(201);
    bench.pass_to(2 * SECOND);
    assert_eq!(bench.packet_ins().len(), 1, "the new connection receives packet-ins");
}

#[test]
fn a_switch_that_is_far_behind_does_not_read() {
    let mut bench = Bench::new(slow(), Version::V1_0);
    let mut said = 0;
    while bench.switch.takes_messages() {
        bench.say(Body::EchoRequest(Vec::new()));
        said += 1;
        assert!(said < 100_000);
    }
    assert_eq!(said, 16_384);
    bench.pass_to(MS);
    assert!(bench.switch.takes_messages());
    bench.pass_to(20 * SECOND);
    assert_eq!((bench.messages.len(), bench.switch.counters().messages_lost), (said, 0));
}

#[test]
fn packet_ins_above_the_memory_are_lost_and_counted_and_leave_room_for_messages() {
    let mut profile = slow();
    profile.packet_in.buffers_packets = Some(0);
    let mut bench = Bench::new(profile, Version::V1_0);
    (0..50_000).for_each(|number| bench.arrive(number));
    let lost = usize::try_from(bench.switch.counters().packet_ins_unheard).unwrap();
    assert!((10_000..25_000).contains(&lost), "{lost} of 50,000 packets of 1,500 bytes are above 64 MiB");
    assert!(bench.switch.takes_messages(), "packets do not keep a controller from being read");
    let large = |bench: &mut Bench| {
        let (buffer_id, in_port, actions, data) = (NO_BUFFER, PortNo(1), Vec::new(), vec![0; 60_000]);
        bench.say(Body::PacketOut(PacketOut { buffer_id, in_port, actions, data }));
    };
    while bench.switch.takes_messages() {
        large(&mut bench);
    }
    assert_eq!(bench.switch.counters().messages_lost, 0);
    (0..2_000).for_each(|_| large(&mut bench));
    assert!(bench.switch.counters().messages_lost > 500, "a caller that does not ask loses messages");
    bench.pass_to(100 * SECOND);
    assert_eq!(bench.packet_ins().len() + lost, 50_000);
    assert!(bench.switch.takes_messages());
}

#[test]
fn the_null_profile_buffers_packets_as_long_as_a_switch_without_a_profile() {
    let mut bench = Bench::new(Profile::null(), Version::V1_0);
    (0..257).for_each(|number| bench.arrive(number));
    let ids: Vec<u32> = bench.packet_ins().iter().map(|(_, packet_in)| packet_in.buffer_id).collect();
    assert_eq!(ids.iter().filter(|id| **id == NO_BUFFER).count(), 1, "256 buffers");
    bench.pass_to(60 * SECOND);
    bench.say(Body::FlowMod(FlowMod { buffer_id: ids[0], ..add(0) }));
    assert_eq!((bench.errors().len(), bench.frames.len()), (0, 1));
}
