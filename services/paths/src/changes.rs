//! Questions that change intents: who may, what follows, and what the store says to it.
//!
//! ```text
//!   question ──> [ pending ] ──one at a time for each intent──> decide ──refused, or there already──> answer
//!                    ^                                             └──write──> [ storage ]
//!                    └──────the next question of the intent──────── answer <───────┘ it has the change, or not
//! ```
//!
//! In: questions with their grants, and what came of writes. Out: writes, events for the engine, answers. A change counts when the store
//! has it, and is refused only if the store does not have it. If the store does not say so, the answer is `MAYBE_STORED`.

use crate::engine::{Event, INTENTS_MAX, Kept};
use crate::pending::{Asked, Line, What};
use crate::questions::{Refused, no_intent, record};
use crate::service::Paths;
use crate::waiting::Caller;
use crate::writing::{Numbered, Writing};
use burnet_sdk::{Commands, Level, Query, Ticket};
use paths_contract::{AddResult, Addition, Grant, Question, status};
use view::{IntentId, IntentState};

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    // Plain data can always be written as JSON.
    serde_json::to_vec(value).unwrap_or_default()
}

/// What a question about an intent leads to.
enum Decided {
    /// The intent was there already.
    There(IntentId),
    /// The answer comes later.
    Waits,
}

impl Paths {
    /// A question that changes intents. Returns the payload of the answer, if it can be given now.
    pub(crate) fn on_change(
        &mut self,
        question: Question,
        grant: &Grant,
        query: &Query,
        out: &mut Commands,
    ) -> Result<Option<Vec<u8>>, Refused> {
        if !self.storage.is_loaded() {
            let why = "the store has not answered yet, so nothing can be kept: try again".to_owned();
            return Err((status::NOT_READY, why));
        }
        let changes = if let Question::AddAll { intents } = &question { intents.len() } else { 1 };
        if !self.storage.has_room(changes + self.pending.behind()) {
            let why = "too many changes wait for the store: ask again later".to_owned();
            return Err((status::NOT_STORED, why));
        }
        let what = match question {
            Question::AddAll { intents } => return Ok(self.add_all(intents, grant, query, out)),
            Question::Add { name, intent, annotations } => {
                What::Add(Box::new(Addition { name, intent, annotations }))
            }
            Question::Change { id, intent } => What::Change(id, Box::new(intent)),
            Question::Withdraw { id } => What::Withdraw(id),
            _ => return Ok(None),
        };
        let decided = self.decide(asked(what, Caller::One(Ticket(query.ticket)), grant, query), out)?;
        Ok(self.payload(&decided))
    }

    /// Adds each of these intents, or refuses it. Returns the answer if none of them waits for the store.
    fn add_all(
        &mut self,
        intents: Vec<Addition>,
        grant: &Grant,
        query: &Query,
        out: &mut Commands,
    ) -> Option<Vec<u8>> {
        let mut results = Vec::with_capacity(intents.len());
        for (number, addition) in intents.into_iter().enumerate() {
            let may = grant.check_wanted(&addition.intent).map_err(|why| (status::NOT_GRANTED, why));
            let caller = Caller::OfSeveral(Ticket(query.ticket), number);
            let asked = asked(What::Add(Box::new(addition)), caller, grant, query);
            results.push(match may.and_then(|()| self.decide(asked, out)) {
                Ok(Decided::There(id)) => Some(AddResult::Taken { id }),
                Ok(Decided::Waits) => None,
                Err((status, reason)) => Some(AddResult::Refused { status, reason }),
            });
        }
        self.waiting.begin(Ticket(query.ticket), results).map(|added| json(&added))
    }

    fn payload(&self, decided: &Decided) -> Option<Vec<u8>> {
        let Decided::There(id) = decided else { return None };
        self.engine.entry(*id).map(|entry| record(entry, &self.tables).to_bytes())
    }

