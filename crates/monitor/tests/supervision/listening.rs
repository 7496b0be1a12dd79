//! A service of which an address is in use: it runs without it, and the node does not suffer.

use crate::world::{World, app};
use monitor::supervisor::{ChildId, SupervisorEvent};
use monitor::{AppRole, AppSpec, AppState, ZoneKind};

const WHY: &str = "it cannot listen on 127.0.0.1:8181: another program uses it";

fn listens(world: &mut World, generation: u64, is_new: bool, missing: Option<&str>) {
    let who = ChildId::Zone { zone: 1, generation };
    world.hear(SupervisorEvent::Listens { who, is_new, missing: missing.map(str::to_owned) });
}

/// A service that has started without one of its addresses, and an app.
fn node() -> World {
    let service = AppSpec { role: AppRole::Service, ..app("web", ZoneKind::Process) };
    let mut world = World::new(vec![service, app("hub", ZoneKind::Process)]);
    world.hear(SupervisorEvent::KernelReady);
    world.take_commands();
    listens(&mut world, 1, false, Some(WHY));
    world
}

fn note(world: &World) -> Option<String> {
    world.status("web").note
}

#[test]
fn a_service_without_an_address_tries_again_and_again_and_never_counts_as_failed() {
    let mut world = node();
    let mut tries = 0;
    for _ in 0..1_200 {
        world.wait_ms(500);
        for command in world.take_commands() {
            assert_eq!(command, "listen zone 1.1");
            tries += 1;
            listens(&mut world, 1, false, Some(WHY));
        }
    }
    // Ten minutes: after 1, 2, 4, 8 and 16 seconds, and then each half minute.
    assert_eq!(tries, 23);
    assert_eq!((world.state("web"), world.state("hub")), (AppState::Running, AppState::Running));
    assert_eq!((world.take_incidents(), world.supervisor.safe_mode_status(0)), (Vec::<String>::new(), None));
    let expected = format!("{WHY}; it runs on without this address, and tries again");
    assert_eq!(note(&world), Some(expected));
}

#[test]
fn when_the_address_is_free_the_service_starts_again_with_it() {
    let mut world = node();
    world.wait_ms(1_000);
    assert_eq!(world.take_commands(), ["listen zone 1.1"]);
    listens(&mut world, 1, true, None);
    assert_eq!(world.take_commands(), ["detach 1.1", "term zone 1.1", "start zone 1.2"]);
    assert_eq!((note(&world), world.take_incidents()), (None, Vec::new()));
    listens(&mut world, 2, false, None);
    world.wait_ms(60_000);
    assert_eq!((world.take_commands(), world.broken.clone()), (Vec::<String>::new(), Vec::new()));
    // A late word about the first start.
    listens(&mut world, 1, true, Some(WHY));
    assert_eq!((world.take_commands(), note(&world)), (Vec::<String>::new(), None));
}
