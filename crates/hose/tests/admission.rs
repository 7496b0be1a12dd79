//! A slice is admitted if its NICs and links carry the worst that it may send.

mod network;
mod random;

use graph::SwitchNo;
use hose::{
    ALONE_MAX, Admission, Bandwidth, Checks, Lack, Nic, NicNo, Part, Routing, SliceNo, SliceRequest,
    VnicRequest, WHOLE, Worst, embed, fit, worst,
};
use network::Network;
use random::Random;
use std::collections::BTreeMap;

/// The greatest sum of shares over all whole amounts: what a person would try on paper.
fn tried(parts: &[Part], supply: &mut [u64], demand: &mut [u64]) -> u128 {
    let Some((part, rest)) = parts.split_first() else { return 0 };
    let (from, to) = (part.from as usize, part.to as usize);
    let most = supply[from].min(demand[to]);
    let mut best = 0;
    for amount in 0..=most {
        supply[from] -= amount;
        demand[to] -= amount;
        let load = u128::from(amount) * u128::from(part.share) + tried(rest, supply, demand);
        best = best.max(load);
        supply[from] += amount;
        demand[to] += amount;
    }
    best
}

#[test]
fn the_worst_traffic_is_the_greatest_of_all() {
    let mut random = Random::new(1);
    for round in 0..400 {
        let places = 2 + random.number(3);
        let rates: Vec<u64> = (0..places).map(|_| random.below(4)).collect();
        let mut parts = Vec::new();
        for from in 0..places {
            for to in (0..places).filter(|to| *to != from) {
                if random.below(4) > 0 && parts.len() < 9 {
                    let share =
                        [WHOLE, WHOLE / 2, WHOLE / 3, WHOLE / 4, WHOLE / 12][random.below(5) as usize];
                    parts.push(Part { from, to, share });
                }
            }
        }
        let best = tried(&parts, &mut rates.clone(), &mut rates.clone());
        // In units of which a twelfth is whole.
        let scaled: Vec<_> = rates.iter().map(|rate| rate * 12).collect();
        let expected = Worst { load_bps: (best * 12 / u128::from(WHOLE)) as u64, is_exact: true };
        assert_eq!(worst(&parts, &scaled), expected, "round {round}: {parts:?} {rates:?}");
    }
}

#[test]
fn with_one_path_the_worst_is_the_lesser_of_both_sums() {
    let part = |from, to| Part { from, to, share: WHOLE };
    let parts = [part(0, 2), part(0, 3), part(1, 2), part(1, 3)];
    assert_eq!(worst(&parts, &[10, 20, 5, 6]).load_bps, 11);
    assert_eq!(worst(&parts, &[10, 20, 50, 60]).load_bps, 30);
    // Only one sender can reach each receiver here, so the sums of both sides say too much.
    assert_eq!(worst(&[part(0, 2), part(1, 3)], &[10, 20, 5, 60]).load_bps, 25);
    assert_eq!(worst(&[], &[10, 20]).load_bps, 0);
}

#[test]
fn the_worst_of_many_places_is_found_in_few_steps() {
    let mut random = Random::new(5);
    let rates: Vec<_> = (0..40).map(|_| random.below(10_000_000_000)).collect();
    let pairs =
        (0..40_u32).flat_map(|from| (0..40).map(move |to| (from, to))).filter(|(from, to)| from != to);
    let parts: Vec<_> =
        pairs.map(|(from, to)| Part { from, to, share: WHOLE / (1 + random.below(16)) }).collect();
    assert!(worst(&parts, &rates).is_exact);
}

#[test]
fn equal_cost_paths_share_evenly_at_each_switch() {
    // Two spines, two leaves.
    let mut network = Network::new(&[(1, 3), (1, 4), (2, 3), (2, 4)], 10_000);
    let places = [network.switch(3), network.switch(4)];
    let routing = network.routing(&places);
    assert_eq!(routing.parts.len(), 8, "four cables, both directions");
    assert!(routing.parts.values().flatten().all(|part| part.share == WHOLE / 2));
    network.fail(1, 3);
    let routing = network.routing(&places);
    assert_eq!(routing.parts.len(), 4);
    assert!(routing.parts.values().flatten().all(|part| part.share == WHOLE));
}

