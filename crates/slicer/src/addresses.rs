//! The addresses of a slice: those that its tenant sees, and those that its packets have between switches.
//!
//! ```text
//!   10.0.0.7 of the tenant's 10.0.0.0/24 <──> 172.16.3.7 of the slice's 172.16.3.0/24
//! ```
//!
//! Both prefixes have the same length, and both addresses of a host the same lower bits. So a match with a mask stays one match.
//!
//! In: addresses, matches. Out: the same in the words of the other side, or none. It knows no rule, and reads no frame.

use flow::{DatapathId, Field, Match, MatchEntry, PortNo};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The most hosts of a slice. A rule that must rewrite open addresses becomes up to one piece for each pair of them.
pub const HOSTS_MAX: usize = 64;
/// The EtherTypes whose packets have addresses.
const ETH_IPV4: u16 = 0x0800;
const ETH_ARP: u16 = 0x0806;
/// Source and destination in packets of each of them.
const OF_IPV4: [Field; 2] = [Field::Ipv4Src, Field::Ipv4Dst];
const OF_ARP: [Field; 2] = [Field::ArpSpa, Field::ArpTpa];

/// The addresses of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPlan {
    /// The first address that the tenant sees.
    pub tenant: Ipv4Addr,
    /// The first address between switches.
    pub physical: Ipv4Addr,
    /// How many bits of both are fixed, 1 to 31.
    pub length: u8,
    /// The hosts.
    pub hosts: Vec<HostPlan>,
}

/// A host of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Its address, as the tenant sees it.
    pub address: Ipv4Addr,
    /// The switch.
    pub datapath: DatapathId,
    /// The port of the physical switch. It is an edge port.
    pub port: PortNo,
}

impl AddressPlan {
    /// The fixed bits.
    fn mask(&self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0)
    }

    /// Checks the plan by itself.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (tenant, physical, mask) = (u32::from(self.tenant), u32::from(self.physical), self.mask());
        if !(1..=31).contains(&self.length) {
            return Err(format!("a prefix of {} bits cannot be a slice's: write 1 to 31", self.length));
        }
        if tenant & !mask != 0 || physical & !mask != 0 {
            return Err(format!(
                "{}/{length} or {}/{length} has bits set beyond its length",
                self.tenant,
                self.physical,
                length = self.length
            ));
        }
        if tenant == physical {
            return Err(format!(
                "its hosts have addresses of {}/{} already: write isolation = \"flowspace\"",
                self.tenant, self.length
            ));
        }
        if self.hosts.len() > HOSTS_MAX {
            return Err(format!("{} hosts are more than {HOSTS_MAX}", self.hosts.len()));
        }
        let mut seen = BTreeSet::new();
        for host in &self.hosts {
            if self.to_physical(host.address.into()).is_none() {
                return Err(format!("host {} is outside {}/{}", host.address, self.tenant, self.length));
            }
            if !seen.insert(host.address) {
                return Err(format!("host {} is there twice", host.address));
            }
        }
        Ok(())
    }

    /// The address between switches of one that the tenant sees.
    pub(crate) fn to_physical(&self, address: u32) -> Option<u32> {
        moved(address, self.tenant, self.physical, self.mask())
    }

    /// The address that the tenant sees of one between switches.
    pub(crate) fn to_tenant(&self, address: u32) -> Option<u32> {
        moved(address, self.physical, self.tenant, self.mask())
    }

    /// The packets of the slice between switches.
    pub fn physical_packets(&self) -> [Match; 2] {
        self.packets(self.physical)
    }

    fn packets(&self, prefix: Ipv4Addr) -> [Match; 2] {
        let (prefix, mask) = (u32::from(prefix), self.mask());
        [(ETH_IPV4, OF_IPV4), (ETH_ARP, OF_ARP)].map(|(kind, [from, to])| {
            let packets = Match::any().with(Field::VlanVid, 0u16).with(Field::EthType, kind);
            packets.with_masked(from, prefix, mask).with_masked(to, prefix, mask).sorted()
        })
    }

    /// The packets of the slice that enter by an edge port.
    pub(crate) fn packets_from(&self, datapath: DatapathId, port: PortNo) -> Vec<Match> {
        let here = self.hosts.iter().filter(|host| host.datapath == datapath && host.port == port);
        let of_host = |host: &HostPlan| {
            let address = u32::from(host.address);
            let [ipv4, arp] = self.packets(self.tenant);
            [ipv4.with(Field::Ipv4Src, address).sorted(), arp.with(Field::ArpSpa, address).sorted()]
        };
        here.flat_map(of_host).collect()
    }

    /// A match of the tenant for packets between switches. `None`: none of the slice's packets there are within it.
    pub(crate) fn physical_match(&self, matching: &Match) -> Option<Match> {
        self.moved_match(matching, self.tenant, self.physical)
    }

    /// A match of packets between switches in the words of the tenant.
    pub(crate) fn tenant_match(&self, matching: &Match) -> Option<Match> {
        self.moved_match(matching, self.physical, self.tenant)
    }

    fn moved_match(&self, matching: &Match, from: Ipv4Addr, to: Ipv4Addr) -> Option<Match> {
        let (from, to, fixed) = (u32::from(from), u32::from(to), self.mask());
        let mut moved = Match::any();
        for entry in matching.entries() {
            match entry {
                MatchEntry::Field { field, value, mask } if is_address(*field) => {
                    let value = u32::try_from(*value).ok()?;
                    let mask = mask.map_or(Ok(u32::MAX), u32::try_from).ok()?;
                    if (value ^ from) & mask & fixed != 0 {
                        return None;
                    }
                    let free = mask & !fixed;
                    let (value, mask) = (u128::from(value & free | to), u128::from(free | fixed));
                    if mask == field.full_mask() {
                        moved.set(*field, value);
                    } else {
                        moved.set_masked(*field, value, mask);
                    }
                }
                other => moved.put(other.clone()),
            }
        }
        Some(moved)
    }
}

