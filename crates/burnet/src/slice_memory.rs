//! What the node remembers of its slices, so that their rules leave switches also if no process can delete them.
//!
//! ```text
//!   slices of the last start or reload ──┐
//!   slices that the node has now ────────┴──> Loss ──> Withdrawal for each slice and switch ──> kernel process, until it is done
//! ```
//!
//! A slice can be changed or removed while the node is down, while it is paused, or while a switch is away. Then its process deletes nothing. So the node
//! remembers what each slice had, and what is still to be deleted where. The kernel process deletes it when the switch is there (`kernel::withdrawals`), and says so in
//! a file of its own.
//!
//! In: the node's slices, losses, and which withdrawals are done. Out: open withdrawals, and the file `slice-memory.json`. A file that is missing or damaged
//! remembers nothing: then rules stay. It deletes no rule. Bound: as many withdrawals as the kernel takes; the oldest are forgotten first.

use crate::slices::{journals_of, settings_of};
use config::{Config, WITHDRAWN_FILE, Withdrawal, WithdrawnParts, read_withdrawn};
use flow::{DatapathId, PortNo};
use kernel::withdrawals::WITHDRAWALS_MAX;
use monitor::AppSpec;
use serde::{Deserialize, Serialize};
use slice::SliceSettings;
use slice::settings::IsolationSettings;
use slicer::{Loss, Lost};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// The file, in the folder of the node's records. The numbers of zones are there too.
const FILE: &str = "slice-memory.json";

/// The memory of a node.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SliceMemory {
    /// The number of the next withdrawal.
    next: u64,
    /// The slices of the last start or reload.
    slices: BTreeMap<String, Remembered>,
    /// What is still to be deleted.
    owed: Vec<Owed>,
    #[serde(skip)]
    folder: Option<PathBuf>,
}

/// A slice as it was.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Remembered {
    zone: u16,
    settings: SliceSettings,
}

#[derive(Debug, Serialize, Deserialize)]
struct Owed {
    slice: String,
    withdrawal: Withdrawal,
}

/// A slice that lost something.
pub struct Loser<'a> {
    /// Its zone.
    pub zone: u16,
    /// What it had.
    pub before: &'a SliceSettings,
    /// What it lost.
    pub loss: &'a Loss,
}

impl SliceMemory {
    /// Reads the memory of a node whose records are in this folder. `now_ms`: the wall clock, so that numbers never come again, also if the file is lost.
    pub fn open(folder: Option<&Path>, now_ms: u64) -> SliceMemory {
        let text = folder.and_then(|folder| std::fs::read(folder.join(FILE)).ok());
        let read = text.map(|text| serde_json::from_slice(&text));
        let memory: SliceMemory = read.transpose().unwrap_or_else(|error| {
            tracing::warn!("{FILE} cannot be read: rules of slices that were removed while the node was down stay in their switches: {error}");
            None
        }).unwrap_or_default();
        SliceMemory { next: memory.next.max(now_ms), folder: folder.map(Path::to_owned), ..memory }
    }

    /// The node starts with these slices. Returns what each slice has lost since the node remembered it last.
    pub fn on_start(&mut self, apps: &[AppSpec]) -> Vec<(String, Loss)> {
        let present: BTreeMap<String, SliceSettings> =
            apps.iter().filter_map(settings_of).map(|it| (it.name.clone(), it)).collect();
        // A number that is another app's now says nothing of this slice any more.
        let is_others = |zone: u16, slice: &str| {
            apps.iter().any(|app| app.zone == Some(zone) && app.name != slice_contract::app_name(slice))
        };
        self.owed.retain(|it| !is_others(it.withdrawal.zone, &it.slice));
        let mut losses = Vec::new();
        for (name, Remembered { zone, settings }) in std::mem::take(&mut self.slices) {
            let plan = |settings: &SliceSettings| settings.plan(abi::ZoneId(zone));
            let loss = Loss::between(&plan(&settings), present.get(&name).map(plan).as_ref());
            if loss.is_empty() || is_others(zone, &name) {
                continue;
            }
            self.owe(&Loser { zone, before: &settings, loss: &loss });
            forget_journals(settings.journals.as_deref(), &loss);
            losses.push((name, loss));
        }
        self.remember(apps);
        losses
    }

