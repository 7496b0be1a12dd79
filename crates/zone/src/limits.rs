//! How much of the machine one process zone may use.
//!
//! ```text
//!   memory_bytes = 67108864                                 a hard limit; the soft limit is four fifths of it
//!   memory_bytes = { soft = 50331648, hard = 67108864 }     both
//! ```
//!
//! In: the operator's numbers (`[app.NAME.limits]` of `burnet.toml`), or the defaults.
//! Out: [`Limits`]. The monitor passes them to the launcher, which enforces them on itself (`launch`). Measured usage
//! is compared with them (`resource-contract`).
//! This module enforces nothing.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::Cores;

/// The limits of one process zone. Beyond a hard limit, a call fails inside the app (`ENOMEM`, `EMFILE`) or the app
/// is ended. Nothing outside the zone is affected. Beyond a soft limit, the app and the operator are notified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Limits {
    /// Writable private memory (heap, stacks, copied-on-write pages), in bytes.
    pub memory_bytes: u64,
    /// Open file descriptors of one process. All count: the standard streams, the monitor's socket, and three for
    /// each worker's port.
    pub open_files: u32,
    /// Processes and threads of the app. `None`: unlimited. A control group counts them, or Linux counts those of the
    /// app's user.
    pub processes: Option<u32>,
    /// The largest file that the app may write, in bytes.
    pub file_bytes: u64,
    /// The largest core dump, in bytes. Zero, because a core dump contains what the app knows about the network.
    pub core_bytes: u64,
    /// Processor time, in percent of one core: 50 is half a core, 200 is two cores. `None`: Linux decides.
    pub cpu_percent: Option<NonZeroU32>,
    /// How long the app may leave data in its ring unread, in milliseconds. `None`: unlimited.
    pub lag_ms: Option<u32>,
    /// How much the app may keep in the node's store, in bytes. `None`: nothing, because it may not write there. The
    /// operator writes it among the quotas. It is also here because usage is compared with it ([`handed_on`]).
    pub store_bytes: Option<u32>,
    /// The cores on which the app runs. `None`: Linux decides.
    pub cores: Option<Cores>,
    /// The soft limits that the operator wrote. [`crate::usage::Resource::soft`] has the others.
    pub soft: SoftLimits,
}

/// Soft limits. Each is at most its hard limit. `None`: not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SoftLimits {
    /// The soft limit for [`Limits::memory_bytes`].
    pub memory_bytes: Option<u64>,
    /// The soft limit for [`Limits::open_files`].
    pub open_files: Option<u32>,
    /// The soft limit for [`Limits::processes`].
    pub processes: Option<u32>,
    /// The soft limit for [`Limits::cpu_percent`].
    pub cpu_percent: Option<u32>,
    /// The soft limit for [`Limits::lag_ms`].
    pub lag_ms: Option<u32>,
    /// The soft limit for [`Limits::store_bytes`].
    pub store_bytes: Option<u32>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            // Many times what a learning switch with a million addresses needs.
            memory_bytes: 512 << 20,
            // Sixteen workers take 48 for their ports. The rest is for the app.
            open_files: 64,
            // Enough for one worker thread per core of a large machine, but small enough to stop a fork bomb.
            processes: Some(64),
            file_bytes: 64 << 20,
            core_bytes: 0,
            cpu_percent: None,
            // An app never needs this long for one packet, even on a busy machine.
            lag_ms: Some(30_000),
            store_bytes: None,
            cores: None,
            soft: SoftLimits { lag_ms: Some(2_000), ..SoftLimits::default() },
        }
    }
}

/// The form in `burnet.toml`.
#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Written {
    memory_bytes: Amount<u64>,
    open_files: Amount<u32>,
    processes: Option<Amount<u32>>,
    file_bytes: u64,
    core_bytes: u64,
    #[serde(deserialize_with = "some_time", skip_serializing_if = "Option::is_none")]
    cpu_percent: Option<Amount<u32>>,
    lag_ms: Option<Amount<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cores: Option<Cores>,
}

