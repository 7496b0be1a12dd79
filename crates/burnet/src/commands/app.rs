//! `burnet app list`, `restart`, `stop`, `start`, `quarantine`: the apps of the running node.

use super::{ago, ask, json, safe_mode, table::columns, unexpected};
use crate::cli::incidents::AppQuarantineArgs;
use crate::cli::{AppListArgs, AppVerbArgs, CommandError};
use monitor::{AppRole, AppState, Ending, Verb};
use node::now_unix_ms;
use operator::contract::{Answer, AppView, PackageView, Question, ShortfallView};

/// The output of `burnet app list`.
pub fn list(args: &AppListArgs) -> Result<String, CommandError> {
    let Answer::Apps(apps) = ask(&args.asking, &Question::Apps)? else { return Err(unexpected()) };
    if args.asking.json {
        return json(&apps);
    }
    let Answer::Node(node) = ask(&args.asking, &Question::Node)? else { return Err(unexpected()) };
    let apps = text(&apps, now_unix_ms());
    Ok(if node.safe_mode.is_some() { apps + &safe_mode::text(&node) } else { apps })
}

/// The output of the commands that act on an app.
pub fn ask_for(args: &AppVerbArgs, verb: Verb) -> Result<String, CommandError> {
    ask_for_because(args, verb, None)
}

/// The output of `burnet app quarantine`.
pub fn quarantine(args: &AppQuarantineArgs) -> Result<String, CommandError> {
    let AppQuarantineArgs { name, why, asking } = args.clone();
    ask_for_because(&AppVerbArgs { name, asking }, Verb::Quarantine, why)
}

fn ask_for_because(args: &AppVerbArgs, verb: Verb, why: Option<String>) -> Result<String, CommandError> {
    let question = Question::App { app: args.name.clone(), verb, why };
    let Answer::Done = ask(&args.asking, &question)? else { return Err(unexpected()) };
    let doing = match verb {
        Verb::Restart => "is being restarted",
        Verb::Stop => "is being stopped",
        Verb::Start => "is being started",
        Verb::Quarantine => "is being quarantined",
        Verb::Remove => "is being removed",
    };
    if args.asking.json {
        json(&serde_json::json!({ "app": args.name, "asked": verb }))
    } else {
        Ok(format!("{} {doing}; `burnet app list` shows its state\n", args.name))
    }
}

fn text(apps: &[AppView], now_ms: u64) -> String {
    let of = |role| apps.iter().filter(move |app| app.status.role == role).collect::<Vec<_>>();
    let (wanted, services) = (of(AppRole::App), of(AppRole::Service));
    let own = match services.is_empty() {
        true => String::new(),
        false => format!("\n{}", listed("SERVICE", &services, now_ms)),
    };
    // All answers have the same value.
    let trouble = apps.iter().find_map(|app| app.trouble.as_ref());
    let trouble = trouble.map(|trouble| format!("{trouble}\n")).unwrap_or_default();
    if wanted.is_empty() {
        let none = "the node runs no app; start it with --app NAME, for example --app learning-switch\n";
        return format!("{none}{own}{trouble}");
    }
    format!("{}{own}{trouble}", listed("APP", &wanted, now_ms))
}

/// A table of some apps, and the parts of their zones that are not enforced.
fn listed(what: &str, apps: &[&AppView], now_ms: u64) -> String {
    let rows: Vec<_> = apps.iter().map(|app| row(app, now_ms)).collect();
    let headings = [
        what, "PACKAGE", "ZONE", "STATE", "PID", "SINCE", "RESTARTS", "EVENTS", "DROPPED", "COMMANDS",
        "REFUSED", "LAST END",
    ];
    columns(headings, &rows)
        + &noted(apps)
        + &refused(apps)
        + &shortfalls(apps)
        + &over(apps)
        + &not_enforced(apps)
}

/// One line for each app of which there is something to say.
fn noted(apps: &[&AppView]) -> String {
    let line = |app: &&AppView| Some(format!("{}: {}\n", app.status.app, app.status.note.as_ref()?));
    apps.iter().filter_map(line).collect()
}

