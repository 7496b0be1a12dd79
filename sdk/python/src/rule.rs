//! A rule under construction, and its parts that packet-outs use too: a match, a list of actions.
//!
//! In: calls of the app. Out: a flow mod among the commands, once it is sent.
//! It never checks whether the switch supports the rule: the kernel and the switch do.

use crate::commands::Commands;
use crate::value;
use abi::command::{FlowMod, What};
use flow::canonical::{ActionWriter, InstructionWriter, MatchWriter, write_actions};
use flow::text::parse_actions;
use flow::{DatapathId, Field};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// A match as canonical bytes, and which fields are there already.
#[derive(Clone, Default)]
pub(crate) struct Matching {
    bytes: Vec<u8>,
    present: u64,
}

impl Matching {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds each keyword argument as a field.
    pub(crate) fn add(&mut self, fields: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        for (name, value) in fields.into_iter().flatten() {
            self.add_field(name.cast::<PyString>()?.to_str()?, &value)?;
        }
        Ok(())
    }

    fn add_field(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let field = value::field(name)?;
        let bit = 1 << field.number();
        if self.present & bit != 0 {
            return Err(PyValueError::new_err(format!("{name} is in the match twice")));
        }
        self.present |= bit;
        let mut writer = MatchWriter::new(&mut self.bytes);
        match value::field_value(field, value)? {
            (value, None) => writer.field(field, value),
            (value, Some(mask)) => writer.masked(field, value, mask),
        };
        Ok(())
    }
}

/// Actions as canonical bytes.
#[derive(Default)]
pub(crate) struct Actions(pub(crate) Vec<u8>);

impl Actions {
    pub(crate) fn output(&mut self, port: &Bound<'_, PyAny>, max_len: u16) -> PyResult<()> {
        let port = value::port(port)?;
        ActionWriter::new(&mut self.0).output(port, max_len);
        Ok(())
    }

    pub(crate) fn set_field(&mut self, fields: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        for (name, value) in fields.into_iter().flatten() {
            let field: Field = value::field(name.cast::<PyString>()?.to_str()?)?;
            let value = value::whole_value(field, &value)?;
            ActionWriter::new(&mut self.0).set_field(field, value);
        }
        Ok(())
    }

    /// In the syntax of ovs-ofctl.
    pub(crate) fn text(&mut self, text: &str) -> PyResult<()> {
        let actions = parse_actions(text).map_err(|bad| PyValueError::new_err(bad.to_string()))?;
        write_actions(&actions, &mut self.0).map_err(|bad| PyValueError::new_err(bad.to_string()))
    }
}

/// `ofp_flow_mod_command` and `ofp_flow_mod_flags` as far as they are used here.
const MODIFY_STRICT: u8 = 2;
const DELETE: u8 = 3;
const DELETE_STRICT: u8 = 4;
const SEND_FLOW_REMOVED: u16 = 1;
const EVERY_TABLE: u8 = 0xff;

/// A match of five fields, or four outputs: what most rules have at most, so that most grow no further.
const USUAL_BYTES: usize = 64;

/// A rule that is being put together: an add in table 0 of priority 0, of every packet, that never times out and drops. Nothing happens
/// before one of the `send`s. Each method changes it and gives it back.
#[pyclass(module = "burnet", freelist = 16)]
pub(crate) struct Rule {
    commands: Py<Commands>,
    datapath: DatapathId,
    fields: FlowMod<'static>,
    matching: Matching,
    actions: Actions,
    /// Instructions beside the actions.
    instructions: Vec<u8>,
}

impl Rule {
    pub(crate) fn new(commands: Py<Commands>, datapath: DatapathId) -> Self {
        Rule {
            commands,
            datapath,
            fields: FlowMod::ADD,
            matching: Matching { bytes: Vec::with_capacity(USUAL_BYTES), present: 0 },
            actions: Actions(Vec::with_capacity(USUAL_BYTES)),
            instructions: Vec::new(),
        }
    }

    fn finish(&mut self, py: Python<'_>, wants_receipt: bool) -> PyResult<u64> {
        let mut instructions = Vec::with_capacity(8 + self.actions.0.len() + self.instructions.len());
        if !self.actions.0.is_empty() {
            apply(&mut instructions, &self.actions.0)?;
        }
        instructions.extend_from_slice(&self.instructions);
        let rule = FlowMod { matching: &self.matching.bytes, instructions: &instructions, ..self.fields };
        self.commands.bind(py).try_borrow_mut()?.push(self.datapath, wants_receipt, What::FlowMod(rule))
    }
}

/// An apply-actions instruction (OpenFlow 1.3.5, 7.2.4) with these actions, whose bytes are there already.
fn apply(instructions: &mut Vec<u8>, actions: &[u8]) -> PyResult<()> {
    const APPLY_ACTIONS: u16 = 4;
    let length = u16::try_from(8 + actions.len())
        .map_err(|_| PyValueError::new_err("the actions take more than the 65527 bytes of an instruction"))?;
    instructions.extend_from_slice(&APPLY_ACTIONS.to_be_bytes());
    instructions.extend_from_slice(&length.to_be_bytes());
    instructions.extend_from_slice(&[0; 4]);
    instructions.extend_from_slice(actions);
    Ok(())
}

