//! `[limits]`: what all switches and apps together may use of the node and of each switch.
//!
//! In: what was written. Out: the same with defaults, in the kernel's types. The limits of one app are in its own
//! table.

use super::order::RuleOverlap;
use kernel::PuntLimits;
use kernel::budget::TableRoom;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};

/// Default percentage of a table that apps may use. The rest is a reserve.
const TABLE_FILL_PERCENT: u8 = 90;

/// The default rate of the punt meter, as a multiple of a switch's punt budget, and its minimum in packets per
/// second. A meter does not tell ports or kinds of packets apart, so the kernel chooses among the packets that
/// arrive. More is better while control channel and worker can carry it. A worker drops ten thousand a second with
/// one percent of its time. They are 120 Mbit/s with the largest frames.
const BUDGETS_METERED: u32 = 2;
const METERED_AT_LEAST_PER_S: u32 = 10_000;

/// `[limits]`, as written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsTable {
    /// Percentage of a table's entries that apps may use.
    #[serde(deserialize_with = "percent")]
    pub table_fill_percent: Option<u8>,
    /// Assumed size of a table, in entries, if the switch does not report it.
    #[serde(deserialize_with = "at_least_one")]
    pub table_entries_if_unknown: Option<u32>,
    /// Number of rules of one switch whose owners are stored.
    #[serde(deserialize_with = "rules")]
    pub rules_per_switch: Option<u32>,
    /// Packet-ins per second from one switch.
    #[serde(deserialize_with = "at_least_one")]
    pub packet_ins_per_switch_per_s: Option<u32>,
    /// Packet-ins per second from one port.
    #[serde(deserialize_with = "at_least_one")]
    pub packet_ins_per_port_per_s: Option<u32>,
    /// Packets per second that the table-miss rule of a switch sends, limited by the punt meter.
    pub packet_in_meter_per_s: Option<MeterRate>,
}

/// The two forms of the meter's setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterRate {
    /// `false`: no meter.
    Off,
    /// The rate, in packets per second.
    PerSecond(u32),
}

/// `[limits]`, with defaults applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeLimits {
    /// Percentage of a table's entries that apps may use.
    pub table_fill_percent: u8,
    /// Assumed size of a table, in entries, if the switch does not report it. `None`: unlimited.
    #[serde(default)]
    pub table_entries_if_unknown: Option<u32>,
    /// Number of rules of one switch whose owners are stored. Beyond it no rule is added.
    pub rules_per_switch: u32,
    /// Packet-ins per second from one switch. `None`: unlimited.
    pub packet_ins_per_switch_per_s: Option<u32>,
    /// Packet-ins per second from one port. `None`: unlimited.
    pub packet_ins_per_port_per_s: Option<u32>,
    /// Packets per second that the table-miss rule of a switch with meters sends. `None`: unlimited.
    pub packet_in_meter_per_s: Option<u32>,
    /// What happens to a rule that would shadow a rule of an app earlier in the order.
    #[serde(default)]
    pub on_overlap: RuleOverlap,
}

impl Default for NodeLimits {
    fn default() -> Self {
        NodeLimits::of(&LimitsTable::default())
    }
}

impl NodeLimits {
    /// The written values, and defaults for the others.
    pub fn of(table: &LimitsTable) -> NodeLimits {
        NodeLimits {
            table_fill_percent: table.table_fill_percent.unwrap_or(TABLE_FILL_PERCENT),
            table_entries_if_unknown: table.table_entries_if_unknown,
            rules_per_switch: table.rules_per_switch.unwrap_or(kernel::RULES_PER_SWITCH),
            on_overlap: RuleOverlap::default(),
            packet_ins_per_switch_per_s: table.packet_ins_per_switch_per_s,
            packet_ins_per_port_per_s: table.packet_ins_per_port_per_s,
            packet_in_meter_per_s: match table.packet_in_meter_per_s {
                Some(MeterRate::Off) => None,
                Some(MeterRate::PerSecond(per_s)) => Some(per_s),
                None => table
                    .packet_ins_per_switch_per_s
                    .map(|budget| budget.saturating_mul(BUDGETS_METERED).max(METERED_AT_LEAST_PER_S)),
            },
        }
    }

    /// The limits of tables, for the kernel.
    pub fn table_room(&self) -> TableRoom {
        TableRoom { percent: self.table_fill_percent, entries_if_unknown: self.table_entries_if_unknown }
    }

    /// The limits of packet-ins, for the kernel.
    pub fn punts(&self) -> PuntLimits {
        PuntLimits {
            per_switch_per_s: self.packet_ins_per_switch_per_s,
            per_port_per_s: self.packet_ins_per_port_per_s,
        }
    }
}

fn percent<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u8>, D::Error> {
    let number = i64::deserialize(input)?;
    match u8::try_from(number) {
        Ok(percent @ 1..=100) => Ok(Some(percent)),
        _ => Err(D::Error::custom(format!("{number} is out of range: write 1 to 100"))),
    }
}

