//! The names of switches, hosts, links and ports in a scenario's file.
//!
//! In: a name and the topology. Out: the name by which the network knows it, or the names that exist.

use flow::PortNo;

use crate::topology::{Endpoint, Topology};

/// Finds names in a topology.
pub(super) struct Names<'a>(pub(super) &'a Topology);

impl Names<'_> {
    /// The name of a switch, which may be given by its label.
    pub(super) fn switch(&self, name: &str) -> Result<String, String> {
        let found = self.0.switch_named(name).map(|index| self.0.switches[index].name.clone());
        let names = || self.0.switches.iter().map(|switch| switch.name.clone()).collect::<Vec<_>>();
        found.ok_or_else(|| unknown("switch", name, &names()))
    }

    /// The name of a host, which may be given by its label.
    pub(super) fn host(&self, name: &str) -> Result<String, String> {
        let found = self.0.host_named(name).map(|index| self.0.hosts[index].name.clone());
        let names = || self.0.hosts.iter().map(|host| host.name.clone()).collect::<Vec<_>>();
        found.ok_or_else(|| unknown("host", name, &names()))
    }

    /// The index of a link that is given as `one-two`. Names may contain a `-`.
    pub(super) fn link(&self, name: &str) -> Result<usize, String> {
        let splits = name.match_indices('-').map(|(at, _)| (&name[..at], &name[at + 1..]));
        let found = splits.into_iter().find_map(|(one, two)| self.0.links_between(one, two).first().copied());
        found.ok_or_else(|| {
            format!("there is no link \"{name}\" in this network; write it as \"s1-s2\" or \"h1-s1\"")
        })
    }

    /// A link in the form of [`Change`].
    pub(super) fn link_name(&self, name: &str) -> Result<String, String> {
        let link = self.0.links[self.link(name)?];
        let end = |end: Endpoint| match end {
            Endpoint::Switch { port, .. } => format!("{}.{port}", self.0.owner(end)),
            Endpoint::Host { .. } => self.0.owner(end).to_owned(),
        };
        Ok(format!("{}-{}", end(link.one), end(link.two)))
    }

    /// `s1-eth2` or `s1.2`.
    pub(super) fn port(&self, name: &str) -> Result<(String, PortNo), String> {
        let split = name.rsplit_once("-eth").or_else(|| name.rsplit_once('.'));
        let parsed = split.and_then(|(switch, port)| Some((switch, PortNo(port.parse().ok()?))));
        let (switch, port) =
            parsed.ok_or_else(|| format!("expected a port like \"s1-eth2\", found \"{name}\""))?;
        Ok((self.switch(switch)?, port))
    }
}

/// How many names an error shows.
const NAMES_SHOWN: usize = 5;

/// The error for a name that does not exist.
pub(super) fn unknown(kind: &str, name: &str, known: &[String]) -> String {
    let shown = known.iter().take(NAMES_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if known.len() > NAMES_SHOWN { " …" } else { "" };
    let shown = if shown.is_empty() { "none" } else { &shown };
    format!("there is no {kind} \"{name}\"; there is {shown}{more}")
}
