//! An app that serves switches separately and panics at its first tick, only in the thread of the second worker.
//! Tests use it to see that this ends the whole app.
//!
//! It does nothing useful.

use burnet_sdk::{App, Commands, Interests, Settings};

struct Apart;

impl App for Apart {
    fn new(_: &Settings) -> Result<Self, String> {
        Ok(Apart)
    }

    fn serves_switches_apart(_: &Settings) -> bool {
        true
    }

    fn interests(&self) -> Interests {
        Interests::none().ticks()
    }

    fn on_tick(&mut self, _: u64, _: &mut Commands) {
        assert_ne!(std::thread::current().name(), Some("worker-1"), "as it was made to");
    }
}

burnet_sdk::main!(Apart);
