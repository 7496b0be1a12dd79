//! One thread of the generator: its switches, one loop over their sockets, and the counters.
//!
//! ```text
//!   poll ──> queue of switches that have something to do ──> each in turn: flush, read and count, send
//! ```
//!
//! The activity decides what is sent: announcements, as much as possible, one at a time, or what is due. A switch in
//! the queue gets one read and one write before the next one. It never waits for a single switch, and never allocates
//! for a packet-in.

use flow::DatapathId;
use mio::{Events, Poll, Token};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::LoadOptions;
use crate::alarm::Alarm;
use crate::allowance::Allowance;
use crate::answers::{Counting, Said};
use crate::figures::Latencies;
use crate::pace::Pace;
use crate::progress::Progress;
use crate::report::{Faults, Learned, RoundReport};
use crate::stream::Room;
use crate::switch::LoadSwitch;
use crate::template::{BUFFER_IDS, Batch, Template};
use crate::traffic::TrafficPlan;
use crate::{Mode, NotBegun};

/// How often connections and time-outs are checked.
const HOUSEKEEPING: Duration = Duration::from_millis(20);
/// In latency mode, a packet-in without an answer for so long counts as lost, and the switch sends the next one.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);
/// How many unanswered announcements a switch may have: few, so that no controller's queue overflows while it learns.
const ANNOUNCEMENTS_AT_ONCE: u32 = 32;
/// How often all hosts are announced to a controller that answers only a part. A controller that always drops some is
/// measured with what it has learned.
const INCOMPLETE_ROUNDS_MAX: u32 = 3;
/// If no answer arrives for so long while learning, all unanswered announcements count as lost.
const LEARNING_SILENCE: Duration = Duration::from_millis(300);
/// After a round, late answers are awaited until none has arrived for so long …
const DRAIN_SILENCE: Duration = Duration::from_millis(200);
/// … but no longer than this.
const DRAIN_LONGEST: Duration = Duration::from_secs(10);
/// Readiness events of one poll. The next poll, which follows at once, returns the others.
const EVENTS_PER_POLL: usize = 1024;
/// At a fixed rate, the thread sleeps only if the next packet-in is due later than this. A poll can wait only whole
/// milliseconds.
const WORTH_SLEEPING: Duration = Duration::from_millis(3);

/// How long the poll waits when the link's capacity is used up: half of what the allowance keeps.
const LINK_PATIENCE: Duration = Duration::from_millis(2);
/// The same for a thread that can sleep less than a millisecond: what the link brings comes more evenly.
const LINK_SLEEP: Duration = Duration::from_micros(500);
/// The fewest packet-ins of a switch's turn on such a link, so that a write to its socket is worth its cost.
const LINK_SHARE_LEAST: usize = 16;

/// In throughput mode, packet-ins are sent for so long before answers count. By then the controller's queues are
/// full, and its work is steady.
const RAMP: Duration = Duration::from_millis(500);
/// The send buffers of all sockets together, in bytes. The controller never has to wait for packet-ins, and the size
/// is small compared with the machine's memory. Each switch has its part, within bounds.
const SEND_BUFFERS_BYTES: usize = 2 << 20;
const SEND_BUFFER_BYTES: std::ops::RangeInclusive<usize> = (16 << 10)..=(256 << 10);
/// How many switches of one thread may be in their handshake at a time. Controllers bound unfinished handshakes.
const HALF_OPEN_MAX: usize = 128;

/// What the switches do now.
#[derive(Clone, Copy, Debug)]
enum Activity {
    /// Only reply.
    Idle,
    /// Announce the hosts.
    Learn,
    /// Send as much as the sockets take.
    Throughput,
    /// Send as much as the sockets take, within this allowance.
    AtMost(Allowance),
    /// Send one packet-in, and the next after its answer.
    Latency,
    /// Send what is due.
    Rate(Pace),
}

/// The counters of a round.
#[derive(Debug, Default)]
struct Tally {
    sent: u64,
    answered: u64,
    flow_mods: u64,
    packet_outs: u64,
    latencies: Latencies,
}

