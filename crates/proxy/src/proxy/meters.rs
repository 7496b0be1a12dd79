//! The meter that all rules in software share, and the meters of the controller beside it.
//!
//! In: the profile, meter mods of the controller. Out: meter mods for the switch, and errors. The controller's meters end
//! below the proxy's own: it can neither change nor see that one.

use flow::{ErrorCode, Instruction};
use openflow::message::*;
use openflow::{Body, Header, Message, Version, write};

use super::Proxy;
use crate::commands::Commands;
use crate::own::Own;

/// The meter of all rules in software. The controller's own numbers end below it.
const METER: u32 = 60_000;
/// OFPM_MAX: the largest number of a meter that is not virtual.
const METER_MAX: u32 = 0xffff_0000;
/// OFPMC_ADD, OFPMC_MODIFY, OFPMC_DELETE.
const METER_ADD: u16 = 0;
const METER_MODIFY: u16 = 1;
const METER_DELETE: u16 = 2;
/// Flags of meters: OFPMF_KBPS, OFPMF_PKTPS, OFPMF_BURST.
const KBPS: u16 = 1;
const PACKETS_PER_S: u16 = 2;
const BURST: u16 = 4;
/// OFPMMFC_INVALID_METER, OFPMMFC_UNKNOWN_METER, OFPMMFC_OUT_OF_METERS.
const INVALID_METER: ErrorCode = ErrorCode { kind: 12, code: 2 };
const UNKNOWN_METER: ErrorCode = ErrorCode { kind: 12, code: 3 };
const OUT_OF_METERS: ErrorCode = ErrorCode { kind: 12, code: 10 };
/// The queue of the software path is a tenth of a second of its rate, as in the model.
const BURSTS_PER_S: f64 = 10.0;
/// How many meters of the controller are remembered, to be deleted together: all that it can have. Open vSwitch has fewer places for them in one
/// datapath.
const METERS_MAX: usize = METER as usize - 1;

impl Proxy {
    /// The switch gets the meter of rules in software, if the target has such rules and the version has meters.
    pub(super) fn begin_meter(&mut self, version: Version, out: &mut Commands) {
        if !self.settings.meters_software() || version != Version::V1_3 {
            return;
        }
        self.meter = Some(METER);
        let xid = self.own.next();
        self.change_meter(METER_DELETE, METER, Vec::new(), 0, xid, out);
        let (flags, band) = self.software_band();
        let xid = self.own.await_answer(Own::Meter);
        self.change_meter(METER_ADD, METER, vec![band], flags, xid, out);
        // The switch may refuse the meter. A rule that came to it before that is known would be refused for it.
        self.meter_sent = Some(self.barriers.sent());
        self.confirm_here(out);
    }

    /// The rate of rules in software, as a band.
    fn software_band(&self) -> (u16, MeterBand) {
        let software = self.settings.profile.software.as_ref();
        let bits = software.and_then(|software| software.forward_bits_per_s);
        let packets = software.and_then(|software| software.forward_packets_per_s);
        // A band has one unit. The rate in bits is the one that hosts feel.
        let (unit, rate) = match bits {
            Some(bits) => (KBPS, bits / 1000.0),
            None => (PACKETS_PER_S, packets.unwrap_or(f64::MAX)),
        };
        let rate = rate / self.settings.slowness();
        // Converting saturates.
        let (rate, burst) = (rate.max(1.0) as u32, (rate / BURSTS_PER_S).max(1.0) as u32);
        (unit | BURST, MeterBand { rate, burst_size: burst, kind: MeterBandKind::Drop })
    }

    fn change_meter(
        &mut self,
        command: u16,
        meter_id: u32,
        bands: Vec<MeterBand>,
        flags: u16,
        xid: u32,
        out: &mut Commands,
    ) {
        let Some(version) = self.version else { return };
        let body = Body::MeterMod(MeterMod { command, flags, meter_id, bands });
        if (Message { version, xid, body }).encode(&mut out.to_switch).is_ok() {
            self.barriers.on_sent();
        }
    }

    /// The controller changes meters. If it deletes all, that means all of its own.
    pub(super) fn carry_out_meter_mod(&mut self, bytes: &[u8], out: &mut Commands) {
        let Some((command, meter_id)) = self.meter.and_then(|_| meter_of(bytes)) else {
            out.to_switch.extend_from_slice(bytes);
            return self.barriers.on_sent();
        };
        if command == METER_DELETE && meter_id == METER_ALL {
            for meter in std::mem::take(&mut self.meters) {
                let xid = self.own.next();
                self.change_meter(METER_DELETE, meter, Vec::new(), 0, xid, out);
            }
            return;
        }
        if is_beyond(meter_id) {
            // The target has no such meter. To delete what is not there is no error.
            return match command {
                METER_ADD => self.refuse_as(bytes, OUT_OF_METERS, out),
                METER_MODIFY => self.refuse_as(bytes, UNKNOWN_METER, out),
                _ => {}
            };
        }
        match command {
            METER_ADD if self.meters.len() < METERS_MAX => {
                self.meters.insert(meter_id);
            }
            METER_DELETE => {
                self.meters.remove(&meter_id);
            }
            _ => {}
        }
        out.to_switch.extend_from_slice(bytes);
        self.barriers.on_sent();
    }

    /// The target's error about a rule that names the proxy's meter.
    pub(super) fn refusal_of_meter(&self, flow_mod: &FlowMod) -> Option<ErrorCode> {
        let names_it = |it: &Instruction| matches!(it, Instruction::Meter(meter) if is_beyond(*meter));
        let is_refused = self.meter.is_some() && flow_mod.instructions.iter().any(names_it);
        is_refused.then_some(INVALID_METER)
    }

    /// The target refuses a message with this error. A barrier before the message is answered first.
    pub(super) fn refuse_as(&mut self, message: &[u8], error: ErrorCode, out: &mut Commands) {
        let Ok(header) = Header::read(message) else { return };
        self.counters.refused += 1;
        self.barriers.say_behind(&mut out.to_controller, |out| {
            write::error(header.version, header.xid, error, message, out);
        });
    }

    /// The proxy's own meter. `None`: it has none.
    pub(super) fn own_meter(&self) -> Option<u32> {
        self.meter
    }

    /// The meters of the target end below the proxy's own, if it has one.
    pub(super) fn without_own_meter(&self, features: MeterFeatures) -> MeterFeatures {
        match self.meter {
            Some(meter) => MeterFeatures { max_meter: features.max_meter.min(meter - 1), ..features },
            None => features,
        }
    }
}

/// The command and the meter of a meter mod of 1.3, read without its bands: the switch may look at less of a message than a decoder does.
fn meter_of(bytes: &[u8]) -> Option<(u16, u32)> {
    let command = bytes.get(8..10)?.try_into().ok()?;
    let meter_id = bytes.get(12..16)?.try_into().ok()?;
    Some((u16::from_be_bytes(command), u32::from_be_bytes(meter_id)))
}

/// Whether a meter is the proxy's own or above it. The controller's switch has none of these. Virtual meters (1.3.5, 7.3.4.4) are no
/// such meters.
fn is_beyond(meter_id: u32) -> bool {
    (METER..=METER_MAX).contains(&meter_id)
}
