//! An agent among peers that lie, fail or say nothing: what it ignores, what it reports, and what it asks of its shaper.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use edge::agent::{
    Agent, CAP_LIFE_NS, Commands, Counts, Event, FEEDBACK_LIFE_NS, HELD_CAP_LIFE_NS, Peer, Settings,
};
use edge::protocol::link::{Link, Opened};
use edge::protocol::{Key, Message, NO_CAP, RateOf};
use edge::shaper::{Change, Deed, Place};
use edge::vnic::{Address, AgentId, Directory, Flow, SliceId, Vnic, VnicId};
use flow::MacAddr;

const MS: u64 = 1_000_000;
const ME: AgentId = AgentId(1);
const OTHER: AgentId = AgentId(2);
const THIRD: AgentId = AgentId(3);
const SERVICE: AgentId = AgentId(9);

fn flow(sender: u32, receiver: u32) -> Flow {
    Flow { sender: VnicId(sender), receiver: VnicId(receiver) }
}

fn vnic(id: u32, slice: u32, agent: Option<AgentId>, guarantee_bps: u64) -> Vnic {
    let address = Address { vlan: None, mac: MacAddr([2, 0, 0, 0, 0, id as u8]) };
    Vnic { id: VnicId(id), slice: SliceId(slice), agent, address, guarantee_bps, strict: false }
}

/// 11 is on this server, 12 on that of agent 2, 13 on that of agent 3, and 14 on a server without an agent: all of slice 1. 22 is of slice 2.
fn directory() -> Directory {
    Directory::new([
        vnic(11, 1, Some(ME), 8_000_000),
        vnic(12, 1, Some(OTHER), 5_000_000),
        vnic(13, 1, Some(THIRD), 5_000_000),
        vnic(14, 1, None, 5_000_000),
        vnic(22, 2, Some(OTHER), 5_000_000),
    ])
    .unwrap()
}

/// An agent, and the other ends of its links.
struct Scene {
    agent: Agent,
    now_ns: u64,
    links: Vec<Link>,
    /// What came out, and was not looked at.
    out: Commands,
    confirms: bool,
}

impl Scene {
    fn new() -> Self {
        let mut settings = Settings::for_nic(ME, 10_000_000, 5);
        settings.service = Some(SERVICE);
        let key = |peer: AgentId| Key([peer.0 as u8; 32]);
        let peers = [OTHER, THIRD, SERVICE];
        settings.peers = peers.map(|peer| Peer { agent: peer, key: key(peer) }).to_vec();
        let agent = Agent::new(0, settings, directory()).unwrap();
        let links = peers.iter().map(|peer| Link::new(*peer, ME, key(*peer), 77)).collect();
        let mut scene = Scene { agent, now_ns: 0, links, out: Commands::default(), confirms: true };
        scene.pass(40 * MS);
        scene.out.changes.clear();
        scene
    }

    fn event(&mut self, event: Event<'_>) {
        self.agent.on_event(self.now_ns, event, &mut self.out);
        // The greetings of the agent are answered, and the shaper obeys.
        for (to, datagram) in self.out.datagrams.clone() {
            let link = self.links.iter_mut().find(|link| link_of(link, to)).unwrap();
            if let Ok(Opened::Hello { session }) = link.open(&datagram) {
                let welcome = link.welcome(session);
                self.agent.on_event(self.now_ns, Event::Datagram(&welcome), &mut self.out);
            }
        }
        // What the agent says after the welcome makes the other ends know its session.
        for (to, datagram) in std::mem::take(&mut self.out.datagrams) {
            let link = self.links.iter_mut().find(|link| link_of(link, to)).unwrap();
            let _ = link.open(&datagram);
        }
        if self.confirms && !self.out.changes.is_empty() {
            let changes = std::mem::take(&mut self.out.changes);
            self.agent.on_event(self.now_ns, Event::Shaped(&[]), &mut self.out);
            self.out.changes.splice(0..0, changes);
        }
    }

    fn pass(&mut self, by_ns: u64) {
        let until = self.now_ns + by_ns;
        while self.now_ns < until {
            self.now_ns = self.agent.next_due_ns().clamp(self.now_ns, until);
            self.event(Event::Time);
            if self.agent.next_due_ns() > until {
                self.now_ns = until;
            }
        }
    }

