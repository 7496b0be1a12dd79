//! Which role is requested, and the result of the request.

use super::*;
use crate::config::RoleWanted;
use crate::roles::{ControllerRole, MAX_ROLE_REQUESTS};

const ROLE_REQUEST_FAILED: u16 = 11;
const STALE: u16 = 0;
const UNSUP: u16 = 1;
const BAD_ROLE: u16 = 2;

fn role(role: u32, generation_id: u64) -> Role {
    Role { role, generation_id }
}

fn ask(bench: &mut Bench, wanted: Role, ticket: u64) -> Result<(), Refused> {
    let tag = Tag { zone: ZONE, generation: 0, ticket };
    bench.turn(|session, turn| session.request_role(wanted, tag, turn))
}

/// The role request that was said, which is the only message: its transaction id and what it asks for.
fn request(bench: &mut Bench) -> (u32, Role) {
    match &bench.said_whole()[..] {
        [Message { xid, body: Body::RoleRequest(role), .. }] => (*xid, *role),
        other => panic!("one role request was expected, and there is {other:?}"),
    }
}

/// A session that is up and whose switch was asked to make this controller master, under ticket 9.
fn asked_for_master() -> (Bench, u32) {
    let mut bench = Bench::up(Version::V1_3);
    ask(&mut bench, role(ROLE_MASTER, 5), 9).unwrap();
    let (xid, said) = request(&mut bench);
    assert_eq!(said, role(ROLE_MASTER, 5));
    (bench, xid)
}

fn reply(bench: &mut Bench, xid: u32, number: u32) {
    assert_eq!(bench.hear_as(Version::V1_3, xid, Body::RoleReply(role(number, 5))), Ok(Step::On));
}

/// A session whose configuration wants a role, as it came up.
fn wanting(wanted: RoleWanted, version: Version) -> Bench {
    let mut bench = Bench::with(&SouthboundConfig { role: wanted, ..Default::default() });
    bench.said();
    bench.come_up(version);
    bench
}

#[test]
fn a_reply_that_is_cut_short_or_names_no_role_leaves_the_request_unknown() {
    let cut = [header(4, 25, 12, 0), vec![0; 4]].concat();
    let whole = |number: u32| [&header(4, 25, 24, 0)[..], &number.to_be_bytes()[..], &[0; 12][..]].concat();
    for mut damaged in [cut, whole(ROLE_NOCHANGE), whole(4), whole(u32::MAX)] {
        let (mut bench, xid) = asked_for_master();
        damaged[4..8].copy_from_slice(&xid.to_be_bytes());
        assert_eq!(bench.hear_bytes(&damaged), Ok(Step::On));
        bench.complained();
        assert_eq!(outcomes(&mut bench), [(9, Outcome::Unknown)], "{damaged:?}");
        assert_eq!((bench.session.counters().damaged, bench.session.role()), (1, None));
    }
}

#[test]
fn a_reply_that_nobody_asked_for_is_counted_and_changes_nothing() {
    let (mut bench, xid) = asked_for_master();
    reply(&mut bench, xid + 1, ROLE_SLAVE);
    assert_eq!((bench.session.counters().unasked, bench.session.role()), (1, None));
    reply(&mut bench, xid, ROLE_MASTER);
    reply(&mut bench, xid, ROLE_SLAVE);
    assert_eq!((bench.session.counters().unasked, bench.session.role()), (2, Some(ControllerRole::Master)));
    assert_eq!(outcomes(&mut bench), [(9, Outcome::Programmed)]);
}

#[test]
fn a_switch_that_gives_another_role_is_believed_but_the_request_is_not_programmed() {
    let (mut bench, xid) = asked_for_master();
    reply(&mut bench, xid, ROLE_SLAVE);
    assert_eq!(outcomes(&mut bench), [(9, Outcome::Unknown)]);
    assert_eq!(bench.session.role(), Some(ControllerRole::Slave));
}

#[test]
fn a_1_0_switch_has_no_roles_and_a_number_that_is_none_does_not_go_out() {
    let mut bench = Bench::up(Version::V1_0);
    let refused = ask(&mut bench, role(ROLE_EQUAL, 0), 1).unwrap_err().to_string();
    assert!(refused.contains("OpenFlow 1.0 has no roles"), "{refused}");
    assert!(bench.said().is_empty());
    let mut bench = Bench::up(Version::V1_3);
    let refused = ask(&mut bench, role(4, 0), 1).unwrap_err().to_string();
    assert!(refused.contains("there is no role 4"), "{refused}");
    assert!(bench.said().is_empty());
    assert_eq!(bench.session.counters().refused, 1);
}

#[test]
fn requests_that_wait_are_bounded_and_an_answer_makes_room() {
    let mut bench = Bench::up(Version::V1_3);
    for ticket in 0..MAX_ROLE_REQUESTS as u64 {
        ask(&mut bench, role(ROLE_NOCHANGE, 0), ticket).unwrap();
    }
    let last = bench.said_whole().last().unwrap().xid;
    let refused = Err(Refused::TooManyRoleRequests(MAX_ROLE_REQUESTS));
    assert_eq!(ask(&mut bench, role(ROLE_NOCHANGE, 0), 99), refused);
    assert!(bench.said().is_empty());
    reply(&mut bench, last, ROLE_EQUAL);
    assert_eq!(ask(&mut bench, role(ROLE_NOCHANGE, 0), 99), Ok(()));
}

