//! A slice that is removed, or loses a port, while no process of it can delete its rules: they leave the switches all the same, and no others do.

use super::memory::{Tenant, flow_mod, group};
use super::{bed, tenant};
use emulator::{Handle, SwitchOptions, Versions};
use openflow::message::FLOW_ADD;
use operator::contract::FlowView;
use std::process::Stdio;
use std::time::Duration;
use test_bed::{Bed, Launch, Node, kill};

pub(super) const BOTH: [Versions; 2] = [Versions::Only10, Versions::Only13];

/// An app with a rule in the switch.
const FIREWALL: &str = "[apps]\norder = ['firewall']\n[app.firewall.capabilities]\n'rule.write' = true\n'view.read' = true\n[app.firewall.settings]\nblock = ['ip,nw_src=9.9.9.9']\n";

/// One switch with the slices blue and red, and a firewall. The tenant of red has hosts, whose pings are to go on.
pub(super) struct World {
    pub(super) bed: Bed,
    pub(super) node: Option<Node>,
    address: String,
    pub(super) blue: Tenant,
    pub(super) red: Node,
    pub(super) network: Handle,
    pub(super) versions: Versions,
    /// What the cookies of blue begin with.
    zone: String,
}

impl World {
    pub(super) fn new(versions: Versions) -> World {
        let (bed, blue, red) = (bed(), Tenant::new(), tenant("1.3"));
        let config = FIREWALL.to_owned() + &of_blue(&blue, &[1, 2]) + &of_red(&red);
        let node = bed.node().app("firewall").config(&config).log("info").start_ready();
        let network = node.network("single,6", &SwitchOptions { versions, ..SwitchOptions::default() });
        let address = node.address().to_string();
        let mut world =
            World { bed, node: Some(node), address, blue, red, network, versions, zone: String::new() };
        world.fill();
        world
    }

    pub(super) fn node(&self) -> &Node {
        self.node.as_ref().unwrap()
    }

    /// The tenant of blue adds rules, and in 1.3 a group. The hosts of red reach each other.
    fn fill(&mut self) {
        self.blue.accept();
        let mut wanted = vec![
            flow_mod(FLOW_ADD, 5, "in_port=1", "output:3"),
            flow_mod(FLOW_ADD, 6, "in_port=2", "output:3"),
            flow_mod(FLOW_ADD, 7, "in_port=3", "output:2"),
        ];
        if self.versions == Versions::Only13 {
            wanted.extend([group(), flow_mod(FLOW_ADD, 8, "in_port=3,dl_dst=02:00:00:00:00:08", "group:7")]);
        }
        for body in wanted {
            assert_eq!(self.blue.do_it(body.clone()), [], "{body:?}");
        }
        self.node().wait("the hosts of red reach each other", |_| self.ping());
        let cookie = self.rules_by(|flow| flow.owner == "slice.blue").pop().unwrap().cookie;
        self.zone = cookie.split_at(cookie.len() - 12).0.to_owned();
        let owners: Vec<String> = self.rules_by(|_| true).into_iter().map(|flow| flow.owner).collect();
        assert!(self.of("firewall") > 0 && self.of("slice.red") > 2, "{owners:?}\n{}", self.node().log());
    }

    fn is_connected(&self) -> bool {
        !self.node().switches().is_empty()
    }

    pub(super) fn ping(&self) -> bool {
        let report = self.network.begin_ping("h4", "h5", Duration::from_secs(5)).unwrap();
        report.recv().unwrap().is_complete()
    }

    pub(super) fn rules_by(&self, is_meant: impl Fn(&FlowView) -> bool) -> Vec<FlowView> {
        self.node().flows().into_iter().flat_map(|switch| switch.flows).filter(is_meant).collect()
    }

    fn of(&self, owner: &str) -> usize {
        self.rules_by(|flow| flow.owner == owner).len()
    }

    /// The rules with the number of blue's zone, also when no app has it.
    fn of_blue(&self) -> usize {
        let length = self.zone.len() + 12;
        self.rules_by(|flow| flow.cookie.len() == length && flow.cookie.starts_with(&self.zone)).len()
    }

