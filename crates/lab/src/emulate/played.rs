//! `burnet emulate --profile`: which switches play which profiles, and how slowly.
//!
//! In: the arguments, and the profiles that a scenario wants. Out: the profiles of the switches, or a message with the error. It reads the
//! files of profiles.

use std::path::Path;

use clap::Args;
use emulator::profiles::{self, ProfileWish};
use emulator::{Profiles, Topology};

use burnet::cli::CommandError;

/// The slowest motion: a millisecond becomes ten seconds.
const SLOW_MOTION_MAX: i64 = 10_000;

/// The profiles of switches.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct PlayedArgs {
    /// Switches behave as a switch with this profile: a built-in name (hp-procurve-j9451a, fulcrum-monaco …) or FILE.toml. It is for all, or
    /// with s1= before it for one (repeat for more). With --proxy, it is the switch to imitate
    #[arg(long = "profile", value_name = "[SWITCH=]NAME|FILE")]
    pub profiles: Vec<ProfileWish>,
    /// Switches with profiles are N times slower than these: for loads that are too fast for this machine. With --proxy, results are scaled back
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=SLOW_MOTION_MAX))]
    pub slow_motion: u32,
    /// The seed of all that profiles and links leave to chance, 1 by default, or that of a scenario
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

impl PlayedArgs {
    /// The profiles of a network's switches. Those of the command line go before those of a scenario.
    pub(super) fn profiles(
        &self,
        of_scenario: Option<&Profiles>,
        topology: &Topology,
    ) -> Result<Profiles, CommandError> {
        let mut played = of_scenario.cloned().unwrap_or_default();
        profiles::assign(&self.profiles, topology, Path::new(""), &mut played).map_err(|(index, why)| {
            CommandError::Usage(format!("--profile {}: {why}", self.profiles[index]))
        })?;
        if self.slow_motion > 1 && played.is_empty() {
            return Err(CommandError::Usage(format!(
                "--slow-motion {} has no effect: no switch plays a profile",
                self.slow_motion
            )));
        }
        Ok(played)
    }

    /// What slow motion does not slow.
    pub(super) fn note(&self) -> Option<String> {
        (self.slow_motion > 1).then(|| {
            format!(
                "switches with profiles are {} times slower; not slowed: links, hosts with the timers of TCP, the controller, the times of a \
                 scenario. All times are printed as they were",
                self.slow_motion
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(texts: &[&str], slow_motion: u32) -> PlayedArgs {
        PlayedArgs {
            profiles: texts.iter().map(|text| text.parse().unwrap()).collect(),
            slow_motion,
            seed: None,
        }
    }

    fn refused(args: &PlayedArgs, words: &str) {
        let error = args.profiles(None, &"linear,2".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named_as_it_was_written() {
        refused(&played(&["null", "s9=tango-1"], 1), "--profile s9=tango-1: there is no switch s9");
        refused(&played(&["cisco"], 1), "--profile cisco: cisco is neither a file nor a built-in profile");
        refused(&played(&[], 2), "--slow-motion 2 has no effect");
    }

    #[test]
    fn the_command_line_goes_before_the_scenario() {
        let topology = "linear,2".parse().unwrap();
        let scenario = played(&["null"], 1).profiles(None, &topology).unwrap();
        let both = played(&["s1=tango-1"], 3).profiles(Some(&scenario), &topology).unwrap();
        let name = |switch| both.of(switch).map(|profile| profile.name.as_str());
        assert_eq!((name("s1"), name("s2")), (Some("tango-1"), Some("null")));
    }
}
