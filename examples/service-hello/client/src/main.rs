//! An app that calls the service `hello`: it has the people in its settings greeted, and prints each answer and
//! each change of the stream.
//!
//! In: answers, and changes of the service's table. Out: queries, and lines on standard output. It uses no switch.

use burnet_sdk::stream::Update;
use burnet_sdk::{App, Commands, Interests, QueryReply, Settings, Ticket};
use hello_contract::{Greet, SERVICE, status};
use serde::Deserialize;
use std::process::ExitCode;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Client {
    /// People that are to be greeted, in this order.
    names: Vec<String>,
}

impl App for Client {
    fn new(settings: &Settings) -> Result<Self, String> {
        settings.read()
    }

    fn interests(&self) -> Interests {
        Interests::none()
    }

    fn on_start(&mut self, out: &mut Commands) {
        out.follow(SERVICE, b"");
        for name in &self.names {
            out.query(SERVICE, &Greet { name }.to_bytes());
        }
    }

    fn on_query_reply(&mut self, reply: &QueryReply, _: &mut Commands) {
        let text = String::from_utf8_lossy(reply.payload);
        match reply.status {
            status::GREETED => println!("answer: {text}"),
            status::NOT_GRANTED | status::OVER_QUOTA => println!("refused: {text}"),
            other => println!("no answer: status {other} {text}"),
        }
    }

    fn on_stream(&mut self, _: Ticket, update: &Update, _: &mut Commands) {
        match *update {
            Update::Entry { key, value } | Update::Put { key, value, .. } => {
                println!("greeted: {} {}", String::from_utf8_lossy(key), String::from_utf8_lossy(value));
            }
            Update::Complete { .. } => println!("following"),
            _ => {}
        }
    }
}

fn main() -> ExitCode {
    burnet_sdk::run::<Client>()
}
