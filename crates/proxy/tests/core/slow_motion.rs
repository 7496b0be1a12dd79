//! Slow motion: the target's time runs slower than the clock.

use crate::delays::{apply, frame, table_miss};
use crate::world::{MS, OF_SWITCH, World};
use flow::{Action, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use profile::{Profile, Quantiles, Timeouts};
use proxy::Method;

const SLOW: u32 = 10;

fn profile() -> Profile {
    let mut profile = Profile::null();
    profile.delay.ingress_us = Quantiles::constant(20_000.0);
    profile.delay.egress_us = Quantiles::constant(7_000.0);
    profile.timeouts = Timeouts { scan_period_us: 1e6, counter_period_us: 0.0 };
    profile
}

#[test]
fn delays_are_longer_and_the_switchs_own_part_is_not() {
    for version in [Version::V1_0, Version::V1_3] {
        for method in [Method::Paper, Method::Full] {
            let mut world = World::in_slow_motion(&profile(), method, version, SLOW);
            table_miss(&mut world, 0xffff);
            let begin = world.now;
            world.frame(1, &frame(1));
            world.run_for(500 * MS);
            let [(at, _)] = &world.packet_ins()[..] else { panic!("{:?}", world.heard) };
            assert_eq!(at - begin, 200 * MS, "{version} {method:?}: {OF_SWITCH} ns of it are the switch's");
            let begin = world.now;
            let actions = vec![Action::output(PortNo(2))];
            let out = PacketOut { buffer_id: NO_BUFFER, in_port: PortNo(1), actions, data: frame(1) };
            world.says(Body::PacketOut(out));
            world.run_for(500 * MS);
            assert_eq!(world.left, [(begin + 70 * MS, PortNo(2), frame(1))], "{version} {method:?}");
        }
    }
}

#[test]
fn time_outs_are_longer_and_durations_are_scaled_back() {
    for version in [Version::V1_0, Version::V1_3] {
        let mut world = World::in_slow_motion(&profile(), Method::Full, version, SLOW);
        let fields = FlowModFields {
            hard_timeout_s: 3,
            flags: FLOW_MOD_SEND_FLOW_REMOVED,
            ..FlowModFields::default()
        };
        let begin = world.now;
        world.says(Body::FlowMod(fields.with(Match::any(), apply(vec![Action::output(PortNo(2))]))));
        world.run_for(100_000 * MS);
        let of = |(at, message): &(u64, Message)| match &message.body {
            Body::FlowRemoved(removed) => Some((*at, removed.clone())),
            _ => None,
        };
        let removed: Vec<_> = world.heard.iter().filter_map(of).collect();
        let [(at, removed)] = &removed[..] else { panic!("{:?}", world.heard) };
        assert_eq!(
            (removed.reason, removed.hard_timeout_s),
            (1, if version == Version::V1_0 { 0 } else { 3 })
        );
        let took = at - begin;
        assert!((30_000 * MS..41_000 * MS).contains(&took), "{version}: {took} ns");
        let told = u64::from(removed.duration_s) * 1_000 * MS + u64::from(removed.duration_ns);
        assert!((told * u64::from(SLOW)).abs_diff(took) < 1_000 * MS, "{version}: {told} ns for {took}");
    }
}
