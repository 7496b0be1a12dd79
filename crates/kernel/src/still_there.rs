//! Which groups and meters a switch still has when it comes back: those that it lost, by a power cycle say, are nobody's from then on.
//!
//! ```text
//!   switch up, owners known ──> Asked::Groups, Asked::Meters ──parts──> StillThere::see ──last part──> StillThere::end ──> Owned::release
//! ```
//!
//! A switch is asked only if an app owns something there, before it is asked for its rules, and while apps do not know it: so nothing that an app adds can
//! be missing in the answer. An answer that is damaged, or comes after apps know the switch, changes nothing.
//!
//! In: what apps own at a switch, and its answers, part by part. Out: questions, and what is to be released. Never asks twice in one session. Bound: the
//! owners of one worker ([`crate::thing::MAX_OWNED`] for each zone).

use crate::decision::Effect;
use crate::own_messages::Asked;
use crate::owned::Owned;
use crate::thing::Thing;
use abi::event::StatsReply;
use flow::DatapathId;
use openflow::statistics::numbers;
use std::collections::{BTreeMap, BTreeSet};

/// What apps own at switches that have been asked and have not said yet that it is there.
#[derive(Clone, Debug, Default)]
pub(crate) struct StillThere {
    unseen: BTreeMap<DatapathId, BTreeSet<Thing>>,
}

impl StillThere {
    /// Apps own these at a switch that is about to be asked.
    fn begin(&mut self, datapath: DatapathId, things: BTreeSet<Thing>) {
        self.unseen.insert(datapath, things);
    }

    /// The switch has it.
    fn see(&mut self, datapath: DatapathId, thing: Thing) {
        self.unseen.get_mut(&datapath).map(|unseen| unseen.remove(&thing));
    }

    /// The switch has said of all groups, or of all meters, that it has: those of apps that it has no more.
    fn end(&mut self, datapath: DatapathId, asked: Asked) -> BTreeSet<Thing> {
        let Some(unseen) = self.unseen.get_mut(&datapath) else { return BTreeSet::new() };
        let (gone, left) = std::mem::take(unseen).into_iter().partition(|thing| asked_of(*thing) == asked);
        *unseen = left;
        gone
    }

    /// No answer is listened to any more.
    pub fn give_up(&mut self, datapath: DatapathId) {
        self.unseen.remove(&datapath);
    }
}

/// By which question a switch says whether it has this.
fn asked_of(thing: Thing) -> Asked {
    match thing {
        Thing::Group(_) => Asked::Groups,
        Thing::Meter(_) => Asked::Meters,
    }
}

impl StillThere {
    /// Asks a switch of which apps do not know yet for its groups and meters, if an app owns any there.
    pub fn ask(&mut self, datapath: DatapathId, owned: &Owned, effects: &mut Vec<Effect>) {
        let things: BTreeSet<Thing> = owned.things_of_apps(datapath).collect();
        for asked in [Asked::Groups, Asked::Meters] {
            if things.iter().any(|thing| asked_of(*thing) == asked) {
                effects.push(Effect::Ask { datapath, asked });
            }
        }
        if !things.is_empty() {
            self.begin(datapath, things);
        }
    }

    /// A part of an answer. What apps own and the switch has no more is released with the last part.
    pub fn on_answer(&mut self, asked: Asked, reply: &StatsReply<'_>, owned: &mut Owned) {
        let thing = if asked == Asked::Groups { Thing::Group } else { Thing::Meter };
        let numbers: Option<Vec<u32>> = numbers(reply.body).collect();
        let Some(numbers) = numbers else { return self.give_up(reply.datapath) };
        numbers.into_iter().for_each(|number| self.see(reply.datapath, thing(number)));
        if !reply.more {
            let gone = self.end(reply.datapath, asked);
            gone.into_iter().for_each(|thing| owned.release((reply.datapath, thing)));
        }
    }
}
