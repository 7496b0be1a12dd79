//! Decides when the worker does not read a switch, because the apps that receive its events have no space for
//! packet-ins.
//!
//! ```text
//!   a switch has sent something ──> Pauses::decide ──> read so much of it: nothing of that is dropped
//!   room and progress of its subscribers ──┘           └─> not yet: it waits in the socket, and TCP slows the switch down
//! ```
//!
//! An app that takes packet-ins is waited for, so that a live app loses none where every switch can be slowed down. If
//! an app reads nothing for [`PATIENCE_MS`], packet-ins that do not fit are dropped, at first a few at a time. The same
//! happens if other apps would have to wait for it. Apps that receive packets of the switch and keep up wait that long,
//! and then no longer until the slow app has space again.
//!
//! In: a switch, the recent receivers of its packet-ins, their space and how long they have read nothing, the time.
//! Out: how much to read now. It is pure, and holds a few numbers for each connected switch.

use abi::ZoneId;
use flow::DatapathId;
use kernel::ZoneSet;
use std::collections::BTreeMap;

/// How long the worker waits for an app that reads nothing, and how long other apps wait for a slow one, in
/// milliseconds.
pub(super) const PATIENCE_MS: u64 = 10;

/// After this time, the worker no longer waits for an app that reads nothing. Before that, it reads a little every
/// [`PATIENCE_MS`] and drops what does not fit. The app may only lack processor time, and loses less that way.
pub(super) const LONG_PATIENCE_MS: u64 = 100;

/// How much it reads then.
const IN_VAIN_BYTES: usize = 4 << 10;

/// The maximum ratio of ring bytes to OpenFlow bytes of a packet-in with a minimal Ethernet frame of 60 bytes. 82 bytes
/// of OpenFlow 1.0 become 136 bytes in the ring. Shorter ones may not all have room.
const EXPANSION: usize = 2;

/// The worker reads a switch when this part of a ring is free for it. Less is not worth a system call.
const LEAST_PART: usize = 64;

/// The present state of an app that receives a switch's packet-ins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subscriber {
    /// Its zone.
    pub zone: ZoneId,
    /// The space in its ring for the switch, and the size of the ring; `None`: it has no ring, and always receives.
    pub room: Option<(usize, usize)>,
    /// For how long its ring has had data and it has read nothing.
    pub standstill_ms: u64,
}

/// What to do with a switch that has sent data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Read at most this many bytes.
    Now(usize),
    /// Read nothing yet.
    NotYet,
}

/// The switches of a worker that have sent packet-ins.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    switches: BTreeMap<DatapathId, OfSwitch>,
}

#[derive(Debug, Default)]
struct OfSwitch {
    /// The receivers of the last read with packet-ins, and of the one before; `None` until there was one.
    heard: Option<[ZoneSet; 2]>,
    /// Since when the switch waits.
    since_ms: Option<u64>,
    /// Apps that the worker waited for long enough, and that have had no space since.
    given_up: ZoneSet,
    /// Until when the switch is not read for an app that reads nothing.
    in_vain_until_ms: u64,
}

impl Pauses {
    /// The known receivers of this switch's packet-ins; `unknown` if it has sent none yet.
    pub fn subscribers(&self, datapath: DatapathId, unknown: &ZoneSet, found: &mut ZoneSet) {
        match self.switches.get(&datapath).and_then(|it| it.heard.as_ref()) {
            Some([last, before]) => {
                found.clone_from(last);
                found.union_with(before);
            }
            None => found.clone_from(unknown),
        }
    }

    /// Whether the switch is read, and how much: `bytes` at most. `others` is true if another app subscribes to the
    /// switch, even if not to its packet-ins.
    pub fn decide(
        &mut self,
        datapath: DatapathId,
        subscribers: impl Iterator<Item = Subscriber>,
        mut others: bool,
        mut bytes: usize,
        now_ms: u64,
    ) -> Reading {
        let it = self.switches.entry(datapath).or_default();
        let (mut behind, mut standstill_ms) = (ZoneSet::EMPTY, 0);
        for subscriber in subscribers {
            let Some((room, ring_bytes)) = subscriber.room else {
                others = true;
                continue;
            };
            if room >= ring_bytes / LEAST_PART {
                it.given_up.remove(subscriber.zone);
                bytes = bytes.min(room / EXPANSION);
                others = true;
            } else if subscriber.standstill_ms < LONG_PATIENCE_MS && !it.given_up.contains(subscriber.zone) {
                behind.insert(subscriber.zone);
                standstill_ms = standstill_ms.max(subscriber.standstill_ms);
            }
        }
        if behind.is_empty() {
            return Reading::Now(bytes);
        }
        let since_ms = *it.since_ms.get_or_insert(now_ms);
        if others {
            if standstill_ms < PATIENCE_MS && now_ms.saturating_sub(since_ms) < PATIENCE_MS {
                return Reading::NotYet;
            }
            it.given_up.union_with(&behind);
            return Reading::Now(bytes);
        }
        if standstill_ms < PATIENCE_MS || now_ms < it.in_vain_until_ms {
            return Reading::NotYet;
        }
        it.in_vain_until_ms = now_ms + PATIENCE_MS;
        Reading::Now(bytes.min(IN_VAIN_BYTES))
    }

    /// A switch was read, and these zones received its packet-ins; `None`: it sent none. A switch that has only
    /// answered so far may flood in its next read, so its receivers stay unknown.
    pub fn on_read(&mut self, datapath: DatapathId, heard: Option<&ZoneSet>) {
        let it = self.switches.entry(datapath).or_default();
        it.since_ms = None;
        let Some(heard) = heard else { return };
        let [last, before] = it.heard.get_or_insert_default();
        if !heard.is_empty() {
            before.clone_from(last);
            last.clone_from(heard);
        }
    }

