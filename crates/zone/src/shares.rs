//! Decides whose packet-ins enter a ring that is more than half full.
//!
//! ```text
//!   [ half: all packet-ins | other half: each switch as much as it leaves free, each port half as much | a part for control packets ]
//! ```
//!
//! An app that keeps up never fills half of its ring. An app that does not keep up would lose packets of every switch
//! because of one switch that floods. So in the upper half a switch may have no more than it leaves free. A single
//! flooding switch gets half of it, two get a third each. There is always as much left for the next switch as the
//! largest share.
//! A port gets half of what its switch could have, so that a flooding host leaves room for the other hosts of its
//! switch. What was admitted counts until the ring is half empty again. Then all counts start at zero. There is no
//! fixed rate, so a switch that is alone is as fast as its app.
//!
//! In: a packet-in's switch and port, its size, and the free space. Out: yes or no. It allocates only when it is
//! created.

/// Switches, and ports, with their own share in one round. A round lasts until the ring is half empty. Switches
/// beyond the bound have one share together. Ports beyond it have their switch's share.
const PLACES: usize = 256;

/// How many places are tried for one switch or port.
const PROBES: usize = 8;

/// Control packets alone may use this part of the ring: one in so many.
const KEPT_FOR_CONTROL: usize = 16;

/// Longer than most packet-ins in networks without jumbo frames, in bytes.
const LONG_BYTES: usize = 2048;

/// How much a switch or port had in a round.
#[derive(Clone, Copy, Default)]
struct Place {
    datapath: u64,
    port: u32,
    round: u32,
    bytes: usize,
}

/// A small hash table, whose keys are switches or ports.
struct Places(Box<[Place]>);

impl Places {
    fn new() -> Places {
        Places(vec![Place::default(); PLACES].into_boxed_slice())
    }

    /// The place of a switch or port in this round. `None` if all places that it could have are taken.
    fn of(&mut self, round: u32, datapath: u64, port: u32) -> Option<&mut Place> {
        // A switch can choose ids that fall on one place. Then later switches whose ids fall near it find no place,
        // and have one share together.
        let start = Places::start(datapath, port);
        let is_its = |place: &Place| (place.datapath, place.port, place.round) == (datapath, port, round);
        let at = (0..PROBES).map(|step| (start + step) % PLACES);
        let mut free = None;
        for index in at {
            if is_its(&self.0[index]) {
                return self.0.get_mut(index);
            }
            if free.is_none() && self.0[index].round != round {
                free = Some(index);
            }
        }
        let place = self.0.get_mut(free?)?;
        *place = Place { datapath, port, round, bytes: 0 };
        Some(place)
    }

    /// What a switch has had in this round, in bytes. `None` if it has no place.
    fn had(&self, round: u32, datapath: u64) -> Option<usize> {
        let start = Places::start(datapath, 0);
        let mut has_room = false;
        for place in (0..PROBES).filter_map(|step| self.0.get((start + step) % PLACES)) {
            if (place.datapath, place.port, place.round) == (datapath, 0, round) {
                return Some(place.bytes);
            }
            has_room |= place.round != round;
        }
        has_room.then_some(0)
    }

    fn start(datapath: u64, port: u32) -> usize {
        let mixed = (datapath ^ u64::from(port) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        usize::try_from(mixed).unwrap_or_default()
    }
}

/// The properties of a packet-in that decide whether it is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub datapath: u64,
    pub port: u32,
    /// Its bytes in the ring.
    pub bytes: usize,
    /// Whether it serves to find links and addresses.
    pub is_control: bool,
}

/// The shares of one ring.
pub(crate) struct Shares {
    ring_bytes: usize,
    switches: Places,
    ports: Places,
    others: Place,
    round: u32,
    begun: bool,
}

