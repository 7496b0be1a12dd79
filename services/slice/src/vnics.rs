//! Which ports of VNICs the switches are to meter: those of VNICs that no agent shapes.
//!
//! ```text
//!   VNICs of the settings ─────────┐
//!   agents that are there, time ───┴──> Vnics ──> (port, meter it or not)
//! ```
//!
//! A VNIC with an agent gets a meter when the agent has been away for `AWAY_MS`, and loses it when the agent is there. If several VNICs are behind
//! one port, the meter has the sum of their rates. It goes when the agent of one of them is there.
//!
//! In: the settings, agents, and the time. Out: changes, and lines for the operator. It sends nothing and reads no clock.

use crate::settings::{EndSettings, VnicPortSettings};
use serde::{Deserialize, Serialize};
use slicer::{End, Shaping};
use std::collections::BTreeSet;
use std::fmt;

/// How long an agent must be away before the meter comes. Agents and the service dial again within this after a restart.
const AWAY_MS: u64 = 5_000;

/// What holds a VNIC to its rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShapedBy {
    /// The agent with this number.
    Agent(u32),
    /// The meter with this number in the physical switch.
    Meter(u32),
    /// It is not decided yet: why.
    Waits(String),
    /// Nothing: why.
    Nobody(String),
}

impl fmt::Display for ShapedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShapedBy::Agent(agent) => write!(f, "shaped by agent {agent}"),
            ShapedBy::Meter(meter) => write!(f, "shaped by meter {meter}"),
            ShapedBy::Waits(why) => write!(f, "unshaped for now: {why}"),
            ShapedBy::Nobody(why) => write!(f, "unshaped: {why}"),
        }
    }
}

/// A VNIC, for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VnicState {
    /// Its name.
    pub name: String,
    /// Its port, by the number that the tenant sees.
    pub port: u32,
    /// What holds it to its rate.
    pub shaped_by: ShapedBy,
}

/// A port behind which VNICs are.
#[derive(Debug)]
struct Port {
    of: VnicPortSettings,
    /// Since when none of its agents has been there. `None`: one is, or the service has not said it yet.
    away_since_ms: Option<u64>,
    is_metered: bool,
}

impl Port {
    fn wants_meter(&self, now_ms: u64) -> bool {
        let is_away = self.away_since_ms.is_some_and(|since_ms| now_ms.saturating_sub(since_ms) >= AWAY_MS);
        self.of.meter && (self.of.agents.is_empty() || is_away)
    }
}

/// All ports of VNICs.
#[derive(Debug)]
pub(crate) struct Vnics {
    ports: Vec<Port>,
    there: BTreeSet<u32>,
    /// A slice that only observes lays no meter.
    is_read_only: bool,
}

impl Vnics {
    /// `has_service`: whether the node has the service that knows agents. Without it, there are none.
    pub(crate) fn new(ports: &[VnicPortSettings], has_service: bool, is_read_only: bool) -> Vnics {
        let away_since_ms = (!has_service).then_some(0);
        let port = |of: &VnicPortSettings| Port { of: of.clone(), away_since_ms, is_metered: false };
        Vnics { ports: ports.iter().map(port).collect(), there: BTreeSet::new(), is_read_only }
    }

    /// These agents are there, and no others.
    pub(crate) fn on_agents(&mut self, there: &[u32], now_ms: u64) {
        self.there = there.iter().copied().collect();
        for port in &mut self.ports {
            let is_there = port.of.agents.iter().any(|agent| self.there.contains(agent));
            port.away_since_ms = if is_there { None } else { port.away_since_ms.or(Some(now_ms)) };
        }
    }

    /// The ports that are to be metered from now on, or no more.
    pub(crate) fn changes(&mut self, now_ms: u64) -> Vec<(End, bool)> {
        let mut changes = Vec::new();
        if self.is_read_only {
            return changes;
        }
        for port in &mut self.ports {
            let wanted = port.wants_meter(now_ms);
            if std::mem::replace(&mut port.is_metered, wanted) != wanted {
                changes.push((port.of.at.plan(), wanted));
            }
        }
        changes
    }

    /// The VNICs at a switch. `shaping`: how far the meter at a port is.
    pub(crate) fn at(
        &self,
        is_here: impl Fn(&EndSettings) -> bool,
        shaping: impl Fn(End) -> Option<Shaping>,
    ) -> Vec<VnicState> {
        let here = self.ports.iter().filter(|port| is_here(&port.of.at));
        let of_port = |port: &Port| {
            let shaped_by = self.shaped_by(port, shaping(port.of.at.plan()));
            let vnic = |name: &String| VnicState {
                name: name.clone(),
                port: port.of.at.shown_as.0,
                shaped_by: shaped_by.clone(),
            };
            port.of.vnics.iter().map(vnic).collect::<Vec<_>>()
        };
        here.flat_map(of_port).collect()
    }

