//! Each function is one thing that goes wrong on a node, and what must come of it.

use monitor::{AppState, AppStatus, Monitor, Timing, ZoneKind};
use rustix::process::Signal;
use serde_json::json;

use crate::stage::{self, Node, WORKERS, app, kill, lives, script, sleeps, wait_until};

type Scenario = (&'static str, fn());

macro_rules! scenarios {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), $name as fn())),*] };
}

pub const ALL: &[Scenario] = scenarios![
    words_cross_the_port_of_every_generation,
    an_app_killed_with_9_is_restarted_and_nobody_else_notices,
    an_exit_code_and_the_last_line_are_kept,
    a_program_that_is_not_there_is_quarantined,
    an_app_that_ignores_sigterm_is_killed,
    a_flood_of_output_is_counted_and_stops_nobody,
    what_an_app_started_ends_with_it,
    what_is_not_enforced_is_the_launchers_word_and_not_the_apps,
    the_zone_inherits_no_environment_and_no_port,
    a_kernel_killed_with_9_comes_back_with_fresh_ports,
    a_trusted_app_that_aborts_the_kernel_runs_in_a_process_afterwards,
    only_the_trusted_app_that_was_called_when_the_kernel_ended_is_demoted,
    what_an_app_printed_and_how_it_ended_is_kept,
    a_kernel_that_always_ends_brings_the_node_into_safe_mode,
    a_trusted_app_that_hangs_the_kernel_runs_in_a_process_afterwards,
    a_trusted_app_that_panics_runs_in_a_process_afterwards,
    a_stopped_kernel_process_is_killed,
    a_kernel_that_speaks_garbage_is_restarted_until_the_node_gives_up,
    a_port_in_use_ends_the_node_with_code_2,
    the_last_word_of_a_kernel_is_heard_however_much_it_said,
    a_kernel_program_that_is_not_there_ends_the_node,
    a_plan_that_cannot_be_run_starts_nothing,
    stop_ends_every_process_with_code_0,
    a_second_stop_kills,
    sigterm_ends_a_node_in_order,
    children_die_with_a_killed_monitor,
];

fn greeter(name: &str) -> monitor::AppSpec {
    app(name, ZoneKind::Process, json!({}))
}

fn pid(status: AppStatus) -> u32 {
    status.pid.unwrap()
}

fn words_cross_the_port_of_every_generation() {
    let mut node = Node::start(stage::plan(vec![app("hub", ZoneKind::Process, json!({"word": "hello"}))]));
    for generation in 1..=3 {
        let word = format!("hub {generation} says hello on port {WORKERS}");
        node.until(&word, |node| node.last_reason("hub") == word);
    }
}

fn an_app_killed_with_9_is_restarted_and_nobody_else_notices() {
    let mut node = Node::start(stage::plan(vec![greeter("hub"), greeter("switch")]));
    node.until("both run", |node| node.runs("hub", 1) && node.runs("switch", 1));
    let (killed, other, kernel) = (pid(node.status("hub")), pid(node.status("switch")), node.kernel_pid());
    kill(killed, Signal::KILL);
    node.until("it runs again", |node| node.runs("hub", 2));
    let status = node.status("hub");
    assert_eq!((status.restarts, node.last_reason("hub").as_str()), (1, "killed by SIGKILL"));
    assert_ne!(pid(status), killed);
    assert_eq!((pid(node.status("switch")), node.kernel_pid()), (other, kernel));
    assert!(!lives(killed));
}

fn an_exit_code_and_the_last_line_are_kept() {
    let mut node = Node::start(stage::plan(vec![script("hub", "echo one; seq 8000; echo two >&2; exit 3")]));
    node.until("it is quarantined or waits", |node| {
        matches!(node.status("hub").state, AppState::BackingOff { .. })
    });
    assert_eq!((node.last_reason("hub").as_str(), node.last_line("hub").as_str()), ("exit code 3", "two"));
    assert!(stage::log().contains("hub: one"));
}

