//! What the supervisor does about what, each case as a sentence. No process is started.

use crate::world::{CRASHED, KILLED, World, app};
use monitor::protocol::FaultCause;
use monitor::supervisor::{ChildId, ProcessEnd, Supervisor, SupervisorEvent};
use monitor::{AppRole, AppSpec, AppState, Timing, Verb, ZoneKind};

/// Lets something happen to a running node (hub in a process zone, switch trusted) and compares what is done about it.
#[track_caller]
fn check(happens: impl FnOnce(&mut World), expected: &[&str]) -> World {
    let mut world = World::running();
    happens(&mut world);
    assert_eq!(world.take_commands(), expected);
    assert_eq!(world.broken, Vec::<String>::new());
    world
}

fn zone_fault(generation: u64) -> SupervisorEvent {
    let (app, cause) = ("hub".into(), FaultCause::SentGarbage);
    SupervisorEvent::ZoneFault { app, generation, cause, reason: "garbage at byte 7".into() }
}

fn last_reason(world: &World, app: &str) -> String {
    world.status(app).last_end.map(|end| end.reason).unwrap_or_default()
}

#[test]
fn apps_are_started_when_the_kernel_is_ready_and_not_before() {
    let mut world = World::new(vec![app("hub", ZoneKind::Process), app("switch", ZoneKind::Trusted)]);
    assert_eq!(world.take_commands(), ["start kernel.1"]);
    assert_eq!(world.state("hub"), AppState::Starting);
    world.hear(SupervisorEvent::KernelReady);
    assert_eq!(world.take_commands(), ["start zone 1.1", "load switch"]);
    assert_eq!((world.state("hub"), world.status("hub").pid), (AppState::Running, Some(4_711)));
    assert_eq!((world.state("switch"), world.status("switch").kind), (AppState::Running, ZoneKind::Trusted));
}

/// `hub` and the service `audit`, both running.
fn with_a_service() -> World {
    let audit = AppSpec { role: AppRole::Service, ..app("audit", ZoneKind::Process) };
    let mut world = World::new(vec![app("hub", ZoneKind::Process), audit]);
    world.hear(SupervisorEvent::KernelReady);
    world
}

#[test]
fn a_service_is_started_before_the_apps() {
    let mut world = with_a_service();
    assert_eq!(world.take_commands(), ["start kernel.1", "start zone 2.1", "start zone 1.1"]);
    assert_eq!(world.status("audit").role, AppRole::Service);
}

#[test]
fn a_service_that_crashes_again_is_back_before_an_app_would_be() {
    let mut world = with_a_service();
    world.app_ends("audit", CRASHED);
    world.take_commands();
    world.app_ends("audit", CRASHED);
    world.wait_ms(50);
    assert_eq!(world.take_commands(), ["detach 2.2", "start zone 2.3"]);
}

#[test]
fn the_operator_restarts_a_service_and_cannot_stop_it() {
    let mut world = with_a_service();
    world.take_commands();
    world.operator(Verb::Stop, "audit");
    assert_eq!(world.take_commands(), Vec::<String>::new());
    world.operator(Verb::Restart, "audit");
    assert_eq!(world.take_commands(), ["detach 2.1", "term zone 2.1", "start zone 2.2"]);
}

#[test]
fn an_app_that_crashes_is_restarted_at_once_and_the_reason_is_kept() {
    let world = check(|world| world.app_ends("hub", CRASHED), &["detach 1.1", "start zone 1.2"]);
    let status = world.status("hub");
    assert_eq!((status.state, status.restarts, status.zone), (AppState::Running, 1, 1));
    assert_eq!(last_reason(&world, "hub"), "killed by SIGSEGV");
}

#[test]
fn an_app_that_exits_by_itself_is_restarted_too() {
    let world = check(|world| world.app_ends("hub", ProcessEnd::Code(0)), &["detach 1.1", "start zone 1.2"]);
    assert_eq!(last_reason(&world, "hub"), "exit code 0, unasked");
}

