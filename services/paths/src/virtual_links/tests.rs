//! Virtual links on small networks: the rules that are put, and what readers are told.

mod fitting;

use super::*;
use flow::Match;
use flows_contract::{Failure, Item, items};
use view::{LinkKind, LinkState as ViewState, Switch, SwitchState};

const NOW_MS: u64 = 1_000;

struct Bed {
    network: Network,
    links: VirtualLinks,
    effects: Vec<Effect>,
}

fn link(id: &str, is_up: bool) -> view::Link {
    view::Link {
        id: id.parse().unwrap(),
        found: LinkKind::Direct,
        state: if is_up { ViewState::Up } else { ViewState::Down },
        capacity_kbps: 0,
        latency_us: None,
        since_ms: 0,
        annotations: Default::default(),
    }
}

/// A slice with a tag, these ports and links.
fn slice(tag: u16, links: &[&str]) -> SliceLinks {
    let links: Vec<LinkId> = links.iter().map(|link| link.parse().unwrap()).collect();
    SliceLinks {
        packets: vec![flow::text::parse_match(&format!("dl_vlan={tag}")).unwrap()],
        ports: links.iter().flat_map(|link| [link.from, link.to]).collect(),
        own_ports: Vec::new(),
        links,
        rates_bps: Default::default(),
    }
}

impl Bed {
    fn new(cables: &[&str], slices: &[(&str, SliceLinks)]) -> Bed {
        let slices = slices.iter().map(|(name, slice)| ((*name).to_owned(), slice.clone())).collect();
        let links = VirtualLinks::new(slices, 100, 0, 0);
        let mut bed = Bed { network: Network::default(), links, effects: Vec::new() };
        cables.iter().for_each(|cable| bed.set(cable, true));
        bed
    }

    fn set_switch(&mut self, id: u64, state: SwitchState) {
        self.network.put_switch(&Switch {
            id: flow::DatapathId(id),
            state,
            openflow: "1.3".to_owned(),
            n_tables: 1,
            n_buffers: 0,
            description: Default::default(),
            since_ms: 0,
            annotations: Default::default(),
        });
        self.links.on_change(NOW_MS);
    }

    /// Both directions of a cable.
    fn set(&mut self, cable: &str, is_up: bool) {
        let one = link(cable, is_up);
        for end in [one.id.from, one.id.to] {
            if self.network.switch(end.switch).is_none() {
                self.set_switch(end.switch.0, SwitchState::Up);
            }
        }
        self.network.put_link(&one);
        self.network.put_link(&link(&one.id.reversed().to_string(), is_up));
        self.links.on_change(NOW_MS);
    }

    fn turn(&mut self) {
        self.links.on_time(&mut self.network, NOW_MS, &mut self.effects);
    }

    /// The service of rules confirms all that was put.
    fn confirm(&mut self) {
        for effect in std::mem::take(&mut self.effects) {
            if let Effect::Put(set) = effect {
                self.hear(set, Phase::Installed);
            }
        }
    }

    fn hear(&mut self, set: u64, phase: Phase) {
        let version = self.links.version(set).unwrap();
        let state = SetState { version, wanted: 1, confirmed: 1, phase };
        self.links.on_rules(set, Some(&state), &mut self.network, NOW_MS, &mut self.effects);
    }

    /// The hops that are to be put, each as `switch:in>out`, set by set, and the sets that are to be removed.
    fn wanted(&self) -> (Vec<String>, usize) {
        let (mut put, mut removed) = (Vec::new(), 0);
        for effect in &self.effects {
            match effect {
                Effect::Put(set) => {
                    let mut bytes = Vec::new();
                    self.links.write_rules(*set, &mut Items::new(&mut bytes));
                    let mut hops = Vec::new();
                    for (_, item) in items(&bytes) {
                        let Item::Path(path) = item else { panic!("{item:?}") };
                        assert_eq!((path.priority, path.treatment), (PRIORITY, &[][..]));
                        hops.extend(
                            path.hops
                                .iter()
                                .map(|it| format!("{}:{}>{}", it.switch.0, it.in_port, it.out_port)),
                        );
                    }
                    put.push(hops.join(" "));
                }
                Effect::Remove(..) => removed += 1,
            }
        }
        (put, removed)
    }

