//! The shape of a network: which switches and hosts there are, and what is wired to what.
//!
//! Read from Mininet's words (`single,4`, `linear,3`, `tree,2,3`), and numbered as Mininet numbers: `s1` has datapath id 1,
//! `h1` has 10.0.0.1 and 00:00:00:00:00:01 (as with `mn --mac`), and a switch's ports count up from 1 in the order in which its
//! links are made. Never makes anything run.

use flow::{DatapathId, MacAddr, PortNo};
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use crate::link::LinkQuality;

/// The largest network that is made: what is beyond it is refused by name. A switch and its host take
/// about 4 KiB before there are rules.
pub const SWITCHES_MAX: usize = 4096;
/// The most hosts in a network.
pub const HOSTS_MAX: usize = 16_384;
/// Hosts are on 10.0.0.0/8.
const FIRST_ADDRESS: u32 = 0x0a00_0000;

/// A network to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Its switches; an index into this is how a link names one.
    pub switches: Vec<SwitchPlan>,
    /// Its hosts; an index into this is how a link names one.
    pub hosts: Vec<HostPlan>,
    /// What is wired to what.
    pub links: Vec<Link>,
}

/// A switch to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchPlan {
    /// `s1`, `s2` …
    pub name: String,
    /// Its number.
    pub datapath_id: DatapathId,
}

/// A host to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// `h1`, `h2` …, or `h1s2` where a switch of a line has several.
    pub name: String,
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// Its IPv4 address.
    pub address: Ipv4Addr,
}

/// A cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// One end.
    pub one: Endpoint,
    /// The other end.
    pub two: Endpoint,
    /// What it does to frames.
    pub quality: LinkQuality,
}

/// Where a cable is plugged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Endpoint {
    /// A port of a switch.
    Switch {
        /// Index of the switch.
        index: usize,
        /// Its port.
        port: PortNo,
    },
    /// The one port of a host.
    Host {
        /// Index of the host.
        index: usize,
    },
}

/// A text that names no topology that there is. It is the operator's to put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotATopology {
    text: String,
    why: String,
}

/// A topology in the making.
#[derive(Default)]
struct Plan {
    switches: Vec<SwitchPlan>,
    ports_used: Vec<u32>,
    hosts: Vec<String>,
    links: Vec<Link>,
}

#[derive(Clone, Copy)]
enum Node {
    Switch(usize),
    Host(usize),
}

impl Plan {
    fn switch(&mut self) -> Node {
        let number = self.switches.len() + 1;
        self.switches.push(SwitchPlan { name: format!("s{number}"), datapath_id: DatapathId(number as u64) });
        self.ports_used.push(0);
        Node::Switch(number - 1)
    }

    fn host(&mut self, name: String) -> Node {
        self.hosts.push(name);
        Node::Host(self.hosts.len() - 1)
    }

    fn link(&mut self, one: Node, two: Node) {
        let quality = LinkQuality::default();
        let link = Link { one: self.plug(one), two: self.plug(two), quality };
        self.links.push(link);
    }

    fn plug(&mut self, node: Node) -> Endpoint {
        match node {
            Node::Host(index) => Endpoint::Host { index },
            Node::Switch(index) => {
                self.ports_used[index] += 1;
                Endpoint::Switch { index, port: PortNo(self.ports_used[index]) }
            }
        }
    }

    /// A tree below a node: switches are numbered before what hangs below them, as Mininet does it.
    fn tree(&mut self, depth: usize, fanout: usize) -> Node {
        if depth == 0 {
            let number = self.hosts.len() + 1;
            return self.host(format!("h{number}"));
        }
        let node = self.switch();
        for _ in 0..fanout {
            let child = self.tree(depth - 1, fanout);
            self.link(node, child);
        }
        node
    }

    fn finish(self) -> Topology {
        let plan = |(index, name): (usize, String)| HostPlan {
            name,
            mac: MacAddr::from_u64(index as u64 + 1),
            address: Ipv4Addr::from(FIRST_ADDRESS + index as u32 + 1),
        };
        let hosts = self.hosts.into_iter().enumerate().map(plan).collect();
        Topology { switches: self.switches, hosts, links: self.links }
    }
}

