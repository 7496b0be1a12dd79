//! Which statistics an app may request from switches, and which parts of the answers it may see.
//!
//! In: statistics requests, and answers for apps. Out: the capability that the request needs, and an answer without the
//! rules of others. It never asks a switch anything by itself.

use crate::capability::Capability;
use crate::dispatch::Kernel;
use abi::command::StatsRequest;
use abi::event::{Event, StatsReply, write};
use abi::{Frame, ZoneId};
use openflow::statistics::{FlowEntryView, flow_entries, kind};

/// The capability that a statistics request needs besides `stats.read`. Some answers cannot be limited to the app's own
/// rules, and so show those of others. Table features with a body change the switch (1.3.5, 7.3.5.5). Experimenter
/// requests need `vendor` instead.
pub(crate) fn needed_to_ask(request: &StatsRequest<'_>) -> Option<Capability> {
    match request.multipart {
        kind::AGGREGATE | kind::GROUP | kind::GROUP_DESC | kind::METER | kind::METER_CONFIG => {
            Some(Capability::RuleRead)
        }
        kind::TABLE_FEATURES if !request.body.is_empty() => Some(Capability::RuleWriteOthers),
        _ => None,
    }
}

impl Kernel {
    /// The part of an answer that a zone may see: everything except the rules of others. If the answer contains some,
    /// `buffer` gets a copy without them, which is delivered instead. `None`: deliver the frame unchanged.
    pub fn cut_down<'b>(&self, zone: ZoneId, frame: &[u8], buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        if self.zone(zone).is_none_or(|zone| zone.grant.holds(Capability::RuleRead)) {
            return None;
        }
        let frame = Frame::read(frame).ok()?;
        let Ok(Event::StatsReply(reply)) = Event::read(&frame) else { return None };
        if reply.multipart != kind::FLOW {
            return None;
        }
        let own: Vec<u8> = own_entries(zone, reply.body).flat_map(|entry| entry.bytes).copied().collect();
        buffer.clear();
        // The rest of a frame is no longer than the whole frame.
        write::stats_reply(buffer, frame.header.sequence.get(), &StatsReply { body: &own, ..reply });
        Some(buffer)
    }
}

/// The flow entries that a zone owns.
fn own_entries(zone: ZoneId, body: &[u8]) -> impl Iterator<Item = FlowEntryView<'_>> {
    flow_entries(body).filter(move |entry| ZoneId::owner_of(entry.cookie()) == zone)
}
