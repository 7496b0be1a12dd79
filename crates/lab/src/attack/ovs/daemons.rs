//! The processes of an Open vSwitch: started, configured, ended.
//!
//! In: a folder that becomes theirs. Out: switches that connect to `FOLDER/sN.controller`. Nothing outside of the folder is written.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use openflow::Version;

use crate::attack::stop;

/// How many switches and hosts a network has.
pub const SWITCHES: usize = 3;
pub(super) const HOSTS: usize = 4;

/// How long a process may take to listen. Nothing is decided by it but that it never does.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// What is run. `setpriv` has Linux end a process when its parent ends, however that happens; `unshare` gives it a network of its own.
const TOOLS: [&str; 6] = ["ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-vswitchd", "setpriv", "unshare"];

/// Where the tools are, some of which are root's.
const FOLDERS: [&str; 6] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"];

/// The form of the database.
const SCHEMAS: [&str; 2] =
    ["/usr/share/openvswitch/vswitch.ovsschema", "/usr/local/share/openvswitch/vswitch.ovsschema"];

/// What is needed and not there.
pub(super) fn is_missing() -> Option<String> {
    let missing: Vec<&str> = TOOLS.into_iter().filter(|tool| find(tool).is_none()).collect();
    if !missing.is_empty() {
        return Some(format!("{} not found: install Open vSwitch and util-linux", missing.join(", ")));
    }
    if !SCHEMAS.iter().any(|schema| Path::new(schema).is_file()) {
        return Some("the schema of Open vSwitch's database is not installed".to_owned());
    }
    let is_root = rustix::process::geteuid().is_root();
    (!is_root).then(|| "only root can make a network namespace: run it with sudo".to_owned())
}

fn find(tool: &str) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join(tool)).find(|path| path.is_file())
}

/// The database and the switch.
pub(super) struct Daemons {
    folder: PathBuf,
    /// The switch first: it ends first.
    children: Vec<Child>,
}

impl Daemons {
    /// Starts both; both listen when this returns.
    pub(super) fn start(folder: PathBuf) -> io::Result<Daemons> {
        fs::create_dir_all(&folder)?;
        let mut daemons = Daemons { folder, children: Vec::new() };
        let schema = SCHEMAS.into_iter().find(|schema| Path::new(schema).is_file()).unwrap_or(SCHEMAS[0]);
        let database = daemons.path("conf.db");
        daemons.done("ovsdb-tool", &["create".as_ref(), database.as_os_str(), schema.as_ref()])?;
        let remote = format!("--remote=punix:{}", daemons.path("db.sock").display());
        let unixctl = |name: &str| format!("--unixctl={}", daemons.path(name).display());
        let (of_database, of_switch) = (unixctl("db.ctl"), unixctl("sw.ctl"));
        let server = daemons.command("ovsdb-server", &[]);
        daemons.spawn(server, &[database.as_os_str(), remote.as_ref(), of_database.as_ref()], "db.sock")?;
        daemons.vsctl(&["--no-wait", "init"])?;
        let vswitchd = daemons.command("ovs-vswitchd", &["unshare", "--net", "--"]);
        let database = daemons.database();
        let words: [&OsStr; 3] = [database.as_ref(), "--enable-dummy".as_ref(), of_switch.as_ref()];
        daemons.spawn(vswitchd, &words, "sw.ctl")?;
        Ok(daemons)
    }

