//! The flows that a host sends and receives: which packet belongs to which, and when each must act.
//!
//! In: packets, the time. Out: packets to send, each with its connection. It never makes a frame.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use super::flow::{FlowKind, FlowReport, FlowState};
use super::pace::LINE_BITS_PER_S;
use super::shaping::Ceilings;
use super::tcp::Segment;
use super::tcp_receiver::TcpReceiver;
use super::tcp_sender::{Plan, State, TcpSender};
use super::udp::{UdpReceiver, UdpSender};

/// How many flows one host sends or receives. More are not started. The network bounds the operator's flows by a
/// bound of its own.
const FLOWS_MAX: usize = 8192;

/// The key of a flow as one end sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowKey {
    pub(crate) kind: FlowKind,
    pub(crate) local: IpAddr,
    pub(crate) remote: IpAddr,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
}

impl FlowKey {
    /// The key as the other end sees it.
    pub(crate) fn reverse(self) -> Self {
        FlowKey {
            kind: self.kind,
            local: self.remote,
            remote: self.local,
            local_port: self.remote_port,
            remote_port: self.local_port,
        }
    }
}

/// One end of a flow.
#[derive(Debug)]
pub(super) enum End {
    TcpSender(Box<TcpSender>),
    TcpReceiver(Box<TcpReceiver>),
    UdpSender(UdpSender),
    UdpReceiver(UdpReceiver),
}

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outgoing {
    Segment(Segment),
    Datagram { number: u64, payload_bytes: usize },
}

/// All flows of a host.
#[derive(Debug, Default)]
pub(super) struct Flows {
    ends: BTreeMap<FlowKey, End>,
    /// No end has to act before this time.
    due: Option<Duration>,
    outgoing: Vec<(FlowKey, Outgoing)>,
    segments: Vec<Segment>,
    /// The rate of the host's link; none: the default.
    line_bits_per_s: Option<u64>,
    ceilings: Ceilings,
}

impl Flows {
    /// Starts to send a flow.
    pub(super) fn send(&mut self, key: FlowKey, plan: Plan, now: Duration) {
        if self.ends.len() >= FLOWS_MAX {
            return;
        }
        let end = match key.kind {
            FlowKind::Udp => End::UdpSender(UdpSender::new(plan, now)),
            FlowKind::Tcp => End::TcpSender(Box::new(TcpSender::start(plan, now, &mut self.segments))),
        };
        self.note(key, &end, now);
        self.ends.insert(key, end);
        self.divide_if_shaped();
    }

    /// Starts to expect a sender.
    pub(super) fn expect(&mut self, key: FlowKey, isn: u32) {
        if self.ends.len() >= FLOWS_MAX {
            return;
        }
        let end = match key.kind {
            FlowKind::Udp => End::UdpReceiver(UdpReceiver::default()),
            FlowKind::Tcp => End::TcpReceiver(Box::new(TcpReceiver::new(isn))),
        };
        self.ends.insert(key, end);
    }

    /// The end with this key.
    pub(super) fn get(&self, key: &FlowKey) -> Option<&End> {
        self.ends.get(key)
    }

    /// Forgets a flow.
    pub(super) fn forget(&mut self, key: &FlowKey) {
        self.ends.remove(key);
        self.divide_if_shaped();
    }

    /// Stops a sender.
    pub(super) fn stop(&mut self, key: &FlowKey, now: Duration) {
        self.at(key, now, |end, now, out| match end {
            End::TcpSender(sender) => sender.stop(now, out),
            End::UdpSender(sender) => sender.is_over = true,
            _ => {}
        });
    }

    /// The host is switched off: the flows that it sends end, and it forgets those that it receives.
    pub(super) fn fail(&mut self) {
        for end in self.ends.values_mut() {
            match end {
                End::TcpSender(sender) if matches!(sender.state, State::Opening | State::Open) => {
                    sender.abandon(State::NoAnswer);
                }
                End::TcpReceiver(receiver) => receiver.forget(),
                End::UdpSender(sender) => sender.is_over = true,
                _ => {}
            }
        }
        self.due = None;
    }

    /// The rate of the host's link has changed.
    pub(super) fn set_line_rate(&mut self, bits_per_s: u64) {
        self.line_bits_per_s = Some(bits_per_s);
        self.divide();
    }

    /// All flows to these addresses of a host together send no faster. `None`: as fast as the link.
    pub(super) fn shape(&mut self, to: &[IpAddr], bits_per_s: Option<u64>) {
        to.iter().for_each(|address| self.ceilings.set(*address, bits_per_s));
        self.divide();
    }

    /// Without a ceiling, a flow that begins or ends changes no other.
    fn divide_if_shaped(&mut self) {
        if !self.ceilings.is_empty() {
            self.divide();
        }
    }

    /// Gives each sender its rate. The flows to one address share its ceiling; one that is over leaves its part at the next change.
    fn divide(&mut self) {
        let mut counts: BTreeMap<IpAddr, u64> = BTreeMap::new();
        let sending = self.ends.iter().filter(|(_, end)| end.is_sending());
        sending.for_each(|(key, _)| *counts.entry(key.remote).or_default() += 1);
        let line = self.line_bits_per_s.unwrap_or(LINE_BITS_PER_S);
        for (key, end) in &mut self.ends {
            let rate = self.ceilings.rate(key.remote, counts.get(&key.remote).copied().unwrap_or(1), line);
            match end {
                End::TcpSender(sender) => sender.set_line_rate(rate),
                End::UdpSender(sender) => sender.set_line_rate(rate),
                _ => {}
            }
        }
    }

