//! Who says whether an app's package is still good: the service `security`, or, while it says nothing, a thread of the monitor's own process. Pure.
//!
//! ```text
//!   starts, now and then all that runs ──> a round ──> papers (the clerk) ──> the service ──words──> supervisor
//!                                                                 └─ none in time ──> the clerk ──words──┘
//! ```
//!
//! In: whom to ask about, what papers, service and clerk say, the time. Out: whom to ask what, and words that count: one for each start that was asked
//! about, once. It reads nothing, starts nobody and ends nobody.

use std::collections::{BTreeMap, VecDeque};

pub use monitor_channel::verdict::{Says, Word};

/// How often what runs is looked at, in milliseconds. A look at packages in which nothing changed reads a few small files.
pub const LOOK_INTERVAL_MS: u64 = 1_000;

/// So long the service has for its words: many times what it needs for packages that it knows. One that it must read whole may take longer, and then the
/// clerk reads it too. A start that waits in vain is late by this once, since a service that was silent is not waited for until it speaks again.
pub const SERVICE_MS: u64 = 150;

/// Most rounds at once, and one more where some start inside the kernel process and some do not; what comes meanwhile waits for the next, at most one entry for each zone.
const ROUNDS_MAX: usize = 4;

/// Longest question that goes to the service, in bytes: what fits into an event for it, and into a message to the kernel process, in which it is a string with
/// its quotes escaped. About a longer one the clerk is asked.
pub const QUESTION_BYTES_MAX: usize = 80 << 10;

/// An app that somebody is to vouch for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Its zone.
    pub zone: u16,
    /// Counts what was asked about this zone's starts; a word with another number is not for this start.
    pub check: u64,
    /// Its name.
    pub app: String,
    /// Whether it runs, or is to run, inside the kernel process.
    pub trusted: bool,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Errand {
    /// The clerk is to collect what there is to know about these, as a question.
    Papers { round: u64, subjects: Vec<Subject> },
    /// The service is to answer it.
    AskService { round: u64, question: String },
    /// The clerk is to answer it.
    AskClerk { round: u64, question: String },
}

#[derive(Debug)]
enum Stage {
    Papers,
    Service { question: String, until_ms: u64 },
    Clerk,
}

#[derive(Debug)]
struct Round {
    /// Those of whom nothing was said yet.
    subjects: Vec<Subject>,
    /// Nobody's start waits for it.
    is_look: bool,
    /// Somebody is to start inside the kernel process: there the service's word alone lets nobody in.
    into_kernel: bool,
    stage: Stage,
}

/// Rounds that are under way.
#[derive(Debug, Default)]
pub(crate) struct Vouching {
    waiting: Vec<Subject>,
    rounds: BTreeMap<u64, Round>,
    last_round: u64,
    next_look_ms: u64,
    /// The start of the service that has said that it listens.
    listens: Option<u64>,
    /// It did not answer in time, and has said nothing since.
    silent: bool,
    errands: VecDeque<Errand>,
}

impl Vouching {
    /// An app waits to be started.
    pub(crate) fn on_start(&mut self, subject: Subject) {
        self.waiting.retain(|waiting| waiting.zone != subject.zone);
        self.waiting.push(subject);
    }

    /// Begins rounds. `running` are those that run and have a package.
    pub(crate) fn on_time(&mut self, running: impl FnOnce() -> Vec<Subject>, now_ms: u64) {
        self.give_up_on_service(now_ms);
        if !self.waiting.is_empty() && self.rounds.len() < ROUNDS_MAX {
            let (trusted, others) = std::mem::take(&mut self.waiting)
                .into_iter()
                .partition::<Vec<_>, _>(|subject| subject.trusted);
            for subjects in [trusted, others].into_iter().filter(|subjects| !subjects.is_empty()) {
                self.begin(subjects, false);
            }
        }
        let looks = self.rounds.values().any(|round| round.is_look);
        if now_ms >= self.next_look_ms && !looks && self.rounds.len() < ROUNDS_MAX {
            self.next_look_ms = now_ms.saturating_add(LOOK_INTERVAL_MS);
            let subjects = running();
            if !subjects.is_empty() {
                self.begin(subjects, true);
            }
        }
    }

