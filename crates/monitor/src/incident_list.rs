//! The stored incidents, for the service that shows them. Pure.
//!
//! ```text
//!   record_writer ──stored, deleted──> IncidentList ──FromMonitor──> service
//! ```
//!
//! In: what happened to incidents in the state folder, and which start of the service runs. Out: messages for that start, once for each
//! change. It reads no file. The evidence stays on the disk, because it contains output of apps, and is sent only if it is asked for.

use std::collections::BTreeMap;

use northbound_contract::{DELAYS_MAX, FromMonitor, IncidentReport, ReplyDelay};

use crate::incident::Incident;
use crate::records::INCIDENTS_MAX;

/// The most incidents in one message. With the bounds of their texts and curves, they fit into one datagram.
const IN_A_MESSAGE_MAX: usize = 48;

/// The longest texts of an incident in a message, in bytes. A file in the state folder can have longer ones: they are cut, and
/// `burnet incidents show NUMBER` shows all of it.
const WHAT_BYTES_MAX: usize = 32;
const REASON_BYTES_MAX: usize = 2 * crate::app::REASON_BYTES_MAX;
const THEN_BYTES_MAX: usize = 400;
const FINDING_BYTES_MAX: usize = 600;
const NAME_BYTES_MAX: usize = crate::app::APP_NAME_BYTES_MAX;

/// Stands for what was cut.
const CUT: &str = "…";

/// What happened to an incident in the state folder.
#[derive(Debug)]
pub(crate) enum Stored {
    Kept(IncidentReport),
    Deleted(u64),
}

/// The incidents in the state folder, at most [`INCIDENTS_MAX`]: above it, the oldest is left out.
#[derive(Debug, Default)]
pub(crate) struct IncidentList {
    reports: BTreeMap<u64, IncidentReport>,
    version: u64,
    /// Which start of the service has which version.
    told: Option<(u64, u64)>,
}

impl IncidentList {
    pub(crate) fn on_stored(&mut self, stored: Stored) {
        self.version += 1;
        match stored {
            Stored::Kept(report) => drop(self.reports.insert(report.number, report)),
            Stored::Deleted(number) => drop(self.reports.remove(&number)),
        }
        if self.reports.len() > INCIDENTS_MAX {
            self.reports.pop_first();
        }
    }

    /// The messages that this start of the service does not have yet. The newest incidents come first, so that the service knows which ones
    /// are new to it.
    pub(crate) fn untold(&self, generation: u64) -> Vec<FromMonitor> {
        if self.told == Some((generation, self.version)) {
            return Vec::new();
        }
        let all: Vec<_> = self.reports.values().cloned().collect();
        let message = |(index, part): (usize, &[IncidentReport])| FromMonitor::Incidents {
            is_first: index == 0,
            incidents: part.to_vec(),
        };
        match all.is_empty() {
            true => vec![FromMonitor::Incidents { is_first: true, incidents: all }],
            false => all.rchunks(IN_A_MESSAGE_MAX).enumerate().map(message).collect(),
        }
    }

    /// This start of the service has all of them.
    pub(crate) fn on_told(&mut self, generation: u64) {
        self.told = Some((generation, self.version));
    }
}

/// An incident without its evidence, except for the curves of a switch, which hold no output of apps. Its texts and lists have bounds, whatever the file has: a message that is too long would be refused and sent again
/// for ever.
pub(crate) fn report(incident: &Incident) -> IncidentReport {
    let what = serde_json::to_value(incident.what).unwrap_or_default();
    let name = |name: &Option<String>| name.as_deref().map(|name| cut(name, NAME_BYTES_MAX));
    IncidentReport {
        number: incident.number,
        unix_ms: incident.unix_ms,
        what: cut(what.as_str().unwrap_or_default(), WHAT_BYTES_MAX),
        app: name(&incident.app),
        reason: cut(&incident.reason, REASON_BYTES_MAX),
        then: cut(&incident.then, THEN_BYTES_MAX),
        culprit: name(&incident.finding.culprit),
        finding: cut(&incident.finding.sentence, FINDING_BYTES_MAX),
        delays: incident.evidence.delays.iter().take(DELAYS_MAX).map(delay).collect(),
    }
}

fn delay(of: &crate::protocol::ReplyDelay) -> ReplyDelay {
    let crate::protocol::ReplyDelay { percent, earliest_us, latest_us, observed_us } = *of;
    ReplyDelay { percent, earliest_us, latest_us, observed_us }
}

