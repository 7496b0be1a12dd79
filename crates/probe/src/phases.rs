//! The plan of a probe: its phases in their order.
//!
//! Each phase may read what those before it found. Each is a state machine of its own ([`crate::phase::Phase`]).

mod add_rate;
mod cabling;
mod table;

use crate::phase::Phase;
use std::collections::VecDeque;

pub use add_rate::AddRate;
pub use cabling::Cabling;
pub(crate) use cabling::FRAME_BYTES;
pub use table::Table;

/// All phases.
pub fn all() -> VecDeque<Box<dyn Phase>> {
    VecDeque::from([
        Box::<Cabling>::default() as Box<dyn Phase>,
        Box::<AddRate>::default(),
        Box::<Table>::default(),
    ])
}
