//! Judges the evidence of a trial: the node held, and by what; or what failed.
//!
//! Pure: it reads only the evidence.

use std::collections::BTreeMap;
use std::time::Duration;

use super::arrivals::Arrived;
use super::case::{By, Case, Must};
use super::process::Process;

/// The evidence of a trial.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Pings of hosts other than the attacker's.
    pub pings: usize,
    /// Those of them without an answer, as `h1 to h2`.
    pub lost: Vec<String>,
    /// Pings that the firewall should have blocked and that were answered.
    pub got_through: usize,
    /// Sessions of switches that ended.
    pub sessions_lost: u64,
    /// How often the kernel restarted.
    pub kernel_restarts: u64,
    /// The innocent apps that restarted, by name.
    pub innocents_restarted: Vec<String>,
    /// Whether the node answered its operator at the end.
    pub node_answers: bool,
    /// The changes of the firewall's and the kernel's rules. `None` if the switches did not report them.
    pub rules_changed: Option<Vec<String>>,
    /// Pings that were lost before the attack.
    pub lost_before: Vec<String>,
    /// Whether two hosts that had never communicated could do so afterwards.
    pub strangers_met: bool,
    /// The kernel process before the attack and at the end, if it was running.
    pub kernel: [Option<Process>; 2],
    /// The attacker's frames that arrived at hosts.
    pub arrived: Arrived,
    /// How many packet-ins switches sent during the attack, and its duration. `None` if the node did not report them.
    pub sent_up: Option<u64>,
    pub watched: Duration,
    /// How often all switches reported their rules to the operator during the attack.
    pub answers: u64,
    /// Whether a link was planted in a shared folder, and whether its target was read.
    pub planted: bool,
    pub read_outside: bool,
    /// Why each attacking app ended, each time. Empty for one that never did.
    pub endings: BTreeMap<String, Vec<String>>,
    /// How often the attacker restarted.
    pub restarts: u64,
    /// How many of its commands the kernel refused.
    pub refusals: u64,
    /// Whether it was seen to begin. For a switch: whether it connected and sent something.
    pub began: bool,
    /// Why it could not be tried.
    pub not_tried: Option<String>,
    /// The results of its commands, as it reports them.
    pub came: Came,
    /// The owners of its rules, as switches report them.
    pub owners: Vec<String>,
    /// Whether the node reported omitted lines of its log.
    pub lines_left_out: bool,
    /// The names that its attempts must contain, or they show nothing.
    pub aims: Vec<String>,
    /// Its attempts and their results, as it reports them.
    pub tries: Vec<String>,
    /// The answer to an attempt with a package.
    pub said: String,
    /// How many connections a server on this machine accepted from it.
    pub connections_taken: usize,
    /// How many bytes the node logged.
    pub log_bytes: u64,
    /// For an attack by a switch: whether the node cut it off.
    pub cut_off: bool,
}

/// The results of the attacker's commands, according to its log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Came {
    /// How many such lines there are.
    pub told: u64,
    /// Commands that the kernel refused, including those that prepared the attack.
    pub denied: u64,
    /// Commands that were carried out.
    pub worked: u64,
    /// Commands that the kernel accepted and a switch refused.
    pub reached: u64,
}

/// The attacker's name as an app.
pub const ATTACKER: &str = "misbehaving";

/// The most starts of an app that ends at once, in the few seconds of a trial. The wait between starts doubles, so
/// there are few.
const RESTARTS_MAX: u64 = 20;

/// The most rules of an attacker with a quota of a hundred, on the three switches of a trial.
const RULES_MAX: usize = 300;

/// The most bytes that a node may log in a trial. An app above that could fill a disk through the log.
const LOG_BYTES_MAX: u64 = 32 << 20;

/// The most that the kernel process may grow in a trial. Its caches grow, but clients must not make it grow.
const KERNEL_GROWTH_MAX: u64 = 96 << 20;