#[test]
fn the_second_crash_is_answered_after_a_delay() {
    let crash_twice = |world: &mut World| {
        world.app_ends("hub", CRASHED);
        world.app_ends("hub", CRASHED);
    };
    let mut world = check(crash_twice, &["detach 1.1", "start zone 1.2", "detach 1.2"]);
    assert!(matches!(world.state("hub"), AppState::BackingOff { .. }));
    world.wait_ms(99);
    assert_eq!(world.take_commands(), Vec::<String>::new());
    world.wait_ms(1);
    assert_eq!(world.take_commands(), ["start zone 1.3"]);
}

#[test]
fn an_app_that_crashes_again_and_again_is_quarantined() {
    let mut world = World::running();
    let mut crashes = 0;
    while world.state("hub") != AppState::Quarantined {
        world.app_ends("hub", CRASHED);
        crashes += 1;
        while matches!(world.state("hub"), AppState::BackingOff { .. }) {
            world.wait_ms(1);
        }
    }
    assert_eq!(crashes, 11);
    world.take_commands();
    world.wait_ms(1_000_000);
    assert_eq!(world.take_commands(), Vec::<String>::new());
    assert_eq!(world.broken, Vec::<String>::new());
}

#[test]
fn a_quarantined_app_starts_again_at_the_operators_word_with_its_failures_forgotten() {
    for verb in [Verb::Restart, Verb::Start] {
        let mut world = World::running();
        while world.state("hub") != AppState::Quarantined {
            world.app_ends("hub", CRASHED);
            world.wait_ms(u64::from(matches!(world.state("hub"), AppState::BackingOff { .. })));
        }
        world.take_commands();
        world.operator(verb, "hub");
        world.app_ends("hub", CRASHED);
        assert_eq!(world.take_commands(), ["start zone 1.12", "detach 1.12", "start zone 1.13"]);
    }
}

#[test]
fn a_process_that_cannot_be_started_is_a_failure_of_the_app() {
    let mut world = World::new(vec![app("hub", ZoneKind::Process)]);
    world.hear_one(SupervisorEvent::KernelReady);
    let who = ChildId::Zone { zone: 1, generation: 1 };
    world.alive.clear();
    world.hear_one(SupervisorEvent::StartFailed { who, reason: "it could not be started: no memory".into() });
    assert_eq!(world.take_commands(), ["start kernel.1", "start zone 1.1", "start zone 1.2"]);
    assert_eq!(last_reason(&world, "hub"), "it could not be started: no memory");
}

#[test]
fn a_zone_that_breaks_its_port_is_killed_and_that_is_the_reason_kept() {
    let fault = |world: &mut World| world.hear(zone_fault(1));
    let world = check(fault, &["detach 1.1", "kill zone 1.1", "start zone 1.2"]);
    assert_eq!(last_reason(&world, "hub"), "garbage at byte 7");
}

#[test]
fn a_fault_of_a_generation_that_is_over_is_nobodys() {
    check(|world| world.hear(zone_fault(0)), &[]);
    check(|world| world.hear(zone_fault(2)), &[]);
    let cause = FaultCause::SentGarbage;
    let unknown =
        SupervisorEvent::ZoneFault { app: "nobody".into(), generation: 1, cause, reason: String::new() };
    check(|world| world.hear(unknown), &[]);
    let late = SupervisorEvent::Exited {
        who: ChildId::Zone { zone: 1, generation: 0 },
        end: KILLED,
        last_line: None,
    };
    check(|world| world.hear(late), &[]);
    let stranger = SupervisorEvent::Exited {
        who: ChildId::Zone { zone: 9, generation: 1 },
        end: KILLED,
        last_line: None,
    };
    check(|world| world.hear(stranger), &[]);
}

#[test]
fn a_trusted_app_that_panics_runs_in_a_process_zone_from_then_on() {
    let panics = |world: &mut World| {
        world.hear(SupervisorEvent::TrustedFault {
            app: "switch".into(),
            reason: "it panicked: index 7".into(),
        });
    };
    let mut world = check(panics, &["unload switch", "start zone 2.2"]);
    let status = world.status("switch");
    assert_eq!((status.kind, status.zone), (ZoneKind::Process, 2));
    assert_eq!(status.demoted.map(|demoted| demoted.reason).as_deref(), Some("it panicked: index 7"));
    world.operator(Verb::Restart, "switch");
    assert_eq!(world.take_commands(), ["detach 2.2", "term zone 2.2", "start zone 2.3"]);
}

