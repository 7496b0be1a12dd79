//! The paper's testbed (Figure 1) with processes: three network namespaces, Redis, and a switch at two interfaces. It needs root.
//!
//! ```text
//!   namespace h1: clients ── veth, 1 Gb/s ──┐                     ┌── veth, 1 Gb/s ── redis-server :namespace h2
//!                                        s1-eth1 ── switch ── s1-eth2
//!   namespace of the testbed: burnet run ──127.0.0.1:6653──┘
//! ```
//!
//! Everything is in a network, a mount and a process namespace of its own, and ends with this process.

pub mod bed;
pub mod bounded;
pub mod capture;
pub mod clients;
pub mod figures;
pub mod null;
pub mod sandbox;
pub mod slow_hosts;
pub mod streams;

/// Does a part of a run, in a process of its own within the testbed. What it prints is the result.
///
/// # Errors
/// There is no such part, or it fails.
pub fn part(text: &str) -> Result<String, String> {
    let unknown = || format!("there is no part models:{text}");
    let (kind, plan) = text.split_once(':').ok_or_else(unknown)?;
    let bad = |why: serde_json::Error| format!("models:{kind}: {why}");
    match kind {
        "clients" => {
            let plan = serde_json::from_str(plan).map_err(bad)?;
            serde_json::to_string(&clients::run(&plan)?).map_err(bad)
        }
        "capture" => {
            let plan = serde_json::from_str(plan).map_err(bad)?;
            serde_json::to_string(&capture::run(&plan)?).map_err(bad)
        }
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn an_unknown_part_and_a_bad_plan_are_refused_by_name() {
        for text in ["planets", "planets:{}", "clients:{}", "capture:7"] {
            let why = part(text).unwrap_err();
            assert!(why.contains("models:"), "{why}");
        }
    }
}