    fn shaped_by(&self, port: &Port, shaping: Option<Shaping>) -> ShapedBy {
        let nobody = |why: &str| ShapedBy::Nobody(why.to_owned());
        if let Some(agent) = port.of.agents.iter().find(|agent| self.there.contains(agent)) {
            return ShapedBy::Agent(*agent);
        }
        if self.is_read_only {
            return nobody("the slice is read-only");
        }
        if !port.of.meter {
            return nobody("meter = false");
        }
        if !port.is_metered {
            return ShapedBy::Waits("its agent may come".to_owned());
        }
        match shaping {
            None => nobody("the slice has no more numbers for meters at this switch"),
            Some(Shaping::Off | Shaping::Waits) => ShapedBy::Waits("the switch has not answered".to_owned()),
            Some(Shaping::Meter(number)) => ShapedBy::Meter(number),
            Some(Shaping::NoMeters) => nobody("the switch has no meters"),
            Some(Shaping::Refused(error)) => {
                nobody(&format!("the switch refused the meter: error {}, code {}", error.kind, error.code))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{DatapathId, ErrorCode, PortNo};

    fn port(number: u32, agents: &[u32], meter: bool) -> VnicPortSettings {
        let at = EndSettings { datapath: DatapathId(1), shown_as: PortNo(number) };
        let vnics = vec![format!("V{number}")];
        VnicPortSettings { at, rate_kbps: 1_000, vnics, agents: agents.to_vec(), meter }
    }

    fn check(vnics: &mut Vnics, now_ms: u64, expected: &[(u32, bool)]) {
        let changes: Vec<_> = vnics.changes(now_ms).into_iter().map(|(at, is)| (at.port.0, is)).collect();
        assert_eq!(changes, expected, "at {now_ms}");
    }

    #[test]
    fn a_port_is_metered_while_none_of_its_agents_is_there() {
        let ports = [port(1, &[], true), port(2, &[7, 8], true), port(3, &[], false)];
        let mut vnics = Vnics::new(&ports, true, false);
        check(&mut vnics, 0, &[(1, true)]);
        // The service has not said yet who is there.
        check(&mut vnics, 60_000, &[]);
        vnics.on_agents(&[], 60_000);
        check(&mut vnics, 60_000 + AWAY_MS - 1, &[]);
        vnics.on_agents(&[9], 60_000 + AWAY_MS - 1);
        check(&mut vnics, 60_000 + AWAY_MS, &[(2, true)]);
        vnics.on_agents(&[8], 70_000);
        check(&mut vnics, 70_000, &[(2, false)]);
        // A service that is restarted knows no agent for a while.
        vnics.on_agents(&[], 80_000);
        vnics.on_agents(&[8], 81_000);
        check(&mut vnics, 90_000, &[]);
    }

    #[test]
    fn a_slice_that_only_observes_wants_no_meter() {
        let mut vnics = Vnics::new(&[port(1, &[], true), port(2, &[7], true)], true, true);
        vnics.on_agents(&[7], 0);
        check(&mut vnics, AWAY_MS, &[]);
        let shown: Vec<_> = vnics.at(|_| true, |_| None).into_iter().map(|vnic| vnic.shaped_by).collect();
        assert_eq!(shown, [ShapedBy::Nobody("the slice is read-only".to_owned()), ShapedBy::Agent(7)]);
    }

    #[test]
    fn without_the_service_no_agent_comes() {
        let mut vnics = Vnics::new(&[port(2, &[7], true)], false, false);
        check(&mut vnics, AWAY_MS, &[(2, true)]);
    }

    #[test]
    fn the_operator_sees_what_holds_a_vnic_to_its_rate_or_why_nothing_does() {
        let ports = [port(1, &[], true), port(2, &[7], true), port(3, &[], false)];
        let mut vnics = Vnics::new(&ports, true, false);
        let mut check = |agents: &[u32], now_ms: u64, shaping: Option<Shaping>, expected: [ShapedBy; 3]| {
            vnics.on_agents(agents, now_ms);
            vnics.changes(now_ms);
            let shown = vnics.at(|_| true, |_| shaping).into_iter().map(|vnic| vnic.shaped_by);
            assert_eq!(shown.collect::<Vec<_>>(), expected);
        };
        let nobody = |why: &str| ShapedBy::Nobody(why.to_owned());
        let waits = |why: &str| ShapedBy::Waits(why.to_owned());
        let off = nobody("meter = false");
        let refused = Shaping::Refused(ErrorCode { kind: 12, code: 10 });
        let why = nobody("the switch refused the meter: error 12, code 10");
        check(&[], 0, Some(refused), [why, waits("its agent may come"), off.clone()]);
        let none = nobody("the switch has no meters");
        check(&[7], 10, Some(Shaping::NoMeters), [none, ShapedBy::Agent(7), off.clone()]);
        check(
            &[],
            20,
            None,
            [
                nobody("the slice has no more numbers for meters at this switch"),
                waits("its agent may come"),
                off.clone(),
            ],
        );
        let meter = ShapedBy::Meter(64);
        check(&[], 20 + AWAY_MS, Some(Shaping::Meter(64)), [meter.clone(), meter, off]);
    }
}