#[test]
fn what_leaves_a_switch_is_what_reached_it() {
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let ring = (1..=8).map(|one| (one, one % 8 + 1));
        let chords: Vec<_> = (0..8).map(|_| (1 + random.below(8), 1 + random.below(8))).collect();
        let cables: Vec<_> = ring.chain(chords.into_iter().filter(|(one, two)| one != two)).collect();
        let mut network = Network::new(&cables, 10_000);
        let places: Vec<_> = [1, 3, 4, 7].into_iter().map(|switch| network.switch(switch)).collect();
        let routing = network.routing(&places);
        let mut balance: BTreeMap<(u32, u32, SwitchNo), i128> = BTreeMap::new();
        for (link, parts) in &routing.parts {
            let slot = network.graph.topology().slot(*link);
            for part in parts {
                *balance.entry((part.from, part.to, slot.from)).or_default() += i128::from(part.share);
                *balance.entry((part.from, part.to, slot.to)).or_default() -= i128::from(part.share);
            }
        }
        for ((from, to, switch), out) in balance {
            let expected = match switch {
                first if first == places[from as usize] => i128::from(WHOLE),
                last if last == places[to as usize] => -i128::from(WHOLE),
                _ => 0,
            };
            assert!((out - expected).abs() < 100, "seed {seed}: {out} and {expected}");
        }
    }
}

fn rate(text: &str) -> Bandwidth {
    text.parse().expect("it is known")
}

fn request(name: &str, vnics: &[(&str, u32, &str)]) -> SliceRequest {
    let vnics = vnics.iter().map(|(name, nic, bandwidth)| VnicRequest {
        name: (*name).to_owned(),
        nic: NicNo(*nic),
        rate: rate(bandwidth),
    });
    SliceRequest { name: name.to_owned(), vnics: vnics.collect() }
}

/// NICs of 10 Mbit/s with the number of their server, each at the switch with that number.
fn admission(network: &Network, servers: &[u32]) -> Admission {
    let mut admission = Admission::default();
    for server in servers {
        let switch = network.switch(u64::from(*server));
        let nic = Nic { name: format!("server {server}"), capacity: rate("10M"), switch };
        admission.put_nic(NicNo(*server), nic);
    }
    admission
}

/// Spines 1 and 2, leaves 3 and 4; the servers are leaves too, since a leaf is where they are.
fn fabric(kbps: u64) -> Network {
    Network::new(&[(1, 3), (1, 4), (2, 3), (2, 4)], kbps)
}

const RED: SliceNo = SliceNo(0);
const BLUE: SliceNo = SliceNo(1);

#[test]
fn vnics_beyond_a_nic_are_refused_with_what_is_left() {
    let network = fabric(10_000);
    let mut admission = admission(&network, &[3, 4]);
    let red = request("red", &[("A", 4, "8M"), ("B", 3, "8M")]);
    let booking = admission.judge(network.graph.topology(), RED, &red, None).expect("it is known");
    admission.book(RED, booking);
    let blue = request("blue", &[("E", 4, "1M"), ("D", 3, "4M")]);
    let refused = admission.judge(network.graph.topology(), BLUE, &blue, None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "slice blue: D asks for 4.0M; the NIC of server 3 has 2.0M of 10.0M left"
    );
    let fits = fit(&admission, network.graph.topology(), BLUE, &blue, None).expect("it is known");
    assert_eq!(fits.to_string(), "fits with E 500k, D 2M; or with D 2M alone");
    // What red has itself does not count against it.
    let more = request("red", &[("A", 4, "10M"), ("B", 3, "10M")]);
    assert!(admission.judge(network.graph.topology(), RED, &more, None).is_ok());
    admission.release(RED);
    assert!(admission.judge(network.graph.topology(), BLUE, &blue, None).is_ok());
}

#[test]
fn two_vnics_of_one_slice_share_a_nic() {
    let network = fabric(10_000);
    let admission = admission(&network, &[3]);
    let both = request("blue", &[("C", 3, "7M"), ("D", 3, "4M")]);
    let refused = admission.judge(network.graph.topology(), BLUE, &both, None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "slice blue: D asks for 4.0M; the NIC of server 3 has 3.0M of 10.0M left"
    );
}