    /// Groups and meters of blue's zone that the node knows.
    pub(super) fn things_of_blue(&self) -> usize {
        let owners = std::fs::read_to_string(self.bed.state().join("owners")).unwrap_or_default();
        let digits = self.zone.trim_start_matches("0x");
        let zone = u16::from_str_radix(digits, 16).unwrap().to_string();
        owners.lines().filter(|line| line.ends_with(&format!(" {zone}"))).count()
    }

    /// What must be so when blue is gone: its rules too, and nothing else.
    fn check_gone(&self, pid_of_red: Option<u32>, rules_of_red: usize) {
        self.node().wait("the rules of blue leave", |_| {
            assert!(self.ping(), "red lost a packet");
            self.of_blue() == 0
        });
        self.node().wait("its group too", |_| self.things_of_blue() == 0);
        assert!(self.ping(), "red goes on");
        assert_eq!(self.of("firewall"), 1);
        assert!(self.of("slice.red") >= rules_of_red);
        assert!(pid_of_red.is_none() || self.node().pid_of("slice.red") == pid_of_red);
    }

    fn launch(&self, slices: &str) -> Launch {
        let config = FIREWALL.to_owned() + slices;
        self.bed.node().app("firewall").config(&config).listen(&self.address).log("info")
    }

    fn start(&mut self, slices: &str) {
        self.node = Some(self.launch(slices).start_ready());
    }

    /// Starts a node on which blue is paused, and waits until its switch is there and all else runs.
    pub(super) fn start_paused(&mut self, slices: &str) {
        self.node = Some(self.launch(slices).start());
        let runs = |node: &Node| {
            !node.switches().is_empty()
                && ["firewall", "slice.red"].iter().all(|app| node.pid_of(app).is_some())
        };
        self.node().wait("the switch and the other apps are there", runs);
    }

