//! The actions of a tenant as those of the physical switch.
//!
//! ```text
//!   actions (tenant's ports, undressed frames) ──> translate ──> actions (physical ports, dressed frames between switches), or the refusal
//! ```
//!
//! FLOOD and ALL become the slice's ports. NORMAL, LOCAL and other slices' ports are refused. With a tag, each output to a port between
//! switches has the tag, and each output to an edge port has none. With addresses, it is the same with those of the slice and of the tenant.
//! With a flowspace, packets stay within it, except at edge ports.
//! Actions of OpenFlow 1.0 become those of 1.3, because the kernel takes only these.
//!
//! In: the packets before the actions, and the actions. Out: actions. It keeps no state and sends nothing.

use crate::addresses::{AddressPlan, exact_address, fields_of, is_address};
use crate::discovery::PROBES;
use crate::port::VirtualPort;
use crate::refusal::*;
use crate::rule_table::Group;
use crate::space::{Space, VLAN_PRESENT};
use flow::relation::within;
use flow::rewrite::rewrite;
use flow::{Action, Field, Match, PortNo};
use openflow::Version;
use std::collections::BTreeMap;

/// The most actions that a list becomes. A flood to all ports of a slice has less.
pub(crate) const ACTIONS_MAX: usize = 1_024;
/// The whole packet, which the switch does not buffer (OFPCML_NO_BUFFER). The virtual switch buffers packets itself.
const WHOLE_PACKET: u16 = 0xffff;
const ETH_VLAN: u16 = 0x8100;
const ETH_PROVIDER: u16 = 0x88a8;
const ETH_IPV4: u128 = 0x0800;
const ETH_IPV6: u128 = 0x86dd;

/// What all translations for one virtual switch share.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    /// The slice's part of the switch.
    pub(crate) space: &'a Space,
    /// The tenant's groups.
    pub(crate) groups: &'a BTreeMap<u32, Group>,
    /// The version of the physical switch.
    pub(crate) on: Version,
}

/// The packets before the actions.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// The port by which they entered, as the tenant sees it, if there is one.
    pub(crate) in_port: Option<PortNo>,
    /// Whether they are dressed.
    pub(crate) is_dressed: bool,
    /// Their fields, as the physical switch sees them.
    pub(crate) known: Match,
}

/// Whether the actions of 1.0 have another form for packets with a tag than for those without.
pub(crate) fn depends_on_tag(actions: &[Action]) -> bool {
    let does =
        |action: &Action| matches!(action, Action::SetVlanVid(_) | Action::SetVlanPcp(_) | Action::StripVlan);
    actions.iter().any(does)
}

/// Whether packets have a tag, if their match says it.
pub(crate) fn has_tag(known: &Match) -> Option<bool> {
    let present = u128::from(VLAN_PRESENT);
    let (value, mask) = known.get(Field::VlanVid)?;
    (mask & present != 0).then_some(value & present != 0)
}

impl Scene<'_> {
    /// Translates a list of actions.
    pub(crate) fn translate(&self, start: Start, actions: &[Action]) -> Result<Vec<Action>, Refusal> {
        self.translate_if_known(start, actions)?.ok_or_else(|| {
            let why =
                "the match must give both addresses, because the actions rewrite them at the edge of the slice";
            Refusal::new(ACTION_ARGUMENT, why)
        })
    }

    /// The same. `None`: the actions must rewrite addresses, of which the packets leave one open.
    pub(crate) fn translate_if_known(
        &self,
        start: Start,
        actions: &[Action],
    ) -> Result<Option<Vec<Action>>, Refusal> {
        let mut walk = Walk {
            scene: self,
            at: start,
            out: Vec::new(),
            queued: false,
            changed: false,
            lacks_address: false,
        };
        let mut rest = actions;
        while let Some((action, behind)) = rest.split_first() {
            // Outputs in a row do not change the packet, so their order is free.
            let outputs = rest.iter().take_while(|action| matches!(action, Action::Output { .. })).count();
            rest = if outputs > 1 { &rest[outputs..] } else { behind };
            match outputs {
                0 | 1 => walk.take(action)?,
                count => walk.take_outputs(&actions[actions.len() - rest.len() - count..][..count])?,
            }
            if walk.out.len() > ACTIONS_MAX {
                let why = format!("the actions become more than {ACTIONS_MAX} in the physical switch");
                return Err(Refusal::new(ACTION_TOO_MANY, why));
            }
            if walk.lacks_address {
                return Ok(None);
            }
        }
        Ok(Some(walk.out))
    }
}

