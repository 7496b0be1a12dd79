//! How a switch gets the kernel's own meter, the table-miss rule without it, and who may change it.

use abi::command::{self, Command, FlowMod, MeterMod, Subscribe, What};
use abi::event::{self, FlowRemoved, OpenFlowVersion, StatsReply, SwitchUp, kind};
use abi::{Frame, Outcome, Receipt, ZoneId};
use flow::canonical::InstructionWriter;
use flow::{DatapathId, ErrorCode};
use kernel::metering::Why;
use kernel::own_messages::{MeterStep, MeterWanted, RULE_TICKET, later_rule_ticket};
use kernel::{Bounds, Capability, Decision, Effect, Grant, Kernel, Metering};

const SWITCH: DatapathId = DatapathId(1);
const APP: ZoneId = ZoneId(1);
const OTHER: ZoneId = ZoneId(2);
const PER_S: u32 = 200;

/// The meter features of a switch: 65,536 meters with drop bands, packets per second, bursts and counters.
const FEATURES: [u8; 16] = [0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0xf, 8, 0, 0, 0];
const HIGHEST: u32 = 65_536;

const NO_ERROR: ErrorCode = ErrorCode { kind: 0, code: 0 };
const METER_EXISTS: ErrorCode = ErrorCode { kind: 12, code: 1 };
const UNKNOWN_METER: ErrorCode = ErrorCode { kind: 12, code: 3 };
const OUT_OF_METERS: ErrorCode = ErrorCode { kind: 12, code: 10 };

const ASK: Effect = Effect::Meter { datapath: SWITCH, step: MeterStep::AskFeatures };
const PUNT: Effect = Effect::Punt(SWITCH);
const CHECK: Effect = Effect::Meter { datapath: SWITCH, step: MeterStep::Check(HIGHEST) };
const CHECK_TICKET: u64 = MeterStep::Check(HIGHEST).ticket();
const SETTLED: Effect = Effect::MeterSettled(SWITCH);

fn meter(meter_id: u32) -> MeterWanted {
    MeterWanted { meter_id, is_there: false, flags: 0b1110, per_s: PER_S, burst: PER_S }
}

fn on(dropped: u64) -> Metering {
    Metering::On { meter: meter(HIGHEST), dropped }
}

fn make(wanted: MeterWanted) -> Effect {
    Effect::Meter { datapath: SWITCH, step: MeterStep::Make(wanted) }
}

const ADD: u64 =
    MeterStep::Make(MeterWanted { meter_id: 1, is_there: false, flags: 0, per_s: 1, burst: 1 }).ticket();

/// A kernel whose operator wants meters, and an app that wants packets.
struct Node {
    kernel: Kernel,
    effects: Vec<Effect>,
}

impl Node {
    fn new() -> Node {
        let mut node = Node { kernel: Kernel::new(7), effects: Vec::new() };
        node.kernel.meter_punts(Some(PER_S));
        for (zone, name) in [(APP, "app"), (OTHER, "other")] {
            assert!(node.kernel.attach(zone, name, Grant::everywhere(&kernel::Capability::GRANT_ALL), 0));
        }
        node
    }

    /// With an app that wants packets.
    fn punting() -> Node {
        let mut node = Node::new();
        node.subscribe();
        node
    }

    /// A node with a switch that has its meter.
    fn with_meter() -> Node {
        let mut node = Node::punting();
        node.switch_up();
        node.features(&FEATURES);
        node.receipt(ADD, Outcome::Programmed, NO_ERROR);
        node.receipt(RULE_TICKET, Outcome::Programmed, NO_ERROR);
        assert_eq!(node.state(), on(0));
        node
    }

