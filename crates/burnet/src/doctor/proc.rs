//! Parses files of `/proc`.
//!
//! In: their text (proc(5)). Out: the values, or nothing if a line has not the documented form. It opens no file.

/// Addresses, ports and capabilities are hexadecimal. All other numbers are decimal.
const HEXADECIMAL: u32 = 16;

/// A line `Name:   number kB` of `/proc/meminfo`, in bytes.
pub(super) fn meminfo_bytes(meminfo: &str, name: &str) -> Option<u64> {
    let rest = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kibibytes: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The effective capabilities in `/proc/self/status`, one bit each.
pub(super) fn effective_capabilities(status: &str) -> Option<u64> {
    let digits = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(digits.trim(), HEXADECIMAL).ok()
}

/// The inode of a socket that listens on `port`, in `/proc/net/tcp` or `/proc/net/tcp6`.
pub(super) fn listener_inode(table: &str, port: u16) -> Option<u64> {
    /// `TCP_LISTEN` of Linux's `tcp_states.h`.
    const LISTEN: &str = "0A";
    table.lines().skip(1).find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, state, _, _, _, _, _, inode, ..] = columns[..] else { return None };
        let (_, digits) = local.rsplit_once(':')?;
        let listens = state == LISTEN && u16::from_str_radix(digits, HEXADECIMAL) == Ok(port);
        listens.then(|| inode.parse().ok()).flatten()
    })
}

/// The mounts of one type in `/proc/self/mounts`: folder and options.
pub(super) fn mounts<'t>(mounts: &'t str, kind: &str) -> Vec<(&'t str, Vec<&'t str>)> {
    let parts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    parts
        .filter_map(|parts| match parts[..] {
            [_, place, found, options, ..] if found == kind => Some((place, options.split(',').collect())),
            _ => None,
        })
        .collect()
}

/// This process's place in the hierarchy of a controller, in `/proc/self/cgroup`. `""` is the hierarchy of version 2.
pub(super) fn cgroup_place<'t>(cgroup: &'t str, controller: &str) -> Option<&'t str> {
    cgroup.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, place) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then_some(place)
    })
}

/// Major and minor number of a Linux release: `6.1.0-13-amd64` is 6.1.
pub(super) fn linux_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_as_documented_says_nothing() {
        assert_eq!(meminfo_bytes("MemTotal: many kB", "MemTotal"), None);
        assert_eq!(meminfo_bytes("MemTotal: 18446744073709551615 kB", "MemTotal"), None);
        assert_eq!(meminfo_bytes("MemTotalX: 1 kB", "MemTotal"), None);
        assert_eq!(effective_capabilities("CapEff:\tmany"), None);
        assert_eq!(listener_inode("head\n0: 1A0A\n1: 0:1A0A 0:0 0A\n", 6666), None);
        assert!(mounts("cgroup\n", "cgroup").is_empty());
        assert_eq!(cgroup_place("0", ""), None);
        assert_eq!(linux_version("six"), None);
        assert_eq!(linux_version("6"), None);
    }

    #[test]
    fn memory_is_in_bytes() {
        assert_eq!(meminfo_bytes("MemTotal:       24684544 kB\nMemFree: 1 kB\n", "MemFree"), Some(1024));
    }

    #[test]
    fn capabilities_are_bits() {
        assert_eq!(effective_capabilities("Name:\tx\nCapEff:\t0000000000002000\n"), Some(1 << 13));
    }

    #[test]
    fn only_a_socket_that_listens_holds_a_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                     0: 0100007F:19FD 0100007F:95FD 01 0:0 0:0 0 0 0 7 1 0 100\n\
                     1: 00000000:19FD 00000000:0000 0A 0:0 0:0 0 0 0 242 1 0 100\n";
        assert_eq!(listener_inode(table, 6653), Some(242));
        assert_eq!(listener_inode(table, 6633), None);
        let six = "head\n 0: 00000000000000000000000000000000:19E9 0:0 0A 0:0 0:0 0 0 0 9 1\n";
        assert_eq!(listener_inode(six, 6633), Some(9));
    }

    #[test]
    fn cgroups_have_a_mount_and_a_place() {
        let text = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(mounts(text, "cgroup"), [("/sys/fs/cgroup/memory", vec!["rw", "memory"])]);
        let text = "4:memory:/api\n1:cpu,cpuacct:/\n0::/user.slice\n";
        assert_eq!(cgroup_place(text, "memory"), Some("/api"));
        assert_eq!(cgroup_place(text, "cpu"), Some("/"));
        assert_eq!(cgroup_place(text, ""), Some("/user.slice"));
        assert_eq!(cgroup_place(text, "pids"), None);
    }

    #[test]
    fn a_release_has_a_version() {
        assert_eq!(linux_version("6.1.0-13-amd64"), Some((6, 1)));
        assert_eq!(linux_version("5.10-rc1"), Some((5, 10)));
    }
}
