//! What the service decides: which probes are sent, and what follows from those that arrive and those that do not.
//!
//! ```text
//!   Event, time ──> [ Engine ] ──> Commands: probes, rules, records of the view, incidents
//! ```
//!
//! A link is direct if LLDP arrives, and indirect if only broadcasts do. A port has one direct link. A link goes down with a port or
//! a switch at once. If its probes are missing, it goes down within two intervals.
//!
//! In: events and the time. Out: commands. It reads no clock, sends nothing, and knows no SDK.

use crate::frame::{NotAProbe, Probe, Signer};
use crate::incidents::Incidents;
use crate::schedule::{Due, Schedule};
use crate::tables::{Changed, Tables};
use crate::time::{DiscoverySettings, Now};
use discovery_contract::{Counts, Incident, Refusal};
use flow::{DatapathId, MacAddr, PortNo};
use std::collections::{BTreeMap, VecDeque};
use view::{Annotations, ConnectPoint, Key, Link, LinkId, LinkKind, LinkState, Port, Switch, SwitchState};

/// After so many missing probes in a row, a link is down: the first, and two that were sent again.
pub const MISSES_MAX: u8 = 3;

/// Probes of one port that are known: those that can still be under way. An older one is not believed.
const SENT_MAX: usize = 8;

/// How often it is looked for objects that have been down for too long.
const SWEEP_US: u64 = 1_000_000;

/// Something that happens.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A switch is connected, with all its ports.
    SwitchUp(Switch, Vec<Port>),
    /// A switch is disconnected.
    SwitchDown(DatapathId),
    /// The description of a switch has arrived.
    Described(DatapathId, BTreeMap<String, String>),
    /// A port was added or changed.
    PortChanged(Port),
    /// A port was removed.
    PortGone(ConnectPoint),
    /// The switch is one of a slice, which says how much of its links is left.
    Labels {
        /// The switch.
        switch: DatapathId,
        /// All its labels may be too high, also those from before.
        is_stale: bool,
        /// This much of the links that begin at these ports is the slice's, in kbit/s. `None`: it is not said any more.
        labels: Vec<(ConnectPoint, Option<u64>)>,
    },
    /// A frame with the EtherType of a probe came in.
    Frame(ConnectPoint, &'a [u8]),
    /// Time has passed.
    Time,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Add the rules that bring probes up.
    AddRules(DatapathId),
    /// Request the switch's description.
    Describe(DatapathId),
    /// Send this frame out of this port.
    Send(ConnectPoint, Vec<u8>),
    /// Publish a change.
    Publish(Changed),
    /// Tell the operator.
    Report(Incident),
}

/// What is known of a link beside its object.
#[derive(Clone, Copy, Debug, Default)]
struct Evidence {
    /// The last probe of its kind has arrived.
    has_arrived: bool,
    misses: u8,
    /// The number of the last probe that has arrived.
    stamp: u64,
    /// A moving average of the time of its probes.
    latency_us: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    stamp: u64,
    sent_us: u64,
    kind: LinkKind,
    /// It has arrived. A direct probe arrives once.
    is_used: bool,
    /// The port was down since then, so it says nothing about the cable of now.
    is_void: bool,
}

/// A port that sends probes, or did.
#[derive(Clone, Debug, Default)]
struct Sender {
    /// The port can forward.
    is_active: bool,
    /// The last probes, at most [`SENT_MAX`].
    probes: VecDeque<Sent>,
}

/// The engine.
pub struct Engine {
    settings: DiscoverySettings,
    signer: Signer,
    tables: Tables,
    schedule: Schedule,
    incidents: Incidents,
    /// At most one entry for each port in the table.
    senders: BTreeMap<ConnectPoint, Sender>,
    /// One entry for each link in the table.
    evidence: BTreeMap<LinkId, Evidence>,
    last_stamp: u64,
    next_sweep_us: u64,
    counts: Counts,
}

impl Engine {
    /// An engine without switches. The term of its stamps is the number of the run, which grows from run to run.
    pub fn new(settings: DiscoverySettings, signer: Signer, term: u64) -> Engine {
        let schedule = Schedule::new(settings.probe_interval_ms * 1_000);
        Engine {
            settings,
            signer,
            tables: Tables::new(term),
            schedule,
            incidents: Incidents::default(),
            senders: BTreeMap::new(),
            evidence: BTreeMap::new(),
            last_stamp: 0,
            next_sweep_us: SWEEP_US,
            counts: Counts::default(),
        }
    }

