//! The meter at a port of VNICs that no agent shapes: its rate, its number, and its state.
//!
//! In: values. Out: meter mods. The file `shapers` says when they are sent.

use crate::output::DELETE;
use flow::ErrorCode;
use openflow::message::{MeterBand, MeterBandKind, MeterMod};

/// OFPMF_KBPS and OFPMF_BURST.
const FLAGS: u16 = 1 | 1 << 2;
/// The burst is what the rate carries in a tenth of a second, and at least this in kbit: ten large frames.
const BURST_MIN_KBIT: u32 = 120;

/// The state of the meter at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shaping {
    /// None is wanted.
    Off,
    /// The physical switch has not answered yet, or is not connected.
    Waits,
    /// Rules for packets of the port have the meter with this number in the physical switch.
    Meter(u32),
    /// The physical switch speaks OpenFlow 1.0, which has no meters.
    NoMeters,
    /// The physical switch or the kernel refused the meter.
    Refused(ErrorCode),
}

/// The meter at a port.
#[derive(Clone, Debug)]
pub(crate) struct Shaper {
    rate_kbps: u32,
    /// Its number in the physical switch.
    pub(crate) physical: u32,
    pub(crate) is_wanted: bool,
    /// What the physical switch said last, whether or not the meter is wanted now.
    pub(crate) state: State,
}

/// What the physical switch has said of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    None,
    Asked,
    Laid,
    NoMeters,
    Refused(ErrorCode),
}

impl Shaper {
    /// A meter that is not wanted yet.
    pub(crate) fn new(rate_kbps: u32, physical: u32) -> Shaper {
        let rate_kbps = rate_kbps.max(1);
        Shaper { rate_kbps, physical, is_wanted: false, state: State::None }
    }

    /// The meter in the physical switch, if rules are to refer to it.
    pub(crate) fn meter(&self) -> Option<u32> {
        (self.is_wanted && self.state == State::Laid).then_some(self.physical)
    }

    /// Whether the physical switch may have it.
    pub(crate) fn may_be_there(&self) -> bool {
        matches!(self.state, State::Asked | State::Laid)
    }

    /// Its state, for the operator.
    pub(crate) fn shaping(&self) -> Shaping {
        match (self.is_wanted, self.state) {
            (false, _) => Shaping::Off,
            (true, State::None | State::Asked) => Shaping::Waits,
            (true, State::Laid) => Shaping::Meter(self.physical),
            (true, State::NoMeters) => Shaping::NoMeters,
            (true, State::Refused(error)) => Shaping::Refused(error),
        }
    }

    pub(crate) fn meter_mod(&self, command: u16) -> MeterMod {
        let burst_size = (self.rate_kbps / 10).max(BURST_MIN_KBIT);
        let band = MeterBand { rate: self.rate_kbps, burst_size, kind: MeterBandKind::Drop };
        let bands = if command == DELETE { Vec::new() } else { vec![band] };
        MeterMod { command, flags: FLAGS, meter_id: self.physical, bands }
    }
}
