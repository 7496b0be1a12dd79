//! `burnet completion`: what a shell needs to complete Burnet's commands.
//!
//! In: which shell. Out: its script, made from the command line's own types, so that it is never behind them.
//! It installs nothing.

use clap::CommandFactory;

use crate::cli::{Cli, CompletionArgs};

/// The script for the shell.
pub fn completion(args: &CompletionArgs) -> String {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "burnet", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use clap_complete::Shell;

    #[test]
    fn every_shell_completes_commands_and_options() {
        for shell in Shell::value_variants() {
            let script = completion(&CompletionArgs { shell: *shell });
            for word in ["doctor", "switches", "listen", "restart"] {
                assert!(script.contains(word), "{shell} does not complete {word}");
            }
        }
    }
}
