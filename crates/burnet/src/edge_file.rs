//! The file of `burnet edge`: which server the agent is on, which slices it has VNICs of, and with whom it speaks.
//!
//! ```text
//!   edge.toml, slices.toml, keys ──> EdgeFile::config ──> edge::Config ──> edge::run
//! ```
//!
//! In: paths. Out: the configuration of an agent, or what is wrong with a file. It starts nothing, and never shows a key.

use crate::edge_keys;
use config::ConfigFile;
use config::slices::Slice;
use edge::Config;
use edge::agent::{Peer, Settings};
use edge::linux::Device;
use edge::protocol::Key;
use edge::vnic::{Address, AgentId, Directory, SliceId, Vnic, VnicId};
use hose::Bandwidth;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What the operator wrote.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeFile {
    /// The number of the agent.
    agent: u32,
    /// The interface towards the network.
    device: String,
    /// What it carries in each direction, such as `10G`.
    rate: String,
    /// Where other agents reach this one, by UDP.
    pub listen: SocketAddr,
    /// The file with the slices: that of the node, or a copy.
    slices: PathBuf,
    /// The file with the keys of peers: a line with number and key for each.
    keys: PathBuf,
    /// Other agents, by number, and where they listen.
    #[serde(default)]
    peers: BTreeMap<String, SocketAddr>,
    /// The service of labels.
    service: Option<ServiceAt>,
}

/// The service of labels of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceAt {
    /// Its number among agents.
    #[serde(default)]
    agent: u32,
    /// Where it listens, by TCP.
    address: SocketAddr,
}

