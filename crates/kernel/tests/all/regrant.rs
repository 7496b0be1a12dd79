//! A new grant of a running app applies at once, and removes none of the app's earlier rules.

use abi::command::{self, Command, Subscribe, What};
use abi::event::{self, OpenFlowVersion, SwitchUp, kind};
use abi::{Frame, ZoneId};
use flow::DatapathId;
use kernel::{Capability, Decision, Effect, Grant, Kernel, Quota, Quotas};

const SWITCH: DatapathId = DatapathId(1);
const APP: ZoneId = ZoneId(1);

fn kernel(grant: Grant) -> Kernel {
    let mut kernel = Kernel::new(7);
    kernel.attach(APP, "app", grant, 0);
    let mut up = Vec::new();
    let switch =
        SwitchUp { datapath: SWITCH, n_buffers: 0, n_tables: 8, openflow: OpenFlowVersion::V1_3, ports: &[] };
    event::write::switch_up(&mut up, 1, &switch);
    kernel.on_event(&Frame::read(&up).unwrap(), 0, &mut Vec::new()).unwrap();
    kernel.on_no_answer(SWITCH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
    kernel
}

/// Whether the kernel accepts a command.
fn passes(kernel: &mut Kernel, what: What<'_>, now_ms: u64) -> bool {
    let mut bytes = Vec::new();
    let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what };
    assert!(command::write::command(&mut bytes, &command));
    let frame = Frame::read(&bytes).unwrap();
    !matches!(kernel.on_command(APP, &frame, now_ms, &mut Vec::new()), Decision::Refuse(_))
}

fn subscribe(kernel: &mut Kernel) -> bool {
    let events = kind::bit(kind::PACKET_IN) | kind::bit(kind::SWITCH_UP);
    passes(kernel, What::Subscribe(Subscribe { events, packets: &[] }), 0)
}

fn hears(kernel: &Kernel) -> (bool, bool) {
    let hears = |kind| kernel.receivers_of(kind).contains(APP);
    (hears(kind::PACKET_IN), hears(kind::SWITCH_UP))
}

#[test]
fn a_subscription_that_was_refused_holds_once_it_is_granted() {
    let mut kernel = kernel(Grant::nothing().with(Capability::ViewRead));
    assert!(!subscribe(&mut kernel));
    assert_eq!(hears(&kernel), (false, false));
    let both = Grant::nothing().with(Capability::ViewRead).with(Capability::PacketIn);
    let mut effects = Vec::new();
    kernel.regrant(APP, both, 0, &mut effects);
    assert_eq!(hears(&kernel), (true, true));
    let replayed = |effect: &Effect| matches!(effect, Effect::Replay(APP));
    assert!(effects.iter().any(replayed), "it hears of the switches that are there: {effects:?}");
}

#[test]
fn what_is_taken_away_is_heard_no_more_and_comes_back_when_it_is_granted_again() {
    let both = Grant::nothing().with(Capability::ViewRead).with(Capability::PacketIn);
    let mut kernel = kernel(both.clone());
    assert!(subscribe(&mut kernel));
    kernel.regrant(APP, Grant::nothing().with(Capability::ViewRead), 0, &mut Vec::new());
    assert_eq!(hears(&kernel), (false, true));
    kernel.regrant(APP, both.clone(), 0, &mut Vec::new());
    assert_eq!(hears(&kernel), (true, true));
    let mut effects = Vec::new();
    kernel.regrant(APP, both.with(Capability::StatsRead), 0, &mut effects);
    assert!(effects.is_empty(), "what it heard before is not told again: {effects:?}");
}

#[test]
fn a_command_is_judged_by_the_newest_grant() {
    let barrier = || What::Barrier;
    let mut kernel = kernel(Grant::nothing());
    assert!(!passes(&mut kernel, barrier(), 0));
    kernel.regrant(APP, Grant::nothing().with(Capability::StatsRead), 0, &mut Vec::new());
    assert!(passes(&mut kernel, barrier(), 0));
    kernel.regrant(APP, Grant::nothing(), 0, &mut Vec::new());
    assert!(!passes(&mut kernel, barrier(), 0));
}

#[test]
fn a_quota_that_stays_is_not_given_anew() {
    let limited = |hard| {
        let quotas = Quotas { commands_per_s: Some(Quota { soft: hard, hard }), ..Quotas::default() };
        Grant::nothing().with(Capability::StatsRead).with_quotas(quotas)
    };
    let mut kernel = kernel(limited(1));
    assert!(passes(&mut kernel, What::Barrier, 0));
    kernel.regrant(APP, limited(1), 0, &mut Vec::new());
    assert!(!passes(&mut kernel, What::Barrier, 0));
    kernel.regrant(APP, limited(2), 0, &mut Vec::new());
    assert!(passes(&mut kernel, What::Barrier, 0));
}

#[test]
fn a_zone_that_is_not_there_gets_nothing() {
    let mut kernel = kernel(Grant::nothing());
    kernel.regrant(ZoneId(9), Grant::nothing().with(Capability::ViewRead), 0, &mut Vec::new());
    kernel.regrant(ZoneId(999), Grant::nothing(), 0, &mut Vec::new());
    assert!(kernel.zone(ZoneId(9)).is_none());
}
