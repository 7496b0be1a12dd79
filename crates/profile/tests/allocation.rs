//! A model that has reached its size takes no memory for a message.

use profile::model::*;
use profile::{Capacity, Hardware, MessageType, Model, Profile, Quantiles};

/// Sets up and removes rules for some time: a packet-in, an add, a packet-out, a barrier, and a delete of the oldest rule.
fn set_up(model: &mut Model, numbers: std::ops::Range<u64>, out: &mut Vec<Output>) {
    for number in numbers {
        let now = number * 30_000_000;
        let id = MessageId(number);
        let rule =
            Rule { id: RuleId(number), priority: 1, class: Some(0), idle_timeout_s: 5, hard_timeout_s: 9 };
        let packet = Packet::Given;
        let miss = Miss { id, arrived_ns: now, length_bytes: 100, wanted_bytes: None, may_be_buffered: true };
        let message = |kind| Message::new(id, kind);
        let inputs = [
            Input::Miss(miss),
            Input::Message(Message { rule: Some(rule), packet, ..message(MessageType::Add) }),
            Input::Message(message(MessageType::PacketOut)),
            Input::Message(message(MessageType::Barrier)),
            Input::Deleted(RuleId(number.saturating_sub(50))),
        ];
        for input in inputs {
            pass_to(model, now, out);
            model.on_input(now, input, out);
        }
    }
}

fn pass_to(model: &mut Model, now: u64, out: &mut Vec<Output>) {
    while let Some(due) = model.next_due_ns().filter(|due| *due <= now) {
        model.on_time(due, out);
        out.clear();
    }
}

#[test]
fn a_message_costs_no_allocation() {
    let mut profile = Profile::null();
    let service = Quantiles::new(&[(0.0, 100.0), (0.5, 900.0), (1.0, 20_000.0)]).expect("rising");
    for kind in MessageType::ALL {
        profile.cpu.service_mut(kind).service_us = service.clone();
    }
    profile.delay.ingress_us = service.clone();
    profile.delay.egress_us = service;
    profile.packet_in.buffers_packets = Some(20);
    profile.hardware = Some(Hardware { capacities: vec![Capacity::any(1000)], ..Hardware::default() });
    for profile in [Profile::null(), profile] {
        let mut model = Model::new(&profile, 1);
        let mut out = Vec::with_capacity(1000);
        set_up(&mut model, 0..20_000, &mut out);
        let counted = allocation_counter::measure(|| set_up(&mut model, 20_000..30_000, &mut out));
        assert_eq!(counted.count_total, 0, "{}", profile.name);
    }
}
