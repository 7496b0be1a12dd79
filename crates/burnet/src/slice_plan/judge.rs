//! Admission and embedding of slices, one after the other.
//!
//! ```text
//!   slice ──links named──> their paths ────────┐
//!         └─VNICs only──> embedding ───────────┴─> admission ──> Got, and booked; or Refused, and nothing booked
//! ```
//!
//! In: a substrate, slices in their order. Out: for each slice what it gets, or what is lacking. An earlier slice is never moved for a later one.

use super::places::{self, Unknown};
use super::substrate::{Behind, Substrate};
use crate::slice_links::rates_bps;
use burnet_sdk::view::{ConnectPoint, LinkId};
use config::slices::{Slice, link_name, port_name, switch_name};
use flow::DatapathId;
use graph::LinkNo;
use hose::{
    Bandwidth, Booking, Checks, Fit, Lack, NicNo, NoPath, Routing, SliceNo, SliceRequest, VnicRequest, embed,
    fit,
};
use paths::slice_traffic::{self, NotKnown};
use std::collections::{BTreeMap, BTreeSet};

/// A slice after the judgement.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The slice, with the links that were chosen for it if it is admitted.
    pub slice: Slice,
    /// Whether its links were chosen.
    pub is_chosen: bool,
    /// What it gets.
    pub result: Result<Got, Refused>,
    /// What was tried for links, if more than one way was.
    pub tried: Vec<String>,
}

/// What a slice gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Got {
    /// Its switches.
    pub switches: Vec<DatapathId>,
    /// Its links.
    pub links: Vec<LinkUse>,
    /// Its VNICs.
    pub vnics: Vec<VnicUse>,
}

/// A link of the network that carries traffic of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkUse {
    /// The link, in one direction.
    pub id: LinkId,
    /// The slice's worst traffic, in the direction with more. `None`: the fabric is trusted.
    pub worst: Option<Bandwidth>,
    /// What is left after it, in the direction with less. `None`: the capacity is not known.
    pub left: Option<Bandwidth>,
}

/// A VNIC of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VnicUse {
    /// Its name.
    pub name: String,
    /// Its port.
    pub at: ConnectPoint,
    /// The name of its NIC.
    pub nic: String,
    /// Its rate.
    pub rate: Bandwidth,
    /// What the NIC has left after the slice.
    pub left: Bandwidth,
}

/// Why a slice is not admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The sentence, with the slice's name.
    pub why: String,
    /// What would fit. `None`: nothing, or it was not asked.
    pub fit: Option<Fit>,
}

/// Judges all slices in their order. `with_fit`: also what would fit of a slice that is refused.
///
/// # Errors
/// A name that the network does not have. Then no slice was judged.
pub fn judge(substrate: &mut Substrate, slices: &[Slice], with_fit: bool) -> Result<Vec<Judged>, Unknown> {
    judge_keeping(substrate, slices, with_fit, &BTreeMap::new())
}

/// The same for slices of which some run already, over links that were chosen for them. These keep their links while they fit, and so come first.
///
/// # Errors
/// As [`judge`].
pub fn judge_keeping(
    substrate: &mut Substrate,
    slices: &[Slice],
    with_fit: bool,
    chosen: &BTreeMap<String, Vec<LinkId>>,
) -> Result<Vec<Judged>, Unknown> {
    places::check(substrate, slices)?;
    Ok(judge_known(substrate, slices, with_fit, chosen, &own_ports(slices)))
}

/// The own ports of slices. A link at one of them is not chosen.
pub fn own_ports(slices: &[Slice]) -> BTreeSet<ConnectPoint> {
    let own = slices.iter().flat_map(|slice| &slice.ports).filter(|port| port.is_own);
    own.map(|port| port.at).collect()
}

/// The same for slices of which [`places`] knows all names. No link at a port of `closed` is chosen.
pub fn judge_known(
    substrate: &mut Substrate,
    slices: &[Slice],
    with_fit: bool,
    chosen: &BTreeMap<String, Vec<LinkId>>,
    closed: &BTreeSet<ConnectPoint>,
) -> Vec<Judged> {
    let choice = |slice: &Slice| chosen.get(&slice.name).filter(|_| slice.needs_links());
    let mut order: Vec<(u32, &Slice)> = (0..).zip(slices).collect();
    order.sort_by_key(|(number, slice)| (choice(slice).is_none(), *number));
    let judged = order.into_iter().map(|(number, slice)| {
        let (request, choice) = (request(substrate, slice), choice(slice));
        let turn = Turn { substrate: &mut *substrate, slice, number: SliceNo(number), request, own: closed };
        (number, turn.judge(with_fit, choice.map(Vec::as_slice)))
    });
    let judged: BTreeMap<u32, Judged> = judged.collect();
    judged.into_values().collect()
}

