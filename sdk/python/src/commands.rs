//! The commands of a handler.
//!
//! In: calls of the app. Out: command frames in a buffer that is reused, so that later commands allocate nothing.
//! It never sends: the loop does that when the handler has returned.

use crate::packet_out::PacketOut;
use crate::rule::Rule;
use crate::value;
use crate::view::View;
use abi::command::{Ask, Command, Log, Publish, QueryAnswer, StatsRequest, Subscribe, What, write};
use abi::service::{at_home, home_for};
use burnet_sdk::calls::Calls;
use burnet_sdk::store::{self, Op};
use burnet_sdk::stream::TICKET_OF_STREAM;
use burnet_sdk::view::Kind;
use burnet_sdk::view_follower::ViewFollower;
use burnet_sdk::{Form, WAKE_AFTER_MAX};
use flow::DatapathId;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::Duration;

/// The commands of a handler. The loop sends them when the handler returns.
#[pyclass(module = "burnet")]
#[derive(Default)]
pub(crate) struct Commands {
    frames: Vec<u8>,
    last_ticket: u64,
    calls: Calls,
    wake_after: Option<Duration>,
    view: ViewFollower,
}

const NO_SWITCH: DatapathId = DatapathId(0);

/// The level of a log line.
const WARNING: u8 = 1;

impl Commands {
    /// Appends a command, and returns its ticket.
    pub(crate) fn push(
        &mut self,
        datapath: DatapathId,
        wants_receipt: bool,
        what: What<'_>,
    ) -> PyResult<u64> {
        self.last_ticket += 1;
        self.append(&Command { datapath, ticket: self.last_ticket, wants_receipt, what })?;
        Ok(self.last_ticket)
    }

    fn append(&mut self, command: &Command<'_>) -> PyResult<()> {
        match write::command(&mut self.frames, command) {
            true => Ok(()),
            false => Err(PyValueError::new_err("the command does not fit a frame")),
        }
    }

    fn without_ticket(&mut self, what: What<'_>) -> PyResult<()> {
        self.append(&Command { datapath: NO_SWITCH, ticket: 0, wants_receipt: false, what })
    }

    /// The open calls, and the buffer in which frames are built.
    pub(crate) fn calls(&mut self) -> (&mut Calls, &mut Vec<u8>) {
        (&mut self.calls, &mut self.frames)
    }

    /// After how much time to wake the app, if it has requested that.
    pub(crate) fn take_wake(&mut self) -> Option<Duration> {
        self.wake_after.take()
    }

    /// Follows these kinds of objects from now on.
    pub(crate) fn follow_view(&mut self, kinds: &[Kind]) -> PyResult<()> {
        self.view = ViewFollower::new(kinds);
        self.open_view(0)
    }

    /// Opens the streams of the view whose time has come.
    pub(crate) fn open_view(&mut self, now_ms: u64) -> PyResult<()> {
        let (mut view, mut opened) = (std::mem::take(&mut self.view), Ok(()));
        view.open_due(now_ms, |service, question| {
            let ticket = self.follow(service, question.to_vec(), 0, 0);
            ticket.unwrap_or_else(|error| {
                opened = Err(error);
                0
            })
        });
        self.view = view;
        opened
    }

    /// What the app knows of the network view.
    pub(crate) fn view_follower(&mut self) -> &mut ViewFollower {
        &mut self.view
    }

    /// Writes a warning of the SDK into the node's log.
    pub(crate) fn warn(&mut self, text: &str) -> PyResult<()> {
        self.log(text, WARNING)
    }

    fn ask_store(&mut self, op: Op, key: &str, value: &[u8]) -> PyResult<u64> {
        self.query(store::SERVICE, &store::Ask { op, key, value }.to_bytes(), 0)
    }

    pub(crate) fn subscribe(&mut self, subscribe: Subscribe<'_>) -> PyResult<()> {
        self.without_ticket(What::Subscribe(subscribe))
    }

    /// Moves the commands to the end of `out`, and keeps the memory.
    pub(crate) fn drain_into(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.frames);
    }
}

#[pymethods]
impl Commands {
    /// Begins a rule for a switch.
    #[pyo3(signature = (datapath, /))]
    fn rule(it: &Bound<'_, Self>, datapath: &Bound<'_, PyAny>) -> PyResult<Rule> {
        Ok(Rule::new(it.clone().unbind(), value::datapath(datapath)?))
    }

    /// Begins a packet-out.
    #[pyo3(signature = (datapath, /))]
    fn packet_out(it: &Bound<'_, Self>, datapath: &Bound<'_, PyAny>) -> PyResult<PacketOut> {
        Ok(PacketOut::new(it.clone().unbind(), value::datapath(datapath)?))
    }

    /// Requests statistics of a switch, and returns the ticket of the replies: `multipart` is an `ofp_multipart_type`, `body` the
    /// body of such a request of OpenFlow 1.3.
    #[pyo3(signature = (datapath, multipart, body=Vec::new()))]
    fn request_stats(&mut self, datapath: &Bound<'_, PyAny>, multipart: u16, body: Vec<u8>) -> PyResult<u64> {
        self.push(
            value::datapath(datapath)?,
            false,
            What::StatsRequest(StatsRequest { multipart, body: &body }),
        )
    }

    /// Sends a barrier: its receipt arrives after the switch has processed all earlier commands. Returns its ticket.
    #[pyo3(signature = (datapath, /))]
    fn barrier(&mut self, datapath: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.push(value::datapath(datapath)?, true, What::Barrier)
    }

