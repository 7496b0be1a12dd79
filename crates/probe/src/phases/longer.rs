//! A phase: the services of adds and packet-ins once more, for as long as the probe has time. It is for slow switches.
//!
//! ```text
//!   markers at once ─────────────────────────> the CPU's time for a marker ────────┐
//!   adds at once, a marker behind each ──────> the CPU's time for each add ────────┼──> means over all rounds
//!   packets, a marker behind each ───────────> the CPU's time for each packet-in ──┤
//!   adds and barriers, if rules are late ────> how much later each rule is ────────┘
//! ```
//!
//! The delays of a switch near saturation follow from small differences of its rate: at 95 %, one percent more makes waiting a fifth longer. A
//! service time that varies by 15 % needs thousands of messages until its mean is known so well. A marker has no residual delay. So the times
//! between markers are services alone, and their distribution is seen too.
//!
//! In: what earlier phases found of these times. Out: better means of them, and more samples. If nothing varies, or the switch is fast, it does nothing.

use super::barriers::{Lateness, PAIRS, late_pairs};
use super::cabling::FRAME_BYTES;
use super::idle::to_controller;
use super::marked::{after_removal, behind_removal, body, first_after_removal, marker, room, services_us};
use crate::findings::{Findings, ServiceFound};
use crate::flows::Width;
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules::RuleForm;
use crate::samples::{moments, ns, us};
use crate::script::{MILLISECOND_NS, Outcome, Record, SECOND_NS, Script, Step, Until, When};
use profile::MessageType;

/// Markers whose service is measured.
const MARKERS: usize = 64;
/// Adds of a burst at most.
const ADDS: usize = 160;
/// Packets of a round at most, and at least.
const PACKETS: usize = 400;
const PACKETS_MIN: usize = 24;
/// Markers that are not answered while a further packet is sent: enough for a CPU that never waits.
const WINDOW: usize = 12;
/// Switches that need less for a set-up are measured well enough by earlier phases.
const SLOW_US: f64 = 2000.0;
/// A standard error of a set-up's mean that is small enough, as a share.
const ERROR_SHARE: f64 = 0.0003;
/// Services that vary less are constant, as a share of the mean.
const CONSTANT_SHARE: f64 = 0.004;
/// The same for rules that are late, as a share of that time.
const LATE_ERROR_SHARE: f64 = 0.009;
/// What is left to the probe for its end, and for a last round that takes longer than those before.
const RESERVE_NS: u64 = 25 * SECOND_NS;

/// The phase.
#[derive(Debug, Default)]
pub struct Longer {
    left_ns: u64,
    longest_ns: u64,
    running: Option<Turn>,
    marker_us: Option<f64>,
    adds: Sum,
    packet_ins: Sum,
    late: Option<Lateness>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Markers,
    Adds,
    PacketIns,
    Late,
}

/// Services, how long all of them took, and how long it took to see them.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: f64,
    us: f64,
    took_ns: f64,
    /// A round has seen none.
    is_over: bool,
}

impl Sum {
    fn note(&mut self, services_us: &[f64], took_ns: u64) {
        self.count += services_us.len() as f64;
        self.us += services_us.iter().sum::<f64>();
        self.took_ns += took_ns as f64;
        self.is_over |= services_us.is_empty();
    }

    /// The mean of these and of earlier ones.
    fn with(self, count: f64, mean_us: f64) -> f64 {
        (self.us + count * mean_us) / (self.count + count).max(1.0)
    }

    /// By how much the square of the error of a sum of means becomes smaller in a nanosecond, if services have this deviation and
    /// `earlier` ones are known. A kind that was not tried yet comes first.
    fn gain(self, deviation_us: f64, earlier: f64) -> f64 {
        if self.took_ns == 0.0 {
            return f64::INFINITY;
        }
        (deviation_us / (self.count + earlier).max(1.0)).powi(2) * self.count / self.took_ns
    }
}

impl Phase for Longer {
    /// It depends on the time that is left, which records do not have.
    fn is_kept(&self) -> bool {
        false
    }

    fn title(&self) -> String {
        "measuring the set-up rate for longer".to_owned()
    }

