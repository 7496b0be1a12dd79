//! The queue of the CPU against a simulation that looks at every message in every microsecond.

use super::driver::{Caller, Draw, ends};
use profile::model::{Loss, Output};
use profile::*;
use std::collections::BTreeMap;

const US: u64 = 1000;

/// One message of the oracle.
#[derive(Clone, Copy, Debug)]
struct Job {
    id: u64,
    kind: MessageType,
    state: State,
    /// Its place in the order in which messages came into the queue.
    entered: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Not in the queue yet.
    Outside,
    Queued,
    Serving {
        until: u64,
    },
    Leaving {
        at: u64,
    },
    /// A barrier that the CPU has processed.
    Answering,
    Ended,
}

/// A list of all messages that ever came. Everything is found by looking at all of them.
struct Oracle<'a> {
    profile: &'a Profile,
    jobs: Vec<Job>,
    entered: u64,
    latest: BTreeMap<bool, u64>,
    ended: Vec<(u64, u64, &'static str)>,
}

fn us(quantiles: &Quantiles) -> u64 {
    quantiles.as_constant().unwrap() as u64
}

impl Oracle<'_> {
    fn is_ordering(&self) -> bool {
        !matches!(self.profile.barrier.kind, BarrierKind::NotOrdering(_))
    }

    fn is_fence(&self, job: &Job) -> bool {
        job.kind == MessageType::Barrier && self.is_ordering()
    }

    fn queued(&self) -> usize {
        self.jobs.iter().filter(|job| job.state == State::Queued).count()
    }

    fn bound(&self) -> usize {
        self.profile.cpu.queue_messages.unwrap() as usize
    }

    fn is_busy(&self) -> bool {
        self.jobs.iter().any(|job| matches!(job.state, State::Serving { .. }))
    }

    fn end(&mut self, index: usize, now: u64, how: &'static str) {
        self.jobs[index].state = State::Ended;
        self.ended.push((now, self.jobs[index].id, how));
    }

    fn arrive(&mut self, id: u64, kind: MessageType, now: u64) {
        let has_place = self.queued() < self.bound() || (!self.is_busy() && self.queued() == 0);
        let loses = kind == MessageType::PacketIn || self.profile.cpu.queue_full == QueueFull::LoseAny;
        self.jobs.push(Job { id, kind, state: State::Outside, entered: 0 });
        if loses && !has_place {
            return self.end(self.jobs.len() - 1, now, "lost");
        }
        let index = self.jobs.len() - 1;
        if kind == MessageType::PacketIn || has_place && self.may_enter(index) {
            self.enter(index);
        }
        self.go_on(now);
    }

    fn enter(&mut self, index: usize) {
        self.entered += 1;
        self.jobs[index].state = State::Queued;
        self.jobs[index].entered = self.entered;
    }

    /// No message of the controller that came before waits outside, and no barrier before it is unanswered.
    fn may_enter(&self, index: usize) -> bool {
        self.jobs[..index]
            .iter()
            .filter(|job| job.kind != MessageType::PacketIn)
            .all(|job| job.state != State::Outside && (job.state == State::Ended || !self.is_fence(job)))
    }

    fn let_in(&mut self) {
        for index in 0..self.jobs.len() {
            let is_outside = self.jobs[index].state == State::Outside;
            if is_outside && self.may_enter(index) && self.queued() < self.bound().max(1) {
                self.enter(index);
            }
        }
    }

    /// A barrier waits until all messages before it have been processed.
    fn may_begin(&self, index: usize) -> bool {
        let waits = |job: &Job| {
            job.kind != MessageType::PacketIn && matches!(job.state, State::Queued | State::Serving { .. })
        };
        self.jobs[index].state == State::Queued
            && !(self.is_fence(&self.jobs[index]) && self.jobs[..index].iter().any(waits))
    }

    fn go_on(&mut self, now: u64) {
        loop {
            self.answer(now);
            self.let_in();
            if self.is_busy() {
                return;
            }
            let rank = |job: &Job| (self.profile.cpu.service(job.kind).rank, job.entered);
            let candidates = (0..self.jobs.len()).filter(|index| self.may_begin(*index));
            let Some(index) = candidates.min_by_key(|index| rank(&self.jobs[*index])) else { return };
            let service = us(&self.profile.cpu.service(self.jobs[index].kind).service_us);
            self.jobs[index].state = State::Serving { until: now + service };
            self.let_in();
            if service > 0 {
                return;
            }
            self.served(index, now);
        }
    }

    fn answer(&mut self, now: u64) {
        let answering = (0..self.jobs.len()).find(|index| self.jobs[*index].state == State::Answering);
        let Some(index) = answering else { return };
        let is_pending = |job: &Job| job.kind != MessageType::PacketIn && job.state != State::Ended;
        if !self.jobs[..index].iter().any(is_pending) {
            self.end(index, now, "answered");
        }
    }

    fn served(&mut self, index: usize, now: u64) {
        let delay = &self.profile.delay;
        let (is_in, residual) = match self.jobs[index].kind {
            MessageType::PacketIn => (true, us(&delay.ingress_us)),
            MessageType::PacketOut => (false, us(&delay.egress_us)),
            MessageType::Barrier if self.profile.barrier.kind == BarrierKind::Honest => {
                self.jobs[index].state = State::Answering;
                return;
            }
            MessageType::Barrier => return self.end(index, now, "answered"),
            _ => return self.end(index, now, "carried out"),
        };
        let latest = self.latest.entry(is_in).or_default();
        *latest = (*latest).max(now + residual);
        self.jobs[index].state = State::Leaving { at: *latest };
        self.leave(now);
    }

    fn leave(&mut self, now: u64) {
        for index in 0..self.jobs.len() {
            if self.jobs[index].state == (State::Leaving { at: now }) {
                let is_in = self.jobs[index].kind == MessageType::PacketIn;
                self.end(index, now, if is_in { "packet-in" } else { "carried out" });
            }
        }
    }

    fn tick(&mut self, now: u64) {
        self.leave(now);
        let is_served = |job: &Job| job.state == (State::Serving { until: now });
        while let Some(index) = self.jobs.iter().position(is_served) {
            self.served(index, now);
            self.go_on(now);
        }
        self.go_on(now);
    }
}

