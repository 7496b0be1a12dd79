//! What the service keeps in the service `store`: it is loaded at the start, and each change is written before it counts.
//!
//! ```text
//!   start ──list──> keys ──get, 32 at a time──> Loaded, one by one ──> LoadedAll
//!   changes ──> [ groups ] ──a question for each group──> answer ──> Written or Failed
//!                                                           └──the store does not say──> [ doubts ] ──> Written or Failed
//! ```
//!
//! Changes wait until [`Storage::send`], and go to the store in groups. While enough is under way, the next groups grow. So the store
//! has few questions to answer and few transactions to write, however many intents are added at once.
//!
//! An intent has one write at a time, so the order of groups does not matter.
//!
//! In: answers of the store. Out: calls to it, and what has come of them. It decides nothing about intents.

use crate::doubts::{Doubts, Read, is_doubtful};
use crate::engine::Kept;
use crate::writing::{Numbered, PREFIX, What, Writing, key_of};
use burnet_sdk::store::{Change, Changes, status};
use burnet_sdk::{Commands, Loaded, QueryReply, StoreLoader, Ticket, query_status, store_failure};
use std::collections::{HashMap, VecDeque};
use view::IntentId;

/// The key of the lowest number that no intent can have had.
const NEXT: &str = "paths/next";

/// How many numbers are reserved at a time.
const RESERVED: u64 = 1_000;

/// Changes that wait for the store at one time. One more is refused: its caller can ask again.
pub const WRITES_MAX: usize = 1_024;

/// The most bytes of a group of several changes, and of all groups that are under way. The kernel keeps some 190 KiB of questions for a
/// service, and a caller may have half of it. The store makes all that waits for it one transaction, which costs some milliseconds
/// however large it is. So the more is under way, the more changes share that time.
const GROUP_BYTES: usize = 42 << 10;
const UNDER_WAY_BYTES_MAX: usize = 2 * GROUP_BYTES;

/// How long no group is sent after the store was too busy to take one. It doubles each time, and a group is sent so often at most.
const BUSY_MS: u64 = 1;
const BUSY_MAX: u32 = 11;

/// How long after a failure the store is asked again. It may start later than this service.
const RETRY_MS: u64 = 1_000;

/// What an answer of the store means.
#[derive(Debug, PartialEq)]
pub enum Heard {
    /// The answer is to no call of this file.
    NotMine,
    /// Nothing yet.
    Nothing,
    /// An intent was kept.
    Loaded(Box<Kept>),
    /// All intents are loaded.
    LoadedAll,
    /// Changes are in the store.
    Written(Vec<Numbered>),
    /// Changes are not in the store, for this reason.
    Failed(Vec<Numbered>, String),
    /// Something for the log.
    Complaint(String),
}

/// Changes for one question, all of one kind.
#[derive(Debug)]
struct Group {
    what: What,
    changes: Changes,
    of: Vec<Numbered>,
    /// How often the store was too busy for it.
    refused: u32,
}

/// What the service keeps in the store.
#[derive(Debug)]
pub struct Storage {
    next: Option<Ticket>,
    /// The reservation of numbers that is under way, and up to which number.
    reserving: Option<(Ticket, u64)>,
    loader: StoreLoader,
    /// Groups that wait. The last one of each kind may still grow.
    waiting: VecDeque<Group>,
    writing: HashMap<Ticket, Group>,
    writing_bytes: usize,
    /// No group is sent before.
    busy_until_ms: u64,
    doubts: Doubts,
    /// The changes of all three.
    writes: usize,
    /// The number of the last write.
    last_write: u64,
    retry_at_ms: Option<u64>,
    has_complained: bool,
    /// Numbers below it are reserved in the store, or are asked for.
    reserved: u64,
    last_id: u64,
}

impl Default for Storage {
    fn default() -> Storage {
        Storage {
            next: None,
            reserving: None,
            loader: StoreLoader::new(PREFIX),
            waiting: VecDeque::new(),
            writing: HashMap::new(),
            writing_bytes: 0,
            busy_until_ms: 0,
            doubts: Doubts::default(),
            writes: 0,
            last_write: 0,
            retry_at_ms: None,
            has_complained: false,
            reserved: 0,
            last_id: 0,
        }
    }
}

