//! `cargo xtask instructions`: how many instructions a packet-in costs on its way to a flow mod, stage by stage, and what slices cost the kernel,
//! beside what is recorded.
//!
//! ```text
//!   benches/packet_in --count STAGE VERSION ROUNDS, under callgrind, for few rounds and for many ──> the difference, by packet-in
//!   the kernel's benches on_command and receivers, in the same way ──> the difference, by command or packet-in
//!   instructions.txt ──> the recorded cost of each stage ──> grown by more than 2 %: a failure
//! ```
//!
//! Instructions do not depend on what else the machine does, as times do; of two runs the difference has no start-up in it. Allocations and
//! system calls of the loop would be in it too. It needs Valgrind, which only the test suite installs.

use crate::stage::{StageResult, Tests};
use crate::{packages, process, tree};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// Packet-ins of a round of the bench.
const BATCH: u64 = 256;
/// Rounds of the shorter and of the longer run.
const FEW: u64 = 20;
const MANY: u64 = 60;

/// In the order in which a packet-in passes them; each includes those before.
const STAGES: [&str; 5] = ["view", "session", "dispatch", "app", "path"];
const VERSIONS: [&str; 2] = ["1.0", "1.3"];

/// What is counted in benches of the kernel: the name and the case of a figure, the bench, and its arguments.
///
/// A flow mod of a slice, whose flowspace is one tag. Then a packet-in with a few slices and with many: one that a rule of the last slice has sent,
/// and one that all slices choose by their tags.
const PARTS: [(&str, &str, &str, &[&str]); 5] = [
    ("flow-mod", "one-tag", "on_command", &["slice-output"]),
    ("own-packet-in", "2-slices", "receivers", &["own-rules", "2"]),
    ("own-packet-in", "100-slices", "receivers", &["own-rules", "100"]),
    ("tag-packet-in", "2-slices", "receivers", &["tag", "2"]),
    ("tag-packet-in", "100-slices", "receivers", &["tag", "100"]),
];
/// Commands or packet-ins of a round of these benches.
const BATCH_OF_PARTS: u64 = 1_000;

/// What each stage costs, as it was last looked at: lines of stage, version and count.
const RECORD: &str = "xtask/instructions.txt";

/// By so many hundredths a stage may be off its recorded figure: the learning switch's table is seeded by chance, and libraries differ a little.
const TOLERANCE_PERCENT: u64 = 2;

/// The C library copies by what the processor offers, and Valgrind counts each byte of `rep movsb`. So that figures of two machines can be compared,
/// it is told to copy as every processor of the last ten years can.
const SAME_COPYING: (&str, &str) =
    ("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-ERMS,-FSRM,-Prefer_ERMS");

/// How often a stage that seems to have grown is counted again.
const RECOUNTS: usize = 2;

/// What one stage of one version costs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Figure {
    stage: String,
    version: String,
    count: u64,
}

