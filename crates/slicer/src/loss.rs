//! What a slice loses when its plan changes: whole switches, ports, or hosts.
//!
//! ```text
//!   SlicePlan before, SlicePlan after ──> Loss ──> `withdrawing`: the rules that must leave before the node takes the grant back
//! ```
//!
//! What a slice gains is no loss: its next process lays rules there. Where numbers that the tenant sees mean something else, no rule of the tenant
//! can stay, so the whole switch is lost.
//!
//! In: two plans. Out: the difference, with reasons for the operator. It knows no rule.

use crate::addresses::{AddressPlan, HostPlan};
use crate::plan::{Isolation, SlicePlan, SwitchPlan};
use flow::{DatapathId, PortNo};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// What a slice loses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// At these switches.
    pub switches: BTreeMap<DatapathId, Lost>,
    /// Hosts of a slice with addresses, at all of its switches.
    pub hosts: BTreeSet<Ipv4Addr>,
}

/// What a slice loses at a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// All of its rules, groups and meters. The reason is a phrase.
    All(String),
    /// These ports, by their numbers in the physical switch.
    Ports(BTreeSet<PortNo>),
}

impl Loss {
    /// What a slice loses that gets another plan. `None`: it is removed.
    pub fn between(before: &SlicePlan, after: Option<&SlicePlan>) -> Loss {
        let Some(after) = after else { return Loss::all(before, "the slice is removed") };
        if let Some(why) = why_all(before, after) {
            return Loss::all(before, why);
        }
        let lost = |switch: &SwitchPlan| {
            let after = after.switches.iter().find(|it| it.datapath == switch.datapath);
            Some((switch.datapath, lost_at(switch, after)?))
        };
        Loss {
            switches: before.switches.iter().filter_map(lost).collect(),
            hosts: lost_hosts(&before.isolation, &after.isolation),
        }
    }

    /// Everything.
    pub fn all(plan: &SlicePlan, why: &str) -> Loss {
        let lost = |switch: &SwitchPlan| (switch.datapath, Lost::All(why.to_owned()));
        Loss { switches: plan.switches.iter().map(lost).collect(), hosts: BTreeSet::new() }
    }

    /// Whether nothing is lost.
    pub fn is_empty(&self) -> bool {
        self.switches.is_empty() && self.hosts.is_empty()
    }
}

/// Why no rule of the slice can stay.
fn why_all(before: &SlicePlan, after: &SlicePlan) -> Option<&'static str> {
    let is_same = match (&before.isolation, &after.isolation) {
        (Isolation::Address(before), Isolation::Address(after)) => {
            let prefixes = |it: &AddressPlan| (it.tenant, it.physical, it.length);
            prefixes(before) == prefixes(after)
        }
        (before, after) => before == after,
    };
    if !is_same {
        return Some("its packets are others");
    }
    if before.is_read_only != after.is_read_only {
        return Some("its key read_only changed");
    }
    (before.numbers != after.numbers).then_some("its groups or meters have other numbers")
}

fn lost_at(before: &SwitchPlan, after: Option<&SwitchPlan>) -> Option<Lost> {
    let Some(after) = after else { return Some(Lost::All("the slice loses the switch".to_owned())) };
    if before.shown_as != after.shown_as {
        return Some(Lost::All("its tenant sees another datapath id".to_owned()));
    }
    for port in &before.ports {
        let other = after.ports.iter().find(|it| (it.port == port.port) != (it.shown_as == port.shown_as));
        if other.is_some() {
            return Some(Lost::All(format!("port {} or its number {} changed", port.port, port.shown_as)));
        }
        if after.ports.iter().any(|it| it.port == port.port && it.is_edge != port.is_edge) {
            return Some(Lost::All(format!("port {} is the slice's own, or is it no more", port.port)));
        }
    }
    let stays = |port: PortNo| after.ports.iter().any(|it| it.port == port);
    let lost: BTreeSet<PortNo> =
        before.ports.iter().map(|port| port.port).filter(|port| !stays(*port)).collect();
    (!lost.is_empty()).then_some(Lost::Ports(lost))
}

