//! The reactions of the supervisor to a reloaded configuration. No process is started.

use crate::world::{CRASHED, World, app};
use monitor::supervisor::{Reaction, Severity, SupervisorEvent};
use monitor::{AppSource, AppSpec, AppState, NOTE_BYTES_MAX, PAUSED, Verb, WAITS, ZoneKind};

/// `hub` in a process zone and `switch` trusted, both running, as another configuration has them.
#[track_caller]
fn check(change: impl FnOnce(&mut Vec<AppSpec>), removed: &[&str], expected: &[&str]) -> World {
    let mut world = World::running();
    reload(&mut world, change, removed);
    assert_eq!(world.take_commands(), expected);
    assert_eq!(world.broken, Vec::<String>::new());
    world
}

fn reload(world: &mut World, change: impl FnOnce(&mut Vec<AppSpec>), removed: &[&str]) {
    let mut apps = vec![app("hub", ZoneKind::Process), app("switch", ZoneKind::Trusted)];
    change(&mut apps);
    world.hear(SupervisorEvent::Reloaded {
        apps,
        removed: removed.iter().map(|name| (*name).to_owned()).collect(),
    });
}

#[test]
fn nothing_happens_to_apps_that_are_as_they_were() {
    check(|_| {}, &[], &[]);
    check(|apps| apps.clear(), &[], &[]);
}

#[test]
fn what_an_app_may_do_changes_while_it_runs() {
    let regrant = |apps: &mut Vec<AppSpec>| apps.iter_mut().for_each(|app| app.grant = true.into());
    let told = [
        "Regrant { zone: 1, app: \"hub\", generation: 1, grant: Bool(true) }",
        "Regrant { zone: 2, app: \"switch\", generation: 0, grant: Bool(true) }",
    ];
    let world = check(regrant, &[], &told);
    assert_eq!((world.status("hub").restarts, world.state("switch")), (0, AppState::Running));
}

#[test]
fn what_a_process_was_started_with_restarts_that_app_alone() {
    let settings = |apps: &mut Vec<AppSpec>| drop(apps[0].settings.insert("a".to_owned(), 1.into()));
    check(settings, &[], &["detach 1.1", "term zone 1.1", "start zone 1.2"]);
    check(|apps| apps[1].kind = ZoneKind::Process, &[], &["unload switch", "start zone 2.2"]);
}

#[test]
fn apps_are_added_and_taken_out() {
    let world = check(|apps| apps.push(app("paths", ZoneKind::Process)), &[], &["start zone 3.1"]);
    assert_eq!(world.state("paths"), AppState::Running);
    let gone = |apps: &mut Vec<AppSpec>| apps.clear();
    let world = check(gone, &["hub", "switch", "nobody"], &["detach 1.1", "term zone 1.1", "unload switch"]);
    assert!(world.supervisor.statuses(0).is_empty());
}

#[test]
fn an_app_that_the_operator_stopped_stays_stopped_and_one_that_waits_for_its_next_try_has_it_now() {
    let settings = |apps: &mut Vec<AppSpec>| drop(apps[0].settings.insert("a".to_owned(), 1.into()));
    let mut world = World::running();
    world.operator(Verb::Stop, "hub");
    world.take_commands();
    reload(&mut world, settings, &[]);
    assert_eq!((world.take_commands(), world.state("hub")), (Vec::new(), AppState::Stopped));
    let mut world = World::running();
    world.app_ends("hub", CRASHED);
    world.app_ends("hub", CRASHED);
    assert!(matches!(world.state("hub"), AppState::BackingOff { .. }));
    world.take_commands();
    reload(&mut world, settings, &[]);
    assert_eq!(
        (world.take_commands(), world.state("hub")),
        (vec!["start zone 1.3".to_owned()], AppState::Running)
    );
}

#[test]
fn another_program_is_trusted_as_the_configuration_says_and_the_same_one_is_not_trusted_again() {
    let fault = SupervisorEvent::TrustedFault { app: "switch".into(), reason: "it panicked".into() };
    let mut world = World::running();
    world.hear(fault);
    world.take_commands();
    reload(&mut world, |apps| apps[1].grant = true.into(), &[]);
    assert!(world.status("switch").demoted.is_some());
    reload(&mut world, |apps| apps[1].source = AppSource::SharedObject("/other.so".into()), &[]);
    assert!(world.status("switch").demoted.is_none());
    assert_eq!(world.status("switch").kind, ZoneKind::Trusted);
}

