//! Where instructions may send a packet.
//!
//! ```text
//!   instructions ──> ports, groups, tables, the controller, reserved ports ──> "may this app send there?"
//! ```
//!
//! The result is what may happen: write-actions count even if a later table clears them. An experimenter action may
//! send anywhere, unless it is one of the Nicira actions listed here. Never looks into a group or another table.

use crate::action::Action;
use crate::instruction::Instruction;
use crate::port::PortNo;

/// Where a packet may go. The default is nowhere: it is dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The named ports: ordinary ones and `LOCAL`, each once, in the order of their appearance.
    pub ports: Vec<PortNo>,
    /// Groups whose buckets may send it on, each once.
    pub groups: Vec<u32>,
    /// Tables in which it continues (goto-table, Nicira's resubmit), each once.
    pub tables: Vec<u8>,
    /// To the controller, as a packet-in.
    pub controller: bool,
    /// Out of all ports that flood.
    pub flood: bool,
    /// Out of all ports.
    pub all: bool,
    /// Through the switch's traditional forwarding.
    pub normal: bool,
    /// Back out of its input port.
    pub in_port: bool,
    /// Into the flow tables from the start (for a packet-out).
    pub table: bool,
    /// It may go anywhere: an unknown action or instruction, or a port that is read from a field.
    pub anywhere: bool,
}

impl Reach {
    /// Whether the packet goes nowhere.
    pub fn is_nowhere(&self) -> bool {
        *self == Reach::default()
    }
}

/// Nicira's number.
const NICIRA: u32 = 0x0000_2320;

/// Where a rule's instructions may send a packet.
///
/// ```
/// use flow::{PortNo, reach::outputs, text::parse_instructions};
/// let reach = outputs(&parse_instructions("output:2,controller,goto_table:3").unwrap());
/// assert_eq!((reach.ports, reach.tables, reach.controller), (vec![PortNo(2)], vec![3], true));
/// assert!(outputs(&[]).is_nowhere());
/// ```
pub fn outputs(instructions: &[Instruction]) -> Reach {
    let mut reach = Reach::default();
    for instruction in instructions {
        match instruction {
            Instruction::GotoTable(table_id) => add(&mut reach.tables, *table_id),
            Instruction::WriteActions(actions) | Instruction::ApplyActions(actions) => {
                actions.iter().for_each(|action| reach.act(action));
            }
            Instruction::Experimenter { .. } => reach.anywhere = true,
            Instruction::WriteMetadata { .. } | Instruction::ClearActions | Instruction::Meter(_) => {}
        }
    }
    reach
}

fn add<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// A destination to which an action sends a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Out of a port, which may be reserved.
    Port(PortNo),
    /// Into a group.
    Group(u32),
    /// Into a table.
    Table(u8),
    /// Unknown destination, or unknown effects.
    Anywhere,
}

/// Where one action sends a packet; `None` if it sends it nowhere. Never allocates.
///
/// ```
/// use flow::{Action, PortNo, reach::{Way, way_of}};
/// assert_eq!(way_of(&Action::output(PortNo(2))), Some(Way::Port(PortNo(2))));
/// assert_eq!(way_of(&Action::PopVlan), None);
/// ```
pub fn way_of(action: &Action) -> Option<Way> {
    match action {
        Action::Output { port, .. } | Action::Enqueue { port, .. } => Some(Way::Port(*port)),
        Action::Group(group_id) => Some(Way::Group(*group_id)),
        Action::Experimenter { experimenter: NICIRA, body } => way_of_nicira(body),
        Action::Experimenter { .. } => Some(Way::Anywhere),
        _ => None,
    }
}

/// The Nicira subtypes (ovs-actions(7)) that send nothing, or whose destination is known.
fn way_of_nicira(body: &[u8]) -> Option<Way> {
    let short =
        |at: usize| body.get(at..at + 2).map(|b| b.iter().fold(0u16, |n, byte| n << 8 | u16::from(*byte)));
    match short(0) {
        // set_tunnel, set_queue, pop_queue, move, load, note, set_tunnel64, multipath, exit, dec_ttl, fin_timeout,
        // dec_ttl with controllers, push, pop, ct_clear.
        Some(2 | 4..=10 | 17..=19 | 21 | 27 | 28 | 43) => None,
        // controller, in both its forms.
        Some(20 | 37) => Some(Way::Port(PortNo::CONTROLLER)),
        // resubmit with a table; 0xff means the current table, which is not known here.
        Some(14) => Some(match body.get(4) {
            Some(table) if *table != 0xff => Way::Table(*table),
            _ => Way::Anywhere,
        }),
        // output with a length.
        Some(39) => Some(short(2).map_or(Way::Anywhere, |port| Way::Port(PortNo::from_v10(port)))),
        _ => Some(Way::Anywhere),
    }
}

impl Reach {
    fn act(&mut self, action: &Action) {
        match way_of(action) {
            Some(Way::Port(port)) => self.send(port),
            Some(Way::Group(group_id)) => add(&mut self.groups, group_id),
            Some(Way::Table(table_id)) => add(&mut self.tables, table_id),
            Some(Way::Anywhere) => self.anywhere = true,
            None => {}
        }
    }

    fn send(&mut self, port: PortNo) {
        match port {
            PortNo::CONTROLLER => self.controller = true,
            PortNo::FLOOD => self.flood = true,
            PortNo::ALL => self.all = true,
            PortNo::NORMAL => self.normal = true,
            PortNo::IN_PORT => self.in_port = true,
            PortNo::TABLE => self.table = true,
            other => add(&mut self.ports, other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_instructions;

    fn reach(text: &str) -> Reach {
        outputs(&parse_instructions(text).unwrap())
    }

    #[test]
    fn what_is_not_understood_may_go_anywhere() {
        assert!(reach("experimenter(0x12345678,00)").anywhere);
        assert!(reach("experimenter(0x00002320,00)").anywhere);
        assert!(reach("experimenter(0x00002320,0016000000000000)").anywhere);
        assert!(reach("output:NXM_NX_REG0[]").anywhere);
        assert!(reach("resubmit:5").anywhere);
        assert!(reach("experimenter_instruction(0x1,)").anywhere);
    }

    #[test]
    fn every_way_out_is_named() {
        let all = reach(
            "output:1,output:1,local,enqueue:3:1,group:4,group:4,flood,all,normal,in_port,table,controller",
        );
        assert_eq!(all.ports, [PortNo(1), PortNo::LOCAL, PortNo(3)]);
        assert_eq!(all.groups, [4]);
        assert!(
            all.flood && all.all && all.normal && all.in_port && all.table && all.controller && !all.anywhere
        );
        assert_eq!(reach("resubmit(,7),goto_table:3").tables, [7, 3]);
        assert!(reach("controller(reason=no_match,id=3)").controller);
        assert_eq!(reach("output(port=5,max_len=100)").ports, [PortNo(5)]);
    }

    #[test]
    fn write_actions_count() {
        assert_eq!(reach("write_actions(output:9)").ports, [PortNo(9)]);
    }

    #[test]
    fn changes_send_nothing() {
        assert!(
            reach("dec_ttl,push_vlan:0x8100,set_queue:3,load:1->NXM_NX_REG0[],note:00,exit").is_nowhere()
        );
        assert!(reach("meter:1,clear_actions,write_metadata:5").is_nowhere());
    }
}
