//! Open vSwitch in a sandbox: its database and its user-space datapath.
//!
//! In: arguments for `ovs-vsctl` and `ovs-ofctl`. Out: what they print. Linux's own datapath is never used. So no
//! kernel module is needed, and the machine's own Open vSwitch stays separate.

use crate::sandbox::Sandbox;
use crate::{Result, Version};
use std::time::Duration;

/// Time limit of a tool. Each answers at once unless its daemon has ended.
const LIMIT: Duration = Duration::from_secs(30);

const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
const SOCKET: &str = "/run/openvswitch/db.sock";

/// A running Open vSwitch. It ends with its sandbox.
pub struct OpenVSwitch<'s> {
    sandbox: &'s Sandbox,
}

impl<'s> OpenVSwitch<'s> {
    /// Starts database and switch. Both listen when this returns, because `--detach` waits for that.
    pub fn start(sandbox: &'s Sandbox) -> Result<OpenVSwitch<'s>> {
        Self::start_with(sandbox, &[])
    }

    /// The same with more arguments for `ovs-vswitchd`.
    pub fn start_with(sandbox: &'s Sandbox, words: &[&str]) -> Result<OpenVSwitch<'s>> {
        let database = sandbox.folder().join("conf.db").display().to_string();
        let log = |name: &str| format!("--log-file={}", sandbox.folder().join(name).display());
        sandbox.must(LIMIT, "ovsdb-tool", &["create", &database, SCHEMA])?;
        let remote = format!("--remote=punix:{SOCKET}");
        // The TLS settings are read from the database, so that `ovs-vsctl set-ssl` affects the switch.
        let of_database =
            [database.as_str(), &remote, "--detach", "--no-chdir", "--pidfile", &log("ovsdb-server.log")];
        sandbox.must(LIMIT, "ovsdb-server", &of_database)?;
        let switch = OpenVSwitch { sandbox };
        switch.vsctl(&["--no-wait", "init"])?;
        let of_switch = ["--detach", "--no-chdir", "--pidfile", &log("ovs-vswitchd.log")];
        sandbox.must(LIMIT, "ovs-vswitchd", &[words, &of_switch].concat())?;
        Ok(switch)
    }

    /// Runs `ovs-vsctl`.
    pub fn vsctl(&self, words: &[&str]) -> Result<String> {
        self.sandbox.must(LIMIT, "ovs-vsctl", words)
    }

    /// Runs `ovs-ofctl` with this OpenFlow version.
    pub fn ofctl(&self, version: Version, words: &[&str]) -> Result<String> {
        self.sandbox.must(LIMIT, "ovs-ofctl", &[&["-O", version.in_ovs()], words].concat())
    }

    /// The names of its bridges.
    pub fn bridges(&self) -> Result<Vec<String>> {
        Ok(self.vsctl(&["list-br"])?.lines().map(str::to_owned).collect())
    }

    /// Adds a bridge without ports. That is enough for a connection to a controller.
    pub fn add_bridge(&self, name: &str) -> Result<()> {
        // In-band control would look for a route to the controller through the bridge, but none exists.
        let settings = ["datapath_type=netdev", "other_config:disable-in-band=true"];
        self.vsctl(&[&["add-br", name, "--", "set", "bridge", name], &settings[..]].concat()).map(drop)
    }

    /// Gives the switch its key, its certificate and the authority that it trusts.
    pub fn set_tls(&self, [key, certificate, authority]: &[String; 3]) -> Result<()> {
        self.vsctl(&["set-ssl", key, certificate, authority]).map(drop)
    }

    /// Points every bridge at `controller`, such as `tcp:127.0.0.1:6653`.
    pub fn set_controller(&self, controller: &str) -> Result<()> {
        for bridge in self.bridges()? {
            self.vsctl(&["set-controller", &bridge, controller])?;
        }
        Ok(())
    }

    /// Waits until every bridge reports that it is connected to its controller.
    pub fn wait_connected(&self) -> Result<()> {
        let controllers = self.vsctl(&["--bare", "--columns=_uuid", "list", "controller"])?;
        for controller in controllers.split_whitespace() {
            self.vsctl(&["--timeout=25", "wait-until", "controller", controller, "is_connected=true"])?;
        }
        Ok(())
    }
}
