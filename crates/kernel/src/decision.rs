//! The decisions and effects of the kernel. The worker executes them.

use crate::calls::{CallRefused, End, Over};
use crate::capability::Capability;
use crate::excess::Excess;
use crate::own_messages::{Asked, MeterStep};
use crate::quota::QuotaKind;
use crate::topics::Unpublished;
use abi::command::{Ask, Bundle, Command, Log, QueryAnswer};
use abi::event::Topic;
use abi::{Malformed, ZoneId};
use flow::DatapathId;
use flow::vendor::VendorPart;
use std::fmt;

/// An action that the worker must take besides the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// An app wants this switch's packets. Install the kernel's table-miss rule, with the meter that
    /// [`crate::Kernel::punt_meter`] returns.
    Punt(DatapathId),
    /// An app passes all packets that some app wants on to this table. Install the table-miss rule there too, with the meter that
    /// [`crate::Kernel::later_punt_meter`] returns. Then packets without a rule still reach the apps that want them.
    PuntFrom {
        /// The switch.
        datapath: DatapathId,
        /// The table to which packets are passed on.
        table_id: u8,
    },
    /// No app passes packets on to this table any more. Delete the kernel's table-miss rule there.
    EndPuntFrom {
        /// The switch.
        datapath: DatapathId,
        /// The table.
        table_id: u8,
    },
    /// Send a switch this step for the meter of that rule; see [`crate::metering`].
    Meter {
        /// The switch.
        datapath: DatapathId,
        /// The step.
        step: MeterStep,
    },
    /// The kernel knows now whether the table-miss rule at this switch has a meter. Tell the operator what
    /// [`crate::Kernel::metering`] returns.
    MeterSettled(DatapathId),
    /// Delete the rules that [`crate::Kernel::take_evictions`] returns: they shadow rules of apps that precede their
    /// owners.
    Evict,
    /// Send this switch the deletes that [`crate::Kernel::next_withdrawals`] returns, and a barrier behind them.
    Withdraw(DatapathId),
    /// Tell the operator that the kernel accepted a rule that shadows another app's.
    Shadowed {
        /// The owner of the new rule.
        zone: ZoneId,
        /// The owner of the shadowed rule.
        of: ZoneId,
        /// The switch.
        datapath: DatapathId,
        /// The priority of the shadowed rule.
        its: u16,
        /// The priority of the new rule.
        priority: u16,
    },
    /// Send this zone the switch-up event of each connected switch.
    Replay(ZoneId),
    /// Ask a switch this question for the kernel, under the question's own ticket. The answer goes to
    /// [`crate::Kernel::on_own_answer`].
    Ask {
        /// The switch.
        datapath: DatapathId,
        /// The question.
        asked: Asked,
    },
    /// Tell this zone and the operator that the zone has passed a soft limit.
    SoftLimit {
        /// The zone.
        zone: ZoneId,
        /// The switch; 0 if the limit is not for one switch.
        datapath: DatapathId,
        /// The kind of quota.
        kind: QuotaKind,
        /// The usage, if it is a known number; for a rate, the soft limit.
        used: u32,
        /// The soft limit: above it, the kernel reports.
        soft: u32,
        /// The hard limit: above it, the kernel refuses.
        hard: u32,
    },
    /// Execute no more commands of this zone for a moment, unless [`crate::Kernel::is_asked_for_sizes`] says that the
    /// switch has answered. Otherwise a small table could be overfilled before its size is known.
    WaitForSizes {
        /// The zone.
        zone: ZoneId,
        /// The switch.
        datapath: DatapathId,
    },
    /// Tell the operator that this switch does not report its table sizes.
    SizesUnknown {
        /// The switch.
        datapath: DatapathId,
        /// The assumed size of each of its tables; `None`: no limit.
        entries_if_unknown: Option<u32>,
    },
    /// A service refused this zone's query because of a quota of the service. The kernel records it like one of its own
    /// refusals.
    RefusedByQuota {
        /// The zone.
        zone: ZoneId,
        /// The kind of quota.
        kind: QuotaKind,
        /// The hard limit.
        hard: u32,
    },
    /// A call ended before its last part: send the notices to its ends.
    CallOver(Over),
}

