//! The result of a way, in one word and one sentence.
//!
//! In: a way, and where the packet should arrive. Out: the verdict with its reason, and the ports by which the packet leaves the network. It
//! knows connect points and no hosts.

use crate::pipeline::{Event, Fate};
use crate::trace::{Stop, StopEnd, Way};
use view::ConnectPoint;

/// The result for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It arrives: where it should, or, without such a place, at some edge of the network.
    Delivered,
    /// It arrives only if a switch selects that bucket of a group, or by a switch's own forwarding. Or a switch does what this
    /// crate does not follow.
    Unknown,
    /// It goes to the controller.
    Punted,
    /// It goes round and round.
    Looped,
    /// It ends in a switch, or at a wrong place.
    Dropped,
}

/// A port by which the packet leaves the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The port.
    pub at: ConnectPoint,
    /// The number of the stop.
    pub stop: usize,
    /// The number of the event there.
    pub event: usize,
    /// Whether a switch may select another way.
    pub is_choice: bool,
}

/// The ports by which the packet leaves the network.
pub fn exits(way: &Way) -> Vec<Exit> {
    let mut all = Vec::new();
    for (number, stop) in way.stops.iter().enumerate() {
        for (event, one) in stop.passage.events.iter().enumerate() {
            let Event::Output(output) = one else { continue };
            let goes_on = stop.next.iter().any(|(from, _)| *from == event);
            if output.fate == Fate::Sent && !goes_on {
                let at = ConnectPoint { switch: stop.at.switch, port: output.port };
                all.push(Exit { at, stop: number, event, is_choice: is_choice(way, number, event) });
            }
        }
    }
    all
}

/// Whether a select group decides that the packet comes here.
fn is_choice(way: &Way, mut stop: usize, mut event: usize) -> bool {
    loop {
        let Some(here) = way.stops.get(stop) else { return false };
        if matches!(here.passage.events.get(event), Some(Event::Output(output)) if !output.choices.is_empty())
        {
            return true;
        }
        match here.from {
            Some((before, by)) => (stop, event) = (before, by),
            None => return false,
        }
    }
}

/// The result for the packet. `to`: where it should arrive. The reason names the switch.
pub fn verdict(way: &Way, to: Option<ConnectPoint>) -> (Verdict, String) {
    let exits = exits(way);
    let arrives = exits.iter().find(|exit| to.is_none_or(|to| to == exit.at) && !exit.is_choice);
    let may_arrive = exits.iter().find(|exit| to.is_none_or(|to| to == exit.at));
    if let Some(exit) = arrives {
        let copies = exits.len() - 1;
        let also = match copies {
            0 => String::new(),
            1 => ", and a copy leaves by another port".to_owned(),
            more => format!(", and {more} copies leave by other ports"),
        };
        return (Verdict::Delivered, format!("it leaves the network by {}{also}", exit.at));
    }
    if let Some(exit) = may_arrive {
        let why = format!("it leaves by {} if the select group on the way selects that bucket", exit.at);
        // Whatever is selected, it arrives: nothing else becomes of it at any stop.
        let all =
            to.is_none() && way.stops.iter().enumerate().all(|(number, stop)| end_of(number, stop).is_none());
        return (if all { Verdict::Delivered } else { Verdict::Unknown }, why);
    }
    if way.is_cut {
        return (
            Verdict::Looped,
            "it multiplies from switch to switch; the rest of its way is left out".to_owned(),
        );
    }
    let worst =
        way.stops.iter().enumerate().filter_map(|(number, stop)| end_of(number, stop)).min_by_key(|it| it.0);
    if let Some((_, verdict, reason)) = worst {
        return (verdict, reason);
    }
    match exits.first() {
        Some(exit) => {
            (Verdict::Dropped, format!("it leaves the network by {}, and not where it should", exit.at))
        }
        None => (Verdict::Dropped, "nothing sends it anywhere".to_owned()),
    }
}

/// How a way ends at a stop, if it does: first what explains most.
fn end_of(number: usize, stop: &Stop) -> Option<(u8, Verdict, String)> {
    let switch = stop.at.switch;
    match &stop.end {
        StopEnd::Loop(first) => {
            let length = number - first;
            let why = format!("it comes back to {} unchanged after {length} hops: a loop", stop.at);
            return Some((0, Verdict::Looped, why));
        }
        StopEnd::Unread => {
            return Some((1, Verdict::Unknown, format!("the tables of {switch} could not be read")));
        }
        StopEnd::Passed => {}
    }
    stop.passage.events.iter().filter_map(|event| reason(event, stop)).min_by_key(|it| it.0)
}