impl Default for Written {
    fn default() -> Written {
        Limits::default().into()
    }
}

impl From<Limits> for Written {
    fn from(limits: Limits) -> Written {
        let Limits { soft, file_bytes, core_bytes, cores, .. } = limits;
        let amount = |soft, hard: Option<u32>| hard.map(|hard| Amount { soft, hard });
        Written {
            memory_bytes: Amount { soft: soft.memory_bytes, hard: limits.memory_bytes },
            open_files: Amount { soft: soft.open_files, hard: limits.open_files },
            processes: amount(soft.processes, limits.processes),
            file_bytes,
            core_bytes,
            cpu_percent: amount(soft.cpu_percent, limits.cpu_percent.map(NonZeroU32::get)),
            lag_ms: amount(soft.lag_ms, limits.lag_ms),
            cores,
        }
    }
}

impl From<Written> for Limits {
    fn from(written: Written) -> Limits {
        let Written { memory_bytes, open_files, processes, cpu_percent, lag_ms, .. } = written;
        let soft = |amount: Option<Amount<u32>>| amount.and_then(|amount| amount.soft);
        let hard = |amount: Option<Amount<u32>>| amount.map(|amount| amount.hard);
        Limits {
            memory_bytes: memory_bytes.hard,
            open_files: open_files.hard,
            processes: hard(processes),
            file_bytes: written.file_bytes,
            core_bytes: written.core_bytes,
            cpu_percent: hard(cpu_percent).and_then(NonZeroU32::new),
            lag_ms: hard(lag_ms),
            store_bytes: None,
            cores: written.cores,
            soft: SoftLimits {
                memory_bytes: memory_bytes.soft,
                open_files: open_files.soft,
                processes: soft(processes),
                cpu_percent: soft(cpu_percent),
                lag_ms: soft(lag_ms),
                store_bytes: None,
            },
        }
    }
}

/// Limits in the form in which the node's processes pass them on: as in the file, and with the operator's quota of
/// the store. For `#[serde(with = …)]`.
pub mod handed_on {
    use super::*;

    type HandedOn = (Limits, Option<Amount<u32>>);

    /// Serializes the limits, with the quota of the store.
    ///
    /// # Errors
    /// The serializer's errors.
    pub fn serialize<S: Serializer>(limits: &Limits, serializer: S) -> Result<S::Ok, S::Error> {
        let store_bytes = limits.store_bytes.map(|hard| Amount { soft: limits.soft.store_bytes, hard });
        (limits, store_bytes).serialize(serializer)
    }

    /// Reads limits that [`serialize`] wrote.
    ///
    /// # Errors
    /// The input is not such a form, or a limit in it is not valid.
    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Limits, D::Error> {
        let (mut limits, store_bytes) = HandedOn::deserialize(input)?;
        limits.store_bytes = store_bytes.map(|amount| amount.hard);
        limits.soft.store_bytes = store_bytes.and_then(|amount| amount.soft);
        Ok(limits)
    }
}

/// A number, or `{ soft = NUMBER, hard = NUMBER }`. The soft limit is at most the hard one.
#[derive(Debug, Clone, Copy)]
struct Amount<N> {
    soft: Option<N>,
    hard: N,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Both<N> {
    soft: N,
    hard: N,
}

impl<N: Serialize + Copy> Serialize for Amount<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Amount { soft: None, hard } => hard.serialize(serializer),
            Amount { soft: Some(soft), hard } => Both { soft, hard }.serialize(serializer),
        }
    }
}

impl<'de, N: Deserialize<'de> + Copy + Ord + fmt::Display> Deserialize<'de> for Amount<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountVisitor(PhantomData))
    }
}

struct AmountVisitor<N>(PhantomData<N>);

