//! Verification of the packages of apps: before each start, and regularly while the app runs. Pure.
//!
//! ```text
//!   starts, and regularly all running apps ──> a round ──> facts (verifier thread) ──> service ──verdicts──> supervisor
//!                                                              └─ no answer in time ──> verifier thread ──verdicts──┘
//! ```
//!
//! In: the apps to verify, collected facts, verdicts, the time. Out: tasks for the verifier thread and the service, and
//! exactly one verdict for each requested check. A service verifies. If it does not answer in time, the
//! verifier thread does. This module reads no file, and starts and stops nothing.

use std::collections::{BTreeMap, VecDeque};

use security_contract::READY;

pub use security_contract::{PackageVerdict, Validity};

/// The interval between checks of running apps, in milliseconds. Checking unchanged packages reads a few small files.
pub const LOOK_INTERVAL_MS: u64 = 1_000;

/// How long the service may take to answer, in milliseconds: many times what it needs for packages that it has read before. A package that it
/// reads for the first time can take longer. The verifier thread then reads it too. A silent service delays one start by this time. Later
/// starts do not wait for it until it answers again.
pub const SERVICE_MS: u64 = 150;

/// The maximum number of open rounds, and one more if trusted and other apps start together. Further starts wait for the next round, at most one
/// for each zone.
const ROUNDS_MAX: usize = 4;

/// The maximum length of a question to the service, in bytes. It must fit into a message as a JSON string with escaped quotes. The verifier
/// thread answers longer questions.
pub const QUESTION_BYTES_MAX: usize = 80 << 10;

/// An app whose package is to be verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppCheck {
    /// Its zone.
    pub zone: u16,
    /// The number of this check. A verdict with another number is ignored.
    pub check: u64,
    /// Its name.
    pub app: String,
    /// Whether it runs, or is to run, inside the kernel process.
    pub trusted: bool,
}

/// What the monitor must do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    /// The verifier thread collects the facts about these apps as a question.
    Collect { round: u64, subjects: Vec<AppCheck> },
    /// The service answers the question.
    AskService { round: u64, question: String },
    /// The verifier thread answers the question.
    VerifyHere { round: u64, question: String },
}

#[derive(Debug)]
enum Stage {
    Collecting,
    Service { question: String, until_ms: u64 },
    Verifier,
}

#[derive(Debug)]
struct Round {
    /// The apps that have no verdict yet.
    subjects: Vec<AppCheck>,
    /// It checks running apps: no start waits for it.
    is_look: bool,
    /// A trusted app starts. The verdict of the service alone is not enough to let code into the kernel process.
    into_kernel: bool,
    stage: Stage,
}

/// The open rounds, and the apps that wait for one.
#[derive(Debug, Default)]
pub(crate) struct Verification {
    waiting: Vec<AppCheck>,
    rounds: BTreeMap<u64, Round>,
    last_round: u64,
    next_look_ms: u64,
    /// The generation of the service that has reported that it is ready.
    listens: Option<u64>,
    /// The service did not answer in time, and has sent nothing since.
    silent: bool,
    tasks: VecDeque<Task>,
}

impl Verification {
    /// An app waits to be started.
    pub(crate) fn on_start(&mut self, subject: AppCheck) {
        self.waiting.retain(|waiting| waiting.zone != subject.zone);
        self.waiting.push(subject);
    }

