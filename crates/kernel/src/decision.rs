//! The decisions and effects of the kernel. The worker executes them.

use crate::calls::{CallRefused, End, Over};
use crate::capability::Capability;
use crate::excess::Excess;
use crate::own_messages::{Asked, MeterStep};
use crate::quota::QuotaKind;
use crate::topics::Unpublished;
use abi::command::{Ask, Command, Log, QueryAnswer};
use abi::event::Topic;
use abi::{Malformed, ZoneId};
use flow::DatapathId;
use flow::vendor::VendorPart;
use std::fmt;

/// What follows from an event or a command, beside what it was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Somebody wants this switch's packets: give it the kernel's rule that brings up what no other rule matches, with the meter that
    /// [`crate::Kernel::punt_meter`] says.
    Punt(DatapathId),
    /// Tell a switch this, for the meter of that rule; see [`crate::metering`].
    Meter {
        /// Which switch.
        datapath: DatapathId,
        /// What.
        step: MeterStep,
    },
    /// It is known whether the rule at this switch has a meter, or why not: tell the operator what [`crate::Kernel::metering`] says.
    MeterSettled(DatapathId),
    /// Delete the rules that [`crate::Kernel::take_evictions`] gives: they shadow rules of apps that come before their owners.
    Evict,
    /// Tell the operator that a rule passed which shadows another app's.
    Shadowed {
        /// Whose the new rule is.
        zone: ZoneId,
        /// Whose rule it shadows.
        of: ZoneId,
        /// At which switch.
        datapath: DatapathId,
        /// The priority of the rule that is shadowed.
        its: u16,
        /// The priority of the new one.
        priority: u16,
    },
    /// Tell this zone of every switch that is up.
    Replay(ZoneId),
    /// Ask a switch this, as the kernel, under the question's own ticket; the answer goes to [`crate::Kernel::on_own_answer`].
    Ask {
        /// Which switch.
        datapath: DatapathId,
        /// What.
        asked: Asked,
    },
    /// Tell this zone and the operator that a soft limit is passed.
    SoftLimit {
        /// Whose.
        zone: ZoneId,
        /// Of which switch; 0 where it is of none.
        datapath: DatapathId,
        /// Of what.
        kind: QuotaKind,
        /// How much is used, where that is a number that is known; for a rate, the soft limit.
        used: u32,
        /// Beyond this one is told.
        soft: u32,
        /// Beyond this nothing passes.
        hard: u32,
    },
    /// Execute no more commands of this zone for a moment, unless [`crate::Kernel::is_asked_for_sizes`] says that the
    /// switch has answered. Otherwise a small table could be overfilled before its size is known.
    WaitForSizes {
        /// Whose commands.
        zone: ZoneId,
        /// Which switch.
        datapath: DatapathId,
    },
    /// Tell the operator that this switch does not say how large its tables are.
    SizesUnknown {
        /// Which switch.
        datapath: DatapathId,
        /// How many entries each of its tables is taken to hold; `None`: as many as are added.
        entries_if_unknown: Option<u32>,
    },
    /// A service refused what this zone asked of it, by a quota that the service keeps: it is recorded as what the kernel refuses.
    RefusedByQuota {
        /// Whose.
        zone: ZoneId,
        /// Of what.
        kind: QuotaKind,
        /// The hard limit.
        hard: u32,
    },
    /// A call is over before its last part: tell those whom it names.
    CallOver(Over),
}

