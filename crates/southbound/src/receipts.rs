//! Finds the command of a transaction id: barrier replies become receipts, and a switch's errors go to the zone that
//! caused them.
//!
//! ```text
//!   commands ──xid──> [ recent: a ring ]      error(xid) ──> the command
//!            └─wanted─> [ pending ] ──barrier──> barrier reply(xid) ──> all commands before it are programmed
//! ```
//!
//! One barrier covers all commands of a turn. It writes no message, and reports `programmed` only after the switch's
//! reply.

use abi::ZoneId;
use std::collections::VecDeque;

/// The zone of a command, and the zone's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The zone. [`ZoneId::KERNEL`] for the node's own commands.
    pub zone: ZoneId,
    /// Which start of the zone's app sent it, in 16 bits. A later start has not asked for its receipt.
    pub generation: u16,
    /// The command's ticket.
    pub ticket: u64,
}

impl Tag {
    /// Of a command of the node itself.
    pub const fn of_node(ticket: u64) -> Tag {
        Tag { zone: ZoneId::KERNEL, generation: 0, ticket }
    }
}

/// How many of the last commands can still be found for an error. A later error is only logged.
pub const RECENT: usize = 1024;

/// The initial size of the ring of recent commands. It grows to [`RECENT`] at most.
const FEW: usize = 16;

/// Barriers that may wait at the same time. A further one replaces the last, and its reply stands for both. So the
/// commands of the replaced one are reported a little later.
const MAX_BARRIERS: usize = 1024;

/// How many zones are counted separately: as many as a node has, and the node itself. Zones beyond that share the
/// last place.
const ZONES: usize = 1_024;

/// How much of a shared resource stays free for the node itself and for the next zone.
pub const KEPT: usize = 8;

/// How much of a shared resource each zone uses.
///
/// A zone may have as much as it leaves for the others. A single zone gets half of all, a second one half of the
/// rest, and so on. So the next zone always finds room. The node itself may have all that is left.
#[derive(Debug)]
pub struct Shares {
    /// By zone number, up to the highest zone that used anything: most nodes have few zones and many sessions.
    of_zones: Vec<u16>,
    total: usize,
    max: usize,
}

impl Shares {
    /// Starts with no use.
    pub fn new(max: usize) -> Self {
        Shares { of_zones: Vec::new(), total: 0, max }
    }

    /// Whether this zone may have one more.
    #[inline]
    pub fn has_room(&self, zone: ZoneId) -> bool {
        let left = self.max.saturating_sub(self.total);
        match zone {
            ZoneId::KERNEL => left > 0,
            _ => usize::from(self.of_zones.get(place(zone)).copied().unwrap_or_default()) + KEPT < left,
        }
    }

    /// The zone has one more.
    pub fn take(&mut self, zone: ZoneId) {
        let place = place(zone);
        if place >= self.of_zones.len() {
            self.of_zones.resize(place + 1, 0);
        }
        self.total += 1;
        self.of_zones[place] = self.of_zones[place].saturating_add(1);
    }

    /// The zone has one less.
    pub fn give_back(&mut self, zone: ZoneId) {
        self.total = self.total.saturating_sub(1);
        if let Some(of_zone) = self.of_zones.get_mut(place(zone)) {
            *of_zone = of_zone.saturating_sub(1);
        }
    }

    /// Resets all counts to zero.
    pub fn clear(&mut self) {
        self.of_zones.fill(0);
        self.total = 0;
    }
}

fn place(zone: ZoneId) -> usize {
    usize::from(zone.0).min(ZONES - 1)
}

/// A place in the order in which messages went out. Its low 32 bits are the xid.
type Serial = u64;

#[derive(Clone, Copy, Debug)]
struct Pending {
    serial: Serial,
    tag: Tag,
}

