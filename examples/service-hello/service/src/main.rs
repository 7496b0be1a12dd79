//! The service `hello`: it greets people for other apps, and tells its followers who was greeted how often.
//!
//! ```text
//!   apps ──Greet, and the part of the grant──> [ this service ] ──greeting──> the app that asked
//!                                                     └──a stream of names and counts──> apps that follow
//! ```
//!
//! In: questions, and what each caller was granted. Out: an answer to each question, and changes for followers. It
//! never reads a packet, and keeps nothing on disk.

use burnet_sdk::stream::Table;
use burnet_sdk::{App, Commands, Form, Interests, Query, Settings, Ticket};
use hello_contract::{GREET, Grant, Greet, status};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// The maximum number of people. One more is not greeted, so that callers cannot fill the memory.
const PEOPLE_MAX: usize = 10_000;

#[derive(Default)]
struct Hello {
    /// Names, and how often each was greeted.
    greeted: Table,
    people: BTreeMap<String, u64>,
    /// Greetings for each app since the service started, by the app's name: one entry for each app that was granted any.
    used: BTreeMap<String, u64>,
}

impl App for Hello {
    fn new(settings: &Settings) -> Result<Self, String> {
        match *settings == Settings::default() {
            true => Ok(Hello::default()),
            false => Err("the service hello takes no settings".to_owned()),
        }
    }

    fn interests(&self) -> Interests {
        Interests::none()
    }

    fn on_query(&mut self, query: &Query, out: &mut Commands) {
        let answer = match query.form {
            Form::Stream => match Grant::from_bytes(query.caller.grant) {
                Ok(grant) if grant.may_follow() => return self.greeted.follow(query, out),
                Ok(_) => {
                    Err((status::NOT_GRANTED, format!("{GREET}: the app does not hold this capability")))
                }
                Err(why) => Err((status::NOT_GRANTED, why)),
            },
            _ => self.greet(query),
        };
        let (status, text) = match answer {
            Ok(greeting) => (status::GREETED, greeting),
            Err((status, why)) => (status, why),
        };
        out.answer(Ticket(query.ticket), status, false, text.as_bytes());
        self.greeted.send(out);
    }

    fn on_credit(&mut self, _: Ticket, out: &mut Commands) {
        self.greeted.send(out);
    }
}

impl Hello {
    fn greet(&mut self, query: &Query) -> Result<String, (u16, String)> {
        let greet = Greet::from_bytes(query.payload).map_err(|why| (status::BAD_QUESTION, why.to_owned()))?;
        let grant = Grant::from_bytes(query.caller.grant).map_err(|why| (status::NOT_GRANTED, why))?;
        let used = self.used.entry(query.caller.name.to_owned()).or_default();
        grant.check(greet, *used)?;
        if self.people.len() >= PEOPLE_MAX && !self.people.contains_key(greet.name) {
            return Err((status::CROWDED, format!("the service knows {PEOPLE_MAX} people already")));
        }
        *used += 1;
        let times = self.people.entry(greet.name.to_owned()).or_default();
        *times += 1;
        self.greeted.put(greet.name.as_bytes(), times.to_string().as_bytes());
        Ok(format!("Hello, {}!", greet.name))
    }
}

fn main() -> ExitCode {
    burnet_sdk::run::<Hello>()
}
