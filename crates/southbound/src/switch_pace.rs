//! What the operator's profile of a switch means for its session: plain numbers.
//!
//! In: a datapath id, a description. Out: the numbers, if a profile applies to the switch. It reads no profile: the node does.

use crate::pacer::{CommandRate, PriorityOrder};
use crate::reply_watch::ReplyDelay;
use flow::DatapathId;
use openflow::message::SwitchDesc;
use std::fmt;
use std::sync::Arc;

/// How a switch is treated, by its profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchPace {
    /// The name of the profile.
    pub profile: String,
    /// How many flow mods, group mods and meter mods the switch gets. `None`: all at once.
    pub rate: Option<CommandRate>,
    /// In which order of priorities waiting adds go.
    pub order: PriorityOrder,
    /// How much later than the barrier reply the data plane has a rule, in milliseconds. A receipt says `programmed` only then.
    pub programmed_after_ms: u64,
    /// How many rules the hardware table has. `None`: what the switch says.
    pub entries: Option<u32>,
    /// How soon it answers a barrier behind one flow mod. `None`: the profile does not say.
    pub replies: Option<ReplyDelay>,
}

/// A profile that applies to a switch, and what waits because of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaceSnapshot {
    /// The name of the profile.
    pub profile: String,
    /// Commands that the switch has not got yet.
    pub waiting: usize,
    /// In how many milliseconds it will have got all of them.
    pub wait_ms: u64,
}

type Lookup = dyn Fn(DatapathId, Option<&SwitchDesc>) -> Option<Arc<SwitchPace>> + Send + Sync;

type Needs = dyn Fn(DatapathId) -> bool + Send + Sync;

/// Which switch is treated how.
#[derive(Clone, Default)]
pub struct SwitchPaces {
    lookup: Option<Arc<Lookup>>,
    needs_description: Option<Arc<Needs>>,
}

impl SwitchPaces {
    /// Asks this for each switch that connects, and again when its description comes.
    pub fn by(
        lookup: impl Fn(DatapathId, Option<&SwitchDesc>) -> Option<Arc<SwitchPace>> + Send + Sync + 'static,
    ) -> Self {
        SwitchPaces { lookup: Some(Arc::new(lookup)), needs_description: None }
    }

    /// The same, and these switches go up only after their description, if they send one.
    pub fn after_description(self, needs: impl Fn(DatapathId) -> bool + Send + Sync + 'static) -> Self {
        SwitchPaces { needs_description: Some(Arc::new(needs)), ..self }
    }

    /// Whether the description of this switch decides how it is treated.
    pub fn needs_description(&self, datapath: DatapathId) -> bool {
        self.needs_description.as_ref().is_some_and(|needs| needs(datapath))
    }

    /// How this switch is treated. `None`: no profile applies to it.
    pub fn of(&self, datapath: DatapathId, desc: Option<&SwitchDesc>) -> Option<Arc<SwitchPace>> {
        self.lookup.as_ref()?(datapath, desc)
    }
}

impl fmt::Debug for SwitchPaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.lookup.is_some() { "SwitchPaces(by profiles)" } else { "SwitchPaces(none)" })
    }
}
