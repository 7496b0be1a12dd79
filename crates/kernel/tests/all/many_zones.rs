//! A kernel with the most zones decides like one with two zones, and without an allocation.

use abi::command::{self, Command, FlowMod, What};
use abi::event::{self, OpenFlowVersion, PacketIn, SwitchUp, kind};
use abi::{Frame, ZoneId};
use flow::canonical::write_match;
use flow::text::parse_match;
use flow::{DatapathId, PortNo};
use kernel::zone_set::MAX_ZONE;
use kernel::{Bounds, Capability, Decision, Grant, Kernel, Refusal};

const SWITCH: DatapathId = DatapathId(1);

/// A kernel with the most zones, and a switch. Zones with an even number receive only ARP packets.
fn full_kernel() -> Kernel {
    let mut kernel = Kernel::new(7);
    let arp = [parse_match("arp").unwrap()];
    for number in 1..=MAX_ZONE {
        let bounds = Bounds { flowspace: Some(arp.to_vec()), ..Bounds::default() };
        let grant = Grant::everywhere(&Capability::GRANT_ALL);
        let grant = if number % 2 == 0 { grant.with_packets_in(bounds) } else { grant };
        assert!(kernel.attach(ZoneId(number), &format!("app{number}"), grant, 0), "{number}");
    }
    let mut up = Vec::new();
    let said =
        SwitchUp { datapath: SWITCH, n_buffers: 0, n_tables: 1, openflow: OpenFlowVersion::V1_3, ports: &[] };
    event::write::switch_up(&mut up, 1, &said);
    kernel.on_event(&Frame::read(&up).unwrap(), 0, &mut Vec::new()).unwrap();
    kernel.on_no_answer(SWITCH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
    kernel
}

fn subscribe(kernel: &mut Kernel, zone: u16) {
    let events = kind::bit(kind::PACKET_IN) | kind::bit(kind::TOPIC);
    let what = What::Subscribe(command::Subscribe { events, packets: &[] });
    decide(kernel, zone, what, |decision| assert!(matches!(decision, Decision::Subscribed), "{decision:?}"));
}

fn decide<T>(kernel: &mut Kernel, zone: u16, what: What<'_>, see: impl FnOnce(Decision<'_>) -> T) -> T {
    let mut bytes = Vec::new();
    let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: true, what };
    assert!(command::write::command(&mut bytes, &command));
    see(kernel.on_command(ZoneId(zone), &Frame::read(&bytes).unwrap(), 0, &mut Vec::new()))
}

/// A packet-in of a frame with this EtherType.
fn packet_in(ether_type: [u8; 2]) -> Vec<u8> {
    let data = [&[0; 12][..], &ether_type, &[0; 46]].concat();
    let (in_port, buffer_id, metadata) = (PortNo(1), None, &[][..]);
    let packet = PacketIn {
        datapath: SWITCH,
        in_port,
        buffer_id,
        total_len: 60,
        reason: 0,
        table_id: 0,
        cookie: 0,
        metadata,
        data: &data,
    };
    let mut bytes = Vec::new();
    event::write::packet_in(&mut bytes, 2, &packet);
    bytes
}

fn receivers(kernel: &mut Kernel, ether_type: [u8; 2]) -> Vec<u16> {
    let bytes = packet_in(ether_type);
    let frame = Frame::read(&bytes).unwrap();
    kernel.on_event(&frame, 0, &mut Vec::new()).unwrap().iter().map(|zone| zone.0).collect()
}

