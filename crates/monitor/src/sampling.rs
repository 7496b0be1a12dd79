//! Measures the resource use of processes, from `/proc` (proc(5)).
//!
//! ```text
//!   process id of a launcher ──> its descendants ──> stat, status, fd of each ──> Reading
//! ```
//!
//! In: a folder like `/proc`, and a process. Out: a [`Reading`] of it and all its descendants. It skips processes that
//! end meanwhile, and files that it cannot read. It never waits, reads at most [`PROCESSES_MAX`] processes of a zone,
//! and judges nothing.

use std::fs;
use std::io::Read;
use std::path::Path;

/// How many processes of one zone are read. If an operator allows more, the reading misses the rest.
const PROCESSES_MAX: usize = 256;

/// How many threads of one process are searched for children; the children of further threads are missed.
const THREADS_MAX: usize = 256;

/// The longest part of a `/proc` file that is read; the rest is cut. The children of a thread need the most.
const FILE_BYTES_MAX: u64 = 16 << 10;

/// What a tick of processor time is in milliseconds: USER_HZ is 100 on every machine that Linux tells of it (time(7)).
const TICK_MS: u64 = 10;

/// The resource use of some processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Processor time since their start, including that of ended children.
    pub(crate) cpu_ms: u64,
    /// Private memory, in memory or in swap.
    pub(crate) private_bytes: u64,
    /// The largest shared memory that one process has touched: its ports, and the memory shared with its children.
    pub(crate) shared_bytes: u64,
    /// The largest number of descriptors of one process.
    pub(crate) open_files: u32,
    /// Threads.
    pub(crate) threads: u32,
}

impl Reading {
    fn add(&mut self, other: &Reading) {
        self.cpu_ms += other.cpu_ms;
        self.private_bytes += other.private_bytes;
        self.shared_bytes = self.shared_bytes.max(other.shared_bytes);
        self.open_files = self.open_files.max(other.open_files);
        self.threads += other.threads;
    }
}

/// Reads a zone. Of its launcher and init, only the processor time counts, because it includes that of ended processes;
/// the rest is the app's. `None` if it is gone.
pub(crate) fn zone(proc: &Path, launcher: u32) -> Option<Reading> {
    let processes = family(proc, launcher);
    // Without namespaces the launcher becomes the app.
    let waits = processes.iter().any(|process| process.is_init);
    let mut all = Reading::default();
    for process in &processes {
        match waits && (process.is_init || process.pid == launcher) {
            true => all.cpu_ms += process.reading.cpu_ms,
            false => all.add(&process.reading),
        }
    }
    (!processes.is_empty()).then_some(all)
}

/// Reads one process, without its descendants. `None` if it is gone.
pub(crate) fn process(proc: &Path, pid: u32) -> Option<Reading> {
    read_process(proc, pid).map(|process| process.reading)
}

struct Process {
    pid: u32,
    /// It is process 1 of another namespace.
    is_init: bool,
    reading: Reading,
}

fn family(proc: &Path, first: u32) -> Vec<Process> {
    let mut waiting = vec![first];
    let mut found = Vec::new();
    while let Some(pid) = waiting.pop().filter(|_| found.len() < PROCESSES_MAX) {
        let Some(process) = read_process(proc, pid) else { continue };
        let room = PROCESSES_MAX.saturating_sub(waiting.len());
        waiting.extend(children(proc, pid, process.reading.threads).into_iter().take(room));
        found.push(process);
    }
    found
}

fn read_process(proc: &Path, pid: u32) -> Option<Process> {
    let folder = proc.join(pid.to_string());
    let cpu_ms = cpu_ms(&read(&folder.join("stat"))?)?;
    let status = Status::parse(&read(&folder.join("status"))?);
    let reading = Reading {
        cpu_ms,
        private_bytes: status.private_bytes,
        shared_bytes: status.shared_bytes,
        open_files: open_files(&folder.join("fd")),
        threads: status.threads,
    };
    Some(Process { pid, is_init: status.is_init, reading })
}

fn children(proc: &Path, pid: u32, threads: u32) -> Vec<u32> {
    let tasks = proc.join(pid.to_string()).join("task");
    let of = |thread: &Path| numbers(&read(&thread.join("children")).unwrap_or_default());
    if threads <= 1 {
        return of(&tasks.join(pid.to_string()));
    }
    let folders = fs::read_dir(&tasks).into_iter().flatten().flatten().take(THREADS_MAX);
    folders.flat_map(|folder| of(&folder.path())).collect()
}

fn numbers(text: &str) -> Vec<u32> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// The command's name is in parentheses, and may contain any character.
fn cpu_ms(stat: &str) -> Option<u64> {
    let (_, behind) = stat.rsplit_once(')')?;
    // utime, stime, cutime, cstime: the 14th to the 17th field, of which the first two are before the `)`.
    let fields: Vec<u64> =
        behind.split_whitespace().skip(11).take(4).filter_map(|field| field.parse().ok()).collect();
    (fields.len() == 4)
        .then(|| fields.iter().fold(0, |sum: u64, ticks| sum.saturating_add(*ticks)))?
        .checked_mul(TICK_MS)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Status {
    private_bytes: u64,
    shared_bytes: u64,
    threads: u32,
    is_init: bool,
}

impl Status {
    /// Missing values count as 0: an ended process has no memory.
    fn parse(text: &str) -> Status {
        let mut status = Status::default();
        for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
            match key {
                "RssAnon" | "VmSwap" => {
                    status.private_bytes = status.private_bytes.saturating_add(bytes(value))
                }
                "RssShmem" => status.shared_bytes = bytes(value),
                "Threads" => status.threads = value.trim().parse().unwrap_or_default(),
                "NSpid" => status.is_init = is_init(value),
                _ => {}
            }
        }
        status
    }
}

