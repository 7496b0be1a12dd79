//! Damaged streams: the proxy ends the session or passes them on, and never more than that.

use crate::conversation::conversation;
use crate::world::{MS, World, settings};
use flow::{Action, PortNo};
use openflow::message::*;
use openflow::{Body, Version, stream};
use profile::{Profile, Quantiles};
use proptest::prelude::*;
use proxy::{Commands, Event, Method, Passage, Proxy};

fn profile() -> Profile {
    let mut profile = profile::built_in("hp-procurve-j9451a").unwrap();
    profile.delay.ingress_us = Quantiles::constant(1_000.0);
    profile
}

#[test]
fn what_is_no_openflow_ends_the_session_with_a_sentence() {
    let streams: [(&[u8], &str); 3] = [
        (&[4, 10, 0, 7, 0, 0, 0, 0], "length"),
        (&[5, 14, 0, 8, 0, 0, 0, 1], "OpenFlow 1.4"),
        (&[4, 10, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0], "the switch sent"),
    ];
    for (bytes, expected) in streams {
        let mut world = World::new(&profile(), Method::Full, Version::V1_3);
        let mut out = Commands::default();
        let _ = world.proxy.on_event(world.now, Event::FromSwitch(bytes), &mut out);
        let said = out.end.map(|rubbish| rubbish.to_string()).unwrap_or_default();
        assert!(said.contains(expected), "{bytes:?}: {said}");
    }
}

#[test]
fn a_message_that_only_the_switch_can_refuse_goes_to_the_switch() {
    let mut world = World::new(&profile(), Method::Full, Version::V1_3);
    world.got.clear();
    // A flow mod that is too short.
    let mut out = Commands::default();
    let bytes = [4, 14, 0, 10, 0, 0, 0, 5, 0, 0];
    assert_eq!(world.proxy.on_event(world.now, Event::FromController(&bytes), &mut out), Passage::Taken);
    let mut sent = out.to_switch.clone();
    while let Some(due) = world.proxy.next_due_ns().filter(|_| sent.is_empty()) {
        let mut out = Commands::default();
        let _ = world.proxy.on_event(due, Event::Time, &mut out);
        sent.extend(out.to_switch);
    }
    assert!(sent.windows(bytes.len()).any(|window| window == bytes), "{sent:?}");
}

#[test]
fn a_controller_that_is_far_ahead_is_not_read() {
    let mut slow = Profile::null();
    slow.cpu.packet_out.service_us = Quantiles::constant(1e6);
    let mut world = World::new(&slow, Method::Full, Version::V1_3);
    let packet = PacketOut {
        buffer_id: NO_BUFFER,
        in_port: PortNo(1),
        actions: vec![Action::output(PortNo(2))],
        data: vec![0; 60_000],
    };
    let sent = (0..1000).take_while(|_| {
        let takes = world.proxy.takes_from_controller();
        if takes {
            world.says(Body::PacketOut(packet.clone()));
        }
        takes
    });
    let sent = sent.count();
    assert!((130..150).contains(&sent), "{sent} times 60 kB are about 8 MiB");
    world.run_for(10_000 * MS);
    assert!(world.proxy.takes_from_controller(), "some have left");
}

proptest! {
    #[test]
    fn any_damage_ends_the_session_or_passes(
        is_v10 in any::<bool>(),
        is_paper in any::<bool>(),
        damage in proptest::collection::vec((0..14usize, any::<u16>(), any::<u8>()), 0..6),
        steps in proptest::collection::vec(0..3_000u64, 14),
    ) {
        let version = if is_v10 { Version::V1_0 } else { Version::V1_3 };
        let method = if is_paper { Method::Paper } else { Method::Full };
        let mut messages = conversation(version);
        for (which, at, byte) in damage {
            let bytes = &mut messages[which].1;
            let at = usize::from(at) % bytes.len();
            bytes[at] = byte;
        }
        let mut proxy = Proxy::new(settings(profile(), method));
        let mut now = 0;
        for ((from_switch, bytes), step) in messages.iter().zip(steps) {
            let mut out = Commands::default();
            let event = if *from_switch { Event::FromSwitch(bytes) } else { Event::FromController(bytes) };
            let _ = proxy.on_event(now, event, &mut out);
            let is_over = out.end.is_some();
            check_streams(&out);
            if is_over {
                break;
            }
            let until = now + step * MS;
            while let Some(due) = proxy.next_due_ns().filter(|due| *due <= until) {
                let mut out = Commands::default();
                let _ = proxy.on_event(due.max(now), Event::Time, &mut out);
                now = now.max(due);
                check_streams(&out);
            }
            now = until;
        }
    }
}

/// What the proxy sends is whole messages.
fn check_streams(out: &Commands) {
    for bytes in [&out.to_switch, &out.to_controller] {
        assert_eq!(stream::cut(bytes, |_| true).unwrap(), bytes.len());
    }
}
