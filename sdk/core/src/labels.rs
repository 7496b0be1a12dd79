//! Labels of links, for the app of a tenant whose node controls the switches of a slice: what others leave of each link.
//!
//! In: experimenter messages of switches. Out: labels, or none if the message is another one. The slice sends them if its operator wrote
//! `labels = "experimenter"`. It keeps nothing.

use abi::event::Experimenter;
use flow::{DatapathId, PortNo};

/// The experimenter of labels. An app needs `vendor = ["0x00627572:message"]` in its grant for them.
pub const LABELS_EXPERIMENTER: u32 = 0x0062_7572;

/// The type of a message with labels.
const LABELS: u32 = 2;
/// The flag of stale labels.
const STALE: u16 = 1;
/// The bytes before the labels, and those of a label.
const HEAD_BYTES: usize = 4;
const LABEL_BYTES: usize = 16;
/// The number that stands for no label.
const NONE: u32 = u32::MAX;

/// The label of the link that begins at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The port where packets enter the link.
    pub port: PortNo,
    /// What the flows of others leave of the link, in kbit/s. `None`: the port has no label any more.
    pub label_kbps: Option<u64>,
    /// What the link carries, in kbit/s. `None`: it is unknown.
    pub capacity_kbps: Option<u64>,
}

/// Labels of one switch: all that it has, or those that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labels<'a> {
    /// The switch.
    pub datapath: DatapathId,
    /// All labels, also earlier ones, may be too high.
    pub is_stale: bool,
    labels: &'a [u8],
}

impl<'a> Labels<'a> {
    /// The labels in a message. `None`: it is a message about something else, or damaged.
    pub fn read(message: &Experimenter<'a>) -> Option<Labels<'a>> {
        let (head, labels) = message.data.split_at_checked(HEAD_BYTES)?;
        let is_ours = message.experimenter == LABELS_EXPERIMENTER && message.exp_type == LABELS;
        let is_whole = labels.len().is_multiple_of(LABEL_BYTES);
        let flags = u16::from_be_bytes([head[0], head[1]]);
        let is_stale = flags & STALE != 0;
        (is_ours && is_whole).then_some(Labels { datapath: message.datapath, is_stale, labels })
    }

    /// Each label. None if only [`Labels::is_stale`] has changed.
    pub fn iter(&self) -> impl Iterator<Item = Label> + 'a {
        self.labels.chunks_exact(LABEL_BYTES).map(|bytes| {
            let number =
                |at: usize| bytes[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
            Label {
                port: PortNo(number(0)),
                label_kbps: Some(number(4)).filter(|label| *label != NONE).map(u64::from),
                capacity_kbps: Some(number(8)).filter(|capacity| *capacity != 0).map(u64::from),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(experimenter: u32, exp_type: u32, data: &[u8], expected: Option<(bool, Vec<Label>)>) {
        let message = Experimenter { datapath: DatapathId(5), experimenter, exp_type, data };
        let labels = Labels::read(&message);
        assert!(labels.is_none_or(|labels| labels.datapath == DatapathId(5)));
        assert_eq!(labels.map(|labels| (labels.is_stale, labels.iter().collect())), expected, "{data:?}");
    }

    #[test]
    fn labels_are_read_and_other_messages_are_none() {
        let label = |label_kbps, capacity_kbps| Label { port: PortNo(3), label_kbps, capacity_kbps };
        // The bytes are those of `crates/openflow/tests/golden_labels.txt`.
        let golden = [0, 1, 0, 0, 0, 0, 0, 3, 0, 0, 7, 0xd0, 0, 0, 0x27, 0x10, 0, 0, 0, 0];
        check(LABELS_EXPERIMENTER, LABELS, &golden, Some((true, vec![label(Some(2_000), Some(10_000))])));
        let none = [0, 0, 0, 0, 0, 0, 0, 3, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0];
        check(LABELS_EXPERIMENTER, LABELS, &none, Some((false, vec![label(None, None)])));
        check(LABELS_EXPERIMENTER, LABELS, &[0, 1, 0, 0], Some((true, vec![])));
        check(LABELS_EXPERIMENTER, LABELS, &golden[..19], None);
        check(LABELS_EXPERIMENTER, LABELS, &[0, 1, 0], None);
        check(LABELS_EXPERIMENTER, 1, &golden, None);
        check(0x2320, LABELS, &golden, None);
    }
}
