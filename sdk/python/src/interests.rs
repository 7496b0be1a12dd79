//! What an app wants to hear.
//!
//! In: words of the app. Out: the subscription's bits and match; of several matches, whether a packet is within one of them, since a subscription
//! has room for one. Never subscribes: the first commands of a zone do.

use crate::rule::Matching;
use abi::command::Subscribe;
use abi::event::{self, kind};
use flow::Match;
use flow::canonical::read_match;
use flow::frame::FrameFields;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Most matches of `packets_within`: each packet is compared with one after the other.
const MATCHES_MAX: usize = 64;

/// What an app wants to hear. Receipts, errors and answers come to whom they are meant for without being asked for.
///
/// Each method adds to it and gives it back: `Interests().packets().switches()`.
#[pyclass(module = "burnet", from_py_object)]
#[derive(Clone, Default)]
pub(crate) struct Interests {
    events: u64,
    /// Whether it wants every packet-in, whatever matches it names besides.
    all_packets: bool,
    within: Vec<Matching>,
}

impl Interests {
    pub(crate) fn subscribe(&self) -> Subscribe<'_> {
        let packets = match self.within.as_slice() {
            [only] if !self.all_packets => only.bytes(),
            _ => &[],
        };
        Subscribe { events: self.events, packets }
    }

    /// The matches, one of which a packet must be within to be heard; none where the kernel has looked already.
    pub(crate) fn either(&self) -> PyResult<Vec<Match>> {
        if self.all_packets || self.within.len() < 2 {
            return Ok(Vec::new());
        }
        let read = |one: &Matching| read_match(one.bytes());
        let read: Result<_, _> = self.within.iter().map(read).collect();
        read.map_err(|bad| PyValueError::new_err(format!("packets_within: {bad}")))
    }
}

/// Whether a packet is within one of these matches; all are, where there is none.
pub(crate) fn is_within(packet: &event::PacketIn<'_>, either: &[Match]) -> bool {
    if either.is_empty() {
        return true;
    }
    let fields = FrameFields::read(packet.data).from_port(packet.in_port);
    either.iter().any(|wanted| wanted.matches(&fields))
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
    fn packets(mut it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        it.all_packets = true;
        hearing(it, &[kind::PACKET_IN])
    }

    /// Packet-ins of packets within this match: `packets_within(eth_type=0x0806)`. Called again: of those within that one as well.
    #[pyo3(signature = (**fields))]
    fn packets_within<'py>(
        mut it: PyRefMut<'py, Self>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyRefMut<'py, Self>> {
        if it.within.len() == MATCHES_MAX {
            return Err(PyValueError::new_err(format!(
                "packets_within: {MATCHES_MAX} matches are the most there may be"
            )));
        }
        let mut wanted = Matching::default();
        wanted.add(fields)?;
        it.within.push(wanted);
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