    /// A peer says something.
    fn says(&mut self, peer: AgentId, message: &Message) -> Vec<u8> {
        let link = self.links.iter_mut().find(|link| link_of(link, peer)).unwrap();
        let datagram = link.seal(message).unwrap();
        self.event(Event::Datagram(&datagram));
        datagram
    }

    fn refusals(&mut self) -> Vec<String> {
        std::mem::take(&mut self.out.refusals).iter().map(ToString::to_string).collect()
    }

    fn changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.out.changes)
    }

    /// The ceiling of the only change, in kilobits a second.
    fn ceiling(&mut self) -> Option<u64> {
        match self.changes().as_slice() {
            [Change { place: Place::Flow(_), deed: Deed::Add(rates) | Deed::Change(rates), .. }] => {
                Some(rates.ceiling_bps / 1000)
            }
            [] => None,
            other => panic!("{other:?}"),
        }
    }
}

/// Whether this is the end of a link at that peer. A link names only the other end, so that its datagrams are asked.
fn link_of(link: &Link, peer: AgentId) -> bool {
    edge::protocol::read(&link.hello()).unwrap().header.from == peer
}

fn rate(from: u32, to: u32, rate_bps: u64) -> RateOf {
    RateOf { flow: flow(from, to), rate_bps }
}

fn feedback(from: u32, to: u32, rate_bps: u64) -> Message {
    Message::Feedback(vec![rate(from, to, rate_bps)])
}

#[test]
fn statements_about_foreign_vnics_are_ignored_and_named() {
    let mut scene = Scene::new();
    let mut check = |peer, message: &Message, expected: &str| {
        scene.says(peer, message);
        assert_eq!((scene.refusals(), scene.changes()), (vec![expected.to_owned()], vec![]), "{message}");
    };
    // The receiver is another agent's, the sender is not of this server, the slices differ, a VNIC is unknown.
    check(
        OTHER,
        &feedback(11, 13, 1),
        "agent 2 speaks for a VNIC that is not its own: VNIC 11 to VNIC 13; ignored",
    );
    check(
        OTHER,
        &feedback(13, 12, 1),
        "agent 2 speaks for a VNIC that is not its own: VNIC 13 to VNIC 12; ignored",
    );
    check(
        OTHER,
        &feedback(11, 22, 1),
        "agent 2 speaks for a VNIC that is not its own: VNIC 11 to VNIC 22; ignored",
    );
    check(
        OTHER,
        &feedback(11, 99, 1),
        "agent 2 speaks for a VNIC that is not its own: VNIC 11 to VNIC 99; ignored",
    );
    check(
        OTHER,
        &Message::Caps(vec![rate(11, 12, 1)]),
        "agent 2 says what only the label service may say; ignored",
    );
    check(
        OTHER,
        &Message::Again { first: 1, last: 2 },
        "agent 2 says what only the label service may say; ignored",
    );
    check(
        SERVICE,
        &Message::Caps(vec![rate(12, 11, 1)]),
        "agent 9 speaks for a VNIC that is not its own: VNIC 12 to VNIC 11; ignored",
    );
}

#[test]
fn feedback_of_the_receivers_agent_or_through_the_service_is_obeyed() {
    let mut scene = Scene::new();
    scene.says(OTHER, &feedback(11, 12, 3_000_000));
    assert_eq!(scene.ceiling(), Some(3000));
    scene.says(SERVICE, &feedback(11, 13, 2_000_000));
    assert_eq!((scene.ceiling(), scene.refusals()), (Some(2000), vec![]));
    // More than the NIC is the NIC.
    scene.says(OTHER, &feedback(11, 12, 900_000_000));
    assert_eq!(scene.ceiling(), Some(10_000));
}

