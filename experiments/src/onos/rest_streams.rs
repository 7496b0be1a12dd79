//! Clients of the stream of changes, of which some read nothing: when each of the others has a change.
//!
//! ```text
//!   PATCH of a host with a mark ──> node ──stream──> all clients that read: the time until each has the mark
//!                                        ──stream──> clients that read nothing
//! ```
//!
//! In: an address, and numbers of clients. Out: times. One thread reads all clients, so the
//! time of a client includes the reading of those before it. It judges nothing.

use super::clock::{between_ms, now_ns};
use super::http_client::{HttpClient, request};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::time::Timespec;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long a change may take to reach all clients.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long one look waits.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// How many events one look takes.
const EVENTS_AT_ONCE: usize = 256;

/// What is read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// One client that reads.
struct Reader {
    stream: TcpStream,
    /// What came since the last mark was found.
    text: Vec<u8>,
    has_mark: bool,
}

/// Many clients.
pub struct Streams {
    watch: OwnedFd,
    readers: Vec<Reader>,
    /// Their connections stay open, but nothing reads them.
    stalled: Vec<TcpStream>,
    chunk: Vec<u8>,
}

impl Streams {
    /// Connects clients, and waits until those that read have the beginning of their stream.
    ///
    /// # Errors
    /// The node refuses one.
    pub fn connect(address: SocketAddr, reading: usize, stalled: usize) -> Result<Streams, String> {
        let watch = epoll::create(CreateFlags::CLOEXEC).map_err(|error| error.to_string())?;
        let target = "/api/v1/stream?kinds=host&changes_only=true";
        let text = request(&address.to_string(), ("GET", target), "");
        let open = || {
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(text.as_bytes())?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        };
        let trouble = |error: std::io::Error| format!("a client of the stream: {error}");
        let mut streams =
            Streams { watch, readers: Vec::new(), stalled: Vec::new(), chunk: vec![0; CHUNK_BYTES] };
        for number in 0..reading {
            let stream = open().map_err(trouble)?;
            epoll::add(&streams.watch, &stream, EventData::new_u64(number as u64), EventFlags::IN)
                .map_err(|error| error.to_string())?;
            streams.readers.push(Reader { stream, text: Vec::new(), has_mark: false });
        }
        for _ in 0..stalled {
            streams.stalled.push(open().map_err(trouble)?);
        }
        streams.wait("event: complete", now_ns())?;
        Ok(streams)
    }

    /// Sends a change with a mark, and waits until each client that reads has it. Returns the time of each, in milliseconds.
    ///
    /// # Errors
    /// The change is refused, or a client does not get it in time.
    pub fn change(
        &mut self,
        client: &mut HttpClient,
        (target, body): (&str, &str),
        mark: &str,
    ) -> Result<Vec<f64>, String> {
        let began_ns = now_ns();
        client.send("PATCH", target, body)?;
        let times = self.wait(mark, began_ns)?;
        client.receive()?.success()?;
        Ok(times)
    }

    /// Waits until each client that reads has these characters.
    fn wait(&mut self, mark: &str, began_ns: u64) -> Result<Vec<f64>, String> {
        let (mut times, began) = (Vec::new(), Instant::now());
        let mut events = Vec::with_capacity(EVENTS_AT_ONCE);
        while times.len() < self.readers.len() {
            if began.elapsed() > PATIENCE {
                let missing = self.readers.len() - times.len();
                return Err(format!("{missing} clients did not get {mark} within {} s", PATIENCE.as_secs()));
            }
            events.clear();
            match epoll::wait(&self.watch, spare_capacity(&mut events), Some(&LOOK)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.to_string()),
            }
            for event in &events {
                let Some(reader) =
                    usize::try_from(event.data.u64()).ok().and_then(|it| self.readers.get_mut(it))
                else {
                    continue;
                };
                if reader.read(&mut self.chunk, mark)? {
                    times.push(between_ms(began_ns, now_ns()));
                }
            }
        }
        self.readers.iter_mut().for_each(|reader| {
            reader.has_mark = false;
            reader.text.clear();
        });
        Ok(times)
    }

    /// Reads the sockets of the stalled clients to the end. Returns how many of them the node has disconnected.
    pub fn cut(&mut self) -> usize {
        let is_cut = |stream: &mut TcpStream, chunk: &mut [u8]| loop {
            match stream.read(chunk) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != ErrorKind::WouldBlock,
            }
        };
        let chunk = &mut self.chunk;
        self.stalled.iter_mut().map(|stream| is_cut(stream, chunk)).filter(|is_cut| *is_cut).count()
    }
}

impl Reader {
    /// Reads what has arrived. Returns whether it has the mark for the first time.
    fn read(&mut self, chunk: &mut [u8], mark: &str) -> Result<bool, String> {
        loop {
            match self.stream.read(chunk) {
                Ok(0) => return Err("the node ended a stream".to_owned()),
                Ok(length) => self.text.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(format!("a stream breaks off: {error}")),
            }
        }
        let is_found = !self.has_mark && has(&self.text, mark.as_bytes());
        self.has_mark |= is_found;
        // The last bytes can be the beginning of a mark.
        let keep = self.text.len().saturating_sub(mark.len());
        if !is_found && keep > CHUNK_BYTES {
            self.text.drain(..keep);
        }
        Ok(is_found)
    }
}

/// Whether the mark is in the text.
fn has(text: &[u8], mark: &[u8]) -> bool {
    text.windows(mark.len()).any(|part| part == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_wherever_it_is() {
        for (text, expected) in [("", false), ("ab", true), ("xab", true), ("xa", false), ("abx", true)] {
            assert_eq!(has(text.as_bytes(), b"ab"), expected, "{text}");
        }
    }
}
