//! Which statistics an app may request from switches, and which parts of the answers it may see.
//!
//! In: statistics requests, and answers for apps. Out: the capability that the request needs, and an answer without the
//! rules, groups and meters of others. It never asks a switch anything by itself.

use crate::capability::Capability;
use crate::dispatch::Kernel;
use crate::group_or_meter::GroupOrMeter;
use abi::command::StatsRequest;
use abi::event::{Event, StatsReply, write};
use abi::{Frame, ZoneId};
use openflow::statistics::{FlowEntryView, flow_entries, kind, meter_counters, numbered};

/// The capability that a statistics request needs besides `stats.read`. A sum of rules cannot be limited to the app's own
/// ones, and so shows those of others. Table features with a body change the switch (1.3.5, 7.3.5.5). Experimenter
/// requests need `vendor` instead.
pub(crate) fn needed_to_ask(request: &StatsRequest<'_>) -> Option<Capability> {
    match request.multipart {
        kind::AGGREGATE => Some(Capability::RuleRead),
        kind::TABLE_FEATURES if !request.body.is_empty() => Some(Capability::RuleWriteOthers),
        _ => None,
    }
}

impl Kernel {
    /// The part of an answer that a zone may see: everything except the rules, groups and meters of others. If the answer contains some,
    /// `buffer` gets a copy without them, which is delivered instead. `None`: deliver the frame unchanged.
    pub fn cut_down<'b>(&self, zone: ZoneId, frame: &[u8], buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        if self.zone(zone).is_none_or(|zone| zone.grant.holds(Capability::RuleRead)) {
            return None;
        }
        let frame = Frame::read(frame).ok()?;
        let Ok(Event::StatsReply(reply)) = Event::read(&frame) else { return None };
        let own = self.own_part(zone, &reply)?;
        buffer.clear();
        // The rest of a frame is no longer than the whole frame.
        write::stats_reply(buffer, frame.header.sequence.get(), &StatsReply { body: &own, ..reply });
        Some(buffer)
    }

    /// The entries of a zone's own rules, groups or meters. `None`: the answer has no such entries.
    fn own_part(&self, zone: ZoneId, reply: &StatsReply<'_>) -> Option<Vec<u8>> {
        let own = |entries: &mut dyn Iterator<Item = (u32, &[u8])>, kind: fn(u32) -> GroupOrMeter| {
            let is_own = |number: u32| self.ownership.owned.is_of(zone, (reply.datapath, kind(number)));
            let mine = entries.filter(|(number, _)| is_own(*number));
            mine.flat_map(|(_, bytes)| bytes).copied().collect()
        };
        Some(match reply.multipart {
            kind::FLOW => own_entries(zone, reply.body).flat_map(|entry| entry.bytes).copied().collect(),
            kind::GROUP | kind::GROUP_DESC => own(&mut numbered(reply.body), GroupOrMeter::Group),
            kind::METER_CONFIG => own(&mut numbered(reply.body), GroupOrMeter::Meter),
            kind::METER => own(&mut meter_counters(reply.body), GroupOrMeter::Meter),
            _ => return None,
        })
    }
}

/// The flow entries that a zone owns.
fn own_entries(zone: ZoneId, body: &[u8]) -> impl Iterator<Item = FlowEntryView<'_>> {
    flow_entries(body).filter(move |entry| ZoneId::owner_of(entry.cookie()) == zone)
}
