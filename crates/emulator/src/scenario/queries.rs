//! Series of queries in a scenario: their keys, and what is expected of them.
//!
//! In: the file's keys, or the reports of series. Out: parameters and expectations, or what was expected in the file; and
//! whether an expectation holds.

use std::time::Duration;

use super::expectation::{Wanted, between};
use super::file;
use super::quantities::time;
use crate::host::query::{Arrivals, QueriesReport, QuerySpec, quantile};

/// The parameters of a series between two hosts. Each series of a scenario has a port of its own.
pub(super) fn spec(
    queries: &file::Queries,
    (from, to): (String, String),
    place: usize,
) -> Result<QuerySpec, String> {
    let plain = QuerySpec::new(from, to);
    let spec = QuerySpec {
        port: plain.port.saturating_add(u16::try_from(place).unwrap_or(u16::MAX)),
        request_bytes: queries.request_bytes.unwrap_or(plain.request_bytes),
        reply_bytes: queries.reply_bytes.unwrap_or(plain.reply_bytes),
        arrivals: arrivals(queries)?,
        every: queries.every.as_deref().map_or(Ok(plain.every), time)?,
        duration: time(&queries.duration)?,
        timeout: queries.timeout.as_deref().map_or(Ok(plain.timeout), time)?,
        open_max: queries.open_max.unwrap_or(plain.open_max),
        ..plain
    };
    spec.fault().map_or(Ok(spec), |fault| Err(fault.to_string()))
}

fn arrivals(queries: &file::Queries) -> Result<Arrivals, String> {
    match (queries.arrivals.as_deref().unwrap_or("even"), queries.burst) {
        ("even", None) => Ok(Arrivals::Even),
        ("poisson", None) => Ok(Arrivals::Poisson),
        ("bursts", Some(size)) => Ok(Arrivals::Bursts(size)),
        ("bursts", None) => Err("arrivals = \"bursts\" wants a size, like burst = 100".to_owned()),
        ("even" | "poisson", Some(_)) => Err("burst belongs to arrivals = \"bursts\"".to_owned()),
        (other, _) => {
            Err(format!("expected arrivals = \"even\", \"poisson\" or \"bursts\", found \"{other}\""))
        }
    }
}

/// What is expected of a series.
pub(super) fn wanted(wish: &file::Expectation, queries: usize) -> Result<Wanted, String> {
    let after = wish.after.as_deref().map_or(Ok(Duration::ZERO), time)?;
    match (wish.completed_percent, &wish.completion) {
        (Some(file::Bounds { min, max }), None) => Ok(Wanted::Completed { queries, after, min, max }),
        (None, Some(file::Completion { quantile, .. })) if !(0.0..=1.0).contains(quantile) => {
            Err(format!("expected a quantile between 0 and 1, found {quantile}"))
        }
        (None, Some(file::Completion { quantile, min, max })) => {
            let bound = |text: &Option<String>| text.as_deref().map(time).transpose();
            Ok(Wanted::Completion { queries, after, quantile: *quantile, min: bound(min)?, max: bound(max)? })
        }
        _ => {
            Err("expected completed_percent = { min = … } or completion = { quantile = 0.5, max = \"5ms\" } \
                  beside queries"
                .to_owned())
        }
    }
}

impl Wanted {
    /// Whether the queries are within the bounds, and what was found. `None` if it is not about queries.
    pub(super) fn in_queries(&self, reports: &[Option<QueriesReport>]) -> Option<(bool, String)> {
        let (Wanted::Completed { queries, .. } | Wanted::Completion { queries, .. }) = self else {
            return None;
        };
        let Some(Some(report)) = reports.get(*queries) else {
            return Some((false, "they did not begin".to_owned()));
        };
        match self {
            Wanted::Completed { after, min, max, .. } => {
                let (completed, failed) = (report.completion_times(*after).len(), report.failed(*after));
                let all = completed + failed;
                let percent = if all == 0 { 0.0 } else { completed as f64 * 100.0 / all as f64 };
                let fits = min.is_none_or(|min| percent >= min) && max.is_none_or(|max| percent <= max);
                Some((fits, format!("{completed} of {all} completed ({percent:.1} %)")))
            }
            Wanted::Completion { after, quantile: share, min, max, .. } => {
                let Some(found) = quantile(&report.completion_times(*after), *share) else {
                    return Some((false, "none was completed".to_owned()));
                };
                let fits = min.is_none_or(|min| found >= min) && max.is_none_or(|max| found <= max);
                Some((fits, format!("{:.3} ms", found.as_secs_f64() * 1e3)))
            }
            _ => None,
        }
    }

