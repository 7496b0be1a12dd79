//! What a proxy plays, and what it can know of it before the run.
//!
//! ```text
//!   profile of the target ──┐              ┌──> the model
//!   profile of the base ────┼──> Settings ─┤
//!   method, seed ───────────┘              └──> Shortfall: the share of delays in which the base is slower than the target
//! ```
//!
//! Plain values. It reads no file and no clock.

use profile::model::Model;
use profile::{Cpu, Profile, Quantiles};
use std::fmt;

/// How many quantiles are compared.
const GRID: u32 = 1000;

/// Which part of the model is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The whole model: CPU, tables, buffers, barriers, time-outs.
    #[default]
    Full,
    /// The two delays of the paper alone.
    Paper,
}

/// What a proxy plays.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The switch that it imitates.
    pub profile: Profile,
    /// The switch behind it, as it was measured before.
    pub base: Profile,
    /// Which part of the model is played.
    pub method: Method,
    /// The seed of all draws.
    pub seed: u64,
    /// How many times slower than the target it plays: delays and time-outs are so many times as long, and rates as low. 0 counts as 1.
    pub slow_motion: u32,
}

/// In which share of the delays the base is slower than the target, so that no waiting can help.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shortfall {
    /// The share of the delays, 0 to 1.
    pub share: f64,
    /// By how much the base is slower there, on average.
    pub mean_us: f64,
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.share * 100.0;
        let digits = usize::from(percent < 9.95);
        write!(f, "{percent:.digits$} % of them, on average by {:.0} µs", self.mean_us)
    }
}

impl Settings {
    /// Whether the profile changes nothing, so that all messages pass as they are.
    pub fn is_null(&self) -> bool {
        let Profile { cpu, delay, packet_in, hardware, install, software, timeouts, barrier, .. } =
            Profile::null();
        let of = &self.profile;
        (of.cpu == cpu && of.delay == delay && of.packet_in == packet_in && of.hardware == hardware)
            && (of.install == install && of.software == software)
            && (of.timeouts == timeouts && of.barrier == barrier)
    }

    /// How many times slower than the target it plays, as a number above 0.
    pub fn slowness(&self) -> f64 {
        f64::from(self.slow_motion.max(1))
    }

    /// How long the target keeps a packet for the controller.
    pub(crate) fn buffer_life_ns(&self) -> u64 {
        // Converting saturates.
        (self.profile.packet_in.buffer_life_us * self.slowness() * 1e3) as u64
    }

    /// From a packet at a port to its packet-in: how often the base is slower.
    pub fn ingress_shortfall(&self) -> Shortfall {
        shortfall(&idle_ingress(&self.profile).times(self.slowness()), &idle_ingress(&self.base))
    }

    /// From a flow mod or packet-out to the packet: how often the base is slower.
    pub fn egress_shortfall(&self) -> Shortfall {
        shortfall(&idle_egress(&self.profile).times(self.slowness()), &idle_egress(&self.base))
    }

    /// The distribution of the base's own delay at ingress.
    pub(crate) fn base_ingress(&self) -> Quantiles {
        idle_ingress(&self.base)
    }

    /// The model. A message is held before the base acts. So the base's own part of the egress delay is taken off: at each quantile, what
    /// the base needs there. The base is not in slow motion, so its part is a smaller one there.
    pub(crate) fn model(&self) -> Model {
        let slowness = self.slowness();
        let before_base = |target: &Quantiles| {
            difference(&target.times(slowness), &idle_egress(&self.base)).times(slowness.recip())
        };
        let model = match self.method {
            Method::Paper => {
                let mut target = self.profile.delay.clone();
                target.ingress_us = idle_ingress(&self.profile);
                target.egress_us = before_base(&idle_egress(&self.profile));
                Model::of_paper(&target, self.seed)
            }
            Method::Full => {
                let mut target = self.profile.clone();
                target.delay.egress_us = before_base(&target.delay.egress_us);
                Model::new(&target, self.seed)
            }
        };
        model.before(&self.base_ingress()).in_slow_motion(self.slow_motion)
    }

    /// Whether rules in software forward more slowly than those in hardware.
    pub fn meters_software(&self) -> bool {
        let software = self.profile.software.as_ref();
        self.method == Method::Full
            && software.is_some_and(|software| {
                software.forward_bits_per_s.is_some() || software.forward_packets_per_s.is_some()
            })
    }
}

