//! The VNICs of a network: which slice and agent each belongs to, its address, and its guaranteed rate.
//!
//! In: a list of VNICs. Out: a [`Directory`], which finds a VNIC by number or by address, or the reason why the list is wrong.
//! It never changes: a new list is a new directory.

use flow::MacAddr;
use std::collections::BTreeMap;
use std::fmt;

/// The most VNICs of a directory. A longer list is refused: each VNIC takes an element of a set in the kernel and memory here.
pub const VNICS_MAX: usize = 16_384;

/// The most VNICs of one agent. Each takes three classes and two filters; more are refused.
pub const VNICS_OF_AGENT_MAX: usize = 250;

/// The highest rate that is accepted: a terabit a second. A higher one is a mistake, and would overflow sums.
pub const RATE_MAX_BPS: u64 = 1_000_000_000_000;

/// The number of a VNIC, unique in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VnicId(pub u32);

/// The number of an agent, unique in the network. The label service has one too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(pub u32);

/// The number of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SliceId(pub u32);

/// How frames of a VNIC look on the wire: the VLAN id of its slice, if the frames have a tag, and its MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// From 1 to 4,094.
    pub vlan: Option<u16>,
    /// The MAC address.
    pub mac: MacAddr,
}

/// A VNIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vnic {
    /// Its number.
    pub id: VnicId,
    /// Its slice. Traffic is between VNICs of one slice.
    pub slice: SliceId,
    /// The agent of its server. None: nobody meters or shapes it.
    pub agent: Option<AgentId>,
    /// Its address.
    pub address: Address,
    /// Its rate in bits a second, in each direction (hose model). It is a guarantee, and spare capacity is lent.
    pub guarantee_bps: u64,
    /// Whether the guarantee is a cap too, so that nothing is lent to it.
    pub strict: bool,
}

/// All packets from one VNIC to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// Where the packets are from.
    pub sender: VnicId,
    /// Where the packets go.
    pub receiver: VnicId,
}

impl fmt::Display for VnicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VNIC {}", self.0)
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent {}", self.0)
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.sender, self.receiver)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.vlan {
            Some(vlan) => write!(f, "{} in VLAN {vlan}", self.mac),
            None => write!(f, "{} untagged", self.mac),
        }
    }
}

/// Why a list of VNICs is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadDirectory {
    /// More than [`VNICS_MAX`].
    TooMany(usize),
    /// More than [`VNICS_OF_AGENT_MAX`] on one server.
    TooManyOfAgent(AgentId),
    /// Two VNICs have this number.
    NumberTwice(VnicId),
    /// Two VNICs have the same address.
    AddressTwice(VnicId, VnicId, Address),
    /// The VLAN id is not from 1 to 4,094.
    BadVlan(VnicId, u16),
    /// The address is not that of one interface.
    BadMac(VnicId, MacAddr),
    /// The rate is 0 or above [`RATE_MAX_BPS`].
    BadRate(VnicId, u64),
}

impl fmt::Display for BadDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadDirectory::TooMany(count) => write!(f, "{count} VNICs; at most {VNICS_MAX} are possible"),
            BadDirectory::TooManyOfAgent(agent) => {
                write!(f, "{agent} has more than {VNICS_OF_AGENT_MAX} VNICs")
            }
            BadDirectory::NumberTwice(vnic) => write!(f, "{vnic} is there twice: give each VNIC its number"),
            BadDirectory::AddressTwice(first, second, address) => {
                write!(f, "{first} and {second} have the same address, {address}")
            }
            BadDirectory::BadVlan(vnic, vlan) => {
                write!(f, "{vnic}: VLAN {vlan} is not possible; it must be from 1 to 4094")
            }
            BadDirectory::BadMac(vnic, mac) => write!(f, "{vnic}: {mac} is not the address of one interface"),
            BadDirectory::BadRate(vnic, rate) => {
                write!(f, "{vnic}: a rate of {rate} b/s is not possible; it must be from 1 to {RATE_MAX_BPS}")
            }
        }
    }
}

impl std::error::Error for BadDirectory {}

/// The VNICs of the network that an agent needs to know: its own, and those that exchange traffic with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    by_id: BTreeMap<VnicId, Vnic>,
    by_address: BTreeMap<Address, VnicId>,
}

impl Directory {
    /// Checks a list of VNICs.
    ///
    /// # Errors
    ///
    /// The first VNIC that cannot be, or that collides with an earlier one.
    pub fn new(vnics: impl IntoIterator<Item = Vnic>) -> Result<Self, BadDirectory> {
        let mut directory = Directory::default();
        let mut of_agent: BTreeMap<AgentId, usize> = BTreeMap::new();
        for vnic in vnics {
            check(&vnic)?;
            if let Some(agent) = vnic.agent {
                let count = of_agent.entry(agent).or_default();
                *count += 1;
                if *count > VNICS_OF_AGENT_MAX {
                    return Err(BadDirectory::TooManyOfAgent(agent));
                }
            }
            if directory.by_id.insert(vnic.id, vnic).is_some() {
                return Err(BadDirectory::NumberTwice(vnic.id));
            }
            if let Some(other) = directory.by_address.insert(vnic.address, vnic.id) {
                return Err(BadDirectory::AddressTwice(other, vnic.id, vnic.address));
            }
        }
        match directory.by_id.len() {
            count if count > VNICS_MAX => Err(BadDirectory::TooMany(count)),
            _ => Ok(directory),
        }
    }

