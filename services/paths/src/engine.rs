//! The engine: keeps intents true through all that happens.
//!
//! ```text
//!              stored            compiled           confirmed
//!   Requested ───────> Compiling ───────> Installing ───────> Installed ──link failed──> Rerouting ──> Installed
//!                       │   ^                 │                   │
//!                no path│   │network changed  │refused by a switch│withdrawn
//!                       v   │                 v                   v
//!                      Waiting              Failed            Withdrawing ──nothing left──> gone
//! ```
//!
//! In: events of the network, of the store and of the service `flows`, and the time. Out: effects. An event costs as much as what it
//! changes. What is to be compiled waits in a queue, and a turn compiles at most [`COMPILED_IN_A_TURN`]. It sends nothing, and reads no
//! clock.

mod entry;
mod hopeful;
pub(crate) mod settle;

use crate::compile::{Task, WhyNot, compile};
use crate::network::Network;
use crate::plan::{Leg, Plan};
use crate::rules;
use crate::usage::Usage;
pub use entry::{Entry, Kept};
use flows_contract::{Failure, FailureKind, Items, Phase, SetState};
use graph::{Change, LinkNo};
use hopeful::{Hope, Hopeful};
use settle::Settle;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use view::{ConnectPoint, Ends, Host, HostId, IntentId, IntentState, Link, LinkId, Path, Switch, Wanted};

/// How many intents one turn compiles. The rest waits for the next turn, so that the first rules leave early.
pub const COMPILED_IN_A_TURN: usize = 64;

/// How many intents the first turn compiles after a turn that found nothing more to do. Each further turn compiles twice as many.
const COMPILED_FIRST: usize = 8;

/// How long after intents were woken by bandwidth that others gave back they are woken again. An intent that moves gives some back, so
/// many that wait could keep the engine busy with each other.
const BANDWIDTH_MS: u64 = 100;

/// How often what the service of rules refused is tried again, in seconds.
pub const REFUSED_AGAIN_S: u64 = 10;

/// The maximum number of intents. One more is refused.
pub const INTENTS_MAX: usize = 200_000;

