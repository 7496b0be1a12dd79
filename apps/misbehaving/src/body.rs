//! Attacks on the app's own process, as a bug would cause them.
//!
//! It never touches anything else.

use super::Attack;
use burnet_sdk::{Commands, DatapathId};
use rustix::process::{Signal, getpid, kill_process};

/// How many receipts stay unread: enough to fill a ring and the queue beside it.
const UNREAD_RECEIPTS: u64 = 40_000;

/// Carries out the attack. It returns only for attacks that take effect later.
pub(crate) fn harm(attack: Attack, out: &mut Commands) {
    match attack {
        Attack::Exit => std::process::exit(7),
        Attack::Abort => std::process::abort(),
        Attack::Segfault => end_by(Signal::SEGV),
        Attack::Panic => panic!("as its settings say"),
        Attack::KillItself => end_by(Signal::KILL),
        Attack::Deadlock => wait_for_ever(),
        Attack::InfiniteLoop => loop {
            std::hint::spin_loop();
        },
        Attack::StopReading => {
            for _ in 0..UNREAD_RECEIPTS {
                out.barrier(DatapathId(u64::MAX));
            }
        }
        _ => {}
    }
}

/// An app that does not read stops at the first answer.
pub(crate) fn on_receipt(attack: Attack) {
    if attack == Attack::StopReading {
        wait_for_ever();
    }
}

/// Sends the signal twice. Rust's handler of SIGSEGV takes the first one for a stack overflow, finds that it is not,
/// and restores the default.
fn end_by(signal: Signal) {
    let _ = kill_process(getpid(), signal);
    if let Err(error) = kill_process(getpid(), signal) {
        panic!("it could not even send itself a signal: {error}");
    }
}

fn wait_for_ever() {
    loop {
        std::thread::park();
    }
}
