//! Which link is connected to a port of a switch or to a host.
//!
//! In: an end of a link. Out: the link and the direction along it. Every frame is looked up here.

use super::cable::Way;
use crate::topology::Endpoint;

/// The end of a link at a port or host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plug {
    /// The link.
    pub(super) link: usize,
    /// The direction of a frame that leaves by this end.
    pub(super) way: Way,
}

/// All ends of links.
#[derive(Debug, Default)]
pub(super) struct Plugs {
    /// For each switch, sorted by port.
    switches: Vec<Vec<(u32, Plug)>>,
    hosts: Vec<Option<Plug>>,
}

impl Plugs {
    /// For this many switches and hosts, without links.
    pub(super) fn new(switches: usize, hosts: usize) -> Self {
        Plugs { switches: vec![Vec::new(); switches], hosts: vec![None; hosts] }
    }

    /// The link at this end.
    pub(super) fn get(&self, at: Endpoint) -> Option<Plug> {
        match at {
            Endpoint::Host { index } => *self.hosts.get(index)?,
            Endpoint::Switch { index, port } => {
                let ports = self.switches.get(index)?;
                let place = ports.binary_search_by_key(&port.0, |(port, _)| *port).ok()?;
                Some(ports[place].1)
            }
        }
    }

    /// Connects a link at this end, or disconnects it.
    pub(super) fn set(&mut self, at: Endpoint, plug: Option<Plug>) {
        match at {
            Endpoint::Host { index } => {
                if let Some(slot) = self.hosts.get_mut(index) {
                    *slot = plug;
                }
            }
            Endpoint::Switch { index, port } => {
                let Some(ports) = self.switches.get_mut(index) else { return };
                match (ports.binary_search_by_key(&port.0, |(port, _)| *port), plug) {
                    (Ok(place), Some(plug)) => ports[place].1 = plug,
                    (Ok(place), None) => drop(ports.remove(place)),
                    (Err(place), Some(plug)) => ports.insert(place, (port.0, plug)),
                    (Err(_), None) => {}
                }
            }
        }
    }

    /// The links at a switch.
    pub(super) fn of_switch(&self, index: usize) -> impl Iterator<Item = usize> {
        self.switches.get(index).into_iter().flatten().map(|(_, plug)| plug.link)
    }

    /// The highest port of a switch that has a link now.
    pub(super) fn highest_port(&self, index: usize) -> u32 {
        self.switches.get(index).and_then(|ports| ports.last()).map_or(0, |(port, _)| *port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::PortNo;

    #[test]
    fn what_is_plugged_in_is_found_and_what_is_unplugged_is_not() {
        let mut plugs = Plugs::new(1, 1);
        let port = |port| Endpoint::Switch { index: 0, port: PortNo(port) };
        let plug = |link| Some(Plug { link, way: Way::Back });
        for (number, link) in [(7, 0), (2, 1), (5, 2)] {
            plugs.set(port(number), plug(link));
        }
        plugs.set(Endpoint::Host { index: 0 }, plug(3));
        assert_eq!((plugs.get(port(2)), plugs.get(port(3))), (plug(1), None));
        assert_eq!(plugs.of_switch(0).collect::<Vec<_>>(), [1, 2, 0]);
        plugs.set(port(7), None);
        assert_eq!((plugs.get(port(7)), plugs.highest_port(0)), (None, 5));
        assert_eq!(plugs.get(Endpoint::Host { index: 0 }), plug(3));
        for nowhere in [Endpoint::Host { index: 9 }, Endpoint::Switch { index: 9, port: PortNo(1) }] {
            plugs.set(nowhere, plug(1));
            assert_eq!(plugs.get(nowhere), None);
        }
    }
}
