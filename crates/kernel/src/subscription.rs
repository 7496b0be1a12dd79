//! The subscription of a zone.
//!
//! It never holds an event back: a zone receives an event now or not at all.

use abi::Malformed;
use abi::command::Subscribe;
use abi::event::kind;
use flow::Match;

/// The events that a zone receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscription {
    /// Bits of [`kind::bit`].
    events: u64,
    /// The match for packet-ins; `None`: all.
    packets: Option<Match>,
    /// Whether it has only packet-ins of the zone's own rules.
    of_own_rules: bool,
}

impl Subscription {
    /// Parses the subscription of an app.
    pub fn read(asked: &Subscribe<'_>) -> Result<Subscription, Malformed> {
        let (events, of_own_rules) =
            (asked.events & !kind::OF_OWN_RULES, asked.events & kind::OF_OWN_RULES != 0);
        if events & !kind::SUBSCRIBABLE != 0 {
            return Err(Malformed {
                offset: abi::header::HEADER_LEN,
                reason: "there are events in it that cannot be subscribed to",
            });
        }
        let packets = flow::canonical::read_match(asked.packets).map_err(|_| Malformed {
            offset: abi::header::HEADER_LEN + 8,
            reason: "the match of the packets cannot be read",
        })?;
        Ok(Subscription { events, packets: Some(packets).filter(|packets| !packets.is_any()), of_own_rules })
    }

    /// Whether the zone receives events of this kind. For packet-ins, [`Self::packets`] restricts it.
    pub fn hears(&self, kind: u16) -> bool {
        kind < 64 && self.events & kind::bit(kind) != 0
    }

    /// The kinds of event in it.
    pub fn kinds(&self) -> impl Iterator<Item = u16> + use<> {
        let events = self.events;
        (0..64).filter(move |kind| events & kind::bit(*kind) != 0)
    }

    /// Whether it has only packet-ins of the zone's own rules.
    pub fn is_of_own_rules(&self) -> bool {
        self.of_own_rules
    }

    /// The match for packet-ins, if it does not include all.
    pub fn packets(&self) -> Option<&Match> {
        self.packets.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::Field;

    #[test]
    fn a_receipt_cannot_be_subscribed_to() {
        let asked = Subscribe { events: kind::bit(kind::RECEIPT), packets: &[] };
        assert!(Subscription::read(&asked).is_err());
    }

    #[test]
    fn packets_of_own_rules_are_a_part_of_a_subscription_and_no_event() {
        let asked = Subscribe { events: kind::bit(kind::PACKET_IN) | kind::OF_OWN_RULES, packets: &[] };
        let read = Subscription::read(&asked).unwrap();
        assert!(read.is_of_own_rules() && read.kinds().eq([kind::PACKET_IN]));
        assert!(
            !Subscription::read(&Subscribe { events: kind::bit(kind::PACKET_IN), ..asked })
                .unwrap()
                .is_of_own_rules()
        );
    }

    #[test]
    fn a_damaged_match_is_refused() {
        assert!(Subscription::read(&Subscribe { events: 0, packets: &[0x80, 0, 0, 4, 1] }).is_err());
    }

    #[test]
    fn packets_can_be_restricted() {
        let mut bytes = Vec::new();
        flow::canonical::write_match(&Match::any().with(Field::EthType, 0x0806u16), &mut bytes);
        let read =
            Subscription::read(&Subscribe { events: kind::bit(kind::PACKET_IN), packets: &bytes }).unwrap();
        assert!(read.hears(kind::PACKET_IN) && !read.hears(kind::SWITCH_UP));
        assert_eq!(read.packets(), Some(&Match::any().with(Field::EthType, 0x0806u16)));
    }
}