fn reason(event: &Event, stop: &Stop) -> Option<(u8, Verdict, String)> {
    let switch = stop.at.switch;
    Some(match event {
        Event::Unknown(why) => (2, Verdict::Unknown, format!("{switch}: {why}")),
        Event::Normal => (3, Verdict::Unknown, format!("{switch} forwards it by its own addresses (NORMAL)")),
        Event::TooMany => {
            (4, Verdict::Unknown, format!("{switch} copies or changes it too often to be followed"))
        }
        Event::Controller { is_expired: true, .. } => {
            (5, Verdict::Dropped, format!("its time-to-live ends at {switch}"))
        }
        Event::Controller { .. } => (6, Verdict::Punted, format!("{switch} sends it to the controller")),
        Event::Output(output) => match output.fate {
            Fate::Sent => return None,
            Fate::Down => (7, Verdict::Dropped, format!("port {} of {switch} is down", output.port)),
            Fate::NoPort => (7, Verdict::Dropped, format!("{switch} has no port {}", output.port)),
            Fate::InPort => {
                let why = format!("{switch} does not send it back by port {} without IN_PORT", output.port);
                (8, Verdict::Dropped, why)
            }
        },
        Event::Group { group, kind: None, .. } => {
            (7, Verdict::Dropped, format!("{switch} has no group {group}, to which a rule sends it"))
        }
        Event::Group { group, buckets, .. } if buckets.is_empty() => {
            (7, Verdict::Dropped, format!("group {group} of {switch} has no live bucket"))
        }
        Event::Miss { table_id, .. } => {
            (8, Verdict::Dropped, format!("no rule in table {table_id} of {switch} matches it"))
        }
        Event::NoAction => (8, Verdict::Dropped, format!("a rule of {switch} drops it")),
        Event::Rule { .. } | Event::Meter { .. } | Event::Changed(_) | Event::Group { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bucket, GROUP_NONE, Group, GroupKind, Network, Rule, Tables, read_packet, trace};
    use flow::text::{parse_actions, parse_instructions, parse_match};
    use flow::{DatapathId, PortNo};

    fn check(instructions: &str, to: Option<&str>, expected: Verdict, part: &str) {
        let rule = Rule {
            table_id: 0,
            priority: 1,
            matching: parse_match("ip").unwrap(),
            instructions: parse_instructions(instructions).unwrap(),
        };
        let ports = [(PortNo(1), true), (PortNo(2), true), (PortNo(3), false)].into();
        let mut network = Network::default();
        network.add(DatapathId(1), Tables { rules: vec![rule], ports, ..Tables::default() });
        let way = trace(&network, "1/1".parse().unwrap(), read_packet("ip").unwrap());
        let (verdict, reason) = verdict(&way, to.map(|to| to.parse().unwrap()));
        assert_eq!(verdict, expected, "{instructions}: {reason}");
        assert!(reason.contains(part), "{reason}");
    }

    #[test]
    fn the_reason_names_what_stopped_the_packet() {
        check("output:2", None, Verdict::Delivered, "/2");
        check("output:2", Some("1/2"), Verdict::Delivered, "/2");
        check("output:2", Some("1/4"), Verdict::Dropped, "not where it should");
        check("output:3", None, Verdict::Dropped, "port 3 of");
        check("drop", None, Verdict::Dropped, "a rule of");
        check("group:7", None, Verdict::Dropped, "no group 7");
        check("controller", None, Verdict::Punted, "to the controller");
        check("output:3,controller", None, Verdict::Punted, "to the controller");
        check("normal", None, Verdict::Unknown, "NORMAL");
        check("dec_ttl,goto_table:3", None, Verdict::Dropped, "table 3");
    }

    #[test]
    fn a_select_group_delivers_only_if_all_its_buckets_do() {
        let bucket = |actions: &str| Bucket {
            weight: 1,
            watch_port: PortNo::ANY,
            watch_group: GROUP_NONE,
            actions: parse_actions(actions).unwrap(),
        };
        let check = |other: &str, expected: Verdict| {
            let rule = Rule {
                table_id: 0,
                priority: 1,
                matching: parse_match("ip").unwrap(),
                instructions: parse_instructions("group:1").unwrap(),
            };
            let group = Group { kind: GroupKind::Select, buckets: vec![bucket("output:2"), bucket(other)] };
            let ports = [(PortNo(1), true), (PortNo(2), true), (PortNo(3), false), (PortNo(4), true)].into();
            let mut network = Network::default();
            let groups = [(1, group)].into();
            network.add(DatapathId(1), Tables { rules: vec![rule], groups, ports, ..Tables::default() });
            let way = trace(&network, "1/1".parse().unwrap(), read_packet("ip").unwrap());
            assert_eq!(verdict(&way, None).0, expected, "{other}");
        };
        check("output:3", Verdict::Unknown);
        check("output:4", Verdict::Delivered);
    }

    #[test]
    fn an_unread_switch_is_no_drop() {
        let way = trace(&Network::default(), "1/1".parse().unwrap(), read_packet("ip").unwrap());
        assert_eq!(verdict(&way, None).0, Verdict::Unknown);
    }
}
