//! The results of the attacks, as text and as JSON: a line for each, a line for each family, and the sum.
//!
//! In: scores. Out: text. It tries nothing.

use std::fmt::Write;

use serde::Serialize;

use super::case::{Case, Family, On};
use super::catalogue;
use super::combination::Combination;
use super::throughput::Kept;
use super::verdict::Verdict;

/// The result of one attack on one combination.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// Its name.
    pub case: &'static str,
    /// Its family.
    pub family: Family,
    /// What is tried.
    pub what: &'static str,
    /// The kind of switch.
    pub switch: &'static str,
    /// The version of OpenFlow.
    pub openflow: String,
    /// Whether everything held.
    pub held: bool,
    /// Whether the result is conclusive. If not, it counts as not held.
    pub judged: bool,
    /// What stopped it, what failed, or why that is not known.
    pub why: String,
    /// How often it was tried.
    pub tries: u8,
    /// Pings of hosts that are none of the attacker's business, while it went on.
    pub pings: usize,
    /// Of these, those without an answer.
    pub lost: usize,
    /// Seconds that it took, all tries together.
    pub seconds: f64,
    /// The share of its throughput that a learning switch keeps, if measured. It does not affect the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Kept>,
}

impl Score {
    /// Of a case that was tried so often.
    pub fn new(case: &Case, combination: Combination, verdict: Verdict, tries: u8) -> Score {
        let (held, judged, why) = match verdict {
            Verdict::Held(why) => (true, true, why),
            Verdict::Failed(why) => (false, true, why),
            Verdict::NotJudged(why) => (false, false, format!("not judged: {why}")),
        };
        Score {
            case: case.name,
            family: case.family,
            what: case.what,
            switch: combination.kind_name(),
            openflow: combination.version.to_string(),
            held,
            judged,
            why,
            tries,
            pings: 0,
            lost: 0,
            seconds: 0.0,
            throughput: None,
        }
    }
}

/// As soon as it is over.
pub fn line(score: &Score) -> String {
    let held = if score.held { "held  " } else { "FAILED" };
    let kept = score.throughput.as_ref().map(|kept| format!("; {kept}")).unwrap_or_default();
    let again = if score.tries > 1 { format!(" (try {})", score.tries) } else { String::new() };
    let Score { case, switch, openflow, what, why, .. } = score;
    format!("{held}  {case:<27}{switch} {openflow}  {what}: {why}{again}{kept}")
}

/// Family by family, and all in all.
pub fn summary(scores: &[Score]) -> String {
    let mut text = String::new();
    for (family, name, promise) in Family::ALL {
        let of_family: Vec<&Score> = scores.iter().filter(|score| score.family == family).collect();
        if of_family.is_empty() {
            continue;
        }
        let (held, tried) = (of_family.iter().filter(|score| score.held).count(), of_family.len());
        // Writing into a string does not fail.
        let _ = writeln!(text, "{name:<15}{held:>4} of {tried:<4} {promise}");
    }
    let held = scores.iter().filter(|score| score.held).count();
    let (pings, lost) =
        scores.iter().fold((0, 0), |(pings, lost), score| (pings + score.pings, lost + score.lost));
    let not_judged = match scores.iter().filter(|score| !score.judged).count() {
        0 => String::new(),
        count => format!(" ({count} not judged)"),
    };
    let tried = scores.len();
    let _ =
        write!(text, "{held} of {tried} attacks held{not_judged}; {lost} of {pings} other pings were lost");
    text
}

/// An attack, as the list has it.
#[derive(Serialize)]
struct FileEntry {
    case: &'static str,
    family: Family,
    what: &'static str,
    /// The versions on which it is tried; none if it has to do with no switch.
    openflow: Vec<&'static str>,
}

/// The attacks, for `--list`.
pub fn list(cases: &[&Case]) -> String {
    let mut text = String::new();
    for (family, name, promise) in Family::ALL {
        let of_family: Vec<&&Case> = cases.iter().filter(|case| case.family == family).collect();
        if of_family.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{name}: {promise}");
        for case in of_family {
            let _ = writeln!(text, "  {:<27}{}", case.name, case.what);
        }
    }
    let _ = write!(text, "{} attacks", cases.len());
    text
}

/// The same for programs.
pub fn list_for_programs(cases: &[&Case]) -> impl Serialize + use<> {
    let listed = |case: &&Case| FileEntry {
        case: case.name,
        family: case.family,
        what: case.what,
        openflow: match case.on {
            On::Every => vec!["1.0", "1.3"],
            On::Only(version) if version == openflow::Version::V1_0 => vec!["1.0"],
            On::Only(_) => vec!["1.3"],
            On::Any => Vec::new(),
        },
    };
    cases.iter().map(listed).collect::<Vec<_>>()
}

/// The cases of these names and families; all if there are none.
pub fn wanted(names: &[String], families: &[Family]) -> Vec<&'static Case> {
    let all = names.is_empty() && families.is_empty();
    let is_wanted =
        |case: &&Case| all || names.iter().any(|name| name == case.name) || families.contains(&case.family);
    catalogue::all().filter(is_wanted).collect()
}

#[cfg(test)]
mod tests {
    use super::super::combination::SwitchKind;
    use super::*;
    use openflow::Version;

    fn score(name: &str, verdict: Verdict) -> Score {
        let combination =
            Combination { kind: SwitchKind::Emulated, version: Version::V1_3, tenant: Version::V1_3 };
        let score = Score::new(catalogue::find(name).unwrap(), combination, verdict, 1);
        Score { pings: 10, lost: 1, ..score }
    }

    #[test]
    fn the_summary_counts_what_held_in_each_family() {
        let scores = [
            score("exit", Verdict::Held(String::new())),
            score("abort", Verdict::Failed(String::new())),
            score("miss-rule", Verdict::NotJudged("no ping was sent".to_owned())),
        ];
        let text = summary(&scores);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("body") && lines[0].contains("1 of 2"), "{text}");
        assert!(lines[1].starts_with("identity") && lines[1].contains("0 of 1"), "{text}");
        assert_eq!(lines[2], "1 of 3 attacks held (1 not judged); 3 of 30 other pings were lost");
    }

    #[test]
    fn a_line_says_what_was_tried_and_what_came_of_it() {
        let text = line(&score("exit", Verdict::NotJudged("no ping was sent".to_owned())));
        assert_eq!(
            text,
            "FAILED  exit                       emulated 1.3  calls exit(): not judged: no ping was sent"
        );
    }

    #[test]
    fn the_list_for_programs_is_json() {
        let text =
            serde_json::to_string(&list_for_programs(&wanted(&["table-255".to_owned()], &[]))).unwrap();
        let listed: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&listed[0]["case"], &listed[0]["family"]), (&"table-255".into(), &"identity".into()));
        assert_eq!(listed[0]["openflow"], serde_json::json!(["1.0"]));
    }

    #[test]
    fn names_and_families_add_up() {
        assert_eq!(wanted(&[], &[]).len(), catalogue::all().count());
        let some = wanted(&["exit".to_owned()], &[Family::Operator]);
        assert!(some.len() > 1 && some.iter().filter(|case| case.family != Family::Operator).count() == 1);
    }
}
