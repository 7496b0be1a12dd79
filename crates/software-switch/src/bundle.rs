//! The bundles of one controller: messages that wait for their commit (1.4.0, 7.3.9, as the ONF's extension of 1.3).
//!
//! In: what the controller says about a bundle. Out: the messages to carry out, or the refusal. It carries nothing out.
//!
//! A bundle belongs to one connection and ends with it. A refused request about a bundle also discards the bundle,
//! except for a message that is one too many or of an unsupported type.

use openflow::Message;
use openflow::message::{BUNDLE_ATOMIC, BUNDLE_ORDERED};
use std::collections::BTreeMap;
use std::time::Duration;

use super::refusal::Refusal;

/// How many bundles a controller may have at once. More are refused with OFPBFC_OUT_OF_BUNDLES.
pub(crate) const BUNDLES_MAX: usize = 16;
/// How many messages a bundle holds. More are refused with OFPBFC_MSG_TOO_MANY.
pub(crate) const MESSAGES_MAX: usize = 4096;
/// A bundle about which the controller says nothing for this time is discarded, with OFPBFC_TIMEOUT. It is the default of
/// Open vSwitch.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(10);

/// A bundle.
#[derive(Clone, Debug)]
struct Bundle {
    flags: u16,
    is_closed: bool,
    messages: Vec<Message>,
    opened_by: Message,
    used_at: Duration,
}

/// The bundles of one controller, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bundles {
    bundles: BTreeMap<u32, Bundle>,
}

impl Bundles {
    /// Opens a bundle by this message. If there is one with the same number, both are gone.
    pub(crate) fn open(&mut self, id: u32, flags: u16, by: &Message, now: Duration) -> Result<(), Refusal> {
        if self.bundles.remove(&id).is_some() {
            return Err(Refusal::BundleBadId);
        }
        if flags & !(BUNDLE_ATOMIC | BUNDLE_ORDERED) != 0 {
            return Err(Refusal::BundleFlags);
        }
        if self.bundles.len() >= BUNDLES_MAX {
            return Err(Refusal::OutOfBundles);
        }
        let bundle =
            Bundle { flags, is_closed: false, messages: Vec::new(), opened_by: by.clone(), used_at: now };
        self.bundles.insert(id, bundle);
        Ok(())
    }

    /// Adds a message by the message `by`. A bundle that does not exist is opened.
    pub(crate) fn add(
        &mut self,
        id: u32,
        flags: u16,
        message: &Message,
        by: &Message,
        now: Duration,
    ) -> Result<(), Refusal> {
        if !self.bundles.contains_key(&id) {
            self.open(id, flags, by, now)?;
        }
        let bundle = self.usable(id, flags, now)?;
        if bundle.messages.len() >= MESSAGES_MAX {
            return Err(Refusal::BundledTooMany);
        }
        bundle.messages.push(message.clone());
        Ok(())
    }

    /// Closes a bundle: nothing can be added any more.
    pub(crate) fn close(&mut self, id: u32, flags: u16, now: Duration) -> Result<(), Refusal> {
        self.usable(id, flags, now)?.is_closed = true;
        Ok(())
    }

    /// Takes the messages of a bundle, which is gone then. It need not be closed.
    pub(crate) fn take(&mut self, id: u32, flags: u16) -> Result<Vec<Message>, Refusal> {
        let bundle = self.bundles.remove(&id).ok_or(Refusal::BundleBadId)?;
        if bundle.flags == flags { Ok(bundle.messages) } else { Err(Refusal::BundleFlags) }
    }

    /// Discards a bundle.
    pub(crate) fn discard(&mut self, id: u32) -> Result<(), Refusal> {
        self.bundles.remove(&id).map(drop).ok_or(Refusal::BundleBadId)
    }

    /// An open bundle of these flags. Any other of this number is discarded.
    fn usable(&mut self, id: u32, flags: u16, now: Duration) -> Result<&mut Bundle, Refusal> {
        let refusal = match self.bundles.get(&id) {
            None => return Err(Refusal::BundleBadId),
            Some(bundle) if bundle.is_closed => Some(Refusal::BundleClosed),
            Some(bundle) if bundle.flags != flags => Some(Refusal::BundleFlags),
            Some(_) => None,
        };
        if let Some(refusal) = refusal {
            self.bundles.remove(&id);
            return Err(refusal);
        }
        let bundle = self.bundles.get_mut(&id).ok_or(Refusal::BundleBadId)?;
        bundle.used_at = now;
        Ok(bundle)
    }

    /// When the next bundle is discarded if nothing more is said about it.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.bundles.values().map(|bundle| bundle.used_at + IDLE_MAX).min()
    }

    /// Discards the bundles about which nothing was said for too long. Returns the messages that opened them.
    pub(crate) fn expire(&mut self, now: Duration) -> Vec<Message> {
        let is_late = |bundle: &Bundle| now >= bundle.used_at + IDLE_MAX;
        let late: Vec<u32> =
            self.bundles.iter().filter(|(_, bundle)| is_late(bundle)).map(|(id, _)| *id).collect();
        late.iter().filter_map(|id| self.bundles.remove(id)).map(|bundle| bundle.opened_by).collect()
    }
}
