//! What of a virtual switch is not in its journal yet.
//!
//! In: numbers of what changed. Out: the same, each once, or that there are too many. It is in the path of each flow mod, so a mark is one
//! number behind others. It keeps no content: that is read when the journal is written.

/// The most marks that wait. Beyond it, the whole state is written instead.
const MARKS_MAX: usize = 1 << 16;

/// The numbers of rules, groups, meters or ports that changed.
#[derive(Clone, Debug)]
pub(crate) struct Marks<T> {
    /// Whether there is a journal.
    is_kept: bool,
    marks: Vec<T>,
    are_too_many: bool,
}

impl<T> Default for Marks<T> {
    fn default() -> Marks<T> {
        Marks { is_kept: false, marks: Vec::new(), are_too_many: false }
    }
}

impl<T: Copy + Ord> Marks<T> {
    /// From now on, there is a journal.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// This changed.
    pub(crate) fn note(&mut self, number: T) {
        if !self.is_kept || self.are_too_many {
            return;
        }
        if self.marks.len() >= MARKS_MAX {
            self.marks.clear();
            self.are_too_many = true;
            return;
        }
        self.marks.push(number);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.marks.is_empty() && !self.are_too_many
    }

    /// Whether only the whole state says what changed.
    pub(crate) fn are_too_many(&self) -> bool {
        self.are_too_many
    }

    /// What changed since the last call, in order.
    pub(crate) fn take(&mut self) -> Vec<T> {
        self.are_too_many = false;
        let mut taken = self.marks.clone();
        self.marks.clear();
        taken.sort_unstable();
        taken.dedup();
        taken
    }
}

/// The marks of a virtual switch, but for those of its rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unsaved {
    pub(crate) groups: Marks<u32>,
    pub(crate) meters: Marks<u32>,
    /// Ports by the number that the tenant sees.
    pub(crate) ports: Marks<u32>,
    /// There is one generation id at most.
    pub(crate) generation: Marks<()>,
}

impl Unsaved {
    pub(crate) fn keep(&mut self) {
        self.groups.keep();
        self.meters.keep();
        self.ports.keep();
        self.generation.keep();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
            && self.meters.is_empty()
            && self.ports.is_empty()
            && self.generation.is_empty()
    }

    pub(crate) fn are_too_many(&self) -> bool {
        self.groups.are_too_many()
            || self.meters.are_too_many()
            || self.ports.are_too_many()
            || self.generation.are_too_many()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_bound_the_whole_state_is_due() {
        let mut marks = Marks::default();
        marks.note(1);
        assert!(marks.is_empty(), "without a journal, nothing is noted");
        marks.keep();
        (0..MARKS_MAX).for_each(|number| marks.note(number));
        assert!(!marks.are_too_many());
        marks.note(MARKS_MAX);
        assert!(marks.are_too_many() && !marks.is_empty());
        assert!(marks.take().is_empty() && marks.is_empty());
        [3, 1, 3].into_iter().for_each(|number| marks.note(number));
        assert_eq!(marks.take(), [1, 3]);
    }
}
