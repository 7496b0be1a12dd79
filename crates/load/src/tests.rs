//! Whole runs of generator and sink over sockets, with tiny numbers. Also peers that are not controllers.

use super::*;
use flow::{Action, Match, PortNo};
use openflow::message::{FlowModFields, NO_BUFFER, PacketOut};
use openflow::{Body, Message};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Only ends a hang.
const PATIENCE: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(60);

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn options(target: SocketAddr, version: Version) -> LoadOptions {
    LoadOptions {
        target,
        switches: 3,
        first_datapath: 1,
        version,
        hosts: Hosts::Ring(5),
        counting: Counting::Buffers,
        threads: 1,
        sleeps: false,
    }
}

/// A sink in a thread of its own, which ends when this value is dropped.
struct RunningSink {
    address: SocketAddr,
    counters: Arc<SinkCounters>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<std::io::Result<()>>>,
}

impl RunningSink {
    fn start() -> Self {
        let mut sink = Sink::listen(local(0)).unwrap();
        let (address, counters) = (sink.address().unwrap(), sink.counters());
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = stop.clone();
        let thread = Some(std::thread::spawn(move || sink.run(&stopping)));
        RunningSink { address, counters, stop, thread }
    }
}

impl Drop for RunningSink {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

/// Connects, learns, and runs a round. In the end everything that was sent is answered.
fn check(mode: Mode, options: &LoadOptions, sink: &RunningSink) -> RoundReport {
    let mut load = Load::start(options).unwrap();
    assert_eq!(load.connect(PATIENCE).switches, usize::from(options.switches));
    let learned = load.learn(PATIENCE);
    assert!(learned.announced > 0 && learned.answered == learned.announced, "{learned:?}");
    let round = load.round(mode, SHORT);
    let faults = load.take_faults();
    assert!(faults.is_empty(), "{faults:?}");
    assert!(round.answered > 0, "{mode:?}: {round:?}");
    assert_eq!(round.unanswered(), 0, "{mode:?}: {round:?}");
    assert_eq!(round.answered_by_switch.len(), usize::from(options.switches));
    assert_eq!(round.answered_by_switch.iter().sum::<u64>(), round.answered);
    assert!(sink.counters.packet_ins.load(Ordering::Relaxed) >= round.sent);
    round
}

#[test]
fn all_that_is_sent_is_answered_in_both_versions_and_all_modes() {
    let sink = RunningSink::start();
    for version in [Version::V1_0, Version::V1_3] {
        let options = options(sink.address, version);
        let round = check(Mode::Throughput, &options, &sink);
        assert!(round.latencies.percentiles().is_none());
        assert!(round.flow_mods >= round.sent && round.packet_outs == 0, "{round:?}");
        check(Mode::AtMost(20_000.0), &options, &sink);
        let round = check(Mode::Latency, &options, &sink);
        assert_eq!(round.latencies.percentiles().unwrap().count, round.answered);
        let round = check(Mode::Rate(2000.0), &options, &sink);
        assert!(round.sent <= 2000, "{round:?}");
        assert_eq!(round.latencies.percentiles().unwrap().count, round.answered + round.outside);
        let sleeping = LoadOptions { sleeps: true, ..options };
        let round = check(Mode::Rate(2000.0), &sleeping, &sink);
        assert!(round.sent <= 2000, "{round:?}");
        check(Mode::AtMost(20_000.0), &sleeping, &sink);
    }
}

/// A 1.0 hello, and packet-ins with these buffer ids.
fn hello_and_packet_ins(buffer_ids: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1, 0, 0, 8, 0, 0, 0, 1];
    for buffer_id in buffer_ids {
        bytes.extend([1, 10, 0, 18, 0, 0, 0, 2, 0, 0, 0, *buffer_id, 0, 0, 0, 1, 0, 0]);
    }
    bytes
}

