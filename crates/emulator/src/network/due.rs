//! When each switch or host must act although nothing arrives for it.
//!
//! In: the time for a node. Out: the next node. Each node is in it at most once, so its size is bounded by the
//! network's.

use std::collections::BTreeSet;
use std::time::Duration;

/// A switch or a host, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    Switch(usize),
    Host(usize),
}

/// The nodes with their times.
#[derive(Debug, Default)]
pub(super) struct DueQueue {
    queue: BTreeSet<(Duration, Node)>,
    switches: Vec<Option<Duration>>,
    hosts: Vec<Option<Duration>>,
}

impl DueQueue {
    /// An empty schedule for this many switches and hosts.
    pub(super) fn new(switches: usize, hosts: usize) -> Self {
        DueQueue { queue: BTreeSet::new(), switches: vec![None; switches], hosts: vec![None; hosts] }
    }

    /// Sets a node's time and replaces its earlier one.
    pub(super) fn set(&mut self, node: Node, due: Option<Duration>) {
        let slot = match node {
            Node::Switch(index) => self.switches.get_mut(index),
            Node::Host(index) => self.hosts.get_mut(index),
        };
        let Some(slot) = slot.filter(|slot| **slot != due) else { return };
        if let Some(before) = std::mem::replace(slot, due) {
            self.queue.remove(&(before, node));
        }
        self.queue.extend(due.map(|due| (due, node)));
    }

    /// The earliest time.
    pub(super) fn next(&self) -> Option<Duration> {
        self.queue.first().map(|(due, _)| *due)
    }

    /// Removes and returns a node whose time has come.
    pub(super) fn take(&mut self, now: Duration) -> Option<Node> {
        let (_, node) = *self.queue.first().filter(|(due, _)| *due <= now)?;
        self.set(node, None);
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_due_once_and_at_the_time_that_was_said_last() {
        let mut queue = DueQueue::new(2, 2);
        let at = |seconds| Some(Duration::from_secs(seconds));
        queue.set(Node::Host(1), at(5));
        queue.set(Node::Switch(0), at(3));
        queue.set(Node::Host(1), at(2));
        queue.set(Node::Switch(1), at(3));
        queue.set(Node::Host(0), at(1));
        queue.set(Node::Host(0), None);
        queue.set(Node::Host(9), at(1));
        assert_eq!((queue.next(), queue.take(Duration::from_secs(1))), (at(2), None));
        let order: Vec<Node> = std::iter::from_fn(|| queue.take(Duration::from_secs(9))).collect();
        assert_eq!(order, [Node::Host(1), Node::Switch(0), Node::Switch(1)]);
    }
}
