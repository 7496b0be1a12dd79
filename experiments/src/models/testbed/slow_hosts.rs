//! Hosts and links of a testbed in slow motion: rates that are an Nth, and timers of TCP that are N times as long.
//!
//! ```text
//!   SYN of Linux   0 1 2 3 …   9 10 11 …   29 30 31 …  s
//!   that passes    x              x              x         at a factor of 10: 0, 1 and 3 s of the switch
//! ```
//!
//! In: the factor. Out: commands for hosts, and rules for nft. It runs nothing.
//!
//! Linux waits a second before it sends a SYN again, and no setting changes that. So a host sends one each second, and those whose time has
//! not come go to an interface that leads nowhere ([decision 129](../../../../../docs/decisions/0129-hosts-in-slow-motion-have-slow-timers.md)).

use std::fmt::Write;

/// The rate of links at a factor of 1.
const LINK_KBIT_PER_S: u32 = 1_000_000;
/// How long a frame may wait for a link at a factor of 1. Rate and time together are the bytes that a queue holds, which do not change.
const LINK_WAIT_MS: u32 = 50;
/// The shortest time until Linux sends a segment again.
const SEGMENT_AGAIN_US: u32 = 200_000;
/// How often Linux sends a SYN at most, and how often of these after one second each.
const SYNS: u32 = 127;
/// SYNs that may pass after the first: after 1, 3, 7, 15 and 31 s of the switch.
const PASSES: u32 = 5;
/// A SYN that comes so early counts as one that comes in time. Linux sends one each 1,024 ms.
const EARLY_MS: u32 = 500;
/// Ports that are known at once: all that a host has.
const PORTS_MAX: u32 = 65_535;
/// The mark of packets that lead nowhere.
const MARK: u32 = 1;
/// What a host answers so soon after a SYN is the answer to that SYN.
const ANSWER_MS: u32 = 200;
/// What Linux must have, and since when.
const SETTINGS: [&str; 2] = ["tcp_syn_linear_timeouts", "tcp_rto_min_us"];

/// What a host of this machine lacks for slow timers, as a sentence.
pub fn is_missing() -> Option<String> {
    let has = |name: &&str| std::path::Path::new("/proc/sys/net/ipv4").join(name).exists();
    let missing: Vec<&str> = SETTINGS.into_iter().filter(|name| !has(name)).collect();
    (!missing.is_empty()).then(|| {
        format!(
            "Linux has no setting net.ipv4.{}, by which hosts get slow timers: it needs Linux 6.11",
            missing.join(" and ")
        )
    })
}

/// The limit of a link, for `tc`.
pub fn link(factor: u32) -> String {
    let factor = factor.max(1);
    let (rate, wait) = (LINK_KBIT_PER_S / factor, LINK_WAIT_MS.saturating_mul(factor));
    format!("tbf rate {rate}kbit burst 128kb latency {wait}ms")
}

/// What gives host 1 or 2 slow timers. In real time there is nothing to do.
pub fn commands(number: u32, factor: u32) -> Vec<String> {
    if factor <= 1 {
        return Vec::new();
    }
    let (host, other) = (format!("h{number}"), 3 - number);
    let again_us = SEGMENT_AGAIN_US.saturating_mul(factor);
    let inside = format!("ip netns exec {host} sysctl -q -w net.ipv4.");
    vec![
        format!("{inside}tcp_syn_linear_timeouts={SYNS}"),
        format!("{inside}tcp_syn_retries={SYNS}"),
        format!("{inside}tcp_rto_min_us={again_us}"),
        // ARP asks again after a second, and gives up after three. So hosts know each other.
        format!("ip -n {host} link set eth0 address 02:00:00:00:00:0{number}"),
        format!(
            "ip -n {host} neigh add 10.0.0.{other} lladdr 02:00:00:00:00:0{other} dev eth0 nud permanent"
        ),
        // Where packets with a mark go. Linux forgets a connection if an answer to its SYN could not be sent, so it must not know.
        format!("ip -n {host} link add void type veth peer name nowhere"),
        format!("ip -n {host} link set void arp off up"),
        format!("ip -n {host} link set nowhere arp off up"),
        format!("ip -n {host} route add default dev void table 100"),
        format!("ip -n {host} rule add fwmark {MARK} lookup 100"),
    ]
}