#[test]
fn what_a_peer_that_broke_was_to_be_told_is_told_to_nobody_else() {
    let sink = RunningSink::start();
    let mut broken = std::net::TcpStream::connect(sink.address).unwrap();
    let mut nonsense = hello_and_packet_ins(&[7]);
    nonsense.extend([1, 10, 0, 3, 0, 0, 0, 0]);
    broken.write_all(&nonsense).unwrap();
    // When this returns, the sink has closed the connection.
    let _ = broken.read_to_end(&mut Vec::new());

    let mut sound = std::net::TcpStream::connect(sink.address).unwrap();
    sound.set_read_timeout(Some(PATIENCE)).unwrap();
    sound.write_all(&hello_and_packet_ins(&[9])).unwrap();
    let mut header = [0; 8];
    loop {
        sound.read_exact(&mut header).unwrap();
        let mut body = vec![0; usize::from(u16::from_be_bytes([header[2], header[3]])) - 8];
        sound.read_exact(&mut body).unwrap();
        // OFPT_FLOW_MOD, whose buffer id is at byte 64 (OpenFlow 1.0.0, 5.3.3).
        if header[1] == 14 {
            assert_eq!(body[56..60], [0, 0, 0, 9]);
            return;
        }
    }
}

#[test]
fn switches_are_shared_among_threads() {
    let sink = RunningSink::start();
    let options = LoadOptions { threads: 2, ..options(sink.address, Version::V1_0) };
    check(Mode::Latency, &options, &sink);
    assert_eq!(sink.counters.accepted.load(Ordering::Relaxed), 3);
}

#[test]
fn cbenchs_traffic_is_answered_too() {
    let sink = RunningSink::start();
    let options = LoadOptions {
        hosts: Hosts::OneDestination(7),
        counting: Counting::Messages,
        ..options(sink.address, Version::V1_0)
    };
    check(Mode::Throughput, &options, &sink);
}

/// A controller that answers each packet-in with a flow mod and a packet-out, which name no buffer. It answers an announcement with a packet-out.
fn answer_twice(mut stream: std::net::TcpStream) -> std::io::Result<()> {
    stream.write_all(&[1, 0, 0, 8, 0, 0, 0, 1, 1, 5, 0, 8, 0, 0, 0, 2])?;
    loop {
        let mut message = vec![0; 8];
        stream.read_exact(&mut message)?;
        message.resize(usize::from(u16::from_be_bytes([message[2], message[3]])), 0);
        stream.read_exact(&mut message[8..])?;
        let Ok(Message { body: Body::PacketIn(packet), .. }) = Message::decode(&message) else { continue };
        let is_announcement = packet.data[0] == 0xff;
        let (in_port, data) = (PortNo(1), packet.data);
        let actions = vec![Action::output(PortNo(2))];
        let flow_mod = FlowModFields::default().with(Match::any(), Vec::new());
        let packet_out = PacketOut { buffer_id: NO_BUFFER, in_port, actions, data };
        let mut answer = Vec::new();
        for body in
            [Body::FlowMod(flow_mod), Body::PacketOut(packet_out)].into_iter().skip(is_announcement.into())
        {
            Message { version: Version::V1_0, xid: 3, body }.encode(&mut answer).unwrap();
        }
        stream.write_all(&answer)?;
    }
}

#[test]
fn a_flow_mod_and_a_packet_out_for_the_same_packet_count_once() {
    let listener = TcpListener::bind(local(0)).unwrap();
    let address = listener.local_addr().unwrap();
    // It ends with the connections.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || drop(answer_twice(stream.unwrap())));
        }
    });
    let options = LoadOptions { counting: Counting::FlowMods, ..options(address, Version::V1_0) };
    let mut load = Load::start(&options).unwrap();
    assert_eq!(load.connect(PATIENCE).switches, usize::from(options.switches));
    let learned = load.learn(PATIENCE);
    assert!(learned.announced > 0 && learned.answered == learned.announced, "{learned:?}");
    let round = load.round(Mode::Throughput, SHORT);
    assert!(round.answered > 0 && round.packet_outs > 0, "{round:?}");
    assert!(round.answered <= round.flow_mods, "{round:?}");
}

/// The faults until so many connections have failed. No switch ever connects.
fn faults_of(load: &mut Load, not_connected: u64) -> Faults {
    let (began, mut faults) = (std::time::Instant::now(), Faults::default());
    while faults.not_connected < not_connected {
        assert!(began.elapsed() < PATIENCE, "{faults:?}");
        assert_eq!(load.connect(SHORT).switches, 0);
        faults.add(load.take_faults());
    }
    faults
}

