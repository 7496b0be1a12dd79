//! The slices of a node without a description of its network: when they are judged by the view, and what changes then.
//!
//! ```text
//!   thread: version of the view, once a second ──a byte──> monitor ──> reload thread: Judge ──> Reloaded: slices that start, notes
//! ```
//!
//! In: the REST interface of the node itself, and its configuration. Out: bytes in a pipe, other specifications of slices, and notes. It decides nothing
//! (`slice_admission` does), and starts nothing (the monitor does). While the view cannot be read, all stays as it is.
//!
//! Bounds: one question a second, and one judgement a second at most.

use crate::commands::network;
use crate::commands::network::Client;
use crate::services;
use crate::slice_admission::{Finding, Standing, look, look_again};
use crate::slice_plan::substrate::Description;
use crate::slices::{chosen_links, judged_by_view};
use burnet_sdk::view::LinkId;
use config::Config;
use config::slices::Slice;
use monitor::supervisor::Severity;
use monitor::{AppRole, AppSpec, Note};
use serde_json::Value;
use slice_contract::{app_name, slice_of};
use std::collections::BTreeSet;
use std::io::{self, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the version of the view is asked for.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Looks at a network whose links still come and go, before links are chosen in it all the same.
const UNSETTLED_LOOKS_MAX: u32 = 10;

/// The key of a grant that the order of all apps decides, and not the slice.
const PLACE: &str = "rank";

/// Judges the slices of one node.
pub(super) struct Judge {
    client: Client,
    /// Whether there is a slice to judge, for the thread that looks.
    is_wanted: Arc<AtomicBool>,
    /// The links at the last look.
    links: BTreeSet<LinkId>,
    /// Looks since the links were the same twice.
    unsettled: u32,
}

/// Begins to look at the view. Returns the judge, and what the monitor waits for. Without a view, there is nothing to wait for.
///
/// # Errors
/// The system has no room for a pipe or a thread.
pub(super) fn begin(config: &Config) -> io::Result<(Judge, Option<OwnedFd>)> {
    let judge = Judge {
        client: Client::beside(&config.node.socket),
        is_wanted: Arc::new(AtomicBool::new(is_wanted(config))),
        links: BTreeSet::new(),
        unsettled: 0,
    };
    if !judged_by_view(config) {
        return Ok((judge, None));
    }
    let (changes, bell) = io::pipe()?;
    let (client, is_wanted) = (Client::beside(&config.node.socket), Arc::clone(&judge.is_wanted));
    std::thread::Builder::new()
        .name("network-look".to_owned())
        .spawn(move || ring_on_changes(&client, &is_wanted, bell))?;
    Ok((judge, Some(changes.into())))
}

/// Without bandwidth, nothing is promised, and nothing is judged.
fn is_wanted(config: &Config) -> bool {
    config.slices.iter().any(|slice| !slice.vnics.is_empty())
}

/// Writes a byte when the view has changed, and one more at the first look at which it has not: then links can be chosen. Ends with the monitor.
fn ring_on_changes(client: &Client, is_wanted: &AtomicBool, mut bell: PipeWriter) {
    let (mut last, mut is_settled) = (None, true);
    loop {
        std::thread::sleep(LOOK_INTERVAL);
        if !is_wanted.load(Ordering::Relaxed) {
            last = None;
            continue;
        }
        let Some(version) = version(client) else { continue };
        let has_changed = last.as_ref() != Some(&version);
        if (has_changed || !is_settled) && bell.write_all(&[1]).is_err() {
            return;
        }
        (last, is_settled) = (Some(version), !has_changed);
    }
}

/// The run of the service, and the version of the network. `None`: the service does not answer, or does not know the network yet.
fn version(client: &Client) -> Option<(String, u64)> {
    let node = client.ask("GET", "/api/v1/node", None).ok()?;
    let is_current = node["is_current"].as_bool() == Some(true);
    Some((node["run"].as_str()?.to_owned(), node["network_version"].as_u64()?)).filter(|_| is_current)
}

/// What a judgement changes.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// The apps with other specifications: slices, and the services that know of slices.
    pub(super) apps: Vec<AppSpec>,
    /// Lines for the operator.
    pub(super) lines: Vec<String>,
    /// What the operator should know about the slices.
    pub(super) notes: Vec<Note>,
}