/// The decision on a command.
#[derive(Clone, Copy, Debug)]
pub enum Decision<'a> {
    /// It goes to its switch. A flow mod in it carries its owner in the cookie, and a mask that leaves the rules of others alone.
    Send(Command<'a>),
    /// The subscription is taken; nothing else to do but the effects.
    Subscribed,
    /// It goes, with its number, to the zones that [`crate::Kernel::receivers_of_topic`] names.
    Publish(Topic<'a>),
    /// It goes to this service as a query with this ticket.
    Ask {
        /// The service's zone.
        to: ZoneId,
        /// The kernel's ticket for it.
        ticket: u64,
        /// What.
        ask: Ask<'a>,
    },
    /// There is no such service: the asker gets an answer that says so.
    NoSuchService {
        /// The asker's ticket.
        ticket: u64,
        /// The name that was asked for; [`crate::services::Services::why_missing`] may know more.
        service: &'a str,
    },
    /// The caller grants a service more credit.
    Credit {
        /// The service, with the kernel's ticket.
        to: End,
        /// How much more.
        bytes: u32,
    },
    /// The caller has ended a call: its service is to hear so.
    Cancelled {
        /// The service, with the kernel's ticket.
        to: End,
    },
    /// It changes nothing, and is no fault.
    Nothing,
    /// It goes back to who asked.
    Answer {
        /// The asker.
        to: ZoneId,
        /// The asker's ticket.
        ticket: u64,
        /// What.
        answer: QueryAnswer<'a>,
    },
    /// It goes into the log.
    Log(Log<'a>),
    /// The command is refused.
    Refuse(Refusal),
}

/// Why a command does not pass. The app's fault, each of them but [`Refusal::NoSuchSwitch`], which can also be bad luck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The zone does not hold this capability.
    Needs(Capability),
    /// It holds it, but not so far.
    Beyond(Capability, Excess),
    /// It holds it, but not for this name.
    NotFor(Capability),
    /// A vendor defined a part of it, and the zone may not use that part.
    Vendor(VendorPart),
    /// Its ticket is one of the kernel's own.
    Ticket,
    /// It may do nothing to this switch, so that it has nothing to wait for there either.
    NothingToDoThere(DatapathId),
    /// It would replace or take away the kernel's own rule, by which switches send up what nothing else matches.
    KernelsRule,
    /// It would replace, change or take away a rule of this zone's.
    OthersRule(ZoneId),
    /// It would replace, change or take away a rule that no app of this node has made.
    ForeignRule,
    /// As many rules of this switch are known as may be, and it has been asked which of them it still has.
    TooManyRules(DatapathId),
    /// It breaks the operator's order of apps.
    Order(OrderRefused),
    /// It has had as much of this as its quota allows.
    Quota {
        /// Of what.
        kind: QuotaKind,
        /// The hard limit.
        hard: u32,
    },
    /// The switch has not said yet how large its tables are, and many entries have been added meanwhile.
    TablesUnsized(DatapathId),
    /// A match, an action or an instruction in it cannot be read.
    MalformedPart {
        /// What cannot be read.
        part: &'static str,
        /// Bytes from the beginning of that part.
        offset: usize,
        /// The field there, as the specification spells it.
        field: &'static str,
    },
    /// An add or a modify of table 255, which is every table: only a delete may name it (OpenFlow 1.3.5, 7.3.4.1).
    AllTables,
    /// The switch has connected, and has not reported its rules and their owners yet.
    NotUpYet(DatapathId),
    /// The switch is not there, or is another worker's.
    NoSuchSwitch(DatapathId),
    /// The bytes are no command.
    Malformed(Malformed),
    /// It is about a call to a service, and breaks the rules of calls.
    Call(CallRefused),
    /// A publication that cannot be numbered or retained.
    NotPublished(Unpublished),
}

/// Why a rule breaks the operator's order of apps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderRefused {
    /// It would shadow a rule of this zone, which comes before its sender in the order.
    Shadows {
        /// The owner of that rule.
        of: ZoneId,
        /// The priority of that rule.
        its: u16,
        /// The requested priority.
        priority: u16,
    },
    /// It would match every packet that this zone wants to receive, which comes before its sender in the order.
    Blinds(ZoneId),
    /// It would evict more rules of apps behind its sender than one command may evict.
    ShadowedByMany,
    /// The node compares no more rules of apps that share priorities.
    TooManyCompared,
}

impl OrderRefused {
    fn other(&self) -> Option<ZoneId> {
        match self {
            OrderRefused::Shadows { of: other, .. } | OrderRefused::Blinds(other) => Some(*other),
            OrderRefused::ShadowedByMany | OrderRefused::TooManyCompared => None,
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
                "rule.write: more than {} rules of apps behind this one would have to give way to it: give those apps lower priorities",
                crate::precedence::EVICTIONS_MAX
            ),
            OrderRefused::TooManyCompared => write!(
                f,
                "rule.write: apps that share priorities have {} rules already, which is all that the node compares: grant them different priorities",
                crate::overlap::COMPARED_MAX
            ),
        }
    }
}

impl Refusal {
    /// The other app that it is about.
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

/// A refusal, with the name of the other app that it is about, if that runs.
#[derive(Clone, Copy, Debug)]
pub struct InWords<'a> {
    pub(crate) refusal: &'a Refusal,
    pub(crate) other: Option<&'a str>,
}

impl InWords<'_> {
    /// An app that does not run is known by its number alone.
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
                "vendor: OpenFlow does not define {part}, and nobody here knows what it does; the operator allows it with \
                 vendor = [\"{part}\"] in the app's capabilities"
            ),
            Refusal::Ticket => f.write_str("tickets from 2^63 on are the kernel's own: take a smaller one"),
            Refusal::NothingToDoThere(datapath) => {
                write!(f, "the app holds no capability to command or ask {datapath}")
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
                "limits.rules_per_switch: as many rules of {datapath} are known as may be; it is asked which of them it still has: try again in \
                 a moment"
            ),
            Refusal::Order(why) => why.write(f, |of| self.app(of)),
            Refusal::Quota { kind, hard } => {
                write!(f, "quota {kind}: the hard limit {hard} is reached; the operator raises it by {}", kind.is_raised_by())
            }
            Refusal::TablesUnsized(datapath) => write!(
                f,
                "quota {}: {datapath} has not said yet how large its tables are; ask again in a moment",
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
            Refusal::AllTables => {
                f.write_str("table 255 is every table, and only a delete may name it; name one table")
            }
        }
    }
}