    fn begin(&mut self, subjects: Vec<Subject>, is_look: bool) {
        self.last_round += 1;
        let round = self.last_round;
        let into_kernel = !is_look && subjects.iter().any(|subject| subject.trusted);
        self.errands.push_back(Errand::Papers { round, subjects: subjects.clone() });
        self.rounds.insert(round, Round { subjects, is_look, into_kernel, stage: Stage::Papers });
    }

    /// What there is to know was collected.
    pub(crate) fn on_papers(&mut self, round: u64, question: String, now_ms: u64) {
        let reachable = self.listens.is_some() && question.len() <= QUESTION_BYTES_MAX;
        let Some(it) = self.rounds.get_mut(&round).filter(|it| matches!(it.stage, Stage::Papers)) else {
            return;
        };
        // A look is how a service that was silent is heard of again.
        if reachable && !it.into_kernel && (!self.silent || it.is_look) {
            let until_ms = now_ms.saturating_add(SERVICE_MS);
            it.stage = Stage::Service { question: question.clone(), until_ms };
            self.errands.push_back(Errand::AskService { round, question });
        } else {
            it.stage = Stage::Clerk;
            self.errands.push_back(Errand::AskClerk { round, question });
        }
    }

    /// The service of this start says something; the round 0 is that it is there. Out: what counts of it.
    pub(crate) fn on_service(&mut self, generation: u64, round: u64, words: Vec<Word>) -> Vec<Word> {
        if round == 0 {
            self.listens = Some(generation);
        }
        if self.listens != Some(generation) {
            return Vec::new();
        }
        self.silent = false;
        let Some(it) = self.rounds.get_mut(&round) else { return Vec::new() };
        let Stage::Service { question, .. } = &mut it.stage else { return Vec::new() };
        let question = std::mem::take(question);
        // Of what it cannot tell the clerk is asked, who sees more than it does.
        let words = take(&mut it.subjects, words, |says| !matches!(says, Says::Unknown(_)));
        if it.subjects.is_empty() {
            self.rounds.remove(&round);
        } else {
            it.stage = Stage::Clerk;
            self.errands.push_back(Errand::AskClerk { round, question });
        }
        words
    }

    /// The clerk has answered; it says something of everybody. Out: what counts of it.
    pub(crate) fn on_clerk(&mut self, round: u64, words: Vec<Word>) -> Vec<Word> {
        let Some(mut it) = self.rounds.remove(&round) else { return Vec::new() };
        let mut said = take(&mut it.subjects, words, |_| true);
        let unsaid = |subject: Subject| Word {
            zone: subject.zone,
            check: subject.check,
            says: Says::Unknown("nobody could look at its package".to_owned()),
        };
        said.extend(it.subjects.into_iter().map(unsaid));
        said
    }

    /// The clerk is gone, and what it was asked with it: nobody can tell. A next round has another.
    pub(crate) fn on_no_clerk(&mut self) -> Vec<Word> {
        let rounds: Vec<u64> = self
            .rounds
            .iter()
            .filter(|(_, it)| !matches!(it.stage, Stage::Service { .. }))
            .map(|(round, _)| *round)
            .collect();
        rounds.into_iter().flat_map(|round| self.on_clerk(round, Vec::new())).collect()
    }

    /// Which start of the service runs, if one does.
    pub(crate) fn on_running(&mut self, generation: Option<u64>) {
        if self.listens.is_some() && self.listens != generation {
            self.listens = None;
            self.silent = false;
            self.hand_over(|_| true);
        }
    }

    fn give_up_on_service(&mut self, now_ms: u64) {
        if self.hand_over(|until_ms| until_ms <= now_ms) {
            self.silent = true;
        }
    }

    /// Rounds that wait for the service until then go to the clerk. Whether there was one.
    fn hand_over(&mut self, is_over: impl Fn(u64) -> bool) -> bool {
        let mut any = false;
        for (round, it) in &mut self.rounds {
            let Stage::Service { question, until_ms } = &mut it.stage else { continue };
            if is_over(*until_ms) {
                any = true;
                let question = std::mem::take(question);
                it.stage = Stage::Clerk;
                self.errands.push_back(Errand::AskClerk { round: *round, question });
            }
        }
        any
    }

    /// What is to be done next.
    pub(crate) fn next_errand(&mut self) -> Option<Errand> {
        self.errands.pop_front()
    }

