//! The network view in Python: a state of it, its objects, and its changes.
//!
//! In: snapshots and notices of the Rust SDK. Out: immutable objects with copies of the values. It never keeps tables of its own.

use crate::value;
use burnet_sdk::view::{Batch, ConnectPoint, HostId, Kind, Notice, Object, Record, Snapshot};
use burnet_sdk::view::{Host, Link, LinkState, Port, Switch, SwitchState};
use flow::{MacAddr, PortNo};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A state of the network view. It does not change while the app keeps it.
#[pyclass(frozen, module = "burnet.view")]
pub(crate) struct View(pub(crate) Snapshot);

/// A port of a switch.
#[pyclass(frozen, get_all, eq, hash, module = "burnet.view", name = "ConnectPoint")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PyConnectPoint {
    switch: u64,
    port: u32,
}

/// A switch that is or was connected.
#[pyclass(frozen, get_all, module = "burnet.view")]
#[derive(Debug)]
pub(crate) struct ViewSwitch {
    datapath: u64,
    is_up: bool,
    openflow: String,
    n_tables: u8,
    n_buffers: u32,
    description: BTreeMap<String, String>,
    since_ms: u64,
    annotations: BTreeMap<String, String>,
}

/// A port.
#[pyclass(frozen, get_all, module = "burnet.view")]
#[derive(Debug)]
pub(crate) struct ViewPort {
    at: PyConnectPoint,
    name: String,
    mac: String,
    live: bool,
    enabled: bool,
    speed_kbps: u64,
    annotations: BTreeMap<String, String>,
}

/// One direction of a link.
#[pyclass(frozen, get_all, module = "burnet.view")]
#[derive(Debug)]
pub(crate) struct ViewLink {
    src: PyConnectPoint,
    dst: PyConnectPoint,
    is_up: bool,
    found: String,
    capacity_kbps: u64,
    latency_us: Option<u64>,
    since_ms: u64,
    annotations: BTreeMap<String, String>,
}

/// An end station.
#[pyclass(frozen, get_all, module = "burnet.view")]
#[derive(Debug)]
pub(crate) struct ViewHost {
    mac: String,
    vlan: Option<u16>,
    addresses: Vec<IpAddr>,
    at: PyConnectPoint,
    configured: bool,
    since_ms: u64,
    annotations: BTreeMap<String, String>,
}

/// A change of one object.
#[pyclass(frozen, get_all, module = "burnet.view")]
#[derive(Debug)]
pub(crate) struct ViewChange {
    /// `visible`, `changed` or `invisible`.
    what: &'static str,
    /// `switch`, `port`, `link` or `host`.
    kind: &'static str,
    /// The name of the object.
    key: String,
    /// The object as it was; None if it was not visible.
    before: Py<PyAny>,
    /// The object as it is; None if it is no longer visible.
    now: Py<PyAny>,
}

impl From<ConnectPoint> for PyConnectPoint {
    fn from(at: ConnectPoint) -> Self {
        PyConnectPoint { switch: at.switch.0, port: at.port.0 }
    }
}

impl From<&Switch> for ViewSwitch {
    fn from(it: &Switch) -> Self {
        ViewSwitch {
            datapath: it.id.0,
            is_up: it.state == SwitchState::Up,
            openflow: it.openflow.clone(),
            n_tables: it.n_tables,
            n_buffers: it.n_buffers,
            description: it.description.clone(),
            since_ms: it.since_ms,
            annotations: it.annotations.clone(),
        }
    }
}

impl From<&Port> for ViewPort {
    fn from(it: &Port) -> Self {
        ViewPort {
            at: it.id.into(),
            name: it.name.clone(),
            mac: it.mac.to_string(),
            live: it.live,
            enabled: it.enabled,
            speed_kbps: it.speed_kbps,
            annotations: it.annotations.clone(),
        }
    }
}

impl From<&Link> for ViewLink {
    fn from(it: &Link) -> Self {
        ViewLink {
            src: it.id.from.into(),
            dst: it.id.to.into(),
            is_up: it.state == LinkState::Up,
            found: format!("{:?}", it.found).to_lowercase(),
            capacity_kbps: it.capacity_kbps,
            latency_us: it.latency_us,
            since_ms: it.since_ms,
            annotations: it.annotations.clone(),
        }
    }
}

