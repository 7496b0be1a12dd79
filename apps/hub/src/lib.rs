//! The hub: sends each packet out of all other ports. It installs no rule in any switch.
//!
//! ```text
//!   packet-in ──> packet-out to FLOOD
//! ```
//!
//! The smallest app that makes a network work, and the slowest: the switches send every packet to the controller. It
//! keeps no state.

use burnet_sdk::{App, AppTable, Commands, Interests, PacketIn, PortNo, Settings};
use std::process::ExitCode;

/// The hub. It takes no settings.
pub struct Hub;

/// The app's table, for the kernel process of a node that has it built in. It is here and not there so that its code is built as the app's is.
pub static TABLE: AppTable = burnet_sdk::table::<Hub>();

/// Serves a zone until that ends, for a node that has the app built in.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Hub>()
}

impl App for Hub {
    fn new(settings: &Settings) -> Result<Self, String> {
        if *settings == Settings::default() { Ok(Hub) } else { Err("the hub takes no settings".to_owned()) }
    }

    fn serves_switches_apart(_: &Settings) -> bool {
        true
    }

    fn interests(&self) -> Interests {
        Interests::none().packets()
    }

    fn on_packet_in(&mut self, packet: &PacketIn, out: &mut Commands) {
        out.packet_out(packet.datapath).packet(packet).output(PortNo::FLOOD).send();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::testing::Trial;

    #[test]
    fn settings_are_refused() {
        assert!(Trial::<Hub>::start(r#"{"speed": 11}"#).is_err());
    }

    #[test]
    fn each_packet_goes_out_of_every_other_port() {
        let mut hub = Trial::<Hub>::start("{}").unwrap();
        let sent = "packet-out of:0000000000000001 in_port=3 actions=[output:FLOOD]";
        assert_eq!(hub.packet_in(1, 3, b"frame"), [sent]);
    }

    #[test]
    fn a_packet_that_the_switch_keeps_is_not_sent_back_to_it() {
        let mut hub = Trial::<Hub>::start("{}").unwrap();
        let sent = "packet-out of:0000000000000001 buffer=7 in_port=3 actions=[output:FLOOD]";
        assert_eq!(hub.buffered_packet_in(1, 3, b"fra", 7), [sent]);
    }
}
