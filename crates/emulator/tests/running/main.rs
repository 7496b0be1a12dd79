//! A running emulation with a controller: a small one in a thread, and Open vSwitch's own.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod controller;
mod flooding;
mod os_ken;
mod ovs_testcontroller;
mod virtual_time;

use emulator::{SwitchOptions, Versions};

/// Both versions, without buffers and with.
fn every_kind_of_switch() -> impl Iterator<Item = SwitchOptions> {
    [Versions::Only10, Versions::Only13, Versions::Both].into_iter().flat_map(|versions| {
        [0, 64].map(|n_buffers| SwitchOptions { versions, n_buffers, ..SwitchOptions::default() })
    })
}