    /// A switch has disconnected.
    pub fn forget(&mut self, datapath: DatapathId) {
        self.switches.remove(&datapath);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: DatapathId = DatapathId(1);
    const SLOW: ZoneId = ZoneId(1);
    const QUICK: ZoneId = ZoneId(2);
    const RING: usize = 1 << 20;
    const READ: usize = 64 << 10;

    fn full(standstill_ms: u64) -> Subscriber {
        Subscriber { zone: SLOW, room: Some((0, RING)), standstill_ms }
    }

    fn with_room(zone: ZoneId, room: usize) -> Subscriber {
        Subscriber { zone, room: Some((room, RING)), standstill_ms: 0 }
    }

    fn decide(pauses: &mut Pauses, subscribers: &[Subscriber], others: bool, now_ms: u64) -> Reading {
        pauses.decide(SWITCH, subscribers.iter().copied(), others, READ, now_ms)
    }

    #[test]
    fn nobody_is_waited_for_who_has_room_and_no_more_is_read_than_fits() {
        let mut pauses = Pauses::default();
        assert_eq!(decide(&mut pauses, &[], false, 0), Reading::Now(READ));
        assert_eq!(decide(&mut pauses, &[with_room(SLOW, RING)], false, 0), Reading::Now(READ));
        let room = [with_room(SLOW, 40_000), with_room(QUICK, RING)];
        assert_eq!(decide(&mut pauses, &room, false, 0), Reading::Now(20_000));
    }

    #[test]
    fn a_live_app_is_waited_for_as_long_as_nobody_else_is_concerned() {
        let mut pauses = Pauses::default();
        for now_ms in 0..10_000 {
            assert_eq!(decide(&mut pauses, &[full(9)], false, now_ms), Reading::NotYet);
        }
        assert_eq!(decide(&mut pauses, &[with_room(SLOW, RING)], false, 10_000), Reading::Now(READ));
    }

    #[test]
    fn of_an_app_that_takes_nothing_for_ten_milliseconds_a_little_is_read_and_soon_all() {
        let mut pauses = Pauses::default();
        assert_eq!(decide(&mut pauses, &[full(9)], false, 9), Reading::NotYet);
        for standstill_ms in 10..100 {
            let expected = match standstill_ms % 10 {
                0 => Reading::Now(IN_VAIN_BYTES),
                _ => Reading::NotYet,
            };
            let found = decide(&mut pauses, &[full(standstill_ms)], false, standstill_ms);
            assert_eq!(found, expected, "{standstill_ms}");
            pauses.on_read(SWITCH, Some(&ZoneSet::only(SLOW)));
        }
        for _ in 0..9 {
            assert_eq!(decide(&mut pauses, &[full(100)], false, 101), Reading::Now(READ));
        }
    }

    #[test]
    fn apps_that_keep_up_wait_for_one_that_does_not_for_ten_milliseconds_and_then_no_more() {
        let trusted = Subscriber { zone: QUICK, room: None, standstill_ms: 0 };
        for (subscribers, others) in [
            (vec![full(0), with_room(QUICK, RING)], false),
            (vec![full(0), trusted], false),
            (vec![full(0)], true),
        ] {
            let mut pauses = Pauses::default();
            assert_eq!(decide(&mut pauses, &subscribers, others, 100), Reading::NotYet);
            assert_eq!(decide(&mut pauses, &subscribers, others, 109), Reading::NotYet);
            assert_eq!(decide(&mut pauses, &subscribers, others, 110), Reading::Now(READ));
            pauses.on_read(SWITCH, Some(&ZoneSet::only(SLOW)));
            for now_ms in 110..200 {
                assert_eq!(decide(&mut pauses, &subscribers, others, now_ms), Reading::Now(READ));
                pauses.on_read(SWITCH, Some(&ZoneSet::only(SLOW)));
            }
            // Once it has had space, the worker waits for it again.
            decide(&mut pauses, &[with_room(SLOW, RING)], others, 200);
            assert_eq!(decide(&mut pauses, &subscribers, others, 201), Reading::NotYet);
        }
    }

    #[test]
    fn who_hears_a_switch_is_known_from_what_it_sent() {
        let mut pauses = Pauses::default();
        let subscribers = |pauses: &Pauses, unknown: &[ZoneId]| {
            let mut found = ZoneSet::only(ZoneId(9));
            pauses.subscribers(SWITCH, &unknown.iter().copied().collect(), &mut found);
            found.iter().collect::<Vec<_>>()
        };
        let everybody = [SLOW, QUICK];
        assert_eq!(subscribers(&pauses, &everybody), everybody);
        pauses.on_read(SWITCH, None);
        assert_eq!(subscribers(&pauses, &everybody), everybody, "it has only answered so far");
        pauses.on_read(SWITCH, Some(&ZoneSet::only(SLOW)));
        assert_eq!(subscribers(&pauses, &everybody), [SLOW]);
        pauses.on_read(SWITCH, Some(&ZoneSet::only(QUICK)));
        assert_eq!(subscribers(&pauses, &[]), everybody);
        pauses.on_read(SWITCH, Some(&ZoneSet::EMPTY));
        pauses.on_read(SWITCH, Some(&ZoneSet::only(QUICK)));
        assert_eq!(subscribers(&pauses, &[]), [QUICK]);
        pauses.forget(SWITCH);
        assert_eq!(subscribers(&pauses, &[]), []);
    }
}
