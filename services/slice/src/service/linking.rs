//! Links of the slice: what ports and the service `paths` say, handed to the virtual switches.
//!
//! In: states of ports, updates of the service. Out: events for the virtual switches, and calls of the service. [`crate::links`] decides.

use super::Slice;
use burnet_sdk::{Commands, Level};
use flow::{DatapathId, PortNo};
use slicer::{Event, LinkPlan};

impl Slice {
    /// Follows the service that lays links.
    pub(super) fn follow_links(&mut self, out: &mut Commands) {
        let now_ms = self.clock.now_ms;
        let Slice { settings, switches: Some(switches), .. } = self else { return };
        let follow = |payload: &[u8]| out.follow(paths_contract::SERVICE, payload);
        let changed = switches.links.on_time(&settings.name, now_ms, follow);
        switches.links.take_lines().iter().for_each(|line| out.log(Level::Warning, line));
        self.tell_links(changed, out);
    }

    pub(super) fn on_port(&mut self, datapath: DatapathId, port: PortNo, is_live: bool, out: &mut Commands) {
        let changed = self.switches.as_mut().map(|it| it.links.on_port(datapath, port, is_live));
        self.tell_links(changed.unwrap_or_default(), out);
    }

    pub(super) fn tell_links(&mut self, changed: Vec<(LinkPlan, bool)>, out: &mut Commands) {
        changed.into_iter().for_each(|(link, is_up)| self.feed(Event::Link { link, is_up }, out));
    }
}
