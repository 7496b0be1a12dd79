//! Packet-outs of a tenant, and packets that wait for a rule.
//!
//! A frame must be of the slice, and its actions are translated like those of a rule. Frames of discovery protocols never go to the
//! physical switch: they leave by virtual links, which the slice resolves.
//!
//! In: packet-outs, and flow mods with a buffer. Out: packet-outs for the physical switch, or the refusal.

use crate::buffers::{Frame, Kept};
use crate::controller::Asker;
use crate::discovery::is_probe;
use crate::flattening::flatten;
use crate::output::Command;
use crate::packet_in::{Reason, Seen, reason_of_rule};
use crate::pending::{Asked, Sender};
use crate::refusal::*;
use crate::rule_table::Rule;
use crate::rules::Wish;
use crate::tag::{FRAME_MIN, outer_tag};
use crate::translation::Start;
use crate::virtual_switch::{Obeyed, Turn, VirtualSwitch};
use flow::frame::FrameFields;
use flow::{Action, Match, PortNo};
use openflow::Version;
use openflow::message::{FLOW_DELETE, FLOW_DELETE_STRICT, NO_BUFFER, PacketOut};

/// A packet that the tenant wants to send.
struct Wanted<'a> {
    /// The port by which it entered, as the tenant sees it.
    in_port: Option<PortNo>,
    frame: Frame,
    actions: &'a [Action],
}

impl VirtualSwitch {
    /// Carries out a packet-out (1.3.5, 7.3.7).
    pub(crate) fn on_packet_out(
        &mut self,
        asker: Asker,
        wanted: PacketOut,
        bytes: &[u8],
        turn: &mut Turn<'_>,
    ) -> Obeyed {
        let in_port = self.in_port_of(wanted.in_port)?;
        let frame = match wanted.buffer_id {
            NO_BUFFER => Frame::Whole(wanted.data),
            buffer_id => self.buffer(buffer_id)?.frame,
        };
        self.check_frame(in_port, &frame)?;
        let sender = Sender::new(asker, bytes);
        let buffer_id = wanted.buffer_id;
        let wanted = Wanted { in_port, frame, actions: &wanted.actions };
        match &wanted.frame {
            Frame::Whole(frame) if is_probe(frame) => self.send_probe(&wanted, frame)?,
            _ if sends_to_table(wanted.actions) => self.send_to_table(wanted, sender, turn)?,
            _ => self.send(wanted, sender, turn)?,
        }
        // A refused packet-out leaves its packet where it is.
        self.buffers.take(buffer_id);
        Ok(())
    }

    /// The packet that waited for a rule: 1.3 sends it through the table (1.3.5, 7.3.4.1), 1.0 applies the rule's own actions (1.0, 5.3.3).
    pub(crate) fn release(&mut self, wish: &Wish<'_>, turn: &mut Turn<'_>) -> Obeyed {
        let it = &wish.flow_mod;
        if it.buffer_id == NO_BUFFER || matches!(it.command, FLOW_DELETE | FLOW_DELETE_STRICT) {
            return Ok(());
        }
        let Some(Kept { in_port, frame }) = self.buffers.take(it.buffer_id) else {
            return Err(self.no_buffer(it.buffer_id));
        };
        let sender = Sender::new(wish.asker, wish.bytes);
        if wish.asker.version != Version::V1_0 {
            let actions = [Action::output(PortNo::TABLE)];
            return self.send_to_table(
                Wanted { in_port: Some(in_port), frame, actions: &actions },
                sender,
                turn,
            );
        }
        let flat = flatten(&it.instructions)?;
        self.send(Wanted { in_port: Some(in_port), frame, actions: &flat.actions }, sender, turn)
    }

    fn buffer(&self, buffer_id: u32) -> Result<Kept, Refusal> {
        self.buffers.get(buffer_id).ok_or_else(|| self.no_buffer(buffer_id))
    }

    fn no_buffer(&self, buffer_id: u32) -> Refusal {
        let error = if self.buffers.was_given(buffer_id) { BUFFER_EMPTY } else { BUFFER_UNKNOWN };
        Refusal::new(error, format!("buffer {buffer_id} has no packet of this slice"))
    }