#[test]
fn a_trusted_app_that_is_beyond_a_hard_limit_runs_in_a_process_zone_from_then_on() {
    let beyond = |generation| SupervisorEvent::ZoneFault {
        app: "switch".into(),
        generation,
        cause: FaultCause::PassedLimit,
        reason: "cpu_percent: it used 60 %, above its hard limit of 50 %".into(),
    };
    check(|world| world.hear(beyond(0)), &[]);
    let twice = |world: &mut World| {
        world.hear(beyond(1));
        world.hear(beyond(1));
    };
    let world = check(twice, &["unload switch", "start zone 2.2"]);
    let demoted = world.status("switch").demoted.map(|demoted| demoted.reason);
    assert!(demoted.is_some_and(|reason| reason.starts_with("cpu_percent: it used 60 %")));
}

#[test]
fn a_second_worker_that_reports_the_same_panic_changes_nothing() {
    let fault = || SupervisorEvent::TrustedFault { app: "switch".into(), reason: "it panicked".into() };
    let panics = |world: &mut World| {
        world.hear(fault());
        world.hear(fault());
    };
    check(panics, &["unload switch", "start zone 2.2"]);
}

#[test]
fn a_kernel_crash_restarts_the_kernel_and_all_zones_and_demotes_the_trusted() {
    let crash = |world: &mut World| {
        world.kernel_ends(CRASHED);
        world.hear(SupervisorEvent::KernelReady);
    };
    let expected = ["term zone 1.1", "start kernel.2", "start zone 1.2", "start zone 2.2"];
    let world = check(crash, &expected);
    let reason = "the kernel process ended: killed by SIGSEGV";
    assert_eq!(world.status("switch").demoted.map(|demoted| demoted.reason).as_deref(), Some(reason));
    assert_eq!(world.status("switch").kind, ZoneKind::Process);
    assert_eq!(last_reason(&world, "hub"), reason);
    let kernel = world.supervisor.kernel_status(0);
    assert_eq!((kernel.restarts, kernel.pid), (1, Some(4_711)));
    assert_eq!(kernel.last_end.map(|end| end.reason).as_deref(), Some("killed by SIGSEGV"));
}

#[test]
fn a_kernel_that_exits_without_a_word_was_taken_down_by_whom_it_trusted() {
    for code in [0, 1, 2, 101] {
        let world =
            check(|world| world.kernel_ends(ProcessEnd::Code(code)), &["term zone 1.1", "start kernel.2"]);
        assert!(world.status("switch").demoted.is_some(), "exit code {code}");
        assert_eq!(world.exit, None);
    }
}

#[test]
fn a_kernel_that_says_why_it_exits_demotes_nobody() {
    let fatal = |world: &mut World| {
        world.hear(SupervisorEvent::KernelFatal { exit_code: 1, message: "the disk is full".into() });
        world.kernel_ends(ProcessEnd::Code(1));
        world.hear(SupervisorEvent::KernelReady);
    };
    let world = check(fatal, &["term zone 1.1", "start kernel.2", "start zone 1.2", "load switch"]);
    assert_eq!(world.status("switch").demoted, None);
    assert_eq!(last_reason(&world, "switch"), "the kernel process ended: the disk is full");
}

#[test]
fn an_app_that_was_not_loaded_when_the_kernel_crashed_keeps_its_trust() {
    let stopped = |world: &mut World| {
        world.operator(Verb::Stop, "switch");
        world.kernel_ends(CRASHED);
        world.hear(SupervisorEvent::KernelReady);
        world.operator(Verb::Start, "switch");
    };
    let expected = ["unload switch", "term zone 1.1", "start kernel.2", "start zone 1.2", "load switch"];
    check(stopped, &expected);
}

#[test]
fn a_kernel_whose_workers_stand_still_is_killed_and_the_trusted_are_demoted() {
    let hang = |world: &mut World| {
        world.wait_ms(10_000);
        world.silence_ms(3_000);
    };
    let world = check(hang, &["kill kernel.1", "term zone 1.1", "start kernel.2"]);
    let reason = "the kernel process ended: a worker made no progress for 3000 ms";
    assert_eq!(world.status("switch").demoted.map(|demoted| demoted.reason).as_deref(), Some(reason));
}

