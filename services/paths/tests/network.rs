//! Random networks, intents and failures: what is installed carries its packets, and what is withdrawn leaves nothing.

mod model;

use flow::{DatapathId, MacAddr, PortNo};
use model::{Model, is_edge};
use paths::engine::{Effect, Engine, Event, Kept};
use std::collections::{BTreeMap, BTreeSet};
use view::{
    ConnectPoint, Constraints, Ends, Host, HostId, IntentId, IntentState, Link, LinkId, LinkKind, LinkState,
    Protection, Switch, SwitchState, Wanted,
};

struct Trial {
    engine: Engine,
    model: Model,
    now_ms: u64,
    links: BTreeMap<LinkId, Link>,
    switches: u64,
    wanted: BTreeMap<u64, Wanted>,
    /// What the store has.
    stored: BTreeMap<u64, Kept>,
}

fn point(switch: u64, port: u32) -> ConnectPoint {
    ConnectPoint { switch: DatapathId(switch), port: PortNo(port) }
}

fn host(number: u64) -> HostId {
    HostId { mac: MacAddr::from_u64(0x0200_0000_0000 + number), vlan: None }
}

/// What tells the packets of an intent apart that is not between hosts.
fn ether_type(id: u64) -> u16 {
    0x9000 + u16::try_from(id).expect("small")
}

fn frame(source: HostId, destination: HostId, ether_type: u16) -> Vec<u8> {
    let mut frame = [destination.mac.0, source.mac.0].concat();
    frame.extend_from_slice(&ether_type.to_be_bytes());
    frame.resize(60, 0);
    frame
}

fn wanted(ends: Ends) -> Wanted {
    let (selector, treatment, constraints) = Default::default();
    let priority = view::INTENT_PRIORITY;
    Wanted { ends, selector, treatment, constraints, priority, protection: Protection::Restored }
}

impl Trial {
    fn new(seed: u64, switches: u64) -> Trial {
        let (engine, model) = (Engine::new(1_000, 0, 0), Model::new(seed));
        let (links, wanted, stored) = Default::default();
        let mut trial = Trial { engine, model, now_ms: 0, links, switches, wanted, stored };
        trial.tell_switches();
        trial.tell_hosts();
        trial.tell(Event::Loaded);
        trial
    }

    /// A ring, so that there are disjoint paths, and some chords.
    fn random(seed: u64) -> Trial {
        let mut trial = Trial::new(seed, 8);
        for one in 1..=8 {
            trial.join(one, one % 8 + 1);
        }
        for _ in 0..5 {
            let (one, two) = (trial.model.random.below(8) as u64 + 1, trial.model.random.below(8) as u64 + 1);
            if one != two {
                trial.join(one, two);
            }
        }
        trial
    }

    fn join(&mut self, one: u64, two: u64) {
        let port = |peer: u64| u32::try_from(peer).expect("it is there");
        let id = LinkId { from: point(one, port(two)), to: point(two, port(one)) };
        for id in [id, id.reversed()] {
            let link = Link {
                id,
                found: LinkKind::Direct,
                state: LinkState::Up,
                capacity_kbps: 1_000_000,
                latency_us: Some(100),
                since_ms: 0,
                annotations: Default::default(),
            };
            self.model.set_link(id, true);
            self.tell(Event::Link(&link));
            self.links.insert(id, link);
        }
    }

    fn set_cable(&mut self, id: LinkId, is_up: bool) {
        for id in [id, id.reversed()] {
            self.model.set_link(id, is_up);
            let link = self.links.get_mut(&id).expect("it is there");
            link.state = if is_up { LinkState::Up } else { LinkState::Down };
            let link = link.clone();
            self.tell(Event::Link(&link));
        }
    }

    fn tell(&mut self, event: Event<'_>) {
        let mut effects = Vec::new();
        self.engine.on_event(event, self.now_ms, &mut effects);
        for effect in effects {
            match effect {
                Effect::PutRules(id) => {
                    let version = self.engine.entry(IntentId(id)).expect("it is there").version;
                    let Trial { engine, model, .. } = self;
                    model.put(id, version, |items| engine.write_rules(id, items));
                }
                Effect::RemoveRules(id, version) => self.model.remove(id, version),
                Effect::KeepPlaces(id) => {
                    let kept = self.engine.entry(IntentId(id)).expect("it is there").kept.clone();
                    self.stored.insert(id, kept);
                }
                Effect::Changed(_) | Effect::Gone(_) => {}
            }
        }
    }

