//! The simple shapes: one switch, a line, a tree, a ring, a torus.

use flow::DatapathId;

use super::bounds::{NotATopology, Size};
use super::plan::{Node, Plan};
use super::{SWITCHES_MAX, Topology};

/// In a torus, as in Mininet, the second octet of a datapath id is the row, and the first one the column.
const TORUS_COLUMNS_MAX: usize = 255;

impl Topology {
    /// One switch with this many hosts.
    ///
    /// # Errors
    ///
    /// No hosts, or more than [`HOSTS_MAX`](super::HOSTS_MAX).
    pub fn single(hosts: usize) -> Result<Topology, NotATopology> {
        Size { switches: Some(1), hosts: Some(hosts), links: Some(hosts) }
            .check(&format!("single,{hosts}"))?;
        let mut plan = Plan::default();
        let switch = plan.switch();
        for number in 1..=hosts {
            let host = plan.host(format!("h{number}"));
            plan.link(host, switch);
        }
        Ok(plan.finish())
    }

    /// A line of switches with `hosts_each` hosts each.
    ///
    /// # Errors
    ///
    /// A number is zero, or the network exceeds [`SWITCHES_MAX`] or [`HOSTS_MAX`](super::HOSTS_MAX).
    pub fn linear(switches: usize, hosts_each: usize) -> Result<Topology, NotATopology> {
        Ok(line("linear", switches, hosts_each)?.finish())
    }

    /// A ring of switches.
    ///
    /// # Errors
    ///
    /// Less than three switches, no hosts, or the network exceeds [`SWITCHES_MAX`] or
    /// [`HOSTS_MAX`](super::HOSTS_MAX).
    pub fn ring(switches: usize, hosts_each: usize) -> Result<Topology, NotATopology> {
        let mut plan = line("ring", switches, hosts_each)?;
        if switches < 3 {
            let text = format!("ring,{switches},{hosts_each}");
            return Err(NotATopology::new(&text, "a ring has 3 switches or more"));
        }
        plan.link(Node::Switch(0), Node::Switch(switches - 1));
        Ok(plan.finish())
    }

    /// A tree of switches with this depth, and hosts as its leaves.
    ///
    /// # Errors
    ///
    /// A number is zero, or the network exceeds [`SWITCHES_MAX`] or [`HOSTS_MAX`](super::HOSTS_MAX).
    pub fn tree(depth: usize, fanout: usize) -> Result<Topology, NotATopology> {
        let text = format!("tree,{depth},{fanout}");
        let hosts = u32::try_from(depth).ok().and_then(|depth| fanout.checked_pow(depth));
        let level = |level: usize| u32::try_from(level).ok().and_then(|level| fanout.checked_pow(level));
        let switches =
            (0..depth.min(SWITCHES_MAX + 1)).try_fold(0usize, |sum, at| sum.checked_add(level(at)?));
        let links = switches.zip(hosts).and_then(|(switches, hosts)| switches.checked_add(hosts));
        Size { switches, hosts, links }.check(&text)?;
        let mut plan = Plan::default();
        branch(&mut plan, depth, fanout);
        Ok(plan.finish())
    }

    /// Rows and columns of switches. Each row and each column is a ring. Names, numbers and links are those of
    /// Mininet's `TorusTopo`: the switch in row 1 and column 2 is `s1x2` with datapath id 0x102.
    ///
    /// # Errors
    ///
    /// Less than three rows or columns, more than 255 columns, no hosts, or the network exceeds [`SWITCHES_MAX`] or
    /// [`HOSTS_MAX`](super::HOSTS_MAX).
    pub fn torus(rows: usize, columns: usize, hosts_each: usize) -> Result<Topology, NotATopology> {
        let text = format!("torus,{rows},{columns},{hosts_each}");
        let switches = rows.checked_mul(columns);
        let hosts = switches.and_then(|switches| switches.checked_mul(hosts_each));
        let links = switches.and_then(|switches| switches.checked_mul(2)?.checked_add(hosts.unwrap_or(0)));
        Size { switches, hosts, links }.check(&text)?;
        if rows < 3 || columns < 3 {
            return Err(NotATopology::new(&text, "a torus has 3 by 3 switches or more"));
        }
        if columns > TORUS_COLUMNS_MAX {
            let why = format!(
                "columns are numbered in one octet, so there are {TORUS_COLUMNS_MAX} of them at most"
            );
            return Err(NotATopology::new(&text, why));
        }
        Ok(torus(rows, columns, hosts_each))
    }
}

