//! Hostile clients of the operator's socket: questions without an end, without a reader, malformed, or too many.
//!
//! ```text
//!   OperatorAttack ──> connections to the node's socket, held for the time of the trial
//! ```
//!
//! Everything is bounded. It judges nothing.

use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorAttack {
    NeverReads,
    HalfALine,
    HugeLine,
    ManyConnections,
    Garbage,
}

/// Questions of one that reads no answer: their answers would be some hundred MiB.
const QUESTIONS: usize = 200_000;
const NEVER_READ: &[u8] = b"\"switches\"\n\"apps\"\n\"usage\"\n{\"flows\":{\"datapath\":null}}\n";
/// Connections that begin a line, and that say nothing.
const HALVES: usize = 100;
const CONNECTIONS: usize = 500;
/// Bytes of a long line, and what is written at once.
const LINE_BYTES: usize = 64 << 20;
const CHUNK_BYTES: usize = 64 << 10;
/// Lines that are no question.
const LINES: usize = 50_000;

/// How long a write may wait for a reader.
const PATIENCE: Duration = Duration::from_millis(100);

/// Tries it for so long.
///
/// # Errors
/// The socket cannot be connected to at all.
pub fn act(attack: OperatorAttack, socket: &Path, time: Duration) -> io::Result<()> {
    let until = Instant::now() + time;
    let connections = match attack {
        OperatorAttack::HalfALine => HALVES,
        OperatorAttack::ManyConnections => CONNECTIONS,
        _ => 1,
    };
    let mut held = vec![connect(socket)?];
    // What the node does not take any more is what some of these are about.
    held.extend((1..connections).map_while(|_| connect(socket).ok()));
    let (bytes, count) = said(attack);
    for stream in &mut held {
        // A node that closes the connection has stopped it.
        let _ = write_all(stream, &bytes, count, until);
    }
    std::thread::sleep(until.saturating_duration_since(Instant::now()));
    Ok(())
}

/// What is said on each connection, and how often.
fn said(attack: OperatorAttack) -> (Vec<u8>, usize) {
    match attack {
        OperatorAttack::NeverReads => (NEVER_READ.repeat(100), QUESTIONS / 400),
        OperatorAttack::HalfALine => (b"{\"flows\":{\"data".to_vec(), 1),
        OperatorAttack::HugeLine => (vec![b'a'; CHUNK_BYTES], LINE_BYTES / CHUNK_BYTES),
        OperatorAttack::ManyConnections => (Vec::new(), 0),
        OperatorAttack::Garbage => (b"\xff\x00{{[]]\"weather\"\n".repeat(100), LINES / 100),
    }
}

fn connect(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Writes so often, or for so long.
fn write_all(stream: &mut UnixStream, bytes: &[u8], count: usize, until: Instant) -> io::Result<()> {
    let (mut written, whole) = (0, bytes.len() * count);
    while written < whole && Instant::now() < until {
        match stream.write(&bytes[written % bytes.len()..]) {
            Ok(count) => written += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
