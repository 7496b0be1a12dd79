//! Figure 4 in virtual time: the same flows at 10 Mb/s in the fluid network, beside those of Mininet.
//!
//! In: how tenants choose paths. Out: the mean rates of each phase. The same build gives the same numbers, so a run has no interval.

use super::FLOWS;
use crate::labels::run::Recording;
use crate::labels::setting::{self, MS, plans_at};
use crate::report::Claim;
use rehearsal::{Choose, Demand, Fabric, Rig, Telling};
use std::sync::OnceLock;

const M: u64 = 1_000_000;
const LINK_BPS: u64 = 10 * M;
/// Rates are at rest after some 200 ms. Means are of the second half.
const PHASE_MS: u64 = 1_000;
/// The path that each flow's number names: all ways in which three flows share two spines.
const CHOICES: [[u64; 3]; 4] = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]];

/// A rehearsed run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rehearsed {
    /// The spine of each flow, 1 or 2.
    pub spines: [u8; 3],
    /// The mean rates of the flows in each phase, in Mb/s.
    pub means: [[f64; 3]; 3],
}

impl Rehearsed {
    pub(super) fn sum(&self, phase: usize) -> f64 {
        self.means[phase].iter().sum()
    }

    /// The sum, as a part of twice the lone flow of the first phase.
    pub(super) fn part(&self, phase: usize) -> f64 {
        self.sum(phase) / (2.0 * self.sum(0))
    }

    pub(super) fn collides(&self) -> bool {
        self.spines[0] == self.spines[1]
    }
}

/// With labels.
///
/// # Errors
/// The network is not that of the figure.
pub(super) fn with_labels() -> Result<Rehearsed, String> {
    static DONE: OnceLock<Result<Rehearsed, String>> = OnceLock::new();
    DONE.get_or_init(|| rehearse(Choose::Label, [0; 3])).clone()
}

/// Without labels: each way in which random choices share the spines.
///
/// # Errors
/// As [`with_labels`].
pub(super) fn without_labels() -> Result<Vec<Rehearsed>, String> {
    static DONE: OnceLock<Result<Vec<Rehearsed>, String>> = OnceLock::new();
    let all = || CHOICES.iter().map(|numbers| rehearse(Choose::Number, *numbers)).collect();
    DONE.get_or_init(all).clone()
}

fn rehearse(choose: Choose, numbers: [u64; 3]) -> Result<Rehearsed, String> {
    let fabric = Fabric::figure_one(LINK_BPS);
    let mut rig = Rig::new(&fabric, Telling::Damped, plans_at(&fabric, choose, M)?)?;
    let mut recording = Recording::default();
    let (mut spines, mut means) = ([0; 3], [[0.0; 3]; 3]);
    for phase in 0..FLOWS.len() {
        let flow = setting::FLOWS[phase];
        let from_ms = rig.now_ns() as f64 / MS as f64;
        rig.begin(flow.pair, Demand::All, numbers[phase]);
        recording.record(&mut rig, &setting::FLOWS[..=phase], PHASE_MS)?;
        let to_ms = rig.now_ns() as f64 / MS as f64;
        means[phase] = [0, 1, 2].map(|at| match at <= phase {
            true => 1_000.0 * recording.mean(setting::FLOWS[at].name, from_ms, to_ms),
            false => 0.0,
        });
        let links = rig.cloud().path(flow.pair).ok_or(format!("{} has no rules", flow.name))?;
        let crosses =
            |spine: &u8| links.iter().any(|link| fabric.name(*link).contains(&format!("s{spine}-")));
        spines[phase] = [1, 2].into_iter().find(crosses).unwrap_or(0);
    }
    Ok(Rehearsed { spines, means })
}

/// What is asked of a rehearsal with labels: the sums of both later phases, and the rates of the last one.
pub(super) fn claims_with(run: &Rehearsed) -> Vec<Claim> {
    let mut claims = Vec::new();
    for phase in [1, 2] {
        let part = run.part(phase);
        let what = format!("rehearsed, t{}: the sum as a part of twice a lone flow", phase + 1);
        claims.push(Claim::asked(
            &what,
            &super::LABELLED_MIN.to_string(),
            format!("{part:.3}"),
            part >= super::LABELLED_MIN,
        ));
    }
    for ((mbps, asked), (_, from, to)) in run.means[2].iter().zip(super::ASKED_MBPS).zip(FLOWS) {
        let holds = (mbps - asked).abs() <= super::RATE_LIMIT * asked;
        let asked = format!("{asked} Mb/s, within 5 %");
        claims.push(Claim::asked(
            &format!("rehearsed, t3, {from} to {to}"),
            &asked,
            format!("{mbps:.2} Mb/s"),
            holds,
        ));
    }
    claims
}

/// What is asked of rehearsals without labels: where paths collide, the sum of the second phase.
pub(super) fn claims_without(runs: &[Rehearsed]) -> Vec<Claim> {
    let parts = runs.iter().filter(|run| run.collides()).map(|run| run.part(1));
    let worst = parts.fold(0.0, f64::max);
    let asked = format!("at most {}", super::COLLIDING_MAX);
    let what = "rehearsed, t2, where paths collide: the sum as a part of twice a lone flow";
    let mut claims =
        vec![Claim::asked(what, &asked, format!("at most {worst:.2}"), worst <= super::COLLIDING_MAX)];
    claims.extend(runs.iter().map(|run| {
        let sharing = super::in_words(&super::sharing(&run.spines));
        Claim::seen(&format!("rehearsed, t3, {sharing}: the sum"), format!("{:.2} Mb/s", run.sum(2)))
    }));
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rehearsed_flows_get_what_the_paper_says() {
        let with = with_labels().unwrap();
        assert!(claims_with(&with).iter().all(|claim| claim.holds != Some(false)), "{with:?}");
        assert!(!with.collides());
        let without = without_labels().unwrap();
        assert!(claims_without(&without).iter().all(|claim| claim.holds != Some(false)), "{without:?}");
        let colliding: Vec<bool> = without.iter().map(Rehearsed::collides).collect();
        assert_eq!(colliding, [true, true, false, false]);
    }
}
