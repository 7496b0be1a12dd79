//! UDP and TCP between hosts: delivery, loss, sharing of a link, and the form on the wire.

use super::bench::{Bench, ms};
use emulator::{
    Change, FlowId, FlowRate, FlowRefused, FlowReport, FlowSpec, FlowState, IpVersion, LinkQuality, Topology,
    jain_index,
};
use etherparse::{SlicedPacket, TransportSlice};
use std::time::Duration;

impl Bench {
    fn start(&mut self, spec: &FlowSpec) -> FlowId {
        self.network.start_flow(spec, self.now, &mut self.effects).unwrap()
    }

    fn report(&self, id: FlowId) -> FlowReport {
        self.network.flow_report(id).unwrap()
    }
}

/// A line of two switches with one or more hosts each, and this link between them.
fn with_middle(hosts_each: usize, middle: &str) -> Bench {
    let mut topology: Topology = format!("linear,2,{hosts_each}").parse().unwrap();
    let quality: LinkQuality = middle.parse().unwrap();
    topology.links.last_mut().unwrap().quality = quality;
    Bench::of(&topology)
}

#[test]
fn a_flow_that_cannot_be_is_refused_with_the_reason() {
    let mut bench = Bench::new("single,2", "ideal");
    let mut check = |spec: FlowSpec, why: &str| {
        let refused = bench.network.start_flow(&spec, ms(0), &mut bench.effects).unwrap_err();
        assert_eq!(refused.to_string(), why);
    };
    check(FlowSpec::tcp("h1", "h9"), "there is no host 'h9' in this network; there are h1, h2");
    check(FlowSpec::tcp("h1", "h1"), "a flow goes from one host to another, not to itself");
    check(FlowSpec::udp("h1", "h2", 0), "a flow of rate 0 would send nothing; leave it out instead");
    let spec = FlowSpec { payload_bytes: 1461, ..FlowSpec::tcp("h1", "h2") };
    check(spec, "a packet of this flow holds 16 to 1460 bytes of payload");
    assert_eq!(bench.network.flows().count(), 0);
}

#[test]
fn a_udp_flow_has_its_rate_and_loses_what_does_not_fit() {
    let mut bench = with_middle(1, "rate=10M,delay=5ms");
    let slow =
        FlowSpec { duration: Some(Duration::from_secs(2)), ..FlowSpec::udp("h1s1", "h1s2", 4_000_000) };
    let slow = FlowSpec { from: "h1".into(), to: "h2".into(), ..slow };
    let id = bench.start(&slow);
    bench.pass(3000);
    let report = bench.report(id);
    assert_eq!((report.state, report.lost_packets), (FlowState::Ended, 0));
    assert_eq!((report.sent_bytes, report.sent_bytes), (report.delivered_bytes, 691 * 1448));
    assert!(report.round_trip.unwrap() > ms(6), "{report:?}");
    let fast = bench.start(&FlowSpec { port: 9, ..FlowSpec::udp("h1", "h2", 40_000_000) });
    bench.pass(2000);
    let before = bench.report(fast);
    bench.pass(2000);
    let report = bench.report(fast);
    // A tenth of the frames' bits is not payload.
    assert!(
        (9_500_000.0..9_800_000.0).contains(&report.rate_since(&before)),
        "{}",
        report.rate_since(&before)
    );
    assert!(report.lost_packets > report.delivered_packets * 2, "{report:?}");
}

#[test]
fn a_shaped_host_sends_no_faster_to_the_other_and_is_metered_there() {
    let mut bench = Bench::new("single,3", "rate=20M");
    let shape = |to: &str, bits_per_s| Change::Shape { from: "h1".into(), to: to.into(), bits_per_s };
    let greedy = |to: &str, port: u16| FlowSpec { port, ..FlowSpec::tcp("h1", to) };
    let flows = [greedy("h2", 1), greedy("h2", 2)].map(|spec| bench.start(&spec));
    let udp = bench.start(&FlowSpec::udp("h1", "h3", 1_000_000));
    let rates = |bench: &mut Bench| {
        bench.pass(1_000);
        let before = [flows[0], flows[1], udp].map(|flow| bench.report(flow));
        bench.pass(2_000);
        let rate = |(flow, before): (FlowId, &FlowReport)| bench.report(flow).rate_since(before);
        let all: Vec<f64> = [flows[0], flows[1], udp].into_iter().zip(&before).map(rate).collect();
        (all[0] + all[1], all[2])
    };
    let near = |rate: f64, expected: f64| (expected * 0.9..=expected).contains(&rate);
    bench.change(shape("h2", Some(4_000_000)));
    let before = bench.network.received_by_hosts();
    let (shaped, other) = rates(&mut bench);
    assert!(near(shaped, 4_000_000.0) && near(other, 1_001_000.0), "{shaped} {other}");
    bench.change(shape("h2", Some(8_000_000)));
    let (shaped, _) = rates(&mut bench);
    assert!(near(shaped, 8_000_000.0), "{shaped}");
    bench.change(shape("h2", None));
    assert!(rates(&mut bench).0 > 15_000_000.0, "as fast as the link");
    let sender = bench.network.hosts()[0].mac();
    let bytes = |counts: &[Vec<(flow::MacAddr, u64)>], host: usize| {
        counts[host].iter().find(|(from, _)| *from == sender).map_or(0, |(_, bytes)| *bytes)
    };
    let after = bench.network.received_by_hosts();
    let of_h2 = bytes(&after, 1) - bytes(&before, 1);
    // 3 s of 4, of 8 and of some 19 Mbit/s.
    assert!((10_000_000..12_000_000).contains(&of_h2), "{of_h2}");
    assert!(bytes(&after, 2) > bytes(&before, 2) && bytes(&after, 0) == 0);
    assert!(bench.network.change(&shape("h9", None), bench.now, &mut bench.effects).is_err());
}

