//! Which queues the switches have: asked when a switch connects, since rules can only name a queue that was configured there.
//!
//! In: switches, replies to statistics requests. Out: requests, and the numbers of a switch's queues when all parts of the reply are there.

use burnet_sdk::{Commands, DatapathId, StatsReply};
use std::collections::{BTreeSet, HashMap};

/// `OFPMP_QUEUE`, with all ports and all queues (OpenFlow 1.3.5, 7.3.5.8).
const QUEUE_STATS: u16 = 5;
const ALL: [u8; 8] = [0xff; 8];

/// The most queues of a switch that are noted. A switch that reports more gets a log line for a class whose queue is not among them.
const QUEUES_MAX: usize = 65_536;

/// The length of `ofp_queue_stats`.
const ENTRY: usize = 40;

/// The requests that are under way: one for each switch.
#[derive(Debug, Default)]
pub(crate) struct Queues(HashMap<u64, (DatapathId, BTreeSet<u32>)>);

impl Queues {
    /// Asks a switch. Its earlier request is forgotten.
    pub(crate) fn ask(&mut self, switch: DatapathId, out: &mut Commands) {
        self.0.retain(|_, (other, _)| *other != switch);
        let ticket = out.request_stats(switch, QUEUE_STATS, &ALL);
        self.0.insert(ticket.0, (switch, BTreeSet::new()));
    }

    /// A part of a reply. With the last part: the switch, and its queues.
    pub(crate) fn hear(&mut self, reply: &StatsReply<'_>) -> Option<(DatapathId, BTreeSet<u32>)> {
        let (_, queues) = self.0.get_mut(&reply.ticket)?;
        let entries = reply.body.as_chunks::<ENTRY>().0.iter();
        let room = QUEUES_MAX.saturating_sub(queues.len());
        queues.extend(entries.take(room).map(|it| u32::from_be_bytes([it[4], it[5], it[6], it[7]])));
        if reply.more {
            return None;
        }
        self.0.remove(&reply.ticket)
    }

    /// A request was refused. `false`: it was no request of this file.
    pub(crate) fn forget(&mut self, ticket: u64) -> bool {
        self.0.remove(&ticket).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queues_are_known_with_the_last_part() {
        let (mut queues, mut out) = (Queues::default(), Commands::new());
        queues.ask(DatapathId(1), &mut out);
        let ticket = *queues.0.keys().next().unwrap();
        let entry = |queue: u8| [&[0, 0, 0, 1, 0, 0, 0, queue][..], &[0; 32]].concat();
        let reply =
            |more, body| StatsReply { datapath: DatapathId(1), ticket, multipart: QUEUE_STATS, more, body };
        let (one, cut) = (entry(1), [entry(2), vec![0; 7]].concat());
        assert_eq!(queues.hear(&reply(true, &one)), None);
        assert_eq!(queues.hear(&reply(false, &cut)), Some((DatapathId(1), [1, 2].into())));
        assert_eq!(queues.hear(&reply(false, &one)), None, "nobody asked");
    }
}