    pub(super) fn apply(&self, slices: &str) -> String {
        let file = self.bed.file("wanted.toml", slices);
        let mut command = self.bed.burnet();
        let command =
            command.args(["slice", "apply"]).arg(file).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut command = command.spawn().unwrap();
        while command.try_wait().unwrap().is_none() {
            assert!(!self.is_connected() || self.ping(), "red lost a packet");
        }
        let done = command.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    pub(super) fn pause(&self) {
        assert!(self.bed.run(&["slice", "pause", "blue"]).status.success());
        self.node().wait("it is paused", |node| node.pid_of("slice.blue").is_none());
    }
}

pub(super) fn of_blue(tenant: &Tenant, own_ports: &[u16]) -> String {
    let own: Vec<String> = own_ports.iter().map(|port| format!("'s1:{port}'")).collect();
    let (address, own) = (tenant.address(), own.join(", "));
    format!(
        "[slice.blue]\ncontrollers = ['{address}']\nisolation = 'vlan'\ntag = 10\nown_ports = [{own}]\nports = ['s1:3']\n"
    )
}

pub(super) fn of_red(tenant: &Node) -> String {
    let address = tenant.address();
    format!(
        "[slice.red]\ncontrollers = ['{address}']\nisolation = 'vlan'\ntag = 20\nown_ports = ['s1:4', 's1:5']\nports = ['s1:3']\n"
    )
}

#[test]
fn the_rules_of_a_slice_that_was_deleted_while_the_node_was_down_leave_when_the_switch_connects() {
    for versions in BOTH {
        let mut world = World::new(versions);
        let red = of_red(&world.red);
        world
            .node()
            .wait("the group is known", |_| versions == Versions::Only10 || world.things_of_blue() > 0);
        let before = world.of("slice.red");
        world.node = None;
        world.start(&red);
        world.node().wait("the switch is there", |node| node.switches().len() == 1);
        world.check_gone(None, before);
        let said = world.node().log();
        assert!(
            said.contains("slice blue: all its rules leave s1: the slice is removed; the node deletes"),
            "{said}"
        );
        // A slice that comes again has its old number, and keeps its rules also after a restart.
        let all = of_blue(&world.blue, &[1, 2]) + &red;
        world.node = None;
        world.start(&all);
        world.fill();
        world.node = None;
        world.start(&all);
        world.blue.accept();
        assert!(world.of_blue() > 3 && world.blue.rules().len() >= 3);
    }
}

#[test]
fn the_rules_of_a_paused_slice_leave_when_it_is_removed() {
    for versions in BOTH {
        let mut world = World::new(versions);
        let (red, before) = (world.node().pid_of("slice.red"), world.of("slice.red"));
        world.pause();
        assert!(world.of_blue() > 3, "its rules stay while it is paused");
        let done = world.apply(&of_red(&world.red));
        assert!(done.contains("slice blue: its process could not delete all, so the node does"), "{done}");
        world.check_gone(red, before);
        // A slice that comes again under the same name was never paused.
        world.apply(&(of_blue(&world.blue, &[1, 2]) + &of_red(&world.red)));
        world.blue.accept();
        assert_eq!(world.blue.rules(), []);
    }
}

#[test]
fn the_rules_of_a_slice_whose_process_was_killed_leave_when_it_is_removed() {
    for versions in BOTH {
        let world = World::new(versions);
        let (red, before) = (world.node().pid_of("slice.red"), world.of("slice.red"));
        // After so many ends, its next start is usually longer away than the node asks for. If not, the process deletes its rules itself.
        for _ in 0..8 {
            world.node().wait("it runs", |node| node.pid_of("slice.blue").is_some());
            let pid = world.node().pid_of("slice.blue");
            kill(pid.unwrap());
            world.node().wait("it has ended", |node| node.pid_of("slice.blue") != pid);
        }
        world.apply(&of_red(&world.red));
        world.check_gone(red, before);
    }
}

#[test]
fn a_paused_slice_that_loses_a_port_loses_the_rules_for_it_and_keeps_others() {
    for versions in BOTH {
        let mut world = World::new(versions);
        world.pause();
        world.apply(&(of_blue(&world.blue, &[1]) + &of_red(&world.red)));
        let names_port = |flow: &FlowView| {
            let text = format!("{},{}", flow.matching, flow.actions);
            flow.owner == "slice.blue" && (text.contains("in_port=2") || text.ends_with("output:2"))
        };
        world.node().wait("its rules for port 2 leave", |_| world.rules_by(names_port).is_empty());
        let left = world.rules_by(|flow| flow.owner == "slice.blue" && flow.matching.contains("in_port=1"));
        assert!(!left.is_empty(), "{:?}", world.node().flows());
        assert!(world.ping());
        assert!(world.bed.run(&["slice", "resume", "blue"]).status.success());
        world.blue.accept();
        let priorities: Vec<u16> = world.blue.rules().into_iter().map(|(priority, ..)| priority).collect();
        assert_eq!(priorities, [5], "the table has what is left in the switch");
    }
}

#[test]
fn a_switch_that_is_away_gets_the_deletes_when_it_comes_back() {
    for versions in BOTH {
        let mut world = World::new(versions);
        let red = of_red(&world.red);
        let before = world.of("slice.red");
        // The switch cannot reach the node, which listens elsewhere meanwhile.
        world.node = None;
        let address = std::mem::replace(&mut world.address, "127.0.0.1:0".to_owned());
        world.start(&(of_blue(&world.blue, &[1, 2]) + &red));
        world.node().wait("the slice runs", |node| node.pid_of("slice.blue").is_some());
        let done = world.apply(&red);
        assert!(done.contains("the node does, at each switch as soon as it is connected"), "{done}");
        // The slice is there again before its switch is.
        world.apply(&(of_blue(&world.blue, &[1, 2]) + &red));
        world.node = None;
        world.address = address;
        world.start(&(of_blue(&world.blue, &[1, 2]) + &red));
        world.node().wait("the switch is there", |node| node.switches().len() == 1);
        world.blue.accept();
        assert_eq!(world.blue.rules(), [], "the tenant's table is empty");
        world.node().wait("nothing of the old slice is in the switch", |_| {
            world.rules_by(|flow| flow.owner == "slice.blue" && flow.actions.contains("output")).is_empty()
        });
        assert!(world.of("slice.red") >= before && world.of("firewall") == 1);
        world.node().wait("the hosts of red reach each other", |_| world.ping());
    }
}