    /// The tables.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        let [switches, ports, links, no_room] = self.tables.sizes();
        Counts { switches, ports, links, no_room, ..self.counts }
    }

    /// The last incidents, the oldest first.
    pub fn incidents(&self) -> Vec<&Incident> {
        self.incidents.last().collect()
    }

    /// When [`Event::Time`] is needed.
    pub fn next_us(&self) -> u64 {
        self.schedule.next_us().map_or(self.next_sweep_us, |next_us| next_us.min(self.next_sweep_us))
    }

    /// Decides about an event.
    pub fn on_event(&mut self, event: Event<'_>, now: Now, out: &mut Vec<Command>) {
        match event {
            Event::SwitchUp(switch, ports) => self.on_switch_up(switch, ports, now, out),
            Event::SwitchDown(id) => self.on_switch_down(id, now),
            Event::Described(id, description) => self.on_described(id, description),
            Event::PortChanged(port) => self.on_port(port, now),
            Event::PortGone(id) => self.on_port_gone(id),
            Event::Labels { switch, is_stale, labels } => self.on_labels(switch, is_stale, labels),
            Event::Frame(at, frame) => self.on_frame(at, frame, now, out),
            Event::Time => {}
        }
        self.on_time(now, out);
        out.extend(self.tables.take_changed().into_iter().map(Command::Publish));
    }

    /// Sets the notes of an object.
    pub fn annotate(&mut self, key: Key, notes: Annotations, out: &mut Vec<Command>) {
        self.tables.annotate(key, notes);
        out.extend(self.tables.take_changed().into_iter().map(Command::Publish));
    }

    /// Removes an object that is down.
    ///
    /// # Errors
    /// `None`: it is not there. Otherwise, why it cannot be removed.
    pub fn remove(&mut self, key: Key, out: &mut Vec<Command>) -> Result<(), Option<String>> {
        let is_up = match key {
            Key::Switch(id) => self.tables.switch(id).ok_or(None)?.state == SwitchState::Up,
            Key::Link(id) => self.tables.link(id).ok_or(None)?.state == LinkState::Up,
            _ => return Err(None),
        };
        if is_up {
            return Err(Some(format!(
                "key: {key} is up, and would be found again: only what is down can be removed"
            )));
        }
        match key {
            Key::Switch(id) => self.remove_switch(id),
            Key::Link(id) => self.remove_link(id),
            _ => {}
        }
        out.extend(self.tables.take_changed().into_iter().map(Command::Publish));
        Ok(())
    }

    fn on_switch_up(&mut self, mut switch: Switch, ports: Vec<Port>, now: Now, out: &mut Vec<Command>) {
        let id = switch.id;
        if let Some(known) = self.tables.switch(id) {
            switch.description = known.description.clone();
        }
        if !self.tables.put_switch(switch) {
            return;
        }
        // It says its labels again, if it still has some.
        self.tables.forget_labels(id);
        out.push(Command::AddRules(id));
        out.push(Command::Describe(id));
        let gone: Vec<ConnectPoint> = self.tables.ports_of(id).map(|port| port.id).collect();
        for port in gone.into_iter().filter(|old| ports.iter().all(|port| port.id != *old)) {
            self.on_port_gone(port);
        }
        for port in ports {
            self.on_port(port, now);
        }
    }

    fn on_switch_down(&mut self, id: DatapathId, now: Now) {
        let Some(switch) = self.tables.switch(id).cloned() else { return };
        self.tables.put_switch(Switch { state: SwitchState::Down, since_ms: now.unix_ms, ..switch });
        let ports: Vec<ConnectPoint> = self.tables.ports_of(id).map(|port| port.id).collect();
        ports.into_iter().for_each(|port| self.silence(port, now));
        self.schedule.forget(id);
    }

    fn on_described(&mut self, id: DatapathId, description: BTreeMap<String, String>) {
        if let Some(switch) = self.tables.switch(id).cloned() {
            self.tables.put_switch(Switch { description, ..switch });
        }
    }

    fn on_port(&mut self, port: Port, now: Now) {
        let port = Port { speed_kbps: self.settings.speed_kbps(port.id, port.speed_kbps), ..port };
        let (id, is_live) = (port.id, port.live);
        let was_probed = self.is_active(id);
        if !self.tables.put_port(port) {
            return;
        }
        match is_live && self.is_connected(id) {
            false => self.silence(id, now),
            // The speed of the port may be another.
            true if was_probed => self.refresh_links(id),
            true => self.begin(id, now),
        }
    }

    fn on_labels(&mut self, switch: DatapathId, is_stale: bool, labels: Vec<(ConnectPoint, Option<u64>)>) {
        let is_new = self.tables.set_stale(switch, is_stale);
        for (id, kbps) in labels {
            if self.tables.set_label(id, kbps) && !is_new {
                self.refresh_links(id);
            }
        }
        if is_new {
            let ports: Vec<ConnectPoint> = self.tables.ports_of(switch).map(|port| port.id).collect();
            ports.into_iter().for_each(|port| self.refresh_links(port));
        }
    }

    fn on_port_gone(&mut self, id: ConnectPoint) {
        self.tables.links_at(id).into_iter().for_each(|link| self.remove_link(link));
        self.tables.remove_port(id);
        self.schedule.end(id);
        self.senders.remove(&id);
        self.incidents.forget(id);
    }

    fn is_active(&self, port: ConnectPoint) -> bool {
        self.senders.get(&port).is_some_and(|sender| sender.is_active)
    }

    fn is_connected(&self, port: ConnectPoint) -> bool {
        self.tables.switch(port.switch).is_some_and(|switch| switch.state == SwitchState::Up)
    }

    /// A port can forward from now on: it is probed at once, and so are the ports that it had links with.
    fn begin(&mut self, id: ConnectPoint, now: Now) {
        // Ports behind the highest number are not of cables (OpenFlow 1.3.5, 7.2.1).
        if id.port > PortNo::MAX {
            return;
        }
        let sender = self.senders.entry(id).or_default();
        sender.is_active = true;
        sender.probes.iter_mut().for_each(|sent| sent.is_void = true);
        self.schedule.begin(id, now.us);
        let peers = self.tables.links_into(id).map(|link| link.id.from);
        let peers: Vec<ConnectPoint> = peers.filter(|peer| self.is_active(*peer)).collect();
        for peer in peers {
            self.schedule.begin(peer, now.us);
        }
    }

    /// A port can forward no more: its links are down.
    fn silence(&mut self, id: ConnectPoint, now: Now) {
        self.schedule.end(id);
        if let Some(sender) = self.senders.get_mut(&id) {
            sender.is_active = false;
        }
        self.tables.links_at(id).into_iter().for_each(|link| self.take_down(link, now));
    }

    fn take_down(&mut self, id: LinkId, now: Now) {
        let Some(link) = self.tables.link(id).filter(|link| link.state == LinkState::Up).cloned() else {
            return;
        };
        self.tables.put_link(Link { state: LinkState::Down, since_ms: now.unix_ms, ..link });
        self.evidence.remove(&id);
    }

    fn remove_link(&mut self, id: LinkId) {
        self.tables.remove_link(id);
        self.evidence.remove(&id);
    }

    fn remove_switch(&mut self, id: DatapathId) {
        let ports: Vec<ConnectPoint> = self.tables.ports_of(id).map(|port| port.id).collect();
        ports.into_iter().for_each(|port| self.on_port_gone(port));
        self.tables.remove_switch(id);
        self.schedule.forget(id);
    }

    fn refresh_links(&mut self, id: ConnectPoint) {
        for link in self.tables.links_at(id) {
            if let Some(link) = self.tables.link(link).cloned() {
                self.tables.put_link(link);
            }
        }
    }

    fn on_time(&mut self, now: Now, out: &mut Vec<Command>) {
        while let Some((port, due)) = self.schedule.take(now.us) {
            match due {
                Due::Check => self.check(port, now, out),
                Due::Probe { is_regular } => {
                    self.probe(port, LinkKind::Direct, now, out);
                    let has_direct =
                        |link: &Link| link.found == LinkKind::Direct && link.state == LinkState::Up;
                    if is_regular && self.settings.indirect && !self.tables.links_from(port).any(has_direct) {
                        self.probe(port, LinkKind::Indirect, now, out);
                    }
                }
            }
        }
        if now.us >= self.next_sweep_us {
            self.next_sweep_us = now.us + SWEEP_US;
            self.forget_old(now);
        }
    }

    /// Sends a probe, and has it checked later if a link depends on it.
    fn probe(&mut self, port: ConnectPoint, kind: LinkKind, now: Now, out: &mut Vec<Command>) {
        let Some(mac) = self.tables.port(port).map(|port| port.mac) else { return };
        self.send(port, mac, kind, now, out);
        let mut is_needed = false;
        for link in
            self.tables.links_from(port).filter(|link| link.state == LinkState::Up && link.found == kind)
        {
            self.evidence.entry(link.id).or_default().has_arrived = false;
            is_needed = true;
        }
        if is_needed {
            self.schedule.check_later(port, now.us);
        }
    }

    fn send(&mut self, port: ConnectPoint, mac: MacAddr, kind: LinkKind, now: Now, out: &mut Vec<Command>) {
        let Some(Sender { probes, .. }) = self.senders.get_mut(&port) else { return };
        self.last_stamp += 1;
        let stamp = self.last_stamp;
        if probes.len() >= SENT_MAX {
            probes.pop_front();
        }
        probes.push_back(Sent { stamp, sent_us: now.us, kind, is_used: false, is_void: false });
        self.counts.probes_sent += 1;
        out.push(Command::Send(port, self.signer.write(&Probe { kind, from: port, stamp }, mac)));
    }

    /// Which links of this port did not get the last probe? They get another, or are down.
    fn check(&mut self, port: ConnectPoint, now: Now, out: &mut Vec<Command>) {
        let up = self.tables.links_from(port).filter(|link| link.state == LinkState::Up);
        let missed: Vec<(LinkId, LinkKind)> = up.map(|link| (link.id, link.found)).collect();
        let mut again = [false; 2];
        for (link, kind) in missed {
            let evidence = self.evidence.entry(link).or_default();
            if evidence.has_arrived {
                evidence.misses = 0;
                continue;
            }
            evidence.misses += 1;
            match evidence.misses >= MISSES_MAX {
                true => self.take_down(link, now),
                false => again[usize::from(kind == LinkKind::Indirect)] = true,
            }
        }
        for (kind, is_wanted) in [LinkKind::Direct, LinkKind::Indirect].into_iter().zip(again) {
            if is_wanted {
                self.probe(port, kind, now, out);
            }
        }
    }

    fn on_frame(&mut self, at: ConnectPoint, frame: &[u8], now: Now, out: &mut Vec<Command>) {
        // A port that is down, or not there, is no end of a link.
        if !self.is_active(at) {
            return;
        }
        match self.signer.read(frame) {
            Ok(probe) => self.on_probe(at, probe, now, out),
            Err(NotAProbe::Foreign) => self.counts.foreign += 1,
            Err(NotAProbe::Refused { refusal: Refusal::Unsigned, claimed: Some(claimed) })
                if self.tables.port(claimed).is_none() =>
            {
                // Another controller's probe, of a switch that is not here.
                self.counts.foreign += 1;
            }
            Err(NotAProbe::Refused { refusal, claimed }) => self.refuse(refusal, at, claimed, now, out),
        }
    }

    fn refuse(
        &mut self,
        refusal: Refusal,
        at: ConnectPoint,
        claimed: Option<ConnectPoint>,
        now: Now,
        out: &mut Vec<Command>,
    ) {
        *match refusal {
            Refusal::Unsigned => &mut self.counts.unsigned,
            Refusal::Forged => &mut self.counts.forged,
            Refusal::Replayed => &mut self.counts.replayed,
        } += 1;
        out.extend(self.incidents.add(refusal, at, claimed, now).map(Command::Report));
    }

    fn on_probe(&mut self, at: ConnectPoint, probe: Probe, now: Now, out: &mut Vec<Command>) {
        let Probe { kind, from, stamp } = probe;
        let oldest_us = now.us.saturating_sub(self.settings.probe_interval_ms * 1_000);
        let probes = self.senders.get_mut(&from).map(|sender| &mut sender.probes);
        let sent = probes.and_then(|probes| probes.iter_mut().find(|sent| sent.stamp == stamp));
        let Some(sent) = sent.filter(|sent| sent.sent_us >= oldest_us && sent.kind == kind) else {
            return self.refuse(Refusal::Replayed, at, Some(from), now, out);
        };
        if kind == LinkKind::Direct && std::mem::replace(&mut sent.is_used, true) {
            return self.refuse(Refusal::Replayed, at, Some(from), now, out);
        }
        let (sent_us, is_void) = (sent.sent_us, sent.is_void);
        if is_void || from == at || !self.is_active(from) {
            return;
        }
        let took_us = now.us.saturating_sub(sent_us);
        self.counts.probes_received += 1;
        self.confirm(LinkId { from, to: at }, probe, took_us, now, out);
    }

    /// A probe has passed over this link.
    fn confirm(&mut self, id: LinkId, probe: Probe, took_us: u64, now: Now, out: &mut Vec<Command>) {
        let is_direct = probe.kind == LinkKind::Direct;
        if is_direct {
            self.end_others(id, now);
        } else if self.has_direct(id.from) || self.has_direct(id.to) {
            // A cable is there. The broadcast has taken another way.
            return;
        }
        let known = self.tables.link(id).cloned();
        let was_up = known.as_ref().is_some_and(|link| link.state == LinkState::Up);
        let mut evidence = self.evidence.get(&id).copied().filter(|_| was_up).unwrap_or_default();
        (evidence.has_arrived, evidence.misses, evidence.stamp) = (true, 0, probe.stamp);
        let average_us = evidence.latency_us.map_or(took_us, |average_us| (average_us * 7 + took_us) / 8);
        evidence.latency_us = Some(average_us);
        let told_us = known.as_ref().and_then(|link| link.latency_us);
        let since_ms = known.as_ref().filter(|_| was_up).map_or(now.unix_ms, |link| link.since_ms);
        let link = Link {
            id,
            found: probe.kind,
            state: LinkState::Up,
            capacity_kbps: 0,
            latency_us: self.settings.latency.then(|| latency_to_tell(told_us, average_us)),
            since_ms,
            annotations: Annotations::new(),
        };
        if !self.tables.put_link(link) {
            return;
        }
        self.evidence.insert(id, evidence);
        let is_known_back = self.tables.link(id.reversed()).is_some_and(|link| link.state == LinkState::Up);
        if !was_up && !is_known_back && self.schedule.take_extra(id.to.switch, now.us) {
            self.probe(id.to, probe.kind, now, out);
        }
    }

    fn has_direct(&self, port: ConnectPoint) -> bool {
        let mut links = self.tables.links_from(port).chain(self.tables.links_into(port));
        links.any(|link| link.found == LinkKind::Direct && link.state == LinkState::Up)
    }

    /// A cable has two ends: other direct links of its ports are down, and indirect ones were this cable.
    fn end_others(&mut self, id: LinkId, now: Now) {
        let from = self.tables.links_from(id.from).map(|link| (link.id, link.found));
        let into = self.tables.links_into(id.to).map(|link| (link.id, link.found));
        let others: Vec<_> = from.chain(into).filter(|(other, _)| *other != id).collect();
        for (other, found) in others {
            match found {
                LinkKind::Indirect => self.remove_link(other),
                _ => self.take_down(other, now),
            }
        }
    }

    fn forget_old(&mut self, now: Now) {
        let after_ms = self.settings.forget_after_s.saturating_mul(1_000);
        if after_ms == 0 {
            return;
        }
        let is_old = |since_ms: u64| now.unix_ms.saturating_sub(since_ms) >= after_ms;
        let links = self.tables.links().filter(|link| link.state == LinkState::Down && is_old(link.since_ms));
        let links: Vec<LinkId> = links.map(|link| link.id).collect();
        links.into_iter().for_each(|link| self.remove_link(link));
        let down = |switch: &&Switch| switch.state == SwitchState::Down && is_old(switch.since_ms);
        let switches: Vec<DatapathId> = self.tables.switches().filter(down).map(|switch| switch.id).collect();
        switches.into_iter().for_each(|switch| self.remove_switch(switch));
    }
}

/// A latency that is told changes by a quarter and by 100 µs at least, so that each probe is not a change of the view.
fn latency_to_tell(told_us: Option<u64>, average_us: u64) -> u64 {
    let is_close = |told_us: &u64| average_us.abs_diff(*told_us) <= (told_us / 4).max(100);
    told_us.filter(is_close).unwrap_or(average_us)
}
