//! How much of what waits for an app one other app may have made: published, asked, or answered.
//!
//! ```text
//!   whose, how long, how much is free ──> FromApps ──> yes: it waits for the app | no: whoever made it is told
//! ```
//!
//! Without it one app that asks a service without end would keep its ring full, and every other would hear that the service is busy; one that
//! publishes without end would blind who listens to others. So nobody may have more in it than is left free: whoever floods alone gets half,
//! and there is always room for the next. What was let in counts until nearly all of it was taken; then everybody begins anew.
//!
//! It is the rule that `crate::shares` has for the packet-ins of switches and ports, without its tables: apps are few, and have numbers.
//!
//! Pure; never knows what was made, never allocates.

use abi::ZoneId;

/// Those with a share of their own, by their numbers; one with a higher number shares the last. A node has no more zones than that.
const MAKERS: usize = 64;

/// So little of the room is taken, one part in so many, that everybody begins anew. Not none: an app that is asked all the time may always have something to read.
const NEARLY_ALL_TAKEN_PART: usize = 8;

/// Who has how much of what waits for one app.
#[derive(Clone, Debug)]
pub struct FromApps {
    room_bytes: usize,
    of_makers: [usize; MAKERS],
}

impl FromApps {
    /// So much of what other apps make may wait.
    pub fn new(room_bytes: usize) -> FromApps {
        FromApps { room_bytes, of_makers: [0; MAKERS] }
    }

    /// Whether so many bytes of this app may wait too, where so many are free; they count if they may.
    pub fn admit(&mut self, maker: ZoneId, bytes: usize, free_bytes: usize) -> bool {
        if self.room_bytes.saturating_sub(free_bytes) <= self.room_bytes / NEARLY_ALL_TAKEN_PART {
            self.of_makers = [0; MAKERS];
        }
        let of_maker = &mut self.of_makers[usize::from(maker.0).min(MAKERS - 1)];
        let is_admitted = of_maker.saturating_add(bytes) <= free_bytes;
        if is_admitted {
            *of_maker += bytes;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 192 << 10;
    const BYTES: usize = 1 << 10;

    /// These make as much as they may, in turn, for an app that takes nothing: how many of each wait.
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
        let many: Vec<u16> = (63..5_000).collect();
        assert!(fill(&mut from_apps, &mut free, &many).iter().sum::<usize>() <= 108);
    }
}
