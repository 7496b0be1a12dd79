//! One packet in one switch: from table to table, through groups, to its ports (OpenFlow 1.3.5, 5.1).
//!
//! ```text
//!   Tables, packet, input port ──pass──> events in the order in which they happen: rules, meters, changes, groups, outputs, the reason of a drop
//! ```
//!
//! In: what is in the switch, and a packet. Out: events. It changes no counter. Where a switch chooses by a hash that nobody else knows, all
//! choices are followed, and each output names the choice that leads to it.

use crate::action_set;
use crate::packet::{Effect, Packet};
use crate::tables::{Bucket, GroupKind, Tables};
use flow::{Action, Instruction, PortNo};
use std::ops::ControlFlow;

/// The most outputs and copies in one switch. Groups that copy into groups could otherwise make millions. At the bound the passage ends, and
/// says so.
pub const COPIES_MAX: usize = 256;

/// The most events in one switch. A rule can have thousands of actions, and a switch can report such rules in 255 tables. At the bound the
/// passage ends, and says so.
const EVENTS_MAX: usize = 4096;

/// The most groups within groups. A switch refuses circles (OFPGMFC_LOOP), but what it reports may be damaged.
const DEPTH_MAX: usize = 16;

/// One bucket of a select group. The switch selects one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Counts the visits of select groups in this passage.
    pub visit: usize,
    /// The group.
    pub group: u32,
    /// The number of its bucket.
    pub bucket: usize,
}

/// Where an output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Out of the port.
    Sent,
    /// The port is down.
    Down,
    /// The switch has no such port.
    NoPort,
    /// It is the port by which the packet came: a rule must say `IN_PORT` for that (1.3.5, 5.10).
    InPort,
}

/// A packet at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The port.
    pub port: PortNo,
    /// The packet.
    pub packet: Packet,
    /// Whether the port sends it.
    pub fate: Fate,
    /// The choices of select groups that lead here.
    pub choices: Vec<Choice>,
}

/// Something that happens to a packet in a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A rule matches.
    Rule {
        /// Its table.
        table_id: u8,
        /// Its number in [`Tables::rules`].
        number: usize,
        /// Others of the same priority: the switch may take any of them.
        equal: Vec<usize>,
        /// Rules that may match too: they name fields of other classes.
        unsure: Vec<usize>,
    },
    /// No rule of a table matches.
    Miss {
        /// The table.
        table_id: u8,
        /// Rules that may match: they name fields of other classes.
        unsure: Vec<usize>,
    },
    /// A meter, which may drop the packet.
    Meter {
        /// Its number.
        meter: u32,
        /// Whether the switch has it.
        is_there: bool,
    },
    /// An action changes the packet.
    Changed(Action),
    /// A group.
    Group {
        /// Its number.
        group: u32,
        /// What it does. `None`: the switch has no such group.
        kind: Option<GroupKind>,
        /// The buckets that the packet goes through, or may go through.
        buckets: Vec<usize>,
    },
    /// A port.
    Output(Box<Output>),
    /// To the controller.
    Controller {
        /// The packet.
        packet: Box<Packet>,
        /// Whether its time-to-live has ended. The controller gets it only if it asked for such packets.
        is_expired: bool,
        /// The choices of select groups that lead here.
        choices: Vec<Choice>,
    },
    /// The switch forwards it as a switch without OpenFlow does. Where to is not known.
    Normal,
    /// No instruction sends the packet anywhere.
    NoAction,
    /// What happens next is not known.
    Unknown(String),
    /// There were [`COPIES_MAX`] copies, or too many actions.
    TooMany,
}

/// What happens to a packet in a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// In the order in which it happens.
    pub events: Vec<Event>,
}

/// Takes a packet through a switch.
pub fn pass(tables: &Tables, packet: &Packet, in_port: PortNo) -> Passage {
    let mut run = Run { tables, in_port, events: Vec::new(), copies: 0, visits: 0 };
    run.through_tables(packet.clone());
    Passage { events: run.events }
}

struct Run<'t> {
    tables: &'t Tables,
    in_port: PortNo,
    events: Vec<Event>,
    copies: usize,
    visits: usize,
}

/// What is carried along while actions are carried out.
#[derive(Clone, Default)]
struct Branch {
    choices: Vec<Choice>,
    depth: usize,
}

