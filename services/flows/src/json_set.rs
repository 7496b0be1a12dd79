//! Sets that operators write in JSON, as the items of a batch.
//!
//! In: a set with typed rules, groups and meters. Out: its items as bytes, or the field that cannot be written. It knows no switch.

use flows_contract::{Group, Items, Meter, MeterUnit, Rule, WantedBand, WantedGroup, WantedMeter, WantedSet};

/// The items of a set.
///
/// # Errors
/// A sentence that begins with the field.
pub fn wanted_items(set: &WantedSet) -> Result<Vec<u8>, String> {
    let (mut bytes, mut matching, mut instructions) = (Vec::new(), Vec::new(), Vec::new());
    for (number, rule) in set.rules.iter().enumerate() {
        if set.permanent && (rule.idle_timeout_s, rule.hard_timeout_s) != (0, 0) {
            return Err(format!("rules[{number}]: a permanent rule has no time-outs"));
        }
        matching.clear();
        instructions.clear();
        flow::canonical::write_match(&rule.matching, &mut matching);
        flow::canonical::write_instructions(&rule.instructions, &mut instructions)
            .map_err(|why| format!("rules[{number}].instructions: {why}"))?;
        Items::new(&mut bytes).rule(&Rule {
            switch: rule.switch,
            table_id: rule.table_id,
            stage: rule.stage,
            priority: rule.priority,
            idle_timeout_s: rule.idle_timeout_s,
            hard_timeout_s: rule.hard_timeout_s,
            matching: &matching,
            instructions: &instructions,
        });
    }
    for (number, group) in set.groups.iter().enumerate() {
        let buckets = buckets(group).map_err(|why| format!("groups[{number}].{why}"))?;
        let WantedGroup { switch, group_id, group_type, .. } = *group;
        Items::new(&mut bytes).group(&Group {
            switch,
            group_id,
            group_type: group_type as u8,
            buckets: &buckets,
        });
    }
    for meter in &set.meters {
        let WantedMeter { switch, meter_id, unit, burst, stats, .. } = *meter;
        let of_unit = if unit == MeterUnit::Kbps { KBPS } else { PACKETS_PER_S };
        let flags = of_unit + u16::from(burst) * BURST + u16::from(stats) * STATS;
        Items::new(&mut bytes).meter(&Meter { switch, meter_id, flags, bands: &bands(meter) });
    }
    Ok(bytes)
}

/// `ofp_meter_flags` (OpenFlow 1.3.5, 7.3.4.3).
const KBPS: u16 = 1;
const PACKETS_PER_S: u16 = 2;
const BURST: u16 = 4;
const STATS: u16 = 8;

/// The bytes of a bucket before its actions (7.3.4.2).
const BUCKET_HEAD: usize = 16;

/// The longest buckets of a group: an OpenFlow message has at most 65,535 bytes, and a group mod has 16 before its buckets (7.3.4.2).
const BUCKETS_BYTES_MAX: usize = u16::MAX as usize - 16;

/// No port and no group.
const ANY: u32 = 0xffff_ffff;

fn buckets(group: &WantedGroup) -> Result<Vec<u8>, String> {
    let (mut bytes, mut actions) = (Vec::new(), Vec::new());
    for (number, bucket) in group.buckets.iter().enumerate() {
        actions.clear();
        flow::canonical::write_actions(&bucket.actions, &mut actions)
            .map_err(|why| format!("buckets[{number}].actions: {why}"))?;
        let length = u16::try_from(BUCKET_HEAD + actions.len())
            .map_err(|_| format!("buckets[{number}].actions: they are too long"))?;
        bytes.extend(length.to_be_bytes());
        bytes.extend(bucket.weight.to_be_bytes());
        bytes.extend(bucket.watch_port.map_or(ANY, |port| port.0).to_be_bytes());
        bytes.extend(bucket.watch_group.unwrap_or(ANY).to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(&actions);
    }
    match bytes.len() <= BUCKETS_BYTES_MAX {
        true => Ok(bytes),
        false => Err("buckets: they are too long for a group mod".to_owned()),
    }
}

/// The bands of a meter (7.3.4.3): each has sixteen bytes.
fn bands(meter: &WantedMeter) -> Vec<u8> {
    let mut bytes = Vec::new();
    for band in &meter.bands {
        let (kind, rate, burst_size, prec_level) = match *band {
            WantedBand::Drop { rate, burst_size } => (1_u16, rate, burst_size, 0),
            WantedBand::DscpRemark { rate, burst_size, prec_level } => (2, rate, burst_size, prec_level),
        };
        bytes.extend(kind.to_be_bytes());
        bytes.extend(16_u16.to_be_bytes());
        bytes.extend(rate.to_be_bytes());
        bytes.extend(burst_size.to_be_bytes());
        bytes.extend([prec_level, 0, 0, 0]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::canonical::{RawBand, bands_raw, buckets_raw};
    use flows_contract::{Item, Question, items};

    fn set(members: &str) -> WantedSet {
        let text = format!(r#"{{"op":"put","name":"a",{members}}}"#);
        match Question::from_bytes(text.as_bytes()).unwrap() {
            Question::Put(set) => set,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_permanent_rule_has_no_time_out() {
        let why = wanted_items(&set(
            r#""permanent":true,"rules":[{"switch":"1","priority":1,"idle_timeout_s":1}]"#,
        ));
        assert!(why.unwrap_err().starts_with("rules[0]: "));
    }

    #[test]
    fn a_group_mod_has_a_bound() {
        let actions = vec![r#"{"type":"output","port":2}"#; 4_096].join(",");
        let buckets = format!(r#"{{"actions":[{actions}]}}"#);
        let group = format!(
            r#""rules":[],"groups":[{{"switch":"1","group_id":1,"type":"all","buckets":[{buckets}]}}]"#
        );
        let text = format!(r#"{{"name":"a",{group}}}"#);
        let set: WantedSet = serde_json::from_str(&text).unwrap();
        assert_eq!(wanted_items(&set).unwrap_err(), "groups[0].buckets[0].actions: they are too long");
    }

    #[test]
    fn groups_and_meters_are_written_as_in_a_message() {
        let bytes = wanted_items(&set(
            r#""rules":[],"groups":[{"switch":"1","group_id":7,"type":"fast_failover",
               "buckets":[{"watch_port":3,"actions":[{"type":"output","port":3}]},{"weight":5}]}],
               "meters":[{"switch":"1","meter_id":9,"unit":"packets_per_s","burst":true,
               "bands":[{"type":"drop","rate":100,"burst_size":10},{"type":"dscp_remark","rate":50,"prec_level":1}]}]"#,
        ))
        .unwrap();
        let mut found = items(&bytes);
        let Some((_, Item::Group(group))) = found.next() else { panic!("the group comes first") };
        assert_eq!((group.group_id, group.group_type), (7, 3));
        let buckets: Vec<_> = buckets_raw(group.buckets).map(Result::unwrap).collect();
        let shown: Vec<_> = buckets.iter().map(|it| (it.weight, it.watch_port.0, it.actions.len())).collect();
        assert_eq!(shown, [(0, 3, 16), (5, ANY, 0)]);
        let Some((_, Item::Meter(meter))) = found.next() else { panic!("then the meter") };
        assert_eq!((meter.meter_id, meter.flags), (9, PACKETS_PER_S + BURST));
        let bands: Vec<_> = bands_raw(meter.bands).map(Result::unwrap).collect();
        assert_eq!(bands, [RawBand::Drop, RawBand::RemarkDscp]);
    }
}