impl From<&Host> for ViewHost {
    fn from(it: &Host) -> Self {
        ViewHost {
            mac: it.id.mac.to_string(),
            vlan: it.id.vlan,
            addresses: it.addresses.clone(),
            at: it.at.into(),
            configured: it.configured,
            since_ms: it.since_ms,
            annotations: it.annotations.clone(),
        }
    }
}

/// An object of the view in Python. One of a kind without a class is a dictionary, as in its JSON.
fn to_python(py: Python<'_>, record: &Record) -> PyResult<Py<PyAny>> {
    let object = &record.object;
    Ok(if let Object::Switch(it) = object {
        Py::new(py, ViewSwitch::from(it))?.into_any()
    } else if let Object::Port(it) = object {
        Py::new(py, ViewPort::from(it))?.into_any()
    } else if let Object::Link(it) = object {
        Py::new(py, ViewLink::from(it))?.into_any()
    } else if let Object::Host(it) = object {
        Py::new(py, ViewHost::from(it))?.into_any()
    } else {
        let json = PyBytes::new(py, &record.to_bytes());
        py.import("json")?.call_method1("loads", (json,))?.get_item("object")?.unbind()
    })
}

fn change(py: Python<'_>, notice: &Notice) -> PyResult<ViewChange> {
    let (what, before, now) = match notice {
        Notice::Visible(now) => ("visible", None, Some(now)),
        Notice::Changed { before, now } => ("changed", Some(before), Some(now)),
        Notice::Invisible(before) => ("invisible", Some(before), None),
    };
    let object = |record: Option<_>| record.map_or_else(|| Ok(py.None()), |it| to_python(py, it));
    let (kind, key) = (notice.kind().word(), notice.key().to_string());
    Ok(ViewChange {
        what,
        kind,
        key,
        before: object(before.map(|it| &**it))?,
        now: object(now.map(|it| &**it))?,
    })
}

/// The changes of an update, in Python.
pub(crate) fn changes(py: Python<'_>, batch: &Batch) -> PyResult<Vec<ViewChange>> {
    batch.iter().map(|notice| change(py, notice)).collect()
}

/// A kind by its word.
pub(crate) fn kind(word: &str) -> PyResult<Kind> {
    let known = Kind::ALL.iter().find(|kind| kind.word() == word);
    known.copied().ok_or_else(|| {
        let words: Vec<_> = Kind::ALL.iter().map(|kind| kind.word()).collect();
        PyValueError::new_err(format!("{word:?} is no kind of object: write {}", words.join(", ")))
    })
}

fn mac(text: &str) -> PyResult<MacAddr> {
    text.parse().map_err(|why| PyValueError::new_err(format!("{why}")))
}

fn point(switch: &Bound<'_, PyAny>, port: u32) -> PyResult<ConnectPoint> {
    Ok(ConnectPoint { switch: value::datapath(switch)?, port: PortNo(port) })
}

#[pymethods]
impl PyConnectPoint {
    #[new]
    fn new(switch: &Bound<'_, PyAny>, port: u32) -> PyResult<Self> {
        point(switch, port).map(PyConnectPoint::from)
    }

    fn __str__(&self) -> String {
        format!("{}/{}", flow::DatapathId(self.switch), PortNo(self.port))
    }

    fn __repr__(&self) -> String {
        format!("ConnectPoint({:?}, {})", flow::DatapathId(self.switch).to_string(), self.port)
    }
}

#[pymethods]
impl View {
    /// All switches.
    #[getter]
    fn switches(&self) -> Vec<ViewSwitch> {
        self.0.switches().map(ViewSwitch::from).collect()
    }

    /// All ports.
    #[getter]
    fn ports(&self) -> Vec<ViewPort> {
        self.0.ports().map(ViewPort::from).collect()
    }

    /// All links, each direction by itself.
    #[getter]
    fn links(&self) -> Vec<ViewLink> {
        self.0.links().map(ViewLink::from).collect()
    }

    /// All hosts.
    #[getter]
    fn hosts(&self) -> Vec<ViewHost> {
        self.0.hosts().map(ViewHost::from).collect()
    }