/// At most so many bytes of a text. Control characters become spaces, because each of them takes six bytes as JSON.
fn cut(text: &str, bytes_max: usize) -> String {
    let plain = |text: &str| text.replace(char::is_control, " ");
    if text.len() <= bytes_max {
        return plain(text);
    }
    plain(&text[..text.floor_char_boundary(bytes_max.saturating_sub(CUT.len()))]) + CUT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::IncidentKind;

    fn kept(number: u64) -> Stored {
        let incident =
            Incident { number, ..Incident::of_app(IncidentKind::AppEnded, "hub", 1, "exit code 3", 5) };
        Stored::Kept(report(&incident))
    }

    /// The numbers in the messages, and in which of them the list begins.
    fn numbers(messages: &[FromMonitor]) -> (Vec<u64>, Vec<bool>) {
        let parts = messages.iter().map(|message| match message {
            FromMonitor::Incidents { is_first, incidents } => (*is_first, incidents),
            other => panic!("{other:?}"),
        });
        let (firsts, lists): (Vec<_>, Vec<_>) = parts.unzip();
        (lists.into_iter().flatten().map(|it| it.number).collect(), firsts)
    }

    #[test]
    fn each_start_of_the_service_gets_each_change_once() {
        let mut list = IncidentList::default();
        assert_eq!(numbers(&list.untold(1)), (vec![], vec![true]));
        list.on_told(1);
        assert!(list.untold(1).is_empty());
        list.on_stored(kept(7));
        list.on_stored(kept(8));
        assert_eq!(numbers(&list.untold(1)).0, [7, 8]);
        list.on_told(1);
        list.on_stored(Stored::Deleted(7));
        assert_eq!(numbers(&list.untold(1)).0, [8]);
        list.on_told(1);
        assert_eq!(numbers(&list.untold(2)).0, [8], "another start knows nothing");
    }

    #[test]
    fn a_long_list_comes_in_parts_and_the_oldest_is_left_out() {
        let mut list = IncidentList::default();
        let all = u64::try_from(INCIDENTS_MAX).unwrap() + 1;
        (1..=all).for_each(|number| list.on_stored(kept(number)));
        let (mut found, firsts) = numbers(&list.untold(1));
        assert_eq!(found[IN_A_MESSAGE_MAX - 1], all, "the first message has the newest one");
        found.sort_unstable();
        assert_eq!(found, (2..=all).collect::<Vec<_>>());
        assert_eq!(firsts.len(), INCIDENTS_MAX.div_ceil(IN_A_MESSAGE_MAX));
        assert!(firsts[0] && !firsts[1..].contains(&true), "{firsts:?}");
    }

    #[test]
    fn a_report_has_the_word_of_the_kind() {
        let Stored::Kept(report) = kept(3) else { panic!("it is kept") };
        assert_eq!((report.what.as_str(), report.app.as_deref()), ("app_ended", Some("hub")));
        assert_eq!((report.reason.as_str(), report.culprit.as_deref()), ("exit code 3", Some("hub")));
    }

    const LARGEST_DELAY: crate::protocol::ReplyDelay = crate::protocol::ReplyDelay {
        percent: 100,
        earliest_us: u32::MAX,
        latest_us: u32::MAX,
        observed_us: u32::MAX,
    };

    #[test]
    fn a_switch_that_left_its_profile_comes_with_both_curves() {
        let of = crate::protocol::ReplyDelay { percent: 50, earliest_us: 2, latest_us: 3, observed_us: 9 };
        let told = report(&Incident::of_switch("of:1: later", vec![of], 5));
        let expected = ReplyDelay { percent: 50, earliest_us: 2, latest_us: 3, observed_us: 9 };
        assert_eq!((told.what.as_str(), told.delays), ("switch_left_profile", vec![expected]));
    }

    #[test]
    fn the_longest_part_fits_into_a_datagram_whatever_the_files_have() {
        for text in ["\"", "\0", "é", "x"] {
            let long = text.repeat(100_000 / text.len());
            let mut incident = Incident::of_app(IncidentKind::AppEnded, &long, 1, &long, u64::MAX);
            (incident.number, incident.reason, incident.then) = (u64::MAX, long.clone(), long.clone());
            incident.app = Some(long.clone());
            (incident.finding.culprit, incident.finding.sentence) = (Some(long.clone()), long.clone());
            incident.evidence.delays = vec![LARGEST_DELAY; 1_000];
            let longest = report(&incident);
            assert_eq!(longest.delays.len(), DELAYS_MAX);
            assert!(longest.reason.ends_with(CUT) && longest.finding.len() <= FINDING_BYTES_MAX);
            let part = FromMonitor::Incidents { is_first: true, incidents: vec![longest; IN_A_MESSAGE_MAX] };
            let bytes = serde_json::to_vec(&part).unwrap().len();
            assert!(bytes <= crate::channel::DATAGRAM_BYTES_MAX, "{bytes}");
        }
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let check = |text: &str, bytes_max: usize, expected: &str| assert_eq!(cut(text, bytes_max), expected);
        check("", 5, "");
        check("abcde", 5, "abcde");
        check("abcdef", 5, "ab…");
        check("ééé", 5, "é…");
        check("a\nb", 5, "a b");
    }
}
