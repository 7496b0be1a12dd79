//! How one failed link was survived: when each intent had another path, and how many packets it lost.
//!
//! In: times and reports of flows. Out: lines for the operator. Pure.

use emulator::FlowReport;
use std::time::{Duration, Instant};

/// What the failed link was for an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// A part of the path of a restored intent.
    Path,
    /// A part of the path of a protected intent.
    PathWithBackup,
    /// A part of the backup path.
    Backup,
}

/// What one intent went through when a link failed.
pub(super) struct Reroute {
    pub name: String,
    pub lost: Lost,
    /// How long after the failure it was installed on other paths.
    pub after: Option<Duration>,
    /// The packets of its flows since the failure.
    pub packets: Packets,
}

/// Packets that were sent, and that did not arrive although later ones did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Packets {
    pub sent: u64,
    pub delivered: u64,
    pub lost: u64,
}

impl Packets {
    /// Those between two reports of the same flows.
    pub fn between(before: &[FlowReport], after: &[FlowReport]) -> Packets {
        let sum = |of: fn(&FlowReport) -> u64| {
            let total = |reports: &[FlowReport]| reports.iter().map(of).sum::<u64>();
            total(after).saturating_sub(total(before))
        };
        Packets {
            sent: sum(|report| report.sent_packets),
            delivered: sum(|report| report.delivered_packets),
            lost: sum(|report| report.lost_packets),
        }
    }
}

impl Reroute {
    /// Without its flows' packets.
    pub fn begun(name: String, lost: Lost) -> Reroute {
        Reroute { name, lost, after: None, packets: Packets::default() }
    }

    /// It was installed again at this time.
    pub fn settle(&mut self, failed: Instant, at: Instant) {
        self.after.get_or_insert(at.saturating_duration_since(failed));
    }

    /// Whether it has another path, and its packets arrive.
    pub fn is_well(&self) -> bool {
        self.after.is_some() && (self.packets.sent == 0 || self.packets.delivered > 0)
    }

    /// The line for the operator.
    pub fn line(&self) -> String {
        let Reroute { name, packets, .. } = self;
        let lost = match packets.sent {
            0 => String::new(),
            sent => format!("; {} of {sent} packets lost", packets.lost),
        };
        let Some(after) = self.after.map(in_ms) else {
            return format!("intent {name} has no new path yet{lost}");
        };
        let way = match self.lost {
            Lost::Path => format!("rerouted in {after}"),
            Lost::PathWithBackup => format!("took its backup path; new paths after {after}"),
            Lost::Backup => format!("lost its backup path; new paths after {after}"),
        };
        format!("intent {name} {way}{lost}")
    }
}

fn in_ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lost: Lost, after_ms: Option<u64>, packets: Packets, is_well: bool, line: &str) {
        let after = after_ms.map(Duration::from_millis);
        let reroute = Reroute { name: "A – B".to_owned(), lost, after, packets };
        assert_eq!((reroute.line().as_str(), reroute.is_well()), (line, is_well));
    }

    #[test]
    fn a_line_says_how_long_it_took_and_what_was_lost() {
        let packets = |delivered, lost| Packets { sent: 310, delivered, lost };
        check(
            Lost::Path,
            Some(12),
            packets(308, 2),
            true,
            "intent A – B rerouted in 12.0 ms; 2 of 310 packets lost",
        );
        check(
            Lost::PathWithBackup,
            Some(20),
            packets(310, 0),
            true,
            "intent A – B took its backup path; new paths after 20.0 ms; 0 of 310 packets lost",
        );
        check(
            Lost::Path,
            None,
            packets(0, 0),
            false,
            "intent A – B has no new path yet; 0 of 310 packets lost",
        );
        check(
            Lost::Path,
            Some(1),
            packets(0, 0),
            false,
            "intent A – B rerouted in 1.0 ms; 0 of 310 packets lost",
        );
        check(Lost::Path, Some(1), Packets::default(), true, "intent A – B rerouted in 1.0 ms");
    }

    #[test]
    fn only_the_first_time_counts() {
        let failed = Instant::now();
        let mut reroute = Reroute::begun("A – B".to_owned(), Lost::Path);
        reroute.settle(failed, failed + Duration::from_millis(3));
        reroute.settle(failed, failed + Duration::from_millis(9));
        assert_eq!(reroute.after, Some(Duration::from_millis(3)));
    }
}