    /// Processes a segment. Returns whether its flow is known.
    pub(super) fn on_segment(&mut self, key: &FlowKey, segment: &Segment, now: Duration) -> bool {
        self.at(key, now, |end, now, out| match end {
            End::TcpSender(sender) => sender.on_segment(segment, now, out),
            End::TcpReceiver(receiver) => receiver.on_segment(segment, now, out),
            _ => {}
        })
    }

    /// Processes a datagram.
    pub(super) fn on_datagram(&mut self, key: &FlowKey, payload: &[u8], now: Duration) {
        if let Some(End::UdpReceiver(receiver)) = self.ends.get_mut(key) {
            receiver.on_datagram(payload, now);
        }
    }

    /// Runs code on an end. Returns whether the end exists.
    fn at(
        &mut self,
        key: &FlowKey,
        now: Duration,
        happens: impl FnOnce(&mut End, Duration, &mut Vec<Segment>),
    ) -> bool {
        let Some(end) = self.ends.get_mut(key) else { return false };
        happens(end, now, &mut self.segments);
        let due = end.due(now);
        self.collect(*key, due);
        true
    }

    fn note(&mut self, key: FlowKey, end: &End, now: Duration) {
        self.collect(key, end.due(now));
    }

    fn collect(&mut self, key: FlowKey, due: Option<Duration>) {
        self.due = self.due.into_iter().chain(due).min();
        let segments = self.segments.drain(..).map(|segment| (key, Outgoing::Segment(segment)));
        self.outgoing.extend(segments);
    }

    /// When an end may have to act.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.due
    }

    /// Time has passed.
    pub(super) fn on_tick(&mut self, now: Duration) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        self.due = None;
        for (key, end) in &mut self.ends {
            if end.due(now).is_some_and(|due| due <= now) {
                end.on_tick(now, &mut self.segments, |datagram| self.outgoing.push((*key, datagram)));
                let segments = self.segments.drain(..).map(|segment| (*key, Outgoing::Segment(segment)));
                self.outgoing.extend(segments);
            }
            self.due = self.due.into_iter().chain(end.due(now)).min();
        }
    }

    /// Takes the packets to send. The caller returns the buffer.
    pub(super) fn take_outgoing(&mut self) -> Vec<(FlowKey, Outgoing)> {
        std::mem::take(&mut self.outgoing)
    }

    /// Returns the buffer of packets that were sent.
    pub(super) fn give_back(&mut self, mut outgoing: Vec<(FlowKey, Outgoing)>) {
        outgoing.clear();
        self.outgoing = outgoing;
    }
}

impl End {
    fn is_sending(&self) -> bool {
        match self {
            End::TcpSender(sender) => matches!(sender.state, State::Opening | State::Open),
            End::UdpSender(sender) => !sender.is_over,
            _ => false,
        }
    }

    fn due(&self, now: Duration) -> Option<Duration> {
        match self {
            End::TcpSender(sender) => sender.due(),
            End::TcpReceiver(receiver) => receiver.due(),
            End::UdpSender(sender) => sender.due(now),
            End::UdpReceiver(_) => None,
        }
    }

    fn on_tick(&mut self, now: Duration, segments: &mut Vec<Segment>, mut send: impl FnMut(Outgoing)) {
        match self {
            End::TcpSender(sender) => sender.on_tick(now, segments),
            End::TcpReceiver(receiver) => receiver.on_tick(now, segments),
            End::UdpSender(sender) => {
                let payload_bytes = sender.payload_bytes();
                while let Some(number) = sender.next(now) {
                    send(Outgoing::Datagram { number, payload_bytes });
                }
            }
            End::UdpReceiver(_) => {}
        }
    }
}

impl End {
    /// Adds this end's data to a report.
    pub(super) fn report(&self, report: &mut FlowReport) {
        match self {
            End::TcpSender(sender) => {
                report.state = match sender.state {
                    State::Opening => FlowState::Opening,
                    State::Open => FlowState::Running,
                    State::Ended => FlowState::Ended,
                    State::Refused => FlowState::Refused,
                    State::NoAnswer => FlowState::NoAnswer,
                };
                report.sent_bytes = sender.sent_bytes();
                report.sent_packets = sender.segments_sent;
                (report.retransmissions, report.timeouts) = (sender.segments_again, sender.timeouts);
                report.round_trip = sender.round_trip.smoothed;
                report.shortest_round_trip = sender.round_trip.shortest;
            }
            End::TcpReceiver(receiver) => {
                report.delivered_bytes = receiver.delivered_bytes;
                report.delivered_packets = receiver.delivered_segments;
            }
            End::UdpSender(sender) => {
                report.state = if sender.is_over { FlowState::Ended } else { FlowState::Running };
                report.sent_packets = sender.sent;
                report.sent_bytes = sender.sent * sender.payload_bytes() as u64;
            }
            End::UdpReceiver(receiver) => {
                (report.delivered_packets, report.delivered_bytes) =
                    (receiver.delivered, receiver.delivered_bytes);
                report.lost_packets = receiver.lost();
                report.round_trip = receiver.transit;
            }
        }
    }
}