/// `  1024 kB`.
fn bytes(value: &str) -> u64 {
    let kib = value.split_whitespace().next().and_then(|number| number.parse::<u64>().ok());
    kib.unwrap_or_default().saturating_mul(1024)
}

/// Its ids, from the reader's namespace to its own.
fn is_init(value: &str) -> bool {
    let ids: Vec<&str> = value.split_whitespace().collect();
    ids.len() > 1 && ids.last() == Some(&"1")
}

/// Linux reports the number since 6.2; before that, the entries are counted.
fn open_files(folder: &Path) -> u32 {
    let told = fs::metadata(folder).map_or(0, |metadata| metadata.len());
    let count =
        if told > 0 { told } else { fs::read_dir(folder).map_or(0, |entries| entries.count() as u64) };
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// `None` if it is gone. A name may contain bytes that are not text; they are replaced.
fn read(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A test folder in place of `/proc`.
    struct Proc(PathBuf);

    impl Proc {
        fn new(name: &str) -> Proc {
            let path = std::env::temp_dir().join(format!("burnet-sampling-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Proc(path)
        }

        fn put(&self, path: &str, text: &[u8]) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// A process with one thread that used 30 ms and holds 4 KiB, with one open descriptor.
        fn process(&self, pid: u32, ids: &str, children: &str) {
            self.put(
                &format!("{pid}/stat"),
                format!("{pid} (x) S 1 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 5").as_bytes(),
            );
            let status = format!("Name:\tx\nNSpid:\t{ids}\nRssAnon:\t       4 kB\nThreads:\t1\n");
            self.put(&format!("{pid}/status"), status.as_bytes());
            self.put(&format!("{pid}/task/{pid}/children"), children.as_bytes());
            self.put(&format!("{pid}/fd/0"), b"");
        }
    }

    impl Drop for Proc {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_damaged_is_left_out() {
        let check = |stat: &str, expected| assert_eq!(cpu_ms(stat), expected, "{stat}");
        check("", None);
        check("12 (x", None);
        check("12 (x) R 1 2 3", None);
        check("12 (x) R 1 2 3 4 5 6 7 8 9 10 a 12 13 14 15", None);
        check("12 (x) R 1 2 3 4 5 6 7 8 9 10 11 12 13", None);
        check("12 (x) R 1 2 3 4 5 6 7 8 9 10 18446744073709551615 1 0 0", None);
        assert_eq!(Status::parse("RssAnon\nThreads:\tmany\nRssAnon:\t-1 kB\nNSpid:\n:\n"), Status::default());
        assert_eq!(Status::parse("RssAnon:\t18446744073709551615 kB\n").private_bytes, u64::MAX);
        assert_eq!(numbers("12 x -3 4294967296 7"), [12, 7]);
    }

    #[test]
    fn a_name_cannot_pretend_to_be_a_number() {
        assert_eq!(cpu_ms("7 (a) R 9 9 (b) S 1 1 1 0 -1 4194560 90 0 0 0 3 4 5 6 20 0 1 0 100 0"), Some(180));
        let proc = Proc::new("name");
        proc.put("7/stat", b"7 (\xff\xfe) 1) S 1 1 1 0 -1 0 0 0 0 0 1 1 1 1 20 0 1 0 5");
        proc.put("7/status", b"Name:\t\xff\nThreads:\t2\nRssShmem:\t 8 kB\nVmSwap:\t1 kB\n");
        let expected =
            Reading { cpu_ms: 40, private_bytes: 1024, shared_bytes: 8192, open_files: 0, threads: 2 };
        assert_eq!(process(&proc.0, 7), Some(expected));
        assert_eq!(process(&proc.0, 8), None);
    }

    #[test]
    fn of_a_zone_the_app_counts_and_not_who_waits_for_it() {
        let proc = Proc::new("zone");
        proc.process(10, "10", "11 ");
        proc.process(11, "11 1", "12 13 ");
        proc.process(12, "12 2", "14 99 ");
        proc.process(13, "13 3", "");
        proc.process(14, "14 4", "");
        let expected =
            Reading { cpu_ms: 150, private_bytes: 3 * 4096, shared_bytes: 0, open_files: 1, threads: 3 };
        let read = zone(&proc.0, 10).unwrap();
        // A folder here has a size of its own, where that of Linux has a count.
        assert_eq!(Reading { open_files: 1, ..read }, expected);
    }

    #[test]
    fn without_namespaces_the_launcher_is_the_app() {
        let proc = Proc::new("bare");
        proc.process(10, "10", "11 ");
        proc.process(11, "11", "10 ");
        assert_eq!(zone(&proc.0, 9), None);
        // A process that claims to be its own grandchild is read only up to the bound.
        assert!(zone(&proc.0, 10).is_some_and(|all| all.threads == PROCESSES_MAX as u32));
    }

    #[test]
    fn this_process_is_read_as_it_is() {
        let own = process(Path::new("/proc"), std::process::id()).unwrap();
        // More than the C library keeps of freed memory (32 MiB), and more than other tests free meanwhile.
        let taken = vec![7_u8; 64 << 20];
        let files: Vec<_> = (0..50).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        let after = process(Path::new("/proc"), std::process::id()).unwrap();
        assert!(after.private_bytes >= own.private_bytes + (16 << 20), "{own:?} {after:?} {}", taken.len());
        assert!(after.open_files >= 50 && files.len() == 50, "{after:?}");
        assert!(after.threads >= 1);
    }
}
