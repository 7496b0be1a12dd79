//! A switch's ports: whether they carry packets, and their counters.
//!
//! It never sends anything. It only says whether a port would.

use flow::{MacAddr, PortNo};
use openflow::Version;
use openflow::message::{PORT_CONFIG_DOWN, PORT_STATE_LINK_DOWN, Port, PortMod, PortStats};
use std::time::Duration;

use super::refusal::Refusal;

/// 1.0's OFPPC_NO_STP and OFPPC_NO_RECV_STP. They are stored without effect, because there is no spanning-tree
/// protocol here.
const NO_STP: u32 = 1 << 1;
const NO_RECV_STP: u32 = 1 << 3;
/// OFPPC_NO_RECV: drop all received packets.
const NO_RECV: u32 = 1 << 2;
/// 1.0's OFPPC_NO_FLOOD.
const NO_FLOOD: u32 = 1 << 4;
/// OFPPC_NO_FWD: send no packets.
const NO_FWD: u32 = 1 << 5;
/// OFPPC_NO_PACKET_IN.
const NO_PACKET_IN: u32 = 1 << 6;
/// 1.3's OFPPS_BLOCKED.
const STATE_BLOCKED: u32 = 1 << 1;
/// 1.0's OFPPS_STP_BLOCK.
const STATE_STP_BLOCK: u32 = 3 << 8;
/// 1.3's OFPPS_LIVE.
const STATE_LIVE: u32 = 1 << 2;
/// The speeds that have a bit in both versions, OFPPF_10MB_FD to OFPPF_10GB_FD, in kbit/s.
const RATES: [(u32, u32); 4] =
    [(10_000_000, 1 << 6), (1_000_000, 1 << 5), (100_000, 1 << 3), (10_000, 1 << 1)];
/// 1.3's OFPPF_OTHER: a speed without a bit.
const RATE_OTHER: u32 = 1 << 10;
/// The speed of a port whose link has no limit.
const RATE_DEFAULT_KBPS: u32 = 10_000_000;
/// OFPPF_COPPER.
const COPPER_V10: u32 = 1 << 7;
const COPPER_V13: u32 = 1 << 11;

/// One port.
#[derive(Clone, Debug)]
pub(crate) struct SwitchPort {
    pub(crate) number: PortNo,
    pub(crate) hw_addr: MacAddr,
    pub(crate) name: String,
    config: u32,
    link_down: bool,
    blocked: bool,
    speed_kbps: u32,
    since: Duration,
    pub(crate) rx_packets: u64,
    pub(crate) rx_bytes: u64,
    pub(crate) rx_dropped: u64,
    pub(crate) rx_errors: u64,
    tx_packets: u64,
    tx_bytes: u64,
    tx_dropped: u64,
}

impl SwitchPort {
    /// A port with a link that is up.
    pub(crate) fn new(number: PortNo, hw_addr: MacAddr, name: String, now: Duration) -> Self {
        SwitchPort {
            number,
            hw_addr,
            name,
            config: 0,
            link_down: false,
            blocked: false,
            speed_kbps: RATE_DEFAULT_KBPS,
            since: now,
            rx_packets: 0,
            rx_bytes: 0,
            rx_dropped: 0,
            rx_errors: 0,
            tx_packets: 0,
            tx_bytes: 0,
            tx_dropped: 0,
        }
    }

    /// Whether the port is not administratively down and has a link.
    pub(crate) fn is_live(&self) -> bool {
        !self.link_down && self.config & PORT_CONFIG_DOWN == 0
    }

    pub(crate) fn receives(&self) -> bool {
        self.is_live() && self.config & NO_RECV == 0
    }

