//! Decides whether the kernel accepts a command.
//!
//! In: a command of a zone. Out: a decision. It changes only one part of a command: the upper bits of the cookie become the owner.

use crate::bounds::{ALL_TABLES, Reaches, Scratch, command as flow_command};
use crate::budgets;
use crate::buffers::Handed;
use crate::calls::End;
use crate::capability::Capability;
use crate::charge::{Becomes, take};
use crate::decision::{Decision, Effect, Refusal};
use crate::dispatch::Kernel;
use crate::ownership::{MeantRule, Then, ToNote, names_foreign_rule};
use crate::precedence::{Others, Stamp};
use crate::receivers::needed_to_hear;

use crate::excess::Excess;
use crate::fanout::UsualParts;
use crate::grant::Bounds;
use crate::own_messages::OWN_TICKET;
use crate::owned::{Change, Claimant};
use crate::quota::QuotaKind;
use crate::reported_rules::stays;
use crate::rule_key::{RuleKey, taken_place};
use crate::rules::Age;
use crate::subscription::Subscription;
use crate::visible::needed_to_ask;
use crate::wellformed;
use crate::zones::Zone;
use abi::command::{Command, FlowMod, GroupMod, MeterMod, PacketOut, StatsRequest, Subscribe, What};
use abi::event::{NOT_GRANTED, OVER_QUOTA};
use abi::zone_id::COOKIE_MASK;
use abi::{Frame, OpenFlowVersion, ZoneId};
use flow::canonical::Dialect;
use flow::vendor::{VendorPart, parts_of_actions};
use flow::{DatapathId, PortNo};

impl Kernel {
    /// Decides on a command of a zone at this time, and appends other effects to `effects`. For a command to be sent,
    /// it records nothing until [`Self::on_sent`] reports that it was sent.
    pub fn on_command<'a>(
        &mut self,
        zone: ZoneId,
        frame: &Frame<'a>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Decision<'a> {
        self.ownership.to_note = None;
        self.precedence.forget_place();
        let decision = match Command::read(frame) {
            Ok(command) => match self.take_command(zone, now_ms, effects) {
                Ok(()) => self.decide(zone, command, now_ms, effects),
                Err(refusal) => Err(refusal),
            },
            Err(malformed) => Err(Refusal::Malformed(malformed)),
        };
        // Whether it passes or not.
        self.scratch.count_compared(self.ownership.owned.take_visits());
        if let Ok(Decision::Send(Command { what: What::FlowMod(_), .. })) = &decision {
            self.prepare(zone, frame);
        }
        if let Some(Some(zone)) = self.zones.get_mut(usize::from(zone.0)) {
            zone.counters.commands += 1;
            zone.counters.refusals += u64::from(decision.is_err());
            let passed =
                |it: &Decision<'_>| matches!(it, Decision::Send(Command { what: What::PacketOut(_), .. }));
            zone.counters.packet_outs += u64::from(decision.as_ref().is_ok_and(passed));
        }
        decision.unwrap_or_else(Decision::Refuse)
    }

    /// Counts a command for a switch of another worker that cannot take it now. It counts as refused, and against the
    /// quota.
    ///
    /// # Errors
    /// The quota is used up. The app gets this as the reason.
    #[cold]
    pub fn on_undelivered(
        &mut self,
        zone: ZoneId,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let taken = self.take_command(zone, now_ms, effects);
        if let Some(Some(zone)) = self.zones.get_mut(usize::from(zone.0)) {
            zone.counters.commands += 1;
            zone.counters.refusals += 1;
        }
        taken
    }