/// The verdict of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It held, for this reason.
    Held(String),
    /// It did not hold.
    Failed(String),
    /// The result shows nothing, because a condition was missing. It may be tried again.
    NotJudged(String),
}

/// Why it failed, or why that is not known.
enum Fault {
    Hole(String),
    Unknown(String),
}

use Fault::{Hole, Unknown};

/// Whether it held, and by what.
pub fn judge(case: &Case, seen: &Evidence) -> Verdict {
    let judged =
        was_tried(case, seen).and_then(|()| hurt_nobody(case, seen)).and_then(|()| came_of_it(case, seen));
    match judged {
        Ok(why) => Verdict::Held(why),
        Err(Hole(why)) => Verdict::Failed(why),
        Err(Unknown(why)) => Verdict::NotJudged(why),
    }
}

fn came_of_it(case: &Case, seen: &Evidence) -> Result<String, Fault> {
    let Came { denied, worked, reached, told } = seen.came;
    let refused = seen.refusals.max(denied);
    match case.must {
        Must::End(reasons) => ended(seen, reasons),
        Must::BeDenied => denied_all(seen),
        Must::BeRefused if worked > 0 => Err(Hole(format!("{worked} commands worked"))),
        Must::BeRefused if reached > 0 => {
            Err(Hole(format!("the kernel let {reached} commands pass, which the switch refused")))
        }
        Must::BeRefused if denied == 0 && told > 0 => Err(Hole("the kernel refused nothing".to_owned())),
        Must::BeRefused if denied == 0 => Err(Unknown("it received no refusal".to_owned())),
        Must::BeLimited if refused == 0 => Err(Hole("the kernel refused nothing".to_owned())),
        Must::BeLimited if seen.owners.len() > RULES_MAX => {
            Err(Hole(format!("the switches have {} rules of its", seen.owners.len())))
        }
        Must::BeRefused | Must::BeLimited => Ok(format!("{refused} commands refused")),
        Must::KeepNoMore(_) if worked == 0 => Err(Unknown("nothing of it worked".to_owned())),
        Must::KeepNoMore(most) if worked > most => Err(Hole(format!("{worked} commands worked"))),
        Must::KeepNoMore(_) if denied == 0 => Err(Hole("it was refused nothing".to_owned())),
        Must::KeepNoMore(_) => Ok(format!("{worked} kept, {denied} refused")),
        Must::BeCutShort if seen.lines_left_out => Ok("the rest of its lines is left out".to_owned()),
        Must::BeCutShort => Err(Hole("the node omitted nothing from the log".to_owned())),
        Must::OwnItsRules => owned(seen),
        Must::HurtNobody => Ok("no other app was affected".to_owned()),
        Must::HoldOff if told == 0 => Err(Unknown(NOT_TOLD.to_owned())),
        Must::HoldOff => {
            Ok(format!("{denied} commands refused, {worked} executed, no other app was affected"))
        }
        Must::KeepWithin | Must::MakeFew(_) | Must::SendFewUp { .. } | Must::BeAnswered(_) if told == 0 => {
            Err(Unknown(NOT_TOLD.to_owned()))
        }
        Must::KeepWithin => kept_within(seen),
        Must::MakeFew(most) => made_few(seen, most),
        Must::SendFewUp { per_s, besides } => sent_few_up(seen, per_s, besides),
        Must::BeAnswered(most) => was_answered(seen, most),
        Must::KeepOut => kept_out(seen),
        Must::BeTurnedAway(why) if !seen.said.starts_with(WORKED) && seen.said.contains(why) => {
            Ok(seen.said.clone())
        }
        Must::BeTurnedAway(_) => Err(Hole(format!("it was not turned away: {}", seen.said))),
        Must::BeCutOff if seen.cut_off => Ok("the connection was closed".to_owned()),
        Must::BeCutOff => Err(Hole("the connection was left open".to_owned())),
    }
}

const NOT_TOLD: &str = "it received no receipts for its commands";