fn moved(address: u32, from: Ipv4Addr, to: Ipv4Addr, fixed: u32) -> Option<u32> {
    let is_within = (address ^ u32::from(from)) & fixed == 0;
    is_within.then(|| u32::from(to) | address & !fixed)
}

/// Whether a field has an address that is rewritten.
pub(crate) fn is_address(field: Field) -> bool {
    OF_IPV4.contains(&field) || OF_ARP.contains(&field)
}

/// The fields of source and destination of these packets, if their match says it.
pub(crate) fn fields_of(packets: &Match) -> Option<[Field; 2]> {
    match packets.get(Field::EthType) {
        Some((kind, 0xffff)) if kind == u128::from(ETH_IPV4) => Some(OF_IPV4),
        Some((kind, 0xffff)) if kind == u128::from(ETH_ARP) => Some(OF_ARP),
        _ => None,
    }
}

/// The one address that packets of a match have in a field.
pub(crate) fn exact_address(packets: &Match, field: Field) -> Option<u32> {
    let (value, mask) = packets.get(field)?;
    (mask == field.full_mask()).then(|| u32::try_from(value).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::text::{match_to_string, parse_match};

    fn plan() -> AddressPlan {
        let host = |last, port| HostPlan {
            address: Ipv4Addr::new(10, 0, 0, last),
            datapath: DatapathId(7),
            port: PortNo(port),
        };
        AddressPlan {
            tenant: Ipv4Addr::new(10, 0, 0, 0),
            physical: Ipv4Addr::new(172, 16, 3, 0),
            length: 24,
            hosts: vec![host(1, 2), host(2, 3)],
        }
    }

    fn check(tenant: &str, physical: Option<&str>) {
        let moved = plan().physical_match(&parse_match(tenant).unwrap());
        assert_eq!(moved.as_ref().map(match_to_string).as_deref(), physical, "{tenant}");
    }

    #[test]
    fn a_mask_of_the_tenant_is_one_mask_between_switches() {
        check("ip,nw_dst=10.0.0.7", Some("ip,nw_dst=172.16.3.7"));
        check("ip,nw_dst=10.0.0.128/25", Some("ip,nw_dst=172.16.3.128/25"));
        check("ip,nw_dst=10.0.0.0/8", Some("ip,nw_dst=172.16.3.0/24"));
        check("ip,nw_dst=0.0.0.1/0.0.0.1", Some("ip,nw_dst=172.16.3.1/255.255.255.1"));
        check("arp,arp_spa=10.0.0.7,arp_tpa=10.0.0.8", Some("arp,arp_spa=172.16.3.7,arp_tpa=172.16.3.8"));
        check("dl_type=0x1234,dl_dst=00:00:00:00:00:01", Some("dl_dst=00:00:00:00:00:01,dl_type=0x1234"));
    }

    #[test]
    fn other_addresses_are_no_packets_of_the_slice() {
        check("ip,nw_dst=10.0.1.7", None);
        check("ip,nw_dst=172.16.3.7", None);
        check("ip,nw_dst=10.0.1.0/255.255.1.0", None);
        assert_eq!((plan().to_physical(0x0a00_0107), plan().to_tenant(0x0a00_0007)), (None, None));
    }

    #[test]
    fn an_address_comes_back_as_it_was() {
        for address in 0x0a00_0000..0x0a00_0100 {
            assert_eq!(plan().to_physical(address).and_then(|it| plan().to_tenant(it)), Some(address));
        }
        let matching = parse_match("ip,nw_src=10.0.0.4/30,nw_dst=10.0.0.1").unwrap();
        let there = plan().physical_match(&matching).unwrap();
        assert_eq!(plan().tenant_match(&there), Some(matching.sorted()));
    }

    #[test]
    fn a_plan_that_cannot_be_is_refused() {
        let refused = |change: fn(&mut AddressPlan)| {
            let mut plan = plan();
            change(&mut plan);
            plan.check().unwrap_err()
        };
        assert_eq!(plan().check(), Ok(()));
        assert!(refused(|it| it.length = 32).contains("write 1 to 31"));
        assert!(refused(|it| it.length = 0).contains("write 1 to 31"));
        assert!(refused(|it| it.physical = Ipv4Addr::new(172, 16, 3, 1)).contains("beyond its length"));
        assert!(refused(|it| it.physical = it.tenant).contains("flowspace"));
        assert!(refused(|it| it.hosts = vec![it.hosts[0]; 65]).contains("more than 64"));
        assert!(refused(|it| it.hosts.push(it.hosts[0])).contains("twice"));
        assert!(refused(|it| it.hosts[0].address = Ipv4Addr::new(10, 0, 1, 1)).contains("is outside"));
    }
}
