//! `[slice.NAME]`: what the operator grants a tenant, and what each tenant's controller gets.
//!
//! ```text
//!   [slice.blue] ──serde──> written ──reading──> Slice ──plan──> slicer::SlicePlan
//!                                       └──overlap──> the first two slices that own the same packet, with both lines
//! ```
//!
//! In: the text of `burnet.toml` or `slices.toml`. Out: plain values that are checked by themselves and against each other. It asks no network:
//! whether a switch, a port or a link exists is known where the network is.

mod addresses;
mod agents;
mod explaining;
mod names;
mod overlap;
mod plan;
mod reading;
mod slice;
mod written;

pub(crate) use explaining::explain;
pub use names::{link_name, parse_link, parse_port, parse_switch, port_name, switch_name};
pub use reading::{CONTROLLERS_MAX, FLOWSPACE_MATCHES_MAX, NAME_BYTES_MAX, SLICES_MAX};
pub use slice::{
    Addresses, Controller, EdgeVnic, FailMode, LabelForm, Line, Packets, Prefix, Slice, SliceHost,
    SliceIsolation, SliceLink, SlicePort, SliceSwitch, SliceTls, Vnic,
};
pub(crate) use written::WrittenSlices;

use package::toml_text::Fault;

impl WrittenSlices {
    /// Reads what is written in this text.
    ///
    /// # Errors
    /// The first fault, with its line.
    pub(crate) fn read(&self, text: &str) -> Result<Vec<Slice>, Fault> {
        let slices = reading::read(self, text)?;
        overlap::check(&slices)?;
        agents::check(&slices)?;
        Ok(slices)
    }
}

#[cfg(test)]
mod key_tests;
#[cfg(test)]
mod tests;
