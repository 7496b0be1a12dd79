//! `burnet completion`: prints the script with which a shell completes Burnet's commands.
//!
//! In: the shell. Out: its script. The script is generated from the command line's types, so it always fits them.
//! It installs nothing.

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::cli::{Cli, CompletionArgs};

/// The script for the shell.
pub fn completion(args: &CompletionArgs) -> String {
    script(args.shell, &Cli::command())
}

/// The script for a shell and a whole command line: this program's, or one with the laboratory's commands added.
pub fn script(shell: Shell, whole: &Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut for_operators(whole), "burnet", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The command line without its hidden parts, because the generators offer everything that they get.
fn for_operators(whole: &Command) -> Command {
    let subcommands = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let arguments = whole.get_arguments().cloned();
    let visible = Command::new("burnet").version(env!("CARGO_PKG_VERSION")).disable_help_subcommand(true);
    visible.args(arguments).subcommands(subcommands)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_shell_completes_commands_and_options_and_none_that_is_hidden() {
        for shell in Shell::value_variants() {
            let script = completion(&CompletionArgs { shell: *shell });
            for word in ["doctor", "switches", "listen", "restart"] {
                assert!(script.contains(word), "{shell} does not complete {word}");
            }
            assert!(!script.contains("the monitor starts it"), "{shell} completes what is hidden");
        }
        let script = completion(&CompletionArgs { shell: Shell::Bash });
        // The word alone may be the value of an option.
        let offers = |command: &str| script.contains(&format!("burnet,{command})"));
        assert!(offers("doctor") && !offers("zone") && !offers("kernel"), "{script}");
    }
}