fn a_program_that_is_not_there_is_quarantined() {
    let mut plan = stage::plan(vec![greeter("hub")]);
    plan.programs.zone = Box::new(|_, _| vec!["/nowhere/burnet".into()]);
    plan.timing.app.longest_delay_ms = 1;
    let mut node = Node::start(plan);
    node.until("it is quarantined", |node| node.status("hub").state == AppState::Quarantined);
    assert!(node.last_reason("hub").starts_with("it could not be started: No such file"));
    assert_eq!(node.status("hub").restarts, 10);
}

fn an_app_that_ignores_sigterm_is_killed() {
    let mut plan =
        stage::plan(vec![script("hub", "trap '' TERM; echo deaf; while :; do sleep 1; done"), greeter("ok")]);
    plan.config = json!({"says": [{"operator": {"app": "ok", "verb": "stop"}}]});
    let mut node = Node::start(plan);
    node.until("it ignores signals", |_| stage::log().contains("hub: deaf"));
    node.until("the operator's stop came through", |node| node.status("ok").state == AppState::Stopped);
    let deaf = pid(node.status("hub"));
    node.ask_to_stop();
    assert_eq!(node.end().code, 0);
    assert!(!lives(deaf));
    assert!(stage::log().contains("app hub: did not end after SIGTERM; it is killed"));
}

fn a_flood_of_output_is_counted_and_stops_nobody() {
    let mut plan = stage::plan(vec![script("flooder", "yes flood"), greeter("hub")]);
    plan.timing = Timing { kernel_silence_ms: 30_000, ..plan.timing };
    let mut node = Node::start(plan);
    node.until("the flood is counted", |_| {
        stage::log()
            .lines()
            .any(|line| line.contains("flooder: (") && line.contains("more lines were dropped"))
    });
    let log = stage::log();
    let counts =
        log.lines().filter_map(|line| line.split("flooder: (").nth(1)?.split(' ').next()?.parse().ok());
    // A line is `flood` and its end; reads overshoot the second's bytes by one at most.
    let lines_max: u64 = ((1 << 20) + (16 << 10)) / 6;
    assert!(counts.clone().all(|count: u64| count <= lines_max), "{:?}", counts.collect::<Vec<_>>());
    let killed = pid(node.status("hub"));
    kill(killed, Signal::KILL);
    node.until("others are served all the same", |node| node.runs("hub", 2));
    assert_eq!(node.status("flooder").restarts, 0);
    node.ask_to_stop();
    assert_eq!(node.end().code, 0);
}

fn what_an_app_started_ends_with_it() {
    let seconds = 2_000_000 + std::process::id();
    let script = script("hub", &format!("setsid sleep {seconds} & echo started; exit 1"));
    let mut node = Node::start(stage::plan(vec![script]));
    node.until("it ended", |node| node.last_line("hub") == "started");
    wait_until("the grandchild ends", || !sleeps(seconds));
}

fn what_is_not_enforced_is_the_launchers_word_and_not_the_apps() {
    let lie = r#"echo 'zone: {"limit": "everything", "why": "the app says so"}' >&2"#;
    let mut node = Node::start(stage::plan(vec![script("liar", &format!("{lie}; sleep 1000"))]));
    let limits = |node: &Node| -> Vec<String> {
        node.status("liar").not_enforced.into_iter().map(|gap| gap.limit).collect()
    };
    node.until("it is told", |node| !limits(node).is_empty());
    node.until("the app has spoken", |_| stage::log().contains("the app says so"));
    assert_eq!(limits(&node), ["cpu_percent"]);
    assert!(stage::log().contains("app liar: cpu_percent is not enforced: the test says so"));
    node.ask_to_stop();
    assert_eq!(node.end().code, 0);
}