/// What happened.
#[derive(Debug)]
pub enum Event<'e> {
    /// A switch is known, or changed.
    Switch(&'e Switch),
    /// A switch is gone.
    SwitchGone(flow::DatapathId),
    /// A link is known, or changed.
    Link(&'e Link),
    /// A link is gone.
    LinkGone(LinkId),
    /// A host is known, or changed.
    Host(&'e Host),
    /// A host is gone.
    HostGone(HostId),
    /// An intent is wanted. It is not in the store yet.
    Requested(Kept),
    /// The store has an intent: one that was requested, or one from before a restart.
    Stored(Kept),
    /// The store did not take an intent that was requested.
    NotStored(IntentId),
    /// An intent is not wanted any more, and is not in the store.
    Withdrawn(IntentId),
    /// The state of an intent's rules. `None`: there are none any more.
    Rules(u64, Option<&'e SetState>),
    /// The service of rules did not take a change of an intent's rules. It may do so later.
    RulesNotTaken(u64),
    /// The service of rules refused an intent's rules.
    RulesRefused(u64, &'e str),
    /// All states of rules were told. Others do not exist.
    RulesComplete(&'e BTreeSet<u64>),
    /// The view is complete, or not any more.
    ViewComplete(bool),
    /// All intents of the store were told.
    Loaded,
    /// Time has passed.
    Time,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Put the rules of an intent: [`Engine::write_rules`] has them.
    PutRules(u64),
    /// Remove the rules of an intent, up to this version.
    RemoveRules(u64, u64),
    /// The store has another place of an intent's hosts.
    KeepPlaces(u64),
    /// An intent or its paths changed.
    Changed(u64),
    /// An intent is gone.
    Gone(u64),
}

/// The engine.
#[derive(Debug)]
pub struct Engine {
    network: Network,
    intents: BTreeMap<u64, Entry>,
    /// By the owner, then by the name that it gave.
    names: HashMap<String, HashMap<String, u64>>,
    by_host: HashMap<HostId, BTreeSet<u64>>,
    usage: Usage,
    /// What is to be compiled: the highest priority first, then the oldest.
    queue: BTreeSet<(Reverse<u16>, u64)>,
    /// How many intents the next turn compiles.
    turn: usize,
    /// Those that may be served when the network changes.
    hopeful: Hopeful,
    /// An intent uses less than before. When nothing else is to be compiled, those that wait for bandwidth are.
    gave_back: bool,
    /// They are not woken before.
    bandwidth_at_ms: u64,
    settle: Settle,
    /// All intents of the store were compiled once.
    is_complete: bool,
    /// A table counted as full at the last look.
    had_full: bool,
    last_version: u64,
    counts: paths_contract::Counts,
}

impl Engine {
    /// An engine without intents. Versions of rules are above `first_version`, which must grow with each start.
    pub fn new(first_version: u64, settle_ms: u64, now_ms: u64) -> Engine {
        Engine {
            network: Network::default(),
            intents: BTreeMap::new(),
            names: HashMap::new(),
            by_host: HashMap::new(),
            usage: Usage::default(),
            queue: BTreeSet::new(),
            turn: COMPILED_FIRST,
            hopeful: Hopeful::default(),
            gave_back: false,
            bandwidth_at_ms: 0,
            settle: Settle::new(settle_ms, now_ms),
            is_complete: false,
            had_full: false,
            last_version: first_version,
            counts: paths_contract::Counts::default(),
        }
    }

    /// Takes an event. What is to be compiled waits for [`Event::Time`].
    pub fn on_event(&mut self, event: Event<'_>, now_ms: u64, out: &mut Vec<Effect>) {
        match event {
            Event::Time => self.on_time(now_ms, out),
            Event::Switch(switch) => {
                if self.network.put_switch(switch) {
                    self.on_topology(now_ms);
                }
            }
            Event::SwitchGone(id) => self.network.remove_switch(id),
            Event::Link(link) => {
                let change = self.network.put_link(link);
                self.on_link(change, now_ms);
            }
            Event::LinkGone(id) => {
                let change = self.network.remove_link(id);
                self.on_link(change, now_ms);
            }
            Event::Host(host) => self.on_host(host),
            // It may only be silent: its intents keep their last way.
            Event::HostGone(id) if self.by_host.contains_key(&id) => {}
            Event::HostGone(id) => self.network.remove_host(id),
            Event::Requested(kept) => self.on_requested(kept, now_ms, out),
            Event::Stored(kept) => self.on_stored(kept, now_ms, out),
            Event::NotStored(id) => self.forget(id.0, out),
            Event::Withdrawn(id) => self.on_withdrawn(id.0, now_ms, out),
            Event::Rules(id, Some(state)) => self.on_rules(id, state, now_ms, out),
            Event::Rules(id, None) => self.on_rules_gone(id, now_ms, out),
            Event::RulesNotTaken(id) => self.on_not_taken(id, out),
            Event::RulesRefused(id, why) => self.on_refused(id, why, now_ms, out),
            Event::RulesComplete(there) => self.on_rules_complete(there, now_ms, out),
            Event::ViewComplete(is_complete) => self.settle.on_view(is_complete, now_ms),
            Event::Loaded => self.settle.on_loaded(!self.intents.is_empty()),
        }
    }

    fn on_time(&mut self, now_ms: u64, out: &mut Vec<Effect>) {
        if self.settle.ready_at_ms() > now_ms {
            return;
        }
        self.settle.finish();
        if self.had_full && !self.network.has_full(now_ms) {
            self.had_full = false;
            self.queue_hopeful();
        }
        self.compile_queue(now_ms, out);
        self.is_complete |= self.settle.is_loaded() && self.queue.is_empty();
        if self.gave_back && self.queue.is_empty() && now_ms >= self.bandwidth_at_ms {
            self.gave_back = false;
            self.bandwidth_at_ms = now_ms + BANDWIDTH_MS;
            self.hopeful.take_bounded().into_iter().for_each(|id| self.enqueue(id));
        }
    }

    /// When to call again, if nothing happens before.
    pub fn next_due_ms(&self, now_ms: u64) -> Option<u64> {
        let compile = (!self.queue.is_empty()).then(|| self.settle.ready_at_ms());
        let full_until_ms = self.network.full_until_ms();
        let retry = (full_until_ms > now_ms && !self.hopeful.is_empty()).then_some(full_until_ms);
        let waits_for_bandwidth = self.gave_back && self.queue.is_empty() && self.hopeful.has_bounded();
        let bandwidth = waits_for_bandwidth.then(|| self.bandwidth_at_ms.max(self.settle.ready_at_ms()));
        compile.into_iter().chain(retry).chain(bandwidth).min()
    }

    fn on_topology(&mut self, now_ms: u64) {
        self.settle.on_change(now_ms);
        self.queue_hopeful();
    }

    fn queue_hopeful(&mut self) {
        for id in self.hopeful.take() {
            self.enqueue(id);
        }
    }

    fn enqueue(&mut self, id: u64) {
        if let Some(entry) = self.intents.get(&id).filter(|entry| entry.is_wanted()) {
            self.queue.insert((Reverse(entry.kept.wanted.priority), id));
        }
    }

    fn on_link(&mut self, change: Option<Change>, now_ms: u64) {
        let Some(Change { link, was_up, is_up }) = change else { return };
        if was_up != is_up {
            self.settle.on_change(now_ms);
        }
        if is_up && !was_up {
            self.queue_hopeful();
        } else if was_up || is_up {
            self.queue_users(link, is_up);
            // It may have another capacity, or be faster.
            self.gave_back |= is_up;
        }
    }

    /// The users of a link that failed; or of one that changed, if they have constraints.
    fn queue_users(&mut self, link: LinkNo, only_constrained: bool) {
        let users: Vec<u64> = self.usage.users(link).collect();
        for id in users {
            let is_concerned = |entry: &Entry| !only_constrained || entry.has_bounds();
            if self.intents.get(&id).is_some_and(is_concerned) {
                self.enqueue(id);
            }
        }
    }

    /// A host that moved takes its intents along. One that is gone keeps them: it may only be silent.
    fn on_host(&mut self, host: &Host) {
        if self.network.put_host(host) {
            let users: Vec<u64> = self.by_host.get(&host.id).into_iter().flatten().copied().collect();
            users.into_iter().for_each(|id| self.enqueue(id));
        }
    }

    fn on_requested(&mut self, kept: Kept, now_ms: u64, out: &mut Vec<Effect>) {
        let id = kept.id.0;
        match self.intents.contains_key(&id) {
            // A change: the earlier wish stands until the new one is stored.
            true => {}
            false => {
                self.insert(Entry::new(kept, IntentState::Requested, now_ms));
                out.push(Effect::Changed(id));
            }
        }
    }

    fn insert(&mut self, entry: Entry) {
        let id = entry.kept.id.0;
        if !entry.kept.name.is_empty() {
            self.name(&entry.kept);
        }
        for host in entry.hosts() {
            self.by_host.entry(host).or_default().insert(id);
        }
        self.intents.insert(id, entry);
    }

    fn name(&mut self, kept: &Kept) {
        if !self.names.contains_key(&kept.owner) {
            self.names.insert(kept.owner.clone(), HashMap::new());
        }
        if let Some(names) = self.names.get_mut(&kept.owner) {
            names.insert(kept.name.clone(), kept.id.0);
        }
    }

    fn forget_name(&mut self, kept: &Kept) {
        if let Some(names) = self.names.get_mut(&kept.owner) {
            names.remove(&kept.name);
            if names.is_empty() {
                self.names.remove(&kept.owner);
            }
        }
    }

    fn on_stored(&mut self, kept: Kept, now_ms: u64, out: &mut Vec<Effect>) {
        let id = kept.id.0;
        match self.intents.get(&id) {
            None => {
                if let (Ends::HostToHost { one, two }, Some(places)) = (&kept.wanted.ends, &kept.places) {
                    self.network.remember_host(*one, places[0]);
                    self.network.remember_host(*two, places[1]);
                }
                let mut entry = Entry::new(kept, IntentState::Compiling, now_ms);
                // Its rules may be in the switches already.
                entry.is_from_before = true;
                self.insert(entry);
            }
            Some(entry) if entry.kept.wanted == kept.wanted => {}
            Some(_) => self.replace_wish(id, kept),
        }
        if let Some(entry) = self.intents.get_mut(&id).filter(|entry| entry.state == IntentState::Requested) {
            entry.enter(IntentState::Compiling, None, now_ms);
        }
        self.enqueue(id);
        out.push(Effect::Changed(id));
    }

    /// The rules of the earlier wish stay until those of the new one are confirmed. Then others may have the packets that it does not want
    /// any more.
    fn replace_wish(&mut self, id: u64, kept: Kept) {
        let Some(entry) = self.intents.get_mut(&id) else { return };
        let hosts = entry.hosts();
        if let Some(plan) = &entry.plan {
            self.usage.remove(id, &entry.kept.wanted, plan);
            reserve(&mut self.network, &entry.kept.wanted, entry.plan.as_ref(), false);
            self.gave_back |= entry.kept.wanted.constraints.bandwidth_kbps > 0;
        }
        self.queue.remove(&(Reverse(entry.kept.wanted.priority), id));
        entry.replace_wish(kept);
        for host in hosts {
            self.leave_host(host, id);
        }
        for host in self.intents.get(&id).map(Entry::hosts).unwrap_or_default() {
            self.by_host.entry(host).or_default().insert(id);
        }
    }

    fn on_withdrawn(&mut self, id: u64, now_ms: u64, out: &mut Vec<Effect>) {
        self.hopeful.remove(id);
        self.free(id);
        let Some(entry) = self.intents.get_mut(&id) else { return };
        self.queue.remove(&(Reverse(entry.kept.wanted.priority), id));
        if entry.version == 0 && !entry.is_from_before {
            return self.forget(id, out);
        }
        entry.enter(IntentState::Withdrawing, None, now_ms);
        let version = self.next_version();
        out.extend([Effect::RemoveRules(id, version), Effect::Changed(id)]);
    }

    /// Gives back what the plan of an intent uses. Others may have waited for it.
    fn free(&mut self, id: u64) {
        let Some(entry) = self.intents.get_mut(&id) else { return };
        let plan = entry.plan.take();
        if let Some(plan) = plan {
            self.usage.remove(id, &entry.kept.wanted, &plan);
            reserve(&mut self.network, &entry.kept.wanted, Some(&plan), false);
            self.gave_back |= entry.kept.wanted.constraints.bandwidth_kbps > 0;
        }
        self.wake_behind(id);
    }

    /// Those that wait because an intent wants the same packets may have them now.
    fn wake_behind(&mut self, id: u64) {
        for other in self.hopeful.take_behind(id) {
            self.enqueue(other);
        }
    }

    /// An intent does not concern a host any more. A host without intents is left out.
    fn leave_host(&mut self, host: HostId, id: u64) {
        if let Some(users) = self.by_host.get_mut(&host) {
            users.remove(&id);
            if users.is_empty() {
                self.by_host.remove(&host);
            }
        }
    }

    fn forget(&mut self, id: u64, out: &mut Vec<Effect>) {
        self.hopeful.remove(id);
        self.free(id);
        let Some(entry) = self.intents.remove(&id) else { return };
        self.queue.remove(&(Reverse(entry.kept.wanted.priority), id));
        self.forget_name(&entry.kept);
        for host in entry.hosts() {
            self.leave_host(host, id);
        }
        out.push(Effect::Gone(id));
    }

    fn next_version(&mut self) -> u64 {
        self.last_version += 1;
        self.last_version
    }

    fn compile_queue(&mut self, now_ms: u64, out: &mut Vec<Effect>) {
        for _ in 0..self.turn {
            let Some((_, id)) = self.queue.pop_first() else {
                self.turn = COMPILED_FIRST;
                return;
            };
            self.compile_one(id, now_ms, out);
        }
        self.turn = (self.turn * 2).min(COMPILED_IN_A_TURN);
    }

    fn compile_one(&mut self, id: u64, now_ms: u64, out: &mut Vec<Effect>) {
        let Some(entry) = self.intents.get(&id) else { return };
        self.counts.compiled += 1;
        let (wanted, earlier) = (&*entry.kept.wanted, entry.plan.as_ref());
        let compiled = compile(&Task { id, wanted, earlier, now_ms }, &mut self.network);
        let wanted_of = |other: u64| self.intents.get(&other).map(|entry| &*entry.kept.wanted);
        let compiled =
            compiled.and_then(|plan| match self.usage.rival(id, wanted, (earlier, &plan), wanted_of) {
                None => Ok(plan),
                Some(rival) => Err(WhyNot::Rival(rival)),
            });
        match compiled {
            Ok(plan) => {
                if matches!(wanted.ends, Ends::HostToHost { .. }) {
                    self.note_places(id, out);
                }
                self.use_plan(id, plan, now_ms, out);
            }
            Err(why) => self.wait(id, why, now_ms, out),
        }
    }

    /// Where the hosts of an intent are now. `None`: it has no hosts, or one is not known.
    pub fn places(&self, wanted: &Wanted) -> Option<Box<[ConnectPoint; 2]>> {
        let Ends::HostToHost { one, two } = &wanted.ends else { return None };
        Some(Box::new([self.network.host(*one)?, self.network.host(*two)?]))
    }

    fn note_places(&mut self, id: u64, out: &mut Vec<Effect>) {
        let Some(entry) = self.intents.get(&id) else { return };
        let places = self.places(&entry.kept.wanted);
        if let Some(entry) = self.intents.get_mut(&id).filter(|entry| entry.kept.places != places) {
            entry.kept.places = places;
            out.push(Effect::KeepPlaces(id));
        }
    }

    /// The service of rules refuses the rules, or their removal. An intent that is withdrawn stays so, with the reason. Both are tried again.
    fn on_refused(&mut self, id: u64, why: &str, now_ms: u64, out: &mut Vec<Effect>) {
        match self.intents.get_mut(&id) {
            Some(entry) if entry.state == IntentState::Withdrawing => {
                let why = format!(
                    "its rules stay in the switches, because the service flows refuses to remove them: {why}; when the cause is fixed, for \
                     example by a grant, they are removed within {REFUSED_AGAIN_S} seconds"
                );
                if entry.enter(IntentState::Withdrawing, Some(why), now_ms) {
                    out.push(Effect::Changed(id));
                }
            }
            _ => self.wait(id, WhyNot::Never(why.to_owned()), now_ms, out),
        }
    }

    /// There is no plan. The rules of an earlier one stay: packets are lost with them or without them, and the way may heal.
    fn wait(&mut self, id: u64, why: WhyNot, now_ms: u64, out: &mut Vec<Effect>) {
        let Some(entry) = self.intents.get_mut(&id) else { return };
        let mut rival = None;
        let (state, reason) = match why {
            WhyNot::Rival(other) => {
                rival = Some(other);
                let why = format!(
                    "selector: the intent {other} of the same priority wants some of these packets on the same way"
                );
                (IntentState::Failed, why)
            }
            WhyNot::NotNow(reason) => (IntentState::Waiting, reason),
            WhyNot::Never(reason) => (IntentState::Failed, reason),
        };
        self.hopeful.insert(id, Hope { rival, has_bounds: entry.has_bounds() });
        if entry.enter(state, Some(reason), now_ms) {
            out.push(Effect::Changed(id));
        }
    }

    fn use_plan(&mut self, id: u64, plan: Plan, now_ms: u64, out: &mut Vec<Effect>) {
        let Some(entry) = self.intents.get_mut(&id) else { return };
        if plan.lacks.is_some() {
            self.hopeful.insert(id, Hope { rival: None, has_bounds: entry.has_bounds() });
        }
        let is_same = entry.plan.as_ref().is_some_and(|before| before.legs == plan.legs);
        if is_same && !entry.must_put {
            entry.plan = Some(plan);
            entry.settle_state(now_ms);
            return out.push(Effect::Changed(id));
        }
        self.counts.rerouted += u64::from(entry.plan.is_some());
        self.gave_back |= entry.plan.is_some() && entry.kept.wanted.constraints.bandwidth_kbps > 0;
        reserve(&mut self.network, &entry.kept.wanted, entry.plan.as_ref(), false);
        self.usage.put(id, &entry.kept.wanted, entry.plan.as_ref(), &plan);
        reserve(&mut self.network, &entry.kept.wanted, Some(&plan), true);
        self.last_version += 1;
        entry.use_plan(plan, self.last_version, now_ms);
        out.extend([Effect::PutRules(id), Effect::Changed(id)]);
    }

    fn on_rules(&mut self, id: u64, state: &SetState, now_ms: u64, out: &mut Vec<Effect>) {
        let Some(entry) = self.intents.get_mut(&id) else {
            // Rules of an intent that was withdrawn before a restart.
            if self.settle.is_loaded() && state.phase != Phase::Removing {
                let version = self.next_version().max(state.version);
                out.push(Effect::RemoveRules(id, version));
            }
            return;
        };
        self.last_version = self.last_version.max(state.version);
        if entry.state == IntentState::Withdrawing {
            // If the service was busy for the put and not for the removal, the rules arrived after the removal.
            if matches!(state.phase, Phase::Installed | Phase::Pending | Phase::Waiting { .. }) {
                self.on_not_taken(id, out);
            }
            return;
        }
        if state.version != entry.version || !entry.is_wanted() {
            return;
        }
        let topology = self.network.graph.topology();
        let changed = match &state.phase {
            Phase::Installed => entry.confirm(now_ms),
            Phase::Waiting { switches } => {
                let missing = entry
                    .plan
                    .as_ref()
                    .and_then(|plan| switches.iter().find(|switch| plan.visits(topology, **switch)));
                match missing {
                    // What is left of the earlier path goes when its switch comes back.
                    None => entry.confirm(now_ms),
                    Some(switch) => entry.await_switch(*switch, now_ms),
                }
            }
            Phase::Failed(failure) => {
                self.counts.switch_failures += 1;
                return self.on_failure(id, failure, now_ms, out);
            }
            Phase::Pending | Phase::Removing => false,
        };
        if changed {
            out.push(Effect::Changed(id));
            if matches!(state.phase, Phase::Installed) {
                self.wake_behind(id);
            }
        }
    }

    /// A switch did not take a rule. Another way may help if its table is full.
    fn on_failure(&mut self, id: u64, failure: &Failure, now_ms: u64, out: &mut Vec<Effect>) {
        let Failure { switch, reason, .. } = failure;
        if failure.failure == FailureKind::TableFull {
            self.network.mark_full(*switch, now_ms);
            self.had_full = true;
            self.enqueue(id);
        }
        let what = match failure.failure {
            FailureKind::TableFull => format!("the table of the switch {switch} is full"),
            _ => format!("the switch {switch} does not take a rule: {reason}"),
        };
        let Some(entry) = self.intents.get_mut(&id) else { return };
        self.hopeful.insert(id, Hope { rival: None, has_bounds: entry.has_bounds() });
        entry.must_put = true;
        entry.enter(IntentState::Failed, Some(what), now_ms);
        out.push(Effect::Changed(id));
    }

    fn on_rules_gone(&mut self, id: u64, now_ms: u64, out: &mut Vec<Effect>) {
        match self.intents.get_mut(&id) {
            Some(entry) if entry.state == IntentState::Withdrawing => self.forget(id, out),
            Some(entry) if entry.version != 0 => {
                // The service has lost them.
                entry.must_put = true;
                entry.enter(IntentState::Compiling, None, now_ms);
                self.enqueue(id);
            }
            _ => {}
        }
    }

    fn on_not_taken(&mut self, id: u64, out: &mut Vec<Effect>) {
        match self.intents.get_mut(&id) {
            Some(entry) if entry.is_wanted() => {
                entry.must_put = true;
                self.enqueue(id);
            }
            Some(_) => {
                let version = self.next_version();
                out.push(Effect::RemoveRules(id, version));
            }
            None => {}
        }
    }

    /// The service `flows` or its stream has restarted: what it does not have is put again.
    fn on_rules_complete(&mut self, there: &BTreeSet<u64>, now_ms: u64, out: &mut Vec<Effect>) {
        let can_have = |it: &&Entry| it.version != 0 || it.state == IntentState::Withdrawing;
        let lost: Vec<u64> = self.intents.values().filter(can_have).map(|it| it.kept.id.0).collect();
        for id in lost {
            if !there.contains(&id) {
                self.on_rules_gone(id, now_ms, out);
            }
        }
    }
}

/// Reserves what a plan needs on its links, or gives it back. An intent with several ends reserves once on a link that they share.
fn reserve(network: &mut Network, wanted: &Wanted, plan: Option<&Plan>, is_begin: bool) {
    let kbps = wanted.constraints.bandwidth_kbps;
    let Some(plan) = plan.filter(|_| kbps > 0) else { return };
    let links: BTreeSet<LinkNo> = plan.links().collect();
    for link in links {
        match is_begin {
            true => network.reserve(link, kbps),
            false => network.release(link, kbps),
        }
    }
}

/// What others ask.
impl Engine {
    /// An intent.
    pub fn entry(&self, id: IntentId) -> Option<&Entry> {
        self.intents.get(&id.0)
    }

    /// All intents behind one, in the order of their numbers.
    pub fn entries_after(&self, after: Option<IntentId>) -> impl Iterator<Item = &Entry> {
        let first = after.map_or(0, |after| after.0.saturating_add(1));
        self.intents.range(first..).map(|(_, entry)| entry)
    }

    /// The intent to which its owner gave this name.
    pub fn named(&self, owner: &str, name: &str) -> Option<&Entry> {
        self.intents.get(self.names.get(owner)?.get(name)?)
    }

    /// Whether all intents of the store have had their turn, so that what is reserved is all that intents of before the start reserve.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// How many intents there are.
    pub fn len(&self) -> usize {
        self.intents.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.intents.is_empty()
    }

    /// The network, to compute ways on it.
    pub fn network_mut(&mut self) -> &mut Network {
        &mut self.network
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// What was counted.
    pub fn counts(&self) -> paths_contract::Counts {
        let (mut installed, mut waiting, mut failed) = (0, 0, 0);
        for entry in self.intents.values() {
            match entry.state {
                IntentState::Installed => installed += 1,
                IntentState::Waiting => waiting += 1,
                IntentState::Failed => failed += 1,
                _ => {}
            }
        }
        paths_contract::Counts {
            intents: self.intents.len() as u64,
            installed,
            waiting,
            failed,
            switches_left_out: self.network.left_out().switches,
            links_left_out: self.network.left_out().links,
            ..self.counts
        }
    }

    /// The paths of an intent, as the view has them.
    pub fn paths(&self, id: u64) -> Vec<Path> {
        let Some(entry) = self.intents.get(&id) else { return Vec::new() };
        let topology = self.network.graph.topology();
        let path = |leg: &Leg| Path {
            id: entry.path_id(leg),
            intent: IntentId(id),
            from: leg.from,
            to: leg.to,
            links: leg.links.iter().map(|link| topology.slot(*link).id).collect(),
            bandwidth_kbps: entry.kept.wanted.constraints.bandwidth_kbps,
            latency_us: self.network.graph.latency_us(&leg.links),
        };
        entry.plan.iter().flat_map(|plan| &plan.legs).map(path).collect()
    }

    /// Whether an intent's paths use this link.
    pub fn uses(&self, id: u64, link: LinkId) -> bool {
        let number = self.network.graph.topology().link(link);
        let plan = self.intents.get(&id).and_then(|entry| entry.plan.as_ref());
        plan.zip(number).is_some_and(|(plan, number)| plan.links().any(|used| used == number))
    }

    /// Writes the rules of an intent, for the effect [`Effect::PutRules`].
    pub fn write_rules(&self, id: u64, items: &mut Items<'_>) {
        let Some(entry) = self.intents.get(&id) else { return };
        let Some(plan) = &entry.plan else { return };
        let topology = self.network.graph.topology();
        let before = rules::Before { plans: &entry.earlier, is_unknown: entry.is_from_before };
        rules::write(id, &entry.kept.wanted, plan, before, topology, items);
    }
}

#[cfg(test)]
mod tests;
