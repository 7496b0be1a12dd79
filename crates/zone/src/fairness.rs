//! Limits how much of the data that waits for an app one other app may have produced: topics, queries and answers.
//!
//! ```text
//!   maker, length, free space ──> FromApps ──> yes: it waits for the app | no: its maker is notified
//! ```
//!
//! Without the limit, an app that floods a service with queries keeps the service's ring full. All other apps would
//! be refused because the service is busy. In the same way, a flood of published messages would drop those of others.
//! So no app may occupy more than it leaves free. An app that floods alone gets half of the room, and the next app
//! always finds some. What was admitted counts until the app has read nearly all of it. Then all counts start at zero
//! again.
//!
//! `crate::shares` applies the same rule to the packet-ins of switches and ports. This module needs no hash tables,
//! because apps are few and have numbers.
//!
//! Pure. It does not see the content. It allocates only when an app with a higher number than all before makes something.

use abi::ZoneId;

/// Apps with their own share, by zone number. Apps with higher numbers use the last share together.
const MAKERS: usize = 1_024;

/// When at most this part of the room is taken (one in so many), all counts start at zero again. The limit is not
/// zero: an app that gets queries all the time may always have something to read.
const NEARLY_ALL_TAKEN_PART: usize = 8;

/// How much of the data that waits for one app came from which other app.
#[derive(Clone, Debug)]
pub struct FromApps {
    room_bytes: usize,
    /// Counts the times at which all counts started at zero.
    round: u64,
    /// By zone number, up to the highest that made anything.
    of_makers: Vec<OfMaker>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfMaker {
    /// A count of an earlier round counts as zero. So a new round costs the same for a thousand apps as for one.
    round: u64,
    bytes: usize,
}

impl FromApps {
    /// `room_bytes`: how much data from other apps may wait.
    pub fn new(room_bytes: usize) -> FromApps {
        FromApps { room_bytes, round: 0, of_makers: Vec::new() }
    }

    /// Whether this many bytes of this app may wait too, if `free_bytes` are free. If so, they are counted.
    pub fn admit(&mut self, maker: ZoneId, bytes: usize, free_bytes: usize) -> bool {
        if self.room_bytes.saturating_sub(free_bytes) <= self.room_bytes / NEARLY_ALL_TAKEN_PART {
            self.round += 1;
        }
        let round = self.round;
        let of_maker = self.of_maker(maker);
        if of_maker.round != round {
            *of_maker = OfMaker { round, bytes: 0 };
        }
        let is_admitted = of_maker.bytes.saturating_add(bytes) <= free_bytes;
        if is_admitted {
            of_maker.bytes += bytes;
        }
        is_admitted
    }

    fn of_maker(&mut self, maker: ZoneId) -> &mut OfMaker {
        let place = usize::from(maker.0).min(MAKERS - 1);
        if place >= self.of_makers.len() {
            self.of_makers.resize(place + 1, OfMaker::default());
        }
        &mut self.of_makers[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 192 << 10;
    const BYTES: usize = 1 << 10;

    /// Each maker in turn adds as much as it may, while the app reads nothing. Returns how many items of each wait.
    fn fill(from_apps: &mut FromApps, free: &mut usize, makers: &[u16]) -> Vec<usize> {
        let mut waiting = vec![0; makers.len()];
        loop {
            let before = *free;
            for (maker, count) in makers.iter().zip(&mut waiting) {
                if from_apps.admit(ZoneId(*maker), BYTES, *free) {
                    *free -= BYTES;
                    *count += 1;
                }
            }
            if *free == before {
                return waiting;
            }
        }
    }

    #[test]
    fn what_is_longer_than_all_that_is_free_is_let_in_by_nobody() {
        let mut from_apps = FromApps::new(ROOM);
        assert!(!from_apps.admit(ZoneId(1), ROOM + 1, ROOM));
        assert!(!from_apps.admit(ZoneId(1), usize::MAX, ROOM) && !from_apps.admit(ZoneId(1), 1, 0));
        assert!(from_apps.admit(ZoneId(1), ROOM, ROOM), "nothing else waits");
    }

    #[test]
    fn however_many_flood_there_is_room_for_the_next() {
        let (mut from_apps, mut free) = (FromApps::new(ROOM), ROOM);
        let alone = fill(&mut from_apps, &mut free, &[1]);
        assert!((96..=108).contains(&alone[0]), "about half: {alone:?}");
        let others = fill(&mut from_apps, &mut free, &[2, 3]);
        assert!(others.iter().all(|count| *count >= 25), "{others:?}");
        assert!(fill(&mut from_apps, &mut free, &[4])[0] > 8);
        assert_eq!(fill(&mut from_apps, &mut free, &[1]), [0]);
    }

    #[test]
    fn who_has_had_its_share_waits_until_the_app_has_taken_what_there_is() {
        let (mut from_apps, mut free) = (FromApps::new(ROOM), ROOM);
        fill(&mut from_apps, &mut free, &[1]);
        free += 20 * BYTES;
        assert!(fill(&mut from_apps, &mut free, &[1])[0] <= 20);
        free = ROOM - ROOM / 8;
        assert!(fill(&mut from_apps, &mut free, &[1])[0] >= 80);
    }

    #[test]
    fn numbers_that_no_zone_has_share_one_place() {
        let (mut from_apps, mut free) = (FromApps::new(ROOM), ROOM);
        let many: Vec<u16> = (1_023..5_000).collect();
        assert!(fill(&mut from_apps, &mut free, &many).iter().sum::<usize>() <= 108);
    }
}