    /// Decides a question, unless a write of its intent is under way. Then it waits for the end of that write.
    fn decide(&mut self, asked: Asked, out: &mut Commands) -> Result<Decided, Refused> {
        let id = match &asked.what {
            What::Change(id, _) | What::Withdraw(id) => Some(*id),
            What::Add(addition) => self.named(&asked.app, &addition.name),
        };
        let Some(id) = id.filter(|id| self.pending.has(*id)) else { return self.decide_now(asked, out) };
        if self.pending.is_unknown(id) {
            return Err(unknown(id));
        }
        self.pending.wait(id, asked);
        Ok(Decided::Waits)
    }

    fn named(&self, owner: &str, name: &str) -> Option<IntentId> {
        let entry = self.engine.named(owner, name).filter(|_| !name.is_empty());
        entry.map(|entry| entry.kept.id)
    }

    fn decide_now(&mut self, asked: Asked, out: &mut Commands) -> Result<Decided, Refused> {
        match asked.what {
            What::Add(addition) => return self.add(asked.app, *addition, asked.caller, out),
            What::Change(id, wanted) => {
                let places = self.engine.places(&wanted);
                let kept = self.owned(id, &asked.app, asked.is_for_all)?.clone();
                self.write(Writing::Change(Box::new(Kept { wanted, places, ..kept })), asked.caller, out);
            }
            What::Withdraw(id) => {
                self.owned(id, &asked.app, asked.is_for_all)?;
                self.write(Writing::Delete(id), asked.caller, out);
            }
        }
        Ok(Decided::Waits)
    }

    fn write(&mut self, change: Writing, caller: Caller, out: &mut Commands) {
        let id = change.id();
        let write = self.storage.write(change, out);
        self.pending.begin(id, write, Some(caller));
    }

    /// An intent that this app may change: its own, or any if its grant has no bounds.
    fn owned(&self, id: IntentId, caller: &str, is_for_all: bool) -> Result<&Kept, Refused> {
        let entry = self.engine.entry(id).ok_or_else(|| no_intent(id))?;
        let owner = &entry.kept.owner;
        if owner != caller && !is_for_all {
            return Err((status::CONFLICT, format!("id: the intent {id} belongs to the app {owner}")));
        }
        match entry.state {
            IntentState::Withdrawing => {
                Err((status::CONFLICT, format!("id: the intent {id} is being withdrawn")))
            }
            _ => Ok(&entry.kept),
        }
    }

    /// Adds an intent, unless there is one of this name.
    fn add(
        &mut self,
        owner: String,
        addition: Addition,
        caller: Caller,
        out: &mut Commands,
    ) -> Result<Decided, Refused> {
        let Addition { name, intent, annotations } = addition;
        if let Some(entry) = self.engine.named(&owner, &name).filter(|_| !name.is_empty()) {
            let id = entry.kept.id;
            if *entry.kept.wanted != intent || entry.state == IntentState::Withdrawing {
                let why = format!(
                    "name: the intent {id} has this name, and wants something else or is being withdrawn"
                );
                return Err((status::CONFLICT, why));
            }
            return Ok(Decided::There(id));
        }
        if self.engine.len() >= INTENTS_MAX {
            return Err((status::FULL, format!("there are {INTENTS_MAX} intents already")));
        }
        let id = self.storage.next_id(out);
        let places = self.engine.places(&intent);
        let kept = Kept { id, owner, name, wanted: Box::new(intent), annotations, places };
        self.tell(Event::Requested(kept.clone()));
        self.write(Writing::Add(Box::new(kept)), caller, out);
        Ok(Decided::Waits)
    }

