//! The sending half of an agent: which classes its VNICs need.
//!
//! In: VNICs, rates of receivers, caps of the label service, and time. Out: changes of the shaper, one batch after the other. It sends
//! nothing and touches no kernel.

use super::settings::Settings;
use crate::protocol::{Entry, NO_CAP, RateOf, What};
use crate::shaper::{Change, Deed, FLOW_SLOTS, Place, Rates, Shaper};
use crate::vnic::{AgentId, Directory, Flow, Vnic};
use std::collections::BTreeMap;

/// Without feedback for this long, a flow goes back to the guarantee.
pub const FEEDBACK_LIFE_NS: u64 = 1_000_000_000;

/// A cap that the label service does not repeat for this long, while it repeats others or says that there are none, is forgotten. It does so once a
/// second.
pub const CAP_LIFE_NS: u64 = 3_000_000_000;

/// While the service is away, a flow without direct feedback for this long is idle, and has no cap any more. A receiver speaks ten times a second.
pub const IDLE_NS: u64 = 2_000_000_000;

/// While the service is away, no cap lives longer than this. Others may have ended, so that a link has room that nobody would be told of.
pub const HELD_CAP_LIFE_NS: u64 = 300_000_000_000;

/// Without feedback for this long, a flow without a cap loses its class. Removing it earlier would drop what waits in it.
const CLASS_LIFE_NS: u64 = 10_000_000_000;

/// How often flows are looked at for this.
const LOOK_INTERVAL_NS: u64 = 50_000_000;

/// The most flows with feedback or a cap: as many as have a class. At the bound, a peer with less than an equal share takes the place of a flow of
/// the peer with the most. Other feedback is ignored, so that the flow stays at the guarantee.
const FLOWS_MAX: usize = FLOW_SLOTS as usize;

/// A change that failed waits for this long: what fails once often fails again at once. Other changes do not wait.
const RETRY_NS: u64 = 1_000_000_000;

/// What the class of a flow gets in any case. The rest is borrowed from its VNIC, in equal parts by those that need it.
const FLOW_RATE_BPS: u64 = 64_000;

/// The least rate of a class. Linux refuses less than a byte a second, and a class with so little could never send a frame.
const RATE_MIN_BPS: u64 = FLOW_RATE_BPS / 8;

#[derive(Debug, Default)]
pub(super) struct Sending {
    shaper: Shaper,
    flows: BTreeMap<Flow, Heard>,
    /// How many of them are to receivers of each agent.
    by_peer: BTreeMap<Option<AgentId>, usize>,
    /// The changes that are being made. None: the shaper is idle.
    in_flight: Option<Vec<Change>>,
    /// When what failed is tried again.
    retry_ns: Option<u64>,
    looked_ns: u64,
    /// When the label service said last which caps there are.
    told_ns: Option<u64>,
    ignored: u64,
}

/// What was said about a flow.
#[derive(Clone, Copy, Debug)]
struct Heard {
    /// The agent of the receiver, when the flow was heard of first.
    peer: Option<AgentId>,
    rate_bps: Option<u64>,
    at_ns: u64,
    /// The receiver's agent said so without the label service, so that its silence means an idle flow.
    is_direct: bool,
    cap_bps: Option<u64>,
    /// When the cap was heard last.
    capped_ns: u64,
}

impl Heard {
    /// Whether the cap is over. `told_ns`: when the label service said last which caps there are.
    fn has_old_cap(&self, now_ns: u64, told_ns: u64) -> bool {
        if self.cap_bps.is_none() {
            return false;
        }
        let away_ns = now_ns.saturating_sub(told_ns);
        let is_idle = self.is_direct && now_ns.saturating_sub(self.at_ns) >= IDLE_NS;
        told_ns.saturating_sub(self.capped_ns) >= CAP_LIFE_NS
            || away_ns >= CAP_LIFE_NS && is_idle
            || away_ns >= HELD_CAP_LIFE_NS
    }
}