    /// Publishes on a topic, named from general to specific: `host.moved`. With `retain`, apps that subscribe later get this value at once; an empty payload removes it.
    #[pyo3(signature = (topic, payload, retain=false))]
    fn publish(&mut self, topic: &str, payload: &[u8], retain: bool) -> PyResult<()> {
        // What is published on one topic stays in order: it all goes by the same worker.
        let ticket = at_home(home_for(topic), 0);
        let what = What::Publish(Publish { topic, retain, payload });
        self.append(&Command { datapath: NO_SWITCH, ticket, wants_receipt: false, what })
    }

    /// Queries a service, and returns the ticket of the answer. The deadline is in milliseconds; 0 is ten seconds.
    #[pyo3(signature = (service, payload, deadline_ms=0))]
    fn query(&mut self, service: &str, payload: &[u8], deadline_ms: u32) -> PyResult<u64> {
        // Calls to one service stay in order: they all go by the same worker.
        self.last_ticket += 1;
        let ticket = at_home(home_for(service), self.last_ticket);
        let what = What::Query(Ask { deadline_ms, ..Ask::query(service, payload) });
        self.append(&Command { datapath: NO_SWITCH, ticket, wants_receipt: true, what })?;
        Ok(ticket)
    }

    /// Follows a stream of a service: a snapshot, then each change. Returns the ticket of the updates in `App.on_stream`. The deadline is for the first
    /// part, in milliseconds; 0 is ten seconds. The credit is the number of bytes that may be on their way; 0 is 64 KiB.
    #[pyo3(signature = (service, payload=Vec::new(), deadline_ms=0, credit_bytes=0))]
    fn follow(
        &mut self,
        service: &str,
        payload: Vec<u8>,
        deadline_ms: u32,
        credit_bytes: u32,
    ) -> PyResult<u64> {
        self.last_ticket += 1;
        let ticket = at_home(home_for(service), self.last_ticket | TICKET_OF_STREAM);
        let ask = Ask { service, form: Form::Stream, deadline_ms, credit_bytes, payload: &payload };
        let what = What::Query(ask);
        self.append(&Command { datapath: NO_SWITCH, ticket, wants_receipt: true, what })?;
        self.calls.follow(ticket, credit_bytes);
        Ok(ticket)
    }

    /// The present network view, as far as the app follows it (`Interests.view`).
    #[getter]
    fn view(&self) -> View {
        View(self.view.view().clone())
    }

    /// Whether the view is complete, and its changes arrive. While a service is away, its part of the view is as it was.
    #[getter]
    fn view_is_current(&self) -> bool {
        self.view.is_current()
    }

    /// Requests one wake-up after so many seconds, at most a day. A later request replaces an earlier one.
    #[pyo3(signature = (seconds, /))]
    fn wake_after(&mut self, seconds: f64) -> PyResult<()> {
        let after = Duration::try_from_secs_f64(seconds)
            .map_err(|error| PyValueError::new_err(format!("{seconds} seconds: {error}")))?;
        self.wake_after = Some(after.min(WAKE_AFTER_MAX));
        Ok(())
    }

    /// Cancels a query, or stops following a stream. Nothing more arrives for its ticket.
    #[pyo3(signature = (ticket, /))]
    fn cancel(&mut self, ticket: u64) -> PyResult<()> {
        self.calls.cancel(ticket);
        self.append(&Command { datapath: NO_SWITCH, ticket, wants_receipt: false, what: What::QueryCancel })
    }

    /// Answers a query, whole (`more` false) or in parts, of any length: the part beyond the caller's credit waits until the caller grants more. `status` 0 means
    /// success; the service defines other numbers.
    #[pyo3(signature = (ticket, payload, status=0, more=false))]
    fn answer(&mut self, ticket: u64, payload: &[u8], status: u16, more: bool) -> PyResult<()> {
        let Commands { calls, frames, .. } = self;
        match calls.answer(frames, ticket, &QueryAnswer { status, more, payload }) {
            true => Ok(()),
            false => Err(PyValueError::new_err("the answer does not fit a frame")),
        }
    }

    /// Requests the value of a key in the store, and returns the ticket of the answer.
    fn store_get(&mut self, key: &str) -> PyResult<u64> {
        self.ask_store(Op::Get, key, &[])
    }

    /// Writes a value under a key in the store; the app then owns the key. Returns the ticket of the answer.
    fn store_put(&mut self, key: &str, value: &[u8]) -> PyResult<u64> {
        self.ask_store(Op::Put, key, value)
    }

    /// Deletes a key from the store, and returns the ticket of the answer.
    fn store_delete(&mut self, key: &str) -> PyResult<u64> {
        self.ask_store(Op::Delete, key, &[])
    }

    /// Lists the keys in the store with this prefix that follow `after`. Returns the ticket of the answers.
    #[pyo3(signature = (prefix, after=""))]
    fn store_list(&mut self, prefix: &str, after: &str) -> PyResult<u64> {
        self.ask_store(Op::List, prefix, after.as_bytes())
    }

    /// Writes a line into the node's log, under the app's name. Levels: 0 error, 1 warning, 2 information, 3 debugging.
    #[pyo3(signature = (text, level=2))]
    fn log(&mut self, text: &str, level: u8) -> PyResult<()> {
        self.without_ticket(What::Log(Log { level, text }))
    }
}