    /// Where sockets and logs are.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the switches and their ports: s1 above s2 and s3, which have two hosts each.
    pub(super) fn configure(&self, version: Version) -> io::Result<()> {
        let protocol = if version == Version::V1_0 { "OpenFlow10" } else { "OpenFlow13" };
        let mut words: Vec<String> = vec!["--timeout=60".into()];
        let mut add = |more: &[&str]| {
            words.push("--".to_owned());
            words.extend(more.iter().map(|word| (*word).to_owned()));
        };
        for switch in 1..=SWITCHES {
            let (name, id) = (format!("s{switch}"), format!("other-config:datapath-id={switch:016x}"));
            add(&["add-br", &name]);
            let protocols = format!("protocols={protocol}");
            let settings = ["datapath_type=dummy", "fail_mode=secure", "other-config:disable-in-band=true"];
            add(&[&["set", "bridge", &name, &id, &protocols], &settings[..]].concat());
        }
        for (port, lower) in [(1, "s2"), (2, "s3")] {
            let (down, up) = (format!("s1-{lower}"), format!("{lower}-s1"));
            add(&["add-port", "s1", &down]);
            add(&[
                "set",
                "interface",
                &down,
                "type=patch",
                &format!("options:peer={up}"),
                &format!("ofport_request={port}"),
            ]);
            add(&["add-port", lower, &up]);
            add(&[
                "set",
                "interface",
                &up,
                "type=patch",
                &format!("options:peer={down}"),
                "ofport_request=3",
            ]);
        }
        for host in 1..=HOSTS {
            let (name, lower) = (format!("h{host}"), format!("s{}", 2 + (host - 1) / 2));
            let stream = format!("options:pstream=punix:{}", host_socket(&self.folder, host).display());
            let port = format!("ofport_request={}", 1 + (host - 1) % 2);
            add(&["add-port", &lower, &name]);
            add(&["set", "interface", &name, "type=dummy", &stream, &port]);
        }
        for switch in 1..=SWITCHES {
            let target = format!("unix:{}", controller_socket(&self.folder, switch).display());
            add(&["set-controller", &format!("s{switch}"), &target]);
            // A session that is only slow is none that is lost.
            add(&["set", "controller", &format!("s{switch}"), "inactivity_probe=60000", "max_backoff=1000"]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.vsctl(&words)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn database(&self) -> String {
        format!("unix:{}", self.path("db.sock").display())
    }

    fn vsctl(&self, words: &[&str]) -> io::Result<()> {
        let database = format!("--db={}", self.database());
        let all = [&[database.as_str()], words].concat();
        let all: Vec<&OsStr> = all.into_iter().map(OsStr::new).collect();
        self.done("ovs-vsctl", &all)
    }

    /// A program of Open vSwitch's, which knows no other folder than this one.
    fn command(&self, program: &str, within: &[&str]) -> Command {
        let mut command = Command::new(find("setpriv").unwrap_or_default());
        command.args(["--pdeathsig", "KILL", "--"]).args(within).arg(find(program).unwrap_or_default());
        for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"] {
            command.env(variable, &self.folder);
        }
        command.stdin(Stdio::null());
        command
    }

    /// Runs a program to its end.
    fn done(&self, program: &str, words: &[&OsStr]) -> io::Result<()> {
        let output = self.command(program, &[]).args(words).output()?;
        if output.status.success() {
            return Ok(());
        }
        Err(io::Error::other(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())))
    }

    /// Starts a program that stays, and waits until it has made this socket.
    fn spawn(&mut self, mut command: Command, words: &[&OsStr], socket: &str) -> io::Result<()> {
        let log = File::create(self.path(&format!("{socket}.log")))?;
        let child = command.args(words).stdout(Stdio::null()).stderr(log).spawn()?;
        self.children.insert(0, child);
        let began = Instant::now();
        while !self.path(socket).exists() {
            if let Ok(Some(status)) = self.children[0].try_wait() {
                let said = fs::read_to_string(self.path(&format!("{socket}.log"))).unwrap_or_default();
                return Err(io::Error::other(format!("it ended with {status}: {}", said.trim())));
            }
            if began.elapsed() > PATIENCE || stop::came() {
                return Err(io::Error::other(format!("{socket} was not there in time")));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Where a switch connects to its controller. Open vSwitch takes no other name.
pub(super) fn controller_socket(folder: &Path, switch: usize) -> PathBuf {
    folder.join(format!("s{switch}.controller"))
}

/// Where a host's port listens.
pub(super) fn host_socket(folder: &Path, host: usize) -> PathBuf {
    folder.join(format!("h{host}.port"))
}