    /// One object by its key, such as `host/00:00:00:00:00:01`.
    #[pyo3(signature = (key, /))]
    fn get(&self, py: Python<'_>, key: &str) -> PyResult<Py<PyAny>> {
        let key = key.parse().map_err(|why| PyValueError::new_err(format!("{why}")))?;
        self.0.get(key).map_or_else(|| Ok(py.None()), |record| to_python(py, record))
    }

    /// How many objects of this kind there are.
    #[pyo3(signature = (word, /))]
    fn count(&self, word: &str) -> PyResult<usize> {
        Ok(self.0.count(kind(word)?))
    }

    /// A switch, or None.
    #[pyo3(signature = (switch, /))]
    fn switch(&self, switch: &Bound<'_, PyAny>) -> PyResult<Option<ViewSwitch>> {
        Ok(self.0.switch(value::datapath(switch)?).map(ViewSwitch::from))
    }

    /// A port, or None.
    #[pyo3(signature = (switch, port, /))]
    fn port(&self, switch: &Bound<'_, PyAny>, port: u32) -> PyResult<Option<ViewPort>> {
        Ok(self.0.port(point(switch, port)?).map(ViewPort::from))
    }

    /// A host, or None.
    #[pyo3(signature = (address, /, vlan=None))]
    fn host(&self, address: &str, vlan: Option<u16>) -> PyResult<Option<ViewHost>> {
        Ok(self.0.host(HostId { mac: mac(address)?, vlan }).map(ViewHost::from))
    }

    /// The ports of a switch.
    #[pyo3(signature = (switch, /))]
    fn ports_of(&self, switch: &Bound<'_, PyAny>) -> PyResult<Vec<ViewPort>> {
        Ok(self.0.ports_of(value::datapath(switch)?).map(ViewPort::from).collect())
    }

    /// The links from a switch, or from one of its ports.
    #[pyo3(signature = (switch, port=None, /))]
    fn links_from(&self, switch: &Bound<'_, PyAny>, port: Option<u32>) -> PyResult<Vec<ViewLink>> {
        Ok(match port {
            Some(port) => self.0.links_from(point(switch, port)?).map(ViewLink::from).collect(),
            None => self.0.links_from_switch(value::datapath(switch)?).map(ViewLink::from).collect(),
        })
    }

    /// The links to a switch, or to one of its ports.
    #[pyo3(signature = (switch, port=None, /))]
    fn links_to(&self, switch: &Bound<'_, PyAny>, port: Option<u32>) -> PyResult<Vec<ViewLink>> {
        Ok(match port {
            Some(port) => self.0.links_to(point(switch, port)?).map(ViewLink::from).collect(),
            None => self.0.links_to_switch(value::datapath(switch)?).map(ViewLink::from).collect(),
        })
    }

    /// The hosts of a switch, or at one of its ports.
    #[pyo3(signature = (switch, port=None, /))]
    fn hosts_at(&self, switch: &Bound<'_, PyAny>, port: Option<u32>) -> PyResult<Vec<ViewHost>> {
        Ok(match port {
            Some(port) => self.0.hosts_at(point(switch, port)?).map(ViewHost::from).collect(),
            None => self.0.hosts_of(value::datapath(switch)?).map(ViewHost::from).collect(),
        })
    }

    /// The hosts with this IP address: text, or an object of `ipaddress`.
    #[pyo3(signature = (address, /))]
    fn hosts_with_address(&self, address: &Bound<'_, PyAny>) -> PyResult<Vec<ViewHost>> {
        let text = address.str()?.to_string();
        let address =
            text.parse().map_err(|_| PyValueError::new_err(format!("{text:?} is no IP address")))?;
        Ok(self.0.hosts_with_address(address).map(ViewHost::from).collect())
    }

    /// The hosts with this Ethernet address, at most one in each VLAN.
    #[pyo3(signature = (address, /))]
    fn hosts_with_mac(&self, address: &str) -> PyResult<Vec<ViewHost>> {
        Ok(self.0.hosts_with_mac(mac(address)?).map(ViewHost::from).collect())
    }

    /// Whether a link leaves or reaches this port. Other ports are at the edge of the network.
    #[pyo3(signature = (switch, port, /))]
    fn has_link(&self, switch: &Bound<'_, PyAny>, port: u32) -> PyResult<bool> {
        Ok(self.0.has_link(point(switch, port)?))
    }
}