impl Shares {
    /// For a ring of this size.
    pub(crate) fn new(ring_bytes: usize) -> Shares {
        // New places belong to round 0, which never occurs.
        let (switches, ports, others) = (Places::new(), Places::new(), Place::default());
        Shares { ring_bytes, switches, ports, others, round: 1, begun: false }
    }

    /// The size of the upper half, in bytes. While more is free, all packet-ins are admitted.
    pub(crate) fn bytes(&self) -> usize {
        self.ring_bytes / 2
    }

    /// Starts a new round, because the ring is half empty.
    #[inline]
    pub(crate) fn end_round(&mut self) {
        if std::mem::take(&mut self.begun) {
            // Never 0: that is the round of unused places.
            self.round = self.round.wrapping_add(1).max(1);
            self.others.bytes = 0;
        }
    }

    /// How many bytes of this switch the ring will certainly take if `free_bytes` are free. It assumes data packets
    /// of one port only.
    pub(crate) fn room_of(&self, datapath: u64, free_bytes: usize) -> usize {
        let shared = free_bytes.min(self.bytes());
        let lower = free_bytes - shared;
        // A packet that enters the lower half starts a new round, unless it is longer than the free part of that
        // half.
        let had = match lower {
            0..LONG_BYTES if self.begun => {
                self.switches.had(self.round, datapath).unwrap_or(self.others.bytes)
            }
            _ => 0,
        };
        // A port may have half of what is left after its own share, and at most what its switch may have.
        let upper = shared.saturating_sub(self.ring_bytes / KEPT_FOR_CONTROL).saturating_sub(2 * had) / 3;
        lower + upper
    }

