//! `burnet bench meter`: how often the meter of runs is right on this machine.
//!
//! ```text
//!   idle:     an emulated network in this process, and the meter
//!   starved:  the same beside one busy loop for each core
//! ```
//!
//! Both take turns. An idle run begins when the machine is idle. If other programs then use the cores, it was none, and is
//! made again. In: how many runs, and how long. Out: what the meter said of each. It does not judge the meter.

use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use emulator::validity::{MachineReading, Validity, Verdict};
use emulator::{Emulation, FailMode, FlowSpec, Handle, LinkQuality, SwitchOptions, Topology};
use serde::Serialize;

use super::args::MeterArgs;
use crate::machine::Machine;
use crate::machine_reading::MachineReader;
use crate::printing::print_line;
use burnet::cli::CommandError;
use burnet::commands::json;

/// Datagrams of 100 bytes at this rate are 500 a second. Each makes four releases: by its host and at three links.
const BITS_PER_S: u64 = 500 * 100 * 8;
const DATAGRAM_BYTES: usize = 100;
/// The time for the network to begin, which is not part of a run.
const BEGINNING: Duration = Duration::from_millis(300);
/// How often it looks whether a second is over.
const LOOK: Duration = Duration::from_millis(20);

/// A machine is idle while other programs use at most this share of all cores, in each second.
const IDLE: f64 = 0.4;
/// How long it waits for an idle machine, and how often an idle run is made again. Then the run counts as it is.
const IDLE_PATIENCE: Duration = Duration::from_secs(120);
const ATTEMPTS: u32 = 10;

/// What the meter said of one run.
#[derive(Clone, Debug, Serialize)]
struct MeteredRun {
    starved: bool,
    /// The use of all cores by other programs, in the second in which it was largest.
    others: f64,
    /// How often an idle run was begun before this and made again, because other programs used the cores.
    disturbed: u32,
    verdict: Verdict,
}

/// What it said of all.
#[derive(Clone, Debug, Serialize)]
struct MeterReport {
    machine: Machine,
    runs: Vec<MeteredRun>,
}

