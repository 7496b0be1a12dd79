//! The plan of a probe: its phases in their order.
//!
//! Each phase may read what those before it found. Each is a state machine of its own ([`crate::phase::Phase`]). Short phases come
//! first, and those that fill the table last.

mod add_rate;
mod barriers;
mod buffers;
mod cabling;
mod changes;
mod idle;
mod loads;
mod longer;
mod marked;
mod orders;
mod queue;
mod services;
mod software;
mod table;
mod timeouts;
mod victims;

use crate::findings::Order;
use crate::flows::Width;
use crate::options::Part;
use crate::phase::Phase;
use std::collections::VecDeque;

pub use add_rate::AddRate;
pub use barriers::Barriers;
pub use buffers::Buffers;
pub use cabling::Cabling;
pub(crate) use cabling::FRAME_BYTES;
pub use changes::Changes;
pub use idle::Idle;
pub use loads::Loads;
pub use longer::Longer;
pub use orders::Orders;
pub use queue::Queue;
pub use services::Services;
pub use software::Software;
pub use table::Table;
pub use timeouts::Timeouts;
pub use victims::Victims;

/// A phase, and the part of the measurement to which it belongs. None: it always runs.
type Planned = (Option<Part>, Box<dyn Phase>);

/// All phases.
fn all() -> Vec<Planned> {
    let of = |part: Part, phase: Box<dyn Phase>| (Some(part), phase);
    vec![
        (None, Box::<Cabling>::default() as Box<dyn Phase>),
        of(Part::Delays, Box::<Idle>::default()),
        of(Part::Rates, Box::<Services>::default()),
        of(Part::Rates, Box::<Queue>::default()),
        of(Part::Barriers, Box::<Barriers>::default()),
        of(Part::SetUp, Box::<AddRate>::default()),
        of(Part::SetUp, Box::<Software>::default()),
        of(Part::Changes, Box::<Changes>::default()),
        of(Part::Timeouts, Box::<Timeouts>::default()),
        of(Part::Buffers, Box::<Buffers>::default()),
        of(Part::Table, Box::new(Table::of(Width::Ethernet))),
        of(Part::Table, Box::<Victims>::default()),
        // Falling priorities come first: nothing else tells their cost, and the probe may run out of time.
        of(Part::Orders, Box::new(Orders::of(Order::Descending))),
        of(Part::Orders, Box::new(Orders::of(Order::Same))),
        of(Part::Orders, Box::new(Orders::of(Order::Ascending))),
        of(Part::Orders, Box::new(Orders::of(Order::Random))),
        of(Part::Loads, Box::<Loads>::default()),
        of(Part::Matches, Box::new(Table::of(Width::Ipv4))),
        of(Part::Matches, Box::new(Table::of(Width::Ipv6))),
        of(Part::Longer, Box::<Longer>::default()),
    ]
}

/// The phases of these parts, and what is not measured without the others.
pub fn plan(parts: &[Part]) -> (VecDeque<Box<dyn Phase>>, Vec<&'static str>) {
    let is_asked = |part: &Option<Part>| part.is_none_or(|part| parts.contains(&part));
    let (asked, others): (Vec<Planned>, Vec<Planned>) =
        all().into_iter().partition(|(part, _)| is_asked(part));
    let left_out = others.iter().flat_map(|(_, phase)| phase.measures().iter().copied()).collect();
    (asked.into_iter().map(|(_, phase)| phase).collect(), left_out)
}