/// A thread with its part of the switches.
#[derive(Debug)]
pub(crate) struct Generator {
    options: LoadOptions,
    poll: Poll,
    /// Only if it sleeps until packet-ins are due.
    alarm: Option<Alarm>,
    events: Events,
    switches: Vec<LoadSwitch>,
    queue: VecDeque<usize>,
    room: Room,
    batch: Batch,
    began: Instant,
    next_housekeeping: Duration,
    activity: Activity,
    tally: Tally,
    faults: Faults,
    /// While learning: how many announcements of each switch were sent and answered.
    learning: Vec<(u32, u32)>,
    /// When the last answer arrived.
    heard_at: Duration,
    /// At a fixed rate: the place of each switch in the turns. `None` for a switch that was not connected at the
    /// start.
    places: Vec<Option<u64>>,
    /// The round's time is over. Nothing more is sent. Late answers are still timed.
    draining: bool,
    progress: Arc<Progress>,
}

impl Generator {
    /// Switches that have not begun to connect: every `threads`-th switch of the options, from `thread` on.
    pub(crate) fn new(
        options: &LoadOptions,
        thread: usize,
        progress: Arc<Progress>,
    ) -> Result<Self, NotBegun> {
        let template = Template::packet(options.version).map_err(|error| NotBegun(error.to_string()))?;
        let each = SEND_BUFFERS_BYTES / usize::from(options.switches.max(1));
        let send_buffer_bytes = each.clamp(*SEND_BUFFER_BYTES.start(), *SEND_BUFFER_BYTES.end());
        let switch = |number: u16| {
            let datapath_id = DatapathId(options.first_datapath.wrapping_add(u64::from(number)));
            LoadSwitch::new(
                options.version,
                datapath_id,
                TrafficPlan::new(options.hosts, number),
                send_buffer_bytes,
            )
        };
        let switches: Vec<_> =
            (0..options.switches).skip(thread).step_by(options.threads).map(switch).collect();
        let no_descriptors = |error: io::Error| NotBegun(error.to_string());
        let poll = Poll::new().map_err(no_descriptors)?;
        let alarm =
            options.sleeps.then(|| Alarm::new(poll.registry())).transpose().map_err(no_descriptors)?;
        Ok(Generator {
            poll,
            alarm,
            events: Events::with_capacity(EVENTS_PER_POLL),
            queue: VecDeque::with_capacity(switches.len()),
            learning: vec![(0, 0); switches.len()],
            places: vec![None; switches.len()],
            draining: false,
            switches,
            room: Room::new(),
            batch: Batch::new(template, send_buffer_bytes),
            began: Instant::now(),
            next_housekeeping: Duration::ZERO,
            activity: Activity::Idle,
            tally: Tally::default(),
            faults: Faults::default(),
            heard_at: Duration::ZERO,
            progress,
            options: options.clone(),
        })
    }

    /// Connects until the controller knows all switches, or until the patience ends. Returns how many it knows.
    pub(crate) fn connect(&mut self, patience: Duration) -> usize {
        let end = self.now() + patience;
        self.activity = Activity::Idle;
        while self.known() < self.switches.len() && self.now() < end && !self.progress.is_stopped() {
            self.turn(HOUSEKEEPING);
        }
        self.known()
    }

    /// Announces the hosts to the controller. If no answer arrives at all, it starts again until the patience ends. If some
    /// are missing, it starts again a few times: a controller may drop packet-ins.
    pub(crate) fn learn(&mut self, patience: Duration) -> Learned {
        let begin = self.now();
        let mut learned = Learned::default();
        let mut incomplete_rounds = 0;
        loop {
            self.learn_once(begin + patience);
            learned.announced = self.learning.iter().map(|(sent, _)| u64::from(*sent)).sum();
            learned.answered = self.learning.iter().map(|(_, answered)| u64::from(*answered)).sum();
            incomplete_rounds += u32::from(learned.answered > 0);
            let is_enough =
                learned.answered >= learned.announced || incomplete_rounds >= INCOMPLETE_ROUNDS_MAX;
            let is_over = learned.answered > 0 && is_enough;
            if is_over || self.now() >= begin + patience || self.progress.is_stopped() {
                learned.took = self.now() - begin;
                return learned;
            }
        }
    }

