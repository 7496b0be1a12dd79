//! What becomes an incident, and who is found to have done it.

use crate::world::{CRASHED, KILLED, World, app};
use monitor::incident::{FACTS_MAX, Incident};
use monitor::protocol::FaultCause;
use monitor::supervisor::{ProcessEnd, SupervisorEvent};
use monitor::{Verb, ZoneKind};
use std::collections::BTreeSet;

/// Two that are trusted and two that are not.
fn node() -> World {
    let mut world = World::new(vec![
        app("hub", ZoneKind::Process),
        app("switch", ZoneKind::Trusted),
        app("paths", ZoneKind::Trusted),
        app("firewall", ZoneKind::Process),
    ]);
    world.hear(SupervisorEvent::KernelReady);
    world
}

#[track_caller]
fn check(happens: impl FnOnce(&mut World), expected: &[&str]) -> Vec<Incident> {
    let mut world = node();
    happens(&mut world);
    let incidents = world.incidents.clone();
    assert_eq!(world.take_incidents(), expected);
    assert_eq!(world.broken, Vec::<String>::new());
    incidents
}

/// The kernel crashes while it calls these zones.
fn crash_in(zones: &[u16]) -> impl FnOnce(&mut World) {
    move |world| {
        world.hear(SupervisorEvent::KernelCalled { zones: zones.to_vec() });
        world.kernel_ends(CRASHED);
    }
}

#[test]
fn an_app_that_crashes_is_its_own_culprit() {
    let incidents = check(|world| world.app_ends("hub", CRASHED), &["hub ended by hub; it restarts now"]);
    assert_eq!((incidents[0].evidence.signal, incidents[0].reason.as_str()), (Some(11), "killed by SIGSEGV"));
    assert_eq!(incidents[0].generation, 1);
    let exits = |world: &mut World| world.app_ends("hub", ProcessEnd::Code(3));
    assert_eq!(check(exits, &["hub ended by hub; it restarts now"])[0].evidence.exit_code, Some(3));
    let killed = check(|world| world.app_ends("hub", KILLED), &["hub ended by hub; it restarts now"]);
    assert!(killed[0].finding.sentence.contains("SIGKILL: by its memory limit, or by a user"));
}

#[test]
fn what_the_operator_asks_for_is_no_incident_but_a_quarantine_is() {
    let asks = |world: &mut World| {
        world.operator(Verb::Restart, "hub");
        world.operator(Verb::Stop, "switch");
        world.operator(Verb::Start, "switch");
        world.hear(SupervisorEvent::ShutdownAsked);
    };
    check(asks, &[]);
    let quarantine = |world: &mut World| {
        let why = Some("it floods".to_owned());
        world.hear(SupervisorEvent::Operator { app: "hub".into(), verb: Verb::Quarantine, why });
        world.operator(Verb::Quarantine, "hub");
        world.operator(Verb::Quarantine, "switch");
    };
    let expected = [
        "hub quarantined by nobody; it stays stopped until you run: burnet app restart hub",
        "switch quarantined by nobody; it stays stopped until you run: burnet app restart switch",
    ];
    let incidents = check(quarantine, &expected);
    assert_eq!(incidents[0].reason, "the operator quarantined it: it floods");
}

#[test]
fn a_fault_of_a_port_and_a_caught_panic_are_told_apart() {
    let fault = |cause| SupervisorEvent::ZoneFault {
        app: "hub".into(),
        generation: 1,
        cause,
        reason: "garbage at byte 7".into(),
    };
    let mut sentences = BTreeSet::new();
    for cause in
        [FaultCause::StoppedReading, FaultCause::BrokePort, FaultCause::SentGarbage, FaultCause::PassedLimit]
    {
        let expected = ["hub ended for a fault by hub; it restarts now"];
        let incident = check(|world| world.hear(fault(cause)), &expected).remove(0);
        assert_eq!(incident.reason, "garbage at byte 7");
        sentences.insert(incident.finding.sentence);
    }
    assert_eq!(sentences.len(), 4, "each cause has a sentence of its own: {sentences:?}");
    let expected = ["hub ended for a fault by nobody; it restarts now"];
    check(|world| world.hear(fault(FaultCause::NotAttached)), &expected);
    let panic = SupervisorEvent::TrustedFault { app: "switch".into(), reason: "it panicked".into() };
    check(|world| world.hear(panic), &["switch demoted by switch; it restarts now"]);
}

#[test]
fn an_app_that_ends_too_often_is_quarantined_with_all_that_was_seen_before() {
    let mut world = node();
    while world.state("hub") != monitor::AppState::Quarantined {
        world.app_ends("hub", CRASHED);
        world.wait_ms(u64::from(matches!(world.state("hub"), monitor::AppState::BackingOff { .. })));
    }
    let last = world.incidents.last().unwrap().clone();
    assert_eq!((last.what.words(), world.incidents.len()), ("quarantined", 11));
    let facts: Vec<_> = last.evidence.facts.iter().map(|fact| fact.line.as_str()).collect();
    assert!(facts.contains(&"app hub: ended (killed by SIGSEGV); it restarts in 100 ms"), "{facts:?}");
    assert!(facts.len() <= FACTS_MAX);
}