/// The rules by which a host sends SYNs whose time has not come to nowhere, and answers that it repeats by itself. Emulated hosts answer each SYN that
/// comes, and never repeat an answer.
pub fn rules(factor: u32) -> String {
    let waits_s: Vec<u32> = (1..=PASSES).map(|number| factor.saturating_mul((1 << number) - 1)).collect();
    let kept_s = waits_s.last().copied().unwrap_or(1).saturating_mul(2);
    let mut text = String::from("table ip slow {\n");
    let mut set = |name: &str, kept_ms: u32| {
        // A string takes all that is written to it.
        let _ = writeln!(
            text,
            "  set {name} {{ type inet_service; size {PORTS_MAX}; flags dynamic,timeout; timeout {kept_ms}ms; }}"
        );
    };
    set("known", kept_s.saturating_mul(1000));
    set("asked", ANSWER_MS);
    for (number, wait_s) in (1..).zip(&waits_s) {
        set(&format!("early{number}"), wait_s.saturating_mul(1000).saturating_sub(EARLY_MS));
        set(&format!("passed{number}"), kept_s.saturating_mul(1000));
    }
    text.push_str("  chain first {\n    add @known { tcp sport }\n");
    for number in 1..=PASSES {
        let _ = writeln!(text, "    add @early{number} {{ tcp sport }}");
    }
    text.push_str("    accept\n  }\n  chain again {\n");
    for number in 1..=PASSES {
        let _ = writeln!(text, "    tcp sport @early{number} meta mark set 1 accept");
        let _ = writeln!(text, "    tcp sport != @passed{number} add @passed{number} {{ tcp sport }} accept");
    }
    text.push_str(HOOKS);
    text
}

/// Where packets meet the rules.
const HOOKS: &str = "    meta mark set 1
  }
  chain comes {
    type filter hook input priority 0;
    tcp flags & (syn|ack) == syn update @asked { tcp sport };
  }
  chain leaves {
    type route hook output priority 0;
    tcp flags & (syn|ack) == (syn|ack) tcp dport != @asked meta mark set 1
    tcp flags & (syn|ack) == syn tcp sport != @known jump first
    tcp flags & (syn|ack) == syn jump again
  }
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_slower_and_its_queue_holds_the_same() {
        assert_eq!(link(1), "tbf rate 1000000kbit burst 128kb latency 50ms");
        assert_eq!(link(10), "tbf rate 100000kbit burst 128kb latency 500ms");
    }

    #[test]
    fn in_real_time_hosts_stay_as_they_are() {
        assert_eq!(commands(1, 1), Vec::<String>::new());
        let lines = commands(2, 10);
        assert!(lines.iter().any(|line| line.ends_with("tcp_rto_min_us=2000000")), "{lines:?}");
        let leads_away = format!("ip -n h2 rule add fwmark {MARK} lookup 100");
        assert!(
            lines.contains(&leads_away) && rules(10).contains(&format!("meta mark set {MARK}")),
            "{lines:?}"
        );
        assert!(lines.iter().any(|line| line.contains("neigh add 10.0.0.1 lladdr 02:00:00:00:00:01")));
    }

    #[test]
    fn a_syn_waits_for_its_time_at_the_factor() {
        let text = rules(10);
        for (number, ms) in [(1, 9_500), (2, 29_500), (3, 69_500), (4, 149_500), (5, 309_500)] {
            let set = format!(
                "set early{number} {{ type inet_service; size 65535; flags dynamic,timeout; timeout {ms}ms; }}"
            );
            assert!(text.contains(&set), "{set} is not in {text}");
        }
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }
}