    /// What readers were told of a link: up, and over which hops; or why not.
    fn told(&self, slice: &str, link: &str) -> Option<Result<String, String>> {
        let state = self.links.tables.told(slice, link.parse().unwrap())?;
        let hops: Vec<String> =
            state.hops.iter().map(|it| format!("{}-{}", it.from.switch.0, it.to.switch.0)).collect();
        Some(if state.is_up { Ok(hops.join(" ")) } else { Err(state.why.unwrap_or_default()) })
    }

    fn check(&self, link: &str, expected: Option<Result<&str, &str>>) {
        let told = self.told("blue", link);
        match (&told, expected) {
            (Some(Ok(hops)), Some(Ok(expected))) => assert_eq!(hops, expected),
            (Some(Err(why)), Some(Err(part))) => assert!(why.contains(part), "{why}"),
            (told, expected) => assert!(told.is_none() && expected.is_none(), "{told:?}, not {expected:?}"),
        }
    }
}

/// 1 and 2 are the ends. 3 and 6 are behind their ports 3, with 4 and 5 as two ways between.
const TWO_WAYS: [&str; 6] = ["1/3-3/1", "3/2-4/1", "4/2-6/1", "3/3-5/1", "5/2-6/2", "6/3-2/3"];
const LINK: &str = "1/3-2/3";

#[test]
fn rules_are_in_the_switches_between_and_the_link_is_up_when_they_are_confirmed() {
    let mut bed = Bed::new(&["1/3-3/1", "3/2-2/3"], &[("blue", slice(7, &[LINK]))]);
    bed.turn();
    assert_eq!(bed.wanted(), (vec!["3:1>2".to_owned(), "3:2>1".to_owned()], 0));
    bed.check(LINK, None);
    // A link whose way back is not there yet is not up.
    let Some(Effect::Put(there)) = bed.effects.first().copied() else { panic!("{:?}", bed.effects) };
    bed.hear(there, Phase::Installed);
    bed.check(LINK, None);
    bed.confirm();
    bed.check(LINK, Some(Ok("1-3 3-2")));
    bed.check("2/3-1/3", Some(Ok("2-3 3-1")));
    // Nothing new, nothing to do.
    bed.links.on_change(NOW_MS);
    bed.turn();
    assert_eq!(bed.wanted(), (vec![], 0));
}

#[test]
fn a_link_takes_another_way_without_going_down_and_goes_down_if_there_is_none() {
    let mut bed = Bed::new(&TWO_WAYS, &[("blue", slice(7, &[LINK]))]);
    bed.turn();
    bed.confirm();
    let over = |bed: &Bed| match bed.told("blue", LINK) {
        Some(Ok(hops)) if hops == "1-3 3-4 4-6 6-2" => 4,
        Some(Ok(hops)) if hops == "1-3 3-5 5-6 6-2" => 5,
        other => panic!("{other:?}"),
    };
    let first = over(&bed);
    let (used, other) = if first == 4 { ("4/2-6/1", "5/2-6/2") } else { ("5/2-6/2", "4/2-6/1") };
    bed.set(used, false);
    bed.turn();
    assert_eq!(over(&bed), 9 - first, "it is up while the rules of the other way are added");
    assert_eq!(bed.wanted().0.len(), 2);
    bed.confirm();
    bed.set(other, false);
    bed.turn();
    assert_eq!(bed.wanted(), (vec![], 0), "the rules of the last way stay");
    bed.check(LINK, Some(Err("no path leads from port of:0000000000000001/3")));
    bed.set(other, true);
    bed.turn();
    assert_eq!((bed.wanted(), over(&bed)), ((vec![], 0), 9 - first), "its rules are still there");
    // A switch between that is not connected is as bad as a cable that is down.
    bed.set_switch(if first == 4 { 5 } else { 4 }, SwitchState::Down);
    bed.turn();
    bed.check(LINK, Some(Err("no path leads")));
    bed.set(used, true);
    bed.turn();
    bed.check(LINK, Some(Err("no path leads")));
    assert_eq!(bed.wanted().0.len(), 2, "the way is new, so it is up when its rules are confirmed");
    bed.confirm();
    assert_eq!(over(&bed), first);
}