impl<'de, N: Deserialize<'de> + Copy + Ord + fmt::Display> Visitor<'de> for AmountVisitor<N> {
    type Value = Amount<N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or { soft = NUMBER, hard = NUMBER }")
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
        N::deserialize(number.into_deserializer()).map(|hard| Amount { soft: None, hard })
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
        N::deserialize(number.into_deserializer()).map(|hard| Amount { soft: None, hard })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let Both { soft, hard } = Both::deserialize(MapAccessDeserializer::new(map))?;
        if soft > hard {
            let why = format!(
                "the soft limit {soft} is above the hard limit {hard}: the warning would come too late"
            );
            return Err(A::Error::custom(why));
        }
        Ok(Amount { soft: Some(soft), hard })
    }
}

fn some_time<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Amount<u32>>, D::Error> {
    let amount = Option::<Amount<u32>>::deserialize(input)?;
    if amount.is_some_and(|amount| amount.hard == 0) {
        return Err(D::Error::custom("an app needs processor time: write 1 or more"));
    }
    Ok(amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: Result<Limits, &str>) {
        match (serde_json::from_str::<Limits>(json), expected) {
            (Ok(limits), Ok(expected)) => assert_eq!(limits, expected),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (got, expected) => panic!("{got:?}, but expected {expected:?}"),
        }
    }

    #[test]
    fn unknown_or_damaged_limits_are_refused_by_name() {
        check(r#"{"memory": 1}"#, Err("unknown field `memory`"));
        check(r#"{"open_files": -1}"#, Err("-1"));
        check(r#"{"open_files": 4294967296}"#, Err("4294967296"));
        check(r#"{"open_files": "many"}"#, Err("expected a number, or { soft = NUMBER, hard = NUMBER }"));
        check(r#"{"cpu_percent": 0}"#, Err("write 1 or more"));
        check(
            r#"{"memory_bytes": {"soft": 2, "hard": 1}}"#,
            Err("the soft limit 2 is above the hard limit 1"),
        );
        check(r#"{"memory_bytes": {"soft": 1}}"#, Err("missing field `hard`"));
        check(r#"{"processes": {"hard": 1, "soft": -1}}"#, Err("-1"));
        check(r#"{"lag_ms": {"hard": 1, "soft": 1, "firm": 1}}"#, Err("unknown field `firm`"));
    }

    #[test]
    fn what_is_not_said_keeps_its_default() {
        check("{}", Ok(Limits::default()));
        check(r#"{"open_files": 20}"#, Ok(Limits { open_files: 20, ..Limits::default() }));
    }

    #[test]
    fn a_share_of_the_store_is_handed_on_and_not_written_here() {
        check(r#"{"store_bytes": 1}"#, Err("unknown field `store_bytes`"));
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Carries(#[serde(with = "handed_on")] Limits);
        let soft = SoftLimits { store_bytes: Some(5), ..SoftLimits::default() };
        for limits in [Limits::default(), Limits { store_bytes: Some(9), soft, ..Limits::default() }] {
            let json = serde_json::to_string(&Carries(limits.clone())).unwrap();
            assert_eq!(serde_json::from_str::<Carries>(&json).unwrap(), Carries(limits));
        }
    }

    #[test]
    fn what_was_said_is_what_is_handed_on() {
        let said = r#"{"memory_bytes": {"soft": 1, "hard": 2}, "processes": null, "cpu_percent": {"soft": 5, "hard": 50}}"#;
        let limits: Limits = serde_json::from_str(said).unwrap();
        assert_eq!((limits.soft.memory_bytes, limits.memory_bytes, limits.processes), (Some(1), 2, None));
        assert_eq!((limits.soft.cpu_percent, limits.cpu_percent.map(NonZeroU32::get)), (Some(5), Some(50)));
        let handed_on = serde_json::to_string(&limits).unwrap();
        assert_eq!(serde_json::from_str::<Limits>(&handed_on).unwrap(), limits);
    }
}