    fn measures(&self) -> &'static [&'static str] {
        &["cpu.add.service_us for longer"]
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        match (self.running.take(), last) {
            (Some(turn), Some(record)) => {
                let took_ns = record.ended_ns - record.started_ns;
                self.longest_ns = self.longest_ns.max(took_ns);
                self.left_ns = self.left_ns.saturating_sub(took_ns);
                match turn {
                    Turn::Markers => self.marker_us = Some(marker_us(record, found)),
                    Turn::Adds => self.note_adds(record, found),
                    Turn::PacketIns => self.note_packet_ins(record, options, found),
                    Turn::Late => self.late.get_or_insert_default().note(record, options, found),
                }
            }
            _ => self.left_ns = found.left_ns.saturating_sub(RESERVE_NS),
        }
        let turn = self.turn(found).filter(|_| self.left_ns >= 2 * self.longest_ns);
        let Some(turn) = turn else {
            self.conclude(found);
            return Next::Done;
        };
        self.running = Some(turn);
        Next::Run(match turn {
            Turn::Markers => markers(options, found),
            Turn::Adds => adds(options, found),
            Turn::PacketIns => packets(options, found),
            Turn::Late => late_pairs(room(PAIRS, found), options, found),
        })
    }
}

impl Longer {
    /// What is not yet known well enough. Late rules come first: nothing else measures them. Then what makes the mean of a set-up better
    /// in the least time.
    fn turn(&self, found: &Findings) -> Option<Turn> {
        if self.late_error_share(found) > LATE_ERROR_SHARE {
            return Some(Turn::Late);
        }
        let packet_in = found.services.get(&MessageType::PacketIn);
        let packet_in_us = packet_in.and_then(|service| service.service_us).unwrap_or(0.0);
        let whole_us = found.add_us() + packet_in_us;
        if whole_us < SLOW_US || marker(found).is_none() || !found.is_add_constant() {
            return None;
        }
        let adds = found.services.get(&MessageType::Add).and_then(|service| moments(&service.idle_us));
        let adds = (Turn::Adds, adds.map_or(0.0, |(_, deviation)| deviation), self.adds, found.burst_adds);
        let packets_us = packet_in.map_or(0.0, deviation_us);
        let earlier = packet_in.map_or(0.0, |service| f64::from(service.samples));
        let packets = (Turn::PacketIns, packets_us, self.packet_ins, earlier);
        let is_wanted = |(_, deviation_us, sum, earlier): &(Turn, f64, Sum, f64)| {
            let error_us = deviation_us / (sum.count + earlier).max(1.0).sqrt();
            *deviation_us > CONSTANT_SHARE * whole_us && error_us > ERROR_SHARE * whole_us && !sum.is_over
        };
        let can = |turn: Turn| turn == Turn::Adds || packets_of_round(found) >= PACKETS_MIN;
        let wanted = [adds, packets].into_iter().filter(is_wanted).filter(|(turn, ..)| can(*turn));
        let best = wanted.max_by(|one, two| one.2.gain(one.1, one.3).total_cmp(&two.2.gain(two.1, two.3)))?;
        if self.marker_us.is_none() { Some(Turn::Markers) } else { Some(best.0) }
    }

    /// The standard error of the time by which rules are late, as a share. 0 if they are not, or if rules go to software when they come
    /// too fast.
    fn late_error_share(&self, found: &Findings) -> f64 {
        if found.software.as_ref().is_some_and(|software| software.above.is_some()) {
            return 0.0;
        }
        let more = self.late.as_ref().map_or(0, Lateness::count);
        let late = moments(&found.late_us).filter(|(mean, _)| *mean > 0.0);
        late.map_or(0.0, |(mean, deviation)| deviation / mean / ((found.late_us.len() + more) as f64).sqrt())
    }

    fn note_adds(&mut self, record: &Record, found: &mut Findings) {
        // A rule that was refused costs something else.
        let services =
            services_us(after_removal(record), self.marker_us.unwrap_or(0.0), |add| add.error.is_none());
        self.adds.note(&services, record.ended_ns - record.started_ns);
        found.service(MessageType::Add).idle_us.extend(services);
    }

    fn note_packet_ins(&mut self, record: &Record, options: &Options, found: &mut Findings) {
        let marked = after_removal(record).get(TO_CONTROLLER..).unwrap_or_default();
        let was_sent = |packet: &Outcome| packet.packet_in.is_some();
        let services = services_us(marked, self.marker_us.unwrap_or(0.0), was_sent);
        self.packet_ins.note(&services, record.ended_ns - record.started_ns);
        // A real frame and a message that follows it can change places on their way. That leaves their sum as it is.
        if !options.is_real() {
            found.service(MessageType::PacketIn).single_us.extend(services);
        }
    }