    fn decide<'a>(
        &mut self,
        zone: ZoneId,
        command: Command<'a>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Decision<'a>, Refusal> {
        if command.ticket >= OWN_TICKET {
            return Err(Refusal::Ticket);
        }
        if let Some(capability) = needed_for(&command.what) {
            self.require(zone, capability)?;
        }
        let end = End { zone, ticket: command.ticket };
        match command.what {
            What::Subscribe(subscribe) => self.decide_subscription(zone, &subscribe, now_ms, effects),
            What::FlowMod(flow_mod) => self.decide_flow_mod(zone, command, flow_mod, now_ms, effects),
            What::PacketOut(it) => self.decide_packet_out(zone, command, &it, now_ms, effects),
            What::GroupMod(group_mod) => {
                let change = self.check_group_mod(zone, &command, &group_mod)?;
                self.decide_change(command, change)
            }
            What::MeterMod(meter_mod) => {
                let change = self.check_meter_mod(zone, &command, &meter_mod)?;
                self.decide_change(command, change)
            }
            What::PortMod(port_mod) => {
                self.check_bounds(zone, Capability::PortWrite, command.datapath, |it, _| {
                    it.check_datapath(command.datapath).and_then(|()| it.check_port(port_mod.port_no))
                })?;
                self.send(command)
            }
            What::StatsRequest(request) => self.decide_statistics(zone, command, request, now_ms, effects),
            What::Barrier => {
                self.check_barrier(zone, command.datapath)?;
                self.send(command)
            }
            What::Publish(publish) => {
                self.require_for(zone, Capability::Publish, publish.topic)?;
                self.topics.publish(zone, &publish).map(Decision::Publish).map_err(Refusal::NotPublished)
            }
            What::Query(ask) => {
                let there = self.zones.get(usize::from(zone.0)).and_then(Option::as_ref);
                self.services.ask(end, there, ask, now_ms)
            }
            What::QueryAnswer(answer) => {
                let decided = self.services.answer(end, answer, now_ms, effects)?;
                self.count_refusal_of_service(&decided);
                Ok(decided)
            }
            What::QueryCredit(bytes) => self.services.credit(end, bytes),
            What::QueryCancel => Ok(self.services.cancel(end)),
            What::Log(log) => Ok(Decision::Log(log)),
            What::Bundle(bundle) => self.decide_bundle(zone, &command, bundle),
        }
    }

    #[inline]
    fn decide_packet_out<'a>(
        &mut self,
        zone: ZoneId,
        command: Command<'a>,
        it: &PacketOut<'a>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Decision<'a>, Refusal> {
        let becomes = self.check_packet_out(zone, command.datapath, it, now_ms)?;
        self.take_packets(zone, command.datapath, becomes, it, now_ms, effects)?;
        self.use_buffer(command.datapath, it.buffer_id);
        self.send(command)
    }

    /// Decides on a flow mod: its bounds, its owner, the order of apps, and the space in its table.
    #[inline(always)]
    fn decide_flow_mod<'a>(
        &mut self,
        zone: ZoneId,
        command: Command<'a>,
        flow_mod: FlowMod<'a>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Decision<'a>, Refusal> {
        let usual = UsualParts::read(&flow_mod);
        let taken = self.as_taken(command.datapath, &flow_mod);
        self.check_flow_mod(zone, command.datapath, &taken, &usual, now_ms)
            .map_err(|refusal| why_exact(refusal, &flow_mod))?;
        let meant = self.check_owner(zone, command.datapath, &taken, &usual, now_ms, effects)?;
        // A rule that replaces an existing one needs no new entry.
        let is_new = !matches!(meant, Some((_, Some(known))) if known.is_sure);
        let stamped = self.stamp(zone, command.datapath, flow_mod);
        if flow_mod.command < flow_command::DELETE {
            let key = meant.map(|(key, _)| key);
            self.check_place(zone, command.datapath, key, (&taken, &stamped), now_ms, effects)?;
        } else if self.precedence.has_wide() {
            self.note_delete(command.datapath, &taken, &stamped, now_ms);
        }
        if flow_mod.command != flow_command::ADD || taken.priority == 0 {
            self.note_own(command.datapath, &taken, &stamped);
        }
        if flow_mod.command < flow_command::DELETE && is_new {
            self.take_entry(zone, (command.datapath, taken.table_id), now_ms, effects)?;
        }
        if self.precedence.is_pending() && self.precedence.opens_tables() {
            self.punt_from_reached(command.datapath, None, effects);
        }
        self.ownership.to_note = self.what_follows(zone, command.datapath, &flow_mod, meant, now_ms);
        self.use_buffer(command.datapath, flow_mod.buffer_id);
        self.send(Command { what: What::FlowMod(stamped), ..command })
    }

