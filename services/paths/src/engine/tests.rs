//! What an intent gives back, another one gets: bandwidth and packets. And what is refused is tried again.

use super::*;
use flow::{Field, Match, PortNo};
use view::{LinkKind, LinkState, Protection, SwitchState};

struct Bed {
    engine: Engine,
    effects: Vec<Effect>,
    now_ms: u64,
}

fn point(switch: u64, port: u32) -> ConnectPoint {
    ConnectPoint { switch: flow::DatapathId(switch), port: PortNo(port) }
}

/// Packets of this type, from port 1 of the first switch to port 1 of the second one.
fn wanted(ether_type: u16, kbps: u64) -> Wanted {
    let mut wanted = Wanted {
        ends: Ends::PointToPoint { from: point(1, 1), to: point(2, 1) },
        selector: Match::any().with(Field::EthType, ether_type),
        treatment: Vec::new(),
        constraints: Default::default(),
        priority: view::INTENT_PRIORITY,
        protection: Protection::Restored,
    };
    wanted.constraints.bandwidth_kbps = kbps;
    wanted
}

impl Bed {
    /// Two switches with a link of 1,000 kbit/s.
    fn new() -> Bed {
        let mut bed = Bed { engine: Engine::new(1, 0, 0), effects: Vec::new(), now_ms: 0 };
        for id in [1, 2] {
            bed.tell(Event::Switch(&Switch {
                id: flow::DatapathId(id),
                state: SwitchState::Up,
                openflow: "1.3".to_owned(),
                n_tables: 1,
                n_buffers: 0,
                description: Default::default(),
                since_ms: 0,
                annotations: Default::default(),
            }));
        }
        bed.link(1_000);
        bed.tell(Event::Loaded);
        bed
    }

    fn link(&mut self, capacity_kbps: u64) {
        let id = LinkId { from: point(1, 10), to: point(2, 10) };
        let (found, state, annotations) = (LinkKind::Direct, LinkState::Up, Default::default());
        let link = Link { id, found, state, capacity_kbps, latency_us: None, since_ms: 0, annotations };
        self.tell(Event::Link(&link));
    }

    fn tell(&mut self, event: Event<'_>) {
        self.engine.on_event(event, self.now_ms, &mut self.effects);
    }

    /// The store has this wish of an intent.
    fn want(&mut self, id: u64, wanted: Wanted) {
        let (owner, name, annotations) = ("test".to_owned(), format!("i{id}"), Default::default());
        let wanted = Box::new(wanted);
        self.tell(Event::Stored(Kept { id: IntentId(id), owner, name, wanted, annotations, places: None }));
    }

    /// Time passes, and all rules are confirmed.
    fn settle(&mut self) {
        while let Some(due_ms) = self.engine.next_due_ms(self.now_ms).filter(|it| *it < self.now_ms + 1_000) {
            self.now_ms = self.now_ms.max(due_ms);
            self.tell(Event::Time);
            for effect in std::mem::take(&mut self.effects) {
                if let Effect::PutRules(id) = effect {
                    let version = self.engine.entry(IntentId(id)).expect("it is there").version;
                    let state = SetState { version, wanted: 2, confirmed: 2, phase: Phase::Installed };
                    self.tell(Event::Rules(id, Some(&state)));
                }
            }
        }
    }

    fn states<const N: usize>(&mut self, ids: [u64; N]) -> [IntentState; N] {
        self.settle();
        ids.map(|id| self.engine.entry(IntentId(id)).expect("it is there").state)
    }
}

const IP: u16 = 0x0800;
const ARP: u16 = 0x0806;

#[test]
fn an_intent_that_wants_less_than_before_leaves_its_bandwidth_to_one_that_waits() {
    use IntentState::{Installed, Waiting};
    let mut bed = Bed::new();
    bed.want(1, wanted(IP, 800));
    bed.want(2, wanted(ARP, 500));
    assert_eq!(bed.states([1, 2]), [Installed, Waiting]);
    bed.want(1, wanted(IP, 400));
    assert_eq!(bed.states([1, 2]), [Installed, Installed]);
    // One that wants more keeps what it had, and does not lose it to those that wait.
    bed.want(3, wanted(0x86dd, 300));
    bed.want(1, wanted(IP, 450));
    assert_eq!(bed.states([1, 2, 3]), [Installed, Installed, Waiting]);
}

#[test]
fn a_link_that_has_more_room_than_before_serves_those_that_wait_for_it() {
    use IntentState::{Installed, Waiting};
    let mut bed = Bed::new();
    bed.want(1, wanted(IP, 1_500));
    assert_eq!(bed.states([1]), [Waiting]);
    bed.link(2_000);
    assert_eq!(bed.states([1]), [Installed]);
}

#[test]
fn an_intent_gets_the_packets_that_another_one_does_not_want_any_more() {
    use IntentState::{Failed, Installed};
    let mut bed = Bed::new();
    bed.want(1, wanted(IP, 0));
    assert_eq!(bed.states([1]), [Installed]);
    bed.want(2, wanted(IP, 0));
    assert_eq!(bed.states([1, 2]), [Installed, Failed]);
    bed.want(1, wanted(ARP, 0));
    assert_eq!(bed.states([1, 2]), [Installed, Installed]);
}

#[test]
fn a_removal_that_is_refused_says_what_to_do_and_is_asked_for_again() {
    let mut bed = Bed::new();
    bed.want(1, wanted(IP, 0));
    bed.settle();
    bed.tell(Event::Withdrawn(IntentId(1)));
    bed.effects.clear();
    bed.tell(Event::RulesRefused(1, "flows.write: the app does not hold this capability"));
    let entry = bed.engine.entry(IntentId(1)).expect("it is there");
    let why = entry.reason.clone().unwrap_or_default();
    assert_eq!(entry.state, IntentState::Withdrawing);
    assert!(why.contains("flows.write: ") && why.contains("within 10 seconds"), "{why}");
    bed.effects.clear();
    bed.tell(Event::RulesNotTaken(1));
    assert!(matches!(bed.effects[..], [Effect::RemoveRules(1, _)]), "{:?}", bed.effects);
    bed.tell(Event::Rules(1, None));
    assert!(bed.engine.is_empty());
}
