//! `burnet incidents`: failures, their likely causes, and the evidence.
//!
//! In: the state folder. Out: text or JSON. It needs no running node, and changes nothing.

use std::io::ErrorKind;
use std::path::Path;

use monitor::incident::Incident;
use monitor::records::{self, time_text};
use zone::Sample;

use super::json;
use super::package::state_folder;
use super::table::columns;
use crate::cli::CommandError;
use crate::cli::incidents::{IncidentsArgs, IncidentsCommand};

/// The output of `burnet incidents`.
pub fn incidents(args: &IncidentsArgs) -> Result<String, CommandError> {
    let folder = state_folder(args.state.state.as_deref())?;
    match args.command {
        None | Some(IncidentsCommand::List) => list(&folder, args.json),
        Some(IncidentsCommand::Show { number }) => show(&folder, number, args.json),
    }
}

fn list(folder: &Path, as_json: bool) -> Result<String, CommandError> {
    let shown = folder.display();
    let numbers = records::incident_numbers(folder).map_err(|error| {
        CommandError::DidNotWork(format!("the incidents in {shown} cannot be read: {error}"))
    })?;
    let read: Vec<_> = numbers.iter().map(|number| (*number, records::incident(folder, *number))).collect();
    if as_json {
        // A damaged record is left out.
        let whole: Vec<Incident> = read.into_iter().filter_map(|(_, incident)| incident.ok()).collect();
        return json(&whole);
    }
    if read.is_empty() {
        return Ok(format!("there are no incidents in {shown}\n"));
    }
    let rows: Vec<_> = read
        .iter()
        .map(|(number, incident)| match incident {
            Ok(incident) => row(incident),
            Err(error) => {
                let trouble = format!("it cannot be read: {error}");
                [number.to_string(), "-".into(), "-".into(), "-".into(), trouble, "-".into()]
            }
        })
        .collect();
    Ok(columns(["NUMBER", "TIME", "WHO", "WHAT", "REASON", "CULPRIT"], &rows))
}

fn row(incident: &Incident) -> [String; 6] {
    [
        incident.number.to_string(),
        time_text(incident.unix_ms),
        incident.subject().to_owned(),
        incident.what.words().to_owned(),
        reason(incident),
        incident.finding.culprit.clone().unwrap_or_else(|| "-".to_owned()),
    ]
}

/// The cause, with the exception's text if there was an exception.
fn reason(incident: &Incident) -> String {
    match incident.evidence.exception() {
        Some(said) if !incident.reason.contains(said) => format!("{}: {said}", incident.reason),
        _ => incident.reason.clone(),
    }
}

fn show(folder: &Path, number: u64, as_json: bool) -> Result<String, CommandError> {
    let incident = match records::incident(folder, number) {
        Ok(incident) => incident,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let why = "burnet incidents lists the stored ones";
            return Err(CommandError::Usage(format!("there is no incident {number}: {why}")));
        }
        Err(error) => {
            return Err(CommandError::DidNotWork(format!("incident {number} cannot be read: {error}")));
        }
    };
    if as_json { json(&incident) } else { Ok(text(&incident)) }
}

