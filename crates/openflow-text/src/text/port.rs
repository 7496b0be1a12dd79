//! Prints ports: description, port mod, and counters.

use std::fmt::{self, Write};

use super::{bit_names, counter, duration};
use openflow::message::*;
use openflow::version::Version;

/// All of them, from the lowest number on.
pub(super) fn all(out: &mut String, version: Version, ports: &[Port]) -> fmt::Result {
    let mut sorted: Vec<&Port> = ports.iter().collect();
    sorted.sort_by_key(|port| port.port_no);
    sorted.into_iter().try_for_each(|there| port(out, version, there))
}

fn port(out: &mut String, version: Version, port: &Port) -> fmt::Result {
    let name: String = port.name.chars().take_while(|there| (' '..='~').contains(there)).collect();
    writeln!(out, " {}({name}): addr:{}", port.port_no, port.hw_addr)?;
    out.push_str("     config:     ");
    config(out, version, port.config)?;
    out.push_str("     state:      ");
    state(out, version, port.state)?;
    for (label, bits) in [
        ("     current:    ", port.curr),
        ("     advertised: ", port.advertised),
        ("     supported:  ", port.supported),
        ("     peer:       ", port.peer),
    ] {
        if known_features(version, bits) != 0 {
            out.push_str(label);
            features(out, version, bits)?;
        }
    }
    let (now, max) = match version {
        Version::V1_0 => (speed_mbps(port.curr), speed_mbps(port.supported)),
        _ => (port.curr_speed_kbps / 1000, port.max_speed_kbps / 1000),
    };
    writeln!(out, "     speed: {now} Mbps now, {max} Mbps max")
}

fn config(out: &mut String, version: Version, bits: u32) -> fmt::Result {
    let names = if version == Version::V1_0 { &CONFIG_1_0[..] } else { &CONFIG_1_3[..] };
    let known = names.iter().fold(0, |known, (bit, _)| known | bit);
    bit_names(out, bits & known, names)?;
    out.push('\n');
    Ok(())
}

/// The bits of a port's configuration in 1.0 and their names.
pub(super) const CONFIG_1_0: [(u32, &str); 7] = [
    (1, "PORT_DOWN"),
    (2, "NO_STP"),
    (4, "NO_RECV"),
    (8, "NO_RECV_STP"),
    (0x10, "NO_FLOOD"),
    (0x20, "NO_FWD"),
    (0x40, "NO_PACKET_IN"),
];
/// The bits of a port's configuration in 1.3 and their names.
pub(super) const CONFIG_1_3: [(u32, &str); 4] =
    [(1, "PORT_DOWN"), (4, "NO_RECV"), (0x20, "NO_FWD"), (0x40, "NO_PACKET_IN")];

fn state(out: &mut String, version: Version, bits: u32) -> fmt::Result {
    /// 1.0: the spanning-tree state. Listening is 0, and is not printed.
    const SPANNING_TREE: u32 = 0x300;
    if version != Version::V1_0 {
        bit_names(out, bits & 7, &STATE_1_3)?;
    } else if bits & SPANNING_TREE == 0 {
        bit_names(out, bits & 1, &STATE_1_3)?;
    } else {
        out.push_str(match bits & SPANNING_TREE {
            0x100 => "STP_LEARN",
            0x200 => "STP_FORWARD",
            _ => "STP_BLOCK",
        });
        if bits & 1 != 0 {
            out.push_str("LINK_DOWN");
        }
    }
    out.push('\n');
    Ok(())
}

/// The bits of a port's state in 1.3 and their names. The first also exists in 1.0.
pub(super) const STATE_1_3: [(u32, &str); 3] = [(1, "LINK_DOWN"), (2, "BLOCKED"), (4, "LIVE")];

fn features(out: &mut String, version: Version, bits: u32) -> fmt::Result {
    let names = if version == Version::V1_0 { &FEATURES_1_0[..] } else { &FEATURES_1_3[..] };
    bit_names(out, known_features(version, bits), names)?;
    out.push('\n');
    Ok(())
}

const fn known_features(version: Version, bits: u32) -> u32 {
    bits & if version.0 == Version::V1_0.0 { 0xfff } else { 0xffff }
}

