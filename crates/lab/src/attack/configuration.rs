//! The configuration of a trial's node: the innocent apps, and the attacker if it is an app.
//!
//! In: a case, and the trial's folder. Out: the text of a `burnet.toml`. It writes one empty file, which must exist
//! when a zone is created.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::case::{By, Case, LIMITS, QUOTA_LINES, QUOTAS, SMALL};
use super::folders;
use super::from_a_package;
use super::looks::BYSTANDER;
use super::tenant_words;
use super::verdict::ATTACKER;
use crate::apps;

/// The app that overwrites its port.
const RING: &str = "misbehaving-ring";

const FIREWALL: &str =
    "[app.firewall]\n[app.firewall.settings]\nblock = [\"ip,nw_src=10.0.0.1,nw_dst=10.0.0.4\"]\n";

/// The datapath id whose connection tells an attacker to begin. It is not a real switch, and disconnects at once.
pub const SIGNAL: u64 = 0x0060;

/// How long an app attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// Once. It gets all that its manifest requests.
    Once,
    /// Again at every tick, within the limits for an app that is not trusted.
    On,
}

/// Whether an attacker waits for [`SIGNAL`]: all that command switches do, except those without events about
/// switches.
pub fn waits_for_signal(case: &Case) -> bool {
    matches!(case.by, By::App(lines) if lines.contains("view.read")) && case.family.is_about_switches()
}

/// Whether it attacks other processes, whose numbers are known only once the node runs.
pub fn is_at_processes(case: &Case) -> bool {
    ["read-memory", "ptrace", "signals"].contains(&case.name)
}

/// The innocent apps whose rules must be in every switch before the attack begins.
pub fn apps_with_rules(case: &Case) -> &'static [&'static str] {
    let is_at_groups_of_others =
        ["delete-all-groups", "delete-all-meters", "unknown-group", "unknown-meter"].contains(&case.name);
    if is_at_groups_of_others { &["firewall", BYSTANDER] } else { &["firewall"] }
}

/// The node's configuration: the innocent apps, and the attacker if it is an app.
pub fn configuration(case: &Case, folder: &Path, server: SocketAddr, goes: Goes) -> String {
    let bystander = match apps_with_rules(case).contains(&BYSTANDER) {
        true => apps::table(&apps_folder(folder), BYSTANDER),
        false => String::new(),
    };
    let innocents = format!("{FIREWALL}[app.learning-switch]\n{bystander}");
    let goes_on = goes == Goes::On;
    let limits = |app: &str| if goes_on { limits(app) } else { String::new() };
    let (own, parent) =
        (std::process::id(), rustix::process::getppid().map_or(1, |pid| pid.as_raw_nonzero().get()));
    match case.by {
        By::Switch(_) | By::Operator(_) => innocents,
        By::Tenant(attack) => {
            innocents + &tenant_words::section("tenant", attack, server, &tenant_words::TREE)
        }
        By::Storm(count) => {
            (1..=count).map(|number| format!("{ATTACKER}-{number}")).fold(innocents, |all, app| {
                format!("{all}[app.{app}]\npath = \"/bin/false\"\n[app.{app}.capabilities]\n{}", limits(&app))
            })
        }
        By::Package(_) => format!(
            "[node]\nstate = \"{}\"\n{innocents}[app.{}]\n",
            from_a_package::state(folder).display(),
            from_a_package::APP
        ),
        By::Ring => format!("{innocents}{}{}", apps::table(&apps_folder(folder), RING), limits(RING)),
        By::App(lines) => format!(
            "{}{innocents}{}{}{}{}[app.{ATTACKER}.settings]\nattack = \"{}\"\naddress = \"{server}\"\nagain = {goes_on}\n\
             {}{}{}processes = [{own}, {parent}]\nfiles = [\"/etc/passwd\", \"/etc/shadow\", \"{}\", \"{}\"]\n",
            if lines.contains("\"store.") { state_in(folder) } else { String::new() },
            apps::table(&apps_folder(folder), ATTACKER),
            if goes_on { within_limits(lines) } else { lines.to_owned() },
            if is_at_processes(case) { may_read(&processes_file(folder)) } else { String::new() },
            folders::configuration(case, folder),
            case.name,
            if waits_for_signal(case) && !goes_on {
                format!("begins_with = {SIGNAL}\n")
            } else {
                String::new()
            },
            folders::settings(case, folder),
            if is_at_processes(case) { processes_in(&processes_file(folder)) } else { String::new() },
            folder.join("burnet.toml").display(),
            folder.join("node.log").display(),
        ),
    }
}

/// The folder of the laboratory's apps, in a trial's folder.
pub fn apps_folder(folder: &Path) -> PathBuf {
    folder.join("apps")
}

/// The line for the state folder. Without it there is no store to attack.
fn state_in(folder: &Path) -> String {
    format!("[node]\nstate = \"{}\"\n", from_a_package::state(folder).display())
}

/// The limits of an app that is not trusted.
fn limits(app: &str) -> String {
    (LIMITS.to_owned() + QUOTAS + QUOTA_LINES).replace("APP", app)
}

/// A case's own lines together with those limits, without duplicates.
fn within_limits(lines: &str) -> String {
    let lines = lines.replace(SMALL, "");
    let quotas = QUOTAS.replace("APP", ATTACKER);
    match lines.contains(&quotas) {
        // The case already has such lines.
        true if lines.contains("packet_outs_per_s") => LIMITS.replace("APP", ATTACKER) + &lines,
        true => LIMITS.replace("APP", ATTACKER) + &lines.replace(&quotas, &(quotas.clone() + QUOTA_LINES)),
        false => lines + &limits(ATTACKER),
    }
}

pub fn processes_file(folder: &Path) -> PathBuf {
    folder.join("processes")
}

/// Makes an empty file, because a file that may be read must exist when the zone is created.
fn may_read(file: &Path) -> String {
    // If this fails, the zone cannot be created either, and the trial reports it.
    let _ = std::fs::write(file, "");
    format!("[app.{ATTACKER}.sandbox]\nfs.read = [\"{}\"]\n", file.display())
}

fn processes_in(file: &Path) -> String {
    format!("processes_file = \"{}\"\n", file.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::catalogue;

    #[test]
    fn every_case_has_a_configuration_that_can_be_read() {
        for case in catalogue::all().filter(|case| !matches!(case.by, By::Package(_))) {
            for goes in [Goes::Once, Goes::On] {
                let text = configuration(case, Path::new("/tmp"), ([127, 0, 0, 1], 1).into(), goes);
                let read = text.parse::<toml::Table>();
                assert!(read.is_ok(), "{}: {read:?}", case.name);
            }
        }
    }
}
