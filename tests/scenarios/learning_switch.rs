//! Burnet's main task: a learning switch controls Mininet's switches, and every host reaches every other host.

use system_tests::certificates::Certificates;
use system_tests::mininet::{Controller, Mininet};
use system_tests::node::Node;
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::{Version, scenario};

const PORT: u16 = 6653;
const LISTEN: &str = "127.0.0.1:6653";

/// `tree,2` has three switches and four hosts, `linear,8` eight of each.
const TREE: (&str, usize, u32) = ("tree,2", 3, 12);
const LINEAR: (&str, usize, u32) = ("linear,8", 8, 56);

/// The ports of a switch of `tree,2`, as matches.
const PORTS: [&str; 3] = ["in_port=1", "in_port=2", "in_port=3"];

/// With `app` as an operator writes it, all pings of the topology are answered, and the node exits normally.
fn check(name: &str, app: &str, version: Version, (topology, switches, pings): (&str, usize, u32)) {
    scenario(name, |sandbox| {
        let _switch = OpenVSwitch::start(sandbox)?;
        let mut node = Node::start(sandbox, &["--app", app, "--listen", LISTEN])?;
        let mut mininet = Mininet::start(sandbox, topology, version, Controller::Tcp(PORT))?;
        node.wait_for_switches(switches)?;
        mininet.all_reach_all(pings)?;
        mininet.exit()?;
        node.stop()
    });
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn process_zone_tree_2_by_1_0() {
    check("process-tree-1.0", "learning-switch", Version::V1_0, TREE);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn process_zone_tree_2_by_1_3() {
    check("process-tree-1.3", "learning-switch", Version::V1_3, TREE);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn process_zone_linear_8_by_1_0() {
    check("process-linear-1.0", "learning-switch", Version::V1_0, LINEAR);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn process_zone_linear_8_by_1_3() {
    check("process-linear-1.3", "learning-switch", Version::V1_3, LINEAR);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn trusted_zone_tree_2_by_1_0() {
    check("trusted-tree-1.0", "learning-switch=trusted", Version::V1_0, TREE);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn trusted_zone_tree_2_by_1_3() {
    check("trusted-tree-1.3", "learning-switch=trusted", Version::V1_3, TREE);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn trusted_zone_linear_8_by_1_0() {
    check("trusted-linear-1.0", "learning-switch=trusted", Version::V1_0, LINEAR);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn trusted_zone_linear_8_by_1_3() {
    check("trusted-linear-1.3", "learning-switch=trusted", Version::V1_3, LINEAR);
}

/// With a rule for each flow, all pings are answered, and the rules in the switches are about ICMP.
fn check_flows(name: &str, version: Version) {
    scenario(name, |sandbox| {
        let switch = OpenVSwitch::start(sandbox)?;
        let config = sandbox.folder().join("burnet.toml");
        let text = "[app.learning-switch.settings]\nmatch = \"flow\"\n";
        std::fs::write(&config, text)
            .map_err(|error| format!("cannot write {}: {error}", config.display()))?;
        let mut node =
            Node::start(sandbox, &["--config", &config.display().to_string(), "--listen", LISTEN])?;
        let mut mininet = Mininet::start(sandbox, TREE.0, version, Controller::Tcp(PORT))?;
        node.wait_for_switches(TREE.1)?;
        mininet.all_reach_all(TREE.2)?;
        for bridge in switch.bridges()? {
            let rules = switch.ofctl(version, &["dump-flows", &bridge])?;
            let of_pings =
                rules.lines().filter(|rule| rule.contains("icmp") && rule.contains("priority=100"));
            let count = of_pings.filter(|rule| rule.contains("hard_timeout=30")).count();
            if count == 0 {
                return Err(format!("{bridge} has no rule for a ping: {rules}"));
            }
        }
        mininet.exit()?;
        node.stop()
    });
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn a_rule_for_each_flow_by_1_0() {
    check_flows("flows-1.0", Version::V1_0);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn a_rule_for_each_flow_by_1_3() {
    check_flows("flows-1.3", Version::V1_3);
}

/// After the app's process is killed, the network works as before. Before the restart it works because of the rules
/// in the switches. After the restart the app learns again.
fn check_killed(name: &str, version: Version) {
    scenario(name, |sandbox| {
        let switch = OpenVSwitch::start(sandbox)?;
        let mut node = Node::start(sandbox, &["--app", "learning-switch", "--listen", LISTEN])?;
        let mut mininet = Mininet::start(sandbox, TREE.0, version, Controller::Tcp(PORT))?;
        mininet.all_reach_all(TREE.2)?;
        node.kill_app("learning-switch")?;
        // The second round must depend only on the decisions of the new process. The app's rules each name a port.
        // The table-miss rule names none.
        for bridge in switch.bridges()? {
            for port in PORTS {
                switch.ofctl(version, &["del-flows", &bridge, port])?;
            }
        }
        mininet.all_reach_all(TREE.2)?;
        node.wait_for_switches(TREE.1)?;
        mininet.exit()?;
        node.stop()
    });
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn an_app_killed_in_the_middle_is_started_again_and_pings_come_back_by_1_0() {
    check_killed("killed-1.0", Version::V1_0);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn an_app_killed_in_the_middle_is_started_again_and_pings_come_back_by_1_3() {
    check_killed("killed-1.3", Version::V1_3);
}

/// The options of `burnet run` for its key, its certificate and the authority that it trusts.
fn tls_options(certificates: &Certificates) -> Vec<String> {
    let options = ["--tls-key", "--tls-cert", "--tls-ca"].map(str::to_owned);
    options.into_iter().zip(certificates.of_controller()).flat_map(|(option, file)| [option, file]).collect()
}

/// Switches and node show each other certificates. The network works as without TLS.
fn check_tls(name: &str, app: &str, version: Version) {
    scenario(name, |sandbox| {
        let switch = OpenVSwitch::start(sandbox)?;
        let certificates = Certificates::make(sandbox)?;
        let tls = tls_options(&certificates);
        let words = ["--app", app, "--listen", LISTEN].into_iter().chain(tls.iter().map(String::as_str));
        let mut node = Node::start(sandbox, &words.collect::<Vec<_>>())?;
        let mut mininet = Mininet::start(sandbox, TREE.0, version, Controller::None)?;
        switch.set_tls(&certificates.of_switch())?;
        switch.set_controller(&format!("ssl:{LISTEN}"))?;
        switch.wait_connected()?;
        node.wait_for_switches(TREE.1)?;
        mininet.all_reach_all(TREE.2)?;
        mininet.exit()?;
        node.stop()
    });
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn process_zone_tree_2_over_tls_by_1_0() {
    check_tls("tls-process-1.0", "learning-switch", Version::V1_0);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn trusted_zone_tree_2_over_tls_by_1_3() {
    check_tls("tls-trusted-1.3", "learning-switch=trusted", Version::V1_3);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn a_certificate_speaks_for_its_own_switch_alone_also_after_the_node_was_started_anew() {
    scenario("tls-bound", |sandbox| {
        let switch = OpenVSwitch::start(sandbox)?;
        let ours = Certificates::make(sandbox)?;
        let tls = tls_options(&ours);
        let words: Vec<&str> =
            ["--app", "hub", "--listen", LISTEN].into_iter().chain(tls.iter().map(String::as_str)).collect();
        let mut node = Node::start(sandbox, &words)?;
        switch.add_bridge("s1")?;
        let be = |id: &str| {
            let id = format!("other-config:datapath-id={id}");
            switch.vsctl(&["set", "bridge", "s1", &id]).map(drop)
        };
        let connect_with = |files: &[String; 3]| {
            switch.vsctl(&["del-controller", "s1"])?;
            switch.set_tls(files)?;
            switch.set_controller(&format!("ssl:{LISTEN}"))
        };
        be("00000000000000a1")?;
        connect_with(&ours.of_switch())?;
        node.wait_for_switches(1)?;
        let pins = node.ask(&["tls", "pins"])?;
        assert_eq!((&pins[0]["datapath"], &pins[0]["up"]), (&"of:00000000000000a1".into(), &true.into()));
        // A different certificate of the same authority.
        let other = ours.sign(sandbox, "other", "DNS:other.example")?;
        connect_with(&other)?;
        node.wait_for_log("of:00000000000000a1 is pinned to the certificate")?;
        assert_eq!(node.ask(&["switches"])?, serde_json::json!([]));
        node.stop()?;
        // Without a certificate, from the machine that may use plain OpenFlow.
        let mut node = Node::start(sandbox, &words)?;
        assert_eq!(node.ask(&["tls", "pins"])?[0]["certificate"], pins[0]["certificate"]);
        switch.set_controller(&format!("tcp:{LISTEN}"))?;
        node.wait_for_log("was claimed without TLS")?;
        connect_with(&other)?;
        node.ask(&["tls", "forget", "of:00000000000000a1"])?;
        node.wait_for_switches(1)?;
        // A certificate that names its switch.
        let named = ours.sign(sandbox, "named", "URI:of:00000000000000b2")?;
        be("00000000000000b3")?;
        connect_with(&named)?;
        node.wait_for_log("names of:00000000000000b2, and of:00000000000000b3 was claimed")?;
        be("00000000000000b2")?;
        node.wait_for_switches(1)?;
        node.wait_for_log("by the name in its certificate")?;
        node.stop()
    });
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn a_switch_that_another_authority_vouches_for_is_not_let_in() {
    scenario("tls-stranger", |sandbox| {
        let switch = OpenVSwitch::start(sandbox)?;
        let (ours, others) = (Certificates::make(sandbox)?, Certificates::make_as(sandbox, "others")?);
        let tls = tls_options(&ours);
        let words = ["--app", "hub", "--listen", LISTEN].into_iter().chain(tls.iter().map(String::as_str));
        let mut node = Node::start(sandbox, &words.collect::<Vec<_>>())?;
        switch.add_bridge("s1")?;
        let [key, certificate, _] = others.of_switch();
        let [_, _, authority] = ours.of_switch();
        switch.set_tls(&[key, certificate, authority])?;
        switch.set_controller(&format!("ssl:{LISTEN}"))?;
        node.wait_for_log("TLS failed")?;
        assert_eq!(node.ask(&["switches"])?, serde_json::json!([]));
        switch.set_tls(&ours.of_switch())?;
        node.wait_for_switches(1)?;
        node.stop()
    });
}
