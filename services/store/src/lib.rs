//! The service that keeps what apps want to find again: keys and values, on disk.
//!
//! ```text
//!   apps ──get, put, delete, list──> kernel ──and the grant──> [ this service ] ──one transaction a turn──> FOLDER/store.redb
//!        <─────────answers──────────        <──────────────────────┘ │
//!                                           <──how many bytes each app has
//! ```
//!
//! In: what apps ask, with what each was granted. Out: an answer to each, a change only once it is on disk; how much each app
//! has. What waits at one worker becomes one transaction. It decides who may read and write what, and how many bytes each may have.

pub mod folder;
pub mod store_file;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use burnet_sdk::store::{Ask, Grant, Op, status};
use burnet_sdk::{App, Caller, Commands, FromService, Interests, Level, Query, Settings, Ticket};

use crate::store_file::{PutResult, StoreError, StoreFile};

/// Its settings, as the node makes them.
#[derive(Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// Where its file is.
    pub folder: PathBuf,
}

/// An answer that waits for what was changed before it to be on disk.
#[derive(Debug)]
struct Answer {
    ticket: Ticket,
    status: u16,
    /// A list has several; at most [`store_file::PARTS_MAX`].
    parts: Vec<Vec<u8>>,
}

impl Answer {
    fn of(ticket: Ticket, status: u16) -> Answer {
        Answer { ticket, status, parts: Vec::new() }
    }

    fn say(&self, out: &mut Commands) {
        let Some((last, parts)) = self.parts.split_last() else {
            return out.answer(self.ticket, self.status, false, &[]);
        };
        parts.iter().for_each(|part| out.answer(self.ticket, status::DONE, true, part));
        out.answer(self.ticket, self.status, false, last);
    }
}

/// The service.
pub struct Store {
    folder: PathBuf,
    /// `None`: it cannot be opened now, or was closed after a failure.
    file: Option<StoreFile>,
    /// Those of this turn: as many as a turn has events.
    answers: Vec<Answer>,
    /// What each app was last said to have.
    told: BTreeMap<String, u64>,
    /// It was tried in this turn to open the file.
    tried: bool,
    /// The operator was told that something cannot be kept.
    complained: bool,
    /// What callers were granted, as last read: one for each app that asks.
    grants: BTreeMap<u32, (Vec<u8>, Grant)>,
}

/// Serves a zone until that ends. It is here and not in the node so that its code is built as the service's is.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Store>()
}

impl App for Store {
    fn new(settings: &Settings) -> Result<Self, String> {
        let StoreSettings { folder } = settings.read()?;
        let (answers, told, grants) = Default::default();
        Ok(Store { folder, file: None, answers, told, tried: false, complained: false, grants })
    }

    fn interests(&self) -> Interests {
        Interests::none()
    }

    fn serves_monitor(&self) -> bool {
        true
    }

    fn on_start(&mut self, out: &mut Commands) {
        self.open(out);
        self.tell_used(out);
    }

    fn on_query(&mut self, query: &Query, out: &mut Commands) {
        let ticket = Ticket(query.ticket);
        let (ask, hard_bytes) = match self.read(query) {
            Ok(read) => read,
            Err((status, why)) => {
                return self.answers.push(Answer { ticket, status, parts: vec![why.into_bytes()] });
            }
        };
        if self.file.is_none() && !self.tried {
            self.open(out);
        }
        let Some(file) = &mut self.file else {
            return self.answers.push(Answer::of(ticket, status::FAILED));
        };
        match do_it(file, query.caller.name, hard_bytes, &ask) {
            Ok((status, parts)) => self.answers.push(Answer { ticket, status, parts }),
            Err(error) => {
                self.answers.push(Answer::of(ticket, status::FAILED));
                self.give_up(&error, out);
            }
        }
    }

    fn on_caught_up(&mut self, out: &mut Commands) {
        if let Some(Err(error)) = self.file.as_mut().map(StoreFile::commit) {
            self.give_up(&error, out);
        }
        self.answers.drain(..).for_each(|answer| answer.say(out));
        self.tried = false;
        self.tell_used(out);
    }
}

