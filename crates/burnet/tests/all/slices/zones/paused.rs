//! A slice that is paused: its tenant is disconnected and its rules forward, also after a reload and a restart of the node, until it is resumed.

use super::gone::{BOTH, World, of_blue, of_red};
use super::memory::flow_mod;
use openflow::message::FLOW_ADD;
use std::time::Instant;
use test_bed::PATIENCE;

impl World {
    /// The rules of blue, without their counters.
    fn listed(&self) -> Vec<String> {
        let own = self.rules_by(|flow| flow.owner == "slice.blue");
        let line = |flow: operator::contract::FlowView| {
            format!("{} {} {} {}", flow.priority, flow.cookie, flow.matching, flow.actions)
        };
        let mut lines: Vec<String> = own.into_iter().map(line).collect();
        lines.sort();
        lines
    }

    /// A frame with the tag of blue enters at port 3. Waits until the host at port 2 has it.
    fn check_forwards(&self) {
        let received = || {
            let mut counters = self.network.host_counters().into_iter();
            counters.find(|(name, _)| name == "h2").map(|(_, it)| it.frames_in)
        };
        let (before, begin) = (received(), Instant::now());
        let frame =
            [&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 3, 0x81, 0, 0, 10, 0x88, 0xb5][..], &[0; 50]].concat();
        self.network.send_frame("h3", frame).unwrap();
        while received() == before {
            assert!(begin.elapsed() < PATIENCE, "the frame did not arrive: {:#?}", self.node().flows());
        }
    }
}

#[test]
fn a_paused_slice_has_no_session_and_forwards_and_has_its_table_again_when_it_is_resumed() {
    for versions in BOTH {
        let mut world = World::new(versions);
        let all = of_blue(&world.blue, &[1, 2]) + &of_red(&world.red);
        let (listed, table, red) = (world.listed(), world.blue.rules(), world.node().pid_of("slice.red"));
        world.node().wait("the group is known", |_| {
            versions == emulator::Versions::Only10 || world.things_of_blue() == 1
        });
        let things = world.things_of_blue();
        world.pause();
        assert!(!world.blue.hear_end(), "the tenant is disconnected, and not dialled again");
        let check = |world: &World| {
            world.node().wait("its rules are as before", |_| {
                (world.listed(), world.things_of_blue()) == (listed.clone(), things)
            });
            world.check_forwards();
            assert!(world.ping(), "red goes on");
            assert!(world.node().pid_of("slice.blue").is_none());
        };
        check(&world);
        assert_eq!(world.node().pid_of("slice.red"), red);
        world.node().reload().unwrap();
        let without = world.bed.file("wanted.toml", &of_red(&world.red));
        let dry_run = ["slice", "apply", without.to_str().unwrap(), "--dry-run"];
        assert!(world.bed.run(&dry_run).status.success());
        check(&world);
        world.node = None;
        world.start_paused(&all);
        check(&world);
        assert!(world.bed.run(&["slice", "resume", "blue"]).status.success());
        world.blue.accept();
        assert_eq!(world.blue.rules(), table);
        assert_eq!(world.listed(), listed);
        assert_eq!(world.blue.do_it(flow_mod(FLOW_ADD, 9, "in_port=2", "output:1")), []);
        world.check_forwards();
    }
}
