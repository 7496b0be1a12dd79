//! The life of a zone at one worker: attached, granted, ended.
//!
//! In: ports, instances and grants from the control thread, and faults. Out: attached and ended zones in the dispatch
//! and the kernel, and faults for the control thread. The monitor decides which zone runs.

use super::super::zones::{Fault, ZoneEnd};
use super::Worker;
use crate::dispatch::Dispatch;
use crate::messages::FromWorker;
use abi::ZoneId;
use abi::event::{kind, write};
use kernel::zone_set::is_zone_number;
use kernel::{Grant, NodeRates};
use mio::Token;
use monitor_channel::protocol::FaultCause;
use std::sync::Arc;
use zone::ZoneFault;
use zone::port::ProcessPort;

impl Worker {
    pub(super) fn attach(
        &mut self,
        zone: ZoneId,
        app: String,
        generation: u64,
        port: ring::PortFds,
        may: (Box<Grant>, Arc<NodeRates>),
    ) {
        match ProcessPort::attach(port) {
            Ok(port) => {
                let port = Box::new(port);
                self.put(zone, &app.clone(), ZoneEnd::Process { app, generation, port }, may);
            }
            Err(fault) => {
                let reason = format!("its port could not be attached: {fault}");
                let cause = FaultCause::NotAttached;
                self.unsent.push(FromWorker::ZoneFault { app, generation, cause, reason });
            }
        }
    }

    pub(super) fn put(
        &mut self,
        zone: ZoneId,
        app: &str,
        end: ZoneEnd,
        (grant, rates): (Box<Grant>, Arc<NodeRates>),
    ) {
        self.detach(zone);
        if !is_zone_number(zone.0) {
            tracing::error!(app, "it is not attached: no zone has the number {zone}");
            return;
        }
        if let Err(error) = end.register(self.poll.registry(), Token(usize::from(zone.0))) {
            tracing::error!(app, "its zone cannot be added to the poll: {error}");
            return;
        }
        self.dispatch.kernel.attach_sharing(zone, app, *grant, &rates, self.now_ms);
        self.dispatch.zones.put(zone, end);
    }

    /// A grant for an ended process is not for its successor.
    pub(super) fn regrant(&mut self, zone: ZoneId, generation: u64, grant: Grant, rates: &NodeRates) {
        let there = self.dispatch.zones.get(zone).map(|end| end.generation());
        if there == Some(generation) {
            // Earlier refusals were made under the old grant.
            self.tell_refusals();
            let Dispatch { kernel, effects, .. } = &mut self.dispatch;
            kernel.regrant_sharing(zone, grant, rates, self.now_ms, effects);
            self.carry_out_effects();
        }
    }

    pub(super) fn end_zone(&mut self, zone: ZoneId, fault: Fault) {
        self.detach(zone);
        self.unsent.push(match fault {
            Fault::Process { app, generation, fault } => {
                let cause = match fault {
                    ZoneFault::StoppedReading { .. } => FaultCause::StoppedReading,
                    ZoneFault::BrokePort(_) => FaultCause::BrokePort,
                    ZoneFault::SentGarbage(_) => FaultCause::SentGarbage,
                };
                FromWorker::ZoneFault { app, generation, cause, reason: fault.to_string() }
            }
            Fault::Trusted { app, fault } => FromWorker::TrustedFault { app, reason: fault.to_string() },
        });
    }

    pub(super) fn detach(&mut self, zone: ZoneId) {
        // While the app's name is known.
        self.tell_refusals();
        self.left.remove(&zone);
        self.waiting_for_sizes.remove(&zone);
        if let Some(end) = self.dispatch.zones.take(zone) {
            end.deregister(self.poll.registry());
            // Before the kernel drops its counters.
            let refusals = self.refusals(zone, end.app());
            self.past_refusals.note(zone, end.app(), refusals);
            // Dropping may call a trusted app.
            self.calls.calling(zone, || drop(end));
        }
        self.dispatch.kernel.detach(zone).iter().for_each(|over| self.end_call(over));
    }

    /// A zone that has just subscribed receives the connected switches.
    pub(super) fn replay(&mut self, zone: ZoneId) {
        if !self.dispatch.kernel.receivers_of(kind::SWITCH_UP).contains(zone) {
            return;
        }
        let Dispatch { kernel, zones, faults, .. } = &mut self.dispatch;
        let Some(end) = zones.get(zone) else { return };
        for up in kernel.switches() {
            self.sequence += 1;
            self.scratch.clear();
            write::switch_up(&mut self.scratch, self.sequence, &up);
            if let Err(fault) = end.deliver_control(&self.scratch) {
                faults.push((zone, fault));
                return;
            }
        }
    }
}
