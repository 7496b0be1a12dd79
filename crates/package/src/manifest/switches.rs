//! The packets and ports that bound a capability: at all its switches, and at single ones.
//!
//! ```toml
//! "rule.write" = { match = ["dl_vlan=5"], switches = { "1" = { ports = [1, 2] }, "2" = { ports = [7] } } }
//! ```
//!
//! In: the tables of a capability. Out: validated bounds of each switch, and whether those of one capability are within
//! those of another. It never enforces anything.

use std::collections::{BTreeMap, BTreeSet};

use flow::{DatapathId, PortNo};
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};

use super::bounds::{self, ENTRIES_MAX, Flowspace, listed, narrower};

/// Bounds at one switch. `None`: as at the other switches of the capability.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchBounds {
    /// The packets.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub flowspace: Option<Flowspace>,
    /// The ports by which packets may leave, or that may be changed.
    #[serde(deserialize_with = "bounds::ports", skip_serializing_if = "Option::is_none")]
    pub ports: Option<BTreeSet<PortNo>>,
    /// The ports that are the app's alone.
    #[serde(deserialize_with = "own_ports", skip_serializing_if = "Option::is_none")]
    pub own_ports: Option<BTreeSet<PortNo>>,
}

/// Bounds by switch. It has 1 to [`ENTRIES_MAX`] switches.
pub type BySwitch = BTreeMap<DatapathId, SwitchBounds>;

/// Where a capability applies, and the packets and ports there.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The packets at switches without bounds of their own.
    pub flowspace: &'a Option<Flowspace>,
    /// The ports at those switches.
    pub ports: &'a Option<BTreeSet<PortNo>>,
    /// The ports that are the app's alone, at those switches.
    pub own_ports: &'a Option<BTreeSet<PortNo>>,
    /// The switches, besides those in `switches`. If both are `None`: all.
    pub datapaths: &'a Option<BTreeSet<DatapathId>>,
    /// The switches with bounds of their own.
    pub switches: &'a Option<BySwitch>,
}

/// The bounds at one switch, after those for all switches were filled in.
#[derive(Clone, Copy)]
struct Here<'a> {
    flowspace: Option<&'a Flowspace>,
    ports: Option<&'a BTreeSet<PortNo>>,
    own_ports: Option<&'a BTreeSet<PortNo>>,
}

impl Here<'_> {
    fn lies_within(&self, wider: &Here<'_>) -> bool {
        let may_send_all = |port: &PortNo| {
            wider.owns(port)
                || wider.flowspace.is_none() && wider.ports.is_none_or(|ports| ports.contains(port))
        };
        let ports = narrower(&self.ports, &wider.ports, |this, wider_ports| {
            this.iter().all(|port| wider_ports.contains(port) || wider.owns(port))
        });
        narrower(&self.flowspace, &wider.flowspace, |this, wider| this.lies_within(wider))
            && ports
            && self.own_ports.into_iter().flatten().all(may_send_all)
    }

    fn owns(&self, port: &PortNo) -> bool {
        self.own_ports.is_some_and(|ports| ports.contains(port))
    }
}

