//! From what is written to slices, each checked by itself.
//!
//! In: texts and numbers with their places. Out: slices in the order of the file, or the first fault with its line and what to write. It compares no two
//! slices, except for the tags that it gives to those that name none.

use super::names::{parse_link, parse_port, parse_switch, port_name, renamed, shown, switch_name};
use super::slice::{
    Controller, Line, Packets, Slice, SliceHost, SliceIsolation, SliceLink, SlicePort, SliceSwitch, SliceTls,
    Vnic,
};
use super::written::{AdmissionKind, IsolationKind, WrittenLimits, WrittenSlice, WrittenSlices, WrittenTls};
use super::{addresses, agents};
use crate::grant::quota;
use flow::{DatapathId, PortNo};
use hose::{Checks, VNICS_MAX};
use package::manifest::amounts::Amount;
use package::toml_text::Fault;
use slicer::{Limit, Limits, MATCHES_MAX, NUMBERS_MAX, Numbers, TAG_MAX};
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::ops::Range;
use toml::Spanned;
use view::ConnectPoint;

/// The most slices of a node. Each is an app of the node, of which there are 1,023.
pub const SLICES_MAX: usize = 1_000;
/// The most controllers of a slice.
pub const CONTROLLERS_MAX: usize = slicer::CONTROLLERS_MAX;
/// The longest name of a slice, and of a VNIC. With `slice.` in front, the name of a slice is also that of a socket file.
pub const NAME_BYTES_MAX: usize = contract::NAME_BYTES_MAX - "slice.".len();
/// The most matches in the flowspaces of all slices together. Each is compared with those of all other slices.
pub const FLOWSPACE_MATCHES_MAX: usize = 4_096;

/// The first group or meter number that OpenFlow reserves (OFPG_MAX, OFPM_MAX).
const RESERVED_NUMBER: u32 = 0xffff_0000;

type Read<T> = Result<T, Fault>;

/// Reads all sections.
pub(super) fn read(written: &WrittenSlices, text: &str) -> Read<Vec<Slice>> {
    let mut sections: Vec<_> = written.0.iter().collect();
    sections.sort_by_key(|(name, _)| name.span().start);
    let lines = &Lines::of(text);
    if let Some((name, _)) = sections.get(SLICES_MAX) {
        let why = format!("{} slices are more than {SLICES_MAX}: leave some out", sections.len());
        return Err(Fault { line: lines.of_value(name), reason: why });
    }
    let tags = tags(&sections, lines)?;
    let mut matches = 0;
    let mut slices = Vec::with_capacity(sections.len());
    for (name, section) in sections {
        let section = Section { name: name.get_ref(), line: lines.of_value(name), lines, of: section };
        let slice = section.read(tags.get(name.get_ref()).copied())?;
        if let SliceIsolation::Flowspace(packets) = &slice.isolation {
            matches += packets.len();
        }
        if matches > FLOWSPACE_MATCHES_MAX {
            let why =
                format!("all slices together have more than {FLOWSPACE_MATCHES_MAX} matches: write fewer");
            return Err(section.fault(section.line, why));
        }
        slices.push(slice);
    }
    Ok(slices)
}

/// The tags of the slices that have one, by name. A slice that names none gets one that depends on its name, so that it keeps the tag when others come
/// and go.
fn tags(sections: &[(&Spanned<String>, &WrittenSlice)], lines: &Lines) -> Read<BTreeMap<String, u16>> {
    let mut tags = BTreeMap::new();
    let of_vlan = |section: &&WrittenSlice| {
        section.isolation.as_ref().is_some_and(|kind| *kind.get_ref() == IsolationKind::Vlan)
    };
    let mut unnamed = BTreeSet::new();
    for (name, section) in sections.iter().filter(|(_, section)| of_vlan(section)) {
        let Some(tag) = &section.tag else {
            unnamed.insert(name.get_ref());
            continue;
        };
        match u16::try_from(*tag.get_ref()) {
            Ok(number @ 1..=TAG_MAX) => drop(tags.insert(name.get_ref().clone(), number)),
            _ => {
                let why = format!(
                    "slice {}: tag: {} is no tag of a slice: write 1 to {TAG_MAX}",
                    shown(name.get_ref()),
                    tag.get_ref()
                );
                return Err(Fault { line: lines.of_value(tag), reason: why });
            }
        }
    }
    let mut taken: BTreeSet<u16> = tags.values().copied().collect();
    for name in unnamed {
        let first = u16::try_from(hash(name) % u64::from(TAG_MAX)).unwrap_or_default();
        // There are more tags than slices.
        let free = (0..TAG_MAX).map(|more| (first + more) % TAG_MAX + 1).find(|tag| !taken.contains(tag));
        let tag = free.unwrap_or(TAG_MAX);
        taken.insert(tag);
        tags.insert(name.clone(), tag);
    }
    Ok(tags)
}