/// Counts, prints a table and compares; `--record` writes what was counted down as what is to be compared with.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let records = match arguments {
        [] => false,
        [argument] if argument == "--record" => true,
        _ => return Err(format!("`instructions` takes --record, and was given `{}`", arguments.join(" "))),
    };
    if process::find("valgrind").is_none() {
        return Err("valgrind is missing: apt install valgrind".to_owned());
    }
    let recorded = if records { Vec::new() } else { recorded()? };
    let figures = counted(&recorded)?;
    if records {
        let text: String =
            figures.iter().map(|it| format!("{} {} {}\n", it.stage, it.version, it.count)).collect();
        let path = tree::root().join(RECORD);
        std::fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        print!("{}", table(&figures, &figures));
        return Ok(ExitCode::SUCCESS);
    }
    print!("{}", table(&figures, &recorded));
    let grown = grown(&figures, &recorded);
    grown.iter().for_each(|sentence| println!("{sentence}"));
    Ok(if grown.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The same as a stage of the suite, which installs Valgrind where it can.
pub fn check() -> Result<(StageResult, Tests), String> {
    if let Err(reason) = packages::install_for("valgrind", "valgrind") {
        return Ok((StageResult::LeftOut(reason), Tests::default()));
    }
    let recorded = recorded()?;
    let figures = counted(&recorded)?;
    print!("{}", table(&figures, &recorded));
    let grown = grown(&figures, &recorded);
    let outcome = if grown.is_empty() { StageResult::Passed } else { StageResult::Failed(grown.join("\n")) };
    Ok((outcome, Tests::default()))
}

/// Counts every stage. One that seems to have grown is counted again, and the lowest count is taken: the seed of the app's table moves a count by
/// one percent.
fn counted(recorded: &[Figure]) -> Result<Vec<Figure>, String> {
    let path = built("learning-switch", &["packet_in"])?;
    let kernel = built("kernel", &["on_command", "receivers"])?;
    let mut figures = Vec::new();
    for (stage, version) in STAGES.iter().flat_map(|stage| VERSIONS.map(|version| (*stage, version))) {
        let bench = Bench { program: program(&path, "packet_in")?, batch: BATCH };
        figures.push(counted_again(recorded, (stage, version), || bench.each(&[stage, version]))?);
    }
    for (stage, version, name, arguments) in PARTS {
        let bench = Bench { program: program(&kernel, name)?, batch: BATCH_OF_PARTS };
        figures.push(counted_again(recorded, (stage, version), || bench.each(arguments))?);
    }
    Ok(figures)
}

fn counted_again(
    recorded: &[Figure],
    (stage, version): (&str, &str),
    count_once: impl Fn() -> Result<u64, String>,
) -> Result<Figure, String> {
    let mut count = count_once()?;
    for _ in 0..RECOUNTS {
        if of(recorded, stage, version).is_some_and(|before| has_grown(count, before.count)) {
            count = count.min(count_once()?);
        }
    }
    Ok(Figure { stage: stage.to_owned(), version: version.to_owned(), count })
}

fn recorded() -> Result<Vec<Figure>, String> {
    let text = std::fs::read_to_string(tree::root().join(RECORD))
        .map_err(|error| format!("cannot read {RECORD}: {error}"))?;
    text.lines().map(|line| figure(line).ok_or_else(|| format!("{RECORD}: `{line}` is no figure"))).collect()
}

fn figure(line: &str) -> Option<Figure> {
    let mut words = line.split(' ');
    let (stage, version) = (words.next()?.to_owned(), words.next()?.to_owned());
    let count = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Figure { stage, version, count })
}

fn of<'a>(figures: &'a [Figure], stage: &str, version: &str) -> Option<&'a Figure> {
    figures.iter().find(|it| it.stage == stage && it.version == version)
}

/// A line for each stage: what was counted, with what is recorded where that is not the same.
fn table(figures: &[Figure], recorded: &[Figure]) -> String {
    let mut text = format!("{:<10}{:>20}{:>20}\n", "stage", "OpenFlow 1.0", "OpenFlow 1.3");
    let cell = |stage: &str, version: &str| {
        let count = of(figures, stage, version).map_or(0, |it| it.count);
        let before = of(recorded, stage, version).map(|it| it.count).filter(|before| *before != count);
        format!("{count}{}", before.map_or(String::new(), |before| format!(" (recorded {before})")))
    };
    for stage in STAGES {
        text += &format!("{stage:<10}");
        VERSIONS.iter().for_each(|version| text += &format!("{:>20}", cell(stage, version)));
        text.push('\n');
    }
    for (stage, version, ..) in PARTS {
        text += &format!("{:<30}{:>20}\n", format!("{stage} {version}"), cell(stage, version));
    }
    text
}

fn has_grown(count: u64, before: u64) -> bool {
    count * 100 > before * (100 + TOLERANCE_PERCENT)
}

/// A sentence for each stage that costs more than is recorded, or of which nothing is.
fn grown(figures: &[Figure], recorded: &[Figure]) -> Vec<String> {
    let sentence = |it: &Figure| {
        let Figure { stage, version, count } = it;
        match of(recorded, stage, version) {
            None => Some(format!("{RECORD} has no figure for {stage} {version}")),
            Some(before) if has_grown(*count, before.count) => Some(format!(
                "{stage} {version} takes {count} instructions, more than {TOLERANCE_PERCENT} % above the recorded \
                 {}; make it cheaper, or record it with `cargo xtask instructions --record` in the same commit and say why",
                before.count
            )),
            Some(_) => None,
        }
    };
    figures.iter().filter_map(sentence).collect()
}

