//! What a flow is: two VNICs of a slice, and the links between them.
//!
//! In: numbers that others gave. Out: types. It computes nothing.

use crate::units::BANDWIDTH_MAX;
use graph::LinkNo;
use std::fmt;

/// The maximum number of slices. A slice with a greater number is refused.
pub const SLICES_MAX: usize = 4_096;

/// The maximum number of VNICs of a slice. A VNIC with a greater number is refused.
pub const VNICS_MAX: usize = 4_096;

/// The maximum number of flows of all slices. With it, the sum of their rates fits into 64 bits. A further flow is refused.
pub const FLOWS_MAX: usize = 1 << 20;

/// The maximum number of links of a path, which is what a packet can pass before its time to live ends. A longer path is refused.
pub const HOPS_MAX: usize = 255;

/// The number of a slice. Small numbers cost less memory. Intents with reserved bandwidth have one too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SliceNo(pub u32);

/// The number of a VNIC within its slice. Small numbers cost less memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VnicNo(pub u32);

/// The number of a flow within its slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowNo(pub u32);

impl SliceNo {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl VnicNo {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl FlowNo {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The two ends of a flow. A slice has at most one flow for each pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    /// The slice of both VNICs.
    pub slice: SliceNo,
    /// The VNIC that sends.
    pub source: VnicNo,
    /// The VNIC that receives.
    pub destination: VnicNo,
}

/// Why a change was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The number of the slice is at or above [`SLICES_MAX`].
    SliceNumber(SliceNo),
    /// The number of the VNIC is at or above [`VNICS_MAX`].
    VnicNumber(VnicNo),
    /// The slice has no such VNIC.
    UnknownVnic(VnicNo),
    /// A VNIC sends to itself.
    OneVnic(VnicNo),
    /// A bandwidth above [`BANDWIDTH_MAX`](crate::BANDWIDTH_MAX).
    TooMuch,
    /// There are [`FLOWS_MAX`] flows.
    TooManyFlows,
    /// The path has more than [`HOPS_MAX`] links.
    PathTooLong(usize),
    /// A link of the path has no capacity yet, so there is nothing to compare flows with.
    UnknownLink(LinkNo),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::SliceNumber(slice) => {
                write!(f, "slice number {} is too great: at most {SLICES_MAX} slices", slice.0)
            }
            Refusal::VnicNumber(vnic) => {
                write!(f, "VNIC number {} is too great: a slice has at most {VNICS_MAX} VNICs", vnic.0)
            }
            Refusal::UnknownVnic(vnic) => write!(f, "the slice has no VNIC number {}", vnic.0),
            Refusal::OneVnic(vnic) => write!(f, "VNIC number {} cannot send to itself", vnic.0),
            Refusal::TooMuch => write!(f, "too much: the greatest bandwidth is {BANDWIDTH_MAX}"),
            Refusal::TooManyFlows => write!(f, "there are {FLOWS_MAX} flows already"),
            Refusal::PathTooLong(links) => {
                write!(f, "a path of {links} links is too long: at most {HOPS_MAX}")
            }
            Refusal::UnknownLink(link) => write!(f, "the capacity of link number {} is not known", link.0),
        }
    }
}

impl std::error::Error for Refusal {}

/// How many links a path holds in place. Longer ones are in memory of their own.
const FEW: usize = 7;

/// The directed links of a flow, first to last. A path of up to seven links needs no memory of its own.
#[derive(Clone)]
pub struct Path(Links);

#[derive(Clone)]
enum Links {
    Few { count: u8, links: [LinkNo; FEW] },
    Many(Box<[LinkNo]>),
}

impl Path {
    /// A path over these links.
    ///
    /// # Errors
    /// It has more than [`HOPS_MAX`] links.
    pub fn new(links: &[LinkNo]) -> Result<Path, Refusal> {
        if links.len() > HOPS_MAX {
            return Err(Refusal::PathTooLong(links.len()));
        }
        let mut few = [LinkNo(0); FEW];
        Ok(Path(match few.get_mut(..links.len()) {
            Some(place) => {
                place.copy_from_slice(links);
                // At most FEW.
                Links::Few { count: links.len() as u8, links: few }
            }
            None => Links::Many(links.into()),
        }))
    }

    /// Its links.
    pub fn links(&self) -> &[LinkNo] {
        match &self.0 {
            Links::Few { count, links } => &links[..usize::from(*count)],
            Links::Many(links) => links,
        }
    }
}

impl Default for Path {
    fn default() -> Path {
        Path(Links::Few { count: 0, links: [LinkNo(0); FEW] })
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.links()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_its_links_however_many_they_are() {
        for hops in [0, 1, 6, 7, 8, HOPS_MAX] {
            let links: Vec<_> = (0..).map(LinkNo).take(hops).collect();
            assert_eq!(Path::new(&links).unwrap().links(), links);
        }
        let long = vec![LinkNo(1); HOPS_MAX + 1];
        assert_eq!(Path::new(&long).unwrap_err(), Refusal::PathTooLong(HOPS_MAX + 1));
    }

    #[test]
    fn a_short_path_is_small() {
        assert_eq!(size_of::<Path>(), 32);
    }
}
