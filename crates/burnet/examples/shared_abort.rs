//! An app as a shared object that aborts its whole process at the first packet. Tests use it to see the effect of a
//! trusted app.
//!
//! It does nothing useful.

use burnet_sdk::{App, Commands, Interests, PacketIn, Settings};

/// Does nothing until a packet comes.
struct Abort;

impl App for Abort {
    fn new(_: &Settings) -> Result<Self, String> {
        Ok(Abort)
    }

    fn interests(&self) -> Interests {
        Interests::none().packets()
    }

    fn on_packet_in(&mut self, _: &PacketIn, _: &mut Commands) {
        std::process::abort();
    }
}

burnet_sdk::shared_object!(Abort);
