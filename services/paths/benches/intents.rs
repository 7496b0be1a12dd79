//! How long the engine takes for the rules of new intents, and for those of intents whose link failed: 206 switches, 407 cables.
//!
//! In: a network and intents. Out: criterion's report. The rules are written as the service `flows` gets them; nothing is sent.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use flow::{DatapathId, Field, Match, PortNo};
use flows_contract::{Batch, SetOptions};
use paths::engine::{Effect, Engine, Event, Kept};
use view::{ConnectPoint, Ends, IntentId, Link, LinkId, LinkKind, LinkState, Switch, SwitchState, Wanted};

const SWITCHES: u64 = 206;
/// Drawn cables; nine of them coincide with others.
const CABLES: u64 = 416;

fn point(switch: u64, port: u64) -> ConnectPoint {
    ConnectPoint { switch: DatapathId(switch + 1), port: PortNo(u32::try_from(port + 1).expect("small")) }
}

fn link(from: u64, to: u64, state: LinkState) -> Link {
    let (capacity_kbps, latency_us, annotations) = (10_000_000, Some(100), Default::default());
    let id = LinkId { from: point(from, to), to: point(to, from) };
    Link { id, found: LinkKind::Direct, state, capacity_kbps, latency_us, since_ms: 0, annotations }
}

struct Trial {
    engine: Engine,
    batch: Batch,
    next: u64,
    rules: usize,
}

impl Trial {
    fn new() -> Trial {
        let mut trial = Trial { engine: Engine::new(1, 0, 0), batch: Batch::new(), next: 1, rules: 0 };
        for id in 0..SWITCHES {
            trial.tell(Event::Switch(&Switch {
                id: DatapathId(id + 1),
                state: SwitchState::Up,
                openflow: "1.3".to_owned(),
                n_tables: 1,
                n_buffers: 0,
                description: Default::default(),
                since_ms: 0,
                annotations: Default::default(),
            }));
        }
        let ring = (0..SWITCHES).map(|one| (one, (one + 1) % SWITCHES));
        let chords = (0..CABLES - SWITCHES).map(|one| (one % SWITCHES, (one * 37 + 11) % SWITCHES));
        for (one, two) in ring.chain(chords).filter(|(one, two)| one != two) {
            trial.tell(Event::Link(&link(one, two, LinkState::Up)));
            trial.tell(Event::Link(&link(two, one, LinkState::Up)));
        }
        trial.tell(Event::Loaded);
        trial
    }

    fn tell(&mut self, event: Event<'_>) {
        let mut effects = Vec::new();
        self.engine.on_event(event, 0, &mut effects);
        for effect in effects {
            let Effect::PutRules(id) = effect else { continue };
            self.rules += 1;
            let Trial { engine, batch, .. } = self;
            let write = |batch: &mut Batch| {
                batch.put("intent/1", id, SetOptions::default(), |items| engine.write_rules(id, items))
            };
            if !write(batch) {
                batch.clear();
                write(batch);
            }
        }
    }

    /// Adds a flow to a destination of its own, from one switch to another some hops away.
    fn add(&mut self) {
        let id = self.next;
        self.next += 1;
        let (from, to) = (id % SWITCHES, (id * 31 + 77) % SWITCHES);
        let selector = Match::any()
            .with(Field::EthType, 0x0800u16)
            .with(Field::Ipv4Dst, u32::try_from(id).expect("small"));
        let ends = Ends::PointToPoint { from: point(from, 1_000), to: point(to, 1_001) };
        let (treatment, constraints, protection) = Default::default();
        let wanted = Wanted { ends, selector, treatment, constraints, priority: 9, protection };
        let (owner, name, annotations) = Default::default();
        let kept =
            Kept { id: IntentId(id), owner, name, wanted: Box::new(wanted), annotations, places: None };
        self.tell(Event::Stored(kept));
    }

    fn compile_all(&mut self) {
        while self.engine.next_due_ms(0).is_some() {
            self.tell(Event::Time);
        }
    }
}

fn intents(criterion: &mut Criterion) {
    let mut trial = Trial::new();
    (0..16_000).for_each(|_| trial.add());
    trial.compile_all();
    criterion.bench_function("1000 new paths, beside 16000", |bencher| {
        bencher.iter_batched(
            || (),
            |()| {
                (0..1_000).for_each(|_| trial.add());
                trial.compile_all();
            },
            BatchSize::PerIteration,
        );
    });
    let mut trial = Trial::new();
    (0..16_000).for_each(|_| trial.add());
    trial.compile_all();
    let mut number = 0;
    criterion.bench_function("a link fails and heals, all its paths move, of 16000", |bencher| {
        bencher.iter(|| {
            number = (number + 7) % SWITCHES;
            let next = (number + 1) % SWITCHES;
            trial.tell(Event::Link(&link(number, next, LinkState::Down)));
            trial.compile_all();
            trial.tell(Event::Link(&link(number, next, LinkState::Up)));
        });
    });
    println!("sets put: {}", trial.rules);
}

criterion_group!(benches, intents);
criterion_main!(benches);
