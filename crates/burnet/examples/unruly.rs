//! An app that misbehaves as its settings say, so that tests can see that nobody else is hurt.
//!
//! In: `{"how": "exit" | "abort" | "panic" | "stop_reading"}`; started by a name that ends with `unruly-garbage` or
//! `unruly-wrong-commands` it does that. Never does anything useful.

use burnet_sdk::{App, Commands, DatapathId, Interests, Receipt, Settings};
use monitor::channel::Channel;
use monitor::protocol::ToZone;
use serde::Deserialize;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use zone::guest::Guest;

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum How {
    Exit,
    Abort,
    Panic,
    StopReading,
}

#[derive(Deserialize)]
struct Own {
    how: How,
}

struct Unruly(How);

/// Receipts that nobody reads: enough to fill a ring and what may wait beside it.
const UNREAD_RECEIPTS: u64 = 40_000;

impl App for Unruly {
    fn new(settings: &Settings) -> Result<Self, String> {
        Ok(Unruly(settings.read::<Own>()?.how))
    }

    fn interests(&self) -> Interests {
        Interests::none().packets().ticks()
    }

    fn on_tick(&mut self, _: u64, out: &mut Commands) {
        match self.0 {
            How::Exit => std::process::exit(7),
            How::Abort => std::process::abort(),
            How::Panic => panic!("as its settings say"),
            How::StopReading => {
                for _ in 0..UNREAD_RECEIPTS {
                    out.barrier(DatapathId(u64::MAX));
                }
            }
        }
    }

    fn on_receipt(&mut self, _: DatapathId, _: &Receipt, _: &mut Commands) {
        loop {
            std::thread::park();
        }
    }
}

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

/// Writes over all of the shared memory, and wakes the kernel to look at it.
fn write_garbage() -> ExitCode {
    let received = Channel::from_stdin().and_then(|channel| channel.receive::<ToZone>());
    let Ok(received) = received else { return ExitCode::FAILURE };
    let mut descriptors = received.fds.into_iter().map(File::from);
    let (Some(memory), Some(_), Some(mut wake_kernel)) =
        (descriptors.next(), descriptors.next(), descriptors.next())
    else {
        return ExitCode::FAILURE;
    };
    let length = memory.metadata().map(|metadata| metadata.len()).unwrap_or_default();
    let garbage = vec![0xa5; usize::try_from(length).unwrap_or_default()];
    let written = memory.write_all_at(&garbage, 0).and_then(|()| wake_kernel.write_all(&1u64.to_ne_bytes()));
    if written.is_err() {
        return ExitCode::FAILURE;
    }
    loop {
        std::thread::park();
    }
}

fn main() -> ExitCode {
    // The mode is in the settings, which come with the ports; what needs the bare ports is told by its name.
    let name = std::env::args().next().unwrap_or_default();
    if name.ends_with("unruly-garbage") {
        return write_garbage();
    }
    if name.ends_with("unruly-wrong-commands") {
        return burnet_sdk::run_guest(|_, commands| {
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
        });
    }
    burnet_sdk::run::<Unruly>()
}
