//! Prints how much memory the tables use for each host and each rule: `cargo run -p view --example memory`.
//!
//! In: nothing. Out: lines on standard output. The memory is what the process uses, as Linux reports it (`VmRSS` in `/proc/self/status`).

mod network;

use network::Network;

/// The resident memory of this process, in KiB. 0 if Linux does not report it.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

fn report(what: &str, count: u64, make: impl FnOnce() -> Network) {
    let before = resident_kib();
    let network = make();
    let used = resident_kib().saturating_sub(before);
    println!("{count} {what}: {} MiB, {} bytes for each", used >> 10, (used << 10) / count);
    println!(
        "  {} objects are known, {} of them visible",
        network.tables.known(),
        network.tables.view().records_after(None).count()
    );
}

fn main() {
    println!("view::Object takes {} bytes, view::Key {}", size_of::<view::Object>(), size_of::<view::Key>());
    report("hosts", 100_000, || Network::with_hosts(100_000));
    report("rules", 1_000_000, || Network::with_rules(1_000_000));
}
