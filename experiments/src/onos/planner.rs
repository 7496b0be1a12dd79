//! What the probe does as an app for path installation: it computes paths in its own view, and writes them as sets of rules.
//!
//! ```text
//!   links of the view ──> graph ──paths──> batches for the service `flows`
//! ```
//!
//! In: links, and pairs of ports. Out: payloads. It sends nothing.

use super::wan::Wan;
use burnet_sdk::DatapathId;
use burnet_sdk::flow::Field;
use burnet_sdk::flow::canonical::MatchWriter;
use burnet_sdk::view::{ConnectPoint, Link, LinkId, LinkKind, LinkState, Weight};
use flows_contract::{Batch, Hop, Hops, Path, SetOptions, hop_bytes};
use graph::{Graph, LinkNo};
use serde::{Deserialize, Serialize};

/// The destination addresses of the paths begin here.
const FIRST_ADDRESS: u32 = 0x2800_0000;

/// A batch is given at this size. The kernel keeps some 190 KiB of queries for a service, and a caller may have half of what is left.
const BATCH_BYTES: usize = 24 << 10;

/// The priority of their rules.
const PRIORITY: u16 = 100;

/// What is to be installed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wish {
    /// From which port to which port. The pairs are taken in turn.
    pub pairs: Vec<(ConnectPoint, ConnectPoint)>,
    /// The number of the first path.
    pub first: u32,
    /// How many paths.
    pub count: u32,
    /// The version of their sets.
    pub version: u64,
}

/// The graph that the app keeps of its view.
#[derive(Debug, Default)]
pub struct Planner {
    graph: Graph,
    links: Vec<LinkNo>,
    hops: Vec<Hop>,
    selector: Vec<u8>,
}

/// The name of the set of a path.
pub fn name(number: u32) -> String {
    format!("path {number}")
}

impl Planner {
    /// A link is there, or changed.
    pub fn put(&mut self, link: &Link) {
        // Beyond the bounds of the graph, a link is in no path.
        let _ = self.graph.put_link(link);
    }

    /// A link is gone.
    pub fn remove(&mut self, id: LinkId) {
        self.graph.remove_link(id);
    }

    /// Computes the paths from this number on, until a batch is full. Returns the batch, and the number of the next path. `None`: there are no
    /// more paths.
    ///
    /// # Errors
    /// There is no path, or it does not fit into a batch.
    pub fn plan(&mut self, wish: &Wish, from: u32) -> Result<Option<(Batch, u32)>, String> {
        let (mut batch, mut number) = (Batch::new(), from);
        while number < wish.first + wish.count && batch.as_bytes().len() < BATCH_BYTES {
            let pair = wish.pairs.get(number as usize % wish.pairs.len().max(1));
            let (from, to) = *pair.ok_or("there is no pair of ports")?;
            self.route(from, to, number)?;
            if !self.write(number, wish.version, &mut batch) {
                if batch.is_empty() {
                    return Err(format!("the path from {from} to {to} does not fit into a batch"));
                }
                break;
            }
            number += 1;
        }
        Ok((!batch.is_empty()).then_some((batch, number)))
    }

    fn route(&mut self, from: ConnectPoint, to: ConnectPoint, number: u32) -> Result<(), String> {
        let Planner { graph, links, hops, .. } = self;
        let unknown = |switch: DatapathId| format!("the switch {switch} is not in the view");
        let switch = |graph: &Graph, id: DatapathId| graph.topology().switch(id).ok_or_else(|| unknown(id));
        let (first, last) = (switch(graph, from.switch)?, switch(graph, to.switch)?);
        let metric = graph.metric(&Weight::Hops).ok_or("the graph takes no weight")?;
        links.clear();
        if !graph.path(metric, first, last, number.into(), links) {
            return Err(format!("there is no path from {from} to {to}"));
        }
        hops.clear();
        let mut at = from;
        for link in links.iter() {
            let id = graph.topology().slot(*link).id;
            hops.push(Hop { switch: at.switch, in_port: at.port, out_port: id.from.port });
            at = id.to;
        }
        hops.push(Hop { switch: at.switch, in_port: at.port, out_port: to.port });
        Ok(())
    }

    fn write(&mut self, number: u32, version: u64, batch: &mut Batch) -> bool {
        let Planner { hops, selector, .. } = self;
        selector.clear();
        MatchWriter::new(selector)
            .field(Field::EthType, 0x0800u16)
            .field(Field::Ipv4Dst, FIRST_ADDRESS + number);
        let hops = hop_bytes(hops);
        let path = Path { table_id: 0, priority: PRIORITY, selector, treatment: &[], hops: Hops::of(&hops) };
        batch.put(&name(number), version, SetOptions::default(), |items| {
            items.path(&path);
        })
    }
}

impl Planner {
    /// A planner whose view has all links of a network.
    pub fn of(wan: &Wan) -> Planner {
        let mut planner = Planner::default();
        for (from, to) in wan.cables.iter().filter_map(|cable| wan.ends(*cable)) {
            for id in [LinkId { from, to }, LinkId { from: to, to: from }] {
                let (found, state, annotations) = (LinkKind::Direct, LinkState::Up, Default::default());
                let link =
                    Link { id, found, state, capacity_kbps: 0, latency_us: None, since_ms: 0, annotations };
                planner.put(&link);
            }
        }
        planner
    }
}

/// The batch that removes the sets of a wish.
pub fn removals(wish: &Wish) -> Batch {
    let mut batch = Batch::new();
    // A removal takes some twenty bytes, so thousands fit into one batch.
    for number in wish.first..wish.first + wish.count {
        batch.remove(&name(number), wish.version);
    }
    batch
}

#[cfg(test)]
mod tests {
    use super::*;
    use flows_contract::{Change, read_batch};

    #[test]
    fn each_path_becomes_a_set_and_is_removed_by_its_name() {
        let wan = Wan::new(8, 10, 1);
        let mut planner = Planner::of(&wan);
        let wish = Wish { pairs: vec![(wan.edge(0), wan.edge(4))], first: 0, count: 1_000, version: 3 };
        let (mut sets, mut batches, mut number) = (0, 0, wish.first);
        while let Some((batch, next)) = planner.plan(&wish, number).unwrap() {
            batches += 1;
            sets += read_batch(batch.as_bytes()).unwrap().len();
            number = next;
        }
        assert_eq!(sets, 1_000);
        assert!(batches > 1);
        let removals = removals(&wish);
        let all = read_batch(removals.as_bytes()).unwrap();
        assert!(all.len() == 1_000 && all.iter().all(|change| matches!(change, Change::Remove { .. })));
    }

    #[test]
    fn a_switch_that_is_not_there_is_named() {
        let wan = Wan::new(4, 4, 1);
        let wish = Wish { pairs: vec![(wan.edge(0), wan.edge(2))], first: 0, count: 1, version: 1 };
        let why = Planner::default().plan(&wish, 0).unwrap_err();
        assert!(why.contains("of:0000000000000001 is not in the view"), "{why}");
    }
}
