//! Packet-ins on their way through the proxy's core: what the bench times, and what a test counts the allocations of.
//!
//! In: a profile and a method. Out: passes, each of one packet-in with its frame. It measures nothing.

use flow::{Field, Match, PortNo};
use openflow::message::{NO_BUFFER, PacketIn};
use openflow::{Body, Message, Version};
use profile::{Profile, Quantiles};
use proxy::{Commands, Counters, Event, Method, Passage, Proxy, Settings};

/// Between two packet-ins: 200,000 a second.
const STEP_NS: u64 = 5_000;
/// How long the switch takes for each.
const OF_SWITCH_NS: u64 = 1_000;
const PACKET_BYTES: usize = 60;

/// The profiles and methods that matter: nothing to do, two delays, and a CPU with two delays and packet buffers.
pub fn cases() -> [(&'static str, Profile, Method); 3] {
    let mut slow = Profile::null();
    slow.cpu.packet_in.service_us = Quantiles::new(&[(0.0, 1.0), (1.0, 3.0)]).unwrap();
    slow.delay.ingress_us = Quantiles::new(&[(0.0, 100.0), (1.0, 900.0)]).unwrap();
    slow.packet_in.buffers_packets = Some(256);
    [
        ("null", Profile::null(), Method::Full),
        ("paper", slow.clone(), Method::Paper),
        ("full", slow, Method::Full),
    ]
}

fn packet_in(version: Version) -> Vec<u8> {
    let packet = PacketIn {
        buffer_id: NO_BUFFER,
        total_len: PACKET_BYTES as u16,
        reason: 0,
        table_id: 0,
        cookie: if version == Version::V1_0 { u64::MAX } else { 0 },
        matching: Match::any().with(Field::InPort, 1u32),
        data: vec![0; PACKET_BYTES],
    };
    let mut bytes = Vec::new();
    Message { version, xid: 0, body: Body::PacketIn(packet) }.encode(&mut bytes).unwrap();
    bytes
}

/// A proxy, and packet-ins at an even rate.
pub struct Passes {
    proxy: Proxy,
    message: Vec<u8>,
    out: Commands,
    now_ns: u64,
}

impl Passes {
    pub fn new(profile: Profile, method: Method, version: Version) -> Passes {
        let settings = Settings { profile, base: Profile::null(), method, seed: 1, slow_motion: 1 };
        let proxy = Proxy::new(settings);
        Passes { proxy, message: packet_in(version), out: Commands::default(), now_ns: 0 }
    }

    /// Passes one packet-in with its frame, and what is due by then. Returns how many bytes leave.
    pub fn pass(&mut self) -> usize {
        self.now_ns += STEP_NS;
        let Passes { proxy, message, out, now_ns } = self;
        let at = message.len() - PACKET_BYTES;
        message[at + 14..at + 22].copy_from_slice(&now_ns.to_be_bytes());
        let event = Event::Frame { port: PortNo(1), arrived_ns: *now_ns, frame: &message[at..] };
        let _taken = proxy.on_event(*now_ns, event, out);
        let passage = proxy.on_event(*now_ns + OF_SWITCH_NS, Event::FromSwitch(message), out);
        let sent = if passage == Passage::Unchanged { message.len() } else { out.to_controller.len() };
        out.to_controller.clear();
        out.releases.clear();
        sent
    }

    pub fn counters(&self) -> Counters {
        self.proxy.counters()
    }
}
