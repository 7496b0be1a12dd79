//! What the evidence of a trial says: held, by what; or what did not hold.
//!
//! Pure: it looks at nothing but the evidence.

use std::collections::BTreeMap;

use super::case::{Case, Must};

/// What was seen in a trial.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Pings of hosts that are none of the attacker's business.
    pub pings: usize,
    /// Of these, those without an answer, as `h1 to h2`.
    pub lost: Vec<String>,
    /// Pings that the firewall should have stopped and that were answered.
    pub got_through: usize,
    /// Sessions of switches that ended.
    pub sessions_lost: u64,
    /// How often the kernel was started anew.
    pub kernel_restarts: u64,
    /// The innocent apps that were started anew, by name.
    pub innocents_restarted: Vec<String>,
    /// Whether the node answered its operator at the end.
    pub node_answers: bool,
    /// Whether each switch still has the firewall's rule.
    pub firewall_rules_whole: bool,
    /// Why each app that attacks ended, each time; nothing of one that never did.
    pub endings: BTreeMap<String, Vec<String>>,
    /// How often it was started anew.
    pub restarts: u64,
    /// Commands that the kernel refused it.
    pub refusals: u64,
    /// Whether it was seen to begin; of a switch, that it was connected and said something.
    pub began: bool,
    /// Why it could not be tried.
    pub not_tried: Option<String>,
    /// Of its commands, those that came to nothing and those that worked, as it says itself.
    pub denied: u64,
    pub worked: u64,
    /// Whose the rules are that it wrote, by the word of the switches.
    pub owners: Vec<String>,
    /// Whether the node said that lines of it are left out of the log.
    pub lines_left_out: bool,
    /// What its tries must be about, or they show nothing.
    pub aims: Vec<String>,
    /// What it said that it tried, and what came of it.
    pub tries: Vec<String>,
    /// What was said to a try with a package.
    pub said: String,
    /// Connections that a server on this machine took from it.
    pub connections_taken: usize,
    /// How much the node logged.
    pub log_bytes: u64,
    /// From a switch's side: whether the node cut the attacker off.
    pub cut_off: bool,
}

/// The attacker's name as an app.
pub const ATTACKER: &str = "misbehaving";

/// Starts of an app that ends at once, in the few seconds of a trial: with a wait that doubles there are few.
const RESTARTS_MAX: u64 = 20;

/// Rules that an attacker with a quota of a hundred has on the three switches of a trial.
const RULES_MAX: usize = 300;

/// What a node may log in a trial. An app that writes more than that fills a disk by way of the log.
const LOG_BYTES_MAX: u64 = 32 << 20;

/// Whether it held, and by what; or what did not.
pub fn judge(case: &Case, seen: &Evidence) -> Result<String, String> {
    was_tried(case, seen)?;
    hurt_nobody(seen)?;
    match case.must {
        Must::End(reasons) => ended(seen, reasons),
        Must::BeDenied => denied(seen),
        Must::BeRefused if seen.worked > 0 => Err(format!("{} commands worked", seen.worked)),
        Must::BeRefused | Must::BeLimited if seen.refusals + seen.denied == 0 => {
            Err("the kernel refused nothing".to_owned())
        }
        Must::BeRefused if seen.denied == 0 => Err("it heard of no refusal, so nothing is shown".to_owned()),
        Must::BeLimited if seen.owners.len() > RULES_MAX => {
            Err(format!("the switches have {} rules of its", seen.owners.len()))
        }
        Must::BeRefused | Must::BeLimited => {
            Ok(format!("{} commands refused", seen.refusals.max(seen.denied)))
        }
        Must::KeepNoMore(_) if seen.worked == 0 => {
            Err("nothing of it worked, so nothing is shown".to_owned())
        }
        Must::KeepNoMore(most) if seen.worked > most => Err(format!("{} commands worked", seen.worked)),
        Must::KeepNoMore(_) if seen.denied == 0 => Err("it was refused nothing".to_owned()),
        Must::KeepNoMore(_) => Ok(format!("{} kept, {} refused", seen.worked, seen.denied)),
        Must::BeCutShort if seen.lines_left_out => Ok("the rest of its lines is left out".to_owned()),
        Must::BeCutShort => Err("the node left nothing out of the log".to_owned()),
        Must::OwnItsRules => owned(seen),
        Must::HurtNobody => Ok("nobody else noticed".to_owned()),
        Must::BeTurnedAway(why) if seen.said.contains(why) => Ok(seen.said.clone()),
        Must::BeTurnedAway(_) => Err(format!("it was not turned away: {}", seen.said)),
        Must::BeCutOff if seen.cut_off => Ok("the connection was closed".to_owned()),
        Must::BeCutOff => Err("the connection was left open".to_owned()),
    }
}