    /// The engine starts again. It knows the network and what is wanted, and nothing of the rules that are there.
    fn restart(&mut self, hosts_speak: bool) {
        self.now_ms += 1;
        self.engine = Engine::new(self.now_ms << 20, 0, self.now_ms);
        self.tell_switches();
        if hosts_speak {
            self.tell_hosts();
        }
        for link in self.links.values().cloned().collect::<Vec<_>>() {
            self.tell(Event::Link(&link));
        }
        for kept in self.stored.values().cloned().collect::<Vec<_>>() {
            self.tell(Event::Stored(kept));
        }
        self.tell(Event::Loaded);
    }

    fn tell_switches(&mut self) {
        for id in 1..=self.switches {
            self.tell(Event::Switch(&switch(id, "1.3")));
        }
    }

    fn tell_hosts(&mut self) {
        for id in 1..=self.switches {
            self.tell(Event::Host(&Host {
                id: host(id),
                addresses: Vec::new(),
                at: point(id, 100),
                since_ms: 0,
                configured: false,
                annotations: Default::default(),
            }));
        }
    }

    fn add(&mut self, id: u64, wanted: Wanted) {
        self.wanted.insert(id, wanted.clone());
        let (owner, name, annotations) = ("test".to_owned(), format!("i{id}"), Default::default());
        let kept =
            Kept { id: IntentId(id), owner, name, wanted: Box::new(wanted), annotations, places: None };
        self.stored.insert(id, kept.clone());
        self.tell(Event::Requested(kept.clone()));
        self.tell(Event::Stored(kept));
    }

    /// One thing happens: time passes, a switch takes a command, or a state arrives.
    fn step(&mut self) -> bool {
        self.now_ms += 1;
        self.tell(Event::Time);
        let moved = self.model.step();
        let states = self.model.states();
        let has_states = !states.is_empty();
        for (id, state) in states {
            self.tell(Event::Rules(id, state.as_ref()));
        }
        moved
            || has_states
            || self.engine.next_due_ms(self.now_ms).is_some_and(|due_ms| due_ms <= self.now_ms)
    }

    fn settle(&mut self) {
        for _ in 0..20_000 {
            if !self.step() {
                return;
            }
        }
        panic!("it does not settle");
    }

    fn state(&self, id: u64) -> IntentState {
        self.engine.entry(IntentId(id)).expect("it is there").state
    }

    fn reason(&self, id: u64) -> String {
        self.engine.entry(IntentId(id)).and_then(|entry| entry.reason.clone()).unwrap_or_default()
    }

    /// The packets of an intent: where each enters, and where its copies must leave.
    fn packets(&self, id: u64) -> Vec<(Vec<u8>, ConnectPoint, BTreeSet<ConnectPoint>)> {
        let any = || frame(host(77), host(78), ether_type(id));
        match &self.wanted[&id].ends {
            Ends::HostToHost { one, two } => {
                let at = |id: HostId| point(id.mac.to_u64() & 0xff, 100);
                let there = (frame(*one, *two, 0x88b5), at(*one), BTreeSet::from([at(*two)]));
                vec![there, (frame(*two, *one, 0x88b5), at(*two), BTreeSet::from([at(*one)]))]
            }
            Ends::PointToPoint { from, to } | Ends::Explicit { from, to, .. } => {
                vec![(any(), *from, BTreeSet::from([*to]))]
            }
            Ends::MultiToSingle { from, to } => {
                from.iter().map(|from| (any(), *from, BTreeSet::from([*to]))).collect()
            }
            Ends::SingleToMulti { from, to } => vec![(any(), *from, to.iter().copied().collect())],
        }
    }

    fn check_arrives(&self, id: u64, when: &str) {
        for (frame, from, to) in self.packets(id) {
            let walk = self.model.walk(&frame, from);
            assert!(!walk.looped, "{when}: a packet of intent {id} from {from} loops");
            assert!(!walk.lost && walk.out == to, "{when}: intent {id} from {from}: {walk:?} and not {to:?}");
        }
    }