/// What is lacking. Of an unknown speed, also what to write.
fn in_words(lack: &Lack) -> String {
    match lack {
        Lack::UnknownCapacity { .. } => format!("{lack}: {SAY_SPEED}"),
        lack => lack.to_string(),
    }
}

/// What to do if no switch says how fast a port is.
const SAY_SPEED: &str = "write it into port_speeds of [network.discovery]";

fn request(substrate: &Substrate, slice: &Slice) -> SliceRequest {
    let vnics = slice.vnics.iter().filter_map(|vnic| match substrate.behind(vnic.at) {
        Some(Behind::Nic(nic)) => Some(VnicRequest { name: vnic.name.clone(), nic, rate: vnic.rate }),
        // The names were checked before.
        _ => None,
    });
    SliceRequest { name: slice.name.clone(), vnics: vnics.collect() }
}

/// The judgement of one slice.
struct Turn<'a> {
    substrate: &'a mut Substrate,
    slice: &'a Slice,
    number: SliceNo,
    request: SliceRequest,
    /// The own ports of all slices, and others at which no link is chosen.
    own: &'a BTreeSet<ConnectPoint>,
}

/// A slice that fits: what it needs, and the links of the network and the switches for that.
struct Fitting {
    booking: Booking,
    links: Vec<LinkId>,
    switches: Vec<DatapathId>,
}

