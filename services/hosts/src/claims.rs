//! Claims that are being examined: a host was seen elsewhere, or with the address of another host.
//!
//! In: claims, answers of the present holder, the time. Out: claims whose time is over. It sends no probe and decides nothing.

use crate::bounds::{CLAIMS_MAX, CLAIMS_PER_PORT_MAX};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use view::{ConnectPoint, HostId};

/// What is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The place of this host.
    Place(HostId),
    /// This address within a VLAN.
    Address(IpAddr, Option<u16>),
}

/// A claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What is claimed.
    pub subject: Subject,
    /// The host that the claiming frame named.
    pub claimant: HostId,
    /// Where that frame came in.
    pub at: ConnectPoint,
    /// An address that it named.
    pub address: Option<IpAddr>,
    /// The host that has the place or the address now.
    pub holder: HostId,
    /// Whether the holder has answered.
    pub answered: bool,
    /// When the holder is asked once more.
    pub ask_ms: Option<u64>,
    /// When it is decided.
    pub until_ms: u64,
}

impl Claim {
    fn due(&self) -> (u64, Subject) {
        (self.ask_ms.map_or(self.until_ms, |ask_ms| ask_ms.min(self.until_ms)), self.subject)
    }
}

/// The claims under examination.
#[derive(Debug, Default)]
pub struct Claims {
    claims: HashMap<Subject, Claim>,
    per_port: HashMap<ConnectPoint, usize>,
    due: BTreeSet<(u64, Subject)>,
}

/// The result of a new claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// It is examined from now on.
    Examined,
    /// A claim of the same place or address is being examined.
    Already,
    /// Too many are being examined, in all or from this port.
    NoRoom,
}

impl Claims {
    /// A new claim.
    pub fn open(&mut self, claim: Claim) -> Opened {
        if self.claims.contains_key(&claim.subject) {
            return Opened::Already;
        }
        let from_port = self.per_port.get(&claim.at).copied().unwrap_or_default();
        if self.claims.len() >= CLAIMS_MAX || from_port >= CLAIMS_PER_PORT_MAX {
            return Opened::NoRoom;
        }
        self.insert(claim);
        Opened::Examined
    }

    /// The holder of a place or an address has answered.
    pub fn answer(&mut self, subject: Subject) {
        if let Some(claim) = self.claims.get_mut(&subject) {
            claim.answered = true;
        }
    }

    /// When the next claim is due.
    pub fn next_due(&self) -> Option<u64> {
        self.due.first().map(|(due_ms, _)| *due_ms)
    }

    /// Takes a claim that is due. The caller decides it, or puts it back with a later time.
    pub fn take_due(&mut self, now_ms: u64) -> Option<Claim> {
        let (_, subject) = *self.due.first().filter(|(due_ms, _)| *due_ms <= now_ms)?;
        self.take(subject)
    }

    /// Takes a claim away.
    pub fn take(&mut self, subject: Subject) -> Option<Claim> {
        let claim = self.claims.remove(&subject)?;
        self.due.remove(&claim.due());
        if let Some(count) = self.per_port.get_mut(&claim.at) {
            *count -= 1;
            if *count == 0 {
                self.per_port.remove(&claim.at);
            }
        }
        Some(claim)
    }

    /// Puts a claim back that was taken.
    pub fn insert(&mut self, claim: Claim) {
        self.due.insert(claim.due());
        *self.per_port.entry(claim.at).or_default() += 1;
        self.claims.insert(claim.subject, claim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(number: u32, at: &str) -> Claim {
        let id: HostId = "00:00:00:00:00:01".parse().unwrap();
        Claim {
            subject: Subject::Address(std::net::Ipv4Addr::from(number).into(), None),
            claimant: id,
            at: at.parse().unwrap(),
            address: None,
            holder: id,
            answered: false,
            ask_ms: Some(u64::from(number) + 5),
            until_ms: u64::from(number) + 10,
        }
    }

    #[test]
    fn one_port_cannot_take_the_room_of_the_others() {
        let mut claims = Claims::default();
        for number in 0..CLAIMS_PER_PORT_MAX as u32 {
            assert_eq!(claims.open(claim(number, "1/1")), Opened::Examined);
        }
        assert_eq!(claims.open(claim(9_999, "1/1")), Opened::NoRoom);
        assert_eq!(claims.open(claim(0, "1/2")), Opened::Already);
        assert_eq!(claims.open(claim(9_999, "1/2")), Opened::Examined);
        claims.take(claim(0, "1/1").subject).unwrap();
        assert_eq!(claims.open(claim(0, "1/1")), Opened::Examined);
        let mut opened =
            (0..).map(|number| claims.open(claim(10_000 + number, &format!("2/{}", number + 1))));
        assert!(opened.by_ref().take(CLAIMS_MAX - CLAIMS_PER_PORT_MAX - 1).all(|it| it == Opened::Examined));
        assert_eq!(opened.next(), Some(Opened::NoRoom));
    }

    #[test]
    fn the_claim_whose_time_is_first_is_taken_first() {
        let mut claims = Claims::default();
        claims.open(claim(7, "1/1"));
        claims.open(claim(3, "1/1"));
        claims.answer(claim(3, "1/1").subject);
        assert_eq!((claims.next_due(), claims.take_due(7)), (Some(8), None));
        let first = claims.take_due(100).unwrap();
        assert_eq!(first, Claim { answered: true, ..claim(3, "1/1") });
        claims.insert(Claim { ask_ms: None, ..first });
        assert_eq!(claims.take_due(100).map(|it| it.until_ms), Some(17));
        assert_eq!(claims.take_due(100).map(|it| it.until_ms), Some(13));
        assert!(claims.take_due(100).is_none() && claims.per_port.is_empty());
    }
}