impl Judge {
    /// The view has changed: judges the slices of the node that runs, and enters links for those that wait.
    ///
    /// # Errors
    /// The network is too large, or a slice cannot run with the links that were chosen.
    pub(super) fn on_change(&mut self, running: &mut Config) -> Result<Judged, String> {
        let Some(network) = self.network().filter(|_| is_wanted(running)) else {
            return Ok(Judged::default());
        };
        let may_choose = self.may_choose(&network);
        let findings = look(network, &running.slices, &chosen_links(running), may_choose)?;
        let waits = |slice: &Slice| {
            let name = app_name(&slice.name);
            running.apps.iter().any(|app| app.name == name && app.waits)
        };
        let chosen: Vec<&Finding> =
            findings.iter().filter(|it| !it.slice.needs_links() && waits(&it.slice)).collect();
        let lines =
            chosen.iter().map(|it| format!("slice {}: its links are chosen", it.slice.name)).collect();
        let notes = notes(&findings);
        if chosen.is_empty() {
            return Ok(Judged { notes, ..Judged::default() });
        }
        Ok(Judged { apps: enter(running, &findings)?, lines, notes })
    }

    /// The operator wants other slices. `force`: also if they do not fit.
    ///
    /// # Errors
    /// A slice that is new or differs does not fit: the sentence of `burnet slice plan`.
    pub(super) fn on_reload(
        &mut self,
        running: &Config,
        read: &mut Config,
        force: bool,
    ) -> Result<Vec<Note>, String> {
        self.is_wanted.store(is_wanted(read), Ordering::Relaxed);
        if !judged_by_view(running) || !is_wanted(read) {
            return Ok(Vec::new());
        }
        let chosen = chosen_links(running);
        let findings = match self.network() {
            Some(network) => look_again(&network, &read.slices, &chosen)?,
            // Nobody knows whether they fit, as at the start of the node.
            None => look(Description::default(), &read.slices, &chosen, false)?,
        };
        let is_new = |it: &&Finding| {
            let written =
                |config: &Config| config.slices.iter().find(|slice| slice.name == it.slice.name).cloned();
            written(running) != written(read)
        };
        let mut lacking =
            findings.iter().filter(|_| !force).filter(is_new).filter_map(|it| match &it.standing {
                Standing::Lacks(why) => Some(format!("slice {}: {why}", it.slice.name)),
                _ => None,
            });
        if let Some(why) = lacking.next() {
            return Err(why);
        }
        drop(lacking);
        enter(read, &findings)?;
        Ok(notes(&findings))
    }

    /// The network as the view has it now. `None`: the view is not known.
    fn network(&self) -> Option<Description> {
        version(&self.client)?;
        network::described(&self.client).ok()
    }

    /// Links are chosen in a network in which the same links were found twice: the first one that is found may lead a long way round.
    fn may_choose(&mut self, network: &Description) -> bool {
        let links: BTreeSet<LinkId> = network.links.iter().map(|link| link.id).collect();
        let is_same = self.links == links;
        self.links = links;
        self.unsettled = if is_same { 0 } else { self.unsettled + 1 };
        is_same || self.unsettled > UNSETTLED_LOOKS_MAX
    }
}

/// Enters slices with their links into a configuration, and returns the apps that differ.
fn enter(config: &mut Config, findings: &[Finding]) -> Result<Vec<AppSpec>, String> {
    let slices: Vec<Slice> = findings.iter().map(|it| it.slice.clone()).collect();
    let mut changed = Vec::new();
    for wanted in services::with_slices(config, &slices)? {
        let Some(app) = config.apps.iter_mut().find(|app| app.name == wanted.name) else { continue };
        let entered = entered(app, wanted);
        if *app != entered {
            *app = entered.clone();
            changed.push(entered);
        }
    }
    Ok(changed)
}

/// An app with other slices. What the order and the addresses of all apps have decided stays.
fn entered(app: &AppSpec, wanted: AppSpec) -> AppSpec {
    if slice_of(&app.name).is_none() || app.role != AppRole::App {
        return AppSpec { settings: wanted.settings, ..app.clone() };
    }
    let AppSpec { settings, mut grant, limits, waits, .. } = wanted;
    if let (Some(place), Value::Object(grant)) = (app.grant.get(PLACE), &mut grant) {
        grant.insert(PLACE.to_owned(), place.clone());
    }
    AppSpec { settings, grant, limits, waits, ..app.clone() }
}

fn notes(findings: &[Finding]) -> Vec<Note> {
    let note = |it: &Finding| {
        let severity =
            if matches!(it.standing, Standing::Lacks(_)) { Severity::Warn } else { Severity::Info };
        Note { app: app_name(&it.slice.name), text: it.note(), severity }
    };
    findings.iter().map(note).collect()
}