    /// Begins rounds. `running` returns the running apps that come from a package.
    pub(crate) fn on_time(&mut self, running: impl FnOnce() -> Vec<AppCheck>, now_ms: u64) {
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

    fn begin(&mut self, subjects: Vec<AppCheck>, is_look: bool) {
        self.last_round += 1;
        let round = self.last_round;
        let into_kernel = !is_look && subjects.iter().any(|subject| subject.trusted);
        self.tasks.push_back(Task::Collect { round, subjects: subjects.clone() });
        self.rounds.insert(round, Round { subjects, is_look, into_kernel, stage: Stage::Collecting });
    }

    /// The verifier thread has collected the facts.
    pub(crate) fn on_collected(&mut self, round: u64, question: String, now_ms: u64) {
        let reachable = self.listens.is_some() && question.len() <= QUESTION_BYTES_MAX;
        let Some(it) = self.rounds.get_mut(&round).filter(|it| matches!(it.stage, Stage::Collecting)) else {
            return;
        };
        // A check of running apps finds out whether a silent service answers again.
        if reachable && !it.into_kernel && (!self.silent || it.is_look) {
            let until_ms = now_ms.saturating_add(SERVICE_MS);
            it.stage = Stage::Service { question: question.clone(), until_ms };
            self.tasks.push_back(Task::AskService { round, question });
        } else {
            it.stage = Stage::Verifier;
            self.tasks.push_back(Task::VerifyHere { round, question });
        }
    }

    /// The service of this generation sent verdicts. Round 0 means that it is ready. Returns the verdicts that are valid.
    pub(crate) fn on_service(
        &mut self,
        generation: u64,
        round: u64,
        verdicts: Vec<PackageVerdict>,
    ) -> Vec<PackageVerdict> {
        if round == READY {
            self.listens = Some(generation);
        }
        if self.listens != Some(generation) {
            return Vec::new();
        }
        self.silent = false;
        let Some(it) = self.rounds.get_mut(&round) else { return Vec::new() };
        let Stage::Service { question, .. } = &mut it.stage else { return Vec::new() };
        let question = std::mem::take(question);
        // The verifier thread can read more than the service. So it checks what the service could not.
        let verdicts = take(&mut it.subjects, verdicts, |validity| !matches!(validity, Validity::Unknown(_)));
        if it.subjects.is_empty() {
            self.rounds.remove(&round);
        } else {
            it.stage = Stage::Verifier;
            self.tasks.push_back(Task::VerifyHere { round, question });
        }
        verdicts
    }

    /// The verifier thread has answered. Returns a verdict for each app of the round.
    pub(crate) fn on_verifier(&mut self, round: u64, verdicts: Vec<PackageVerdict>) -> Vec<PackageVerdict> {
        let Some(mut it) = self.rounds.remove(&round) else { return Vec::new() };
        let mut said = take(&mut it.subjects, verdicts, |_| true);
        let unsaid = |subject: AppCheck| PackageVerdict {
            zone: subject.zone,
            check: subject.check,
            validity: Validity::Unknown("its package could not be read".to_owned()),
        };
        said.extend(it.subjects.into_iter().map(unsaid));
        said
    }

    /// The verifier thread ended, so its open rounds have no result. The next round starts a new thread.
    pub(crate) fn on_verifier_ended(&mut self) -> Vec<PackageVerdict> {
        let rounds: Vec<u64> = self
            .rounds
            .iter()
            .filter(|(_, it)| !matches!(it.stage, Stage::Service { .. }))
            .map(|(round, _)| *round)
            .collect();
        rounds.into_iter().flat_map(|round| self.on_verifier(round, Vec::new())).collect()
    }

    /// The generation of the service that runs, if it runs.
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

    /// Gives the rounds whose time is over to the verifier thread. Returns whether there was one.
    fn hand_over(&mut self, is_over: impl Fn(u64) -> bool) -> bool {
        let mut any = false;
        for (round, it) in &mut self.rounds {
            let Stage::Service { question, until_ms } = &mut it.stage else { continue };
            if is_over(*until_ms) {
                any = true;
                let question = std::mem::take(question);
                it.stage = Stage::Verifier;
                self.tasks.push_back(Task::VerifyHere { round: *round, question });
            }
        }
        any
    }

    /// Removes the next task.
    pub(crate) fn next_task(&mut self) -> Option<Task> {
        self.tasks.pop_front()
    }

    /// The latest time for the next call of [`Verification::on_time`].
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

/// Takes the verdicts on apps of the round that have none yet.
fn take(
    subjects: &mut Vec<AppCheck>,
    verdicts: Vec<PackageVerdict>,
    counts: impl Fn(&Validity) -> bool,
) -> Vec<PackageVerdict> {
    let mut taken = Vec::new();
    for verdict in verdicts.into_iter().filter(|verdict| counts(&verdict.validity)) {
        let same = |subject: &AppCheck| subject.zone == verdict.zone && subject.check == verdict.check;
        if let Some(place) = subjects.iter().position(same) {
            subjects.swap_remove(place);
            taken.push(verdict);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(zone: u16, check: u64) -> AppCheck {
        AppCheck { zone, check, app: format!("app-{zone}"), trusted: false }
    }

    fn verdict(zone: u16, check: u64, validity: Validity) -> PackageVerdict {
        PackageVerdict { zone, check, validity }
    }

    fn no() -> Validity {
        Validity::Refused("it was altered".to_owned())
    }

    /// The waiting tasks as text.
    fn tasks(verification: &mut Verification) -> Vec<String> {
        std::iter::from_fn(|| verification.next_task())
            .map(|task| match task {
                Task::Collect { round, subjects } => format!("{round}: collect {}", subjects.len()),
                Task::AskService { round, question } => format!("{round}: service {question}"),
                Task::VerifyHere { round, question } => format!("{round}: verifier {question}"),
            })
            .collect()
    }

    /// A start of zone 1 whose facts are collected, and a ready service of generation 7.
    fn asked() -> Verification {
        let mut verification = Verification::default();
        assert_eq!(verification.on_service(7, 0, Vec::new()), []);
        verification.on_start(subject(1, 5));
        verification.on_time(Vec::new, 0);
        assert_eq!(tasks(&mut verification), ["1: collect 1"]);
        verification.on_collected(1, "?".to_owned(), 0);
        assert_eq!(tasks(&mut verification), ["1: service ?"]);
        verification
    }

    #[test]
    fn what_the_service_was_not_asked_does_not_count() {
        let mut verification = asked();
        assert_eq!(verification.on_service(6, 1, vec![verdict(1, 5, no())]), []);
        assert_eq!(verification.on_service(7, 9, vec![verdict(1, 5, no())]), []);
        let strangers = vec![
            verdict(2, 5, no()),
            verdict(1, 4, no()),
            verdict(1, 5, no()),
            verdict(1, 5, Validity::Good),
        ];
        assert_eq!(verification.on_service(7, 1, strangers), [verdict(1, 5, no())]);
        assert_eq!(verification.on_service(7, 1, vec![verdict(1, 5, Validity::Good)]), []);
        assert_eq!(tasks(&mut verification), Vec::<String>::new());
    }

    #[test]
    fn what_it_cannot_tell_or_leaves_out_the_verifier_is_asked() {
        for verdicts in [vec![], vec![verdict(1, 5, Validity::Unknown("no".into()))]] {
            let mut verification = asked();
            assert_eq!(verification.on_service(7, 1, verdicts), []);
            assert_eq!(tasks(&mut verification), ["1: verifier ?"]);
            assert_eq!(
                verification.on_verifier(1, vec![verdict(1, 5, Validity::Good)]),
                [verdict(1, 5, Validity::Good)]
            );
        }
    }

    #[test]
    fn a_service_that_is_silent_is_waited_for_once_until_it_speaks_again() {
        let mut verification = asked();
        assert_eq!(verification.next_wake_ms(), SERVICE_MS);
        verification.on_time(Vec::new, SERVICE_MS - 1);
        assert_eq!(tasks(&mut verification), Vec::<String>::new());
        verification.on_time(Vec::new, SERVICE_MS);
        assert_eq!(tasks(&mut verification), ["1: verifier ?"]);
        // A late answer has no effect, except that the service is no longer silent.
        let late = vec![verdict(1, 5, no())];
        let again = |verification: &mut Verification, round: u64| {
            verification.on_start(subject(2, 1));
            verification.on_time(Vec::new, SERVICE_MS);
            verification.on_collected(round, "!".to_owned(), SERVICE_MS);
            tasks(verification)
        };
        assert_eq!(again(&mut verification, 2), ["2: collect 1", "2: verifier !"]);
        assert_eq!(verification.on_service(7, 1, late), []);
        assert_eq!(again(&mut verification, 3), ["3: collect 1", "3: service !"]);
    }

    #[test]
    fn a_look_finds_out_whether_a_silent_service_is_there() {
        let mut verification = asked();
        verification.on_time(Vec::new, SERVICE_MS);
        tasks(&mut verification);
        verification.on_time(|| vec![subject(1, 5), subject(2, 1)], LOOK_INTERVAL_MS);
        verification.on_collected(2, "look".to_owned(), LOOK_INTERVAL_MS);
        assert_eq!(tasks(&mut verification), ["2: collect 2", "2: service look"]);
        // One look at a time.
        verification.on_time(|| panic!("two looks at once"), 2 * LOOK_INTERVAL_MS - 1);
    }

    #[test]
    fn a_service_that_ends_leaves_its_rounds_to_the_verifier() {
        let mut verification = asked();
        verification.on_running(Some(7));
        assert_eq!(tasks(&mut verification), Vec::<String>::new());
        verification.on_running(None);
        assert_eq!(tasks(&mut verification), ["1: verifier ?"]);
        verification.on_start(subject(2, 1));
        verification.on_time(Vec::new, 1);
        verification.on_collected(2, "!".to_owned(), 1);
        assert_eq!(tasks(&mut verification), ["2: collect 1", "2: verifier !"]);
    }

    #[test]
    fn a_question_that_is_too_long_goes_to_the_verifier() {
        let mut verification = asked();
        verification.on_start(subject(2, 1));
        verification.on_time(Vec::new, 0);
        verification.on_collected(2, "x".repeat(QUESTION_BYTES_MAX + 1), 0);
        let tasks = tasks(&mut verification);
        assert!(tasks[1].starts_with("2: verifier x"), "{tasks:?}");
    }

    #[test]
    fn the_services_verdict_lets_no_code_into_the_kernel() {
        let mut verification = asked();
        verification.on_start(AppCheck { trusted: true, ..subject(2, 1) });
        verification.on_start(subject(3, 1));
        verification.on_time(Vec::new, 0);
        verification.on_collected(2, "trusted".to_owned(), 0);
        verification.on_collected(3, "other".to_owned(), 0);
        let expected = ["2: collect 1", "3: collect 1", "2: verifier trusted", "3: service other"];
        assert_eq!(tasks(&mut verification), expected);
        assert_eq!(verification.on_service(7, 2, vec![verdict(2, 1, Validity::Good)]), []);
        // What runs there may be ended by it.
        verification.on_time(|| vec![AppCheck { trusted: true, ..subject(2, 1) }], LOOK_INTERVAL_MS);
        verification.on_collected(4, "look".to_owned(), LOOK_INTERVAL_MS);
        assert!(tasks(&mut verification).contains(&"4: service look".to_owned()));
    }

    #[test]
    fn a_verifier_that_says_too_little_or_is_gone_leaves_nobody_waiting() {
        let cannot_tell = |verdicts: Vec<PackageVerdict>| {
            matches!(&verdicts[..], [PackageVerdict { zone: 1, check: 5, validity: Validity::Unknown(_) }])
        };
        let mut verification = Verification::default();
        verification.on_start(subject(1, 5));
        verification.on_time(Vec::new, 0);
        assert!(cannot_tell(verification.on_verifier_ended()));
        verification.on_start(subject(1, 5));
        verification.on_time(Vec::new, 0);
        verification.on_collected(2, "?".to_owned(), 0);
        assert!(cannot_tell(verification.on_verifier(2, vec![verdict(3, 1, no())])));
    }

    #[test]
    fn rounds_and_what_waits_are_bounded() {
        let mut verification = Verification::default();
        for check in 0..100 {
            verification.on_start(subject(1, check));
            verification.on_start(subject(2, check));
            verification.on_time(Vec::new, 0);
        }
        assert_eq!(tasks(&mut verification).len(), ROUNDS_MAX);
        assert_eq!(verification.waiting, [subject(1, 99), subject(2, 99)]);
    }
}