/// Frames that it may send must arrive. Otherwise nothing shows that others could have.
fn kept_within(seen: &Evidence) -> Result<String, Fault> {
    let Evidence { arrived: Arrived { within, beyond }, came, .. } = seen;
    match (*beyond, *within) {
        (1.., _) => Err(Hole(format!("{beyond} frames came to hosts that it may not send"))),
        (0, 0) => Err(Unknown("no frame of it came to any host, not even those that it may send".to_owned())),
        _ if came.denied == 0 => Err(Unknown("it was refused nothing".to_owned())),
        _ => Ok(format!(
            "{} commands refused; {within} frames that it may send came to hosts, and no other",
            came.denied
        )),
    }
}

fn made_few(seen: &Evidence, most: u64) -> Result<String, Fault> {
    let Arrived { within, beyond } = seen.arrived;
    match within + beyond {
        0 => Err(Unknown("no frame of it came to any host".to_owned())),
        many if many > most => {
            Err(Hole(format!("{many} frames of it came to hosts, and no more than {most} may")))
        }
        few => Ok(format!("{} commands refused; {few} frames of it came to hosts", seen.came.denied)),
    }
}

fn sent_few_up(seen: &Evidence, per_s: u64, besides: u64) -> Result<String, Fault> {
    let Some(sent_up) = seen.sent_up else {
        return Err(Unknown("the node did not report the number of packet-ins".to_owned()));
    };
    let time = seen.watched.as_secs_f64();
    // One second more at the beginning, as each quota allows.
    let most = besides + per_s * (seen.watched.as_secs() + 2);
    let refused = seen.refusals.max(seen.came.denied);
    match (sent_up > most, refused) {
        (true, _) => {
            Err(Hole(format!("switches sent {sent_up} packet-ins in {time:.1} s, and the limit is {most}")))
        }
        (false, 0) => Err(Hole("the kernel refused nothing".to_owned())),
        (false, _) => {
            Ok(format!("{refused} commands refused; switches sent {sent_up} packet-ins in {time:.1} s"))
        }
    }
}

fn was_answered(seen: &Evidence, most: u64) -> Result<String, Fault> {
    let Came { denied, worked, .. } = seen.came;
    match (worked > most, seen.answers, denied) {
        (true, ..) => {
            Err(Hole(format!("it was answered {worked} times, and no more than {most} times may be")))
        }
        (_, 0, _) => Err(Hole("switches answered no other app during the attack".to_owned())),
        (.., 0) => Err(Hole("the kernel refused nothing".to_owned())),
        (_, others, _) => {
            Ok(format!("{denied} questions refused, {worked} answered; others were answered {others} times"))
        }
    }
}

/// The start of a line about an attempt that succeeded and should not have.
const WORKED: &str = "it worked";

fn kept_out(seen: &Evidence) -> Result<String, Fault> {
    match (seen.read_outside, seen.planted) {
        (true, _) => Err(Hole("the reader followed the link out of its folder".to_owned())),
        (false, true) => Ok("the link was not followed".to_owned()),
        (false, false) => Ok("no link could be planted".to_owned()),
    }
}

/// Whether it was tried at all. A barrier that was not tested has not held.
fn was_tried(case: &Case, seen: &Evidence) -> Result<(), Fault> {
    match &seen.not_tried {
        Some(why) => Err(Unknown(format!("it could not be tried: {why}"))),
        // If the app did nothing else, its end is what it tried.
        None if seen.began || matches!(case.must, Must::End(_)) => Ok(()),
        None => Err(Unknown("it was never seen to begin".to_owned())),
    }
}

/// Whether a line contains this number, and not only a longer one with its digits.
fn names(line: &str, number: &str) -> bool {
    line.split(|character: char| !character.is_ascii_digit()).any(|found| found == number)
}