    /// Whether the port takes part in floods: neither a 1.0 controller nor the spanning tree has excluded it.
    pub(crate) fn floods(&self) -> bool {
        !self.blocked && self.config & NO_FLOOD == 0
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Sets whether the port is off the spanning tree. Returns whether that changed anything.
    pub(crate) fn set_blocked(&mut self, blocked: bool) -> bool {
        std::mem::replace(&mut self.blocked, blocked) != blocked
    }

    pub(crate) fn makes_packet_ins(&self) -> bool {
        self.config & NO_PACKET_IN == 0
    }

    /// Counts a frame that should leave by this port. Returns whether the port sends it.
    pub(crate) fn send(&mut self, bytes: usize) -> bool {
        let sends = self.is_live() && self.config & NO_FWD == 0;
        if sends {
            self.tx_packets += 1;
            self.tx_bytes += bytes as u64;
        } else {
            self.tx_dropped += 1;
        }
        sends
    }

    /// Sets the state of the link. Returns whether that changed anything.
    pub(crate) fn set_link(&mut self, up: bool) -> bool {
        std::mem::replace(&mut self.link_down, !up) == up
    }

    /// Sets the speed of the link. Returns whether that changed anything.
    pub(crate) fn set_speed(&mut self, kbps: Option<u32>) -> bool {
        let speed = kbps.unwrap_or(RATE_DEFAULT_KBPS);
        std::mem::replace(&mut self.speed_kbps, speed) != speed
    }

    /// Changes the configuration. Returns whether that changed anything.
    pub(crate) fn modify(&mut self, wanted: &PortMod, version: Version) -> Result<bool, Refusal> {
        if wanted.hw_addr != self.hw_addr {
            return Err(Refusal::PortModHwAddr);
        }
        if wanted.mask & !config_bits(version) != 0 {
            return Err(Refusal::PortModConfig);
        }
        if wanted.advertise & !self.features(version) != 0 {
            return Err(Refusal::PortModAdvertise);
        }
        let before = self.config;
        self.config = before & !wanted.mask | wanted.config & wanted.mask;
        Ok(self.config != before)
    }

    /// The bits of its speed and its medium. 1.0 knows only speeds with a bit: the next lower one is given.
    fn features(&self, version: Version) -> u32 {
        let exact = RATES.iter().find(|(kbps, _)| *kbps == self.speed_kbps);
        let lower = RATES.iter().find(|(kbps, _)| *kbps <= self.speed_kbps).unwrap_or(&RATES[3]);
        match version {
            Version::V1_0 => lower.1 | COPPER_V10,
            _ => exact.map_or(RATE_OTHER, |(_, bit)| *bit) | COPPER_V13,
        }
    }

    /// Its description in the format of a version.
    pub(crate) fn describe(&self, version: Version) -> Port {
        let live = if version != Version::V1_0 && self.is_live() { STATE_LIVE } else { 0 };
        let rate = if version == Version::V1_0 { 0 } else { self.speed_kbps };
        let features = self.features(version);
        Port {
            port_no: self.number,
            hw_addr: self.hw_addr,
            name: self.name.clone(),
            config: self.config & config_bits(version),
            state: live
                | if self.link_down { PORT_STATE_LINK_DOWN } else { 0 }
                | if self.blocked { blocked_bits(version) } else { 0 },
            curr: features,
            advertised: features,
            supported: features,
            peer: 0,
            curr_speed_kbps: rate,
            max_speed_kbps: rate,
        }
    }

    /// Its counters in the format of a version.
    pub(crate) fn statistics(&self, version: Version, now: Duration) -> PortStats {
        let age = if version == Version::V1_0 { Duration::ZERO } else { now.saturating_sub(self.since) };
        PortStats {
            port_no: self.number,
            rx_packets: self.rx_packets,
            tx_packets: self.tx_packets,
            rx_bytes: self.rx_bytes,
            tx_bytes: self.tx_bytes,
            rx_dropped: self.rx_dropped,
            tx_dropped: self.tx_dropped,
            rx_errors: self.rx_errors,
            tx_errors: 0,
            rx_frame_err: 0,
            rx_over_err: 0,
            rx_crc_err: 0,
            collisions: 0,
            duration_s: super::whole_seconds(age),
            duration_ns: age.subsec_nanos(),
        }
    }
}

/// The bits of `ofp_port_config` that a version defines.
fn config_bits(version: Version) -> u32 {
    let spanning_tree = NO_STP | NO_RECV_STP;
    let only_v10 = if version == Version::V1_0 { NO_FLOOD | spanning_tree } else { 0 };
    PORT_CONFIG_DOWN | NO_RECV | NO_FWD | NO_PACKET_IN | only_v10
}

/// The bits by which a version reports that a port is off the spanning tree.
fn blocked_bits(version: Version) -> u32 {
    if version == Version::V1_0 { STATE_STP_BLOCK } else { STATE_BLOCKED }
}
