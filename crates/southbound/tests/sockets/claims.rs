//! Two sessions that claim one datapath id: who has it and is dead yields within a second, who lives keeps it.

use crate::node::Node;
use crate::switch::{Switch, packet_in};
use flow::DatapathId;
use openflow::{Body, Version};
use southbound::{Fault, SouthboundConfig};

const VERSION: Version = Version::V1_3;

/// One that claims the id of a switch that is up, and waits.
fn claimant(node: &mut Node, datapath: u64) -> Switch {
    let (open, ended) = (node.roster.connections(), node.ended.len());
    let mut switch = Switch::silent(node);
    switch.shake_hands(VERSION, datapath);
    node.until("its handshake is read", |node| {
        switch.pump();
        let is_in = node.roster.connections() == open + 1;
        is_in && node.southbound.has_claims() || node.ended.len() > ended
    });
    switch
}

/// Time goes by, in steps of ten milliseconds, while nobody says anything.
fn pass(node: &mut Node, milliseconds: u64) {
    let until_ms = node.now_ms + milliseconds;
    while node.now_ms < until_ms {
        node.now_ms = until_ms.min(node.now_ms + 10);
        node.turn();
    }
}

fn is_asked(switch: &mut Switch) -> bool {
    switch.has_heard(|body| matches!(body, Body::EchoRequest(_)))
}

#[test]
fn a_dead_switch_yields_within_a_second_to_the_one_that_comes_back() {
    let mut node = Node::new(SouthboundConfig::default());
    let mut dead = Switch::up(&mut node, VERSION, 7);
    node.now_ms = 10_000;
    let mut back = claimant(&mut node, 7);
    pass(&mut node, 490);
    assert_eq!((node.ups(), node.downs()), (1, 0), "it has time to answer");
    assert!(is_asked(&mut dead));
    pass(&mut node, 60);
    assert_eq!((node.ups(), node.downs()), (2, 1));
    let (Some(DatapathId(7)), end) = &node.ended[0] else { panic!("{:?}", node.ended) };
    assert!(end.fault == Fault::Network && end.reason.contains("another session claims"), "{end:?}");
    back.say(VERSION, packet_in(60));
    node.until("it is heard", |node| node.packet_ins() == 1);
    assert!(!back.closed);
}

#[test]
fn a_dead_switch_of_another_worker_yields_too() {
    let mut one = Node::new(SouthboundConfig::default());
    let mut other = Node::of_worker(SouthboundConfig::default(), one.roster.clone(), 1);
    let _dead = Switch::up(&mut one, VERSION, 7);
    let _back = claimant(&mut other, 7);
    let mut waited_ms = 0;
    while other.ups() == 0 {
        assert!(waited_ms < 1_000, "it is not up after a second");
        waited_ms += 10;
        (one.now_ms, other.now_ms) = (waited_ms, waited_ms);
        one.turn();
        other.turn();
    }
    assert_eq!((one.downs(), other.only_switch().worker), (1, 1));
}

#[test]
fn a_living_switch_stays_and_whoever_claims_its_id_is_refused() {
    for answer in [Body::EchoReply(Vec::new()), packet_in(60)] {
        let mut node = Node::new(SouthboundConfig::default());
        let mut living = Switch::up(&mut node, VERSION, 7);
        let mut twin = claimant(&mut node, 7);
        node.until("it is asked", |_| is_asked(&mut living));
        pass(&mut node, 300);
        living.say(VERSION, answer);
        node.until("the twin is refused", |_| {
            twin.pump();
            twin.closed
        });
        pass(&mut node, 2_000);
        assert_eq!((node.ups(), node.downs()), (1, 0));
    }
}

#[test]
fn whoever_claims_without_end_neither_ends_a_living_session_nor_has_it_asked_without_end() {
    let mut node = Node::new(SouthboundConfig::default());
    let mut living = Switch::up(&mut node, VERSION, 7);
    let (mut asked, mut claimed) = (0, 0);
    while node.now_ms < 3_000 {
        let mut twin = Switch::silent(&node);
        twin.shake_hands(VERSION, 7);
        claimed += 1;
        pass(&mut node, 20);
        if is_asked(&mut living) {
            asked += 1;
            living.heard.clear();
            living.say(VERSION, Body::EchoReply(Vec::new()));
        }
    }
    pass(&mut node, 2_000);
    assert_eq!((node.ups(), node.downs()), (1, 0));
    assert!(claimed == 150 && (1..=11).contains(&asked), "{asked} probes for {claimed} claims");
    assert_eq!((node.southbound.sessions().count(), node.southbound.has_claims()), (1, false));
}

#[test]
fn a_switch_whose_end_is_told_of_later_than_it_is_back_comes_up_all_the_same() {
    let mut node = Node::new(SouthboundConfig::default());
    let old = Switch::up(&mut node, VERSION, 7);
    let back = claimant(&mut node, 7);
    drop(old);
    node.until("it is up again", |node| node.ups() == 2);
    assert_eq!((node.downs(), node.now_ms, back.closed), (1, 0, false));
}

#[test]
fn a_claimant_that_goes_away_is_forgotten() {
    let mut node = Node::new(SouthboundConfig::default());
    let _dead = Switch::up(&mut node, VERSION, 7);
    drop(claimant(&mut node, 7));
    node.until("it is gone", |node| node.roster.connections() == 1);
    pass(&mut node, 1_000);
    // The one that did not answer has yielded, to nobody.
    assert_eq!((node.ups(), node.downs(), node.southbound.has_claims()), (1, 1, false));
}

#[test]
fn sixty_four_switches_that_come_back_at_once_are_up_within_a_second() {
    let mut node = Node::new(SouthboundConfig::default());
    let _dead: Vec<Switch> = (1..=64).map(|number| Switch::up(&mut node, VERSION, number)).collect();
    for round in 0..8 {
        // Those of the round before say nothing any more, and their sockets stay.
        let mut back: Vec<Switch> = (0..64).map(|_| Switch::silent(&node)).collect();
        for (switch, number) in back.iter_mut().zip(1..) {
            switch.shake_hands(VERSION, number);
        }
        let (ups, began_ms) = (node.ups(), node.now_ms);
        node.until("all claim", |node| node.roster.connections() >= 128);
        node.until("all are up", |node| {
            node.now_ms += 10;
            back.iter_mut().for_each(Switch::pump);
            node.ups() == ups + 64
        });
        assert!(node.now_ms - began_ms < 1_000, "round {round}: {} ms", node.now_ms - began_ms);
        assert!(back.iter().all(|switch| !switch.closed));
        node.tick(node.now_ms + 1_000);
        std::mem::forget(back);
    }
}