    /// These are the slices from now on.
    pub fn remember(&mut self, apps: &[AppSpec]) {
        let remembered = |app: &AppSpec| {
            let settings = SliceSettings { journals: journals_of(app), ..settings_of(app)?.without_key() };
            Some((settings.name.clone(), Remembered { zone: app.zone?, settings }))
        };
        self.slices = apps.iter().filter_map(remembered).collect();
    }

    /// The kernel process is to delete this.
    pub fn owe(&mut self, loser: &Loser<'_>) {
        let Loser { zone, before, loss } = loser;
        for switch in &before.switches {
            let parts = match loss.switches.get(&switch.datapath) {
                Some(Lost::All(_)) => None,
                Some(Lost::Ports(ports)) => Some(parts(before, ports, &loss.hosts)),
                None if !loss.hosts.is_empty() => Some(parts(before, &BTreeSet::new(), &loss.hosts)),
                None => continue,
            };
            let ports = switch.ports.iter().map(|port| port.port).collect();
            let withdrawal =
                Withdrawal { id: self.next, zone: *zone, datapath: switch.datapath, ports, parts };
            self.next += 1;
            self.put(Owed { slice: before.name.clone(), withdrawal });
        }
    }

    /// A loss of all takes the place of earlier losses at the switch.
    fn put(&mut self, mut owed: Owed) {
        if owed.withdrawal.parts.is_none() {
            let place = |it: &Withdrawal| (it.zone, it.datapath);
            let at = place(&owed.withdrawal);
            for earlier in self.owed.extract_if(.., |it| place(&it.withdrawal) == at) {
                owed.withdrawal.ports.extend(earlier.withdrawal.ports);
            }
            owed.withdrawal.ports.sort_unstable();
            owed.withdrawal.ports.dedup();
        }
        self.owed.push(owed);
        let surplus = self.owed.len().saturating_sub(WITHDRAWALS_MAX);
        self.owed.drain(..surplus);
    }

    /// Forgets what the kernel process has done, and returns the rest.
    pub fn open_withdrawals(&mut self) -> Vec<Withdrawal> {
        let file = self.folder.as_ref().map(|folder| folder.join(WITHDRAWN_FILE));
        let done = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        let done = read_withdrawn(&done);
        self.owed.retain(|it| !done.contains(&it.withdrawal.id));
        self.owed.iter().map(|it| it.withdrawal.clone()).collect()
    }

    /// Writes the file.
    pub fn keep(&self) {
        let Some(folder) = &self.folder else { return };
        let text = serde_json::to_vec(self).map_err(|error| error.to_string());
        let done = text.and_then(|text| {
            package::state::write_file(&folder.join(FILE), &text, 0o600).map_err(|error| error.to_string())
        });
        done.unwrap_or_else(|error| {
            tracing::warn!("what slices have lost cannot be stored, so their rules may stay after a restart of the node: {error}");
        });
    }
}

fn parts(before: &SliceSettings, ports: &BTreeSet<PortNo>, hosts: &BTreeSet<Ipv4Addr>) -> WithdrawnParts {
    let addresses = hosts.iter().flat_map(|host| [Some(*host), between_switches(before, *host)]);
    WithdrawnParts { ports: ports.iter().copied().collect(), addresses: addresses.flatten().collect() }
}

/// The address of a host between switches.
fn between_switches(slice: &SliceSettings, host: Ipv4Addr) -> Option<Ipv4Addr> {
    let IsolationSettings::Address(addresses) = &slice.isolation else { return None };
    let own_bits = u32::MAX.checked_shr(u32::from(addresses.length)).unwrap_or(0);
    Some(Ipv4Addr::from(u32::from(addresses.physical) & !own_bits | u32::from(host) & own_bits))
}

/// The tenant's numbers mean something else now, and the process does not run: what it keeps is of no use.
pub fn forget_journals(folder: Option<&Path>, loss: &Loss) {
    let Some(folder) = folder else { return };
    let lost = loss.switches.iter().filter(|(_, lost)| matches!(lost, Lost::All(_)));
    let remove = |switch: &DatapathId| {
        // There may be none.
        let _ = std::fs::remove_file(slice::journal_file(folder, *switch));
    };
    lost.for_each(|(switch, _)| remove(switch));
}