/// The decision on a command.
#[derive(Clone, Copy, Debug)]
pub enum Decision<'a> {
    /// Send it to its switch. A flow mod in it carries its owner in the cookie, and a mask that protects other apps'
    /// rules.
    Send(Command<'a>),
    /// Begin a bundle, decide on each of its flow mods by [`crate::Kernel::on_bundled`], and send all of them, or none if one is refused.
    Bundle {
        /// The app's ticket.
        ticket: u64,
        /// Whether the app wants a receipt.
        wants_receipt: bool,
        /// The flow mods.
        bundle: Bundle<'a>,
    },
    /// The kernel recorded the subscription; only the effects remain.
    Subscribed,
    /// Send it, with its number, to the zones that [`crate::Kernel::receivers_of_topic`] names.
    Publish(Topic<'a>),
    /// Send it to this service as a query with this ticket.
    Ask {
        /// The service's zone.
        to: ZoneId,
        /// The kernel's ticket for it.
        ticket: u64,
        /// The query.
        ask: Ask<'a>,
    },
    /// No such service exists: the caller gets an answer with that status.
    NoSuchService {
        /// The caller's ticket.
        ticket: u64,
        /// The name in the query; [`crate::services::Services::why_missing`] may know the reason.
        service: &'a str,
    },
    /// The caller grants a service more credit.
    Credit {
        /// The service, with the kernel's ticket.
        to: End,
        /// The additional credit.
        bytes: u32,
    },
    /// The caller has cancelled a call: notify its service.
    Cancelled {
        /// The service, with the kernel's ticket.
        to: End,
    },
    /// It changes nothing, and is no error.
    Nothing,
    /// Send this answer to the caller.
    Answer {
        /// The caller.
        to: ZoneId,
        /// The caller's ticket.
        ticket: u64,
        /// The answer.
        answer: QueryAnswer<'a>,
    },
    /// Write it to the log.
    Log(Log<'a>),
    /// The command is refused.
    Refuse(Refusal),
}

/// Why the kernel refuses a command. The app is at fault, except for [`Refusal::NoSuchSwitch`], which can also be bad
/// timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The zone does not hold this capability.
    Needs(Capability),
    /// The zone holds the capability, but its bounds exclude this command.
    Beyond(Capability, Excess),
    /// The zone holds the capability, but not for this name.
    NotFor(Capability),
    /// A part of it is a vendor's extension, and the zone may not use that part.
    Vendor(VendorPart),
    /// Its ticket is one of the kernel's own.
    Ticket,
    /// The zone may not command this switch, so it has nothing to wait for there either.
    NothingToDoThere(DatapathId),
    /// It would replace or delete the kernel's own table-miss rule.
    KernelsRule,
    /// It would replace, change or delete a rule of this zone.
    OthersRule(ZoneId),
    /// It would replace, change or delete a rule that no app of this node made.
    ForeignRule,
    /// The kernel knows as many rules of this switch as its limit allows. It has asked the switch which of them still
    /// exist.
    TooManyRules(DatapathId),
    /// It violates the operator's order of apps.
    Order(OrderRefused),
    /// The zone's quota for this is exhausted.
    Quota {
        /// The kind of quota.
        kind: QuotaKind,
        /// The hard limit.
        hard: u32,
    },
    /// The switch has not reported its table sizes yet, and apps have added many entries meanwhile.
    TablesUnsized(DatapathId),
    /// A match, an action or an instruction in it cannot be parsed.
    MalformedPart {
        /// The part that cannot be parsed.
        part: &'static str,
        /// Bytes from the beginning of that part.
        offset: usize,
        /// The field there, as the specification spells it.
        field: &'static str,
    },
    /// An add or a modify of table 255, which is every table: only a delete may name it (OpenFlow 1.3.5, 7.3.4.1).
    AllTables,
    /// The app may do it, but not in a bundle, for this reason.
    NotInBundle(&'static str),
    /// The switch has connected, and has not reported its rules and their owners yet.
    NotUpYet(DatapathId),
    /// The switch is not connected, or another worker serves it.
    NoSuchSwitch(DatapathId),
    /// The bytes are no command.
    Malformed(Malformed),
    /// It concerns a call to a service, and violates the rules of calls.
    Call(CallRefused),
    /// A publication that cannot be numbered or retained.
    NotPublished(Unpublished),
}

/// Why a rule violates the operator's order of apps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderRefused {
    /// It would shadow a rule of this zone, which precedes the sender in the order.
    Shadows {
        /// The owner of that rule.
        of: ZoneId,
        /// The priority of that rule.
        its: u16,
        /// The requested priority.
        priority: u16,
    },
    /// It would match every packet that this zone wants to receive. That zone precedes the sender in the order.
    Blinds(ZoneId),
    /// It would evict more rules of later apps than one command may evict.
    ShadowedByMany,
    /// The node has reached its limit of compared rules of apps that share priorities.
    TooManyCompared,
    /// The app has as many rules that match all packets which some app wants as the node compares, at this switch.
    TooManyWide,
}

impl OrderRefused {
    fn other(&self) -> Option<ZoneId> {
        match self {
            OrderRefused::Shadows { of: other, .. } | OrderRefused::Blinds(other) => Some(*other),
            OrderRefused::ShadowedByMany | OrderRefused::TooManyCompared | OrderRefused::TooManyWide => None,
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, app: impl Fn(ZoneId) -> String) -> fmt::Result {
        match self {
            OrderRefused::Shadows { of, its, priority } => write!(
                f,
                "rule.write: priority {priority} would shadow a rule of {} with priority {its}; that app comes before this one: take a \
                 priority below {its}, or change the order in [apps] order",
                app(*of)
            ),
            OrderRefused::Blinds(of) => write!(
                f,
                "rule.write: it would take every packet that {} receives, and that app comes before this one: match fewer packets, or \
                 change the order in [apps] order",
                app(*of)
            ),
            OrderRefused::ShadowedByMany => write!(
                f,
                "rule.write: it would replace more than {} rules of apps that come after this one: give those apps lower priorities",
                crate::precedence::EVICTIONS_MAX
            ),
            OrderRefused::TooManyCompared => write!(
                f,
                "rule.write: the node compares {} rules of apps that share priorities, and at most seven eighths of them of one app; it has \
                 no room for this one: grant the apps different priorities",
                crate::overlap::COMPARED_MAX
            ),
            OrderRefused::TooManyWide => write!(
                f,
                "rule.write: this app has {} rules at the switch that match all packets which an app receives, and the node compares \
                 no more of them: delete some, or match fewer packets",
                crate::wide::WIDE_MAX
            ),
        }
    }
}

/// OFPET_FLOW_MOD_FAILED, OFPFMFC_TABLE_FULL (OpenFlow 1.3.5, 7.5.4.6).
const TABLE_FULL: flow::ErrorCode = flow::ErrorCode { kind: 5, code: 1 };

impl Refusal {
    /// The error of a switch that means the same. A sender can then react as it would to a switch whose table is full, or send the command
    /// again later.
    pub fn as_error(&self) -> Option<flow::ErrorCode> {
        match self {
            Refusal::Quota { kind: QuotaKind::TableEntries, .. } => Some(TABLE_FULL),
            Refusal::TablesUnsized(_) => Some(abi::NO_ROOM),
            _ => None,
        }
    }

    /// The other app that it concerns.
    pub(crate) fn other(&self) -> Option<ZoneId> {
        match self {
            Refusal::OthersRule(other) => Some(*other),
            Refusal::Order(why) => why.other(),
            _ => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        InWords { refusal: self, other: None }.fmt(f)
    }
}

/// A refusal, with the name of the other app that it concerns, if that app runs.
#[derive(Clone, Copy, Debug)]
pub struct InWords<'a> {
    pub(crate) refusal: &'a Refusal,
    pub(crate) other: Option<&'a str>,
}

impl InWords<'_> {
    /// An app that does not run is known only by its number.
    fn app(&self, zone: ZoneId) -> String {
        self.other.map_or_else(|| format!("app number {zone}"), |name| format!("the app {name}"))
    }
}

impl fmt::Display for InWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.refusal {
            Refusal::Needs(capability) => write!(f, "the app does not hold the capability {capability}"),
            Refusal::Beyond(capability, excess) => write!(f, "{capability}: {excess}"),
            Refusal::NotFor(capability) => write!(f, "{capability}: it is not granted for this name"),
            Refusal::Vendor(part) => write!(
                f,
                "vendor: OpenFlow does not define {part}, so the kernel cannot check its effect; the operator can allow it with \
                 vendor = [\"{part}\"] in the app's capabilities"
            ),
            Refusal::Ticket => f.write_str("tickets from 2^63 on are the kernel's own: take a smaller one"),
            Refusal::NothingToDoThere(datapath) => {
                write!(f, "the app holds no capability for commands or requests to {datapath}")
            }
            Refusal::KernelsRule => f.write_str(
                "rule.write.others: the table-miss rule of table 0 is the kernel's",
            ),
            Refusal::OthersRule(owner) => write!(
                f,
                "rule.write.others: a rule with this table, priority and match belongs to {}; the switch is asked whether it \
                 is still there: try again later, or with another priority",
                self.app(*owner)
            ),
            Refusal::ForeignRule => f.write_str(
                "rule.write.others: a rule with this table, priority and match is in the switch, and no app of this node added it. The switch is \
                 asked whether it is still there: try again later, or with another priority"
            ),
            Refusal::TooManyRules(datapath) => write!(
                f,
                "limits.rules_per_switch: the node stores no more rules of {datapath}; it is reading which of them still exist: try again in a moment"
            ),
            Refusal::Order(why) => why.write(f, |of| self.app(of)),
            Refusal::Quota { kind, hard } => {
                write!(f, "quota {kind}: the hard limit {hard} is reached; the operator raises it by {}", kind.is_raised_by())
            }
            Refusal::TablesUnsized(datapath) => write!(
                f,
                "quota {}: {datapath} has not reported its table sizes yet; try again in a moment",
                QuotaKind::TableEntries
            ),
            Refusal::MalformedPart { part, offset, field } => {
                write!(f, "malformed {part} at offset {offset}: {field}")
            }
            Refusal::NotUpYet(datapath) => write!(
                f,
                "{datapath} has connected and has not reported its rules yet: try again when the app receives the switch"
            ),
            Refusal::NoSuchSwitch(datapath) => write!(f, "{datapath} is not connected"),
            Refusal::Malformed(malformed) => write!(f, "{malformed}"),
            Refusal::Call(why) => why.fmt(f),
            Refusal::NotPublished(why) => why.fmt(f),
            Refusal::NotInBundle(why) => f.write_str(why),
            Refusal::AllTables => {
                f.write_str("table 255 is every table, and only a delete may name it; name one table")
            }
        }
    }
}