    fn event(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) -> Vec<Effect> {
        let mut bytes = Vec::new();
        assert!(write(&mut bytes));
        self.kernel.on_event(&Frame::read(&bytes).unwrap(), 0, &mut self.effects).unwrap();
        // It has no rules from before.
        self.kernel.on_no_answer(SWITCH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
        self.effects.drain(..).collect()
    }

    fn switch_up(&mut self) -> Vec<Effect> {
        let up = SwitchUp {
            datapath: SWITCH,
            n_buffers: 0,
            n_tables: 2,
            openflow: OpenFlowVersion::V1_3,
            ports: &[],
        };
        self.event(|out| event::write::switch_up(out, 1, &up))
    }

    fn switch_down(&mut self) {
        self.event(|out| event::write::switch_down(out, 1, SWITCH));
    }

    fn removed(&mut self, owner: ZoneId) -> Vec<Effect> {
        let removed = FlowRemoved {
            datapath: SWITCH,
            cookie: if owner == ZoneId::KERNEL { kernel::OWN_COOKIE } else { owner.stamp(0) },
            duration_s: 0,
            duration_ns: 0,
            packet_count: 0,
            byte_count: 0,
            priority: 0,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            reason: 2,
            table_id: 0,
            matching: &[],
        };
        self.event(|out| event::write::flow_removed(out, 3, &removed))
    }

    fn answer(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) -> Vec<Effect> {
        let mut bytes = Vec::new();
        assert!(write(&mut bytes));
        assert!(self.kernel.on_meter_answer(&bytes, &mut self.effects));
        self.effects.drain(..).collect()
    }

    fn features(&mut self, body: &[u8]) -> Vec<Effect> {
        let (ticket, multipart) = (MeterStep::AskFeatures.ticket(), 11);
        let reply = StatsReply { datapath: SWITCH, ticket, multipart, more: false, body };
        self.answer(|out| event::write::stats_reply(out, 9, &reply))
    }

    /// The switch reports the statistics of its meter.
    fn checked(&mut self, body: &[u8]) -> Vec<Effect> {
        let reply = StatsReply { datapath: SWITCH, ticket: CHECK_TICKET, multipart: 9, more: false, body };
        self.answer(|out| event::write::stats_reply(out, 9, &reply))
    }

    fn tick(&mut self, now_ms: u64) -> Vec<Effect> {
        self.kernel.check_meters(now_ms, &mut self.effects);
        self.effects.drain(..).collect()
    }

    fn receipt(&mut self, ticket: u64, outcome: Outcome, error: ErrorCode) -> Vec<Effect> {
        let reason = if outcome == Outcome::Programmed { "" } else { "it says so" };
        let receipt = Receipt { ticket, outcome, error, reason };
        self.answer(|out| event::write::receipt(out, 9, SWITCH, &receipt))
    }

    fn subscribe(&mut self) -> Vec<Effect> {
        let events = kind::bit(kind::PACKET_IN);
        self.command(APP, What::Subscribe(Subscribe { events, packets: &[] }));
        self.effects.drain(..).collect()
    }

    /// The decision on a command, in words.
    fn command(&mut self, zone: ZoneId, what: What<'_>) -> String {
        let mut bytes = Vec::new();
        let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what };
        assert!(command::write::command(&mut bytes, &command));
        match self.kernel.on_command(zone, &Frame::read(&bytes).unwrap(), 0, &mut self.effects) {
            Decision::Send(_) => {
                self.kernel.on_sent();
                "sent".to_owned()
            }
            Decision::Refuse(refusal) => refusal.to_string(),
            other => format!("{other:?}"),
        }
    }

    fn meter_mod(&mut self, zone: ZoneId, command: u16, meter_id: u32) -> String {
        self.command(zone, What::MeterMod(MeterMod { command, flags: 0, meter_id, bands: &[] }))
    }

    /// A rule of priority 5 through this meter.
    fn metered_rule(&mut self, zone: ZoneId, meter_id: u32) -> String {
        let mut instructions = Vec::new();
        InstructionWriter::new(&mut instructions).goto_table(1).meter(meter_id);
        let rule = FlowMod { priority: 5, instructions: &instructions, ..FlowMod::ADD };
        self.command(zone, What::FlowMod(rule))
    }

