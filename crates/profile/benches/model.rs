//! What the model costs for each message, and for a whole flow set-up.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use profile::model::*;
use profile::*;
use std::hint::black_box;

/// Passes one message through the model, and carries out what comes.
fn pass(model: &mut Model, now_ns: u64, input: Input, out: &mut Vec<Output>) {
    model.on_input(now_ns, input, out);
    while model.next_due_ns().is_some_and(|due| due <= now_ns) {
        model.on_time(now_ns, out);
    }
    black_box(&out);
    out.clear();
}

fn miss(id: MessageId, arrived_ns: u64) -> Input {
    Input::Miss(Miss { id, arrived_ns, length_bytes: 100, wanted_bytes: None, may_be_buffered: true })
}

/// Each message comes when the one before has left.
fn one_message(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("model");
    group.throughput(Throughput::Elements(1));
    let delay =
        Quantiles::new(&(0..=200).map(|q| (f64::from(q) / 200.0, f64::from(q * q))).collect::<Vec<_>>());
    let mut measured = Profile::null();
    measured.delay.ingress_us = delay.expect("rising");
    measured.cpu.packet_in.service_us = Quantiles::constant(20.0);
    for (name, profile) in [("null", Profile::null()), ("measured", measured)] {
        let (mut model, mut out, mut now) = (Model::new(&profile, 1), Vec::new(), 0);
        group.bench_function(format!("{name}_packet_in"), |bench| {
            bench.iter(|| {
                now += 50_000;
                pass(&mut model, now, miss(MessageId(now), now), &mut out);
            });
        });
    }
    let (mut model, mut out, mut now) = (Model::new(&Profile::null(), 1), Vec::new(), 0);
    group.bench_function("null_packet_out", |bench| {
        bench.iter(|| {
            now += 50_000;
            let message = Message::new(MessageId(now), MessageType::PacketOut);
            pass(&mut model, now, Input::Message(message), &mut out);
        });
    });
    group.finish();
}

/// An add, and the delete of a rule that was added 500 rules ago, in a hardware table.
fn rules(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("model");
    group.throughput(Throughput::Elements(2));
    let by_order = AddCost { ascending: Curve::constant(1.0), ..AddCost::default() };
    let table = |add| Hardware { capacities: vec![Capacity::any(2000)], add, ..Hardware::default() };
    let with = |hardware| Profile { hardware, ..Profile::null() };
    let profiles = [
        ("null", Profile::null()),
        ("hardware", with(Some(table(AddCost::default())))),
        ("hardware_by_order", with(Some(table(by_order)))),
    ];
    for (name, profile) in profiles {
        let (mut model, mut out, mut number) = (Model::new(&profile, 1), Vec::new(), 0u64);
        group.bench_function(format!("{name}_add_and_delete"), |bench| {
            bench.iter(|| {
                number += 1;
                let now = number * 100_000;
                let (idle_timeout_s, hard_timeout_s) = (0, 0);
                let priority = (number % 100) as u16;
                let id = RuleId(number);
                let rule = Rule { id, priority, class: Some(0), idle_timeout_s, hard_timeout_s };
                let message =
                    Message { rule: Some(rule), ..Message::new(MessageId(number), MessageType::Add) };
                pass(&mut model, now, Input::Message(message), &mut out);
                pass(&mut model, now, Input::Deleted(RuleId(number.saturating_sub(500))), &mut out);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, one_message, rules);
criterion_main!(benches);
