//! How a switch is made: versions, buffers, tables, and what it does without a controller.

use super::versions::Versions;

/// What a switch does while no controller is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailMode {
    /// It keeps its rules, which still time out, and drops packets that match none.
    #[default]
    Secure,
    /// It deletes its rules and acts as a learning switch until a controller is connected. A loop among such switches
    /// causes a broadcast storm.
    Standalone,
}

/// How a switch is made.
#[derive(Clone, Debug)]
pub struct SwitchOptions {
    /// The OpenFlow versions that it offers.
    pub versions: Versions,
    /// How many packets it buffers for the controller. With 0, every packet-in holds the whole packet.
    pub n_buffers: u32,
    /// How many flow tables it has in 1.3 (1 to 254). A 1.0 controller sees only the first.
    pub n_tables: u8,
    /// How many flow entries a table holds. The switch refuses more with a "table full" error.
    pub max_entries: u32,
    /// Whether it has bundles in 1.3, as the ONF's extension 230. Otherwise it knows no experimenter.
    pub bundles: bool,
    /// What it does while no controller is connected.
    pub fail_mode: FailMode,
}

impl Default for SwitchOptions {
    /// Both versions, 256 buffers, 16 tables of 65,536 entries, bundles, fail-secure.
    fn default() -> Self {
        SwitchOptions {
            versions: Versions::Both,
            n_buffers: 256,
            n_tables: 16,
            max_entries: 65_536,
            bundles: true,
            fail_mode: FailMode::Secure,
        }
    }
}
