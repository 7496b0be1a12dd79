//! The usage of one resource beside its limits, as a value and as text.
//!
//! In: a sample, and limits. Out: a phrase for the app and the operator. It does not decide what follows.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Limits;
use crate::usage::{Resource, Sample};

/// The usage of one resource, with its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Excess {
    /// The resource.
    pub resource: Resource,
    /// How much is used, in the unit of the resource.
    pub used: u64,
    /// The soft limit, in the same unit.
    pub soft: u64,
    /// The hard limit, in the same unit.
    pub hard: u64,
}

impl Excess {
    /// The usage that a sample shows, with its limits, whether or not it is above them. `None` if there is no limit,
    /// or if the sample has no value for this zone.
    #[must_use]
    pub fn of(resource: Resource, sample: &Sample, limits: &Limits) -> Option<Excess> {
        let (soft, hard) = (resource.soft(limits)?, resource.hard(limits)?);
        Some(Excess { resource, used: resource.used(sample)?, soft, hard })
    }

    /// Why a zone is ended, as a phrase: `memory_bytes: it used 70.0 MiB, above its hard limit of 64.0 MiB`.
    #[must_use]
    pub fn reason(&self) -> String {
        let Excess { resource, used, hard, .. } = *self;
        let (used, hard) = (resource.amount(used), resource.amount(hard));
        let what = match resource {
            Resource::LagMs => format!("it left its ring unread for {used}"),
            _ => format!("it used {used}"),
        };
        format!("{resource}: {what}, above its hard limit of {hard}")
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Excess { resource, used, soft, hard } = *self;
        let [used, soft, hard] = [used, soft, hard].map(|amount| resource.amount(amount));
        write!(f, "{resource}: {used}, with a soft limit of {soft} and a hard one of {hard}")
    }
}
