//! Meters of a tenant: its own numbers.
//!
//! In: meter mods. Out: meter mods of the physical switch, or the refusal.

use crate::controller::Asker;
use crate::output::{ADD, Command, DELETE, MODIFY};
use crate::pending::{Asked, Sender};
use crate::refusal::*;
use crate::rule_table::Meter;
use crate::rules::REMOVED_BY_DELETE;
use crate::virtual_switch::{Obeyed, Turn, VirtualSwitch};
use flow::Field;
use openflow::Version;
use openflow::message::*;

/// OFPM_MAX: the highest number of a meter of flows.
const METER_MAX: u32 = 0xffff_0000;
/// The most bands of a meter. The physical switch may have fewer, and then refuses more.
pub(crate) const BANDS_MAX: usize = 8;

impl VirtualSwitch {
    /// Carries out a meter mod (1.3.5, 6.6).
    pub(crate) fn on_meter_mod(
        &mut self,
        asker: Asker,
        wanted: &MeterMod,
        bytes: &[u8],
        turn: &mut Turn<'_>,
    ) -> Obeyed {
        if self.on() == Version::V1_0 {
            return Err(Refusal::new(BAD_TYPE, "the physical switch has OpenFlow 1.0, and no meters"));
        }
        let sender = Sender::new(asker, bytes);
        match wanted.command {
            ADD => self.add_meter(wanted, sender, turn),
            MODIFY => self.modify_meter(wanted, sender, turn),
            DELETE if wanted.meter_id == 0 => Err(Refusal::new(METER_INVALID, "no meter has the number 0")),
            DELETE => {
                self.delete_meters(wanted.meter_id, &sender, turn);
                Ok(())
            }
            other => Err(Refusal::new(METER_COMMAND, format!("there is no command {other}"))),
        }
    }

    fn add_meter(&mut self, wanted: &MeterMod, sender: Sender, turn: &mut Turn<'_>) -> Obeyed {
        let id = wanted.meter_id;
        if id == 0 || id > METER_MAX {
            return Err(Refusal::new(METER_INVALID, format!("{id} is no number of a meter of flows")));
        }
        if self.meters.contains_key(&id) {
            return Err(Refusal::new(METER_EXISTS, format!("meter {id} exists")));
        }
        self.check_bands(&wanted.bands)?;
        let used: Vec<u32> = self.meters.values().map(|meter| meter.physical).collect();
        let Some(physical) = self.numbers.meters.clone().find(|number| !used.contains(number)) else {
            return Err(Refusal::new(METER_OUT_OF_METERS, "all meters of the slice are in use"));
        };
        let (flags, bands) = (wanted.flags, wanted.bands.clone());
        self.meters.insert(id, Meter { physical, flags, bands, modified: 0 });
        self.unsaved.meters.note(id);
        let meter_mod = MeterMod { meter_id: physical, ..wanted.clone() };
        self.claims += 1;
        self.order(Command::MeterMod(meter_mod), Some(Asked::Meter { sender, id }), turn);
        Ok(())
    }

    fn modify_meter(&mut self, wanted: &MeterMod, sender: Sender, turn: &mut Turn<'_>) -> Obeyed {
        self.check_bands(&wanted.bands)?;
        let id = wanted.meter_id;
        let Some(meter) = self.meters.get_mut(&id) else {
            return Err(Refusal::new(METER_UNKNOWN, format!("there is no meter {id}")));
        };
        let (physical, modified) = (meter.physical, meter.modified.wrapping_add(1));
        let after = Meter { physical, flags: wanted.flags, bands: wanted.bands.clone(), modified };
        let before = Box::new(std::mem::replace(meter, after));
        self.unsaved.meters.note(id);
        let meter_mod = MeterMod { meter_id: physical, ..wanted.clone() };
        self.order(Command::MeterMod(meter_mod), Some(Asked::ModifyMeter { sender, id, before }), turn);
        Ok(())
    }

    /// The physical switch has refused to modify a meter, so it is what it was. A later modify has its own answer.
    pub(crate) fn restore_meter(&mut self, id: u32, before: Meter) {
        if let Some(meter) = self.meters.get_mut(&id)
            && meter.modified == before.modified.wrapping_add(1)
        {
            *meter = before;
            self.unsaved.meters.note(id);
        }
    }

    /// Deletes one meter or all of the slice, with the rules that refer to them.
    fn delete_meters(&mut self, wanted: u32, sender: &Sender, turn: &mut Turn<'_>) {
        let is_meant = |id: &u32| wanted == METER_ALL || *id == wanted;
        let ids: Vec<u32> = self.meters.keys().copied().filter(is_meant).collect();
        for id in ids {
            let all = self.rules.iter().filter(|rule| rule.uses_meter(id));
            let rules: Vec<u64> = all.map(|rule| rule.number).collect();
            rules.into_iter().for_each(|rule| self.take_out(rule, REMOVED_BY_DELETE, Some(sender), turn));
            let Some(Meter { physical, flags, .. }) = self.meters.remove(&id) else { continue };
            self.unsaved.meters.note(id);
            let meter_mod = MeterMod { command: DELETE, flags, meter_id: physical, bands: Vec::new() };
            self.order(Command::MeterMod(meter_mod), Some(Asked::Change(sender.clone())), turn);
        }
    }

    /// Gives all meters to the physical switch again.
    pub(crate) fn relay_meters(&mut self, turn: &mut Turn<'_>) {
        let mods = self.lay_meters(ADD);
        mods.into_iter().for_each(|(_, meter_mod)| self.order(Command::MeterMod(meter_mod), None, turn));
    }

    /// All meters as they are to be in the physical switch, by the tenant's numbers.
    pub(crate) fn lay_meters(&self, command: u16) -> Vec<(u32, MeterMod)> {
        let laid = |(id, meter): (&u32, &Meter)| {
            let (flags, bands) = (meter.flags, meter.bands.clone());
            (*id, MeterMod { command, flags, meter_id: meter.physical, bands })
        };
        self.meters.iter().map(laid).collect()
    }

    /// A band that remarks packets could make them another slice's, if flowspaces differ by their DSCP.
    fn check_bands(&self, bands: &[MeterBand]) -> Obeyed {
        if bands.len() > BANDS_MAX {
            return Err(Refusal::new(METER_OUT_OF_BANDS, format!("a meter has at most {BANDS_MAX} bands")));
        }
        let says_dscp = self.space.entries().iter().any(|entry| entry.matching.get(Field::IpDscp).is_some());
        let is_fine = |band: &MeterBand| match band.kind {
            MeterBandKind::Drop => true,
            MeterBandKind::DscpRemark(_) => !says_dscp,
            MeterBandKind::Experimenter { .. } => false,
        };
        if bands.iter().all(is_fine) {
            return Ok(());
        }
        Err(Refusal::new(
            METER_BAND,
            "a band is an experimenter's, or changes the field by which slices differ",
        ))
    }
}
