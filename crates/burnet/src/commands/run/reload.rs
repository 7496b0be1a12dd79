//! Reads the configuration of a running node again.
//!
//! ```text
//!   burnet.toml, packages, the arguments of burnet run ──> Config ──┐
//!   the Config that runs ───────────────────────────────────────────┴──> Reloaded: what changes, and what cannot while the node runs
//! ```
//!
//! If the configuration is invalid, it reports that, and nothing changes. It starts and ends no app: the monitor
//! does.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use monitor::{AppRole, AppSpec, FoundApp, Reload, Reloaded, SlicesChange, SlicesWanted};
use serde_json::Value;

use super::applied_slices::Staged;
use super::judging::{Judge, Judged};
use super::launches::Launches;
use super::slice_changes::Changes;
use super::state_folder::{forget_pauses, give_numbers, keep_choices, make_journals, users_of};
use crate::cli::{CommandError, RunArgs};
use crate::slice_memory::SliceMemory;
use crate::{apps, services, slice_pauses};
use config::{Config, Environment, NodeLimits, ProfileFiles, Southbound, Switches, Tls, shared_folders};
use node::now_unix_ms;

/// What runs.
struct Running {
    config: Config,
    /// The profiles of switches, as they were read last.
    profiles: ProfileFiles,
    memory: SliceMemory,
    judge: Judge,
}

/// For a node with this configuration, which was started with these arguments.
pub(super) fn reload(
    running: &Config,
    args: &RunArgs,
    around: Environment,
    launches: Launches,
    judge: Judge,
) -> Reload {
    let profiles = running.switches.profile_files();
    let memory = SliceMemory::open(running.node.records.as_deref(), now_unix_ms());
    let running = Mutex::new(Running { config: running.clone(), profiles, memory, judge });
    let args = args.clone();
    Reload(Arc::new(move |app, slices| {
        let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
        let read = match app {
            Some(app) => one(app, &args, &around, &launches),
            None if slices.is_some_and(|it| it.wanted == SlicesWanted::Judged) => judged(&mut running),
            None => match slices.and_then(pause_of) {
                Some((slice, is_paused)) => paused(&mut running.config, slice, is_paused),
                None => all(&mut running, (&args, slices), &around, &launches),
            },
        };
        read.map_err(|error| error.to_string())
    }))
}

/// The part of the configuration that concerns an app from a package.
fn one(
    app: &str,
    args: &RunArgs,
    around: &Environment,
    launches: &Launches,
) -> Result<Reloaded, CommandError> {
    let found = launches.find_one(app, args, around).map_err(CommandError::Usage)?;
    Ok(Reloaded { apps: vec![found], ..Reloaded::default() })
}

/// The slice that is to be paused or resumed, and which of the two.
fn pause_of(change: &SlicesChange) -> Option<(&str, bool)> {
    match &change.wanted {
        SlicesWanted::Paused(slice) => Some((slice, true)),
        SlicesWanted::Resumed(slice) => Some((slice, false)),
        _ => None,
    }
}

/// The node as it runs, with this slice paused or resumed. The state folder remembers it.
fn paused(running: &mut Config, slice: &str, is_paused: bool) -> Result<Reloaded, CommandError> {
    let name = slice_contract::app_name(slice);
    let Some(place) = running.apps.iter().position(|app| app.name == name) else {
        return Err(CommandError::Usage(format!("the node has no slice {slice}")));
    };
    let kept = running.node.state.as_deref().map(|state| slice_pauses::set(state, slice, is_paused));
    kept.transpose().map_err(|error| {
        CommandError::DidNotWork(format!(
            "the state folder cannot keep whether slice {slice} is paused: {error}"
        ))
    })?;
    let until_end = running.node.state.is_none() && is_paused;
    let why = format!("slice {slice} is paused until the node ends: it has no state folder (--state DIR)");
    running.apps[place].paused = is_paused;
    let apps = vec![found(running, &running.apps[place])?];
    Ok(Reloaded { apps, changed: until_end.then_some(why).into_iter().collect(), ..Reloaded::default() })
}