#[test]
fn a_replay_and_a_forgery_are_incidents() {
    let mut scene = Scene::new();
    let datagram = scene.says(OTHER, &feedback(11, 12, 3_000_000));
    scene.changes();
    scene.says(OTHER, &feedback(11, 12, 9_000_000));
    assert_eq!(scene.ceiling(), Some(9000));
    scene.event(Event::Datagram(&datagram));
    assert_eq!((scene.refusals(), scene.ceiling()), (vec![], None), "once may be the network");
    scene.event(Event::Datagram(&datagram));
    let replayed = "came again and again, or far too late; ignored";
    assert!(scene.refusals()[0].ends_with(replayed) && scene.ceiling().is_none());
    let mut forged = datagram.clone();
    forged[55] ^= 1;
    scene.event(Event::Datagram(&forged));
    assert!(scene.refusals()[0].contains("wrong signature"));
    let mut stranger = datagram;
    stranger[11] = 8;
    scene.event(Event::Datagram(&stranger));
    scene.event(Event::Datagram(b"hello"));
    assert_eq!(
        scene.refusals(),
        [
            "agent 8 is in no list of peers; its datagram was ignored",
            "a malformed datagram was ignored: a datagram of 5 bytes; it has 56 to 1232"
        ]
    );
}

#[test]
fn a_flood_of_rubbish_is_counted_and_named_only_at_first() {
    let mut scene = Scene::new();
    (0..1000).for_each(|_| scene.event(Event::Datagram(b"rubbish")));
    assert_eq!(scene.refusals().len(), 8);
    assert_eq!(scene.agent.counts(), Counts { refused: 1000, ..Counts::default() });
    scene.pass(100 * MS);
    scene.event(Event::Datagram(b"rubbish"));
    assert_eq!(scene.refusals().len(), 1);
}

#[test]
fn silence_gives_the_guarantee_and_then_no_class() {
    let mut scene = Scene::new();
    scene.says(OTHER, &feedback(11, 12, 9_000_000));
    assert_eq!(scene.ceiling(), Some(9000));
    scene.pass(FEEDBACK_LIFE_NS - 100 * MS);
    assert_eq!(scene.ceiling(), None);
    scene.pass(300 * MS);
    assert_eq!(scene.ceiling(), Some(5000), "the lower guarantee of both VNICs");
    scene.pass(10_000 * MS);
    assert!(matches!(scene.changes()[..], [Change { deed: Deed::Remove, .. }]));
}

/// A cap of 1 Mbit/s for the flow to 12, as the service repeats it each second.
fn caps() -> Message {
    Message::Caps(vec![rate(11, 12, 1_000_000)])
}

#[test]
fn a_cap_holds_while_it_is_repeated_and_until_it_is_taken_back() {
    let mut scene = Scene::new();
    scene.says(SERVICE, &caps());
    assert_eq!(scene.ceiling(), Some(1000));
    scene.says(OTHER, &feedback(11, 12, 9_000_000));
    assert_eq!(scene.ceiling(), None, "the cap is lower");
    for _ in 0..20 {
        scene.pass(1_000 * MS);
        scene.says(SERVICE, &caps());
    }
    assert_eq!(scene.ceiling(), None, "it needs no feedback");
    scene.says(SERVICE, &Message::Caps(vec![rate(11, 12, NO_CAP)]));
    assert_eq!(scene.ceiling(), Some(5000));
}

#[test]
fn a_cap_that_a_service_repeats_no_more_ends_after_three_seconds() {
    // It says that there are none, or it says others.
    for says in [Message::Caps(Vec::new()), Message::Caps(vec![rate(11, 13, NO_CAP)])] {
        let mut scene = Scene::new();
        scene.says(SERVICE, &caps());
        assert_eq!(scene.ceiling(), Some(1000));
        for _ in 0..2 {
            scene.pass(1_000 * MS);
            scene.says(SERVICE, &says);
            let changed = scene.changes().iter().any(|it| it.place == Place::Flow(flow(11, 12)));
            assert!(!changed, "what it says may be late");
        }
        scene.pass(CAP_LIFE_NS - 2_000 * MS);
        scene.says(SERVICE, &says);
        scene.pass(100 * MS);
        assert_eq!(scene.ceiling(), Some(5000), "the flow has no cap any more");
    }
}

/// The flow to 12 has a cap, and sends: its receiver speaks ten times a second. Then the service says nothing for so long.
fn without_the_service(seconds: u64, goes_on: impl Fn(u64) -> bool) -> Scene {
    let mut scene = Scene::new();
    scene.says(SERVICE, &caps());
    assert_eq!(scene.ceiling(), Some(1000));
    for tenth in 0..seconds * 10 {
        if goes_on(tenth) {
            scene.says(OTHER, &feedback(11, 12, 9_000_000));
        }
        scene.pass(100 * MS);
    }
    scene
}

