//! Bundles: a controller's messages that are carried out together, or not at all (1.4.0, 7.3.9; the ONF's extension
//! 230 for 1.3).
//!
//! In: a controller's messages about bundles. Out: their answers, and the effects of a commit. No packet passes the
//! tables during a commit.
//!
//! A commit copies the parts of the switch that it may change, and puts them back if a message is refused. So it takes
//! time in proportion to the tables that it changes.

use openflow::message::*;
use openflow::{Body, Message};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Effects, Switch};
use crate::group::Groups;
use crate::instructions::Instructions;
use crate::meter::Meters;
use crate::port::SwitchPort;
use crate::refusal::Refusal;
use crate::session::{Asker, ControllerId};
use crate::table::FlowTable;
use flow::PortNo;

/// The parts of a switch before a commit.
struct Before {
    tables: Vec<(usize, FlowTable)>,
    groups: Option<Groups>,
    meters: Option<Meters>,
    ports: Option<BTreeMap<PortNo, SwitchPort>>,
}

impl Switch {
    /// Carries out a bundle control message. Returns the answer.
    pub(super) fn bundle_control(
        &mut self,
        wanted: &BundleControl,
        by: &Message,
        asker: Asker,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<Body, Refusal> {
        let BundleControl { bundle_id, control, flags, .. } = *wanted;
        let bundles = &mut self.sessions[asker.controller.0].bundles;
        match control {
            BUNDLE_OPEN_REQUEST => bundles.open(bundle_id, flags, by, now)?,
            BUNDLE_CLOSE_REQUEST => bundles.close(bundle_id, flags, now)?,
            BUNDLE_COMMIT_REQUEST => {
                let messages = bundles.take(bundle_id, flags)?;
                self.commit(&messages, asker, now, effects)?;
            }
            BUNDLE_DISCARD_REQUEST => bundles.discard(bundle_id)?,
            _ => return Err(Refusal::BundleBadType),
        }
        // The reply to a request has the next number.
        let control = control + 1;
        Ok(Body::BundleControl(BundleControl { bundle_id, control, flags, properties: Vec::new() }))
    }

    /// Adds a message to a bundle.
    pub(super) fn bundle_add(
        &mut self,
        wanted: &BundleAdd,
        by: &Message,
        asker: Asker,
        now: Duration,
    ) -> Result<(), Refusal> {
        let BundleAdd { bundle_id, flags, message, .. } = wanted;
        let is_supported = matches!(
            message.body,
            Body::FlowMod(_) | Body::GroupMod(_) | Body::MeterMod(_) | Body::PortMod(_)
        );
        if !is_supported {
            return Err(Refusal::BundledUnsupported);
        }
        self.sessions[asker.controller.0].bundles.add(*bundle_id, *flags, message, by, now)
    }

    /// Carries out all messages, or none. The error names the message that was refused.
    fn commit(
        &mut self,
        messages: &[Message],
        asker: Asker,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let before = self.before(messages);
        // What a commit tells is told only if it succeeds.
        let mut told = Effects::default();
        for message in messages {
            if let Err(refusal) = self.change(message, asker, now, &mut told) {
                self.restore(before);
                self.refuse_bundled(message, refusal, asker, effects);
                return Err(Refusal::BundledFailed);
            }
        }
        effects.messages.append(&mut told.messages);
        effects.frames.append(&mut told.frames);
        for message in messages {
            if let Err(refusal) = self.release_bundled(message, asker, now, effects) {
                self.refuse_bundled(message, refusal, asker, effects);
            }
        }
        Ok(())
    }

    /// Carries out a message of a bundle. A buffered packet waits until all of them are carried out.
    fn change(
        &mut self,
        message: &Message,
        asker: Asker,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        match &message.body {
            Body::FlowMod(wanted) if wanted.buffer_id != NO_BUFFER => {
                let wanted = FlowMod { buffer_id: NO_BUFFER, ..wanted.clone() };
                self.flow_mod(&wanted, asker.version, now, effects)
            }
            Body::FlowMod(wanted) => self.flow_mod(wanted, asker.version, now, effects),
            Body::GroupMod(wanted) => self.group_mod(wanted, now, effects),
            Body::MeterMod(wanted) => self.meter_mod(wanted, now, effects),
            Body::PortMod(wanted) => self.port_mod(wanted, asker.version, effects),
            _ => Err(Refusal::BundledUnsupported),
        }
    }

    /// Sends the packet that waited for a flow mod of a bundle through the tables.
    fn release_bundled(
        &mut self,
        message: &Message,
        asker: Asker,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        match &message.body {
            Body::FlowMod(wanted) if wanted.command < FLOW_DELETE => {
                self.release(wanted, Instructions::new(Vec::new()), asker.version, now, effects)
            }
            _ => Ok(()),
        }
    }

    /// Copies what these messages may change.
    fn before(&self, messages: &[Message]) -> Before {
        let (mut tables, mut others, mut ports) = (BTreeSet::new(), false, false);
        for message in messages {
            match &message.body {
                Body::FlowMod(wanted) if wanted.table_id != TABLE_ALL => {
                    tables.insert(usize::from(wanted.table_id));
                }
                Body::PortMod(_) => ports = true,
                // A flow mod for all tables. A group or meter that is deleted takes rules of any table with it.
                body => {
                    tables.extend(0..self.tables.len());
                    others |= !matches!(body, Body::FlowMod(_));
                }
            }
        }
        let is_there = |index: &usize| *index < self.tables.len();
        Before {
            tables: tables.into_iter().filter(is_there).map(|it| (it, self.tables[it].clone())).collect(),
            groups: others.then(|| self.groups.clone()),
            meters: others.then(|| self.meters.clone()),
            ports: ports.then(|| self.ports.clone()),
        }
    }

    fn restore(&mut self, before: Before) {
        for (index, table) in before.tables {
            *self.tables.change(index) = table;
        }
        if let Some(groups) = before.groups {
            self.groups = groups;
        }
        if let Some(meters) = before.meters {
            self.meters = meters;
        }
        if let Some(ports) = before.ports {
            self.ports = ports;
        }
    }

    /// Time has passed: discards bundles that the controllers have forgotten.
    pub(super) fn expire_bundles(&mut self, now: Duration, effects: &mut Effects) {
        for number in 0..self.sessions.len() {
            let session = &mut self.sessions[number];
            let Some(version) = session.version() else { continue };
            for opened_by in session.bundles.expire(now) {
                let asker = Asker { controller: ControllerId(number), version, xid: opened_by.xid };
                self.refuse_bundled(&opened_by, Refusal::BundleTimeout, asker, effects);
            }
        }
    }
}
