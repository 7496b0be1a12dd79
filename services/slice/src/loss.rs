//! What a slice loses, as a part of the operator's question: [`slicer::Loss`] without the reasons.
//!
//! In: one form. Out: the other. It compares nothing.

use flow::{DatapathId, PortNo};
use serde::{Deserialize, Serialize};
use slicer::{Loss, Lost};
use std::net::Ipv4Addr;

/// What a slice loses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossSettings {
    /// At these switches. No ports: all.
    switches: Vec<(DatapathId, Option<Vec<PortNo>>)>,
    /// Hosts of a slice with addresses.
    hosts: Vec<Ipv4Addr>,
}

impl LossSettings {
    /// This loss.
    pub fn of(loss: &Loss) -> LossSettings {
        let ports = |lost: &Lost| match lost {
            Lost::All(_) => None,
            Lost::Ports(ports) => Some(ports.iter().copied().collect()),
        };
        let switches = loss.switches.iter().map(|(datapath, lost)| (*datapath, ports(lost)));
        LossSettings { switches: switches.collect(), hosts: loss.hosts.iter().copied().collect() }
    }

    /// The switches that are lost as a whole.
    pub(crate) fn switches(&self) -> impl Iterator<Item = DatapathId> {
        self.switches.iter().filter(|(_, ports)| ports.is_none()).map(|(datapath, _)| *datapath)
    }

    pub(crate) fn loss(&self) -> Loss {
        let lost = |ports: &Option<Vec<PortNo>>| match ports {
            None => Lost::All(String::new()),
            Some(ports) => Lost::Ports(ports.iter().copied().collect()),
        };
        let switches = self.switches.iter().map(|(datapath, ports)| (*datapath, lost(ports)));
        Loss { switches: switches.collect(), hosts: self.hosts.iter().copied().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_the_same_behind_its_settings_but_for_the_reasons() {
        let switches = [
            (DatapathId(1), Lost::All(String::new())),
            (DatapathId(2), Lost::Ports([PortNo(3), PortNo(4)].into())),
        ];
        let loss = Loss { switches: switches.into(), hosts: [Ipv4Addr::new(10, 0, 0, 1)].into() };
        let json = serde_json::to_string(&LossSettings::of(&loss)).unwrap();
        let settings: LossSettings = serde_json::from_str(&json).unwrap();
        assert_eq!(settings.loss(), loss);
        assert_eq!(settings.switches().collect::<Vec<_>>(), [DatapathId(1)]);
    }
}
