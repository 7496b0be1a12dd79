//! Tests of matches of 1.0.

use super::*;
use flow::relation::covers;
use proptest::prelude::*;

/// Fields of the usual kind, with values that 1.0 has and that it has not, and now and then one of another kind.
fn some_fields() -> impl Strategy<Value = Vec<(Field, u64)>> {
    let fields = vec![Field::InPort, Field::EthDst, Field::EthSrc, Field::EthType, Field::VlanPcp];
    let value = prop_oneof![0..70_000u64, 0xffff_fef0..=0xffff_ffffu64, any::<u64>()];
    proptest::collection::vec((proptest::sample::select(fields), value), 0..5)
}

/// Untagged TCP, with a port, both addresses and all that 1.0 can say of it.
const ALL_TWELVE: [(Field, u128); 11] = [
    (Field::InPort, 1),
    (Field::EthDst, 2),
    (Field::EthSrc, 3),
    (Field::EthType, 0x800),
    (Field::VlanVid, 0),
    (Field::IpDscp, 5),
    (Field::IpProto, 6),
    (Field::Ipv4Src, 7),
    (Field::Ipv4Dst, 8),
    (Field::TcpSrc, 9),
    (Field::TcpDst, 10),
];

proptest! {
    #[test]
    fn a_rule_keeps_its_priority_unless_its_match_must_be_exact(
        named in 0u16..1 << 11,
        all in any::<bool>(),
        tag in proptest::sample::select(vec![None, Some(None), Some(Some(3u128))]),
        prefix in prop_oneof![Just(32u32), 1u32..=32],
        priority: u16,
    ) {
        let is_named = |at: usize| all || named >> at & 1 == 1;
        let mut rule = Match::any();
        let fields = ALL_TWELVE.iter().enumerate().filter(|(at, _)| is_named(*at));
        fields.for_each(|(_, (field, value))| rule.set(*field, *value));
        if let Some(priority) = tag {
            rule.set(Field::VlanVid, VLAN_PRESENT | 7);
            priority.into_iter().for_each(|priority| rule.set(Field::VlanPcp, priority));
        }
        if rule.get(Field::Ipv4Dst).is_some() {
            let mask = u32::MAX << (32 - prefix);
            rule.set_masked(Field::Ipv4Dst, (8 & mask).into(), mask.into());
        }
        for priority in [priority, EXACT_PRIORITY_V10] {
            let mut out = Vec::new();
            if write_of_rule(&rule, priority, &mut Writer { out: &mut out }).is_err() {
                continue;
            }
            let wire = WireMatch::read(&mut Reader::new(&out, 0)).unwrap();
            let expected = if flow::is_exact_in_v10(&rule) { EXACT_PRIORITY_V10 } else { priority };
            prop_assert_eq!(wire.rank(priority), expected, "{:?}", rule);
            let read = wire.to_match();
            prop_assert!(covers(&read, &rule) && covers(&rule, &read), "{:?} {:?}", read, rule);
        }
    }

    #[test]
    fn the_short_way_says_what_the_general_way_says(fields in some_fields(), cut in 0..3usize) {
        let mut tlvs = Vec::new();
        let mut writer = MatchWriter::new(&mut tlvs);
        for (field, value) in &fields {
            writer.field(*field, u128::from(*value));
        }
        tlvs.truncate(tlvs.len().saturating_sub(cut * 3));
        let mut wanted = Wanted::new();
        let general = match_tlvs(&tlvs).try_for_each(|tlv| {
            let tlv = tlv.ok()?;
            wanted.field(tlv.field()?, tlv.value()?, tlv.mask()).ok()
        });
        let general = general.and_then(|()| wanted.finish().ok()).map(WireMatch::to_bytes);
        let short = of_usual_fields(&tlvs).map(WireMatch::to_bytes);
        prop_assert!(short.is_none() || short == general, "{short:?} and {general:?}");
        if cut == 0 {
            let is_again = |at: usize| fields[..at].iter().any(|(field, _)| *field == fields[at].0);
            let usual = fields.iter().all(|(field, _)| *field != Field::VlanPcp)
                && !(0..fields.len()).any(is_again);
            prop_assert_eq!(short.is_some(), usual && general.is_some());
        }
    }
}
