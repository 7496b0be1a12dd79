//! Starts and stops flows between hosts, and makes the reports of both their ends.
//!
//! In: a flow's parameters. Out: its number, and reports. It never sends a packet: the hosts do.

use std::net::IpAddr;
use std::time::Duration;

use super::flow_list::{FLOWS_MAX, Flow, FlowId};
use super::{Network, NetworkEffects};
use crate::host::flow::{FlowRefused, FlowReport, FlowSpec, FlowState, IpVersion};
use crate::host::{FlowKey, Host};

/// The range of source ports of flows, as in Linux (`ip_local_port_range`).
const FIRST_PORT: u16 = 32_768;
const PORTS: u32 = 28_232;

impl Network {
    /// Starts a flow.
    ///
    /// # Errors
    ///
    /// A host does not exist, the parameters are invalid, or there are too many flows. Then nothing is started.
    pub fn start_flow(
        &mut self,
        spec: &FlowSpec,
        now: Duration,
        effects: &mut NetworkEffects,
    ) -> Result<FlowId, FlowRefused> {
        self.pass_to(now);
        let from = self.host_named(&spec.from).map_err(FlowRefused::Host)?;
        let to = self.host_named(&spec.to).map_err(FlowRefused::Host)?;
        if let Some(fault) = spec.fault() {
            return Err(fault);
        }
        if from == to {
            return Err(FlowRefused::ToItself);
        }
        self.make_room_for_a_flow()?;
        self.flow_list.begun += 1;
        let id = FlowId(self.flow_list.begun);
        let key = self.free_key(spec, from, to, id);
        let [isn, peer_isn] = [(); 2].map(|()| self.random.below(u32::MAX));
        self.at_host(to, effects, |host, _| host.expect_flow(key.reverse(), peer_isn));
        let now = self.clock;
        if self.is_host_up(from) {
            self.at_host(from, effects, |host, out| host.send_flow(key, spec, isn, now, out));
        }
        self.flow_list.flows.insert(id, Flow { spec: spec.clone(), from, to, key, began_at: now });
        Ok(id)
    }

    /// A key that no other flow between the two hosts has.
    fn free_key(&self, spec: &FlowSpec, from: usize, to: usize, id: FlowId) -> FlowKey {
        let address = |host: usize| -> IpAddr {
            let host = &self.hosts[host];
            match spec.ip {
                IpVersion::V4 => host.address().into(),
                IpVersion::V6 => host.global_v6().into(),
            }
        };
        let key = |offset: u64| FlowKey {
            kind: spec.kind,
            local: address(from),
            remote: address(to),
            // Less than the number of ports, which has 16 bits.
            local_port: FIRST_PORT + ((id.0 + offset) % u64::from(PORTS)) as u16,
            remote_port: spec.port,
        };
        // There are more ports than flows, so one is free.
        let keys = (0..=FLOWS_MAX as u64).map(key);
        keys.into_iter().find(|key| !self.hosts[from].has_flow(key)).unwrap_or(key(0))
    }

    fn make_room_for_a_flow(&mut self) -> Result<(), FlowRefused> {
        if self.flow_list.flows.len() < FLOWS_MAX {
            return Ok(());
        }
        let ids: Vec<FlowId> = self.flow_list.flows.keys().copied().collect();
        let is_over = |id: &FlowId| {
            let report = self.flow_report(*id);
            report.is_none_or(|report| !matches!(report.state, FlowState::Opening | FlowState::Running))
        };
        let over = ids.into_iter().find(is_over).ok_or(FlowRefused::TooMany)?;
        if let Some(flow) = self.flow_list.flows.remove(&over) {
            self.hosts[flow.from].forget_flow(&flow.key);
            self.hosts[flow.to].forget_flow(&flow.key.reverse());
        }
        Ok(())
    }

    /// Ends a flow. TCP still delivers what was already sent. Returns whether the flow exists.
    pub fn stop_flow(&mut self, id: FlowId, now: Duration, effects: &mut NetworkEffects) -> bool {
        self.pass_to(now);
        let Some((from, key)) = self.flow_list.flows.get(&id).map(|flow| (flow.from, flow.key)) else {
            return false;
        };
        let now = self.clock;
        self.at_host(from, effects, |host, out| host.stop_flow(&key, now, out));
        true
    }

    /// The result of a flow so far, or `None` if it does not exist.
    pub fn flow_report(&self, id: FlowId) -> Option<FlowReport> {
        let flow = self.flow_list.flows.get(&id)?;
        let mut report = FlowReport {
            spec: flow.spec.clone(),
            // A flow whose sender is off.
            state: FlowState::NoAnswer,
            began_at: flow.began_at,
            at: self.clock,
            sent_bytes: 0,
            delivered_bytes: 0,
            sent_packets: 0,
            delivered_packets: 0,
            retransmissions: 0,
            timeouts: 0,
            lost_packets: 0,
            round_trip: None,
            shortest_round_trip: None,
        };
        let host = |index: usize| -> Option<&Host> { self.hosts.get(index) };
        host(flow.from)?.report_flow(&flow.key, &mut report);
        host(flow.to)?.report_flow(&flow.key.reverse(), &mut report);
        Some(report)
    }

    /// The stored flows, in the order in which they began.
    pub fn flows(&self) -> impl Iterator<Item = FlowId> {
        self.flow_list.flows.keys().copied()
    }
}
