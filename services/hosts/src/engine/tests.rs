//! What is learned, believed and forgotten: each story as a list of events and the effects that they have.

use super::*;
use crate::bounds::{HOSTS_PER_PORT_DEFAULT, PORT_SETTLES_MS};
use burnet_sdk::MacAddr;
use hosts_contract::Question;
use view::{Annotations, Link, LinkKind, LinkState, Port, SwitchState};

/// An engine with a clock. What it does comes back in words.
pub(super) struct Bed {
    pub engine: Engine,
    pub now_ms: u64,
}

/// An ARP request of a host, whose number is the last octet of its addresses.
pub(super) fn arp(host: u8, address: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([0, 0, 0, 0, 0, host, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 0, 0, 0, 0, 0, host]);
    frame.extend([10, 0, 0, address, 0, 0, 0, 0, 0, 0, 10, 0, 0, 254]);
    if address == 0 {
        frame[28..32].copy_from_slice(&[0; 4]);
    }
    frame
}

fn place(text: &str) -> ConnectPoint {
    text.parse().unwrap()
}

impl Bed {
    pub fn new(settings: HostsSettings) -> Bed {
        Bed { engine: Engine::new(settings), now_ms: 1_000_000 }
    }

    fn words(&self, effects: &[Effect]) -> String {
        let number = |id: &HostId| format!("{}", id.mac.0[5]);
        let word = |effect: &Effect| match effect {
            Effect::Gone(id) => format!("-{}", number(id)),
            Effect::Changed(id) => {
                let host = self.engine.host(*id).unwrap();
                let addresses: Vec<String> = host.addresses.iter().map(ToString::to_string).collect();
                format!("{}@{}/{}[{}]", number(id), host.at.switch.0, host.at.port, addresses.join(","))
            }
            Effect::Probe { at, host, address } => {
                format!("?{}@{}/{}:{address}", number(host), at.switch.0, at.port)
            }
            Effect::Report(it) => {
                format!("!{:?} {}@{}/{}", it.kind, number(&it.host), it.at.switch.0, it.at.port)
            }
        };
        effects.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    fn run(&mut self, act: impl FnOnce(&mut Engine, u64, &mut Vec<Effect>)) -> String {
        let mut out = Vec::new();
        act(&mut self.engine, self.now_ms, &mut out);
        assert!(self.engine.table.is_sound());
        self.words(&out)
    }

    /// A host sends an ARP request at a port.
    fn says(&mut self, at: &str, host: u8, address: u8) -> String {
        self.run(|engine, now_ms, out| engine.on_frame(place(at), &arp(host, address), now_ms, out))
    }

    fn put(&mut self, object: &Object) -> String {
        self.run(|engine, now_ms, out| engine.on_view_put(object, now_ms, out))
    }

    /// The time passes. The engine is called at each of its times.
    fn wait(&mut self, ms: u64) -> String {
        let until_ms = self.now_ms + ms;
        let mut said = Vec::new();
        while let Some(due_ms) = self.engine.next_due().filter(|due_ms| *due_ms <= until_ms) {
            self.now_ms = self.now_ms.max(due_ms);
            said.push(self.run(|engine, now_ms, out| engine.on_time(now_ms, out)));
        }
        self.now_ms = until_ms;
        said.retain(|text| !text.is_empty());
        said.join(" ")
    }

    fn ask(&mut self, question: &str) -> Result<String, Refused> {
        let question = Question::from_bytes(question.as_bytes()).unwrap();
        let plan = self.engine.plan(&question)?;
        Ok(self.run(|engine, now_ms, out| engine.apply(plan, now_ms, out)))
    }
}

use super::changes::Refused;

fn bed() -> Bed {
    Bed::new(HostsSettings::default())
}

pub(super) fn link(text: &str) -> Object {
    Object::Link(Link {
        id: text.parse().unwrap(),
        found: LinkKind::Direct,
        state: LinkState::Up,
        capacity_kbps: 0,
        latency_us: None,
        since_ms: 0,
        annotations: Annotations::new(),
    })
}

pub(super) fn port(text: &str, live: bool) -> Object {
    Object::Port(Port {
        id: place(text),
        name: String::new(),
        mac: MacAddr::default(),
        live,
        enabled: true,
        speed_kbps: 0,
        annotations: Annotations::new(),
    })
}

fn switch(number: u64, state: SwitchState) -> Object {
    Object::Switch(view::Switch {
        id: burnet_sdk::DatapathId(number),
        state,
        openflow: "1.3".to_owned(),
        n_tables: 1,
        n_buffers: 0,
        description: std::collections::BTreeMap::new(),
        since_ms: 0,
        annotations: Annotations::new(),
    })
}

#[test]
fn a_host_is_learned_with_each_of_its_addresses_and_told_once() {
    let mut bed = bed();
    assert_eq!(bed.says("1/1", 7, 0), "7@1/1[]");
    assert_eq!(bed.says("1/1", 7, 7), "7@1/1[10.0.0.7]");
    assert_eq!(bed.says("1/1", 7, 7), "");
    assert_eq!(bed.says("1/1", 7, 9), "7@1/1[10.0.0.7,10.0.0.9]");
    assert_eq!(bed.says("1/1", 8, 8), "8@1/1[10.0.0.8]");
    let counts = bed.engine.counts();
    assert_eq!((counts.hosts, counts.sightings), (2, 5));
}

#[test]
fn a_damaged_frame_is_counted_and_changes_nothing() {
    let mut bed = bed();
    let said = bed.run(|engine, now_ms, out| engine.on_frame(place("1/1"), &arp(7, 7)[..30], now_ms, out));
    assert_eq!((said.as_str(), bed.engine.counts().bad_frames), ("", 1));
}

#[test]
fn nothing_is_learned_where_a_link_is_and_what_was_learned_there_is_removed() {
    let mut bed = bed();
    bed.says("1/1", 7, 7);
    bed.says("2/5", 8, 8);
    assert_eq!(bed.put(&link("1/1-2/1")), "-7");
    assert_eq!(bed.says("1/1", 7, 7), "");
    assert_eq!(bed.says("2/1", 7, 7), "");
    assert_eq!(bed.engine.counts().not_at_edge, 2);
    assert_eq!(bed.says("1/4294967294", 7, 7), "", "the switch's own port");
}

#[test]
fn a_port_that_fails_takes_its_hosts_with_it() {
    let mut bed = bed();
    bed.says("1/1", 7, 7);
    bed.says("1/2", 8, 8);
    assert_eq!(bed.put(&port("1/1", false)), "-7");
    assert_eq!(bed.says("1/1", 7, 7), "", "a frame that was still under way");
    bed.put(&port("1/1", true));
    assert_eq!(bed.says("1/1", 7, 7), "7@1/1[10.0.0.7]");
    let gone = bed.run(|engine, _, out| engine.on_view_removed(Key::Port(place("1/2")), out));
    assert_eq!(gone, "-8");
}

#[test]
fn a_port_that_vanished_while_discovery_was_away_takes_its_hosts_with_it() {
    let mut bed = bed();
    bed.put(&port("1/1", true));
    bed.put(&port("1/2", true));
    bed.says("1/1", 7, 7);
    bed.says("1/2", 8, 8);
    bed.run(|engine, _, _| engine.on_view_begin());
    bed.put(&port("1/1", true));
    bed.run(|engine, now_ms, _| engine.on_view_complete(now_ms));
    assert_eq!(bed.wait(29_999), "", "discovery may still find it");
    assert_eq!(bed.wait(1), "-8");
    assert_eq!(bed.says("1/2", 8, 8), "8@1/2[10.0.0.8]", "a host that is there after all");
}

#[test]
fn a_host_moves_if_its_old_port_is_silent() {
    let mut bed = bed();
    bed.says("1/1", 7, 7);
    assert_eq!(bed.says("1/2", 7, 7), "?7@1/1:10.0.0.7");
    assert_eq!(bed.says("1/2", 7, 7), "", "it is examined already");
    assert_eq!(bed.wait(999), "?7@1/1:10.0.0.7", "it is asked twice");
    assert_eq!(bed.wait(1), "7@1/2[10.0.0.7]");
    assert_eq!((bed.engine.counts().moves, bed.engine.counts().incidents), (1, 0));
}

#[test]
fn a_host_does_not_move_while_its_old_port_answers() {
    let mut bed = bed();
    bed.says("1/1", 7, 7);
    bed.says("1/2", 7, 7);
    assert_eq!(bed.says("1/1", 7, 7), "");
    assert_eq!(bed.wait(1_000), "!HostAtTwoPorts 7@1/2");
    let incident = bed.engine.incidents().next().unwrap().clone();
    assert_eq!((incident.stays_at, incident.repeated), (Some(place("1/1")), 0));
    // Others of the next ten seconds are counted.
    for _ in 0..3 {
        bed.says("1/2", 7, 7);
        bed.says("1/1", 7, 7);
        assert_eq!(bed.wait(1_000), "");
    }
    bed.wait(10_000);
    bed.says("1/2", 7, 7);
    bed.says("1/1", 7, 0);
    bed.wait(1_000);
    assert_eq!(bed.engine.incidents().last().unwrap().repeated, 3);
    assert_eq!(bed.engine.counts().refused_moves, 5);
}

#[test]
fn a_host_whose_old_port_has_failed_or_was_a_link_moves_at_once() {
    let mut bed = bed();
    bed.ask(r#"{"op":"add","id":"00:00:00:00:00:09","at":"1/1"}"#).unwrap();
    bed.says("1/1", 7, 7);
    bed.put(&port("1/1", false));
    assert_eq!(bed.says("1/2", 7, 7), "7@1/2[10.0.0.7]");
}

#[test]
fn a_flood_over_a_link_that_is_not_known_yet_is_no_incident() {
    let mut bed = bed();
    for at in ["1/1", "1/9", "2/9"] {
        bed.put(&port(at, true));
    }
    bed.says("1/1", 7, 7);
    bed.says("2/9", 7, 7);
    bed.says("1/1", 7, 7);
    assert_eq!(bed.wait(PORT_SETTLES_MS - 1), "");
    bed.put(&link("1/9-2/9"));
    assert_eq!(bed.wait(10_000), "");
    assert_eq!(bed.engine.counts().incidents, 0);
    // Without a link it is one.
    bed.put(&port("3/1", true));
    bed.says("3/1", 7, 7);
    bed.says("1/1", 7, 7);
    assert_eq!(bed.wait(PORT_SETTLES_MS), "!HostAtTwoPorts 7@3/1");
}

#[test]
fn the_address_of_a_host_that_answers_is_not_given_to_another() {
    let mut bed = bed();
    bed.says("1/1", 7, 7);
    assert_eq!(bed.says("1/2", 8, 7), "8@1/2[] ?7@1/1:10.0.0.7");
    bed.says("1/1", 7, 7);
    assert_eq!(bed.wait(1_000), "!AddressOfAnother 8@1/2");
    let incident = bed.engine.incidents().next().unwrap().clone();
    assert_eq!(incident.holder, Some("00:00:00:00:00:07".parse().unwrap()));
    // One that was given up passes on, as with a standby router.
    bed.says("1/2", 8, 7);
    assert_eq!(bed.wait(1_000), "?7@1/1:10.0.0.7 7@1/1[] 8@1/2[10.0.0.7]");
}

#[test]
fn the_same_host_in_another_vlan_is_another_host() {
    let mut bed = bed();
    bed.says("1/1", 7, 7);
    let mut tagged = arp(7, 7);
    tagged.splice(12..12, [0x81, 0, 0, 100]);
    let said = bed.run(|engine, now_ms, out| engine.on_frame(place("1/2"), &tagged, now_ms, out));
    assert_eq!(said, "7@1/2[10.0.0.7]");
    let filter = |vlan| Filter { vlan: Some(vlan), ..Filter::default() };
    assert_eq!(bed.engine.list(&filter(0), None).count(), 1);
    assert_eq!(bed.engine.list(&filter(100), None).count(), 1);
    let by_address = Filter { address: Some("10.0.0.7".parse().unwrap()), ..Filter::default() };
    assert_eq!(bed.engine.list(&by_address, None).count(), 2);
}

#[test]
fn a_silent_host_is_asked_three_times_and_then_expires() {
    let mut bed = bed();
    bed.says("1/1", 7, 7);
    assert_eq!(bed.wait(209_999), "");
    assert_eq!(bed.wait(1), "?7@1/1:10.0.0.7");
    assert_eq!(bed.wait(60_000), "?7@1/1:10.0.0.7 ?7@1/1:10.0.0.7");
    assert_eq!(bed.wait(29_999), "");
    assert_eq!(bed.wait(1), "-7");
    assert_eq!(bed.engine.counts().expired, 1);
}

#[test]
fn a_host_that_answers_stays_and_loses_only_the_addresses_that_do_not() {
    let mut bed = bed();
    bed.says("1/1", 7, 7);
    bed.says("1/1", 7, 9);
    for _ in 0..3 {
        bed.wait(100_000);
        bed.says("1/1", 7, 7);
    }
    let said = bed.wait(1_000);
    assert!(said.is_empty() || said.contains("7@1/1[10.0.0.7]"), "{said}");
    assert_eq!(bed.engine.list(&Filter::default(), None).next().unwrap().addresses.len(), 1);
    // A host without an address cannot be asked.
    bed.says("1/2", 8, 0);
    assert_eq!(bed.wait(200_000), "");
    assert!(bed.wait(100_000).contains("-8"));
}

#[test]
fn the_time_of_a_host_waits_while_its_switch_is_down() {
    let mut bed = bed();
    bed.says("1/1", 7, 7);
    bed.put(&switch(1, SwitchState::Down));
    assert_eq!(bed.wait(10_000_000), "");
    bed.put(&switch(1, SwitchState::Up));
    let said = bed.wait(200_000);
    assert_eq!(said, "?7@1/1:10.0.0.7 ?7@1/1:10.0.0.7 ?7@1/1:10.0.0.7 -7");
}

#[test]
fn hosts_stay_if_the_operator_wants_no_expiry() {
    let mut bed = Bed::new(HostsSettings { expiry_s: 0, ..HostsSettings::default() });
    bed.says("1/1", 7, 7);
    assert_eq!((bed.wait(1 << 40).as_str(), bed.engine.next_due()), ("", None));
}

/// A frame of a host with a number of four octets.
fn frame_of(number: u32, at: usize) -> Vec<u8> {
    let mut frame = arp(0, 0);
    for place in [6, 22] {
        frame[place] = 2;
        frame[place + 1] = at as u8;
        frame[place + 2..place + 6].copy_from_slice(&number.to_be_bytes());
    }
    frame
}

#[test]
fn an_attacker_who_invents_addresses_fills_only_its_ports_share() {
    let mut bed = bed();
    let mut out = Vec::new();
    for number in 1..1_000_000 {
        bed.engine.on_frame(place("1/1"), &frame_of(number, 0), bed.now_ms, &mut out);
        out.clear();
    }
    let counts = bed.engine.counts();
    assert_eq!(counts.hosts, HOSTS_PER_PORT_DEFAULT as u64);
    assert_eq!(counts.no_room, 999_999 - HOSTS_PER_PORT_DEFAULT as u64);
    assert_eq!(bed.engine.incidents().count(), 1);
    assert_eq!(bed.says("1/2", 7, 7), "7@1/2[10.0.0.7]", "others are learned");
}

#[test]
fn an_attacker_who_claims_many_places_cannot_keep_others_from_moving() {
    let mut bed = bed();
    let mut out = Vec::new();
    for number in 1..=1_000 {
        bed.engine.on_frame(place("1/1"), &frame_of(number, 0), bed.now_ms, &mut out);
    }
    for number in 2..=1_000 {
        bed.engine.on_frame(place("1/2"), &frame_of(number, 0), bed.now_ms, &mut out);
    }
    assert_eq!(bed.engine.counts().unexamined_claims, 999 - 64);
    bed.engine.on_frame(place("1/3"), &frame_of(1, 0), bed.now_ms, &mut out);
    bed.wait(1_000);
    assert_eq!(bed.engine.list(&Filter { at: Some(place("1/3")), ..Filter::default() }, None).count(), 1);
}

#[test]
fn a_host_keeps_at_most_sixteen_addresses() {
    let mut bed = bed();
    (1..=20).for_each(|address| drop(bed.says("1/1", 7, address)));
    let host = bed.engine.list(&Filter::default(), None).next().unwrap();
    assert_eq!((host.addresses.len(), bed.engine.counts().no_room_for_address), (16, 4));
}

const ADD: &str =
    r#"{"op":"add","id":"00:00:00:00:00:07","at":"1/1","addresses":["10.0.0.7"],"annotations":{"rack":"3"}}"#;

#[test]
fn a_configured_host_neither_moves_nor_expires_nor_loses_its_address() {
    let mut bed = bed();
    bed.says("1/2", 8, 7);
    assert_eq!(bed.ask(ADD).unwrap(), "8@1/2[] 7@1/1[10.0.0.7]");
    assert_eq!(bed.says("1/3", 7, 7), "!ConfiguredHostElsewhere 7@1/3");
    bed.says("1/2", 8, 7);
    assert_eq!(bed.wait(1_000), "?7@1/1:10.0.0.7 !AddressOfAnother 8@1/2");
    assert_eq!(bed.put(&port("1/1", false)), "");
    let said = bed.wait(1_000_000);
    assert!(!said.contains("-7"), "{said}");
    assert_eq!(bed.says("1/1", 7, 9), "", "its addresses are the configured ones");
}

#[test]
fn a_change_that_contradicts_what_is_there_is_refused_with_the_field() {
    let mut bed = bed();
    bed.says("1/2", 8, 8);
    bed.put(&link("1/9-2/9"));
    bed.ask(ADD).unwrap();
    let mut check = |question: &str, expected: &str| {
        let (_, why) = bed.ask(question).unwrap_err();
        assert!(why.contains(expected), "{why}");
    };
    check(ADD, "id: 00:00:00:00:00:07 is configured already");
    check(r#"{"op":"add","id":"00:00:00:00:00:01","at":"1/9"}"#, "at: of:0000000000000001/9 has a link");
    check(
        r#"{"op":"add","id":"00:00:00:00:00:01","at":"1/1","addresses":["10.0.0.7"]}"#,
        "addresses: 10.0.0.7 is an address of",
    );
    check(
        r#"{"op":"change","id":"00:00:00:00:00:08","at":"1/1"}"#,
        "at: 00:00:00:00:00:08 is not configured",
    );
    check(r#"{"op":"change","id":"00:00:00:00:00:01","annotations":{"a":"b"}}"#, "id: there is no host");
    check(r#"{"op":"remove","id":"00:00:00:00:00:01"}"#, "id: there is no host");
}

#[test]
fn notes_stay_when_a_host_goes_and_comes_back_and_a_removal_takes_all() {
    let mut bed = bed();
    bed.says("1/2", 8, 8);
    bed.ask(r#"{"op":"change","id":"00:00:00:00:00:08","annotations":{"owner":"lab","x":null}}"#).unwrap();
    bed.put(&port("1/2", false));
    bed.put(&port("1/2", true));
    bed.says("1/2", 8, 8);
    assert_eq!(bed.engine.list(&Filter::default(), None).next().unwrap().annotations["owner"], "lab");
    bed.ask(ADD).unwrap();
    bed.ask(r#"{"op":"change","id":"00:00:00:00:00:07","at":"1/4","addresses":[]}"#).unwrap();
    let configured = Filter { configured: Some(true), ..Filter::default() };
    let host = bed.engine.list(&configured, None).next().unwrap();
    assert_eq!((host.at, host.addresses.len(), host.annotations["rack"].as_str()), (place("1/4"), 0, "3"));
    assert_eq!(bed.ask(r#"{"op":"remove","id":"00:00:00:00:00:07"}"#).unwrap(), "-7");
    assert_eq!(bed.says("1/1", 7, 7), "7@1/1[10.0.0.7]", "it is learned again");
    assert!(bed.engine.list(&Filter::default(), None).all(|host| !host.configured));
}

#[test]
fn a_list_is_read_page_by_page() {
    let mut bed = bed();
    (1..=9).for_each(|host| drop(bed.says(&format!("1/{}", host % 2 + 1), host, host)));
    let ids = |filter: &Filter, after: Option<u8>| {
        let after = after.map(|last| format!("00:00:00:00:00:0{last}").parse().unwrap());
        bed.engine.list(filter, after).map(|host| host.id.mac.0[5]).collect::<Vec<_>>()
    };
    assert_eq!(ids(&Filter::default(), None), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(ids(&Filter::default(), Some(6)), [7, 8, 9]);
    let at = Filter { at: Some(place("1/1")), ..Filter::default() };
    assert_eq!((ids(&at, None), ids(&at, Some(4))), (vec![2, 4, 6, 8], vec![6, 8]));
    assert!(ids(&Filter { switch: Some(burnet_sdk::DatapathId(2)), ..Filter::default() }, None).is_empty());
}

#[test]
fn a_dhcp_server_at_a_port_that_is_not_listed_is_an_incident_and_its_leases_do_not_count() {
    let settings = HostsSettings { dhcp_servers: vec![place("1/5")], ..HostsSettings::default() };
    let lease = |bed: &mut Bed, at: &str| {
        let client = "00:00:00:00:00:07".parse().unwrap();
        let lease = Some((client, "10.0.0.7".parse().unwrap()));
        let server = "00:00:00:00:00:05".parse().unwrap();
        bed.run(|engine, now_ms, out| engine.leased(server, place(at), lease, now_ms, out))
    };
    let mut bed = Bed::new(settings);
    bed.says("1/1", 7, 0);
    assert_eq!(lease(&mut bed, "1/6"), "!RogueDhcpServer 5@1/6");
    assert_eq!(lease(&mut bed, "1/5"), "7@1/1[10.0.0.7]");
    assert_eq!(lease(&mut bed, "1/5"), "");
}