/// The order in which the instructions of a rule are carried out (1.3.5, 5.9).
fn place(instruction: &Instruction) -> u8 {
    match instruction {
        Instruction::Meter(_) => 0,
        Instruction::ApplyActions(_) => 1,
        Instruction::ClearActions => 2,
        Instruction::WriteActions(_) => 3,
        Instruction::WriteMetadata { .. } => 4,
        Instruction::Experimenter { .. } => 5,
        Instruction::GotoTable(_) => 6,
    }
}

impl<'t> Run<'t> {
    fn through_tables(&mut self, mut packet: Packet) {
        let (mut metadata, mut set, mut table_id) = (0, Vec::new(), 0);
        loop {
            let found = self.tables.matching(table_id, &packet.fields(self.in_port, metadata));
            let Some(number) = found.best else {
                self.events.push(Event::Miss { table_id, unsure: found.unsure });
                if self.tables.is_v10 {
                    self.punt(&packet, false, &Branch::default());
                }
                return;
            };
            let (equal, unsure) = (found.equal, found.unsure);
            self.events.push(Event::Rule { table_id, number, equal, unsure });
            let tables = self.tables;
            let next = self.follow(&tables.rules[number].instructions, &mut packet, &mut metadata, &mut set);
            match next {
                ControlFlow::Break(()) => return,
                // A table leads only to later ones, so this ends.
                ControlFlow::Continue(Some(next)) if next > table_id => table_id = next,
                ControlFlow::Continue(_) => break,
            }
        }
        let set = action_set::in_order(set);
        let sends = self.events.iter().any(is_way_out);
        if !sends && !set.iter().any(|action| flow::reach::way_of(action).is_some()) {
            self.events.push(Event::NoAction);
        }
        let _ = self.carry_out(&set, &mut packet, &Branch::default());
    }

    /// Carries out a rule's instructions. Returns the next table, if there is one.
    fn follow(
        &mut self,
        instructions: &[Instruction],
        packet: &mut Packet,
        metadata: &mut u64,
        set: &mut Vec<Action>,
    ) -> ControlFlow<(), Option<u8>> {
        let mut ordered: Vec<&Instruction> = instructions.iter().collect();
        ordered.sort_by_key(|instruction| place(instruction));
        let mut next = None;
        for instruction in ordered {
            match instruction {
                Instruction::Meter(meter) => {
                    let is_there = self.tables.meters.contains(meter);
                    self.events.push(Event::Meter { meter: *meter, is_there });
                }
                Instruction::ApplyActions(actions) => self.carry_out(actions, packet, &Branch::default())?,
                Instruction::ClearActions => set.clear(),
                Instruction::WriteActions(actions) => action_set::write(set, actions),
                Instruction::WriteMetadata { metadata: new, mask } => {
                    *metadata = *metadata & !mask | new & mask;
                }
                Instruction::Experimenter { experimenter, .. } => {
                    return self.stop(format!(
                        "an instruction of the experimenter {experimenter:#010x} is not followed"
                    ));
                }
                Instruction::GotoTable(table_id) => next = Some(*table_id),
            }
        }
        ControlFlow::Continue(next)
    }

    fn stop<T>(&mut self, why: String) -> ControlFlow<(), T> {
        self.events.push(Event::Unknown(why));
        ControlFlow::Break(())
    }

    /// Carries out actions in order. Breaks if the packet goes no further, or nobody knows.
    fn carry_out(&mut self, actions: &[Action], packet: &mut Packet, branch: &Branch) -> ControlFlow<()> {
        for action in actions {
            if self.events.len() >= EVENTS_MAX {
                return self.too_many();
            }
            match action {
                Action::Output { port, .. } | Action::Enqueue { port, .. } => {
                    self.output(*port, packet, branch)?;
                }
                Action::Group(group) => self.through_group(*group, packet, branch)?,
                Action::SetQueue(_) => {}
                change => match packet.apply(change) {
                    Effect::Changed => self.events.push(Event::Changed(change.clone())),
                    Effect::Unchanged => {}
                    Effect::Expired => {
                        self.punt(packet, true, branch);
                        return ControlFlow::Break(());
                    }
                    Effect::Unknown(why) => return self.stop(why),
                },
            }
        }
        ControlFlow::Continue(())
    }

    fn punt(&mut self, packet: &Packet, is_expired: bool, branch: &Branch) {
        let (packet, choices) = (Box::new(packet.clone().on_the_wire()), branch.choices.clone());
        self.events.push(Event::Controller { packet, is_expired, choices });
    }

    /// Counts a copy.
    fn copy(&mut self) -> ControlFlow<()> {
        self.copies += 1;
        if self.copies <= COPIES_MAX {
            return ControlFlow::Continue(());
        }
        self.too_many()
    }