#[test]
fn where_nobody_listens_it_is_tried_again_and_counted() {
    let port = TcpListener::bind(local(0)).unwrap().local_addr().unwrap().port();
    let mut load = Load::start(&options(local(port), Version::V1_0)).unwrap();
    // Each of the three fails at least once more.
    let faults = faults_of(&mut load, 6);
    assert!(faults.reasons[0].contains("refused"), "{faults:?}");
}

/// A peer that sends these bytes to each connection and then nothing more.
fn says(words: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind(local(0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // A peer that has closed its connection does not need them.
            let _ = stream.write_all(words);
            kept.push(stream);
        }
    });
    address
}

#[test]
fn nonsense_is_counted_as_a_connection_that_came_to_nothing() {
    for (words, expected) in [
        (&b"SSH-2.0-OpenSSH"[..], "OpenFlow 0x53, which was not agreed on"),
        (&[1, 0, 0, 8, 0, 0, 0, 0, 1, 5, 0, 3], "3 is less than the header's 8"),
        (&[1, 99, 0, 8, 0, 0, 0, 0], "is malformed"),
        (&[1, 1, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0], "does not speak OpenFlow 1.0"),
    ] {
        let mut load = Load::start(&options(says(words), Version::V1_0)).unwrap();
        let faults = faults_of(&mut load, 3);
        assert_eq!(faults.lost, 0, "{faults:?}");
        assert!(faults.reasons.iter().any(|reason| reason.contains(expected)), "{faults:?}");
    }
}

#[test]
fn who_answers_nothing_leaves_all_unanswered() {
    // A hello and a features request, in 1.0.
    let mute = says(&[1, 0, 0, 8, 0, 0, 0, 1, 1, 5, 0, 8, 0, 0, 0, 2]);
    let mut load = Load::start(&options(mute, Version::V1_0)).unwrap();
    assert_eq!(load.connect(PATIENCE).switches, 3);
    let learned = load.learn(Duration::from_millis(400));
    assert_eq!((learned.announced, learned.answered), (15, 0));
    let round = load.round(Mode::Latency, SHORT);
    assert_eq!((round.sent, round.answered, round.unanswered()), (3, 0, 3));
    let round = load.round(Mode::Throughput, SHORT);
    assert!(round.sent > 0 && round.unanswered() == round.sent, "{round:?}");
    assert!(load.take_faults().is_empty(), "silence is no fault of the connection");
}

#[test]
fn who_vanishes_is_counted_and_connected_again() {
    let listener = TcpListener::bind(local(0)).unwrap();
    let address = listener.local_addr().unwrap();
    let vanishing = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&[1, 0, 0, 8, 0, 0, 0, 1, 1, 5, 0, 8, 0, 0, 0, 2]).unwrap();
            // Hello and features arrive, and then the test closes its end.
            let mut heard = [0; 8 + 32 + 4 * 48];
            stream.read_exact(&mut heard).unwrap();
        }
        listener.accept().unwrap().0
    });
    let mut load = Load::start(&LoadOptions { switches: 1, ..options(address, Version::V1_0) }).unwrap();
    let mut faults = Faults::default();
    let began = std::time::Instant::now();
    while !vanishing.is_finished() && began.elapsed() < PATIENCE {
        load.connect(SHORT);
        load.round(Mode::Throughput, SHORT);
        faults.add(load.take_faults());
    }
    assert!(vanishing.join().is_ok());
    assert_eq!(faults.lost, 2, "{faults:?}");
}

#[test]
fn it_ends_at_once_when_it_is_told_to() {
    let sink = RunningSink::start();
    let mut load = Load::start(&options(sink.address, Version::V1_0)).unwrap();
    load.connect(PATIENCE);
    let progress = load.progress();
    std::thread::spawn(move || {
        while progress.answered() == 0 {
            std::thread::yield_now();
        }
        progress.stop();
    });
    let round = load.round(Mode::Latency, PATIENCE);
    assert!(round.took < PATIENCE && round.answered > 0, "{round:?}");
}
