//! Changes of ports: port mods of the tenant, and port statuses of the physical switch.
//!
//! A port mod changes the virtual port only. The rules are laid again, because FLOOD and ALL depend on the ports. Each rule and group that
//! changes in the switch by that counts as a flow mod.
//!
//! In: port mods, facts about physical ports. Out: port statuses for controllers, and changes of rules.

use crate::controller::Asker;
use crate::port::PortFacts;
use crate::refusal::{PORT_MOD_PORT, Refusal};
use crate::virtual_switch::{Obeyed, Turn, VirtualSwitch};
use flow::PortNo;
use openflow::message::{PORT_ADDED, PORT_DELETED, PORT_MODIFIED, Port, PortMod, PortStatus};
use openflow::{Body, Message, Version};

/// OFPGC_MODIFY.
const GROUP_MODIFY: u16 = 1;

impl VirtualSwitch {
    /// Carries out a port mod (1.3.5, 7.3.4.3).
    pub(crate) fn on_port_mod(&mut self, asker: Asker, wanted: &PortMod, turn: &mut Turn<'_>) -> Obeyed {
        let port = self.space.port_mut(wanted.port_no).filter(|port| port.facts.is_some());
        let Some(port) = port else {
            return Err(Refusal::new(PORT_MOD_PORT, format!("port {} is not in the slice", wanted.port_no)));
        };
        if port.modify(wanted, asker.version)? {
            self.unsaved.ports.note(wanted.port_no.0);
            self.tell_port(wanted.port_no, PORT_MODIFIED, turn);
            let changed = self.relay_groups(GROUP_MODIFY, turn) + self.relay_rules(turn);
            self.allowance.spend_flow_mods(changed);
        }
        Ok(())
    }

    /// A physical port was added, removed or changed.
    pub(crate) fn on_port_status(&mut self, reason: u8, facts: PortFacts, turn: &mut Turn<'_>) {
        let Some(shown) = self.space.shown(facts.port) else { return };
        let Some(port) = self.space.port_mut(shown) else { return };
        let was_there = port.facts.is_some();
        if reason != PORT_DELETED {
            let is_new = port.facts.as_ref() != Some(&facts);
            port.facts = Some(facts);
            if is_new {
                self.tell_port(shown, if was_there { PORT_MODIFIED } else { PORT_ADDED }, turn);
            }
        } else if was_there {
            self.tell_port(shown, PORT_DELETED, turn);
            if let Some(port) = self.space.port_mut(shown) {
                port.facts = None;
            }
        }
    }

    /// Tells all controllers what a port is like.
    pub(crate) fn tell_port(&self, shown: PortNo, reason: u8, turn: &mut Turn<'_>) {
        self.tell_port_to(shown, reason, |_| true, turn);
    }

    /// Tells the controllers of some versions what a port is like.
    pub(crate) fn tell_port_to(
        &self,
        shown: PortNo,
        reason: u8,
        is_told: impl Fn(Version) -> bool,
        turn: &mut Turn<'_>,
    ) {
        let describe = |version: Version| -> Option<Port> { self.space.port(shown)?.describe(version) };
        for (controller, it, version) in self.open() {
            let Some(port) = describe(version).filter(|_| it.hears_port_status(reason) && is_told(version))
            else {
                continue;
            };
            let body = Body::PortStatus(PortStatus { reason, port });
            self.tell(controller, &Message { version, xid: 0, body }, turn);
        }
    }
}
