//! Sightings: of a new host, of a known one, of one that claims another place or another host's address.
//!
//! ```text
//!   seen at its place ───────> refreshed; answers a claim of its place or its address
//!   seen elsewhere ──────────> claim ──probe the old place──> answered: refused, an incident │ silent: moved
//!   another host's address ──> claim ──probe the holder────> answered: refused, an incident │ silent: passed on
//! ```
//!
//! In: sightings and the time. Out: effects.

use super::{Effect, Engine, incident};
use crate::bounds::{ADDRESSES_PROBED, HOSTS_MAX};
use crate::claims::{Claim, Opened, Subject};
use crate::table::{Address, Entry};
use hosts_contract::question::ADDRESSES_MAX;
use hosts_contract::{Incident, IncidentKind};
use std::net::IpAddr;
use view::{ConnectPoint, HostId};

impl Engine {
    /// A host was seen at an edge.
    pub(super) fn sighted(
        &mut self,
        id: HostId,
        at: ConnectPoint,
        address: Option<IpAddr>,
        now_ms: u64,
        out: &mut Vec<Effect>,
    ) {
        self.counts.sightings += 1;
        let known = self.table.get(id).map(|entry| (entry.at, entry.configured));
        match known {
            None => self.learn(id, at, address, now_ms, out),
            Some((place, _)) if place == at => self.seen(id, address, now_ms, out),
            Some((place, true)) => {
                self.counts.refused_moves += 1;
                let what = incident(IncidentKind::ConfiguredHostElsewhere, id, at, now_ms);
                self.report(Incident { address, stays_at: Some(place), ..what }, out);
            }
            Some((place, false)) if !self.edges.is_edge(place) => self.relocate(id, at, address, now_ms, out),
            Some(_) => self.claim(Subject::Place(id), (id, id), at, address, now_ms, out),
        }
    }

    /// A server has given a client an address.
    pub(super) fn leased(
        &mut self,
        server: HostId,
        at: ConnectPoint,
        lease: Option<(HostId, IpAddr)>,
        now_ms: u64,
        out: &mut Vec<Effect>,
    ) {
        let trusted = &self.settings.dhcp_servers;
        if !trusted.is_empty() && !trusted.contains(&at) {
            let what = incident(IncidentKind::RogueDhcpServer, server, at, now_ms);
            return self.report(Incident { address: lease.map(|(_, address)| address), ..what }, out);
        }
        if let Some((client, address)) = lease {
            self.take_address(client, address, now_ms, out);
        }
    }

    fn learn(
        &mut self,
        id: HostId,
        at: ConnectPoint,
        address: Option<IpAddr>,
        now_ms: u64,
        out: &mut Vec<Effect>,
    ) {
        if let Some(kind) = self.lack_of_room(at) {
            self.counts.no_room += 1;
            return self.report(Incident { address, ..incident(kind, id, at, now_ms) }, out);
        }
        let annotations = self.kept.get(&id).map(|kept| kept.annotations.clone()).unwrap_or_default();
        self.table.insert(Entry { annotations, ..Entry::seen(id, at, now_ms) });
        self.table.set_due(id, self.first_look(now_ms));
        self.tell(id, out);
        if let Some(address) = address {
            self.take_address(id, address, now_ms, out);
        }
    }

    /// Why one more host at this port has no room.
    fn lack_of_room(&self, at: ConnectPoint) -> Option<IncidentKind> {
        if self.table.len_at(at) >= self.settings.hosts_per_port {
            return Some(IncidentKind::PortFull);
        }
        (self.table.len() >= HOSTS_MAX).then_some(IncidentKind::TableFull)
    }

    /// A known host was seen at its place.
    fn seen(&mut self, id: HostId, address: Option<IpAddr>, now_ms: u64, out: &mut Vec<Effect>) {
        self.claims.answer(Subject::Place(id));
        let Some(entry) = self.table.get_mut(id) else { return };
        entry.seen_ms = now_ms;
        let Some(address) = address else { return };
        if let Some(known) = entry.address_mut(address) {
            *known = Address::seen(address, now_ms);
            self.claims.answer(Subject::Address(address, id.vlan));
        } else {
            self.take_address(id, address, now_ms, out);
        }
    }

    /// A known host has an address that it did not have before.
    fn take_address(&mut self, id: HostId, address: IpAddr, now_ms: u64, out: &mut Vec<Effect>) {
        let Some(entry) = self.table.get(id) else { return };
        let (at, is_fixed, count) = (entry.at, entry.has_fixed_addresses, entry.addresses.len());
        let holder = self.table.holder(address, id.vlan);
        match holder {
            Some(holder) if holder == id => {}
            Some(holder) => {
                let subject = Subject::Address(address, id.vlan);
                self.claim(subject, (id, holder), at, Some(address), now_ms, out);
            }
            None if is_fixed || count >= ADDRESSES_MAX => self.counts.no_room_for_address += 1,
            None => {
                self.table.add_address(id, Address::seen(address, now_ms));
                self.renew(id, now_ms, out);
            }
        }
    }

    /// A host has a new place or a new address.
    fn renew(&mut self, id: HostId, now_ms: u64, out: &mut Vec<Effect>) {
        if let Some(entry) = self.table.get_mut(id) {
            entry.since_ms = now_ms;
            self.tell(id, out);
        }
    }

