//! Prints each link that fails, and each that works again.
//!
//! In: changes of the network view. Out: lines on standard output. It commands nothing.

use burnet_sdk::view::{Batch, Kind, Link, LinkState, Object, Snapshot};
use burnet_sdk::{App, Commands, Interests, Settings};

struct FailedLinks;

impl App for FailedLinks {
    fn new(_: &Settings) -> Result<Self, String> {
        Ok(FailedLinks)
    }

    fn interests(&self) -> Interests {
        Interests::none().view(&[Kind::Link])
    }

    fn on_view(&mut self, changes: &Batch, _: &Snapshot, _: &mut Commands) {
        for change in changes.of(Kind::Link) {
            match (up(change.before()), up(change.now())) {
                (Some(link), None) => println!("failed: {} to {}", link.id.from, link.id.to),
                (None, Some(link)) => println!("works: {} to {}", link.id.from, link.id.to),
                _ => {}
            }
        }
    }
}

fn up(object: Option<&Object>) -> Option<&Link> {
    match object? {
        Object::Link(link) => Some(link).filter(|link| link.state == LinkState::Up),
        _ => None,
    }
}

burnet_sdk::main!(FailedLinks);