impl Store {
    /// What is asked, if it is granted, and how many bytes the caller may have; or a status and a sentence.
    fn read<'q>(&mut self, query: &Query<'q>) -> Result<(Ask<'q>, u64), (u16, String)> {
        let ask = Ask::from_bytes(query.payload).map_err(|why| (status::BAD_QUESTION, why.to_owned()))?;
        let grant = self.grant_of(&query.caller).map_err(|why| (status::FAILED, why))?;
        grant.check(&ask).map_err(|why| (status::NOT_GRANTED, why))?;
        Ok((ask, grant.hard_bytes.into()))
    }

    /// Reads a grant when it is another than the caller's last.
    fn grant_of(&mut self, caller: &Caller<'_>) -> Result<&Grant, String> {
        let known = self.grants.get(&caller.number).is_some_and(|(bytes, _)| bytes == caller.grant);
        if !known {
            let grant = Grant::from_bytes(caller.grant)?;
            self.grants.insert(caller.number, (caller.grant.to_vec(), grant));
        }
        // It is there: it was, or was put there just now.
        self.grants.get(&caller.number).map(|(_, grant)| grant).ok_or_else(String::new)
    }

    /// What is damaged is put aside and said; what cannot be opened is tried again in the next turn that asks for it.
    fn open(&mut self, out: &mut Commands) {
        self.tried = true;
        match StoreFile::open(&self.folder, now_ms()) {
            Ok((store, remark)) => {
                self.file = Some(store);
                self.complained = false;
                if let Some(remark) = remark {
                    out.log(Level::Error, &remark);
                }
            }
            Err(error) => self.complain(&error, out),
        }
    }

    /// Nothing of this turn is on disk: nobody is told that it is.
    fn give_up(&mut self, error: &StoreError, out: &mut Commands) {
        self.file = None;
        for answer in &mut self.answers {
            *answer = Answer::of(answer.ticket, status::FAILED);
        }
        self.tried = true;
        self.complain(error, out);
    }

    /// Once: it would be the same again and again.
    fn complain(&mut self, error: &StoreError, out: &mut Commands) {
        if !std::mem::replace(&mut self.complained, true) {
            let line = format!("{error}: what apps ask of the store fails until it is put right");
            out.log(Level::Error, &line);
        }
    }

    /// Of the apps whose bytes have changed since this was last said.
    fn tell_used(&mut self, out: &mut Commands) {
        let Some(file) = &self.file else { return };
        if *file.used() == self.told {
            return;
        }
        let gone = self.told.keys().filter(|app| !file.used().contains_key(*app)).map(|app| (app, &0));
        let changed = file.used().iter().filter(|(app, bytes)| self.told.get(*app) != Some(bytes));
        for (app, bytes) in changed.chain(gone) {
            out.tell_monitor(&FromService::Stored { app: app.clone(), bytes: *bytes });
        }
        self.told.clone_from(file.used());
    }
}

/// One thing that is asked: its status, and the parts of its payload.
fn do_it(
    file: &mut StoreFile,
    app: &str,
    hard_bytes: u64,
    ask: &Ask<'_>,
) -> Result<(u16, Vec<Vec<u8>>), StoreError> {
    let Ask { op, key, value } = *ask;
    Ok(match op {
        Op::Get => match file.get(key)? {
            Some(value) => (status::DONE, vec![value]),
            None => (status::NOT_FOUND, Vec::new()),
        },
        Op::Put => match file.put(app, hard_bytes, key, value)? {
            PutResult::Done => (status::DONE, Vec::new()),
            PutResult::AppIsFull => {
                let why = format!(
                    "store_bytes: the hard limit {hard_bytes} is reached; the operator raises it by store_bytes in the app's quotas"
                );
                (status::APP_FULL, vec![why.into_bytes()])
            }
            PutResult::StoreIsFull => (status::STORE_FULL, Vec::new()),
        },
        Op::Delete => match file.delete(key)? {
            true => (status::DONE, Vec::new()),
            false => (status::NOT_FOUND, Vec::new()),
        },
        Op::List => {
            // It was read as text at the border.
            let after = std::str::from_utf8(value).unwrap_or_default();
            let (parts, more) = file.list(key, after)?;
            (if more { status::MORE_KEYS } else { status::DONE }, parts)
        }
    })
}

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