/// One of the last commands, in 16 bytes: a quarter of a line of the processor's cache. Each command that goes out writes one.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    ticket: u64,
    /// 0: the place is free. So of 2³² commands, an error cannot find the one with this id.
    xid: u32,
    zone: u16,
    generation: u16,
}

/// A command whose barrier has returned, and that the data plane has only later.
#[derive(Clone, Copy, Debug)]
struct Confirmed {
    of: Pending,
    due_ms: u64,
}

#[derive(Clone, Copy, Debug)]
struct Barrier {
    serial: Serial,
    sent_ms: u64,
}

/// The records of one session.
#[derive(Debug)]
pub struct Receipts {
    last: Serial,
    recent: Vec<Recent>,
    pending: VecDeque<Pending>,
    barriers: VecDeque<Barrier>,
    /// In the order in which they are due.
    confirmed: VecDeque<Confirmed>,
    /// Whether something is pending that no barrier covers yet.
    uncovered: bool,
    shares: Shares,
}

/// The command that an error belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedCommand {
    /// Its zone and ticket.
    pub tag: Tag,
    /// Whether its receipt was still pending. It no longer is.
    pub awaited: bool,
}

impl Receipts {
    /// Starts without commands.
    pub fn new(max_pending: usize) -> Self {
        Receipts {
            last: 0,
            recent: Vec::new(),
            pending: VecDeque::new(),
            barriers: VecDeque::new(),
            confirmed: VecDeque::new(),
            uncovered: false,
            shares: Shares::new(max_pending),
        }
    }

    /// The next transaction id. Ids repeat after 2³² messages.
    #[inline]
    pub fn next_xid(&mut self) -> u32 {
        self.last += 1;
        self.last as u32
    }

    /// Whether one more command of this zone may request a receipt.
    #[inline]
    pub fn has_room(&self, zone: ZoneId) -> bool {
        self.shares.has_room(zone)
    }

    /// The last transaction id.
    pub fn last_xid(&self) -> u32 {
        // The low 32 bits.
        self.last as u32
    }

    /// How many commands wait for their receipt.
    pub fn outstanding(&self) -> usize {
        self.pending.len() + self.confirmed.len()
    }

    /// Records the command of the last transaction id.
    #[inline]
    pub fn sent(&mut self, tag: Tag, wants_receipt: bool) {
        let command = Pending { serial: self.last, tag };
        // The low 32 bits.
        let xid = self.last as u32;
        while self.recent.len() < RECENT
            && self.recent.get(self.place_number(xid)).is_none_or(|it| it.xid != 0)
        {
            self.grow();
        }
        let last = self.place_number(xid);
        if let Some(place) = self.recent.get_mut(last) {
            *place = Recent { ticket: tag.ticket, xid, zone: tag.zone.0, generation: tag.generation };
        }
        if wants_receipt {
            self.pending.push_back(command);
            self.shares.take(tag.zone);
            self.uncovered = true;
        }
    }

    /// The index of a command in the ring, whose length is a power of two.
    #[inline]
    fn place_number(&self, xid: u32) -> usize {
        xid as usize & self.recent.len().wrapping_sub(1)
    }

    /// Doubles the ring when a command would replace another. So a switch with few commands has a small ring, and one
    /// with many soon has a ring that grows no more.
    #[cold]
    fn grow(&mut self) {
        let places = (2 * self.recent.len()).clamp(FEW, RECENT);
        let remembered = std::mem::replace(&mut self.recent, vec![Recent::default(); places]);
        for command in remembered.into_iter().filter(|it| it.xid != 0) {
            self.recent[command.xid as usize % places] = command;
        }
    }

    /// Whether a barrier should go out before the turn ends.
    #[inline]
    pub fn wants_barrier(&self) -> bool {
        self.uncovered
    }

    /// The last transaction id was sent as a barrier.
    pub fn barrier_sent(&mut self, now_ms: u64) {
        self.uncovered = false;
        if self.barriers.len() >= MAX_BARRIERS {
            self.barriers.pop_back();
        }
        self.barriers.push_back(Barrier { serial: self.last, sent_ms: now_ms });
    }