/// A barrier that nobody ran against held nothing.
fn was_tried(case: &Case, seen: &Evidence) -> Result<(), String> {
    match &seen.not_tried {
        Some(why) => Err(format!("it could not be tried: {why}")),
        // The end of an app that did nothing else is what it tried.
        None if seen.began || matches!(case.must, Must::End(_)) => Ok(()),
        None => Err("it was never seen to begin, so nothing is shown".to_owned()),
    }
}

/// Whether a line names this number, and not only one that holds its digits.
fn names(line: &str, number: &str) -> bool {
    line.split(|character: char| !character.is_ascii_digit()).any(|found| found == number)
}

/// Whose its rules are.
fn owned(seen: &Evidence) -> Result<String, String> {
    match seen.owners.iter().find(|owner| *owner != ATTACKER) {
        Some(other) => Err(format!("a rule that it wrote is {other}'s")),
        None if seen.owners.is_empty() => Err("no switch has a rule of its, so nothing is shown".to_owned()),
        None => Ok("its rules are its own in every switch".to_owned()),
    }
}

/// What must hold whatever is tried.
fn hurt_nobody(seen: &Evidence) -> Result<(), String> {
    let checks = [
        (seen.pings == 0, "no ping was sent, so nothing is shown".to_owned()),
        (
            !seen.lost.is_empty(),
            format!("{} of {} pings were lost: {}", seen.lost.len(), seen.pings, seen.lost.join(", ")),
        ),
        (seen.got_through > 0, format!("{} pings got through the firewall", seen.got_through)),
        (!seen.firewall_rules_whole, "a switch does not have the firewall's rule any more".to_owned()),
        (seen.sessions_lost > 0, format!("{} switches lost their session", seen.sessions_lost)),
        (seen.kernel_restarts > 0, "the kernel went down".to_owned()),
        (
            !seen.innocents_restarted.is_empty(),
            format!("went down too: {}", seen.innocents_restarted.join(", ")),
        ),
        (!seen.node_answers, "the node does not answer its operator".to_owned()),
        (seen.log_bytes > LOG_BYTES_MAX, format!("the log grew by {} bytes", seen.log_bytes)),
        (seen.restarts > RESTARTS_MAX, format!("it was started anew {} times", seen.restarts)),
        (seen.connections_taken > 0, "a server took a connection from it".to_owned()),
    ];
    checks.into_iter().find(|(bad, _)| *bad).map_or(Ok(()), |(_, why)| Err(why))
}

fn ended(seen: &Evidence, reasons: &[&str]) -> Result<String, String> {
    let mut held = Err("it did not end".to_owned());
    for endings in seen.endings.values() {
        let fits = |ending: &&String| reasons.iter().any(|reason| gives(ending, reason));
        held = match (endings.iter().find(fits), endings.first()) {
            (Some(ending), _) => Ok(format!("it ended ({ending}), nobody else noticed")),
            (None, Some(other)) => return Err(format!("it ended for another reason: {other}")),
            (None, None) => return Err("it did not end".to_owned()),
        };
    }
    held
}

