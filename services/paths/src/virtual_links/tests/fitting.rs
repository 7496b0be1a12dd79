//! Virtual links whose ways carry what the slices may send, and those whose ways do not.

use super::*;

/// A second link between the same switches, for another slice.
const SECOND: &str = "1/4-2/4";

/// A slice with VNICs of this rate at switches 1 and 2.
fn promised(tag: u16, links: &[&str], mbps: u64) -> SliceLinks {
    let rates_bps = [1, 2].map(|switch| (flow::DatapathId(switch), mbps * 1_000_000)).into();
    SliceLinks { rates_bps, ..slice(tag, links) }
}

/// 1 and 2 with two ports each. 3 and 6 are behind these, with switches 4, 5 and so on between: the cables at both ends of each carry this.
fn bed(slices: &[(&str, SliceLinks)], mbps_over: &[(u64, u64)]) -> Bed {
    let mut bed = Bed::new(&[], slices);
    for cable in ["1/3-3/1", "1/4-3/9", "6/1-2/3", "6/9-2/4"] {
        bed.set_capacity(cable, 100);
    }
    for (between, mbps) in mbps_over {
        bed.set_capacity(&format!("3/{between}-{between}/1"), *mbps);
        bed.set_capacity(&format!("{between}/2-6/{between}"), *mbps);
    }
    bed.settle();
    bed
}

impl Bed {
    /// Both directions of a cable are up and carry so much.
    fn set_capacity(&mut self, cable: &str, mbps: u64) {
        self.set(cable, true);
        let id: LinkId = cable.parse().unwrap();
        for id in [id, id.reversed()] {
            let capacity_kbps = mbps * 1_000;
            self.network.put_link(&view::Link { capacity_kbps, ..link(&id.to_string(), true) });
        }
    }

    /// An intent reserves so much on a link of the network, or releases it.
    fn reserve(&mut self, id: &str, mbps: u64, is_more: bool) {
        let topology = self.network.graph.topology_mut();
        let number = topology.link(id.parse().unwrap()).unwrap();
        match is_more {
            true => topology.reserve(number, mbps * 1_000),
            false => topology.release(number, mbps * 1_000),
        }
        self.links.on_reserved();
        self.settle();
    }

    fn settle(&mut self) {
        self.turn();
        self.confirm();
    }

    /// The switch in the middle of the way of a link that is up, and the hop that lacks, with the worst traffic and what is left in Mbit/s.
    fn way(&self, slice: &str, link: &str) -> (u64, Option<(String, u64, u64)>) {
        let state = self.links.tables.told(slice, link.parse().unwrap()).unwrap();
        assert!(state.is_up, "{state:?}");
        let between = state.hops.iter().map(|hop| hop.to.switch.0).find(|it| ![2, 3, 6].contains(it));
        let lack = state.lack.map(|lack| {
            let hop = format!("{}-{}", lack.hop.from.switch.0, lack.hop.to.switch.0);
            (hop, lack.worst_kbps / 1_000, lack.left_kbps / 1_000)
        });
        (between.unwrap_or_default(), lack)
    }
}

fn lacks(hop: &str, worst_mbps: u64, left_mbps: u64) -> Option<(String, u64, u64)> {
    Some((hop.to_owned(), worst_mbps, left_mbps))
}

#[test]
fn a_link_takes_a_way_that_carries_it_beside_other_slices() {
    let slices = [("blue", promised(7, &[LINK], 8)), ("red", promised(8, &[SECOND], 4))];
    let bed = bed(&slices, &[(4, 10), (5, 10)]);
    let ((blue, blue_lack), (red, red_lack)) = (bed.way("blue", LINK), bed.way("red", SECOND));
    assert_eq!((blue_lack, red_lack, blue + red), (None, None, 9), "one over each switch");
    // Where both fit, both take the same.
    let slices = [("blue", promised(7, &[LINK], 6)), ("red", promised(8, &[SECOND], 4))];
    let bed = super::fitting::bed(&slices, &[(4, 10), (5, 10)]);
    assert_eq!(bed.way("blue", LINK), bed.way("red", SECOND));
}

