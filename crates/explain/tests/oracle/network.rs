//! Several switches: the ports by which copies leave the network are those that the tracer finds.

use crate::frames::{frame, ttl};
use crate::rules;
use crate::seed::Seed;
use crate::switch::{Twin, line, sorted};
use explain::{Event, GroupKind, Network, Packet, StopEnd, exits, trace};
use flow::frame::FrameFields;
use flow::{DatapathId, PortNo};
use std::collections::{BTreeMap, VecDeque};
use view::ConnectPoint;

const SEEDS: u64 = 1_500;

/// The most frames on links. If there are more, packets go round.
const HOPS_MAX: usize = 400;

fn point(switch: u64, port: u32) -> ConnectPoint {
    ConnectPoint { switch: DatapathId(switch), port: PortNo(port) }
}

/// A ring of three: port 2 of each leads to port 3 of the next.
fn links() -> BTreeMap<ConnectPoint, ConnectPoint> {
    let pairs = [(1, 2), (2, 3), (3, 1)].map(|(from, to)| (point(from, 2), point(to, 3)));
    pairs.iter().flat_map(|(one, other)| [(*one, *other), (*other, *one)]).collect()
}

/// What leaves the network of software switches. `None`: packets go round.
fn leaves(twins: &mut [Twin], bytes: &[u8]) -> Option<Vec<String>> {
    let links = links();
    let mut ahead = VecDeque::from([(point(1, 1), bytes.to_vec())]);
    let (mut left, mut hops) = (Vec::new(), 0);
    while let Some((at, bytes)) = ahead.pop_front() {
        hops += 1;
        if hops > HOPS_MAX {
            return None;
        }
        let twin = &mut twins[usize::try_from(at.switch.0 - 1).unwrap()];
        for (port, frame) in twin.frames(at.port, &bytes) {
            let out = ConnectPoint { switch: at.switch, port };
            match links.get(&out) {
                Some(there) => ahead.push_back((*there, frame)),
                None => left.push(format!(
                    "{} {}",
                    at.switch,
                    line(port, &Packet::new(FrameFields::read(&frame)))
                )),
            }
        }
    }
    Some(sorted(left.into_iter()))
}

/// Whether the tracer cannot know the one way of the packet.
fn is_open(event: &Event) -> bool {
    match event {
        Event::Unknown(_) | Event::TooMany | Event::Normal => true,
        Event::Group { kind: Some(GroupKind::Select), buckets, .. } => buckets.len() > 1,
        _ => false,
    }
}

#[test]
fn a_packet_leaves_where_the_tracer_says_and_a_loop_is_a_loop() {
    let (mut compared, mut loops, mut long) = (0, 0, 0);
    for number in 0..SEEDS {
        let mut seed = Seed(number);
        let bytes = frame(&mut seed);
        let fields = FrameFields::read(&bytes).from_port(PortNo(1));
        let mut twins: Vec<Twin> = (1..=3).map(|id| Twin::new(id, false, &[])).collect();
        for twin in &mut twins {
            twin.add_meter();
            twin.add_group(1, rules::group(&mut seed, &fields, &[]));
            let groups: Vec<u32> = twin.tables.groups.keys().copied().collect();
            (1..=6)
                .for_each(|priority| twin.add_rule(rules::rule_v13(&mut seed, &fields, priority, &groups)));
        }
        let mut network = Network::new(links());
        twins.iter().for_each(|twin| network.add(twin.switch.datapath_id(), twin.tables.clone()));
        let packet = Packet::new(FrameFields::read(&bytes)).with_ttl(ttl(&bytes));
        let way = trace(&network, point(1, 1), packet);
        if way.stops.iter().flat_map(|stop| &stop.passage.events).any(is_open) {
            continue;
        }
        let has_loop = way.is_cut || way.stops.iter().any(|stop| matches!(stop.end, StopEnd::Loop(_)));
        let Some(left) = leaves(&mut twins, &bytes) else {
            assert!(has_loop, "seed {number}: a loop that the tracer does not see\n{way:#?}");
            loops += 1;
            continue;
        };
        // A packet in a loop may end by its time-to-live. The copies that it leaves on the way are not followed.
        if has_loop {
            continue;
        }
        let found =
            exits(&way).into_iter().map(|exit| match &way.stops[exit.stop].passage.events[exit.event] {
                Event::Output(it) => format!("{} {}", exit.at.switch, line(it.port, &it.packet)),
                other => panic!("{other:?}"),
            });
        assert_eq!(left, sorted(found), "seed {number}\n{way:#?}");
        compared += 1;
        long += u64::from(way.stops.len() > 2);
    }
    println!("{compared} compared, {long} of them over more than two stops; {loops} loops");
    assert!(compared > SEEDS / 2 && long > SEEDS / 50 && loops > 0, "{compared} {long} {loops}");
}
