//! The events that an app subscribes to.
//!
//! In: calls of the app. Out: the bits and the match of the subscription. If there are several matches, it checks them here, because a subscription
//! has only one. It never subscribes: the first commands of a zone do.

use crate::rule::Matching;
use abi::command::Subscribe;
use abi::event::{self, kind};
use burnet_sdk::view::Kind;
use flow::Match;
use flow::canonical::read_match;
use flow::frame::FrameFields;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The maximum number of matches of `packets_within`. Each packet is compared with all of them in order.
const MATCHES_MAX: usize = 64;

/// The events that an app subscribes to. Receipts, errors and answers arrive without a subscription.
///
/// Each method adds some and returns the object: `Interests().packets().switches()`.
#[pyclass(module = "burnet", from_py_object)]
#[derive(Clone, Default)]
pub(crate) struct Interests {
    events: u64,
    /// Whether it wants every packet-in. Its matches then have no effect.
    all_packets: bool,
    within: Vec<Matching>,
    /// The kinds of objects of the network view.
    view: Vec<Kind>,
}

impl Interests {
    pub(crate) fn subscribe(&self) -> Subscribe<'_> {
        let packets = match self.within.as_slice() {
            [only] if !self.all_packets => only.bytes(),
            _ => &[],
        };
        // The SDK needs the time to follow the view.
        let for_view = if self.view.is_empty() { 0 } else { kind::bit(kind::TICK) };
        Subscribe { events: self.events | for_view, packets }
    }

    /// The kinds of objects of the network view.
    pub(crate) fn kinds(&self) -> &[Kind] {
        &self.view
    }

    /// Whether the time is for the SDK alone.
    pub(crate) fn hides_ticks(&self) -> bool {
        !self.view.is_empty() && self.events & kind::bit(kind::TICK) == 0
    }

    /// The matches that limit its packet-ins. Empty if the kernel checks the only one.
    pub(crate) fn either(&self) -> PyResult<Vec<Match>> {
        if self.all_packets || self.within.len() < 2 {
            return Ok(Vec::new());
        }
        let read = |one: &Matching| read_match(one.bytes());
        let read: Result<_, _> = self.within.iter().map(read).collect();
        read.map_err(|bad| PyValueError::new_err(format!("packets_within: {bad}")))
    }
}

/// Whether a packet is within one of these matches. If there are none, every packet is.
pub(crate) fn is_within(packet: &event::PacketIn<'_>, either: &[Match]) -> bool {
    if either.is_empty() {
        return true;
    }
    let fields = FrameFields::read(packet.data).from_port(packet.in_port);
    either.iter().any(|wanted| wanted.matches(&fields))
}

/// Adds types of events, and returns the same object.
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

    /// Every packet-in. The kernel makes switches send the packets that no rule matches.
    fn packets(mut it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        it.all_packets = true;
        hearing(it, &[kind::PACKET_IN])
    }

    /// Packet-ins of packets within this match: `packets_within(eth_type=0x0806)`. Each call adds one match.
    #[pyo3(signature = (**fields))]
    fn packets_within<'py>(
        mut it: PyRefMut<'py, Self>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyRefMut<'py, Self>> {
        if it.within.len() == MATCHES_MAX {
            return Err(PyValueError::new_err(format!("packets_within: the limit is {MATCHES_MAX} matches")));
        }
        let mut wanted = Matching::default();
        wanted.add(fields)?;
        it.within.push(wanted);
        Ok(hearing(it, &[kind::PACKET_IN]))
    }

    /// Of the packet-ins that the app subscribes to, only those that its own rules send. The kernel then adds no table-miss rule for the
    /// app. A switch with OpenFlow 1.0 does not name the rule: the app receives what any rule sends, and what no rule matched.
    fn of_own_rules(mut it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        it.events |= kind::OF_OWN_RULES;
        it
    }

    /// Switches that connect and disconnect.
    fn switches(it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        hearing(it, &[kind::SWITCH_UP, kind::SWITCH_DOWN])
    }

    /// Ports that are added, removed or changed.
    fn ports(it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        hearing(it, &[kind::PORT_STATUS])
    }

    /// Removed rules.
    fn flow_removed(it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        hearing(it, &[kind::FLOW_REMOVED])
    }

    /// Experimenter messages of switches, as far as the capability `vendor` names them.
    fn experimenters(it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        hearing(it, &[kind::EXPERIMENTER])
    }

    /// The network view: objects of these kinds (`switch`, `port`, `link`, `host`), and of those that they need to be visible.
    #[pyo3(signature = (*kinds))]
    fn view(mut it: PyRefMut<'_, Self>, kinds: Vec<String>) -> PyResult<PyRefMut<'_, Self>> {
        for word in kinds {
            it.view.push(crate::view::kind(&word)?);
        }
        Ok(it)
    }

    /// Messages that other apps publish.
    fn topics(it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        hearing(it, &[kind::TOPIC])
    }

    /// The time, about once per second.
    fn ticks(it: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        hearing(it, &[kind::TICK])
    }
}
