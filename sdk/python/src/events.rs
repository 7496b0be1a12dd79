//! The Python types of all events except packet-ins.
//!
//! In: events read in place. Out: immutable objects with copies of the values. It never decodes a byte: `abi` does.

use crate::value;
use abi::event;
use burnet_sdk::Form;
use burnet_sdk::stream::Update;
use flow::canonical::read_match;
use flow::{Field, MatchEntry};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// A port of a switch.
#[pyclass(frozen, get_all, module = "burnet")]
#[derive(Clone, Debug)]
pub(crate) struct Port {
    /// Its number.
    port_no: u32,
    /// Its Ethernet address.
    hw_addr: String,
    /// Whether the port is up and its link is up.
    live: bool,
    /// Whether the port is administratively up.
    administratively_up: bool,
    /// Its rate; 0 if unknown.
    curr_speed_kbps: u32,
    /// Its name.
    name: String,
}

impl From<&event::PortRecord> for Port {
    fn from(record: &event::PortRecord) -> Self {
        let facts = record.facts();
        Port {
            port_no: facts.port_no.0,
            hw_addr: facts.hw_addr.to_string(),
            live: facts.live,
            administratively_up: facts.administratively_up,
            curr_speed_kbps: facts.curr_speed_kbps,
            name: facts.name.to_owned(),
        }
    }
}

/// A switch and its ports when it connected.
#[pyclass(frozen, get_all, module = "burnet")]
#[derive(Debug)]
pub(crate) struct SwitchUp {
    /// The switch.
    datapath: u64,
    /// How many packets it can buffer; 0: every packet-in has the whole packet.
    n_buffers: u32,
    /// How many tables it has.
    n_tables: u8,
    /// Its ports.
    ports: Vec<Port>,
}

impl From<&event::SwitchUp<'_>> for SwitchUp {
    fn from(up: &event::SwitchUp<'_>) -> Self {
        SwitchUp {
            datapath: up.datapath.0,
            n_buffers: up.n_buffers,
            n_tables: up.n_tables,
            ports: up.ports.iter().map(Port::from).collect(),
        }
    }
}

/// A port status.
#[pyclass(frozen, get_all, module = "burnet")]
#[derive(Debug)]
pub(crate) struct PortStatus {
    /// The switch of the port.
    datapath: u64,
    /// 0 added, 1 deleted, 2 modified.
    reason: u8,
    /// The port as it is now.
    port: Port,
}

impl From<&event::PortStatus<'_>> for PortStatus {
    fn from(status: &event::PortStatus<'_>) -> Self {
        PortStatus { datapath: status.datapath.0, reason: status.reason, port: status.port.into() }
    }
}

/// A removed rule.
#[pyclass(frozen, module = "burnet")]
#[derive(Debug)]
pub(crate) struct FlowRemoved {
    /// The switch that sent it.
    #[pyo3(get)]
    datapath: u64,
    /// The app's part of its cookie.
    #[pyo3(get)]
    cookie: u64,
    /// The zone of the app that added it.
    #[pyo3(get)]
    owner: u16,
    /// How long it existed, in seconds.
    #[pyo3(get)]
    duration_s: f64,
    /// Packets that it matched.
    #[pyo3(get)]
    packet_count: u64,
    /// Bytes that it matched.
    #[pyo3(get)]
    byte_count: u64,
    /// Its priority.
    #[pyo3(get)]
    priority: u16,
    /// 0 idle time-out, 1 hard time-out, 2 delete, 3 group delete.
    #[pyo3(get)]
    reason: u8,
    /// Its table.
    #[pyo3(get)]
    table_id: u8,
    matching: Vec<(Field, u128, Option<u128>)>,
}

impl From<&event::FlowRemoved<'_>> for FlowRemoved {
    fn from(removed: &event::FlowRemoved<'_>) -> Self {
        let matching = read_match(removed.matching).unwrap_or_default();
        let known = |entry: &MatchEntry| match entry {
            MatchEntry::Field { field, value, mask } => Some((*field, *value, *mask)),
            MatchEntry::Unknown { .. } => None,
        };
        FlowRemoved {
            datapath: removed.datapath.0,
            cookie: removed.own_cookie(),
            owner: removed.owner().0,
            duration_s: f64::from(removed.duration_s) + f64::from(removed.duration_ns) / 1e9,
            packet_count: removed.packet_count,
            byte_count: removed.byte_count,
            priority: removed.priority,
            reason: removed.reason,
            table_id: removed.table_id,
            matching: matching.entries().iter().filter_map(known).collect(),
        }
    }
}