    fn in_port_of(&self, port: PortNo) -> Result<Option<PortNo>, Refusal> {
        match port {
            PortNo::CONTROLLER | PortNo::ANY => Ok(None),
            port if self.space.port(port).is_some() => Ok(Some(port)),
            port => Err(Refusal::new(BAD_PORT, format!("port {port} is not in the slice"))),
        }
    }

    /// A whole frame must be of the slice. A packet in the switch's buffer was one when it came.
    fn check_frame(&self, in_port: Option<PortNo>, frame: &Frame) -> Obeyed {
        let Frame::Whole(bytes) = frame else { return Ok(()) };
        if bytes.len() < FRAME_MIN {
            return Err(Refusal::new(BAD_PACKET, format!("a frame of {} bytes is none", bytes.len())));
        }
        let is_inside = match self.space.tag {
            Some(_) => outer_tag(bytes).is_none(),
            // A controller may answer for an address that is no host's.
            None if self.space.addresses.is_some() => is_probe(bytes) || self.space.dressed(bytes).is_some(),
            None => is_probe(bytes) || self.space.holds(in_port, bytes),
        };
        if is_inside {
            return Ok(());
        }
        Err(Refusal::new(REQUEST_EPERM, "the frame is outside of the slice's flowspace"))
    }

    /// The frame as the physical switch sees it, and whether it is dressed then.
    fn dress(&self, in_port: Option<PortNo>, frame: Frame) -> (u32, Vec<u8>, bool) {
        let wants_dress = match in_port.and_then(|port| self.space.port(port)) {
            Some(port) => self.space.is_dressed_at(port),
            // Without a port, only the tag or the addresses show that the frame is the slice's.
            None => self.space.dresses(),
        };
        let bytes = match frame {
            Frame::InSwitch { buffer_id, is_dressed } => return (buffer_id, Vec::new(), is_dressed),
            Frame::Whole(bytes) => bytes,
        };
        match wants_dress.then(|| self.space.dressed(&bytes)).flatten() {
            Some(dressed) => (NO_BUFFER, dressed, true),
            None => (NO_BUFFER, bytes, false),
        }
    }

    fn physical_port(&self, in_port: Option<PortNo>) -> PortNo {
        in_port.and_then(|port| self.space.port(port)).map_or(PortNo::CONTROLLER, |port| port.plan.port)
    }

    /// Sends a packet by actions of the tenant.
    fn send(&mut self, wanted: Wanted<'_>, sender: Sender, turn: &mut Turn<'_>) -> Obeyed {
        let Wanted { in_port, frame, actions } = wanted;
        let (buffer_id, data, is_dressed) = self.dress(in_port, frame);
        let physical = self.physical_port(in_port);
        let known = match buffer_id {
            NO_BUFFER => FrameFields::read(&data).from_port(physical).to_match(),
            // What is in the switch's buffer is known by its port only. Actions that need more are refused.
            _ => Match::any(),
        };
        let actions = self.scene().translate(Start { in_port, is_dressed, known }, actions)?;
        let packet_out = PacketOut { buffer_id, in_port: physical, actions, data };
        if self.on() == Version::V1_0 {
            check_v10(&packet_out)?;
        }
        if !packet_out.actions.is_empty() {
            self.put_out(packet_out, sender, turn);
        }
        Ok(())
    }

    fn put_out(&mut self, packet_out: PacketOut, sender: Sender, turn: &mut Turn<'_>) {
        self.counters.packet_outs += 1;
        self.order(Command::PacketOut(packet_out), Some(Asked::PacketOut(sender)), turn);
    }