#[test]
fn a_greedy_udp_flow_sends_as_fast_as_its_link() {
    let mut bench = Bench::new("single,2", "rate=20M");
    let id = bench.start(&FlowSpec { rate: FlowRate::Greedy, ..FlowSpec::udp("h1", "h2", 1) });
    bench.pass(2000);
    let report = bench.report(id);
    assert!((19_000_000.0..19_500_000.0).contains(&report.rate_bits_per_s()), "{report:?}");
    assert_eq!(report.lost_packets, 0, "its own link is not flooded");
    assert!(bench.network.stop_flow(id, bench.now, &mut bench.effects));
    bench.pass(100);
    assert_eq!(bench.network.next_due(), None, "and nothing is going on any more");
}

#[test]
fn a_tcp_flow_delivers_every_byte_once_over_links_that_lose_some() {
    for (ip, middle) in
        [(IpVersion::V4, "ideal"), (IpVersion::V4, "loss=2%,delay=2ms"), (IpVersion::V6, "loss=5%,rate=10M")]
    {
        let mut bench = with_middle(1, middle);
        let spec = FlowSpec { ip, limit_bytes: Some(1_000_001), ..FlowSpec::tcp("h1", "h2") };
        let id = bench.start(&spec);
        bench.pass(120_000);
        let report = bench.report(id);
        assert_eq!(report.state, FlowState::Ended, "{middle}: {report:?}");
        assert_eq!((report.sent_bytes, report.delivered_bytes), (1_000_001, 1_000_001), "{middle}");
        assert_eq!(report.retransmissions > 0, middle != "ideal", "{middle}: {report:?}");
        assert_eq!(bench.network.next_due(), None, "{middle}");
    }
}

#[test]
fn a_greedy_tcp_flow_fills_its_link() {
    for middle in ["rate=10M,delay=10ms", "rate=50M,delay=2ms,queue=50k", "rate=2M,delay=50ms"] {
        let mut bench = with_middle(1, middle);
        let id = bench.start(&FlowSpec::tcp("h1", "h2"));
        bench.pass(5_000);
        let before = bench.report(id);
        bench.pass(20_000);
        let report = bench.report(id);
        let quality: LinkQuality = middle.parse().unwrap();
        let share = report.rate_since(&before) / quality.rate_bits_per_s.unwrap() as f64;
        // Headers take a twentieth.
        assert!((0.85..0.97).contains(&share), "{middle}: {share} {report:?}");
    }
}

#[test]
fn two_greedy_tcp_flows_share_a_link() {
    for middle in ["rate=10M,delay=10ms", "rate=10M,delay=2ms,queue=30k", "rate=40M,delay=5ms,queue=100k"] {
        let mut bench = with_middle(2, middle);
        let first = bench.start(&FlowSpec::tcp("h1s1", "h1s2"));
        bench.pass(700);
        let second = bench.start(&FlowSpec::tcp("h2s1", "h2s2"));
        bench.pass(10_000);
        let before = [first, second].map(|id| bench.report(id));
        bench.pass(30_000);
        let rates = [0, 1].map(|flow| bench.report([first, second][flow]).rate_since(&before[flow]));
        let quality: LinkQuality = middle.parse().unwrap();
        let together = rates.iter().sum::<f64>() / quality.rate_bits_per_s.unwrap() as f64;
        assert!(jain_index(&rates) > 0.9, "{middle}: {rates:?}");
        assert!(together > 0.85, "{middle}: {rates:?}");
    }
}

#[test]
fn a_tcp_flow_of_fixed_rate_keeps_it_where_there_is_room() {
    let mut bench = with_middle(2, "rate=10M,delay=5ms");
    let rate = FlowRate::BitsPerSecond(2_000_000);
    let fixed = bench.start(&FlowSpec { rate, ..FlowSpec::tcp("h1s1", "h1s2") });
    bench.pass(10_000);
    let report = bench.report(fixed);
    assert!((1_950_000.0..2_010_000.0).contains(&report.rate_bits_per_s()), "{report:?}");
    assert_eq!((report.retransmissions, report.timeouts), (0, 0));
    let greedy = bench.start(&FlowSpec::tcp("h2s1", "h2s2"));
    bench.pass(30_000);
    let rates = [fixed, greedy].map(|id| bench.report(id).rate_bits_per_s());
    assert!(rates[0] > 1_500_000.0 && rates[1] > 5_500_000.0, "{rates:?}");
}

