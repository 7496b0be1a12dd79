//! Owners of groups and meters: who may change, delete and refer to them, and when a claim is valid.

use super::*;
use crate::group_or_meter::MAX_GROUP;

const SWITCH: DatapathId = DatapathId(1);
const ELSEWHERE: DatapathId = DatapathId(2);
const ONE: Asker = Asker { zone: ZoneId(1), bounded: false, others_too: false };
const OTHER: Asker = Asker { zone: ZoneId(2), bounded: false, others_too: false };
const EVERYBODYS: Asker = Asker { zone: ZoneId(4), bounded: false, others_too: true };
const BOUNDED: Asker = Asker { zone: ZoneId(3), bounded: true, others_too: false };
const JUDGED: Judged = Judged { packet_out: Ok(()), is_closed: false };
const CLAIMANT: Claimant = Claimant { ticket: 7, wants_receipt: false };

fn group(command: u16, group_id: u32) -> GroupMod<'static> {
    GroupMod { command, group_type: 0, group_id, buckets: &[] }
}

fn meter(command: u16, meter_id: u32) -> MeterMod<'static> {
    MeterMod { command, flags: 0, meter_id, bands: &[] }
}

impl Owned {
    /// Sends a change if it is allowed. Returns the ticket of its claim.
    fn send_group(&mut self, asker: Asker, at: DatapathId, it: &GroupMod<'_>) -> Result<Option<u64>, Excess> {
        let change = self.on_group_mod(asker, at, it, JUDGED, CLAIMANT)?;
        Ok(self.take(change))
    }

    fn send_meter(&mut self, asker: Asker, at: DatapathId, it: &MeterMod<'_>) -> Result<Option<u64>, Excess> {
        let change = self.on_meter_mod(asker, at, it, CLAIMANT)?;
        Ok(self.take(change))
    }

    fn take(&mut self, change: Change) -> Option<u64> {
        let claim = change.claim();
        self.on_sent(change);
        claim
    }

    /// Makes a change that the switch confirms.
    fn do_group(&mut self, asker: Asker, at: DatapathId, it: &GroupMod<'_>) -> Result<(), Excess> {
        let claim = self.send_group(asker, at, it)?;
        claim.map(|ticket| self.settle(ticket, true));
        Ok(())
    }

    fn do_meter(&mut self, asker: Asker, at: DatapathId, it: &MeterMod<'_>) -> Result<(), Excess> {
        let claim = self.send_meter(asker, at, it)?;
        claim.map(|ticket| self.settle(ticket, true));
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }
}

fn owned() -> Owned {
    let mut owned = Owned::default();
    owned.do_group(ONE, SWITCH, &group(ADD, 7)).unwrap();
    owned
}

#[test]
fn only_who_made_a_group_may_change_or_delete_it() {
    for command in [ADD, MODIFY, DELETE] {
        let by_others = owned().do_group(OTHER, SWITCH, &group(command, 7));
        assert_eq!(by_others, Err(Excess::Group(7)), "{command}");
        assert_eq!(owned().do_group(ONE, SWITCH, &group(command, 7)), Ok(()), "{command}");
    }
    // At another switch it has no known owner.
    assert_eq!(owned().do_group(OTHER, ELSEWHERE, &group(DELETE, 7)), Err(Excess::Group(7)));
    assert_eq!(owned().do_meter(OTHER, SWITCH, &meter(DELETE, 7)), Err(Excess::Meter(7)));
    assert_eq!(owned().do_meter(EVERYBODYS, SWITCH, &meter(DELETE, 7)), Ok(()));
    assert_eq!(owned().do_group(EVERYBODYS, SWITCH, &group(DELETE, 7)), Err(Excess::Group(7)));
}

#[test]
fn nobody_deletes_the_groups_of_all() {
    let all = group(DELETE, ALL_GROUPS);
    for asker in [ONE, OTHER, BOUNDED] {
        assert_eq!(owned().do_group(asker, SWITCH, &all), Err(Excess::AllAtOnce));
        assert_eq!(owned().do_group(asker, ELSEWHERE, &all), Err(Excess::AllAtOnce));
        let meters = owned().do_meter(asker, SWITCH, &meter(DELETE, ALL_METERS));
        assert_eq!(meters, Err(Excess::AllAtOnce));
    }
    assert_eq!(owned().do_group(EVERYBODYS, SWITCH, &all), Err(Excess::AllAtOnce));
    let mut owned = Owned::default();
    owned.do_group(EVERYBODYS, SWITCH, &group(ADD, 7)).unwrap();
    owned.do_group(EVERYBODYS, SWITCH, &all).unwrap();
    assert!(owned.is_empty());
}