fn text(incident: &Incident) -> String {
    let Incident { number, generation, then, finding, evidence, .. } = incident;
    let reason = reason(incident);
    let life = if *generation > 0 { format!(", start {generation}") } else { String::new() };
    let mut text = format!(
        "incident {number}: {} {}, {}{life}\n  reason   {reason}\n  then     {then}\n  finding  {}\n",
        incident.subject(),
        incident.what.words(),
        time_text(incident.unix_ms),
        finding.sentence
    );
    if let Some(code) = evidence.exit_code {
        text += &format!("  exit     code {code}\n");
    }
    if let Some(signal) = evidence.signal {
        let core = if evidence.core_dumped { ", a core dump was left" } else { ", no core dump" };
        text += &format!("  exit     signal {signal}{core}\n");
    }
    if !evidence.called.is_empty() {
        text += &format!("  called   {}\n", evidence.called.join(", "));
    }
    let samples = evidence.samples.iter().map(|sample| {
        format!(
            "{}  cpu {} %, {}commands {}/s, refused {}/s",
            time_text(sample.unix_ms),
            sample.cpu_percent,
            own(sample),
            sample.commands_per_s,
            sample.refusals_per_s,
        )
    });
    let delays = evidence.delays.iter().map(|it| {
        let ms = |us: u32| f64::from(us) / 1e3;
        format!(
            "{:>3} %  profile {:.1} to {:.1} ms, switch {:.1} ms",
            it.percent,
            ms(it.earliest_us),
            ms(it.latest_us),
            ms(it.observed_us)
        )
    });
    let facts = evidence.facts.iter().map(|fact| format!("{}  {}", time_text(fact.unix_ms), fact.line));
    text += &section("where it failed", evidence.where_it_failed().map(str::to_owned));
    text += &section("what it printed last", evidence.last_lines.iter().cloned());
    text += &section("what it used", samples);
    text += &section("from a barrier to its reply", delays);
    text + &section("what went before", facts)
}

/// What only a process zone has, and a trusted app lacks.
fn own(sample: &Sample) -> String {
    let Sample { memory_bytes: Some(memory), open_files: Some(files), .. } = *sample else {
        return String::new();
    };
    let (threads, lag) = (sample.processes.unwrap_or_default(), sample.lag_ms.unwrap_or_default());
    format!("memory {} KiB, files {files}, threads {threads}, lag {lag} ms, ", memory >> 10)
}

fn section(heading: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.map(|line| format!("  {line}\n")).collect();
    if lines.is_empty() { lines } else { format!("{heading}:\n{lines}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incident_is_shown_with_all_that_was_seen_and_nothing_that_was_not() {
        let incident: Incident = serde_json::from_str(
            r#"{"number":12,"unix_ms":0,"what":"app_ended","app":"hub","generation":3,"reason":"exit code 101 (a panic)",
                "then":"it restarts now","finding":{"culprit":"hub","sentence":"hub itself"},
                "evidence":{"exit_code":101,"last_lines":["learnt 3","panicked at src/main.rs:7:9:"],
                "facts":[{"unix_ms":5,"line":"app hub: its process is 77"}]}}"#,
        )
        .unwrap();
        let expected = "\
incident 12: hub ended, 1970-01-01T00:00:00.000Z, start 3
  reason   exit code 101 (a panic)
  then     it restarts now
  finding  hub itself
  exit     code 101
where it failed:
  panicked at src/main.rs:7:9:
what it printed last:
  learnt 3
  panicked at src/main.rs:7:9:
what went before:
  1970-01-01T00:00:00.005Z  app hub: its process is 77
";
        assert_eq!(text(&incident), expected);
        let mut incident = incident;
        incident.evidence.last_lines.push("no room for 3".to_owned());
        let said = "exit code 101 (a panic): no room for 3";
        assert_eq!(row(&incident)[4], said);
        assert!(text(&incident).contains(&format!("  reason   {said}\n")));
    }

    #[test]
    fn a_switch_that_left_its_profile_is_shown_with_both_curves() {
        let incident: Incident = serde_json::from_str(
            r#"{"number":3,"unix_ms":0,"what":"switch_left_profile","reason":"of:1: late","then":"t","evidence":{"delays":
                [{"percent":50,"earliest_us":20000,"latest_us":28500,"observed_us":61000}]}}"#,
        )
        .unwrap();
        let shown = text(&incident);
        assert!(shown.starts_with("incident 3: (node) switch left its profile"), "{shown}");
        let line = "from a barrier to its reply:\n   50 %  profile 20.0 to 28.5 ms, switch 61.0 ms\n";
        assert!(shown.contains(line), "{shown}");
    }
}
