//! Admission: whether the NICs and the links carry what a slice is promised.
//!
//! ```text
//!   NICs, links, bookings of other slices ──┐
//!   request: a rate for each VNIC ──────────┼──> judge ──> Booking, or what is lacking first ──> book
//!   routing ──> worst traffic by link ──────┘
//! ```
//!
//! A NIC must carry the sum of its VNICs. A link must carry the worst traffic of all hoses over it: slices choose their traffic without each other, so the
//! worst of all is the sum of the worst of each. What intents have reserved on a link is left to them.
//!
//! In: capacities, requests, routings. Out: bookings and refusals. Nothing is half booked. It chooses no paths.

use crate::flow::{SLICES_MAX, SliceNo, VNICS_MAX};
use crate::routing::{PLACES_MAX, Routing};
use crate::units::Bandwidth;
use crate::worst::worst;
use graph::{LinkNo, SwitchNo, Topology};
use std::collections::BTreeMap;
use std::fmt;

/// The number of a NIC: a port of a switch to which a server is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NicNo(pub u32);

/// The NIC of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nic {
    /// Its name in texts, such as `server 3` or `s5:2`.
    pub name: String,
    /// What it carries in each direction.
    pub capacity: Bandwidth,
    /// The switch to which it is attached.
    pub switch: SwitchNo,
}

/// A VNIC that a slice asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VnicRequest {
    /// Its name.
    pub name: String,
    /// The NIC behind which it is.
    pub nic: NicNo,
    /// What it may send, and what it may receive.
    pub rate: Bandwidth,
}

/// A slice that is to be admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceRequest {
    /// Its name.
    pub name: String,
    /// Its VNICs.
    pub vnics: Vec<VnicRequest>,
}

/// What is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checks {
    /// NICs alone. The fabric is trusted, as in the paper: `admission = "edge"`.
    Edge,
    /// NICs and links.
    Fabric,
}

/// What is lacking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// There is no such NIC.
    UnknownNic {
        /// The VNIC that names it.
        vnic: String,
        /// The NIC.
        nic: NicNo,
    },
    /// The number of the slice is too great.
    SliceNumber(SliceNo),
    /// The slice has too many VNICs.
    TooManyVnics(usize),
    /// The VNICs are at too many switches.
    TooManyPlaces(usize),
    /// A NIC has less left than a VNIC asks for.
    Nic {
        /// The VNIC.
        vnic: String,
        /// What it asks for.
        asks: Bandwidth,
        /// The NIC.
        nic: String,
        /// What other slices, and earlier VNICs of this one, leave.
        left: Bandwidth,
        /// What the NIC has.
        capacity: Bandwidth,
    },
    /// A link has less left than the worst traffic.
    Link {
        /// The link.
        link: LinkNo,
        /// Its name.
        name: String,
        /// The worst traffic of the slice.
        worst: Bandwidth,
        /// What other slices and intents leave.
        left: Bandwidth,
        /// What the link has.
        capacity: Bandwidth,
    },
    /// The capacity of a link is not known, so nothing can be promised on it.
    UnknownCapacity {
        /// The link.
        link: LinkNo,
        /// Its name.
        name: String,
    },
    /// Two switches with VNICs are not connected by links that may be used.
    NoPath {
        /// Where the path would begin.
        from: String,
        /// Where it would end.
        to: String,
    },
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::UnknownNic { vnic, nic } => {
                write!(f, "{vnic} is at NIC number {}, which is not known", nic.0)
            }
            Lack::SliceNumber(slice) => write!(f, "number {}: at most {SLICES_MAX} slices", slice.0),
            Lack::TooManyVnics(vnics) => write!(f, "{vnics} VNICs: a slice has at most {VNICS_MAX}"),
            Lack::TooManyPlaces(places) => {
                write!(f, "its VNICs are at {places} switches: at most {PLACES_MAX} can be judged")
            }
            Lack::Nic { vnic, asks, nic, left, capacity } => {
                write!(f, "{vnic} asks for {asks}; the NIC of {nic} has {left} of {capacity} left")
            }
            Lack::Link { name, worst, left, capacity, .. } => {
                write!(f, "its VNICs can put {worst} on link {name}, which has {left} of {capacity} left")
            }
            Lack::UnknownCapacity { name, .. } => {
                write!(f, "the capacity of link {name} is not known, so nothing can be promised on it")
            }
            Lack::NoPath { from, to } => write!(f, "no path leads from switch {from} to switch {to}"),
        }
    }
}

