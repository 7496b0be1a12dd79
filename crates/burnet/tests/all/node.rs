//! A whole node with an emulated network: does it forward, and what happens when a part of it misbehaves?

use emulator::{Emulation, FlowSpec, Handle, SwitchOptions, Topology, Versions};
use operator::contract::MeterView;
use rustix::process::Signal;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use test_bed::{Bed, Node, PATIENCE, kill};

fn bed() -> Bed {
    Bed::new(env!("CARGO_BIN_EXE_burnet"))
}

/// A node with apps that are granted everything.
fn start(arguments: &[&str]) -> Node {
    bed().node().args(["--grant-all"]).args(arguments).start_ready()
}

/// Three switches as a tree, with four hosts.
fn tree(node: &Node, versions: Versions, n_buffers: u32) -> Handle {
    node.network("tree,2", &SwitchOptions { versions, n_buffers, ..SwitchOptions::default() })
}

/// The node's meter at each switch.
fn meters(node: &Node) -> Vec<Option<MeterView>> {
    node.switches().into_iter().map(|switch| switch.meter).collect()
}

fn all_reach_all(network: &Handle) {
    let report = network.ping_all(PATIENCE);
    assert!(report.is_complete(), "{report}");
}

fn check_forwards(app: &str, versions: Versions, n_buffers: u32) {
    let node = start(&["--app", app]);
    let network = tree(&node, versions, n_buffers);
    all_reach_all(&network);
    assert_eq!(network.counters().errors, 0, "the switches refused something");
}

#[test]
fn the_learning_switch_forwards_in_its_own_process() {
    check_forwards("learning-switch", Versions::Only13, 0);
    check_forwards("learning-switch", Versions::Only13, 256);
    check_forwards("learning-switch", Versions::Only10, 0);
    check_forwards("learning-switch", Versions::Only10, 256);
}

#[test]
fn the_learning_switch_forwards_as_a_trusted_app() {
    check_forwards("learning-switch=trusted", Versions::Only13, 0);
    check_forwards("learning-switch=trusted", Versions::Only10, 256);
}

#[test]
fn the_hub_forwards_in_both_zones() {
    check_forwards("hub", Versions::Only13, 0);
    check_forwards("hub=trusted", Versions::Only10, 256);
}

#[test]
fn an_app_in_a_shared_object_forwards_in_both_zones() {
    let object = bed().example("libshared_hub.so");
    let object = object.to_str().unwrap();
    check_forwards(&format!("{object}=trusted"), Versions::Only13, 0);
    check_forwards(object, Versions::Only13, 0);
}

#[test]
fn two_workers_forward_as_one_does() {
    let node = start(&["--app", "learning-switch", "--workers", "2"]);
    let network = tree(&node, Versions::Both, 0);
    all_reach_all(&network);
    let pid = node.app("learning-switch").status.pid.unwrap();
    assert!(threads(pid).contains(&"worker-1".to_owned()), "{:?}", threads(pid));
}

#[test]
fn an_app_that_fails_in_one_of_its_threads_ends_as_a_whole() {
    let apart = bed().example("apart");
    let node = start(&["--app", apart.to_str().unwrap(), "--workers", "2"]);
    node.wait("it has ended", |node| node.app("apart").status.restarts > 0);
    assert_eq!(node.app("apart").status.last_end.unwrap().reason, "exit code 101 (a panic)");
}

/// The names of all threads of a process and of those that it started.
fn threads(pid: u32) -> Vec<String> {
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let own = tasks.map(|task| read(format!("{}/comm", task.path().display())).trim().to_owned());
    let children = read(format!("/proc/{pid}/task/{pid}/children"));
    let theirs = children.split_whitespace().filter_map(|pid| pid.parse().ok()).flat_map(threads);
    own.chain(theirs).collect()
}

#[test]
fn rules_show_whose_they_are() {
    let node = start(&["--app", "learning-switch"]);
    let network = tree(&node, Versions::Only13, 0);
    all_reach_all(&network);
    for switch in node.flows() {
        assert_eq!(switch.trouble, None);
        let owners: Vec<_> = switch.flows.iter().map(|flow| (flow.priority, flow.owner.as_str())).collect();
        assert!(owners.contains(&(0, "kernel")) && owners.contains(&(100, "learning-switch")), "{owners:?}");
    }
}

#[test]
fn an_app_that_is_killed_comes_back_and_nobody_else_notices() {
    let node = start(&["--app", "learning-switch", "--app", "hub"]);
    let network = tree(&node, Versions::Only13, 0);
    all_reach_all(&network);
    kill(node.app("learning-switch").status.pid.unwrap());
    node.wait("it is back", |node| {
        let app = node.app("learning-switch");
        app.status.restarts == 1 && app.commands > 0
    });
    let reason = node.app("learning-switch").status.last_end.unwrap().reason;
    assert_eq!(reason, "killed by SIGKILL");
    assert_eq!(node.app("hub").status.restarts, 0);
    all_reach_all(&network);
    assert_eq!(network.counters().connections_lost, 0);
}