    fn too_many(&mut self) -> ControlFlow<()> {
        if self.events.last() != Some(&Event::TooMany) {
            self.events.push(Event::TooMany);
        }
        ControlFlow::Break(())
    }

    fn output(&mut self, port: PortNo, packet: &Packet, branch: &Branch) -> ControlFlow<()> {
        match port {
            PortNo::CONTROLLER => {
                self.copy()?;
                self.punt(packet, false, branch);
            }
            PortNo::NORMAL => self.events.push(Event::Normal),
            PortNo::IN_PORT => return self.send(self.in_port, packet, branch),
            PortNo::ALL | PortNo::FLOOD => {
                let ordinary = |port: &PortNo| *port != self.in_port && *port <= PortNo::MAX;
                let ports: Vec<PortNo> = self.tables.ports.keys().copied().filter(ordinary).collect();
                for port in ports.into_iter().filter(|port| self.tables.is_live(*port)) {
                    self.send(port, packet, branch)?;
                }
            }
            // A rule cannot send a packet to the tables again (1.3.5, 4.5).
            PortNo::TABLE => {}
            port if port == self.in_port => {
                self.copy()?;
                self.add_output(port, packet, Fate::InPort, branch);
            }
            port => return self.send(port, packet, branch),
        }
        ControlFlow::Continue(())
    }

    fn send(&mut self, port: PortNo, packet: &Packet, branch: &Branch) -> ControlFlow<()> {
        let fate = match self.tables.ports.get(&port) {
            Some(true) => Fate::Sent,
            Some(false) => Fate::Down,
            None => Fate::NoPort,
        };
        self.copy()?;
        self.add_output(port, packet, fate, branch);
        ControlFlow::Continue(())
    }

    fn add_output(&mut self, port: PortNo, packet: &Packet, fate: Fate, branch: &Branch) {
        let (packet, choices) = (packet.clone().on_the_wire(), branch.choices.clone());
        self.events.push(Event::Output(Box::new(Output { port, packet, fate, choices })));
    }

    /// Sends a packet to a group. Each bucket gets its own copy (1.3.5, 5.6.1).
    fn through_group(&mut self, group: u32, packet: &Packet, branch: &Branch) -> ControlFlow<()> {
        let tables = self.tables;
        let Some(found) = tables.groups.get(&group) else {
            self.events.push(Event::Group { group, kind: None, buckets: Vec::new() });
            return ControlFlow::Continue(());
        };
        if branch.depth >= DEPTH_MAX {
            return self.stop(format!("more than {DEPTH_MAX} groups lead into each other"));
        }
        let is_live = |bucket: &Bucket| tables.bucket_is_live(bucket);
        let all = found.buckets.iter().enumerate();
        let buckets: Vec<usize> = match found.kind {
            GroupKind::All | GroupKind::Indirect => all.map(|(number, _)| number).collect(),
            GroupKind::FastFailover => {
                all.filter(|(_, bucket)| is_live(bucket)).map(|(number, _)| number).take(1).collect()
            }
            GroupKind::Select => {
                let may_be = |bucket: &Bucket| bucket.weight > 0 && (!bucket.watches() || is_live(bucket));
                all.filter(|(_, bucket)| may_be(bucket)).map(|(number, _)| number).collect()
            }
        };
        let is_choice = found.kind == GroupKind::Select && buckets.len() > 1;
        self.events.push(Event::Group { group, kind: Some(found.kind), buckets: buckets.clone() });
        let visit = self.visits;
        self.visits += usize::from(is_choice);
        for bucket in buckets {
            self.copy()?;
            let mut inner = Branch { depth: branch.depth + 1, choices: branch.choices.clone() };
            inner.choices.extend(is_choice.then_some(Choice { visit, group, bucket }));
            let mut set = Vec::new();
            action_set::write(&mut set, &found.buckets[bucket].actions);
            // If one copy goes no further, the others and the packet itself do.
            let _ = self.carry_out(&action_set::in_order(set), &mut packet.clone(), &inner);
        }
        ControlFlow::Continue(())
    }
}