#[test]
fn a_link_stays_up_on_the_way_that_lacks_least_until_one_fits() {
    let mut bed = bed(&[("blue", promised(7, &[LINK], 8))], &[(4, 3), (5, 8), (7, 6), (8, 2)]);
    assert_eq!(bed.way("blue", LINK), (5, None), "only one carries it");
    bed.set("3/5-5/1", false);
    bed.settle();
    assert_eq!(bed.way("blue", LINK), (7, lacks("3-7", 8, 6)), "6 is the most of the others");
    // One that lacks less is no reason to move, and one that fits is.
    bed.set_capacity("3/4-4/1", 7);
    bed.set_capacity("4/2-6/4", 7);
    bed.settle();
    assert_eq!(bed.way("blue", LINK), (7, lacks("3-7", 8, 6)));
    bed.set_capacity("3/5-5/1", 8);
    bed.settle();
    assert_eq!(bed.way("blue", LINK), (5, None));
    // It stays there, although the way of before fits too now.
    bed.set_capacity("3/7-7/1", 9);
    bed.set_capacity("7/2-6/7", 9);
    bed.settle();
    assert_eq!(bed.way("blue", LINK), (5, None));
}

#[test]
fn each_link_over_a_hop_that_lacks_says_so_until_one_of_them_can_move() {
    let slices = [("blue", promised(7, &[LINK], 8)), ("red", promised(8, &[SECOND], 4))];
    let mut bed = bed(&slices, &[(4, 10)]);
    assert_eq!(bed.way("blue", LINK), (4, lacks("3-4", 8, 6)));
    assert_eq!(bed.way("red", SECOND), (4, lacks("3-4", 4, 2)));
    // The first that fits elsewhere moves. Then the other one fits too.
    bed.set_capacity("3/5-5/1", 4);
    bed.set_capacity("5/2-6/5", 4);
    bed.settle();
    assert_eq!((bed.way("blue", LINK), bed.way("red", SECOND)), ((4, None), (5, None)));
}

#[test]
fn a_link_that_moves_makes_room_for_one_before_it() {
    // blue may not use the port 3/7, because green has its packets there.
    let green = SliceLinks { ports: vec!["3/7".parse().unwrap()], ..slice(7, &[]) };
    let slices = [("blue", promised(7, &[LINK], 4)), ("green", green), ("red", promised(8, &[SECOND], 8))];
    let mut bed = bed(&slices, &[(4, 4), (5, 3)]);
    let mut set = |over: &[(u64, u64)]| {
        for (between, mbps) in over {
            bed.set_capacity(&format!("3/{between}-{between}/1"), *mbps);
            bed.set_capacity(&format!("{between}/2-6/{between}"), *mbps);
        }
        bed.settle();
        (bed.way("blue", LINK), bed.way("red", SECOND))
    };
    assert_eq!(set(&[(5, 8)]), ((4, None), (5, None)));
    assert_eq!(set(&[(4, 3)]), ((4, lacks("3-4", 4, 3)), (5, None)));
    assert_eq!(set(&[(5, 6), (7, 8)]), ((5, None), (7, None)), "blue takes what red has left");
}

#[test]
fn what_intents_reserve_is_not_there() {
    let mut bed = bed(&[("blue", promised(7, &[LINK], 4))], &[(4, 10), (5, 10)]);
    let (first, _) = bed.way("blue", LINK);
    let (second, hop) = (9 - first, format!("{first}/2-6/{first}"));
    bed.reserve(&hop, 6, true);
    assert_eq!(bed.way("blue", LINK), (first, None), "4 of 10 are left");
    bed.reserve(&hop, 1, true);
    assert_eq!(bed.way("blue", LINK), (second, None));
    // The other direction counts likewise.
    bed.reserve(&format!("{second}/1-3/{second}"), 9, true);
    assert_eq!(
        bed.way("blue", LINK),
        (second, lacks(&format!("{second}-3"), 4, 1)),
        "it is no better on the first way"
    );
    bed.reserve(&format!("{second}/1-3/{second}"), 9, false);
    assert_eq!(bed.way("blue", LINK), (second, None));
}

