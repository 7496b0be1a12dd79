//! Agents on Linux: two servers that send, one that receives through a link of 10 Mb/s, and the counters and classes of the kernel.
//!
//! Each test makes network namespaces for its own threads, so that nothing on the machine changes. That needs root, tc and nft: without
//! them, the tests say so and look at nothing. Rates are printed; only wide bounds are asserted.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod hosts;

use edge::linux::{Device, Trouble};
use edge::vnic::Directory;
use edge::{Orders, clean};
use hosts::{Arrival, Host, Lab, Vlan, datagram, run_agent, vnic};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What three VNICs of one receiver share in the tests.
const LINK_BPS: u64 = 10_000_000;

/// How long a change may take until the test counts as failed.
const PATIENCE: Duration = Duration::from_secs(20);

fn can_run(name: &str) -> bool {
    let has = |program: &str, argument: &str| Command::new(program).arg(argument).output().is_ok();
    if !nix::unistd::geteuid().is_root() {
        println!("left out: {name}: only root can make a network namespace");
        return false;
    }
    if !has("nft", "--version") || !has("tc", "-V") {
        println!("left out: {name}: nft or tc is missing (Debian's nftables and iproute2)");
        return false;
    }
    true
}

fn shown(host: &Host, program: &'static str, arguments: &'static [&'static str]) -> String {
    host.inside(move || {
        let output = Command::new(program).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    })
}

/// Two senders, the second 1.5 s after the first. Returns what arrived.
fn two_senders(vlan: Vlan, guarantees: [u64; 2]) -> Vec<Arrival> {
    with_agents(vlan, guarantees, |lab, receivers| {
        let arrivals = lab.receive("r", Duration::from_millis(3500));
        let first = lab.send("s1", 1, receivers[0], vlan, Duration::from_millis(3500));
        std::thread::sleep(Duration::from_millis(1500));
        let second = lab.send("s2", 2, receivers[1], vlan, Duration::from_millis(2000));
        first.join().unwrap();
        second.join().unwrap();
        arrivals.join().unwrap()
    })
}

/// Three servers with agents, from their start to their end. The traffic gets the receiving VNICs of both senders.
fn with_agents(
    vlan: Vlan,
    guarantees: [u64; 2],
    traffic: impl FnOnce(&Lab, &[u32]) -> Vec<Arrival>,
) -> Vec<Arrival> {
    let lab = Lab::new(&["s1", "s2", "r"], "r", LINK_BPS);
    // Each sender has a receiving VNIC of its own if the guarantees differ: then they are VNICs of different rates on one server.
    let same = guarantees[0] == guarantees[1];
    let receivers: &[u32] = if same { &[3, 3] } else { &[3, 4] };
    let mut vnics = vec![vnic(1, 1, guarantees[0], vlan), vnic(2, 2, guarantees[1], vlan)];
    match same {
        true => vnics.push(vnic(3, 3, LINK_BPS, vlan)),
        false => vnics.extend([vnic(3, 3, guarantees[0], vlan), vnic(4, 3, guarantees[1], vlan)]),
    }
    let orders = Arc::new(Orders::default());
    let agents: Vec<_> = ["s1", "s2", "r"]
        .iter()
        .zip(1..)
        .map(|(name, id)| run_agent(&lab, name, id, &vnics, LINK_BPS, &orders))
        .collect();
    std::thread::sleep(Duration::from_millis(700));
    let arrivals = traffic(&lab, receivers);
    orders.end();
    for agent in agents {
        agent.join().unwrap().unwrap();
    }
    for name in ["s1", "s2", "r"] {
        let host = lab.host(name);
        assert!(!shown(host, "tc", &["qdisc", "show", "dev", "eth0"]).contains("bed9"), "{name} is clean");
        assert!(!shown(host, "nft", &["list", "tables"]).contains("burnet"), "{name} is clean");
    }
    arrivals
}

/// Megabits a second of both senders in a window of 100 ms, which begins so many windows after the second sender's first packet.
fn window(arrivals: &[Arrival], index: i32) -> [f64; 2] {
    let first =
        arrivals.iter().find(|arrival| arrival.sender == 1).expect("the second sender sent").at.as_secs_f64();
    let from = first + f64::from(index) * 0.1;
    let mut bits = [0.0; 2];
    for arrival in arrivals {
        if (from..from + 0.1).contains(&arrival.at.as_secs_f64()) {
            bits[arrival.sender] += arrival.bytes as f64 * 8.0;
        }
    }
    bits.map(|bits| bits / 0.1 / 1e6)
}

/// Prints the windows around the start of the second sender, and returns the mean of a second that begins 200 ms behind it.
fn settled(name: &str, arrivals: &[Arrival]) -> [f64; 2] {
    println!("{name}: Mb/s in windows of 100 ms; at 0 ms comes the first packet of the second sender");
    for index in -3..9 {
        let [first, second] = window(arrivals, index);
        println!("  {:5} ms {first:6.2} {second:6.2}", index * 100);
    }
    let windows: Vec<[f64; 2]> = (2..12).map(|index| window(arrivals, index)).collect();
    [0, 1].map(|which| windows.iter().map(|rates| rates[which]).sum::<f64>() / windows.len() as f64)
}

fn within(name: &str, got: [f64; 2], expected: [f64; 2]) {
    for (got, expected) in got.iter().zip(expected) {
        println!("{name}: {got:.2} Mb/s, share {expected:.2}: {:+.1} %", (got / expected - 1.0) * 100.0);
        assert!((0.6..1.4).contains(&(got / expected)), "{name}: {got} instead of {expected}");
    }
}

#[test]
fn two_senders_share_the_nic_of_a_receiver() {
    if can_run("two_senders_share_the_nic_of_a_receiver") {
        let arrivals = two_senders(Vlan::None, [LINK_BPS; 2]);
        within("equal", settled("equal", &arrivals), [5.0, 5.0]);
    }
}

#[test]
fn tcp_connections_share_in_the_same_way() {
    if can_run("tcp_connections_share_in_the_same_way") {
        let arrivals = with_agents(Vlan::None, [LINK_BPS; 2], |lab, _| {
            let arrivals = lab.accept("r", Duration::from_millis(5500));
            let first = lab.connect("s1", 3, Duration::from_millis(5500));
            std::thread::sleep(Duration::from_millis(2000));
            let second = lab.connect("s2", 3, Duration::from_millis(3500));
            first.join().unwrap();
            second.join().unwrap();
            arrivals.join().unwrap()
        });
        // Payload: 1,448 of 1,514 bytes.
        within("TCP", settled("TCP", &arrivals), [4.78, 4.78]);
    }
}

#[test]
fn guarantees_of_8_and_2_are_kept_and_lent() {
    if can_run("guarantees_of_8_and_2_are_kept_and_lent") {
        let arrivals = two_senders(Vlan::None, [8_000_000, 2_000_000]);
        within("8 and 2", settled("8 and 2", &arrivals), [8.0, 2.0]);
        let alone = (-9..0).map(|index| window(&arrivals, index)[0]).fold(0.0, f64::max);
        println!("the first alone: {alone:.2} Mb/s with a guarantee of 8");
        assert!(alone > 8.5, "spare capacity is lent: {alone}");
    }
}

#[test]
fn tagged_frames_are_shaped_and_metered_too() {
    if can_run("tagged_frames_are_shaped_and_metered_too") {
        let arrivals = two_senders(Vlan::Id(7), [8_000_000, 2_000_000]);
        within("tagged", settled("tagged", &arrivals), [8.0, 2.0]);
    }
}

#[test]
fn an_interface_that_another_program_shapes_is_left_alone() {
    if !can_run("an_interface_that_another_program_shapes_is_left_alone") {
        return;
    }
    let lab = Lab::new(&["s1"], "s1", LINK_BPS);
    let host = lab.host("s1");
    host.run("tc qdisc add dev eth0 root handle 1: htb default 1");
    let why = host.inside(|| clean(&Device::new("eth0").unwrap()).unwrap_err());
    assert!(matches!(why, Trouble::Device(_)), "{why}");
    assert!(shown(host, "tc", &["qdisc", "show", "dev", "eth0"]).contains("htb 1:"));
    host.run("tc qdisc del dev eth0 root");
    // What an earlier run left is removed: it has the mark.
    host.run("tc qdisc add dev eth0 root handle bed9: htb default 1");
    host.run("nft add table netdev burnet_edge_eth0");
    host.inside(|| clean(&Device::new("eth0").unwrap()).unwrap());
    assert!(!shown(host, "tc", &["qdisc", "show", "dev", "eth0"]).contains("htb"));
    assert_eq!(shown(host, "nft", &["list", "tables"]), "");
    let missing = host.inside(|| clean(&Device::new("eth9").unwrap()).unwrap_err().to_string());
    assert!(missing.contains("eth9"), "{missing}");
}

#[test]
fn a_vnic_that_comes_and_goes_has_classes_and_counters_only_then() {
    if !can_run("a_vnic_that_comes_and_goes_has_classes_and_counters_only_then") {
        return;
    }
    let lab = Lab::new(&["s1"], "s1", LINK_BPS);
    let host = lab.host("s1");
    let orders = Arc::new(Orders::default());
    let first = [vnic(1, 1, 3_000_000, Vlan::None)];
    let agent = run_agent(&lab, "s1", 1, &first, LINK_BPS, &orders);
    let classes = || shown(host, "tc", &["class", "show", "dev", "eth0"]);
    let receivers = || shown(host, "nft", &["list", "map", "netdev", "burnet_edge_eth0", "receivers"]);
    let until = |what: &str, holds: &dyn Fn() -> bool| {
        let begin = Instant::now();
        while !holds() {
            assert!(begin.elapsed() < PATIENCE, "{what}: {}{}", classes(), receivers());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until("one VNIC", &|| classes().contains("rate 3Mbit ceil 10Mbit"));
    assert!(receivers().contains("02:00:00:00:00:01") && !receivers().contains("02:00:00:00:00:05"));
    let both = [first[0], vnic(5, 1, 4_000_000, Vlan::Id(9))];
    orders.replace_directory(Directory::new(both).unwrap());
    until("a second VNIC", &|| classes().contains("rate 4Mbit ceil 10Mbit"));
    orders.replace_directory(Directory::new([both[1]]).unwrap());
    until("the first has left", &|| {
        !classes().contains("rate 3Mbit") && !receivers().contains("02:00:00:00:00:01")
    });
    assert!(classes().contains("rate 4Mbit"));
    orders.end();
    agent.join().unwrap().unwrap();
    assert_eq!(classes(), "");
}

#[test]
fn a_tenants_datagram_to_the_port_of_agents_is_counted() {
    if !can_run("a_tenants_datagram_to_the_port_of_agents_is_counted") {
        return;
    }
    let lab = Lab::new(&["s1", "s2", "r"], "r", LINK_BPS);
    // Answers of ARP would count.
    ["s1", "s2"].iter().for_each(|name| lab.host(name).run("ip link set eth0 arp off"));
    let orders = Arc::new(Orders::default());
    let vnics = [
        vnic(1, 1, 3_000_000, Vlan::None),
        vnic(2, 2, 3_000_000, Vlan::None),
        vnic(3, 3, 3_000_000, Vlan::None),
    ];
    let agent = run_agent(&lab, "r", 3, &vnics, LINK_BPS, &orders);
    let host = lab.host("r");
    let counted = || shown(host, "nft", &["list", "table", "netdev", "burnet_edge_eth0"]);
    let begin = Instant::now();
    // Agent 2 has the address 10.9.0.2, which a tenant has not.
    while !counted().contains("02:00:00:00:00:01 . 02:00:00:00:00:03") {
        assert!(begin.elapsed() < PATIENCE, "{}", counted());
        lab.send_one("s2", datagram(2, 3, 0));
        lab.send_one("s1", datagram(1, 3, 1));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!counted().contains("02:00:00:00:00:02 . 02:00:00:00:00:03"), "what a peer says is not counted");
    orders.end();
    agent.join().unwrap().unwrap();
}

#[test]
fn an_agent_whose_table_is_removed_says_so_and_cleans_up() {
    if !can_run("an_agent_whose_table_is_removed_says_so_and_cleans_up") {
        return;
    }
    let lab = Lab::new(&["s1"], "s1", LINK_BPS);
    let host = lab.host("s1");
    let orders = Arc::new(Orders::default());
    let agent = run_agent(&lab, "s1", 1, &[vnic(1, 1, 3_000_000, Vlan::None)], LINK_BPS, &orders);
    let begin = Instant::now();
    while shown(host, "nft", &["list", "tables"]).is_empty() {
        assert!(begin.elapsed() < PATIENCE, "no table");
        std::thread::sleep(Duration::from_millis(20));
    }
    host.run("nft delete table netdev burnet_edge_eth0");
    let why = agent.join().unwrap().unwrap_err().to_string();
    assert!(why.contains("was the table removed by another program?"), "{why}");
    assert!(!shown(host, "tc", &["qdisc", "show", "dev", "eth0"]).contains("bed9"));
}
