//! The kernel of the world, which compares each command of the slice with its grant.
//!
//! In: commands, and what the switch says of groups and meters. Out: nothing, or a test that ends: the kernel refuses none that the slice makes.

use super::*;

impl World {
    /// The kernel decides about a command as about that of an app. It refuses none that the slice makes.
    /// Returns the ticket by which the switch confirms a group or meter to the kernel.
    pub(super) fn pass_kernel(&mut self, ticket: u64, command: &Command) -> u64 {
        let mut bytes = Vec::new();
        assert!(slicer::abi_frames::write_command(&mut bytes, DATAPATH, ticket, false, command));
        let (frame, now_ms) = (abi::Frame::read(&bytes).unwrap(), self.now.as_millis() as u64);
        let zone = abi::ZoneId(OWNER as u16);
        match self.kernel.on_command(zone, &frame, now_ms, &mut Vec::new()) {
            kernel::Decision::Send(sent) => {
                let ticket = sent.ticket;
                self.kernel.on_sent();
                ticket
            }
            kernel::Decision::Refuse(refusal) => panic!("{refusal}: {command:?}"),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn settle(&mut self, ticket: u64, failed: bool) {
        let outcome = if failed { abi::Outcome::Failed } else { abi::Outcome::Programmed };
        let error = ErrorCode { kind: 0, code: 0 };
        self.kernel.on_receipt(&abi::Receipt { ticket, outcome, error, reason: "" });
    }

    /// Whether the kernel would let the slice do this, whatever the slicer says.
    pub fn is_granted(&mut self, flow_mod: FlowMod) -> bool {
        let mut bytes = Vec::new();
        let command = Command::FlowMod(flow_mod);
        assert!(slicer::abi_frames::write_command(&mut bytes, DATAPATH, 1, false, &command));
        let frame = abi::Frame::read(&bytes).unwrap();
        let decision = self.kernel.on_command(abi::ZoneId(OWNER as u16), &frame, 0, &mut Vec::new());
        let is_sent = matches!(decision, kernel::Decision::Send(_));
        if is_sent {
            self.kernel.on_sent();
        }
        is_sent
    }
}

/// A kernel with the zone of the slice: its packets, its ports, and the ports that no other slice has.
pub(super) fn kernel_of(plan: &SlicePlan, space: &[Match], on: Version) -> kernel::Kernel {
    let ports = &plan.switches[0].ports;
    let own = ports.iter().filter(|port| port.is_edge).map(|port| port.port);
    let isolation = &plan.isolation;
    // With a tag, a packet is the slice's by its tag. What enters at the edge has none, and is the slice's by its port.
    let flowspace = match isolation {
        Isolation::Vlan(tag) => vec![Match::any().with(Field::VlanVid, tag | 0x1000)],
        Isolation::Flowspace(_) => without_ports(space),
        Isolation::Address(addresses) => addresses.physical_packets().to_vec(),
    };
    let bounds = kernel::Bounds {
        flowspace: Some(flowspace),
        ports: Some(ports.iter().map(|port| port.port).chain([PortNo::TABLE]).collect()),
        own_ports: own.collect(),
        ..kernel::Bounds::default()
    };
    let grant = kernel::Grant::nothing().with(kernel::Capability::StatsRead);
    let grant = grant.with_packets_in(bounds.clone()).with_packets_out(bounds.clone());
    let mut kernel = kernel::Kernel::new(7);
    kernel.attach(abi::ZoneId(OWNER as u16), "blue", grant.with_rules(bounds), 0);
    let openflow = if on == Version::V1_0 { abi::OpenFlowVersion::V1_0 } else { abi::OpenFlowVersion::V1_3 };
    let up = abi::event::SwitchUp { datapath: DATAPATH, n_buffers: 0, n_tables: 1, openflow, ports: &[] };
    let mut bytes = Vec::new();
    abi::event::write::switch_up(&mut bytes, 1, &up);
    kernel.on_event(&abi::Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
    kernel.on_no_answer(DATAPATH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
    kernel
}

fn without_ports(space: &[Match]) -> Vec<Match> {
    let without = |it: &Match| {
        let mut it = it.clone();
        it.remove(Field::InPort);
        it
    };
    space.iter().map(without).collect()
}