impl Sending {
    /// The VNICs of this server are these now.
    pub(super) fn set_vnics(&mut self, old: &Directory, directory: &Directory, settings: &Settings) {
        let is_mine = |id| directory.get(id).is_some_and(|vnic| vnic.agent == Some(settings.me));
        for gone in old.of_agent(settings.me).filter(|vnic| !is_mine(vnic.id)) {
            self.shaper.drop(Place::Vnic(gone.id));
            self.shaper.drop(Place::Others(gone.id));
        }
        self.renew(old, directory, settings);
        let sum: u128 = directory.of_agent(settings.me).map(|vnic| u128::from(vnic.guarantee_bps)).sum();
        for vnic in directory.of_agent(settings.me) {
            // On an overbooked NIC, all get the same part of their guarantees. The headroom is for the agent's own datagrams.
            let part = u128::from(vnic.guarantee_bps) * u128::from(settings.capacity_bps()) / sum.max(1);
            let rate_bps = vnic.guarantee_bps.min(u64::try_from(part).unwrap_or(u64::MAX)).max(RATE_MIN_BPS);
            let ceiling_bps = most(vnic, settings);
            self.shaper.want(Place::Vnic(vnic.id), Rates { rate_bps, ceiling_bps });
            self.shaper.want(Place::Others(vnic.id), leaf(vnic.guarantee_bps.min(ceiling_bps)));
        }
        let flows: Vec<Flow> = self.flows.keys().copied().collect();
        for flow in flows {
            self.set(flow, directory, settings);
        }
    }

    /// Classes whose filters have an old address are made again.
    fn renew(&mut self, old: &Directory, directory: &Directory, settings: &Settings) {
        let address = |of: &Directory, id| of.get(id).map(|vnic| vnic.address);
        let has_moved = |id| address(old, id) != address(directory, id);
        for vnic in directory.of_agent(settings.me).filter(|vnic| has_moved(vnic.id)) {
            self.shaper.renew(Place::Others(vnic.id));
        }
        for flow in self.flows.keys().filter(|flow| has_moved(flow.sender) || has_moved(flow.receiver)) {
            self.shaper.renew(Place::Flow(*flow));
        }
    }

    /// A receiver says what a flow may have. `is_direct`: the label service does not pass it on.
    pub(super) fn on_rate(
        &mut self,
        now_ns: u64,
        rate: RateOf,
        is_direct: bool,
        directory: &Directory,
        settings: &Settings,
    ) {
        if let Some(heard) = self.heard(rate.flow, directory) {
            (heard.rate_bps, heard.at_ns, heard.is_direct) = (Some(rate.rate_bps), now_ns, is_direct);
            self.set(rate.flow, directory, settings);
        }
    }

    /// The label service says which caps there are, or a part of them: [`Sending::on_cap`] has each.
    pub(super) fn on_caps_told(&mut self, now_ns: u64) {
        self.told_ns = Some(now_ns);
    }

    /// The label service says what a flow gets of an overbooked link.
    pub(super) fn on_cap(&mut self, now_ns: u64, cap: RateOf, directory: &Directory, settings: &Settings) {
        if let Some(heard) = self.heard(cap.flow, directory) {
            heard.capped_ns = now_ns;
            heard.cap_bps = (cap.rate_bps != NO_CAP).then_some(cap.rate_bps);
            self.set(cap.flow, directory, settings);
        }
    }

    /// Time has passed: old feedback counts no more.
    pub(super) fn look(&mut self, now_ns: u64, directory: &Directory, settings: &Settings) {
        if now_ns.saturating_sub(self.looked_ns) < LOOK_INTERVAL_NS {
            return;
        }
        self.looked_ns = now_ns;
        let age = |heard: &Heard| now_ns.saturating_sub(heard.at_ns);
        let told_ns = self.told_ns.unwrap_or_default();
        let (mut old, mut gone) = (Vec::new(), Vec::new());
        for (flow, heard) in &mut self.flows {
            if heard.has_old_cap(now_ns, told_ns) {
                heard.cap_bps = None;
                old.push(*flow);
            } else if heard.cap_bps.is_none() && age(heard) >= CLASS_LIFE_NS {
                gone.push(*flow);
            } else if heard.rate_bps.is_some() && age(heard) >= FEEDBACK_LIFE_NS {
                heard.rate_bps = None;
                old.push(*flow);
            }
        }
        gone.into_iter().for_each(|flow| self.forget(flow));
        for flow in old {
            self.set(flow, directory, settings);
        }
    }

