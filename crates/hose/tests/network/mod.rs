//! Small networks for tests.
//!
//! In: cables as pairs of datapath ids. Out: a graph, and routings over it.

use flow::{DatapathId, PortNo};
use graph::{Graph, MetricNo, SwitchNo};
use hose::Routing;
use view::{ConnectPoint, Link, LinkId, LinkKind, LinkState, Weight};

pub struct Network {
    pub graph: Graph,
    hops: MetricNo,
}

fn link(from: u64, to: u64, capacity_kbps: u64) -> Link {
    let point = |switch: u64, peer: u64| ConnectPoint {
        switch: DatapathId(switch),
        port: PortNo(u32::try_from(peer).expect("it is small")),
    };
    Link {
        id: LinkId { from: point(from, to), to: point(to, from) },
        found: LinkKind::Direct,
        state: LinkState::Up,
        capacity_kbps,
        latency_us: None,
        since_ms: 0,
        annotations: Default::default(),
    }
}

impl Network {
    pub fn new(cables: &[(u64, u64)], capacity_kbps: u64) -> Network {
        let mut graph = Graph::new();
        let hops = graph.metric(&Weight::Hops).expect("it is built in");
        let mut network = Network { graph, hops };
        for (one, two) in cables {
            network.capacity(*one, *two, capacity_kbps);
        }
        network
    }

    pub fn graph(&mut self) -> (&mut Graph, MetricNo) {
        (&mut self.graph, self.hops)
    }

    pub fn capacity(&mut self, one: u64, two: u64, capacity_kbps: u64) {
        for link in [link(one, two, capacity_kbps), link(two, one, capacity_kbps)] {
            self.graph.put_link(&link).expect("there are few");
        }
    }

    pub fn fail(&mut self, one: u64, two: u64) {
        for link in [link(one, two, 0), link(two, one, 0)] {
            self.graph.remove_link(link.id);
        }
    }

    pub fn switch(&self, id: u64) -> SwitchNo {
        self.graph.topology().switch(DatapathId(id)).expect("it is there")
    }

    pub fn routing(&mut self, places: &[SwitchNo]) -> Routing {
        Routing::equal_cost(&mut self.graph, self.hops, places, |_, _| true).expect("all are connected")
    }

    /// Without the links of one switch.
    pub fn routing_without(&mut self, places: &[SwitchNo], id: u64) -> Routing {
        let switch = self.switch(id);
        let may = |_, slot: &graph::LinkSlot| slot.from != switch && slot.to != switch;
        Routing::equal_cost(&mut self.graph, self.hops, places, may).expect("all are connected")
    }
}