    /// Whether one more packet-in is admitted if `free_bytes` are free. If so, it is counted.
    pub(crate) fn admit(&mut self, it: Candidate, free_bytes: usize) -> bool {
        self.begun = true;
        let kept = if it.is_control { 0 } else { self.ring_bytes / KEPT_FOR_CONTROL };
        let room = free_bytes.saturating_sub(kept);
        let of_switch = self.switches.of(self.round, it.datapath, 0).unwrap_or(&mut self.others);
        let of_port = self.ports.of(self.round, it.datapath, it.port);
        if of_switch.bytes + it.bytes > room
            || of_port.as_ref().is_some_and(|port| port.bytes + it.bytes > room / 2)
        {
            return false;
        }
        of_switch.bytes += it.bytes;
        if let Some(port) = of_port {
            port.bytes += it.bytes;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: usize = 1 << 20;

    fn data(datapath: u64, port: u32) -> Candidate {
        Candidate { datapath, port, bytes: 128, is_control: false }
    }

    /// Fills a half-full ring whose app reads nothing. The candidates push in turn until none is admitted. Returns
    /// how many of each are in.
    fn fill(shares: &mut Shares, free: &mut usize, who: &[Candidate]) -> Vec<usize> {
        let mut admitted = vec![0; who.len()];
        loop {
            let before = *free;
            for (candidate, count) in who.iter().zip(&mut admitted) {
                if shares.admit(*candidate, *free) {
                    *free -= candidate.bytes;
                    *count += 1;
                }
            }
            if *free == before {
                return admitted;
            }
        }
    }

    #[test]
    fn a_port_that_floods_leaves_room_to_the_others_of_its_switch_and_a_switch_to_other_switches() {
        let (mut shares, mut free) = (Shares::new(RING), RING / 2);
        let flood = fill(&mut shares, &mut free, &[data(1, 1)])[0];
        assert!(flood > 1_000, "{flood}");
        let of_switch = fill(&mut shares, &mut free, &[data(1, 2)])[0];
        assert!(of_switch > 300, "{of_switch}");
        let other = fill(&mut shares, &mut free, &[data(2, 1)])[0];
        assert!(other > 300, "{other}");
        assert!(free >= RING / KEPT_FOR_CONTROL);
    }

    #[test]
    fn however_many_flood_one_more_is_admitted() {
        let (mut shares, mut free) = (Shares::new(RING), RING / 2);
        let floods: Vec<_> = (1..=64).map(|datapath| data(datapath, 1)).collect();
        let admitted = fill(&mut shares, &mut free, &floods);
        assert!(admitted.iter().all(|count| *count > 10), "{admitted:?}");
        assert!(fill(&mut shares, &mut free, &[data(99, 1)])[0] > 5);
    }

    #[test]
    fn what_there_is_said_to_be_room_for_is_admitted() {
        for others in [0, 1, 7, 300] {
            let (mut shares, mut free) = (Shares::new(RING), RING / 2);
            for datapath in 1..=others {
                fill(&mut shares, &mut free, &[data(datapath, 1)]);
            }
            for datapath in [1, 2, 301] {
                let room = shares.room_of(datapath, free) / 128;
                assert!((0..room).all(|_| {
                    let is_admitted = shares.admit(data(datapath, 1), free);
                    free -= 128;
                    is_admitted
                }));
            }
        }
        let shares = Shares::new(RING);
        assert_eq!(shares.room_of(1, 0), 0);
        assert!(shares.room_of(1, RING) > RING / 2 && shares.room_of(1, RING / 2) > RING / 8);
    }

    #[test]
    fn less_than_a_packet_of_the_lower_half_begins_no_new_round() {
        let (mut shares, mut free) = (Shares::new(RING), RING / 2);
        fill(&mut shares, &mut free, &[data(1, 1)]);
        let room = |datapath, lower| shares.room_of(datapath, RING / 2 + lower);
        assert!(room(1, 100) < room(2, 100), "it has had its share");
        assert_eq!(room(1, LONG_BYTES), room(2, LONG_BYTES));
    }

    #[test]
    fn who_has_had_its_share_has_no_room_where_another_has() {
        let (mut shares, mut free) = (Shares::new(RING), RING / 2);
        fill(&mut shares, &mut free, &[data(1, 1), data(1, 2), data(1, 3)]);
        assert_eq!(shares.room_of(1, free), 0);
        assert!(shares.room_of(2, free) > RING / 32, "{}", shares.room_of(2, free));
    }

    #[test]
    fn control_packets_have_what_data_may_not_take() {
        let (mut shares, mut free) = (Shares::new(RING), RING / KEPT_FOR_CONTROL);
        assert_eq!(fill(&mut shares, &mut free, &[data(1, 1)])[0], 0);
        assert!(fill(&mut shares, &mut free, &[Candidate { is_control: true, ..data(1, 1) }])[0] > 100);
    }

    #[test]
    fn when_the_ring_was_half_empty_everybody_begins_anew() {
        let (mut shares, mut free) = (Shares::new(RING), RING / 2);
        let first = fill(&mut shares, &mut free, &[data(1, 1)]);
        assert_eq!(fill(&mut shares, &mut free, &[data(1, 1)]), [0]);
        shares.end_round();
        free = RING / 2;
        assert_eq!(fill(&mut shares, &mut free, &[data(1, 1)]), first);
    }

    #[test]
    fn a_switch_that_names_ports_without_end_has_its_share_only() {
        let (mut shares, mut free) = (Shares::new(RING), RING / 2);
        let ports: Vec<_> = (0..10_000).map(|port| data(1, port)).collect();
        let of_switch: usize = fill(&mut shares, &mut free, &ports).iter().sum();
        assert!(of_switch * 128 <= RING / 4, "{of_switch}");
        assert!(fill(&mut shares, &mut free, &[data(2, 1)])[0] > 300);
    }

    #[test]
    fn more_switches_than_there_are_places_for_share_what_is_left() {
        let (mut shares, mut free) = (Shares::new(RING), RING / 2);
        let switches: Vec<_> = (1..5_000).map(|datapath| data(datapath, 1)).collect();
        assert!(fill(&mut shares, &mut free, &switches).iter().sum::<usize>() > 3_000);
        assert!(free >= RING / KEPT_FOR_CONTROL);
    }
}