#[test]
fn an_app_that_moves_up_because_another_is_gone_has_no_other_place() {
    let with_place = |name: &str, place: u16| {
        let mut spec = app(name, ZoneKind::Process);
        spec.grant = serde_json::json!({ "rank": place });
        spec
    };
    let mut world = World::running();
    let [hub, paths] = ["hub", "paths"];
    reload(&mut world, |apps| *apps = vec![with_place(hub, 3), with_place(paths, 4)], &["switch"]);
    let said = |first: u16, second: u16| {
        world.supervisor.changes(&[with_place(hub, first), with_place(paths, second)], &[])
    };
    assert_eq!(said(1, 2), [""; 0]);
    assert_eq!(
        said(2, 1),
        ["hub", "paths"].map(|app| format!("app {app} gets another place in the order of apps, immediately"))
    );
}

#[test]
fn what_will_change_is_said_before_it_does() {
    let world = World::running();
    let mut hub = app("hub", ZoneKind::Process);
    hub.grant = true.into();
    let apps = [hub, app("switch", ZoneKind::Trusted), app("paths", ZoneKind::Process)];
    let said = world.supervisor.changes(&apps, &["switch".to_owned(), "nobody".to_owned()]);
    let expected = [
        "app hub gets other capabilities or quotas, immediately",
        "app paths is added",
        "app switch ends, and is removed from this node",
    ];
    assert_eq!(said, expected);
}

#[test]
fn an_app_that_waits_starts_when_a_configuration_says_so_and_not_before() {
    let waits = |apps: &mut Vec<AppSpec>| apps[0].waits = true;
    let mut world = check(waits, &[], &["detach 1.1", "term zone 1.1"]);
    let last_end = |world: &World| world.status("hub").last_end.unwrap().reason;
    assert_eq!((world.state("hub"), last_end(&world).as_str()), (AppState::Stopped, WAITS));
    let verb = Verb::Restart;
    world.hear(SupervisorEvent::Operator { app: "hub".to_owned(), verb, why: None });
    let with_settings = |apps: &mut Vec<AppSpec>| drop(apps[0].settings.insert("a".to_owned(), 1.into()));
    reload(&mut world, |apps| (waits(apps), with_settings(apps)).1, &[]);
    assert_eq!(world.take_commands(), Vec::<String>::new());
    reload(&mut world, |apps| (waits(apps), apps[0].paused = true).1, &[]);
    assert_eq!(last_end(&world), PAUSED, "the operator's word is shown before the network's");
    reload(&mut world, with_settings, &[]);
    assert_eq!(
        (world.take_commands(), world.state("hub")),
        (vec!["start zone 1.2".to_owned()], AppState::Running)
    );
}

#[test]
fn a_note_is_in_the_status_and_is_said_when_it_is_new_and_when_it_is_over() {
    let mut world = World::running();
    let mut note = |text: Option<&str>| {
        let (app, note) = ("hub".to_owned(), text.map(str::to_owned));
        let event = SupervisorEvent::Noted { app, note, severity: Severity::Warn };
        let said =
            world.supervisor.on_event(event, world.now_ms).into_iter().filter_map(
                |reaction| match reaction {
                    Reaction::Log { severity, line } => Some((severity, line)),
                    _ => None,
                },
            );
        (said.collect::<Vec<_>>(), world.status("hub").note)
    };
    let line = |severity, text: &str| vec![(severity, format!("app hub: {text}"))];
    let lacks = "does not fit";
    assert_eq!(note(Some(lacks)), (line(Severity::Warn, lacks), Some(lacks.to_owned())));
    assert_eq!(note(Some(lacks)), (Vec::new(), Some(lacks.to_owned())));
    assert_eq!(note(None), (line(Severity::Info, "no longer: does not fit"), None));
    assert_eq!(note(Some(&"x".repeat(1_000))).1.map(|it| it.len()), Some(NOTE_BYTES_MAX));
}
