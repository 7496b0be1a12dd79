//! Changes the grant of a running app.
//!
//! In: the zone and its new grant. Out: the same zone with it, and the effects of newly allowed subscriptions. The
//! app's rules, groups and counts stay. It never starts or ends an app.

use abi::ZoneId;

use crate::decision::Effect;
use crate::dispatch::Kernel;
use crate::grant::Grant;
use crate::quota::NodeRates;
use crate::receivers::needed_to_hear;
use crate::shapes::Prepared;

impl Kernel {
    /// Gives the app of this zone a new grant, which replaces the old one. A subscription that was refused before
    /// becomes active if it is allowed now. An active one is limited to the new grant. A rate restarts if its quota
    /// changed. It does nothing if the zone is not attached.
    pub fn regrant(&mut self, zone: ZoneId, grant: Grant, now_ms: u64, effects: &mut Vec<Effect>) {
        let rates = NodeRates::new(grant.quotas(), now_ms);
        self.regrant_sharing(zone, grant, &rates, now_ms, effects);
    }

    /// The same at one of several workers. All workers get the same rates.
    pub fn regrant_sharing(
        &mut self,
        zone: ZoneId,
        grant: Grant,
        rates: &NodeRates,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) {
        if self.zone(zone).is_none() {
            return;
        }
        let own_rules_go_beyond = self.on_grant(zone, &grant, now_ms);
        self.forget_buffers(zone);
        let Some(of_zone) = self.zones.get_mut(usize::from(zone.0)).and_then(Option::as_mut) else { return };
        of_zone.own_rules_go_beyond = own_rules_go_beyond;
        of_zone.rates.renew(rates.at_worker());
        // The decisions on the shapes of its rules were based on the old grant.
        of_zone.prepared = Prepared::default();
        let before = std::mem::replace(&mut of_zone.grant, grant);
        let wanted = of_zone.refused_subscription.take();
        let is_new = wanted.is_some();
        let subscription = wanted.unwrap_or_else(|| of_zone.subscription.clone());
        let holds = |grant: &Grant| subscription.kinds().all(|kind| grant.holds(needed_to_hear(kind)));
        // A zone that received all of it before needs no replay.
        if holds(&of_zone.grant) && (is_new || !holds(&before)) {
            return self.subscribe(zone, subscription, now_ms, effects);
        }
        let has_other_packets = of_zone.grant.packets_in() != before.packets_in();
        if let Some(of_zone) = self.zones.get_mut(usize::from(zone.0)).and_then(Option::as_mut)
            && of_zone.subscription != subscription
        {
            of_zone.refused_subscription = Some(subscription);
        }
        self.receivers.index(&self.zones);
        if has_other_packets {
            self.on_wish(zone, now_ms, effects);
        }
    }
}