/// FNV-1a: the same on each machine and in each version.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Where the lines of a text end.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        Lines(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    /// The line of a value, from 1.
    fn of_value<T>(&self, value: &Spanned<T>) -> usize {
        self.of_value_at(value.span().start)
    }

    /// The line of a place in the text, from 1.
    fn of_value_at(&self, at: usize) -> usize {
        self.0.partition_point(|end| *end < at) + 1
    }
}

/// A section on its way to a slice.
struct Section<'t> {
    name: &'t str,
    line: usize,
    lines: &'t Lines,
    of: &'t WrittenSlice,
}

impl Section<'_> {
    fn fault(&self, line: usize, why: impl std::fmt::Display) -> Fault {
        Fault { line, reason: format!("slice {}: {why}", shown(self.name)) }
    }

    fn refuse<T>(&self, line: usize, why: impl std::fmt::Display) -> Read<T> {
        Err(self.fault(line, why))
    }

    fn line_of<T>(&self, value: &Spanned<T>) -> usize {
        self.lines.of_value(value)
    }

    /// The text of a key that is read by a function, or its sentence with the line.
    fn parsed<T, E: std::fmt::Display>(
        &self,
        key: &str,
        value: &Spanned<String>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Read<T> {
        parse(value.get_ref()).map_err(|why| self.fault(self.line_of(value), format!("{key}: {why}")))
    }

    fn read(&self, tag: Option<u16>) -> Read<Slice> {
        self.check_name(self.name, self.line)?;
        let isolation = self.isolation(tag)?;
        let switches = self.switches()?;
        let links = self.links()?;
        let (vnics, mut at_edge) = self.vnics(&isolation)?;
        at_edge.extend(host_ports(&isolation));
        let ports = self.ports(links.as_deref().unwrap_or_default(), at_edge)?;
        let slice = Slice {
            name: self.name.to_owned(),
            line: Line(self.line),
            controllers: self.controllers()?,
            tls: self.tls()?,
            isolation,
            is_read_only: self.of.read_only,
            labels: self.of.labels,
            step: self.of.step.as_ref().map(|step| self.parsed("step", step, str::parse)).transpose()?,
            fail: self.of.fail,
            admission: match self.of.admission {
                AdmissionKind::Links => Checks::Fabric,
                AdmissionKind::Edge => Checks::Edge,
            },
            limits: limits(&self.of.limits),
            numbers: Numbers {
                groups: self.numbers("groups", self.of.groups.as_ref())?,
                meters: self.numbers("meters", self.of.meters.as_ref())?,
            },
            switches,
            ports,
            links,
            vnics,
        };
        self.check_switches(&slice)?;
        self.check_observer(&slice)?;
        // What the parts above have not found, such as two ports that are shown with one number.
        match slice.plan() {
            Ok(_) => Ok(slice),
            Err(bad) => Err(Fault { line: self.line, reason: bad.0 }),
        }
    }

    fn check_name(&self, name: &str, line: usize) -> Read<()> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_plain) {
            let why = format!(
                "`{}` cannot be a name: write 1 to {NAME_BYTES_MAX} letters, digits, '-', '_' or '.'",
                shown(name)
            );
            return self.refuse(line, why);
        }
        Ok(())
    }

    fn controllers(&self) -> Read<Vec<Controller>> {
        let written = &self.of.controllers;
        if written.is_empty() {
            return self.refuse(self.line, "it has no controllers: write controllers = [\"HOST:PORT\"]");
        }
        if let Some(one_more) = written.get(CONTROLLERS_MAX) {
            let why = format!("{} controllers are more than {CONTROLLERS_MAX}", written.len());
            return self.refuse(self.line_of(one_more), why);
        }
        let mut controllers: Vec<Controller> = Vec::new();
        for one in written {
            let controller = self.parsed("controllers", one, parse_controller)?;
            if controllers.contains(&controller) {
                return self.refuse(self.line_of(one), format!("controller {controller} is there twice"));
            }
            controllers.push(controller);
        }
        Ok(controllers)
    }

    fn tls(&self) -> Read<Option<SliceTls>> {
        let Some(written) = &self.of.tls else { return Ok(None) };
        match written.get_ref() {
            WrittenTls {
                certificate: Some(certificate),
                private_key: Some(private_key),
                ca_certificate: Some(ca_certificate),
            } => Ok(Some(SliceTls {
                certificate: certificate.clone(),
                private_key: private_key.clone(),
                ca_certificate: ca_certificate.clone(),
            })),
            _ => self.refuse(
                self.line_of(written),
                "TLS is mutual: write certificate, private_key and ca_certificate in tls, or leave tls out",
            ),
        }
    }

    fn isolation(&self, tag: Option<u16>) -> Read<SliceIsolation> {
        let WrittenSlice { isolation, tag: written_tag, matches, prefix, addresses, hosts, .. } = self.of;
        let Some(kind) = isolation.as_ref().map(|kind| *kind.get_ref()) else {
            let why = "it has no isolation: write isolation = \"vlan\", \"flowspace\" or \"address\"";
            return self.refuse(self.line, why);
        };
        let foreign = [
            (written_tag.as_ref().map(|it| self.line_of(it)), "tag", IsolationKind::Vlan, "vlan"),
            (matches.as_ref().map(|it| self.line_of(it)), "matches", IsolationKind::Flowspace, "flowspace"),
            (prefix.as_ref().map(|it| self.line_of(it)), "prefix", IsolationKind::Address, "address"),
            (addresses.as_ref().map(|it| self.line_of(it)), "addresses", IsolationKind::Address, "address"),
            (hosts.as_ref().map(|it| self.line_of(it)), "hosts", IsolationKind::Address, "address"),
        ];
        for (line, key, of, name) in foreign {
            if let Some(line) = line.filter(|_| of != kind) {
                let why = format!("{key} is a key of isolation = \"{name}\": leave it out");
                return self.refuse(line, why);
            }
        }
        match (kind, matches) {
            (IsolationKind::Vlan, _) => Ok(SliceIsolation::Vlan(tag.unwrap_or_default())),
            (IsolationKind::Flowspace, Some(matches)) => self.flowspace(matches),
            (IsolationKind::Flowspace, None) => self.refuse(
                self.line,
                "it has no flowspace: write matches = [\"ip,nw_dst=10.1.0.0/16\"], or [\"\"] for all packets",
            ),
            (IsolationKind::Address, _) => {
                addresses::read(self.of, |at| self.lines.of_value_at(at), self.line)
                    .map(SliceIsolation::Address)
                    .map_err(|(line, why)| self.fault(line, why))
            }
        }
    }

    fn flowspace(&self, written: &Spanned<Vec<Spanned<String>>>) -> Read<SliceIsolation> {
        let texts = written.get_ref();
        if texts.is_empty() || texts.len() > MATCHES_MAX {
            let why = format!("{} matches are not possible: write 1 to {MATCHES_MAX}", texts.len());
            return self.refuse(self.line_of(written), why);
        }
        let packets = texts.iter().map(|text| {
            let line = Line(self.line_of(text));
            let parse = |text: &str| {
                flow::text::parse_match(text)
                    .map_err(|why| format!("`{}` is not a match: {why}: write one as ovs-ofctl does, as in ip,nw_dst=10.1.0.0/16", shown(text)))
            };
            Ok(Packets { matching: self.parsed("matches", text, parse)?, line })
        });
        packets.collect::<Read<_>>().map(SliceIsolation::Flowspace)
    }

    fn switches(&self) -> Read<Option<Vec<SliceSwitch>>> {
        let Some(written) = &self.of.switches else { return Ok(None) };
        let mut switches: Vec<SliceSwitch> = Vec::new();
        for one in written {
            let switch = self.parsed("switches", one, |text| {
                let (name, shown_as) = renamed(text);
                let datapath = parse_switch(name)?;
                let shown_as = shown_as.map_or(Ok(datapath), parse_switch)?;
                Ok::<_, String>(SliceSwitch { datapath, shown_as, line: Line(self.line_of(one)) })
            })?;
            let is_same =
                |there: &SliceSwitch| there.datapath == switch.datapath || there.shown_as == switch.shown_as;
            if switches.iter().any(is_same) {
                let why = format!(
                    "switch {} or the id that it is shown with is there twice",
                    switch_name(switch.datapath)
                );
                return self.refuse(self.line_of(one), why);
            }
            switches.push(switch);
        }
        Ok(Some(switches))
    }

    fn links(&self) -> Read<Option<Vec<SliceLink>>> {
        let Some(written) = &self.of.links else { return Ok(None) };
        let mut ends = BTreeSet::new();
        let mut links = Vec::new();
        for one in written {
            let id = self.parsed("links", one, parse_link)?;
            let line = self.line_of(one);
            if let Some(end) = [id.from, id.to].into_iter().find(|end| !ends.insert(*end)) {
                return self.refuse(line, format!("port {} is the end of two links", port_name(end)));
            }
            links.push(SliceLink { id, line: Line(line) });
        }
        Ok(Some(links))
    }

    /// The VNICs, and the port of each.
    fn vnics(&self, isolation: &SliceIsolation) -> Read<(Vec<Vnic>, Vec<VnicPort>)> {
        let mut written: Vec<_> = self.of.vnics.iter().collect();
        written.sort_by_key(|(name, _)| name.span().start);
        if let Some((one_more, _)) = written.get(VNICS_MAX) {
            let why = format!("{} VNICs are more than {VNICS_MAX}", written.len());
            return self.refuse(self.line_of(one_more), why);
        }
        let is_own = isolation.changes_at_the_edge();
        let vnics = written.into_iter().map(|(name, vnic)| {
            self.check_name(name.get_ref(), self.line_of(name))?;
            let of_vnic = |why: String| format!("VNIC {}: {why}", name.get_ref());
            let line = self.line_of(&vnic.port);
            let port = self.parsed("vnics", &vnic.port, |text| {
                parse_shown_port(text, is_own, line).map_err(|why| of_vnic(format!("port: {why}")))
            })?;
            let rate = self.parsed("vnics", &vnic.rate, |text| {
                text.parse().map_err(|why| of_vnic(format!("rate: {why}")))
            })?;
            let is_renamed = renamed(vnic.port.get_ref()).1.is_some();
            let at_name = self.line_of(name);
            let edge = agents::read(vnic).map_err(|why| self.fault(at_name, of_vnic(why)))?;
            let line = Line(at_name);
            Ok((
                Vnic {
                    name: name.get_ref().clone(),
                    at: port.at,
                    rate,
                    edge,
                    is_metered: vnic.meter.unwrap_or(true),
                    line,
                },
                VnicPort { port, is_renamed },
            ))
        });
        vnics.collect()
    }

    /// All ports: those that are written, then the ends of links, then those of VNICs and hosts.
    fn ports(&self, links: &[SliceLink], of_vnics: Vec<VnicPort>) -> Read<Vec<SlicePort>> {
        let mut ports = BTreeMap::new();
        let written = self.of.ports.iter().map(|text| (text, false));
        for (text, is_own) in written.chain(self.of.own_ports.iter().map(|text| (text, true))) {
            let key = if is_own { "own_ports" } else { "ports" };
            let port = self.parsed(key, text, |port| parse_shown_port(port, is_own, self.line_of(text)))?;
            if ports.insert(port.at, port).is_some() {
                let why = format!("port {} is there twice in ports and own_ports", port_name(port.at));
                return self.refuse(self.line_of(text), why);
            }
        }
        for link in links {
            for end in [link.id.from, link.id.to] {
                let of_link = SlicePort { at: end, shown_as: end.port, is_own: false, line: link.line };
                let port = ports.entry(end).or_insert(of_link);
                if port.is_own {
                    let why = format!(
                        "port {} is in own_ports and the end of a link: move it to ports",
                        port_name(end)
                    );
                    return self.refuse(link.line.0, why);
                }
            }
        }
        for of_vnic in of_vnics {
            self.add_vnic_port(&mut ports, of_vnic)?;
        }
        Ok(ports.into_values().collect())
    }

    fn add_vnic_port(
        &self,
        ports: &mut BTreeMap<ConnectPoint, SlicePort>,
        VnicPort { port, is_renamed }: VnicPort,
    ) -> Read<()> {
        let there = match ports.entry(port.at) {
            Entry::Vacant(free) => {
                free.insert(port);
                return Ok(());
            }
            Entry::Occupied(there) => there.into_mut(),
        };
        if port.is_own && !there.is_own {
            let why = format!(
                "port {} of a VNIC or a host is also the end of a link or in ports: the tag or the addresses change at one of them only",
                port_name(port.at)
            );
            return self.refuse(port.line.0, why);
        }
        if is_renamed && there.shown_as != port.shown_as {
            let why = format!(
                "port {} is shown with two numbers, {} and {}",
                port_name(port.at),
                there.shown_as,
                port.shown_as
            );
            return self.refuse(port.line.0, why);
        }
        Ok(())
    }

    fn numbers(&self, key: &str, written: Option<&Spanned<(i64, i64)>>) -> Read<Range<u32>> {
        let Some(written) = written else { return Ok(0..0) };
        let (first, last) = *written.get_ref();
        match (u32::try_from(first), u32::try_from(last)) {
            (Ok(first), Ok(last))
                if (1..=last).contains(&first) && last < RESERVED_NUMBER && last - first < NUMBERS_MAX =>
            {
                Ok(first..last + 1)
            }
            _ => {
                let why = format!(
                    "{key} = [{first}, {last}] is no range: write [FIRST, LAST] from 1, at most {NUMBERS_MAX} numbers"
                );
                self.refuse(self.line_of(written), why)
            }
        }
    }

    fn check_switches(&self, slice: &Slice) -> Read<()> {
        let Some(switches) = &slice.switches else { return Ok(()) };
        let has = |datapath: DatapathId| switches.iter().any(|switch| switch.datapath == datapath);
        match slice.ports.iter().find(|port| !has(port.at.switch)) {
            None => Ok(()),
            Some(port) => {
                let name = switch_name(port.at.switch);
                let why = format!(
                    "switch {name} of port {} is not in switches: add \"{name}\", or leave switches out",
                    port_name(port.at)
                );
                self.refuse(port.line.0, why)
            }
        }
    }

    /// What an observer cannot have.
    fn check_observer(&self, slice: &Slice) -> Read<()> {
        if !slice.is_read_only {
            return Ok(());
        }
        if let Some(port) = self.of.own_ports.first() {
            let why = "read_only = true, and own_ports are for slices that send: move them to ports";
            return self.refuse(self.line_of(port), why);
        }
        if let Some(hosts) = &self.of.hosts {
            let why = "read_only = true, and hosts are for slices that send: leave them out";
            return self.refuse(self.line_of(hosts), why);
        }
        if matches!(slice.isolation, SliceIsolation::Vlan(_)) && self.of.tag.is_none() {
            return self.refuse(self.line, "read_only = true: write the tag of the slice that it observes");
        }
        Ok(())
    }
}

