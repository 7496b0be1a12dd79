//! Numbers of packet buffers: which are given out, which were used, and which have expired.
//!
//! In: packets to keep and ids of messages, with the time. Out: an id, or why an id is refused. The packets themselves are with the
//! caller, which may forget a packet when its slot ([`slot_of`]) is given out again.

use super::output::Refusal;
use std::collections::VecDeque;

/// The bits of an id that name the slot. The others count the slot's uses, so that an old id is not taken for a new one.
const SLOT_BITS: u32 = 16;

/// One bit less than there is room for: an id of all ones means "no buffer".
const USES_MASK: u32 = (1 << (31 - SLOT_BITS)) - 1;

/// The slot of a buffer id.
pub fn slot_of(buffer: u32) -> usize {
    (buffer & ((1 << SLOT_BITS) - 1)) as usize
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    uses: u32,
    is_kept: bool,
    has_expired: bool,
}

/// A switch's packet buffers.
#[derive(Clone, Debug)]
pub struct Buffers {
    count: usize,
    life_ns: u64,
    /// Whether a packet is gone after its life. Otherwise it is kept until its buffer is needed.
    expires: bool,
    /// Grows up to `count`.
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The ids in the order in which they expire, and when they were given out. At most two for each slot: see [`Self::expire`].
    given: VecDeque<(u64, u32)>,
}

impl Buffers {
    /// Makes `count` buffers, but not more than an id can name. Each packet is lost after its life.
    pub fn new(count: u32, life_ns: u64) -> Self {
        let count = count.min(1 << SLOT_BITS) as usize;
        let (slots, free, given) = (Vec::new(), Vec::new(), VecDeque::new());
        Buffers { count, life_ns, expires: true, slots, free, given }
    }

    /// The same, but a packet stays after its life until its buffer is needed.
    pub fn without_expiry(self) -> Self {
        Buffers { expires: false, ..self }
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        // At most 2^16.
        self.count as u32
    }

    /// Gives out a buffer, if one is free.
    pub fn keep(&mut self, now_ns: u64) -> Option<u32> {
        if self.expires || self.has_none_free() {
            self.expire(now_ns);
        }
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() < self.count => {
                self.slots.push(Slot::default());
                // `count` has 16 bits.
                (self.slots.len() - 1) as u32
            }
            None => return None,
        };
        let slot = &mut self.slots[index as usize];
        *slot = Slot { uses: (slot.uses + 1) & USES_MASK, is_kept: true, has_expired: false };
        let id = slot.uses << SLOT_BITS | index;
        self.given.push_back((now_ns, id));
        self.clean();
        Some(id)
    }

    fn has_none_free(&self) -> bool {
        self.free.is_empty() && self.slots.len() >= self.count
    }

    /// A message uses this buffer. Each id works once.
    ///
    /// # Errors
    /// The id was never given, its packet is gone, or it was used.
    pub fn take(&mut self, id: u32, now_ns: u64) -> Result<(), Refusal> {
        if self.expires {
            self.expire(now_ns);
        }
        let slot = self.slots.get_mut(slot_of(id)).ok_or(Refusal::BufferUnknown)?;
        if slot.uses != id >> SLOT_BITS || slot.has_expired {
            return Err(Refusal::BufferUnknown);
        }
        if !slot.is_kept {
            return Err(Refusal::BufferEmpty);
        }
        slot.is_kept = false;
        self.free.push(id & ((1 << SLOT_BITS) - 1));
        Ok(())
    }

    fn is_current(&self, id: u32) -> bool {
        self.slots.get(slot_of(id)).is_some_and(|slot| slot.is_kept && slot.uses == id >> SLOT_BITS)
    }

    /// Frees what was kept too long, and forgets what was used. Ids that were used lie between others until those expire, so the list
    /// is cleaned when it has become twice as long as there are buffers.
    fn expire(&mut self, now_ns: u64) {
        while let Some((since, id)) = self.given.front().copied() {
            let is_current = self.is_current(id);
            if is_current && since.saturating_add(self.life_ns) > now_ns {
                break;
            }
            self.given.pop_front();
            if is_current {
                let slot = &mut self.slots[slot_of(id)];
                (slot.is_kept, slot.has_expired) = (false, true);
                self.free.push(id & ((1 << SLOT_BITS) - 1));
            }
        }
        self.clean();
    }

    fn clean(&mut self) {
        if self.given.len() > 2 * self.count {
            let mut given = std::mem::take(&mut self.given);
            given.retain(|(_, id)| self.is_current(*id));
            self.given = given;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::random::{Random, Stream};

    #[test]
    fn an_id_works_once_and_until_it_expires() {
        let mut buffers = Buffers::new(2, 100);
        let first = buffers.keep(0).unwrap();
        assert_eq!(buffers.take(first, 50), Ok(()));
        assert_eq!(buffers.take(first, 50), Err(Refusal::BufferEmpty));
        assert_eq!(buffers.take(7, 50), Err(Refusal::BufferUnknown));
        let second = buffers.keep(60).unwrap();
        assert_eq!(buffers.take(second, 160), Err(Refusal::BufferUnknown), "kept for 100");
    }

    #[test]
    fn it_keeps_what_a_list_of_kept_packets_keeps() {
        for seed in 0..100 {
            let mut random = Random::new(seed, Stream::Choice);
            let (count, life) = (random.below(6) as u32, 1 + random.below(100));
            let expires = seed % 2 == 0;
            let mut buffers = Buffers { expires, ..Buffers::new(count, life) };
            let mut kept: Vec<(u32, u64)> = Vec::new();
            let mut now = 0;
            for _ in 0..2000 {
                now += random.below(10);
                let keeps = random.below(2) == 0;
                if expires || keeps && kept.len() >= count as usize {
                    kept.retain(|(_, since)| since + life > now);
                }
                if keeps {
                    let id = buffers.keep(now);
                    assert_eq!(id.is_some(), kept.len() < count as usize, "seed {seed}, at {now}");
                    kept.extend(id.map(|id| (id, now)));
                } else if !kept.is_empty() {
                    let (id, _) = kept.remove(random.below(kept.len() as u64) as usize);
                    assert_eq!(buffers.take(id, now), Ok(()), "seed {seed}, at {now}");
                    assert!(buffers.take(id, now).is_err());
                }
                assert!(buffers.given.len() <= 2 * count as usize + 1);
            }
        }
    }
}
