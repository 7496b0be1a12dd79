//! What an object needs to be visible, and which objects need it.
//!
//! ```text
//!   switch <── port <── link (both of its ports)
//!                  <─── host
//! ```
//!
//! In: objects. Out: keys. It decides nothing about order or time: an object whose port is not known yet waits in the tables.
//! This is the one place, beside the table in `kinds`, that a new kind with needs is added to.

use crate::kinds::{Key, Object};
use crate::snapshot::Snapshot;

/// The keys that must be visible for this object to be.
pub(crate) fn needs(object: &Object) -> [Option<Key>; 2] {
    match object {
        Object::Port(port) => [Some(Key::Switch(port.id.switch)), None],
        Object::Link(link) => [Some(Key::Port(link.id.from)), Some(Key::Port(link.id.to))],
        Object::Host(host) => [Some(Key::Port(host.at)), None],
        // A rule can be wanted in a switch that never connected, and a path can outlive its links.
        _ => [None, None],
    }
}

impl Object {
    /// The objects without which this one is not visible.
    pub fn needs(&self) -> [Option<Key>; 2] {
        needs(self)
    }
}

/// The objects that need this one, visible or not. An object comes after what it needs in the order of keys.
pub(crate) fn dependents(all: &Snapshot, key: Key) -> Vec<Key> {
    match key {
        Key::Switch(switch) => all.known_ports_of(switch).map(Key::Port).collect(),
        Key::Port(at) => {
            let links = all.known_links_from(at).chain(all.known_links_to(at)).map(Key::Link);
            links.chain(all.known_hosts_at(at).map(Key::Host)).collect()
        }
        _ => Vec::new(),
    }
}