impl Topology {
    /// One switch with so many hosts.
    ///
    /// # Errors
    /// No hosts, or more than [`HOSTS_MAX`].
    pub fn single(hosts: usize) -> Result<Topology, NotATopology> {
        bounded(&format!("single,{hosts}"), Some(1), Some(hosts))?;
        let mut plan = Plan::default();
        let switch = plan.switch();
        for number in 1..=hosts {
            let host = plan.host(format!("h{number}"));
            plan.link(host, switch);
        }
        Ok(plan.finish())
    }

    /// A line of switches, each with so many hosts.
    ///
    /// # Errors
    /// A number that is zero, or a network beyond [`SWITCHES_MAX`] or [`HOSTS_MAX`].
    pub fn linear(switches: usize, hosts_each: usize) -> Result<Topology, NotATopology> {
        let text = format!("linear,{switches},{hosts_each}");
        bounded(&text, Some(switches), switches.checked_mul(hosts_each))?;
        let mut plan = Plan::default();
        let mut last = None;
        // Hosts get their addresses in the order of their names: h1s1, h1s2 … before h2s1. Their indices are given first.
        let name = |host: usize, switch: usize| match hosts_each {
            1 => format!("h{switch}"),
            _ => format!("h{host}s{switch}"),
        };
        for host in 1..=hosts_each {
            for switch in 1..=switches {
                plan.host(name(host, switch));
            }
        }
        for number in 0..switches {
            let switch = plan.switch();
            for host in 0..hosts_each {
                plan.link(Node::Host(host * switches + number), switch);
            }
            if let Some(last) = last.replace(switch) {
                plan.link(switch, last);
            }
        }
        Ok(plan.finish())
    }

    /// A tree of switches of this depth, with hosts as its leaves.
    ///
    /// # Errors
    /// A number that is zero, or a network beyond [`SWITCHES_MAX`] or [`HOSTS_MAX`].
    pub fn tree(depth: usize, fanout: usize) -> Result<Topology, NotATopology> {
        let text = format!("tree,{depth},{fanout}");
        let hosts = u32::try_from(depth).ok().and_then(|depth| fanout.checked_pow(depth));
        let level = |level: usize| u32::try_from(level).ok().and_then(|level| fanout.checked_pow(level));
        let switches =
            (0..depth.min(SWITCHES_MAX + 1)).try_fold(0usize, |sum, at| sum.checked_add(level(at)?));
        bounded(&text, switches, hosts)?;
        let mut plan = Plan::default();
        plan.tree(depth, fanout);
        Ok(plan.finish())
    }
}

/// Refuses a network of nothing and one that is too large. `None` is more than can be counted.
fn bounded(text: &str, switches: Option<usize>, hosts: Option<usize>) -> Result<(), NotATopology> {
    let refuse = |why: String| Err(NotATopology { text: text.to_owned(), why });
    match (switches, hosts) {
        (Some(0), _) | (_, Some(0)) => refuse("it has no switch or no host".into()),
        (Some(switches), _) if switches > SWITCHES_MAX => {
            refuse(format!("it has {switches} switches, and {SWITCHES_MAX} are the most"))
        }
        (_, Some(hosts)) if hosts > HOSTS_MAX => {
            refuse(format!("it has {hosts} hosts, and {HOSTS_MAX} are the most"))
        }
        (None, _) | (_, None) => refuse("it is too large to be counted".into()),
        _ => Ok(()),
    }
}

/// Mininet's words: `minimal`, `single[,HOSTS]`, `linear[,SWITCHES[,HOSTS_EACH]]`, `tree[,DEPTH[,FANOUT]]`; arguments may be named
/// as Mininet names them (`tree,depth=2,fanout=3`).
impl FromStr for Topology {
    type Err = NotATopology;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = text.split(',');
        let name = words.next().unwrap_or_default();
        let given = Arguments { text, words: words.collect() };
        match name {
            "minimal" => given.numbers(&[], []).and_then(|[]| Topology::single(2)),
            "single" => given.numbers(&["k"], [2]).and_then(|[hosts]| Topology::single(hosts)),
            "linear" => given
                .numbers(&["k", "n"], [2, 1])
                .and_then(|[switches, each]| Topology::linear(switches, each)),
            "tree" => given
                .numbers(&["depth", "fanout"], [1, 2])
                .and_then(|[depth, fanout]| Topology::tree(depth, fanout)),
            _ => Err(NotATopology { text: text.to_owned(), why: format!("'{name}' is not one of them") }),
        }
    }
}

/// What is written behind a topology's name.
struct Arguments<'a> {
    text: &'a str,
    words: Vec<&'a str>,
}