#[pymethods]
impl Rule {
    /// Which packets: `matching(in_port=1, eth_dst="02:00:00:00:00:01", ipv4_dst="10.0.0.0/8")`. The names are those of OpenFlow 1.3. Called
    /// again, it adds.
    #[pyo3(signature = (**fields))]
    fn matching<'py>(
        mut it: PyRefMut<'py, Self>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyRefMut<'py, Self>> {
        it.matching.add(fields)?;
        Ok(it)
    }

    /// Outputs to this port. Each call adds a port.
    #[pyo3(signature = (port, max_len=0))]
    fn output<'py>(
        mut it: PyRefMut<'py, Self>,
        port: &Bound<'_, PyAny>,
        max_len: u16,
    ) -> PyResult<PyRefMut<'py, Self>> {
        it.actions.output(port, max_len)?;
        Ok(it)
    }

    /// Sets fields of the packet for the outputs after it: `set_field(eth_dst="02:00:00:00:00:01")`.
    #[pyo3(signature = (**fields))]
    fn set_field<'py>(
        mut it: PyRefMut<'py, Self>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyRefMut<'py, Self>> {
        it.actions.set_field(fields)?;
        Ok(it)
    }

    /// Adds actions in order, in the syntax of ovs-ofctl: `actions("dec_ttl,push_vlan:0x8100,output:2")`.
    #[pyo3(signature = (text, /))]
    fn actions<'py>(mut it: PyRefMut<'py, Self>, text: &str) -> PyResult<PyRefMut<'py, Self>> {
        it.actions.text(text)?;
        Ok(it)
    }

    /// Continues in this table after the actions.
    fn goto_table(mut it: PyRefMut<'_, Self>, table_id: u8) -> PyRefMut<'_, Self> {
        InstructionWriter::new(&mut it.instructions).goto_table(table_id);
        it
    }

    /// Passes the packets through this meter.
    fn meter(mut it: PyRefMut<'_, Self>, meter_id: u32) -> PyRefMut<'_, Self> {
        InstructionWriter::new(&mut it.instructions).meter(meter_id);
        it
    }

    /// The priority; the highest matching rule applies.
    fn priority(mut it: PyRefMut<'_, Self>, priority: u16) -> PyRefMut<'_, Self> {
        it.fields.priority = priority;
        it
    }

    /// The table id, for switches with several tables.
    fn table(mut it: PyRefMut<'_, Self>, table_id: u8) -> PyRefMut<'_, Self> {
        it.fields.table_id = table_id;
        it
    }

    /// The app's part of the cookie, 48 bits.
    fn cookie(mut it: PyRefMut<'_, Self>, cookie: u64) -> PyRefMut<'_, Self> {
        it.fields.cookie = cookie;
        it
    }

    /// The idle timeout in seconds; 0: none.
    fn idle_timeout_s(mut it: PyRefMut<'_, Self>, seconds: u16) -> PyRefMut<'_, Self> {
        it.fields.idle_timeout_s = seconds;
        it
    }

    /// The hard timeout in seconds; 0: none.
    fn hard_timeout_s(mut it: PyRefMut<'_, Self>, seconds: u16) -> PyRefMut<'_, Self> {
        it.fields.hard_timeout_s = seconds;
        it
    }

    /// Requests an event when the rule is removed.
    fn tell_when_removed(mut it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        it.fields.flags |= SEND_FLOW_REMOVED;
        it
    }

    /// Sends the buffered packet of the switch through the new rule.
    #[pyo3(signature = (buffer_id))]
    fn buffer(mut it: PyRefMut<'_, Self>, buffer_id: Option<u32>) -> PyRefMut<'_, Self> {
        it.fields.buffer_id = buffer_id;
        it
    }

    /// Modifies the rule with the same match and priority, instead of adding one.
    fn modify(mut it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        it.fields.command = MODIFY_STRICT;
        it
    }

    /// Deletes the rule with the same match and priority, instead of adding one.
    fn delete(mut it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        it.fields.command = DELETE_STRICT;
        it
    }

    /// Deletes all rules of the app within the match, in all tables.
    fn delete_within(mut it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        it.fields.command = DELETE;
        it.fields.table_id = EVERY_TABLE;
        it
    }

    /// For deletes: only rules that send to this port.
    fn out_port<'py>(mut it: PyRefMut<'py, Self>, port: &Bound<'_, PyAny>) -> PyResult<PyRefMut<'py, Self>> {
        it.fields.out_port = value::port(port)?;
        Ok(it)
    }

    /// Sends it.
    fn send(&mut self, py: Python<'_>) -> PyResult<()> {
        self.finish(py, false).map(drop)
    }

    /// Sends it, requests a receipt, and returns the ticket of the receipt.
    fn send_with_receipt(&mut self, py: Python<'_>) -> PyResult<u64> {
        self.finish(py, true)
    }
}
