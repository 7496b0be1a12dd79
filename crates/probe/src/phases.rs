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
mod orders;
mod services;
mod software;
mod table;
mod timeouts;
mod victims;

use crate::findings::Order;
use crate::flows::Width;
use crate::phase::Phase;
use std::collections::VecDeque;

pub use add_rate::AddRate;
pub use barriers::Barriers;
pub use buffers::Buffers;
pub use cabling::Cabling;
pub(crate) use cabling::FRAME_BYTES;
pub use changes::Changes;
pub use idle::Idle;
pub use orders::Orders;
pub use services::Services;
pub use software::Software;
pub use table::Table;
pub use timeouts::Timeouts;
pub use victims::Victims;

/// All phases.
pub fn all() -> VecDeque<Box<dyn Phase>> {
    VecDeque::from([
        Box::<Cabling>::default() as Box<dyn Phase>,
        Box::<Idle>::default(),
        Box::<Services>::default(),
        Box::<Barriers>::default(),
        Box::<AddRate>::default(),
        Box::<Software>::default(),
        Box::<Changes>::default(),
        Box::<Timeouts>::default(),
        Box::<Buffers>::default(),
        Box::new(Table::of(Width::Ethernet)),
        Box::<Victims>::default(),
        Box::new(Orders::of(Order::Ascending)),
        Box::new(Orders::of(Order::Descending)),
        Box::new(Orders::of(Order::Random)),
        Box::new(Table::of(Width::Ipv4)),
        Box::new(Table::of(Width::Ipv6)),
    ])
}
