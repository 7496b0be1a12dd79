//! The steps by which a virtual switch compares the state that it recalled from a journal with the physical switch.
//!
//! In: what happens to the physical switch. Out: whether messages of controllers have to wait. It decides nothing about rules.

/// The steps, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Recall {
    /// Nothing was recalled, or all is compared with the physical switch.
    #[default]
    Done,
    /// The physical switch has not connected yet.
    Waiting,
    /// The physical switch is asked which rules it has.
    Asked,
    /// It has answered, or will not. Groups or meters may not be confirmed yet.
    Heard {
        /// Whether it has said all of its rules.
        is_whole: bool,
    },
}

impl Recall {
    /// Whether the table may differ from the physical switch.
    pub(crate) fn is_open(self) -> bool {
        self != Recall::Done
    }

    /// The physical switch is gone: it has to be asked again.
    pub(crate) fn on_switch_down(&mut self) {
        if self.is_open() {
            *self = Recall::Waiting;
        }
    }
}
