//! Connects each host with a server by a protected intent, and prints each state of these intents.
//!
//! In: hosts and intents of the network view. Out: questions to the service `paths`, lines on standard output.

use burnet_sdk::view::{Batch, Kind, Object, Snapshot};
use burnet_sdk::{App, Commands, Interests, Settings};
use std::net::IpAddr;

#[derive(serde::Deserialize)]
struct ToServer {
    server: IpAddr,
}

impl App for ToServer {
    fn new(settings: &Settings) -> Result<Self, String> {
        settings.read()
    }

    fn interests(&self) -> Interests {
        Interests::none().view(&[Kind::Host, Kind::Intent])
    }

    fn on_view(&mut self, changes: &Batch, view: &Snapshot, out: &mut Commands) {
        for change in changes.of(Kind::Intent) {
            if let Some(Object::Intent(intent)) = change.now() {
                println!("{}: {}", intent.name, intent.state.word());
            }
        }
        let Some(server) = view.hosts_with_address(self.server).next() else { return };
        for host in view.hosts().filter(|host| host.id != server.id && changes.of(Kind::Host).count() > 0) {
            let intent = serde_json::json!({ "type": "host_to_host", "one": host.id, "two": server.id, "protection": "protected" });
            // A question with the same name and the same intent can be repeated.
            let question = serde_json::json!({ "op": "add", "name": host.id.to_string(), "intent": intent });
            out.query("paths", question.to_string().as_bytes());
        }
    }
}

burnet_sdk::main!(ToServer);
