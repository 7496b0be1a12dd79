//! The acting part with real processes: each scenario starts a node of which kernel and apps are this program in
//! another role, breaks something with the system's own means, and looks at what the monitor says and what is left
//! alive.
//!
//! There is no libtest harness, because the roles are whole processes. `cargo test -p monitor --test node -- WORD` runs the
//! scenarios with WORD in their names. Nothing is decided by a timing; whoever waits, waits for a state, and gives up
//! after a minute.

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
