//! Tests an app without a node: makes events, and returns the commands as text.
//!
//! In: calls of a test. Out: one line for each command. Never starts a process or a thread.

use crate::dispatch::Instance;
use crate::value;
use abi::event::{self, PortFacts, PortRecord};
use abi::{Outcome, Receipt};
use burnet_sdk::Form;
use burnet_sdk::view::{Change, Key, Object, Record, Stamp};
use flow::{DatapathId, MacAddr, PortNo};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// An app in a test, as `make` returns it for its settings. Its subscription is not applied.
#[pyclass(module = "burnet.testing", subclass)]
pub(crate) struct Trial {
    instance: Instance,
    sequence: u64,
}

impl Trial {
    fn event(
        &mut self,
        py: Python<'_>,
        write: impl FnOnce(&mut Vec<u8>, u64) -> bool,
    ) -> PyResult<Vec<String>> {
        self.sequence += 1;
        let (mut frame, mut commands) = (Vec::new(), Vec::new());
        if !write(&mut frame, self.sequence) {
            return Err(PyValueError::new_err("the event does not fit a frame"));
        }
        self.instance.on_events(py, &frame, &mut commands)?;
        Ok(burnet_sdk::testing::in_words(&commands))
    }
}

impl Trial {
    fn view_changes(&mut self, py: Python<'_>, changes: Vec<(Key, Option<Object>)>) -> PyResult<Vec<String>> {
        self.sequence += 1;
        let stamp = Stamp { term: 0, sequence: self.sequence, origin: 0 };
        let changes = changes.into_iter().map(|(key, object)| Change { stamp, key, object }).collect();
        let mut commands = Vec::new();
        self.instance.change_view(py, changes, &mut commands)?;
        Ok(burnet_sdk::testing::in_words(&commands))
    }
}

fn port_record(number: u32, live: bool) -> PortRecord {
    PortRecord::new(PortFacts {
        port_no: PortNo(number),
        hw_addr: MacAddr::from_u64(u64::from(number)),
        live,
        administratively_up: true,
        curr_speed_kbps: 10_000_000,
        name: &format!("port{number}"),
    })
}

#[pymethods]
impl Trial {
    #[new]
    #[pyo3(signature = (make, settings, /))]
    fn new(make: &Bound<'_, PyAny>, settings: &str) -> PyResult<Self> {
        Ok(Trial { instance: Instance::start(make, settings, &mut Vec::new())?, sequence: 0 })
    }

    /// The app.
    #[getter]
    fn app(&self, py: Python<'_>) -> Py<PyAny> {
        self.instance.app(py)
    }

    /// A switch connects with ports of these numbers.
    fn switch_up(&mut self, py: Python<'_>, datapath: u64, ports: Vec<u32>) -> PyResult<Vec<String>> {
        let ports: Vec<_> = ports.into_iter().map(|number| port_record(number, true)).collect();
        let datapath = DatapathId(datapath);
        let up = event::SwitchUp {
            datapath,
            n_buffers: 0,
            n_tables: 1,
            openflow: event::OpenFlowVersion::V1_3,
            ports: &ports,
        };
        self.event(py, |out, sequence| event::write::switch_up(out, sequence, &up))
    }

    /// The time passes for which the app requested a wake-up. `None` if it requested none.
    fn wake(&mut self, py: Python<'_>) -> PyResult<Option<Vec<String>>> {
        if self.instance.take_wake(py).is_none() {
            return Ok(None);
        }
        let mut commands = Vec::new();
        self.instance.on_wake(py, &mut commands)?;
        Ok(Some(burnet_sdk::testing::in_words(&commands)))
    }

    /// The network view changes by these objects, in one update. Each is the JSON of an object.
    #[pyo3(signature = (objects, /))]
    fn view_changed(&mut self, py: Python<'_>, objects: Vec<String>) -> PyResult<Vec<String>> {
        let read = |json: &String| {
            let record =
                format!("{{\"stamp\":{{\"term\":0,\"sequence\":0,\"origin\":0}},\"object\":{json}}}");
            Record::from_bytes(record.as_bytes()).map(|record| (record.object.key(), Some(record.object)))
        };
        let changes: Result<_, _> = objects.iter().map(read).collect();
        self.view_changes(py, changes.map_err(PyValueError::new_err)?)
    }

    /// Objects with these keys disappear from the network view, in one update.
    #[pyo3(signature = (*keys))]
    fn view_removed(&mut self, py: Python<'_>, keys: Vec<String>) -> PyResult<Vec<String>> {
        let keys: Result<Vec<Key>, _> = keys.iter().map(|key| key.parse()).collect();
        let keys = keys.map_err(|why| PyValueError::new_err(why.to_string()))?;
        self.view_changes(py, keys.into_iter().map(|key| (key, None)).collect())
    }

    /// A switch disconnects.
    fn switch_down(&mut self, py: Python<'_>, datapath: u64) -> PyResult<Vec<String>> {
        self.event(py, |out, sequence| event::write::switch_down(out, sequence, DatapathId(datapath)))
    }