/// A slice that is not admitted. Nothing was booked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAdmitted {
    /// The name of the slice.
    pub slice: String,
    /// The first thing that it lacks.
    pub lack: Lack,
}

impl fmt::Display for NotAdmitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slice {}: {}", self.slice, self.lack)
    }
}

impl std::error::Error for NotAdmitted {}

/// What a slice takes of NICs and links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Booking {
    /// In bit/s, the sum of its VNICs.
    pub nics: BTreeMap<NicNo, u64>,
    /// In bit/s, the worst traffic. Empty if only the edge was judged.
    pub links: BTreeMap<LinkNo, u64>,
}

/// NICs, and the bookings of all slices.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    nics: BTreeMap<NicNo, Nic>,
    bookings: BTreeMap<SliceNo, Booking>,
    /// The sums of the bookings.
    total: Booking,
}

impl Admission {
    /// A NIC is known, or changed. What was booked stays, even if it is more than the NIC has now.
    pub fn put_nic(&mut self, number: NicNo, nic: Nic) {
        self.nics.insert(number, nic);
    }

    /// A NIC.
    pub fn nic(&self, number: NicNo) -> Option<&Nic> {
        self.nics.get(&number)
    }

    /// The switches where a slice has VNICs, in the order of their ids.
    pub fn places(&self, topology: &Topology, request: &SliceRequest) -> Vec<SwitchNo> {
        let switches = request.vnics.iter().filter_map(|vnic| Some(self.nic(vnic.nic)?.switch));
        let places: BTreeMap<_, _> = switches.map(|switch| (topology.switch_id(switch), switch)).collect();
        places.into_values().collect()
    }

    /// Whether a slice fits. What it has booked already does not count against it. `routing`: none if the fabric is trusted.
    ///
    /// # Errors
    /// The first thing that is lacking: NICs in the order of the request, then links in the order of their ids.
    pub fn judge(
        &self,
        topology: &Topology,
        slice: SliceNo,
        request: &SliceRequest,
        routing: Option<&Routing>,
    ) -> Result<Booking, NotAdmitted> {
        let judged = self.demand(slice, request, routing).and_then(|booking| {
            self.judge_nics(slice, request)?;
            self.judge_links(topology, slice, &booking)?;
            Ok(booking)
        });
        judged.map_err(|lack| NotAdmitted { slice: request.name.clone(), lack })
    }

    /// Books what was judged last, in place of what the slice had booked.
    pub fn book(&mut self, slice: SliceNo, booking: Booking) {
        self.release(slice);
        for (nic, bps) in &booking.nics {
            *self.total.nics.entry(*nic).or_default() += bps;
        }
        for (link, bps) in &booking.links {
            *self.total.links.entry(*link).or_default() += bps;
        }
        self.bookings.insert(slice, booking);
    }

    /// Gives back what a slice had booked.
    pub fn release(&mut self, slice: SliceNo) {
        let booking = self.bookings.remove(&slice).unwrap_or_default();
        for (nic, bps) in &booking.nics {
            *self.total.nics.entry(*nic).or_default() -= bps;
        }
        for (link, bps) in &booking.links {
            *self.total.links.entry(*link).or_default() -= bps;
        }
    }

    /// What a slice has booked.
    pub fn booking(&self, slice: SliceNo) -> Option<&Booking> {
        self.bookings.get(&slice)
    }