/// The node as it runs, with links for the slices that waited for the network.
fn judged(Running { config: running, memory, judge, .. }: &mut Running) -> Result<Reloaded, CommandError> {
    let Judged { apps, lines, notes } = judge.on_change(running).map_err(CommandError::DidNotWork)?;
    if apps.is_empty() {
        return Ok(Reloaded { notes, ..Reloaded::default() });
    }
    keep_choices(running);
    memory.remember(&running.apps);
    running.withdrawals = memory.open_withdrawals();
    memory.keep();
    let apps = apps.iter().map(|spec| found(running, spec)).collect::<Result<_, _>>()?;
    let config = Some(to_json(running)?);
    Ok(Reloaded { apps, config, changed: lines, notes, ..Reloaded::default() })
}

fn all(
    Running { config: running, profiles, memory, judge }: &mut Running,
    (args, slices): (&RunArgs, Option<&SlicesChange>),
    around: &Environment,
    launches: &Launches,
) -> Result<Reloaded, CommandError> {
    let staged = slices.map(|change| Staged::of(change, running, args)).transpose()?;
    let read_with = staged.as_ref().map_or_else(|| args.clone(), |staged| staged.args(args));
    let mut read = Config::load(&read_with, around, &apps::WITHIN)?;
    // Services of the network change after a restart. It must not be then that their settings turn out to be wrong.
    services::check(&read).map_err(CommandError::Usage)?;
    // The kernel process reads them again. It must not be then that a profile has a fault.
    read.switches.paces()?;
    // First the settings that decide where data is stored: they stay.
    let mut left = keep_what_stays(running, &mut read);
    give_numbers(&mut read)?;
    let force = slices.is_some_and(|change| change.force);
    let notes = judge.on_reload(running, &mut read, force).map_err(CommandError::DidNotWork)?;
    left.extend(services_that_differ(running, &read));
    let mut changed = changed(running, &read);
    let read_profiles = read.switches.profile_files();
    let other = profiles.changed(&read_profiles);
    changed.extend(other.map(|file| format!("the profile {file} changed, {AT_ONCE}")));
    let known = shared_folders(&running.apps);
    changed.extend(shared_folders(&read.apps).into_iter().filter(|line| !known.contains(line)));
    let mut handed_on = to_json(&read)?;
    monitor::check_reload(&read.apps, &handed_on, read.southbound.workers)
        .map_err(|error| CommandError::Usage(error.to_string()))?;
    let users = users_of(&read)?;
    let slices = Changes::between(running, &read);
    changed.extend(slices.lines());
    if staged.as_ref().is_some_and(Staged::is_dry_run) {
        return Ok(Reloaded { is_dry_run: true, changed, ..Reloaded::default() });
    }
    make_journals(&read, &users)?;
    launches.learn_all(&read, &users)?;
    let services = services_with_other_slices(running, &read);
    let apps = of_apps(&read).chain(&services).map(|spec| found(&read, spec));
    let apps: Vec<FoundApp> = apps.collect::<Result<_, _>>()?;
    let named: BTreeSet<&str> = of_apps(&read).map(|spec| spec.name.as_str()).collect();
    let gone = of_apps(running).filter(|spec| !named.contains(spec.name.as_str()));
    let removed = gone.map(|spec| spec.name.clone()).collect();
    if let Some(staged) = staged {
        read.applied_slices = staged.keep()?;
    }
    left.extend(unused_slices(&read));
    // Nothing can fail any more.
    keep_choices(&read);
    forget_pauses(&read);
    changed.extend(slices.withdraw(memory));
    memory.remember(&read.apps);
    read.withdrawals = memory.open_withdrawals();
    memory.keep();
    handed_on = to_json(&read).unwrap_or(handed_on);
    (*running, *profiles) = (read, read_profiles);
    // Always, since the TLS files may have new content.
    Ok(Reloaded { apps, removed, config: Some(handed_on), changed, left, notes, is_dry_run: false })
}

/// That the configuration's slices are not used. `None`: they are, or there are none.
fn unused_slices(read: &Config) -> Option<String> {
    let file = read.applied_slices.as_ref()?;
    Some(format!(
        "the slices are those of {}, not those of the configuration: `burnet slice apply` and `burnet slice remove` change them",
        file.display()
    ))
}

