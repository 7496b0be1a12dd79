//! A slice in its zone, as the process of a slice is, without sockets and without a process.
//!
//! ```text
//!   frames of the kernel ───────> ┌────────────────┐ ──> commands for the kernel
//!   messages of the controller ─> │ slicer::Slicer │ ──> messages for the controller
//!   labels of the service ──────> └────────────────┘ ──> reports to the service: paths of flows, links shown
//! ```
//!
//! In: frames, bytes, labels. Out: [`Said`] values. What they mean is decided in `slicer`. It keeps no journal, and its controller is never away.

use abi::command::{Command, Subscribe, What};
use abi::event::{Event as AbiEvent, PacketIn, kind};
use abi::{Frame, ZoneId};
use flow::DatapathId;
use labels_contract::{Entry, Heard, Label, Next, Report, Reporter};
use slice::{SliceSettings, entry_of, link_id};
use slicer::abi_frames::{each_event, write_command};
use slicer::{Connection, Event, FlowChange, LinkLabel, Outcome, Output, Slicer};
use view::LinkId;

/// Ports of VNICs whose flows are traced at once.
const TRACED_AT_ONCE: usize = 4;

/// The only controller of each virtual switch.
const CONTROLLER: usize = 0;

/// The number of this run of a slice, among those that report to the service.
const SESSION: u64 = 1;

/// What a slice wants.
#[derive(Debug)]
pub(crate) enum Said {
    /// A message for the controller. If a refusal of the kernel or the switch is behind it, the reason.
    Tell(Connection, Vec<u8>, Option<String>),
    /// A connection with a controller begins.
    Dial(Connection),
    /// The frame of a command for the kernel.
    Command(Vec<u8>),
    /// A line for the operator.
    Line(String),
}

/// A slice.
#[derive(Debug)]
pub(crate) struct SliceZone {
    pub(crate) own: ZoneId,
    settings: SliceSettings,
    slicer: Slicer,
    reporter: Reporter,
    outputs: Vec<Output>,
    /// Why the command was refused whose answer is heard now.
    reason: Option<String>,
}

impl SliceZone {
    /// A slice whose links are up.
    ///
    /// # Errors
    /// A sentence that names the slice: it cannot run.
    pub(crate) fn new(own: ZoneId, settings: &SliceSettings) -> Result<SliceZone, String> {
        let mut slicer = settings.slicer(own).map_err(|bad| bad.to_string())?;
        slicer.number_rules_from(1);
        let plan = settings.plan(own);
        for link in plan.links.iter().copied() {
            slicer.on_event(0, Event::Link { link, is_up: true }, &mut Vec::new());
        }
        let mut reporter = Reporter::new(&settings.name, SESSION);
        plan.physical_links().iter().for_each(|link| reporter.say(Entry::Link { link: link_id(link) }));
        let (settings, outputs, reason) = (settings.clone(), Vec::new(), None);
        Ok(SliceZone { own, settings, slicer, reporter, outputs, reason })
    }

    pub(crate) fn slicer(&self) -> &Slicer {
        &self.slicer
    }

    /// The frame of its subscription, which is that of the process of a slice.
    pub(crate) fn subscription(&self) -> Vec<u8> {
        let kinds = [kind::SWITCH_UP, kind::SWITCH_DOWN, kind::PORT_STATUS, kind::FLOW_REMOVED];
        let all = kinds.into_iter().chain([kind::PACKET_IN, kind::TICK]);
        let mut events = all.map(kind::bit).fold(0, |all, bit| all | bit);
        if !self.settings.is_read_only {
            events |= kind::OF_OWN_RULES;
        }
        let what = What::Subscribe(Subscribe { events, packets: &[] });
        let mut frame = Vec::new();
        let command = Command { datapath: DatapathId(0), ticket: 0, wants_receipt: false, what };
        abi::command::write::command(&mut frame, &command);
        frame
    }

