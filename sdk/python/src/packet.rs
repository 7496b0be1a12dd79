//! The Python type of a packet-in. A field is decoded when the app reads it.
//!
//! In: an event's bytes. Out: a `PacketIn` that holds the frame as Python bytes.
//! It copies the bytes out of the ring, so an app may keep a packet.

use crate::value;
use abi::event;
use flow::canonical::read_match;
use flow::frame::FrameFields;
use flow::{DatapathId, PortNo};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

/// A packet-in.
#[pyclass(frozen, module = "burnet", freelist = 64)]
pub(crate) struct PacketIn {
    /// The switch that sent it.
    #[pyo3(get)]
    datapath: u64,
    /// The input port.
    #[pyo3(get)]
    in_port: u32,
    /// The buffer id in the switch, or None if `data` is the whole packet.
    #[pyo3(get)]
    buffer_id: Option<u32>,
    /// Its length on the wire; `data` may be shorter.
    #[pyo3(get)]
    total_len: u16,
    /// 0 no match, 1 by an action, 2 invalid time-to-live.
    #[pyo3(get)]
    reason: u8,
    /// The table that sent it.
    #[pyo3(get)]
    table_id: u8,
    /// The cookie of the rule that sent it; all ones if the switch does not report it.
    #[pyo3(get)]
    cookie: u64,
    metadata: Box<[u8]>,
    data: Py<PyBytes>,
}

/// Canonical bytes of `in_port` alone: a header of four bytes, and four of the port.
const IN_PORT_BYTES: usize = 8;

impl PacketIn {
    pub(crate) fn new(py: Python<'_>, packet: &event::PacketIn<'_>) -> Self {
        PacketIn {
            datapath: packet.datapath.0,
            in_port: packet.in_port.0,
            buffer_id: packet.buffer_id,
            total_len: packet.total_len,
            reason: packet.reason,
            table_id: packet.table_id,
            cookie: packet.cookie,
            // Kept only where a switch says more of it than its port, so that usually nothing is allocated.
            metadata: if packet.metadata.len() > IN_PORT_BYTES {
                packet.metadata.into()
            } else {
                Box::default()
            },
            data: PyBytes::new(py, packet.data).unbind(),
        }
    }

    /// The port and buffer for a packet-out of this packet, and the bytes if the switch has not buffered them.
    pub(crate) fn to_send<'py>(&self, py: Python<'py>) -> (PortNo, Option<u32>, Option<Bound<'py, PyBytes>>) {
        let data = self.buffer_id.is_none().then(|| self.data.bind(py).clone());
        (PortNo(self.in_port), self.buffer_id, data)
    }

    fn address<'py>(&self, py: Python<'py>, at: usize) -> Bound<'py, PyString> {
        let octets = self.data.as_bytes(py).get(at..at + 6).and_then(|octets| octets.try_into().ok());
        let text = address_text(octets.unwrap_or_default());
        PyString::new(py, std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// The same text as of a MacAddr, but faster: nearly every handler reads two addresses.
fn address_text(octets: [u8; 6]) -> [u8; 17] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b':'; 17];
    for (place, octet) in text.chunks_mut(3).zip(octets) {
        place[0] = DIGITS[usize::from(octet >> 4)];
        place[1] = DIGITS[usize::from(octet & 0xf)];
    }
    text
}

#[pymethods]
impl PacketIn {
    /// The frame, or its beginning.
    #[getter]
    fn data(&self, py: Python<'_>) -> Py<PyBytes> {
        self.data.clone_ref(py)
    }

    /// Its destination, `02:00:00:00:00:01`; zeros if the frame is too short.
    #[getter]
    fn eth_dst<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        self.address(py, 0)
    }

    /// Its source address.
    #[getter]
    fn eth_src<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        self.address(py, 6)
    }

    /// Its EtherType after all VLAN tags; 0 if the frame is too short.
    #[getter]
    fn eth_type(&self, py: Python<'_>) -> u16 {
        /// 802.1Q, 802.1ad.
        const TAGS: [u16; 2] = [0x8100, 0x88a8];
        let word = |at: usize| self.data.as_bytes(py).get(at..at + 2).and_then(|word| word.try_into().ok());
        let mut at = 12;
        loop {
            match word(at).map(u16::from_be_bytes) {
                Some(tag) if TAGS.contains(&tag) => at += 4,
                found => return found.unwrap_or_default(),
            }
        }
    }

    /// Whether it is for more than one host: a broadcast or a multicast.
    #[getter]
    fn is_multicast(&self, py: Python<'_>) -> bool {
        self.data.as_bytes(py).first().is_some_and(|octet| octet & 1 == 1)
    }

    /// All fields that a switch can match, by name: `fields()["ipv4_dst"]`. Addresses are text, other fields are numbers. Fields that the frame does
    /// not have are missing.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        for (field, value) in self.read(py).iter() {
            fields.set_item(field.name(), value::to_python(py, field, value)?)?;
        }
        Ok(fields)
    }

    /// One of these fields, or None.
    #[pyo3(signature = (name, /))]
    fn field<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let field = value::field(name)?;
        self.read(py).get(field).map(|there| value::to_python(py, field, there)).transpose()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (datapath, port) = (DatapathId(self.datapath), PortNo(self.in_port));
        let (from, to) = (self.eth_src(py), self.eth_dst(py));
        format!("<PacketIn {datapath} in_port={port} {from} > {to} eth_type={:#06x}>", self.eth_type(py))
    }
}

impl PacketIn {
    fn read(&self, py: Python<'_>) -> FrameFields {
        let mut fields = FrameFields::read(self.data.as_bytes(py));
        // What the switch says of it besides: metadata, tunnel. What cannot be read is not there.
        for entry in read_match(&self.metadata).unwrap_or_default().entries() {
            if let flow::MatchEntry::Field { field, value, .. } = entry {
                fields.set(*field, *value);
            }
        }
        fields.from_port(PortNo(self.in_port))
    }
}
