//! What the evidence of a trial says: held, by what; or what did not hold.
//!
//! Pure: it looks at nothing but the evidence.

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
    /// Why the attacker ended, each time.
    pub endings: Vec<String>,
    /// How often it was started anew.
    pub restarts: u64,
    /// Commands that the kernel refused it.
    pub refusals: u64,
    /// What it said that it tried, and what came of it.
    pub tries: Vec<String>,
    /// Connections that a server on this machine took from it.
    pub connections_taken: usize,
    /// How much the node logged.
    pub log_bytes: u64,
    /// From a switch's side: whether the node cut the attacker off.
    pub cut_off: bool,
}

/// Starts of an app that ends at once, in the few seconds of a trial: with a wait that doubles there are few.
const RESTARTS_MAX: u64 = 20;

/// What a node may log in a trial. An app that writes more than that fills a disk by way of the log.
const LOG_BYTES_MAX: u64 = 32 << 20;

/// Whether it held, and by what; or what did not.
pub fn judge(case: &Case, seen: &Evidence) -> Result<String, String> {
    hurt_nobody(seen)?;
    match case.must {
        Must::End(reasons) => ended(seen, reasons),
        Must::BeDenied => denied(seen),
        Must::BeRefused => match seen.refusals {
            0 => Err("the kernel refused nothing".to_owned()),
            refusals => Ok(format!("{refusals} commands refused")),
        },
        Must::HurtNobody => Ok("nobody else noticed".to_owned()),
        Must::BeCutOff if seen.cut_off => Ok("the connection was closed".to_owned()),
        Must::BeCutOff => Err("the connection was left open".to_owned()),
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
    let fits = |ending: &&String| reasons.iter().any(|reason| ending.contains(reason));
    match (seen.endings.iter().find(fits), seen.endings.first()) {
        (Some(ending), _) => Ok(format!("it ended ({ending}), nobody else noticed")),
        (None, Some(other)) => Err(format!("it ended for another reason: {other}")),
        (None, None) => Err("it did not end".to_owned()),
    }
}

fn denied(seen: &Evidence) -> Result<String, String> {
    if let Some(worked) = seen.tries.iter().find(|line| line.ends_with("it worked")) {
        return Err(worked.clone());
    }
    if let Some(killed) = seen.endings.iter().find(|ending| ending.contains("SIGSYS")) {
        return Ok(format!("ended at the first try ({killed})"));
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
        Evidence { pings: 10, node_answers: true, firewall_rules_whole: true, ..Evidence::default() }
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
    fn an_end_counts_only_for_its_reason() {
        let ended = |why: &str| Evidence { endings: vec![why.to_owned()], ..quiet() };
        check(Must::End(&["SIGABRT"]), quiet(), Err("it did not end"));
        check(Must::End(&["SIGABRT"]), ended("exit code 0"), Err("it ended for another reason: exit code 0"));
        check(
            Must::End(&["SIGABRT"]),
            ended("killed by SIGABRT"),
            Ok("it ended (killed by SIGABRT), nobody else noticed"),
        );
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
        let killed = Evidence { endings: vec!["killed by SIGSYS".to_owned()], ..quiet() };
        check(Must::BeDenied, killed, Ok("ended at the first try (killed by SIGSYS)"));
    }
}