fn idle_ingress(profile: &Profile) -> Quantiles {
    profile.delay.ingress_us.plus_us(profile.cpu.packet_in.service_us.mean_us())
}

fn idle_egress(profile: &Profile) -> Quantiles {
    let Cpu { add, .. } = &profile.cpu;
    let hardware = profile.hardware.as_ref().filter(|hardware| hardware.cpu_waits);
    let write_us = hardware.map_or(0.0, |hardware| hardware.add.at(0, 0, 0));
    profile.delay.egress_us.plus_us(add.service_us.mean_us() + write_us)
}

/// The values at the same quantiles, one minus the other, never below 0 and never falling.
fn difference(target: &Quantiles, base: &Quantiles) -> Quantiles {
    // Where the difference becomes 0 there is no point of either, so a grid comes on top.
    let grid = (0..GRID).map(|number| f64::from(number) / f64::from(GRID));
    let mut probabilities: Vec<f64> =
        target.points().chain(base.points()).map(|(p, _)| p).chain(grid).collect();
    probabilities.sort_by(f64::total_cmp);
    probabilities.dedup();
    let mut floor = 0.0_f64;
    let points: Vec<(f64, f64)> = probabilities
        .into_iter()
        .map(|p| {
            floor = floor.max(target.at(p) - base.at(p));
            (p, floor)
        })
        .collect();
    // Two tables of the largest size may have more points together than one may have. The target alone is then the nearest.
    Quantiles::new(&points).unwrap_or_else(|_| target.clone())
}

fn shortfall(target: &Quantiles, base: &Quantiles) -> Shortfall {
    let mut found = Shortfall::default();
    let mut sum_us = 0.0;
    for number in 0..GRID {
        let q = (f64::from(number) + 0.5) / f64::from(GRID);
        let slower_us = base.at(q) - target.at(q);
        if slower_us > 0.0 {
            found.share += 1.0 / f64::from(GRID);
            sum_us += slower_us;
        }
    }
    found.mean_us = if found.share > 0.0 { sum_us / (found.share * f64::from(GRID)) } else { 0.0 };
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(from_us: f64, to_us: f64) -> Quantiles {
        Quantiles::new(&[(0.0, from_us), (1.0, to_us)]).unwrap()
    }

    fn settings(profile: Profile, slow_motion: u32) -> Settings {
        Settings { profile, base: Profile::null(), method: Method::Full, seed: 1, slow_motion }
    }

    #[test]
    fn in_slow_motion_a_fast_target_can_be_met() {
        let mut of = settings(Profile::null(), 1);
        of.profile.delay.ingress_us = Quantiles::constant(100.0);
        of.base.delay.ingress_us = Quantiles::constant(900.0);
        assert!((of.ingress_shortfall().share - 1.0).abs() < 1e-9);
        assert_eq!(Settings { slow_motion: 10, ..of }.ingress_shortfall(), Shortfall::default());
    }

    #[test]
    fn the_share_is_that_of_the_quantiles_at_which_the_base_is_slower() {
        let found = shortfall(&line(0.0, 200.0), &line(50.0, 150.0));
        assert!((found.share - 0.5).abs() < 0.01, "{found:?}");
        assert!((found.mean_us - 25.0).abs() < 0.5, "{found:?}");
        assert_eq!(found.to_string(), "50 % of them, on average by 25 µs");
        assert_eq!(Shortfall { share: 0.001, mean_us: 9.0 }.to_string(), "0.1 % of them, on average by 9 µs");
        assert_eq!(shortfall(&line(60.0, 200.0), &line(50.0, 150.0)), Shortfall::default());
    }

    #[test]
    fn a_difference_and_the_base_make_the_target_where_the_target_is_slower() {
        let (target, base) = (line(0.0, 1000.0), line(100.0, 200.0));
        let held = difference(&target, &base);
        for q in [0.2, 0.5, 0.9, 1.0] {
            assert!((held.at(q) + base.at(q) - target.at(q)).abs() < 20.0, "{q}: {}", held.at(q));
        }
        assert_eq!(held.min_us(), 0.0);
    }

    #[test]
    fn a_profile_without_delays_and_tables_is_null_whatever_its_name() {
        let null = |profile| settings(profile, 1).is_null();
        assert!(null(Profile { name: "other".to_owned(), ..Profile::null() }));
        let mut slow = Profile::null();
        slow.delay.ingress_us = Quantiles::constant(1.0);
        assert!(!null(slow));
    }
}
