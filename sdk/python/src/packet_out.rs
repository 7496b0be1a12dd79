//! A packet-out under construction.
//!
//! In: calls of the app. Out: a packet-out among the commands, once it is sent. It never looks into the frame.

use crate::commands::Commands;
use crate::packet::PacketIn;
use crate::rule::Actions;
use crate::value;
use abi::command::{self, What};
use flow::{DatapathId, PortNo};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// A packet-out under construction. Nothing happens before one of the `send`s; without an action it is dropped. Each method changes it
/// and gives it back.
#[pyclass(module = "burnet", freelist = 16)]
pub(crate) struct PacketOut {
    commands: Py<Commands>,
    datapath: DatapathId,
    buffer_id: Option<u32>,
    in_port: PortNo,
    data: Option<Py<PyBytes>>,
    actions: Actions,
}

impl PacketOut {
    pub(crate) fn new(commands: Py<Commands>, datapath: DatapathId) -> Self {
        let actions = Actions::default();
        PacketOut { commands, datapath, buffer_id: None, in_port: PortNo::CONTROLLER, data: None, actions }
    }

    fn finish(&self, py: Python<'_>, wants_receipt: bool) -> PyResult<u64> {
        let data = self.data.as_ref().map_or(&[][..], |data| data.as_bytes(py));
        let (buffer_id, in_port, actions) = (self.buffer_id, self.in_port, self.actions.0.as_slice());
        let what = What::PacketOut(command::PacketOut { buffer_id, in_port, actions, data });
        self.commands.bind(py).try_borrow_mut()?.push(self.datapath, wants_receipt, what)
    }
}

#[pymethods]
impl PacketOut {
    /// The packet of a packet-in, as it came: from the switch's buffer if it is there, else its bytes.
    fn packet<'py>(mut it: PyRefMut<'py, Self>, packet: &PacketIn) -> PyRefMut<'py, Self> {
        let (in_port, buffer_id, data) = packet.to_send(it.py());
        (it.in_port, it.buffer_id, it.data) = (in_port, buffer_id, data.map(Bound::unbind));
        it
    }

    /// A frame that the app made.
    fn frame<'py>(mut it: PyRefMut<'py, Self>, data: Bound<'_, PyBytes>) -> PyRefMut<'py, Self> {
        (it.buffer_id, it.data) = (None, Some(data.unbind()));
        it
    }

    /// The input port that the switch assumes. FLOOD and ALL do not send there.
    fn in_port<'py>(mut it: PyRefMut<'py, Self>, port: &Bound<'_, PyAny>) -> PyResult<PyRefMut<'py, Self>> {
        it.in_port = value::port(port)?;
        Ok(it)
    }

    /// Outputs to this port. Each call adds a port.
    fn output<'py>(mut it: PyRefMut<'py, Self>, port: &Bound<'_, PyAny>) -> PyResult<PyRefMut<'py, Self>> {
        it.actions.output(port, 0)?;
        Ok(it)
    }

    /// Sets fields of the packet for the outputs after it.
    #[pyo3(signature = (**fields))]
    fn set_field<'py>(
        mut it: PyRefMut<'py, Self>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyRefMut<'py, Self>> {
        it.actions.set_field(fields)?;
        Ok(it)
    }

    /// Adds actions in order, in the syntax of ovs-ofctl.
    #[pyo3(signature = (text, /))]
    fn actions<'py>(mut it: PyRefMut<'py, Self>, text: &str) -> PyResult<PyRefMut<'py, Self>> {
        it.actions.text(text)?;
        Ok(it)
    }

    /// Sends it.
    fn send(&self, py: Python<'_>) -> PyResult<()> {
        self.finish(py, false).map(drop)
    }

    /// Sends it, requests a receipt, and returns the ticket of the receipt.
    fn send_with_receipt(&self, py: Python<'_>) -> PyResult<u64> {
        self.finish(py, true)
    }
}
