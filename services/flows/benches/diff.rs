//! What the engine costs without a switch: a path of six hops put, replaced and removed.
//!
//! In: nothing. Out: times. The sender counts, and every command is confirmed at once.

use burnet_sdk::Outcome;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flow::{DatapathId, ErrorCode, PortNo};
use flows::change::Put;
use flows::engine::Engine;
use flows::policy::Settings;
use flows::wanted::{Body, Scratch};
use flows_contract::{Hop, Hops, Items, Path, SetOptions, hop_bytes};

const HOPS: u64 = 6;
const SWITCHES: u64 = 206;

fn path(number: u64, out: u32) -> Vec<u8> {
    let hop = |hop: u64| Hop {
        switch: DatapathId(1 + (number + hop) % SWITCHES),
        in_port: PortNo(1),
        out_port: PortNo(out),
    };
    let hops = hop_bytes(&(0..HOPS).map(hop).collect::<Vec<_>>());
    let mut selector = Vec::new();
    let mut writer = flow::canonical::MatchWriter::new(&mut selector);
    writer.field(flow::Field::EthDst, 0x0200_0000_0000 + number).field(flow::Field::EthType, 0x0800u16);
    let mut bytes = Vec::new();
    Items::new(&mut bytes).path(&Path {
        table_id: 0,
        priority: 10,
        selector: &selector,
        treatment: &[],
        hops: Hops::of(&hops),
    });
    bytes
}

/// An engine whose switches are connected and have no rules.
struct Bench {
    engine: Engine,
    owner: u32,
    ticket: u64,
    sent: Vec<(DatapathId, u64)>,
}

impl Bench {
    fn new() -> Bench {
        let mut engine = Engine::new(&Settings::default(), 0).unwrap_or_else(|why| panic!("{why}"));
        let owner = engine.owner("paths");
        let mut bench = Bench { engine, owner, ticket: 0, sent: Vec::new() };
        for switch in 1..=SWITCHES {
            bench.act(|engine, send| engine.on_up(DatapathId(switch), true, 0, send));
        }
        for (switch, ticket) in std::mem::take(&mut bench.sent) {
            bench.act(|engine, send| assert!(engine.on_report(switch, (ticket, false), &[], 0, send)));
        }
        bench
    }

    fn act(&mut self, act: impl FnOnce(&mut Engine, &mut flows::outgoing::Sender<'_>)) {
        let Bench { engine, ticket, sent, .. } = self;
        act(engine, &mut |switch, _| {
            *ticket += 1;
            sent.push((switch, *ticket));
            *ticket
        });
    }

    fn put(&mut self, number: u64, version: u64, items: &[u8]) {
        let (owner, name) = (self.owner, format!("p{number}"));
        let options = SetOptions::default();
        let put = Put { owner, name: &name, version, options, items };
        self.act(|engine, send| drop(engine.put(&put, 0, send)));
        self.confirm();
    }

    fn confirm(&mut self) {
        while !self.sent.is_empty() {
            for (switch, ticket) in std::mem::take(&mut self.sent) {
                let error = ErrorCode { kind: 0, code: 0 };
                self.act(|engine, send| {
                    engine.on_receipt(switch, (ticket, Outcome::Programmed, error), "", 0, send);
                });
            }
        }
    }
}

fn expansion(criterion: &mut Criterion) {
    let body = Body { set: 0, bytes: path(1, 2).into() };
    let mut group = criterion.benchmark_group("flows");
    group.throughput(Throughput::Elements(HOPS));
    group.bench_function("expand a path of six hops", |bencher| {
        let mut scratch = Scratch::default();
        bencher.iter(|| {
            body.each(&mut scratch, |_, wanted| {
                std::hint::black_box(wanted.content);
            })
        });
    });
    let mut bench = Bench::new();
    let paths: Vec<_> = (0..1_000).map(|number| [path(number, 2), path(number, 3)]).collect();
    let mut version = 0;
    group.bench_function("put, confirm and replace a path of six hops", |bencher| {
        bencher.iter(|| {
            version += 1;
            let number = version % 1_000;
            bench.put(number, version, &paths[number as usize][(version / 1_000 % 2) as usize]);
        });
    });
    group.finish();
}

criterion_group!(benches, expansion);
criterion_main!(benches);
