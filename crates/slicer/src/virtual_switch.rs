//! One virtual switch: its state, and what it says to controllers and to the kernel.
//!
//! In: what the files beside this one decide. Out: messages and commands. What a message means is decided there.

use crate::buffers::Buffers;
use crate::controller::{Asker, Controller, State};
use crate::floor::Floor;
use crate::label::LabelForm;
use crate::leaving::Leaving;
use crate::leftovers::Leftovers;
use crate::limits::{Allowance, Use};
use crate::output::{CONTROLLERS_MAX, Command, Connection, LimitKind, Output};
use crate::pending::{Asked, Pending};
use crate::plan::{Limits, Numbers, SlicePlan, SwitchPlan};
use crate::refusal::{EMERGENCY_TIMEOUT_V10, FLOW_MOD_TIMEOUT, Refusal};

use crate::held::Held;
use crate::marks::Unsaved;
use crate::recall::Recall;
use crate::rule_table::{Group, Meter, RuleTable};
use crate::shaper::Shaper;
use crate::space::Space;
use crate::withdrawal::Withdrawing;
use flow::{DatapathId, ErrorCode, PortNo};
use openflow::labels::with_labels;
use openflow::message::*;
use openflow::{Body, HEADER_LEN, MAX_MESSAGE_LEN, Message, Version};
use std::collections::BTreeMap;

/// The bits of a ticket that count; above them is the number of the switch in its slice.
const TICKET_BITS: u32 = 48;
/// How many bytes of a refused message the error repeats: as many as fit. OpenFlow wants at least 64 (1.3.5, 7.5.4).
const ERROR_DATA_MAX: usize = MAX_MESSAGE_LEN - HEADER_LEN - 4;
/// An error of an experimenter has the number of the experimenter.
const EXPERIMENTER_LEN: usize = 4;

/// The time, and what comes out.
pub(crate) struct Turn<'a> {
    pub(crate) now_ms: u64,
    pub(crate) out: &'a mut Vec<Output>,
}

/// What a virtual switch counts since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packet-ins of which a controller heard.
    pub packet_ins: u64,
    /// Packet-ins above the limit.
    pub packet_ins_dropped: u64,
    /// Packet-ins that a controller did not get, because it had not read its earlier messages. Each counts once for each such controller.
    pub packet_ins_unread: u64,
    /// Packet-ins that no controller wanted.
    pub packet_ins_unheard: u64,
    /// Frames of discovery protocols that came from the network, and were dropped.
    pub foreign_probes: u64,
    /// Packet-outs that were sent.
    pub packet_outs: u64,
    /// Flow mods that were carried out.
    pub flow_mods: u64,
    /// Messages that got an error.
    pub refused: u64,
    /// Errors of the switch or the kernel whose message was forgotten, because too many later ones were on their way.
    pub errors_lost: u64,
    /// Flow removeds that were told before all counters were known, because too many rules were leaving at once.
    pub ends_told_early: u64,
}

/// A virtual switch.
#[derive(Clone, Debug)]
pub(crate) struct VirtualSwitch {
    pub(crate) datapath: DatapathId,
    pub(crate) shown_as: DatapathId,
    pub(crate) slice: String,
    pub(crate) is_read_only: bool,
    /// The version of the physical switch while it is connected.
    pub(crate) physical: Option<Version>,
    pub(crate) space: Space,
    pub(crate) controllers: Vec<Controller>,
    pub(crate) generation_id: Option<u64>,
    pub(crate) rules: RuleTable,
    /// What else is not in the journal.
    pub(crate) unsaved: Unsaved,
    pub(crate) recall: Recall,
    /// Whether the slice had other ports or hosts when its journal was written.
    pub(crate) has_other_ports: bool,
    pub(crate) leaving: Leaving,
    pub(crate) leftovers: Leftovers,
    pub(crate) groups: BTreeMap<u32, Group>,
    pub(crate) meters: BTreeMap<u32, Meter>,
    /// The meters at ports of VNICs, by the number that the tenant sees.
    pub(crate) shapers: BTreeMap<PortNo, Shaper>,
    /// The numbers of groups and meters in the physical switch that are the tenant's.
    pub(crate) numbers: Numbers,
    /// Groups and meters that the physical switch has not confirmed. The kernel refuses rules that refer to them until then.
    pub(crate) claims: usize,
    /// Messages that wait for that.
    pub(crate) held: Held,
    pub(crate) floor: Floor,
    /// What the slice loses here, while and after it is deleted.
    pub(crate) withdrawing: Option<Withdrawing>,
    /// Whether the slice has lost the switch. Then it has no rules here, and gets none.
    pub(crate) is_withdrawn: bool,
    pub(crate) buffers: Buffers,
    pub(crate) pending: Pending,
    pub(crate) allowance: Allowance,
    pub(crate) counters: Counters,
    /// How controllers receive labels.
    pub(crate) label_form: LabelForm,
    pub(crate) are_labels_stale: bool,
    /// Frames of discovery protocols that leave by ports, for this turn. One for each port at most.
    pub(crate) probes: Vec<(PortNo, Vec<u8>)>,
    index: u64,
    tickets: u64,
}

