//! How a switch is made: versions, buffers, tables, and what it does without a controller.

use super::versions::Versions;
use profile::model::RULES_MAX;
use profile::{OpenFlowVersion, Profile};
use std::collections::BTreeMap;
use std::sync::Arc;

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

/// Which switches play which profiles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profiles {
    all: Option<Arc<Profile>>,
    by_name: BTreeMap<String, Arc<Profile>>,
}

impl Profiles {
    /// All switches play this profile.
    pub fn for_all(profile: Profile) -> Self {
        Profiles { all: Some(Arc::new(profile)), by_name: BTreeMap::new() }
    }

    /// All switches that have none of their own play this profile.
    pub fn set_for_all(&mut self, profile: Arc<Profile>) {
        self.all = Some(profile);
    }

    /// The switch with this name plays this profile.
    pub fn set(&mut self, switch: impl Into<String>, profile: Arc<Profile>) {
        self.by_name.insert(switch.into(), profile);
    }

    /// The profile of the switch with this name.
    pub fn of(&self, switch: &str) -> Option<&Arc<Profile>> {
        self.by_name.get(switch).or(self.all.as_ref())
    }

    /// Whether no switch plays a profile.
    pub fn is_empty(&self) -> bool {
        self.all.is_none() && self.by_name.is_empty()
    }

    /// The switches with a profile of their own.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
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
    /// Which profile it plays, if any. The profile then sets the versions, the buffers and the number of rules, where it names them.
    /// Such a switch has no bundles.
    pub profiles: Profiles,
    /// How many times slower than its profile a switch is: its delays and time-outs are so many times as long, and its rates as low.
    /// A 0 counts as 1.
    pub slow_motion: u32,
    /// The seed of all that the profile leaves to chance. Each switch adds its datapath id.
    pub seed: u64,
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
            profiles: Profiles::default(),
            slow_motion: 1,
            seed: 1,
        }
    }
}

impl SwitchOptions {
    /// The options of a switch that plays a profile: the profile overrides them.
    pub(crate) fn of_profile(mut self, profile: &Profile) -> Self {
        self.n_buffers = profile.packet_in.buffers_packets.unwrap_or(self.n_buffers);
        if profile.has_table() {
            // Without a known end, the table ends where the model does. 2²⁰ has 32 bits.
            self.max_entries = profile.table_size().unwrap_or(RULES_MAX as u32);
        }
        self.bundles = false;
        self.versions = match profile.switch.openflow.as_slice() {
            [OpenFlowVersion::V10] => Versions::Only10,
            [OpenFlowVersion::V13] => Versions::Only13,
            _ => self.versions,
        };
        self
    }
}
