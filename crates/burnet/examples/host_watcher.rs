//! An app that logs each change of the table of hosts, and pretends once that a host is at another port. Tests use it to look at the
//! service `hosts`.
//!
//! In: the stream of hosts, incidents. Out: log lines, one forged frame, a configured host. It does nothing useful.

use burnet_sdk::stream::Update;
use burnet_sdk::{
    App, Commands, Interests, Level, MacAddr, PortNo, QueryReply, Receipt, Settings, Ticket, Topic, view,
};
use serde::Deserialize;
use view::{ConnectPoint, Host, Object, Record};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WatcherSettings {
    /// Where the forged frame comes in.
    forge_at: Option<ConnectPoint>,
    /// A question to the service.
    ask: String,
}

impl Default for WatcherSettings {
    fn default() -> Self {
        WatcherSettings { forge_at: None, ask: r#"{"op":"counts"}"#.to_owned() }
    }
}

struct Watcher {
    settings: WatcherSettings,
    hosts: Vec<Host>,
    /// The question failed, for example because the store has not started yet. It is asked again at the next tick.
    asks_again: bool,
}

/// A gratuitous ARP request of this host.
fn announcement(mac: MacAddr, address: [u8; 4]) -> Vec<u8> {
    let mut frame = [&[0xff; 6][..], &mac.0, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &mac.0, &address].concat();
    frame.extend([0; 6]);
    frame.extend(address);
    frame
}

impl App for Watcher {
    fn new(settings: &Settings) -> Result<Self, String> {
        Ok(Watcher { settings: settings.read()?, hosts: Vec::new(), asks_again: false })
    }

    fn interests(&self) -> Interests {
        Interests::none().topics().ticks()
    }

    fn on_start(&mut self, out: &mut Commands) {
        out.follow("hosts", b"");
    }

    fn on_stream(&mut self, _: Ticket, update: &Update, out: &mut Commands) {
        match *update {
            Update::Entry { value, .. } | Update::Put { value, .. } => {
                let Ok(Record { object: Object::Host(host), .. }) = Record::from_bytes(value) else { return };
                out.log(Level::Information, &format!("{} at {} with {:?}", host.id, host.at, host.addresses));
                self.hosts.push(host);
            }
            Update::Removed { key, .. } => {
                out.log(Level::Information, &format!("gone: {}", String::from_utf8_lossy(key)));
            }
            Update::Complete { .. } => {
                out.query("hosts", self.settings.ask.as_bytes());
            }
            Update::Ended { .. } => drop(out.follow("hosts", b"")),
            _ => {}
        }
    }

    fn on_receipt(&mut self, _: burnet_sdk::DatapathId, receipt: &Receipt, out: &mut Commands) {
        out.log(Level::Information, &format!("receipt: {:?} {}", receipt.outcome, receipt.reason));
    }

    fn on_query_reply(&mut self, reply: &QueryReply, out: &mut Commands) {
        let said = String::from_utf8_lossy(reply.payload);
        out.log(Level::Information, &format!("answer {}: {said}", reply.status));
        self.asks_again = reply.status != 0;
    }

    fn on_topic(&mut self, topic: &Topic, out: &mut Commands) {
        out.log(Level::Information, &format!("{}: {}", topic.topic, String::from_utf8_lossy(topic.payload)));
    }

    fn on_tick(&mut self, _: u64, out: &mut Commands) {
        if std::mem::take(&mut self.asks_again) {
            out.query("hosts", self.settings.ask.as_bytes());
        }
        let Some(at) = self.settings.forge_at else { return };
        let victim = self.hosts.iter().rev().find(|host| host.at != at && !host.addresses.is_empty());
        let Some(victim) = victim else { return };
        let Some(std::net::IpAddr::V4(address)) = victim.addresses.first() else { return };
        let frame = announcement(victim.id.mac, address.octets());
        // The switch sends the frame to the controller as one that came in at this port.
        out.packet_out(at.switch).in_port(at.port).frame(&frame).output(PortNo::CONTROLLER).send();
    }
}

burnet_sdk::main!(Watcher);
