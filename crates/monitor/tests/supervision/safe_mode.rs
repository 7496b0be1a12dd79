//! Safe mode: when the node goes into it, what runs in it, and how it is left.

use crate::world::{CRASHED, World, app};
use monitor::supervisor::{ProcessEnd, SupervisorEvent};
use monitor::{AppRole, AppSpec, AppState, SafeModePlan, Verb, ZoneKind};

fn apps() -> Vec<AppSpec> {
    vec![
        app("hub", ZoneKind::Process),
        app("switch", ZoneKind::Trusted),
        app("paths", ZoneKind::Process),
        app("firewall", ZoneKind::Process),
    ]
}

/// A node of which the operator wants these in safe mode.
fn node(list: &[&str], from_start: bool) -> World {
    let apps_in_order = list.iter().map(ToString::to_string).collect();
    let mut world = World::with_safe_mode(apps(), SafeModePlan { apps: apps_in_order, from_start });
    world.hear(SupervisorEvent::KernelReady);
    world
}

/// The kernel crashes until the node is in safe mode.
fn crash_into_safe_mode(world: &mut World) {
    while world.supervisor.safe_mode_status(0).is_none() {
        world.take_commands();
        world.kernel_ends(CRASHED);
        while world.alive.iter().all(|alive| !alive.starts_with("kernel")) {
            world.wait_ms(100);
        }
        world.hear(SupervisorEvent::KernelReady);
    }
}

fn states(world: &World) -> Vec<(String, AppState, ZoneKind)> {
    let statuses = world.supervisor.statuses(0);
    statuses.into_iter().map(|status| (status.app, status.state, status.kind)).collect()
}

fn check(world: &World, expected: [(AppState, ZoneKind); 4]) {
    let got: Vec<_> = states(world).into_iter().map(|(_, state, kind)| (state, kind)).collect();
    assert_eq!(got, expected);
    assert_eq!(world.broken, Vec::<String>::new());
}

const RUNNING: AppState = AppState::Running;
const HELD: AppState = AppState::Held;
use ZoneKind::{Process, Trusted};

#[test]
fn a_kernel_that_ends_too_often_comes_back_with_the_operators_list_in_its_order_and_nobody_trusted() {
    let mut world = node(&["firewall", "switch"], false);
    crash_into_safe_mode(&mut world);
    let started: Vec<_> =
        world.take_commands().into_iter().filter(|command| command.starts_with("start")).collect();
    assert_eq!(started, ["start kernel.7", "start zone 4.7", "start zone 2.7"]);
    check(&world, [(HELD, Process), (RUNNING, Process), (HELD, Process), (RUNNING, Process)]);
    let why = world.supervisor.safe_mode_status(0).unwrap().reason;
    assert!(why.contains("killed by SIGSEGV; this was after 5 restarts within 60 s"), "{why}");
}

#[test]
fn without_a_list_no_app_runs_in_safe_mode() {
    let mut world = node(&[], true);
    check(&world, [(HELD, Process), (HELD, Trusted), (HELD, Process), (HELD, Process)]);
    assert_eq!(world.take_commands(), ["start kernel.1"]);
    world.wait_ms(100_000);
    assert_eq!(world.take_commands(), Vec::<String>::new());
}

#[test]
fn a_name_on_the_list_that_no_app_has_is_nobodys() {
    let world = node(&["nobody", "hub"], true);
    check(&world, [(RUNNING, Process), (HELD, Trusted), (HELD, Process), (HELD, Process)]);
}

#[test]
fn who_leaves_it_has_all_apps_back_and_trusts_those_again_that_did_nothing() {
    let mut world = node(&["switch"], true);
    world.take_commands();
    world.hear(SupervisorEvent::LeaveSafeMode);
    let expected =
        ["start zone 1.1", "detach 2.1", "term zone 2.1", "start zone 3.1", "start zone 4.1", "load switch"];
    assert_eq!(world.take_commands(), expected);
    check(&world, [(RUNNING, Process), (RUNNING, Trusted), (RUNNING, Process), (RUNNING, Process)]);
    world.hear(SupervisorEvent::LeaveSafeMode);
    assert_eq!(world.take_commands(), Vec::<String>::new());
}

#[test]
fn who_was_demoted_before_stays_so_afterwards() {
    let mut world = node(&["switch"], false);
    crash_into_safe_mode(&mut world);
    world.hear(SupervisorEvent::LeaveSafeMode);
    assert!(world.status("switch").demoted.is_some());
    check(&world, [(RUNNING, Process); 4]);
}

#[test]
fn a_kernel_that_was_left_to_itself_again_has_all_its_patience() {
    let mut world = node(&[], false);
    crash_into_safe_mode(&mut world);
    world.hear(SupervisorEvent::LeaveSafeMode);
    crash_into_safe_mode(&mut world);
    assert_eq!(world.exit, None);
    assert_eq!(world.kernel_generation, 13);
}

#[test]
fn an_app_that_the_operator_stopped_is_not_started_by_safe_mode_or_its_end() {
    let mut world = node(&["hub"], false);
    world.operator(Verb::Stop, "hub");
    world.operator(Verb::Stop, "paths");
    crash_into_safe_mode(&mut world);
    assert_eq!((world.state("hub"), world.state("paths")), (AppState::Stopped, AppState::Stopped));
    world.hear(SupervisorEvent::LeaveSafeMode);
    assert_eq!((world.state("hub"), world.state("paths")), (AppState::Stopped, AppState::Stopped));
}

