//! What a switch could try: bytes over a connection of its own.
//!
//! ```text
//!   SwitchAttack ──> connect, a handshake if the attack comes behind one, then the attack until the trial's end ──> cut off, or not
//! ```
//!
//! It speaks OpenFlow 1.0, whose messages are the shortest. It never speaks for a switch of the trial, but for the one whose id it steals.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flow::{DatapathId, Field, MacAddr, Match, PortNo};
use openflow::message::{ErrorMessage, FeaturesReply, FlowRemoved, Hello, PacketIn, Port, PortStatus};
use openflow::{Body, Message, Version};

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchAttack {
    NoHello,
    WrongVersion,
    MixedVersion,
    BadLength,
    BadTypes,
    Damaged,
    StolenDatapath,
    HalfOpen,
    PacketInFlood,
    SlowReader,
    FalseRemovals,
    FalsePorts,
    ErrorStorm,
}

/// The attacker's own datapath id.
const OWN: DatapathId = DatapathId(0xa77ac);
/// A switch of the trial's.
const STOLEN: DatapathId = DatapathId(1);

/// Connections of `half-open`.
const HALF_OPEN: usize = 300;

/// Messages of a flood that are written at once.
const BATCH: usize = 200;

/// How long the node may take to close a connection.
const PATIENCE: Duration = Duration::from_secs(3);

/// Tries it against the node at `address` for so long. Whether the node closed the connection.
///
/// # Errors
/// The node cannot be connected to.
pub fn act(attack: SwitchAttack, address: SocketAddr, time: Duration) -> io::Result<bool> {
    let until = Instant::now() + time;
    if attack == SwitchAttack::HalfOpen {
        let held: Vec<TcpStream> = (0..HALF_OPEN).map_while(|_| TcpStream::connect(address).ok()).collect();
        if held.len() < HALF_OPEN {
            return Err(io::Error::other(format!("only {} connections could be opened", held.len())));
        }
        std::thread::sleep(time);
        drop(held);
        return Ok(false);
    }
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(Duration::from_millis(200)))?;
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    // What the node closes early is what these attacks are about: a write that fails is no error of the trial.
    let _ = stream.write_all(&before(attack));
    if let Some(message) = flood(attack) {
        go_on(attack, &mut stream, &message.repeat(BATCH), until);
    }
    Ok(is_closed(&mut stream, Instant::now() + PATIENCE, attack == SwitchAttack::SlowReader))
}

