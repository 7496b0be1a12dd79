//! Whatever happens in whatever order, the supervisor keeps its promises. No process is started.
//!
//! `World` records each broken promise. At most one live generation of each child runs. No zone runs without a kernel
//! process. No package starts without verification, or while quarantined. No app is trusted after a demotion. There are
//! few commands at once, and none after the end.

use crate::world::{World, app};
use monitor::protocol::FaultCause;
use monitor::supervisor::{ChildId, ProcessEnd, SupervisorEvent};
use monitor::{AppSpec, AppState, Validity, Verb, ZoneKind};
use proptest::prelude::*;

const APPS: [(&str, ZoneKind); 3] =
    [("hub", ZoneKind::Process), ("switch", ZoneKind::Trusted), ("paths", ZoneKind::Process)];

#[derive(Debug, Clone)]
enum Step {
    AppEnds(usize, ProcessEnd),
    KernelEnds(ProcessEnd),
    Hears(SupervisorEvent),
    Obey(bool),
    Wait(u64),
    Silence(u64),
}

fn end() -> impl Strategy<Value = ProcessEnd> {
    prop_oneof![
        any::<i32>().prop_map(ProcessEnd::Code),
        (0..40i32, any::<bool>())
            .prop_map(|(number, core_dumped)| ProcessEnd::Signal { number, core_dumped }),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![9 => (0..APPS.len()).prop_map(|index| APPS[index].0.to_owned()), 1 => Just("nobody".to_owned())]
}

fn event() -> impl Strategy<Value = SupervisorEvent> {
    let verb = prop_oneof![Just(Verb::Restart), Just(Verb::Stop), Just(Verb::Start), Just(Verb::Quarantine)];
    let who = prop_oneof![
        (0..5u64).prop_map(|generation| ChildId::Kernel { generation }),
        (0..5u16, 0..5u64).prop_map(|(zone, generation)| ChildId::Zone { zone, generation }),
    ];
    let generation = 0..6u64;
    prop_oneof![
        6 => Just(SupervisorEvent::KernelReady),
        4 => Just(SupervisorEvent::KernelAlive),
        1 => Just(SupervisorEvent::Begin),
        1 => Just(SupervisorEvent::KernelFault { reason: "garbage".into() }),
        1 => (0..4u8).prop_map(|exit_code| SupervisorEvent::KernelFatal { exit_code, message: "no".into() }),
        6 => (name(), generation).prop_map(|(app, generation)| {
            SupervisorEvent::ZoneFault { app, generation, cause: FaultCause::SentGarbage, reason: "garbage".into() }
        }),
        3 => name().prop_map(|app| SupervisorEvent::TrustedFault { app, reason: "panic".into() }),
        6 => (name(), verb).prop_map(|(app, verb)| SupervisorEvent::Operator { app, verb, why: None }),
        1 => Just(SupervisorEvent::LeaveSafeMode),
        8 => (1..4u16, 0..12u64, says()).prop_map(|(zone, check, says)| SupervisorEvent::Verified { zone, check, validity: says }),
        1 => name().prop_map(|app| SupervisorEvent::NotFound { app, reason: "no".into() }),
        1 => prop::collection::vec(0..5u16, 0..3).prop_map(|zones| SupervisorEvent::KernelCalled { zones }),
        2 => (who, 1..9u32).prop_map(|(who, pid)| SupervisorEvent::Started { who, pid }),
        1 => Just(SupervisorEvent::ShutdownAsked),
    ]
}

fn says() -> impl Strategy<Value = Validity> {
    prop_oneof![
        4 => Just(Validity::Good),
        1 => Just(Validity::NotTrusted("no word".into())),
        1 => Just(Validity::Refused("altered".into())),
        1 => Just(Validity::Unknown("no disk".into())),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..APPS.len(), end()).prop_map(|(index, end)| Step::AppEnds(index, end)),
        2 => end().prop_map(Step::KernelEnds),
        12 => event().prop_map(Step::Hears),
        2 => any::<bool>().prop_map(Step::Obey),
        4 => (0..5_000u64).prop_map(Step::Wait),
        1 => (0..5_000u64).prop_map(Step::Silence),
    ]
}

fn take(world: &mut World, step: Step) {
    match step {
        Step::AppEnds(index, end) => world.app_ends(APPS[index].0, end),
        Step::KernelEnds(end) => world.kernel_ends(end),
        // A kernel says that it is ready only when there is one.
        Step::Hears(SupervisorEvent::KernelReady)
            if !world.alive.iter().any(|alive| alive.starts_with("kernel")) => {}
        Step::Hears(event) => world.hear(event),
        Step::Obey(obedient) => world.obedient = obedient,
        Step::Wait(ms) => world.wait_ms(ms),
        Step::Silence(ms) => world.silence_ms(ms),
    }
}

/// From here on nothing goes wrong any more.
fn let_it_settle(world: &mut World) {
    world.vouches = true;
    for (zone, (check, _)) in world.asked.clone() {
        world.hear(SupervisorEvent::Verified { zone, check, validity: Validity::Good });
    }
    for _ in 0..240 {
        if world.exit.is_some() {
            return;
        }
        world.hear(SupervisorEvent::KernelReady);
        world.wait_ms(500);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_promise_holds_and_every_app_comes_to_rest(steps in prop::collection::vec(step(), 0..60)) {
        let packaged = |name: &str| name != "hub";
        let spec = |(name, kind): &(&str, ZoneKind)| AppSpec { packaged: packaged(name), ..app(name, *kind) };
        let mut world = World::new(APPS.iter().map(spec).collect());
        for step in steps {
            take(&mut world, step);
        }
        let_it_settle(&mut world);
        prop_assert_eq!(&world.broken, &Vec::<String>::new());
        if world.exit.is_some() {
            prop_assert_eq!(world.alive.len(), 0);
            return Ok(());
        }
        for status in world.supervisor.statuses(0) {
            let rests = matches!(status.state, AppState::Running | AppState::Quarantined | AppState::Stopped | AppState::Held | AppState::Refused);
            prop_assert!(rests, "{:?}", status);
            let process = world.alive.iter().any(|alive| alive.starts_with(&format!("zone {}.", status.zone)));
            let expected = status.state == AppState::Running && status.kind == ZoneKind::Process;
            prop_assert_eq!(process, expected, "{:?}", status);
        }
    }
}