    /// When [`Vouching::on_time`] is due at the latest.
    pub(crate) fn next_wake_ms(&self) -> u64 {
        if !self.waiting.is_empty() && self.rounds.len() < ROUNDS_MAX {
            return 0;
        }
        let until = self.rounds.values().filter_map(|round| match round.stage {
            Stage::Service { until_ms, .. } => Some(until_ms),
            _ => None,
        });
        until.fold(self.next_look_ms, u64::min)
    }
}

/// The words that are for somebody of whom nothing was said yet, and count.
fn take(subjects: &mut Vec<Subject>, words: Vec<Word>, counts: impl Fn(&Says) -> bool) -> Vec<Word> {
    let mut taken = Vec::new();
    for word in words.into_iter().filter(|word| counts(&word.says)) {
        let same = |subject: &Subject| subject.zone == word.zone && subject.check == word.check;
        if let Some(place) = subjects.iter().position(same) {
            subjects.swap_remove(place);
            taken.push(word);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(zone: u16, check: u64) -> Subject {
        Subject { zone, check, app: format!("app-{zone}"), trusted: false }
    }

    fn word(zone: u16, check: u64, says: Says) -> Word {
        Word { zone, check, says }
    }

    fn no() -> Says {
        Says::Refused("it was altered".to_owned())
    }

    /// What is to be done, as short words.
    fn errands(vouching: &mut Vouching) -> Vec<String> {
        std::iter::from_fn(|| vouching.next_errand())
            .map(|errand| match errand {
                Errand::Papers { round, subjects } => format!("{round}: papers of {}", subjects.len()),
                Errand::AskService { round, question } => format!("{round}: service {question}"),
                Errand::AskClerk { round, question } => format!("{round}: clerk {question}"),
            })
            .collect()
    }

    /// A start of zone 1 for which the papers are there, with a service that listens as its start 7.
    fn asked() -> Vouching {
        let mut vouching = Vouching::default();
        assert_eq!(vouching.on_service(7, 0, Vec::new()), []);
        vouching.on_start(subject(1, 5));
        vouching.on_time(Vec::new, 0);
        assert_eq!(errands(&mut vouching), ["1: papers of 1"]);
        vouching.on_papers(1, "?".to_owned(), 0);
        assert_eq!(errands(&mut vouching), ["1: service ?"]);
        vouching
    }

    #[test]
    fn what_the_service_was_not_asked_does_not_count() {
        let mut vouching = asked();
        assert_eq!(vouching.on_service(6, 1, vec![word(1, 5, no())]), []);
        assert_eq!(vouching.on_service(7, 9, vec![word(1, 5, no())]), []);
        let strangers = vec![word(2, 5, no()), word(1, 4, no()), word(1, 5, no()), word(1, 5, Says::Good)];
        assert_eq!(vouching.on_service(7, 1, strangers), [word(1, 5, no())]);
        assert_eq!(vouching.on_service(7, 1, vec![word(1, 5, Says::Good)]), []);
        assert_eq!(errands(&mut vouching), Vec::<String>::new());
    }

    #[test]
    fn what_it_cannot_tell_or_leaves_out_the_clerk_is_asked() {
        for words in [vec![], vec![word(1, 5, Says::Unknown("no".into()))]] {
            let mut vouching = asked();
            assert_eq!(vouching.on_service(7, 1, words), []);
            assert_eq!(errands(&mut vouching), ["1: clerk ?"]);
            assert_eq!(vouching.on_clerk(1, vec![word(1, 5, Says::Good)]), [word(1, 5, Says::Good)]);
        }
    }

    #[test]
    fn a_service_that_is_silent_is_waited_for_once_until_it_speaks_again() {
        let mut vouching = asked();
        assert_eq!(vouching.next_wake_ms(), SERVICE_MS);
        vouching.on_time(Vec::new, SERVICE_MS - 1);
        assert_eq!(errands(&mut vouching), Vec::<String>::new());
        vouching.on_time(Vec::new, SERVICE_MS);
        assert_eq!(errands(&mut vouching), ["1: clerk ?"]);
        // What it says too late is said to nobody, and shows that it is there again.
        let late = vec![word(1, 5, no())];
        let again = |vouching: &mut Vouching, round: u64| {
            vouching.on_start(subject(2, 1));
            vouching.on_time(Vec::new, SERVICE_MS);
            vouching.on_papers(round, "!".to_owned(), SERVICE_MS);
            errands(vouching)
        };
        assert_eq!(again(&mut vouching, 2), ["2: papers of 1", "2: clerk !"]);
        assert_eq!(vouching.on_service(7, 1, late), []);
        assert_eq!(again(&mut vouching, 3), ["3: papers of 1", "3: service !"]);
    }

    #[test]
    fn a_look_finds_out_whether_a_silent_service_is_there() {
        let mut vouching = asked();
        vouching.on_time(Vec::new, SERVICE_MS);
        errands(&mut vouching);
        vouching.on_time(|| vec![subject(1, 5), subject(2, 1)], LOOK_INTERVAL_MS);
        vouching.on_papers(2, "look".to_owned(), LOOK_INTERVAL_MS);
        assert_eq!(errands(&mut vouching), ["2: papers of 2", "2: service look"]);
        // One look at a time.
        vouching.on_time(|| panic!("two looks at once"), 2 * LOOK_INTERVAL_MS - 1);
    }

    #[test]
    fn a_service_that_ends_leaves_its_rounds_to_the_clerk() {
        let mut vouching = asked();
        vouching.on_running(Some(7));
        assert_eq!(errands(&mut vouching), Vec::<String>::new());
        vouching.on_running(None);
        assert_eq!(errands(&mut vouching), ["1: clerk ?"]);
        vouching.on_start(subject(2, 1));
        vouching.on_time(Vec::new, 1);
        vouching.on_papers(2, "!".to_owned(), 1);
        assert_eq!(errands(&mut vouching), ["2: papers of 1", "2: clerk !"]);
    }

    #[test]
    fn a_question_that_is_too_long_goes_to_the_clerk() {
        let mut vouching = asked();
        vouching.on_start(subject(2, 1));
        vouching.on_time(Vec::new, 0);
        vouching.on_papers(2, "x".repeat(QUESTION_BYTES_MAX + 1), 0);
        let errands = errands(&mut vouching);
        assert!(errands[1].starts_with("2: clerk x"), "{errands:?}");
    }

    #[test]
    fn into_the_kernel_nobody_comes_by_the_services_word() {
        let mut vouching = asked();
        vouching.on_start(Subject { trusted: true, ..subject(2, 1) });
        vouching.on_start(subject(3, 1));
        vouching.on_time(Vec::new, 0);
        vouching.on_papers(2, "trusted".to_owned(), 0);
        vouching.on_papers(3, "other".to_owned(), 0);
        let expected = ["2: papers of 1", "3: papers of 1", "2: clerk trusted", "3: service other"];
        assert_eq!(errands(&mut vouching), expected);
        assert_eq!(vouching.on_service(7, 2, vec![word(2, 1, Says::Good)]), []);
        // What runs there may be ended by it.
        vouching.on_time(|| vec![Subject { trusted: true, ..subject(2, 1) }], LOOK_INTERVAL_MS);
        vouching.on_papers(4, "look".to_owned(), LOOK_INTERVAL_MS);
        assert!(errands(&mut vouching).contains(&"4: service look".to_owned()));
    }

    #[test]
    fn a_clerk_that_says_too_little_or_is_gone_leaves_nobody_waiting() {
        let cannot_tell =
            |words: Vec<Word>| matches!(&words[..], [Word { zone: 1, check: 5, says: Says::Unknown(_) }]);
        let mut vouching = Vouching::default();
        vouching.on_start(subject(1, 5));
        vouching.on_time(Vec::new, 0);
        assert!(cannot_tell(vouching.on_no_clerk()));
        vouching.on_start(subject(1, 5));
        vouching.on_time(Vec::new, 0);
        vouching.on_papers(2, "?".to_owned(), 0);
        assert!(cannot_tell(vouching.on_clerk(2, vec![word(3, 1, no())])));
    }

    #[test]
    fn rounds_and_what_waits_are_bounded() {
        let mut vouching = Vouching::default();
        for check in 0..100 {
            vouching.on_start(subject(1, check));
            vouching.on_start(subject(2, check));
            vouching.on_time(Vec::new, 0);
        }
        assert_eq!(errands(&mut vouching).len(), ROUNDS_MAX);
        assert_eq!(vouching.waiting, [subject(1, 99), subject(2, 99)]);
    }
}
