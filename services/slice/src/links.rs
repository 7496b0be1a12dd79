//! Which virtual links of a slice are up.
//!
//! In: the plan, and the states of physical ports. Out: changes of links. A link is up while the ports at both of its ends are live. It
//! does not know the switches between them.

use flow::{DatapathId, PortNo};
use slicer::{End, LinkPlan, SlicePlan};
use std::collections::BTreeMap;

/// The links of a slice, and the ports at their ends.
#[derive(Debug)]
pub(crate) struct Links {
    links: Vec<(LinkPlan, bool)>,
    /// The end at a physical port. Only ports at ends of links are here.
    ends: BTreeMap<(DatapathId, PortNo), End>,
    live: BTreeMap<End, bool>,
}

impl Links {
    /// All links are down.
    pub(crate) fn new(plan: &SlicePlan) -> Links {
        let shown = |end: &End| plan.switches.iter().find(|it| it.datapath == end.datapath);
        let ends = plan.links.iter().flat_map(|link| [link.from, link.to]).filter_map(|end| {
            let port = shown(&end)?.ports.iter().find(|port| port.shown_as == end.port)?;
            Some(((end.datapath, port.port), end))
        });
        Links {
            links: plan.links.iter().map(|link| (*link, false)).collect(),
            ends: ends.collect(),
            live: BTreeMap::new(),
        }
    }

    /// A physical port is live, or is not. Returns the links that changed, and whether they are up.
    pub(crate) fn on_port(
        &mut self,
        datapath: DatapathId,
        port: PortNo,
        is_live: bool,
    ) -> Vec<(LinkPlan, bool)> {
        let Some(end) = self.ends.get(&(datapath, port)) else { return Vec::new() };
        self.live.insert(*end, is_live);
        self.changed()
    }

    /// A switch is gone, and with it all of its ports.
    pub(crate) fn on_switch_down(&mut self, datapath: DatapathId) -> Vec<(LinkPlan, bool)> {
        self.live.retain(|end, _| end.datapath != datapath);
        self.changed()
    }

    /// Whether the link at this place of the plan is up.
    pub(crate) fn is_up(&self, place: usize) -> bool {
        self.links.get(place).is_some_and(|(_, is_up)| *is_up)
    }

    fn changed(&mut self) -> Vec<(LinkPlan, bool)> {
        let Links { links, live, .. } = self;
        let is_live = |end: &End| live.get(end).copied().unwrap_or(false);
        let changed = links.iter_mut().filter_map(|(link, was_up)| {
            let is_up = is_live(&link.from) && is_live(&link.to);
            (std::mem::replace(was_up, is_up) != is_up).then_some((*link, is_up))
        });
        changed.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slicer::{Isolation, Limits, Numbers, PortPlan, SwitchPlan};

    fn end(datapath: u64, port: u32) -> End {
        End { datapath: DatapathId(datapath), port: PortNo(port) }
    }

    #[test]
    fn a_link_is_up_while_both_ports_are_live() {
        let port = PortPlan { port: PortNo(7), shown_as: PortNo(1), is_edge: false };
        let switch = |datapath| SwitchPlan {
            datapath: DatapathId(datapath),
            shown_as: DatapathId(datapath),
            ports: vec![port],
        };
        let link = LinkPlan { from: end(1, 1), to: end(2, 1) };
        let plan = SlicePlan {
            name: "blue".to_owned(),
            isolation: Isolation::Vlan(7),
            is_read_only: false,
            switches: vec![switch(1), switch(2)],
            links: vec![link],
            limits: Limits::default(),
            numbers: Numbers::NONE,
        };
        let mut links = Links::new(&plan);
        let mut at = |datapath, port, is_live| links.on_port(DatapathId(datapath), PortNo(port), is_live);
        assert_eq!(at(1, 7, true), []);
        assert_eq!(at(2, 1, true), [], "the physical port is another");
        assert_eq!(at(2, 7, true), [(link, true)]);
        assert_eq!(at(2, 7, true), []);
        assert_eq!(at(1, 7, false), [(link, false)]);
        assert_eq!(at(1, 7, true), [(link, true)]);
        assert_eq!(links.on_switch_down(DatapathId(2)), [(link, false)]);
        assert_eq!(links.on_port(DatapathId(1), PortNo(7), true), []);
    }
}