    fn check_no_loop(&self, when: &str) {
        for id in self.wanted.keys() {
            for (frame, from, _) in self.packets(*id) {
                assert!(!self.model.walk(&frame, from).looped, "{when}: intent {id} from {from}");
            }
        }
    }

    /// Whether all ends of an intent are connected, by a search that knows nothing of the engine.
    fn is_connected(&self, id: u64) -> bool {
        self.packets(id).iter().all(|(_, from, to)| {
            let mut seen = BTreeSet::from([from.switch]);
            loop {
                let up = self.links.keys().filter(|id| self.model.up.contains_key(&id.from));
                let next: Vec<_> =
                    up.filter(|id| seen.contains(&id.from.switch)).map(|id| id.to.switch).collect();
                let before = seen.len();
                seen.extend(next);
                if seen.len() == before {
                    return to.iter().all(|to| seen.contains(&to.switch));
                }
            }
        })
    }

    fn random_ends(&mut self, id: u64) -> Ends {
        let mut others: Vec<u64> = (1..=self.switches).collect();
        let mut next = |model: &mut Model| others.swap_remove(model.random.below(others.len()));
        // Each intent has ports of its own, so that none wants another one's packets.
        let port = 100 + u32::try_from(id).expect("it is there");
        let model = &mut self.model;
        let (one, two) = (next(model), next(model));
        let more = [two, next(model), next(model)].map(|switch| point(switch, port)).to_vec();
        let pair = Ends::HostToHost { one: host(one.min(two)), two: host(one.max(two)) };
        match model.random.below(4) {
            0 if self.wanted.values().all(|other| other.ends != pair) => pair,
            0 | 1 => Ends::PointToPoint { from: point(one, port), to: point(two, port) },
            2 => Ends::MultiToSingle { from: more, to: point(one, port) },
            _ => Ends::SingleToMulti { from: point(one, port), to: more },
        }
    }
}

fn switch(id: u64, openflow: &str) -> Switch {
    Switch {
        id: DatapathId(id),
        state: SwitchState::Up,
        openflow: openflow.to_owned(),
        n_tables: 1,
        n_buffers: 0,
        description: Default::default(),
        since_ms: 0,
        annotations: Default::default(),
    }
}

#[test]
fn what_is_installed_carries_its_packets_and_what_is_withdrawn_leaves_nothing() {
    for seed in 0..40 {
        let mut trial = Trial::random(seed);
        let mut next_id = 0;
        let cables: Vec<LinkId> = trial.links.keys().filter(|id| id.from < id.to).copied().collect();
        for round in 0..12 {
            let when = format!("seed {seed}, round {round}");
            match trial.model.random.below(3) {
                0 => {
                    next_id += 1;
                    let mut wanted = wanted(trial.random_ends(next_id));
                    let is_pair = matches!(wanted.ends, Ends::HostToHost { .. } | Ends::PointToPoint { .. });
                    if is_pair && trial.model.random.below(2) == 0 {
                        wanted.protection = Protection::Protected;
                    }
                    wanted.priority = 1_000 + u16::try_from(next_id).expect("it is there");
                    // Only pairs of hosts want packets that can be told apart from those of others.
                    wanted.selector = match wanted.ends {
                        Ends::HostToHost { .. } => flow::Match::any(),
                        _ => flow::Match::any().with(flow::Field::EthType, ether_type(next_id)),
                    };
                    trial.add(next_id, wanted);
                }
                1 => {
                    let cable = cables[trial.model.random.below(cables.len())];
                    trial.set_cable(cable, false);
                }
                _ => {
                    let cable = cables[trial.model.random.below(cables.len())];
                    trial.set_cable(cable, true);
                }
            }
            for _ in 0..trial.model.random.below(40) {
                trial.step();
                trial.check_no_loop(&when);
            }
            if trial.model.random.below(2) == 0 {
                trial.settle();
                let ids: Vec<u64> = trial.wanted.keys().copied().collect();
                for id in ids {
                    match trial.state(id) {
                        IntentState::Installed => trial.check_arrives(id, &when),
                        IntentState::Waiting => {
                            assert!(!trial.is_connected(id), "{when}: {}", trial.reason(id))
                        }
                        other => panic!("{when}: intent {id} is {other:?}: {}", trial.reason(id)),
                    }
                    assert!(trial.state(id) == IntentState::Installed || !trial.is_connected(id), "{when}");
                }
            }
        }
        for id in 1..=next_id {
            trial.tell(Event::Withdrawn(IntentId(id)));
        }
        trial.settle();
        assert!(trial.engine.is_empty(), "seed {seed}");
        assert!(trial.model.tables.is_empty(), "seed {seed}: {:?}", trial.model.tables);
        assert!(trial.engine.network().graph.topology().all_links().all(|(_, slot)| slot.reserved_kbps == 0));
    }
}