#[pymethods]
impl FlowRemoved {
    /// Its match, by the names of the fields; a field with a mask is a pair of value and mask. `rule(…).matching(**removed.matching)` gives
    /// the same match.
    #[getter]
    fn matching<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let matching = PyDict::new(py);
        for (field, value, mask) in &self.matching {
            let value = value::to_python(py, *field, *value)?;
            match mask {
                None => matching.set_item(field.name(), value)?,
                Some(mask) => {
                    matching.set_item(field.name(), (value, value::to_python(py, *field, *mask)?))?
                }
            }
        }
        Ok(matching)
    }
}

/// An error of a switch about a command of this app without a receipt.
#[pyclass(frozen, get_all, module = "burnet")]
#[derive(Debug)]
pub(crate) struct SwitchError {
    /// The switch.
    datapath: u64,
    /// The error's type, in the numbers of OpenFlow 1.3.
    error_type: u16,
    /// The error's code.
    error_code: u16,
    /// The ticket of the command; 0 if it had none.
    ticket: u64,
    /// The reason as text for people.
    reason: String,
}

impl From<&event::SwitchError<'_>> for SwitchError {
    fn from(error: &event::SwitchError<'_>) -> Self {
        SwitchError {
            datapath: error.datapath.0,
            error_type: error.error.kind,
            error_code: error.error.code,
            ticket: error.ticket,
            reason: error.reason.to_owned(),
        }
    }
}

/// An experimenter message of a switch.
#[pyclass(frozen, get_all, module = "burnet")]
#[derive(Debug)]
pub(crate) struct Experimenter {
    /// The switch that sent it.
    datapath: u64,
    /// The vendor's number.
    experimenter: u32,
    /// The vendor's number for the message.
    exp_type: u32,
    /// The bytes behind it.
    data: Py<PyBytes>,
}

impl Experimenter {
    pub(crate) fn new(py: Python<'_>, it: &event::Experimenter<'_>) -> Self {
        let data = PyBytes::new(py, it.data).unbind();
        let (datapath, experimenter, exp_type) = (it.datapath.0, it.experimenter, it.exp_type);
        Experimenter { datapath, experimenter, exp_type, data }
    }
}

/// The label of the link that begins at a port.
#[pyclass(frozen, get_all, module = "burnet")]
#[derive(Clone, Debug)]
pub(crate) struct Label {
    /// The port where packets enter the link.
    port: u32,
    /// What the flows of others leave of the link. `None`: the port has no label any more.
    label_kbps: Option<u64>,
    /// What the link carries. `None`: it is unknown.
    capacity_kbps: Option<u64>,
}

/// Labels of one switch.
#[pyclass(frozen, get_all, module = "burnet")]
#[derive(Debug)]
pub(crate) struct Labels {
    /// The switch.
    datapath: u64,
    /// All labels, also earlier ones, may be too high.
    is_stale: bool,
    /// The labels that are told.
    labels: Vec<Label>,
}

impl From<&burnet_sdk::Labels<'_>> for Labels {
    fn from(told: &burnet_sdk::Labels<'_>) -> Self {
        let label = |it: burnet_sdk::Label| Label {
            port: it.port.0,
            label_kbps: it.label_kbps,
            capacity_kbps: it.capacity_kbps,
        };
        Labels { datapath: told.datapath.0, is_stale: told.is_stale, labels: told.iter().map(label).collect() }
    }
}

/// A statistics reply, or a part of one.
#[pyclass(frozen, get_all, module = "burnet")]
#[derive(Debug)]
pub(crate) struct StatsReply {
    /// The switch that sent it.
    datapath: u64,
    /// The request's ticket.
    ticket: u64,
    /// `ofp_multipart_type`.
    multipart: u16,
    /// Whether another part follows.
    more: bool,
    /// The body of a multipart reply of OpenFlow 1.3, for every version of the switch.
    body: Py<PyBytes>,
}