    fn state(&self) -> Metering {
        self.kernel.metering(SWITCH).unwrap().clone()
    }
}

#[test]
fn a_switch_whose_meters_would_not_do_goes_without() {
    let check = |body: &[u8], why| {
        let mut node = Node::punting();
        node.switch_up();
        assert_eq!(node.features(body), [SETTLED], "{body:?}");
        assert_eq!(node.state(), Metering::Without(Why::Unfit(why)), "{body:?}");
    };
    let without = |at: usize| {
        let mut features = FEATURES;
        features[at] = 0;
        features
    };
    check(&[], "the switch has no meters");
    check(&FEATURES[..7], "the switch has no meters");
    check(&FEATURES[..12], "the switch has no meters");
    check(&without(1), "the switch has no meters");
    check(&without(12), "the switch has no meters");
    check(&without(7), "the switch's meters cannot drop");
    check(&without(11), "the switch's meters cannot count packets a second");
}

#[test]
fn answers_that_nobody_waits_for_change_nothing() {
    let mut node = Node::with_meter();
    let state = node.state();
    assert!(node.features(&FEATURES).is_empty());
    assert!(node.features(&[]).is_empty());
    assert!(node.checked(&FEATURES).is_empty());
    for ticket in [ADD, MeterStep::AskFeatures.ticket()] {
        assert!(node.receipt(ticket, Outcome::Failed, OUT_OF_METERS).is_empty());
    }
    assert_eq!(node.state(), state);
    node.switch_down();
    assert!(node.receipt(RULE_TICKET, Outcome::Unknown, NO_ERROR).is_empty());
    assert!(!node.kernel.on_meter_answer(&[0; 7], &mut Vec::new()));
}

#[test]
fn the_rule_is_there_first_and_gets_its_meter_once_the_switch_has_it() {
    let mut node = Node::punting();
    assert_eq!(node.switch_up(), [ASK, PUNT]);
    assert_eq!(node.kernel.punt_meter(SWITCH), None);
    assert_eq!(node.features(&FEATURES), [make(meter(HIGHEST))]);
    assert_eq!(node.kernel.punt_meter(SWITCH), None);
    assert_eq!(node.receipt(ADD, Outcome::Programmed, NO_ERROR), [PUNT]);
    assert_eq!(node.kernel.punt_meter(SWITCH), Some(HIGHEST));
    assert_eq!(node.state(), Metering::Made(meter(HIGHEST)), "not before the switch says so");
    assert_eq!(node.receipt(RULE_TICKET, Outcome::Programmed, NO_ERROR), [SETTLED]);
    assert_eq!(node.state(), on(0));
}

#[test]
fn only_what_the_switch_can_do_is_asked_of_it() {
    let check = |capabilities: u8, flags| {
        let mut features = FEATURES;
        features[11] = capabilities;
        let mut node = Node::punting();
        node.switch_up();
        assert_eq!(node.features(&features), [make(MeterWanted { flags, ..meter(HIGHEST) })]);
    };
    check(0b0010, 0b0010);
    check(0b0111, 0b0110);
    check(0b1011, 0b1010);
}

#[test]
fn a_meters_number_is_one_that_a_rule_can_name() {
    let mut node = Node::punting();
    node.switch_up();
    let mut features = FEATURES;
    features[..4].fill(0xff);
    assert_eq!(node.features(&features), [make(meter(0xffff_0000))]);
}

#[test]
fn a_meter_of_an_earlier_session_is_modified() {
    let mut node = Node::punting();
    node.switch_up();
    node.features(&FEATURES);
    let there = MeterWanted { is_there: true, ..meter(HIGHEST) };
    assert_eq!(node.receipt(ADD, Outcome::Failed, METER_EXISTS), [make(there)]);
    assert_eq!(node.receipt(ADD, Outcome::Programmed, NO_ERROR), [PUNT]);
    assert_eq!(node.kernel.punt_meter(SWITCH), Some(HIGHEST));
    let mut node = Node::punting();
    node.switch_up();
    node.features(&FEATURES);
    node.receipt(ADD, Outcome::Failed, METER_EXISTS);
    assert_eq!(node.receipt(ADD, Outcome::Failed, METER_EXISTS), [SETTLED], "it is tried once");
}