/// One line for each app whose package failed verification, with what to do.
fn refused(apps: &[&AppView]) -> String {
    let of = |app: &&&AppView| app.status.state == AppState::Refused;
    let line = |app: &&AppView| {
        let name = &app.status.app;
        let why = app.status.last_end.as_ref().map_or("its package failed verification", |end| &end.reason);
        // The table has the name of the signer, but may cut it.
        let why = why.split(" [").next().unwrap_or(why);
        format!("{name} is refused: {why}. Fix the cause, then run: burnet app restart {name}\n")
    };
    apps.iter().filter(of).map(line).collect()
}

/// One line for each kind of refusal that an app got.
fn shortfalls(apps: &[&AppView]) -> String {
    let lines = |app: &&AppView| -> Vec<String> {
        let line = |it: &ShortfallView| {
            format!("{} was refused {} times: {}{}\n", app.status.app, it.count, it.first, it.in_words())
        };
        app.shortfalls.iter().map(line).collect()
    };
    apps.iter().flat_map(lines).collect()
}

/// One line for each resource above its soft limit.
fn over(apps: &[&AppView]) -> String {
    let lines = |app: &&AppView| -> Vec<String> {
        app.over.iter().map(|excess| format!("{}: {excess}\n", app.status.app)).collect()
    };
    apps.iter().flat_map(lines).collect()
}

/// One line for each part of a zone that this machine does not enforce, with the affected apps.
fn not_enforced(apps: &[&AppView]) -> String {
    let mut gaps: Vec<(String, Vec<&str>)> = Vec::new();
    for app in apps {
        for gap in app.status.not_enforced.iter().map(ToString::to_string) {
            match gaps.iter_mut().find(|(known, _)| *known == gap) {
                Some((_, names)) => names.push(&app.status.app),
                None => gaps.push((gap, vec![&app.status.app])),
            }
        }
    }
    gaps.into_iter().map(|(gap, names)| format!("{}: {gap}\n", names.join(", "))).collect()
}

fn row(app: &AppView, now_ms: u64) -> [String; 12] {
    let status = &app.status;
    let demoted =
        status.demoted.is_some() || app.package.as_ref().is_some_and(|package| package.demoted.is_some());
    [
        status.app.clone(),
        app.package.as_ref().map(package).unwrap_or_else(|| "-".to_owned()),
        format!("{}{}", status.kind, if demoted { " (demoted)" } else { "" }),
        state(status.state, now_ms),
        status.pid.map(|pid| pid.to_string()).unwrap_or_else(|| "-".to_owned()),
        ago(now_ms.saturating_sub(status.since_unix_ms)),
        status.restarts.to_string(),
        app.events.to_string(),
        app.dropped.to_string(),
        app.commands.to_string(),
        app.refusals.to_string(),
        last_end(status.demoted.as_ref().or(status.last_end.as_ref()), now_ms),
    ]
}

/// Version, the first digits of the digest, and whose signatures were valid.
fn package(package: &PackageView) -> String {
    let digits = package.digest.get(..12).unwrap_or(&package.digest);
    format!("{} {digits} ({})", package.version, package.signed)
}

pub(super) fn state(state: AppState, now_ms: u64) -> String {
    match state {
        AppState::Starting => "starting".to_owned(),
        AppState::Running => "running".to_owned(),
        AppState::Ending => "ending".to_owned(),
        AppState::BackingOff { until_unix_ms } => {
            format!("starts again in {}", ago(until_unix_ms.saturating_sub(now_ms)))
        }
        AppState::Quarantined => "quarantined".to_owned(),
        AppState::Stopped => "stopped".to_owned(),
        AppState::Held => "held by safe mode".to_owned(),
        AppState::Refused => "refused".to_owned(),
    }
}