/// Whether an end is for this reason, and not for one that only begins so: exit code 1 is not 127.
fn gives(ending: &str, reason: &str) -> bool {
    ending.split_once(reason).is_some_and(|(_, rest)| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

fn denied(seen: &Evidence) -> Result<String, String> {
    if let Some(worked) = seen.tries.iter().find(|line| line.ends_with("it worked")) {
        return Err(worked.clone());
    }
    if let Some(killed) = seen.endings.values().flatten().find(|ending| ending.contains("SIGSYS")) {
        return Ok(format!("ended at the first try ({killed})"));
    }
    if let Some(aim) = seen.aims.iter().find(|aim| !seen.tries.iter().any(|line| names(line, aim))) {
        return Err(format!("nothing was seen of a try at {aim}"));
    }
    match (seen.tries.len(), seen.tries.last()) {
        (tries, Some(last)) => Ok(format!("{tries} denied: {last}")),
        (_, None) => Err("nothing was seen of a try".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::attack::case::By;

    fn quiet() -> Evidence {
        Evidence {
            pings: 10,
            node_answers: true,
            firewall_rules_whole: true,
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
        let case = Case { name: "", what: "", by: By::App(""), must };
        let judged = judge(&case, &seen);
        assert_eq!(judged.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn whatever_was_tried_others_must_not_notice() {
        check(
            Must::HurtNobody,
            Evidence { pings: 0, ..quiet() },
            Err("no ping was sent, so nothing is shown"),
        );
        let lost = Evidence { lost: vec!["h1 to h2".to_owned()], ..quiet() };
        check(Must::HurtNobody, lost, Err("1 of 10 pings were lost: h1 to h2"));
        check(
            Must::HurtNobody,
            Evidence { got_through: 2, ..quiet() },
            Err("2 pings got through the firewall"),
        );
        check(Must::HurtNobody, Evidence { kernel_restarts: 1, ..quiet() }, Err("the kernel went down"));
        check(Must::HurtNobody, Evidence { restarts: 21, ..quiet() }, Err("it was started anew 21 times"));
        check(Must::HurtNobody, quiet(), Ok("nobody else noticed"));
    }

    #[test]
    fn what_was_not_tried_shows_nothing() {
        let never = || Evidence { began: false, ..quiet() };
        check(Must::HurtNobody, never(), Err("it was never seen to begin, so nothing is shown"));
        check(Must::BeRefused, never(), Err("it was never seen to begin, so nothing is shown"));
        let failed = Evidence { not_tried: Some("no route".to_owned()), ..quiet() };
        check(Must::HurtNobody, failed.clone(), Err("it could not be tried: no route"));
        check(Must::BeCutOff, failed, Err("it could not be tried: no route"));
        let ended = Evidence { endings: endings(&[&["exit code 7"]]), ..never() };
        check(Must::End(&["exit code 7"]), ended, Ok("it ended (exit code 7), nobody else noticed"));
    }

    #[test]
    fn one_command_that_worked_is_enough_to_fail() {
        let came = |refusals, denied, worked| Evidence { refusals, denied, worked, ..quiet() };
        check(Must::BeRefused, came(0, 0, 0), Err("the kernel refused nothing"));
        check(Must::BeRefused, came(9, 9, 1), Err("1 commands worked"));
        check(Must::BeRefused, came(9, 0, 0), Err("it heard of no refusal, so nothing is shown"));
        check(Must::BeRefused, came(9, 9, 0), Ok("9 commands refused"));
        check(Must::BeLimited, came(9, 0, 1), Ok("9 commands refused"));
        check(Must::KeepNoMore(3), came(0, 9, 0), Err("nothing of it worked, so nothing is shown"));
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
        check(Must::OwnItsRules, owners(&[]), Err("no switch has a rule of its, so nothing is shown"));
        check(
            Must::OwnItsRules,
            owners(&["misbehaving", "firewall"]),
            Err("a rule that it wrote is firewall's"),
        );
        check(Must::OwnItsRules, owners(&["misbehaving"]), Ok("its rules are its own in every switch"));
    }

    #[test]
    fn a_log_that_is_whole_was_not_flooded() {
        check(Must::BeCutShort, quiet(), Err("the node left nothing out of the log"));
        let cut = Evidence { lines_left_out: true, ..quiet() };
        check(Must::BeCutShort, cut, Ok("the rest of its lines is left out"));
    }

    #[test]
    fn tries_at_somebody_else_show_nothing() {
        let tried =
            |line: &str| Evidence { tries: vec![line.to_owned()], aims: vec!["77".to_owned()], ..quiet() };
        check(
            Must::BeDenied,
            tried("to signal process 771: denied: x"),
            Err("nothing was seen of a try at 77"),
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
            Ok("it ended (killed by SIGABRT), nobody else noticed"),
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
        check(must, all, Ok("it ended (exit code 1), nobody else noticed"));
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
        check(Must::BeDenied, quiet(), Err("nothing was seen of a try"));
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
