//! A network description: the links and NICs below all slices, in one file.
//!
//! ```toml
//! link_rate = "10M"
//! nic_rate = "10M"
//!
//! [[link]]
//! between = "s3:1-s1:1"
//!
//! [[nic]]
//! name = "server 1"
//! ports = ["s5:1", "s5:2"]
//! ```
//!
//! In: the text of the file. Out: a description, or the first fault with its line. It opens no file.

use super::substrate::{Description, Nic, plain_link};
use burnet_sdk::view::ConnectPoint;
use config::slices::{parse_link, parse_port, port_name};
use hose::Bandwidth;
use package::toml_text::{self, Fault};
use serde::Deserialize;
use std::collections::BTreeSet;
use toml::Spanned;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Written {
    link_rate: Option<Spanned<String>>,
    nic_rate: Option<Spanned<String>>,
    link: Vec<WrittenLink>,
    nic: Vec<WrittenNic>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLink {
    between: Spanned<String>,
    rate: Option<Spanned<String>>,
    reserved: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenNic {
    name: Option<String>,
    ports: Spanned<Vec<Spanned<String>>>,
    rate: Option<Spanned<String>>,
}

/// Reads a file.
///
/// # Errors
/// The first fault, with its line.
pub fn read(text: &str) -> Result<Description, Fault> {
    let written: Written = toml_text::parse(text)?;
    let reader = Reader { text };
    let mut description = Description::default();
    let mut ends = BTreeSet::new();
    let default = written.link_rate.as_ref().map(|rate| reader.rate(rate)).transpose()?;
    for link in &written.link {
        reader.link(link, default, &mut ends, &mut description)?;
    }
    let default = written.nic_rate.as_ref().map(|rate| reader.rate(rate)).transpose()?;
    for nic in &written.nic {
        description.nics.push(reader.nic(nic, default, &mut ends)?);
    }
    Ok(description)
}

struct Reader<'t> {
    text: &'t str,
}

impl Reader<'_> {
    fn fault<T>(&self, value: &Spanned<T>, why: impl std::fmt::Display) -> Fault {
        let before = self.text.get(..value.span().start).unwrap_or_default();
        Fault { line: before.matches('\n').count() + 1, reason: why.to_string() }
    }

    fn rate(&self, written: &Spanned<String>) -> Result<Bandwidth, Fault> {
        written.get_ref().parse().map_err(|why| self.fault(written, why))
    }

    fn rate_or(
        &self,
        written: Option<&Spanned<String>>,
        default: Option<Bandwidth>,
    ) -> Result<Option<Bandwidth>, Fault> {
        written.map_or(Ok(default), |rate| self.rate(rate).map(Some))
    }

    fn link(
        &self,
        written: &WrittenLink,
        default: Option<Bandwidth>,
        ends: &mut BTreeSet<ConnectPoint>,
        description: &mut Description,
    ) -> Result<(), Fault> {
        let between = &written.between;
        let id = parse_link(between.get_ref()).map_err(|why| self.fault(between, why))?;
        if let Some(end) = [id.from, id.to].into_iter().find(|end| !ends.insert(*end)) {
            return Err(self.fault(between, format!("port {} is the end of two links", port_name(end))));
        }
        let Some(rate) = self.rate_or(written.rate.as_ref(), default)? else {
            return Err(
                self.fault(between, "the link has no rate: write rate = \"10M\", or link_rate for all links")
            );
        };
        for direction in [id, id.reversed()] {
            description.links.push(plain_link(direction, rate));
            if let Some(reserved) = &written.reserved {
                description.reserved.push((direction, self.rate(reserved)?.kbps()));
            }
        }
        Ok(())
    }

    fn nic(
        &self,
        written: &WrittenNic,
        default: Option<Bandwidth>,
        taken: &mut BTreeSet<ConnectPoint>,
    ) -> Result<Nic, Fault> {
        let mut ports: Vec<ConnectPoint> = Vec::new();
        for text in written.ports.get_ref() {
            let port = parse_port(text.get_ref()).map_err(|why| self.fault(text, why))?;
            if ports.iter().any(|other| other.switch != port.switch) {
                return Err(
                    self.fault(text, "the ports of one NIC are at one switch: write one [[nic]] for each")
                );
            }
            if !taken.insert(port) {
                let why = format!("port {} is in two NICs, or in a link and a NIC", port_name(port));
                return Err(self.fault(text, why));
            }
            ports.push(port);
        }
        let Some(first) = ports.first() else {
            return Err(self.fault(&written.ports, "the NIC has no ports: write ports = [\"s5:1\"]"));
        };
        let Some(rate) = self.rate_or(written.rate.as_ref(), default)? else {
            let why = "the NIC has no rate: write rate = \"10M\", or nic_rate for all NICs";
            return Err(self.fault(&written.ports, why));
        };
        let name = written.name.clone().unwrap_or_else(|| port_name(*first));
        Ok(Nic { name, rate: Some(rate), ports })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, expected: &str) {
        assert_eq!(read(text).unwrap_err().to_string(), expected, "{text}");
    }

    #[test]
    fn rates_are_those_of_the_entry_or_of_all() {
        let text = "link_rate = '10M'\nnic_rate = '1G'\n[[link]]\nbetween = 's1:1-s2:1'\nreserved = '3M'\n[[link]]\nbetween = 's1:2-s2:2'\nrate = '5M'
            [[nic]]\nports = ['s1:8', 's1:9']\n[[nic]]\nname = 'server'\nports = ['s2:9']\nrate = '2M'";
        let read = read(text).unwrap();
        let rates: Vec<u64> = read.links.iter().map(|link| link.capacity_kbps).collect();
        assert_eq!(rates, [10_000, 10_000, 5_000, 5_000]);
        assert_eq!(read.reserved.iter().map(|(_, kbps)| *kbps).collect::<Vec<_>>(), [3_000, 3_000]);
        let nics: Vec<_> = read
            .nics
            .iter()
            .map(|nic| (nic.name.as_str(), nic.rate.unwrap().kbps(), nic.ports.len()))
            .collect();
        assert_eq!(nics, [("s1:8", 1_000_000, 2), ("server", 2_000, 1)]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        refused("[[link]]\nbetwen = 's1:1-s2:1'", "line 2: unknown key `betwen`: did you mean `between`?");
        refused(
            "[[link]]\nbetween = 's1:1'",
            "line 2: `s1:1` is no link: write its two ports, as in s3:1-s1:1",
        );
        refused(
            "[[link]]\nbetween = 's1:1-s2:1'",
            "line 2: the link has no rate: write rate = \"10M\", or link_rate for all links",
        );
        refused(
            "link_rate = '1M'\n[[link]]\nbetween = 's1:1-s2:1'\n[[link]]\nbetween = 's3:1-s2:1'",
            "line 5: port s2:1 is the end of two links",
        );
        refused(
            "link_rate = '1'",
            "line 1: `1`: the unit is missing: write k, M, G or T behind the number, as in 10M or 2.5G",
        );
        refused("[[nic]]\nports = []", "line 2: the NIC has no ports: write ports = [\"s5:1\"]");
        refused(
            "[[nic]]\nports = ['s5:1']",
            "line 2: the NIC has no rate: write rate = \"10M\", or nic_rate for all NICs",
        );
        refused(
            "nic_rate = '1M'\n[[nic]]\nports = [\n's5:1',\n's6:1']",
            "line 5: the ports of one NIC are at one switch: write one [[nic]] for each",
        );
        refused(
            "nic_rate = '1M'\nlink_rate = '1M'\n[[link]]\nbetween = 's1:1-s2:1'\n[[nic]]\nports = ['s1:1']",
            "line 6: port s1:1 is in two NICs, or in a link and a NIC",
        );
    }
}