/// For comparison: a table of 2^24 rules takes 256 MiB.
const RULES_PER_SWITCH_MAX: u32 = 1 << 24;

fn rules<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u32>, D::Error> {
    let number = i64::deserialize(input)?;
    match u32::try_from(number) {
        Ok(rules @ 1..=RULES_PER_SWITCH_MAX) => Ok(Some(rules)),
        _ => Err(D::Error::custom(format!("{number} is out of range: write 1 to {RULES_PER_SWITCH_MAX}"))),
    }
}

fn at_least_one<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u32>, D::Error> {
    let number = i64::deserialize(input)?;
    match u32::try_from(number) {
        Ok(limit) if limit > 0 => Ok(Some(limit)),
        _ => Err(D::Error::custom(format!("{number} is out of range: write 1 to {}", u32::MAX))),
    }
}

impl<'de> Deserialize<'de> for MeterRate {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "write false, or a number of packets per second")]
        enum Written {
            Switch(bool),
            Rate(i64),
        }
        match Written::deserialize(input)? {
            Written::Switch(false) => Ok(MeterRate::Off),
            Written::Switch(true) => Err(D::Error::custom(
                "true is not a rate: write a number of packets per second, or false, or leave the key out",
            )),
            Written::Rate(number) => match u32::try_from(number) {
                Ok(per_s) if per_s > 0 => Ok(MeterRate::PerSecond(per_s)),
                _ => Err(D::Error::custom(format!(
                    "{number} is out of range: write 1 to {}, or false",
                    u32::MAX
                ))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ConfigFile;
    use super::*;

    fn check(line: &str, expected: Result<NodeLimits, &str>) {
        let parsed = ConfigFile::parse(&format!("[limits]\n{line}"), std::path::Path::new("t"));
        match (parsed.map(|file| NodeLimits::of(&file.limits)), expected) {
            (Ok(limits), Ok(expected)) => assert_eq!(limits, expected),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (got, expected) => panic!("{line}: {got:?} and not {expected:?}"),
        }
    }

    #[test]
    fn limits_of_nothing_and_of_too_much_are_refused_with_their_line() {
        check("table_fill_percent = 0", Err("line 2: 0 is out of range: write 1 to 100"));
        check("table_entries_if_unknown = 0", Err("write 1 to 4294967295"));
        check("table_fill_percent = 101", Err("write 1 to 100"));
        check("rules_per_switch = 0", Err("line 2: 0 is out of range: write 1 to 16777216"));
        check("rules_per_switch = 16777217", Err("write 1 to 16777216"));
        check("packet_ins_per_port_per_s = 0", Err("write 1 to 4294967295"));
        check("packet_ins_per_switch_per_s = -1", Err("-1 is out of range"));
        check("packet_in_meter_per_s = 0", Err("line 2: 0 is out of range: write 1 to 4294967295, or false"));
        check("packet_in_meter_per_s = true", Err("true is not a rate"));
        check("packet_in_meter_per_s = 'fast'", Err("write false, or a number of packets per second"));
        check("packet_ins_per_port = 1", Err("unknown key `packet_ins_per_port`"));
    }

    #[test]
    fn what_is_not_written_is_nine_tenths_of_a_table_and_every_packet_in() {
        let default = NodeLimits {
            on_overlap: RuleOverlap::Refuse,
            table_fill_percent: 90,
            table_entries_if_unknown: None,
            rules_per_switch: 1 << 20,
            packet_ins_per_switch_per_s: None,
            packet_ins_per_port_per_s: None,
            packet_in_meter_per_s: None,
        };
        check("", Ok(default));
        check("rules_per_switch = 7", Ok(NodeLimits { rules_per_switch: 7, ..default }));
        check(
            "table_entries_if_unknown = 2000",
            Ok(NodeLimits { table_entries_if_unknown: Some(2_000), ..default }),
        );
        check(
            "packet_ins_per_port_per_s = 5",
            Ok(NodeLimits { packet_ins_per_port_per_s: Some(5), ..default }),
        );
    }

    #[test]
    fn a_switchs_budget_brings_a_meter_that_leaves_room_unless_it_is_said_otherwise() {
        let metered = |line: &str, expected| {
            let parsed = ConfigFile::parse(&format!("[limits]\n{line}"), std::path::Path::new("t")).unwrap();
            assert_eq!(NodeLimits::of(&parsed.limits).packet_in_meter_per_s, expected, "{line}");
        };
        metered("packet_ins_per_port_per_s = 5", None);
        metered("packet_ins_per_switch_per_s = 20000", Some(40_000));
        metered("packet_ins_per_switch_per_s = 5001", Some(10_002));
        metered("packet_ins_per_switch_per_s = 100", Some(10_000));
        metered("packet_ins_per_switch_per_s = 4294967295", Some(u32::MAX));
        metered("packet_ins_per_switch_per_s = 1000\npacket_in_meter_per_s = 1500", Some(1_500));
        metered("packet_ins_per_switch_per_s = 1000\npacket_in_meter_per_s = false", None);
        metered("packet_in_meter_per_s = 7", Some(7));
    }
}