    /// A frame of the kernel.
    pub(crate) fn hear(&mut self, frame: &[u8], now_ms: u64, out: &mut Vec<Said>) {
        let Ok(frame) = Frame::read(frame) else { return };
        let Ok(event) = AbiEvent::read(&frame) else { return };
        let has_switch = |it: DatapathId| self.settings.switches.iter().any(|one| one.datapath == it);
        match event {
            AbiEvent::Tick { .. } => self.feed(Event::Time, now_ms, out),
            AbiEvent::SwitchUp(up) if !has_switch(up.datapath) => {}
            AbiEvent::SwitchUp(up) => {
                self.pass(&AbiEvent::SwitchUp(up), now_ms, out);
                let connection = Connection { datapath: up.datapath, controller: CONTROLLER };
                out.push(Said::Dial(connection));
                self.feed(Event::ControllerUp(connection), now_ms, out);
            }
            AbiEvent::PacketIn(packet) => {
                // The virtual switch knows all of a whole packet, so it needs no buffer of the switch.
                let is_cut = packet.data.len() < usize::from(packet.total_len);
                let buffer_id = packet.buffer_id.filter(|_| is_cut);
                self.pass(&AbiEvent::PacketIn(PacketIn { buffer_id, ..packet }), now_ms, out);
            }
            other => {
                self.reason = reason_of(&other);
                self.pass(&other, now_ms, out);
                self.reason = None;
            }
        }
    }

    fn pass(&mut self, event: &AbiEvent<'_>, now_ms: u64, out: &mut Vec<Said>) {
        let SliceZone { own, slicer, outputs, .. } = self;
        each_event(event, *own, |event| slicer.on_event(now_ms, event, outputs));
        self.carry_out(now_ms, out);
    }

    /// An event that does not come from the kernel.
    pub(crate) fn feed(&mut self, event: Event<'_>, now_ms: u64, out: &mut Vec<Said>) {
        self.slicer.on_event(now_ms, event, &mut self.outputs);
        self.carry_out(now_ms, out);
    }

    /// The service of labels tells a label.
    pub(crate) fn on_label(&mut self, link: LinkId, label: Option<Label>, now_ms: u64, out: &mut Vec<Said>) {
        let (datapath, port) = (link.from.switch, link.from.port);
        let label = label.map(|it| LinkLabel { label_kbps: it.label_kbps, capacity_kbps: it.capacity_kbps });
        self.feed(Event::Label { datapath, port, label }, now_ms, out);
    }

    fn carry_out(&mut self, now_ms: u64, out: &mut Vec<Said>) {
        let mut unwritten = Vec::new();
        for output in std::mem::take(&mut self.outputs) {
            match output {
                Output::Tell { to, bytes } => out.push(Said::Tell(to, bytes, self.reason.clone())),
                Output::Command { datapath, ticket, wants_receipt, command } => {
                    let mut frame = Vec::new();
                    if write_command(&mut frame, datapath, ticket, wants_receipt, &command) {
                        out.push(Said::Command(frame));
                    } else {
                        unwritten.push((datapath, ticket));
                    }
                }
                Output::End { connection, why } => {
                    out.push(Said::Line(format!("the connection at {} ended: {why}", connection.datapath)));
                }
                Output::Soft { datapath, limit } => {
                    out.push(Said::Line(format!("more than the soft limit of {limit} at {datapath}")));
                }
            }
        }
        for (datapath, ticket) in unwritten {
            self.feed(Event::Answer { datapath, ticket, outcome: Outcome::Unknown }, now_ms, out);
        }
    }

    /// What it reports to the service now, if that is anything. Its flows are traced before.
    pub(crate) fn report(&mut self) -> Option<Report> {
        let mut changes: Vec<FlowChange> = Vec::new();
        while self.slicer.trace_flows(TRACED_AT_ONCE, &mut changes) {}
        changes.into_iter().for_each(|change| self.reporter.say(entry_of(change)));
        self.reporter.next_report()
    }

    /// The answer to its report.
    pub(crate) fn on_heard(&mut self, heard: &Heard) {
        if self.reporter.on_heard(heard) == Next::Rebuild {
            let links = self.settings.plan(self.own).physical_links();
            let links = links.iter().map(|link| Entry::Link { link: link_id(link) });
            let flows = self.slicer.flows().into_iter().map(entry_of);
            self.reporter.rebuild(links.chain(flows).collect::<Vec<_>>());
        }
    }
}

/// Why a command was refused, by the kernel or by the switch.
fn reason_of(event: &AbiEvent<'_>) -> Option<String> {
    let reason = match event {
        AbiEvent::Receipt(_, receipt) if receipt.outcome != abi::Outcome::Programmed => receipt.reason,
        AbiEvent::SwitchError(error) => error.reason,
        _ => return None,
    };
    (!reason.is_empty()).then(|| reason.to_owned())
}