    /// The VNIC with this number.
    pub fn get(&self, id: VnicId) -> Option<&Vnic> {
        self.by_id.get(&id)
    }

    /// The VNIC with this address.
    pub fn at(&self, address: Address) -> Option<&Vnic> {
        self.by_address.get(&address).and_then(|id| self.by_id.get(id))
    }

    /// All VNICs, by their numbers.
    pub fn vnics(&self) -> impl Iterator<Item = &Vnic> {
        self.by_id.values()
    }

    /// The VNICs on the server of this agent.
    pub fn of_agent(&self, agent: AgentId) -> impl Iterator<Item = &Vnic> {
        self.vnics().filter(move |vnic| vnic.agent == Some(agent))
    }

    /// Both ends of a flow: sender and receiver, if both exist and are in the same slice.
    pub fn ends(&self, flow: Flow) -> Option<(&Vnic, &Vnic)> {
        let (sender, receiver) = (self.get(flow.sender)?, self.get(flow.receiver)?);
        (sender.slice == receiver.slice && sender.id != receiver.id).then_some((sender, receiver))
    }

    /// The flow of frames from one address to another.
    pub fn flow(&self, vlan: Option<u16>, from: MacAddr, to: MacAddr) -> Option<Flow> {
        let sender = self.at(Address { vlan, mac: from })?.id;
        let receiver = self.at(Address { vlan, mac: to })?.id;
        Some(Flow { sender, receiver }).filter(|flow| self.ends(*flow).is_some())
    }
}

fn check(vnic: &Vnic) -> Result<(), BadDirectory> {
    if let Some(vlan) = vnic.address.vlan
        && !(1..=4094).contains(&vlan)
    {
        return Err(BadDirectory::BadVlan(vnic.id, vlan));
    }
    let mac = vnic.address.mac;
    // The lowest bit of the first byte is that of groups (IEEE 802).
    if mac.0[0] & 1 != 0 || mac.0 == [0; 6] {
        return Err(BadDirectory::BadMac(vnic.id, mac));
    }
    if !(1..=RATE_MAX_BPS).contains(&vnic.guarantee_bps) {
        return Err(BadDirectory::BadRate(vnic.id, vnic.guarantee_bps));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vnic(id: u32) -> Vnic {
        let [_, _, _, high, low, last] = [0, 0, 0, 0, (id >> 8) as u8, id as u8];
        Vnic {
            id: VnicId(id),
            slice: SliceId(1),
            agent: Some(AgentId(1)),
            address: Address { vlan: None, mac: MacAddr([2, 0, 0, high, low, last]) },
            guarantee_bps: 1_000_000,
            strict: false,
        }
    }

    #[test]
    fn a_wrong_list_is_refused_with_the_vnic() {
        let check = |vnics: Vec<Vnic>, expected: &str| {
            assert_eq!(Directory::new(vnics).unwrap_err().to_string(), expected);
        };
        check(vec![vnic(1), vnic(1)], "VNIC 1 is there twice: give each VNIC its number");
        check(
            vec![vnic(1), Vnic { id: VnicId(2), ..vnic(1) }],
            "VNIC 1 and VNIC 2 have the same address, 02:00:00:00:00:01 untagged",
        );
        let tagged = |vlan| Address { vlan: Some(vlan), ..vnic(3).address };
        check(
            vec![Vnic { address: tagged(4095), ..vnic(3) }],
            "VNIC 3: VLAN 4095 is not possible; it must be from 1 to 4094",
        );
        check(
            vec![Vnic { guarantee_bps: 0, ..vnic(4) }],
            "VNIC 4: a rate of 0 b/s is not possible; it must be from 1 to 1000000000000",
        );
        let group = Address { vlan: None, mac: MacAddr([1, 0, 0, 0, 0, 1]) };
        check(
            vec![Vnic { address: group, ..vnic(5) }],
            "VNIC 5: 01:00:00:00:00:01 is not the address of one interface",
        );
        check((1..=251).map(vnic).collect(), "agent 1 has more than 250 VNICs");
        let foreign = |id| Vnic { agent: None, ..vnic(id) };
        check((1..=16_385).map(foreign).collect(), "16385 VNICs; at most 16384 are possible");
    }

    #[test]
    fn the_same_address_in_two_vlans_is_two_vnics() {
        let in_vlan = |id, vlan| Vnic {
            id: VnicId(id),
            address: Address { vlan: Some(vlan), ..vnic(1).address },
            ..vnic(1)
        };
        let directory = Directory::new([in_vlan(1, 10), in_vlan(2, 20)]).unwrap();
        let found = |vlan| directory.at(Address { vlan, ..vnic(1).address }).map(|vnic| vnic.id.0);
        assert_eq!(
            [found(Some(10)), found(Some(20)), found(Some(30)), found(None)],
            [Some(1), Some(2), None, None]
        );
    }

    #[test]
    fn a_flow_stays_in_its_slice() {
        let other = Vnic { slice: SliceId(2), ..vnic(3) };
        let directory = Directory::new([vnic(1), vnic(2), other]).unwrap();
        let flow = |from: u32, to: u32| {
            let mac = |id| vnic(id).address.mac;
            directory.flow(None, mac(from), mac(to)).map(|flow| (flow.sender.0, flow.receiver.0))
        };
        assert_eq!([flow(1, 2), flow(1, 3), flow(1, 1), flow(1, 9)], [Some((1, 2)), None, None, None]);
    }
}
