//! Redis clients: one at each even time, each with a connection of its own.
//!
//! In: an address, times, a size. Out: when each began, and how long it took. It runs in the namespace of the first host.

use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The key, whose request is as long as that of emulated hosts.
const KEY: &str = "the-value";
/// What is read at once of a reply, which may have megabytes. Nothing needs its bytes.
const READ_BYTES: usize = 64 << 10;
/// How long the server may take to answer. While a host does not find the other one, each attempt fails after three seconds.
const SERVER_PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);

/// What the clients do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The server.
    pub address: SocketAddr,
    /// The time between two clients.
    pub every_us: u64,
    /// For how long clients begin.
    pub lasts_ms: u64,
    /// The value that each asks for.
    pub value_bytes: usize,
    /// After this time, a query has failed.
    pub timeout_ms: u64,
    /// Clients that wait at once. More do not begin.
    pub open_max: usize,
    /// The time between the storing of the value and the first client.
    pub pause_ms: u64,
}

/// One query.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// When it began, after the first one.
    pub began_us: u64,
    /// How long it took. `None`: it failed.
    pub took_us: Option<f64>,
}

/// What the clients saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// When the first began, in microseconds since the Unix epoch.
    pub began_unix_us: u64,
    /// All queries, in the order in which they began.
    pub queries: Vec<Query>,
    /// Clients that did not begin, because too many waited.
    pub skipped: u64,
}

/// Stores the value, then runs the clients.
///
/// # Errors
/// The server does not answer.
pub fn run(plan: &Plan) -> Result<Report, String> {
    store(plan)?;
    thread::sleep(Duration::from_millis(plan.pause_ms));
    let (request, reply_bytes) = (get(), reply_bytes(plan.value_bytes));
    let (every, lasts) = (Duration::from_micros(plan.every_us.max(1)), Duration::from_millis(plan.lasts_ms));
    let timeout = Duration::from_millis(plan.timeout_ms.max(1));
    let (mut running, mut queries, mut skipped) = (Vec::new(), Vec::new(), 0);
    let (began, since_epoch) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH));
    let began_unix_us = since_epoch.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX));
    let mut next = Duration::ZERO;
    while next < lasts {
        thread::sleep(next.saturating_sub(began.elapsed()));
        let (done, open): (Vec<_>, Vec<_>) =
            running.into_iter().partition(|it: &thread::JoinHandle<Query>| it.is_finished());
        queries.extend(done.into_iter().filter_map(|it| it.join().ok()));
        running = open;
        if running.len() < plan.open_max {
            let (address, request) = (plan.address, request.clone());
            running.push(thread::spawn(move || {
                let began_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
                let took = ask(address, &request, reply_bytes, timeout).ok();
                Query { began_us, took_us: took.map(|took| took.as_secs_f64() * 1e6) }
            }));
        } else {
            skipped += 1;
        }
        next += every;
    }
    queries.extend(running.into_iter().filter_map(|it| it.join().ok()));
    queries.sort_by_key(|query| query.began_us);
    Ok(Report { began_unix_us, queries, skipped })
}

/// A command in Redis's protocol (RESP).
fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend(b"\r\n");
    }
    bytes
}

fn get() -> Vec<u8> {
    command(&[b"GET", KEY.as_bytes()])
}

/// The value, its length before it, and what ends both.
fn reply_bytes(value_bytes: usize) -> usize {
    format!("${value_bytes}\r\n").len() + value_bytes + 2
}

fn store(plan: &Plan) -> Result<(), String> {
    let request = command(&[b"SET", KEY.as_bytes(), &vec![b'x'; plan.value_bytes]]);
    let began = Instant::now();
    loop {
        // `+OK` and its end.
        match ask(plan.address, &request, 5, SERVER_PATIENCE) {
            Ok(_) => return Ok(()),
            Err(why) if began.elapsed() > SERVER_PATIENCE => {
                return Err(format!("redis-server at {} does not answer: {why}", plan.address));
            }
            Err(_) => thread::sleep(LOOK),
        }
    }
}

fn ask(address: SocketAddr, request: &[u8], reply_bytes: usize, timeout: Duration) -> io::Result<Duration> {
    let began = Instant::now();
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_nodelay(true)?;
    stream.write_all(request)?;
    let mut room = vec![0; READ_BYTES.min(reply_bytes)];
    let (mut got, mut is_error) = (0, false);
    while got < reply_bytes {
        let left = timeout.checked_sub(began.elapsed()).filter(|left| !left.is_zero());
        stream.set_read_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
        let bytes = stream.read(&mut room)?;
        if bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        is_error |= got == 0 && room.first() == Some(&b'-');
        got += bytes;
    }
    let took = began.elapsed();
    if is_error || took > timeout { Err(io::ErrorKind::TimedOut.into()) } else { Ok(took) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A server that answers so many connections as Redis does, and then closes the others.
    fn serve(connections: usize, value_bytes: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                let mut request = vec![0; 1024];
                if number > connections || stream.read(&mut request).unwrap_or(0) == 0 {
                    continue;
                }
                let reply = match number {
                    0 => b"+OK\r\n".to_vec(),
                    _ => {
                        [format!("${value_bytes}\r\n").as_bytes(), &vec![b'x'; value_bytes], b"\r\n"].concat()
                    }
                };
                stream.write_all(&reply).unwrap();
            }
        });
        address
    }

    #[test]
    fn a_query_without_an_answer_has_failed_and_the_others_have_not() {
        let address = serve(3, 64);
        let plan = Plan {
            address,
            every_us: 1000,
            lasts_ms: 5,
            value_bytes: 64,
            timeout_ms: 5000,
            open_max: 9,
            pause_ms: 0,
        };
        let report = run(&plan).unwrap();
        let took = report.queries.iter().filter(|query| query.took_us.is_some()).count();
        assert_eq!((report.queries.len(), took, report.skipped), (5, 3, 0));
        assert!(report.queries.is_sorted_by_key(|query| query.began_us));
    }

    #[test]
    fn a_reply_of_many_reads_is_whole_and_a_cut_one_has_failed() {
        let ask = |value_bytes: usize, asked: usize| {
            let address = serve(1, value_bytes);
            let _ = super::ask(address, b"SET", 5, Duration::from_secs(30)).unwrap();
            super::ask(address, &get(), reply_bytes(asked), Duration::from_secs(30)).is_ok()
        };
        assert!(ask(3 * READ_BYTES, 3 * READ_BYTES));
        assert!(!ask(3 * READ_BYTES, 4 * READ_BYTES), "the server closed");
    }

    #[test]
    fn no_more_clients_wait_than_the_plan_allows() {
        let plan = Plan {
            address: serve(1, 64),
            every_us: 1000,
            lasts_ms: 5,
            value_bytes: 64,
            timeout_ms: 5000,
            open_max: 0,
            pause_ms: 0,
        };
        let report = run(&plan).unwrap();
        assert_eq!((report.queries.len(), report.skipped), (0, 5));
    }

    #[test]
    fn requests_and_replies_have_the_sizes_of_emulated_hosts() {
        assert_eq!((get().len(), reply_bytes(64)), (28, 71));
    }
}
