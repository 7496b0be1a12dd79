//! The acting part with real processes. Each scenario starts a node whose kernel process and apps are this program in
//! other roles. It causes a failure, then checks the messages of the monitor and the remaining processes.
//!
//! There is no libtest harness, because the roles are whole processes. `cargo test -p monitor --test node -- WORD` runs
//! the scenarios with WORD in their names. No timing decides a result. A scenario waits for a state, and gives up after
//! a minute.

// Without the harness nothing here is `cfg(test)`, which is what lets tests unwrap elsewhere.
#![allow(clippy::unwrap_used)]

mod roles;
mod scenarios;
mod stage;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("kernel") => roles::kernel(),
        Some("zone") => roles::zone(&args[1..]),
        Some("monitor") => roles::monitor(),
        _ => run_scenarios(&args),
    }
}

fn run_scenarios(args: &[String]) {
    stage::keep_log();
    let words: Vec<_> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    for (name, scenario) in scenarios::ALL {
        if words.is_empty() || words.iter().any(|word| name.contains(word.as_str())) {
            println!("node: {name} …");
            scenario();
        }
    }
    println!("node: all scenarios came out as told");
}
