//! What an app may ask of switches, and what it may see of their answers.
//!
//! In: statistics requests, and answers on their way to who asked. Out: the capability that asking needs, and an answer without the
//! rules of others. It never asks a switch anything by itself.

use crate::capability::Capability;
use crate::dispatch::Kernel;
use abi::command::StatsRequest;
use abi::event::{Event, StatsReply, write};
use abi::{Frame, ZoneId};
use openflow::statistics::{FlowEntryView, flow_entries, kind};

/// What a statistics request needs besides `stats.read`: what cannot be cut down to the app's own rules shows those of others, and
/// table features with a body change the switch (1.3.5, 7.3.5.5). Experimenters' requests need `vendor` instead.
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
    /// What a zone may see of a frame that answers it: all of it, but for the rules of others in an answer about rules. Those are left out of
    /// the copy in `buffer`, which is what is to be delivered then. `None`: the frame as it is.
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
        // What is left of a frame is no longer than it was.
        write::stats_reply(buffer, frame.header.sequence.get(), &StatsReply { body: &own, ..reply });
        Some(buffer)
    }
}

/// The flow entries that a zone owns.
fn own_entries(zone: ZoneId, body: &[u8]) -> impl Iterator<Item = FlowEntryView<'_>> {
    flow_entries(body).filter(move |entry| ZoneId::owner_of(entry.cookie()) == zone)
}