    /// The next batch of changes, if the last one is confirmed.
    pub(super) fn changes(&mut self, now_ns: u64) -> Vec<Change> {
        if self.in_flight.is_some() {
            return Vec::new();
        }
        if self.retry_ns.is_some_and(|at_ns| now_ns >= at_ns) {
            self.retry_ns = None;
            self.shaper.retry();
        }
        let changes = self.shaper.changes();
        if !changes.is_empty() {
            self.in_flight = Some(changes.clone());
        }
        changes
    }

    /// The batch was made, except for these places. Returns what the label service must know.
    pub(super) fn confirm(&mut self, now_ns: u64, failed: &[Place]) -> Vec<Entry> {
        if !failed.is_empty() {
            self.retry_ns.get_or_insert(now_ns.saturating_add(RETRY_NS));
        }
        failed.iter().for_each(|place| self.shaper.failed(*place));
        let made = self.in_flight.take().into_iter().flatten();
        made.filter_map(|change| match (change.place, change.deed) {
            (Place::Flow(flow), Deed::Add(rates) | Deed::Change(rates))
                if !failed.contains(&change.place) =>
            {
                Some(Entry { what: What::Shaped, flow, rate_bps: rates.ceiling_bps })
            }
            _ => None,
        })
        .collect()
    }

    /// How many places have no class now, and how often feedback was ignored because of too many flows.
    pub(super) fn overflow(&self) -> (u64, u64) {
        (self.shaper.unplaced(), self.ignored)
    }

    fn heard(&mut self, flow: Flow, directory: &Directory) -> Option<&mut Heard> {
        if !self.flows.contains_key(&flow) {
            let peer = directory.get(flow.receiver).and_then(|receiver| receiver.agent);
            if self.flows.len() >= FLOWS_MAX && !self.make_room(peer) {
                self.ignored += 1;
                return None;
            }
            *self.by_peer.entry(peer).or_default() += 1;
            let heard =
                Heard { peer, rate_bps: None, at_ns: 0, is_direct: false, cap_bps: None, capped_ns: 0 };
            self.flows.insert(flow, heard);
        }
        self.flows.get_mut(&flow)
    }

    /// Gives up a flow of the peer with the most, if this peer has less than an equal share. Otherwise a peer that asks for many flows could take all
    /// classes.
    fn make_room(&mut self, peer: Option<AgentId>) -> bool {
        let has = self.by_peer.get(&peer).copied().unwrap_or_default();
        let peers = self.by_peer.len() + usize::from(has == 0);
        if has >= FLOWS_MAX / peers.max(1) {
            return false;
        }
        let most = self.by_peer.iter().max_by_key(|(_, count)| **count).map(|(peer, _)| *peer);
        let of_most = self.flows.iter().filter(|(_, heard)| Some(heard.peer) == most);
        // The one that was heard of longest ago; caps of the label service last.
        let oldest = of_most.min_by_key(|(_, heard)| (heard.cap_bps.is_some(), heard.at_ns));
        let Some(flow) = oldest.map(|(flow, _)| *flow) else { return false };
        self.forget(flow);
        true
    }

    fn forget(&mut self, flow: Flow) {
        self.shaper.drop(Place::Flow(flow));
        let Some(heard) = self.flows.remove(&flow) else { return };
        if let Some(count) = self.by_peer.get_mut(&heard.peer) {
            *count -= 1;
            if *count == 0 {
                self.by_peer.remove(&heard.peer);
            }
        }
    }

    fn set(&mut self, flow: Flow, directory: &Directory, settings: &Settings) {
        let place = Place::Flow(flow);
        let ends = directory.ends(flow).filter(|(sender, _)| sender.agent == Some(settings.me));
        match (self.flows.get(&flow), ends) {
            (Some(heard), Some((sender, receiver))) => {
                let guarantee_bps = sender.guarantee_bps.min(receiver.guarantee_bps);
                let ceiling_bps = heard.rate_bps.unwrap_or(guarantee_bps);
                let ceiling_bps = ceiling_bps.min(heard.cap_bps.unwrap_or(u64::MAX));
                self.shaper.want(place, leaf(ceiling_bps.min(most(sender, settings))));
            }
            _ => self.forget(flow),
        }
    }
}

