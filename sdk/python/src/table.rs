//! A table of a service in Python that other apps can follow.
//!
//! In: puts, removals, calls that follow it. Out: entries, and parts of answers, with the table of the Rust SDK. Never decides who may follow.

use crate::commands::Commands;
use crate::events::Query;
use burnet_sdk::stream;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A table that other apps can follow. It has no bound: the service decides how many entries it keeps.
#[pyclass(module = "burnet")]
#[derive(Default)]
pub(crate) struct Table(stream::Table);

#[pymethods]
impl Table {
    #[new]
    fn new() -> Self {
        Table::default()
    }

    /// Sets the value of a key. Readers get the change with the next `send`.
    fn put(&mut self, key: &[u8], value: &[u8]) -> PyResult<()> {
        match self.0.put(key, value) {
            true => Ok(()),
            false => Err(PyValueError::new_err("the entry does not fit a part of a stream")),
        }
    }

    /// Removes a key, and returns whether it existed. Readers get the change with the next `send`.
    fn remove(&mut self, key: &[u8]) -> bool {
        self.0.remove(key)
    }

    /// The value of a key, or None.
    fn get<'py>(&self, py: Python<'py>, key: &[u8]) -> Option<Bound<'py, PyBytes>> {
        self.0.get(key).map(|value| PyBytes::new(py, value))
    }

    /// The number of the last change. The first has 1.
    #[getter]
    fn number(&self) -> u64 {
        self.0.number()
    }

    /// Lets the call follow this table from now on. It gets the snapshot at once, up to its credit.
    fn follow(&mut self, query: &Query, out: &mut Commands) {
        let (calls, frames) = out.calls();
        self.0.follow_by(calls, frames, &query.to_follow());
    }

    /// Sends each reader as much as its credit allows. Call it after changes, and in `App.on_credit`.
    fn send(&mut self, out: &mut Commands) {
        let (calls, frames) = out.calls();
        self.0.send_by(calls, frames);
    }
}