#[test]
fn a_link_is_down_while_a_switch_at_an_end_is_not_connected() {
    let mut bed = Bed::new(&["1/3-3/1", "3/2-2/3"], &[("blue", slice(7, &[LINK]))]);
    bed.turn();
    bed.confirm();
    for (switch, why) in
        [(1, "begins at port of:0000000000000001/3"), (2, "ends at port of:0000000000000002/3")]
    {
        bed.set_switch(switch, SwitchState::Down);
        bed.turn();
        bed.check(LINK, Some(Err(why)));
        bed.set_switch(switch, SwitchState::Up);
        bed.turn();
        bed.check(LINK, Some(Ok("1-3 3-2")));
    }
}

#[test]
fn two_links_of_a_slice_share_no_cable_and_two_of_different_slices_may() {
    let cables = [&TWO_WAYS[..], &["1/4-3/4", "6/4-2/4"]].concat();
    let two = [LINK, "1/4-2/4"];
    let mut bed = Bed::new(&cables, &[("blue", slice(7, &two))]);
    bed.turn();
    bed.confirm();
    let ways = two.map(|link| bed.told("blue", link).unwrap().unwrap());
    assert!(ways.contains(&"1-3 3-4 4-6 6-2".to_owned()) && ways.contains(&"1-3 3-5 5-6 6-2".to_owned()));
    bed.set("4/2-6/1", false);
    bed.turn();
    bed.confirm();
    let down = two.map(|link| bed.told("blue", link).unwrap()).into_iter().find_map(Result::err);
    assert!(down.is_some_and(|why| why.contains("a virtual link of a slice")));
    let slices = [("blue", slice(7, &[LINK])), ("red", slice(8, &two[1..]))];
    let mut bed = Bed::new(&cables[..3].iter().chain(&cables[5..]).copied().collect::<Vec<_>>(), &slices);
    bed.turn();
    bed.confirm();
    bed.check(LINK, Some(Ok("1-3 3-4 4-6 6-2")));
    assert_eq!(bed.told("red", two[1]), Some(Ok("1-3 3-4 4-6 6-2".to_owned())));
    // With the same packets, they may not, in whatever direction they are written.
    for other in [two[1], "2/4-1/4"] {
        let slices = [("blue", slice(7, &[LINK])), ("red", slice(7, &[other]))];
        let mut bed = Bed::new(&cables[..3].iter().chain(&cables[5..]).copied().collect::<Vec<_>>(), &slices);
        bed.turn();
        bed.confirm();
        bed.check(LINK, Some(Ok("1-3 3-4 4-6 6-2")));
        assert!(bed.told("red", other).unwrap().is_err(), "{other}");
    }
}

#[test]
fn no_link_leads_over_an_own_port_or_a_port_of_the_slice_or_of_its_packets() {
    let check = |more: SliceLinks, expected: Result<&str, &str>| {
        let mut bed = Bed::new(&["1/3-3/1", "3/2-2/3"], &[("blue", slice(7, &[LINK])), ("red", more)]);
        bed.turn();
        bed.confirm();
        bed.check(LINK, Some(expected));
    };
    let ports = vec!["3/1".parse().unwrap()];
    let up = Ok("1-3 3-2");
    let why = Err("of a slice with the same packets");
    check(SliceLinks { ports: ports.clone(), ..slice(8, &[]) }, up);
    check(SliceLinks { ports: ports.clone(), ..slice(7, &[]) }, why);
    check(SliceLinks { own_ports: ports.clone(), ..slice(8, &[]) }, why);
    check(SliceLinks { ports: ports.clone(), packets: vec![Match::any()], ..slice(8, &[]) }, why);
    let own = SliceLinks { ports: [ports, slice(7, &[LINK]).ports].concat(), ..slice(7, &[LINK]) };
    let mut bed = Bed::new(&["1/3-3/1", "3/2-2/3"], &[("blue", own)]);
    bed.turn();
    bed.check(LINK, Some(Err("of a slice with the same packets")));
}

#[test]
fn a_way_does_not_come_back_through_the_port_of_an_end() {
    // 3 and 4 are joined over 1 and 2 only.
    let mut bed = Bed::new(&["1/3-3/1", "4/1-2/3", "1/4-2/4"], &[("blue", slice(7, &[LINK]))]);
    bed.turn();
    assert_eq!(bed.wanted(), (vec![], 0));
    bed.check(LINK, Some(Err("no path leads from port")));
    // By another port, it may pass the switch at an end.
    bed.set("3/2-1/5", true);
    bed.set("2/5-4/2", true);
    bed.turn();
    bed.confirm();
    bed.check(LINK, Some(Ok("1-3 3-1 1-2 2-4 4-2")));
}

