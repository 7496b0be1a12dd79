//! The stages of `cargo xtask test`, the result of each, and the summary.
//!
//! In: how each stage ended and the lines that its tests printed. Out: counts and text. It starts nothing.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Duration;

/// The result of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageResult {
    /// All of it holds.
    Passed,
    /// Something does not; the sentence says what.
    Failed(String),
    /// It did not run; the sentence says why.
    LeftOut(String),
}

/// Tests, or stages, by result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Ran, and hold.
    pub passed: u32,
    /// Ran, and do not hold.
    pub failed: u32,
    /// Did not run.
    pub skipped: u32,
}

/// What a stage's tests told, line by line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tests {
    /// The sum of the lines `test result: …`.
    pub tally: Tally,
    /// The names of those that failed.
    pub failed: Vec<String>,
    /// The names of those that did not run, with the reason that the test gives.
    pub ignored: Vec<String>,
    /// How many said that they left themselves out, since the last `test result: …`; it counts them as passed.
    left_out: u32,
    /// The last lines that each failed test printed. The summary repeats them, so its reader need not look for them.
    printed: Vec<Printed>,
    /// Whether the lines are now those of a failed test.
    is_printing: bool,
}

/// What a failed test printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Printed {
    test: String,
    /// At most [`PRINTED_MAX`] lines. A test says last why it failed, so the last are kept.
    lines: VecDeque<String>,
}

/// The lines that the summary repeats of a failed test.
const PRINTED_MAX: usize = 12;

/// The characters that the summary repeats of a line.
const CHARACTERS_MAX: usize = 400;

/// A stage that is over.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Its name in the summary.
    pub name: &'static str,
    /// Its result.
    pub outcome: StageResult,
    /// How long it took.
    pub took: Duration,
    /// What its tests told; empty for a stage that runs none.
    pub tests: Tests,
}

impl Tests {
    /// Takes in one line of what Rust's test harness prints.
    pub fn on_line(&mut self, line: &str) {
        self.keep(line);
        if let Some(result) = line.strip_prefix("test result: ") {
            let left_out = std::mem::take(&mut self.left_out);
            self.tally.passed += count(result, "passed").saturating_sub(left_out);
            self.tally.failed += count(result, "failed");
            self.tally.skipped += count(result, "ignored") + left_out;
        } else if let Some(test) = line.strip_prefix("left out: ") {
            let name = test.split(':').next().unwrap_or(test);
            if !self.ignored.iter().any(|known| known.split(':').next() == Some(name)) {
                self.ignored.push(test.to_owned());
                self.left_out += 1;
            }
        } else if let Some((name, end)) =
            line.strip_prefix("test ").and_then(|test| test.rsplit_once(" ... "))
        {
            match end.strip_prefix("ignored") {
                Some(reason) => self.ignored.push(format!("{name}{}", reason.replacen(", ", ": ", 1))),
                None if end.starts_with("FAILED") => self.failed.push(name.to_owned()),
                None => {}
            }
        }
    }

    /// Keeps a line of a failed test. The harness prints them together, below `---- NAME stdout ----`.
    fn keep(&mut self, line: &str) {
        let name = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        if let Some(name) = name {
            self.printed.push(Printed { test: name.to_owned(), ..Printed::default() });
            self.is_printing = true;
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.is_printing = false;
        } else if let (true, Some(printed)) = (self.is_printing && !line.is_empty(), self.printed.last_mut())
        {
            if printed.lines.len() == PRINTED_MAX {
                printed.lines.pop_front();
            }
            printed.lines.push_back(line.chars().take(CHARACTERS_MAX).collect());
        }
    }

    fn ran(&self) -> bool {
        self.tally != Tally::default()
    }
}

