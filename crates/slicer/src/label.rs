//! What a label is, and how controllers receive it.
//!
//! In: nothing. Out: values, and their form in messages. It sends nothing.

use flow::PortNo;
use openflow::labels::{NO_LABEL, PortLabel};

/// How controllers receive labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LabelForm {
    /// Not at all.
    #[default]
    None,
    /// As a field behind each description of a port, as in the paper.
    Paper,
    /// In messages of an experimenter.
    Experimenter,
    /// As the current speed of a port. 1.0 has no such field, so a controller of 1.0 receives none.
    Speed,
}

/// What is left of a link for this slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLabel {
    /// The label in kbit/s.
    pub label_kbps: u64,
    /// What the link carries, in kbit/s.
    pub capacity_kbps: u64,
}

impl LinkLabel {
    /// The label in the 32 bits of a message. The highest value stands for no label.
    pub(crate) fn written_kbps(self) -> u32 {
        at_most(self.label_kbps, NO_LABEL - 1)
    }

    /// The same with its port.
    pub(crate) fn of_port(self, port: PortNo) -> PortLabel {
        let capacity_kbps = at_most(self.capacity_kbps, u32::MAX);
        PortLabel { port, label_kbps: self.written_kbps(), capacity_kbps }
    }
}

fn at_most(value: u64, most: u32) -> u32 {
    u32::try_from(value).unwrap_or(most).min(most)
}