    fn decide_statistics<'a>(
        &mut self,
        zone: ZoneId,
        command: Command<'a>,
        request: StatsRequest<'a>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Decision<'a>, Refusal> {
        if let Some(part) = wellformed::statistics(&request)? {
            self.require_vendor(zone, part)?;
        }
        if let Some(capability) = needed_to_ask(&request) {
            self.require(zone, capability)?;
        }
        self.sessions.check_here(command.datapath)?;
        self.take_stats(zone, command.datapath, request.multipart, now_ms, effects)?;
        self.send(command)
    }

    /// Decides on a group mod or meter mod. Its owner changes once it is sent.
    fn decide_change<'a>(&mut self, command: Command<'a>, change: Change) -> Result<Decision<'a>, Refusal> {
        let claim = change.claim();
        (self.ownership.to_note, self.ownership.change) = (Some(ToNote::Owned), Some(Box::new(change)));
        self.send(claimed(command, claim))
    }

    /// A refusal by a service, because of a grant or a quota, counts like a refusal by the kernel.
    fn count_refusal_of_service(&mut self, decided: &Decision<'_>) {
        if let Decision::Answer { to, answer, .. } = decided
            && matches!(answer.status, NOT_GRANTED | OVER_QUOTA)
            && let Some(Some(zone)) = self.zones.get_mut(usize::from(to.0))
        {
            zone.counters.refusals += 1;
        }
    }

    #[inline]
    pub(crate) fn require(&self, zone: ZoneId, capability: Capability) -> Result<(), Refusal> {
        let held = self.zone(zone).is_some_and(|zone| zone.grant.holds(capability));
        if held { Ok(()) } else { Err(Refusal::Needs(capability)) }
    }

    #[inline]
    fn require_for(&self, zone: ZoneId, capability: Capability, name: &str) -> Result<(), Refusal> {
        let held = self.zone(zone).is_some_and(|zone| zone.grant.holds_for(capability, name));
        if held { Ok(()) } else { Err(Refusal::NotFor(capability)) }
    }

    #[cold]
    fn require_vendor(&self, zone: ZoneId, part: VendorPart) -> Result<(), Refusal> {
        let held = self.zone(zone).is_some_and(|zone| zone.grant.holds_vendor(part));
        if held { Ok(()) } else { Err(Refusal::Vendor(part)) }
    }

    #[cold]
    fn require_vendors(
        &self,
        zone: ZoneId,
        mut parts: impl Iterator<Item = VendorPart>,
    ) -> Result<(), Refusal> {
        parts.try_for_each(|part| self.require_vendor(zone, part))
    }

    /// See [`crate::ownership::Ownership::check_owner`].
    #[inline]
    fn check_owner(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        it: &FlowMod<'_>,
        usual: &UsualParts,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<MeantRule>, Refusal> {
        let Kernel { ownership, sessions, zones, scratch, .. } = self;
        let there = zones.get(usize::from(zone.0)).and_then(Option::as_ref);
        ownership.check_owner((zone, there), sessions, datapath, it, (usual, scratch), now_ms, effects)
    }

    #[inline]
    fn check_place(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        key: Option<RuleKey>,
        (it, stamped): (&FlowMod<'_>, &FlowMod<'_>),
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let stamp = self.stamp_of(datapath, stamped);
        let Kernel { precedence, sessions, zones, receivers, scratch, .. } = self;
        let mut others = Others { datapaths: &sessions.datapaths, zones, receivers, scratch, now_ms };
        precedence.check_place(zone, datapath, key, (it, stamp), &mut others, effects)
    }

    #[inline]
    fn stamp_of(&self, datapath: DatapathId, stamped: &FlowMod<'_>) -> Stamp {
        let FlowMod { command, cookie, cookie_mask, .. } = *stamped;
        let adds_missing = command != flow_command::ADD && self.sessions.speaks_1_0(datapath);
        Stamp { cookie, cookie_mask, adds_missing }
    }

    /// A delete may reach rules that match all packets of an app.
    #[cold]
    fn note_delete(&mut self, datapath: DatapathId, it: &FlowMod<'_>, stamped: &FlowMod<'_>, now_ms: u64) {
        let stamp = self.stamp_of(datapath, stamped);
        let Kernel { precedence, sessions, zones, receivers, scratch, .. } = self;
        let mut others = Others { datapaths: &sessions.datapaths, zones, receivers, scratch, now_ms };
        precedence.on_delete(datapath, (it, stamp), &mut others);
    }

    #[inline]
    fn take_entry(
        &mut self,
        zone: ZoneId,
        table: (DatapathId, u8),
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let Kernel { budgets, sessions, zones, .. } = self;
        let there = zones.get(usize::from(zone.0)).and_then(Option::as_ref);
        budgets.take_entry((zone, there), table, &mut sessions.datapaths, now_ms, effects)
    }

    #[inline]
    fn take_packets(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        becomes: Becomes,
        it: &PacketOut<'_>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let Kernel { sessions, zones, .. } = self;
        let Some(Some(there)) = zones.get_mut(usize::from(zone.0)) else { return Ok(()) };
        let switch = (datapath, &mut sessions.datapaths);
        budgets::take_packets((zone, there), switch, becomes, it, now_ms, effects)
    }

    fn take_stats(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        multipart: u16,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let Kernel { sessions, zones, .. } = self;
        let Some(Some(there)) = zones.get_mut(usize::from(zone.0)) else { return Ok(()) };
        budgets::take_stats((zone, there), (datapath, &sessions.datapaths), multipart, now_ms, effects)
    }

    #[inline]
    fn check_flow_mod(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        it: &FlowMod<'_>,
        usual: &UsualParts,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        if wellformed::flow_mod(it, usual, self.scratch.rule_mut())? == Dialect::Vendors {
            self.require_vendors(zone, wellformed::vendors_of_flow_mod(it))?;
        }
        if it.table_id == ALL_TABLES && it.command < flow_command::DELETE {
            // Open vSwitch takes it for table 0 of an add and for each table of a modify; the specification has no such rule.
            return Err(Refusal::AllTables);
        }
        if it.priority == 0 && self.is_kernels_own(datapath, it) {
            self.require(zone, Capability::RuleWriteOthers).map_err(|_| Refusal::KernelsRule)?;
        }
        if it.buffer_id.is_some() && it.command < flow_command::DELETE {
            self.require(zone, Capability::PacketIn)?;
        }
        let handed = self.handed(zone, datapath, it.buffer_id, now_ms);
        self.check_bounds(zone, Capability::RuleWrite, datapath, |reaches, scratch| {
            reaches.check_flow_mod(datapath, it, (usual, handed), scratch)
        })?;
        self.sessions.check_here(datapath)?;
        self.check_rules_indirect_effects(zone, datapath, it, usual.output)
    }

    /// The same with the table and the priority that the switch gives the rule.
    #[inline]
    fn as_taken<'a>(&mut self, datapath: DatapathId, it: &FlowMod<'a>) -> FlowMod<'a> {
        // If the switch is not connected here, that is the only decision.
        let openflow = self.sessions.check_here(datapath).unwrap_or(OpenFlowVersion::V1_3);
        let (table_id, priority) = taken_place(openflow, it.table_id, it.priority, it.matching);
        FlowMod { table_id, priority, ..*it }
    }

    /// What to record of an accepted flow mod.
    #[inline(always)]
    fn what_follows(
        &self,
        zone: ZoneId,
        datapath: DatapathId,
        it: &FlowMod<'_>,
        meant: Option<MeantRule>,
        now_ms: u64,
    ) -> Option<ToNote> {
        let stays = stays(it.idle_timeout_s, it.hard_timeout_s, it.flags);
        let has = Then::Has { zone, stays, age: Age::at(now_ms) };
        let then = match (it.command, meant) {
            (flow_command::ADD, Some((key, _))) => (key, has),
            (flow_command::MODIFY | flow_command::MODIFY_STRICT, Some((key, _))) => {
                (key, self.modified(datapath, has)?)
            }
            // If a filter may keep a rule in the switch, the rule still has its owner.
            (_, Some((key, Some(known)))) if !has_filter(it) => (key, Then::Gone(known.owner)),
            (flow_command::MODIFY, _) => return None,
            (_, Some((_, None))) => return None,
            // It is in the record until the switch reports that it is gone.
            _ if names_foreign_rule(it) => return None,
            _ => return Some(self.doubt(zone, datapath)),
        };
        Some(ToNote::Rule { datapath, key: then.0, then: then.1 })
    }

    /// A modify of 1.0 adds a missing rule, and changes the cookie of an existing one. Later versions do neither.
    #[cold]
    fn modified(&self, datapath: DatapathId, has: Then) -> Option<Then> {
        self.sessions.speaks_1_0(datapath).then_some(has)
    }

    /// The zone whose rules may be gone after a loose delete: the sender, or all zones if it also reaches other apps'
    /// rules.
    #[cold]
    fn doubt(&self, zone: ZoneId, datapath: DatapathId) -> ToNote {
        let reaches_all = self.require(zone, Capability::RuleWriteOthers).is_ok();
        ToNote::Doubt { datapath, zone: (!reaches_all).then_some(zone) }
    }

    #[inline]
    fn check_packet_out(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        it: &PacketOut<'_>,
        now_ms: u64,
    ) -> Result<Becomes, Refusal> {
        if wellformed::actions(it.actions)? == Dialect::Vendors {
            self.require_vendors(zone, parts_of_actions(it.actions))?;
        }
        if it.buffer_id.is_some() {
            // A packet in the switch's buffer was a packet-in for apps with this capability.
            self.require(zone, Capability::PacketIn)?;
        }
        let handed = self.handed(zone, datapath, it.buffer_id, now_ms);
        self.check_bounds(zone, Capability::PacketOut, datapath, |reaches, scratch| {
            reaches.check_packet_out(datapath, it, handed, scratch)
        })?;
        self.sessions.check_here(datapath)?;
        self.check_packet_outs_indirect_effects(zone, datapath, it.actions)
    }

    /// What is known of a packet in the switch's buffer, if the zone received it and may still use it.
    #[inline]
    fn handed(
        &self,
        zone: ZoneId,
        datapath: DatapathId,
        buffer_id: Option<u32>,
        now_ms: u64,
    ) -> Option<Handed> {
        self.sessions.datapaths.get(&datapath)?.buffers.find(zone, buffer_id?, now_ms)
    }

    /// A buffer is used, which happens once.
    #[inline]
    fn use_buffer(&mut self, datapath: DatapathId, buffer_id: Option<u32>) {
        if let Some(buffer_id) = buffer_id
            && let Some(there) = self.sessions.datapaths.get_mut(&datapath)
        {
            there.buffers.on_used(buffer_id);
        }
    }

    fn check_group_mod(
        &mut self,
        zone: ZoneId,
        command: &Command<'_>,
        it: &GroupMod<'_>,
    ) -> Result<Change, Refusal> {
        if wellformed::group_mod(it)? == Dialect::Vendors {
            self.require_vendors(zone, wellformed::vendors_of_group_mod(it))?;
        }
        self.change_group(zone, command.datapath, it, claimant(command))
    }

    fn check_meter_mod(
        &mut self,
        zone: ZoneId,
        command: &Command<'_>,
        it: &MeterMod<'_>,
    ) -> Result<Change, Refusal> {
        wellformed::meter_mod(it, |part| self.require_vendor(zone, part))?;
        self.change_meter(zone, command.datapath, it, claimant(command))
    }

    /// A barrier needs a capability to command the switch: only then does the app have commands to wait for.
    fn check_barrier(&self, zone: ZoneId, datapath: DatapathId) -> Result<(), Refusal> {
        let Some(Zone { grant, .. }) = self.zone(zone) else { return Ok(()) };
        let reaches = |capability, bounds: &Bounds| grant.holds(capability) && bounds.has_switch(datapath);
        let has_business = grant.holds(Capability::StatsRead)
            || reaches(Capability::RuleWrite, grant.rules())
            || reaches(Capability::PacketOut, grant.packets_out())
            || reaches(Capability::PortWrite, grant.ports());
        if has_business { Ok(()) } else { Err(Refusal::NothingToDoThere(datapath)) }
    }

    /// Checks a command's details only if the capability has bounds.
    #[inline]
    pub(crate) fn check_bounds(
        &mut self,
        zone: ZoneId,
        capability: Capability,
        datapath: DatapathId,
        check: impl FnOnce(&Reaches<'_>, &mut Scratch) -> Result<(), Excess>,
    ) -> Result<(), Refusal> {
        let Kernel { zones, scratch, ownership, .. } = self;
        scratch.relies_on_groups = false;
        let Some(Some(zone)) = zones.get(usize::from(zone.0)) else { return Ok(()) };
        if !zone.grant.is_bounded(capability) {
            return Ok(());
        }
        let bounds = match capability {
            Capability::PacketOut => zone.grant.packets_out(),
            Capability::PortWrite => zone.grant.ports(),
            _ => zone.grant.rules(),
        };
        let reaches = Reaches {
            bounds,
            here: bounds.at(datapath),
            hears_packets: zone.grant.holds(Capability::PacketIn),
            others_too: zone.grant.holds(Capability::RuleWriteOthers),
            own_rules_go_beyond: capability == Capability::PacketOut && zone.own_rules_go_beyond,
            datapath,
            owned: &ownership.owned,
        };
        check(&reaches, scratch).map_err(|excess| Refusal::Beyond(capability, excess))
    }

    #[inline]
    fn take_command(&mut self, zone: ZoneId, now_ms: u64, effects: &mut Vec<Effect>) -> Result<(), Refusal> {
        let Some(Some(there)) = self.zones.get_mut(usize::from(zone.0)) else { return Ok(()) };
        match &mut there.rates.commands {
            None => Ok(()),
            Some(rate) => take(rate, QuotaKind::CommandsPerS, zone, 1, now_ms, effects),
        }
    }

    fn decide_subscription<'a>(
        &mut self,
        zone: ZoneId,
        asked: &Subscribe<'_>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Decision<'a>, Refusal> {
        let subscription = Subscription::read(asked).map_err(Refusal::Malformed)?;
        for kind in subscription.kinds() {
            if let Err(refusal) = self.require(zone, needed_to_hear(kind)) {
                if let Some(of_zone) = self.zones.get_mut(usize::from(zone.0)).and_then(Option::as_mut) {
                    of_zone.refused_subscription = Some(subscription);
                }
                return Err(refusal);
            }
        }
        if self.zone(zone).is_some_and(|it| it.subscription == subscription) {
            // It only asks for a replay: who receives what, and who may use which buffer, stays.
            effects.push(Effect::Replay(zone));
        } else {
            self.subscribe(zone, subscription, now_ms, effects);
        }
        Ok(Decision::Subscribed)
    }

    #[inline(always)]
    fn send<'a>(&mut self, command: Command<'a>) -> Result<Decision<'a>, Refusal> {
        self.sessions.check_here(command.datapath)?;
        Ok(Decision::Send(command))
    }

    /// Writes the owner into the flow mod.
    #[inline(always)]
    fn stamp<'a>(&self, zone: ZoneId, datapath: DatapathId, flow_mod: FlowMod<'a>) -> FlowMod<'a> {
        let (cookie, cookie_mask) = self.owned_cookie(zone, datapath, &flow_mod);
        FlowMod { cookie, cookie_mask, ..flow_mod }
    }

    /// The cookie with its owner, and a mask that protects the rules of others.
    #[inline(always)]
    fn owned_cookie(&self, zone: ZoneId, datapath: DatapathId, flow_mod: &FlowMod<'_>) -> (u64, u64) {
        let own_mask = flow_mod.cookie_mask & COOKIE_MASK;
        if flow_mod.command == flow_command::ADD {
            return (zone.stamp(flow_mod.cookie), 0);
        }
        if self.require(zone, Capability::RuleWriteOthers).is_ok() {
            // A modify of 1.0 writes its cookie into the rule that it finds or adds.
            let writes = flow_mod.command < flow_command::DELETE && self.sessions.speaks_1_0(datapath);
            let cookie = if writes { zone.stamp(flow_mod.cookie) } else { flow_mod.cookie };
            return (cookie, flow_mod.cookie_mask);
        }
        if names_foreign_rule(flow_mod) && self.require(zone, Capability::RuleDeleteForeign).is_ok() {
            // A delete of 1.0 names no cookie. The record of the owners has been asked.
            let mask = if self.sessions.speaks_1_0(datapath) { !COOKIE_MASK } else { flow_mod.cookie_mask };
            return (flow_mod.cookie, mask);
        }
        (zone.stamp(flow_mod.cookie), !COOKIE_MASK | own_mask)
    }
}