/// A host that is elsewhere now is lost too.
fn lost_hosts(before: &Isolation, after: &Isolation) -> BTreeSet<Ipv4Addr> {
    let (Isolation::Address(before), Isolation::Address(after)) = (before, after) else {
        return BTreeSet::new();
    };
    let lost = |host: &&HostPlan| !after.hosts.contains(host);
    before.hosts.iter().filter(lost).map(|host| host.address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Limits, Numbers, PortPlan};

    fn plan() -> SlicePlan {
        let port = |port: u32| PortPlan { port: PortNo(port), shown_as: PortNo(port), is_edge: port < 3 };
        let switch = |datapath: u64| SwitchPlan {
            datapath: DatapathId(datapath),
            shown_as: DatapathId(datapath),
            ports: (1..=3).map(port).collect(),
        };
        SlicePlan {
            name: "blue".to_owned(),
            isolation: Isolation::Vlan(7),
            is_read_only: false,
            switches: vec![switch(1), switch(2)],
            links: Vec::new(),
            limits: Limits::default(),
            numbers: Numbers::NONE,
        }
    }

    /// What the slice loses at each switch: "all", or its ports.
    fn check(change: impl FnOnce(&mut SlicePlan), expected: &[(u64, &str)]) {
        let mut after = plan();
        change(&mut after);
        let lost = |(switch, lost): (&DatapathId, &Lost)| match lost {
            Lost::All(_) => (switch.0, "all".to_owned()),
            Lost::Ports(ports) => (switch.0, format!("{ports:?}")),
        };
        let loss = Loss::between(&plan(), Some(&after));
        let found: Vec<(u64, String)> = loss.switches.iter().map(lost).collect();
        let expected: Vec<(u64, String)> = expected.iter().map(|(at, it)| (*at, (*it).to_owned())).collect();
        assert_eq!(found, expected, "{after:?}");
    }

    #[test]
    fn only_what_is_gone_or_means_something_else_is_lost() {
        let all = [(1, "all"), (2, "all")];
        let new = PortPlan { port: PortNo(4), shown_as: PortNo(4), is_edge: true };
        check(|_| {}, &[]);
        check(|it| it.switches[0].ports.push(new), &[]);
        check(|it| it.switches.push(SwitchPlan { datapath: DatapathId(3), ..it.switches[0].clone() }), &[]);
        check(|it| it.limits.rules.hard = 1, &[]);
        check(|it| _ = it.switches[0].ports.remove(1), &[(1, "{PortNo(2)}")]);
        check(|it| drop(it.switches.remove(1)), &[(2, "all")]);
        check(|it| it.switches[1].shown_as = DatapathId(9), &[(2, "all")]);
        check(|it| it.switches[1].ports[0].shown_as = PortNo(9), &[(2, "all")]);
        check(|it| it.switches[1].ports[0].port = PortNo(9), &[(2, "all")]);
        check(|it| it.switches[1].ports[2].is_edge = true, &[(2, "all")]);
        check(|it| it.isolation = Isolation::Vlan(8), &all);
        check(|it| it.is_read_only = true, &all);
        check(|it| it.numbers.groups = 1..5, &all);
        assert_eq!(Loss::between(&plan(), None).switches.len(), 2);
    }

    #[test]
    fn a_host_that_goes_or_moves_is_lost_and_a_new_one_is_not() {
        let host = |last: u8, port: u32| HostPlan {
            address: Ipv4Addr::new(10, 0, 0, last),
            datapath: DatapathId(1),
            port: PortNo(port),
        };
        let with = |hosts: Vec<HostPlan>, physical: u8| {
            let physical = Ipv4Addr::new(172, 16, physical, 0);
            let addresses = AddressPlan { tenant: Ipv4Addr::new(10, 0, 0, 0), physical, length: 24, hosts };
            SlicePlan { isolation: Isolation::Address(addresses), ..plan() }
        };
        let before = with(vec![host(1, 1), host(2, 2), host(3, 1)], 3);
        let loss = Loss::between(&before, Some(&with(vec![host(1, 1), host(2, 1), host(4, 1)], 3)));
        let lost: Vec<u8> = loss.hosts.iter().map(|it| it.octets()[3]).collect();
        assert_eq!((lost, loss.switches.len()), (vec![2, 3], 0));
        let other = Loss::between(&before, Some(&with(vec![host(1, 1)], 4)));
        assert_eq!(other.switches.len(), 2, "another prefix");
    }
}