#[test]
fn a_nic_or_a_number_that_is_not_known_is_named() {
    let network = fabric(10_000);
    let admission = admission(&network, &[3]);
    let judge = |slice, request| admission.judge(network.graph.topology(), slice, &request, None);
    let refused = judge(BLUE, request("blue", &[("C", 8, "7M")])).unwrap_err();
    assert_eq!(refused.to_string(), "slice blue: C is at NIC number 8, which is not known");
    let refused = judge(SliceNo(4_096), request("blue", &[("C", 3, "7M")])).unwrap_err();
    assert_eq!(refused.lack, Lack::SliceNumber(SliceNo(4_096)));
    let many = SliceRequest {
        name: "many".to_owned(),
        vnics: vec![request("", &[("C", 3, "1k")]).vnics[0].clone(); 4_097],
    };
    assert_eq!(judge(BLUE, many).unwrap_err().lack, Lack::TooManyVnics(4_097));
}

#[test]
fn a_link_must_carry_the_worst_of_all_hoses() {
    // Each cable has 6 Mbit/s. Half of the lesser side goes over each.
    let mut network = fabric(6_000);
    let mut admission = admission(&network, &[3, 4]);
    let places = [network.switch(3), network.switch(4)];
    let routing = network.routing(&places);
    let red = request("red", &[("A", 3, "8M"), ("B", 4, "8M")]);
    let booking = admission.judge(network.graph.topology(), RED, &red, Some(&routing)).expect("it is known");
    assert!(booking.links.values().all(|bps| *bps == 4_000_000), "{booking:?}");
    admission.book(RED, booking);
    for (nic, name) in [(3, "more 3"), (4, "more 4")] {
        let switch = network.switch(nic);
        let nic = Nic { name: name.to_owned(), capacity: rate("10M"), switch };
        admission.put_nic(NicNo(10 + switch.0), nic);
    }
    let numbers: Vec<_> = places.iter().map(|place| 10 + place.0).collect();
    let blue = request("blue", &[("E", numbers[0], "6M"), ("F", numbers[1], "10M")]);
    let topology = network.graph.topology();
    let refused = admission.judge(topology, BLUE, &blue, Some(&routing)).unwrap_err();
    assert!(refused.to_string().starts_with("slice blue: its VNICs can put 3.0M on link of:"), "{refused}");
    assert!(refused.to_string().ends_with("which has 2.0M of 6.0M left"), "{refused}");
    let fits = fit(&admission, topology, BLUE, &blue, Some(&routing)).expect("it is known");
    assert_eq!(fits.to_string(), "fits with E 4M, F 6.666M; or with E 4M alone; or with F 4M alone");
    assert!(admission.judge(topology, BLUE, &blue, None).is_ok(), "the edge alone has room");
}

#[test]
fn of_many_vnics_those_with_the_greatest_rates_are_judged_alone() {
    let network = fabric(10_000);
    let admission = admission(&network, &[3]);
    let vnic = |number: u32| {
        let (name, rate) = (format!("v{number}"), Bandwidth::from_kbps(u64::from(1_000 + number)));
        VnicRequest { name, nic: NicNo(3), rate }
    };
    let blue = SliceRequest { name: "blue".to_owned(), vnics: (0..100).map(vnic).collect() };
    let fits = fit(&admission, network.graph.topology(), BLUE, &blue, None).expect("it is known");
    assert_eq!((fits.together.len(), fits.alone.len()), (100, ALONE_MAX));
    assert_eq!((&*fits.alone[0].0, &*fits.alone[ALONE_MAX - 1].0), ("v68", "v99"));
}

#[test]
fn what_intents_have_reserved_is_theirs() {
    let mut network = fabric(6_000);
    let places = [network.switch(3), network.switch(4)];
    let routing = network.routing(&places);
    let admission = admission(&network, &[3, 4]);
    let red = request("red", &[("A", 3, "8M"), ("B", 4, "8M")]);
    assert!(admission.judge(network.graph.topology(), RED, &red, Some(&routing)).is_ok());
    let link = *routing.parts.keys().next().expect("it is known");
    network.graph.topology_mut().reserve(link, 2_001);
    let refused = admission.judge(network.graph.topology(), RED, &red, Some(&routing)).unwrap_err();
    assert!(matches!(refused.lack, Lack::Link { link: lacking, .. } if lacking == link), "{refused}");
}

#[test]
fn a_slice_that_names_only_vnics_gets_all_shortest_paths() {
    let mut network = fabric(10_000);
    let admission = admission(&network, &[3, 4]);
    let blue = request("blue", &[("E", 3, "10M"), ("F", 4, "10M")]);
    let found = embed(network.graph(), &admission, BLUE, &blue, Checks::Fabric).expect("it is known");
    assert_eq!((found.switches.len(), found.links.len()), (4, 8));
    assert_eq!(
        found.attempts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["all shortest paths: fits"]
    );
}

