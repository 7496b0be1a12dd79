//! `burnet doctor`: checks what this machine provides and lacks, and explains the consequences.
//!
//! ```text
//!   this machine ── Facts::gather ──> Facts ── judge (pure) ──> findings ──> text or JSON
//! ```
//!
//! It changes nothing on the machine and sends nothing. It starts no program except a test zone that ends at once.

mod facts;
mod judge;
mod proc;

use std::process::ExitCode;

use serde::Serialize;

pub use facts::{Cgroup, CgroupVersion, Facts, Holder, OvsModule, PortFact};
pub use judge::judge;

use crate::cli::DoctorArgs;
use zone::NotEnforced;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The machine has it.
    Ok,
    /// The machine lacks it, with a consequence.
    Lacks,
    /// The machine lacks it, and a node cannot run.
    CannotRun,
}

/// One property of this machine, with its consequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was checked.
    pub subject: String,
    /// The severity.
    pub state: State,
    /// What was found.
    pub found: String,
    /// The consequence, if something is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// What the operator can do, if something is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// All findings, as `--json` prints them.
#[derive(Debug, Serialize)]
struct Report<'f> {
    node_can_run: bool,
    findings: &'f [Finding],
}

/// Checks this machine. `zone` is what a test zone does not enforce. Returns what to print, and exit code 1 if no
/// node can run here.
pub fn doctor(args: &DoctorArgs, zone: Result<Vec<NotEnforced>, String>) -> (String, ExitCode) {
    let findings = judge(&Facts::gather(zone));
    let code = if node_can_run(&findings) { ExitCode::SUCCESS } else { ExitCode::from(1) };
    (if args.json { json(&findings) } else { text(&findings) }, code)
}

fn node_can_run(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.state != State::CannotRun)
}

fn json(findings: &[Finding]) -> String {
    let report = Report { node_can_run: node_can_run(findings), findings };
    // Strings and booleans can always be written as JSON.
    serde_json::to_string_pretty(&report).map_or_else(|error| error.to_string(), |json| json + "\n")
}

fn text(findings: &[Finding]) -> String {
    let mut lines = Vec::new();
    for Finding { subject, state, found, follows, advice } in findings {
        let state = match state {
            State::Ok => "ok",
            State::Lacks => "lacks",
            State::CannotRun => "STOPS",
        };
        lines.push(format!("{state:<6} {subject:<16} {found}"));
        let more = [follows, advice].into_iter().flatten();
        lines.extend(more.map(|line| format!("{:23} {line}", "")));
    }
    let verdict = if node_can_run(findings) { "A node" } else { "No node" };
    lines.push(format!("\n{verdict} can run on this machine.\n"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(state: State, lacking: Option<&str>) -> Finding {
        Finding {
            subject: "Linux".to_owned(),
            state,
            found: "6.1".to_owned(),
            follows: lacking.map(str::to_owned),
            advice: lacking.map(|_| "update it".to_owned()),
        }
    }

    #[test]
    fn what_stops_a_node_is_said_last() {
        let findings = [finding(State::Ok, None), finding(State::CannotRun, Some("nothing runs"))];
        let expected = "\
ok     Linux            6.1
STOPS  Linux            6.1
                        nothing runs
                        update it

No node can run on this machine.
";
        assert_eq!(text(&findings), expected);
    }

    #[test]
    fn what_is_lacking_does_not_stop_a_node() {
        let text = text(&[finding(State::Lacks, Some("something is slower"))]);
        assert!(text.ends_with("\nA node can run on this machine.\n"), "{text}");
    }

    #[test]
    fn json_says_the_same() {
        let findings = [finding(State::Ok, None), finding(State::Lacks, Some("something is slower"))];
        let json: serde_json::Value = serde_json::from_str(&json(&findings)).unwrap();
        let expected = serde_json::json!({"node_can_run": true, "findings": [
            {"subject": "Linux", "state": "ok", "found": "6.1"},
            {"subject": "Linux", "state": "lacks", "found": "6.1", "follows": "something is slower", "advice": "update it"},
        ]});
        assert_eq!(json, expected);
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let (json, _) = doctor(&DoctorArgs { json: true }, Ok(Vec::new()));
        let report: serde_json::Value = serde_json::from_str(&json).unwrap();
        // Tests run where Burnet was built, so a node can run there.
        assert_eq!(report["node_can_run"], true, "{report}");
    }
}