/// What a VNIC may send at most.
fn most(vnic: &Vnic, settings: &Settings) -> u64 {
    if vnic.strict { vnic.guarantee_bps.min(settings.nic_bps) } else { settings.nic_bps }
}

/// The rates of a class that borrows up to its ceiling.
fn leaf(ceiling_bps: u64) -> Rates {
    let ceiling_bps = ceiling_bps.max(RATE_MIN_BPS);
    Rates { rate_bps: ceiling_bps.min(FLOW_RATE_BPS), ceiling_bps }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vnic::{Address, SliceId, VnicId};
    use flow::MacAddr;

    const ME: AgentId = AgentId(1);

    fn vnic(id: u32, agent: AgentId) -> Vnic {
        let [_, _, high, low] = id.to_be_bytes();
        let address = Address { vlan: None, mac: MacAddr([2, 0, 0, 0, high, low]) };
        Vnic {
            id: VnicId(id),
            slice: SliceId(1),
            agent: Some(agent),
            address,
            guarantee_bps: 1_000_000,
            strict: false,
        }
    }

    #[test]
    fn no_class_has_a_rate_that_linux_refuses() {
        let tiny = Vnic { guarantee_bps: 1, strict: true, ..vnic(1, ME) };
        let directory = Directory::new([tiny, vnic(2, ME)]).unwrap();
        let settings = Settings::for_nic(ME, 1_000_000_000, 1);
        let mut sending = Sending::default();
        sending.set_vnics(&Directory::default(), &directory, &settings);
        let changes = sending.changes(0);
        let is_enough = |change: &Change| match change.deed {
            Deed::Add(rates) => rates.rate_bps >= 8_000 && rates.ceiling_bps >= rates.rate_bps,
            _ => false,
        };
        assert!(changes.len() == 4 && changes.iter().all(is_enough), "{changes:?}");
    }

    #[test]
    fn a_peer_that_asks_for_many_flows_leaves_others_their_share() {
        // 20 senders here, and 250 receivers of each of two peers.
        let mine = (1..=20).map(|id| vnic(id, ME));
        let first = (1001..=1250).map(|id| vnic(id, AgentId(2)));
        let second = (2001..=2250).map(|id| vnic(id, AgentId(3)));
        let directory = Directory::new(mine.chain(first).chain(second)).unwrap();
        let settings = Settings::for_nic(ME, 1_000_000_000, 1);
        let mut sending = Sending::default();
        sending.set_vnics(&Directory::default(), &directory, &settings);
        let mut now_ns = 0;
        let mut say = |sending: &mut Sending, senders: u32, receivers: u32| {
            for (from, to) in (1..=senders).flat_map(|from| (1..=250).map(move |to| (from, receivers + to))) {
                let flow = Flow { sender: VnicId(from), receiver: VnicId(to) };
                now_ns += 1;
                sending.on_rate(now_ns, RateOf { flow, rate_bps: 500_000 }, true, &directory, &settings);
            }
        };
        let has = |sending: &Sending| {
            [2, 3].map(|peer| sending.by_peer.get(&Some(AgentId(peer))).copied().unwrap_or_default())
        };
        say(&mut sending, 20, 1000);
        assert_eq!((has(&sending), sending.ignored), ([4000, 0], 1000));
        say(&mut sending, 2, 2000);
        assert_eq!(has(&sending), [3500, 500], "there is room for who has less");
        say(&mut sending, 20, 2000);
        assert_eq!(has(&sending), [2000, 2000], "and not for more than an equal share");
        say(&mut sending, 20, 1000);
        assert_eq!((has(&sending), sending.flows.len()), ([2000, 2000], FLOWS_MAX));
        // All that is heard of has a class in the end.
        while !sending.changes(0).is_empty() {
            sending.confirm(0, &[]);
        }
        assert_eq!(sending.overflow().0, 0);
    }
}
