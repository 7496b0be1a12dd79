//! Which groups and meters a switch still has when it comes back: those that it lost, by a power cycle say, are nobody's from then on.
//!
//! ```text
//!   switch up, owners known ──> Asked::Groups, Asked::Meters ──parts──> OwnedCheck::see ──last part──> OwnedCheck::end ──> Owned::release
//! ```
//!
//! A switch is asked only if an app owns something there. It is asked before it is asked for its rules, while apps do
//! not know it. So the answer has everything that apps have added. An answer that is damaged, or comes after apps know
//! the switch, changes nothing.
//!
//! In: what apps own at a switch, and its answers, part by part. Out: questions, and what is to be released. Never asks twice in one session. Bound: the
//! owners of one worker ([`crate::group_or_meter::MAX_OWNED`] for each zone).

use crate::decision::Effect;
use crate::group_or_meter::GroupOrMeter;
use crate::own_messages::Asked;
use crate::owned::Owned;
use abi::event::StatsReply;
use flow::DatapathId;
use openflow::statistics::numbers;
use std::collections::{BTreeMap, BTreeSet};

/// What apps own at switches that have been asked and have not said yet that it is there.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnedCheck {
    unseen: BTreeMap<DatapathId, BTreeSet<GroupOrMeter>>,
}

impl OwnedCheck {
    /// Apps own these at a switch that is about to be asked.
    fn begin(&mut self, datapath: DatapathId, things: BTreeSet<GroupOrMeter>) {
        self.unseen.insert(datapath, things);
    }

    /// The switch has it.
    fn see(&mut self, datapath: DatapathId, target: GroupOrMeter) {
        self.unseen.get_mut(&datapath).map(|unseen| unseen.remove(&target));
    }

    /// The switch has said of all groups, or of all meters, that it has: those of apps that it has no more.
    fn end(&mut self, datapath: DatapathId, asked: Asked) -> BTreeSet<GroupOrMeter> {
        let Some(unseen) = self.unseen.get_mut(&datapath) else { return BTreeSet::new() };
        let (gone, left) = std::mem::take(unseen).into_iter().partition(|target| asked_of(*target) == asked);
        *unseen = left;
        gone
    }

    /// No answer is listened to any more.
    pub fn give_up(&mut self, datapath: DatapathId) {
        self.unseen.remove(&datapath);
    }
}

/// By which question a switch says whether it has this.
fn asked_of(target: GroupOrMeter) -> Asked {
    match target {
        GroupOrMeter::Group(_) => Asked::Groups,
        GroupOrMeter::Meter(_) => Asked::Meters,
    }
}

impl OwnedCheck {
    /// Asks a switch of which apps do not know yet for its groups and meters, if an app owns any there.
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

    /// A part of an answer. What apps own and the switch has no more is released with the last part.
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