    fn claim(
        &mut self,
        subject: Subject,
        (claimant, holder): (HostId, HostId),
        at: ConnectPoint,
        address: Option<IpAddr>,
        now_ms: u64,
        out: &mut Vec<Effect>,
    ) {
        let wait_ms = self.settings.move_wait_ms;
        let claim = Claim {
            subject,
            claimant,
            at,
            address,
            holder,
            answered: false,
            ask_ms: Some(now_ms + wait_ms / 2),
            until_ms: now_ms + wait_ms,
        };
        match self.claims.open(claim) {
            Opened::Examined => self.ask_holder(&claim, out),
            Opened::Already => {}
            Opened::NoRoom => self.counts.unexamined_claims += 1,
        }
    }

    /// Asks the host whose place or address is claimed.
    fn ask_holder(&mut self, claim: &Claim, out: &mut Vec<Effect>) {
        let Some(entry) = self.table.get(claim.holder) else { return };
        let is_asked = |address: &&Address| match claim.subject {
            Subject::Place(_) => true,
            Subject::Address(wanted, _) => wanted == address.address,
        };
        let asked = entry.addresses.iter().filter(is_asked).take(ADDRESSES_PROBED);
        let before = out.len();
        out.extend(asked.map(|it| Effect::Probe { at: entry.at, host: entry.id, address: it.address }));
        self.counts.probes += (out.len() - before) as u64;
    }

    /// Asks once more, or decides, for each claim whose time has come.
    pub(super) fn examine_claims(&mut self, now_ms: u64, out: &mut Vec<Effect>) {
        while let Some(claim) = self.claims.take_due(now_ms) {
            let settled_ms = self.edges.settled_at(claim.at);
            if now_ms < claim.until_ms {
                if !claim.answered {
                    self.ask_holder(&claim, out);
                }
                self.claims.insert(Claim { ask_ms: None, ..claim });
            } else if claim.answered && now_ms < settled_ms {
                self.claims.insert(Claim { ask_ms: None, until_ms: settled_ms, ..claim });
            } else {
                self.decide(&claim, now_ms, out);
            }
        }
    }

    fn decide(&mut self, claim: &Claim, now_ms: u64, out: &mut Vec<Effect>) {
        if !self.edges.is_edge(claim.at) {
            // The frame came in over a link, or the port has failed meanwhile.
            return;
        }
        match (claim.subject, claim.answered) {
            (Subject::Place(id), false) => self.accept_place(id, claim, now_ms, out),
            (Subject::Address(address, _), false) => self.accept_address(address, claim, now_ms, out),
            (subject, true) => self.refuse(subject, claim, now_ms, out),
        }
    }

    fn accept_place(&mut self, id: HostId, claim: &Claim, now_ms: u64, out: &mut Vec<Effect>) {
        match self.table.get(id).map(|entry| (entry.at, entry.configured)) {
            None => self.learn(id, claim.at, claim.address, now_ms, out),
            Some((place, configured)) if place == claim.at || configured => {}
            Some(_) => self.relocate(id, claim.at, claim.address, now_ms, out),
        }
    }

    fn relocate(
        &mut self,
        id: HostId,
        at: ConnectPoint,
        address: Option<IpAddr>,
        now_ms: u64,
        out: &mut Vec<Effect>,
    ) {
        // The table has no more hosts than before, but the port has.
        if self.table.len_at(at) >= self.settings.hosts_per_port {
            self.counts.no_room += 1;
            let what = incident(IncidentKind::PortFull, id, at, now_ms);
            return self.report(Incident { address, ..what }, out);
        }
        self.counts.moves += 1;
        self.table.place(id, at);
        self.renew(id, now_ms, out);
        self.seen(id, address, now_ms, out);
    }

    fn accept_address(&mut self, address: IpAddr, claim: &Claim, now_ms: u64, out: &mut Vec<Effect>) {
        if self.table.get(claim.claimant).is_none_or(|entry| entry.at != claim.at) {
            // It has gone or moved since it claimed the address.
            return;
        }
        let holder = self.table.holder(address, claim.claimant.vlan);
        if let Some(holder) = holder.filter(|holder| *holder != claim.claimant) {
            if self.table.get(holder).is_none_or(|entry| entry.has_fixed_addresses) {
                return self.refuse(claim.subject, claim, now_ms, out);
            }
            self.table.remove_address(holder, address);
            self.tell(holder, out);
        }
        self.take_address(claim.claimant, address, now_ms, out);
    }

    fn refuse(&mut self, subject: Subject, claim: &Claim, now_ms: u64, out: &mut Vec<Effect>) {
        let Claim { claimant, at, address, holder, .. } = *claim;
        let stays_at = self.table.get(holder).map(|entry| entry.at);
        let (kind, holder) = match subject {
            Subject::Place(_) => {
                self.counts.refused_moves += 1;
                (IncidentKind::HostAtTwoPorts, None)
            }
            Subject::Address(..) => (IncidentKind::AddressOfAnother, Some(holder)),
        };
        let what = incident(kind, claimant, at, now_ms);
        self.report(Incident { address, holder, stays_at, ..what }, out);
    }
}
