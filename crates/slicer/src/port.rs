//! A port of the virtual switch: its number, what is known of the physical port, and its virtual configuration.
//!
//! In: the plan, facts about the physical port, port mods. Out: its description in either version, and whether it receives, sends and
//! floods. The configuration is virtual: it never reaches the physical port.

use crate::label::LinkLabel;
use crate::plan::PortPlan;
use crate::refusal::{PORT_MOD_ADVERTISE, PORT_MOD_CONFIG, PORT_MOD_HW_ADDR, Refusal};
use flow::{MacAddr, PortNo};
use openflow::Version;
use openflow::message::{PORT_CONFIG_DOWN, PORT_STATE_LINK_DOWN, Port, PortMod};

/// OFPPC_NO_RECV: drop all received packets.
const NO_RECV: u32 = 1 << 2;
/// 1.0's OFPPC_NO_FLOOD.
const NO_FLOOD: u32 = 1 << 4;
/// OFPPC_NO_FWD: send no packets.
const NO_FWD: u32 = 1 << 5;
/// OFPPC_NO_PACKET_IN.
const NO_PACKET_IN: u32 = 1 << 6;
/// 1.0's OFPPC_NO_STP and OFPPC_NO_RECV_STP. They are kept, and have no effect.
const SPANNING_TREE: u32 = 1 << 1 | 1 << 3;
/// 1.3's OFPPS_LIVE.
const STATE_LIVE: u32 = 1 << 2;
/// The rates that have a bit in both versions, OFPPF_10MB_FD to OFPPF_10GB_FD, in kbit/s.
const RATES: [(u32, u32); 4] =
    [(10_000_000, 1 << 6), (1_000_000, 1 << 5), (100_000, 1 << 3), (10_000, 1 << 1)];
/// 1.3's OFPPF_OTHER: a rate without a bit.
const RATE_OTHER: u32 = 1 << 10;

/// What the kernel reports about a physical port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFacts {
    /// The port of the physical switch.
    pub port: PortNo,
    /// Its Ethernet address.
    pub hw_addr: MacAddr,
    /// Its name.
    pub name: String,
    /// Whether it is up and its link is up.
    pub is_live: bool,
    /// Its rate in kbit/s, 0 if unknown.
    pub curr_speed_kbps: u32,
}

/// A label in place of the current speed of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShownSpeed {
    pub(crate) kbps: u32,
    /// Whether it may be too high.
    pub(crate) is_stale: bool,
}

/// A port of the virtual switch.
#[derive(Clone, Debug)]
pub(crate) struct VirtualPort {
    pub(crate) plan: PortPlan,
    /// What is known of the physical port; `None` while the switch has no such port.
    pub(crate) facts: Option<PortFacts>,
    /// The label of the link that begins here.
    pub(crate) label: Option<LinkLabel>,
    /// What is shown in place of the current speed.
    pub(crate) shown_speed: Option<ShownSpeed>,
    config: u32,
}

impl VirtualPort {
    pub(crate) fn new(plan: PortPlan) -> VirtualPort {
        VirtualPort { plan, facts: None, label: None, shown_speed: None, config: 0 }
    }

    pub(crate) fn receives(&self) -> bool {
        self.config & (PORT_CONFIG_DOWN | NO_RECV) == 0
    }

    pub(crate) fn sends(&self) -> bool {
        self.config & (PORT_CONFIG_DOWN | NO_FWD) == 0
    }

    pub(crate) fn floods(&self) -> bool {
        self.sends() && self.config & NO_FLOOD == 0
    }

    pub(crate) fn makes_packet_ins(&self) -> bool {
        self.receives() && self.config & NO_PACKET_IN == 0
    }

    /// Whether packets pass: the physical port is live, and the tenant has not taken the port down.
    pub(crate) fn is_live(&self) -> bool {
        self.config & PORT_CONFIG_DOWN == 0 && self.facts.as_ref().is_some_and(|facts| facts.is_live)
    }