/// The rules of one path are written in another way than those of two.
fn one_or_two_ways(seed: u64) -> Ends {
    match seed % 2 {
        0 => Ends::HostToHost { one: host(1), two: host(5) },
        _ => Ends::PointToPoint { from: point(1, 101), to: point(5, 101) },
    }
}

#[test]
fn an_intent_that_moves_to_another_path_loses_no_packet() {
    for seed in 0..60 {
        let mut trial = Trial::random(seed);
        trial.add(1, wanted(one_or_two_ways(seed)));
        trial.settle();
        for round in 0..6 {
            // The operator takes a link away that the intent uses, while it still carries frames.
            let used = trial.engine.paths(1).into_iter().flat_map(|path| path.links).collect::<Vec<_>>();
            let link = used[trial.model.random.below(used.len())];
            for id in [link, link.reversed()] {
                let mut link = trial.links[&id].clone();
                link.state = LinkState::Down;
                trial.tell(Event::Link(&link));
            }
            for _ in 0..trial.model.random.below(30) {
                trial.step();
                trial.check_arrives(1, &format!("seed {seed}, round {round}"));
            }
            if trial.model.random.below(2) == 0 {
                trial.settle();
            }
            for id in [link, link.reversed()] {
                let link = trial.links[&id].clone();
                trial.tell(Event::Link(&link));
            }
        }
        trial.settle();
        assert_eq!(trial.state(1), IntentState::Installed);
        trial.check_arrives(1, "at the end");
    }
}

#[test]
fn an_intent_that_moves_after_a_restart_loses_no_packet() {
    for seed in 0..60 {
        let mut trial = Trial::random(seed);
        let protection = if seed % 2 == 0 { Protection::Protected } else { Protection::Restored };
        trial.add(1, Wanted { protection, ..wanted(one_or_two_ways(seed / 2)) });
        trial.settle();
        for round in 0..6 {
            // The new engine knows a link as down that the intent uses, and that still carries frames.
            let used = trial.engine.paths(1).into_iter().flat_map(|path| path.links).collect::<Vec<_>>();
            let link = used[trial.model.random.below(used.len())];
            for id in [link, link.reversed()] {
                trial.links.get_mut(&id).expect("it is there").state = LinkState::Down;
            }
            // Hosts that say nothing are served too.
            trial.restart(round % 2 == 0);
            for _ in 0..trial.model.random.below(40) {
                trial.step();
                trial.check_arrives(1, &format!("seed {seed}, round {round}"));
            }
            trial.settle();
            trial.check_arrives(1, &format!("seed {seed}, after round {round}"));
            assert_eq!(trial.state(1), IntentState::Installed);
            for id in [link, link.reversed()] {
                trial.links.get_mut(&id).expect("it is there").state = LinkState::Up;
                let link = trial.links[&id].clone();
                trial.tell(Event::Link(&link));
            }
        }
    }
}

#[test]
fn a_protected_intent_survives_each_single_failure_before_anybody_reacts() {
    for seed in 0..40 {
        let mut trial = Trial::random(seed);
        let wanted = Wanted {
            protection: Protection::Protected,
            ..wanted(Ends::HostToHost { one: host(2), two: host(6) })
        };
        trial.add(1, wanted);
        trial.settle();
        assert_eq!((trial.state(1), trial.reason(1)), (IntentState::Installed, String::new()));
        assert_eq!(trial.engine.paths(1).len(), 4);
        for link in trial.links.keys().copied().collect::<Vec<_>>() {
            // The switches see it; the engine does not yet.
            [link, link.reversed()].into_iter().for_each(|id| trial.model.set_link(id, false));
            trial.check_arrives(1, &format!("seed {seed}, {link} down"));
            trial.set_cable(link, false);
            trial.settle();
            trial.check_arrives(1, &format!("seed {seed}, after {link} was down"));
            trial.set_cable(link, true);
            trial.settle();
        }
    }
}