    /// The expectation of queries as text. Empty if it is another.
    pub(super) fn words_of_queries(&self, name: impl Fn(usize) -> String) -> String {
        let since = |after: &Duration| match after.as_secs_f64() {
            0.0 => String::new(),
            seconds => format!(", from {seconds} s on"),
        };
        match self {
            Wanted::Completed { queries, after, min, max } => {
                let percent = between(*min, *max, |percent| percent.to_string());
                format!("of queries {} are completed {percent} %{}", name(*queries), since(after))
            }
            Wanted::Completion { queries, after, quantile, min, max } => {
                let ms = between(*min, *max, |time| (time.as_secs_f64() * 1e3).to_string());
                format!("quantile {quantile} of queries {} is {ms} ms{}", name(*queries), since(after))
            }
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Rehearsal, Scenario};
    use crate::topology::FromFile;

    const WHOLE: &str = r#"topology = "linear,2"
time = "virtual"
links = "delay=2ms"

[[event]]
at = "1s"
queries = { name = "q", from = "h1", to = "h2", every = "100ms", for = "4s", timeout = "500ms" }

[[event]]
at = "3.05s"
link_down = "s1-s2"

[[expect]]
queries = "q"
completed_percent = { min = 50, max = 55 }

[[expect]]
queries = "q"
completion = { quantile = 0.5, min = "24ms", max = "24ms" }

[[expect]]
queries = "q"
after = "1s"
completion = { quantile = 1.0, max = "24ms" }
"#;

    fn parse(text: &str) -> Result<Scenario, (Option<u32>, String)> {
        let topology = || FromFile { topology: "linear,2".parse().unwrap(), notes: Vec::new() };
        Scenario::parse(text, std::path::Path::new(""), |_| Ok(topology()))
    }

    fn played(text: &str) -> Rehearsal {
        parse(text).unwrap().rehearse(1, || false).unwrap()
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_what_was_expected() {
        let check = |from: &str, to: &str, line: u32, why: &str| {
            assert!(WHOLE.contains(from), "{from}");
            let (found, words) = parse(&WHOLE.replacen(from, to, 1)).unwrap_err();
            assert_eq!(found, Some(line), "{words}");
            assert!(words.contains(why), "{words}");
        };
        check("to = \"h2\"", "to = \"h3\"", 5, "there is no host \"h3\"");
        check("to = \"h2\"", "to = \"h1\"", 5, "h1 would query itself");
        check("every = \"100ms\"", "evry = \"100ms\"", 7, "unknown field `evry`");
        check("every = \"100ms\"", "every = \"0.01ms\"", 5, "queries begin at least 0.1 ms apart");
        check("every = \"100ms\"", "burst = 3", 5, "burst belongs to arrivals = \"bursts\"");
        check("every = \"100ms\"", "arrivals = \"bursts\"", 5, "wants a size, like burst = 100");
        check("every = \"100ms\"", "arrivals = \"odd\"", 5, "expected arrivals = \"even\"");
        check("every = \"100ms\"", "reply_bytes = 0", 5, "a reply has at least 1 byte");
        check("queries = \"q\"", "queries = \"p\"", 13, "there is no series of queries \"p\"; there is q");
        check("completed_percent = { min = 50, max = 55 }", "", 13, "expected completed_percent");
        check("queries = \"q\"\n", "", 13, "completed_percent belongs to queries, which is missing");
        check("quantile = 0.5", "quantile = 50", 17, "expected a quantile between 0 and 1, found 50");
        check("after = \"1s\"", "within = \"1s\"", 21, "leave out at and within");
    }

    #[test]
    fn the_completion_times_of_a_series_are_compared_with_what_is_expected() {
        let rehearsal = played(WHOLE);
        let text: Vec<String> =
            rehearsal.verdicts.iter().map(|verdict| format!("{} {}", verdict.held, verdict.found)).collect();
        assert_eq!(text, ["true 21 of 40 completed (52.5 %)", "true 24.000 ms", "true 24.000 ms"]);
        assert_eq!(rehearsal.verdicts[2].expected, "quantile 1 of queries q is at most 24 ms, from 1 s on");
        assert_eq!(rehearsal.queries[0].1.records.len(), 40);
        let late = played(&WHOLE.replace("max = \"24ms\" }\n\n", "max = \"23ms\" }\n\n"));
        assert!(!late.verdicts[1].held);
        let never = played(&WHOLE.replace("3.05s", "0.5s"));
        assert_eq!(never.verdicts[1].found, "none was completed");
    }

    #[test]
    fn the_seed_decides_random_arrivals() {
        let with_seed = |seed: u32| {
            let text = WHOLE.replace("every", "arrivals = \"poisson\", every");
            played(&text.replace("links", &format!("seed = {seed}\nlinks")))
        };
        assert_eq!(with_seed(1), with_seed(1));
        assert_ne!(with_seed(1).queries, with_seed(2).queries);
    }
}