#[test]
fn a_rule_refers_to_its_owners_groups_and_meters_only() {
    let mut bytes = Vec::new();
    flow::canonical::InstructionWriter::new(&mut bytes).meter(5).apply_actions(|actions| {
        actions.group(7);
    });
    let mut owned = owned();
    assert_eq!(owned.check_instructions(ONE, SWITCH, &bytes), Err(Excess::Meter(5)));
    owned.do_meter(ONE, SWITCH, &meter(ADD, 5)).unwrap();
    assert_eq!(owned.check_instructions(ONE, SWITCH, &bytes), Ok(()));
    assert_eq!(owned.check_instructions(OTHER, SWITCH, &bytes), Err(Excess::Meter(5)));
    assert_eq!(owned.check_instructions(BOUNDED, ELSEWHERE, &bytes), Err(Excess::Meter(5)));
    assert_eq!(owned.check_instructions(EVERYBODYS, ELSEWHERE, &bytes), Ok(()));
}

#[test]
fn what_a_switch_meters_for_everybody_is_nobodys() {
    for command in [ADD, MODIFY, DELETE] {
        for id in [0xffff_0001, 0xffff_fffd, 0xffff_fffe] {
            let mut owned = Owned::default();
            for asker in [ONE, BOUNDED] {
                let asked = owned.do_meter(asker, SWITCH, &meter(command, id));
                assert_eq!(asked, Err(Excess::Reserved), "{command} {id:#x}");
            }
            assert!(owned.is_empty());
            assert_eq!(owned.do_meter(EVERYBODYS, SWITCH, &meter(command, id)), Ok(()));
        }
        let group = group(command, 0xffff_ff01);
        assert_eq!(owned().do_group(ONE, SWITCH, &group), Err(Excess::Reserved), "{command}");
    }
    for last in [0xffff_0000, 1] {
        assert_eq!(owned().do_meter(ONE, SWITCH, &meter(ADD, last)), Ok(()));
    }
    assert_eq!(owned().do_group(ONE, SWITCH, &group(ADD, MAX_GROUP)), Ok(()));
}

#[test]
fn no_app_takes_every_number() {
    let mut owned = Owned::default();
    for id in 0..MAX_OWNED as u32 {
        owned.do_group(ONE, SWITCH, &group(ADD, id)).unwrap();
    }
    let one_more = owned.do_meter(ONE, SWITCH, &meter(ADD, 1));
    assert_eq!(one_more, Err(Excess::TooMany(TooMany::Owned(MAX_OWNED))));
    assert_eq!(owned.do_meter(OTHER, SWITCH, &meter(ADD, 1)), Ok(()));
}

#[test]
fn a_switch_that_comes_to_another_worker_brings_its_owners_along() {
    let claims = Arc::new(Claims::default());
    let (mut first, mut second) = (Owned::sharing(claims.clone()), Owned::sharing(claims.clone()));
    first.do_group(ONE, SWITCH, &group(ADD, 7)).unwrap();
    first.do_meter(ONE, SWITCH, &meter(ADD, 8)).unwrap();
    first.send_group(ONE, SWITCH, &group(ADD, 9)).unwrap();
    first.on_switch_down(SWITCH);
    second.on_switch_up(SWITCH);
    assert_eq!(second.do_group(OTHER, SWITCH, &group(MODIFY, 7)), Err(Excess::Group(7)));
    assert_eq!(second.do_group(ONE, SWITCH, &group(MODIFY, 7)), Ok(()));
    assert_eq!(second.do_meter(ONE, SWITCH, &meter(DELETE, 8)), Ok(()));
    // The switch has not confirmed it yet.
    assert_eq!(second.do_group(ONE, SWITCH, &group(MODIFY, 9)), Err(Excess::Group(9)));
    second.on_switch_down(SWITCH);
    first.on_switch_up(SWITCH);
    assert_eq!(first.do_meter(ONE, SWITCH, &meter(MODIFY, 8)), Err(Excess::Meter(8)), "it was deleted");
    assert_eq!(first.do_group(ONE, SWITCH, &group(DELETE, 7)), Ok(()));
}