/// Whether a packet, or a copy of it, has gone somewhere, or may have.
fn is_way_out(event: &Event) -> bool {
    matches!(
        event,
        Event::Output(_) | Event::Controller { .. } | Event::Normal | Event::Group { .. } | Event::TooMany
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_packet;
    use crate::tables::{GROUP_NONE, Group, Rule};
    use flow::text::{parse_actions, parse_instructions, parse_match};

    /// `table priority match -> instructions`, a line each.
    fn tables(text: &str) -> Tables {
        let rule = |line: &str| {
            let (head, instructions) = line.split_once("->").unwrap();
            let mut words = head.split_whitespace();
            let mut next = || words.next().unwrap_or_default();
            Rule {
                table_id: next().parse().unwrap(),
                priority: next().parse().unwrap(),
                matching: parse_match(next()).unwrap(),
                instructions: parse_instructions(instructions.trim()).unwrap(),
            }
        };
        let ports = [(PortNo(1), true), (PortNo(2), true), (PortNo(3), false)].into();
        Tables { rules: text.lines().map(rule).collect(), ports, ..Tables::default() }
    }

    fn bucket(watch_port: PortNo, actions: &str) -> Bucket {
        Bucket { weight: 0, watch_port, watch_group: GROUP_NONE, actions: parse_actions(actions).unwrap() }
    }

    /// What happens, in short words.
    fn events(tables: &Tables) -> String {
        let packet = read_packet("ip_dst=10.0.0.2,tcp_dst=80").unwrap();
        let word = |event: &Event| match event {
            Event::Rule { table_id, number, .. } => format!("{table_id}:{number}"),
            Event::Miss { table_id, .. } => format!("{table_id}:miss"),
            Event::Output(output) => format!("{}:{:?}", output.port, output.fate),
            Event::Group { group, buckets, .. } => format!("group {group}:{buckets:?}"),
            Event::Controller { .. } => "controller".to_owned(),
            Event::Changed(_) => "changed".to_owned(),
            other => format!("{other:?}"),
        };
        let passage = pass(tables, &packet, PortNo(1));
        passage.events.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_drop_has_its_reason() {
        let check = |rules: &str, expected: &str| assert_eq!(events(&tables(rules)), expected, "{rules}");
        check("", "0:miss");
        check("0 5 ip -> drop", "0:0 NoAction");
        check("0 5 ip -> output:1", "0:0 1:InPort");
        check("0 5 ip -> output:3", "0:0 3:Down");
        check("0 5 ip -> output:9", "0:0 9:NoPort");
        check("0 5 ip -> goto_table:2", "0:0 2:miss");
        check("0 5 ip -> group:7", "0:0 group 7:[]");
        check("0 5 ip -> write_actions(output:2),goto_table:2\n2 1 ip -> clear_actions", "0:0 2:1 NoAction");
    }

    #[test]
    fn an_action_that_is_not_followed_ends_the_passage() {
        let found = events(&tables("0 5 ip -> output:2,resubmit(,3),output:3"));
        assert!(found.starts_with("0:0 2:Sent Unknown("), "{found}");
        assert!(!found.contains("3:"), "{found}");
    }

    #[test]
    fn only_the_first_live_bucket_of_a_fast_failover_group_counts() {
        let mut tables = tables("0 5 ip -> group:1");
        let buckets = vec![bucket(PortNo(3), "output:3"), bucket(PortNo(2), "output:2")];
        tables.groups.insert(1, Group { kind: GroupKind::FastFailover, buckets });
        assert_eq!(events(&tables), "0:0 group 1:[1] 2:Sent");
        tables.ports.insert(PortNo(2), false);
        assert_eq!(events(&tables), "0:0 group 1:[]");
    }

    #[test]
    fn a_rule_with_too_many_outputs_is_cut() {
        for output in ["output:1", "output:2", "controller"] {
            let actions = [output; COPIES_MAX + 9].join(",");
            let tables = tables(&format!("0 5 ip -> {actions}"));
            let events = pass(&tables, &read_packet("ip").unwrap(), PortNo(1)).events;
            // The rule, the copies, and the event that says so.
            assert_eq!((events.len(), events.last()), (COPIES_MAX + 2, Some(&Event::TooMany)), "{output}");
        }
    }

    #[test]
    fn groups_without_end_are_cut() {
        let mut tables = tables("0 5 ip -> group:1");
        let twice = vec![bucket(PortNo::ANY, "group:1"), bucket(PortNo::ANY, "group:1")];
        tables.groups.insert(1, Group { kind: GroupKind::All, buckets: twice });
        let passage = pass(&tables, &read_packet("ip").unwrap(), PortNo(1));
        assert!(passage.events.contains(&Event::TooMany));
        assert!(passage.events.len() < 3 * COPIES_MAX);
    }
}