/// If the switch changed the requested priority, the refusal explains the other one.
#[cold]
fn why_exact(refusal: Refusal, asked: &FlowMod<'_>) -> Refusal {
    match refusal {
        Refusal::Beyond(capability, Excess::PriorityAbove(taken, granted)) if taken != asked.priority => {
            Refusal::Beyond(capability, Excess::ExactMatch(granted))
        }
        other => other,
    }
}

/// OFPG_ANY.
pub(crate) const ANY_GROUP: u32 = 0xffff_ffff;

/// Whether a delete has more conditions than table, priority and match, so that it may keep the rule.
fn has_filter(it: &FlowMod<'_>) -> bool {
    it.cookie_mask & COOKIE_MASK != 0 || chooses_by_output(it)
}

/// Whether a delete reaches only rules with a certain output.
pub(crate) fn chooses_by_output(it: &FlowMod<'_>) -> bool {
    it.out_port != PortNo::ANY || it.out_group != ANY_GROUP
}

/// Whether a command names one rule of a table, by its match and its priority.
pub(crate) fn is_strict(command: u8) -> bool {
    !matches!(command, flow_command::MODIFY | flow_command::DELETE)
}

/// Prepares a claim for sending: the kernel needs its receipt, even if the app does not.
fn claimed(command: Command<'_>, claim: Option<u64>) -> Command<'_> {
    match claim {
        Some(ticket) => Command { ticket, wants_receipt: true, ..command },
        None => command,
    }
}

fn claimant(command: &Command<'_>) -> Claimant {
    Claimant { ticket: command.ticket, wants_receipt: command.wants_receipt }
}

/// The capability that a command of this kind always needs.
fn needed_for(what: &What<'_>) -> Option<Capability> {
    match what {
        What::PacketOut(_) => Some(Capability::PacketOut),
        What::FlowMod(_) | What::GroupMod(_) | What::MeterMod(_) => Some(Capability::RuleWrite),
        What::PortMod(_) => Some(Capability::PortWrite),
        What::StatsRequest(_) => Some(Capability::StatsRead),
        What::Publish(_) => Some(Capability::Publish),
        What::Subscribe(_) | What::Barrier | What::Log(_) | What::Bundle(_) => None,
        // The service that receives a call decides which capability it needs.
        What::Query(_) | What::QueryAnswer(_) | What::QueryCredit(_) | What::QueryCancel => None,
    }
}