#[test]
fn what_a_group_does_is_known_to_the_worker_that_has_its_switch_next() {
    let claims = Arc::new(Claims::default());
    let (mut first, mut second) = (Owned::sharing(claims.clone()), Owned::sharing(claims.clone()));
    let mut out = Vec::new();
    flow::canonical::ActionWriter::new(&mut out).group(7);
    let mut bucket = vec![0; 16];
    bucket[..2].copy_from_slice(&(16 + out.len() as u16).to_be_bytes());
    bucket[4..12].fill(0xff);
    bucket.extend(out);
    let outer = GroupMod { buckets: &bucket, ..group(ADD, 8) };
    first.do_group(BOUNDED, SWITCH, &group(ADD, 7)).unwrap();
    first.do_group(BOUNDED, SWITCH, &outer).unwrap();
    let nested = Err(Excess::Nested(7));
    assert_eq!(first.do_group(BOUNDED, SWITCH, &group(DELETE, 7)), nested);
    second.on_switch_up(SWITCH);
    second.on_switch_up(SWITCH);
    assert_eq!(
        second.do_group(BOUNDED, SWITCH, &group(DELETE, 7)),
        nested,
        "a group that leads to it is left"
    );
    second.do_group(BOUNDED, SWITCH, &group(DELETE, 8)).unwrap();
    assert_eq!(second.do_group(BOUNDED, SWITCH, &group(DELETE, 7)), Ok(()));
}

#[test]
fn of_a_group_from_before_this_process_its_owner_is_known_and_not_what_it_does() {
    let claims = Arc::new(Claims::default());
    claims.restore(SWITCH, GroupOrMeter::Group(7), BOUNDED.zone);
    let mut owned = Owned::sharing(claims);
    owned.on_switch_up(SWITCH);
    let mut actions = Vec::new();
    flow::canonical::ActionWriter::new(&mut actions).group(7);
    assert_eq!(owned.check_packet_out(ONE, SWITCH, &actions), Err(Excess::Group(7)));
    assert_eq!(owned.check_packet_out(BOUNDED, SWITCH, &actions), Err(Excess::UnjudgedGroup(7)));
    owned.do_group(BOUNDED, SWITCH, &group(DELETE, 7)).unwrap();
    owned.do_group(BOUNDED, SWITCH, &group(ADD, 7)).unwrap();
    assert_eq!(owned.check_packet_out(BOUNDED, SWITCH, &actions), Ok(()));
}

#[test]
fn a_group_from_before_this_process_is_judged_when_its_owner_modifies_it() {
    let claims = Arc::new(Claims::default());
    claims.restore(SWITCH, GroupOrMeter::Group(7), BOUNDED.zone);
    claims.restore(SWITCH, GroupOrMeter::Meter(7), BOUNDED.zone);
    let mut owned = Owned::sharing(claims.clone());
    owned.on_switch_up(SWITCH);
    let mut instructions = Vec::new();
    let mut writer = flow::canonical::InstructionWriter::new(&mut instructions);
    writer.meter(7).apply_actions(|actions| {
        actions.group(7);
    });
    let check = |owned: &Owned| owned.check_instructions(BOUNDED, SWITCH, &instructions);
    assert_eq!(check(&owned), Err(Excess::UnjudgedMeter(7)));
    assert_eq!(owned.do_meter(BOUNDED, SWITCH, &meter(MODIFY, 7)), Ok(()));
    assert_eq!(check(&owned), Err(Excess::UnjudgedGroup(7)));
    let refused = owned.send_group(BOUNDED, SWITCH, &group(MODIFY, 7)).unwrap().unwrap();
    assert_eq!(check(&owned), Err(Excess::NotYet), "the switch has not confirmed it");
    owned.settle(refused, false);
    assert_eq!(check(&owned), Err(Excess::UnjudgedGroup(7)), "it stays its owner's, and unknown");
    assert_eq!(owned.do_group(OTHER, SWITCH, &group(MODIFY, 7)), Err(Excess::Group(7)));
    assert_eq!(owned.do_group(BOUNDED, SWITCH, &group(MODIFY, 7)), Ok(()));
    assert_eq!((check(&owned), claims.count(BOUNDED.zone)), (Ok(()), 2));
    assert_eq!(owned.send_group(BOUNDED, SWITCH, &group(MODIFY, 7)), Ok(None), "once is enough");
    assert_eq!(owned.do_group(BOUNDED, SWITCH, &group(DELETE, 7)), Ok(()));
    assert_eq!(claims.count(BOUNDED.zone), 1);
}