#[test]
fn a_kernel_that_is_silent_for_less_lives() {
    let pause = |world: &mut World| {
        world.silence_ms(2_999);
        world.hear(SupervisorEvent::KernelAlive);
        world.silence_ms(2_999);
    };
    check(pause, &[]);
}

#[test]
fn a_monitor_that_was_stopped_itself_does_not_blame_the_kernel() {
    let stopped = |world: &mut World| {
        world.now_ms += 60_000;
        world.hear(SupervisorEvent::Tick);
        world.silence_ms(2_999);
    };
    check(stopped, &[]);
}

#[test]
fn a_kernel_that_does_not_become_ready_is_killed_and_started_again() {
    let mut world = World::new(vec![app("hub", ZoneKind::Process)]);
    world.silence_ms(9_999);
    assert_eq!(world.take_commands(), ["start kernel.1"]);
    world.silence_ms(1);
    assert_eq!(world.take_commands(), ["kill kernel.1", "start kernel.2"]);
}

#[test]
fn a_kernel_that_speaks_garbage_is_killed() {
    let garbage =
        |world: &mut World| world.hear(SupervisorEvent::KernelFault { reason: "not a message".into() });
    let world = check(garbage, &["kill kernel.1", "term zone 1.1", "start kernel.2"]);
    assert_eq!(last_reason(&world, "hub"), "the kernel process ended: not a message");
}

#[test]
fn a_bad_configuration_ends_the_node_with_the_kernels_code_and_sentence() {
    let mut world = World::new(vec![app("hub", ZoneKind::Process)]);
    world.hear(SupervisorEvent::KernelFatal { exit_code: 2, message: "port 6653 is in use".into() });
    world.kernel_ends(ProcessEnd::Code(2));
    assert_eq!(world.exit, Some((2, Some("port 6653 is in use".into()))));
    assert_eq!(world.take_commands(), ["start kernel.1"]);
}

#[test]
fn a_kernel_that_refuses_to_start_without_a_word_ends_the_node_with_code_2() {
    let mut world = World::new(vec![]);
    world.kernel_ends(ProcessEnd::Code(2));
    assert_eq!(world.exit.map(|(code, _)| code), Some(2));
}

#[test]
fn a_failure_never_ends_the_node_with_the_code_of_success() {
    let mut world = World::new(vec![]);
    world.hear(SupervisorEvent::KernelFatal { exit_code: 0, message: "odd".into() });
    world.kernel_ends(ProcessEnd::Code(0));
    assert_eq!(world.exit, Some((1, Some("odd".into()))));
}

#[test]
fn a_kernel_that_crashes_six_times_in_a_minute_and_six_times_in_safe_mode_ends_the_node() {
    let mut world = World::running();
    let mut crashes = 0;
    while world.exit.is_none() {
        assert_eq!(world.supervisor.safe_mode_status(0).is_some(), crashes >= 6);
        world.kernel_ends(CRASHED);
        crashes += 1;
        world.wait_ms(1_000);
        world.hear(SupervisorEvent::KernelReady);
    }
    assert_eq!(crashes, 12);
    let (code, message) = world.exit.clone().unwrap();
    assert_eq!(code, 1);
    assert!(message.unwrap().contains("after 5 restarts within 60 s in safe mode, so the node gives up"));
    assert_eq!((world.alive.len(), world.broken.len()), (0, 0));
}

#[test]
fn a_kernel_that_crashes_now_and_then_is_always_restarted() {
    let mut world = World::running();
    for _ in 0..50 {
        world.kernel_ends(CRASHED);
        world.wait_ms(1_000);
        world.hear(SupervisorEvent::KernelReady);
        world.wait_ms(15_000);
        assert_eq!(world.exit, None);
    }
}