/// The services that know of slices, if that differs: the process of each begins again with it. Slices report to that of labels again, and that
/// of paths keeps all rules. With the first slice, that of labels begins. All else of both changes after a restart of the node.
fn services_with_other_slices(running: &Config, read: &Config) -> Vec<AppSpec> {
    let of = |config: &'_ Config, name: &str| config.apps.iter().find(|spec| spec.name == name).cloned();
    let differs = |name: &str| {
        let after = of(read, name)?;
        let Some(before) = of(running, name) else {
            return Some(after).filter(|_| name == labels_contract::SERVICE);
        };
        let differs = before.settings != after.settings;
        differs.then(|| AppSpec { settings: after.settings, zone: after.zone, ..before })
    };
    [labels_contract::SERVICE, paths_contract::SERVICE].into_iter().filter_map(differs).collect()
}

fn found(config: &Config, spec: &AppSpec) -> Result<FoundApp, CommandError> {
    let about = config.packages.apps.get(&spec.name).map(to_json).transpose()?.unwrap_or_default();
    Ok(FoundApp { spec: spec.clone(), about })
}

fn to_json(value: &impl serde::Serialize) -> Result<Value, CommandError> {
    serde_json::to_value(value)
        .map_err(|error| CommandError::DidNotWork(format!("the configuration cannot be passed on: {error}")))
}

fn of_apps(config: &Config) -> impl Iterator<Item = &AppSpec> {
    config.apps.iter().filter(|spec| spec.role == AppRole::App)
}

/// Restores what cannot change while the node runs. Returns a sentence for each difference.
fn keep_what_stays(running: &Config, read: &mut Config) -> Vec<String> {
    let mut left = Vec::new();
    let mut keep = |name: &str, differs: bool| {
        if differs {
            left.push(format!("{name} differs in the configuration; it changes after a restart of the node"));
        }
    };
    let (before, after) = (&running.southbound, &mut read.southbound);
    keep("southbound.listen", before.listen != after.listen);
    keep("southbound.workers", before.workers != after.workers);
    keep("southbound.tls", before.tls.as_ref().map(Tls::files) != after.tls.as_ref().map(Tls::files));
    after.tls = with_files_of(before.tls.as_ref(), after.tls.take());
    (after.listen, after.workers) = (before.listen.clone(), before.workers);
    let (before, after) = (&running.node, &mut read.node);
    keep("node.socket", before.socket != after.socket);
    keep("node.log", before.log != after.log);
    keep("node.app_user_base", before.app_user_base != after.app_user_base);
    keep("node.state", before.state != after.state || before.records != after.records);
    keep("node.audit", before.audit != after.audit);
    keep("node.network_description", before.network_description != after.network_description);
    *after = before.clone();
    keep("safe_mode.apps", running.safe_mode.apps != read.safe_mode.apps);
    read.safe_mode = running.safe_mode.clone();
    keep("python.interpreter", running.python != read.python);
    read.python = running.python.clone();
    keep("network", running.network != read.network);
    read.network = running.network.clone();
    keep("packages.require", running.packages.require != read.packages.require);
    read.packages.require = running.packages.require;
    left
}

/// The new TLS settings, but with the old paths of the files.
fn with_files_of(before: Option<&Tls>, after: Option<Tls>) -> Option<Tls> {
    let before = before?.clone();
    let Some(after) = after else { return Some(before) };
    let Tls { certificate, private_key, ca_certificate, .. } = before;
    Some(Tls { certificate, private_key, ca_certificate, ..after })
}

/// Services start and end with the node.
fn services_that_differ(running: &Config, read: &Config) -> Vec<String> {
    let names = |config: &Config| -> BTreeSet<String> {
        let services = config.apps.iter().filter(|spec| spec.role == AppRole::Service);
        services.map(|spec| spec.name.clone()).collect()
    };
    let (before, after) = (names(running), names(read));
    let line = |name: &String, what: &str| format!("the service {name} {what} after a restart of the node");
    // That of labels begins at once.
    let others = after.difference(&before).filter(|name| *name != labels_contract::SERVICE);
    let begin = others.map(|name| line(name, "begins"));
    let end = before.difference(&after).map(|name| line(name, "ends"));
    begin.chain(end).collect()
}

/// When a changed setting takes effect.
const AT_ONCE: &str = "at once";
const FOR_NEW_SESSIONS: &str = "for sessions that begin from now on";
const FOR_NEW_CONNECTIONS: &str = "for connections from now on";
const FOR_NEW_SWITCHES: &str = "for switches that connect from now on";

