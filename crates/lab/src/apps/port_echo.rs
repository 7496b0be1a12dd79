//! The app `port-echo`: answers each port status with a packet-out, and processes packet-ins slowly. It measures how
//! much a flood of packet-ins delays port statuses.
//!
//! ```text
//!   port status of port N ──> packet-out to port N, of a frame that holds the time: too short for anybody
//!   packet-in ──> nothing, for as long as the settings say
//! ```
//!
//! Only for `burnet bench`. It installs no rules.

use burnet_sdk::{App, Commands, Interests, PacketIn, PortStatus, Settings};
use serde::Deserialize;
use std::time::{Duration, Instant, SystemTime};

/// The app's settings.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PortEchoSettings {
    /// How many microseconds it works on each packet-in.
    busy_us: u64,
}

/// The app.
pub struct PortEcho {
    settings: PortEchoSettings,
}

impl App for PortEcho {
    fn new(settings: &Settings) -> Result<Self, String> {
        Ok(PortEcho { settings: settings.read()? })
    }

    fn interests(&self) -> Interests {
        Interests::none().packets().ports()
    }

    fn on_packet_in(&mut self, _: &PacketIn, _: &mut Commands) {
        let began = Instant::now();
        while began.elapsed() < Duration::from_micros(self.settings.busy_us) {
            std::hint::spin_loop();
        }
    }

    fn on_port_status(&mut self, status: &PortStatus, out: &mut Commands) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut frame = [0; 16];
        // 64 bits of nanoseconds last until the year 2554.
        frame[8..].copy_from_slice(&u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).to_be_bytes());
        out.packet_out(status.datapath).frame(&frame).output(status.port.port_no()).send();
    }
}