#[test]
fn a_kernel_that_is_killed_comes_back_and_trusts_no_more() {
    let node = start(&["--app", "learning-switch=trusted"]);
    let network = tree(&node, Versions::Only13, 0);
    all_reach_all(&network);
    let (killed, address) = (node.kernel_pid(), node.address());
    kill(killed);
    node.wait("the app runs in a process zone of another kernel", |node| {
        let apps = node.apps();
        apps.iter().any(|app| app.status.pid.is_some() && app.status.demoted.is_some() && app.commands > 0)
    });
    assert_ne!(node.kernel_pid(), killed);
    // The system chose the port, and chooses another one for the new kernel; the network is pointed at that one.
    assert_ne!(address, node.address());
    let network_again = tree(&node, Versions::Only13, 0);
    all_reach_all(&network_again);
}

#[test]
fn a_monolithic_node_ends_with_its_kernel() {
    let mut node = start(&["--app", "hub", "--monolithic"]);
    assert_eq!(node.app("hub").status.pid, None, "it has no process of its own");
    kill(node.kernel_pid());
    assert_eq!(node.wait_for_end().code(), Some(1));
}

#[test]
fn an_app_whose_commands_mean_nothing_is_refused_and_hurts_nobody() {
    let program = bed().example("unruly").to_str().unwrap().to_owned();
    let node = start(&["--app", &program, "--app", "learning-switch"]);
    let network = tree(&node, Versions::Only13, 0);
    node.wait("something was refused", |node| node.app("unruly").refusals > 0);
    all_reach_all(&network);
    assert_eq!(node.app("unruly").status.restarts, 0);
}

#[test]
fn what_an_app_lacks_is_said_by_the_node_once_for_each_kind_with_the_remedy() {
    let text = "[app.learning-switch.capabilities]\n'packet.in' = true\n'packet.out' = true\n";
    let node = bed().node().config(text).log("info").start();
    node.wait("its subscription is refused", |node| node.apps().iter().any(|app| !app.shortfalls.is_empty()));
    let shortfalls = node.app("learning-switch").shortfalls;
    assert_eq!(shortfalls[0].capability.as_deref(), Some("view.read"), "{shortfalls:?}");
    let line = "WARN node::control: the app learning-switch is refused: the app does not hold the capability view.read; to allow it: \
                \"view.read\" in its manifest, or in [app.learning-switch.capabilities] of burnet.toml";
    node.wait_for_line(line);
    assert_eq!(node.log().matches("is refused: ").count(), 1);
    let granted = "the app learning-switch is granted, by the configuration: packet.in, packet.out";
    assert!(node.log().contains(granted));
}

/// The firewall logs what is refused of it: here its rules, which it was not granted.
#[test]
fn what_an_app_writes_into_the_log_is_in_its_own_log_too() {
    let text = "[app.firewall.capabilities]\n'view.read' = true\n[app.firewall.settings]\nblock = ['ip']\n";
    let node = bed().node().args(["--grant-all"]).config(text).start_ready();
    let state = node.bed().state();
    let network = tree(&node, Versions::Only13, 0);
    node.wait("it is there", |_| {
        let logged = fs::read_to_string(state.join("logs/firewall.log")).unwrap_or_default();
        logged.contains(" 1 error: of:0000000000000001 forwards packets that must be blocked: ")
    });
    drop(network);
}

#[test]
fn a_network_with_a_loop_and_no_spanning_tree_is_warned_about_with_the_reason() {
    let node = bed().node().args(["--grant-all"]).app("hub").log("warn").start_ready();
    let topology: Topology = "ring,3".parse().unwrap();
    let network = Emulation::start(&topology, node.address(), &SwitchOptions::default()).unwrap();
    network.wait_connected(PATIENCE).unwrap();
    // One frame that is flooded is enough: it goes round for ever. Whether pings come back is not the point.
    let _ = network.ping_all(Duration::from_secs(3));
    let said = "The network has a loop and no spanning tree: take a link away";
    node.wait_for_line(said);
    drop(node);
    drop(network);
}

#[test]
fn a_demo_that_goes_well_warns_of_nothing() {
    for network in [["--topo", "tree,2"], ["--rest", "127.0.0.1:0"]] {
        let Output { status, stderr, .. } = bed().run(&[&["demo", "--once"][..], &network].concat());
        let complained = String::from_utf8(stderr).unwrap();
        assert!(status.success(), "{complained}");
        let of_switches = complained.lines().filter(|line| !line.contains("is not enforced"));
        assert_eq!(of_switches.collect::<Vec<_>>(), [""; 0]);
    }
}