impl Arguments<'_> {
    /// The numbers, by place or by name.
    fn numbers<const N: usize>(
        &self,
        names: &[&str; N],
        defaults: [usize; N],
    ) -> Result<[usize; N], NotATopology> {
        let refused = |why: String| NotATopology { text: self.text.to_owned(), why };
        let mut values = defaults;
        for (place, word) in self.words.iter().enumerate() {
            let (place, value) = match word.split_once('=') {
                Some((name, value)) => {
                    let place = names.iter().position(|known| *known == name);
                    (place.ok_or_else(|| refused(format!("it has no argument '{name}'")))?, value)
                }
                None => (place, *word),
            };
            let slot =
                values.get_mut(place).ok_or_else(|| refused(format!("it takes {N} numbers at most")))?;
            *slot = value.parse().map_err(|_| refused(format!("'{value}' is not a number")))?;
        }
        Ok(values)
    }
}

impl fmt::Display for NotATopology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not a topology: {}; write minimal, single,HOSTS, linear,SWITCHES[,HOSTS_EACH] or tree,DEPTH[,FANOUT]",
            self.text, self.why
        )
    }
}

impl std::error::Error for NotATopology {}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, switches: &str, hosts: &str, links: &str) {
        let topology: Topology = text.parse().unwrap();
        let names = |endpoint| match endpoint {
            Endpoint::Switch { index, port } => format!("{}.{port}", topology.switches[index].name),
            Endpoint::Host { index } => topology.hosts[index].name.clone(),
        };
        let link = |link: &Link| format!("{}-{}", names(link.one), names(link.two));
        let joined = |words: Vec<String>| words.join(" ");
        assert_eq!(
            joined(topology.switches.iter().map(|switch| switch.name.clone()).collect()),
            switches,
            "{text}"
        );
        let host = |host: &HostPlan| format!("{}={}", host.name, host.address);
        assert_eq!(joined(topology.hosts.iter().map(host).collect()), hosts, "{text}");
        assert_eq!(joined(topology.links.iter().map(link).collect()), links, "{text}");
    }

    fn check_refused(text: &str, why: &str) {
        let refused = text.parse::<Topology>().unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }

    #[test]
    fn what_is_no_topology_is_refused_with_the_reason() {
        check_refused("", "'' is not one of them");
        check_refused("ring,4", "'ring' is not one of them");
        check_refused("single,x", "'x' is not a number");
        check_refused("single,-1", "'-1' is not a number");
        check_refused("single,2,3", "takes 1 numbers");
        check_refused("tree,height=2", "no argument 'height'");
        check_refused("single,0", "no switch or no host");
        check_refused("tree,0", "no switch or no host");
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_is_made() {
        check_refused("single,16385", "16384 are the most");
        check_refused("linear,4097", "4097 switches");
        check_refused("tree,13", "8191 switches");
        check_refused("tree,1000000000", "too large");
        check_refused("tree,2,18446744073709551615", "too large");
        check_refused("tree,18446744073709551615,1", "4097 switches");
        check_refused("linear,2,18446744073709551615", "too large");
    }

    #[test]
    fn they_are_numbered_as_mininet_numbers_them() {
        check("minimal", "s1", "h1=10.0.0.1 h2=10.0.0.2", "h1-s1.1 h2-s1.2");
        check("single,3", "s1", "h1=10.0.0.1 h2=10.0.0.2 h3=10.0.0.3", "h1-s1.1 h2-s1.2 h3-s1.3");
        check(
            "linear,3",
            "s1 s2 s3",
            "h1=10.0.0.1 h2=10.0.0.2 h3=10.0.0.3",
            "h1-s1.1 h2-s2.1 s2.2-s1.2 h3-s3.1 s3.2-s2.3",
        );
        check(
            "linear,2,2",
            "s1 s2",
            "h1s1=10.0.0.1 h1s2=10.0.0.2 h2s1=10.0.0.3 h2s2=10.0.0.4",
            "h1s1-s1.1 h2s1-s1.2 h1s2-s2.1 h2s2-s2.2 s2.3-s1.3",
        );
        check(
            "tree,depth=2",
            "s1 s2 s3",
            "h1=10.0.0.1 h2=10.0.0.2 h3=10.0.0.3 h4=10.0.0.4",
            "s2.1-h1 s2.2-h2 s1.1-s2.3 s3.1-h3 s3.2-h4 s1.2-s3.3",
        );
    }
}