/// Checks the owners of its rules.
fn owned(seen: &Evidence) -> Result<String, Fault> {
    match seen.owners.iter().find(|owner| *owner != ATTACKER) {
        Some(other) => Err(Hole(format!("a rule that it wrote is {other}'s"))),
        None if seen.owners.is_empty() => Err(Unknown("no switch has a rule of its".to_owned())),
        None => Ok("its rules are its own in every switch".to_owned()),
    }
}

/// The conditions that every attack must meet.
fn hurt_nobody(case: &Case, seen: &Evidence) -> Result<(), Fault> {
    let unknown = [
        (seen.pings == 0, "no ping was sent".to_owned()),
        (
            !seen.lost_before.is_empty(),
            format!("pings were lost without the attack: {}", seen.lost_before.join(", ")),
        ),
        (seen.rules_changed.is_none(), "the switches did not say which rules they have".to_owned()),
        (seen.kernel[0].is_none(), "the process id of the kernel is unknown".to_owned()),
    ];
    if let Some((_, why)) = unknown.into_iter().find(|(bad, _)| *bad) {
        return Err(Unknown(why));
    }
    let changed = seen.rules_changed.as_deref().unwrap_or_default();
    let (is_same, grew) = kernel_since(seen);
    let grew_much = matches!(case.by, By::Operator(_)) && grew > KERNEL_GROWTH_MAX;
    let holes = [
        (
            !seen.lost.is_empty(),
            format!("{} of {} pings were lost: {}", seen.lost.len(), seen.pings, first_of(&seen.lost)),
        ),
        (seen.got_through > 0, format!("{} pings got through the firewall", seen.got_through)),
        (!changed.is_empty(), first_of(changed)),
        (!seen.strangers_met, "pings between hosts that had not pinged before were lost".to_owned()),
        (seen.sessions_lost > 0, format!("{} switches lost their session", seen.sessions_lost)),
        (seen.kernel_restarts > 0, "the kernel went down".to_owned()),
        (!is_same, "the kernel process is another one than before".to_owned()),
        (grew_much, format!("the kernel process grew by {} MiB", grew >> 20)),
        (
            !seen.innocents_restarted.is_empty(),
            format!("went down too: {}", seen.innocents_restarted.join(", ")),
        ),
        (!seen.node_answers, "the node does not answer its operator".to_owned()),
        (seen.log_bytes > LOG_BYTES_MAX, format!("the log grew by {} bytes", seen.log_bytes)),
        (seen.restarts > RESTARTS_MAX, format!("it restarted {} times", seen.restarts)),
        (seen.connections_taken > 0, "a server took a connection from it".to_owned()),
    ];
    holes.into_iter().find(|(bad, _)| *bad).map_or(Ok(()), |(_, why)| Err(Hole(why)))
}

/// Whether the kernel process is still the same, and by how many bytes it grew at most.
fn kernel_since(seen: &Evidence) -> (bool, u64) {
    match &seen.kernel {
        [Some(before), Some(now)] => (before.is(now), now.peak_bytes.saturating_sub(before.peak_bytes)),
        _ => (false, 0),
    }
}

/// The first few, and the number of others.
fn first_of(all: &[String]) -> String {
    /// As many as one reads.
    const SHOWN: usize = 4;
    let shown = all[..all.len().min(SHOWN)].join(", ");
    match all.len().checked_sub(SHOWN + 1) {
        None => shown,
        Some(more) => format!("{shown} and {} more", more + 1),
    }
}

fn ended(seen: &Evidence, reasons: &[&str]) -> Result<String, Fault> {
    let mut held = Err(Hole("it did not end".to_owned()));
    for endings in seen.endings.values() {
        let fits = |ending: &&String| reasons.iter().any(|reason| gives(ending, reason));
        held = match (endings.iter().find(fits), endings.first()) {
            (Some(ending), _) => Ok(format!("it ended ({ending}), no other app was affected")),
            (None, Some(other)) => return Err(Hole(format!("it ended for another reason: {other}"))),
            (None, None) => return Err(Hole("it did not end".to_owned())),
        };
    }
    held
}

