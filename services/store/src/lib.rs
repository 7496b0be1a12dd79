//! The service `store`: keys and values of apps, on disk.
//!
//! ```text
//!   apps ──get, put, delete, list──> kernel ──and the grant──> [ this service ] ──one transaction a turn──> FOLDER/store.redb
//!        <─────────answers──────────        <──────────────────────┘ │
//!                                           <──how many bytes each app has
//!                                 monitor ──save──> a copy of all keys in FOLDER/store.saved
//! ```
//!
//! In: requests of apps, with their grants. Out: an answer to each, and the number of bytes of each app. A change is answered
//! after it is on disk. All waiting requests of one worker become one transaction. The service enforces grants and quotas.

pub mod copy;
pub mod folder;
pub mod store_file;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use burnet_sdk::store::{Ask, Grant, Op, status};
use burnet_sdk::{App, Caller, Commands, Interests, Level, Query, Settings, Ticket};

use store_contract::{Save, ToMonitor};

use crate::store_file::{PutResult, StoreError, StoreFile};

/// The settings, which the node writes.
#[derive(Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// The folder of its file.
    pub folder: PathBuf,
}

/// An answer that waits until earlier changes are on disk.
#[derive(Debug)]
struct Answer {
    ticket: Ticket,
    status: u16,
    /// Whether it is to a change.
    is_change: bool,
    /// The payload parts. Only a list has several, at most [`store_file::PARTS_MAX`].
    parts: Vec<Vec<u8>>,
}

impl Answer {
    /// The file cannot be used, for this reason.
    fn failed(ticket: Ticket, why: &str) -> Answer {
        Answer::refused(ticket, status::FAILED, why)
    }

    fn refused(ticket: Ticket, status: u16, why: &str) -> Answer {
        Answer { ticket, status, is_change: false, parts: vec![why.as_bytes().to_vec()] }
    }

    fn say(&self, out: &mut Commands) {
        let Some((last, parts)) = self.parts.split_last() else {
            return out.answer(self.ticket, self.status, false, &[]);
        };
        parts.iter().for_each(|part| out.answer(self.ticket, status::DONE, true, part));
        out.answer(self.ticket, self.status, false, last);
    }
}

/// The service, with its open file.
pub struct Store {
    folder: PathBuf,
    /// `None` if it cannot be opened, or was closed after a failure.
    file: Option<StoreFile>,
    /// The answers of this turn, at most one for each event.
    answers: Vec<Answer>,
    /// The last reported bytes of each app.
    told: BTreeMap<String, u64>,
    /// Opening the file was tried in this turn.
    tried: bool,
    /// Why the file cannot be used. It has been logged.
    trouble: Option<String>,
    /// The grants of callers: one for each app.
    grants: BTreeMap<u32, (Vec<u8>, Grant)>,
}

/// Runs the service until its zone ends. It is in this crate so that it is compiled with the options of the service.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Store>()
}

impl App for Store {
    fn new(settings: &Settings) -> Result<Self, String> {
        let StoreSettings { folder } = settings.read()?;
        let (answers, told, grants) = Default::default();
        Ok(Store { folder, file: None, answers, told, tried: false, trouble: None, grants })
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

    fn on_monitor(&mut self, message: &[u8], out: &mut Commands) -> Result<(), String> {
        let Save { ticket } = serde_json::from_slice(message)
            .map_err(|error| format!("the monitor's message cannot be read: {error}"))?;
        let saved = match &self.file {
            Some(file) => file.save(&self.folder).map_err(|error| error.to_string()),
            None => Err(self.trouble.clone().unwrap_or_default()),
        };
        out.tell_monitor(&ToMonitor::Saved { ticket, trouble: saved.err() });
        Ok(())
    }

    fn on_query(&mut self, query: &Query, out: &mut Commands) {
        let ticket = Ticket(query.ticket);
        let (ask, hard_bytes) = match self.read(query) {
            Ok(read) => read,
            Err((status, why)) => {
                return self.answers.push(Answer::refused(ticket, status, &why));
            }
        };
        if self.file.is_none() && !self.tried {
            self.open(out);
        }
        let Some(file) = &mut self.file else {
            return self.answers.push(Answer::failed(ticket, self.trouble.as_deref().unwrap_or_default()));
        };
        match do_it(file, query.caller.name, hard_bytes, &ask) {
            Ok((status, parts)) => {
                let is_change = ask.op.writes() && status == status::DONE;
                self.answers.push(Answer { ticket, status, is_change, parts });
            }
            Err(error) => {
                self.answers.push(Answer::failed(ticket, ""));
                self.give_up(&error, status::FAILED, out);
            }
        }
    }

    fn on_caught_up(&mut self, out: &mut Commands) {
        if let Some(Err(error)) = self.file.as_mut().map(StoreFile::commit) {
            // The error can come after the last byte was on disk.
            self.give_up(&error, status::MAYBE_DONE, out);
        }
        self.answers.drain(..).for_each(|answer| answer.say(out));
        self.tried = false;
        self.tell_used(out);
    }
}

impl Store {
    /// Returns the request and the caller's quota, if the grant allows it. Otherwise, returns a status and a sentence.
    fn read<'q>(&mut self, query: &Query<'q>) -> Result<(Ask<'q>, u64), (u16, String)> {
        let ask = Ask::from_bytes(query.payload).map_err(|why| (status::BAD_QUESTION, why.to_owned()))?;
        let grant = self.grant_of(&query.caller).map_err(|why| (status::FAILED, why))?;
        grant.check(&ask).map_err(|why| (status::NOT_GRANTED, why))?;
        Ok((ask, grant.hard_bytes.into()))
    }