impl Storage {
    /// Begins to load.
    pub fn load(&mut self, out: &mut Commands) {
        self.retry_at_ms = None;
        self.next = Some(out.store_get(NEXT));
    }

    /// When to call [`Storage::on_time`].
    pub fn next_due_ms(&self) -> Option<u64> {
        let busy = Some(self.busy_until_ms).filter(|_| !self.waiting.is_empty() && self.writing.is_empty());
        self.retry_at_ms.into_iter().chain(self.doubts.next_due_ms()).chain(busy).min()
    }

    /// Asks the store again, if it is time. Returns the writes of which callers are told that their outcome is not known.
    pub fn on_time(&mut self, now_ms: u64, out: &mut Commands) -> Vec<(IntentId, u64)> {
        if self.retry_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            self.load(out);
        }
        self.doubts.on_time(now_ms, out)
    }

    /// Whether all intents are loaded.
    pub fn is_loaded(&self) -> bool {
        self.loader.is_complete()
    }

    /// Whether so many more changes can wait for the store.
    pub fn has_room(&self, changes: usize) -> bool {
        self.writes + changes <= WRITES_MAX
    }

    /// Whether one more place can wait for the store. Half of the room is for changes that a caller waits for.
    pub fn has_room_for_places(&self) -> bool {
        self.writes < WRITES_MAX / 2
    }

    /// A number that no intent has had.
    pub fn next_id(&mut self, out: &mut Commands) -> IntentId {
        self.last_id += 1;
        if self.last_id >= self.reserved {
            self.reserved = self.last_id + RESERVED;
            // Before the intent's own key, and in the same transaction or an earlier one.
            let ticket = out.store_put(NEXT, self.reserved.to_string().as_bytes());
            self.reserving = Some((ticket, self.last_id));
        }
        IntentId(self.last_id)
    }

    /// Writes a change, with the next [`Storage::send`]. No other write of the intent may be under way. Returns the number of the write.
    pub fn write(&mut self, change: Writing, out: &mut Commands) -> u64 {
        let (what, key, value) = (change.what(), key_of(change.id()), change.value());
        self.writes += 1;
        self.last_write += 1;
        let number = self.last_write;
        let write = Numbered { number, change };
        let added = Change { key: &key, value: value.as_deref() };
        let added_bytes = key.len() + value.as_ref().map_or(0, Vec::len);
        let has_room = |group: &&mut Group| group.changes.as_bytes().len() + added_bytes <= GROUP_BYTES;
        let last = self.waiting.iter_mut().rfind(|group| group.what == what);
        if let Some(group) = last.filter(has_room)
            && group.changes.add(&added)
        {
            group.of.push(write);
            return number;
        }
        let mut group = Group { what, changes: Changes::default(), of: Vec::new(), refused: 0 };
        if group.changes.add(&added) {
            group.of.push(write);
            self.waiting.push_back(group);
            return number;
        }
        // It is longer than the store takes, which is for the store to say.
        let ticket = out.store_put(&key, value.as_deref().unwrap_or_default());
        group.of.push(write);
        self.writing.insert(ticket, group);
        number
    }

    /// Sends changes that wait, as far as the store has room.
    pub fn send(&mut self, now_ms: u64, out: &mut Commands) {
        if now_ms < self.busy_until_ms {
            return;
        }
        let has_room = |bytes: usize, next: &mut Group| {
            bytes == 0 || bytes + next.changes.as_bytes().len() <= UNDER_WAY_BYTES_MAX
        };
        while let Some(group) = self.waiting.pop_front_if(|next| has_room(self.writing_bytes, next)) {
            self.writing_bytes += group.changes.as_bytes().len();
            self.writing.insert(out.store_change_all(&group.changes), group);
        }
    }

    fn take_writing(&mut self, ticket: Ticket) -> Option<Group> {
        let group = self.writing.remove(&ticket)?;
        self.writing_bytes -= group.changes.as_bytes().len();
        Some(group)
    }

    /// An answer of a service. The kernel's refusals come as [`Storage::refused`].
    pub fn hear(&mut self, reply: &QueryReply<'_>, now_ms: u64, out: &mut Commands) -> Heard {
        let ticket = Ticket(reply.ticket);
        if self.next.take_if(|next| *next == ticket).is_some() {
            return self.hear_next(reply, now_ms, out);
        }
        if let Some(reserving) = self.reserving.take_if(|(reserving, _)| *reserving == ticket) {
            return match reply.status {
                status::DONE => Heard::Nothing,
                _ => self.not_reserved(reserving, &store_failure(reply)),
            };
        }
        match self.loader.on_reply(reply, out) {
            Loaded::NotMine => {}
            Loaded::Nothing => return self.progress(Heard::Nothing),
            Loaded::Value(key, value) => return self.hear_value(&key, value),
            Loaded::Failed(why) => return self.retry_later(now_ms, &why),
        }
        match self.doubts.on_reply(reply, now_ms, out) {
            Read::NotMine => {}
            Read::Nothing => return Heard::Nothing,
            Read::Has(write) => return self.written(vec![write]),
            Read::HasNot(write, why) => return self.failed(vec![write], why),
        }
        let Some(group) = self.take_writing(ticket) else { return Heard::NotMine };
        match reply.status {
            status::DONE => self.written(group.of),
            // It did not reach the store.
            query_status::SERVICE_BUSY if group.refused < BUSY_MAX && !group.changes.is_empty() => {
                self.busy_until_ms = self.busy_until_ms.max(now_ms + (BUSY_MS << group.refused));
                self.waiting.push_front(Group { refused: group.refused + 1, ..group });
                Heard::Nothing
            }
            status if is_doubtful(status) => self.doubtful(group.of, store_failure(reply), now_ms),
            _ => self.failed(group.of, store_failure(reply)),
        }
    }

    fn written(&mut self, changes: Vec<Numbered>) -> Heard {
        self.writes -= changes.len();
        Heard::Written(changes)
    }

    /// Nobody waits for places, and the next write of the intent brings them too. So only other changes are read back.
    fn doubtful(&mut self, mut changes: Vec<Numbered>, why: String, now_ms: u64) -> Heard {
        let places = changes.extract_if(.., |it| it.change.what() == What::Moves).collect();
        self.doubts.add(changes, &why, now_ms);
        self.failed(places, why)
    }

    fn failed(&mut self, changes: Vec<Numbered>, why: String) -> Heard {
        self.writes -= changes.len();
        Heard::Failed(changes, why)
    }

    /// The kernel refused a call.
    pub fn refused(&mut self, ticket: Ticket, reason: &str, now_ms: u64) -> Heard {
        if self.next.take_if(|next| *next == ticket).is_some()
            || self.loader.on_refusal(ticket, reason) != Loaded::NotMine
        {
            return self.retry_later(now_ms, reason);
        }
        if let Some(reserving) = self.reserving.take_if(|(reserving, _)| *reserving == ticket) {
            return self.not_reserved(reserving, reason);
        }
        match self.take_writing(ticket) {
            Some(group) => self.failed(group.of, reason.to_owned()),
            None if self.doubts.on_refused(ticket, now_ms) => Heard::Nothing,
            None => Heard::NotMine,
        }
    }

    /// The next intent asks again. Until then, a restart could give the number of a withdrawn intent to a new one.
    fn not_reserved(&mut self, (_, last_id): (Ticket, u64), why: &str) -> Heard {
        self.reserved = last_id;
        Heard::Complaint(format!("numbers for intents are not reserved in the store: {why}"))
    }

    fn hear_next(&mut self, reply: &QueryReply<'_>, now_ms: u64, out: &mut Commands) -> Heard {
        match reply.status {
            status::DONE => {
                let next = String::from_utf8_lossy(reply.payload).parse().unwrap_or(0);
                (self.last_id, self.reserved) = (next, next);
            }
            status::NOT_FOUND => {}
            _ => return self.retry_later(now_ms, &store_failure(reply)),
        }
        self.loader.start(out);
        Heard::Nothing
    }

    fn hear_value(&mut self, key: &str, value: &[u8]) -> Heard {
        match serde_json::from_slice::<Box<Kept>>(value) {
            Ok(kept) => {
                self.last_id = self.last_id.max(kept.id.0);
                Heard::Loaded(kept)
            }
            Err(error) => Heard::Complaint(format!("the store's key {key} is damaged and left out: {error}")),
        }
    }

    /// The caller asks [`Storage::is_loaded`] after an intent, which can be the last one.
    fn progress(&self, heard: Heard) -> Heard {
        match heard {
            Heard::Nothing if self.is_loaded() => Heard::LoadedAll,
            heard => heard,
        }
    }

    /// The next load begins at the first key: what was loaded is loaded once more.
    fn retry_later(&mut self, now_ms: u64, why: &str) -> Heard {
        self.retry_at_ms = Some(now_ms + RETRY_MS);
        match std::mem::replace(&mut self.has_complained, true) {
            true => Heard::Nothing,
            false => Heard::Complaint(format!("intents are not available: {why}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::testing::in_words;

    fn reply(ticket: Ticket, status: u16, payload: &[u8]) -> QueryReply<'_> {
        QueryReply { ticket: ticket.0, status, more: false, payload }
    }

    /// Loaded from an empty store.
    fn loaded(out: &mut Commands) -> Storage {
        let mut storage = Storage::default();
        storage.load(out);
        let next = storage.next.expect("it is asked for");
        assert_eq!(storage.hear(&reply(next, status::NOT_FOUND, b""), 0, out), Heard::Nothing);
        storage
    }

    #[test]
    fn numbers_that_could_not_be_reserved_are_asked_for_again_and_the_operator_is_told() {
        let mut out = Commands::new();
        let mut storage = loaded(&mut out);
        assert_eq!(storage.next_id(&mut out), IntentId(1));
        let (ticket, _) = storage.reserving.expect("the numbers up to 1,001 are asked for");
        assert_eq!(storage.next_id(&mut out), IntentId(2));
        assert_eq!(storage.reserving, Some((ticket, 1)), "they are asked for once");
        let heard = storage.hear(&reply(ticket, status::FAILED, b"no disk"), 0, &mut out);
        assert!(matches!(&heard, Heard::Complaint(why) if why.contains("not reserved")), "{heard:?}");
        assert_eq!(storage.next_id(&mut out), IntentId(3));
        let (again, _) = storage.reserving.expect("they are asked for again");
        assert_eq!(storage.hear(&reply(again, status::DONE, b""), 0, &mut out), Heard::Nothing);
        assert_eq!((storage.next_id(&mut out), storage.reserving), (IntentId(4), None));
        let asked = in_words(out.frames());
        let puts = asked.iter().filter(|line| line.contains("Put \"paths/next\""));
        assert_eq!(puts.count(), 2, "{asked:?}");
    }

    #[test]
    fn a_reservation_that_the_kernel_refuses_is_no_silence_either() {
        let mut out = Commands::new();
        let mut storage = loaded(&mut out);
        storage.next_id(&mut out);
        let (ticket, _) = storage.reserving.expect("it is asked for");
        assert!(matches!(storage.refused(ticket, "no", 0), Heard::Complaint(_)));
        assert_eq!(storage.refused(ticket, "no", 0), Heard::NotMine);
    }

    fn kept(id: u64) -> Writing {
        let point = |text: &str| text.parse().expect("a port");
        let ends = view::Ends::PointToPoint { from: point("1/1"), to: point("2/1") };
        let (selector, treatment, constraints) = Default::default();
        let (priority, protection) = (view::INTENT_PRIORITY, view::Protection::Restored);
        let wanted = Box::new(view::Wanted { ends, selector, treatment, constraints, priority, protection });
        let (owner, name, annotations) = ("a".to_owned(), format!("n{id}"), Default::default());
        Writing::Add(Box::new(Kept { id: IntentId(id), owner, name, wanted, annotations, places: None }))
    }

    fn numbered(number: u64, change: Writing) -> Numbered {
        Numbered { number, change }
    }

    /// The questions with changes so far, and how many changes each has.
    fn questions(out: &Commands) -> Vec<usize> {
        let asked = in_words(out.frames());
        let changes = asked.iter().filter(|line| line.contains("ChangeAll"));
        // A put begins with 1 and a delete with 2; both name the prefix once.
        let prefix = PREFIX.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ");
        changes.map(|line| line.matches(&prefix).count()).collect()
    }

    #[test]
    fn changes_of_one_turn_are_one_question_and_while_enough_is_under_way_the_next_one_grows() {
        let mut out = Commands::new();
        let mut storage = loaded(&mut out);
        let mut turn = |storage: &mut Storage, ids: std::ops::Range<u64>| {
            for id in ids {
                storage.write(kept(id), &mut out);
            }
            storage.send(0, &mut out);
            questions(&out)
        };
        assert_eq!(turn(&mut storage, 1..4), [3]);
        assert_eq!(turn(&mut storage, 4..5), [3, 1]);
        let many = 1_000 - 4;
        let sent = turn(&mut storage, 5..5 + many);
        let under_way: usize = sent.iter().sum();
        assert!(under_way < 1_000 && storage.writing_bytes <= UNDER_WAY_BYTES_MAX, "{sent:?}");
        assert_eq!(storage.writing_bytes / GROUP_BYTES, 1, "no whole group fits any more");
        assert!(storage.waiting.iter().all(|group| group.changes.as_bytes().len() <= GROUP_BYTES + 1_024));
        assert!(storage.has_room(WRITES_MAX - 1_000) && !storage.has_room(WRITES_MAX - 999));
        let first =
            storage.writing.keys().min_by_key(|ticket| ticket.0).copied().expect("several are under way");
        let heard = storage.hear(&reply(first, status::DONE, b""), 0, &mut Commands::new());
        let all = (1..4).map(|id| numbered(id, kept(id))).collect();
        assert_eq!(heard, Heard::Written(all));
    }

    #[test]
    fn additions_and_withdrawals_in_turn_are_two_questions() {
        let mut out = Commands::new();
        let mut storage = loaded(&mut out);
        for id in 1..=100 {
            storage.write(kept(id), &mut out);
            storage.write(Writing::Delete(IntentId(1_000 + id)), &mut out);
        }
        storage.send(0, &mut out);
        assert_eq!(questions(&out), [100, 100]);
    }

    #[test]
    fn a_group_for_which_the_store_is_too_busy_is_sent_again_and_not_for_ever() {
        let mut out = Commands::new();
        let mut storage = loaded(&mut out);
        let number = storage.write(kept(1), &mut out);
        let mut now_ms = 0;
        for _ in 0..BUSY_MAX {
            storage.send(now_ms, &mut out);
            let ticket = storage.writing.keys().copied().next().expect("it is under way");
            let busy = reply(ticket, query_status::SERVICE_BUSY, b"");
            assert_eq!(storage.hear(&busy, now_ms, &mut out), Heard::Nothing);
            storage.send(now_ms, &mut out);
            assert!(storage.writing.is_empty(), "it waits");
            now_ms = storage.next_due_ms().expect("a time");
        }
        assert!((1_000..4_000).contains(&now_ms), "{now_ms}");
        storage.send(now_ms, &mut out);
        let ticket = storage.writing.keys().copied().next().expect("it is under way");
        let heard = storage.hear(&reply(ticket, query_status::SERVICE_BUSY, b""), now_ms, &mut out);
        assert_eq!(heard, Heard::Failed(vec![numbered(number, kept(1))], "the store is busy".to_owned()));
    }

    #[test]
    fn a_full_store_refuses_additions_and_no_withdrawal() {
        let mut out = Commands::new();
        let mut storage = loaded(&mut out);
        let added = storage.write(kept(1), &mut out);
        let withdrawn = storage.write(Writing::Delete(IntentId(9)), &mut out);
        storage.send(0, &mut out);
        assert_eq!(questions(&out), [1, 1]);
        let mut tickets: Vec<Ticket> = storage.writing.keys().copied().collect();
        tickets.sort_unstable();
        let full = storage.hear(&reply(tickets[0], status::APP_FULL, b"store_bytes: full"), 0, &mut out);
        assert!(
            matches!(&full, Heard::Failed(failed, _) if *failed == [numbered(added, kept(1))]),
            "{full:?}"
        );
        let done = storage.hear(&reply(tickets[1], status::DONE, b""), 0, &mut out);
        assert_eq!(done, Heard::Written(vec![numbered(withdrawn, Writing::Delete(IntentId(9)))]));
        assert!(storage.has_room(WRITES_MAX));
    }
}
