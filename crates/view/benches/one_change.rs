//! What one change costs in small and in large tables: a host moves, a link fails, a rule's state changes.
//!
//! In: tables with 1,000 and with 100,000 hosts, with 10,000 and with 1,000,000 rules. Out: the time of one change, with a snapshot that a
//! reader holds. The times of small and large tables should be alike.

#![allow(clippy::unwrap_used, reason = "a bench ends where something is not as it should be")]

#[path = "../examples/network/mod.rs"]
mod network;

use criterion::{Criterion, criterion_group, criterion_main};
use network::{Network, at};
use std::hint::black_box;
use view::Object;

fn one_change(bench: &mut Criterion) {
    for hosts in [1_000, 100_000] {
        let mut network = Network::with_hosts(hosts);
        let mut number = 0;
        bench.bench_function(&format!("a host moves, of {hosts}"), |bench| {
            bench.iter(|| {
                number = (number + 7_919) % hosts;
                let moved = network.host(number, at(number % 199, 9));
                let held = network.tables.snapshot();
                black_box((network.apply([moved]), held))
            });
        });
    }
    for rules in [10_000, 1_000_000] {
        let mut network = Network::with_rules(rules);
        let mut number = 0;
        bench.bench_function(&format!("a rule changes, of {rules}"), |bench| {
            bench.iter(|| {
                number = (number + 7_919) % rules;
                let Object::Rule(mut rule) = network.rule(number) else { return };
                rule.priority = rule.priority.wrapping_add(1);
                let held = network.tables.snapshot();
                black_box((network.apply([rule.into()]), held));
            });
        });
    }
}

criterion_group!(benches, one_change);
criterion_main!(benches);
