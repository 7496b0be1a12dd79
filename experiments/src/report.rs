//! The result of an experiment: its claims, and all measurements.
//!
//! ```text
//!   Report ──> results/NAME.json
//!   all reports ──> results/README.md, a table
//! ```
//!
//! Pure: it neither measures nor writes a file.

use crate::machine::Machine;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The report of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Its name on the command line.
    pub experiment: String,
    /// Its title.
    pub title: String,
    /// The claims, each with its measurement.
    pub claims: Vec<Claim>,
    /// All measurements, so that a reader can draw them in another way.
    pub data: Value,
    /// The machine that ran it.
    pub machine: Machine,
    /// When it began, in seconds since the Unix epoch.
    pub unix_s: u64,
    /// How long it took.
    pub took_s: f64,
    /// Whether durations were short, so that these are not figures.
    pub short: bool,
}

/// A statement with its measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The statement.
    pub what: String,
    /// What the paper says about it.
    pub paper: Option<String>,
    /// What is required of Burnet.
    pub asked: Option<String>,
    /// What was measured.
    pub measured: String,
    /// Whether the requirement is met. `None` if nothing is required.
    pub holds: Option<bool>,
}

impl Claim {
    /// An observation without a requirement.
    pub fn seen(what: &str, measured: impl Into<String>) -> Claim {
        Claim { what: what.to_owned(), paper: None, asked: None, measured: measured.into(), holds: None }
    }

    /// An observation with a requirement.
    pub fn asked(what: &str, asked: &str, measured: impl Into<String>, holds: bool) -> Claim {
        Claim { asked: Some(asked.to_owned()), holds: Some(holds), ..Claim::seen(what, measured) }
    }

    /// Adds what the paper says.
    #[must_use]
    pub fn beside(self, paper: &str) -> Claim {
        Claim { paper: Some(paper.to_owned()), ..self }
    }

    fn holds_in_a_word(&self) -> &'static str {
        match self.holds {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "–",
        }
    }
}

/// The page of results, from the reports alone: a table and the plots. `source` says which paper it is.
pub fn page(paper: &str, source: &str, reports: &[Report]) -> String {
    let mut text = format!(
        "# Results\n\nWritten by the command that measured them (`cargo xtask experiment {paper} all`). \
         [The page of the experiments](../README.md) explains each.\n"
    );
    let mut machines: Vec<&Machine> = Vec::new();
    for report in reports {
        if !machines.iter().any(|known| known.line() == report.machine.line()) {
            machines.push(&report.machine);
        }
    }
    text.push_str(&format!("\n{source}\n"));
    machines.iter().for_each(|machine| text.push_str(&format!("\n{}\n", machine.line())));
    if reports.iter().any(|report| report.short) {
        text.push_str("\n**With short times, to see that all works: these are no figures.**\n");
    }
    for report in reports {
        text.push_str(&format!(
            "\n## {}\n\n| what | the paper | asked | measured | as asked |\n|---|---|---|---|---|\n",
            report.title
        ));
        report.claims.iter().for_each(|claim| text.push_str(&row(claim)));
        text.push_str(&format!("\n![{}]({}.svg)\n", report.title, report.experiment));
    }
    text
}

fn row(claim: &Claim) -> String {
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let or_dash = |text: &Option<String>| text.as_deref().map_or("–".to_owned(), cell);
    format!(
        "| {} | {} | {} | {} | {} |\n",
        cell(&claim.what),
        or_dash(&claim.paper),
        or_dash(&claim.asked),
        cell(&claim.measured),
        claim.holds_in_a_word()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(claims: Vec<Claim>, short: bool) -> Report {
        Report {
            experiment: "fig0".to_owned(),
            title: "Nothing".to_owned(),
            claims,
            data: Value::Null,
            machine: Machine::default(),
            unix_s: 0,
            took_s: 0.0,
            short,
        }
    }

    #[test]
    fn what_does_not_hold_stands_out_and_a_bar_stays_in_its_cell() {
        let claim = Claim::asked("a|b", ">= 90 %", "12 %", false).beside("none");
        assert_eq!(row(&claim), "| a\\|b | none | >= 90 % | 12 % | **no** |\n");
        assert_eq!(row(&Claim::seen("c", "1")), "| c | – | – | 1 | – |\n");
    }

    #[test]
    fn a_page_of_short_runs_says_that_it_has_no_figures() {
        assert!(page("rosemary", "", &[report(vec![], true)]).contains("no figures"));
        assert!(!page("rosemary", "", &[report(vec![], false)]).contains("no figures"));
    }

    #[test]
    fn one_machine_is_told_once() {
        let text = page("rosemary", "", &[report(vec![], false), report(vec![], false)]);
        assert_eq!(text.matches("cores").count(), 1, "{text}");
    }
}
