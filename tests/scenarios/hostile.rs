//! A firewall, a learning switch and a hostile app on Mininet's switches. What the firewall blocks stays blocked, and
//! all other traffic passes.

use system_tests::mininet::{Controller, Mininet, Pingall};
use system_tests::node::{Node, binary};
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::sandbox::Sandbox;
use system_tests::{Result, Version, scenario};

const PORT: u16 = 6653;
const LISTEN: &str = "127.0.0.1:6653";

/// Of the pings of four hosts, those between the first and the last are lost, in both directions.
const SOME: Pingall = Pingall { sent: 12, received: 10 };

/// Where the hostile app runs.
#[derive(Clone, Copy)]
enum Zone {
    Process,
    Trusted,
}

/// The node's configuration, with the hostile app's code visible in its sandbox.
fn configuration(sandbox: &Sandbox, zone: Zone, attack: &str) -> Result<String> {
    let (built, copied, place) = match zone {
        Zone::Process => ("misbehaving", "hostile", ""),
        Zone::Trusted => ("libshared_misbehaving.so", "libhostile.so", "zone = 'trusted'"),
    };
    let built = binary()?.with_file_name("examples").join(built);
    let path = sandbox.folder().join(copied);
    std::fs::copy(&built, &path).map_err(|error| {
        format!("{} ({error}): build it with cargo build --package burnet --examples", built.display())
    })?;
    let path = path.display();
    Ok(format!(
        "[app.firewall.settings]\nblock = ['ip,nw_src=10.0.0.1,nw_dst=10.0.0.4']\n[app.learning-switch]\n[app.misbehaving]\npath = '{path}'\n{place}\n\
         [app.misbehaving.capabilities]\n'packet.in' = true\n'packet.out' = true\n'rule.write' = true\n'stats.read' = true\n\
         'view.read' = true\n[app.misbehaving.settings]\nattack = '{attack}'\nagain = true\n"
    ))
}

/// Waits until the hostile app was refused a few more times.
fn wait_for_refusals(node: &mut Node<'_>) -> Result<()> {
    let refusals =
        |node: &Node<'_>| Ok::<_, String>(node.app("misbehaving")?["refusals"].as_u64().unwrap_or(0));
    let before = refusals(node)?;
    node.wait_until("the hostile app is refused", |node| Ok(refusals(node)? > before + 3))
}

fn check(name: &str, zone: Zone, version: Version) {
    for attack in ["replace-others", "delete-others"] {
        scenario(&format!("hostile-{name}-{attack}"), |sandbox| {
            let configured = sandbox.folder().join("burnet.toml");
            let text = configuration(sandbox, zone, attack)?;
            std::fs::write(&configured, text).map_err(|error| format!("no configuration: {error}"))?;
            let _switch = OpenVSwitch::start(sandbox)?;
            let words = ["--listen", LISTEN, "--config", &configured.display().to_string()];
            let mut node = Node::start(sandbox, &words)?;
            let mut mininet = Mininet::start(sandbox, "tree,2", version, Controller::Tcp(PORT))?;
            node.wait_for_switches(3)?;
            wait_for_refusals(&mut node)?;
            // Now the learning switch has rules that the hostile app can attack.
            mininet.pingall_within(1)?;
            wait_for_refusals(&mut node)?;
            let found = mininet.pingall_within(2)?;
            if found != SOME {
                return Err(format!("{found:?} instead of {SOME:?}"));
            }
            for app in ["firewall", "learning-switch"] {
                let status = &node.app(app)?["status"];
                if status["state"] != "running" || status["restarts"] != 0 {
                    return Err(format!("{app} did not go on: {status}"));
                }
            }
            mininet.exit()?;
            node.stop()
        });
    }
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn in_a_process_zone_by_1_0() {
    check("process-1.0", Zone::Process, Version::V1_0);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn in_a_process_zone_by_1_3() {
    check("process-1.3", Zone::Process, Version::V1_3);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn in_a_trusted_zone_by_1_0() {
    check("trusted-1.0", Zone::Trusted, Version::V1_0);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn in_a_trusted_zone_by_1_3() {
    check("trusted-1.3", Zone::Trusted, Version::V1_3);
}