#[test]
fn the_operator_restarts_stops_and_starts() {
    check(|world| world.operator(Verb::Restart, "hub"), &["detach 1.1", "term zone 1.1", "start zone 1.2"]);
    check(|world| world.operator(Verb::Restart, "switch"), &["unload switch", "load switch"]);
    check(|world| world.operator(Verb::Start, "hub"), &[]);
    check(|world| world.operator(Verb::Stop, "nobody"), &[]);
    let stop = |world: &mut World| {
        world.operator(Verb::Stop, "hub");
        world.operator(Verb::Stop, "hub");
        world.operator(Verb::Stop, "switch");
        world.wait_ms(100_000);
    };
    let mut world = check(stop, &["detach 1.1", "term zone 1.1", "unload switch"]);
    assert_eq!((world.state("hub"), world.state("switch")), (AppState::Stopped, AppState::Stopped));
    assert_eq!(last_reason(&world, "hub"), "the operator stopped it");
    world.operator(Verb::Start, "hub");
    world.operator(Verb::Start, "switch");
    assert_eq!(world.take_commands(), ["start zone 1.2", "load switch"]);
}

#[test]
fn an_app_that_does_not_end_when_asked_is_killed_after_two_seconds() {
    let stubborn = |world: &mut World| {
        world.obedient = false;
        world.operator(Verb::Stop, "hub");
        world.wait_ms(1_999);
    };
    let mut world = check(stubborn, &["detach 1.1", "term zone 1.1"]);
    assert_eq!(world.state("hub"), AppState::Ending);
    world.wait_ms(1);
    assert_eq!(world.take_commands(), ["kill zone 1.1"]);
    assert_eq!(world.state("hub"), AppState::Stopped);
}

#[test]
fn a_shutdown_tells_the_kernel_ends_the_zones_and_exits_with_code_0() {
    let world = check(|world| world.hear(SupervisorEvent::ShutdownAsked), &["shut down", "term zone 1.1"]);
    assert_eq!(world.exit, Some((0, None)));
    assert!(world.alive.is_empty());
}

#[test]
fn a_shutdown_kills_a_process_that_does_not_end() {
    let stubborn = |world: &mut World| {
        world.obedient = false;
        world.hear(SupervisorEvent::ShutdownAsked);
        world.wait_ms(2_000);
    };
    let world = check(stubborn, &["shut down", "term zone 1.1", "kill zone 1.1", "kill kernel.1"]);
    assert_eq!(world.exit, Some((0, None)));
}

#[test]
fn a_second_signal_kills_at_once() {
    let impatient = |world: &mut World| {
        world.obedient = false;
        world.hear(SupervisorEvent::ShutdownAsked);
        world.hear(SupervisorEvent::ShutdownAsked);
        world.hear(SupervisorEvent::ShutdownAsked);
    };
    let world = check(impatient, &["shut down", "term zone 1.1", "kill zone 1.1", "kill kernel.1"]);
    assert_eq!(world.exit.map(|(code, _)| code), Some(0));
}

#[test]
fn nothing_is_restarted_during_a_shutdown() {
    let mut world = World::running();
    world.obedient = false;
    world.hear(SupervisorEvent::ShutdownAsked);
    world.take_commands();
    world.app_ends("hub", CRASHED);
    world.operator(Verb::Start, "hub");
    world.kernel_ends(CRASHED);
    assert_eq!(world.take_commands(), Vec::<String>::new());
    assert_eq!(world.exit, Some((0, None)));
}

#[test]
fn the_operator_starts_nothing_during_a_shutdown() {
    let late = |world: &mut World| {
        world.operator(Verb::Stop, "hub");
        world.obedient = false;
        world.hear(SupervisorEvent::ShutdownAsked);
        world.operator(Verb::Start, "hub");
        world.operator(Verb::Restart, "switch");
    };
    let world = check(late, &["detach 1.1", "term zone 1.1", "shut down"]);
    assert_eq!(world.state("hub"), AppState::Stopped);
}

#[test]
fn a_fault_still_counts_when_the_kernel_ends_before_the_process_does() {
    let mut world = World::running();
    world.held = true;
    world.hear(zone_fault(1));
    world.kernel_ends(CRASHED);
    assert_eq!(world.state("hub"), AppState::Ending);
    world.app_ends("hub", KILLED);
    assert_eq!(last_reason(&world, "hub"), "garbage at byte 7");
}

