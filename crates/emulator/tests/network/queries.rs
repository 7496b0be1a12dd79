//! Series of queries through a network in virtual time.

use super::bench::ms;
use emulator::{
    Change, FailMode, IpVersion, LinkQuality, Outcome, QueriesRefused, QueriesReport, QuerySpec, Simulation,
    SwitchOptions, Topology,
};
use std::time::Duration;

/// Learning switches in a line, whose links have this quality.
fn simulation(links: &str, seed: u64) -> Simulation {
    let mut topology: Topology = "linear,2".parse().unwrap();
    let quality: LinkQuality = links.parse().unwrap();
    topology.links.iter_mut().for_each(|link| link.quality = quality);
    let options = SwitchOptions { fail_mode: FailMode::Standalone, ..SwitchOptions::default() };
    Simulation::new(&topology, &options, seed)
}

fn spec() -> QuerySpec {
    QuerySpec { duration: Duration::from_secs(2), ..QuerySpec::new("h1", "h2") }
}

fn played(network: &mut Simulation, spec: &QuerySpec) -> QueriesReport {
    let id = network.start_queries(spec).unwrap();
    network.run_for(spec.duration + spec.timeout);
    network.queries_report(id).unwrap()
}

#[test]
fn a_series_that_cannot_be_is_refused_with_the_reason() {
    let mut network = simulation("ideal", 1);
    let mut check = |spec: QuerySpec, why: &str| {
        assert_eq!(network.start_queries(&spec).unwrap_err().to_string(), why);
    };
    check(QuerySpec::new("h1", "h9"), "there is no host 'h9' in this network; there are h1, h2");
    check(QuerySpec::new("h1", "h1"), "queries go from one host to another, not to itself");
    check(QuerySpec { reply_bytes: 0, ..spec() }, "a reply has at least 1 byte");
    network.start_queries(&spec()).unwrap();
    let other = network.start_queries(&QuerySpec { reply_bytes: 9, ..spec() });
    assert_eq!(other, Err(QueriesRefused::Port(6379)));
}

#[test]
fn a_query_takes_two_round_trips_and_the_first_also_finds_the_address() {
    for ip in [IpVersion::V4, IpVersion::V6] {
        // Three links of 2 ms each way.
        let report = played(&mut simulation("delay=2ms", 1), &QuerySpec { ip, ..spec() });
        let mut took: Vec<Duration> = report.records.iter().filter_map(|record| record.took()).collect();
        assert_eq!((report.begun, took.len()), (40, 40), "{ip:?}");
        assert_eq!(took.remove(0), ms(36), "{ip:?}");
        assert!(took.iter().all(|took| *took == ms(24)), "{ip:?}: {took:?}");
    }
}

#[test]
fn a_large_value_gets_the_rate_of_the_link() {
    let spec = QuerySpec {
        reply_bytes: 1_000_000,
        every: Duration::from_secs(3),
        duration: Duration::from_secs(6),
        ..spec()
    };
    let report = played(&mut simulation("rate=10M", 1), &spec);
    let times = report.completion_times(Duration::ZERO);
    // The payload alone takes 0.8 s. Headers are 4 % of it.
    assert_eq!(times.len(), 2, "{report:?}");
    assert!(times.iter().all(|took| (ms(830)..ms(900)).contains(took)), "{times:?}");
    assert!((8.8e6..9.7e6).contains(&report.rate_bits_per_s(times[0])), "{times:?}");
}

#[test]
fn lost_packets_are_sent_again_and_the_seed_decides_which() {
    let spec = QuerySpec { timeout: Duration::from_secs(300), ..spec() };
    let play = |seed| {
        let mut network = simulation("delay=1ms,loss=5%", seed);
        let report = played(&mut network, &spec);
        assert_eq!((report.failed(Duration::ZERO), report.records.len()), (0, 40));
        (report.records, network.digest())
    };
    assert_eq!(play(3), play(3));
    let (records, digest) = play(4);
    assert!(records.iter().any(|record| record.took() > Some(ms(500))), "a SYN is repeated after a second");
    assert_ne!(digest, play(3).1);
}

#[test]
fn without_a_way_queries_are_lost_after_their_time() {
    let mut network = simulation("delay=1ms", 1);
    let spec = QuerySpec { timeout: ms(700), ..spec() };
    let id = network.start_queries(&spec).unwrap();
    network.run_until(ms(1010));
    network.change(&Change::Link { link: "s1-s2".into(), up: false }).unwrap();
    network.run_until(ms(4000));
    let report = network.queries_report(id).unwrap();
    let lost = report.records.iter().filter(|record| record.outcome == Outcome::Lost).count();
    assert_eq!((report.begun, report.records.len(), report.open), (40, 40, 0));
    // Those from 1.0 s on: twenty.
    assert_eq!((lost, report.failed(ms(1000)), report.failed(Duration::ZERO)), (20, 20, 20));
}

#[test]
fn a_host_that_is_off_answers_nothing_and_asks_nothing() {
    let mut network = simulation("delay=1ms", 1);
    network.change(&Change::Host { host: "h2".into(), up: false }).unwrap();
    let spec = QuerySpec { timeout: ms(100), ..spec() };
    assert_eq!(played(&mut network, &spec).failed(Duration::ZERO), 40);
    network.change(&Change::Host { host: "h1".into(), up: false }).unwrap();
    assert_eq!(played(&mut network, &spec).begun, 1, "the series ends with its first query");
}
