//! The native half of the Python package `burnet`.
//!
//! ```text
//!   rings ──frames──> zone, dispatch ──calls──> the app's handlers, in Python
//!     <───frames─── commands, rule, packet_out <──calls──┘
//! ```
//!
//! In: the port of a process zone, by the Rust SDK. Out: the module `burnet._native`, which `python/burnet/` exports. The loop over
//! events is here, so that Python runs only for the app's decisions.
//!
//! It never talks OpenFlow, never decides for an app, and holds no `unsafe` of its own.

mod commands;
mod dispatch;
mod events;
mod interests;
mod packet;
mod packet_out;
mod rule;
mod table;
mod trial;
mod value;
mod view;
mod zone_loop;

use pyo3::prelude::*;

/// The native half of `burnet`; import that.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::commands::Commands;
    #[pymodule_export]
    use crate::events::{
        Experimenter, FlowRemoved, Label, Labels, Port, PortStatus, Query, QueryReply, Receipt, SoftLimit, StatsReply, StreamUpdate,
        SwitchError, SwitchUp, Topic,
    };
    #[pymodule_export]
    use crate::interests::Interests;
    #[pymodule_export]
    use crate::packet::PacketIn;
    #[pymodule_export]
    use crate::packet_out::PacketOut;
    #[pymodule_export]
    use crate::rule::Rule;
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::trial::Trial;
    #[pymodule_export]
    use crate::value::{read_datapath, show_datapath};
    #[pymodule_export]
    use crate::view::{PyConnectPoint, View, ViewChange, ViewHost, ViewLink, ViewPort, ViewSwitch};
    #[pymodule_export]
    use crate::zone_loop::run;
}