    fn learn_once(&mut self, end: Duration) {
        self.learning.fill((0, 0));
        self.heard_at = self.now();
        self.begin(Activity::Learn);
        let all = |generator: &Self| {
            let mut progress = generator.switches.iter().zip(&generator.learning);
            progress
                .all(|(switch, (_, answered))| !switch.is_known() || *answered >= switch.plan.announcements())
        };
        while !all(self) && self.now() < end && !self.progress.is_stopped() {
            self.turn(HOUSEKEEPING);
            if self.now().saturating_sub(self.heard_at) > LEARNING_SILENCE {
                break;
            }
        }
        self.activity = Activity::Idle;
    }

    /// Runs one round: sends and counts for `length`, then waits until everything that was sent is answered or lost.
    pub(crate) fn round(&mut self, mode: Mode, length: Duration) -> RoundReport {
        self.tally = Tally::default();
        for switch in &mut self.switches {
            (switch.answered, switch.first_of_round, switch.outstanding) = (0, switch.next, None);
        }
        let begin = self.now();
        let activity = match mode {
            Mode::Throughput => Activity::Throughput,
            Mode::AtMost(per_s) => {
                Activity::AtMost(Allowance::new(per_s / self.options.threads as f64, begin))
            }
            Mode::Latency => Activity::Latency,
            Mode::Rate(per_s) => Activity::Rate(self.take_places(per_s, begin)),
        };
        self.begin(activity);
        let ramp = if matches!(mode, Mode::Throughput | Mode::AtMost(_)) { RAMP } else { Duration::ZERO };
        self.go_on_until(begin + ramp);
        let (counts_from, before) = (self.now(), self.tally.answered);
        self.switches.iter_mut().for_each(|switch| switch.answered = 0);
        self.go_on_until(counts_from + length);
        let (took, answered) = (self.now() - counts_from, self.tally.answered - before);
        let answered_by_switch = self.switches.iter().map(|switch| switch.answered).collect();
        self.drain();
        let Tally { sent, answered: in_all, flow_mods, packet_outs, ref latencies } = self.tally;
        RoundReport {
            took,
            sent,
            answered,
            outside: in_all - answered,
            flow_mods,
            packet_outs,
            latencies: latencies.clone(),
            answered_by_switch,
        }
    }

    /// Answers echo requests while nothing is measured.
    pub(crate) fn idle(&mut self, length: Duration) {
        self.activity = Activity::Idle;
        self.turn(length);
    }

    /// The faults since the last call.
    pub(crate) fn take_faults(&mut self) -> Faults {
        std::mem::take(&mut self.faults)
    }

    fn go_on_until(&mut self, end: Duration) {
        while self.now() < end && !self.progress.is_stopped() {
            let patience = self.patience(end);
            self.turn(patience);
        }
    }

    fn drain(&mut self) {
        self.draining = true;
        // At a fixed rate, late answers count with their latency.
        if !matches!(self.activity, Activity::Rate(_)) {
            self.activity = Activity::Idle;
        }
        let begin = self.now();
        self.heard_at = begin;
        while self.tally.answered < self.tally.sent
            && self.now().saturating_sub(self.heard_at) < DRAIN_SILENCE
            && self.now().saturating_sub(begin) < DRAIN_LONGEST
        {
            self.turn(HOUSEKEEPING);
        }
        self.activity = Activity::Idle;
        self.draining = false;
    }

    fn take_places(&mut self, per_s: f64, begin: Duration) -> Pace {
        let mut places = 0..;
        for (switch, place) in self.switches.iter().zip(&mut self.places) {
            *place = switch.is_known().then(|| places.next()).flatten();
        }
        Pace::new(per_s / self.options.threads as f64, places.start, begin)
    }

