//! What the machine itself takes for so many notices: processes that do nothing but pass a wake-up on to a socket.
//!
//! ```text
//!   a byte into each pipe ──> processes: read it, write as many bytes as a label has ──> sockets, stamped by the kernel
//! ```
//!
//! In: how many processes and rounds. Out: for each round, when the bytes came to each socket. There is no tenant, no OpenFlow and no node. Slices are
//! processes too, so they cannot be faster than these.

use super::tenants::{now_s, read_stamped};
use crate::models::testbed::bounded::Killed;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The message of one label.
const NOTICE_BYTES: usize = 36;
/// The processes sleep as long as slices do between two changes of a rule.
const BETWEEN: Duration = Duration::from_millis(1_300);
/// From the wake-ups until all is read. It has come by then.
const REST: Duration = Duration::from_millis(100);
/// How long all processes may take to connect.
const PATIENCE: Duration = Duration::from_secs(30);

/// Measures so many processes. From the first wake-up until each socket had its bytes, in seconds.
///
/// # Errors
/// A process does not start, or does not answer.
pub(super) fn measure(processes: usize, rounds: usize) -> Result<Vec<Vec<f64>>, String> {
    let mut bare = Bare::start(processes)?;
    (0..rounds).map(|_| bare.round()).collect()
}

/// One of the processes. It ends with its standard input.
///
/// # Errors
/// The address is none, or nobody listens there.
pub(super) fn serve(address: &str) -> Result<String, String> {
    let address: SocketAddr = address.parse().map_err(|error| format!("{address}: {error}"))?;
    let failed = |error: std::io::Error| format!("{address}: {error}");
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let mut input = std::io::stdin().lock();
    while input.read_exact(&mut [0]).is_ok() {
        stream.write_all(&[0; NOTICE_BYTES]).map_err(failed)?;
    }
    Ok(String::new())
}

struct Bare {
    wakes: Vec<ChildStdin>,
    streams: Vec<TcpStream>,
    _children: Killed,
}

impl Bare {
    fn start(processes: usize) -> Result<Bare, String> {
        let failed = |error: std::io::Error| format!("no processes to compare with: {error}");
        let own = std::env::current_exe().map_err(failed)?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (mut children, mut wakes) = (Killed(Vec::new()), Vec::new());
        for _ in 0..processes {
            let mut command = Command::new(&own);
            command.args(["--part", &format!("labels:bare:{address}")]);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().map_err(failed)?;
            wakes.extend(child.stdin.take());
            children.0.push(child);
        }
        let streams = accepted(&listener, processes)?;
        Ok(Bare { wakes, streams, _children: children })
    }

    fn round(&mut self) -> Result<Vec<f64>, String> {
        sleep(BETWEEN);
        let at_s = now_s();
        let woken = self.wakes.iter_mut().try_for_each(|wake| wake.write_all(&[1]));
        woken.map_err(|error| format!("a process to compare with has ended: {error}"))?;
        sleep(REST);
        let mut buffer = [0; 2 * NOTICE_BYTES];
        let mut told = |stream: &TcpStream| match read_stamped(stream, &mut buffer) {
            Ok((NOTICE_BYTES, told_s)) => Ok(told_s - at_s),
            other => Err(format!("a process to compare with does not answer: {other:?}")),
        };
        self.streams.iter().map(&mut told).collect()
    }
}

fn accepted(listener: &TcpListener, count: usize) -> Result<Vec<TcpStream>, String> {
    let (mut streams, began) = (Vec::new(), Instant::now());
    while streams.len() < count {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true).map_err(|error| error.to_string())?;
                super::tenants::stamp(&stream).map_err(|error| error.to_string())?;
                streams.push(stream);
            }
            Err(_) if began.elapsed() < PATIENCE => sleep(Duration::from_millis(5)),
            Err(error) => {
                return Err(format!(
                    "{} of {count} processes to compare with are there: {error}",
                    streams.len()
                ));
            }
        }
    }
    Ok(streams)
}