impl Turn<'_> {
    /// `before`: the links that were chosen for it before.
    fn judge(mut self, with_fit: bool, before: Option<&[LinkId]>) -> Judged {
        let is_chosen = self.slice.needs_links();
        let before = before.and_then(|links| self.as_before(links));
        let (fitting, tried) = match (self.without_rate(), before) {
            (Some(why), _) => (Err(why), Vec::new()),
            (None, Some(fitting)) => (Ok(fitting), Vec::new()),
            (None, None) if is_chosen => self.chosen(),
            (None, None) => (self.named(), Vec::new()),
        };
        let refused = |why: String, fit| Refused {
            why: format!("slice {}: {}", self.slice.name, short_names(&why)),
            fit,
        };
        let (slice, result) = match fitting {
            Ok(fitting) => {
                self.substrate.admission.book(self.number, fitting.booking.clone());
                let slice = if is_chosen {
                    self.slice.with_links(&cables(&fitting.links))
                } else {
                    self.slice.clone()
                };
                (slice, Ok(self.got(&fitting)))
            }
            Err(why) => {
                let fit = if with_fit { self.fit() } else { None };
                (self.slice.clone(), Err(refused(why, fit)))
            }
        };
        let tried = tried.iter().map(|attempt| short_names(attempt)).collect();
        Judged { slice, is_chosen, result, tried }
    }

    /// A NIC whose rate is not known promises nothing.
    fn without_rate(&self) -> Option<String> {
        let mut vnics = self.request.vnics.iter();
        vnics.find_map(|vnic| {
            let nic = self.substrate.nic(vnic.nic).filter(|nic| nic.rate.is_none())?;
            Some(format!(
                "{} is at {}, whose speed is not known, so nothing can be promised there: {SAY_SPEED}",
                vnic.name, nic.name
            ))
        })
    }

    /// What the slice needs over the links that were chosen for it before. `None`: it does not fit there any more.
    fn as_before(&mut self, links: &[LinkId]) -> Option<Fitting> {
        let is_there = |link: &LinkId| {
            let number = self.substrate.link(*link);
            let is_up = number.is_some_and(|number| self.substrate.graph.topology().slot(number).is_up);
            is_up && may_have(self.slice, self.own, *link)
        };
        if !links.iter().all(is_there) {
            return None;
        }
        let slice = self.slice.with_links(&cables(links));
        let Turn { substrate, number, request, own, .. } = self;
        let mut turn = Turn { substrate, slice: &slice, number: *number, request: request.clone(), own };
        let fitting = turn.named().ok()?;
        let switches: BTreeSet<DatapathId> =
            links.iter().flat_map(|link| [link.from.switch, link.to.switch]).collect();
        Some(Fitting { switches: switches.into_iter().collect(), ..fitting })
    }

    /// Links for a slice that names none.
    fn chosen(&mut self) -> (Result<Fitting, String>, Vec<String>) {
        let Turn { slice, number, request, own, .. } = self;
        let (request, number, checks) = (&*request, *number, slice.admission);
        let embedded = self.substrate.with_only(
            |link| may_have(slice, own, link),
            |substrate| {
                let Substrate { graph, hops, admission, .. } = substrate;
                embed((graph, *hops), admission, number, request, checks)
            },
        );
        let shown = |attempts: &[hose::Attempt]| match attempts {
            [] | [_] => Vec::new(),
            several => several.iter().map(ToString::to_string).collect(),
        };
        let topology = self.substrate.graph.topology();
        match embedded {
            Ok(found) => {
                let links = found.links.iter().map(|link| topology.slot(*link).id).collect();
                let switches = found.switches.iter().map(|switch| topology.switch_id(*switch)).collect();
                let tried = shown(&found.attempts);
                (Ok(Fitting { booking: found.booking, links, switches }), tried)
            }
            Err(refused) => (Err(in_words(&refused.refusal.lack)), shown(&refused.attempts)),
        }
    }

    /// The links that a slice names, and what is promised on them.
    fn named(&mut self) -> Result<Fitting, String> {
        let ways = self.ways_of_links()?;
        let routing = self.routing_over(&ways).map_err(|why| why.to_string())?;
        let Turn { slice, number, request, .. } = self;
        let Substrate { graph, admission, .. } = &*self.substrate;
        let routing = Some(&routing).filter(|_| slice.admission == Checks::Fabric);
        let judged = admission.judge(graph.topology(), *number, request, routing);
        let booking = judged.map_err(|refused| in_words(&refused.lack))?;
        let hops: BTreeSet<LinkId> = ways.iter().flat_map(|(_, way)| both_directions(way)).collect();
        Ok(Fitting { booking, links: hops.into_iter().collect(), switches: Vec::new() })
    }

    /// The links of the slice, each with the links of the network under it.
    fn ways_of_links(&mut self) -> Result<Vec<(LinkId, Vec<LinkId>)>, String> {
        let all: Vec<LinkId> = self.slice.links.iter().flatten().map(|link| link.id).collect();
        // Those that are not known are refused with the routing.
        let loads = slice_traffic::loads(&all, &rates_bps(self.slice)).unwrap_or_default();
        let (cables, longer): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|id| self.substrate.link(*id).is_some());
        let mut ways: Vec<(LinkId, Vec<LinkId>)> = cables.into_iter().map(|id| (id, vec![id])).collect();
        for id in longer {
            let taken: BTreeSet<LinkId> = ways.iter().flat_map(|(_, way)| both_directions(way)).collect();
            let taken_or_small =
                self.too_small(id, &loads).into_iter().chain(taken.iter().copied()).collect();
            // As the service `paths` does: a way that carries the slice's traffic comes first.
            let way = self.way_beside(id, &taken_or_small).or_else(|_| self.way_beside(id, &taken))?;
            ways.push((id, way));
        }
        Ok(ways)
    }

    /// The links of the network that have less left than a link of the slice may carry. `loads`: by its directions, in bit/s.
    fn too_small(&self, id: LinkId, loads: &BTreeMap<LinkId, u64>) -> Vec<LinkId> {
        let Substrate { graph, admission, .. } = &*self.substrate;
        let topology = graph.topology();
        let lacks = |hop: LinkId, of: LinkId| {
            let load_bps = loads.get(&of).copied().unwrap_or_default();
            let left = topology.link(hop).and_then(|link| admission.link_left(topology, self.number, link));
            left.is_some_and(|left| left.bps() < load_bps)
        };
        let all = topology.all_links().map(|(_, slot)| slot.id);
        all.filter(|hop| lacks(*hop, id) || lacks(hop.reversed(), id.reversed())).collect()
    }

    /// How the traffic is spread over the links of the slice, and so over those of the network under them. The tenant counts a link of several hops
    /// as one.
    fn routing_over(&mut self, ways: &[(LinkId, Vec<LinkId>)]) -> Result<Routing, Lack> {
        let Turn { request, .. } = self;
        let Substrate { graph, admission, .. } = &*self.substrate;
        let topology = graph.topology();
        let places = admission.places(topology, request);
        let ids: Vec<DatapathId> = places.iter().map(|place| topology.switch_id(*place)).collect();
        let links: Vec<LinkId> = ways.iter().map(|(id, _)| *id).collect();
        let parts = slice_traffic::parts(&links, &ids).map_err(not_known)?;
        let mut routing = Routing { places, parts: BTreeMap::new() };
        for (id, way) in ways {
            for (direction, is_back) in [(*id, false), (id.reversed(), true)] {
                let of_link = parts.get(&direction).into_iter().flatten();
                for hop in way.iter().map(|hop| if is_back { hop.reversed() } else { *hop }) {
                    let Some(hop) = topology.link(hop) else { continue };
                    routing.parts.entry(hop).or_default().extend(of_link.clone());
                }
            }
        }
        Ok(routing)
    }

    /// The way of a link of several hops. A switch between cannot tell frames of two links of one slice apart, so they share no cable, and lead
    /// over no port of the slice. The own ports of all slices are left out too.
    fn way_beside(&mut self, id: LinkId, taken: &BTreeSet<LinkId>) -> Result<Vec<LinkId>, String> {
        let Turn { slice, own, .. } = self;
        let is_free = |end: ConnectPoint| {
            [id.from, id.to].contains(&end) || !own.contains(&end) && slice.port(end).is_none()
        };
        // Through the port at an end, the way would come back to the slice.
        let turns_back = |hop: LinkId| hop.to == id.from || hop.from == id.to;
        let may =
            |hop: LinkId| !taken.contains(&hop) && !turns_back(hop) && is_free(hop.from) && is_free(hop.to);
        if let Some(way) = self.substrate.with_only(may, |substrate| way(substrate, id)) {
            return Ok(way);
        }
        let why = match self.substrate.with_only(|hop| !turns_back(hop), |substrate| way(substrate, id)) {
            None => format!("no path leads along link {}", link_name(id)),
            Some(_) => format!(
                "each path along link {} uses a cable of another link of the slice, a port of the slice, or a port in own_ports: name another port, or the \
                 links between",
                link_name(id)
            ),
        };
        Err(why)
    }

    /// How the traffic is spread over these links.
    fn routing(&mut self, links: &BTreeSet<LinkId>) -> Result<Routing, Lack> {
        let Turn { request, .. } = self;
        let Substrate { graph, hops, admission, .. } = &mut *self.substrate;
        let places = admission.places(graph.topology(), request);
        let routing = Routing::equal_cost(graph, *hops, &places, |_, slot| links.contains(&slot.id));
        routing.map_err(|NoPath { from, to }| {
            let name = |switch| graph.topology().switch_id(switch).to_string();
            Lack::NoPath { from: name(from), to: name(to) }
        })
    }

    /// What would fit of a slice that does not: over the links that it names, or over all that it may have.
    fn fit(&mut self) -> Option<Fit> {
        let routing = match (self.slice.needs_links(), self.slice.admission) {
            (false, checks) => {
                let ways = self.ways_of_links().ok()?;
                Some(self.routing_over(&ways).ok()?).filter(|_| checks == Checks::Fabric)
            }
            (true, Checks::Edge) => None,
            (true, Checks::Fabric) => {
                let all = self.substrate.graph.topology().all_links().map(|(_, slot)| slot.id);
                let links = all.filter(|link| may_have(self.slice, self.own, *link)).collect();
                Some(self.routing(&links).ok()?)
            }
        };
        let Substrate { graph, admission, .. } = &*self.substrate;
        fit(admission, graph.topology(), self.number, &self.request, routing.as_ref())
    }

    fn got(&self, fitting: &Fitting) -> Got {
        let links = cables(&fitting.links).into_iter().map(|id| self.link_use(id, &fitting.booking));
        let vnics = self.slice.vnics.iter().zip(&self.request.vnics).map(|(vnic, asked)| VnicUse {
            name: vnic.name.clone(),
            at: vnic.at,
            nic: self.substrate.nic(asked.nic).map(|nic| nic.name.clone()).unwrap_or_default(),
            rate: vnic.rate,
            left: self.nic_left(asked.nic, &fitting.booking),
        });
        let ports = self.slice.ports.iter().map(|port| port.at.switch);
        let named = self.slice.switches.iter().flatten().map(|switch| switch.datapath);
        let switches: BTreeSet<_> = fitting.switches.iter().copied().chain(ports).chain(named).collect();
        Got { switches: switches.into_iter().collect(), links: links.collect(), vnics: vnics.collect() }
    }

    fn nic_left(&self, nic: NicNo, booking: &Booking) -> Bandwidth {
        let booked = booking.nics.get(&nic).copied().unwrap_or_default();
        self.substrate.admission.nic_left(self.number, nic).less(Bandwidth::from_bps(booked))
    }

    fn link_use(&self, id: LinkId, booking: &Booking) -> LinkUse {
        let Substrate { graph, admission, .. } = &*self.substrate;
        let directions =
            [id, id.reversed()].into_iter().filter_map(|direction| self.substrate.link(direction));
        let uses = directions.map(|link| {
            let worst = Bandwidth::from_bps(booking.links.get(&link).copied().unwrap_or_default());
            (worst, admission.link_left(graph.topology(), self.number, link).map(|left| left.less(worst)))
        });
        let (worst, left): (Vec<_>, Vec<_>) = uses.unzip();
        let is_judged = self.slice.admission == Checks::Fabric;
        LinkUse {
            id,
            worst: worst.into_iter().max().filter(|_| is_judged),
            left: left.into_iter().min().flatten(),
        }
    }
}

