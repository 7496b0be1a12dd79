//! A paper and its experiments, as the command line knows them.
//!
//! ```text
//!   Paper ──> Experiment::run ──> Findings (claims, data, figure) ──> Report as JSON, Figure as SVG and PNG, a page
//! ```
//!
//! A paper is a module with a [`Paper`], and a folder `experiments/NAME` with its page, its numbers and its results. Each
//! experiment starts its own node and network, and ends them.

use crate::lab::Lab;
use crate::plot::Figure;
use crate::report::Claim;
use serde_json::Value;

/// A paper.
#[derive(Clone, Copy)]
pub struct Paper {
    /// Its name on the command line, and that of its folder.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The paper, and how its numbers were obtained: a sentence for below the results.
    pub source: fn() -> Result<String, String>,
    /// All experiments, in the order of the paper.
    pub experiments: &'static [Experiment],
    /// The names of those that need root. `all` leaves them out without it.
    pub as_root: &'static [&'static str],
    /// Experiments that run with another one: its name, and theirs. They need root, and are left out without it.
    pub with: &'static [(&'static str, &'static str)],
    /// Experiments whose claims and figure can be made again from the data of an earlier run.
    pub again: &'static [(&'static str, Again)],
}

/// Makes findings of the data of a report.
pub type Again = fn(&Value) -> Result<Findings, String>;

/// An experiment.
#[derive(Clone, Copy)]
pub struct Experiment {
    /// Its name on the command line, and its files'.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// Runs it.
    pub run: fn(&Lab) -> Result<Findings, String>,
}

/// The findings of an experiment.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The claims.
    pub claims: Vec<Claim>,
    /// All that was measured.
    pub data: Value,
    /// The figure. Its notes get a line about the machine.
    pub figure: Figure,
}

impl Paper {
    /// The experiments of these names, each with those that run with it; all for `all`. Without root, `all` is all that do not need it.
    ///
    /// # Errors
    ///
    /// There is no experiment of a name.
    pub fn wanted(&self, names: &[String], is_root: bool) -> Result<Vec<Experiment>, String> {
        if names.iter().any(|name| name == "all") {
            let possible = self.experiments.iter().filter(|it| is_root || !self.needs_root(it));
            return Ok(possible.copied().collect());
        }
        let find = |name: &str| {
            let found = self.experiments.iter().find(|it| it.name == name).copied();
            found.ok_or(format!("there is no experiment {name}; `experiments {}` lists them", self.name))
        };
        let mut wanted = Vec::new();
        for name in names {
            wanted.push(find(name)?);
            for other in self.brought(name).filter(|other| is_root && !names.iter().any(|name| name == other))
            {
                wanted.push(find(other)?);
            }
        }
        Ok(wanted)
    }

    /// The experiments that are left out without root.
    pub fn skipped(&self, names: &[String]) -> Vec<&'static str> {
        if names.iter().any(|name| name == "all") {
            return self.as_root.to_vec();
        }
        names.iter().flat_map(|name| self.brought(name)).collect()
    }

    fn brought<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'static str> + 'a {
        self.with.iter().filter(move |(one, _)| *one == name).map(|(_, other)| *other)
    }

    /// What makes the findings of an experiment again.
    ///
    /// # Errors
    ///
    /// Its report does not have all that they need.
    pub fn maker_of(&self, name: &str) -> Result<Again, String> {
        let found = self.again.iter().find(|(one, _)| *one == name).map(|(_, again)| *again);
        found
            .ok_or(format!("{name}: its findings cannot be made again from its data; run it without --again"))
    }

    /// Whether an experiment needs root.
    pub fn needs_root(&self, experiment: &Experiment) -> bool {
        self.as_root.contains(&experiment.name)
    }
}

#[cfg(test)]
mod tests {
    use crate::PAPERS;
    use std::collections::BTreeSet;

    #[test]
    fn figure_3_brings_its_part_with_redis_and_leaves_it_out_without_root() {
        let models = crate::models::PAPER;
        let names = ["fig3", "fig2"].map(str::to_owned);
        let wanted = |is_root| -> Vec<&str> {
            models.wanted(&names, is_root).unwrap().iter().map(|it| it.name).collect()
        };
        assert_eq!(wanted(true), ["fig3", "fig3-slow", "fig2"]);
        assert_eq!((wanted(false), models.skipped(&names)), (vec!["fig3", "fig2"], vec!["fig3-slow"]));
        let once = models.wanted(&["fig3".to_owned(), "fig3-slow".to_owned()], true).unwrap();
        assert_eq!(once.len(), 2, "asked for by name, it runs once");
    }

    #[test]
    fn each_experiment_of_a_paper_has_a_name_of_its_own() {
        for paper in PAPERS {
            let names: BTreeSet<&str> = paper.experiments.iter().map(|it| it.name).collect();
            assert_eq!(names.len(), paper.experiments.len(), "{}", paper.name);
            assert!(paper.as_root.iter().all(|name| names.contains(name)), "{}", paper.name);
            let is_there = |(one, other): &(&str, &str)| names.contains(one) && paper.as_root.contains(other);
            assert!(paper.with.iter().all(is_there), "{}", paper.name);
            assert!(paper.again.iter().all(|(name, _)| names.contains(name)), "{}", paper.name);
        }
    }
}
