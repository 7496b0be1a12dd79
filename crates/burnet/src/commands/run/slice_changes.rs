//! What a new configuration takes away from the slices that run, and its withdrawal from the switches.
//!
//! ```text
//!   the Config that runs, the one that was read ──> Loss of each slice ──> lines
//!                                                                     └──> zones of the slices ──> lines: what stays
//! ```
//!
//! In: two configurations. Out: lines for the operator. The zones delete their rules before the node takes their grants back, because the kernel lets no
//! app delete a rule beyond its grant. So each reload does it: of the file, by `burnet slice apply` and by `burnet slice remove`.

use crate::commands::slice_zones;
use crate::slices::settings_of;
use config::Config;
use config::slices::switch_name;
use slice::SliceSettings;
use slice::loss::LossSettings;
use slice::state::{Answer, Question, WITHDRAWAL_MS};
use slicer::{Loss, Lost};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a process that does not answer may take to begin.
const BEGIN: Duration = Duration::from_secs(3);
/// How long until it is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// A slice that loses something.
struct Change {
    name: String,
    loss: Loss,
    is_paused: bool,
    /// Its socket for operators.
    folder: PathBuf,
    /// Where it keeps its journals.
    journals: Option<PathBuf>,
}

/// All slices that lose something.
pub(super) struct Changes(Vec<Change>);

impl Changes {
    /// What the slices of the node that runs lose with another configuration.
    pub(super) fn between(running: &Config, read: &Config) -> Changes {
        let change = |(before, is_paused): (SliceSettings, bool)| {
            let mut wanted = read.apps.iter().filter_map(settings_of);
            let after = wanted.find(|it| it.name == before.name);
            let plan = |settings: &SliceSettings| settings.plan(abi::ZoneId(1));
            let loss = Loss::between(&plan(&before), after.as_ref().map(plan).as_ref());
            let (name, journals) = (before.name, before.journals);
            let folder = slice_zones::folder(&running.node.socket);
            (!loss.is_empty()).then_some(Change { name, loss, is_paused, folder, journals })
        };
        let slices = running.apps.iter().filter_map(|app| Some((settings_of(app)?, app.paused)));
        Changes(slices.filter_map(change).collect())
    }

    /// What leaves the switches, one line for each slice and switch.
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.iter().flat_map(|change| lines(&change.name, &change.loss)).collect()
    }

    /// Has the slices delete what they lose. Returns what stays all the same.
    pub(super) fn withdraw(&self) -> Vec<String> {
        let asked = std::thread::scope(|scope| {
            let threads: Vec<_> = self.0.iter().map(|change| scope.spawn(|| change.withdraw())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect::<Vec<_>>()
        });
        asked.into_iter().flatten().collect()
    }
}

impl Change {
    fn withdraw(&self) -> Vec<String> {
        let name = &self.name;
        match self.ask() {
            Ok(kept) => kept
                .iter()
                .map(|(switch, why)| {
                    format!("slice {name}: its rules stay at {}: {why}", switch_name(*switch))
                })
                .collect(),
            Err(why) => {
                self.forget();
                vec![format!("slice {name}: its rules stay: {why}")]
            }
        }
    }

    fn ask(&self) -> Result<Vec<(flow::DatapathId, String)>, String> {
        if self.is_paused {
            return Err(
                "it is paused, so no process can delete them; resume a slice before such a change".to_owned()
            );
        }
        let question = Question::Withdraw { loss: LossSettings::of(&self.loss) };
        let patience = Duration::from_millis(WITHDRAWAL_MS) + slice_zones::PATIENCE;
        let until = Instant::now() + BEGIN;
        loop {
            let why = match slice_zones::ask_one(&self.folder, &self.name, &question, patience) {
                Ok(Answer::Withdrawn(kept)) => return Ok(kept),
                Ok(Answer::Refused(why)) | Err(why) => why,
                Ok(_) => "it answered something else".to_owned(),
            };
            if Instant::now() >= until {
                return Err(why);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The tenant's numbers mean something else now, and the process does not run: what it keeps is of no use.
    fn forget(&self) {
        let Some(folder) = &self.journals else { return };
        let lost = self.loss.switches.iter().filter(|(_, lost)| matches!(lost, Lost::All(_)));
        for (switch, _) in lost {
            // There may be none.
            let _ = std::fs::remove_file(slice::journal_file(folder, *switch));
        }
    }
}

fn lines(name: &str, loss: &Loss) -> Vec<String> {
    let mut reasons = loss.switches.values().map(|lost| match lost {
        Lost::All(why) => Some(why),
        Lost::Ports(_) => None,
    });
    let first = reasons.next().flatten();
    if let Some(why) = first.filter(|_| reasons.all(|why| why == first)) {
        let switches: Vec<String> = loss.switches.keys().map(|switch| switch_name(*switch)).collect();
        return vec![format!("slice {name}: all its rules leave {}: {why}", switches.join(", "))];
    }
    let mut lines = Vec::new();
    for (switch, lost) in &loss.switches {
        let switch = switch_name(*switch);
        lines.push(match lost {
            Lost::All(why) => format!("slice {name}: all its rules leave {switch}: {why}"),
            Lost::Ports(ports) => {
                let ports: Vec<String> = ports.iter().map(|port| format!("{switch}:{port}")).collect();
                format!("slice {name}: its rules for {} leave, and others stay", ports.join(", "))
            }
        });
    }
    if !loss.hosts.is_empty() {
        let hosts: Vec<String> = loss.hosts.iter().map(ToString::to_string).collect();
        lines.push(format!("slice {name}: its rules for hosts {} leave, and others stay", hosts.join(", ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{DatapathId, PortNo};

    #[test]
    fn a_reason_for_all_switches_is_one_line() {
        let all = |why: &str| Lost::All(why.to_owned());
        let check = |switches: &[(u64, Lost)], expected: &[&str]| {
            let switches = switches.iter().map(|(switch, lost)| (DatapathId(*switch), lost.clone()));
            let loss = Loss { switches: switches.collect(), hosts: [].into() };
            assert_eq!(lines("blue", &loss), expected);
        };
        check(&[], &[]);
        check(&[(1, all("x")), (2, all("x"))], &["slice blue: all its rules leave s1, s2: x"]);
        check(
            &[(1, all("x")), (2, Lost::Ports([PortNo(3), PortNo(4)].into()))],
            &[
                "slice blue: all its rules leave s1: x",
                "slice blue: its rules for s2:3, s2:4 leave, and others stay",
            ],
        );
    }
}