fn the_zone_inherits_no_environment_and_no_port() {
    // Cargo starts tests with many variables of its own; a shell sets three.
    let probe = "env | grep -c CARGO; ls -l /proc/self/fd | grep -cE 'memfd|pidfd|eventfd|eventpoll'; exit 1";
    let count = format!("({probe}) | tr '\\n' ' '; exit 1");
    let mut node = Node::start(stage::plan(vec![script("hub", &count)]));
    node.until("it ended", |node| !node.last_line("hub").is_empty());
    assert_eq!(node.last_line("hub"), "0 0");
}

fn a_kernel_killed_with_9_comes_back_with_fresh_ports() {
    let mut node = Node::start(stage::plan(vec![greeter("hub"), app("loud", ZoneKind::Trusted, json!({}))]));
    node.until("all run", |node| node.runs("hub", 1) && node.runs("loud", 1));
    let (kernel, zone) = (node.kernel_pid().unwrap(), pid(node.status("hub")));
    kill(kernel, Signal::KILL);
    node.until("all run again", |node| node.runs("hub", 2) && node.runs("loud", 2));
    let reason = "the kernel process ended: killed by SIGKILL";
    assert_eq!(node.last_reason("hub"), reason);
    assert!(!lives(kernel) && !lives(zone));
    let demoted = node.status("loud");
    assert_eq!((demoted.kind, demoted.demoted.unwrap().reason.as_str()), (ZoneKind::Process, reason));
}

fn trusted(behaviour: &str, reason: &str) {
    let bad = app("bad", ZoneKind::Trusted, json!({"trusted": behaviour}));
    let mut plan = stage::plan(vec![bad, greeter("hub")]);
    // Long enough for a kernel that moves, on any machine.
    plan.timing.kernel_silence_ms = 2_000;
    let mut node = Node::start(plan);
    node.until("the bad app runs in a process", |node| {
        let status = node.status("bad");
        status.kind == ZoneKind::Process && status.state == AppState::Running && status.pid.is_some()
    });
    node.until("the other runs", |node| node.runs("hub", 1));
    assert_eq!(node.status("bad").demoted.unwrap().reason, reason);
}

fn a_trusted_app_that_aborts_the_kernel_runs_in_a_process_afterwards() {
    let bad = app("bad", ZoneKind::Trusted, json!({"trusted": "abort"}));
    let mut node = Node::start(stage::plan(vec![bad]));
    node.until("it runs in a process", |node| node.status("bad").pid.is_some());
    let reason = node.status("bad").demoted.unwrap().reason;
    assert!(reason.starts_with("the kernel process ended: killed by SIGABRT"), "{reason}");
}

fn a_trusted_app_that_hangs_the_kernel_runs_in_a_process_afterwards() {
    trusted("hang", "the kernel process ended: a worker made no progress for 2000 ms");
}

fn a_trusted_app_that_panics_runs_in_a_process_afterwards() {
    trusted("panic", "it panicked");
}

fn a_stopped_kernel_process_is_killed() {
    let mut plan = stage::plan(vec![greeter("hub")]);
    plan.timing.kernel_silence_ms = 2_000;
    let mut node = Node::start(plan);
    node.until("it runs", |node| node.runs("hub", 1));
    let stopped = node.kernel_pid().unwrap();
    kill(stopped, Signal::STOP);
    node.until("it runs again", |node| node.runs("hub", 2));
    assert!(!lives(stopped));
}

fn a_kernel_that_speaks_garbage_is_restarted_until_the_node_gives_up() {
    let mut plan = stage::plan(vec![greeter("hub")]);
    plan.config = json!({"kernel": "garbage"});
    plan.timing.kernel.longest_delay_ms = 1;
    let outcome = Node::start(plan).end();
    let message = outcome.message.unwrap();
    assert_eq!(outcome.code, 1, "{message}");
    assert!(message.contains("not a message") && message.contains("the node gives up"), "{message}");
}

fn a_port_in_use_ends_the_node_with_code_2() {
    let mut plan = stage::plan(vec![greeter("hub")]);
    plan.config = json!({"kernel": "port in use"});
    let outcome = Node::start(plan).end();
    assert_eq!((outcome.code, outcome.message.as_deref()), (2, Some("port 6653 is in use")));
}

