//! Some of the packets of a network: those of a port, of a host, or of a match at one switch.
//!
//! ```text
//!   port = "of:1/3", host = "00:…:01", or switch and match ──> Traffic ──the view──> for a switch: matches, from or to
//! ```
//!
//! In: what an operator writes, and the network view. Out: matches for the switch where these packets enter or leave the network, so
//! that each packet is met once in each direction. It follows a host that moves. It makes no rule.

use burnet_sdk::flow::text::parse_match;
use burnet_sdk::flow::{Match, PortNo};
use burnet_sdk::view::{ConnectPoint, Host, HostId, Snapshot};
use burnet_sdk::{DatapathId, Field};

/// The direction of packets, as seen from the host or port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// From it into the network.
    From,
    /// From the network to it.
    To,
}

#[derive(Clone, Debug, PartialEq)]
enum Of {
    Port(ConnectPoint),
    Host(HostId),
    Match(DatapathId, Match),
}

/// Some of the packets of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    of: Of,
    from: bool,
    to: bool,
}

/// Traffic as an operator writes it.
#[derive(Clone, Debug, Default)]
pub struct Written<'a> {
    /// The port.
    pub port: Option<ConnectPoint>,
    /// The host.
    pub host: Option<HostId>,
    /// The switch of a match.
    pub switch: Option<DatapathId>,
    /// The match, in the syntax of `ovs-ofctl`, or `any`.
    pub matching: Option<&'a str>,
    /// `from`, `to` or `both`.
    pub direction: Option<&'a str>,
}

impl Traffic {
    /// Reads and checks what an operator has written.
    ///
    /// # Errors
    /// A sentence that begins with the wrong key.
    pub fn read(written: &Written<'_>) -> Result<Traffic, String> {
        let (from, to) = match written.direction {
            None | Some("both") => (true, true),
            Some("from") => (true, false),
            Some("to") => (false, true),
            Some(other) => {
                return Err(format!("direction: {other:?} is none: write \"from\", \"to\" or \"both\""));
            }
        };
        let of = match (written.port, written.host, written.switch, written.matching) {
            (Some(port), None, None, None) if is_plain(port.port) => Of::Port(port),
            (Some(port), None, None, None) => {
                return Err(format!("port: {port} has the number of no real port"));
            }
            (None, Some(host), None, None) => Of::Host(host),
            (None, None, Some(switch), Some(text)) => {
                if written.direction.is_some() {
                    return Err("direction: a match has none: leave it out".to_owned());
                }
                let matching = if text == "any" { Ok(Match::any()) } else { parse_match(text) };
                Of::Match(switch, matching.map_err(|why| format!("match: {text:?} is no match: {why}"))?)
            }
            (None, None, None, Some(_)) => {
                return Err(
                    "switch: a match is for the packets of one switch: name it. Otherwise each switch of a path would meet a packet again"
                        .to_owned(),
                );
            }
            _ => return Err("write one of these: port; host; switch and match".to_owned()),
        };
        Ok(Traffic { of, from, to })
    }

    /// The matches of these packets at a switch.
    pub fn at(&self, switch: DatapathId, view: &Snapshot) -> Vec<(Way, Match)> {
        let mut matches = Vec::new();
        match &self.of {
            Of::Match(at, matching) if *at == switch => matches.push((Way::From, matching.clone())),
            Of::Port(at) if at.switch == switch => {
                if self.from {
                    matches.push((Way::From, Match::any().with(Field::InPort, at.port)));
                }
                let hosts = view.hosts_at(*at).filter(|_| self.to);
                matches.extend(hosts.map(to_host));
            }
            Of::Host(id) => {
                if let Some(host) = view.host(*id).filter(|host| host.at.switch == switch) {
                    let from = Match::any().with(Field::InPort, host.at.port).with(Field::EthSrc, id.mac);
                    matches.extend(self.from.then_some((Way::From, from)));
                    matches.extend(self.to.then(|| to_host(host)));
                }
            }
            _ => {}
        }
        matches
    }

    /// The switch, if it does not depend on where a host is.
    pub fn fixed_switch(&self) -> Option<DatapathId> {
        match &self.of {
            Of::Port(at) => Some(at.switch),
            Of::Match(switch, _) => Some(*switch),
            Of::Host(_) => None,
        }
    }

    /// The port, if the traffic is that of a port.
    pub fn port(&self) -> Option<ConnectPoint> {
        match &self.of {
            Of::Port(at) => Some(*at),
            _ => None,
        }
    }
}

/// Not by its VLAN: within the network a packet may have another tag than at the host.
fn to_host(host: &Host) -> (Way, Match) {
    (Way::To, Match::any().with(Field::EthDst, host.id.mac))
}

/// Whether a port has a plain number, and no reserved one.
pub fn is_plain(port: PortNo) -> bool {
    port.0 != 0 && port <= PortNo::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_traffic_is_refused_with_the_key() {
        let check = |written: Written<'_>, part: &str| {
            let why = Traffic::read(&written).unwrap_err();
            assert!(why.starts_with(part), "{written:?}: {why}");
        };
        let port = Some("1/3".parse().unwrap());
        let host = Some("00:00:00:00:00:01".parse().unwrap());
        let switch = Some(DatapathId(1));
        check(Written::default(), "write one of these");
        check(Written { port, host, ..Written::default() }, "write one of these");
        check(Written { switch, ..Written::default() }, "write one of these");
        check(Written { matching: Some("ip"), ..Written::default() }, "switch: ");
        check(Written { switch, matching: Some("ipx"), ..Written::default() }, "match: \"ipx\" is no match");
        check(
            Written { switch, matching: Some("ip"), direction: Some("to"), ..Written::default() },
            "direction: ",
        );
        check(Written { port, direction: Some("in"), ..Written::default() }, "direction: \"in\" is none");
        check(Written { port: Some("1/4294967294".parse().unwrap()), ..Written::default() }, "port: ");
    }
}