/// The settings beside apps that take effect while the node runs, by key.
fn changed(running: &Config, read: &Config) -> Vec<String> {
    let settings = southbound_changes(&running.southbound, &read.southbound)
        .into_iter()
        .chain(limit_changes(&running.limits, &read.limits));
    let mut changed: Vec<String> = settings
        .filter(|(_, differs, _)| *differs)
        .map(|(name, _, from_when)| format!("{name} changed, {from_when}"))
        .collect();
    let differs = running.southbound != read.southbound || running.limits != read.limits;
    if differs && changed.is_empty() {
        changed.push(format!("[southbound] or [limits] changed, {FOR_NEW_CONNECTIONS}"));
    }
    changed.extend(switch_changes(&running.switches, &read.switches));
    changed
}

/// Each section that differs. Without one, the switch has no pace of its own any more.
fn switch_changes(before: &Switches, after: &Switches) -> Vec<String> {
    let keys: BTreeSet<_> = before.0.keys().chain(after.0.keys()).collect();
    let differing = keys.into_iter().filter(|key| before.0.get(key) != after.0.get(key));
    differing.map(|key| format!("[switch.{:?}] changed, {AT_ONCE}", key.to_string())).collect()
}

/// A setting's name, whether it differs, and when the new value takes effect.
type Difference = (&'static str, bool, &'static str);

fn southbound_changes(before: &Southbound, after: &Southbound) -> [Difference; 13] {
    fn differs<T: PartialEq>(before: &Southbound, after: &Southbound, of: impl Fn(&Southbound) -> T) -> bool {
        of(before) != of(after)
    }
    let plain = |of: &Southbound| of.tls.as_ref().map(|tls| (tls.allow_plain, tls.required));
    let binding = |of: &Southbound| of.tls.as_ref().map(|tls| tls.binding);
    let datapaths = |of: &Southbound| of.tls.as_ref().map(|tls| tls.datapaths.clone());
    let per_address = before.max_connections_per_address != after.max_connections_per_address;
    let receive_buffer = before.receive_buffer_bytes != after.receive_buffer_bytes;
    let half_open = before.max_half_open_per_address != after.max_half_open_per_address;
    [
        ("southbound.versions", before.versions != after.versions, FOR_NEW_SESSIONS),
        ("southbound.role", differs(before, after, |of| (of.role, of.role_generation_id)), FOR_NEW_SESSIONS),
        ("southbound.echo_interval_ms", before.echo_interval_ms != after.echo_interval_ms, AT_ONCE),
        ("southbound.echo_timeout_ms", before.echo_timeout_ms != after.echo_timeout_ms, AT_ONCE),
        (
            "southbound.handshake_timeout_ms",
            before.handshake_timeout_ms != after.handshake_timeout_ms,
            AT_ONCE,
        ),
        ("southbound.max_connections", before.max_connections != after.max_connections, FOR_NEW_CONNECTIONS),
        ("southbound.max_connections_per_address", per_address, FOR_NEW_CONNECTIONS),
        ("southbound.max_half_open_per_address", half_open, FOR_NEW_CONNECTIONS),
        ("southbound.receive_buffer_bytes", receive_buffer, FOR_NEW_CONNECTIONS),
        ("southbound.miss_send_len", before.miss_send_len != after.miss_send_len, FOR_NEW_SESSIONS),
        ("southbound.tls.allow_plain or required", differs(before, after, plain), FOR_NEW_CONNECTIONS),
        ("southbound.tls.binding", differs(before, after, binding), FOR_NEW_SESSIONS),
        ("southbound.tls.datapaths", differs(before, after, datapaths), FOR_NEW_SESSIONS),
    ]
}