    fn begin(&mut self, activity: Activity) {
        self.activity = activity;
        (0..self.switches.len()).for_each(|index| self.enqueue(index));
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn known(&self) -> usize {
        self.switches.iter().filter(|switch| switch.is_known()).count()
    }

    /// How long the poll may wait.
    fn patience(&self, end: Duration) -> Duration {
        let now = self.now();
        let rest = end.saturating_sub(now).min(HOUSEKEEPING);
        let pace = match self.activity {
            Activity::Rate(pace) => pace,
            Activity::AtMost(_) if self.alarm.is_some() => return rest.min(LINK_SLEEP),
            Activity::AtMost(_) => return rest.min(LINK_PATIENCE),
            _ => return rest,
        };
        let due_at = |(switch, place): (&LoadSwitch, &Option<u64>)| {
            place.map(|place| pace.due_at(place, switch.next - switch.first_of_round))
        };
        let next = self.switches.iter().zip(&self.places).filter_map(due_at).min();
        let wait = next.map_or(rest, |next| next.saturating_sub(now)).min(rest);
        if self.alarm.is_some() {
            return wait;
        }
        if wait < WORTH_SLEEPING { Duration::ZERO } else { wait - WORTH_SLEEPING / 2 }
    }

    /// Polls the sockets once, and serves each switch that has something to do.
    fn turn(&mut self, patience: Duration) {
        let patience = if self.queue.is_empty() { patience } else { Duration::ZERO };
        // A poll that a signal interrupted has no events. Other errors show up at the sockets.
        let at_latest = self.at_latest(patience);
        let polled = self.poll.poll(&mut self.events, Some(at_latest));
        let now = self.now();
        if polled.is_ok() {
            let events = std::mem::replace(&mut self.events, Events::with_capacity(0));
            for event in &events {
                self.on_ready(event, now);
            }
            self.events = events;
        }
        if now >= self.next_housekeeping {
            self.next_housekeeping = now + HOUSEKEEPING;
            self.keep_house(now);
        }
        if let Activity::Rate(_) | Activity::AtMost(_) = self.activity {
            (0..self.switches.len()).for_each(|index| self.enqueue(index));
        }
        for _ in 0..self.queue.len() {
            let Some(index) = self.queue.pop_front() else { break };
            self.switches[index].queued = false;
            if let Err(error) = self.serve(index) {
                self.close(index, &error);
            }
        }
    }

    /// How long the poll may wait at most. If it must end earlier, the alarm ends it.
    fn at_latest(&self, patience: Duration) -> Duration {
        let alarm = self.alarm.as_ref().filter(|_| !patience.is_zero() && patience < HOUSEKEEPING);
        match alarm.map(|alarm| alarm.set(patience)) {
            Some(Ok(())) => HOUSEKEEPING,
            Some(Err(_)) | None => patience,
        }
    }

    fn enqueue(&mut self, index: usize) {
        if let Some(switch) = self.switches.get_mut(index)
            && !switch.queued
        {
            switch.queued = true;
            self.queue.push_back(index);
        }
    }

    fn on_ready(&mut self, event: &mio::event::Event, now: Duration) {
        let index = event.token().0;
        let Some(switch) = self.switches.get_mut(index) else { return };
        let readable = event.is_readable() || event.is_read_closed() || event.is_error();
        match switch.on_ready(readable, event.is_writable(), now) {
            Ok(()) => self.enqueue(index),
            Err(error) => self.close(index, &error),
        }
    }

    fn close(&mut self, index: usize, error: &io::Error) {
        let now = self.now();
        let switch = &mut self.switches[index];
        if switch.is_known() {
            self.progress.lost();
        }
        self.faults.note(switch.is_known(), error.to_string());
        switch.close(self.poll.registry(), now);
    }

    /// Starts connections that are due, notes switches that are known now, and gives up missing answers.
    fn keep_house(&mut self, now: Duration) {
        let mut half_open = self.switches.iter().filter(|switch| switch.is_half_open()).count();
        for index in 0..self.switches.len() {
            let switch = &mut self.switches[index];
            let was_half_open = switch.is_half_open();
            let may_begin = half_open < HALF_OPEN_MAX;
            let (target, registry) = (self.options.target, self.poll.registry());
            let due = switch.connect_if_due(may_begin, target, Token(index), registry, now);
            half_open += usize::from(switch.is_half_open() && !was_half_open);
            if let Err(error) = due {
                self.close(index, &error);
                continue;
            }
            if switch.look_if_known(now) {
                self.progress.connected();
                self.enqueue(index);
                continue;
            }
            if switch.outstanding.is_some_and(|(_, sent_at)| now.saturating_sub(sent_at) > ANSWER_PATIENCE) {
                switch.outstanding = None;
                self.enqueue(index);
            }
        }
    }

    /// Serves one switch.
    fn serve(&mut self, index: usize) -> io::Result<()> {
        let now = self.now();
        self.switches[index].flush()?;
        self.read(index, now)?;
        let switch = &mut self.switches[index];
        switch.flush()?;
        if switch.look_if_known(now) {
            self.progress.connected();
        }
        self.send(index)?;
        let switch = &self.switches[index];
        let goes_on = match &self.activity {
            Activity::Throughput => true,
            Activity::AtMost(link) => link.is_left(),
            _ => false,
        };
        let sends_on = goes_on && switch.can_send();
        if sends_on || switch.has_more_to_read() {
            self.enqueue(index);
        }
        Ok(())
    }

    fn read(&mut self, index: usize, now: Duration) -> io::Result<()> {
        let Generator { switches, room, tally, options, activity, learning, places, .. } = self;
        let switch = &mut switches[index];
        let (first, before, mut outstanding) = (switch.first_of_round, switch.answered, switch.outstanding);
        let mut answers = 0;
        let place = places[index].unwrap_or(0);
        let counting = options.counting;
        // Between rounds there is time for it. The rules that send packets up are there before the first round.
        let notes_rules = matches!(activity, Activity::Idle | Activity::Learn);
        let is_learning = matches!(activity, Activity::Learn);
        switch.read(room, (counting, notes_rules), now, |said| {
            let buffer_id = match said {
                Said::FlowMod(answer) => {
                    tally.flow_mods += 1;
                    answer
                }
                Said::PacketOut(answer) => {
                    tally.packet_outs += 1;
                    answer.filter(|_| counting != Counting::FlowMods || is_learning)
                }
                Said::Other => None,
            };
            let Some(buffer_id) = buffer_id else { return };
            match *activity {
                Activity::Latency => match outstanding {
                    Some((awaited, sent_at)) if buffer_id == awaited || buffer_id >= BUFFER_IDS => {
                        tally.latencies.record(now.saturating_sub(sent_at));
                        outstanding = None;
                    }
                    // It answers a packet-in that was given up or has been answered already.
                    _ => return,
                },
                Activity::Rate(pace) => {
                    // What does not name the packet-in answers the oldest one: a controller keeps the order of a switch.
                    let is_named = buffer_id < BUFFER_IDS;
                    let number = if is_named { number_of(buffer_id, first) } else { before + answers };
                    tally.latencies.record(now.saturating_sub(pace.due_at(place, number)));
                }
                _ => {}
            }
            answers += 1;
        })?;
        switch.outstanding = outstanding;
        if answers > 0 {
            self.heard_at = now;
            self.progress.more_answers(answers);
            switch.answered += answers;
            match activity {
                Activity::Learn => learning[index].1 = learning[index].1.saturating_add(answers as u32),
                _ => tally.answered += answers,
            }
        }
        Ok(())
    }

    fn send(&mut self, index: usize) -> io::Result<()> {
        let switch = &self.switches[index];
        if !switch.can_send() || self.draining {
            return Ok(());
        }
        match self.activity {
            Activity::Idle => Ok(()),
            Activity::Learn => self.announce(index),
            Activity::Throughput => self.send_packets(index, self.batch.capacity()).map(drop),
            Activity::AtMost(mut link) => {
                let count = link.at(self.now()).min(self.batch.capacity()).min(self.link_share());
                if count > 0 {
                    link.take(self.send_packets(index, count)?);
                }
                self.activity = Activity::AtMost(link);
                Ok(())
            }
            Activity::Latency if switch.outstanding.is_some() => Ok(()),
            Activity::Latency => {
                let buffer_id = switch.next as u32 % BUFFER_IDS;
                let sent_at = self.now();
                if self.send_packets(index, 1)? > 0 {
                    self.switches[index].outstanding = Some((buffer_id, sent_at));
                }
                Ok(())
            }
            Activity::Rate(pace) => {
                let Some(place) = self.places[index] else { return Ok(()) };
                let due = pace.due(place, self.now()).saturating_sub(switch.next - switch.first_of_round);
                let count = usize::try_from(due).unwrap_or(usize::MAX).min(self.batch.capacity());
                if count > 0 { self.send_packets(index, count).map(drop) } else { Ok(()) }
            }
        }
    }

    /// How many packet-ins one switch may send in its turn, so that capacity is left for the switches behind it.
    fn link_share(&self) -> usize {
        (self.batch.capacity() / self.switches.len().max(1)).max(LINK_SHARE_LEAST)
    }

    fn send_packets(&mut self, index: usize, count: usize) -> io::Result<u64> {
        let sources = self.options.hosts.sources();
        let sent = self.switches[index].send(&mut self.batch, sources, count)?;
        self.tally.sent += sent;
        Ok(sent)
    }

    fn announce(&mut self, index: usize) -> io::Result<()> {
        let switch = &mut self.switches[index];
        let (sent, answered) = self.learning[index];
        let room = ANNOUNCEMENTS_AT_ONCE.saturating_sub(sent.saturating_sub(answered));
        let end = switch.plan.announcements().min(sent.saturating_add(room));
        let mut bytes = Vec::new();
        for number in sent..end {
            let announcement = switch.plan.announcement(number);
            Template::announce(self.options.version, &announcement, (number, &switch.punts), &mut bytes)
                .map_err(|error| io::Error::other(error.to_string()))?;
        }
        self.learning[index].0 = end.max(sent);
        if bytes.is_empty() { Ok(()) } else { switch.send_bytes(&bytes) }
    }
}

/// The number within the round of the packet-in that a buffer id names. Ids count on from the first one of the round.
fn number_of(buffer_id: u32, first_of_round: u64) -> u64 {
    let first = (first_of_round % u64::from(BUFFER_IDS)) as u32;
    u64::from(buffer_id.wrapping_sub(first) % BUFFER_IDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_round_nothing_is_sent_and_each_switch_keeps_its_place() {
        let options = crate::LoadOptions {
            target: (std::net::Ipv4Addr::LOCALHOST, 1).into(),
            switches: 2,
            first_datapath: 1,
            version: openflow::Version::V1_0,
            hosts: crate::Hosts::Ring(2),
            counting: crate::Counting::Buffers,
            threads: 1,
            sleeps: false,
        };
        let mut generator = Generator::new(&options, 0, Arc::default()).unwrap();
        generator.activity = Activity::Rate(Pace::new(1000.0, 2, Duration::ZERO));
        generator.places = vec![Some(0), Some(1)];
        // One packet-in is unanswered, so that the drain waits for it.
        generator.tally.sent = 1;
        generator.drain();
        assert_eq!(generator.places, [Some(0), Some(1)], "late answers are timed by them");
        assert_eq!(generator.tally.sent, 1);
    }

    #[test]
    fn a_buffer_id_says_which_packet_in_of_the_round_it_was() {
        assert_eq!(number_of(0, 0), 0);
        assert_eq!(number_of(7, 5), 2);
        let wrap = u64::from(BUFFER_IDS);
        assert_eq!(number_of(1, wrap - 1), 2, "it has begun anew");
        assert_eq!(number_of(3, 5 * wrap + 3), 0);
    }
}