#[test]
fn an_error_fails_the_request_once_and_leaves_the_role_as_it_was() {
    let cases = [
        (STALE, "OFPRRFC_STALE: another controller requested a role with a higher generation id"),
        (UNSUP, "OFPRRFC_UNSUP: the switch cannot change roles"),
        (BAD_ROLE, "OFPRRFC_BAD_ROLE: the role is unchanged"),
    ];
    for (code, expected) in cases {
        let (mut bench, xid) = asked_for_master();
        bench.hear_as(Version::V1_3, xid, error(ROLE_REQUEST_FAILED, code)).unwrap();
        bench.told(0, |event| match event {
            Event::Receipt(_, receipt) => {
                assert_eq!((receipt.error.kind, receipt.error.code), (ROLE_REQUEST_FAILED, code));
                assert!(receipt.reason.contains(expected), "{}", receipt.reason);
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(outcomes(&mut bench), [(9, Outcome::Failed)]);
        assert_eq!((bench.session.state(), bench.session.role()), (State::Up, None));
    }
}

#[test]
fn a_request_without_an_answer_is_unknown_after_its_time() {
    let (mut bench, xid) = asked_for_master();
    let timeout_ms = SouthboundConfig::default().request_timeout_ms;
    bench.tick(timeout_ms - 1).unwrap();
    assert!(bench.to_zones.is_empty());
    bench.tick(timeout_ms).unwrap();
    assert_eq!(outcomes(&mut bench), [(9, Outcome::Unknown)]);
    reply(&mut bench, xid, ROLE_MASTER);
    assert_eq!((bench.session.counters().unasked, outcomes(&mut bench)), (1, Vec::new()));
}

#[test]
fn a_request_that_waits_when_the_session_ends_is_unknown() {
    let (mut bench, _) = asked_for_master();
    bench.turn(|session, turn| session.on_end("the switch closed the connection", turn));
    assert_eq!(outcomes(&mut bench), [(9, Outcome::Unknown)]);
}

#[test]
fn asking_for_no_change_is_asking_which_role_holds() {
    for (number, expected) in [
        (ROLE_EQUAL, ControllerRole::Equal),
        (ROLE_MASTER, ControllerRole::Master),
        (ROLE_SLAVE, ControllerRole::Slave),
    ] {
        let mut bench = Bench::up(Version::V1_3);
        ask(&mut bench, role(ROLE_NOCHANGE, 0), 9).unwrap();
        let (xid, _) = request(&mut bench);
        reply(&mut bench, xid, number);
        assert_eq!(outcomes(&mut bench), [(9, Outcome::Programmed)]);
        assert_eq!(bench.session.role(), Some(expected));
    }
}

#[test]
fn a_switch_that_comes_up_is_asked_for_the_role_that_is_wanted() {
    for (wanted, expected) in [
        (RoleWanted::Equal, role(ROLE_EQUAL, 0)),
        (RoleWanted::Master { generation_id: 7 }, role(ROLE_MASTER, 7)),
        (RoleWanted::Slave { generation_id: u64::MAX }, role(ROLE_SLAVE, u64::MAX)),
    ] {
        let mut bench = wanting(wanted, Version::V1_3);
        let (xid, said) = request(&mut bench);
        assert_eq!(said, expected);
        reply(&mut bench, xid, said.role);
        assert_eq!(bench.session.role().map(ControllerRole::number), Some(said.role));
        assert!(bench.to_zones.is_empty() && bench.lines.is_empty(), "{:?}", bench.lines);
    }
}

#[test]
fn nothing_is_asked_where_nothing_is_wanted_or_nothing_can_be() {
    assert!(wanting(RoleWanted::NoChange, Version::V1_3).said().is_empty());
    assert!(wanting(RoleWanted::Master { generation_id: 7 }, Version::V1_0).said().is_empty());
}

#[test]
fn a_wanted_role_that_is_stale_or_is_not_answered_goes_to_the_log_and_the_session_goes_on() {
    let master = RoleWanted::Master { generation_id: 7 };
    let mut stale = wanting(master, Version::V1_3);
    let (xid, _) = request(&mut stale);
    stale.hear_as(Version::V1_3, xid, error(ROLE_REQUEST_FAILED, STALE)).unwrap();
    let mut silent = wanting(master, Version::V1_3);
    silent.tick(SouthboundConfig::default().request_timeout_ms).unwrap();
    for (bench, expected) in [
        (stale, "another controller requested a role with a higher generation id"),
        (silent, "did not answer the role request"),
    ] {
        assert!(matches!(&bench.lines[..], [line] if line.contains(expected)), "{:?}", bench.lines);
        assert!(bench.to_zones.is_empty());
        assert_eq!((bench.session.state(), bench.session.role()), (State::Up, None));
    }
}
