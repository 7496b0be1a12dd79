//! Dispatches the events of a worker: from southbound through the kernel to the zones that receive them.
//!
//! ```text
//!   SouthboundEvent ──hear──> Kernel::on_event ──who hears it──> deliver_packet_in, deliver_control ──> ZoneEnd
//! ```
//!
//! In: events of switches, while a connection is read. Out: frames in the zones' rings, faults and effects for the
//! worker. It never waits for a zone, and never ends one: it records the fault.

use super::departures::Departures;
use super::held::Held;
use super::pauses::Pauses;
use super::storm::StormWatch;
use super::switch_faults::SwitchFaults;
use super::unread_answers::UnreadAnswers;
use super::zones::{Fault, ZoneEnd, ZoneEnds};
use abi::event::{Event, PacketIn, kind, write};
use abi::{Frame, Malformed, Outcome, ZoneId};
use flow::DatapathId;
use kernel::{Effect, Kernel, ZoneSet};
use southbound::SouthboundEvent;
use zone::port::Delivery;

/// All parts of a worker that an event passes through.
pub(super) struct Dispatch {
    pub kernel: Kernel,
    pub zones: ZoneEnds,
    pub effects: Vec<Effect>,
    pub faults: Vec<(ZoneId, Fault)>,
    /// Trusted zones with packet-ins to deliver.
    pub trusted_that_heard: ZoneSet,
    /// Events of switches in this turn.
    pub heard: usize,
    /// Whether the connection that is read now has sent packet-ins, and below, which zones received them.
    pub has_packets: bool,
    pub heard_packets: ZoneSet,
    /// Memory for a set of zones.
    pub subscribers: ZoneSet,
    /// The switches that wait for apps.
    pub pauses: Pauses,
    /// The switches whose answers an app has not read yet.
    pub unread_answers: UnreadAnswers,
    /// Events of the connection that is read now for which an app had no space at once.
    pub waited: usize,
    /// Watches for packets that loop.
    pub storm: StormWatch,
    /// Faults of switches that are not recorded yet.
    pub switch_faults: SwitchFaults,
    /// Switches that have left their profiles.
    pub departures: Departures,
    /// Frames for the node itself. They are from one turn, so the bound is what a turn reads.
    pub to_node: Vec<Vec<u8>>,
    /// Packet-ins of switches that apps do not know yet, or whose earlier packet-ins they have not all received.
    pub held: Held,
    /// Memory for those that are passed on now.
    handed_on: Vec<u8>,
    /// Memory for answers of which a zone may see only a part.
    pub cut_down: Vec<u8>,
    /// The time of this turn.
    pub now_ms: u64,
}

impl Dispatch {
    /// Creates a dispatch without zones.
    pub fn new(kernel: Kernel) -> Dispatch {
        Dispatch {
            kernel,
            zones: ZoneEnds::default(),
            effects: Vec::new(),
            faults: Vec::new(),
            trusted_that_heard: ZoneSet::EMPTY,
            heard: 0,
            has_packets: false,
            heard_packets: ZoneSet::EMPTY,
            subscribers: ZoneSet::EMPTY,
            pauses: Pauses::default(),
            unread_answers: UnreadAnswers::default(),
            waited: 0,
            storm: StormWatch::new(),
            switch_faults: SwitchFaults::default(),
            to_node: Vec::new(),
            departures: Departures::default(),
            held: Held::default(),
            handed_on: Vec::new(),
            cut_down: Vec::new(),
            now_ms: 0,
        }
    }

    /// Takes an event from southbound, and passes it to its receivers.
    pub fn hear(&mut self, event: SouthboundEvent<'_>) {
        match event {
            SouthboundEvent::Event(bytes) => self.hear_frame(bytes),
            SouthboundEvent::BundleOver { datapath } => {
                self.kernel.on_bundle_over(datapath, &mut self.effects);
            }
            SouthboundEvent::Entries { datapath, entries } => self.kernel.know_hardware(datapath, entries),
            SouthboundEvent::LeftProfile { datapath, profile, departure } => {
                self.departures.on_departure(datapath, profile, departure, self.now_ms);
            }
            SouthboundEvent::Ended { peer, datapath, end } => {
                self.switch_faults.on_end(peer, datapath, end, self.now_ms);
            }
            SouthboundEvent::ToZone { zone: ZoneId::KERNEL, frame, .. } => {
                if !self.kernel.on_own_answer(frame, self.now_ms)
                    && !self.kernel.on_meter_answer(frame, &mut self.effects)
                    && !self.kernel.on_withdrawal_answer(frame)
                {
                    self.to_node.push(frame.to_vec());
                }
                self.kernel.say_withdrawals(&mut self.effects);
                // Packet-ins may follow the answer in the same read. Without this, an app in this process would receive
                // them before the event of their switch, and ignore them.
                self.report_ready();
            }
            SouthboundEvent::ToZone { zone, generation, frame } => {
                self.note_failure(zone, frame);
                if generation != self.zones.generation(zone) {
                    return self.hear_for_predecessor(frame);
                }
                if self.kernel.has_claims() && self.hear_of_claim(zone, frame) {
                    return;
                }
                self.kernel.charge_answer(zone, frame, self.now_ms);
                let mut cut_down = std::mem::take(&mut self.cut_down);
                let visible = self.kernel.cut_down(zone, frame, &mut cut_down).unwrap_or(frame);
                let was_behind = self.zones.get(zone).is_some_and(|end| end.is_behind());
                self.deliver_control(zone, visible);
                self.cut_down = cut_down;
                if self.zones.get(zone).is_some_and(|end| end.is_behind()) {
                    self.note_unread(zone, frame, was_behind);
                }
            }
        }
    }

