//! The virtual switch of a slice.
//!
//! ```text
//!   messages of the tenant's controllers ─┐                      ┌─> messages for the tenant's controllers
//!   events of the kernel                 ─┼─> Slicer::on_event ──┼─> commands for the kernel
//!   the time, states of links, labels    ─┘                      └─> "end this connection, because ..."
//!
//!   rules of the tenant, its VNICs ───────> Slicer::trace_flows ───> which pair of VNICs has which path of physical links
//! ```
//!
//! A slice is a process zone. Towards the tenant's controllers it is one switch of OpenFlow 1.0 or 1.3 for each physical switch. Towards the
//! kernel it is an app. This crate is the half that decides: ports, rules, packets and statistics of the tenant become those of the
//! physical switch, and back.
//!
//! In: whole messages as bytes, events as values, and the time as milliseconds. Out: [`Output`] values, in order.
//!
//! It never does I/O, reads no clock, and draws no random number. It keeps nothing that a tenant can make grow without a bound. It never
//! makes a command that matches a packet outside of the slice, or sends one there. The kernel checks that again. It does not compare
//! slices with each other.

pub mod abi_frames;
mod addresses;
mod answers;
mod asking;
mod buffers;
mod cleaning;
mod controller;
mod discovery;
mod event;
mod flattening;
mod floor;
mod flows;
mod groups;
mod handshake;
mod held;
mod homes;
mod hops;
mod journal;
mod label;
mod label_messages;
mod layout;
mod leaving;
mod leftovers;
mod limits;
mod loss;
mod marks;
mod memory;
mod meters;
mod output;
mod packet_in;
mod packet_out;
mod pending;
mod plan;
mod port;
mod port_changes;
mod readdress;
mod recall;
mod recalling;
mod refusal;
mod removal;
mod rule_table;
mod rules;
mod shaper;
mod shapers;
mod slicer;
mod space;
mod statistics;
mod table_features;
mod tag;
mod tracing;
mod translation;
mod virtual_switch;
mod vnic;
mod withdrawal;
mod withdrawing;

pub use addresses::{AddressPlan, HOSTS_MAX, HostPlan};
pub use event::{Cause, Event, Outcome, PacketIn};
pub use label::{LabelForm, LinkLabel};
pub use loss::{Loss, Lost};
pub use output::{CONTROLLERS_MAX, Command, Connection, LimitKind, Output};
pub use plan::{
    BadPlan, End, Isolation, Limit, Limits, LinkPlan, MATCHES_MAX, NUMBERS_MAX, Numbers, PORTS_MAX, PortPlan,
    SWITCHES_MAX, SlicePlan, SwitchPlan, TAG_MAX,
};
pub use port::PortFacts;
pub use refusal::Refusal;
pub use rule_table::PRIORITY_MAX;
pub use shaper::Shaping;
pub use slicer::{ControllerFacts, Slicer};
pub use virtual_switch::Counters;
pub use vnic::{FlowChange, FlowPath, PhysicalLink, Vnic};