/// Measures and prints.
pub fn meter(args: &MeterArgs) -> Result<ExitCode, CommandError> {
    let mut runs = Vec::new();
    for number in 1..=args.runs {
        for starved in [false, true] {
            let time = Duration::from_secs(u64::from(args.seconds));
            let run = if starved { metered_run(true, time)? } else { idle_run(time)? };
            if !args.json {
                print_line(&run.line(number))?;
            }
            runs.push(run);
        }
    }
    let report = MeterReport { machine: Machine::describe(), runs };
    print_line(if args.json { json(&report)? } else { report.text() }.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

impl MeteredRun {
    fn line(&self, number: u32) -> String {
        let why: Vec<String> = self.verdict.findings.iter().map(ToString::to_string).collect();
        let (validity, others, disturbed) = (self.verdict.validity, self.others * 100.0, self.disturbed);
        let kind = if self.starved { "starved" } else { "idle" };
        let why = why.join("; ");
        format!("{number:3}  {kind:7}  others {others:3.0} %  again {disturbed:2}  {validity:8}  {why}")
    }
}

impl MeterReport {
    fn text(&self) -> String {
        let counted = [false, true].map(|starved| {
            let of_kind = || self.runs.iter().filter(move |run| run.starved == starved);
            let with = |validity| of_kind().filter(|run| run.verdict.validity == validity).count();
            format!(
                "{:7}  {} runs: {} valid, {} doubtful, {} invalid; {} of them on a machine that was busy otherwise\n",
                if starved { "starved" } else { "idle" },
                of_kind().count(),
                with(Validity::Valid),
                with(Validity::Doubtful),
                with(Validity::Invalid),
                of_kind().filter(|run| !starved && run.others > IDLE).count()
            )
        });
        format!("{}on {}\n", counted.concat(), self.machine)
    }
}

/// A shell that is busy as long as its parent is the process with the given id. A signal that ends this program does not run its destructors.
/// So the loop looks itself: the system gives a process another parent at once when its parent ends (proc_pid_stat(5), fourth number).
const BUSY_LOOP: &str = r#"
while read -r _ _ _ parent _ < "/proc/$$/stat" && [ "$parent" = "$0" ]; do
    step=0
    while [ $step -lt 10000 ]; do step=$((step + 1)); done
done
"#;

/// Processes that take a core each. They end with it, or with this process.
struct BusyLoops(Vec<Child>);

impl BusyLoops {
    fn start(how_many: usize) -> std::io::Result<Self> {
        let mut loops = BusyLoops(Vec::new());
        for _ in 0..how_many {
            let own = std::process::id().to_string();
            loops.0.push(Command::new("sh").args(["-c", BUSY_LOOP, &own]).stdin(Stdio::null()).spawn()?);
        }
        Ok(loops)
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It ends only after this process, so it has not ended yet.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A run on a machine that is idle otherwise, as far as there is such a moment.
fn idle_run(time: Duration) -> Result<MeteredRun, CommandError> {
    let mut disturbed = 0;
    loop {
        watch(IDLE_PATIENCE, |_, others| others > IDLE);
        let run = metered_run(false, time)?;
        if run.others <= IDLE || disturbed >= ATTEMPTS {
            return Ok(MeteredRun { disturbed, ..run });
        }
        disturbed += 1;
    }
}

/// Reads the machine each second for some time, or until the caller has seen enough. It gets each reading, and how much
/// of all cores other programs used.
fn watch(time: Duration, mut goes_on: impl FnMut(MachineReading, f64) -> bool) {
    let cores = Machine::describe().cores as f64;
    let (began, mut reader, mut used) = (Instant::now(), MachineReader::new(), processor_time());
    let mut last = began;
    while began.elapsed() < time {
        std::thread::sleep(LOOK);
        let Some(reading) = reader.look() else { continue };
        let (now, used_now) = (Instant::now(), processor_time());
        let own = (used_now - used).as_secs_f64() / (now - last).as_secs_f64() / cores;
        (used, last) = (used_now, now);
        if !goes_on(reading, (reading.processor - own).max(0.0)) {
            return;
        }
    }
}

/// The processor time of this process.
fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

fn metered_run(starved: bool, time: Duration) -> Result<MeteredRun, CommandError> {
    let trouble =
        |error: &dyn std::fmt::Display| CommandError::DidNotWork(format!("a run cannot be made: {error}"));
    let cores = if starved { Machine::describe().cores } else { 0 };
    let _loops = BusyLoops::start(cores).map_err(|error| trouble(&error))?;
    let network = start_network().map_err(|error| trouble(&error))?;
    std::thread::sleep(BEGINNING);
    network.restart_meter();
    let mut others = 0.0f64;
    watch(time, |reading, used_by_others| {
        others = others.max(used_by_others);
        network.note_machine(reading);
        true
    });
    let verdict = network.verdict().ok_or_else(|| trouble(&"the emulation has ended"))?;
    Ok(MeteredRun { starved, others, disturbed: 0, verdict })
}

/// Two switches without a controller, between hosts of which one sends to the other.
fn start_network() -> Result<Handle, Box<dyn std::error::Error>> {
    let mut topology: Topology = "linear,2".parse()?;
    let quality: LinkQuality = "delay=2ms".parse()?;
    topology.links.iter_mut().for_each(|link| link.quality = quality);
    let options = SwitchOptions { fail_mode: FailMode::Standalone, ..SwitchOptions::default() };
    let network = Emulation::start_with_controllers(&topology, &[], &options)?;
    let spec = FlowSpec { payload_bytes: DATAGRAM_BYTES, ..FlowSpec::udp("h1", "h2", BITS_PER_S) };
    network.start_flow(spec)?;
    Ok(network)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Only ends a hang.
    const LIMIT: Duration = Duration::from_secs(60);

    fn until(what: &str, mut holds: impl FnMut() -> bool) {
        let began = Instant::now();
        while !holds() {
            assert!(began.elapsed() < LIMIT, "{what} does not happen");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The state and the processor time of a process, in ticks (proc_pid_stat(5), third and fourteenth).
    fn state(id: u32) -> Option<(String, u64)> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let (_, behind) = stat.rsplit_once(") ")?;
        let words: Vec<&str> = behind.split(' ').collect();
        Some((words[0].to_owned(), words[11].parse().ok()?))
    }

    #[test]
    fn a_busy_loop_is_busy_until_its_parent_ends() {
        let loops = BusyLoops::start(1).unwrap();
        let id = loops.0[0].id();
        until("work", || state(id).is_some_and(|(_, ticks)| ticks > 2));
        drop(loops);
        assert_eq!(state(id), None);
        // The parent of this one is a shell that is killed.
        let script = format!("sh -c '{BUSY_LOOP}' $$ >/dev/null 2>&1 & echo $!; kill -9 $$");
        let parent = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
        let id: u32 = String::from_utf8(parent.stdout).unwrap().trim().parse().unwrap();
        until("the end", || state(id).is_none_or(|(state, _)| state == "Z"));
    }
}
