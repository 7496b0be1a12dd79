//! How long a switch's port status takes to an app while another switch floods.
//!
//! ```text
//!   flood:  packet-ins as fast as they go ───> node ──> port-echo, which takes 20 us for each packet-in
//!   quiet:  port status of port N ──> node ──> port-echo ──packet-out to port N, with the time──> node ──> quiet
//! ```
//!
//! The answer holds the time at which the app received the event. Both are on one machine, so they share a clock. It
//! judges nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use flow::DatapathId;
use load::figures::Latencies;
use openflow::Version;

use crate::apps;
use crate::attack::from_a_switch as raw;
use burnet::cli::CommandError;

/// What the node runs.
const APP: &str = "port-echo";

/// Of its settings: how long each packet-in takes it.
const SETTINGS: &str = "[app.port-echo.settings]\nbusy_us = 20\n";

/// From one port status to the next.
const INTERVAL: Duration = Duration::from_millis(5);

/// How long an answer may take before nothing could be measured.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a read waits before it is looked whether the time is over.
const LOOK: Duration = Duration::from_millis(200);

/// The quiet switch.
const QUIET: DatapathId = DatapathId(0xb0);

/// Types of messages (1.0.0, 5.1), and where a packet-out's first action has its port: behind header, buffer, port, length and the action's own
/// type and length.
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const PACKET_OUT: u8 = 13;
const OUTPUT_PORT_AT: usize = 20;

/// Measures so many port statuses in a quiet network, and as many under a flood.
///
/// # Errors
/// The node did not start, or did not answer.
pub fn delays(count: u32) -> Result<(Latencies, Latencies), CommandError> {
    let node = apps::start_node(&[APP], SETTINGS)?;
    let controller = node.wait_until_it_listens()?;
    let trouble =
        |error: std::io::Error| CommandError::DidNotWork(format!("no answer to a port status: {error}"));
    let mut quiet = Quiet::connect(controller).map_err(trouble)?;
    let alone = quiet.measure(count).map_err(trouble)?;
    let over = AtomicBool::new(false);
    let flooded = std::thread::scope(|scope| {
        let flood = scope.spawn(|| raw::flood_until(controller, &over));
        std::thread::sleep(INTERVAL * 100);
        let measured = quiet.measure(count).map_err(trouble);
        over.store(true, Ordering::Relaxed);
        match flood.join() {
            Ok(Ok(())) => measured,
            _ => Err(CommandError::DidNotWork("the switch that floods was cut off".to_owned())),
        }
    })?;
    Ok((alone, flooded))
}

/// The switch that says little.
struct Quiet {
    stream: TcpStream,
    read: Vec<u8>,
    port: u16,
}

/// Where a packet-out's first action sends it; nowhere if there is none.
fn output_port(message: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(*message.get(OUTPUT_PORT_AT..)?.first_chunk()?))
}

impl Quiet {
    /// Connected, and the app has received the event.
    fn connect(controller: SocketAddr) -> std::io::Result<Quiet> {
        let stream = TcpStream::connect(controller)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK))?;
        let mut quiet = Quiet { stream, read: Vec::new(), port: 0 };
        quiet.stream.write_all(&raw::hello())?;
        quiet.stream.write_all(&raw::features(Version::V1_0, QUIET))?;
        // An app receives only events after its subscription.
        let began = Instant::now();
        loop {
            match quiet.ask(LOOK) {
                Err(error) if error.kind() == ErrorKind::TimedOut && began.elapsed() < PATIENCE => {}
                asked => return asked.map(|_| quiet),
            }
        }
    }

    fn measure(&mut self, count: u32) -> std::io::Result<Latencies> {
        let mut latencies = Latencies::default();
        for _ in 0..count {
            std::thread::sleep(INTERVAL);
            latencies.record(self.ask(PATIENCE)?);
        }
        Ok(latencies)
    }

    /// Says one port status. How long it took to the app.
    fn ask(&mut self, patience: Duration) -> std::io::Result<Duration> {
        // The highest of the ports that a switch of 1.0 may have is 0xff00.
        self.port = self.port % 0xfe00 + 1;
        let (began, said) = (Instant::now(), SystemTime::now());
        self.stream.write_all(&raw::port_status(self.port.into()))?;
        let mut room = [0; 4096];
        loop {
            if let Some(heard) = self.answer()? {
                // Less than nothing if the clock was set back meanwhile.
                return Ok(heard.duration_since(said).unwrap_or_default());
            }
            match self.stream.read(&mut room) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.read.extend_from_slice(&room[..count]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(error),
            }
            if began.elapsed() > patience {
                return Err(ErrorKind::TimedOut.into());
            }
        }
    }

    /// Goes through the messages that were read: when the app heard, if its answer is among them.
    fn answer(&mut self) -> std::io::Result<Option<SystemTime>> {
        let mut answer = None;
        while let Some(header) = self.read.first_chunk::<8>().copied() {
            let length = usize::from(u16::from_be_bytes([header[2], header[3]])).max(header.len());
            if self.read.len() < length {
                break;
            }
            let message: Vec<u8> = self.read.drain(..length).collect();
            match header[1] {
                ECHO_REQUEST => {
                    let reply = [&[header[0], ECHO_REPLY], &message[2..]].concat();
                    self.stream.write_all(&reply)?;
                }
                PACKET_OUT if output_port(&message) == Some(self.port) => {
                    let nanos = message.last_chunk().copied().map_or(0, u64::from_be_bytes);
                    answer = Some(SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos));
                }
                // Until the node knows the rules of a switch, apps do not receive it.
                _ => self.stream.write_all(&raw::answers(&message))?,
            }
        }
        Ok(answer)
    }
}
