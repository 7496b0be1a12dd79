//! Queries between two hosts over a channel that loses, doubles and reorders segments.

use super::*;
use proptest::prelude::*;
use std::net::Ipv4Addr;

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const LINE_BITS_PER_S: u64 = 1_000_000_000;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn spec() -> QuerySpec {
    QuerySpec { duration: ms(1000), ..QuerySpec::new("h1", "h2") }
}

fn client(spec: &QuerySpec) -> Queries {
    let mut client = Queries::default();
    let place = SeriesPlace { id: 7, ends: (CLIENT, SERVER), seed: 1, records_max: 1000 };
    client.begin(spec, place, Duration::ZERO);
    client
}

fn server(spec: &QuerySpec) -> Queries {
    let mut server = Queries::default();
    let answers = Answers { reply_bytes: spec.reply_bytes };
    server.answer_at(spec.port, answers, LINE_BITS_PER_S, 2).unwrap();
    server
}

/// The times at which queries begin, and the ports that they have.
fn beginnings(spec: &QuerySpec) -> Vec<(Duration, u16)> {
    let (mut client, mut all) = (client(spec), Vec::new());
    let mut now = Duration::ZERO;
    loop {
        let sent = client.take_outgoing();
        let syns = sent.iter().filter(|(_, segment)| segment.flags == SYN);
        all.extend(syns.map(|(key, _)| (now, key.local_port)));
        match client.next_due() {
            Some(due) if due < spec.duration => now = due,
            _ => return all,
        }
        client.on_tick(now);
    }
}

/// A channel with these chances of 256 that a segment is lost or arrives twice. Each takes up to `delay_max`.
struct Channel {
    random: Random,
    loss: u32,
    doubling: u32,
    delay_max: Duration,
    number: u64,
    in_flight: BTreeMap<(Duration, u64), (FlowKey, Segment)>,
}

impl Channel {
    fn send(&mut self, sent: Vec<(FlowKey, Segment)>, now: Duration) {
        for (key, segment) in sent {
            let times = match self.random.below(256) {
                chance if chance < self.loss => 0,
                chance if chance < self.loss + self.doubling => 2,
                _ => 1,
            };
            for _ in 0..times {
                self.number += 1;
                let arrives = now + self.delay_max.mul_f64(self.random.share());
                self.in_flight.insert((arrives, self.number), (key.reverse(), segment));
            }
        }
    }
}

/// Lets both hosts talk until nothing more happens.
fn converse(client: &mut Queries, server: &mut Queries, mut channel: Channel) {
    let mut now = Duration::ZERO;
    loop {
        channel.send(client.take_outgoing(), now);
        channel.send(server.take_outgoing(), now);
        let arrival = channel.in_flight.first_key_value().map(|((at, _), _)| *at);
        let due = [client.next_due(), server.next_due(), arrival].into_iter().flatten().min();
        let Some(due) = due else { return };
        now = now.max(due);
        if arrival.is_some_and(|arrival| arrival <= now) {
            let (_, (key, segment)) = channel.in_flight.pop_first().unwrap();
            let host = if key.local == CLIENT { &mut *client } else { &mut *server };
            if !host.on_segment(&key, &segment, now) && !segment.has(super::super::tcp::RST) {
                channel.send(vec![(key, segment.reset())], now);
            }
        }
        client.on_tick(now);
        server.on_tick(now);
    }
}

fn ended(spec: &QuerySpec, loss: u32, doubling: u32, seed: u64) -> QueriesReport {
    let (mut client, mut server) = (client(spec), server(spec));
    let (random, in_flight) = (Random::new(seed), BTreeMap::new());
    let channel = Channel { random, loss, doubling, delay_max: ms(5), number: 0, in_flight };
    converse(&mut client, &mut server, channel);
    assert!(client.ends.is_empty() && server.ends.is_empty() && server.accepted == 0, "an end is left");
    assert!(client.due.is_empty() && server.due.is_empty());
    client.report(7, ms(0)).unwrap()
}

#[test]
fn queries_begin_one_after_each_interval_from_new_ports() {
    let all = beginnings(&spec());
    let expected: Vec<(Duration, u16)> =
        (0..20).map(|number| (ms(50) * number, 32_768 + number as u16)).collect();
    assert_eq!(all, expected);
}

