//! Publications, carried to those who subscribe.
//!
//! In: publications that the kernel has numbered, and zones that subscribe late. Out: events in their rings. A subscriber that has no room does not get an event,
//! and sees the gap in the numbers. Of retained values it gets the rest when there is room.

use super::Worker;
use abi::event::{Topic, kind, write};
use abi::{Frame, ZoneId};
use kernel::topics::Position;
use std::collections::BTreeMap;

/// Zones that still get retained values, and where each is among them. At most one entry for each zone.
pub(super) type LateSubscribers = BTreeMap<ZoneId, Option<Position>>;

impl Worker {
    /// Hands a publication to those who subscribe. The publisher hears how many of them do not keep up.
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

    /// A zone has subscribed: it gets what is retained, if it hears topics.
    pub(super) fn begin_retained(&mut self, zone: ZoneId) {
        if self.dispatch.kernel.receivers_of(kind::TOPIC).contains(zone) {
            self.late_subscribers.insert(zone, None);
        }
    }

    /// Late subscribers get retained values, as many as there is room for. The rest follow in later turns.
    pub(super) fn give_retained(&mut self) {
        if self.late_subscribers.is_empty() {
            return;
        }
        let mut late = std::mem::take(&mut self.late_subscribers);
        late.retain(|zone, position| self.give_retained_to(*zone, position));
        self.late_subscribers = late;
    }

    /// Says whether there is more to give.
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