impl VirtualSwitch {
    /// The `index`-th switch of a slice, while its physical switch is not connected.
    pub(crate) fn new(plan: &SlicePlan, switch: &SwitchPlan, index: usize) -> VirtualSwitch {
        let limits: &Limits = &plan.limits;
        VirtualSwitch {
            datapath: switch.datapath,
            shown_as: switch.shown_as,
            slice: plan.name.clone(),
            is_read_only: plan.is_read_only,
            physical: None,
            space: Space::new(&plan.isolation, switch),
            controllers: vec![Controller::closed(0); CONTROLLERS_MAX],
            generation_id: None,
            rules: RuleTable::default(),
            unsaved: Unsaved::default(),
            recall: Recall::default(),
            has_other_ports: false,
            leaving: Leaving::default(),
            leftovers: Leftovers::default(),
            groups: BTreeMap::new(),
            meters: BTreeMap::new(),
            shapers: BTreeMap::new(),
            numbers: plan.numbers.clone(),
            claims: 0,
            held: Held::default(),
            floor: Floor::default(),
            withdrawing: None,
            is_withdrawn: false,
            buffers: Buffers::default(),
            pending: Pending::default(),
            allowance: Allowance::new(limits),
            counters: Counters::default(),
            label_form: LabelForm::None,
            are_labels_stale: true,
            probes: Vec::new(),
            index: index as u64,
            tickets: 0,
        }
    }

    fn connection(&self, controller: usize) -> Connection {
        Connection { datapath: self.datapath, controller }
    }

    /// Sends a message to a controller. What its version cannot express is not sent.
    pub(crate) fn tell(&self, controller: usize, message: &Message, turn: &mut Turn<'_>) -> bool {
        let mut bytes = Vec::with_capacity(room_for(&message.body));
        let mut is_written = message.encode(&mut bytes).is_ok();
        if self.label_form == LabelForm::Paper && is_written {
            let labeled = with_labels(bytes, |port| self.label_of(port));
            is_written = labeled.is_ok();
            bytes = labeled.unwrap_or_default();
        }
        if is_written {
            turn.out.push(Output::Tell { to: self.connection(controller), bytes });
        }
        is_written
    }

    /// Answers a message, if its connection still stands.
    pub(crate) fn answer(&self, to: Asker, body: Body, turn: &mut Turn<'_>) {
        let is_there = self.controllers.get(to.controller).is_some_and(|it| it.serial == to.serial);
        if is_there {
            self.tell(to.controller, &Message { version: to.version, xid: to.xid, body }, turn);
        }
    }

    /// Answers with an error that quotes the beginning of the message.
    pub(crate) fn refuse(&mut self, to: Asker, error: ErrorCode, message: &[u8], turn: &mut Turn<'_>) {
        self.counters.refused += 1;
        let ErrorCode { kind, code } = match (error, to.version) {
            (FLOW_MOD_TIMEOUT, Version::V1_0) => EMERGENCY_TIMEOUT_V10,
            (error, version) => openflow::error::to_version(error, version),
        };
        let experimenter =
            if to.version == Version::V1_0 { None } else { openflow::error::experimenter_of(error) };
        let most = ERROR_DATA_MAX - experimenter.map_or(0, |_| EXPERIMENTER_LEN);
        let data = message[..message.len().min(most)].to_vec();
        self.answer(to, Body::Error(ErrorMessage { kind, code, experimenter, data }), turn);
    }

    /// Ends a connection.
    pub(crate) fn end(&mut self, controller: usize, why: impl Into<String>, turn: &mut Turn<'_>) {
        let Some(it) = self.controllers.get_mut(controller) else { return };
        if it.state != State::Closed {
            *it = Controller::closed(it.serial + 1);
            turn.out.push(Output::End { connection: self.connection(controller), why: why.into() });
        }
    }

    /// Gives a command to the kernel, and remembers what its answer is for.
    pub(crate) fn order(&mut self, command: Command, asked: Option<Asked>, turn: &mut Turn<'_>) {
        self.tickets += 1;
        let ticket = self.index << TICKET_BITS | self.tickets;
        let wants_receipt = asked.as_ref().is_some_and(Asked::wants_receipt);
        if let Some(asked) = asked {
            self.counters.errors_lost += u64::from(self.pending.note(ticket, asked));
        }
        turn.out.push(Output::Command { datapath: self.datapath, ticket, wants_receipt, command });
    }

    /// The open connections with their versions.
    pub(crate) fn open(&self) -> impl Iterator<Item = (usize, &Controller, Version)> {
        let all = self.controllers.iter().enumerate();
        all.filter_map(|(number, controller)| Some((number, controller, controller.version()?)))
    }

    /// Whether one more use is within a limit. The operator is told about the soft one.
    pub(crate) fn take(&mut self, limit: LimitKind, turn: &mut Turn<'_>) -> bool {
        let used = self.allowance.take(limit, turn.now_ms);
        self.judge(used, limit, turn)
    }

    /// Whether the slice may have this number of rules in the physical switch.
    pub(crate) fn may_hold(&mut self, rules: usize, turn: &mut Turn<'_>) -> bool {
        let used = self.allowance.hold(rules, turn.now_ms);
        self.judge(used, LimitKind::Rules, turn)
    }

    fn judge(&self, used: Use, limit: LimitKind, turn: &mut Turn<'_>) -> bool {
        if used == Use::Soft {
            turn.out.push(Output::Soft { datapath: self.datapath, limit });
        }
        used != Use::Hard
    }

    /// The version of the physical switch; 1.3 while there is none.
    pub(crate) fn on(&self) -> Version {
        self.physical.unwrap_or(Version::V1_3)
    }
}

/// Room for a message, so that it seldom grows while it is written.
fn room_for(body: &Body) -> usize {
    /// The header, fields and match of a packet-in of 1.3, and a whole message of most other kinds.
    const BESIDE_DATA: usize = 64;
    match body {
        Body::PacketIn(it) => BESIDE_DATA + it.data.len(),
        _ => BESIDE_DATA,
    }
}

/// The answer to a message: the refusal, or nothing.
pub(crate) type Obeyed = Result<(), Refusal>;