/// The number before `word` in `ok. 5 passed; 0 failed; 1 ignored; …`.
fn count(result: &str, word: &str) -> u32 {
    let words: Vec<&str> = result.split([' ', ';']).collect();
    let found = words.windows(2).find(|pair| pair[1] == word);
    found.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

impl Finished {
    /// A stage that runs tests counts as its tests, any other stage as one. A failure outside of a test counts as one too: the
    /// tests did not compile, or were stopped.
    fn tally(&self) -> Tally {
        let mut tally = self.tests.tally;
        match &self.outcome {
            StageResult::Passed if !self.tests.ran() => tally.passed += 1,
            StageResult::Failed(_) if tally.failed == 0 => tally.failed += 1,
            StageResult::LeftOut(_) if !self.tests.ran() => tally.skipped += 1,
            _ => {}
        }
        tally
    }
}

/// The sum over all stages.
pub fn total(stages: &[Finished]) -> Tally {
    let mut total = Tally::default();
    for tally in stages.iter().map(Finished::tally) {
        total.passed += tally.passed;
        total.failed += tally.failed;
        total.skipped += tally.skipped;
    }
    total
}

/// The table of stages, what was left out and what failed by name, and the counts as the last line.
pub fn summary(stages: &[Finished]) -> String {
    let mut text = String::from("\n");
    for stage in stages {
        let _ = writeln!(text, "{}", row(stage));
    }
    for stage in stages {
        for test in &stage.tests.ignored {
            let _ = writeln!(text, "left out: {test}");
        }
        for test in &stage.tests.failed {
            let _ = writeln!(text, "failed: {}: {test}", stage.name);
            let printed = stage.tests.printed.iter().filter(|printed| printed.test == *test);
            for line in printed.flat_map(|printed| &printed.lines) {
                let _ = writeln!(text, "    {line}");
            }
        }
    }
    let Tally { passed, failed, skipped } = total(stages);
    let _ = writeln!(text, "\n{passed} passed, {failed} failed, {skipped} skipped");
    text
}

fn row(stage: &Finished) -> String {
    let (result, reason) = match &stage.outcome {
        StageResult::Passed => ("passed", None),
        StageResult::Failed(reason) => ("FAILED", Some(reason)),
        StageResult::LeftOut(reason) => ("left out", Some(reason)),
    };
    let mut row = format!("{:<18} {result:<9} {:>4} s", stage.name, stage.took.as_secs());
    if stage.tests.ran() {
        let Tally { passed, failed, skipped } = stage.tests.tally;
        let _ = write!(row, "   {passed} passed, {failed} failed, {skipped} skipped");
    }
    if let Some(reason) = reason {
        let _ = write!(row, "   {reason}");
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &str) -> Tests {
        let mut tests = Tests::default();
        lines.lines().for_each(|line| tests.on_line(line));
        tests
    }

    fn stage(outcome: StageResult, tests: Tests) -> Finished {
        Finished { name: "stage", outcome, took: Duration::ZERO, tests }
    }

    fn check(outcome: StageResult, lines: &str, expected: &str) {
        let text = summary(&[stage(outcome, told(lines))]);
        assert_eq!(text.lines().last(), Some(expected), "{text}");
    }

    fn failed() -> StageResult {
        StageResult::Failed("it failed".to_owned())
    }

    #[test]
    fn lines_that_only_look_like_results_count_nothing() {
        assert_eq!(
            told("test result: \ntest result: ok. many passed; -1 failed\ntest \ntest a\n"),
            Tests::default()
        );
    }

    #[test]
    fn results_of_several_test_binaries_are_added_up() {
        let tests = told(
            "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s\n\
             test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
        );
        assert_eq!(tests.tally, Tally { passed: 6, failed: 2, skipped: 1 });
    }

    #[test]
    fn the_summary_repeats_the_last_lines_of_a_failed_test() {
        let many: String = (1..20).map(|line| format!("line {line}\n")).collect();
        let tests = told(&format!(
            "test a ... FAILED\ntest b ... FAILED\n\nfailures:\n\n---- a stdout ----\n{many}\n---- b stdout ----\nno answer\n\n\
             failures:\n    a\n    b\n\ntest result: FAILED. 0 passed; 2 failed; 0 ignored"
        ));
        let text = summary(&[stage(failed(), tests)]);
        assert!(text.contains("failed: stage: a\n    line 8\n"), "{text}");
        assert!(text.contains("    line 19\nfailed: stage: b\n    no answer\n\n0 passed"), "{text}");
    }

    #[test]
    fn a_test_that_leaves_itself_out_has_not_passed() {
        let tests = told(
            "test a ... ok\ntest b ... ok\nleft out: a: no ovs-ofctl\nleft out: a: no ovs-ofctl\n\
             test result: ok. 2 passed; 0 failed; 0 ignored\ntest result: ok. 3 passed; 0 failed; 0 ignored",
        );
        assert_eq!(tests.tally, Tally { passed: 4, failed: 0, skipped: 1 });
        assert_eq!(tests.ignored, ["a: no ovs-ofctl"]);
    }

    #[test]
    fn failed_and_ignored_tests_are_known_by_name() {
        let tests = told(
            "test a::b ... ok\ntest a::c ... FAILED\ntest d ... ignored, needs root\ntest e ... ignored\n\
             test src/lib.rs - f (line 3) ... FAILED",
        );
        assert_eq!(tests.failed, ["a::c", "src/lib.rs - f (line 3)"]);
        assert_eq!(tests.ignored, ["d: needs root", "e"]);
    }

    #[test]
    fn the_last_line_counts_stages_and_tests() {
        check(StageResult::Passed, "", "1 passed, 0 failed, 0 skipped");
        check(failed(), "", "0 passed, 1 failed, 0 skipped");
        check(StageResult::LeftOut("no tool".to_owned()), "", "0 passed, 0 failed, 1 skipped");
        check(
            StageResult::Passed,
            "test result: ok. 5 passed; 0 failed; 1 ignored",
            "5 passed, 0 failed, 1 skipped",
        );
        check(
            failed(),
            "test result: FAILED. 5 passed; 2 failed; 0 ignored",
            "5 passed, 2 failed, 0 skipped",
        );
    }

    #[test]
    fn a_stage_that_fails_although_its_tests_pass_still_counts() {
        check(failed(), "test result: ok. 5 passed; 0 failed; 0 ignored", "5 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn what_was_left_out_is_named_with_its_reason() {
        let text = summary(&[stage(StageResult::Passed, told("test d ... ignored, needs root"))]);
        assert!(text.contains("left out: d: needs root"), "{text}");
    }
}