    /// Forgets the tenant's configuration. Returns whether there was one.
    pub(crate) fn reset(&mut self) -> bool {
        std::mem::take(&mut self.config) != 0
    }

    /// The tenant's configuration.
    pub(crate) fn config(&self) -> u32 {
        self.config
    }

    /// Takes the configuration that the tenant has made before a restart.
    pub(crate) fn recall(&mut self, config: u32) {
        self.config = config & config_bits(Version::V1_0);
    }

    /// Changes the virtual configuration. Returns whether that changed anything.
    pub(crate) fn modify(&mut self, wanted: &PortMod, version: Version) -> Result<bool, Refusal> {
        let hw_addr = self.facts.as_ref().map(|facts| facts.hw_addr);
        if hw_addr != Some(wanted.hw_addr) {
            return Err(Refusal::new(
                PORT_MOD_HW_ADDR,
                format!("port {} has another address", wanted.port_no),
            ));
        }
        let unknown = wanted.mask & !config_bits(version);
        if unknown != 0 {
            return Err(Refusal::new(
                PORT_MOD_CONFIG,
                format!("configuration bits {unknown:#x} do not exist"),
            ));
        }
        if wanted.advertise & !self.rate_bits(version) != 0 {
            return Err(Refusal::new(PORT_MOD_ADVERTISE, "a slice cannot change what a port advertises"));
        }
        let before = self.config;
        self.config = before & !wanted.mask | wanted.config & wanted.mask;
        Ok(self.config != before)
    }

    fn rate_bits(&self, version: Version) -> u32 {
        let kbps = self.facts.as_ref().map_or(0, |facts| facts.curr_speed_kbps);
        let exact = RATES.iter().find(|(rate, _)| *rate == kbps);
        match (kbps, version) {
            (0, _) => 0,
            (_, Version::V1_0) => RATES.iter().find(|(rate, _)| *rate <= kbps).unwrap_or(&RATES[3]).1,
            _ => exact.map_or(RATE_OTHER, |(_, bit)| *bit),
        }
    }

    /// Its description in the form of a version, or `None` while the switch has no such port.
    pub(crate) fn describe(&self, version: Version) -> Option<Port> {
        let facts = self.facts.as_ref()?;
        let is_v10 = version == Version::V1_0;
        let live = if !is_v10 && self.is_live() { STATE_LIVE } else { 0 };
        let link = if facts.is_live { 0 } else { PORT_STATE_LINK_DOWN };
        let rate = if is_v10 { 0 } else { facts.curr_speed_kbps };
        let features = self.rate_bits(version);
        // Without a flag of a speed, or with that of another one, a controller takes the speed itself (1.3.5, 7.2.1).
        let (curr, speed) = match self.shown_speed.filter(|_| !is_v10) {
            Some(ShownSpeed { kbps, is_stale: true }) => (0, kbps),
            Some(ShownSpeed { kbps, is_stale: false }) => (RATE_OTHER, kbps),
            None => (features, rate),
        };
        Some(Port {
            port_no: self.plan.shown_as,
            hw_addr: facts.hw_addr,
            name: name_of(&facts.name),
            config: self.config & config_bits(version),
            state: live | link,
            curr,
            advertised: features,
            supported: features,
            peer: 0,
            curr_speed_kbps: speed,
            max_speed_kbps: rate,
        })
    }
}

/// A name that a description can hold: 15 bytes and a NUL, without another NUL.
fn name_of(name: &str) -> String {
    const NAME_LEN_MAX: usize = 15;
    let clean: String = name.chars().filter(|it| *it != '\0').collect();
    clean[..clean.floor_char_boundary(NAME_LEN_MAX)].to_owned()
}

/// The bits of `ofp_port_config` that a version defines.
fn config_bits(version: Version) -> u32 {
    let only_v10 = if version == Version::V1_0 { NO_FLOOD | SPANNING_TREE } else { 0 };
    PORT_CONFIG_DOWN | NO_RECV | NO_FWD | NO_PACKET_IN | only_v10
}
