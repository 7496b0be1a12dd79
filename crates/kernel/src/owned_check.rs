//! Checks which groups and meters a switch still has when it reconnects. Those that it lost, for example after a power
//! failure, have no owner from then on.
//!
//! ```text
//!   switch up, owners known ──> Asked::Groups, Asked::Meters ──parts──> OwnedCheck::see ──last part──> OwnedCheck::end ──> Owned::release
//! ```
//!
//! The kernel asks a switch only if an app owns something there. It asks before it requests the rules, while apps do
//! not know the switch. So the answer contains everything that apps have added. A damaged answer changes nothing.
//! Neither does one that arrives after apps know the switch.
//!
//! In: the groups and meters of apps at a switch, and its answers, part by part. Out: questions, and the groups and
//! meters without an owner. It never asks twice in one session. Bound: the owners of one worker
//! ([`crate::group_or_meter::MAX_OWNED`] for each zone).

use crate::decision::Effect;
use crate::group_or_meter::GroupOrMeter;
use crate::own_messages::Asked;
use crate::owned::Owned;
use abi::event::StatsReply;
use flow::DatapathId;
use openflow::statistics::numbers;
use std::collections::{BTreeMap, BTreeSet};

/// Groups and meters of apps that a switch has been asked for and has not reported yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnedCheck {
    unseen: BTreeMap<DatapathId, BTreeSet<GroupOrMeter>>,
}

impl OwnedCheck {
    /// Apps own these at a switch that the kernel is about to ask.
    fn begin(&mut self, datapath: DatapathId, things: BTreeSet<GroupOrMeter>) {
        self.unseen.insert(datapath, things);
    }

    /// The switch has reported it.
    fn see(&mut self, datapath: DatapathId, target: GroupOrMeter) {
        self.unseen.get_mut(&datapath).map(|unseen| unseen.remove(&target));
    }

    /// The switch has reported all its groups, or all its meters. Returns those of apps that it no longer has.
    fn end(&mut self, datapath: DatapathId, asked: Asked) -> BTreeSet<GroupOrMeter> {
        let Some(unseen) = self.unseen.get_mut(&datapath) else { return BTreeSet::new() };
        let (gone, left) = std::mem::take(unseen).into_iter().partition(|target| asked_of(*target) == asked);
        *unseen = left;
        gone
    }

    /// Ignores further answers.
    pub fn give_up(&mut self, datapath: DatapathId) {
        self.unseen.remove(&datapath);
    }
}

/// The question whose answer reports this.
fn asked_of(target: GroupOrMeter) -> Asked {
    match target {
        GroupOrMeter::Group(_) => Asked::Groups,
        GroupOrMeter::Meter(_) => Asked::Meters,
    }
}

impl OwnedCheck {
    /// Asks a switch that apps do not know yet for its groups and meters, if an app owns any there.
    pub fn ask(&mut self, datapath: DatapathId, owned: &Owned, effects: &mut Vec<Effect>) {
        let things: BTreeSet<GroupOrMeter> = owned.owned_by_apps(datapath).collect();
        for asked in [Asked::Groups, Asked::Meters] {
            if things.iter().any(|target| asked_of(*target) == asked) {
                effects.push(Effect::Ask { datapath, asked });
            }
        }
        if !things.is_empty() {
            self.begin(datapath, things);
        }
    }

    /// Takes a part of an answer. With the last part, it releases what the switch no longer has.
    pub fn on_answer(&mut self, asked: Asked, reply: &StatsReply<'_>, owned: &mut Owned) {
        let target = if asked == Asked::Groups { GroupOrMeter::Group } else { GroupOrMeter::Meter };
        let numbers: Option<Vec<u32>> = numbers(reply.body).collect();
        let Some(numbers) = numbers else { return self.give_up(reply.datapath) };
        numbers.into_iter().for_each(|number| self.see(reply.datapath, target(number)));
        if !reply.more {
            let gone = self.end(reply.datapath, asked);
            gone.into_iter().for_each(|target| owned.release((reply.datapath, target)));
        }
    }
}