/// Whether an end has this reason, and not one that only begins the same way: exit code 1 is not 127.
fn gives(ending: &str, reason: &str) -> bool {
    ending.split_once(reason).is_some_and(|(_, rest)| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

fn denied_all(seen: &Evidence) -> Result<String, Fault> {
    if let Some(worked) = seen.tries.iter().find(|line| line.ends_with("it worked")) {
        return Err(Hole(worked.clone()));
    }
    if let Some(killed) = seen.endings.values().flatten().find(|ending| ending.contains("SIGSYS")) {
        return Ok(format!("ended at the first try ({killed})"));
    }
    if let Some(aim) = seen.aims.iter().find(|aim| !seen.tries.iter().any(|line| names(line, aim))) {
        return Err(Unknown(format!("nothing was seen of a try at {aim}")));
    }
    match (seen.tries.len(), seen.tries.last()) {
        (tries, Some(last)) => Ok(format!("{tries} denied: {last}")),
        (_, None) => Err(Unknown("nothing was seen of a try".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::case::{Family, On};
    use crate::attack::from_the_operator::OperatorAttack;

    const KERNEL: Process = Process { pid: 7, started: 70, peak_bytes: 1 << 30 };

    fn quiet() -> Evidence {
        Evidence {
            kernel: [Some(KERNEL); 2],
            pings: 10,
            node_answers: true,
            rules_changed: Some(Vec::new()),
            strangers_met: true,
            began: true,
            ..Evidence::default()
        }
    }

    /// Of one app after the other.
    fn endings(all: &[&[&str]]) -> BTreeMap<String, Vec<String>> {
        let of_one = |reasons: &[&str]| reasons.iter().map(|reason| (*reason).to_owned()).collect();
        all.iter()
            .enumerate()
            .map(|(number, reasons)| (format!("{ATTACKER}-{number}"), of_one(reasons)))
            .collect()
    }

    fn check(must: Must, seen: Evidence, expected: Result<&str, &str>) {
        let case = Case { on: On::Any, ..Case::app(Family::Commands, "", "", "", must) };
        let expected = match expected {
            Ok(why) => Verdict::Held(why.to_owned()),
            Err(why) => match why.strip_prefix("not judged: ") {
                Some(why) => Verdict::NotJudged(why.to_owned()),
                None => Verdict::Failed(why.to_owned()),
            },
        };
        assert_eq!(judge(&case, &seen), expected);
    }

    #[test]
    fn whatever_was_tried_others_must_not_notice() {
        check(Must::HurtNobody, Evidence { pings: 0, ..quiet() }, Err("not judged: no ping was sent"));
        let lost = Evidence { lost: vec!["h1 to h2".to_owned()], ..quiet() };
        check(Must::HurtNobody, lost, Err("1 of 10 pings were lost: h1 to h2"));
        check(
            Must::HurtNobody,
            Evidence { got_through: 2, ..quiet() },
            Err("2 pings got through the firewall"),
        );
        check(Must::HurtNobody, Evidence { kernel_restarts: 1, ..quiet() }, Err("the kernel went down"));
        check(Must::HurtNobody, Evidence { restarts: 21, ..quiet() }, Err("it restarted 21 times"));
        check(Must::HurtNobody, quiet(), Ok("no other app was affected"));
    }

    #[test]
    fn a_kernel_that_was_started_anew_is_seen_and_one_that_grew_too() {
        let case = |by| Case { by, ..Case::app(Family::Operator, "", "", "", Must::HurtNobody) };
        let by_operator = By::Operator(OperatorAttack::NeverReads);
        let judged = |by, now| judge(&case(by), &Evidence { kernel: [Some(KERNEL), now], ..quiet() });
        let another = || Verdict::Failed("the kernel process is another one than before".to_owned());
        assert_eq!(judged(by_operator, Some(Process { pid: 8, ..KERNEL })), another());
        assert_eq!(judged(By::App(""), Some(Process { started: 71, ..KERNEL })), another());
        assert_eq!(judged(by_operator, None), another());
        let grown = Process { peak_bytes: KERNEL.peak_bytes + KERNEL_GROWTH_MAX + 1, ..KERNEL };
        let grew = Verdict::Failed("the kernel process grew by 96 MiB".to_owned());
        assert_eq!(judged(by_operator, Some(grown)), grew);
        assert_eq!(judged(By::App(""), Some(grown)), Verdict::Held("no other app was affected".to_owned()));
        let unseen = Evidence { kernel: [None, Some(KERNEL)], ..quiet() };
        check(Must::HurtNobody, unseen, Err("not judged: the process id of the kernel is unknown"));
    }

    #[test]
    fn frames_that_it_may_not_send_are_enough_to_fail_and_none_at_all_show_nothing() {
        let seen = |told, denied, within, beyond| Evidence {
            came: Came { told, denied, ..Came::default() },
            arrived: Arrived { within, beyond },
            ..quiet()
        };
        let kept = |evidence, expected| check(Must::KeepWithin, evidence, expected);
        kept(seen(0, 0, 0, 0), Err("not judged: it received no receipts for its commands"));
        kept(seen(1, 3, 9, 1), Err("1 frames came to hosts that it may not send"));
        kept(
            seen(1, 3, 0, 0),
            Err("not judged: no frame of it came to any host, not even those that it may send"),
        );
        kept(seen(1, 0, 9, 0), Err("not judged: it was refused nothing"));
        kept(
            seen(1, 3, 9, 0),
            Ok("3 commands refused; 9 frames that it may send came to hosts, and no other"),
        );
        let few = |evidence, expected| check(Must::MakeFew(10), evidence, expected);
        few(seen(1, 3, 0, 0), Err("not judged: no frame of it came to any host"));
        few(seen(1, 3, 10, 1), Err("11 frames of it came to hosts, and no more than 10 may"));
        few(seen(1, 3, 10, 0), Ok("3 commands refused; 10 frames of it came to hosts"));
    }

    #[test]
    fn what_is_sent_up_counts_by_the_time_that_it_took() {
        let seen = |sent_up, refusals, seconds| Evidence {
            came: Came { told: 1, ..Came::default() },
            sent_up,
            refusals,
            watched: Duration::from_secs(seconds),
            ..quiet()
        };
        let up = |evidence, expected| check(Must::SendFewUp { per_s: 100, besides: 50 }, evidence, expected);
        up(seen(Some(251), 0, 0), Err("switches sent 251 packet-ins in 0.0 s, and the limit is 250"));
        up(seen(Some(251), 9, 1), Ok("9 commands refused; switches sent 251 packet-ins in 1.0 s"));
        up(seen(Some(9), 0, 1), Err("the kernel refused nothing"));
        up(seen(None, 9, 1), Err("not judged: the node did not report the number of packet-ins"));
    }

    #[test]
    fn who_asks_without_end_is_refused_and_others_are_answered() {
        let seen = |worked, denied, answers| Evidence {
            came: Came { told: 1, denied, worked, reached: 0 },
            answers,
            ..quiet()
        };
        let answered = |evidence, expected| check(Must::BeAnswered(5), evidence, expected);
        answered(seen(6, 9, 1), Err("it was answered 6 times, and no more than 5 times may be"));
        answered(seen(5, 9, 0), Err("switches answered no other app during the attack"));
        answered(seen(5, 0, 1), Err("the kernel refused nothing"));
        answered(seen(5, 9, 1), Ok("9 questions refused, 5 answered; others were answered 1 times"));
    }

    #[test]
    fn what_is_missing_without_the_attack_is_not_its_doing() {
        let lost = vec!["h1 to h2".to_owned()];
        let before = Evidence { lost: lost.clone(), lost_before: lost, ..quiet() };
        check(Must::HurtNobody, before, Err("not judged: pings were lost without the attack: h1 to h2"));
        let silent = Evidence { rules_changed: None, ..quiet() };
        check(Must::HurtNobody, silent, Err("not judged: the switches did not say which rules they have"));
        check(Must::HoldOff, quiet(), Err("not judged: it received no receipts for its commands"));
    }

    #[test]
    fn a_rule_that_changed_is_named() {
        let changed = Evidence { rules_changed: Some(vec!["s1 lost firewall's rule".to_owned()]), ..quiet() };
        check(Must::HurtNobody, changed, Err("s1 lost firewall's rule"));
        let mute = Evidence { strangers_met: false, ..quiet() };
        check(Must::HurtNobody, mute, Err("pings between hosts that had not pinged before were lost"));
    }

    #[test]
    fn who_follows_a_planted_link_has_left_its_folder() {
        let seen = |planted, read_outside| Evidence { planted, read_outside, ..quiet() };
        check(Must::KeepOut, seen(true, true), Err("the reader followed the link out of its folder"));
        check(Must::KeepOut, seen(true, false), Ok("the link was not followed"));
        check(Must::KeepOut, seen(false, false), Ok("no link could be planted"));
    }

    #[test]
    fn what_was_not_tried_shows_nothing() {
        let never = || Evidence { began: false, ..quiet() };
        check(Must::HurtNobody, never(), Err("not judged: it was never seen to begin"));
        check(Must::BeRefused, never(), Err("not judged: it was never seen to begin"));
        let failed = Evidence { not_tried: Some("no route".to_owned()), ..quiet() };
        check(Must::HurtNobody, failed.clone(), Err("not judged: it could not be tried: no route"));
        check(Must::BeCutOff, failed, Err("not judged: it could not be tried: no route"));
        let ended = Evidence { endings: endings(&[&["exit code 7"]]), ..never() };
        check(Must::End(&["exit code 7"]), ended, Ok("it ended (exit code 7), no other app was affected"));
    }

    #[test]
    fn one_command_that_worked_is_enough_to_fail() {
        let came = |refusals, denied, worked| Evidence {
            refusals,
            came: Came { told: 1, denied, worked, reached: 0 },
            ..quiet()
        };
        check(Must::BeRefused, came(0, 0, 0), Err("the kernel refused nothing"));
        check(Must::BeRefused, came(9, 9, 1), Err("1 commands worked"));
        let silent = Evidence { refusals: 9, ..quiet() };
        check(Must::BeRefused, silent, Err("not judged: it received no refusal"));
        let reached = Evidence { came: Came { told: 1, denied: 2, worked: 0, reached: 1 }, ..quiet() };
        check(Must::BeRefused, reached, Err("the kernel let 1 commands pass, which the switch refused"));
        check(Must::BeRefused, came(9, 9, 0), Ok("9 commands refused"));
        check(Must::BeLimited, came(9, 0, 1), Ok("9 commands refused"));
        check(Must::KeepNoMore(3), came(0, 9, 0), Err("not judged: nothing of it worked"));
        check(Must::KeepNoMore(3), came(9, 9, 4), Err("4 commands worked"));
        check(Must::KeepNoMore(3), came(9, 0, 3), Err("it was refused nothing"));
        check(Must::KeepNoMore(3), came(9, 9, 3), Ok("3 kept, 9 refused"));
        let full = |rules| Evidence { owners: vec![ATTACKER.to_owned(); rules], ..came(9, 9, 1) };
        check(Must::BeLimited, full(300), Ok("9 commands refused"));
        check(Must::BeLimited, full(301), Err("the switches have 301 rules of its"));
    }

    #[test]
    fn a_rule_that_is_anothers_is_enough_to_fail() {
        let owners = |owners: &[&str]| Evidence {
            owners: owners.iter().map(|o| (*o).to_owned()).collect(),
            ..quiet()
        };
        check(Must::OwnItsRules, owners(&[]), Err("not judged: no switch has a rule of its"));
        check(
            Must::OwnItsRules,
            owners(&["misbehaving", "firewall"]),
            Err("a rule that it wrote is firewall's"),
        );
        check(Must::OwnItsRules, owners(&["misbehaving"]), Ok("its rules are its own in every switch"));
    }

    #[test]
    fn a_log_that_is_whole_was_not_flooded() {
        check(Must::BeCutShort, quiet(), Err("the node omitted nothing from the log"));
        let cut = Evidence { lines_left_out: true, ..quiet() };
        check(Must::BeCutShort, cut, Ok("the rest of its lines is left out"));
    }

    #[test]
    fn tries_at_another_app_show_nothing() {
        let tried =
            |line: &str| Evidence { tries: vec![line.to_owned()], aims: vec!["77".to_owned()], ..quiet() };
        check(
            Must::BeDenied,
            tried("to signal process 771: denied: x"),
            Err("not judged: nothing was seen of a try at 77"),
        );
        check(
            Must::BeDenied,
            tried("to signal process 77: denied: x"),
            Ok("1 denied: to signal process 77: denied: x"),
        );
    }

    #[test]
    fn an_end_counts_only_for_its_reason() {
        let ended = |why: &str| Evidence { endings: endings(&[&[why]]), ..quiet() };
        check(Must::End(&["SIGABRT"]), quiet(), Err("it did not end"));
        check(Must::End(&["SIGABRT"]), ended("exit code 0"), Err("it ended for another reason: exit code 0"));
        check(
            Must::End(&["SIGABRT"]),
            ended("killed by SIGABRT"),
            Ok("it ended (killed by SIGABRT), no other app was affected"),
        );
        for code in ["exit code 101", "exit code 127"] {
            let why = format!("it ended for another reason: {code}");
            check(Must::End(&["exit code 1"]), ended(code), Err(&why));
        }
    }

    #[test]
    fn each_app_that_attacks_must_have_ended() {
        let ended = |all: &[&[&str]]| Evidence { endings: endings(all), ..quiet() };
        let must = Must::End(&["exit code 1"]);
        check(must, ended(&[&["exit code 1"], &[]]), Err("it did not end"));
        check(
            must,
            ended(&[&["exit code 1"], &["SIGSYS"], &["exit code 1"]]),
            Err("it ended for another reason: SIGSYS"),
        );
        let all = ended(&[&["exit code 1"], &["SIGSYS", "exit code 1"]]);
        check(must, all, Ok("it ended (exit code 1), no other app was affected"));
    }

    #[test]
    fn what_was_turned_away_was_turned_away_for_its_reason() {
        let said = |said: &str| Evidence { said: said.to_owned(), ..quiet() };
        let must = Must::BeTurnedAway("is older");
        check(must, said(""), Err("it was not turned away: "));
        check(must, said("it worked: 1.0.0"), Err("it was not turned away: it worked: 1.0.0"));
        check(must, said("1.0.0 is older than 2.0.0"), Ok("1.0.0 is older than 2.0.0"));
    }

    #[test]
    fn one_try_that_worked_is_enough_to_fail() {
        let tried = |lines: &[&str]| Evidence {
            tries: lines.iter().map(|line| (*line).to_owned()).collect(),
            ..quiet()
        };
        check(Must::BeDenied, quiet(), Err("not judged: nothing was seen of a try"));
        check(
            Must::BeDenied,
            tried(&["tried a: denied: EPERM", "tried b: it worked"]),
            Err("tried b: it worked"),
        );
        check(Must::BeDenied, tried(&["tried a: denied: EPERM"]), Ok("1 denied: tried a: denied: EPERM"));
        let killed = Evidence { endings: endings(&[&["killed by SIGSYS"]]), ..quiet() };
        check(Must::BeDenied, killed, Ok("ended at the first try (killed by SIGSYS)"));
    }
}
