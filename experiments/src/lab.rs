//! The environment of an experiment: the programs under test, the durations, and the progress output.
//!
//! It never measures anything itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What an experiment uses.
#[derive(Debug)]
pub struct Lab {
    /// The path of the binary under test.
    pub burnet: PathBuf,
    /// Whether durations are short. That only shows that everything works, and gives no figures.
    pub short: bool,
    began: Instant,
}

impl Lab {
    /// With the binary at this path.
    ///
    /// # Errors
    ///
    /// The binary does not exist.
    pub fn new(burnet: &Path, short: bool) -> Result<Lab, String> {
        let burnet = std::fs::canonicalize(burnet).map_err(|error| {
            format!("{} cannot be used ({error}): build it, or name another with --burnet", burnet.display())
        })?;
        Ok(Lab { burnet, short, began: Instant::now() })
    }

    /// A file that Cargo writes beside the binary, if it exists.
    pub fn beside(&self, name: &str) -> Option<PathBuf> {
        self.burnet.parent().map(|folder| folder.join(name)).filter(|path| path.is_file())
    }

    /// The misbehaving app as a program, which the laboratory writes into a folder beside the binary.
    ///
    /// # Errors
    ///
    /// The laboratory is not beside the binary, or cannot write there.
    pub fn misbehaving_program(&self) -> Result<PathBuf, String> {
        let laboratory = self.beside("burnet-lab").ok_or_else(|| {
            "burnet-lab is not beside the binary: cargo build -p lab, in the binary's profile".to_owned()
        })?;
        let folder = self.burnet.with_file_name("lab-apps");
        let written = Command::new(laboratory).arg("apps").arg(&folder).stdout(Stdio::null()).status();
        match written {
            Ok(status) if status.success() => Ok(folder.join("misbehaving")),
            _ => Err(format!("burnet-lab cannot write its apps into {}", folder.display())),
        }
    }

    /// The misbehaving app as a shared object, which a kernel can load.
    ///
    /// # Errors
    ///
    /// It was not built.
    pub fn misbehaving_object(&self) -> Result<PathBuf, String> {
        self.beside("examples/libmisbehaving_shared.so").ok_or_else(|| {
            "the misbehaving app is not there as a shared object: cargo build -p experiments --examples, in the binary's profile".to_owned()
        })
    }

    /// A duration, or the shorter one in a short run.
    pub fn time(&self, full_s: f64, short_s: f64) -> Duration {
        Duration::from_secs_f64(if self.short { short_s } else { full_s })
    }

    /// A number of repetitions, or the smaller one in a short run.
    pub fn times(&self, full: usize, short: usize) -> usize {
        if self.short { short } else { full }
    }

    /// Prints a line of progress.
    pub fn say(&self, line: &str) {
        eprintln!("{:7.1}s  {line}", self.began.elapsed().as_secs_f64());
    }
}