impl StatsReply {
    pub(crate) fn new(py: Python<'_>, reply: &event::StatsReply<'_>) -> Self {
        let body = PyBytes::new(py, reply.body).unbind();
        let (datapath, ticket, multipart, more) =
            (reply.datapath.0, reply.ticket, reply.multipart, reply.more);
        StatsReply { datapath, ticket, multipart, more, body }
    }
}

/// The receipt of a command.
#[pyclass(frozen, get_all, module = "burnet")]
#[derive(Debug)]
pub(crate) struct Receipt {
    /// The switch of the command.
    datapath: u64,
    /// The command's ticket.
    ticket: u64,
    /// `programmed`, `refused` (by the kernel), `failed` (the switch's error) or `unknown` (the session ended first).
    outcome: String,
    /// For `failed`: the switch's error, in the numbers of OpenFlow 1.3. Otherwise 0.
    error_type: u16,
    /// The error's code.
    error_code: u16,
    /// The reason as text for people. Empty for `programmed`.
    reason: String,
}

impl Receipt {
    pub(crate) fn new(datapath: flow::DatapathId, receipt: &abi::Receipt<'_>) -> Self {
        Receipt {
            datapath: datapath.0,
            ticket: receipt.ticket,
            outcome: receipt.outcome.to_string(),
            error_type: receipt.error.kind,
            error_code: receipt.error.code,
            reason: receipt.reason.to_owned(),
        }
    }
}

#[pymethods]
impl Receipt {
    /// Whether the outcome is `programmed`: the switch confirmed it with a barrier, without an error.
    #[getter]
    fn programmed(&self) -> bool {
        self.outcome == abi::Outcome::Programmed.to_string()
    }
}

/// A published message.
#[pyclass(frozen, get_all, module = "burnet")]
#[derive(Debug)]
pub(crate) struct Topic {
    /// The topic, from general to specific: `link.up`.
    topic: String,
    /// The zone of the publisher.
    publisher: u16,
    /// Which run of the publisher: another number after it was restarted.
    run: u32,
    /// One more than the number of the publisher's last publication on this topic, in the same run.
    number: u64,
    /// Whether it was published before the app subscribed.
    is_retained: bool,
    /// The content.
    payload: Py<PyBytes>,
}

impl Topic {
    pub(crate) fn new(py: Python<'_>, topic: &event::Topic<'_>) -> Self {
        let payload = PyBytes::new(py, topic.payload).unbind();
        let event::Topic { run, number, is_retained, .. } = *topic;
        Topic {
            topic: topic.topic.to_owned(),
            publisher: topic.publisher.0,
            run,
            number,
            is_retained,
            payload,
        }
    }
}

/// A query to this app as a service.
#[pyclass(frozen, get_all, module = "burnet")]
#[derive(Debug)]
pub(crate) struct Query {
    /// The ticket of the call. The answer needs it.
    ticket: u64,
    /// The number of the caller's zone.
    caller: u32,
    /// The name of the calling app.
    caller_name: String,
    /// The part of its grant that concerns this service; empty if there is none.
    grant: Py<PyBytes>,
    /// The name by which the service was called.
    service: String,
    /// Whether the caller follows a stream: `Table.follow` answers it.
    is_stream: bool,
    /// How many bytes the answer may have before the caller grants more credit.
    credit_bytes: u32,
    /// The question.
    payload: Py<PyBytes>,
}

impl Query {
    pub(crate) fn new(py: Python<'_>, query: &event::Query<'_>) -> Self {
        let bytes = |bytes| PyBytes::new(py, bytes).unbind();
        Query {
            ticket: query.ticket,
            caller: query.caller.number,
            caller_name: query.caller.name.to_owned(),
            grant: bytes(query.caller.grant),
            service: query.service.to_owned(),
            is_stream: query.form == Form::Stream,
            credit_bytes: query.credit_bytes,
            payload: bytes(query.payload),
        }
    }

    /// The parts that a table needs to answer it.
    pub(crate) fn to_follow(&self) -> event::Query<'_> {
        let form = if self.is_stream { Form::Stream } else { Form::Query };
        event::Query {
            ticket: self.ticket,
            caller: event::Caller { number: self.caller, name: &self.caller_name, grant: &[] },
            service: &self.service,
            form,
            deadline_ms: 0,
            credit_bytes: self.credit_bytes,
            payload: &[],
        }
    }
}

