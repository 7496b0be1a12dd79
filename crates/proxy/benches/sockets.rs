//! What the null profile adds on sockets: how many packet-ins pass in a second, and how long a round trip takes, beside one without a proxy.
//!
//! `cargo bench -p proxy --bench sockets`. Switch, proxy and controller are threads of this process, over the loopback interface. Packet-ins
//! have packets of 60 bytes.

#![allow(clippy::unwrap_used, reason = "a bench ends where something is not as it should be")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use profile::Profile;
use proxy::run::{OWED_MAX, ProxyRun, RunOptions};
use proxy::{Method, Settings};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
const FEATURES_REQUEST: [u8; 8] = [4, 5, 0, 8, 0, 0, 0, 2];
/// A packet-in of OpenFlow 1.3 with 60 bytes of packet: its type and length decide how it passes.
const PACKET_IN_BYTES: usize = 102;
/// How many are written at once, as by a switch that is busy.
const AT_ONCE: usize = 64;

fn packet_in() -> Vec<u8> {
    let mut message = vec![4, 10, 0, PACKET_IN_BYTES as u8, 0, 0, 0, 0];
    message.resize(PACKET_IN_BYTES, 0);
    message
}

/// A proxy in a thread of its own, which ends with it.
struct Running {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(controller: SocketAddr) -> (Running, SocketAddr) {
        let settings = Settings {
            profile: Profile::null(),
            base: Profile::null(),
            method: Method::Full,
            seed: 1,
            slow_motion: 1,
        };
        let listen = "127.0.0.1:0".parse().unwrap();
        let mut run =
            ProxyRun::open(RunOptions { listen, controller, taps: Vec::new(), settings, owed_max: OWED_MAX })
                .unwrap();
        let (address, is_over) = (run.address().unwrap(), Arc::new(AtomicBool::new(false)));
        let is_stopped = is_over.clone();
        let thread = std::thread::spawn(move || {
            while !is_stopped.load(Ordering::Relaxed) {
                run.turn(Duration::from_millis(20)).unwrap();
            }
        });
        (Running { is_over, thread: Some(thread) }, address)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// Both ends of a session, behind the handshake, with the proxy between them if there is one.
fn session(is_proxied: bool) -> (TcpStream, TcpStream, Option<Running>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let direct = listener.local_addr().unwrap();
    let (running, address) = match is_proxied {
        true => {
            let (running, address) = Running::start(direct);
            (Some(running), address)
        }
        false => (None, direct),
    };
    let mut switch = TcpStream::connect(address).unwrap();
    let mut controller = listener.accept().unwrap().0;
    for stream in [&switch, &controller] {
        stream.set_nodelay(true).unwrap();
    }
    controller.write_all(&[HELLO, FEATURES_REQUEST].concat()).unwrap();
    switch.write_all(&HELLO).unwrap();
    switch.read_exact(&mut [0; 16]).unwrap();
    controller.read_exact(&mut [0; 8]).unwrap();
    (switch, controller, running)
}

/// How long the controller takes to have so many packet-ins.
fn passes(switch: &mut TcpStream, controller: &mut TcpStream, many: usize) -> Duration {
    let (mut writer, burst) = (switch.try_clone().unwrap(), packet_in().repeat(AT_ONCE));
    let (began, mut left) = (Instant::now(), many * PACKET_IN_BYTES);
    let to_write = left;
    let thread = std::thread::spawn(move || {
        let mut left = to_write;
        while left > 0 {
            let now = left.min(burst.len());
            writer.write_all(&burst[..now]).unwrap();
            left -= now;
        }
    });
    let mut room = vec![0; 1 << 18];
    while left > 0 {
        let most = left.min(room.len());
        left -= controller.read(&mut room[..most]).unwrap();
    }
    let took = began.elapsed();
    thread.join().unwrap();
    took
}

fn throughput(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packet_ins_on_sockets");
    group.throughput(Throughput::Elements(1));
    for (name, is_proxied) in [("direct", false), ("null", true)] {
        let (mut switch, mut controller, _running) = session(is_proxied);
        group.bench_function(name, |bench| {
            bench.iter_custom(|many| passes(&mut switch, &mut controller, usize::try_from(many).unwrap()));
        });
    }
}

/// A packet-in, and an answer of the same length.
fn round_trips(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("round_trip_on_sockets");
    for (name, is_proxied) in [("direct", false), ("null", true)] {
        let (mut switch, mut controller, running) = session(is_proxied);
        let answers = std::thread::spawn(move || {
            let mut message = [0; PACKET_IN_BYTES];
            while controller.read_exact(&mut message).is_ok() {
                message[1] = 13;
                if controller.write_all(&message).is_err() {
                    break;
                }
            }
        });
        let (message, mut answer) = (packet_in(), [0; PACKET_IN_BYTES]);
        group.bench_function(name, |bench| {
            bench.iter(|| {
                switch.write_all(&message).unwrap();
                switch.read_exact(&mut answer).unwrap();
            });
        });
        drop((switch, running));
        answers.join().unwrap();
    }
}

criterion_group!(benches, throughput, round_trips);
criterion_main!(benches);