    /// Sends a packet through the table. Without an input port it would hit no piece, since each piece has one: then the virtual switch
    /// looks the rule up itself.
    fn send_to_table(&mut self, wanted: Wanted<'_>, sender: Sender, turn: &mut Turn<'_>) -> Obeyed {
        if wanted.actions.len() != 1 {
            return Err(Refusal::new(ACTION_OUT_PORT, "an output to TABLE must be the only action"));
        }
        if let Some(in_port) = wanted.in_port {
            let is_open = self.space.port(in_port).is_some_and(|port| port.receives());
            if is_open {
                let (buffer_id, data, _) = self.dress(wanted.in_port, wanted.frame);
                let actions = vec![Action::output(PortNo::TABLE)];
                let physical = self.physical_port(wanted.in_port);
                self.put_out(PacketOut { buffer_id, in_port: physical, actions, data }, sender, turn);
            }
            return Ok(());
        }
        let Frame::Whole(frame) = wanted.frame else { return Ok(()) };
        let Some(rule) = self.rules.hit(&FrameFields::read(&frame)) else {
            self.tell_own_packet(PortNo::CONTROLLER, &frame, Reason::Miss, turn);
            return Ok(());
        };
        let flat = flatten(&rule.instructions)?;
        self.send(Wanted { in_port: None, frame: Frame::Whole(frame), actions: &flat.actions }, sender, turn)
    }

    /// A packet that did not come from the physical switch.
    fn tell_own_packet(&mut self, in_port: PortNo, frame: &[u8], reason: Reason, turn: &mut Turn<'_>) {
        let total_len = u16::try_from(frame.len()).unwrap_or(u16::MAX);
        self.tell_packet(&Seen { in_port, total_len, frame, in_switch: None, reason }, turn);
    }

    /// A frame of a discovery protocol leaves by the ports of its outputs.
    fn send_probe(&mut self, wanted: &Wanted<'_>, frame: &[u8]) -> Obeyed {
        let mut actions = wanted.actions.to_vec();
        if sends_to_table(&actions) {
            let fields = FrameFields::read(frame);
            let fields = wanted.in_port.map_or(fields, |port| fields.from_port(port));
            let rule: Option<&Rule> = self.rules.hit(&fields);
            actions = rule.map(|rule| flatten(&rule.instructions)).transpose()?.unwrap_or_default().actions;
        }
        for action in &actions {
            let Action::Output { port, .. } = action else { continue };
            let ports: Vec<PortNo> = self.space.ports().map(|port| port.plan.shown_as).collect();
            let is_out = |there: &PortNo| match *port {
                PortNo::FLOOD | PortNo::ALL => Some(*there) != wanted.in_port,
                PortNo::IN_PORT => Some(*there) == wanted.in_port,
                port => *there == port,
            };
            for port in ports.into_iter().filter(is_out) {
                // One frame for each port: more outputs of one packet-out would only repeat it.
                let sends = self.space.port(port).is_some_and(|port| port.sends() && port.is_live());
                if sends && !self.probes.iter().any(|(there, _)| *there == port) {
                    self.probes.push((port, frame.to_vec()));
                }
            }
        }
        Ok(())
    }

    /// A frame of a discovery protocol arrives by a virtual link. It goes to the controllers if a rule or 1.0 sends it there, and nowhere
    /// else.
    pub(crate) fn on_probe(&mut self, in_port: PortNo, frame: &[u8], turn: &mut Turn<'_>) {
        let is_open = self.space.port(in_port).is_some_and(|port| port.makes_packet_ins() && port.is_live());
        if !is_open || self.physical.is_none() {
            return;
        }
        let reason = match self.rule_for(in_port, frame) {
            None => Reason::Miss,
            Some(rule) => {
                let sends_up =
                    |action: &Action| matches!(action, Action::Output { port: PortNo::CONTROLLER, .. });
                if !rule.actions().any(sends_up) {
                    return;
                }
                reason_of_rule(rule)
            }
        };
        self.tell_own_packet(in_port, frame, reason, turn);
    }
}

fn sends_to_table(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::Output { port: PortNo::TABLE, .. }))
}

/// Whether a switch of 1.0 can carry out a packet-out.
fn check_v10(packet_out: &PacketOut) -> Obeyed {
    let body = openflow::Body::PacketOut(packet_out.clone());
    let message = openflow::Message { version: Version::V1_0, xid: 0, body };
    match message.encode(&mut Vec::new()) {
        Ok(()) => Ok(()),
        Err(why) => Err(Refusal::new(ACTION_TYPE, format!("the physical switch has OpenFlow 1.0: {why}"))),
    }
}
