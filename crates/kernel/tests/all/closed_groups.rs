//! Groups that send only to an app's own ports: any packet may enter them, if the app has no other ports at the switch.
//!
//! ```text
//!   random buckets, rules, packets ──> kernel ──accepted──> emulated switch ──frames──> only ports of the app, and its packets at the others
//! ```

use crate::emulated::{ADD, APP, DELETE, MODIFY, SWITCH, World, flowspace, ip, to_ports};
use abi::command::{StatsRequest, What};
use abi::event::{self, StatsReply};
use flow::PortNo;
use flow::frame::FrameFields;
use kernel::{Bounds, Capability, Grant};

/// The ports that no other app uses. The switch has four.
const OWN: [PortNo; 2] = [PortNo(1), PortNo(2)];
const SHARED: PortNo = PortNo(3);
/// The flowspace: the tag of the app.
const SPACE: &str = "dl_vlan=10";

fn world(ports: &[PortNo]) -> World {
    let rules = Bounds { own_ports: OWN.to_vec(), ..to_ports(flowspace(&[SPACE]), ports) };
    let out: Vec<PortNo> = ports.iter().copied().chain([PortNo::TABLE]).collect();
    let packets = Bounds { own_ports: OWN.to_vec(), ..to_ports(flowspace(&[SPACE]), &out) };
    let grant = Grant::nothing().with(Capability::StatsRead).with_rules(rules);
    World::with(grant.with_packets_in(packets.clone()).with_packets_out(packets))
}

fn group(world: &mut World, command: u16, buckets: &[&str]) -> String {
    world.group(APP, command, 7, buckets)
}

const UNCHANGED: &str = "rule.write: packets of one of the app's own ports are outside the granted flowspace and would leave by another port, \
     or enter a group: rewrite them first";
const OPEN: &str = "rule.write: group 7 gets packets outside the granted flowspace, so it may send to the app's own ports only: delete it and add \
     it again";

#[test]
fn any_packet_may_enter_a_group_that_sends_to_own_ports_if_there_are_no_others() {
    let check = |ports: &[PortNo], buckets: &[&str], expected: &str| {
        let mut world = world(ports);
        assert_eq!(group(&mut world, ADD, buckets), "sent", "{buckets:?}");
        assert_eq!(world.rule(APP, 0, "in_port=1", "group:7"), expected, "{buckets:?}");
    };
    check(&OWN, &["output:1", "pop_vlan,output:2"], "sent");
    check(&OWN, &[], "sent");
    check(&OWN, &["output:1", "controller"], UNCHANGED);
    check(&[OWN[0], OWN[1], SHARED], &["output:1"], UNCHANGED);
    check(&[OWN[0], OWN[1], SHARED], &["output:3"], UNCHANGED);
}

#[test]
fn what_is_changed_before_a_group_is_still_compared_behind_it() {
    let mut world = world(&OWN);
    assert_eq!(group(&mut world, ADD, &["output:2"]), "sent");
    assert_eq!(world.rule(APP, 0, "in_port=1", "set_field:02:00:00:00:00:09->eth_dst,group:7"), "sent");
    let up = world.rule(APP, 0, "in_port=1", "set_field:02:00:00:00:00:09->eth_dst,group:7,controller");
    assert_eq!(up, UNCHANGED);
    assert_eq!(world.packet_out(&ip(), "group:7"), "sent");
}

#[test]
fn a_group_that_any_packet_enters_stays_closed_until_it_is_deleted() {
    let mut world = world(&OWN);
    let open = &["controller"];
    assert_eq!(group(&mut world, ADD, &["output:1"]), "sent");
    assert_eq!(group(&mut world, MODIFY, open), "sent", "no rule relies on it");
    assert_eq!(
        world.rule(APP, 0, "in_port=1", "group:7"),
        UNCHANGED,
        "it may be what it was, and what it is"
    );
    assert_eq!(group(&mut world, DELETE, &[]), "sent");
    assert_eq!(group(&mut world, ADD, &["output:1"]), "sent");
    assert_eq!(world.rule(APP, 0, "in_port=1,dl_vlan=10", "group:7"), "sent");
    assert_eq!(group(&mut world, MODIFY, &["output:2"]), "sent");
    assert_eq!(world.rule(APP, 0, "in_port=1", "group:7"), "sent");
    assert_eq!(group(&mut world, MODIFY, open), OPEN);
    assert_eq!(group(&mut world, MODIFY, &["output:1"]), "sent");
    assert_eq!(group(&mut world, DELETE, &[]), "sent");
    assert_eq!(group(&mut world, ADD, open), "sent");
}

