//! Commands for switches of other workers: which worker decides and counts, also if the switch moves, disconnects, or a queue is full.

use super::*;
use crate::routes::Route;

const SWITCH: DatapathId = DatapathId(1);

/// Two workers with the same app. The switch is connected to the second.
struct Node {
    workers: [Bench; 2],
    apps: [App; 2],
    switch: TcpStream,
}

impl Node {
    fn new() -> Node {
        let mut workers: [Bench; 2] = Bench::node();
        let all = || Grant::everywhere(&kernel::Capability::GRANT_ALL);
        let apps = workers.each_mut().map(|worker| worker.attach(ATTACKER, "attacker", all()));
        let switch = workers[1].come_up(SWITCH);
        Node { workers, apps, switch }
    }

    /// The app commands this at the first worker.
    fn command(&mut self, times: usize) {
        assert_eq!(self.apps[0].command(times, What::Barrier), times);
        self.workers[0].turn();
    }

    /// The commands that each worker has counted, and those that it has refused.
    fn counted(&self) -> [(u64, u64); 2] {
        self.workers.each_ref().map(|it| {
            let counters = it.worker.dispatch.kernel.zone(ATTACKER).unwrap().counters;
            (counters.commands, counters.refusals)
        })
    }

    fn disconnect(&mut self) {
        let Bench { worker, .. } = &mut self.workers[1];
        assert!(worker.southbound.end(SWITCH, "it moves"));
        worker.write();
        assert!(!worker.dispatch.kernel.is_up(SWITCH));
    }

    /// The reasons for refusals that the app has received at each worker.
    fn refused(&mut self) -> [Vec<String>; 2] {
        self.apps.each_mut().map(|app| app.hear(refusals))
    }
}

#[test]
fn the_worker_that_has_the_switch_decides_and_counts() {
    let mut node = Node::new();
    let sent =
        |node: &Node| node.workers[1].worker.southbound.sessions().next().unwrap().counters.messages_out;
    let before = sent(&node);
    node.command(3);
    assert_eq!(node.counted(), [(0, 0), (0, 0)]);
    node.workers[1].turn();
    assert_eq!(node.counted(), [(0, 0), (3, 0)]);
    assert_eq!(sent(&node), before + 3);
    assert_eq!(node.refused(), [[""; 0], [""; 0]]);
}

#[test]
fn a_command_for_no_workers_switch_is_refused_where_it_was_given() {
    let mut node = Node::new();
    node.disconnect();
    node.command(1);
    node.workers[1].turn();
    assert_eq!(node.counted(), [(1, 1), (0, 0)]);
    assert!(node.refused()[0][0].contains("is not connected"));
}

#[test]
fn a_command_whose_switch_disconnects_on_the_way_is_refused_once() {
    let mut node = Node::new();
    node.command(1);
    node.disconnect();
    node.workers.iter_mut().for_each(Bench::turn);
    assert_eq!(node.counted(), [(0, 0), (1, 1)]);
    let [none, refused] = node.refused();
    assert!(none.is_empty() && refused.len() == 1 && refused[0].contains("is not connected"), "{refused:?}");
}

#[test]
fn a_command_follows_its_switch_to_another_worker() {
    let mut node = Node::new();
    node.command(1);
    node.disconnect();
    node.switch = node.workers[0].come_up(SWITCH);
    node.workers[1].turn();
    assert_eq!(node.counted(), [(0, 0), (0, 0)]);
    node.workers[0].turn();
    assert_eq!(node.counted(), [(1, 0), (0, 0)]);
    assert_eq!(node.refused(), [[""; 0], [""; 0]]);
}

#[test]
fn a_command_that_finds_a_full_queue_is_refused_and_counted_where_it_was_given() {
    let mut node = Node::new();
    node.command(501);
    assert_eq!(node.counted(), [(1, 1), (0, 0)]);
    assert_eq!(node.refused()[0], [QUEUE_IS_FULL]);
    while node.counted()[1].0 < 500 {
        node.workers[1].turn();
    }
    node.command(1);
    node.workers[1].turn();
    assert_eq!(node.counted(), [(1, 1), (501, 0)]);
}

#[test]
fn only_commands_for_switches_of_other_workers_leave_a_worker() {
    let node = Node::new();
    let route = |what, datapath, is_here: bool| {
        let mut bytes = Vec::new();
        let command = Command { datapath: DatapathId(datapath), ticket: 7, wants_receipt: false, what };
        assert!(command::command(&mut bytes, &command));
        node.workers[0].worker.routes.find(&Frame::read(&bytes).unwrap(), |_| is_here)
    };
    assert_eq!(route(What::FlowMod(FlowMod::ADD), 1, false), Route::Worker(1));
    assert_eq!(route(What::FlowMod(FlowMod::ADD), 1, true), Route::Here);
    assert_eq!(route(What::Barrier, 1, false), Route::Worker(1));
    assert_eq!(route(What::Barrier, 2, false), Route::Here);
    assert_eq!(route(What::QueryCancel, 1, false), Route::Here);
    assert_eq!(route(What::Query(Ask::query("paths", &[])), 1, false), Route::Here);
}