    /// An app has not taken an earlier answer: the switch is not to send more of them than the app reads.
    #[cold]
    fn note_unread(&mut self, zone: ZoneId, frame: &[u8], was_behind: bool) {
        if let Ok(frame) = Frame::read(frame) {
            self.unread_answers.on_answer(frame.datapath(), zone, was_behind, self.now_ms);
        }
    }

    /// Reports switches that have reported their rules to the apps that subscribe to switches. [`Dispatch::hand_on`]
    /// then passes on the packet-ins that arrived meanwhile.
    pub fn report_ready(&mut self) {
        while let Some(datapath) = self.kernel.next_ready() {
            let Some(up) = self.kernel.switch(datapath) else { continue };
            let mut frame = std::mem::take(&mut self.cut_down);
            frame.clear();
            // Apps ignore the event's sequence number.
            if write::switch_up(&mut frame, 0, &up) {
                let Dispatch { kernel, zones, faults, .. } = self;
                for zone in kernel.receivers_of(kind::SWITCH_UP) {
                    deliver_control(zones, faults, zone, &frame);
                }
            }
            self.cut_down = frame;
        }
        let dropped = self.held.take_dropped();
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "packet-ins are dropped: their switches have not reported their rules yet, and the buffer for this time is full"
            );
        }
    }

    /// Passes on the oldest buffered packet-ins of this switch, about this many bytes.
    pub fn hand_on(&mut self, datapath: DatapathId, bytes: usize) {
        let mut packets = std::mem::take(&mut self.handed_on);
        self.held.take(datapath, bytes, &mut packets);
        let mut rest = packets.as_slice();
        while let Ok((packet, behind)) = Frame::split(rest) {
            self.heard += 1;
            self.pass_on(&packet);
            rest = behind;
        }
        self.handed_on = packets;
    }

    /// If a switch refused a command, the rule recorded for the zone may not exist.
    fn note_failure(&mut self, zone: ZoneId, bytes: &[u8]) {
        let Ok(frame) = Frame::read(bytes) else { return };
        let has_failed = match frame.header.kind.get() {
            kind::SWITCH_ERROR => true,
            kind::RECEIPT => {
                !matches!(Event::read(&frame), Ok(Event::Receipt(_, it)) if it.outcome == Outcome::Programmed)
            }
            _ => false,
        };
        if has_failed {
            self.kernel.on_failed(frame.datapath(), zone);
        }
    }

    /// Whether it is the receipt of a claim. The app then gets the receipt that it asked for, under its own ticket.
    fn hear_of_claim(&mut self, zone: ZoneId, bytes: &[u8]) -> bool {
        let Ok(frame) = Frame::read(bytes) else { return false };
        let Ok(Event::Receipt(datapath, receipt)) = Event::read(&frame) else { return false };
        let Some(heard) = self.kernel.on_receipt(&receipt) else { return false };
        if let Some(receipt) = heard {
            let mut told = std::mem::take(&mut self.cut_down);
            told.clear();
            if write::receipt(&mut told, frame.header.sequence.get(), datapath, &receipt) {
                self.deliver_control(zone, &told);
            }
            self.cut_down = told;
        }
        true
    }

    /// An earlier start of the app sent this command. The kernel hears what came of it, and nobody else.
    #[cold]
    fn hear_for_predecessor(&mut self, bytes: &[u8]) {
        let Ok(frame) = Frame::read(bytes) else { return };
        if let Ok(Event::Receipt(_, receipt)) = Event::read(&frame) {
            self.kernel.on_receipt(&receipt);
        }
    }

    fn hear_frame(&mut self, bytes: &[u8]) {
        self.heard += 1;
        let frame = match Frame::read(bytes) {
            Ok(frame) => frame,
            Err(malformed) => return tracing::error!("southbound wrote a malformed frame: {malformed}"),
        };
        let datapath = frame.datapath();
        match frame.header.kind.get() {
            kind::PACKET_IN if self.is_kept(datapath) => {
                if !self.held.push(datapath, bytes) {
                    self.kernel.on_unheard(datapath);
                }
            }
            kind::SWITCH_DOWN => {
                self.end_held(datapath);
                self.pass_on(&frame);
                self.pauses.forget(datapath);
                self.unread_answers.forget(datapath);
            }
            _ => self.pass_on(&frame),
        }
    }

    /// Whether packet-ins of this switch are buffered for now, because the apps have not received all earlier events of
    /// it.
    #[inline]
    fn is_kept(&self, datapath: DatapathId) -> bool {
        self.kernel.is_held(datapath) || self.held.has(datapath)
    }

    /// A switch disconnects. Apps that know it get its buffered packet-ins before the event of its end, as far as their
    /// rings have space. The worker waits for no app.
    fn end_held(&mut self, datapath: DatapathId) {
        if self.kernel.is_held(datapath) {
            return self.held.forget(datapath);
        }
        while self.held.has(datapath) {
            self.hand_on(datapath, usize::MAX);
        }
    }

    /// Passes an event through the kernel to its receivers.
    #[inline]
    fn pass_on(&mut self, frame: &Frame<'_>) {
        match frame.header.kind.get() {
            kind::PACKET_IN => self.pass_on_packet_in(frame),
            _ => self.pass_on_control(frame),
        }
    }

    #[inline(always)]
    fn pass_on_packet_in(&mut self, frame: &Frame<'_>) {
        if self.storm.wants() {
            self.watch_storm(frame);
        }
        let Dispatch { kernel, zones, effects, faults, .. } = self;
        let subscribers = match kernel.on_event(frame, self.now_ms, effects) {
            Ok(subscribers) => subscribers,
            Err(malformed) => return report_malformed(malformed),
        };
        self.has_packets = true;
        self.heard_packets.union_with(subscribers);
        let mut is_unheard = false;
        subscribers.for_each(|zone| {
            let Some(end) = zones.get(zone) else { return };
            is_unheard |= deliver_packet_in(end, faults, zone, frame.bytes) == Delivery::Dropped;
            if end.is_trusted() {
                self.trusted_that_heard.insert(zone);
            }
        });
        if is_unheard {
            kernel.on_unheard(frame.datapath());
        }
    }

    #[cold]
    fn pass_on_control(&mut self, frame: &Frame<'_>) {
        let Dispatch { kernel, zones, effects, faults, .. } = self;
        let subscribers = match kernel.on_event(frame, self.now_ms, effects) {
            Ok(subscribers) => subscribers,
            Err(malformed) => return report_malformed(malformed),
        };
        let mut waits = false;
        for zone in subscribers {
            if frame.header.kind.get() == kind::EXPERIMENTER {
                // A switch can send them without end, and must not end an app by it.
                zones.get(zone).map(|end| end.deliver_from_app(ZoneId::KERNEL, frame.bytes));
                continue;
            }
            deliver_control(zones, faults, zone, frame.bytes);
            waits |= zones.get(zone).is_some_and(|end| end.is_behind());
        }
        self.waited += usize::from(waits);
    }

    /// Handles a packet-in that the storm watch inspects.
    #[cold]
    fn watch_storm(&mut self, frame: &Frame<'_>) {
        if let Ok(packet) = PacketIn::read(frame) {
            self.storm.look(packet.datapath, packet.in_port, packet.data);
        }
    }

    pub fn deliver_control(&mut self, zone: ZoneId, frame: &[u8]) {
        deliver_control(&mut self.zones, &mut self.faults, zone, frame);
    }
}

#[cold]
fn report_malformed(malformed: Malformed) {
    tracing::error!("southbound wrote a malformed event: {malformed}");
}

#[inline]
fn deliver_packet_in(
    end: &mut ZoneEnd,
    faults: &mut Vec<(ZoneId, Fault)>,
    zone: ZoneId,
    frame: &[u8],
) -> Delivery {
    let delivery = end.deliver_packet_in(frame);
    if end.is_full()
        && let Err(fault) = end.run()
    {
        faults.push((zone, fault));
    }
    delivery
}

fn deliver_control(zones: &mut ZoneEnds, faults: &mut Vec<(ZoneId, Fault)>, zone: ZoneId, frame: &[u8]) {
    let Some(end) = zones.get(zone) else { return };
    if let Err(fault) = end.deliver_control(frame) {
        faults.push((zone, fault));
    }
}