#[test]
fn a_cable_needs_no_rules_and_follows_the_view() {
    let mut bed = Bed::new(&[LINK], &[("blue", slice(7, &[LINK]))]);
    bed.turn();
    assert_eq!(bed.wanted(), (vec![], 0));
    bed.check(LINK, Some(Ok("1-2")));
    bed.set(LINK, false);
    bed.turn();
    bed.check(LINK, Some(Err("no link that is up begins at port of:0000000000000001/3")));
    bed.set(LINK, true);
    bed.turn();
    bed.check(LINK, Some(Ok("1-2")));
    // A switch is put between.
    bed.set(LINK, false);
    bed.set("1/3-3/1", true);
    bed.set("3/2-2/3", true);
    bed.turn();
    assert_eq!(bed.wanted().0.len(), 2);
    bed.confirm();
    bed.check(LINK, Some(Ok("1-3 3-2")));
    bed.set("3/2-2/3", false);
    bed.set(LINK, true);
    bed.turn();
    assert_eq!(bed.wanted(), (vec![], 2), "the rules between are needed no more");
    bed.check(LINK, Some(Ok("1-2")));
}

#[test]
fn an_observer_has_a_way_and_no_rules() {
    let eye = SliceLinks { packets: Vec::new(), ..slice(7, &[LINK]) };
    let mut bed = Bed::new(&["1/3-3/1", "3/2-2/3"], &[("blue", eye)]);
    bed.turn();
    assert_eq!(bed.wanted(), (vec![], 0));
    bed.check(LINK, Some(Ok("1-3 3-2")));
}

#[test]
fn rules_that_a_switch_refuses_take_the_link_down_and_a_full_table_is_avoided() {
    let failed = |switch: u64, failure| {
        let (switch, reason) = (flow::DatapathId(switch), "no".to_owned());
        Phase::Failed(Failure { switch, rule: 0, failure, reason })
    };
    let mut bed = Bed::new(&TWO_WAYS, &[("blue", slice(7, &[LINK]))]);
    bed.turn();
    let Some(Effect::Put(set)) = bed.effects.first().copied() else { panic!() };
    bed.hear(set, failed(3, FailureKind::Switch));
    bed.check(LINK, Some(Err("the switch of:0000000000000003 does not take a rule: no")));
    bed.confirm();
    let Some(Ok(hops)) = bed.told("blue", LINK) else { panic!() };
    let full = if hops.contains("3-4") { 4 } else { 5 };
    bed.hear(set, failed(full, FailureKind::TableFull));
    bed.turn();
    assert_eq!(bed.wanted().0.len(), 2);
    bed.confirm();
    let other = if full == 4 { "1-3 3-5 5-6 6-2" } else { "1-3 3-4 4-6 6-2" };
    bed.check(LINK, Some(Ok(other)));
}

#[test]
fn sets_of_an_earlier_process_are_taken_over_or_removed() {
    let mut bed = Bed::new(&["1/3-3/1", "3/2-2/3"], &[("blue", slice(7, &[LINK]))]);
    let state = SetState { version: 900, wanted: 1, confirmed: 1, phase: Phase::Installed };
    let unknown = set_number("red", LINK.parse().unwrap());
    bed.links.on_rules(unknown, Some(&state), &mut bed.network, NOW_MS, &mut bed.effects);
    assert_eq!(bed.effects, [Effect::Remove(unknown, 901)]);
    bed.effects.clear();
    let known = set_number("blue", LINK.parse().unwrap());
    bed.links.on_rules(known, Some(&state), &mut bed.network, NOW_MS, &mut bed.effects);
    bed.check(LINK, None);
    bed.turn();
    assert!(bed.links.version(known).unwrap() > 901);
    bed.confirm();
    bed.check(LINK, Some(Ok("1-3 3-2")));
    // The service of rules has lost one, and has not taken the other.
    bed.links.on_rules_complete(&[set_number("blue", "2/3-1/3".parse().unwrap())].into());
    bed.turn();
    assert_eq!(bed.wanted().0, ["3:1>2"]);
    bed.confirm();
    bed.links.on_not_taken(known, Some("full"), &bed.network);
    bed.check(LINK, Some(Err("full")));
    bed.links.on_not_taken(known, None, &bed.network);
    bed.turn();
    assert_eq!(bed.wanted().0, ["3:1>2"]);
}