const RESTARTED: &str = "it and all zones restart";

#[test]
fn a_kernel_that_ends_in_the_call_of_one_app_is_that_apps_doing_and_costs_nobody_else_his_trust() {
    let demoted = format!(
        "(kernel) ended by paths; {RESTARTED}; these apps are no longer trusted and run in process zones: paths"
    );
    let incidents = check(crash_in(&[3]), &[&demoted]);
    assert_eq!(incidents[0].evidence.called, ["paths"]);
    let mut world = node();
    crash_in(&[3])(&mut world);
    world.hear(SupervisorEvent::KernelReady);
    assert_eq!(
        (world.status("switch").kind, world.status("paths").kind),
        (ZoneKind::Trusted, ZoneKind::Process)
    );
}

#[test]
fn a_kernel_that_ends_in_the_calls_of_several_or_of_nobody_costs_all_of_them_theirs() {
    let expected = format!(
        "(kernel) ended by nobody; {RESTARTED}; these apps are no longer trusted and run in process zones: switch, paths"
    );
    check(crash_in(&[2, 3]), &[&expected]);
    let alone = check(crash_in(&[]), &[&expected]);
    assert!(
        alone[0].finding.sentence.starts_with("no trusted app was being called; one of them (switch, paths)")
    );
}

#[test]
fn a_zone_that_is_not_trusted_or_not_there_cannot_have_been_called() {
    let expected = format!(
        "(kernel) ended by nobody; {RESTARTED}; these apps are no longer trusted and run in process zones: switch, paths"
    );
    check(crash_in(&[1, 4, 9, 65_535]), &[&expected]);
}

#[test]
fn what_was_being_called_when_an_earlier_kernel_ended_does_not_count_for_a_later_one() {
    let mut world = node();
    crash_in(&[3])(&mut world);
    world.hear(SupervisorEvent::KernelReady);
    world.take_incidents();
    world.kernel_ends(CRASHED);
    let expected = format!(
        "(kernel) ended by nobody; {RESTARTED}; these apps are no longer trusted and run in process zones: switch"
    );
    assert_eq!(world.take_incidents(), [expected]);
}

#[test]
fn a_kernel_that_says_why_it_ends_blames_nobody() {
    let fatal = |world: &mut World| {
        world.hear(SupervisorEvent::KernelFatal { exit_code: 1, message: "the disk is full".into() });
        world.hear(SupervisorEvent::KernelCalled { zones: vec![2] });
        world.kernel_ends(ProcessEnd::Code(1));
    };
    let incidents = check(fatal, &["(kernel) ended by nobody; it and all zones restart"]);
    assert_eq!(incidents[0].reason, "the disk is full");
}

#[test]
fn the_app_that_was_in_trouble_just_before_is_suspected_and_one_of_many_is_not() {
    let hub_before = |world: &mut World| {
        world.app_ends("hub", CRASHED);
        world.take_incidents();
        world.wait_ms(1_000);
        world.kernel_ends(CRASHED);
    };
    let expected = format!(
        "(kernel) ended by hub; {RESTARTED}; these apps are no longer trusted and run in process zones: switch, paths"
    );
    let incidents = check(hub_before, &[&expected]);
    let sentence = &incidents[0].finding.sentence;
    assert!(
        sentence.contains("the app hub failed once in the 10 s before, the last time 1 s before"),
        "{sentence}"
    );
    let both_before = |world: &mut World| {
        world.app_ends("hub", CRASHED);
        world.app_ends("firewall", CRASHED);
        world.take_incidents();
        world.kernel_ends(CRASHED);
    };
    check(both_before, &[&expected.replace("by hub", "by nobody")]);
    let long_before = |world: &mut World| {
        world.app_ends("hub", CRASHED);
        world.take_incidents();
        world.wait_ms(11_000);
        world.kernel_ends(CRASHED);
    };
    check(long_before, &[&expected.replace("by hub", "by nobody")]);
}

#[test]
fn safe_mode_names_the_app_in_whose_calls_the_kernel_ended_most() {
    let mut world = node();
    for _ in 0..6 {
        // Demoted after the first time, it fails in its own process from then on.
        crash_in(&[2])(&mut world);
        world.wait_ms(5_000);
        world.hear(SupervisorEvent::KernelReady);
    }
    let last = world.incidents.last().unwrap();
    assert_eq!((last.what.words(), last.finding.culprit.as_deref()), ("safe mode", Some("switch")));
    assert_eq!(last.finding.sentence, "1 of the last 6 ends of the kernel process were caused by switch");
}