    /// A frame comes up: whole, as from a switch that buffers nothing, or its beginning and the number of its buffer.
    #[pyo3(signature = (datapath, in_port, data, buffer_id=None))]
    fn packet_in(
        &mut self,
        py: Python<'_>,
        datapath: u64,
        in_port: u32,
        data: &[u8],
        buffer_id: Option<u32>,
    ) -> PyResult<Vec<String>> {
        let packet = event::PacketIn {
            datapath: DatapathId(datapath),
            in_port: PortNo(in_port),
            buffer_id,
            total_len: u16::try_from(data.len()).unwrap_or(u16::MAX),
            reason: 0,
            table_id: 0,
            cookie: 0,
            metadata: &[],
            data,
        };
        self.event(py, |out, sequence| event::write::packet_in(out, sequence, &packet))
    }

    /// A port changes: 0 added, 1 deleted, 2 modified.
    #[pyo3(signature = (datapath, port_no, reason=2, live=true))]
    fn port_status(
        &mut self,
        py: Python<'_>,
        datapath: u64,
        port_no: u32,
        reason: u8,
        live: bool,
    ) -> PyResult<Vec<String>> {
        let port = port_record(port_no, live);
        let status = event::PortStatus { datapath: DatapathId(datapath), reason, port: &port };
        self.event(py, |out, sequence| event::write::port_status(out, sequence, &status))
    }

    /// A rule goes by its idle time-out; the match is said as for a rule.
    #[pyo3(signature = (datapath, cookie=0, **fields))]
    fn flow_removed(
        &mut self,
        py: Python<'_>,
        datapath: u64,
        cookie: u64,
        fields: Option<&Bound<'_, pyo3::types::PyDict>>,
    ) -> PyResult<Vec<String>> {
        let mut matching = crate::rule::Matching::default();
        matching.add(fields)?;
        let removed = event::FlowRemoved {
            datapath: DatapathId(datapath),
            cookie,
            duration_s: 60,
            duration_ns: 0,
            packet_count: 0,
            byte_count: 0,
            priority: 0,
            idle_timeout_s: 60,
            hard_timeout_s: 0,
            reason: 0,
            table_id: 0,
            matching: matching.bytes(),
        };
        self.event(py, |out, sequence| event::write::flow_removed(out, sequence, &removed))
    }

    /// An experimenter message comes from a switch.
    #[pyo3(signature = (datapath, experimenter, exp_type, data=Vec::new()))]
    fn experimenter(
        &mut self,
        py: Python<'_>,
        datapath: u64,
        experimenter: u32,
        exp_type: u32,
        data: Vec<u8>,
    ) -> PyResult<Vec<String>> {
        let message =
            event::Experimenter { datapath: DatapathId(datapath), experimenter, exp_type, data: &data };
        self.event(py, |out, sequence| event::write::experimenter(out, sequence, &message))
    }

    /// A receipt comes: `programmed`, `refused`, `failed` or `unknown`.
    #[pyo3(signature = (datapath, ticket, outcome="programmed", reason=""))]
    fn receipt(
        &mut self,
        py: Python<'_>,
        datapath: &Bound<'_, PyAny>,
        ticket: u64,
        outcome: &str,
        reason: &str,
    ) -> PyResult<Vec<String>> {
        let outcomes = (0..=3).filter_map(Outcome::from_number);
        let outcome = outcomes.into_iter().find(|known| known.to_string() == outcome);
        let outcome = outcome.ok_or_else(|| PyValueError::new_err("unknown outcome"))?;
        let receipt = Receipt { ticket, outcome, error: flow::ErrorCode { kind: 0, code: 0 }, reason };
        let datapath = value::datapath(datapath)?;
        self.event(py, |out, sequence| event::write::receipt(out, sequence, datapath, &receipt))
    }

    /// An answer, or a part of one, to a query arrives. Queries to the store are queries too.
    #[pyo3(signature = (ticket, payload=Vec::new(), status=0, more=false))]
    fn query_reply(
        &mut self,
        py: Python<'_>,
        ticket: u64,
        payload: Vec<u8>,
        status: u16,
        more: bool,
    ) -> PyResult<Vec<String>> {
        let reply = event::QueryReply { ticket, status, more, payload: &payload };
        self.event(py, |out, sequence| event::write::query_reply(out, sequence, &reply))
    }

    /// A call to the app as a service arrives, from zone 1 with the name `caller`.
    #[pyo3(signature = (ticket, payload=Vec::new(), stream=false, credit_bytes=65536))]
    fn query(
        &mut self,
        py: Python<'_>,
        ticket: u64,
        payload: Vec<u8>,
        stream: bool,
        credit_bytes: u32,
    ) -> PyResult<Vec<String>> {
        let caller = event::Caller { number: 1, name: "caller", grant: &[] };
        let form = if stream { Form::Stream } else { Form::Query };
        let (service, deadline_ms) = ("service", 10_000);
        let query =
            event::Query { ticket, caller, service, form, deadline_ms, credit_bytes, payload: &payload };
        self.event(py, |out, sequence| event::write::query(out, sequence, &query))
    }

    /// The caller of a call to the app grants more credit.
    fn query_credit(&mut self, py: Python<'_>, ticket: u64, bytes: u32) -> PyResult<Vec<String>> {
        let credit = event::Credit { ticket, bytes };
        self.event(py, |out, sequence| event::write::query_credit(out, sequence, credit))
    }

    /// The clock ticks.
    fn tick(&mut self, py: Python<'_>, now_ms: u64) -> PyResult<Vec<String>> {
        self.event(py, |out, sequence| event::write::tick(out, sequence, now_ms))
    }

    /// The zone will end.
    fn shutdown(&mut self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.event(py, event::write::shutdown)
    }
}