#[test]
fn a_cap_outlives_the_service_while_its_flow_sends() {
    let mut scene = without_the_service(60, |_| true);
    assert_eq!(scene.ceiling(), None);
    // The service runs again, and does not know all flows: it greets, and says nothing of caps.
    scene.says(SERVICE, &Message::Again { first: 1, last: 1 });
    scene.says(OTHER, &feedback(11, 12, 9_000_000));
    scene.pass(500 * MS);
    assert_eq!(scene.ceiling(), None);
    scene.says(SERVICE, &Message::Caps(vec![rate(11, 12, 2_000_000)]));
    assert_eq!(scene.ceiling(), Some(2000), "it has rebuilt what it knows");
}

#[test]
fn a_cap_of_a_flow_that_is_idle_ends_without_the_service() {
    let mut scene = without_the_service(10, |tenth| tenth < 50);
    assert_eq!(scene.ceiling(), Some(5000), "the guarantee, as a flow that begins");
    // A pause that is shorter than two seconds is no end.
    let mut scene = without_the_service(10, |tenth| !(50..65).contains(&tenth));
    assert_eq!(scene.ceiling(), None);
}

#[test]
fn a_cap_whose_flow_nobody_sees_ends_five_minutes_after_the_service() {
    // The service passed the feedback on, so nobody says now whether the flow sends.
    let mut scene = Scene::new();
    scene.says(SERVICE, &Message::Caps(vec![rate(11, 13, 1_000_000)]));
    scene.says(SERVICE, &feedback(11, 13, 9_000_000));
    assert_eq!(scene.ceiling(), Some(1000));
    scene.pass(HELD_CAP_LIFE_NS - 1_000 * MS);
    assert_eq!(scene.ceiling(), None);
    scene.pass(1_100 * MS);
    assert_eq!(scene.ceiling(), Some(5000));
    // A flow that sends has its cap so long, and no longer.
    let seconds = HELD_CAP_LIFE_NS / (1_000 * MS);
    let mut scene = without_the_service(seconds - 1, |_| true);
    assert_eq!(scene.ceiling(), None);
    let mut scene = without_the_service(seconds + 1, |_| true);
    assert_eq!(scene.ceiling(), Some(9000));
}

#[test]
fn changes_wait_for_the_last_batch_and_a_failure_for_a_second() {
    let mut scene = Scene::new();
    scene.confirms = false;
    scene.says(OTHER, &feedback(11, 12, 3_000_000));
    assert_eq!(scene.ceiling(), Some(3000));
    scene.says(OTHER, &feedback(11, 12, 4_000_000));
    scene.says(OTHER, &feedback(11, 12, 2_000_000));
    assert_eq!(scene.ceiling(), None, "the first batch is not confirmed");
    scene.event(Event::Shaped(&[]));
    assert_eq!(scene.ceiling(), Some(2000), "only the last rate matters");
    scene.event(Event::Shaped(&[Place::Flow(flow(11, 12))]));
    scene.pass(900 * MS);
    assert_eq!(scene.ceiling(), None);
    scene.says(OTHER, &feedback(11, 12, 2_000_000));
    scene.pass(200 * MS);
    assert!(matches!(scene.changes()[..], [Change { deed: Deed::Add(_), .. }]), "made again");
}

#[test]
fn a_sender_without_an_agent_is_reported_once_as_unshaped() {
    let mut scene = Scene::new();
    let mut reported = Vec::new();
    for _ in 0..50 {
        scene.now_ns += 40 * MS;
        let mut out = Commands::default();
        scene.agent.on_event(scene.now_ns, Event::Bytes(&[(flow(14, 11), 5000)]), &mut out);
        scene.agent.on_event(scene.now_ns, Event::Time, &mut out);
        let reports = out.datagrams.iter().filter(|(to, _)| *to == SERVICE);
        reported.extend(reports.map(|(_, bytes)| edge::protocol::read(bytes).unwrap().message.to_string()));
    }
    let unshaped = reported.iter().filter(|line| line.contains("unshaped 14>11")).count();
    assert_eq!(unshaped, 1, "{reported:?}");
}