/// The node starts: the kernel process gets what is still to be deleted. Returns what slices have lost while the node was down.
pub fn on_start(config: &mut Config, now_ms: u64) -> Vec<(String, Loss)> {
    let mut memory = SliceMemory::open(config.node.records.as_deref(), now_ms);
    let losses = memory.on_start(&config.apps);
    config.withdrawals = memory.open_withdrawals();
    memory.keep();
    losses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apps;
    use config::{ConfigFile, Environment, RunArgs};

    fn slice(name: &str, tag: u16, ports: &str) -> String {
        format!(
            "[slice.{name}]\ncontrollers = ['127.0.0.1:1']\nisolation = 'vlan'\ntag = {tag}\nown_ports = [{ports}]\n"
        )
    }

    /// The apps of a node with these slices, with their zones.
    fn apps(text: &str, zones: &[(&str, u16)]) -> Vec<AppSpec> {
        let file = ConfigFile::parse(text, Path::new("t")).unwrap();
        let around = Environment { uid: 1000, ..Environment::default() };
        let config = Config::merge(file, &RunArgs::default(), &around, &apps::ALL).unwrap();
        let mut apps = crate::slices::wanted(&config, &config.slices).unwrap();
        for app in &mut apps {
            app.zone =
                zones.iter().find(|(name, _)| slice_contract::app_name(name) == app.name).map(|it| it.1);
        }
        apps
    }

    /// Zone, switch, and the lost ports, or all.
    fn open(memory: &mut SliceMemory) -> Vec<(u16, u64, Option<Vec<u32>>)> {
        let ports = |parts: WithdrawnParts| parts.ports.iter().map(|port| port.0).collect();
        let all = memory.open_withdrawals().into_iter();
        all.map(|it| (it.zone, it.datapath.0, it.parts.map(ports))).collect()
    }

    #[test]
    fn what_slices_lost_while_the_node_was_down_is_owed_until_it_is_done() {
        let folder = std::env::temp_dir().join(format!("burnet-slice-memory-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (blue, red) = (slice("blue", 1, "'s1:1', 's1:2', 's2:1'"), slice("red", 2, "'s1:3'"));
        let zones = [("blue", 5), ("red", 6), ("green", 5)];
        let start = |text: &str| {
            let mut memory = SliceMemory::open(Some(&folder), 1_000);
            let losses = memory.on_start(&apps(text, &zones));
            memory.keep();
            (memory, losses.len())
        };
        assert_eq!(start(&(blue.clone() + &red)).1, 0, "nothing was remembered");
        assert_eq!(start(&(blue + &red)).1, 0, "nothing has changed");
        let narrow = slice("blue", 1, "'s1:1', 's2:1'");
        let (mut memory, losses) = start(&(narrow + &red));
        assert_eq!((losses, open(&mut memory)), (1, vec![(5, 1, Some(vec![2]))]));
        let (mut memory, losses) = start(&red);
        assert_eq!(
            (losses, open(&mut memory)),
            (1, vec![(5, 1, None), (5, 2, None)]),
            "all takes the place of parts"
        );
        let ids: Vec<u64> = memory.open_withdrawals().iter().map(|it| it.id).collect();
        assert!(ids.iter().all(|id| *id >= 1_000) && ids[0] != ids[1]);
        let ports = memory.open_withdrawals()[0].ports.clone();
        assert_eq!(ports, [PortNo(1), PortNo(2)], "also the one that it lost before");
        std::fs::write(folder.join(WITHDRAWN_FILE), format!("{}\n", ids[0])).unwrap();
        let (mut memory, losses) = start(&red);
        assert_eq!((losses, open(&mut memory)), (0, vec![(5, 2, None)]));
        // The operator has given the number to another slice.
        let (mut memory, _) = start(&(slice("green", 9, "'s2:1'") + &red));
        assert_eq!(open(&mut memory), []);
        std::fs::write(folder.join(FILE), "{").unwrap();
        assert_eq!(start(&red).1, 0, "a damaged file remembers nothing");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_lost_host_has_two_addresses() {
        let text = "[slice.red]\ncontrollers = ['127.0.0.1:1']\nisolation = 'address'\nprefix = '172.16.3.0/24'\n\
                    addresses = '10.0.0.0/24'\nhosts = { '10.0.0.7' = 's1:1' }\n";
        let settings = apps(text, &[]).iter().find_map(settings_of).unwrap();
        let parts = parts(&settings, &BTreeSet::new(), &["10.0.0.7".parse().unwrap()].into());
        let addresses: Vec<String> = parts.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["10.0.0.7", "172.16.3.7"]);
    }
}