#[test]
fn an_app_has_no_more_numbers_at_many_workers_than_at_one() {
    let claims = Arc::new(Claims::default());
    let mut workers: Vec<_> = (0..4).map(|_| Owned::sharing(claims.clone())).collect();
    for id in 0..MAX_OWNED as u32 {
        let worker = &mut workers[id as usize % 4];
        worker.do_group(ONE, DatapathId(u64::from(id % 4)), &group(ADD, id)).unwrap();
    }
    for worker in &mut workers {
        let one_more = worker.do_group(ONE, ELSEWHERE, &group(ADD, 1));
        assert_eq!(one_more, Err(Excess::TooMany(TooMany::Owned(MAX_OWNED))));
    }
}

#[test]
fn what_an_app_claims_is_its_own_once_the_switch_says_so() {
    for asker in [BOUNDED, OTHER] {
        let mut owned = Owned::default();
        let claim = owned.send_group(asker, SWITCH, &group(ADD, 9)).unwrap().unwrap();
        assert!(owned.has_pending() && claim & CLAIM_TICKET == CLAIM_TICKET);
        for command in [ADD, MODIFY, DELETE] {
            let early = owned.send_group(asker, SWITCH, &group(command, 9));
            assert_eq!(early, Err(Excess::NotYet), "{command}");
            let others = owned.send_group(ONE, SWITCH, &group(command, 9));
            assert_eq!(others, Err(Excess::Group(9)), "{command}");
        }
        assert_eq!(owned.settle(claim + 1, true), None);
        assert_eq!(owned.settle(claim, true), Some((asker.zone, CLAIMANT)));
        assert_eq!(owned.settle(claim, false), None, "once");
        assert!(!owned.has_pending());
        assert_eq!(owned.send_group(asker, SWITCH, &group(MODIFY, 9)), Ok(None));
    }
}

#[test]
fn what_was_there_before_is_nobodys_whoever_claims_it() {
    let mut owned = Owned::default();
    let claim = owned.send_meter(BOUNDED, SWITCH, &meter(ADD, 9)).unwrap().unwrap();
    // The switch reports that it already exists.
    assert_eq!(owned.settle(claim, false), Some((BOUNDED.zone, CLAIMANT)));
    assert!(owned.is_empty() && !owned.has_pending());
    for command in [MODIFY, DELETE] {
        let theirs = owned.send_meter(BOUNDED, SWITCH, &meter(command, 9));
        assert_eq!(theirs, Err(Excess::Meter(9)), "{command}");
    }
}

#[test]
fn what_was_deleted_is_the_next_ones_who_asks() {
    let mut owned = owned();
    owned.do_group(ONE, SWITCH, &group(DELETE, 7)).unwrap();
    owned.do_group(OTHER, SWITCH, &group(ADD, 7)).unwrap();
    assert_eq!(owned.do_group(ONE, SWITCH, &group(MODIFY, 7)), Err(Excess::Group(7)));
}

#[test]
fn what_is_not_sent_changes_nothing() {
    let mut owned = owned();
    for command in [group(DELETE, 7), group(MODIFY, 7), group(ADD, 8)] {
        let change = owned.on_group_mod(ONE, SWITCH, &command, JUDGED, CLAIMANT).unwrap();
        assert_ne!(change, Change::Nothing);
        assert_eq!(owned.do_group(OTHER, SWITCH, &group(MODIFY, 7)), Err(Excess::Group(7)));
    }
    assert!(!owned.has_pending());
    assert_eq!(owned.do_group(OTHER, SWITCH, &group(ADD, 8)), Ok(()));
}

#[test]
fn a_claim_goes_with_what_it_is_of() {
    let mut owned = Owned::default();
    for id in 0..2 * MAX_OWNED as u32 {
        let claim = owned.send_group(BOUNDED, SWITCH, &group(ADD, id)).unwrap().unwrap();
        assert_eq!(owned.settle(claim, false), Some((BOUNDED.zone, CLAIMANT)));
        assert!(!owned.has_pending() && owned.is_empty() && owned.settle(claim, true).is_none());
    }
}
