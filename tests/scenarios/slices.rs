//! Slices on the real Open vSwitch: two tenants, each with Open vSwitch's own test controller, on one Mininet.

use system_tests::certificates::Certificates;
use system_tests::mininet::{Controller, Mininet, Pingall};
use system_tests::node::Node;
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::sandbox::Sandbox;
use system_tests::{Result, Version, scenario, stand_in};

const PORT: u16 = 6653;
const LISTEN: &str = "127.0.0.1:6653";
const BLUE: u16 = 6701;
const RED: u16 = 6702;

/// `linear,2,2`: at each of two switches, port 1 leads to the blue host, port 2 to the red one, and port 3 to the other switch.
fn config(sandbox: &Sandbox) -> Result<String> {
    let slice = |name: &str, tag: u16, port: u16, controller: u16| {
        format!(
            "[slice.{name}]\ncontrollers = ['127.0.0.1:{controller}']\nisolation = 'vlan'\ntag = {tag}\n\
             own_ports = ['s1:{port}', 's2:{port}']\nlinks = ['s1:3-s2:3']\n"
        )
    };
    let file = sandbox.folder().join("slices.toml");
    let text = slice("blue", 10, 1, BLUE) + &slice("red", 20, 2, RED);
    std::fs::write(&file, text).map_err(|error| format!("no configuration: {error}"))?;
    Ok(file.display().to_string())
}

/// The hosts of each slice reach each other, and no host of the other slice. One slice's process ends and comes back.
#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn two_test_controllers_share_switches() {
    scenario("slices", |sandbox| {
        let _switch = OpenVSwitch::start(sandbox)?;
        stand_in::start_version(sandbox, BLUE, Version::V1_3)?;
        stand_in::start_version(sandbox, RED, Version::V1_0)?;
        let mut node = Node::start(sandbox, &["--config", &config(sandbox)?, "--listen", LISTEN])?;
        let mut mininet = Mininet::start(sandbox, "linear,2,2", Version::V1_3, Controller::Tcp(PORT))?;
        node.wait_for_switches(2)?;
        wait_for_tenants(&mut node)?;
        // Of twelve pings, four are within a slice.
        let within = Pingall { sent: 12, received: 4 };
        assert_eq!(mininet.pingall_within(2)?, within);
        node.kill_app("slice.blue")?;
        wait_for_tenants(&mut node)?;
        assert_eq!(mininet.pingall_within(2)?, within);
        mininet.exit()?;
        node.stop()
    });
}

/// The blue tenant's controller has TLS with the authority that the slices trust, and the red one's with another.
#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn a_tenant_speaks_tls_with_a_controller_of_its_authority_and_with_no_other() {
    scenario("slices-tls", |sandbox| {
        let _switch = OpenVSwitch::start(sandbox)?;
        let (ours, strangers) = (Certificates::make(sandbox)?, Certificates::make_as(sandbox, "strangers")?);
        stand_in::start_tls(sandbox, BLUE, &ours)?;
        stand_in::start_tls(sandbox, RED, &strangers)?;
        let [key, certificate, authority] = ours.of_switch();
        let tls = |slice: &str| {
            format!(
                "[slice.{slice}.tls]\nprivate_key = '{key}'\ncertificate = '{certificate}'\nca_certificate = '{authority}'\n"
            )
        };
        let file = config(sandbox)?;
        let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
        std::fs::write(&file, text + &tls("blue") + &tls("red")).map_err(|error| error.to_string())?;
        let mut node = Node::start(sandbox, &["--config", &file, "--listen", LISTEN])?;
        let mut mininet = Mininet::start(sandbox, "linear,2,2", Version::V1_3, Controller::Tcp(PORT))?;
        node.wait_for_switches(2)?;
        wait_for_tenant(&mut node, "blue", serde_json::Value::is_string)?;
        // Of twelve pings, two are within the slice that has a controller.
        assert_eq!(mininet.pingall_within(2)?, Pingall { sent: 12, received: 2 });
        // Both authorities have the same name, so the signature decides.
        node.wait_for_log("TLS: invalid peer certificate")?;
        wait_for_tenant(&mut node, "red", serde_json::Value::is_null)?;
        mininet.exit()?;
        node.stop()
    });
}

/// Waits until each slice has its controller at both switches.
fn wait_for_tenants(node: &mut Node<'_>) -> Result<()> {
    wait_for_tenant(node, "blue", |version| version == "1.3")?;
    wait_for_tenant(node, "red", |version| version == "1.0")
}

/// Waits until a slice speaks such a version with its controller at both switches.
fn wait_for_tenant(
    node: &mut Node<'_>,
    slice: &str,
    is_right: impl Fn(&serde_json::Value) -> bool,
) -> Result<()> {
    node.wait_until("the tenant is connected as it should be", |node| {
        let state = node.ask(&["slice", "show", slice])?;
        let switches = state["switches"].as_array().cloned().unwrap_or_default();
        let speaks = |switch: &serde_json::Value| is_right(&switch["controllers"][0]["version"]);
        Ok(switches.len() == 2 && switches.iter().all(speaks))
    })
}
