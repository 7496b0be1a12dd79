//! Meters at ports of VNICs that no agent shapes: what enters there is held to the rate that it is promised.
//!
//! ```text
//!   Event::Shape: from now on ──> meter mod ──confirmed──> pieces of rules at the port get the meter
//!   Event::Shape: no more ──────> pieces without it ──> barrier ──> the meter is deleted
//! ```
//!
//! The physical switch says whether it has meters: it takes one, or refuses it. Their numbers are the last ones of the slice, so the tenant has the
//! others. A rule has one meter (1.3.5, 5.9), so a meter of the tenant does not count the packets of such a port.
//!
//! In: which ports are to be shaped. Out: meter mods, and the state of each port's meter. It knows no VNIC and no agent, and refuses no message of the tenant.

use crate::output::{ADD, Command, DELETE, MODIFY};
use crate::pending::Asked;
use crate::plan::count;
use crate::refusal::METER_EXISTS;
use crate::shaper::{Shaper, Shaping, State};
use crate::virtual_switch::{Turn, VirtualSwitch};
use flow::{ErrorCode, PortNo};
use openflow::Version;

impl VirtualSwitch {
    /// Gives the port a number for its meter. Returns false if half of the slice's numbers are used up: the others are the tenant's.
    pub(crate) fn add_shaper(&mut self, port: PortNo, rate_kbps: u32) -> bool {
        let numbers = &mut self.numbers.meters;
        if self.shapers.len() >= (count(numbers) as usize + self.shapers.len()) / 2 {
            return false;
        }
        numbers.end -= 1;
        self.shapers.insert(port, Shaper::new(rate_kbps, numbers.end));
        true
    }

    /// The number of the meter in the physical switch for packets of a port, if they are shaped.
    pub(crate) fn meter_at(&self, port: PortNo) -> Option<u32> {
        self.shapers.get(&port)?.meter()
    }

    /// The state of a port's meter. `None`: it has no number.
    pub(crate) fn shaping(&self, port: PortNo) -> Option<Shaping> {
        self.shapers.get(&port).map(Shaper::shaping)
    }

    /// A port is to be shaped from now on, or no more.
    pub(crate) fn on_shape(&mut self, port: PortNo, is_wanted: bool, turn: &mut Turn<'_>) {
        let Some(shaper) = self.shapers.get_mut(&port) else { return };
        if std::mem::replace(&mut shaper.is_wanted, is_wanted) == is_wanted
            || self.physical.is_none()
            // It is laid when the rules of an earlier process are compared with the switch.
            || self.recall.is_open()
        {
            return;
        }
        match (is_wanted, shaper.state) {
            // The answer that is on its way decides.
            (_, State::Asked) | (true, State::Laid) => {}
            (true, _) => self.lay_shaper(port, turn),
            (false, State::Laid) => {
                shaper.state = State::None;
                // With a meter, its rules would go too.
                self.relay_rules(turn);
                self.order(Command::Barrier, None, turn);
                self.order_shaper(port, DELETE, turn);
            }
            (false, _) => shaper.state = State::None,
        }
    }

    /// The physical switch connected.
    pub(crate) fn relay_shapers(&mut self, turn: &mut Turn<'_>) {
        let wanted: Vec<PortNo> =
            self.shapers.iter().filter(|(_, it)| it.is_wanted).map(|(port, _)| *port).collect();
        wanted.into_iter().for_each(|port| self.lay_shaper(port, turn));
    }

    /// The physical switch is gone.
    pub(crate) fn forget_shapers(&mut self) {
        self.shapers.values_mut().for_each(|shaper| shaper.state = State::None);
    }

    /// If an earlier run or connection has left the meter, it is modified next, and not deleted: rules that forward have it.
    fn lay_shaper(&mut self, port: PortNo, turn: &mut Turn<'_>) {
        let has_meters = self.on() != Version::V1_0 && !self.is_read_only;
        let Some(shaper) = self.shapers.get_mut(&port) else { return };
        if !has_meters {
            shaper.state = State::NoMeters;
            return;
        }
        shaper.state = State::Asked;
        self.order_shaper(port, ADD, turn);
    }

    fn order_shaper(&mut self, port: PortNo, command: u16, turn: &mut Turn<'_>) {
        let Some(meter_mod) = self.shapers.get(&port).map(|shaper| shaper.meter_mod(command)) else { return };
        let asked = (command != DELETE).then_some(Asked::Shaper { port, is_modified: command == MODIFY });
        self.order(Command::MeterMod(meter_mod), asked, turn);
    }

    /// The physical switch has the meter, or refused it.
    pub(crate) fn on_shaper_answer(
        &mut self,
        port: PortNo,
        is_modified: bool,
        error: Option<ErrorCode>,
        turn: &mut Turn<'_>,
    ) {
        let Some(shaper) = self.shapers.get_mut(&port).filter(|shaper| shaper.state == State::Asked) else {
            return;
        };
        match error {
            Some(METER_EXISTS) if !is_modified => self.order_shaper(port, MODIFY, turn),
            Some(error) => shaper.state = State::Refused(error),
            None if shaper.is_wanted => {
                shaper.state = State::Laid;
                self.relay_rules(turn);
            }
            None => {
                shaper.state = State::None;
                self.order_shaper(port, DELETE, turn);
            }
        }
    }
}
