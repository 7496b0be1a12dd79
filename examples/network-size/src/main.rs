//! Prints how many switches, links and hosts work, whenever that changes. It reads them in shared memory.
//!
//! In: objects of the network view. Out: lines on standard output. It keeps no table, and commands nothing.

use burnet_sdk::view::{Kind, LinkState, Object, SwitchState};
use burnet_sdk::{App, Commands, Interests, NotShared, Settings};

struct NetworkSize {
    printed: String,
}

impl App for NetworkSize {
    fn new(_: &Settings) -> Result<Self, String> {
        Ok(NetworkSize { printed: String::new() })
    }

    fn interests(&self) -> Interests {
        Interests::none().shared_view(&[Kind::Switch, Kind::Link, Kind::Host])
    }

    fn on_shared_view(&mut self, out: &mut Commands) {
        let line = size(out).unwrap_or_else(|why| why.to_string());
        if line != self.printed {
            println!("{line}");
            self.printed = line;
        }
    }
}

fn size(out: &Commands) -> Result<String, NotShared> {
    let works = |object: &Object| match object {
        Object::Switch(switch) => switch.state == SwitchState::Up,
        Object::Link(link) => link.state == LinkState::Up,
        _ => true,
    };
    let count = |kind| Ok(out.objects(kind)?.iter().filter(|object| works(object)).count());
    Ok(format!(
        "{} switches, {} links, {} hosts",
        count(Kind::Switch)?,
        count(Kind::Link)?,
        count(Kind::Host)?
    ))
}

burnet_sdk::main!(NetworkSize);
