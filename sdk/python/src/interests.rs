//! What an app wants to hear.
//!
//! In: words of the app. Out: the subscription's bits and match. Never subscribes: the first commands of a zone do.

use crate::rule::Matching;
use abi::command::Subscribe;
use abi::event::kind;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What an app wants to hear. Receipts, errors and answers come to whom they are meant for without being asked for.
///
/// Each method adds to it and gives it back: `Interests().packets().switches()`.
#[pyclass(module = "burnet", from_py_object)]
#[derive(Clone, Default)]
pub(crate) struct Interests {
    events: u64,
    packets: Matching,
}

impl Interests {
    pub(crate) fn subscribe(&self) -> Subscribe<'_> {
        Subscribe { events: self.events, packets: self.packets.bytes() }
    }
}

/// Adds kinds of event, and gives the same object back.
fn hearing<'py>(mut it: PyRefMut<'py, Interests>, kinds: &[u16]) -> PyRefMut<'py, Interests> {
    kinds.iter().for_each(|number| it.events |= kind::bit(*number));
    it
}

#[pymethods]
impl Interests {
    #[new]
    fn new() -> Self {
        Interests::default()
    }

    /// Every packet-in. The kernel sees to it that switches send up what no rule matches.
    fn packets(it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        hearing(it, &[kind::PACKET_IN])
    }

    /// Packet-ins of packets within this match only: `packets_within(eth_type=0x0806)`.
    #[pyo3(signature = (**fields))]
    fn packets_within<'py>(
        mut it: PyRefMut<'py, Self>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyRefMut<'py, Self>> {
        it.packets.add(fields)?;
        Ok(hearing(it, &[kind::PACKET_IN]))
    }

    /// Switches that come and go.
    fn switches(it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        hearing(it, &[kind::SWITCH_UP, kind::SWITCH_DOWN])
    }

    /// Ports that come, go or change.
    fn ports(it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        hearing(it, &[kind::PORT_STATUS])
    }

    /// Rules that are gone.
    fn flow_removed(it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        hearing(it, &[kind::FLOW_REMOVED])
    }

    /// What others publish.
    fn topics(it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        hearing(it, &[kind::TOPIC])
    }

    /// The time, about once a second.
    fn ticks(it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        hearing(it, &[kind::TICK])
    }
}
