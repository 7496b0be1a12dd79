//! A slice as plain values.
//!
//! In: nothing. Out: types. What they promise is checked by `reading`; no function here reads text.

use flow::{DatapathId, MacAddr, Match, PortNo};
use hose::{Bandwidth, Checks, Step};
use serde::Deserialize;
use slicer::{Limits, Numbers};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use view::{ConnectPoint, LinkId};

/// A line of the file, from 1, for messages. Two lines always compare equal, so that a slice that moved within its file has not changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line(pub usize);

impl PartialEq for Line {
    fn eq(&self, _: &Line) -> bool {
        true
    }
}

impl Eq for Line {}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.0)
    }
}

/// A slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// Its name.
    pub name: String,
    /// The line of its section.
    pub line: Line,
    /// The tenant's controllers, 1 to [`super::CONTROLLERS_MAX`].
    pub controllers: Vec<Controller>,
    /// The TLS files for connections to the controllers. `None`: without TLS.
    pub tls: Option<SliceTls>,
    /// How its packets differ from those of others.
    pub isolation: SliceIsolation,
    /// Whether the tenant only observes.
    pub is_read_only: bool,
    /// How labels are told on the OpenFlow connection.
    pub labels: LabelForm,
    /// How coarse its labels are. `None`: exact.
    pub step: Option<Step>,
    /// What happens while no controller is connected.
    pub fail: FailMode,
    /// What is judged before the slice is admitted.
    pub admission: Checks,
    /// What it may use of each switch.
    pub limits: Limits,
    /// Its groups and meters in the physical switches.
    pub numbers: Numbers,
    /// The only switches that it may have, in the order of the file. `None`: those of its ports and links.
    pub switches: Option<Vec<SliceSwitch>>,
    /// Its ports, in the order of their names: those that are written, the ends of its links, and the ports of its VNICs.
    pub ports: Vec<SlicePort>,
    /// Its links. `None`: they are chosen for its VNICs.
    pub links: Option<Vec<SliceLink>>,
    /// Its VNICs, in the order of the file.
    pub vnics: Vec<Vnic>,
}

/// A controller of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Its name or address.
    pub host: String,
    /// Its TCP port.
    pub port: u16,
}

impl Controller {
    /// Its address. Looks up a name, and takes the first address, IPv4 before IPv6. `None`: the name has no address.
    pub fn address(&self) -> Option<SocketAddr> {
        match self.host.parse() {
            Ok(address) => Some(SocketAddr::new(address, self.port)),
            Err(_) => crate::first_address(&self.to_string()),
        }
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Controller { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// PEM files for connections to the tenant's controllers. TLS is always mutual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceTls {
    /// The certificate that the slice shows.
    pub certificate: PathBuf,
    /// Its private key.
    pub private_key: PathBuf,
    /// The certificates of the controllers' authority.
    pub ca_certificate: PathBuf,
}

impl SliceTls {
    /// The files, each with what it is.
    pub fn files(&self) -> [(&'static str, &Path); 3] {
        [
            ("the certificate", &self.certificate),
            ("the private key", &self.private_key),
            ("the CA certificate", &self.ca_certificate),
        ]
    }

    /// Makes relative paths start at this folder.
    pub(crate) fn resolve(&mut self, folder: &Path) {
        for path in [&mut self.certificate, &mut self.private_key, &mut self.ca_certificate] {
            *path = folder.join(&*path);
        }
    }
}

/// How the packets of a slice differ from those of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SliceIsolation {
    /// By this VLAN tag between switches. There is no tag at its own ports.
    Vlan(u16),
    /// They match one of these.
    Flowspace(Vec<Packets>),
    /// By IPv4 addresses of a prefix between switches, to which the edge rewrites the tenant's own. ARP is rewritten too.
    Address(Addresses),
}

/// The addresses of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Those between switches.
    pub prefix: Prefix,
    /// Those that the tenant sees: as many.
    pub tenant: Prefix,
    /// The hosts, in the order of the file.
    pub hosts: Vec<SliceHost>,
}

/// A host of a slice with addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceHost {
    /// Its address, as the tenant sees it.
    pub address: Ipv4Addr,
    /// Its port, which is the slice's own.
    pub at: ConnectPoint,
    /// Where it is written.
    pub line: Line,
}

impl SliceIsolation {
    /// Whether the slice's packets look different at its own ports than between switches.
    pub fn changes_at_the_edge(&self) -> bool {
        !matches!(self, SliceIsolation::Flowspace(_))
    }
}

/// A match of a flowspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packets {
    /// The packets. `in_port` is a port of the physical switch.
    pub matching: Match,
    /// Where it is written.
    pub line: Line,
}

/// A prefix of IPv4 addresses. Text: `10.7.0.0/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The first address.
    pub address: Ipv4Addr,
    /// The number of fixed bits, 1 to 32.
    pub length: u8,
}

impl Prefix {
    /// The fixed bits as a mask.
    pub const fn mask(self) -> u32 {
        // The length is never 0.
        u32::MAX << (32 - self.length as u32)
    }

    /// Whether an address is one of the prefix.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        (u32::from(address) ^ u32::from(self.address)) & self.mask() == 0
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// How labels are told on the OpenFlow connection. REST has them always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LabelForm {
    /// Not at all.
    #[default]
    None,
    /// As a field behind the port's description, as in the paper. Controllers that do not know it fail.
    Paper,
    /// As experimenter messages.
    Experimenter,
    /// As the current speed of a port, for unmodified controllers of OpenFlow 1.3.
    Speed,
}

/// What happens to packets while no controller is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailMode {
    /// The rules stay, and no rule is added.
    #[default]
    Secure,
    /// The slice forwards as a learning switch.
    Standalone,
}

/// A switch of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceSwitch {
    /// The physical switch.
    pub datapath: DatapathId,
    /// The datapath id that the tenant sees.
    pub shown_as: DatapathId,
    /// Where it is written.
    pub line: Line,
}

/// A port of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlicePort {
    /// The port of the physical switch.
    pub at: ConnectPoint,
    /// The number that the tenant sees.
    pub shown_as: PortNo,
    /// Whether no other slice has it.
    pub is_own: bool,
    /// Where it is written.
    pub line: Line,
}

/// A link of a slice. It may have several hops in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceLink {
    /// One direction. The link has both.
    pub id: LinkId,
    /// Where it is written.
    pub line: Line,
}

/// A VNIC, the promise of bandwidth for one port of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vnic {
    /// Its name.
    pub name: String,
    /// The port behind which it is.
    pub at: ConnectPoint,
    /// What it may send, and what it may receive.
    pub rate: Bandwidth,
    /// What agents on servers know of it. `None`: nothing.
    pub edge: Option<EdgeVnic>,
    /// Whether its switch is to meter it while no agent shapes it.
    pub is_metered: bool,
    /// Where it is written.
    pub line: Line,
}

/// What agents on servers know of a VNIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeVnic {
    /// Its number among agents, unique in the file.
    pub number: u32,
    /// By which agents know its frames, together with the tag of its slice.
    pub mac: MacAddr,
    /// The agent of its server. `None`: nobody meters or shapes it.
    pub agent: Option<u32>,
    /// Whether its rate is a cap too, so that nothing is lent to it.
    pub is_strict: bool,
}

impl Slice {
    /// The VLAN tag of its packets between switches, and on the wires of servers.
    pub fn tag(&self) -> Option<u16> {
        match &self.isolation {
            SliceIsolation::Vlan(tag) => Some(*tag),
            SliceIsolation::Flowspace(_) | SliceIsolation::Address(_) => None,
        }
    }
}
