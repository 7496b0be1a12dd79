//! What a handle asks the loop of a running network to do, each with the channel for its answer.

use flow::{DatapathId, MacAddr};
use software_switch::{SwitchCounters, SwitchView};
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::event::Audience;
use super::ping_all::PingReport;
use crate::host::HostCounters;
use crate::host::flow::{FlowRefused, FlowReport, FlowSpec, IpVersion};
use crate::host::query::{QueriesRefused, QueriesReport, QuerySpec};
use crate::network::{CannotChange, Change, FlowId, LinkCounters, QueriesId};
use crate::validity::{MachineReading, Verdict};

/// A request to the loop.
#[derive(Debug)]
pub(crate) enum Request {
    /// Answer when every switch is connected.
    WaitConnected(Sender<()>),
    /// Return the switches that are not connected, and why.
    ListMissing(Sender<Vec<(DatapathId, String)>>),
    /// Let every host ping every other. A ping waits this long for its reply.
    PingAll { ip: IpVersion, timeout: Duration, answer: Sender<PingReport> },
    /// Let a host ping another once.
    Ping {
        from: String,
        to: String,
        timeout: Duration,
        answer: Sender<PingReport>,
        begun: Sender<Result<(), CannotChange>>,
    },
    /// Return the state of each switch.
    ViewSwitches(Sender<Vec<SwitchView>>),
    /// Return the counters of all switches together.
    CountSwitches(Sender<SwitchCounters>),
    /// Return the counters of each host.
    CountHosts(Sender<Vec<(String, HostCounters)>>),
    /// Return for each host the bytes by sender.
    CountReceived(Sender<Vec<Vec<(MacAddr, u64)>>>),
    /// Take a link down or up.
    SetLink { link: usize, up: bool },
    /// Make a change that is given by names.
    Change { change: Change, answer: Sender<Result<(), CannotChange>> },
    /// Answer when this much time has passed in the network.
    PassTo { time: Duration, answer: Sender<()> },
    /// Send a frame from a host.
    SendFrame { host: String, frame: Vec<u8>, answer: Sender<Result<(), CannotChange>> },
    /// Start a flow.
    StartFlow { spec: FlowSpec, answer: Sender<Result<FlowId, FlowRefused>> },
    /// Stop a flow, and return whether it exists.
    StopFlow { id: FlowId, answer: Sender<bool> },
    /// Return the report of a flow.
    ReportFlow { id: FlowId, answer: Sender<Option<FlowReport>> },
    /// Begin a series of queries.
    StartQueries { spec: QuerySpec, answer: Sender<Result<QueriesId, QueriesRefused>> },
    /// Return the report of a series of queries.
    ReportQueries { id: QueriesId, answer: Sender<Option<QueriesReport>> },
    /// Return the counters of each link.
    CountLinks(Sender<Vec<(String, LinkCounters)>>),
    /// Block the links off a spanning tree for floods.
    KeepSpanningTree,
    /// Send events to an observer.
    Observe { audience: Audience, listening: Sender<()> },
    /// Judge the run from now on.
    RestartMeter,
    /// Take a reading of the machine into account.
    NoteMachine(MachineReading),
    /// Return what the meter says of the run.
    Judge(Sender<Verdict>),
    /// Stop the loop.
    Stop,
}