/// The whole answer to a query, or the reason why there is none.
#[pyclass(frozen, get_all, module = "burnet")]
#[derive(Debug)]
pub(crate) struct QueryReply {
    /// The query's ticket.
    ticket: u64,
    /// 0: success. From 0xff00 on, it is a `burnet.QueryStatus`. The service defines other numbers; those of the store are in `burnet.store`.
    status: u16,
    /// The payload.
    payload: Py<PyBytes>,
}

impl QueryReply {
    pub(crate) fn new(py: Python<'_>, reply: &event::QueryReply<'_>) -> Self {
        let payload = PyBytes::new(py, reply.payload).unbind();
        QueryReply { ticket: reply.ticket, status: reply.status, payload }
    }
}

#[pymethods]
impl QueryReply {
    /// The keys in an answer to `Commands.store_list`.
    fn keys(&self, py: Python<'_>) -> Vec<String> {
        burnet_sdk::store::keys(self.payload.as_bytes(py)).map(str::to_owned).collect()
    }
}

/// An update of a stream that the app follows.
#[pyclass(frozen, get_all, module = "burnet")]
#[derive(Debug)]
pub(crate) struct StreamUpdate {
    /// The ticket that `Commands.follow` gave.
    ticket: u64,
    /// `begin`, `entry`, `complete`, `put`, `removed`, `missed` or `ended`.
    kind: &'static str,
    /// The number of the last change that arrived, is in the snapshot, or was missed; 0 for `entry` and `ended`.
    number: u64,
    /// The key, of `entry`, `put` and `removed`.
    key: Py<PyBytes>,
    /// The value, of `entry` and `put`; of `ended`, a sentence for people.
    value: Py<PyBytes>,
    /// How many changes were missed.
    missed: u64,
    /// The reason of the end: a `QueryStatus`, or a status of the service.
    status: u16,
}

impl StreamUpdate {
    pub(crate) fn new(py: Python<'_>, ticket: u64, update: &Update<'_>) -> Self {
        type Parts<'p> = (&'static str, u64, &'p [u8], &'p [u8]);
        let (kind, number, key, value): Parts<'_> = match *update {
            Update::Begin { number } => ("begin", number, &[], &[]),
            Update::Entry { key, value } => ("entry", 0, key, value),
            Update::Complete { number } => ("complete", number, &[], &[]),
            Update::Put { number, key, value } => ("put", number, key, value),
            Update::Removed { number, key } => ("removed", number, key, &[]),
            Update::Missed { to, .. } => ("missed", to, &[], &[]),
            Update::Ended { reason, .. } => ("ended", 0, &[], reason),
        };
        let status = if let Update::Ended { status, .. } = *update { status } else { 0 };
        let bytes = |bytes| PyBytes::new(py, bytes).unbind();
        let (key, value) = (bytes(key), bytes(value));
        StreamUpdate { ticket, kind, number, key, value, missed: update.missed(), status }
    }
}

/// A soft limit that the app exceeds, or does not exceed any more. Above the hard limit, commands are refused or the app is stopped.
#[pyclass(frozen, get_all, module = "burnet")]
#[derive(Debug)]
pub(crate) struct SoftLimit {
    /// The switch; 0 if the limit is not for one switch.
    datapath: u64,
    /// 1 commands a second, 2 packet-outs a second, 3 the app's rules on one switch, 4 all entries in a switch's tables; 5 processor time in
    /// hundredths of a core, 6 memory in KiB, 7 open descriptors, 8 threads, 9 milliseconds for which data in the ring was unread, 10 bytes in the store.
    quota: u16,
    /// How much is used. For a rate, this is the soft limit.
    used: u32,
    /// Above this value, the app gets this event.
    soft: u32,
    /// Above this value, commands are refused or the app is stopped.
    hard: u32,
}

impl From<&event::SoftLimit> for SoftLimit {
    fn from(limit: &event::SoftLimit) -> Self {
        let event::SoftLimit { datapath, quota, used, soft, hard } = *limit;
        SoftLimit { datapath: datapath.0, quota, used, soft, hard }
    }
}
