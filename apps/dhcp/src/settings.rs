//! What the operator sets: the server's address, pools and static leases.
//!
//! In: JSON. Out: checked values, or a sentence that names the setting. It gives no address away.

use burnet_sdk::MacAddr;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The most addresses of a pool: a /16. A larger one is refused.
pub const POOL_MAX: u32 = 65_536;

/// The most pools and static leases. With more, the app refuses to start.
pub const POOLS_MAX: usize = 256;
/// See [`POOLS_MAX`].
pub const STATIC_MAX: usize = 10_000;

/// The settings as they are written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    server: Ipv4Addr,
    #[serde(default = "default_mac")]
    mac: MacAddr,
    pools: Vec<WrittenPool>,
    #[serde(default)]
    leases: Vec<StaticLease>,
    #[serde(default = "default_per_port")]
    leases_per_port: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPool {
    network: String,
    first: Ipv4Addr,
    last: Ipv4Addr,
    vlan: Option<u16>,
    gateway: Option<Ipv4Addr>,
    #[serde(default)]
    dns: Vec<Ipv4Addr>,
    domain: Option<String>,
    #[serde(default = "default_lease_s")]
    lease_s: u32,
}

/// An address that one client always gets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StaticLease {
    mac: MacAddr,
    address: Ipv4Addr,
}

/// Locally administered.
fn default_mac() -> MacAddr {
    MacAddr([0x02, 0x62, 0x75, 0x72, 0x6e, 0x43])
}

/// An hour: short enough that addresses of hosts that have gone come back, and renewals are rare.
fn default_lease_s() -> u32 {
    3_600
}

/// A wireless network behind one port.
fn default_per_port() -> usize {
    256
}

/// The checked settings.
#[derive(Clone, Debug)]
pub struct DhcpSettings {
    /// The server's address, which clients renew at.
    pub server: Ipv4Addr,
    /// The server's Ethernet address.
    pub mac: MacAddr,
    /// One pool for each VLAN. `None`: untagged frames.
    pub pools: BTreeMap<Option<u16>, Pool>,
    /// The most addresses that clients at one port hold.
    pub leases_per_port: usize,
}

/// The addresses of one network, and what its clients are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The network's address.
    pub network: Ipv4Addr,
    /// Its mask.
    pub mask: Ipv4Addr,
    /// The first address that it gives away.
    pub first: Ipv4Addr,
    /// The last one.
    pub last: Ipv4Addr,
    /// The router.
    pub gateway: Option<Ipv4Addr>,
    /// Name servers.
    pub dns: Vec<Ipv4Addr>,
    /// The domain of its hosts.
    pub domain: Option<String>,
    /// How long a lease lasts.
    pub lease_s: u32,
    /// Addresses that one client always gets.
    pub fixed: BTreeMap<MacAddr, Ipv4Addr>,
}

impl Pool {
    /// Whether the address is in the network.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        address.to_bits() & self.mask.to_bits() == self.network.to_bits()
    }
}

impl DhcpSettings {
    /// Reads and checks the settings.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn read(settings: &burnet_sdk::Settings) -> Result<DhcpSettings, String> {
        let Written { server, mac, pools, leases, leases_per_port } = settings.read()?;
        if mac.is_multicast() || mac.0 == [0; 6] {
            return Err(format!("mac = {mac}: it is no address of a single station"));
        }
        if pools.is_empty() || pools.len() > POOLS_MAX {
            return Err(format!("pools: there are {}; write 1 to {POOLS_MAX}", pools.len()));
        }
        if leases.len() > STATIC_MAX {
            return Err(format!("leases: there are {}; at most {STATIC_MAX} can be", leases.len()));
        }
        let mut by_vlan = BTreeMap::new();
        for written in pools {
            let vlan = written.vlan;
            if by_vlan.insert(vlan, check_pool(written, server)?).is_some() {
                return Err(format!("pools: two are for {}", vlan_words(vlan)));
            }
        }
        check_apart(&by_vlan)?;
        add_fixed(&mut by_vlan, leases, server)?;
        Ok(DhcpSettings { server, mac, pools: by_vlan, leases_per_port })
    }
}

fn vlan_words(vlan: Option<u16>) -> String {
    vlan.map_or("untagged frames".to_owned(), |vlan| format!("VLAN {vlan}"))
}

fn check_pool(written: WrittenPool, server: Ipv4Addr) -> Result<Pool, String> {
    let WrittenPool { network: text, first, last, vlan, gateway, dns, domain, lease_s } = written;
    let (network, mask) = read_network(&text)?;
    if vlan.is_some_and(|vlan| !(1..=4094).contains(&vlan)) {
        return Err(format!("pools: vlan = {}: write 1 to 4094", vlan.unwrap_or_default()));
    }
    let pool = Pool { network, mask, first, last, gateway, dns, domain, lease_s, fixed: BTreeMap::new() };
    let broadcast = network.to_bits() | !mask.to_bits();
    let is_of_a_host = |it: Ipv4Addr| pool.contains(it) && it != network && it.to_bits() != broadcast;
    if !is_of_a_host(first) || !is_of_a_host(last) || first > last {
        return Err(format!("pools: {first} to {last} is no range of hosts in {text}"));
    }
    if last.to_bits() - first.to_bits() >= POOL_MAX {
        return Err(format!("pools: {first} to {last} has more than {POOL_MAX} addresses"));
    }
    let not_given = gateway.into_iter().chain([server]);
    if let Some(own) = not_given.into_iter().find(|own| (first..=last).contains(own)) {
        return Err(format!(
            "pools: {own} is the server's or the gateway's address, and within {first} to {last}"
        ));
    }
    if !(60..=31_536_000).contains(&lease_s) {
        return Err(format!("pools: lease_s = {lease_s}: write a minute to a year"));
    }
    // Longer lists do not fit into an option (RFC 2132, 3.8 and 3.17).
    if pool.dns.len() > 16
        || pool.domain.as_ref().is_some_and(|domain| domain.is_empty() || domain.len() > 253)
    {
        return Err(format!("pools: {text} has more than 16 name servers, or a domain that is no domain"));
    }
    Ok(pool)
}

