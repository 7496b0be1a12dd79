//! The reactions of the supervisor to packages whose verification fails. No process is started.

use crate::world::{CRASHED, World, app};
use monitor::supervisor::SupervisorEvent;
use monitor::{AppSpec, AppState, SafeModePlan, Validity, Verb, ZoneKind};

fn packaged(name: &str, kind: ZoneKind) -> AppSpec {
    AppSpec { packaged: true, ..app(name, kind) }
}

/// `hub` from a package, in this kind of zone, about whose start somebody is asked.
fn asked(kind: ZoneKind) -> World {
    let mut world = World::new(vec![packaged("hub", kind)]);
    world.hear(SupervisorEvent::KernelReady);
    assert_eq!(world.take_commands(), ["start kernel.1", "ask about hub"]);
    world
}

fn running(kind: ZoneKind) -> World {
    let mut world = asked(kind);
    world.says("hub", Validity::Good);
    assert_eq!(world.state("hub"), AppState::Running);
    world.take_commands();
    world
}

fn revoked() -> Validity {
    Validity::Refused("is signed with a revoked key".to_owned())
}

#[track_caller]
fn check(mut world: World, expected: &[&str], state: AppState) -> World {
    assert_eq!(world.take_commands(), expected);
    assert_eq!(world.state("hub"), state);
    assert_eq!(world.broken, Vec::<String>::new());
    world
}

fn last_reason(world: &World) -> String {
    world.status("hub").last_end.map(|end| end.reason).unwrap_or_default()
}

const NEVER: [&str; 0] = [];

#[test]
fn nothing_of_a_package_starts_before_somebody_vouches_for_it() {
    let mut world = asked(ZoneKind::Process);
    world.wait_ms(60_000);
    let mut world = check(world, &NEVER, AppState::Starting);
    world.says("hub", Validity::Good);
    check(world, &["start zone 1.1"], AppState::Running);
}

#[test]
fn a_package_that_is_refused_or_of_which_nobody_can_tell_is_not_started_and_not_tried_again() {
    for says in [revoked(), Validity::Unknown("no disk".to_owned())] {
        let mut world = asked(ZoneKind::Process);
        world.says("hub", says);
        world.wait_ms(120_000);
        let mut world = check(world, &NEVER, AppState::Refused);
        assert!(["is signed with a revoked key", "no disk"].contains(&last_reason(&world).as_str()));
        let then = "it stays stopped; fix the cause, then run: burnet app restart hub";
        assert_eq!(world.take_incidents(), [format!("hub package refused by nobody; {then}")]);
        assert_eq!(world.status("hub").restarts, 0);
    }
}

#[test]
fn a_word_on_an_earlier_start_says_nothing() {
    let mut world = asked(ZoneKind::Process);
    let earlier = SupervisorEvent::Verified { zone: 1, check: 1, validity: revoked() };
    world.says("hub", Validity::Good);
    world.app_ends("hub", CRASHED);
    world.hear(earlier.clone());
    let mut world = check(world, &["start zone 1.1", "detach 1.1", "ask about hub"], AppState::Starting);
    world.hear(SupervisorEvent::Verified { zone: 1, check: 1, validity: Validity::Good });
    world.hear(SupervisorEvent::Verified { zone: 1, check: 3, validity: Validity::Good });
    let mut world = check(world, &NEVER, AppState::Starting);
    world.says("hub", Validity::Good);
    check(world, &["start zone 1.2"], AppState::Running);
}

#[test]
fn what_runs_and_is_refused_is_killed_and_not_started_again() {
    let mut world = running(ZoneKind::Process);
    assert_eq!(world.supervisor.to_verify().len(), 1);
    world.says("hub", revoked());
    world.wait_ms(60_000);
    let world = check(world, &["detach 1.1", "kill zone 1.1"], AppState::Refused);
    assert_eq!(last_reason(&world), "is signed with a revoked key");
    assert_eq!(world.supervisor.to_verify().len(), 0);
    let mut world = running(ZoneKind::Trusted);
    world.says("hub", revoked());
    check(world, &["unload hub"], AppState::Refused);
}

#[test]
fn what_runs_and_of_which_nobody_can_tell_goes_on() {
    let mut world = running(ZoneKind::Process);
    for _ in 0..3 {
        world.says("hub", Validity::Unknown("no disk".to_owned()));
    }
    check(world, &NEVER, AppState::Running);
}

#[test]
fn the_operator_brings_back_what_was_refused_as_it_is_installed_now() {
    for verb in [Verb::Restart, Verb::Start] {
        let mut world = running(ZoneKind::Process);
        world.says("hub", revoked());
        world.take_commands();
        world.operator(verb, "hub");
        let mut world = check(world, &["look up hub"], AppState::Refused);
        world.hear(SupervisorEvent::NotFound { app: "hub".to_owned(), reason: "it is unsigned".to_owned() });
        let mut world = check(world, &NEVER, AppState::Refused);
        assert_eq!(last_reason(&world), "it is unsigned");
        let spec = Box::new(packaged("hub", ZoneKind::Process));
        world.hear(SupervisorEvent::AppAdded { spec });
        let mut world = check(world, &["ask about hub"], AppState::Starting);
        world.says("hub", Validity::Good);
        check(world, &["start zone 1.2"], AppState::Running);
    }
}

#[test]
fn who_lost_the_operators_word_leaves_the_kernel() {
    let lost = || Validity::NotTrusted("is no longer trusted by you".to_owned());
    let mut world = asked(ZoneKind::Trusted);
    world.says("hub", lost());
    let world = check(world, &["start zone 1.1"], AppState::Running);
    assert_eq!((world.status("hub").kind, world.status("hub").demoted.is_some()), (ZoneKind::Process, true));
    let mut world = running(ZoneKind::Trusted);
    world.says("hub", lost());
    let mut world = check(world, &["unload hub", "ask about hub"], AppState::Starting);
    world.says("hub", Validity::Good);
    let world = check(world, &["start zone 1.2"], AppState::Running);
    assert_eq!(world.status("hub").kind, ZoneKind::Process);
    // In a process zone nobody's word is needed.
    let mut world = running(ZoneKind::Process);
    world.says("hub", lost());
    check(world, &NEVER, AppState::Running);
}

#[test]
fn a_word_for_safe_mode_lets_nobody_into_the_kernel() {
    let plan = SafeModePlan { apps: vec!["hub".to_owned()], from_start: true };
    let mut world = World::with_safe_mode(vec![packaged("hub", ZoneKind::Trusted)], plan);
    world.hear(SupervisorEvent::KernelReady);
    world.hear(SupervisorEvent::LeaveSafeMode);
    world.hear(SupervisorEvent::Verified { zone: 1, check: 1, validity: Validity::Good });
    let expected = ["start kernel.1", "ask about hub", "ask about hub"];
    let mut world = check(world, &expected, AppState::Starting);
    world.says("hub", Validity::Good);
    check(world, &["load hub"], AppState::Running);
}

#[test]
fn a_start_that_waits_for_a_word_is_stopped_held_and_quarantined_like_any_other() {
    let mut world = asked(ZoneKind::Process);
    world.operator(Verb::Stop, "hub");
    world.says("hub", Validity::Good);
    let mut world = check(world, &NEVER, AppState::Stopped);
    world.operator(Verb::Quarantine, "hub");
    world.says("hub", revoked());
    check(world, &NEVER, AppState::Quarantined);
    let mut world = asked(ZoneKind::Process);
    world.kernel_ends(CRASHED);
    world.says("hub", Validity::Good);
    check(world, &["start kernel.2"], AppState::Starting);
}
