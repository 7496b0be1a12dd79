//! The app `proxy-arp`: answers questions for the address of a known host in that host's name.
//!
//! ```text
//!   ARP request, neighbour solicitation ──> host in the network view? ──> a packet-out with the answer, to the port of the question
//! ```
//!
//! In: ARP requests and neighbour solicitations, and the hosts of the network view. Out: packet-outs. It answers only if exactly one other host
//! of the VLAN has the address, and leaves all other questions to the app that forwards.

mod answer;

use burnet_sdk::flow::Match;
use burnet_sdk::flow::frame::FrameFields;
use burnet_sdk::view::{ConnectPoint, Host, HostId, Kind, Snapshot};
use burnet_sdk::{App, AppTable, Commands, Field, Interests, MacAddr, PacketIn, Settings};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;

/// The app. It takes no settings.
pub struct ProxyArp;

/// The app's table, for the kernel process of a node that has it built in. It is here and not there so that its code is built as the app's is.
pub static TABLE: AppTable = burnet_sdk::table::<ProxyArp>();

/// Serves a zone until that ends, for a node that has the app built in.
pub fn run() -> ExitCode {
    burnet_sdk::run::<ProxyArp>()
}

const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
const ARP_REQUEST: u128 = 1;
const ICMPV6: u8 = 58;
const NEIGHBOUR_SOLICITATION: u8 = 135;

/// The lengths of an Ethernet header without and with a VLAN tag.
const HEADER: usize = 14;
const TAGGED_HEADER: usize = 18;

/// A question for an address.
struct Question {
    asker: HostId,
    address: IpAddr,
    header: usize,
}

impl Question {
    fn read(frame: &[u8]) -> Option<Question> {
        let fields = FrameFields::read(frame);
        let mac = MacAddr::from_u64(u64::try_from(fields.get(Field::EthSrc)?).ok()?);
        let address = if fields.get(Field::ArpOp) == Some(ARP_REQUEST) {
            Ipv4Addr::from(u32::try_from(fields.get(Field::ArpTpa)?).ok()?).into()
        } else {
            Ipv6Addr::from(fields.get(Field::Ipv6NdTarget)?).into()
        };
        // The EtherType that counts is behind the tag. With a second tag the frame is left alone.
        let header = if frame.get(12..14)? == [0x81, 0x00] { TAGGED_HEADER } else { HEADER };
        let eth_type = fields.get(Field::EthType)?.to_be_bytes();
        let is_behind_one_tag = frame.get(header - 2..header)? == &eth_type[14..];
        // The lower 12 bits are the VLAN; the bit above marks a tagged frame (OpenFlow 1.3.5, 7.2.3.7).
        let tag = fields.get(Field::VlanVid).and_then(|tag| u16::try_from(tag & 0x0fff).ok());
        let asker = HostId { mac, vlan: tag.filter(|vlan| *vlan != 0) };
        is_behind_one_tag.then_some(Question { asker, address, header })
    }

    /// The one host that the answer is about.
    fn holder<'v>(&self, view: &'v Snapshot) -> Option<&'v Host> {
        let mut holders =
            view.hosts_with_address(self.address).filter(|host| host.id.vlan == self.asker.vlan);
        let holder = holders.next().filter(|host| host.id.mac != self.asker.mac)?;
        holders.next().is_none().then_some(holder)
    }

    fn answer(&self, frame: &[u8], mac: MacAddr) -> Option<Vec<u8>> {
        match self.address {
            IpAddr::V4(_) => answer::arp(frame, self.header, mac),
            IpAddr::V6(_) => answer::neighbour(frame, self.header, mac),
        }
    }
}

impl App for ProxyArp {
    fn new(settings: &Settings) -> Result<Self, String> {
        if *settings == Settings::default() {
            Ok(ProxyArp)
        } else {
            Err("proxy-arp takes no settings".to_owned())
        }
    }

    fn interests(&self) -> Interests {
        let solicitation = Match::any().with(Field::EthType, IPV6).with(Field::IpProto, ICMPV6);
        let solicitation = solicitation.with(Field::Icmpv6Type, NEIGHBOUR_SOLICITATION);
        let arp = Match::any().with(Field::EthType, ARP);
        Interests::none().packets_within(arp).packets_within(solicitation).view(&[Kind::Host])
    }

    fn on_packet_in(&mut self, packet: &PacketIn, out: &mut Commands) {
        let here = ConnectPoint { switch: packet.datapath, port: packet.in_port };
        if let Some(answer) = answer_to(packet.data, here, &out.view()) {
            out.packet_out(packet.datapath).frame(&answer).output(packet.in_port).send();
        }
    }
}

/// The frame that answers a question which came in here. `None` if it is not for this app to answer.
fn answer_to(frame: &[u8], here: ConnectPoint, view: &Snapshot) -> Option<Vec<u8>> {
    let question = Question::read(frame)?;
    // A host behind the same port hears the question itself.
    let holder = question.holder(view).filter(|holder| holder.at != here)?;
    question.answer(frame, holder.id.mac)
}

#[cfg(test)]
mod tests;