    /// What all others leave of a NIC.
    pub fn nic_left(&self, slice: SliceNo, number: NicNo) -> Bandwidth {
        let capacity = self.nic(number).map(|nic| nic.capacity).unwrap_or_default();
        let own_bps = self.booking(slice).and_then(|own| own.nics.get(&number)).copied().unwrap_or_default();
        let all_bps = self.total.nics.get(&number).copied().unwrap_or_default();
        capacity.less(Bandwidth::from_bps(all_bps - own_bps))
    }

    /// What all others, and intents, leave of a link. `None`: its capacity is not known.
    pub fn link_left(&self, topology: &Topology, slice: SliceNo, link: LinkNo) -> Option<Bandwidth> {
        let free = topology.slot(link).free_kbps().map(Bandwidth::from_kbps)?;
        let own_bps = self.booking(slice).and_then(|own| own.links.get(&link)).copied().unwrap_or_default();
        let all_bps = self.total.links.get(&link).copied().unwrap_or_default();
        Some(free.less(Bandwidth::from_bps(all_bps - own_bps)))
    }

    /// What a slice needs, whether it is there or not.
    pub(crate) fn demand(
        &self,
        slice: SliceNo,
        request: &SliceRequest,
        routing: Option<&Routing>,
    ) -> Result<Booking, Lack> {
        if slice.index() >= SLICES_MAX {
            return Err(Lack::SliceNumber(slice));
        }
        if request.vnics.len() > VNICS_MAX {
            return Err(Lack::TooManyVnics(request.vnics.len()));
        }
        let mut booking = Booking::default();
        let places = routing.map_or(&[][..], |routing| &routing.places);
        let mut rates_bps = vec![0_u64; places.len()];
        for vnic in &request.vnics {
            let unknown = || Lack::UnknownNic { vnic: vnic.name.clone(), nic: vnic.nic };
            let nic = self.nic(vnic.nic).ok_or_else(unknown)?;
            let sum_bps = booking.nics.entry(vnic.nic).or_default();
            *sum_bps = sum_bps.saturating_add(vnic.rate.bps());
            if let Some(place) = places.iter().position(|place| *place == nic.switch) {
                rates_bps[place] = rates_bps[place].saturating_add(vnic.rate.bps());
            }
        }
        for (link, parts) in routing.iter().flat_map(|routing| &routing.parts) {
            booking.links.insert(*link, worst(parts, &rates_bps).load_bps);
        }
        Ok(booking)
    }

    fn judge_nics(&self, slice: SliceNo, request: &SliceRequest) -> Result<(), Lack> {
        let mut asked: BTreeMap<NicNo, Bandwidth> = BTreeMap::new();
        for vnic in &request.vnics {
            let left = asked.entry(vnic.nic).or_insert_with(|| self.nic_left(slice, vnic.nic));
            if vnic.rate > *left {
                let nic = self.nic(vnic.nic);
                return Err(Lack::Nic {
                    vnic: vnic.name.clone(),
                    asks: vnic.rate,
                    nic: nic.map(|nic| nic.name.clone()).unwrap_or_default(),
                    left: *left,
                    capacity: nic.map(|nic| nic.capacity).unwrap_or_default(),
                });
            }
            *left = left.less(vnic.rate);
        }
        Ok(())
    }

    fn judge_links(&self, topology: &Topology, slice: SliceNo, booking: &Booking) -> Result<(), Lack> {
        let mut used: Vec<_> = booking.links.iter().filter(|(_, bps)| **bps > 0).collect();
        used.sort_unstable_by_key(|(link, _)| topology.slot(**link).id);
        for (link, bps) in used {
            let name = || topology.slot(*link).id.to_string();
            let Some(left) = self.link_left(topology, slice, *link) else {
                return Err(Lack::UnknownCapacity { link: *link, name: name() });
            };
            let worst = Bandwidth::from_bps(*bps);
            if worst > left {
                let capacity = Bandwidth::from_kbps(topology.slot(*link).capacity_kbps);
                return Err(Lack::Link { link: *link, name: name(), worst, left, capacity });
            }
        }
        Ok(())
    }
}