#[test]
fn a_switch_that_refuses_the_meter_keeps_the_rule_without_and_is_not_asked_again() {
    let check = |outcome, why: Why| {
        let mut node = Node::punting();
        node.switch_up();
        node.features(&FEATURES);
        assert_eq!(node.receipt(ADD, outcome, OUT_OF_METERS), [SETTLED]);
        assert_eq!((node.state(), node.kernel.punt_meter(SWITCH)), (Metering::Without(why), None));
        assert_eq!(node.meter_mod(APP, 0, HIGHEST), "sent", "it is free");
    };
    check(Outcome::Failed, Why::Failed("it says so".into()));
    check(Outcome::Unknown, Why::NoAnswer("it says so".into()));
    let mut node = Node::punting();
    node.switch_up();
    let asked = MeterStep::AskFeatures.ticket();
    assert_eq!(node.receipt(asked, Outcome::Failed, ErrorCode { kind: 1, code: 2 }), [SETTLED]);
    assert_eq!(node.state(), Metering::Without(Why::Failed("it says so".into())));
}

#[test]
fn a_switch_that_refuses_the_rule_with_the_meter_gets_it_without() {
    for outcome in [Outcome::Failed, Outcome::Unknown] {
        let mut node = Node::punting();
        node.switch_up();
        node.features(&FEATURES);
        node.receipt(ADD, Outcome::Programmed, NO_ERROR);
        assert_eq!(node.receipt(RULE_TICKET, outcome, NO_ERROR), [SETTLED, PUNT]);
        assert_eq!(node.kernel.punt_meter(SWITCH), None);
    }
}

#[test]
fn what_cannot_be_sent_leaves_the_rule_as_it_is() {
    let mut node = Node::punting();
    node.switch_up();
    node.kernel.on_meter_not_sent(SWITCH, "1.0 has none", &mut node.effects);
    assert_eq!(node.effects, [SETTLED]);
    assert_eq!(node.state(), Metering::Without(Why::NotAsked("1.0 has none".into())));
    let mut node = Node::with_meter();
    node.kernel.on_meter_not_sent(SWITCH, "too many wait", &mut node.effects);
    assert_eq!(node.effects, [SETTLED, PUNT]);
}

#[test]
fn who_wants_packets_later_gets_the_rule_with_the_meter() {
    let mut node = Node::new();
    assert_eq!(node.switch_up(), [ASK]);
    node.features(&FEATURES);
    assert!(node.receipt(ADD, Outcome::Programmed, NO_ERROR).is_empty());
    assert!(node.subscribe().contains(&PUNT));
    assert_eq!(node.kernel.punt_meter(SWITCH), Some(HIGHEST));
}

#[test]
fn every_session_begins_anew_with_the_same_meter() {
    let mut node = Node::with_meter();
    node.switch_down();
    assert_eq!(node.kernel.metering(SWITCH), None);
    assert_eq!(node.switch_up(), [ASK, PUNT]);
    assert_eq!(node.kernel.punt_meter(SWITCH), None);
    assert_eq!(node.features(&FEATURES), [make(meter(HIGHEST))]);
    // A second session that replaced the first without a message.
    node.receipt(ADD, Outcome::Programmed, NO_ERROR);
    node.switch_up();
    assert_eq!(node.features(&FEATURES), [make(meter(HIGHEST))]);
}

#[test]
fn without_the_operators_wish_nothing_is_asked() {
    let mut node = Node::punting();
    node.kernel.meter_punts(None);
    assert_eq!(node.switch_up(), [PUNT]);
    assert_eq!((node.state(), node.kernel.punt_meter(SWITCH)), (Metering::Off, None));
}