fn limit_changes(before: &NodeLimits, after: &NodeLimits) -> [Difference; 5] {
    let budgets = |of: &NodeLimits| (of.packet_ins_per_switch_per_s, of.packet_ins_per_port_per_s);
    let if_unknown = before.table_entries_if_unknown != after.table_entries_if_unknown;
    let meter = before.packet_in_meter_per_s != after.packet_in_meter_per_s;
    [
        ("limits.table_fill_percent", before.table_fill_percent != after.table_fill_percent, AT_ONCE),
        ("limits.table_entries_if_unknown", if_unknown, AT_ONCE),
        ("limits.rules_per_switch", before.rules_per_switch != after.rules_per_switch, AT_ONCE),
        ("the budget of packet-ins in [limits]", budgets(before) != budgets(after), AT_ONCE),
        ("limits.packet_in_meter_per_s", meter, FOR_NEW_SWITCHES),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::ConfigFile;
    use std::path::Path;

    fn config(text: &str) -> Config {
        let file = ConfigFile::parse(text, Path::new("burnet.toml")).unwrap();
        let around = Environment { uid: 1000, home: Some("/home/u".into()), ..Environment::default() };
        Config::merge(file, &RunArgs::default(), &around, &apps::ALL).unwrap()
    }

    fn check(before: &str, after: &str, expected: &[&str], left: &[&str]) {
        let (running, mut read) = (config(before), config(after));
        let stays = keep_what_stays(&running, &mut read);
        let names = |lines: &[String]| -> Vec<String> {
            lines
                .iter()
                .map(|line| line.split(" changed").next().unwrap_or_default())
                .map(|line| line.split(" differs").next().unwrap_or_default().to_owned())
                .collect()
        };
        assert_eq!(
            (names(&changed(&running, &read)), names(&stays)),
            (own(expected), own(left)),
            "{before} {after}"
        );
        assert!(keep_what_stays(&running, &mut read).is_empty(), "what stays is put back");
    }

    fn own(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn only_what_differs_is_said_and_what_cannot_change_is_named_and_put_back() {
        check("", "", &[], &[]);
        check("", "southbound.echo_timeout_ms = 20000", &["southbound.echo_timeout_ms"], &[]);
        check("", "southbound.max_connections = 9", &["southbound.max_connections"], &[]);
        let per_address = ["southbound.max_connections_per_address", "southbound.max_half_open_per_address"];
        let text = "southbound.max_connections_per_address = 9\nsouthbound.max_half_open_per_address = 9";
        check("", text, &per_address, &[]);
        check("", "southbound.role = 'equal'", &["southbound.role"], &[]);
        check("", "southbound.versions = ['1.3']", &["southbound.versions"], &[]);
        let buffer = "southbound.receive_buffer_bytes";
        check("", "southbound.receive_buffer_bytes = 0", &[buffer], &[]);
        check("", "southbound.miss_send_len = 128", &["southbound.miss_send_len"], &[]);
        let (one, others) = ("[switch.1]\nprofile = 'null'", "[switch.'*']\nrecognise = ['built-in']");
        let section = "[switch.\"of:0000000000000001\"]";
        check("", one, &[section], &[]);
        check(one, "", &[section], &[]);
        check(&format!("{others}\n{one}"), &format!("{others}\n{one}\npace = 'none'"), &[section], &[]);
        check(one, &format!("{others}\n{one}"), &["[switch.\"*\"]"], &[]);
        check("", "limits.table_fill_percent = 50", &["limits.table_fill_percent"], &[]);
        let budget = ["the budget of packet-ins in [limits]", "limits.packet_in_meter_per_s"];
        check("", "limits.packet_ins_per_switch_per_s = 50", &budget, &[]);
        check("", "southbound.listen = ['127.0.0.1:7']", &[], &["southbound.listen"]);
        check("", "southbound.workers = 2", &[], &["southbound.workers"]);
        let tls = |more: &str| {
            format!("[southbound.tls]\ncertificate = '/c'\nprivate_key = '/k'\nca_certificate = '/a'\n{more}")
        };
        let plain = ["southbound.tls.allow_plain or required"];
        check(&tls(""), &tls("allow_plain = true"), &plain, &[]);
        check(&tls("required = true"), &tls(""), &plain, &[]);
        check(&tls(""), &tls("binding = 'named'"), &["southbound.tls.binding"], &[]);
        let bound = format!("datapaths.1 = '{}00'", "00:".repeat(31));
        check(&tls(""), &tls(&bound), &["southbound.tls.datapaths"], &[]);
        check("", &tls("allow_plain = true"), &[], &["southbound.tls"]);
        check(&tls(""), "", &[], &["southbound.tls"]);
        check("", "node.log = 'debug'\nnode.socket = '/x'", &[], &["node.socket", "node.log"]);
        check("", "python.interpreter = '/p'", &[], &["python.interpreter"]);
        check("", "[network.discovery]", &[], &["network"]);
        check("[app.hub]", "safe_mode.apps = ['hub']\n[app.hub]", &[], &["safe_mode.apps"]);
    }
}