/// Comes up as a switch and sends packet-ins as fast as they go, until it is over.
///
/// # Errors
/// The node closed the connection, or could not be connected to.
pub fn flood_until(address: SocketAddr, over: &AtomicBool) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_write_timeout(Some(Duration::from_millis(200)))?;
    stream.write_all(&before(SwitchAttack::PacketInFlood))?;
    answer_questions(&mut stream)?;
    let (bytes, mut room) = (packet_in().repeat(BATCH), vec![0; 64 << 10]);
    let mut written = 0;
    while !over.load(Ordering::Relaxed) {
        match stream.write(&bytes[written..]) {
            Ok(count) => written = (written + count) % bytes.len(),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
        if drained(&mut stream, &mut room) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// Answers what the node asks of a new switch, until it asks nothing for a while. Before, apps do not receive the switch.
fn answer_questions(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut room = [0; 4096];
    loop {
        match stream.read(&mut room) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => stream.write_all(&answers(&room[..count]))?,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
}

/// Writes the same again and again, and reads what comes, unless it is one that does not read.
fn go_on(attack: SwitchAttack, stream: &mut TcpStream, bytes: &[u8], until: Instant) {
    let mut room = vec![0; 64 << 10];
    while Instant::now() < until {
        if let Err(error) = stream.write_all(bytes)
            && !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
        {
            return;
        }
        if attack != SwitchAttack::SlowReader && drained(stream, &mut room) {
            return;
        }
    }
}

/// Reads what is there without waiting; whether the stream has ended.
fn drained(stream: &mut TcpStream, room: &mut [u8]) -> bool {
    if stream.set_nonblocking(true).is_err() {
        return true;
    }
    let ended = loop {
        match stream.read(room) {
            Ok(0) => break true,
            Ok(_) => {}
            Err(error) => break error.kind() != ErrorKind::WouldBlock,
        }
    };
    ended || stream.set_nonblocking(false).is_err()
}

/// Whether the node has closed the connection, or does so in time.
fn is_closed(stream: &mut TcpStream, until: Instant, without_reading: bool) -> bool {
    let mut room = vec![0; 64 << 10];
    while !without_reading && Instant::now() < until {
        match stream.read(&mut room) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return true,
        }
    }
    false
}

fn said(version: Version, body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A message that cannot be written would be a fault of this program; then nothing is tried, and the trial says so.
    let _ = Message { version, xid: 1, body }.encode(&mut bytes);
    bytes
}

/// Of OpenFlow 1.0.
pub fn hello() -> Vec<u8> {
    said(Version::V1_0, Body::Hello(Hello::default()))
}

/// Of a switch without ports.
pub fn features(version: Version, datapath_id: DatapathId) -> Vec<u8> {
    let features = FeaturesReply {
        datapath_id,
        n_buffers: 256,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: 0,
        actions: 0,
        ports: Vec::new(),
    };
    said(version, Body::FeaturesReply(features))
}

/// What a switch without rules answers to these messages of OpenFlow 1.0, as far as apps are told of it only then: that it has no flow entries, and
/// to barriers. Of what is cut short, nothing.
pub fn answers(mut received: &[u8]) -> Vec<u8> {
    const STATS_REQUEST: u8 = 16;
    const BARRIER_REQUEST: u8 = 18;
    let mut said = Vec::new();
    while let Some(&[version, kind, high, low, a, b, c, d]) = received.first_chunk() {
        let length = usize::from(u16::from_be_bytes([high, low]));
        let Some(message) = received.get(..length.max(8)) else { break };
        // A reply's type is one above its request's. Of statistics it has the type and no flags (1.0, 5.3.5).
        match (kind, message.get(8..10)) {
            (STATS_REQUEST, Some([0, 1])) => {
                said.extend([version, kind + 1, 0, 12, a, b, c, d, 0, 1, 0, 0]);
            }
            (BARRIER_REQUEST, _) => said.extend([version, kind + 1, 0, 8, a, b, c, d]),
            _ => {}
        }
        received = &received[length.max(8)..];
    }
    said
}

/// What is said first.
fn before(attack: SwitchAttack) -> Vec<u8> {
    match attack {
        SwitchAttack::NoHello => packet_in(),
        // OpenFlow 1.1, which is lower than 1.3, so that nothing is left to agree on (1.3.5, 6.3.1).
        SwitchAttack::WrongVersion => vec![2, 0, 0, 8, 0, 0, 0, 1],
        SwitchAttack::MixedVersion => [hello(), features(Version::V1_3, OWN)].concat(),
        SwitchAttack::BadLength => [hello(), vec![1, 10, 0, 3, 0, 0, 0, 1]].concat(),
        SwitchAttack::StolenDatapath => [hello(), features(Version::V1_0, STOLEN)].concat(),
        _ => [hello(), features(Version::V1_0, OWN)].concat(),
    }
}

/// What is said again and again, if anything.
fn flood(attack: SwitchAttack) -> Option<Vec<u8>> {
    let body = match attack {
        SwitchAttack::PacketInFlood => return Some(packet_in()),
        SwitchAttack::BadTypes => return Some(vec![1, 200, 0, 8, 0, 0, 0, 1]),
        SwitchAttack::Damaged => return Some(vec![1, 12, 0, 12, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]),
        SwitchAttack::SlowReader => Body::EchoRequest(vec![0xa5; 1024]),
        SwitchAttack::FalseRemovals => Body::FlowRemoved(removed()),
        SwitchAttack::FalsePorts => return Some(ports()),
        SwitchAttack::ErrorStorm => {
            Body::Error(ErrorMessage { kind: 1, code: 1, experimenter: None, data: vec![0; 64] })
        }
        _ => return None,
    };
    Some(said(Version::V1_0, body))
}

/// A packet between two hosts that nobody knows.
fn packet_in() -> Vec<u8> {
    let mut data = vec![0; 60];
    data[..12].copy_from_slice(&[2, 0xbb, 0, 0, 0, 1, 2, 0xbb, 0, 0, 0, 2]);
    data[12..14].copy_from_slice(&[0x08, 0x00]);
    let packet_in = PacketIn {
        buffer_id: openflow::message::NO_BUFFER,
        total_len: 60,
        reason: 0,
        table_id: 0,
        cookie: u64::MAX,
        matching: Match::any().with(Field::InPort, PortNo(1)),
        data,
    };
    said(Version::V1_0, Body::PacketIn(packet_in))
}

/// A rule of the first app's, by its cookie, that this switch never had.
fn removed() -> FlowRemoved {
    FlowRemoved {
        matching: Match::any(),
        cookie: 1 << 48,
        priority: 60_000,
        reason: 2,
        table_id: 0,
        duration_s: 1,
        duration_ns: 0,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        packet_count: 0,
        byte_count: 0,
    }
}

/// A hundred new ports, the highest numbers that a port may have among them.
fn ports() -> Vec<u8> {
    (0xfe9c..0xff00).flat_map(port_status).collect()
}

/// Of a port that is new.
pub fn port_status(number: u32) -> Vec<u8> {
    let port = Port {
        port_no: PortNo(number),
        hw_addr: MacAddr([2, 0xbb, 0, 1, 0, 0]),
        name: "false".to_owned(),
        config: 0,
        state: 0,
        curr: 0,
        advertised: 0,
        supported: 0,
        peer: 0,
        curr_speed_kbps: 0,
        max_speed_kbps: 0,
    };
    said(Version::V1_0, Body::PortStatus(PortStatus { reason: 0, port }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_without_rules_says_so() {
        let asked = [
            &[1, 0, 0, 8, 0, 0, 0, 1][..],
            &[1, 16, 0, 14, 0, 0, 0, 2, 0, 1, 0, 0, 9, 9],
            &[1, 18, 0, 8, 0, 0, 0, 3],
            &[1, 16, 0, 12, 0, 0, 0, 4, 0, 0, 0, 0],
        ];
        let expected = [&[1, 17, 0, 12, 0, 0, 0, 2, 0, 1, 0, 0][..], &[1, 19, 0, 8, 0, 0, 0, 3]].concat();
        assert_eq!(answers(&asked.concat()), expected);
        assert!(answers(&asked[1][..13]).is_empty());
        assert_eq!(answers(&[1, 18, 0, 0, 0, 0, 0, 3]), answers(asked[2]));
    }

    #[test]
    fn every_attack_has_something_to_say() {
        use SwitchAttack::*;
        for attack in [NoHello, WrongVersion, MixedVersion, BadLength, StolenDatapath, PacketInFlood] {
            assert!(!before(attack).is_empty(), "{attack:?}");
        }
        for attack in [BadTypes, Damaged, PacketInFlood, SlowReader, FalseRemovals, FalsePorts, ErrorStorm] {
            assert!(flood(attack).is_some_and(|message| message.len() >= 8), "{attack:?}");
        }
    }
}
