//! Networks of the Topology Zoo, in which links and switches fail at random: what is wanted stays true.
//!
//! In: the emulator's networks, seeds. Out: after each failure, frames of each intent are sent through the emulated switches. The judge is
//! the graph of the emulator: connected ends get their frames, others wait with a reason, and no frame ever runs in a circle.
//!
//! `BURNET_ZOO_ROUNDS` and `BURNET_ZOO_SEED` make it longer or different.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "../../../flows/tests/oracle/command_frame.rs"]
mod command_frame;
mod wiring;

use emulator::{SwitchOptions, Topology, topology::zoo_names};
use flow::{DatapathId, Field, MacAddr};
use paths::engine::{Event, Kept};
use std::collections::BTreeMap;
use view::{Ends, Host, HostId, IntentId, IntentState, Protection, Wanted};
use wiring::Wiring;

/// What happens in one network of the suite. More by the environment.
const ROUNDS: u64 = 30;
const INTENTS: u64 = 14;

fn number_of(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// An intent, as the hosts see it.
struct Wish {
    ends: Ends,
    /// For each frame: who sends it, and who must receive it.
    frames: Vec<(Vec<u8>, usize, Vec<usize>)>,
    is_protected: bool,
}

struct Trial {
    wiring: Wiring,
    wishes: BTreeMap<u64, Wish>,
    name: &'static str,
    seed: u64,
    /// Nothing has failed since everything was installed.
    is_settled: bool,
}

/// The type of frames that only the intent with this number wants.
fn ether_type(id: u64) -> u16 {
    0x9000 + u16::try_from(id).unwrap()
}

fn frame(source: MacAddr, destination: MacAddr, ether_type: u16) -> Vec<u8> {
    let mut frame = [destination.0, source.0].concat();
    frame.extend_from_slice(&ether_type.to_be_bytes());
    frame.resize(60, 0);
    frame
}

impl Trial {
    fn new(name: &'static str, seed: u64) -> Trial {
        let topology = Topology::zoo(name, false).unwrap();
        let options = SwitchOptions { n_buffers: 0, n_tables: 1, ..SwitchOptions::default() };
        let wiring = Wiring::new(&topology, seed, &options);
        let mut trial = Trial { wiring, wishes: BTreeMap::new(), name, seed, is_settled: false };
        for number in 0..topology.hosts.len() {
            let host = Host {
                id: trial.host(number),
                addresses: Vec::new(),
                at: trial.wiring.place(number),
                since_ms: 0,
                configured: false,
                annotations: Default::default(),
            };
            trial.wiring.tell(Event::Host(&host));
        }
        trial.wiring.settle();
        trial
    }

    fn below(&mut self, bound: usize) -> usize {
        self.wiring.random.below(u32::try_from(bound).unwrap()) as usize
    }

    fn mac(&self, host: usize) -> MacAddr {
        self.wiring.network.hosts()[host].mac()
    }

    fn host(&self, host: usize) -> HostId {
        HostId { mac: self.mac(host), vlan: None }
    }

    fn hosts(&mut self, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.wiring.network.hosts().len()).collect();
        (0..count).map(|_| all.swap_remove(self.below(all.len()))).collect()
    }

    /// A wish between random hosts. Each has a priority of its own, and frames that no other one wants.
    fn wish(&mut self, id: u64) -> (Wish, Wanted) {
        let hosts = self.hosts(4);
        let (one, two, more) = (hosts[0], hosts[1], &hosts[1..]);
        // From and to addresses that no host has.
        let [from, to] = [0x0a00, 0x0b00].map(|number| MacAddr::from_u64((number << 32) + id));
        let other = frame(from, to, ether_type(id));
        let kind = self.wiring.random.below(10);
        let at = |host: &usize| self.wiring.place(*host);
        let (ends, frames) = match kind {
            0..6 => {
                let frame = |from, to| frame(self.mac(from), self.mac(to), 0x88b5);
                let frames = vec![(frame(one, two), one, vec![two]), (frame(two, one), two, vec![one])];
                (Ends::HostToHost { one: self.host(one), two: self.host(two) }, frames)
            }
            6 | 7 => (Ends::PointToPoint { from: at(&one), to: at(&two) }, vec![(other, one, vec![two])]),
            8 => {
                let frames = more.iter().map(|from| (other.clone(), *from, vec![one])).collect();
                (Ends::MultiToSingle { from: more.iter().map(at).collect(), to: at(&one) }, frames)
            }
            _ => {
                let mut to = more.to_vec();
                to.sort_unstable();
                let ends = Ends::SingleToMulti { from: at(&one), to: more.iter().map(at).collect() };
                (ends, vec![(other, one, to)])
            }
        };
        let is_protected = kind < 8 && self.wiring.random.below(2) == 0;
        let protection = if is_protected { Protection::Protected } else { Protection::Restored };
        let selector = match ends {
            Ends::HostToHost { .. } => flow::Match::any(),
            _ => flow::Match::any().with(Field::EthType, ether_type(id)),
        };
        let (treatment, constraints) = Default::default();
        let priority = 1_000 + u16::try_from(id).unwrap();
        let wanted = Wanted { ends: ends.clone(), selector, treatment, constraints, priority, protection };
        (Wish { ends, frames, is_protected }, wanted)
    }

    fn add(&mut self, id: u64) {
        let (wish, wanted) = self.wish(id);
        // Two intents for the same pair would want the same frames.
        let is_pair = |other: &Wish| {
            matches!(wish.ends, Ends::HostToHost { .. })
                && other.frames.iter().any(|frame| wish.frames.contains(frame))
        };
        if self.wishes.values().any(is_pair) {
            return;
        }
        let (owner, annotations) = ("test".to_owned(), Default::default());
        let kept = Kept {
            id: IntentId(id),
            owner,
            name: format!("i{id}"),
            wanted: Box::new(wanted),
            annotations,
            places: None,
        };
        self.wishes.insert(id, wish);
        self.wiring.tell(Event::Requested(kept.clone()));
        self.wiring.tell(Event::Stored(kept));
    }

    fn when(&self, what: &str) -> String {
        format!("{} seed {}: {what}", self.name, self.seed)
    }

    fn state(&self, id: u64) -> (IntentState, String) {
        let entry = self.wiring.paths.entry(IntentId(id)).unwrap();
        (entry.state, entry.reason.clone().unwrap_or_default())
    }

    /// Whether all ends of an intent are connected in the emulator's graph.
    fn is_connected(&self, id: u64) -> bool {
        let at = |host: &usize| -> DatapathId { self.wiring.place(*host).switch };
        let joined = |(_, from, to): &(Vec<u8>, usize, Vec<usize>)| {
            to.iter().all(|to| self.wiring.is_connected(at(from), at(to)))
        };
        self.wishes[&id].frames.iter().all(joined)
    }

    fn check_arrives(&mut self, id: u64, what: &str) {
        for (frame, from, to) in self.wishes[&id].frames.clone() {
            let there = self.wiring.send(from, &frame);
            let when = self.when(what);
            assert_eq!(there.as_ref(), Some(&to), "{when}: the frame of intent {id} from host {from}");
        }
    }

    fn check_no_circle(&mut self, id: u64, what: &str) {
        for (frame, from, _) in self.wishes[&id].frames.clone() {
            let there = self.wiring.send(from, &frame);
            assert!(there.is_some(), "{}: a frame of intent {id} runs in a circle", self.when(what));
        }
    }

    /// What must hold when everything has settled.
    fn check_all(&mut self, what: &str) {
        self.is_settled = true;
        let ids: Vec<u64> = self.wishes.keys().copied().collect();
        for id in ids {
            let (state, reason) = self.state(id);
            let when = self.when(what);
            match self.is_connected(id) {
                true => {
                    assert_eq!(state, IntentState::Installed, "{when}: intent {id}: {reason}");
                    self.check_arrives(id, what);
                }
                false => {
                    assert_eq!(state, IntentState::Waiting, "{when}: intent {id}: {reason}");
                    assert!(!reason.is_empty(), "{when}: intent {id} waits without a reason");
                    self.check_no_circle(id, what);
                }
            }
        }
    }

    /// The protected intents that have a backup now.
    fn guarded(&self) -> Vec<u64> {
        let has_backup = |id: &u64| self.state(*id) == (IntentState::Installed, String::new());
        let protected = self.wishes.iter().filter(|(_, wish)| wish.is_protected).map(|(id, _)| *id);
        // On one switch, there is nothing to protect.
        let is_far = |id: &u64| self.wiring.paths.paths(*id).iter().any(|path| path.id.backup);
        protected.filter(has_backup).filter(is_far).collect()
    }

    fn fail_link(&mut self) {
        let trunks = self.wiring.trunks();
        let link = trunks[self.below(trunks.len())];
        // A backup is for one failure at a time.
        let guarded = if self.is_settled { self.guarded() } else { Vec::new() };
        self.wiring.set_link(link, false);
        // Before the node knows.
        for id in guarded {
            self.check_arrives(id, "a link has failed, and only the switches know");
        }
    }

    fn change(&mut self) -> String {
        let what = self.change_something();
        self.is_settled = false;
        what
    }

    fn change_something(&mut self) -> String {
        let trunks = self.wiring.trunks();
        let (link, index) = (trunks[self.below(trunks.len())], self.below(self.wiring.switch_count()));
        match self.below(10) {
            0..5 => {
                self.fail_link();
                "a link has failed".to_owned()
            }
            5..7 => {
                self.wiring.set_link(link, true);
                "a link is up".to_owned()
            }
            7 | 8 => {
                self.wiring.set_switch(index, false);
                format!("switch {index} is off")
            }
            _ => {
                (0..self.wiring.switch_count()).for_each(|index| self.wiring.set_switch(index, true));
                "all switches are on".to_owned()
            }
        }
    }

    fn round(&mut self, round: u64) {
        for _ in 0..=self.below(2) {
            let what = format!("round {round}: {}", self.change());
            let ids: Vec<u64> = self.wishes.keys().copied().collect();
            for _ in 0..self.below(60) {
                self.wiring.step();
                let id = ids[self.below(ids.len())];
                self.check_no_circle(id, &what);
            }
            if self.below(2) == 0 {
                self.wiring.settle();
                self.check_all(&what);
            }
        }
        self.wiring.settle();
        self.check_all(&format!("round {round}, at its end"));
    }

    fn run(mut self, rounds: u64) {
        (1..=INTENTS).for_each(|id| self.add(id));
        self.wiring.settle();
        self.check_all("at first");
        (0..rounds).for_each(|round| self.round(round));
        (0..self.wiring.switch_count()).for_each(|index| self.wiring.set_switch(index, true));
        self.wiring.trunks().into_iter().for_each(|link| self.wiring.set_link(link, true));
        self.wiring.settle();
        self.check_all("when everything is mended");
        let ids: Vec<u64> = self.wishes.keys().copied().collect();
        ids.into_iter().for_each(|id| self.wiring.tell(Event::Withdrawn(IntentId(id))));
        self.wiring.settle();
        (0..200).for_each(|_| self.wiring.wait(1_000));
        assert!(self.wiring.paths.is_empty(), "{}", self.when("an intent is not gone"));
        let left: usize = self.wiring.network.switches().iter().map(|switch| switch.flow_count()).sum();
        assert_eq!(left, 0, "{}", self.when("rules are left"));
    }
}

#[test]
fn in_the_networks_of_the_zoo_every_intent_is_kept_through_random_failures() {
    let rounds = number_of("BURNET_ZOO_ROUNDS", ROUNDS);
    let first = number_of("BURNET_ZOO_SEED", 1);
    let names: Vec<&'static str> = zoo_names().collect();
    assert_eq!(names.len(), 32);
    for (name, seed) in names.into_iter().zip(first..) {
        Trial::new(name, seed).run(rounds);
    }
}
