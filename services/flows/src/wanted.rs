//! The body of a set: its items, and the rules, groups and meters that they expand to.
//!
//! ```text
//!   items of a set ──each──> (place, Wanted) for every switch        (Body, place) ──wanted──> the same again, when it is sent
//! ```
//!
//! In: encoded items. Out: one entry at a time, in buffers that are used again. A body is kept as it came, so a path of six rules
//! costs its own bytes only, and a rule costs a place.

use crate::key::{EntryKey, other_content, rule_content};
use flow::canonical::MatchWriter;
use flow::{DatapathId, Field, PortNo};
use flows_contract::{Item, Path, items};

/// The items of one version of a set.
#[derive(Debug, PartialEq, Eq)]
pub struct Body {
    /// The number of the set.
    pub set: u32,
    /// Its items.
    pub bytes: Box<[u8]>,
}

/// Where an entry comes from: the first byte of its item, and the hop of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The item's first byte.
    pub at: u32,
    /// The number of the hop.
    pub hop: u8,
}

/// One rule, group or meter for one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The switch.
    pub switch: DatapathId,
    /// When it is added if the set is in order. Entries of the highest stage let packets in.
    pub stage: u8,
    /// Its name there.
    pub key: EntryKey,
    /// What identifies its content.
    pub content: u64,
    /// What it is.
    pub what: What<'a>,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// A rule.
    Rule {
        /// Its table.
        table_id: u8,
        /// Its priority.
        priority: u16,
        /// Seconds without a packet until it ends; 0: none.
        idle_timeout_s: u16,
        /// Seconds until it ends; 0: none.
        hard_timeout_s: u16,
        /// Its match.
        matching: &'a [u8],
        /// Its instructions.
        instructions: &'a [u8],
    },
    /// A group.
    Group {
        /// `ofp_group_type`.
        group_type: u8,
        /// Its buckets.
        buckets: &'a [u8],
    },
    /// A meter.
    Meter {
        /// `ofp_meter_flags`.
        flags: u16,
        /// Its bands.
        bands: &'a [u8],
    },
}

/// The buffers of an expansion.
#[derive(Debug, Default)]
pub struct Scratch {
    matching: Vec<u8>,
    instructions: Vec<u8>,
}

impl Body {
    /// Every entry, in the order of the items.
    pub fn each(&self, scratch: &mut Scratch, take: impl FnMut(Place, &Wanted<'_>)) {
        each(&self.bytes, scratch, take);
    }

    /// The entry at a place. `None` for a place of another body.
    pub fn wanted<'s>(&'s self, place: Place, scratch: &'s mut Scratch) -> Option<Wanted<'s>> {
        self.expanded(place, scratch).map(Expanded::named)
    }

    /// What the entry at a place is. It is much cheaper than [`Body::wanted`], which computes its key and its content.
    pub fn what<'s>(&'s self, place: Place, scratch: &'s mut Scratch) -> Option<What<'s>> {
        self.expanded(place, scratch).map(|expanded| expanded.what)
    }

    fn expanded<'s>(&'s self, place: Place, scratch: &'s mut Scratch) -> Option<Expanded<'s>> {
        let (_, item) = items(self.bytes.get(place.at as usize..)?).next()?;
        expand(&item, place.hop.into(), scratch)
    }
}

/// Every entry of these items, in their order.
pub fn each(bytes: &[u8], scratch: &mut Scratch, mut take: impl FnMut(Place, &Wanted<'_>)) {
    for (at, item) in items(bytes) {
        // A body is shorter than 4 GiB, and a path has at most 255 hops.
        let at = at as u32;
        let hops = if let Item::Path(path) = &item { path.hops.len() } else { 1 };
        for hop in 0..hops {
            if let Some(expanded) = expand(&item, hop, scratch) {
                take(Place { at, hop: hop as u8 }, &expanded.named());
            }
        }
    }
}

/// An entry without what is computed from it.
struct Expanded<'s> {
    switch: DatapathId,
    stage: u8,
    /// The number of a group or a meter; 0 for a rule.
    id: u32,
    what: What<'s>,
}

impl<'s> Expanded<'s> {
    fn named(self) -> Wanted<'s> {
        let Expanded { switch, stage, id, what } = self;
        let (key, content) = match what {
            What::Rule { table_id, priority, idle_timeout_s, hard_timeout_s, matching, instructions } => {
                let key = EntryKey::rule(table_id, priority, matching);
                (key, rule_content(key, instructions, idle_timeout_s, hard_timeout_s))
            }
            What::Group { group_type, buckets } => {
                let key = EntryKey::group(id);
                (key, other_content(key, group_type.into(), buckets))
            }
            What::Meter { flags, bands } => {
                let key = EntryKey::meter(id);
                (key, other_content(key, flags, bands))
            }
        };
        Wanted { switch, stage, key, content, what }
    }
}

fn expand<'s>(item: &Item<'s>, hop: usize, scratch: &'s mut Scratch) -> Option<Expanded<'s>> {
    Some(match *item {
        Item::Path(path) => return hop_rule(&path, hop, scratch),
        Item::Rule(it) => {
            let what = What::Rule {
                table_id: it.table_id,
                priority: it.priority,
                idle_timeout_s: it.idle_timeout_s,
                hard_timeout_s: it.hard_timeout_s,
                matching: it.matching,
                instructions: it.instructions,
            };
            Expanded { switch: it.switch, stage: it.stage, id: 0, what }
        }
        Item::Group(it) => {
            let what = What::Group { group_type: it.group_type, buckets: it.buckets };
            Expanded { switch: it.switch, stage: 0, id: it.group_id, what }
        }
        Item::Meter(it) => {
            let what = What::Meter { flags: it.flags, bands: it.bands };
            Expanded { switch: it.switch, stage: 0, id: it.meter_id, what }
        }
    })
}