    /// A barrier reply arrived: passes on the completed commands. `false` if no such barrier was waiting.
    pub fn on_barrier_reply(&mut self, xid: u32, done: impl FnMut(Tag)) -> bool {
        let Some(serial) = self.take_barrier(xid) else { return false };
        self.take_before(serial, done);
        true
    }

    /// The same for a switch whose data plane has the commands only later: they are completed at that time, unless an error comes first.
    pub fn hold_reply(&mut self, xid: u32, due_ms: u64) -> bool {
        let Some(serial) = self.take_barrier(xid) else { return false };
        while let Some(of) = self.pending.pop_front_if(|first| first.serial <= serial) {
            self.hold_until(of, due_ms);
        }
        true
    }

    /// The same for a bundle that the switch has committed.
    pub fn hold_programmed(&mut self, tag: Tag, due_ms: u64) {
        self.shares.take(tag.zone);
        self.hold_until(Pending { serial: 0, tag }, due_ms);
    }

    fn hold_until(&mut self, of: Pending, due_ms: u64) {
        // Another profile may say less than the one before. The order stays.
        let due_ms = self.confirmed.back().map_or(due_ms, |last| due_ms.max(last.due_ms));
        self.confirmed.push_back(Confirmed { of, due_ms });
    }

    /// Passes on the commands that the data plane has by now.
    pub fn on_due(&mut self, now_ms: u64, mut done: impl FnMut(Tag)) {
        while let Some(Confirmed { of, .. }) = self.confirmed.pop_front_if(|first| first.due_ms <= now_ms) {
            self.shares.give_back(of.tag.zone);
            done(of.tag);
        }
    }

    /// When [`Self::on_due`] has something to pass on.
    pub fn due_ms(&self) -> Option<u64> {
        self.confirmed.front().map(|first| first.due_ms)
    }

    /// Takes the barrier of this id and all before it out. Returns its place in the order.
    fn take_barrier(&mut self, xid: u32) -> Option<Serial> {
        let serial = self.serial_of(xid)?;
        let index = self.barriers.binary_search_by_key(&serial, |barrier| barrier.serial).ok()?;
        self.barriers.drain(..=index);
        Some(serial)
    }

    /// The switch sent an error. Returns the command that it belongs to, if it is still recorded.
    pub fn on_error(&mut self, xid: u32) -> Option<FailedCommand> {
        let serial = self.serial_of(xid)?;
        if let Ok(index) = self.pending.binary_search_by_key(&serial, |pending| pending.serial) {
            let Pending { tag, .. } = self.pending.remove(index)?;
            self.shares.give_back(tag.zone);
            return Some(FailedCommand { tag, awaited: true });
        }
        // An early barrier may return before the error.
        if let Some(index) = self.confirmed.iter().position(|it| it.of.serial == serial) {
            let Confirmed { of: Pending { tag, .. }, .. } = self.confirmed.remove(index)?;
            self.shares.give_back(tag.zone);
            return Some(FailedCommand { tag, awaited: true });
        }
        let Recent { ticket, xid: recent, zone, generation } = *self.recent.get(self.place_number(xid))?;
        let tag = Tag { zone: ZoneId(zone), generation, ticket };
        (recent == xid && xid != 0).then_some(FailedCommand { tag, awaited: false })
    }

    /// Passes on the commands whose barrier got no reply for `timeout_ms`.
    pub fn on_tick(&mut self, now_ms: u64, timeout_ms: u64, lost: impl FnMut(Tag)) {
        let late = |barrier: &Barrier| now_ms.saturating_sub(barrier.sent_ms) >= timeout_ms;
        let count = self.barriers.iter().take_while(|barrier| late(barrier)).count();
        let Some(last) = count.checked_sub(1).and_then(|index| self.barriers.get(index)) else { return };
        let serial = last.serial;
        self.barriers.drain(..count);
        self.take_before(serial, lost);
    }

