//! The items of a set: rules, paths, groups and meters.
//!
//! In: nothing. Out: types that borrow canonical bytes of `flow`. [`crate::Batch`] writes them, [`crate::items`] reads them.

use flow::{DatapathId, PortNo};

/// One item of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// One rule in one switch.
    Rule(Rule<'a>),
    /// A rule in each switch of a path.
    Path(Path<'a>),
    /// A group in one switch.
    Group(Group<'a>),
    /// A meter in one switch.
    Meter(Meter<'a>),
}

/// A rule in one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule<'a> {
    /// The switch.
    pub switch: DatapathId,
    /// Its table.
    pub table_id: u8,
    /// When it is added if the set is in order: first 0, then 1, and so on. Packets enter at the rules of the highest stage.
    pub stage: u8,
    /// Its priority.
    pub priority: u16,
    /// Seconds without a packet until the switch removes it; 0: none. The service adds no such rule again.
    pub idle_timeout_s: u16,
    /// Seconds until the switch removes it; 0: none. The service adds no such rule again.
    pub hard_timeout_s: u16,
    /// The match, as canonical bytes.
    pub matching: &'a [u8],
    /// The instructions, as canonical bytes.
    pub instructions: &'a [u8],
}

/// A rule in each switch of a path, from the switch where packets enter to the one where they leave.
///
/// The rule of a hop matches the hop's input port, then the selector. It applies the output to the hop's output port. At the last hop,
/// the treatment comes before the output. If the set is in order, the first hop gets its rule last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    /// The table of the rules.
    pub table_id: u8,
    /// The priority of the rules.
    pub priority: u16,
    /// What packets the path takes: a match as canonical bytes, without an input port.
    pub selector: &'a [u8],
    /// The actions at the last hop before the output, as canonical bytes.
    pub treatment: &'a [u8],
    /// The switches.
    pub hops: Hops<'a>,
}

/// A switch of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The switch.
    pub switch: DatapathId,
    /// Where packets come in. 0: the rule matches no input port.
    pub in_port: PortNo,
    /// Where they leave. If it is the input port, the switch returns them through the port `in_port`.
    pub out_port: PortNo,
}

/// How many bytes a hop has.
pub(crate) const HOP_BYTES: usize = 16;

/// The hops of a path, in their encoded form. [`hop_bytes`] makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hops<'a>(pub(crate) &'a [u8]);

impl<'a> Hops<'a> {
    /// The hops in these bytes of [`hop_bytes`]. Bytes behind the last whole hop are left out.
    pub fn of(bytes: &'a [u8]) -> Hops<'a> {
        Hops(&bytes[..bytes.len() / HOP_BYTES * HOP_BYTES])
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len() / HOP_BYTES
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The hop with this number.
    pub fn get(&self, number: usize) -> Option<Hop> {
        self.0.get(number * HOP_BYTES..)?.first_chunk().map(hop)
    }

    /// All of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Hop> + ExactSizeIterator + 'a {
        self.0.as_chunks::<HOP_BYTES>().0.iter().map(hop)
    }
}

fn hop(bytes: &[u8; HOP_BYTES]) -> Hop {
    let [d0, d1, d2, d3, d4, d5, d6, d7, i0, i1, i2, i3, o0, o1, o2, o3] = *bytes;
    Hop {
        switch: DatapathId(u64::from_le_bytes([d0, d1, d2, d3, d4, d5, d6, d7])),
        in_port: PortNo(u32::from_le_bytes([i0, i1, i2, i3])),
        out_port: PortNo(u32::from_le_bytes([o0, o1, o2, o3])),
    }
}

/// The encoded form of hops, for [`Hops::of`].
pub fn hop_bytes(hops: &[Hop]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(hops.len() * HOP_BYTES);
    for hop in hops {
        bytes.extend_from_slice(&hop.switch.0.to_le_bytes());
        bytes.extend_from_slice(&hop.in_port.0.to_le_bytes());
        bytes.extend_from_slice(&hop.out_port.0.to_le_bytes());
    }
    bytes
}

/// A group in one switch. It is confirmed before the set's rules are added there, and removed after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// The switch.
    pub switch: DatapathId,
    /// Its number, which no other group of the switch has.
    pub group_id: u32,
    /// `ofp_group_type`.
    pub group_type: u8,
    /// The buckets, as in a group mod of OpenFlow 1.3.
    pub buckets: &'a [u8],
}

/// A meter in one switch. It is confirmed before the set's rules are added there, and removed after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meter<'a> {
    /// The switch.
    pub switch: DatapathId,
    /// Its number, which no other meter of the switch has.
    pub meter_id: u32,
    /// `ofp_meter_flags`.
    pub flags: u16,
    /// The bands, as in a meter mod of OpenFlow 1.3.
    pub bands: &'a [u8],
}
