//! Sends publications to their subscribers.
//!
//! In: publications that the kernel has numbered, and late subscribers. Out: events in their rings. A subscriber
//! without space misses an event, and sees the gap in the numbers. It gets the remaining retained values when there is
//! space.

use super::Worker;
use abi::event::{Topic, kind, write};
use abi::{Frame, ZoneId};
use kernel::topics::Position;
use std::collections::BTreeMap;

/// Zones that still get retained values, and the position of each. At most one entry for each zone.
pub(super) type LateSubscribers = BTreeMap<ZoneId, Option<Position>>;

impl Worker {
    /// Sends a publication to its subscribers. The publisher learns how many of them missed it.
    pub(super) fn publish(&mut self, zone: ZoneId, frame: &Frame<'_>, topic: &Topic<'_>) {
        let to = self.dispatch.kernel.receivers_of_topic(zone, topic.topic);
        let missed = self.pass(zone, &to, |out, sequence| write::topic(out, sequence, topic));
        if missed > 0 {
            self.refuse(
                zone,
                frame,
                &format!("{missed} subscribers are too slow and did not get the message"),
            );
        }
    }

    /// A zone has subscribed: it gets the retained values, if it subscribed to topics.
    pub(super) fn begin_retained(&mut self, zone: ZoneId) {
        if self.dispatch.kernel.receivers_of(kind::TOPIC).contains(zone) {
            self.late_subscribers.insert(zone, None);
        }
    }

    /// Sends retained values to late subscribers, as many as there is space for. The rest follow in later turns.
    pub(super) fn give_retained(&mut self) {
        if self.late_subscribers.is_empty() {
            return;
        }
        let mut late = std::mem::take(&mut self.late_subscribers);
        late.retain(|zone, position| self.give_retained_to(*zone, position));
        self.late_subscribers = late;
    }

    /// Returns whether there are more to send.
    fn give_retained_to(&mut self, zone: ZoneId, position: &mut Option<Position>) -> bool {
        loop {
            let Worker { dispatch, scratch, sequence, .. } = self;
            let Some(topic) = dispatch.kernel.retained_for(zone, position.as_ref()) else { return false };
            *sequence += 1;
            scratch.clear();
            let next = (topic.publisher, topic.topic.into());
            let is_written = write::topic(scratch, *sequence, &topic);
            let Some(end) = dispatch.zones.get(zone) else { return false };
            if is_written && !end.deliver_from_app(topic.publisher, scratch) {
                return true;
            }
            *position = Some(next);
        }
    }
}