fn the_last_word_of_a_kernel_is_heard_however_much_it_said() {
    let mut plan = stage::plan(vec![]);
    plan.config = json!({"kernel": "talkative"});
    assert_eq!(Node::start(plan).end().message.as_deref(), Some("the last word"));
}

fn a_kernel_program_that_is_not_there_ends_the_node() {
    let mut plan = stage::plan(vec![]);
    plan.programs.kernel = vec!["/nowhere/burnet".into()];
    plan.timing.kernel.longest_delay_ms = 1;
    let outcome = Node::start(plan).end();
    let message = outcome.message.unwrap();
    assert!(outcome.code == 1 && message.contains("No such file"), "{message}");
}

fn a_plan_that_cannot_be_run_starts_nothing() {
    let refused =
        |plan| Monitor::start(plan, std::io::pipe().unwrap().0.into()).err().map(|error| error.to_string());
    let mut workers = stage::plan(vec![]);
    workers.workers = 0;
    assert_eq!(refused(workers).as_deref(), Some("0 workers are not possible; use 1 to 32"));
    let mut wordy = stage::plan(vec![]);
    wordy.config = json!({"list": "x".repeat(6_000_000)});
    assert!(refused(wordy).unwrap().contains("the configuration has 6000011 bytes"));
    let mut tight = greeter("hub");
    tight.limits.open_files = 15;
    let said = refused(stage::plan(vec![tight])).unwrap();
    assert!(said.contains("hub may open 15 files, but needs 16 with 2 workers"), "{said}");
    assert!(refused(stage::plan(vec![greeter("hub"), greeter("hub")])).is_some());
}

fn stop_ends_every_process_with_code_0() {
    let mut node = Node::start(stage::plan(vec![greeter("hub"), greeter("switch")]));
    node.until("both run", |node| node.runs("hub", 1) && node.runs("switch", 1));
    let pids = [pid(node.status("hub")), pid(node.status("switch")), node.kernel_pid().unwrap()];
    node.ask_to_stop();
    let outcome = node.end();
    assert_eq!((outcome.code, outcome.message), (0, None));
    assert_eq!(pids.map(lives), [false; 3]);
}

fn a_second_stop_kills() {
    let mut plan = stage::plan(vec![script("hub", "trap '' TERM; echo stubborn; while :; do sleep 1; done")]);
    // Without the second stop this scenario would give up first.
    plan.timing.end_grace_ms = 600_000;
    let mut node = Node::start(plan);
    node.until("it ignores signals", |_| stage::log().contains("hub: stubborn"));
    let stubborn = pid(node.status("hub"));
    node.ask_to_stop();
    node.until("it is asked to end", |node| node.status("hub").state == AppState::Ending);
    node.ask_to_stop();
    assert_eq!(node.end().code, 0);
    assert!(!lives(stubborn));
}

/// A monitor in a process of its own, its kernel's process id and how long its app sleeps.
fn whole_node(kernel: &str) -> (std::process::Child, u32, u32) {
    let path = stage::scratch("whole");
    let this = std::env::current_exe().unwrap();
    let child = std::process::Command::new(this)
        .arg("monitor")
        .env("BURNET_TEST_PID_FILE", &path)
        .env("BURNET_TEST_KERNEL", kernel)
        .spawn()
        .unwrap();
    let app_path = std::path::PathBuf::from(format!("{}.app", path.display()));
    wait_until("the node runs", || stage::read_pid(&app_path).is_some());
    let (kernel, app) = (stage::read_pid(&path).unwrap(), stage::read_pid(&app_path).unwrap());
    for path in [&path, &app_path] {
        std::fs::remove_file(path).unwrap();
    }
    assert!(lives(kernel));
    wait_until("the app sleeps", || sleeps(app));
    (child, kernel, app)
}