    /// Parses a grant if it differs from the caller's last one.
    fn grant_of(&mut self, caller: &Caller<'_>) -> Result<&Grant, String> {
        let known = self.grants.get(&caller.number).is_some_and(|(bytes, _)| bytes == caller.grant);
        if !known {
            let grant = Grant::from_bytes(caller.grant)?;
            self.grants.insert(caller.number, (caller.grant.to_vec(), grant));
        }
        // It exists: it was inserted above or earlier.
        self.grants.get(&caller.number).map(|(_, grant)| grant).ok_or_else(String::new)
    }

    /// Opens the file. A damaged file is renamed and logged. After a failure, the next turn with requests tries again.
    fn open(&mut self, out: &mut Commands) {
        self.tried = true;
        match StoreFile::open(&self.folder, now_ms()) {
            Ok((store, remark)) => {
                self.file = Some(store);
                self.trouble = None;
                if let Some(remark) = remark {
                    out.log(Level::Error, &remark);
                }
            }
            Err(error) => self.complain(&error, out),
        }
    }

    /// The file failed. All answers of this turn become failures, those to its changes with this status.
    fn give_up(&mut self, error: &StoreError, of_changes: u16, out: &mut Commands) {
        self.file = None;
        let why = error.to_string();
        for answer in &mut self.answers {
            let status = if answer.is_change { of_changes } else { status::FAILED };
            *answer = Answer::refused(answer.ticket, status, &why);
        }
        self.tried = true;
        self.complain(error, out);
    }

    /// Logs the failure once, until the file can be used again.
    fn complain(&mut self, error: &StoreError, out: &mut Commands) {
        if self.trouble.replace(error.to_string()).is_none() {
            let line = format!("{error}: requests to the store fail until the cause is fixed");
            out.log(Level::Error, &line);
        }
    }

    /// The bytes of the apps that changed since the last report.
    fn tell_used(&mut self, out: &mut Commands) {
        let Some(file) = &self.file else { return };
        if *file.used() == self.told {
            return;
        }
        let gone = self.told.keys().filter(|app| !file.used().contains_key(*app)).map(|app| (app, &0));
        let changed = file.used().iter().filter(|(app, bytes)| self.told.get(*app) != Some(bytes));
        for (app, bytes) in changed.chain(gone) {
            out.tell_monitor(&ToMonitor::Stored { app: app.clone(), bytes: *bytes });
        }
        self.told.clone_from(file.used());
    }
}

/// Executes one request. Returns its status and the parts of its payload.
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
        Op::Put => put_answer(file.put(app, hard_bytes, key, value)?, hard_bytes),
        Op::ChangeAll => {
            // They were checked when the question was parsed.
            let changes = store_contract::changes(value).map_while(Result::ok);
            put_answer(file.change_all(app, hard_bytes, changes)?, hard_bytes)
        }
        Op::Delete => match file.delete(key)? {
            true => (status::DONE, Vec::new()),
            false => (status::NOT_FOUND, Vec::new()),
        },
        Op::List => {
            // It was checked as text when it was parsed.
            let after = std::str::from_utf8(value).unwrap_or_default();
            let (parts, more) = file.list(key, after)?;
            (if more { status::MORE_KEYS } else { status::DONE }, parts)
        }
    })
}

fn put_answer(result: PutResult, hard_bytes: u64) -> (u16, Vec<Vec<u8>>) {
    match result {
        PutResult::Done => (status::DONE, Vec::new()),
        PutResult::AppIsFull => {
            let why = format!(
                "store_bytes: the hard limit {hard_bytes} is reached; the operator raises it by store_bytes in the app's quotas"
            );
            (status::APP_FULL, vec![why.into_bytes()])
        }
        PutResult::StoreIsFull => (status::STORE_FULL, Vec::new()),
    }
}

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
