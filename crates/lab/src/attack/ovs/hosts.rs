//! Hosts at the ports of Open vSwitch: they send pings, and answer those for them.
//!
//! ```text
//!   port's Unix socket ──length, frame──> Host ──> an answer to a ping, or the end of a wait for one
//! ```
//!
//! Every host knows the others' addresses, so they need no ARP. It ignores frames that are not pings for it.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::daemons::{HOSTS, host_socket};
use crate::attack::arrivals::Arrivals;
use crate::attack::stop;

/// How long a port may take to listen, and how often one looks.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// Ethernet, IPv4 and ICMP headers, and a payload as ping has it.
const ETHERNET_BYTES: usize = 14;
const IP_BYTES: usize = 20;
const FRAME_BYTES: usize = ETHERNET_BYTES + IP_BYTES + 8 + 56;

const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;

/// The hosts of a network.
pub(super) struct Hosts {
    /// Where each sends.
    streams: Vec<Arc<Mutex<UnixStream>>>,
    answered: Arc<Answered>,
    sequence: AtomicU16,
}

/// The pings that were answered and not waited for yet.
#[derive(Default)]
struct Answered {
    sequences: Mutex<Vec<u16>>,
    came: Condvar,
}

/// A ping that is under way.
pub struct Ping {
    answered: Arc<Answered>,
    sequence: u16,
    until: Instant,
}

impl Hosts {
    /// Connects each host to its port.
    pub(super) fn connect(folder: &Path, arrivals: &Arc<Arrivals>) -> io::Result<Hosts> {
        let answered = Arc::new(Answered::default());
        let mut streams = Vec::new();
        for host in 1..=HOSTS {
            let reading = connected(&host_socket(folder, host))?;
            let writing = Arc::new(Mutex::new(reading.try_clone()?));
            streams.push(Arc::clone(&writing));
            let (answered, arrivals) = (Arc::clone(&answered), Arc::clone(arrivals));
            std::thread::Builder::new()
                .name(format!("h{host}"))
                .spawn(move || live(host, reading, &writing, &answered, &arrivals))?;
        }
        Ok(Hosts { streams, answered, sequence: AtomicU16::new(0) })
    }

    /// Sends a ping.
    pub(super) fn begin_ping(&self, from: &str, to: &str, until: Instant) -> Option<Ping> {
        let (from, to) = (number(from)?, number(to)?);
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let stream = self.streams.get(from - 1)?;
        send(stream, &ping(from, to, ECHO_REQUEST, sequence)).ok()?;
        Some(Ping { answered: Arc::clone(&self.answered), sequence, until })
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for stream in &self.streams {
            let _ = lock(stream).shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Ping {
    /// Whether the answer has come by now.
    pub fn is_answered(&self) -> bool {
        lock(&self.answered.sequences).contains(&self.sequence)
    }

    /// Waits for the answer.
    pub fn answered(self) -> bool {
        let mut sequences = lock(&self.answered.sequences);
        loop {
            if let Some(place) = sequences.iter().position(|sequence| *sequence == self.sequence) {
                sequences.swap_remove(place);
                return true;
            }
            if Instant::now() > self.until || stop::came() {
                return false;
            }
            let waited = self.answered.came.wait_timeout(sequences, LOOK);
            sequences = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(name: &str) -> Option<usize> {
    name.strip_prefix('h')?.parse().ok().filter(|number| (1..=HOSTS).contains(number))
}

fn connected(socket: &Path) -> io::Result<UnixStream> {
    let began = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(stream),
            Err(error) if began.elapsed() > PATIENCE || stop::came() => return Err(error),
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

/// Each frame has its length in front, 16 bits of it.
fn send(stream: &Mutex<UnixStream>, frame: &[u8]) -> io::Result<()> {
    let length = u16::try_from(frame.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    lock(stream).write_all(&[&length.to_be_bytes()[..], frame].concat())
}

/// Reads frames until the port is gone.
fn live(
    host: usize,
    mut reading: UnixStream,
    writing: &Mutex<UnixStream>,
    answered: &Answered,
    arrivals: &Arrivals,
) {
    let mut frame = Vec::new();
    let mut length = [0; 2];
    while reading.read_exact(&mut length).is_ok() {
        frame.resize(usize::from(u16::from_be_bytes(length)), 0);
        if reading.read_exact(&mut frame).is_err() {
            return;
        }
        arrivals.note(&frame);
        match heard(host, &frame) {
            Some((ECHO_REQUEST, from, sequence)) => {
                // If the port is gone the next read says so.
                let _ = send(writing, &ping(host, from, ECHO_REPLY, sequence));
            }
            Some((_, _, sequence)) => {
                lock(&answered.sequences).push(sequence);
                answered.came.notify_all();
            }
            None => {}
        }
    }
}

/// Kind, sender and number of a ping for this host.
fn heard(host: usize, frame: &[u8]) -> Option<(u8, usize, u16)> {
    let is_for_it = frame.len() >= FRAME_BYTES
        && frame[..6] == mac(host)
        && frame[12..14] == [0x08, 0x00]
        && frame[23] == 1
        && frame[30..34] == address(host);
    let kind = *frame.get(34)?;
    let from = (1..=HOSTS).find(|other| frame.get(26..30) == Some(&address(*other)))?;
    let sequence = u16::from_be_bytes([*frame.get(40)?, *frame.get(41)?]);
    (is_for_it && matches!(kind, ECHO_REPLY | ECHO_REQUEST)).then_some((kind, from, sequence))
}

const fn mac(host: usize) -> [u8; 6] {
    [0, 0, 0, 0, 0, host as u8]
}

const fn address(host: usize) -> [u8; 4] {
    [10, 0, 0, host as u8]
}

/// A ping's frame.
fn ping(from: usize, to: usize, kind: u8, sequence: u16) -> Vec<u8> {
    let mut frame = vec![0; FRAME_BYTES];
    frame[..6].copy_from_slice(&mac(to));
    frame[6..12].copy_from_slice(&mac(from));
    frame[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0]);
    let length = (FRAME_BYTES - ETHERNET_BYTES) as u16;
    frame[16..18].copy_from_slice(&length.to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 1]);
    frame[26..30].copy_from_slice(&address(from));
    frame[30..34].copy_from_slice(&address(to));
    let sum = checksum(&frame[ETHERNET_BYTES..ETHERNET_BYTES + IP_BYTES]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame[34] = kind;
    frame[40..42].copy_from_slice(&sequence.to_be_bytes());
    let sum = checksum(&frame[ETHERNET_BYTES + IP_BYTES..]);
    frame[36..38].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// Of IPv4 and ICMP (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ping_is_heard_by_whom_it_is_for() {
        let frame = ping(1, 4, ECHO_REQUEST, 700);
        assert_eq!(heard(4, &frame), Some((ECHO_REQUEST, 1, 700)));
        assert_eq!(heard(2, &frame), None);
        assert_eq!(heard(4, &frame[..40]), None);
        assert_eq!(heard(4, &[]), None);
        assert_eq!(checksum(&frame[ETHERNET_BYTES..ETHERNET_BYTES + IP_BYTES]), 0, "over itself it is zero");
    }

    #[test]
    fn hosts_have_names() {
        assert_eq!(["h1", "h4", "h5", "h0", "x"].map(number), [Some(1), Some(4), None, None, None]);
    }
}