#[test]
fn an_app_sees_the_counters_of_its_own_groups_and_meters() {
    let mut world = world(&OWN);
    assert_eq!(group(&mut world, ADD, &["output:1"]), "sent");
    assert_eq!(world.meter(APP, &[]), "sent");
    let entry = |length: usize, number_at: usize, number: u8, length_at: usize| {
        let mut bytes = vec![0; length];
        (bytes[length_at], bytes[number_at]) = (u8::try_from(length).unwrap(), number);
        bytes
    };
    let mut check = |multipart: u16, own: Vec<u8>, other: Vec<u8>| {
        assert_eq!(world.ask(APP, What::StatsRequest(StatsRequest { multipart, body: &[] })), "sent");
        let body = [other.clone(), own.clone(), other].concat();
        let reply = StatsReply { datapath: SWITCH, ticket: 9, multipart, more: false, body: &body };
        let (mut whole, mut buffer, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        event::write::stats_reply(&mut whole, 4, &reply);
        event::write::stats_reply(&mut expected, 4, &StatsReply { body: &own, ..reply });
        assert_eq!(world.kernel.cut_down(APP, &whole, &mut buffer), Some(&expected[..]), "{multipart}");
    };
    // Groups: length, then number. Counters of meters: number, then length.
    check(6, entry(40, 7, 7, 1), entry(40, 7, 8, 1));
    check(7, entry(8, 7, 7, 1), entry(8, 7, 1, 1));
    check(9, entry(40, 3, 1, 5), entry(40, 3, 7, 5));
    check(10, entry(8, 7, 1, 1), entry(8, 7, 2, 1));
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }

    /// Some changes, and then a way out.
    fn actions(&mut self, ways: &[&str]) -> String {
        let changes =
            ["pop_vlan", "push_vlan:0x8100", "set_field:4106->vlan_vid", "set_field:4107->vlan_vid"];
        let others = ["set_field:02:00:00:00:00:09->eth_dst", "dec_ttl"];
        let mut actions = Vec::new();
        for _ in 0..self.below(3) {
            actions.push(if self.below(2) == 0 { self.pick(&changes) } else { self.pick(&others) });
        }
        actions.push(self.pick(ways));
        actions.join(",")
    }
}

/// Does random things. Returns how many packets left or went up through groups. Rules send only to groups.
fn run(seed: u64, ports: &[PortNo]) -> usize {
    let (mut world, mut random) = (world(ports), Random(seed));
    let mut left = 0;
    for _ in 0..150 {
        let id = 1 + u32::try_from(random.below(3)).unwrap();
        match random.below(5) {
            0 | 1 => {
                let ways =
                    ["output:1", "output:2", "output:2", "output:3", "output:4", "controller", "in_port"];
                let count = random.below(3);
                let buckets: Vec<String> = (0..count).map(|_| random.actions(&ways)).collect();
                let buckets: Vec<&str> = buckets.iter().map(String::as_str).collect();
                let command = [ADD, ADD, MODIFY, DELETE][usize::try_from(random.below(4)).unwrap()];
                world.group(APP, command, id, &buckets);
            }
            2 | 3 => {
                let matching =
                    random.pick(&["in_port=1", "in_port=1,dl_vlan=10", "in_port=1,vlan_vid=0", SPACE]);
                let way = format!("group:{id}");
                let actions = random.actions(&[&way]);
                world.rule(APP, 0, matching, &actions);
            }
            _ => {
                let frame = ip();
                let tag = [None, Some(10), Some(11)][usize::try_from(random.below(3)).unwrap()];
                let head = tag.map_or_else(Vec::new, |tag: u8| vec![0x81, 0, 0, tag]);
                world.host_says([&frame[..12], &head, &frame[12..]].concat());
            }
        }
        for (port, frame) in world.left() {
            left += 1;
            let tag = FrameFields::read(&frame).get(flow::Field::VlanVid);
            let is_fine = OWN.contains(&port) || ports.contains(&port) && tag == Some(0x100a);
            assert!(is_fine, "seed {seed}: a packet with tag {tag:?} left by {port}");
        }
        for frame in world.sent_up() {
            left += 1;
            let tag = FrameFields::read(&frame).get(flow::Field::VlanVid);
            assert_eq!(tag, Some(0x100a), "seed {seed}: a group sent this up");
        }
    }
    left
}

#[test]
fn no_group_leads_out_of_the_apps_ports_or_sends_up_packets_of_others() {
    for ports in [&OWN[..], &[OWN[0], OWN[1], SHARED]] {
        let left: usize = (0..300).map(|seed| run(seed, ports)).sum();
        assert!(left > 300, "{left} packets say too little");
    }
}