#[test]
fn what_an_app_was_refused_is_not_forgotten_when_it_ends() {
    let program = bed().example("unruly").to_str().unwrap().to_owned();
    let node = start(&["--app", &program]);
    node.wait("some commands were refused", |node| node.app("unruly").refusals >= 3);
    kill(node.app("unruly").status.pid.unwrap());
    node.wait("it ended", |node| node.app("unruly").status.last_end.is_some());
    assert!(node.app("unruly").refusals >= 3);
    node.wait("it is back", |node| node.app("unruly").status.restarts == 1);
    assert!(node.app("unruly").refusals >= 3);
}

/// A node with a hub and these limits.
fn limited(limits: &str) -> Node {
    bed().node().args(["--grant-all", "--app", "hub"]).config(&format!("[limits]\n{limits}\n")).start_ready()
}

/// Packet-ins that a switch sends of a host's flood of 500 packets a second in two seconds of the network's own time.
fn flooded(limits: &str, meter: Option<&MeterView>) -> u64 {
    let node = limited(limits);
    let options = SwitchOptions { versions: Versions::Only13, n_buffers: 0, ..SwitchOptions::default() };
    let topology: Topology = "single,2".parse().unwrap();
    let (network, _) = Emulation::start_in_virtual_time(&topology, &[node.address()], &options).unwrap();
    network.wait_connected(PATIENCE).unwrap();
    node.wait("it is known whether the switch meters", |node| meters(node) == [meter.cloned()]);
    // The network's time does not wait for the rule by which packets are sent up.
    let sends_up = if meter.is_some() { "meter:4096,CONTROLLER:65535" } else { "CONTROLLER:65535" };
    node.wait("the switch has the rule that sends packets up", |node| {
        let flows = node.flows();
        flows.iter().flat_map(|switch| &switch.flows).any(|flow| flow.actions == sends_up)
    });
    // Hosts that know each other's address flood at once. Otherwise the flood waits for the answer to an ARP request, and virtual time
    // does not wait for the hub that carries it.
    node.wait("the hosts know each other", |_| network.ping_all(PATIENCE).is_complete());
    let before = network.counters().packet_ins;
    let flood = FlowSpec { payload_bytes: 125, ..FlowSpec::udp("h1", "h2", 500_000) };
    let flow = network.start_flow(flood).unwrap();
    let began_at = network.flow_report(flow).unwrap().began_at;
    assert!(network.pass_to(began_at + Duration::from_secs(2)));
    if meter.is_some() {
        node.wait("the node hears what its meter dropped", |node| {
            matches!(meters(node)[..], [Some(MeterView::On { dropped: 500.., .. })])
        });
    }
    network.counters().packet_ins - before
}

#[test]
fn a_switch_with_meters_sends_no_more_of_a_flood_up_than_its_meter_lets_through() {
    let unmetered = flooded("packet_ins_per_switch_per_s = 25\npacket_in_meter_per_s = false", None);
    assert!(unmetered > 900, "{unmetered}");
    let on = MeterView::On { meter_id: 4096, per_s: 50, dropped: 0 };
    let metered = flooded("packet_in_meter_per_s = 50", Some(&on));
    // A second's burst, less what the pings took of it, and two seconds.
    assert!((130..=151).contains(&metered), "{metered}");
}

#[test]
fn the_punting_rule_shows_its_meter_and_a_1_0_switch_has_none() {
    let node = limited("packet_in_meter_per_s = 1000");
    let network = tree(&node, Versions::Only13, 0);
    let on = Some(MeterView::On { meter_id: 4096, per_s: 1_000, dropped: 0 });
    node.wait("all three meter", |node| meters(node) == [on.clone(), on.clone(), on.clone()]);
    for switch in node.flows() {
        let actions: Vec<_> = switch.flows.iter().map(|flow| flow.actions.as_str()).collect();
        assert_eq!(actions, ["meter:4096,CONTROLLER:65535"]);
    }
    all_reach_all(&network);
    assert_eq!(network.counters().errors, 0);
    drop(network);
    node.wait("they are gone", |node| meters(node).is_empty());
    let network = tree(&node, Versions::Only10, 0);
    all_reach_all(&network);
    let without = |meter: &Option<MeterView>| matches!(meter, Some(MeterView::Without { reason }) if reason.contains("OFPMP_METER_FEATURES"));
    node.wait("the reason is told", |node| meters(node).len() == 3 && meters(node).iter().all(without));
}

