//! An app that uses more and more of one resource, named in its settings. Tests use it to see how it is notified and
//! then stopped.
//!
//! It logs the notification about its soft limit, and continues. What it takes is bounded, so that a limit that is
//! not enforced fails a test and not the machine. It does nothing useful.

use burnet_sdk::{App, Commands, Interests, Settings, SoftLimit, quota};
use serde::Deserialize;
use std::fs::File;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

/// Much more than any limit of the tests.
const MEMORY_MIB: usize = 1_024;
const FILES: usize = 4_096;

/// How long it takes its time, for the soft limit of a lag.
const DOZE: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    /// One MiB after the other.
    Memory,
    /// Two processes that hold as much as is told of each.
    Family,
    /// All of a core.
    Processor,
    /// One descriptor after the other.
    Files,
    /// Time, and reads nothing meanwhile.
    Time,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GluttonSettings {
    what: What,
    /// How far it goes without being told, in MiB or descriptors.
    before: usize,
}

struct Glutton {
    settings: GluttonSettings,
    memory: Vec<Vec<u8>>,
    files: Vec<File>,
    family: Vec<Child>,
    ticks: u64,
}

impl App for Glutton {
    fn new(settings: &Settings) -> Result<Self, String> {
        let (memory, files, family) = Default::default();
        Ok(Glutton { settings: settings.read()?, memory, files, family, ticks: 0 })
    }

    fn interests(&self) -> Interests {
        Interests::none().ticks()
    }

    fn on_tick(&mut self, _: u64, _: &mut Commands) {
        self.ticks += 1;
        match self.settings.what {
            What::Memory => self.take_memory(self.settings.before),
            What::Files => self.take_files(self.settings.before),
            What::Family if self.ticks == 1 => self.family = self.start_family(),
            What::Processor if self.ticks == 1 => spin(),
            What::Time if self.ticks == 1 => std::thread::sleep(DOZE),
            _ => {}
        }
    }

    fn on_soft_limit(&mut self, limit: &SoftLimit, _: &mut Commands) {
        let SoftLimit { quota, used, soft, .. } = *limit;
        // Not as a command, which leaves only when the handler returns: not all of them do.
        println!("told of {quota}: {used}, and {soft} is the soft limit");
        if used <= soft {
            return;
        }
        match quota {
            quota::MEMORY_KIB if self.settings.what == What::Memory => self.take_memory(MEMORY_MIB),
            quota::OPEN_FILES => self.take_files(FILES),
            quota::LAG_MS => loop {
                std::thread::park();
            },
            _ => {}
        }
    }
}

impl Glutton {
    fn take_memory(&mut self, mib: usize) {
        while self.memory.len() < mib {
            // Written to, so that it is there and not only promised.
            self.memory.push(vec![0xa5; 1 << 20]);
        }
    }

    fn take_files(&mut self, count: usize) {
        while self.files.len() < count {
            match File::open("/dev/null") {
                Ok(file) => self.files.push(file),
                Err(error) => {
                    println!("stopped: {error}");
                    return self.files.clear();
                }
            }
        }
    }

    /// Each reads zeros, as much at once as it is to hold.
    fn start_family(&self) -> Vec<Child> {
        let size = format!("bs={}M", self.settings.before);
        let start = |_| {
            let mut dd = Command::new("/usr/bin/dd");
            dd.args(["if=/dev/zero", "of=/dev/null", &size]).stdin(Stdio::null()).spawn().ok()
        };
        (0..2).filter_map(start).collect()
    }
}

fn spin() {
    std::thread::spawn(|| {
        loop {
            std::hint::spin_loop();
        }
    });
}

fn main() -> ExitCode {
    burnet_sdk::run::<Glutton>()
}
