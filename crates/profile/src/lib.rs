//! Switch profiles: the delays, rates, tables and habits of one model of switch, as plain numbers.
//!
//! ```text
//!   a profile's TOML ──> Profile ──> the model of a switch (emulator), the pace of a real one (node)
//!   samples ──> Quantiles, compare: KS distance, QQ points, mean difference
//! ```
//!
//! Pure: texts, numbers and random seeds go in; values come out. It opens no file, reads no clock, and knows no OpenFlow message.

pub mod barrier;
pub mod built_in;
pub mod compare;
pub mod cpu;
pub mod curve;
pub mod delay;
pub mod file;
pub mod hardware;
pub mod install;
pub mod measurement;
pub mod model;
pub mod packet_in;
pub mod provenance;
pub mod quantiles;
pub mod random;
pub mod software;
pub mod switch;
pub mod timeouts;
mod tuned;
mod whole;

pub use barrier::{Barrier, BarrierKind};
pub use built_in::built_in;
pub use cpu::{Cpu, MessageType, QueueFull, Service};
pub use curve::Curve;
pub use delay::Delay;
pub use file::{BadProfile, Problem};
pub use hardware::{AddCost, Capacity, Hardware, ModifyKind, Stall, StallInterval, Victim, WhenFull};
pub use install::{BufferFull, Install};
pub use measurement::{Fit, Measurement, NotMeasured};
pub use model::Model;
pub use packet_in::{PacketIn, PacketInRate};
pub use provenance::{Provenance, Sources};
pub use quantiles::Quantiles;
pub use random::Random;
pub use software::{Promotion, PromotionOrder, Software, SoftwareUse};
pub use switch::{Description, OpenFlowVersion, Recognition, Switch};
pub use timeouts::Timeouts;
pub use tuned::{TUNED_KEYS, Tuned};
pub use whole::Profile;