    /// The store has a change.
    pub(crate) fn on_written(&mut self, Numbered { number, change }: Numbered, out: &mut Commands) {
        let id = change.id();
        let line = self.pending.end(id, number);
        // An intent that is withdrawn can be gone at once.
        let mut last = None;
        match change {
            Writing::Add(kept) | Writing::Change(kept) => self.tell(Event::Stored(*kept)),
            Writing::Places(_) => {}
            Writing::Delete(id) => {
                last = self.engine.entry(id).map(|entry| record(entry, &self.tables).to_bytes());
                self.tell(Event::Withdrawn(id));
            }
        }
        match line.caller {
            Some(Caller::One(ticket)) => {
                // The state that was just entered gets its stamp before it is told.
                self.tables.send(&self.engine, out);
                let now = self.engine.entry(id).map(|entry| record(entry, &self.tables).to_bytes());
                out.answer(ticket, status::DONE, false, &now.or(last).unwrap_or_default());
            }
            Some(Caller::OfSeveral(question, number)) => {
                self.settle(question, number, AddResult::Taken { id }, out);
            }
            None => {}
        }
        self.decide_behind(line, out);
    }

    /// The store does not have a change.
    pub(crate) fn on_not_written(
        &mut self,
        Numbered { number, change }: &Numbered,
        why: &str,
        out: &mut Commands,
    ) {
        let id = change.id();
        let line = self.pending.end(id, *number);
        match change {
            Writing::Places(_) => {
                let line = format!("the store does not know where the hosts of intent {id} are: {why}");
                out.log(Level::Warning, &line);
            }
            Writing::Add(_) => self.tell(Event::NotStored(id)),
            Writing::Change(_) | Writing::Delete(_) => {}
        }
        if let Some(caller) = line.caller {
            self.refuse(caller, (status::NOT_STORED, why.to_owned()), out);
        }
        self.decide_behind(line, out);
    }

    /// The store did not say whether it has these writes. They are read back, and callers are told so.
    pub(crate) fn on_unknown(&mut self, writes: &[(IntentId, u64)], out: &mut Commands) {
        if writes.is_empty() {
            return;
        }
        let count = writes.len();
        out.log(
            Level::Warning,
            &format!(
                "the store did not say whether it has {count} changes of intents: they are read back when it answers"
            ),
        );
        for (id, write) in writes {
            let (caller, behind) = self.pending.doubt(*id, *write);
            let why = format!(
                "the store did not say whether it has this change of the intent {id}: list the intents later"
            );
            caller.into_iter().for_each(|it| self.refuse(it, (status::MAYBE_STORED, why.clone()), out));
            behind.into_iter().for_each(|it| self.refuse(it, unknown(*id), out));
        }
    }

    /// The questions behind a write that is over.
    fn decide_behind(&mut self, line: Line, out: &mut Commands) {
        for asked in line.behind {
            let caller = asked.caller;
            match (self.decide(asked, out), caller) {
                (Ok(Decided::Waits), _) => {}
                (Ok(Decided::There(id)), Caller::OfSeveral(question, number)) => {
                    self.settle(question, number, AddResult::Taken { id }, out);
                }
                (Ok(decided), Caller::One(ticket)) => {
                    self.tables.send(&self.engine, out);
                    out.answer(ticket, status::DONE, false, &self.payload(&decided).unwrap_or_default());
                }
                (Err(refused), _) => self.refuse(caller, refused, out),
            }
        }
    }

    fn refuse(&mut self, caller: Caller, (status, reason): Refused, out: &mut Commands) {
        match caller {
            Caller::One(ticket) => out.answer(ticket, status, false, reason.as_bytes()),
            Caller::OfSeveral(question, number) => {
                self.settle(question, number, AddResult::Refused { status, reason }, out);
            }
        }
    }

    /// What came of one intent of a question with several.
    fn settle(&mut self, question: Ticket, number: usize, result: AddResult, out: &mut Commands) {
        if let Some(added) = self.waiting.settle(question, number, result) {
            out.answer(question, status::DONE, false, &json(&added));
        }
    }
}

/// The refusal of a question behind a write of which nothing is known.
fn unknown(id: IntentId) -> Refused {
    let why =
        format!("the store did not say whether it has an earlier change of the intent {id}: ask again later");
    (status::NOT_READY, why)
}

fn asked(what: What, caller: Caller, grant: &Grant, query: &Query) -> Asked {
    let is_for_all = grant.write.as_ref().is_some_and(Vec::is_empty);
    Asked { app: query.caller.name.to_owned(), is_for_all, caller, what }
}