#[test]
fn a_full_table_is_named_and_routed_around() {
    let mut trial = Trial::new(1, 4);
    for (one, two) in [(1, 2), (2, 3), (3, 4), (4, 1)] {
        trial.join(one, two);
    }
    trial.model.full = BTreeSet::from([DatapathId(2)]);
    trial.add(1, wanted(Ends::HostToHost { one: host(1), two: host(3) }));
    trial.settle();
    assert_eq!(trial.state(1), IntentState::Installed, "{}", trial.reason(1));
    trial.check_arrives(1, "around the full table");
    trial.model.full = BTreeSet::from([DatapathId(2), DatapathId(4)]);
    trial.add(2, wanted(Ends::PointToPoint { from: point(2, 102), to: point(3, 102) }));
    for _ in 0..200 {
        trial.step();
    }
    assert_eq!(trial.state(2), IntentState::Failed);
    assert!(
        trial.reason(2).contains("the table of the switch of:0000000000000002 is full"),
        "{}",
        trial.reason(2)
    );
    // When there is room again, the intent goes on by itself.
    trial.model.full.clear();
    trial.now_ms += 40_000;
    trial.settle();
    assert_eq!(trial.state(2), IntentState::Installed, "{}", trial.reason(2));
}

#[test]
fn an_intent_that_cannot_be_served_says_which_field_is_in_the_way() {
    let check = |change: fn(&mut Wanted), state: IntentState, reason: &str| {
        let mut trial = Trial::new(1, 3);
        trial.join(1, 2);
        trial.join(2, 3);
        let mut wanted = wanted(Ends::HostToHost { one: host(1), two: host(3) });
        change(&mut wanted);
        trial.add(1, wanted);
        trial.settle();
        assert_eq!((trial.state(1), trial.reason(1).as_str()), (state, reason));
    };
    use IntentState::{Failed, Installed, Waiting};
    check(|_| {}, Installed, "");
    let unknown: fn(&mut Wanted) = |it| it.ends = Ends::HostToHost { one: host(1), two: host(9) };
    check(unknown, Waiting, "two: the host 02:00:00:00:00:09 is not known");
    let same: fn(&mut Wanted) = |it| it.ends = Ends::PointToPoint { from: point(9, 1), to: point(1, 1) };
    check(same, Waiting, "from: the switch of:0000000000000009 is not known");
    check(
        |it| it.constraints.bandwidth_kbps = 1_000_001,
        Waiting,
        "constraints.bandwidth_kbps: no path from of:0000000000000001 to of:0000000000000003 has 1000001 kbit/s free",
    );
    check(
        |it| it.constraints.latency_us_max = Some(199),
        Waiting,
        "constraints.latency_us_max: the fastest path takes 200 us",
    );
    check(
        |it| it.constraints.avoid_switches = vec![DatapathId(2)],
        Waiting,
        "constraints.avoid_switches, constraints.avoid_links: no path is left",
    );
    check(
        |it| it.constraints.avoid_switches = vec![DatapathId(3)],
        Failed,
        "constraints.avoid_switches: of:0000000000000003 is an end of the intent",
    );
    check(
        |it| it.constraints.via = vec![DatapathId(9)],
        Waiting,
        "constraints.via: the switch of:0000000000000009 is not known",
    );
    check(
        |it| it.protection = Protection::Protected,
        Installed,
        "protection: there are no two disjoint paths now",
    );
}

#[test]
fn a_protected_intent_needs_fast_failover_groups() {
    let mut trial = Trial::new(1, 4);
    for (one, two) in [(1, 2), (2, 3), (3, 4), (4, 1)] {
        trial.join(one, two);
    }
    trial.tell(Event::Switch(&switch(4, "1.0")));
    let ends = Ends::HostToHost { one: host(1), two: host(3) };
    trial.add(1, Wanted { protection: Protection::Protected, ..wanted(ends) });
    trial.settle();
    assert_eq!(trial.state(1), IntentState::Failed);
    assert!(
        trial.reason(1).starts_with("protection: all disjoint paths lead through switches with OpenFlow 1.0")
    );
}