#[test]
fn a_fault_hurries_a_process_that_was_asked_to_end() {
    let hurried = |world: &mut World| {
        world.obedient = false;
        world.operator(Verb::Restart, "hub");
        world.hear(zone_fault(1));
    };
    check(hurried, &["detach 1.1", "term zone 1.1", "kill zone 1.1", "start zone 1.2"]);
}

#[test]
fn a_child_that_the_machine_holds_does_not_hold_the_node() {
    let mut supervisor = Supervisor::new(vec![], Timing::default()).unwrap();
    supervisor.on_event(SupervisorEvent::Begin, 0);
    supervisor.on_event(SupervisorEvent::ShutdownAsked, 1);
    let commands: Vec<_> =
        (1..20).flat_map(|half| supervisor.on_event(SupervisorEvent::Tick, half * 500)).collect();
    let last = format!("{:?}", commands.last());
    assert!(
        last.contains("Exit { code: 1") && last.contains("although a child process did not end"),
        "{last}"
    );
}

fn add(world: &mut World, name: &str, kind: ZoneKind) {
    world.hear(SupervisorEvent::AppAdded { spec: Box::new(app(name, kind)) });
}

#[test]
fn an_app_that_is_added_starts_with_a_zone_of_its_own_and_one_that_is_removed_ends() {
    let mut world = check(|world| add(world, "paths", ZoneKind::Process), &["start zone 3.1"]);
    assert_eq!(world.status("paths").restarts, 0);
    world.operator(Verb::Remove, "paths");
    world.operator(Verb::Remove, "switch");
    assert_eq!(world.take_commands(), ["detach 3.1", "term zone 3.1", "unload switch"]);
    assert_eq!(world.supervisor.statuses(0).len(), 1);
    // The number of neither is taken while there are others, and a name that was there goes on counting.
    add(&mut world, "paths", ZoneKind::Process);
    assert_eq!(world.take_commands(), ["start zone 4.2"]);
    assert_eq!(world.status("paths").restarts, 0);
}

#[test]
fn an_app_that_is_added_again_runs_in_its_new_version() {
    check(|world| add(world, "hub", ZoneKind::Process), &["detach 1.1", "term zone 1.1", "start zone 1.2"]);
    check(|world| add(world, "switch", ZoneKind::Process), &["unload switch", "start zone 2.2"]);
}

#[test]
fn a_removed_app_is_forgotten_only_when_its_process_is_gone() {
    let mut world = World::running();
    world.obedient = false;
    world.operator(Verb::Remove, "hub");
    world.operator(Verb::Start, "hub");
    assert_eq!(world.state("hub"), AppState::Ending);
    world.wait_ms(2_000);
    assert_eq!(world.supervisor.statuses(0).len(), 1);
    assert_eq!(world.broken, Vec::<String>::new());
}

#[test]
fn zones_of_removed_apps_are_used_again_when_there_are_no_others_and_no_more_apps_run_than_may() {
    let mut world = World::running();
    for number in 0..monitor::APPS_MAX - 3 {
        add(&mut world, &format!("app-{number}"), ZoneKind::Process);
    }
    world.operator(Verb::Remove, "hub");
    add(&mut world, "last", ZoneKind::Process);
    add(&mut world, "again", ZoneKind::Process);
    assert_eq!((world.status("last").zone, world.status("again").zone), (1_023, 1));
    world.take_commands();
    add(&mut world, "one-too-many", ZoneKind::Process);
    assert_eq!(world.take_commands(), Vec::<String>::new());
    assert_eq!(world.broken, Vec::<String>::new());
}

#[test]
fn an_app_that_is_added_has_the_number_that_is_its_own_unless_another_has_it() {
    let mut world = World::running();
    let numbered = |name: &str, zone| AppSpec { zone: Some(zone), ..app(name, ZoneKind::Process) };
    world.hear(SupervisorEvent::AppAdded { spec: Box::new(numbered("paths", 9)) });
    world.hear(SupervisorEvent::AppAdded { spec: Box::new(numbered("hosts", 1)) });
    assert_eq!((world.status("paths").zone, world.status("hosts").zone), (9, 3));
    world.operator(Verb::Remove, "paths");
    world.hear(SupervisorEvent::AppAdded { spec: Box::new(numbered("paths", 9)) });
    assert_eq!((world.status("paths").zone, world.broken.len()), (9, 0));
}
