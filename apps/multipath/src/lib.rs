//! The decisions of a tenant's controller that spreads its flows over several paths by the labels of the links.
//!
//! ```text
//!   flow, paths, labels ──> [ Balancer ] ──> the path of a new flow, moves of flows that get too little
//! ```
//!
//! In: flows with their rates, paths as lists of links, labels, and a number for choices without a reason. Out: indices of paths. It is pure: it
//! knows no switch and no message, and draws no random numbers.

mod choice;

pub use choice::{Balancer, Choose, FLOWS_MAX, GAIN_PERCENT, STAY_MS, gets, room};