/// The rule of a hop: the input port and the selector; the treatment at the last hop, and the output.
fn hop_rule<'s>(path: &Path<'s>, number: usize, scratch: &'s mut Scratch) -> Option<Expanded<'s>> {
    let hop = path.hops.get(number)?;
    let Scratch { matching, instructions } = scratch;
    matching.clear();
    instructions.clear();
    if hop.in_port.0 != 0 {
        MatchWriter::new(matching).field(Field::InPort, hop.in_port);
    }
    matching.extend_from_slice(path.selector);
    let last = path.hops.len() - 1;
    // A switch sends no packet out of its input port unless the rule says so (OpenFlow 1.3.5, 7.2.1).
    let output = if hop.out_port == hop.in_port { PortNo::IN_PORT } else { hop.out_port };
    let treatment = if number == last { path.treatment } else { &[] };
    write_apply(treatment, output, instructions)?;
    let what = What::Rule {
        table_id: path.table_id,
        priority: path.priority,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        matching,
        instructions,
    };
    // At most 254.
    Some(Expanded { switch: hop.switch, stage: (last - number) as u8, id: 0, what })
}

/// The length of an output action, and of the head of an instruction with actions (OpenFlow 1.3.5, 7.2.4 and 7.2.5).
const OUTPUT_BYTES: usize = 16;
const HEAD_BYTES: usize = 8;

/// One apply-actions: the treatment, and one output with max_len 0. `None` if it is longer than an instruction can be.
fn write_apply(treatment: &[u8], output: PortNo, out: &mut Vec<u8>) -> Option<()> {
    const APPLY_ACTIONS: [u8; 2] = [0, 4];
    let [l0, l1] = u16::try_from(HEAD_BYTES + treatment.len() + OUTPUT_BYTES).ok()?.to_be_bytes();
    out.extend_from_slice(&APPLY_ACTIONS);
    out.extend_from_slice(&[l0, l1, 0, 0, 0, 0]);
    out.extend_from_slice(treatment);
    let [p0, p1, p2, p3] = output.0.to_be_bytes();
    out.extend_from_slice(&[0, 0, 0, 16, p0, p1, p2, p3, 0, 0, 0, 0, 0, 0, 0, 0]);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::canonical::{read_instructions, read_match};
    use flow::text::{instructions_to_string, match_to_string, parse_actions, parse_match};
    use flows_contract::{Hop, Hops, Items, hop_bytes};

    fn lines(hops: &[(u64, u32, u32)], treatment: &str) -> Vec<String> {
        let (mut selector, mut actions, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        flow::canonical::write_match(&parse_match("ip,nw_dst=10.0.0.1").unwrap(), &mut selector);
        flow::canonical::write_actions(&parse_actions(treatment).unwrap(), &mut actions).unwrap();
        let hop = |(switch, in_port, out_port): &(u64, u32, u32)| Hop {
            switch: DatapathId(*switch),
            in_port: PortNo(*in_port),
            out_port: PortNo(*out_port),
        };
        let hops = hop_bytes(&hops.iter().map(hop).collect::<Vec<_>>());
        let (table_id, priority) = (2, 9);
        Items::new(&mut bytes).path(&Path {
            table_id,
            priority,
            selector: &selector,
            treatment: &actions,
            hops: Hops::of(&hops),
        });
        let body = Body { set: 0, bytes: bytes.into() };
        let mut lines = Vec::new();
        body.each(&mut Scratch::default(), |place, wanted| {
            assert_eq!(body.wanted(place, &mut Scratch::default()), Some(*wanted));
            assert_eq!(body.what(place, &mut Scratch::default()), Some(wanted.what));
            let What::Rule { table_id: 2, priority: 9, matching, instructions, .. } = wanted.what else {
                panic!()
            };
            let instructions = instructions_to_string(&read_instructions(instructions).unwrap());
            let matching = match_to_string(&read_match(matching).unwrap());
            lines.push(format!("{} stage {}: {matching} {instructions}", wanted.switch.0, wanted.stage));
        });
        lines
    }

    #[test]
    fn a_path_is_a_rule_in_each_switch() {
        assert_eq!(
            lines(&[(1, 3, 1), (2, 0, 5), (3, 7, 7)], "set_field:00:00:00:00:00:09->eth_dst"),
            [
                "1 stage 2: ip,in_port=3,nw_dst=10.0.0.1 output:1",
                "2 stage 1: ip,nw_dst=10.0.0.1 output:5",
                "3 stage 0: ip,in_port=7,nw_dst=10.0.0.1 set_field:00:00:00:00:00:09->eth_dst,IN_PORT",
            ]
        );
    }

    #[test]
    fn a_place_of_another_body_has_no_entry() {
        let body = Body { set: 0, bytes: Box::new([]) };
        assert_eq!(body.wanted(Place { at: 0, hop: 0 }, &mut Scratch::default()), None);
        assert_eq!(body.wanted(Place { at: 9, hop: 0 }, &mut Scratch::default()), None);
    }
}