#[test]
fn a_slice_avoids_links_that_are_full() {
    let mut network = fabric(10_000);
    let mut admission = admission(&network, &[3, 4]);
    let red = request("red", &[("A", 3, "5M"), ("B", 4, "5M")]);
    // Red has all of its traffic over spine 1.
    let spine = network.routing_without(&[network.switch(3), network.switch(4)], 2);
    let mut booking =
        admission.judge(network.graph.topology(), RED, &red, Some(&spine)).expect("it is known");
    booking.links.values_mut().for_each(|bps| *bps = 8_000_000);
    admission.book(RED, booking);
    let blue = request("blue", &[("E", 3, "5M"), ("F", 4, "5M")]);
    let found = embed(network.graph(), &admission, BLUE, &blue, Checks::Fabric).expect("it is known");
    assert!(!found.switches.contains(&network.switch(1)), "{:?}", found.attempts);
    assert!(found.attempts.len() > 1 && found.attempts.last().expect("it is known").lack.is_none());
    let again = embed(network.graph(), &admission, BLUE, &blue, Checks::Fabric).expect("it is known");
    assert_eq!(found, again);
    let trusted = embed(network.graph(), &admission, BLUE, &blue, Checks::Edge).expect("it is known");
    assert_eq!((trusted.attempts.len(), trusted.booking.links.len()), (1, 0));
}

#[test]
fn a_tree_fits_where_equal_cost_paths_do_not() {
    // A triangle whose cables have 3 Mbit/s, but one has 1: the shortest path of one pair is too thin.
    let mut network = Network::new(&[(3, 4), (4, 5), (3, 5)], 3_000);
    network.capacity(3, 5, 1_000);
    let admission = admission(&network, &[3, 4, 5]);
    let blue = request("blue", &[("A", 3, "3M"), ("B", 4, "3M"), ("C", 5, "3M")]);
    let found = embed(network.graph(), &admission, BLUE, &blue, Checks::Fabric).expect("it is known");
    assert_eq!(found.links.len(), 4, "{:?}", found.attempts);
    assert!(found.attempts[0].to_string().starts_with("all shortest paths: its VNICs can put 3.0M on link"));
}

#[test]
fn what_no_way_carries_is_refused_with_all_attempts() {
    let mut network = fabric(1_000);
    let admission = admission(&network, &[3, 4]);
    let blue = request("blue", &[("E", 3, "10M"), ("F", 4, "10M")]);
    let refused = embed(network.graph(), &admission, BLUE, &blue, Checks::Fabric).unwrap_err();
    assert!(refused.to_string().starts_with("slice blue: its VNICs can put 5.0M on link"), "{refused}");
    assert!(refused.attempts.len() > 3, "{refused:?}");
    let beyond = request("blue", &[("E", 3, "11M"), ("F", 4, "10M")]);
    let refused = embed(network.graph(), &admission, BLUE, &beyond, Checks::Fabric).unwrap_err();
    assert_eq!(
        (refused.attempts.len(), refused.to_string().as_str()),
        (1, "slice blue: E asks for 11.0M; the NIC of server 3 has 10.0M of 10.0M left")
    );
}

#[test]
fn switches_that_are_not_connected_are_named() {
    let mut network = Network::new(&[(1, 3), (2, 4)], 10_000);
    let admission = admission(&network, &[3, 4]);
    let blue = request("blue", &[("E", 3, "1M"), ("F", 4, "1M")]);
    let refused = embed(network.graph(), &admission, BLUE, &blue, Checks::Fabric).unwrap_err();
    assert_eq!(
        refused.refusal.to_string(),
        "slice blue: no path leads from switch of:0000000000000004 to switch of:0000000000000003"
    );
}

#[test]
fn vnics_at_one_switch_need_no_links() {
    let mut network = fabric(1_000);
    let admission = admission(&network, &[3]);
    let blue = request("blue", &[("E", 3, "5M"), ("F", 3, "5M")]);
    let found = embed(network.graph(), &admission, BLUE, &blue, Checks::Fabric).expect("it is known");
    assert_eq!((found.switches, found.links.len()), (vec![network.switch(3)], 0));
    let routing = Routing { places: vec![network.switch(3)], ..Routing::default() };
    assert_eq!(found.routing, routing);
}