#[test]
fn a_changed_subscription_counts_the_indexes_that_it_makes_old_and_an_unchanged_one_nothing() {
    let mut kernel = full_kernel();
    let arp_only = (1..=50).map(|half| 2 * half);
    arp_only.for_each(|zone| subscribe(&mut kernel, zone));
    receivers(&mut kernel, [8, 0]);
    kernel.take_compared();
    subscribe(&mut kernel, 2);
    assert_eq!(kernel.take_compared(), 0, "it has this subscription");
    let mut change = |events: u64| {
        let what = What::Subscribe(command::Subscribe { events, packets: &[] });
        decide(&mut kernel, 2, what, |decision| assert!(matches!(decision, Decision::Subscribed)));
        kernel.take_compared()
    };
    let (both, packets) =
        (kind::bit(kind::PACKET_IN) | kind::bit(kind::SWITCH_UP), kind::bit(kind::PACKET_IN));
    let (first, second) = (change(both), change(packets));
    assert_eq!(first - second, 100, "50 zones with a match of one field, until a packet needs the indexes");
    receivers(&mut kernel, [8, 0]);
    subscribe(&mut kernel, 2);
    assert_eq!(kernel.take_compared(), first);
}

#[test]
fn each_event_goes_to_the_zones_that_want_it_whatever_their_numbers_are() {
    let mut kernel = full_kernel();
    for zone in [2, 63, 64, 65, 1000, MAX_ZONE] {
        subscribe(&mut kernel, zone);
    }
    assert_eq!(receivers(&mut kernel, [8, 0]), [63, 65, MAX_ZONE]);
    assert_eq!(receivers(&mut kernel, [8, 6]), [2, 63, 64, 65, 1000, MAX_ZONE]);
    assert_eq!([2, 63, 1000].map(|zone| kernel.events_heard(ZoneId(zone))), [1, 2, 1]);
    let topic: Vec<u16> =
        kernel.receivers_of_topic(ZoneId(65), "link.up").iter().map(|zone| zone.0).collect();
    assert_eq!(topic, [2, 63, 64, 1000, MAX_ZONE]);
    kernel.detach(ZoneId(65));
    assert_eq!(receivers(&mut kernel, [8, 0]), [63, MAX_ZONE]);
    assert_eq!(kernel.zone(ZoneId(1000)).unwrap().name, "app1000");
}

#[test]
fn every_zone_hears_and_deciding_who_does_allocates_nothing() {
    let mut kernel = full_kernel();
    (1..=MAX_ZONE).for_each(|zone| subscribe(&mut kernel, zone));
    assert_eq!(receivers(&mut kernel, [8, 6]).len(), usize::from(MAX_ZONE));
    let (bytes, mut effects) = (packet_in([8, 6]), Vec::with_capacity(8));
    let measured = allocation_counter::measure(|| {
        let heard = kernel.on_event(&Frame::read(&bytes).unwrap(), 0, &mut effects).unwrap();
        assert!(heard.contains(ZoneId(MAX_ZONE)));
    });
    assert_eq!(measured.count_total, 0);
}

#[test]
fn a_rule_is_its_owners_whatever_the_owners_number_is() {
    let mut matching = Vec::new();
    write_match(&parse_match("in_port=1").unwrap(), &mut matching);
    let rule = || What::FlowMod(FlowMod { priority: 5, matching: &matching, ..FlowMod::ADD });
    for owner in [63, 64, 500, MAX_ZONE] {
        let mut kernel = full_kernel();
        let cookie = decide(&mut kernel, owner, rule(), |decision| match decision {
            Decision::Send(Command { what: What::FlowMod(rule), .. }) => rule.cookie,
            other => panic!("{other:?}"),
        });
        kernel.on_sent();
        assert_eq!(ZoneId::owner_of(cookie), ZoneId(owner));
        for other in [1, 63, 64, 500, 1022].into_iter().filter(|other| *other != owner) {
            decide(&mut kernel, other, rule(), |decision| {
                let whose = format!("{decision:?}");
                let of_owner = Refusal::OthersRule(ZoneId(owner));
                assert!(matches!(decision, Decision::Refuse(ref it) if *it == of_owner), "{whose}");
            });
        }
        decide(&mut kernel, owner, rule(), |decision| assert!(matches!(decision, Decision::Send(_))));
    }
}

#[test]
fn a_refusal_names_the_app_of_a_high_number() {
    let kernel = full_kernel();
    let words =
        kernel.in_words(&Refusal::Order(kernel::decision::OrderRefused::Blinds(ZoneId(900)))).to_string();
    assert!(words.contains("app900"), "{words}");
}