impl EdgeFile {
    /// Reads it.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn read(path: &Path) -> Result<EdgeFile, String> {
        let of_file = |why: String| format!("{}: {why}", path.display());
        let text =
            std::fs::read_to_string(path).map_err(|error| of_file(format!("it cannot be read: {error}")))?;
        let mut file: EdgeFile =
            toml::from_str(&text).map_err(|error| of_file(error.to_string().trim_end().to_owned()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for path in [&mut file.slices, &mut file.keys] {
            *path = folder.join(&*path);
        }
        Ok(file)
    }

    /// The interface.
    ///
    /// # Errors
    /// It has no such name.
    pub fn device(&self) -> Result<Device, String> {
        Device::new(&self.device).map_err(|why| format!("device: {why}"))
    }

    /// The configuration of the agent. `session` is a random number of this start.
    ///
    /// # Errors
    /// A sentence that begins with the key of the file, or names another file.
    pub fn config(&self, session: u64) -> Result<Config, String> {
        let rate: Bandwidth = self.rate.parse().map_err(|why| format!("rate: {why}"))?;
        let slices = ConfigFile::read(&self.slices).map_err(|error| error.to_string())?.slices;
        let mut settings = Settings::for_nic(AgentId(self.agent), rate.bps(), session);
        settings.service = self.service.map(|service| AgentId(service.agent));
        let addresses = self.addresses()?;
        let keys = edge_keys::read(&self.keys)?;
        let wanted = addresses.keys().copied().chain(settings.service);
        settings.peers = wanted.map(|agent| peer(agent, &keys)).collect::<Result<_, _>>()?;
        let directory = Directory::new(vnics(&slices)).map_err(|why| format!("slices: {why}"))?;
        if directory.of_agent(settings.me).next().is_none() {
            let agent = self.agent;
            return Err(format!(
                "slices: no VNIC has agent = {agent}: there is nothing to meter and to shape"
            ));
        }
        Ok(Config {
            device: self.device()?,
            settings,
            directory,
            addresses,
            service: self.service.map(|service| service.address),
        })
    }

    fn addresses(&self) -> Result<BTreeMap<AgentId, SocketAddr>, String> {
        let peer = |(number, address): (&String, &SocketAddr)| {
            let number = number.parse().map_err(|_| format!("peers: `{number}` is no number of an agent"))?;
            Ok((AgentId(number), *address))
        };
        self.peers.iter().map(peer).collect()
    }
}

fn peer(agent: AgentId, keys: &BTreeMap<u32, String>) -> Result<Peer, String> {
    let key: Option<Key> = keys.get(&agent.0).and_then(|key| key.parse().ok());
    let key = key.ok_or(format!("keys: there is none for {agent}: add a line with its number and key"))?;
    Ok(Peer { agent, key })
}

/// The VNICs that have a number. Slices are numbered in the order of the file, which no other program sees.
pub fn vnics(slices: &[Slice]) -> Vec<Vnic> {
    let of_slice = |(number, slice): (u32, &Slice)| {
        let vlan = slice.tag();
        let vnic = move |(vnic, edge): (&config::slices::Vnic, config::slices::EdgeVnic)| Vnic {
            id: VnicId(edge.number),
            slice: SliceId(number),
            agent: edge.agent.map(AgentId),
            address: Address { vlan, mac: edge.mac },
            guarantee_bps: vnic.rate.bps(),
            strict: edge.is_strict,
        };
        slice.vnics.iter().filter_map(|it| Some((it, it.edge?))).map(vnic).collect::<Vec<_>>()
    };
    (0..).zip(slices).flat_map(of_slice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const SLICES: &str = "[slice.blue]\ncontrollers = ['127.0.0.1:1']\nisolation = 'vlan'\ntag = 7\n[slice.blue.vnics]\n\
        E = { port = 's1:1', rate = '10M', number = 3, mac = '02:00:00:00:00:03', agent = 1 }\n\
        F = { port = 's2:1', rate = '2M', number = 4, mac = '02:00:00:00:00:04', agent = 2, strict = true }\n\
        G = { port = 's2:2', rate = '2M' }\n";

    /// A folder with the files of an agent.
    struct Files(PathBuf);

    impl Files {
        fn new(name: &str) -> Files {
            let folder = std::env::temp_dir().join(format!("burnet-edge-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("slices.toml"), SLICES).unwrap();
            let keys = folder.join("keys");
            std::fs::write(&keys, format!("0 {0}\n2 {0}\n", "0f".repeat(32))).unwrap();
            std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o600)).unwrap();
            Files(folder)
        }

        fn config(&self, text: &str) -> Result<Config, String> {
            let path = self.0.join("edge.toml");
            std::fs::write(&path, text).unwrap();
            EdgeFile::read(&path)?.config(5)
        }
    }

    impl Drop for Files {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const FILE: &str = "agent = 1\ndevice = 'eth0'\nrate = '10M'\nlisten = '127.0.0.1:6655'\nslices = 'slices.toml'\n\
        keys = 'keys'\nservice = { address = '127.0.0.1:6656' }\n[peers]\n2 = '127.0.0.1:6657'\n";

    #[test]
    fn an_agent_has_the_vnics_of_the_slices_and_its_peers() {
        let files = Files::new("all");
        let config = files.config(FILE).unwrap();
        let settings = &config.settings;
        let peers: Vec<u32> = settings.peers.iter().map(|peer| peer.agent.0).collect();
        assert_eq!(
            (settings.me, settings.service, settings.nic_bps),
            (AgentId(1), Some(AgentId(0)), 10_000_000)
        );
        assert_eq!((peers, config.service), (vec![2, 0], Some("127.0.0.1:6656".parse().unwrap())));
        let vnics: Vec<_> = config.directory.vnics().collect();
        let [e, f] = vnics[..] else { panic!("{vnics:?}") };
        assert_eq!((e.id, e.agent, e.address.vlan, e.strict), (VnicId(3), Some(AgentId(1)), Some(7), false));
        assert_eq!((f.id, f.guarantee_bps, f.strict), (VnicId(4), 2_000_000, true));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let files = Files::new("wrong");
        let check = |from: &str, to: &str, expected: &str| {
            let why = files.config(&FILE.replace(from, to)).unwrap_err();
            assert!(why.contains(expected), "{why}");
        };
        check("agent = 1", "agents = 1", "unknown field `agents`");
        check("rate = '10M'", "rate = '10'", "rate: `10`: the unit is missing");
        check("device = 'eth0'", "device = 'a b'", "device: `a b` is not the name of an interface");
        check("agent = 1", "agent = 7", "no VNIC has agent = 7");
        check("2 = '127", "8 = '127", "keys: there is none for agent 8");
        check("2 = '127", "two = '127", "peers: `two` is no number of an agent");
        check("'slices.toml'", "'other.toml'", "other.toml");
    }
}
