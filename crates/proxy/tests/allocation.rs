//! Packet-ins pass without an allocation, once the proxy has seen as many as it holds at once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use flow::{Field, Match, PortNo};
use openflow::message::{NO_BUFFER, PacketIn};
use openflow::{Body, Message, Version};
use profile::{Profile, Quantiles};
use proxy::{Commands, Event, Method, Proxy, Settings};

const US: u64 = 1_000;

fn packet_in(version: Version) -> Vec<u8> {
    let packet = PacketIn {
        buffer_id: NO_BUFFER,
        total_len: 60,
        reason: 0,
        table_id: 0,
        cookie: if version == Version::V1_0 { u64::MAX } else { 0 },
        matching: Match::any().with(Field::InPort, 1u32),
        data: vec![0; 60],
    };
    let mut bytes = Vec::new();
    Message { version, xid: 0, body: Body::PacketIn(packet) }.encode(&mut bytes).unwrap();
    bytes
}

fn pass(proxy: &mut Proxy, packets: u64, from: u64, message: &mut [u8], out: &mut Commands) {
    for number in from..from + packets {
        let at = message.len() - 60;
        message[at..at + 8].copy_from_slice(&number.to_be_bytes());
        let now = number * 5 * US;
        let event = Event::Frame { port: PortNo(1), arrived_ns: now, frame: &message[at..] };
        let _taken = proxy.on_event(now, event, out);
        let _taken = proxy.on_event(now + US, Event::FromSwitch(message), out);
        out.to_controller.clear();
        out.releases.clear();
    }
}

#[test]
fn a_packet_in_allocates_nothing() {
    let mut profile = Profile::null();
    profile.cpu.packet_in.service_us = Quantiles::new(&[(0.0, 1.0), (1.0, 4.0)]).unwrap();
    profile.delay.ingress_us = Quantiles::new(&[(0.0, 100.0), (1.0, 900.0)]).unwrap();
    for method in [Method::Paper, Method::Full] {
        for version in [Version::V1_0, Version::V1_3] {
            let settings = Settings { profile: profile.clone(), base: Profile::null(), method, seed: 1 };
            let (mut proxy, mut out) = (Proxy::new(settings), Commands::default());
            let mut message = packet_in(version);
            // More than the ring of frames holds.
            pass(&mut proxy, 40_000, 1, &mut message, &mut out);
            let allocated = allocation_counter::measure(|| {
                pass(&mut proxy, 10_000, 40_001, &mut message, &mut out);
            });
            assert_eq!(allocated.count_total, 0, "{method:?} {version}");
            assert!(proxy.counters().packet_ins > 49_000 && proxy.counters().packet_ins_unseen == 0);
        }
    }
}
