//! Estimates the memory of a network, so that one that is too large is refused before it is made.
//!
//! In: a topology, and the free memory. Out: yes, or the size. It never makes a network.

use std::fmt;

use crate::topology::Topology;
use software_switch::SwitchOptions;

/// The bytes of a switch without rules, tables and ports, but with its connection's buffers. In a line of 2,000
/// switches, a switch and its host take 12 KiB together. These figures are about twice that, for growth in use.
const SWITCH_BYTES: u64 = 12 * 1024;
/// A table without entries.
const TABLE_BYTES: u64 = 512;
/// A link with its two ports or plugs, and a host.
const LINK_BYTES: u64 = 1024;
const HOST_BYTES: u64 = 2048;
/// The bytes for frames on links, events and the loop itself.
const REST_BYTES: u64 = 64 * 1024 * 1024;
/// The share of the free memory that a network may take, in tenths. Usually a controller runs on the same machine.
const SHARE_TENTHS: u64 = 7;

/// The error for a network that is too large. The operator must make it smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// The bytes that it would take.
    pub needed_bytes: u64,
    /// The free bytes.
    pub available_bytes: u64,
    switches: usize,
    hosts: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes.div_ceil(1024 * 1024);
        write!(
            f,
            "a network of {} switches and {} hosts takes about {} MiB, and of the {} MiB that are free it may have {}; make it smaller",
            self.switches,
            self.hosts,
            mib(self.needed_bytes),
            mib(self.available_bytes),
            mib(self.available_bytes / 10 * SHARE_TENTHS)
        )
    }
}

impl std::error::Error for TooLarge {}

/// The bytes of a network without rules.
fn footprint_bytes(topology: &Topology, options: &SwitchOptions) -> u64 {
    let switch = SWITCH_BYTES + TABLE_BYTES * u64::from(options.n_tables);
    let all = [
        (topology.switches.len(), switch),
        (topology.hosts.len(), HOST_BYTES),
        (topology.links.len(), LINK_BYTES),
    ];
    let sum = all.iter().map(|(count, bytes)| (*count as u64).saturating_mul(*bytes));
    sum.fold(REST_BYTES, u64::saturating_add)
}

/// Refuses a network that takes more than its share of the free memory.
///
/// # Errors
///
/// It does: with the size.
fn check_footprint(
    topology: &Topology,
    options: &SwitchOptions,
    available_bytes: u64,
) -> Result<(), TooLarge> {
    let needed_bytes = footprint_bytes(topology, options);
    let (switches, hosts) = (topology.switches.len(), topology.hosts.len());
    if needed_bytes > available_bytes / 10 * SHARE_TENTHS {
        return Err(TooLarge { needed_bytes, available_bytes, switches, hosts });
    }
    Ok(())
}

/// Refuses a network that takes more than its share of this machine's free memory. If that is unknown, no network is
/// refused.
///
/// # Errors
///
/// It takes more than that: with the size.
pub fn check_this_machine(topology: &Topology, options: &SwitchOptions) -> Result<(), TooLarge> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    available_bytes(&meminfo).map_or(Ok(()), |available| check_footprint(topology, options, available))
}

/// The free memory according to `/proc/meminfo`.
fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_the_size() {
        let topology: Topology = "linear,2000".parse().unwrap();
        let options = SwitchOptions::default();
        let needed = footprint_bytes(&topology, &options);
        assert!((100 << 20..300 << 20).contains(&needed), "{needed}");
        assert_eq!(check_footprint(&topology, &options, needed * 2), Ok(()));
        let refused = check_footprint(&topology, &options, 128 << 20).unwrap_err().to_string();
        assert!(refused.starts_with("a network of 2000 switches and 2000 hosts takes about 1"), "{refused}");
        assert!(
            refused.ends_with("of the 128 MiB that are free it may have 90; make it smaller"),
            "{refused}"
        );
    }

    #[test]
    fn what_is_free_is_read_where_it_is_said() {
        assert_eq!(available_bytes(""), None);
        assert_eq!(available_bytes("MemAvailable: many kB\n"), None);
        assert_eq!(
            available_bytes("MemFree:  1 kB\nMemAvailable:   2048 kB\nBuffers: 3 kB\n"),
            Some(2 << 20)
        );
    }
}
