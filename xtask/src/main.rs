//! The project's chores: `cargo xtask NAME`.
//!
//! In: the command line and the working tree. Out: what a chore prints, and an exit code: 0 if it succeeded, 1 if the
//! project fails a check, 2 for a usage error.
//! It never runs as part of Burnet, and it starts everything else, so it stays small: one dependency.

mod circles;
mod code;
mod deb;
mod demo;
mod draw;
mod experiment;
mod fuzz;
mod instructions;
mod lengths;
mod oci;
mod packages;
mod pages;
mod pictures;
mod process;
mod prose;
mod python;
mod release;
mod rules;
mod sentences;
mod site;
mod size;
mod stage;
mod suite;
mod tree;
mod trial;
mod web;
mod wheel;

use std::process::ExitCode;

/// A chore: its name, its line in the list, and what it does with the arguments that follow its name.
struct Chore {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<ExitCode, String>,
}

const CHORES: [Chore; 14] = [
    Chore {
        name: "test",
        about: "run every check and test; --quick leaves out the slow ones",
        run: suite::run,
    },
    Chore {
        name: "demo",
        about: "build Burnet and run `burnet demo` with the arguments given",
        run: demo::run,
    },
    Chore {
        name: "rules",
        about: "check who depends on whom, the rules for files, names and language in the docs",
        run: rules::run,
    },
    Chore {
        name: "pictures",
        about: "draw the pictures of the docs from their sources in docs/pictures",
        run: pictures::run,
    },
    Chore {
        name: "site",
        about: "build the pages into a searchable site; installs mdBook when it is missing",
        run: site::run,
    },
    Chore {
        name: "sentences",
        about: "print random sentences of docs, messages and comments: sentences [--seed N] [--count N]",
        run: draw::run,
    },
    Chore {
        name: "instructions",
        about: "count what a packet-in costs on its way to a flow mod, and compare it with the record; --record writes it",
        run: instructions::run,
    },
    Chore {
        name: "experiment",
        about: "repeat a paper's experiments: experiment PAPER NAME|all [--short]",
        run: experiment::run,
    },
    Chore {
        name: "size",
        about: "build the release of burnet from nothing, and print its size and the time; minutes",
        run: size::run,
    },
    Chore {
        name: "web",
        about: "build the page into web/dist; --figures measures its frames, --picture takes the picture of the docs",
        run: web::run,
    },
    Chore { name: "wheel", about: "build the wheel of the Python SDK", run: wheel::run },
    Chore {
        name: "deb",
        about: "build the packages for Debian 12, and try them: deb [--binaries DIR] [--try]",
        run: deb::run,
    },
    Chore {
        name: "oci",
        about: "build an image for container engines, and try it: oci [--binaries DIR] [--try]",
        run: oci::run,
    },
    Chore {
        name: "fuzz",
        about: "run the fuzz targets: fuzz [TARGET|oracle] [--seconds N] [--seed N]",
        run: fuzz::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", list());
        return ExitCode::SUCCESS;
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print!("{}", list());
        return ExitCode::SUCCESS;
    }
    let Some(chore) = CHORES.iter().find(|chore| chore.name == name) else {
        return refuse(&format!("there is no chore `{name}`; `cargo xtask` alone lists them"));
    };
    (chore.run)(rest).unwrap_or_else(|reason| refuse(&reason))
}

fn refuse(reason: &str) -> ExitCode {
    eprintln!("xtask: {reason}");
    ExitCode::from(2)
}

fn list() -> String {
    let mut text = String::from("cargo xtask NAME [ARGUMENTS]\n\n");
    for Chore { name, about, .. } in &CHORES {
        text.push_str(&format!("  {name:<12} {about}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chore_has_one_line_in_the_list() {
        for chore in &CHORES {
            let lines = list().lines().filter(|line| line.trim_start().starts_with(chore.name)).count();
            assert_eq!(lines, 1, "{}", chore.name);
        }
    }

    #[test]
    fn a_chore_refuses_arguments_that_it_does_not_know() {
        let check = |chore: &str, argument: &str| {
            let chore = CHORES.iter().find(|known| known.name == chore).unwrap();
            let reason = (chore.run)(&[argument.to_owned()]).unwrap_err();
            assert!(reason.contains(argument), "{reason}");
        };
        check("test", "--fast");
        check("rules", "all");
        check("site", "--fast");
        check("pictures", "--fast");
        check("sentences", "--fast");
        check("wheel", "--fast");
        check("deb", "--fast");
        check("oci", "--fast");
        check("fuzz", "--minutes");
        check("instructions", "--fast");
        check("experiment", "no-such-paper");
    }
}