#[test]
fn what_ends_a_flow_from_outside_is_told() {
    let mut bench = with_middle(1, "delay=1ms");
    let gone = bench.start(&FlowSpec::tcp("h1", "h2"));
    bench.pass(100);
    assert_eq!(bench.report(gone).state, FlowState::Running);
    for up in [false, true] {
        bench.change(Change::Host { host: "h2".into(), up });
    }
    bench.pass(10_000);
    assert_eq!(bench.report(gone).state, FlowState::Refused, "the receiver knows nothing of it any more");
    bench.change(Change::Link { link: "s1-s2".into(), up: false });
    let nobody = bench.start(&FlowSpec::tcp("h1", "h2"));
    assert_eq!(bench.report(nobody).state, FlowState::Opening);
    bench.pass(200_000);
    assert_eq!(bench.report(nobody).state, FlowState::NoAnswer);
    assert_eq!(bench.network.next_due(), None);
}

#[test]
fn a_flow_goes_on_after_its_link_and_after_its_host_has_moved() {
    let mut bench = with_middle(1, "delay=1ms,rate=10M");
    let id = bench.start(&FlowSpec::tcp("h1", "h2"));
    bench.pass(1000);
    for up in [false, true] {
        bench.change(Change::Link { link: "s1-s2".into(), up });
        bench.pass(1000);
    }
    let before = bench.report(id);
    bench.pass(2000);
    assert!(bench.report(id).rate_since(&before) > 5_000_000.0);
    bench.change(Change::Quality { link: "h2-s2".into(), quality: "rate=50M".parse().unwrap() });
    bench.change(Change::Move { host: "h2".into(), switch: "s1".into(), port: None });
    bench.pass(1000);
    let before = bench.report(id);
    bench.pass(1000);
    assert!(bench.report(id).rate_since(&before) > 40_000_000.0, "the slow link is not between them now");
    assert_eq!(bench.report(id).state, FlowState::Running);
}

#[test]
fn on_the_wire_it_is_a_tcp_connection_from_syn_to_fin() {
    let mut bench = with_middle(1, "delay=1ms");
    bench.tap("h1");
    bench.start(&FlowSpec { limit_bytes: Some(5000), ..FlowSpec::tcp("h1", "h2") });
    bench.pass(1000);
    let told: Vec<String> = bench.captured().iter().filter_map(|copy| describe(&copy.frame)).collect();
    let expected = [
        "> S 0+0",
        "< SA 0+0",
        "> A 1+0",
        "> A 1+1440",
        "> A 1441+1440",
        "> A 2881+1440",
        "> AP 4321+680",
        "> AF 5001+0",
        "< A 1+0",
        "< A 1+0",
        "< AF 1+0",
        "> A 5002+0",
    ];
    assert_eq!(told, expected);
}

/// A TCP segment: direction, flags, and sequence number relative to the SYN. Its checksum must be right.
fn describe(frame: &[u8]) -> Option<String> {
    thread_local!(static FIRST: std::cell::RefCell<[Option<u32>; 2]> = const { std::cell::RefCell::new([None; 2]) });
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = packet.transport else { return None };
    let Some(etherparse::NetSlice::Ipv4(ip)) = packet.net else { return None };
    let header = tcp.to_header();
    let sum = header.calc_checksum_ipv4(&ip.header().to_header(), tcp.payload()).unwrap();
    assert_eq!(header.checksum, sum);
    let from_sender = header.destination_port == 5001;
    let first =
        FIRST.with_borrow_mut(|first| *first[usize::from(from_sender)].get_or_insert(header.sequence_number));
    let flags = [(header.syn, 'S'), (header.ack, 'A'), (header.fin, 'F'), (header.psh, 'P')];
    let flags: String = flags.into_iter().filter(|(set, _)| *set).map(|(_, letter)| letter).collect();
    let way = if from_sender { '>' } else { '<' };
    let sequence = header.sequence_number.wrapping_sub(first);
    Some(format!("{way} {flags} {sequence}+{}", tcp.payload().len()))
}

#[test]
fn as_many_flows_as_there_may_be_and_no_more() {
    let mut bench = Bench::new("single,2", "rate=1M");
    bench.change(Change::Link { link: "h1-s1".into(), up: false });
    let spec = FlowSpec { limit_bytes: Some(1), ..FlowSpec::udp("h1", "h2", 1_000) };
    let first = bench.start(&spec);
    for _ in 1..emulator::network::FLOWS_MAX {
        bench.start(&FlowSpec::tcp("h1", "h2"));
    }
    let refused = bench.network.start_flow(&spec, bench.now, &mut bench.effects);
    assert_eq!(refused, Err(FlowRefused::TooMany));
    bench.network.stop_flow(first, bench.now, &mut bench.effects);
    bench.start(&spec);
    assert!(bench.network.flow_report(first).is_none(), "the one that ended made room");
}