#[test]
fn a_rate_beyond_all_bounds_is_reported_so_that_the_service_can_read_it() {
    let mut scene = Scene::new();
    // As if the clock had hardly moved while a terabyte came.
    let mut out = Commands::default();
    scene.agent.on_event(scene.now_ns, Event::Bytes(&[(flow(12, 11), 1 << 40)]), &mut out);
    scene.now_ns += 40 * MS;
    scene.agent.on_event(scene.now_ns, Event::Time, &mut out);
    let reports = out.datagrams.iter().filter(|(to, _)| *to == SERVICE);
    let said: Vec<String> =
        reports.map(|(_, bytes)| edge::protocol::read(bytes).unwrap().message.to_string()).collect();
    assert!(said.iter().any(|line| line.contains("began 12>11=1000000000000")), "{said:?}");
}

#[test]
fn a_vnic_with_another_address_has_its_classes_made_anew() {
    let mut scene = Scene::new();
    scene.says(OTHER, &feedback(11, 12, 3_000_000));
    scene.says(THIRD, &feedback(11, 13, 3_000_000));
    scene.changes();
    let address = Address { vlan: Some(7), mac: MacAddr([2, 0, 0, 0, 1, 12]) };
    let moved = Vnic { address, ..vnic(12, 1, Some(OTHER), 5_000_000) };
    let vnics = [vnic(11, 1, Some(ME), 8_000_000), moved, vnic(13, 1, Some(THIRD), 5_000_000)];
    scene.event(Event::Directory(Directory::new(vnics).unwrap()));
    scene.pass(40 * MS);
    let deeds = |scene: &mut Scene| -> Vec<(Place, bool)> {
        let is_add = |change: &Change| matches!(change.deed, Deed::Add(_));
        scene.changes().iter().map(|change| (change.place, is_add(change))).collect()
    };
    let to = Place::Flow(flow(11, 12));
    assert_eq!(deeds(&mut scene), [(to, false), (to, true)], "the receiver's address is in the filter");
    // Now the sender on this server has another one.
    let own = Vnic { address: Address { vlan: Some(7), ..vnic(11, 1, None, 1).address }, ..vnics[0] };
    scene.event(Event::Directory(Directory::new([own, vnics[1], vnics[2]]).unwrap()));
    scene.pass(40 * MS);
    let others = Place::Others(VnicId(11));
    let (there, to_third) = (deeds(&mut scene), Place::Flow(flow(11, 13)));
    assert_eq!(there.len(), 6, "{there:?}");
    assert!([others, to, to_third].iter().all(|place| there.contains(&(*place, true))), "{there:?}");
    // A VNIC that moved to another server leaves nothing here.
    let gone = Vnic { agent: Some(OTHER), ..own };
    scene.event(Event::Directory(Directory::new([gone, vnics[1], vnics[2]]).unwrap()));
    assert_eq!(deeds(&mut scene).len(), 4);
}

#[test]
fn a_new_directory_removes_what_left_and_rescales_what_stays() {
    let mut scene = Scene::new();
    scene.says(OTHER, &feedback(11, 12, 3_000_000));
    scene.changes();
    // 12 has left, and 15 has come to this server, which is overbooked now: 8 and 8 on 10.
    let vnics = [vnic(11, 1, Some(ME), 8_000_000), vnic(15, 1, Some(ME), 8_000_000)];
    scene.event(Event::Directory(Directory::new(vnics).unwrap()));
    let changes = scene.changes();
    let rate = |place: Place| {
        changes.iter().find_map(|change| match change.deed {
            Deed::Add(rates) | Deed::Change(rates) if change.place == place => Some(rates.rate_bps),
            _ => None,
        })
    };
    assert_eq!([rate(Place::Vnic(VnicId(11))), rate(Place::Vnic(VnicId(15)))], [Some(4_900_000); 2]);
    let gone: Vec<Place> =
        changes.iter().filter(|change| change.deed == Deed::Remove).map(|change| change.place).collect();
    assert_eq!(gone, [Place::Flow(flow(11, 12))]);
}
