//! The arithmetic of promised bandwidth: rates of flows, labels of links, admission and embedding of slices.
//!
//! ```text
//!   paths of flows, meters' reports, time ──> [ Flows: Rates by slice ──> Labels by link ] ──> [ Notices ] ──> who is told which label, and when
//!   NICs, links, a slice to admit ──────────> [ Routing ──> Admission ──> Embedding ] ───────> a booking, or what is missing and what would fit
//! ```
//!
//! A slice promises one number for each of its VNICs: the hose. The method is that of "The Price of Virtualization" (Riggio and others). The paper
//! computed labels in a script beforehand; here each change repairs them.
//!
//! In: numbers of slices, VNICs and links, capacities, times in milliseconds. Out: bandwidths and decisions. It has no clock and no chance, does no
//! I/O, and knows nothing of OpenFlow. It knows `graph` for the numbers of links and for paths. Bandwidth is in bit/s everywhere.

mod admission;
mod embedding;
mod fit;
mod flow;
mod flows;
mod index;
mod labels;
mod notices;
mod rates;
mod routing;
mod units;
mod wheel;
mod worst;

pub use admission::{Admission, Booking, Checks, Lack, Nic, NicNo, NotAdmitted, SliceRequest, VnicRequest};
pub use embedding::{Attempt, Embedding, NotEmbedded, Ways, embed};
pub use fit::{ALONE_MAX, Fit, fit};
pub use flow::{FLOWS_MAX, FlowNo, HOPS_MAX, Pair, Path, Refusal, SLICES_MAX, SliceNo, VNICS_MAX, VnicNo};
pub use flows::{Flow, Flows, IDLE_MS};
pub use graph::LinkNo;
pub use index::Index;
pub use labels::{Labels, coarse};
pub use notices::{CHANGE_MIN_PERCENT, INCREASES_MS, INTERVAL_MS, Notice, Notices, PORTS_MAX, TooManyPorts};
pub use rates::{Change, Filling, Rates};
pub use routing::{NoPath, PLACES_MAX, Part, Routing, WHOLE};
pub use units::{BANDWIDTH_MAX, BANDWIDTH_MIN, Bandwidth, NotAQuantity, Step};
pub use worst::{STEPS_MAX, Worst, worst};