#[test]
fn two_intents_that_want_the_same_packets_at_one_priority_are_told_apart() {
    let mut trial = Trial::new(1, 3);
    trial.join(1, 2);
    trial.join(2, 3);
    let ends = || Ends::PointToPoint { from: point(1, 101), to: point(3, 101) };
    trial.add(1, wanted(ends()));
    trial.settle();
    trial.add(2, wanted(Ends::PointToPoint { from: point(1, 101), to: point(2, 101) }));
    trial.settle();
    assert_eq!(trial.state(2), IntentState::Failed);
    assert!(
        trial.reason(2).starts_with("selector: the intent 1 of the same priority"),
        "{}",
        trial.reason(2)
    );
    // Another priority, or the other's end, makes room.
    trial.add(
        3,
        Wanted { priority: 7, ..wanted(Ends::PointToPoint { from: point(1, 101), to: point(2, 101) }) },
    );
    trial.settle();
    assert_eq!(trial.state(3), IntentState::Installed);
    trial.tell(Event::Withdrawn(IntentId(1)));
    trial.settle();
    assert_eq!(trial.state(2), IntentState::Installed, "{}", trial.reason(2));
}

#[test]
fn bandwidth_is_reserved_once_and_given_back() {
    let mut trial = Trial::new(1, 4);
    for (one, two) in [(1, 2), (2, 3), (3, 4), (4, 1)] {
        trial.join(one, two);
    }
    let mut ids = 1..;
    let mut add = |trial: &mut Trial, kbps| {
        let id = ids.next().expect("numbers do not end");
        let port = 100 + u32::try_from(id).expect("it is there");
        let ends = Ends::PointToPoint { from: point(1, port), to: point(3, port) };
        let constraints = Constraints { bandwidth_kbps: kbps, ..Constraints::default() };
        trial.add(
            id,
            Wanted { constraints, priority: u16::try_from(id).expect("it is there"), ..wanted(ends) },
        );
        trial.settle();
        trial.state(id)
    };
    assert_eq!(add(&mut trial, 600_000), IntentState::Installed);
    assert_eq!(add(&mut trial, 600_000), IntentState::Installed);
    assert_eq!(add(&mut trial, 600_000), IntentState::Waiting);
    assert_eq!(add(&mut trial, 400_000), IntentState::Installed);
    trial.tell(Event::Withdrawn(IntentId(1)));
    trial.settle();
    assert_eq!(trial.state(3), IntentState::Installed, "{}", trial.reason(3));
}

#[test]
fn a_host_that_moves_takes_its_intents_along() {
    let mut trial = Trial::new(1, 3);
    trial.join(1, 2);
    trial.join(2, 3);
    trial.add(1, wanted(Ends::HostToHost { one: host(1), two: host(2) }));
    trial.settle();
    let at = point(3, 107);
    let moved = Host {
        id: host(2),
        addresses: Vec::new(),
        at,
        since_ms: 0,
        configured: false,
        annotations: Default::default(),
    };
    trial.tell(Event::HostGone(host(2)));
    trial.settle();
    assert_eq!(trial.state(1), IntentState::Installed);
    trial.tell(Event::Host(&moved));
    trial.settle();
    // It is there also after a restart, until it says something else.
    trial.restart(false);
    trial.settle();
    assert_eq!(trial.state(1), IntentState::Installed);
    let walk = trial.model.walk(&frame(host(1), host(2), 0x88b5), point(1, 100));
    assert_eq!((walk.out, walk.lost), (BTreeSet::from([at]), false));
    assert!(is_edge(at.port));
    let back = trial.model.walk(&frame(host(2), host(1), 0x88b5), at);
    assert_eq!(back.out, BTreeSet::from([point(1, 100)]));
}

#[test]
fn rules_that_the_service_lost_are_put_again() {
    let mut trial = Trial::new(1, 2);
    trial.join(1, 2);
    trial.add(1, wanted(Ends::HostToHost { one: host(1), two: host(2) }));
    trial.settle();
    let up = std::mem::take(&mut trial.model.up);
    trial.model = Model::new(2);
    trial.model.up = up;
    trial.tell(Event::RulesComplete(&BTreeSet::new()));
    trial.settle();
    trial.check_arrives(1, "after the service of rules began anew");
}