impl<'a> Scope<'a> {
    fn elsewhere(&self) -> Here<'a> {
        let Scope { flowspace, ports, own_ports, .. } = self;
        Here { flowspace: flowspace.as_ref(), ports: ports.as_ref(), own_ports: own_ports.as_ref() }
    }

    fn at(&self, datapath: DatapathId) -> Here<'a> {
        let elsewhere = self.elsewhere();
        let Some(here) = self.switches.as_ref().and_then(|switches| switches.get(&datapath)) else {
            return elsewhere;
        };
        Here {
            flowspace: here.flowspace.as_ref().or(elsewhere.flowspace),
            ports: here.ports.as_ref().or(elsewhere.ports),
            own_ports: here.own_ports.as_ref().or(elsewhere.own_ports),
        }
    }

    fn named(&self) -> impl Iterator<Item = DatapathId> + use<'a> {
        self.switches.iter().flat_map(|switches| switches.keys().copied())
    }

    /// All its switches; `None`: every switch.
    fn everywhere(&self) -> Option<BTreeSet<DatapathId>> {
        if self.datapaths.is_none() && self.switches.is_none() {
            return None;
        }
        Some(self.datapaths.iter().flatten().copied().chain(self.named()).collect())
    }

    /// Whether it allows nothing that `wider` does not allow.
    pub(super) fn lies_within(&self, wider: &Scope<'_>) -> bool {
        let everywhere = self.everywhere();
        if !narrower(&everywhere, &wider.everywhere(), BTreeSet::is_subset) {
            return false;
        }
        let named: BTreeSet<DatapathId> = self.named().chain(wider.named()).collect();
        let reaches = |datapath: &DatapathId| everywhere.as_ref().is_none_or(|all| all.contains(datapath));
        let reaches_others = everywhere.as_ref().is_none_or(|all| !all.is_subset(&named));
        let within_at = |datapath: &DatapathId| self.at(*datapath).lies_within(&wider.at(*datapath));
        (!reaches_others || self.elsewhere().lies_within(&wider.elsewhere()))
            && named.iter().filter(|datapath| reaches(datapath)).all(within_at)
    }

    /// The packets, for a sentence.
    pub(super) fn packets(&self) -> String {
        self.flowspace.as_ref().map(|flowspace| format!(" for packets of {flowspace}")).unwrap_or_default()
    }

    /// The ports to which packets may be sent, for a sentence.
    pub(super) fn output_ports(&self) -> String {
        self.ports.as_ref().map(|ports| format!(", to ports {}", listed(ports))).unwrap_or_default()
    }

    /// The ports of its own, for a sentence.
    pub(super) fn of_own_ports(&self) -> String {
        let own = self.own_ports.as_ref();
        own.map(|ports| format!(", any packets from and to its own ports {}", listed(ports)))
            .unwrap_or_default()
    }

    /// The switches and their own bounds, for the end of a sentence.
    pub(super) fn of_switches(&self) -> String {
        let all = self.everywhere().map(|all| format!(", of switches {}", listed(all))).unwrap_or_default();
        let own = self.switches.iter().flatten().map(|(datapath, here)| {
            let packets = here.flowspace.as_ref().map(|it| format!(" packets of {it}"));
            let ports = here.ports.as_ref().map(|it| format!(" ports {}", listed(it)));
            let own = here.own_ports.as_ref().map(|it| format!(" its own ports {}", listed(it)));
            let bounds: Vec<String> = [packets, ports, own].into_iter().flatten().collect();
            format!(", at {datapath}:{}", bounds.join(" and"))
        });
        own.fold(all, |text, one| text + &one)
    }
}

/// Reads ports of its own. A reserved port stands for others, so it cannot be one.
pub(super) fn own_ports<'de, D: Deserializer<'de>>(input: D) -> Result<Option<BTreeSet<PortNo>>, D::Error> {
    let ports = bounds::ports(input)?;
    match ports.iter().flatten().find(|port| **port > PortNo::MAX) {
        Some(port) => Err(D::Error::custom(format!("{port} cannot be an app's own port: write a number"))),
        None => Ok(ports),
    }
}

/// Reads the bounds of `packet.in`, which has no ports.
pub(super) fn without_ports<'de, D: Deserializer<'de>>(input: D) -> Result<Option<BySwitch>, D::Error> {
    let switches = with_all(input)?;
    let refused = switches.iter().flatten().find(|(_, here)| here.ports.is_some());
    refused.map_or(Ok(()), |(datapath, _)| {
        Err(D::Error::custom(format!(
            "{datapath} has `ports`, and packet.in has only `match` and `own_ports`"
        )))
    })?;
    Ok(switches)
}

/// Reads the bounds of `port.write`, which has no packets.
pub(super) fn only_ports<'de, D: Deserializer<'de>>(input: D) -> Result<Option<BySwitch>, D::Error> {
    let switches = with_all(input)?;
    let has_more = |here: &SwitchBounds| here.flowspace.is_some() || here.own_ports.is_some();
    let refused = switches.iter().flatten().find(|(_, here)| has_more(here));
    refused.map_or(Ok(()), |(datapath, _)| {
        Err(D::Error::custom(format!("{datapath} has more than `ports`, and port.write has only those")))
    })?;
    Ok(switches)
}

/// Reads the bounds of single switches.
pub(super) fn with_all<'de, D: Deserializer<'de>>(input: D) -> Result<Option<BySwitch>, D::Error> {
    let switches = BTreeMap::<String, SwitchBounds>::deserialize(input)?;
    match switches.len() {
        0 => return Err(D::Error::custom("the table is empty and would grant nothing: leave the key out")),
        count if count > ENTRIES_MAX => {
            return Err(D::Error::custom(format!(
                "{count} switches are more than the limit of {ENTRIES_MAX}"
            )));
        }
        _ => {}
    }
    let mut all = BySwitch::new();
    for (name, here) in switches {
        let datapath = name.parse().map_err(D::Error::custom)?;
        if all.insert(datapath, here).is_some() {
            return Err(D::Error::custom(format!("{datapath} is there twice")));
        }
    }
    Ok(Some(all))
}