    fn conclude(&mut self, found: &mut Findings) {
        if self.adds.count > 0.0 {
            let mean_us = found.add_cpu_us.map(|us| self.adds.with(found.burst_adds, us));
            found.add_cpu_us = mean_us;
            found.burst_adds += self.adds.count;
            let varies = found.services.get(&MessageType::Add).and_then(|service| moments(&service.idle_us));
            let share = varies.map(|(mean, deviation)| deviation / mean.max(1.0) / found.burst_adds.sqrt());
            found.add_error_share = share.or(found.add_error_share);
        }
        let packet_in = found.service(MessageType::PacketIn);
        if let (true, Some(us)) = (self.packet_ins.count > 0.0, packet_in.service_us) {
            packet_in.service_us = Some(self.packet_ins.with(f64::from(packet_in.samples), us));
            packet_in.samples = packet_in.samples.saturating_add(self.packet_ins.count as u32);
        }
        if let Some(late) = self.late.take() {
            late.conclude(found);
        }
    }
}

/// How far services differ: by single ones, if they were seen.
fn deviation_us(service: &ServiceFound) -> f64 {
    let singly = moments(&service.single_us).filter(|_| service.single_us.len() >= PACKETS_MIN);
    singly.map(|(_, deviation)| deviation).or(service.deviation_us).unwrap_or(0.0)
}

/// Markers at once. On their way, none waits for another, so that the way does not count.
fn markers(options: &Options, found: &mut Findings) -> Script {
    let body = marker(found).map(body);
    let when = |index| if index == 0 { first_after_removal(found) } else { When::At(0) };
    let steps = (0..MARKERS).filter_map(|index| Some(Step::ask(when(index), body.clone()?)));
    Script::new(behind_removal(steps, options, found), 4 * SECOND_NS)
}

/// The service of a marker. If most were not answered, the time that an idle switch needs for one has to do.
fn marker_us(record: &Record, found: &Findings) -> f64 {
    let replies: Vec<u64> = after_removal(record).iter().filter_map(|it| Some(it.reply?.at_ns)).collect();
    match replies.as_slice() {
        [first, .., last] if replies.len() > MARKERS / 2 => {
            us(last.saturating_sub(*first)) / (replies.len() - 1) as f64
        }
        _ => marker(found).map_or(0.0, |kind| found.idle_mean_us(kind)),
    }
}

/// Adds at once to an empty table, with a marker before and behind each.
fn adds(options: &Options, found: &mut Findings) -> Script {
    let count = room(ADDS, found);
    let rule = RuleForm::to(options.ports[1].port);
    let Some(body) = marker(found).map(body) else { return Script::new(Vec::new(), SECOND_NS) };
    let flows = found.take_flows(Width::Ethernet, count);
    let first = [Step::ask(first_after_removal(found), body.clone())];
    let others = flows
        .into_iter()
        .flat_map(|flow| [Step::send(When::At(0), rule.add_for(flow)), Step::ask(When::At(0), body.clone())]);
    let steps = behind_removal(first.into_iter().chain(others), options, found);
    Script::new(steps, 2 * SECOND_NS + 4 * count as u64 * ns(found.add_us()))
}

/// Steps that let packets go to the controller.
const TO_CONTROLLER: usize = 2;

/// How many packets may come in a round, without a loss.
fn packets_of_round(found: &Findings) -> usize {
    // Each has a marker behind it, which takes a place in the queue, too.
    let has_room = found.queue_messages.is_none_or(|bound| bound as usize >= 2 * WINDOW + 4);
    let limit = found.packet_in_limit.map_or(PACKETS, |(_, burst)| burst as usize);
    if has_room { limit.min(PACKETS) } else { 0 }
}

/// Packets with a marker before and behind each, when the limit allows all of them.
fn packets(options: &Options, found: &mut Findings) -> Script {
    let count = packets_of_round(found);
    let Some(body) = marker(found).map(body) else { return Script::new(Vec::new(), SECOND_NS) };
    let limit_ns = found.packet_in_limit.map_or(0, |(rate, _)| (1.02e9 * count as f64 / rate) as u64);
    let flows = found.take_flows(Width::Ethernet, count);
    let into = options.ports[0].port;
    let others = flows.into_iter().flat_map(|flow| {
        [
            Step::frame(When::After(0), flow, into, FRAME_BYTES, Until::Sent),
            Step::ask(When::At(0), body.clone()),
        ]
    });
    let first = Step::ask(When::At(limit_ns.max(100 * MILLISECOND_NS)), body.clone());
    let steps = to_controller(found).into_iter().chain([first]).chain(others);
    let steps = behind_removal(steps, options, found);
    let settle_ns = 2 * ns(found.idle_us(MessageType::PacketIn).unwrap_or(0.0)) + 50 * MILLISECOND_NS;
    Script::new(steps, 4 * SECOND_NS).with_window(WINDOW).with_settle(settle_ns)
}