/// The exit code and what was said on standard error.
fn refused(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = bed().run(&["run", "--listen", &address]);
    let (code, said) = refused(&output);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(&format!("port {} is in use", taken.local_addr().unwrap().port())), "{said}");
}

#[test]
fn a_bad_key_in_the_configuration_is_named() {
    let bed = bed();
    let config = bed.file("burnet.toml", "[southbound]\nlissen = [\":6653\"]\n");
    let (code, said) = refused(&bed.run(&["run", "--config", config.to_str().unwrap()]));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("line 2") && said.contains("lissen"), "{said}");
}

#[test]
fn a_missing_certificate_is_named() {
    let arguments =
        ["run", "--tls-cert", "/nowhere/c.pem", "--tls-key", "/nowhere/k.pem", "--tls-ca", "/nowhere/a.pem"];
    let (code, said) = refused(&bed().run(&arguments));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("/nowhere/c.pem"), "{said}");
}

#[test]
fn a_second_node_at_the_same_socket_is_refused_and_the_first_lives_on() {
    let node = start(&["--app", "hub"]);
    let (code, said) = refused(&node.bed().run(&["run", "--listen", "127.0.0.1:0"]));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("another node already listens on"), "{said}");
    assert_eq!(node.app("hub").status.restarts, 0);
}

#[test]
fn a_node_that_is_terminated_ends_with_all_its_processes() {
    let mut node = start(&["--app", "learning-switch"]);
    let processes = [node.kernel_pid(), node.app("learning-switch").status.pid.unwrap()];
    node.signal(Signal::TERM);
    assert_eq!(node.wait_for_end().code(), Some(0));
    for pid in processes {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} is still there");
    }
    assert!(!node.bed().socket().exists(), "the socket is still there");
}

#[test]
fn a_node_that_is_not_there_is_said_to_be() {
    let output = bed().run(&["switches", "--socket", "/nowhere/n.sock"]);
    let (code, said) = refused(&output);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("no node answers at /nowhere/n.sock"), "{said}");
}

/// Memory that a process has in use, in bytes.
fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or_default() << 10
}

/// Asks again and again and never reads, until the node closes the connection: whether it did, and the most memory that a process had meanwhile.
fn ask_without_reading(socket: &Path, watched: u32) -> (bool, u64) {
    let mut asker = std::os::unix::net::UnixStream::connect(socket).unwrap();
    asker.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    let (questions, began, mut most) = (b"\"usage\"\n".repeat(8192), Instant::now(), 0);
    while began.elapsed() < PATIENCE {
        match asker.write(&questions).map_err(|error| error.kind()) {
            Ok(_) | Err(ErrorKind::WouldBlock) => {}
            Err(_) => return (true, most),
        }
        most = most.max(resident_bytes(watched));
    }
    (false, most)
}

#[test]
fn an_operator_who_asks_and_never_reads_is_parted_with_and_costs_the_node_nothing() {
    const MAY_GROW_BYTES: u64 = 32 << 20;
    let node = start(&["--app", "hub"]);
    let kernel = node.kernel_pid();
    let before = resident_bytes(kernel);
    let (parted, most) = ask_without_reading(&node.bed().socket(), kernel);
    assert!(parted, "the connection is still there");
    assert_eq!(node.kernel_pid(), kernel, "the kernel process was started anew");
    assert!(most < before + MAY_GROW_BYTES, "{before} bytes before, and {most} at the most");
}

/// A shared object whose constructor takes longer than the node waits for a sign of life.
fn slow_object(bed: &Bed) -> PathBuf {
    let source = bed.file(
        "slow.c",
        "#include <unistd.h>\n__attribute__((constructor)) static void slow(void) { sleep(5); }\n",
    );
    let object = bed.path("slow.so");
    let status =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&object).arg(&source).status().unwrap();
    assert!(status.success(), "cc makes what rustc links with it");
    object
}

#[test]
fn a_trusted_app_that_loads_slowly_does_not_have_the_kernel_taken_for_hanging() {
    let bed = bed();
    let object = slow_object(&bed);
    let text = format!(
        "[app.hub]\n[app.slow]\npath = '{}'\nzone = 'trusted'\n[app.slow.capabilities]\n'view.read' = true\n",
        object.display()
    );
    let node = bed.node().config(&text).start();
    node.wait("the node answers", |node| !node.apps().is_empty());
    let kernel = node.kernel_pid();
    // It has no table, which is found out when it is loaded.
    node.wait("the app is out of the kernel", |node| {
        node.apps().iter().any(|app| app.status.app == "slow" && app.status.demoted.is_some())
    });
    assert_eq!(node.kernel_pid(), kernel, "the kernel process was started anew");
    assert_eq!(node.app("hub").status.restarts, 0);
}