/// A shortest path from one port to another, which begins with the link at the first and ends with the link at the second.
fn way(substrate: &mut Substrate, wanted: LinkId) -> Option<Vec<LinkId>> {
    let Substrate { graph, hops, .. } = substrate;
    let topology = graph.topology();
    let (first, second) = topology.all_links().find(|(_, slot)| slot.id.from == wanted.from && slot.is_up)?;
    let (last, before) = topology.all_links().find(|(_, slot)| slot.id.to == wanted.to && slot.is_up)?;
    let (second, before) = (second.to, before.from);
    let mut between: Vec<LinkNo> = Vec::new();
    if !graph.path(*hops, second, before, 0, &mut between) {
        return None;
    }
    let all = std::iter::once(first).chain(between).chain(std::iter::once(last));
    Some(all.map(|link| graph.topology().slot(link).id).collect())
}

/// Whether a link may be chosen for a slice.
pub fn may_have(slice: &Slice, own: &BTreeSet<ConnectPoint>, link: LinkId) -> bool {
    let is_in = |end: ConnectPoint| {
        slice.switches.as_ref().is_none_or(|all| all.iter().any(|switch| switch.datapath == end.switch))
    };
    [link.from, link.to].into_iter().all(|end| is_in(end) && !own.contains(&end))
}

