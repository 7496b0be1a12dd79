//! Switches that play profiles: what they answer, when, and what packets meet meanwhile.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use flow::{Action, DatapathId, Field, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use profile::{BarrierKind, Capacity, Hardware, MessageType, Profile, Quantiles, built_in};
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
        let options = SwitchOptions { profiles: Profiles::for_all(profile), ..SwitchOptions::default() };
        let mut switch = Switch::new(DatapathId(1), "s1", options);
        let mut effects = Effects::default();
        (1..=2).for_each(|port| switch.add_port(PortNo(port), Duration::ZERO, &mut effects));
        switch.on_connected(C0, &mut effects);
        let hello = Message { version, xid: 0, body: Body::Hello(Hello::default()) };
        switch.on_message(C0, &hello, Duration::ZERO, &mut effects);
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
        let mut frame = vec![0; 1500];
        frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        frame[30..34].copy_from_slice(&number.to_be_bytes());
        let mut effects = Effects::default();
        self.switch.on_frame(PortNo(1), frame, self.now, &mut effects);
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
    profile.packet_in.buffers_packets = 10;
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
    let request = FlowStatsRequest {
        table_id: TABLE_ALL,
        out_port: PortNo::ANY,
        out_group: GROUP_ANY,
        cookie: 0,
        cookie_mask: 0,
        matching: Match::any(),
    };
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