#[test]
fn a_rule_that_went_with_its_meter_comes_back_without() {
    let mut node = Node::with_meter();
    assert!(node.removed(APP).is_empty());
    assert_eq!(node.removed(ZoneId::KERNEL), [CHECK]);
    assert!(node.removed(ZoneId::KERNEL).is_empty(), "it has been asked");
    assert_eq!(node.receipt(CHECK_TICKET, Outcome::Failed, UNKNOWN_METER), [SETTLED, PUNT]);
    assert_eq!(node.state(), Metering::Without(Why::Deleted));
    assert!(node.removed(ZoneId::KERNEL).is_empty(), "who deletes again gets no second answer");
}

#[test]
fn a_meter_that_went_without_a_word_is_missed() {
    for is_told_by_an_error in [true, false] {
        let mut node = Node::with_meter();
        assert_eq!(node.tick(10_000), [CHECK]);
        assert!(node.tick(19_999).is_empty());
        assert!(node.checked(&[0; 24]).is_empty());
        // The result is unknown.
        assert!(node.receipt(CHECK_TICKET, Outcome::Unknown, NO_ERROR).is_empty());
        assert_eq!(node.tick(20_000), [CHECK]);
        let missed = if is_told_by_an_error {
            node.receipt(CHECK_TICKET, Outcome::Failed, UNKNOWN_METER)
        } else {
            node.checked(&[])
        };
        assert_eq!(missed, [SETTLED, PUNT]);
        assert_eq!(node.state(), Metering::Without(Why::Deleted));
        assert!(node.tick(30_000).is_empty());
    }
}

#[test]
fn what_the_meter_dropped_is_known_if_the_switch_counts() {
    let mut node = Node::with_meter();
    let check = |node: &mut Node, count: &[u8], dropped| {
        assert!(node.checked(&[&[0; 40][..], count].concat()).is_empty(), "it is no news");
        assert_eq!(node.state(), on(dropped), "{count:?}");
    };
    check(&mut node, &[], 0);
    check(&mut node, &[0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 9], 258);
    check(&mut node, &[0xff; 16], 258);
    check(&mut node, &[0, 0, 0], 258);
}

#[test]
fn a_rule_that_was_deleted_by_one_who_may_stays_deleted() {
    let mut node = Node::with_meter();
    node.removed(ZoneId::KERNEL);
    assert_eq!(node.checked(&[0; 24]), [SETTLED]);
    assert_eq!(node.state(), Metering::Without(Why::RuleDeleted));
}

#[test]
fn an_app_that_has_the_highest_number_keeps_it() {
    let mut node = Node::punting();
    node.switch_up();
    assert_eq!(node.meter_mod(APP, 0, HIGHEST), "sent");
    assert_eq!(node.features(&FEATURES), [make(meter(HIGHEST - 1))]);
    let mut node = Node::punting();
    node.switch_up();
    node.meter_mod(APP, 0, 1);
    let mut one = FEATURES;
    one[..4].copy_from_slice(&[0, 0, 0, 1]);
    assert_eq!(node.features(&one), [SETTLED]);
    assert_eq!(node.state(), Metering::Without(Why::AllTaken));
}

#[test]
fn nobody_claims_changes_or_deletes_the_kernels_meter() {
    let mut node = Node::with_meter();
    let others_too = Grant::everywhere(&kernel::Capability::GRANT_ALL).with(Capability::RuleWriteOthers);
    assert!(node.kernel.attach(OTHER, "other", others_too, 0));
    let own =
        "rule.write: meter 65536 is the kernel's own, and limits the packet-ins of the switch for all apps";
    for zone in [APP, OTHER] {
        for command in [0, 1, 2] {
            assert_eq!(node.meter_mod(zone, command, HIGHEST), own, "{zone} {command}");
        }
        let all = "rule.write: those of others would be deleted as well";
        assert_eq!(node.meter_mod(zone, 2, 0xffff_ffff), all, "{zone}");
        assert_eq!(node.meter_mod(zone, 0, HIGHEST - 1 - u32::from(zone.0)), "sent");
    }
    node.switch_down();
    node.switch_up();
    assert_eq!(node.meter_mod(APP, 0, HIGHEST), "sent", "a switch that has none yet");
}