/// The ports of the hosts of a slice with addresses.
fn host_ports(isolation: &SliceIsolation) -> Vec<VnicPort> {
    let SliceIsolation::Address(addresses) = isolation else { return Vec::new() };
    let port = |host: &SliceHost| {
        let port = SlicePort { at: host.at, shown_as: host.at.port, is_own: true, line: host.line };
        VnicPort { port, is_renamed: false }
    };
    addresses.hosts.iter().map(port).collect()
}

/// The port of a VNIC or a host.
struct VnicPort {
    port: SlicePort,
    /// Whether the operator wrote the number that the tenant sees.
    is_renamed: bool,
}

/// `s6:1`, or `s6:1 as 7`.
fn parse_shown_port(text: &str, is_own: bool, line: usize) -> Result<SlicePort, String> {
    let (name, shown_as) = renamed(text);
    let at = parse_port(name)?;
    let shown_as = match shown_as {
        None => at.port,
        Some(number) => number
            .parse()
            .map(PortNo)
            .map_err(|_| format!("`{}` is no number of a port: write s6:1 as 7", shown(number)))?,
    };
    Ok(SlicePort { at, shown_as, is_own, line: Line(line) })
}

/// Whether names and hosts may have this byte.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// `HOST:PORT` or `[IPV6-ADDRESS]:PORT`.
fn parse_controller(text: &str) -> Result<Controller, String> {
    let wrong = || {
        format!(
            "`{}` is no controller: write HOST:PORT or [IPV6-ADDRESS]:PORT, as in 127.0.0.1:6653",
            shown(text)
        )
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match inner {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.len() <= 253 && host.bytes().all(is_plain),
    };
    let number = Some(port).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    match number.and_then(|digits| digits.parse::<u16>().ok()) {
        Some(port) if port > 0 && is_host => Ok(Controller { host: inner.unwrap_or(host).to_owned(), port }),
        _ => Err(wrong()),
    }
}

fn limits(written: &WrittenLimits) -> Limits {
    let default = Limits::default();
    let limit = |amount: Option<Amount>, default: Limit| {
        amount.map(quota).map_or(default, |quota| Limit { soft: quota.soft, hard: quota.hard })
    };
    Limits {
        packet_ins_per_s: limit(written.packet_ins_per_s, default.packet_ins_per_s),
        packet_outs_per_s: limit(written.packet_outs_per_s, default.packet_outs_per_s),
        flow_mods_per_s: limit(written.flow_mods_per_s, default.flow_mods_per_s),
        statistics_per_s: limit(written.statistics_per_s, default.statistics_per_s),
        rules: limit(written.rules, default.rules),
    }
}
