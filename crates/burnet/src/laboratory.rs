//! Starts the laboratory, `burnet-lab`, a separate program that may be installed beside `burnet`.
//!
//! ```text
//!   burnet bench ARGS ──> burnet-lab beside this program, else in PATH ──exec──> burnet-lab bench ARGS
//!                                      └─ neither ──> a sentence that says what to install, exit code 2
//! ```
//!
//! It does not parse the arguments of the laboratory's commands.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Access, access};

use crate::cli::CommandError;

/// The name of the laboratory's program.
const LABORATORY: &str = "burnet-lab";

/// The path of a program with this name: beside the running program, else in `$PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(name)).find(|program| is_program(program))
}

/// Whether the laboratory is installed.
pub fn is_installed() -> bool {
    find_program(LABORATORY).is_some()
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

/// Executes the laboratory in place of this process, with the same arguments. Returns only if that fails, with the
/// reason.
pub fn replace_this_process() -> CommandError {
    let mut arguments = std::env::args_os();
    let own_name = arguments.next().unwrap_or_default();
    let Some(laboratory) = find_program(LABORATORY) else {
        let command = arguments.next().unwrap_or_default();
        return CommandError::Usage(format!(
            "burnet {} needs the program {LABORATORY}, which is neither beside burnet nor in PATH: install it, \
             from a checkout with `cargo install --path crates/lab`",
            command.display()
        ));
    };
    // With our program name, so that its help shows the command as it was typed.
    let error = Command::new(&laboratory).arg0(own_name).args(arguments).exec();
    CommandError::DidNotWork(format!("{} cannot be started: {error}", laboratory.display()))
}