#[test]
fn only_who_may_change_others_rules_refers_to_the_kernels_meter() {
    let mut node = Node::with_meter();
    let own =
        "rule.write: meter 65536 is the kernel's own, and limits the packet-ins of the switch for all apps";
    assert_eq!(node.metered_rule(APP, HIGHEST), own);
    assert_eq!(node.metered_rule(APP, 5), "rule.write: meter 5 is not the app's own");
    let bounds = Bounds { priorities: 0..=9, ..Bounds::default() };
    assert!(node.kernel.attach(
        OTHER,
        "other",
        Grant::everywhere(&kernel::Capability::GRANT_ALL).with_rules(bounds),
        0
    ));
    assert_eq!(node.metered_rule(OTHER, HIGHEST), own);
    let others_too = Grant::everywhere(&kernel::Capability::GRANT_ALL).with(Capability::RuleWriteOthers);
    assert!(node.kernel.attach(OTHER, "other", others_too, 0));
    assert_eq!(node.metered_rule(OTHER, HIGHEST), "sent");
}

/// The table-miss rule of table 1.
const LATER: Effect = Effect::PuntFrom { datapath: SWITCH, table_id: 1 };

/// The app passes all packets of table 0 on to table 1.
fn pass_on(node: &mut Node) {
    let mut instructions = Vec::new();
    InstructionWriter::new(&mut instructions).goto_table(1);
    let rule = FlowMod { priority: 5, instructions: &instructions, ..FlowMod::ADD };
    assert_eq!(node.command(APP, What::FlowMod(rule)), "sent");
}

#[test]
fn the_table_miss_rule_of_a_later_table_has_the_meter_too() {
    let mut node = Node::with_meter();
    pass_on(&mut node);
    assert!(node.effects.contains(&LATER), "{:?}", node.effects);
    assert_eq!(node.kernel.later_punt_meter(SWITCH, 1), Some(HIGHEST));
    node.effects.clear();
    assert!(node.receipt(later_rule_ticket(1), Outcome::Programmed, NO_ERROR).is_empty());
    // If the meter is gone, both rules are added without it.
    assert_eq!(node.checked(&[]), [SETTLED, PUNT, LATER]);
    assert_eq!(node.kernel.later_punt_meter(SWITCH, 1), None);
}

#[test]
fn a_later_table_without_meters_gets_the_rule_without_and_table_0_keeps_its_meter() {
    let mut node = Node::with_meter();
    pass_on(&mut node);
    node.effects.clear();
    assert_eq!(node.receipt(later_rule_ticket(1), Outcome::Failed, UNKNOWN_METER), [LATER]);
    assert_eq!(node.kernel.later_punt_meter(SWITCH, 1), None);
    assert_eq!((node.kernel.punt_meter(SWITCH), node.state()), (Some(HIGHEST), on(0)));
    assert!(node.receipt(later_rule_ticket(1), Outcome::Failed, UNKNOWN_METER).is_empty(), "once");
}

#[test]
fn a_rule_that_is_there_before_the_meter_gets_it_when_the_switch_has_it() {
    let mut node = Node::punting();
    node.switch_up();
    pass_on(&mut node);
    assert_eq!(node.kernel.later_punt_meter(SWITCH, 1), None);
    node.effects.clear();
    node.features(&FEATURES);
    assert_eq!(node.receipt(ADD, Outcome::Programmed, NO_ERROR), [PUNT, LATER]);
    assert_eq!(node.kernel.later_punt_meter(SWITCH, 1), Some(HIGHEST));
}