fn last_end(end: Option<&Ending>, now_ms: u64) -> String {
    let Some(end) = end else { return "-".to_owned() };
    let said = end.last_line.as_ref().map(|line| format!(": \"{line}\"")).unwrap_or_default();
    format!("{} ago: {}{said}", ago(now_ms.saturating_sub(end.unix_ms)), end.reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use monitor::{AppStatus, ZoneKind};
    use zone::Excess;
    use zone::Resource;

    fn status() -> AppStatus {
        let end = Ending { reason: "killed by SIGKILL".into(), last_line: None, unix_ms: 5_000 };
        AppStatus {
            app: "hub".into(),
            role: AppRole::App,
            zone: 1,
            kind: ZoneKind::Process,
            demoted: None,
            state: AppState::Running,
            since_unix_ms: 6_000,
            restarts: 1,
            generation: 2,
            pid: Some(42),
            last_end: Some(end),
            not_enforced: vec![zone::NotEnforced::new("own_user", "the node is not root's")],
            note: None,
            listens: Vec::new(),
        }
    }

    fn view(status: AppStatus) -> AppView {
        let excess =
            Excess { resource: Resource::MemoryBytes, used: 61 << 20, soft: 51 << 20, hard: 64 << 20 };
        AppView {
            status,
            package: None,
            events: 7,
            dropped: 0,
            commands: 8,
            refusals: 3,
            shortfalls: vec![ShortfallView {
                capability: Some("view.read".into()),
                count: 3,
                first: "the app does not hold the capability view.read".into(),
                remedy: Some("burnet app grant hub view.read".into()),
            }],
            trouble: None,
            over: vec![excess],
            used: None,
        }
    }

    #[test]
    fn the_list_shows_the_last_end_refusals_and_excess_of_an_app() {
        let expected = "\
APP  PACKAGE  ZONE     STATE    PID  SINCE  RESTARTS  EVENTS  DROPPED  COMMANDS  REFUSED  LAST END
hub  -        process  running  42   4s     1         7       0        8         3        5s ago: killed by SIGKILL
hub was refused 3 times: the app does not hold the capability view.read; to allow it: burnet app grant hub view.read
hub: memory_bytes: 61.0 MiB, with a soft limit of 51.0 MiB and a hard one of 64.0 MiB
hub: own_user is not enforced: the node is not root's
";
        let mut app = view(status());
        assert_eq!(text(std::slice::from_ref(&app), 10_000), expected);
        app.status.note = Some("does not fit".to_owned());
        assert!(text(&[app], 10_000).contains("\nhub: does not fit\nhub was refused"));
    }

    #[test]
    fn the_list_shows_the_package_of_an_app_and_why_it_is_refused() {
        let (version, digest) = ("1.0.0".to_owned(), "0123456789abcdef".to_owned());
        let package = PackageView { version, digest, signed: "developer alice".to_owned(), demoted: None };
        let mut app = AppView { package: Some(package), ..view(status()) };
        let listed = text(std::slice::from_ref(&app), 10_000);
        assert!(listed.contains("hub  1.0.0 0123456789ab (developer alice)  process  "), "{listed}");
        app.status.state = AppState::Refused;
        let reason = "is unsigned: have it signed [developer (bob, key 12".to_owned();
        app.status.last_end = Some(Ending { reason, last_line: None, unix_ms: 5_000 });
        let line =
            "hub is refused: is unsigned: have it signed. Fix the cause, then run: burnet app restart hub\n";
        assert!(text(&[app], 10_000).contains(line));
    }

    #[test]
    fn the_list_shows_services_below_apps() {
        let not_enforced = Vec::new();
        let service =
            view(AppStatus { app: "audit".into(), role: AppRole::Service, not_enforced, ..status() });
        let both = text(&[service.clone(), view(status())], 10_000);
        assert!(both.starts_with("APP  PACKAGE") && both.contains("\n\nSERVICE  PACKAGE  ZONE"), "{both}");
        let alone = text(&[service], 10_000);
        assert!(alone.starts_with("the node runs no app") && alone.contains("\naudit    -"), "{alone}");
    }
}