fn read_network(text: &str) -> Result<(Ipv4Addr, Ipv4Addr), String> {
    let wrong = || {
        format!("pools: network = {text:?}: write ADDRESS/BITS, such as \"10.0.0.0/24\", with 8 to 30 bits")
    };
    let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
    let address: Ipv4Addr = address.parse().map_err(|_| wrong())?;
    let bits: u32 = bits.parse().map_err(|_| wrong())?;
    if !(8..=30).contains(&bits) {
        return Err(wrong());
    }
    let mask = Ipv4Addr::from_bits(u32::MAX << (32 - bits));
    match address.to_bits() & !mask.to_bits() {
        0 => Ok((address, mask)),
        _ => Err(wrong()),
    }
}

/// A key in the store is an address, so no address can be in two pools.
fn check_apart(pools: &BTreeMap<Option<u16>, Pool>) -> Result<(), String> {
    let mut by_first: Vec<&Pool> = pools.values().collect();
    by_first.sort_by_key(|pool| pool.first);
    match by_first.windows(2).find(|pair| pair[0].last >= pair[1].first) {
        None => Ok(()),
        Some(pair) => {
            Err(format!("pools: {} and {} have addresses in common", pair[0].network, pair[1].network))
        }
    }
}

fn add_fixed(
    pools: &mut BTreeMap<Option<u16>, Pool>,
    leases: Vec<StaticLease>,
    server: Ipv4Addr,
) -> Result<(), String> {
    let mut given = BTreeSet::from([server]);
    given.extend(pools.values().filter_map(|pool| pool.gateway));
    for StaticLease { mac, address } in leases {
        let Some(pool) = pools.values_mut().find(|pool| pool.contains(address)) else {
            return Err(format!("leases: {address} is in no pool's network"));
        };
        if !given.insert(address) {
            return Err(format!("leases: {address} is given twice, or is the server's or a gateway's"));
        }
        if pool.fixed.insert(mac, address).is_some() {
            return Err(format!("leases: {mac} has two addresses in {}", pool.network));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::Settings;

    #[test]
    fn a_wrong_setting_is_refused_with_its_text() {
        let check = |pool: &str, rest: &str, part: &str| {
            let json = format!("{{\"server\": \"10.0.0.1\", \"pools\": [{{{pool}}}]{rest}}}");
            let why =
                DhcpSettings::read(&Settings::from_json(json.as_bytes()).unwrap()).err().unwrap_or_default();
            assert!(why.contains(part) && why.is_empty() == part.is_empty(), "{json}: {why}");
        };
        let pool = |network: &str, first: &str, last: &str| {
            format!("\"network\": \"{network}\", \"first\": \"{first}\", \"last\": \"{last}\"")
        };
        let good = pool("10.0.0.0/24", "10.0.0.100", "10.0.0.199");
        check("", "", "missing field `network`");
        check(&good, ", \"lease\": []", "unknown field `lease`");
        for network in ["10.0.0.0", "10.0.0.1/24", "10.0.0.0/31", "10.0.0.0/7", "x/24"] {
            check(&pool(network, "10.0.0.100", "10.0.0.199"), "", "write ADDRESS/BITS");
        }
        check(&pool("10.0.0.0/24", "10.0.1.1", "10.0.1.2"), "", "no range of hosts");
        check(&pool("10.0.0.0/24", "10.0.0.9", "10.0.0.8"), "", "no range of hosts");
        check(&pool("10.0.0.0/24", "10.0.0.9", "10.0.0.255"), "", "no range of hosts");
        check(&pool("10.0.0.0/24", "10.0.0.1", "10.0.0.9"), "", "10.0.0.1 is the server's");
        check(&pool("10.0.0.0/8", "10.1.0.0", "10.2.0.0"), "", "more than 65536");
        check(&format!("{good}, \"lease_s\": 59"), "", "lease_s = 59");
        check(&format!("{good}, \"vlan\": 4095"), "", "vlan = 4095");
        check(&format!("{good}}}, {{{good}"), "", "two are for untagged frames");
        check(&format!("{good}}}, {{{good}, \"vlan\": 5"), "", "have addresses in common");
        check(&good, ", \"mac\": \"01:00:00:00:00:00\"", "mac = 01:00:00:00:00:00");
        let lease = |mac: &str, address: &str| format!("{{\"mac\": \"{mac}\", \"address\": \"{address}\"}}");
        let one = lease("00:00:00:00:00:01", "10.0.0.5");
        check(&good, &format!(", \"leases\": [{one}, {one}]"), "10.0.0.5 is given twice");
        let two = lease("00:00:00:00:00:01", "10.0.0.6");
        check(&good, &format!(", \"leases\": [{one}, {two}]"), "has two addresses");
        check(
            &good,
            &format!(", \"leases\": [{}]", lease("00:00:00:00:00:01", "10.9.0.1")),
            "in no pool's network",
        );
        check(&good, &format!(", \"leases\": [{one}]"), "");
    }
}