/// What cargo says when it has built these benches as they are timed.
fn built(package: &str, benches: &[&str]) -> Result<String, String> {
    let mut command = process::cargo();
    command.args(["bench", "-p", package, "--no-run", "--message-format=json"]);
    benches.iter().for_each(|bench| _ = command.args(["--bench", bench]));
    process::output_of(&mut command)
}

/// The path of a bench's program, in what cargo says of all that it built.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    messages.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_bench = message["target"]["name"] == name && message["target"]["kind"][0] == "bench";
        message["executable"].as_str().filter(|_| is_bench).map(PathBuf::from)
    })
}

fn program(messages: &str, name: &str) -> Result<PathBuf, String> {
    executable(messages, name).ok_or_else(|| format!("cargo built no bench {name}"))
}

/// A bench that runs a case for some rounds: `--count ARGUMENTS ROUNDS`.
struct Bench {
    program: PathBuf,
    /// What a round does so often.
    batch: u64,
}

impl Bench {
    /// The instructions of one packet-in or command.
    fn each(&self, arguments: &[&str]) -> Result<u64, String> {
        let (few, many) = (self.count(arguments, FEW)?, self.count(arguments, MANY)?);
        Ok(many.saturating_sub(few) / ((MANY - FEW) * self.batch))
    }

    fn count(&self, arguments: &[&str], rounds: u64) -> Result<u64, String> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(&self.program);
        command.arg("--count").args(arguments).arg(rounds.to_string()).stdin(Stdio::null());
        command.env(SAME_COPYING.0, SAME_COPYING.1);
        let output = command.output().map_err(|error| format!("cannot run valgrind: {error}"))?;
        let text = String::from_utf8_lossy(&output.stderr);
        collected(&text).ok_or_else(|| format!("valgrind counted nothing ({}): {text}", output.status))
    }
}

/// The number in callgrind's line `==PID== Collected : NUMBER`.
fn collected(text: &str) -> Option<u64> {
    let (_, rest) = text.lines().find_map(|line| line.split_once("Collected :"))?;
    rest.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_of(count: u64) -> Vec<Figure> {
        vec![Figure { stage: "path".to_owned(), version: "1.0".to_owned(), count }]
    }

    #[test]
    fn a_line_that_is_no_figure_is_refused() {
        for line in ["", "path 1.0", "path 1.0 x", "path 1.0 7 8", "path 1.0 -7"] {
            assert_eq!(figure(line), None, "{line}");
        }
        assert_eq!(figure("path 1.0 900"), path_of(900).pop());
    }

    #[test]
    fn what_has_grown_by_more_than_two_hundredths_fails_and_names_the_way_out() {
        assert_eq!(grown(&path_of(1_020), &path_of(1_000)), Vec::<String>::new());
        assert_eq!(grown(&path_of(500), &path_of(1_000)), Vec::<String>::new());
        let [sentence] = &grown(&path_of(1_021), &path_of(1_000))[..] else { panic!("it has grown") };
        assert!(sentence.contains("1021") && sentence.contains("--record"), "{sentence}");
        assert_eq!(grown(&path_of(1), &[]).len(), 1, "a stage without a figure");
    }

    #[test]
    fn every_stage_of_every_version_is_recorded() {
        let recorded = recorded().unwrap();
        let stages = STAGES.iter().flat_map(|stage| VERSIONS.map(|version| (*stage, version)));
        for (stage, version) in stages.chain(PARTS.map(|(stage, version, ..)| (stage, version))) {
            assert!(of(&recorded, stage, version).is_some(), "{stage} {version}");
        }
    }

    #[test]
    fn what_callgrind_did_not_count_is_no_number() {
        assert_eq!(collected("==1== Command: x\n"), None);
        assert_eq!(collected("==1== Collected : \n"), None);
    }

    #[test]
    fn the_count_is_in_its_line() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 123456\n==7==\n"), Some(123_456));
    }

    #[test]
    fn the_bench_is_told_from_what_else_was_built() {
        let messages = r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"packet_in"},"executable":null}
not json
{"reason":"compiler-artifact","target":{"kind":["bench"],"name":"packet_in"},"executable":"/t/packet_in-1"}"#;
        assert_eq!(executable(messages, "packet_in"), Some(PathBuf::from("/t/packet_in-1")));
        assert_eq!(executable("{}", "packet_in"), None);
    }
}
