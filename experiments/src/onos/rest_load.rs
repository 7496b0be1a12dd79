//! Clients that ask the REST interface again and again: how many answers a second, and after which time.
//!
//! ```text
//!   targets ──> clients, one connection each ──as fast as it goes, or at a pace──> Load
//! ```
//!
//! In: requests. Out: rates and times. At a pace, a time begins when the request was due, so a slow answer also counts for the requests that
//! wait behind it. It judges nothing.

use super::http_client::HttpClient;
use crate::spread::percentile;
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The method.
    pub method: &'static str,
    /// The target.
    pub target: String,
    /// The body. Empty: none.
    pub body: String,
}

impl Asked {
    /// A GET.
    pub fn get(target: impl Into<String>) -> Asked {
        Asked { method: "GET", target: target.into(), body: String::new() }
    }
}

/// What was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Load {
    /// Answers.
    pub answers: usize,
    /// Answers a second.
    pub per_s: f64,
    /// Of the times of answers.
    pub p50_ms: f64,
    /// Of the times of answers.
    pub p99_ms: f64,
    /// The longest time of an answer.
    pub most_ms: f64,
    /// Bytes of bodies.
    pub bytes: usize,
}

/// How the clients ask.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// How many clients.
    pub clients: usize,
    /// For how long.
    pub time: Duration,
    /// All requests a second; `None`: each client asks when it has its answer.
    pub per_s: Option<f64>,
}

/// Reads these targets in turn.
///
/// # Errors
/// A request was refused, or a connection ended.
pub fn read(address: SocketAddr, targets: &[Asked], way: Way) -> Result<Load, String> {
    let Way { clients, time, per_s } = way;
    let interval = per_s.map(|per_s| Duration::from_secs_f64(clients as f64 / per_s));
    let began = Instant::now();
    let each = |number: usize| {
        let mut client = HttpClient::connect(address)?;
        let (mut times_ms, mut bytes) = (Vec::new(), 0);
        // The clients do not ask at the same moment.
        let first = interval.map_or(Duration::ZERO, |it| it.mul_f64(number as f64 / clients as f64));
        for turn in 0_u32.. {
            let due = interval.map(|interval| began + first + interval * turn);
            if let Some(due) = due {
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            if began.elapsed() > time {
                break;
            }
            let start = due.unwrap_or_else(Instant::now);
            let asked = &targets[(number + turn as usize) % targets.len().max(1)];
            bytes += client.ask(asked.method, &asked.target, &asked.body)?.success()?.len();
            times_ms.push(start.elapsed().as_secs_f64() * 1e3);
        }
        Ok((times_ms, bytes))
    };
    sum(began, together(clients, each)?)
}

/// Sends each request once, by so many clients.
///
/// # Errors
/// As [`read`].
pub fn send_all(address: SocketAddr, all: &[Asked], clients: usize) -> Result<Load, String> {
    let (next, began) = (AtomicUsize::new(0), Instant::now());
    let each = |_| {
        let mut client = HttpClient::connect(address)?;
        let (mut times_ms, mut bytes) = (Vec::new(), 0);
        while let Some(asked) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let start = Instant::now();
            bytes += client.ask(asked.method, &asked.target, &asked.body)?.success()?.len();
            times_ms.push(start.elapsed().as_secs_f64() * 1e3);
        }
        Ok((times_ms, bytes))
    };
    sum(began, together(clients, each)?)
}

type Part = (Vec<f64>, usize);

/// Runs all clients, each in a thread of its own.
fn together(
    clients: usize,
    each: impl Fn(usize) -> Result<Part, String> + Sync,
) -> Result<Vec<Part>, String> {
    std::thread::scope(|scope| {
        let each = &each;
        let all: Vec<_> = (0..clients).map(|number| scope.spawn(move || each(number))).collect();
        all.into_iter().map(|client| client.join().map_err(|_| "a client broke".to_owned())?).collect()
    })
}

fn sum(began: Instant, parts: Vec<Part>) -> Result<Load, String> {
    let spent_s = began.elapsed().as_secs_f64().max(1e-9);
    let bytes = parts.iter().map(|(_, bytes)| bytes).sum();
    let times_ms: Vec<f64> = parts.into_iter().flat_map(|(times, _)| times).collect();
    Ok(Load {
        answers: times_ms.len(),
        per_s: times_ms.len() as f64 / spent_s,
        p50_ms: percentile(&times_ms, 50),
        p99_ms: percentile(&times_ms, 99),
        most_ms: percentile(&times_ms, 100),
        bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_has_the_answers_of_all_clients() {
        let load = sum(Instant::now(), vec![(vec![1.0, 3.0], 5), (vec![2.0], 6)]).unwrap();
        assert_eq!((load.answers, load.p50_ms, load.most_ms, load.bytes), (3, 2.0, 3.0, 11));
    }

    #[test]
    fn a_node_that_is_not_there_is_an_error() {
        let nowhere = lab::own_node::free_address().unwrap();
        assert!(send_all(nowhere, &[Asked::get("/")], 1).is_err());
    }
}