fn random_profile(draw: &mut Draw) -> Profile {
    let mut profile = Profile::null();
    let delay = |draw: &mut Draw| Quantiles::constant(draw.below(20) as f64);
    for kind in MessageType::ALL {
        let rank = draw.below(3) as u8;
        *profile.cpu.service_mut(kind) = Service { rank, service_us: delay(draw) };
    }
    profile.cpu.queue_messages = Some(draw.below(6) as u32);
    profile.cpu.queue_full = draw.one_of(&[QueueFull::LosePacketIns, QueueFull::LoseAny]);
    profile.delay = Delay { ingress_us: delay(draw), egress_us: delay(draw) };
    let late = Quantiles::constant(0.0);
    profile.barrier.kind = match draw.below(3) {
        0 => BarrierKind::Honest,
        1 => BarrierKind::Early(late),
        _ => BarrierKind::NotOrdering(late),
    };
    profile
}

fn how(output: &Output) -> &'static str {
    match output {
        Output::PacketIn { .. } => "packet-in",
        Output::CarryOut { .. } => "carried out",
        Output::AnswerBarrier { .. } => "answered",
        Output::Lost { why: Loss::QueueFull, .. } => "lost",
        _ => "otherwise",
    }
}

/// Both see the same messages. Within a microsecond, the order of what ended does not matter.
fn compare(seed: u64) -> (usize, usize) {
    let draw = &mut Draw(seed);
    let profile = random_profile(draw);
    let mut caller = Caller::new(Model::new(&profile, seed));
    let mut oracle = Oracle {
        profile: &profile,
        jobs: Vec::new(),
        entered: 0,
        latest: BTreeMap::new(),
        ended: Vec::new(),
    };
    let kinds = [
        MessageType::PacketIn,
        MessageType::PacketIn,
        MessageType::PacketOut,
        MessageType::Echo,
        MessageType::Statistics,
        MessageType::Barrier,
        MessageType::Add,
    ];
    let rarely = 2 + draw.below(20);
    for now in 0..100_000 {
        if now > 250 && oracle.jobs.iter().all(|job| job.state == State::Ended) {
            break;
        }
        oracle.tick(now);
        caller.pass_to(now * US);
        while now < 250 && draw.below(rarely) == 0 {
            let kind = draw.one_of(&kinds);
            let id = match kind {
                MessageType::PacketIn => caller.miss(now * US),
                kind => caller.message(now * US, kind),
            };
            oracle.arrive(id.0, kind, now);
        }
    }
    let mut got: Vec<_> =
        caller.came.iter().filter_map(|(at, out)| Some((at / US, ends(out)?.0, how(out)))).collect();
    got.sort_unstable();
    oracle.ended.sort_unstable();
    let differs = got.iter().zip(&oracle.ended).find(|(got, expected)| got != expected);
    assert_eq!(differs, None, "seed {seed}: the model, and what the list says; {:#?}", profile.cpu);
    assert_eq!(got.len(), oracle.ended.len(), "seed {seed}");
    assert_eq!(got.len(), oracle.jobs.len(), "seed {seed}: everything ended");
    (got.len(), got.iter().filter(|(_, _, how)| *how == "lost").count())
}

#[test]
fn the_queue_does_what_a_list_of_all_messages_says() {
    let (mut all, mut lost) = (0, 0);
    for seed in 0..300 {
        let (ended, of_these) = compare(seed);
        (all, lost) = (all + ended, lost + of_these);
    }
    println!("{all} messages, {lost} lost");
    assert!(lost > all / 100 && lost < all / 2, "{lost} of {all}: the bound is reached, and not always");
}
