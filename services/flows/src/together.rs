//! Which rules of one switch change together, and how far their bundle is.
//!
//! In: entries that are due. Out: whether a bundle waits or is under way, for `bundling`. At most one of a switch waits or is under way.

use crate::key::EntryKey;
use crate::sets::{Op, Part};
use crate::wanted::Body;
use burnet_sdk::BUNDLE_MAX;
use std::rc::Rc;

/// Whether the switch supports bundles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Support {
    #[default]
    Unknown,
    Has,
    Lacks,
}

/// Entries that change together.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) keys: Vec<EntryKey>,
    /// The change of a set that they are: the set, its body, and the parts in the order of its plan.
    pub(crate) change: Option<(u32, Rc<Body>, Vec<Part>)>,
}

/// The bundles of one switch. At most one waits or is under way.
#[derive(Debug, Default)]
pub struct Together {
    pub(crate) support: Support,
    /// Whether the log says why rules go alone.
    pub(crate) is_told: bool,
    /// Entries that are being put together.
    pub(crate) gathering: Option<Vec<EntryKey>>,
    pub(crate) waiting: Option<Group>,
    pub(crate) under_way: Option<(u64, Group)>,
}

impl Together {
    /// Whether a bundle waits for its turn.
    pub fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether a bundle is under way, so that nothing else may be sent.
    pub fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// How many entries wait or are under way.
    pub fn entries(&self) -> usize {
        let under_way = self.under_way.as_ref().map(|(_, group)| group);
        self.waiting.iter().chain(under_way).map(|group| group.keys.len()).sum()
    }

    /// Takes an entry that is due, if entries are being put together.
    pub fn take(&mut self, key: EntryKey) -> bool {
        match &mut self.gathering {
            Some(keys) => keys.push(key),
            None => return false,
        }
        true
    }
}

/// Whether these parts of one plan are a change that must be together: something comes, and something else goes or is replaced.
pub fn belong_together(parts: &[Part]) -> bool {
    let is_small = (2..=BUNDLE_MAX).contains(&parts.len());
    let is_at_one = || parts.windows(2).all(|pair| pair[0].switch == pair[1].switch);
    let comes = |part: &Part| part.op != Op::Remove;
    let goes = |part: &Part| part.op != Op::Add;
    is_small
        && is_at_one()
        && parts.iter().all(|part| part.key.is_rule())
        && parts.iter().any(comes)
        && parts.iter().any(goes)
}