/// Where a packet goes.
struct Target {
    /// The physical port, IN_PORT or CONTROLLER.
    by: PortNo,
    max_len: u16,
    /// Whether the packet must be dressed there; `None`: either.
    dress: Option<bool>,
    /// Whether no other slice has the port.
    is_edge: bool,
}

/// A walk through a list.
struct Walk<'a> {
    scene: &'a Scene<'a>,
    at: Start,
    out: Vec<Action>,
    /// Whether an enqueue of 1.0 has set a queue, which 1.3 cannot unset.
    queued: bool,
    /// Whether the packets changed since they were last compared with the flowspace.
    changed: bool,
    /// Whether addresses must be rewritten that are not known.
    lacks_address: bool,
}

impl Walk<'_> {
    fn take(&mut self, action: &Action) -> Result<(), Refusal> {
        match action {
            Action::Output { .. } => self.take_outputs(std::slice::from_ref(action)),
            Action::Enqueue { port, .. } if *port > PortNo::MAX && *port != PortNo::IN_PORT => {
                Err(Refusal::new(ACTION_OUT_PORT, format!("port {port} has no queues")))
            }
            Action::Enqueue { port, queue_id } => {
                self.out.push(Action::SetQueue(*queue_id));
                self.queued = true;
                self.output(*port)
            }
            Action::SetQueue(_) => {
                self.out.push(action.clone());
                Ok(())
            }
            Action::Group(group) => self.group(*group),
            Action::SetField { field, value } => self.set_field(*field, *value),
            Action::PushVlan(_) | Action::PopVlan => self.tag(action),
            Action::PushMpls(_) | Action::PopMpls(_) => self.label(action),
            Action::CopyTtlOut | Action::CopyTtlIn | Action::SetMplsTtl(_) | Action::DecMplsTtl => {
                self.change(action.clone());
                Ok(())
            }
            Action::SetNwTtl(_) | Action::DecNwTtl => {
                self.change(action.clone());
                Ok(())
            }
            Action::PushPbb(_) | Action::PopPbb => {
                Err(Refusal::new(ACTION_TYPE, "a slice has no provider-backbone-bridge tags"))
            }
            Action::SetUnknownField { header, .. } => {
                Err(Refusal::new(ACTION_SET_TYPE, format!("field {header:#010x} is none of OpenFlow's")))
            }
            Action::Experimenter { experimenter, .. } => {
                let why = format!("actions of experimenter {experimenter:#010x} are unknown");
                Err(Refusal::new(ACTION_EXPERIMENTER, why))
            }
            _ => self.of_v10(action),
        }
    }

    /// Outputs in a row.
    fn take_outputs(&mut self, outputs: &[Action]) -> Result<(), Refusal> {
        let mut targets = Vec::new();
        for action in outputs {
            let Action::Output { port, .. } = action else { continue };
            if self.queued && *port != PortNo::CONTROLLER {
                return Err(Refusal::new(
                    ACTION_ARGUMENT,
                    "an output behind an enqueue cannot leave its queue",
                ));
            }
            targets.extend(self.targets(*port)?);
            if targets.len() > ACTIONS_MAX {
                break;
            }
        }
        self.send(targets)
    }

    /// An action that changes packets.
    fn change(&mut self, action: Action) {
        rewrite(&mut self.at.known, &action);
        self.changed = true;
        self.out.push(action);
    }

    fn set_field(&mut self, field: Field, value: u128) -> Result<(), Refusal> {
        let is_outside =
            matches!(field, Field::InPort | Field::InPhyPort | Field::Metadata | Field::TunnelId);
        let is_unsupported = matches!(field, Field::PbbIsid | Field::Ipv6Exthdr | Field::EthType);
        if is_outside || is_unsupported {
            return Err(Refusal::new(ACTION_SET_TYPE, format!("a slice cannot set {}", field.name())));
        }
        if matches!(field, Field::VlanVid | Field::VlanPcp) {
            self.check_own_tags()?;
        }
        let value = self.address_of(field, value)?;
        self.change(Action::SetField { field, value });
        Ok(())
    }

    /// The value of a field that the tenant sets. Its addresses are as the packet's are here.
    fn address_of(&self, field: Field, value: u128) -> Result<u128, Refusal> {
        let Some(addresses) = self.scene.space.addresses.as_ref().filter(|_| is_address(field)) else {
            return Ok(value);
        };
        let has_field = fields_of(&self.at.known).is_some_and(|fields| fields.contains(&field));
        if !has_field {
            let why = "the match must give the protocol of the addresses that an action changes";
            return Err(Refusal::new(ACTION_ARGUMENT, why));
        }
        let address = u32::try_from(value).ok();
        match address.and_then(|address| Some((address, addresses.to_physical(address)?))) {
            Some((_, physical)) if self.at.is_dressed => Ok(physical.into()),
            Some((address, _)) => Ok(address.into()),
            None => Err(Refusal::new(ACTION_EPERM, "the address is outside the slice's prefix")),
        }
    }

    fn tag(&mut self, action: &Action) -> Result<(), Refusal> {
        self.check_own_tags()?;
        self.change(action.clone());
        Ok(())
    }

    /// With a tag, the tenant's frames have none of their own.
    fn check_own_tags(&self) -> Result<(), Refusal> {
        match self.scene.space.tag {
            Some(_) => Err(Refusal::new(ACTION_EPERM, "the VLAN tags of this slice are the slice's own")),
            None => Ok(()),
        }
    }

    fn label(&mut self, action: &Action) -> Result<(), Refusal> {
        // What is behind a label could become a tag, which others take for theirs.
        if let Action::PopMpls(ETH_VLAN | ETH_PROVIDER) = action {
            return Err(Refusal::new(ACTION_EPERM, "no label of a slice may become a VLAN tag"));
        }
        if matches!(action, Action::PopMpls(kind) if PROBES.contains(kind)) {
            let why = "no packet of a slice may become a frame by which controllers find links";
            return Err(Refusal::new(ACTION_EPERM, why));
        }
        self.change(action.clone());
        Ok(())
    }

    fn group(&mut self, group: u32) -> Result<(), Refusal> {
        let Some(physical) = self.scene.groups.get(&group) else {
            return Err(Refusal::no_group(group));
        };
        // Buckets were translated for dressed frames, wherever those entered.
        self.set_dress(self.scene.space.has_dressed_ports())?;
        if self.lacks_address {
            return Ok(());
        }
        // By edge ports alone, which is where such a group sends, any packet may leave.
        if !self.scene.space.is_undressed() {
            self.check_within()?;
        }
        self.out.push(Action::Group(physical.physical));
        Ok(())
    }

    fn output(&mut self, port: PortNo) -> Result<(), Refusal> {
        let targets = self.targets(port)?;
        self.send(targets)
    }

    /// Where an output leads.
    fn targets(&self, port: PortNo) -> Result<Vec<Target>, Refusal> {
        let space = self.scene.space;
        match port {
            PortNo::CONTROLLER => {
                // Within the flowspace, packets of ports between switches are dressed, also on their way up. Packets of edge ports need not be,
                // as they came. Changed ones must be, because they could seem to be another slice's.
                let enters_at_edge = self.in_port().is_some_and(|port| port.plan.is_edge);
                let dress = (space.dresses() && (self.is_changed() || !enters_at_edge)).then_some(true);
                Ok(vec![Target { by: port, max_len: WHOLE_PACKET, dress, is_edge: false }])
            }
            PortNo::IN_PORT => match self.in_port() {
                Some(in_port) => Ok(self.target(in_port, port).into_iter().collect()),
                // A packet-out of no port: as in Open vSwitch, it goes nowhere.
                None => Ok(Vec::new()),
            },
            PortNo::FLOOD => Ok(self.flood(VirtualPort::floods)),
            PortNo::ALL => Ok(self.flood(VirtualPort::sends)),
            // The switch itself never sends a packet out of its input port, unless IN_PORT says so.
            port if Some(port) == self.at.in_port => Ok(Vec::new()),
            port => {
                let there = space.port_for_output(port)?;
                Ok(self.target(there, there.plan.port).into_iter().collect())
            }
        }
    }

    fn in_port(&self) -> Option<&VirtualPort> {
        self.scene.space.port(self.at.in_port?)
    }

    /// Whether the actions so far may have changed the packet.
    fn is_changed(&self) -> bool {
        let keeps = |action: &Action| {
            matches!(action, Action::Output { .. } | Action::Group(_) | Action::SetQueue(_))
        };
        !self.out.iter().all(keeps)
    }

    /// All wanted ports, except the input port.
    fn flood(&self, wanted: impl Fn(&VirtualPort) -> bool) -> Vec<Target> {
        let is_wanted = |port: &&VirtualPort| wanted(port) && Some(port.plan.shown_as) != self.at.in_port;
        let ports = self.scene.space.ports().filter(is_wanted);
        ports.filter_map(|port| self.target(port, port.plan.port)).collect()
    }

    /// One port of the slice, if it sends. `by` is the physical port, or IN_PORT.
    fn target(&self, port: &VirtualPort, by: PortNo) -> Option<Target> {
        let space = self.scene.space;
        let dress = space.dresses().then(|| space.is_dressed_at(port));
        port.sends().then_some(Target { by, max_len: 0, dress, is_edge: port.plan.is_edge })
    }

    /// Sends the packet as it is to several targets: first to those that take it dressed as it is now.
    fn send(&mut self, mut targets: Vec<Target>) -> Result<(), Refusal> {
        let is_dressed = self.at.is_dressed;
        self.leave_out_other_hosts(&mut targets);
        targets.sort_by_key(|target| target.dress.is_some_and(|dress| dress != is_dressed));
        for Target { by, max_len, dress, is_edge } in targets {
            if let Some(dress) = dress {
                self.set_dress(dress)?;
            }
            if self.lacks_address {
                return Ok(());
            }
            // Any packet may leave by a port that no other slice has.
            if !is_edge {
                self.check_within()?;
            }
            self.out.push(Action::Output { port: by, max_len });
        }
        Ok(())
    }

    /// Packets whose destination is known, and their source is not, cannot be undressed. They leave by an edge port only if their destination
    /// is there.
    fn leave_out_other_hosts(&self, targets: &mut Vec<Target>) {
        let Some(addresses) = self.scene.space.addresses.as_ref().filter(|_| self.at.is_dressed) else {
            return;
        };
        let Some([from, to]) = fields_of(&self.at.known) else { return };
        let (None, Some(to)) = (exact_address(&self.at.known, from), exact_address(&self.at.known, to))
        else {
            return;
        };
        let Some(to) = addresses.to_tenant(to) else { return };
        let back = self.in_port().map(|port| port.plan.port);
        let port_of = |target: &Target| if target.by == PortNo::IN_PORT { back } else { Some(target.by) };
        let is_there = |port| self.scene.space.is_host_at(port, to);
        targets.retain(|target| target.dress != Some(false) || port_of(target).is_some_and(is_there));
    }

    /// Dresses or undresses the frame, if it is not so already.
    fn set_dress(&mut self, wanted: bool) -> Result<(), Refusal> {
        if wanted == self.at.is_dressed || !self.scene.space.dresses() {
            return Ok(());
        }
        match self.scene.space.addresses.clone() {
            Some(addresses) => self.set_addresses(&addresses, wanted),
            None => self.set_tag(wanted),
        }
    }

    /// Rewrites both addresses of the packet.
    fn set_addresses(&mut self, addresses: &AddressPlan, wanted: bool) -> Result<(), Refusal> {
        let Some(fields) = fields_of(&self.at.known) else {
            return Err(Refusal::new(ACTION_EPERM, "the actions make packets without IPv4 addresses"));
        };
        let known = fields.map(|field| exact_address(&self.at.known, field));
        let [Some(from), Some(to)] = known else {
            self.lacks_address = true;
            return Ok(());
        };
        for (field, address) in fields.into_iter().zip([from, to]) {
            let other = if wanted { addresses.to_physical(address) } else { addresses.to_tenant(address) };
            let other = other
                .ok_or_else(|| Refusal::new(ACTION_EPERM, "an address is outside the slice's prefix"))?;
            self.change(Action::SetField { field, value: other.into() });
        }
        self.at.is_dressed = wanted;
        Ok(())
    }

    /// Pushes or pops the slice's tag.
    fn set_tag(&mut self, wanted: bool) -> Result<(), Refusal> {
        let Some(tag) = self.scene.space.tag else { return Ok(()) };
        // Behind a pop, 1.0 cannot tell a push from a change of the tag below.
        if wanted && self.scene.on == Version::V1_0 && has_tag(&self.at.known) != Some(false) {
            let why = "a switch of OpenFlow 1.0 cannot push the slice's tag again: first send to ports between switches";
            return Err(Refusal::new(ACTION_ARGUMENT, why));
        }
        self.at.is_dressed = wanted;
        let vlan = u128::from(tag | VLAN_PRESENT);
        let set = Action::SetField { field: Field::VlanVid, value: vlan };
        let steps = if wanted { vec![Action::PushVlan(ETH_VLAN), set] } else { vec![Action::PopVlan] };
        for step in steps {
            rewrite(&mut self.at.known, &step);
            self.out.push(step);
        }
        Ok(())
    }

    /// With a flowspace, the packets must be within it.
    fn check_within(&mut self) -> Result<(), Refusal> {
        let is_due = std::mem::take(&mut self.changed) && self.scene.space.tag.is_none();
        if !is_due {
            return Ok(());
        }
        // Packets of no port are compared without their port.
        let mut known = self.at.known.clone();
        let in_port = self.at.in_port;
        known.remove(Field::InPort);
        let space = self.scene.space;
        let here = space.entries().iter().filter(|entry| in_port.is_none_or(|it| it == entry.in_port));
        let spaces: Vec<Match> = match &space.addresses {
            Some(addresses) => addresses.physical_packets().to_vec(),
            None => here.map(|entry| without_port(&entry.matching)).collect(),
        };
        if within(&known, &spaces) {
            return Ok(());
        }
        Err(Refusal::new(ACTION_EPERM, "the actions make packets that are outside of the slice's flowspace"))
    }

    /// An action that only 1.0 has.
    fn of_v10(&mut self, action: &Action) -> Result<(), Refusal> {
        for step in self.steps_of_v10(action)? {
            if matches!(step, Action::SetField { field: Field::VlanVid | Field::VlanPcp, .. }) {
                self.check_own_tags()?;
            }
            let step = match step {
                Action::SetField { field, value } => {
                    Action::SetField { field, value: self.address_of(field, value)? }
                }
                other => other,
            };
            self.change(step);
        }
        Ok(())
    }

    /// The actions of 1.3 for an action of 1.0. In 1.0, an action without its header does nothing, and 1.3 refuses it: then none.
    fn steps_of_v10(&self, action: &Action) -> Result<Vec<Action>, Refusal> {
        let set = |field, value: u128| vec![Action::SetField { field, value }];
        if depends_on_tag(std::slice::from_ref(action)) {
            self.check_tag_is_known()?;
        }
        Ok(match action {
            Action::SetEthSrc(address) => set(Field::EthSrc, address.to_u64().into()),
            Action::SetEthDst(address) => set(Field::EthDst, address.to_u64().into()),
            Action::SetIpv4Src(address) => {
                self.of_ip(&[ETH_IPV4], Field::Ipv4Src, u32::from(*address).into())?
            }
            Action::SetIpv4Dst(address) => {
                self.of_ip(&[ETH_IPV4], Field::Ipv4Dst, u32::from(*address).into())?
            }
            Action::SetIpTos(tos) => {
                self.of_ip(&[ETH_IPV4, ETH_IPV6], Field::IpDscp, u128::from(tos >> 2))?
            }
            Action::SetTransportSrc(port) => {
                self.of_transport([Field::TcpSrc, Field::UdpSrc, Field::SctpSrc], *port)?
            }
            Action::SetTransportDst(port) => {
                self.of_transport([Field::TcpDst, Field::UdpDst, Field::SctpDst], *port)?
            }
            // The frames of such a slice have no tag for their tenant.
            Action::StripVlan if self.scene.space.tag.is_some() => Vec::new(),
            Action::StripVlan if has_tag(&self.at.known) == Some(false) => Vec::new(),
            Action::StripVlan => vec![Action::PopVlan],
            Action::SetVlanVid(vid) if *vid < VLAN_PRESENT => {
                self.with_tag(Action::SetField { field: Field::VlanVid, value: (*vid | VLAN_PRESENT).into() })
            }
            Action::SetVlanPcp(pcp) if *pcp < 8 => {
                self.with_tag(Action::SetField { field: Field::VlanPcp, value: (*pcp).into() })
            }
            _ => return Err(Refusal::new(ACTION_ARGUMENT, "the value of an action is out of its range")),
        })
    }

    /// In 1.3, an action on a tag is for packets that certainly have one. Behind a stripped tag there may be another.
    fn check_tag_is_known(&self) -> Result<(), Refusal> {
        let is_open = self.scene.space.tag.is_none() && has_tag(&self.at.known).is_none();
        if is_open && self.scene.on != Version::V1_0 {
            let why = "whether the packets still have a VLAN tag is open, and a switch of 1.3 must know";
            return Err(Refusal::new(ACTION_ARGUMENT, why));
        }
        Ok(())
    }

    /// A field of the tag. A frame without a tag gets one.
    fn with_tag(&self, set: Action) -> Vec<Action> {
        let is_untagged = has_tag(&self.at.known) == Some(false);
        if is_untagged && self.scene.space.tag.is_none() {
            vec![Action::PushVlan(ETH_VLAN), set]
        } else {
            vec![set]
        }
    }

    /// A field of an IP packet with one of these EtherTypes.
    fn of_ip(&self, kinds: &[u128], field: Field, value: u128) -> Result<Vec<Action>, Refusal> {
        let is_there = self.at.known.get(Field::EthType).map(|(kind, _)| kinds.contains(&kind));
        self.if_there(is_there, Action::SetField { field, value })
    }

    /// A port of TCP, UDP or SCTP.
    fn of_transport(&self, [tcp, udp, sctp]: [Field; 3], port: u16) -> Result<Vec<Action>, Refusal> {
        let value = u128::from(port);
        let known = &self.at.known;
        let is_ip = known.get(Field::EthType).map(|(kind, _)| kind == ETH_IPV4 || kind == ETH_IPV6);
        let proto = known.get(Field::IpProto).map(|(proto, _)| proto);
        let (is_there, field) = match (is_ip, proto) {
            (Some(false), _) => (Some(false), tcp),
            (_, Some(6)) => (Some(true), tcp),
            (_, Some(17)) => (Some(true), udp),
            (_, Some(132)) => (Some(true), sctp),
            (_, Some(_)) => (Some(false), tcp),
            (_, None) => (None, tcp),
        };
        self.if_there(is_there, Action::SetField { field, value })
    }

    /// `is_there`: whether the packets have the field, if their match says it. A switch of 1.0 finds out by itself.
    fn if_there(&self, is_there: Option<bool>, set: Action) -> Result<Vec<Action>, Refusal> {
        match is_there {
            Some(true) => Ok(vec![set]),
            Some(false) => Ok(Vec::new()),
            None if self.scene.on == Version::V1_0 => Ok(vec![set]),
            None => {
                let why = "the match must give the protocol of the header that an action changes";
                Err(Refusal::new(ACTION_ARGUMENT, why))
            }
        }
    }
}

fn without_port(space: &Match) -> Match {
    let mut space = space.clone();
    space.remove(Field::InPort);
    space
}