    /// The session has ended: passes on all commands whose receipts are pending.
    pub fn on_end(&mut self, mut lost: impl FnMut(Tag)) {
        self.barriers.clear();
        self.uncovered = false;
        self.shares.clear();
        self.confirmed.drain(..).for_each(|confirmed| lost(confirmed.of.tag));
        self.pending.drain(..).for_each(|pending| lost(pending.tag));
    }

    fn take_before(&mut self, serial: Serial, mut take: impl FnMut(Tag)) {
        while let Some(first) = self.pending.front().copied().filter(|first| first.serial <= serial) {
            self.pending.pop_front();
            self.shares.give_back(first.tag.zone);
            take(first.tag);
        }
    }

    /// The last message sent with this xid. `None` if no message can have had it.
    fn serial_of(&self, xid: u32) -> Option<Serial> {
        let ago = (self.last as u32).wrapping_sub(xid);
        self.last.checked_sub(u64::from(ago)).filter(|serial| *serial > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(ticket: u64) -> Tag {
        Tag { zone: ZoneId(1), generation: 0, ticket }
    }

    fn send(receipts: &mut Receipts, ticket: u64, wants_receipt: bool) -> u32 {
        let xid = receipts.next_xid();
        receipts.sent(tag(ticket), wants_receipt);
        xid
    }

    fn barrier(receipts: &mut Receipts) -> u32 {
        let xid = receipts.next_xid();
        receipts.barrier_sent(0);
        xid
    }

    fn done_by(receipts: &mut Receipts, xid: u32) -> Vec<u64> {
        let mut done = Vec::new();
        receipts.on_barrier_reply(xid, |tag| done.push(tag.ticket));
        done
    }

    #[test]
    fn a_reply_that_nobody_waits_for_programs_nothing() {
        let mut receipts = Receipts::new(10);
        let command = send(&mut receipts, 1, true);
        for xid in [0, command, command + 1, u32::MAX] {
            assert!(!receipts.on_barrier_reply(xid, |_| panic!("nothing is done")), "xid {xid}");
        }
        assert_eq!(receipts.outstanding(), 1);
    }

    #[test]
    fn an_error_for_an_unknown_xid_has_no_culprit() {
        let mut receipts = Receipts::new(10);
        assert_eq!(receipts.on_error(7), None);
        send(&mut receipts, 1, false);
        for xid in [0, 2, u32::MAX] {
            assert_eq!(receipts.on_error(xid), None);
        }
    }

    #[test]
    fn an_error_that_is_too_late_has_no_culprit() {
        let mut receipts = Receipts::new(10);
        let first = send(&mut receipts, 1, false);
        for ticket in 0..RECENT as u64 {
            send(&mut receipts, ticket, false);
        }
        assert_eq!(receipts.on_error(first), None);
    }

    #[test]
    fn one_barrier_covers_all_commands_before_it_and_none_after() {
        let mut receipts = Receipts::new(10);
        send(&mut receipts, 1, true);
        send(&mut receipts, 2, false);
        send(&mut receipts, 3, true);
        assert!(receipts.wants_barrier());
        let first = barrier(&mut receipts);
        assert!(!receipts.wants_barrier());
        send(&mut receipts, 4, true);
        let second = barrier(&mut receipts);
        assert_eq!(done_by(&mut receipts, first), [1, 3]);
        assert_eq!(done_by(&mut receipts, first), [0; 0]);
        assert_eq!(done_by(&mut receipts, second), [4]);
    }

    #[test]
    fn a_command_with_an_error_is_not_programmed_afterwards() {
        let mut receipts = Receipts::new(10);
        send(&mut receipts, 1, true);
        let wrong = send(&mut receipts, 2, true);
        let barrier = barrier(&mut receipts);
        assert_eq!(receipts.on_error(wrong), Some(FailedCommand { tag: tag(2), awaited: true }));
        assert_eq!(receipts.on_error(wrong), Some(FailedCommand { tag: tag(2), awaited: false }));
        assert_eq!(done_by(&mut receipts, barrier), [1]);
    }

    #[test]
    fn promises_are_bounded() {
        let mut receipts = Receipts::new(100);
        let mut fill = |zone: ZoneId| {
            let mut taken = 0;
            while receipts.has_room(zone) {
                receipts.next_xid();
                receipts.sent(Tag { zone, generation: 0, ticket: 0 }, true);
                taken += 1;
            }
            taken
        };
        // A later zone finds room, however much the first took. The node itself comes last.
        assert_eq!([1, 2, 3].map(|zone| fill(ZoneId(zone))), [46, 23, 12]);
        assert_eq!((fill(ZoneId::KERNEL), fill(ZoneId(4))), (19, 0));
        let barrier = barrier(&mut receipts);
        assert_eq!(done_by(&mut receipts, barrier).len(), 100);
        assert!(receipts.has_room(ZoneId(1)));
    }

    #[test]
    fn an_error_and_the_end_give_room_back() {
        let mut receipts = Receipts::new(KEPT + 2);
        let command = send(&mut receipts, 1, true);
        assert!(!receipts.has_room(ZoneId(1)));
        receipts.on_error(command);
        assert!(receipts.has_room(ZoneId(1)));
        send(&mut receipts, 2, true);
        receipts.on_end(|_| {});
        assert!(receipts.has_room(ZoneId(1)));
    }

    #[test]
    fn a_barrier_that_never_comes_back_is_given_up() {
        let mut receipts = Receipts::new(10);
        send(&mut receipts, 1, true);
        receipts.next_xid();
        receipts.barrier_sent(1000);
        send(&mut receipts, 2, true);
        let mut lost = Vec::new();
        receipts.on_tick(1999, 1000, |tag| lost.push(tag.ticket));
        assert!(lost.is_empty());
        receipts.on_tick(2000, 1000, |tag| lost.push(tag.ticket));
        assert_eq!(lost, [1]);
    }

    #[test]
    fn the_end_leaves_nothing_owed() {
        let mut receipts = Receipts::new(10);
        send(&mut receipts, 1, true);
        barrier(&mut receipts);
        send(&mut receipts, 2, true);
        let mut lost = Vec::new();
        receipts.on_end(|tag| lost.push(tag.ticket));
        assert_eq!((lost, receipts.outstanding(), receipts.wants_barrier()), (vec![1, 2], 0, false));
    }

    #[test]
    fn however_many_barriers_are_on_their_way_each_command_is_told() {
        let mut receipts = Receipts::new(2 * MAX_BARRIERS + KEPT);
        let sent: Vec<_> = (0..MAX_BARRIERS as u64 + 500)
            .map(|ticket| {
                send(&mut receipts, ticket, true);
                barrier(&mut receipts)
            })
            .collect();
        let told: Vec<u64> = sent.iter().flat_map(|xid| done_by(&mut receipts, *xid)).collect();
        assert_eq!(told, (0..MAX_BARRIERS as u64 + 500).collect::<Vec<_>>());
        assert_eq!(receipts.outstanding(), 0);
    }

    #[test]
    fn ids_go_round() {
        let mut receipts = Receipts::new(10);
        receipts.last = u64::from(u32::MAX) - 1;
        let before = send(&mut receipts, 1, true);
        let after = send(&mut receipts, 2, true);
        assert_eq!((before, after), (u32::MAX, 0));
        assert_eq!(receipts.on_error(before), Some(FailedCommand { tag: tag(1), awaited: true }));
        let barrier = barrier(&mut receipts);
        assert_eq!(done_by(&mut receipts, barrier), [2]);
    }
}