/// A line of switches as an unfinished plan.
fn line(name: &str, switches: usize, hosts_each: usize) -> Result<Plan, NotATopology> {
    let hosts = switches.checked_mul(hosts_each);
    let links = hosts.and_then(|hosts| hosts.checked_add(switches));
    Size { switches: Some(switches), hosts, links }.check(&format!("{name},{switches},{hosts_each}"))?;
    let mut plan = Plan::default();
    let mut last = None;
    // Hosts get their addresses in the order of their names: h1s1, h1s2 … before h2s1. Their indices are assigned
    // first.
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
    Ok(plan)
}

/// The subtree below a node. As in Mininet, a switch gets its number before its children.
fn branch(plan: &mut Plan, depth: usize, fanout: usize) -> Node {
    if depth == 0 {
        let number = plan.hosts() + 1;
        return plan.host(format!("h{number}"));
    }
    let node = plan.switch();
    for _ in 0..fanout {
        let child = branch(plan, depth - 1, fanout);
        plan.link(node, child);
    }
    node
}

fn torus(rows: usize, columns: usize, hosts_each: usize) -> Topology {
    let mut plan = Plan::default();
    for (row, column) in cells(rows, columns) {
        let place = format!("{}x{}", row + 1, column + 1);
        let number = (row as u64 + 1) << 8 | (column as u64 + 1);
        let switch = plan.switch_as(format!("s{place}"), DatapathId(number));
        for host in 1..=hosts_each {
            let name = if hosts_each == 1 { format!("h{place}") } else { format!("h{place}x{host}") };
            let host = plan.host(name);
            plan.link(host, switch);
        }
    }
    for (row, column) in cells(rows, columns) {
        let at = |row: usize, column: usize| Node::Switch((row % rows) * columns + column % columns);
        plan.link(at(row, column), at(row, column + 1));
        plan.link(at(row, column), at(row + 1, column));
    }
    plan.finish()
}

fn cells(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)))
}

#[cfg(test)]
mod tests {
    use super::super::{Endpoint, HostPlan, Link};
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

    #[test]
    fn a_ring_is_a_line_that_comes_back() {
        check(
            "ring,3",
            "s1 s2 s3",
            "h1=10.0.0.1 h2=10.0.0.2 h3=10.0.0.3",
            "h1-s1.1 h2-s2.1 s2.2-s1.2 h3-s3.1 s3.2-s2.3 s1.3-s3.3",
        );
    }

    #[test]
    fn a_torus_is_a_ring_in_each_row_and_column() {
        let torus: Topology = "torus,3,4,2".parse().unwrap();
        assert_eq!((torus.switches.len(), torus.hosts.len(), torus.links.len()), (12, 24, 48));
        let switch = &torus.switches[torus.switch_named("s2x3").unwrap()];
        assert_eq!(switch.datapath_id, DatapathId(0x203));
        assert_eq!(torus.hosts[0].name, "h1x1x1");
        for (one, two) in [("s1x1", "s1x2"), ("s1x4", "s1x1"), ("s3x2", "s1x2"), ("s1x1", "s2x1")] {
            assert_eq!(torus.links_between(one, two).len(), 1, "{one} {two}");
        }
        assert!(torus.links_between("s1x1", "s2x2").is_empty());
    }
}