#[test]
fn bursts_begin_at_once() {
    let spec = QuerySpec { arrivals: Arrivals::Bursts(3), every: ms(400), ..spec() };
    let times: Vec<u128> = beginnings(&spec).iter().map(|(at, _)| at.as_millis()).collect();
    assert_eq!(times, [0, 0, 0, 400, 400, 400, 800, 800, 800]);
}

#[test]
fn random_gaps_have_the_interval_as_their_mean_and_deviation() {
    let spec = QuerySpec {
        arrivals: Arrivals::Poisson,
        every: ms(10),
        duration: Duration::from_secs(100),
        timeout: ms(5),
        ..spec()
    };
    let times: Vec<f64> = beginnings(&spec).iter().map(|(at, _)| at.as_secs_f64() * 1e3).collect();
    let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
    assert!((9.6..10.4).contains(&mean) && (9.5..10.5).contains(&deviation), "{mean} {deviation}");
    assert_eq!(beginnings(&spec), beginnings(&spec), "the seed decides");
}

#[test]
fn no_more_are_open_than_may_be() {
    let spec = QuerySpec { open_max: 3, timeout: ms(200), ..spec() };
    // Nobody answers, so each is open for 200 ms.
    let mut client = client(&spec);
    for now in (0..=2000).map(ms) {
        client.on_tick(now);
    }
    let report = client.report(7, ms(2000)).unwrap();
    assert_eq!((report.begun, report.skipped, report.open), (15, 5, 0));
    assert!(report.records.iter().all(|record| record.outcome == Outcome::Lost));
}

#[test]
fn queries_beyond_the_records_are_counted() {
    let place = SeriesPlace { id: 7, ends: (CLIENT, SERVER), seed: 1, records_max: 4 };
    let mut client = Queries::default();
    client.begin(&QuerySpec { timeout: ms(20), ..spec() }, place, Duration::ZERO);
    for now in (0..=2000).map(ms) {
        client.on_tick(now);
    }
    let report = client.report(7, ms(2000)).unwrap();
    assert_eq!((report.begun, report.records.len(), report.unrecorded), (20, 4, 16));
}

#[test]
fn a_port_answers_queries_of_one_size() {
    let mut server = server(&spec());
    let other = Answers { reply_bytes: 9 };
    let port = spec().port;
    assert_eq!(server.answer_at(port, other, LINE_BITS_PER_S, 2), Err(QueriesRefused::Port(port)));
    assert_eq!(server.answer_at(port + 1, other, LINE_BITS_PER_S, 2), Ok(()));
}

#[test]
fn a_host_that_is_switched_off_loses_its_open_queries() {
    let mut client = client(&spec());
    client.on_tick(ms(60));
    client.fail();
    let report = client.report(7, ms(70)).unwrap();
    assert_eq!((report.begun, report.open, report.records.len()), (2, 0, 2));
    assert_eq!(client.next_due(), None);
}

proptest! {
    #[test]
    fn each_query_is_completed_over_any_channel(seed: u64, loss in 0..80u32, doubling in 0..60u32, reply_bytes in 1..40_000u64, request_bytes in 1..1400u16) {
        // Sixteen repetitions of a request take up to half an hour.
        let spec = QuerySpec { reply_bytes, request_bytes, timeout: Duration::from_secs(4000), ..spec() };
        let report = ended(&spec, loss, doubling, seed);
        let completed = report.completion_times(Duration::ZERO).len();
        prop_assert_eq!((report.begun, report.open, report.records.len()), (20, 0, 20));
        // Seven SYNs in a row are lost with a chance of at most 80/256 to the power of seven, in either direction.
        prop_assert!(completed >= 18, "{} completed", completed);
        if loss == 0 {
            prop_assert_eq!(completed, 20);
        }
    }
}

#[test]
fn without_loss_a_query_takes_two_round_trips() {
    let report = ended(&spec(), 0, 0, 5);
    assert!(report.completion_times(ms(0)).iter().all(|took| *took <= ms(20)), "four times 5 ms at most");
    assert_eq!((report.failed(ms(0)), report.completion_times(ms(500)).len()), (0, 10));
}
