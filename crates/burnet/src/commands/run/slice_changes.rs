//! What a new configuration takes away from the slices that run, and its withdrawal from the switches.
//!
//! ```text
//!   the Config that runs, the one that was read ──> Loss of each slice ──> lines
//!                                                                     └──> zones of the slices ──> lines: what stays
//! ```
//!
//! In: two configurations. Out: lines for the operator, and what the kernel process is to delete because a zone could not. The zones delete their
//! rules before the node takes their grants back, because the kernel lets no app delete a rule beyond its grant. So each reload does it: of the
//! file, by `burnet slice apply` and by `burnet slice remove`.

use crate::commands::slice_zones;
use crate::slice_memory::{Loser, SliceMemory, forget_journals};
use crate::slices::settings_of;
use config::Config;
use config::slices::switch_name;
use flow::DatapathId;
use monitor::AppSpec;
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
    before: SliceSettings,
    loss: Loss,
    /// It is paused, or waits for the network: it has no process.
    is_paused: bool,
    /// The number of its zone, if it outlives the node.
    zone: Option<u16>,
    /// Its socket for operators.
    folder: PathBuf,
}

/// What a zone could not delete.
struct Left {
    /// The slice as it was, with the switches where it could not.
    before: SliceSettings,
    /// For the operator: where, and why.
    why: String,
}

/// All slices that lose something.
pub(super) struct Changes(Vec<Change>);

impl Changes {
    /// What the slices of the node that runs lose with another configuration.
    pub(super) fn between(running: &Config, read: &Config) -> Changes {
        let change = |app: &AppSpec| {
            let before = settings_of(app)?;
            let mut wanted = read.apps.iter().filter_map(settings_of);
            let after = wanted.find(|it| it.name == before.name);
            let plan = |settings: &SliceSettings| settings.plan(abi::ZoneId(1));
            let loss = Loss::between(&plan(&before), after.as_ref().map(plan).as_ref());
            let folder = slice_zones::folder(&running.node.socket);
            let (is_paused, zone) = (app.paused || app.waits, app.zone);
            (!loss.is_empty()).then_some(Change { before, loss, is_paused, zone, folder })
        };
        Changes(running.apps.iter().filter_map(change).collect())
    }

    /// What leaves the switches, one line for each slice and switch.
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.iter().flat_map(|change| lines(&change.before.name, &change.loss)).collect()
    }

    /// Has the slices delete what they lose. What they cannot, the memory owes. Returns lines about that.
    pub(super) fn withdraw(&self, memory: &mut SliceMemory) -> Vec<String> {
        let asked = std::thread::scope(|scope| {
            let threads: Vec<_> = self.0.iter().map(|change| scope.spawn(|| change.withdraw())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect::<Vec<_>>()
        });
        let left = self.0.iter().zip(asked).filter_map(|(change, left)| Some((change, left?)));
        left.map(|(change, left)| change.owe(&left, memory)).collect()
    }
}

impl Change {
    /// Returns what stays.
    fn withdraw(&self) -> Option<Left> {
        match self.ask() {
            Ok(kept) if kept.is_empty() => None,
            Ok(kept) => {
                let at = |datapath: &DatapathId| kept.iter().any(|(it, _)| it == datapath);
                let mut before = self.before.clone();
                before.switches.retain(|switch| at(&switch.datapath));
                let why = kept.iter().map(|(at, why)| format!("{}: {why}", switch_name(*at)));
                Some(Left { before, why: why.collect::<Vec<_>>().join("; ") })
            }
            Err(why) => {
                forget_journals(self.before.journals.as_deref(), &self.loss);
                Some(Left { before: self.before.clone(), why })
            }
        }
    }

    fn owe(&self, left: &Left, memory: &mut SliceMemory) -> String {
        let (name, why) = (&self.before.name, &left.why);
        let Some(zone) = self.zone else {
            return format!(
                "slice {name}: its rules stay, and the node has no state folder to remember them: {why}"
            );
        };
        memory.owe(&Loser { zone, before: &left.before, loss: &self.loss });
        format!(
            "slice {name}: its process could not delete all, so the node does, at each switch as soon as it is connected: {why}"
        )
    }

    fn ask(&self) -> Result<Vec<(DatapathId, String)>, String> {
        if self.is_paused {
            return Err("it does not run".to_owned());
        }
        let question = Question::Withdraw { loss: LossSettings::of(&self.loss) };
        let patience = Duration::from_millis(WITHDRAWAL_MS) + slice_zones::PATIENCE;
        let until = Instant::now() + BEGIN;
        loop {
            let why = match slice_zones::ask_one(&self.folder, &self.before.name, &question, patience) {
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
}

/// What a slice loses, for the operator.
pub(super) fn lines(name: &str, loss: &Loss) -> Vec<String> {
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
    use flow::PortNo;

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
