//! The addresses of a slice: both prefixes, and its hosts.
//!
//! In: the keys `prefix`, `addresses` and `hosts`. Out: [`Addresses`], or the line and the sentence that says what is wrong. It compares no two slices.

use super::names::{parse_port, shown};
use super::slice::{Addresses, Line, Prefix, SliceHost};
use super::written::WrittenSlice;
use std::net::Ipv4Addr;
use toml::Spanned;

type Wrong = (usize, String);

/// Reads the keys. `line_at` gives the line of a place in the text, and `line` is that of the section.
///
/// # Errors
/// The line, and a sentence: a key is missing or wrong.
pub(super) fn read(
    written: &WrittenSlice,
    line_at: impl Fn(usize) -> usize,
    line: usize,
) -> Result<Addresses, Wrong> {
    let line_of = |value: &Spanned<String>| line_at(value.span().start);
    let prefix_of = |key: &str, value: &Spanned<String>| {
        parse_prefix(value.get_ref()).map_err(|why| (line_of(value), format!("{key}: {why}")))
    };
    let (Some(prefix), Some(tenant)) = (&written.prefix, &written.addresses) else {
        let why = "it has no addresses: write prefix = \"10.7.0.0/24\" for those between switches, and addresses = \"10.0.0.0/24\" for the tenant's";
        return Err((line, why.to_owned()));
    };
    let at_tenant = line_of(tenant);
    let (prefix, tenant) = (prefix_of("prefix", prefix)?, prefix_of("addresses", tenant)?);
    if tenant.length != prefix.length {
        return Err((
            at_tenant,
            format!("{tenant} and {prefix} differ in length: write both with the same one"),
        ));
    }
    let Some(written_hosts) = written.hosts.as_ref().filter(|hosts| !hosts.get_ref().is_empty()) else {
        return match written.read_only {
            true => Ok(Addresses { prefix, tenant, hosts: Vec::new() }),
            false => Err((line, "it has no hosts: write hosts = { \"10.0.0.1\" = \"s1:1\" }".to_owned())),
        };
    };
    let mut hosts: Vec<_> = written_hosts.get_ref().iter().collect();
    hosts.sort_by_key(|(address, _)| address.span().start);
    let host = |(address, port): (&Spanned<String>, &Spanned<String>)| {
        let line = line_of(address);
        let text = address.get_ref();
        let address: Ipv4Addr = text
            .parse()
            .map_err(|_| (line, format!("hosts: `{}` is no IPv4 address: write 10.0.0.1", shown(text))))?;
        if !tenant.contains(address) {
            return Err((line, format!("host {address} is outside {tenant}")));
        }
        let at = parse_port(port.get_ref())
            .map_err(|why| (line_of(port), format!("hosts: host {address}: {why}")))?;
        Ok(SliceHost { address, at, line: Line(line) })
    };
    let hosts = hosts.into_iter().map(host).collect::<Result<_, _>>()?;
    Ok(Addresses { prefix, tenant, hosts })
}

fn parse_prefix(text: &str) -> Result<Prefix, String> {
    let wrong = || format!("`{}` is no IPv4 prefix: write 10.7.0.0/16", shown(text));
    let (address, length) = text.split_once('/').ok_or_else(wrong)?;
    let prefix = match (address.parse(), length.parse()) {
        (Ok(address), Ok(length @ 1..=32)) => Prefix { address, length },
        _ => return Err(wrong()),
    };
    match u32::from(prefix.address) & !prefix.mask() {
        0 => Ok(prefix),
        _ => {
            let first = std::net::Ipv4Addr::from(u32::from(prefix.address) & prefix.mask());
            Err(format!("`{prefix}` has bits set beyond its length: write {first}/{}", prefix.length))
        }
    }
}