/// The bits of a port's features in 1.0 and their names.
pub(super) const FEATURES_1_0: [(u32, &str); 12] = [
    (1, "10MB-HD"),
    (1 << 1, "10MB-FD"),
    (1 << 2, "100MB-HD"),
    (1 << 3, "100MB-FD"),
    (1 << 4, "1GB-HD"),
    (1 << 5, "1GB-FD"),
    (1 << 6, "10GB-FD"),
    (1 << 7, "COPPER"),
    (1 << 8, "FIBER"),
    (1 << 9, "AUTO_NEG"),
    (1 << 10, "AUTO_PAUSE"),
    (1 << 11, "AUTO_PAUSE_ASYM"),
];
/// The bits of a port's features in 1.3 and their names.
pub(super) const FEATURES_1_3: [(u32, &str); 16] = [
    (1, "10MB-HD"),
    (1 << 1, "10MB-FD"),
    (1 << 2, "100MB-HD"),
    (1 << 3, "100MB-FD"),
    (1 << 4, "1GB-HD"),
    (1 << 5, "1GB-FD"),
    (1 << 6, "10GB-FD"),
    (1 << 7, "40GB-FD"),
    (1 << 8, "100GB-FD"),
    (1 << 9, "1TB-FD"),
    (1 << 10, "OTHER"),
    (1 << 11, "COPPER"),
    (1 << 12, "FIBER"),
    (1 << 13, "AUTO_NEG"),
    (1 << 14, "AUTO_PAUSE"),
    (1 << 15, "AUTO_PAUSE_ASYM"),
];

/// The highest rate among 1.0's features.
fn speed_mbps(features: u32) -> u32 {
    match features {
        _ if features & 1 << 6 != 0 => 10_000,
        _ if features & 3 << 4 != 0 => 1_000,
        _ if features & 3 << 2 != 0 => 100,
        _ if features & 3 != 0 => 10,
        _ => 0,
    }
}

pub(super) fn status(out: &mut String, version: Version, status: &PortStatus) -> fmt::Result {
    match status.reason {
        PORT_ADDED => out.push_str(" ADD:"),
        PORT_DELETED => out.push_str(" DEL:"),
        PORT_MODIFIED => out.push_str(" MOD:"),
        number => write!(out, " reason:{number}:")?,
    }
    port(out, version, &status.port)
}

pub(super) fn port_mod(out: &mut String, version: Version, port_mod: &PortMod) -> fmt::Result {
    writeln!(out, " port: {}: addr:{}", port_mod.port_no, port_mod.hw_addr)?;
    out.push_str("     config: ");
    // Only changed bits are printed.
    config(out, version, port_mod.config & port_mod.mask)?;
    out.push_str("     mask:   ");
    config(out, version, port_mod.mask)?;
    out.push_str("     advertise: ");
    if known_features(version, port_mod.advertise) == 0 {
        out.write_str("UNCHANGED\n")
    } else {
        features(out, version, port_mod.advertise)
    }
}

pub(super) fn stats(out: &mut String, version: Version, ports: &[PortStats]) -> fmt::Result {
    writeln!(out, " {} ports", ports.len())?;
    ports.iter().try_for_each(|counters| stats_of_one(out, version, counters))
}

fn stats_of_one(out: &mut String, version: Version, port: &PortStats) -> fmt::Result {
    write!(out, "  port {}{}: rx ", if port.port_no.0 < 10 { " " } else { "" }, port.port_no)?;
    write!(out, "pkts={}, bytes={}, ", counter(port.rx_packets), counter(port.rx_bytes))?;
    write!(out, "drop={}, errs={}, ", counter(port.rx_dropped), counter(port.rx_errors))?;
    write!(out, "frame={}, over={}, ", counter(port.rx_frame_err), counter(port.rx_over_err))?;
    writeln!(out, "crc={}", counter(port.rx_crc_err))?;
    write!(out, "           tx pkts={}, bytes={}, ", counter(port.tx_packets), counter(port.tx_bytes))?;
    write!(out, "drop={}, errs={}, ", counter(port.tx_dropped), counter(port.tx_errors))?;
    writeln!(out, "coll={}", counter(port.collisions))?;
    // 1.0 has no such counter. All ones: this switch does not count it.
    if version == Version::V1_0 || port.duration_s == u32::MAX {
        return Ok(());
    }
    out.push_str("           duration=");
    duration(out, port.duration_s, port.duration_ns)?;
    out.push('\n');
    Ok(())
}
