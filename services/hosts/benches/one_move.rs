//! What one move of a host costs in a small and in a large table: the claim, its probes and the decision on it.
//!
//! In: tables with 1,000 and with 100,000 hosts. Out: the time of one move. Both times should be alike. Nothing is sent.

use burnet_sdk::{DatapathId, PortNo};
use criterion::{Criterion, criterion_group, criterion_main};
use hosts::HostsSettings;
use hosts::engine::Engine;
use view::ConnectPoint;

/// The most moves that wait for their decision: one begins each millisecond, and a decision takes 50 ms.
const UNDECIDED_MAX: u64 = 100;

/// The port of a host in a round. No two rounds have the same ports, so each sighting is a move.
fn port(round: u32, number: u32) -> ConnectPoint {
    let place = round * 100_000 + number / 32;
    ConnectPoint { switch: DatapathId(u64::from(place / 40) + 1), port: PortNo(place % 40 + 1) }
}

/// An ARP request of the host with this number.
fn arp(number: u32) -> [u8; 42] {
    let [a, b, c, d] = number.to_be_bytes();
    let mac = [2, 0, a, b, c, d];
    let mut frame = [0; 42];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&mac);
    frame[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    frame[22..28].copy_from_slice(&mac);
    frame[28..32].copy_from_slice(&(0x0a00_0001 + number).to_be_bytes());
    frame[38..].copy_from_slice(&[10, 0, 0, 254]);
    frame
}

fn one_move(bench: &mut Criterion) {
    for hosts in [1_000, 100_000] {
        let settings = HostsSettings { hosts_per_port: 64, move_wait_ms: 50, ..HostsSettings::default() };
        let (mut engine, mut out, mut now_ms) = (Engine::new(settings), Vec::new(), 0);
        for number in 0..hosts {
            now_ms += 1;
            engine.on_frame(port(0, number), &arp(number), now_ms, &mut out);
            out.clear();
        }
        let (mut number, mut moves) = (0, 0);
        bench.bench_function(&format!("a host moves, of {hosts}"), |bench| {
            bench.iter(|| {
                number = (number + 7_919) % hosts;
                now_ms += 1;
                engine.on_frame(port(1 + moves / hosts, number), &arp(number), now_ms, &mut out);
                engine.on_time(now_ms, &mut out);
                out.clear();
                moves += 1;
            });
        });
        assert!(engine.counts().moves + UNDECIDED_MAX >= u64::from(moves), "{:?}", engine.counts());
    }
}

criterion_group!(benches, one_move);
criterion_main!(benches);