#[test]
fn a_cable_counts_for_its_slice_before_others_are_laid_over_it() {
    // red has the cable from 3 to 4 as a link, and comes later in the order of names.
    let rates_bps = [3, 4].map(|switch| (flow::DatapathId(switch), 5_000_000)).into();
    let red = SliceLinks { rates_bps, ..slice(8, &["3/4-4/1"]) };
    let mut bed = bed(&[("blue", promised(7, &[LINK], 8)), ("red", red)], &[(4, 10), (5, 10)]);
    assert_eq!((bed.way("blue", LINK), bed.way("red", "3/4-4/1")), ((5, None), (4, None)));
    bed.set("3/5-5/1", false);
    bed.settle();
    assert_eq!(bed.way("blue", LINK), (4, lacks("3-4", 8, 5)));
    assert_eq!(
        bed.way("red", "3/4-4/1"),
        (4, lacks("3-4", 5, 2)),
        "what it is promised is not there any more"
    );
}

#[test]
fn what_is_not_known_is_not_judged() {
    // Nothing is promised on cables whose capacity is not known.
    let check = |blue: SliceLinks| {
        let mut bed = bed(&[("blue", blue)], &[(4, 0)]);
        assert_eq!(bed.way("blue", LINK), (4, None));
        // A capacity that becomes known is one.
        bed.set_capacity("3/4-4/1", 3);
        bed.settle();
        bed.way("blue", LINK)
    };
    assert_eq!(check(promised(7, &[LINK], 4)), (4, lacks("3-4", 4, 3)));
    // Nothing is known of a slice without VNICs, and of one whose VNICs its links do not connect.
    assert_eq!(check(slice(7, &[LINK])), (4, None));
    let rates_bps = [1, 7].map(|switch| (flow::DatapathId(switch), 9_000_000)).into();
    assert_eq!(check(SliceLinks { rates_bps, ..slice(7, &[LINK]) }), (4, None));
}

#[test]
fn a_link_that_is_down_lacks_nothing() {
    let mut bed = bed(&[("blue", promised(7, &[LINK], 8))], &[(4, 3)]);
    assert_eq!(bed.way("blue", LINK), (4, lacks("3-4", 8, 3)));
    bed.set("3/4-4/1", false);
    bed.settle();
    let state = bed.links.tables.told("blue", LINK.parse().unwrap()).unwrap();
    assert_eq!((state.is_up, state.lack), (false, None));
}

#[test]
fn so_many_links_that_do_not_fit_search_in_one_turn_and_the_others_in_the_next() {
    let slice = |number: u16| (format!("slice{number:03}"), promised(number, &[LINK], 8));
    let slices: Vec<(String, SliceLinks)> = (1..=SEARCHES_MAX as u16 + 2).map(slice).collect();
    let named: Vec<(&str, SliceLinks)> =
        slices.iter().map(|(name, slice)| (name.as_str(), slice.clone())).collect();
    let mut bed = bed(&named, &[(4, 10)]);
    bed.set_capacity("1/3-3/1", 1_000);
    bed.set_capacity("6/1-2/3", 1_000);
    let turns = |bed: &mut Bed| {
        bed.links.on_change(NOW_MS);
        let due = std::iter::from_fn(|| {
            let is_due = bed.links.next_due_ms().is_some();
            is_due.then(|| bed.turn())
        });
        due.take(9).count()
    };
    assert_eq!(turns(&mut bed), 2);
    assert_eq!(turns(&mut bed), 2);
    bed.set_capacity("3/5-5/1", 8);
    bed.set_capacity("5/2-6/5", 8);
    turns(&mut bed);
    bed.confirm();
    let over_5 = slices.iter().filter(|(name, _)| bed.way(name, LINK) == (5, None)).count();
    assert_eq!(over_5, 1, "it carries one of them");
}
