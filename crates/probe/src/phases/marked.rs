//! Markers: messages behind others, whose answers are a clock of the CPU. Several phases use them.
//!
//! ```text
//!   marker, X, marker, X, marker ──> from answer to answer: the service of X, and that of a marker
//! ```
//!
//! In: what is known of ranks and barriers, and outcomes. Out: which message is such a clock, the services between its answers, and how
//! many rules there is room for. It sends nothing.

use crate::findings::{BarrierFound, Findings};
use crate::options::Options;
use crate::rules;
use crate::samples::{ns, us};
use crate::script::{MILLISECOND_NS, Outcome, Record, Step, When};
use openflow::{Body, Version};
use profile::MessageType;

/// Steps of a removal.
const REMOVAL: usize = 2;

/// The message whose answer says when the CPU has done all adds before it. None: the hardware works beside the CPU, so that only frames
/// tell.
pub(super) fn marker(found: &Findings) -> Option<MessageType> {
    let echo_waits = found.services.get(&MessageType::Echo).and_then(|echo| echo.rank).unwrap_or(0) >= 0;
    let barrier_waits = found.barrier != Some(BarrierFound::NotOrdering);
    let is_known = found.add_cpu_us.is_some() && found.cpu_waits();
    match (is_known, echo_waits, barrier_waits) {
        (true, true, _) => Some(MessageType::Echo),
        (true, false, true) => Some(MessageType::Barrier),
        _ => None,
    }
}

/// The body of a marker.
pub(super) fn body(kind: MessageType) -> Body {
    if kind == MessageType::Barrier { Body::BarrierRequest } else { Body::EchoRequest(Vec::new()) }
}

/// How many rules there is room for in an empty table, without coming near its end. At most `most`.
pub(super) fn room(most: usize, found: &Findings) -> usize {
    let room = found.capacities.iter().map(|(_, capacity)| capacity.entries as usize / 2).min();
    room.unwrap_or(most).clamp(1, most)
}

/// Removes all rules, but the one for the rest in OpenFlow 1.0.
pub(super) fn removal(options: &Options, found: &Findings) -> [Step; 2] {
    let is_v10 = found.version == Version::V1_0;
    let delete = Step::send(When::At(0), rules::delete_all(!is_v10 && !options.clear));
    let end = if is_v10 { Step::send(When::At(0), rules::add_drop()) } else { Step::barrier(When::At(0)) };
    [delete, end]
}

/// Steps that begin with an empty table, when the data plane has followed.
pub(super) fn behind_removal(
    steps: impl IntoIterator<Item = Step>,
    options: &Options,
    found: &Findings,
) -> Vec<Step> {
    removal(options, found).into_iter().chain(steps).collect()
}

/// When the first step behind a removal begins.
pub(super) fn first_after_removal(found: &Findings) -> When {
    When::After(100 * MILLISECOND_NS + 2 * ns(found.latest_us()))
}

/// What happened behind the removal.
pub(super) fn after_removal(record: &Record) -> &[Outcome] {
    record.outcomes.get(REMOVAL..).unwrap_or_default()
}

/// The services between markers, in µs: of outcomes that begin and end with a marker, and in which every second is one. `counts`: whether
/// a message was served as it should be. One that came after the marker before it was answered found an idle CPU, and does not count.
pub(super) fn services_us(
    outcomes: &[Outcome],
    marker_us: f64,
    counts: impl Fn(&Outcome) -> bool,
) -> Vec<f64> {
    let served = outcomes.windows(3).step_by(2).filter_map(|part| {
        let [before, of, after] = part else { return None };
        let (from_ns, to_ns) = (before.reply?.at_ns, after.reply?.at_ns);
        let is_behind = of.sent_ns? <= from_ns;
        (is_behind && counts(of)).then(|| (us(to_ns.saturating_sub(from_ns)) - marker_us).max(0.0))
    });
    served.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Reply;

    fn marker_at(at_ns: u64) -> Outcome {
        Outcome {
            sent_ns: Some(0),
            reply: Some(Reply { at_ns, entries: 0, packets: 0 }),
            ..Outcome::default()
        }
    }

    fn sent_at(at_ns: u64) -> Outcome {
        Outcome { sent_ns: Some(at_ns), ..Outcome::default() }
    }

    #[test]
    fn a_service_is_what_lies_between_two_markers() {
        let outcomes = [
            marker_at(1_000),
            sent_at(0),
            marker_at(8_000),
            // The CPU waited for this one.
            sent_at(9_000),
            marker_at(20_000),
            sent_at(10_000),
            marker_at(25_000),
            sent_at(24_000),
            marker_at(30_000),
        ];
        assert_eq!(services_us(&outcomes, 2.0, |_| true), [5.0, 3.0, 3.0]);
        assert_eq!(services_us(&outcomes, 2.0, |of| of.sent_ns != Some(10_000)), [5.0, 3.0]);
        assert_eq!(services_us(&outcomes[..2], 2.0, |_| true), Vec::<f64>::new());
    }
}
