//! Whether packets go round in circles: the same frame comes up by the same port again and again.
//!
//! In: packet-ins. Out: how many frames did so, and a sentence if there is no end of it. It drops nothing.

use flow::Field;
use openflow::message::PacketIn;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How often one frame may come up by one port in a second. Hosts repeat a request once in a second.
const REPEATED_MAX: u64 = 32;

/// How often in a rehearsal. With more, it would not end in a time for which somebody waits.
const WITHOUT_END: u64 = 10_000;

/// The frames of one second that are told apart. Further ones are not looked at.
const FRAMES_MAX: usize = 65_536;

/// What came up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Circles {
    second: u64,
    /// By switch, port and content.
    seen: BTreeMap<u64, u64>,
    /// Frames that came up too often in a second.
    pub(crate) storms: u64,
    repeated: u64,
}

impl Circles {
    /// A packet-in. Returns a sentence if packets circulate without end.
    pub(crate) fn look(&mut self, switch: usize, packet: &PacketIn, now_ms: u64) -> Option<String> {
        if now_ms / 1_000 != self.second {
            self.second = now_ms / 1_000;
            self.seen.clear();
        }
        let port = packet.matching.get(Field::InPort).map_or(0, |(port, _)| port);
        // The keys of this hasher are fixed, so the same run has the same numbers.
        let mut hasher = DefaultHasher::new();
        (switch, port, &packet.data).hash(&mut hasher);
        let key = hasher.finish();
        if self.seen.len() >= FRAMES_MAX && !self.seen.contains_key(&key) {
            return None;
        }
        let count = self.seen.entry(key).or_default();
        *count += 1;
        self.storms += u64::from(*count == REPEATED_MAX + 1);
        self.repeated += u64::from(*count > REPEATED_MAX);
        (self.repeated > WITHOUT_END).then(|| {
            format!(
                "packets circulate: more than {WITHOUT_END} packet-ins have been of frames that came up by the same port before. A controller that floods \
                 needs a slice without loops"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::Match;
    use openflow::message::NO_BUFFER;

    fn packet(port: u32, content: u8) -> PacketIn {
        let matching = Match::any().with(Field::InPort, port);
        let data = vec![content; 60];
        PacketIn { buffer_id: NO_BUFFER, total_len: 60, reason: 0, table_id: 0, cookie: 0, matching, data }
    }

    #[test]
    fn a_frame_that_comes_up_again_and_again_is_a_storm_and_one_without_end_ends_the_rehearsal() {
        let mut circles = Circles::default();
        for round in 0..REPEATED_MAX {
            assert_eq!(circles.look(0, &packet(1, 7), round), None);
        }
        // Another port, another switch and another second.
        let others = [
            (0, packet(2, 7), 900),
            (1, packet(1, 7), 900),
            (0, packet(1, 8), 900),
            (0, packet(1, 7), 1_000),
        ];
        for (switch, packet, now_ms) in others {
            assert_eq!((circles.look(switch, &packet, now_ms), circles.storms), (None, 0));
        }
        for _ in 0..REPEATED_MAX {
            circles.look(0, &packet(1, 7), 1_000);
        }
        assert_eq!(circles.storms, 1);
        let why = (0..WITHOUT_END).find_map(|_| circles.look(0, &packet(1, 7), 1_000));
        assert!(why.is_some_and(|why| why.contains("packets circulate")));
        assert_eq!(circles.storms, 1, "it is one frame");
    }
}