/// Why the traffic of a slice over its links is not known, in the words of admission.
fn not_known(why: NotKnown) -> Lack {
    match why {
        NotKnown::NoPath { from, to } => Lack::NoPath { from: from.to_string(), to: to.to_string() },
        NotKnown::TooManyPlaces(places) => Lack::TooManyPlaces(places),
        // A configuration has fewer switches and links.
        NotKnown::TooLarge => Lack::TooManyPlaces(graph::SWITCHES_MAX),
    }
}

/// Both directions of links.
fn both_directions(links: &[LinkId]) -> impl Iterator<Item = LinkId> {
    links.iter().flat_map(|link| [*link, link.reversed()])
}

/// Each link once, in the direction whose name is lower.
pub fn cables(links: &[LinkId]) -> Vec<LinkId> {
    let lower = |link: &LinkId| (*link).min(link.reversed());
    links.iter().map(lower).collect::<BTreeSet<_>>().into_iter().collect()
}

/// A text with the short names of switches and ports in place of datapath ids.
fn short_names(text: &str) -> String {
    const DIGITS: usize = 16;
    let mut parts = text.split("of:");
    let mut short = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let id = part.get(..DIGITS).and_then(|digits| format!("of:{digits}").parse::<DatapathId>().ok());
        let Some(id) = id else {
            short += "of:";
            short += part;
            continue;
        };
        let rest = &part[DIGITS..];
        let digits = rest.strip_prefix('/').map(|rest| rest.bytes().take_while(u8::is_ascii_digit).count());
        match digits.and_then(|digits| Some((rest[1..=digits].parse().ok()?, digits))) {
            Some((port, digits)) => {
                short += &port_name(ConnectPoint { switch: id, port: flow::PortNo(port) });
                short += &rest[1 + digits..];
            }
            None => {
                short += &switch_name(id);
                short += rest;
            }
        }
    }
    short
}