#[test]
fn the_operator_may_start_one_app_after_the_other_in_it() {
    let mut world = node(&[], true);
    world.operator(Verb::Start, "switch");
    check(&world, [(HELD, Process), (RUNNING, Process), (HELD, Process), (HELD, Process)]);
    world.app_ends("switch", CRASHED);
    assert_eq!(world.state("switch"), RUNNING);
    world.kernel_ends(ProcessEnd::Code(1));
    world.hear(SupervisorEvent::KernelReady);
    check(&world, [(HELD, Process), (RUNNING, Process), (HELD, Process), (HELD, Process)]);
}

#[test]
fn a_node_that_ends_leaves_no_safe_mode() {
    let mut world = node(&[], true);
    world.obedient = false;
    world.hear(SupervisorEvent::ShutdownAsked);
    world.take_commands();
    world.hear(SupervisorEvent::LeaveSafeMode);
    assert_eq!(world.take_commands(), Vec::<String>::new());
}

#[test]
fn an_app_that_the_operator_stopped_stays_so_when_the_kernel_ends_before_it_has() {
    for verb in [Verb::Stop, Verb::Quarantine] {
        let mut world = World::running();
        world.held = true;
        world.operator(verb, "hub");
        world.kernel_ends(CRASHED);
        world.hear(SupervisorEvent::KernelReady);
        world.held = false;
        world.app_ends("hub", CRASHED);
        let expected = if verb == Verb::Stop { AppState::Stopped } else { AppState::Quarantined };
        assert_eq!(world.state("hub"), expected);
    }
}

fn service(name: &str) -> AppSpec {
    AppSpec { role: AppRole::Service, ..app(name, ZoneKind::Process) }
}

/// Two services, and an app.
fn node_with_services() -> World {
    let specs = vec![app("hub", ZoneKind::Process), service("audit"), service("security")];
    let mut world = World::with_safe_mode(specs, SafeModePlan::default());
    world.hear(SupervisorEvent::KernelReady);
    world.take_commands();
    world
}

fn both_fail(world: &mut World) {
    world.app_ends("audit", CRASHED);
    world.wait_ms(1_000);
    world.app_ends("security", CRASHED);
    world.hear(SupervisorEvent::KernelReady);
    world.wait_ms(1_000);
}

#[test]
fn several_services_that_fail_are_the_nodes_failure_and_again_safe_mode() {
    let mut world = node_with_services();
    both_fail(&mut world);
    let commands = world.take_commands();
    assert!(commands.contains(&"kill kernel.1".to_owned()), "{commands:?}");
    let incidents = world.take_incidents();
    let anew = "(node) restarted by nobody; the kernel process and all zones restart";
    assert_eq!(incidents.iter().filter(|incident| *incident == anew).count(), 1, "{incidents:?}");
    assert!(incidents.iter().all(|incident| !incident.starts_with("(kernel)")), "{incidents:?}");
    assert_eq!(world.state("hub"), RUNNING);
    both_fail(&mut world);
    assert!(world.supervisor.safe_mode_status(0).is_some());
    assert_eq!((world.state("audit"), world.state("security"), world.state("hub")), (RUNNING, RUNNING, HELD));
    both_fail(&mut world);
    assert_eq!((world.state("audit"), world.state("security")), (RUNNING, RUNNING));
    assert_eq!((world.exit.clone(), world.broken.len(), world.kernel_generation), (None, 0, 3));
}

#[test]
fn the_app_that_failed_just_before_the_services_is_suspected() {
    let mut world = node_with_services();
    world.app_ends("hub", CRASHED);
    both_fail(&mut world);
    let finding = world.incidents.iter().find(|incident| incident.app.is_none()).unwrap().finding.clone();
    assert_eq!(finding.culprit.as_deref(), Some("hub"), "{finding:?}");
}

#[test]
fn a_node_that_is_started_anew_trusts_whom_it_trusted() {
    let specs = vec![app("switch", ZoneKind::Trusted), service("audit"), service("security")];
    let mut world = World::with_safe_mode(specs, SafeModePlan::default());
    world.hear(SupervisorEvent::KernelReady);
    both_fail(&mut world);
    assert_eq!((world.status("switch").kind, world.status("switch").demoted), (Trusted, None));
}

#[test]
fn a_service_that_never_gets_up_restarts_the_node_once_and_is_given_up_in_safe_mode() {
    let mut world = node_with_services();
    for _ in 0..200 {
        if world.state("audit") == RUNNING {
            world.app_ends("audit", CRASHED);
        }
        world.hear(SupervisorEvent::KernelReady);
        world.wait_ms(2_000);
    }
    assert_eq!((world.state("audit"), world.state("security")), (AppState::Quarantined, RUNNING));
    assert!(world.supervisor.safe_mode_status(0).is_some());
    assert_eq!((world.exit.clone(), world.broken.len()), (None, 0));
}

#[test]
fn services_are_first_and_none_is_left_out_in_safe_mode() {
    let specs = vec![app("hub", ZoneKind::Process), app("paths", ZoneKind::Process), service("audit")];
    let plan = SafeModePlan { apps: vec!["paths".into(), "hub".into()], from_start: true };
    let mut world = World::with_safe_mode(specs, plan);
    world.hear(SupervisorEvent::KernelReady);
    assert_eq!(
        world.take_commands(),
        ["start kernel.1", "start zone 3.1", "start zone 2.1", "start zone 1.1"]
    );
}
