//! The owners of groups and meters on switches, stored for longer than the kernel process lives.
//!
//! ```text
//!   kernel process ──FromKernel::Owned──> Owners ──text──> the file `owners` ──parse──> Owners of the node's next start
//!                                           └──ToKernel::Owned──> the next kernel process
//! ```
//!
//! Groups and meters have no cookie, so only the kernel that accepted them knows their owner. In: the owners that the
//! kernel process reports. Out: the same for the next kernel process, and a text. It reads and writes no file, and
//! knows no app's name. Bound: [`OWNERS_MAX`]. Further owners are not stored. After a restart these groups have no
//! owner, so no app may change them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::APPS_MAX;
pub use monitor_channel::owners::{GroupOrMeter, IN_A_MESSAGE_MAX, Owned};

/// The largest number of groups and meters: 4,096 for each of 64 zones. With a thousand such zones, some are left out.
pub const OWNERS_MAX: usize = 1 << 18;

/// The longest text of all of them, with at most 48 bytes a line.
pub const TEXT_BYTES_MAX: usize = OWNERS_MAX * 48;

/// The owners of all groups and meters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owners(BTreeMap<(u64, GroupOrMeter), u16>);

impl Owners {
    /// Parses the text of [`Self::to_text`]. It skips zones whose app has changed. It also returns the first invalid
    /// line.
    pub fn parse(text: &str, is_known: impl Fn(u16) -> bool) -> (Owners, Option<usize>) {
        let (mut owners, mut damaged) = (Owners::default(), None);
        for (index, line) in text.lines().enumerate() {
            match read_line(line) {
                Some(owned) if owned.zone.is_some_and(&is_known) => drop(owners.note(owned)),
                Some(_) => {}
                None => damaged = damaged.or(Some(index + 1)),
            }
        }
        (owners, damaged)
    }

    /// A line `DATAPATH group|meter NUMBER ZONE` for each.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for ((datapath, thing), zone) in &self.0 {
            let (kind, id) = match thing {
                GroupOrMeter::Group(id) => ("group", id),
                GroupOrMeter::Meter(id) => ("meter", id),
            };
            // Writing into a string does not fail.
            let _ = writeln!(text, "{datapath:016x} {kind} {id} {zone}");
        }
        text
    }

    /// Records a change. Returns `false` if the zone is invalid, or the bound is reached.
    pub fn note(&mut self, Owned { datapath, thing, zone }: Owned) -> bool {
        let Some(zone) = zone else {
            self.0.remove(&(datapath, thing));
            return true;
        };
        let has_room = self.0.len() < OWNERS_MAX || self.0.contains_key(&(datapath, thing));
        let fits = has_room && (1..=APPS_MAX).contains(&usize::from(zone));
        if fits {
            self.0.insert((datapath, thing), zone);
        }
        fits
    }

    /// All owners, as messages for the next kernel process.
    #[must_use]
    pub fn all(&self) -> Vec<Owned> {
        let all = self.0.iter();
        all.map(|((datapath, thing), zone)| Owned { datapath: *datapath, thing: *thing, zone: Some(*zone) })
            .collect()
    }
}

fn read_line(line: &str) -> Option<Owned> {
    let mut words = line.split(' ');
    let datapath = words.next().filter(|word| word.len() == 16)?;
    let datapath = u64::from_str_radix(datapath, 16).ok()?;
    let (kind, id) = (words.next()?, words.next()?.parse().ok()?);
    let thing = match kind {
        "group" => GroupOrMeter::Group(id),
        "meter" => GroupOrMeter::Meter(id),
        _ => return None,
    };
    let zone = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Owned { datapath, thing, zone: Some(zone) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (String, Option<usize>) {
        let (owners, damaged) = Owners::parse(text, |zone| zone != 9);
        (owners.to_text(), damaged)
    }

    #[test]
    fn a_damaged_line_is_named_and_hides_no_other() {
        let good = "00000000000000a1 group 7 1\n";
        for bad in ["", "a1 group 7 1", "00000000000000a1 rule 7 1", "00000000000000a1 group -7 1", "x", "é"]
        {
            assert_eq!(parse(&format!("{bad}\n{good}")), (good.to_owned(), Some(1)), "{bad}");
        }
        assert_eq!(parse("00000000000000a1 group 7 1 1"), (String::new(), Some(1)));
        assert_eq!(parse("00000000000000a1 group 7 1024"), (String::new(), None), "there is no such zone");
        assert_eq!(parse("00000000000000a1 group 7 9"), (String::new(), None), "it is not who it was");
    }

    #[test]
    fn what_is_noted_is_read_again() {
        let mut owners = Owners::default();
        for (datapath, thing, zone) in [
            (u64::MAX, GroupOrMeter::Group(u32::MAX), Some(63)),
            (1, GroupOrMeter::Meter(8), Some(2)),
            (1, GroupOrMeter::Group(7), Some(1)),
            (1, GroupOrMeter::Meter(8), None),
        ] {
            assert!(owners.note(Owned { datapath, thing, zone }));
        }
        let text = owners.to_text();
        assert_eq!(text, "0000000000000001 group 7 1\nffffffffffffffff group 4294967295 63\n");
        assert_eq!(Owners::parse(&text, |_| true), (owners.clone(), None));
        assert_eq!(owners.all().len(), 2);
        assert!(!owners.note(Owned { datapath: 1, thing: GroupOrMeter::Group(9), zone: Some(0) }));
    }

    #[test]
    fn there_are_no_more_than_may_be() {
        let mut owners = Owners::default();
        let owned = |id: usize| Owned { datapath: 1, thing: GroupOrMeter::Group(id as u32), zone: Some(1) };
        assert!((0..OWNERS_MAX).all(|id| owners.note(owned(id))));
        assert!(!owners.note(owned(OWNERS_MAX)), "one more");
        assert!(owners.note(Owned { zone: Some(2), ..owned(7) }), "one that is there");
        assert!(owners.to_text().len() <= TEXT_BYTES_MAX);
    }

    #[test]
    fn a_message_of_them_is_shorter_than_a_message_may_be() {
        let longest = Owned { datapath: u64::MAX, thing: GroupOrMeter::Group(u32::MAX), zone: Some(63) };
        let message = crate::protocol::FromKernel::Owned { changes: vec![longest; IN_A_MESSAGE_MAX] };
        assert!(crate::channel::encode(&message).unwrap().len() < crate::channel::MESSAGE_BYTES_MAX);
    }
}