fn sigterm_ends_a_node_in_order() {
    // SIGHUP reloads the configuration.
    for signal in [Signal::TERM, Signal::INT] {
        let (mut node, kernel, app) = whole_node("");
        kill(node.id(), signal);
        assert_eq!(node.wait().unwrap().code(), Some(0), "{signal:?}");
        assert!(!lives(kernel));
        wait_until("the app is gone", || !sleeps(app));
    }
}

fn children_die_with_a_killed_monitor() {
    // Neither of them notices that its socket is closed.
    let (mut node, kernel, app) = whole_node("deaf");
    kill(node.id(), Signal::KILL);
    node.wait().unwrap();
    wait_until("the kernel and the app end", || !lives(kernel) && !sleeps(app));
}

fn only_the_trusted_app_that_was_called_when_the_kernel_ended_is_demoted() {
    let records = stage::Records::new();
    let mut plan = stage::plan(vec![
        app("good", ZoneKind::Trusted, json!({})),
        app("bad", ZoneKind::Trusted, json!({"trusted": "abort"})),
    ]);
    plan.records = Some(records.0.clone());
    let mut node = Node::start(plan);
    node.until("the bad one runs in a process zone", |node| {
        node.runs("bad", 2) && node.status("bad").kind == ZoneKind::Process && node.runs("good", 2)
    });
    assert_eq!((node.status("good").kind, node.status("good").demoted), (ZoneKind::Trusted, None));
    drop(node);
    let incident = monitor::records::incident(&records.0, 1).unwrap();
    assert_eq!((incident.subject(), incident.finding.culprit.as_deref()), ("(kernel)", Some("bad")));
    assert_eq!((incident.evidence.signal, incident.evidence.called), (Some(6), vec!["bad".to_owned()]));
}

fn what_an_app_printed_and_how_it_ended_is_kept() {
    let records = stage::Records::new();
    let mut plan = stage::plan(vec![script("hub", "echo one; echo 'panicked at x.rs:1:2:' >&2; exit 3")]);
    plan.records = Some(records.0.clone());
    let mut node = Node::start(plan);
    node.until("it ended twice", |node| node.status("hub").restarts >= 1 && !node.runs("hub", 1));
    drop(node);
    let incident = monitor::records::incident(&records.0, 1).unwrap();
    assert_eq!((incident.reason.as_str(), incident.evidence.exit_code), ("exit code 3", Some(3)));
    assert_eq!(incident.evidence.last_lines, ["one", "panicked at x.rs:1:2:"]);
    assert_eq!(incident.evidence.where_it_failed().collect::<Vec<_>>(), ["panicked at x.rs:1:2:"]);
    let facts = &incident.evidence.facts;
    assert!(facts.iter().any(|fact| fact.line.starts_with("app hub: its process is")), "{facts:?}");
    let [log, _] = monitor::records::log_files(&records.0, "hub");
    let log = std::fs::read_to_string(log).unwrap();
    // Of both lives.
    assert!(log.contains("Z 1 one\n") && log.contains("Z 2 one\n"), "{log}");
}

fn a_kernel_that_always_ends_brings_the_node_into_safe_mode() {
    let records = stage::Records::new();
    let bad = |name| app(name, ZoneKind::Trusted, json!({"trusted": "abort"}));
    let mut plan = stage::plan(vec![greeter("hub"), bad("other"), bad("bad")]);
    plan.timing.kernel.restarts_max = 1;
    plan.safe_mode.apps = vec!["hub".into()];
    plan.records = Some(records.0.clone());
    let mut node = Node::start(plan);
    node.until("the app of the list runs, and the others are held", |node| {
        node.runs("hub", 1) && ["other", "bad"].iter().all(|app| node.status(app).state == AppState::Held)
    });
    drop(node);
    let numbers = monitor::records::incident_numbers(&records.0).unwrap();
    let whats =
        numbers.iter().map(|number| monitor::records::incident(&records.0, *number).unwrap().what.words());
    assert_eq!(whats.collect::<Vec<_>>(), ["ended", "ended", "safe mode"]);
}
