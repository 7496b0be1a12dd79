//! What the machine does while something is measured: the use of its cores, stolen time, and how long our threads waited.
//!
//! In: `/proc/stat` and `/proc/self/task/*/schedstat`, once a second. Out: [`MachineReading`], for the meter. It judges
//! nothing. Without `/proc/stat` there is no reading. Without `schedstat`, the wait counts as 0.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use emulator::validity::MachineReading;

/// How far apart readings are.
const PERIOD: Duration = Duration::from_secs(1);
/// A reading of less time than this says nothing: the processor's ticks are a hundredth of a second.
const SHORTEST: Duration = Duration::from_millis(200);
/// How many threads are read. This process has a few.
const THREADS_MAX: usize = 256;

/// Reads the machine from time to time.
#[derive(Debug)]
pub(crate) struct MachineReader {
    last: Option<(Instant, Counted)>,
}

/// What the system has counted since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counted {
    ticks: Ticks,
    /// How long each thread was ready to run but had no core.
    waits: BTreeMap<u64, Duration>,
}

/// The ticks of all cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    stolen: u64,
    all: u64,
}

impl MachineReader {
    /// A reader whose first reading is of the time from now on.
    pub(crate) fn new() -> Self {
        MachineReader { last: now() }
    }

    /// A reading, if the last one is a second ago.
    pub(crate) fn look(&mut self) -> Option<MachineReading> {
        self.read_after(PERIOD)
    }

    /// A reading of the time since the last one, at the end of a run. `None` if that is too short.
    pub(crate) fn finish(&mut self) -> Option<MachineReading> {
        self.read_after(SHORTEST)
    }

    fn read_after(&mut self, period: Duration) -> Option<MachineReading> {
        if self.last.as_ref().is_some_and(|(at, _)| at.elapsed() < period) {
            return None;
        }
        let (at, counted) = now()?;
        let before = self.last.replace((at, counted.clone()));
        let (before_at, before) = before?;
        Some(counted.since(&before, at - before_at))
    }
}

impl Counted {
    fn since(&self, before: &Counted, time: Duration) -> MachineReading {
        let ticks = |of: fn(&Ticks) -> u64| of(&self.ticks).saturating_sub(of(&before.ticks)) as f64;
        let all = ticks(|ticks| ticks.all).max(1.0);
        let waited = |(thread, wait): (&u64, &Duration)| {
            wait.saturating_sub(before.waits.get(thread).copied().unwrap_or_default())
        };
        let longest = self.waits.iter().map(waited).max().unwrap_or_default();
        MachineReading {
            time,
            processor: ticks(|ticks| ticks.busy) / all,
            steal: ticks(|ticks| ticks.stolen) / all,
            run_queue: longest.as_secs_f64() / time.as_secs_f64().max(f64::EPSILON),
        }
    }
}

fn now() -> Option<(Instant, Counted)> {
    let ticks = ticks(&std::fs::read_to_string("/proc/stat").ok()?)?;
    Some((Instant::now(), Counted { ticks, waits: waits(Path::new("/proc/self/task")) }))
}

/// The waits of each thread. One that has ended, or a system that does not count them, has none.
fn waits(threads: &Path) -> BTreeMap<u64, Duration> {
    let entries = std::fs::read_dir(threads).into_iter().flatten().flatten().take(THREADS_MAX);
    let wait = entries.filter_map(|entry| {
        let thread = entry.file_name().to_str()?.parse().ok()?;
        Some((thread, run_queue_wait(&std::fs::read_to_string(entry.path().join("schedstat")).ok()?)?))
    });
    wait.collect()
}

/// The second number of `schedstat`: nanoseconds of waiting (Linux, Documentation/scheduler/sched-stats.rst).
fn run_queue_wait(schedstat: &str) -> Option<Duration> {
    schedstat.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// The line `cpu` of `/proc/stat` (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal. The ticks of
/// guests are part of user and nice.
fn ticks(stat: &str) -> Option<Ticks> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let numbers: Vec<u64> = line.split_whitespace().take(8).map_while(|number| number.parse().ok()).collect();
    let [_, _, _, idle, io_wait, _, _, stolen] = numbers[..] else { return None };
    let all = numbers.iter().sum();
    Some(Ticks { busy: all - idle - io_wait - stolen, stolen, all })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(stat: &str, waits: &[(u64, u64)]) -> Counted {
        let waits = waits.iter().map(|(thread, ms)| (*thread, Duration::from_millis(*ms))).collect();
        Counted { ticks: ticks(stat).unwrap(), waits }
    }

    #[test]
    fn damaged_files_give_no_numbers() {
        for text in ["", "cpu", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 x 5 6 7 8 9"] {
            assert_eq!(ticks(text), None, "{text}");
        }
        for text in ["", "5", "5 x 1"] {
            assert_eq!(run_queue_wait(text), None, "{text}");
        }
        assert_eq!(waits(Path::new("/nowhere")), BTreeMap::new());
    }

    #[test]
    fn a_reading_is_of_the_time_since_the_one_before() {
        let before = counted("cpu  100 0 50 800 10 0 0 5 7 7\ncpu0 1\n", &[(1, 10), (2, 500)]);
        let after = counted("cpu  160 10 70 890 20 5 5 15 9 9\n", &[(1, 90), (2, 501), (3, 30)]);
        let reading = after.since(&before, Duration::from_secs(1));
        assert_eq!((reading.processor, reading.steal), (100.0 / 210.0, 10.0 / 210.0));
        assert_eq!(reading.time, Duration::from_secs(1));
        assert!((reading.run_queue - 0.08).abs() < 1e-9, "the first thread waited most: {reading:?}");
    }

    #[test]
    fn this_machine_can_be_read() {
        let mut reader = MachineReader::new();
        assert_eq!(reader.look(), None, "it is too early");
        let (at, counted) = reader.last.take().unwrap();
        assert!(!counted.waits.is_empty() && counted.ticks.all > 0, "{counted:?}");
        reader.last = at.checked_sub(PERIOD).map(|before| (before, counted));
        let reading = reader.look().unwrap();
        assert!((0.0..=1.0).contains(&reading.processor) && reading.run_queue >= 0.0, "{reading:?}");
    }
}
