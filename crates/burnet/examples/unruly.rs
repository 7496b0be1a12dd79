//! An app whose commands are all malformed frames. Tests use it to see that they are refused and that other apps are
//! unaffected.
//!
//! `burnet attack` tries the other violations. It does nothing useful.

use burnet_sdk::{Commands, DatapathId};
use std::process::ExitCode;
use zone::guest::Guest;

/// Gives frames whose header is sound and whose kind does not exist, without end.
struct WrongCommands;

impl Guest for WrongCommands {
    fn start(_: &[u8], _: &mut Vec<u8>) -> Result<Self, String> {
        Err("not started so".to_owned())
    }

    fn on_events(&mut self, _: &[u8], commands: &mut Vec<u8>) -> Result<(), abi::Malformed> {
        let mut frame = [0xee; 32];
        frame[4..8].copy_from_slice(&32u32.to_le_bytes());
        commands.extend_from_slice(&frame);
        Ok(())
    }
}

fn main() -> ExitCode {
    burnet_sdk::run_guest(|_, commands| {
        let mut subscription = Commands::new();
        subscription.command(
            DatapathId(0),
            abi::command::What::Subscribe(abi::command::Subscribe {
                events: abi::event::kind::bit(abi::event::kind::TICK),
                packets: &[],
            }),
        );
        commands.extend_from_slice(subscription.frames());
        Ok(WrongCommands)
    })
}
