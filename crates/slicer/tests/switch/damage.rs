//! Damaged and hostile messages: no input panics, and no command leaves the slice. The world checks each command.

use crate::world::{TAG, World, add, delete, written};
use flow::{Action, PortNo};
use openflow::message::*;
use openflow::{Body, Version};
use proptest::collection::vec;
use proptest::prelude::*;
use slicer::Isolation;

/// Messages of a controller, to be damaged.
fn messages(version: Version) -> Vec<Vec<u8>> {
    let mut bodies = vec![
        Body::FeaturesRequest,
        Body::BarrierRequest,
        Body::EchoRequest(vec![1, 2, 3]),
        Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: 20 }),
        Body::FlowMod(FlowMod {
            flags: 1,
            idle_timeout_s: 3,
            ..add(5, "tcp,nw_dst=10.0.0.0/9,tp_dst=80", "output:1,flood,controller:9")
        }),
        Body::FlowMod(FlowMod { buffer_id: 0, ..add(5, "in_port=1,dl_vlan=5", "output:3") }),
        Body::FlowMod(FlowMod { command: FLOW_MODIFY, ..add(5, "", "all") }),
        Body::FlowMod(delete("")),
        Body::PacketOut(PacketOut {
            buffer_id: NO_BUFFER,
            in_port: PortNo(1),
            actions: vec![Action::output(PortNo::FLOOD), Action::output(PortNo(2))],
            data: vec![0x88; 60],
        }),
        Body::PortMod(PortMod {
            port_no: PortNo(1),
            hw_addr: flow::MacAddr([2, 0, 0, 0, 0, 2]),
            config: 1,
            mask: 1,
            advertise: 0,
        }),
        Body::MultipartRequest(MultipartRequest { flags: 0, body: RequestBody::PortStats(PortNo::ANY) }),
        Body::MultipartRequest(MultipartRequest { flags: 0, body: RequestBody::Desc }),
    ];
    if version != Version::V1_0 {
        bodies.push(Body::RoleRequest(Role { role: ROLE_MASTER, generation_id: 1 }));
        bodies.push(Body::SetAsync(AsyncConfig::default()));
        bodies.push(Body::MultipartRequest(MultipartRequest {
            flags: 0,
            body: RequestBody::TableFeatures(vec![]),
        }));
        bodies.push(Body::FlowMod(add(
            9,
            "mpls,mpls_label=3",
            "pop_mpls:0x0800,write_actions(dec_ttl,output:2)",
        )));
    }
    bodies.into_iter().map(|body| written(version, body)).collect()
}

#[derive(Clone, Debug)]
enum Step {
    /// A message with some bytes changed.
    Message { which: usize, changes: Vec<(usize, u8)> },
    /// Any bytes.
    Rubbish(Vec<u8>),
    /// A frame at a port.
    Frame { port: u32, bytes: Vec<u8> },
    /// Seconds pass.
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any::<usize>(), vec((any::<usize>(), any::<u8>()), 0..4))
            .prop_map(|(which, changes)| Step::Message { which, changes }),
        1 => vec(any::<u8>(), 0..80).prop_map(Step::Rubbish),
        3 => (1..7u32, vec(any::<u8>(), 0..80)).prop_map(|(port, bytes)| Step::Frame { port, bytes }),
        1 => (0..5u64).prop_map(Step::Pass),
    ]
}

fn act(world: &mut World, version: Version, step: Step) {
    match step {
        Step::Message { which, changes } => {
            let messages = messages(version);
            let mut bytes = messages[which % messages.len()].clone();
            for (place, value) in changes {
                // The length stays: the caller cuts whole messages.
                let place = 4 + place % (bytes.len() - 4);
                bytes[place] = value;
            }
            world.send(0, &bytes);
        }
        Step::Rubbish(bytes) => _ = world.send(0, &bytes),
        Step::Frame { port, bytes } => world.arrive(port, &bytes),
        Step::Pass(seconds) => world.pass(seconds),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_input_panics_or_leaves_the_slice(
        is_v10 in any::<bool>(),
        on_v10 in any::<bool>(),
        is_vlan in any::<bool>(),
        steps in vec(step(), 1..60),
    ) {
        let version = |is_v10| if is_v10 { Version::V1_0 } else { Version::V1_3 };
        let space = || vec![flow::text::parse_match("tcp,nw_dst=10.0.0.0/8").unwrap()];
        let isolation = if is_vlan { Isolation::Vlan(TAG) } else { Isolation::Flowspace(space()) };
        let mut world = World::new(isolation, version(on_v10));
        world.join(0, version(is_v10));
        for step in steps {
            act(&mut world, version(is_v10), step);
        }
        for (port, frame) in &world.frames {
            prop_assert!([2, 3, 5, 6].contains(&port.0), "a frame leaves by {}", port);
            let is_core = port.0 > 3;
            if is_vlan && is_core {
                prop_assert_eq!(&frame[12..14], &[0x81, 0x00]);
                prop_assert_eq!(frame[15], TAG as u8);
            }
        }
    }
}
