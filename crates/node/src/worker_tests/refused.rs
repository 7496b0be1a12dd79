//! Who hears that the kernel refused a command.

use super::*;

#[test]
fn a_command_without_a_receipt_is_refused_aloud_only_if_its_app_asked_for_that() {
    let mut bench = Bench::new();
    let mut app = bench.attach(VICTIM, "app", Grant::nothing());
    let command = Command { datapath: DatapathId(1), ticket: 8, wants_receipt: false, what: What::Barrier };
    let mut bytes = Vec::new();
    assert!(command::command(&mut bytes, &command));
    app.end.producer.push(&[&bytes]).unwrap();
    command::wants_refusal(&mut bytes);
    app.end.producer.push(&[&bytes]).unwrap();
    app.end.producer.publish();
    bench.turn();
    let outcome = |event: &Event<'_>| match event {
        Event::Receipt(_, receipt) => Some((receipt.ticket, receipt.outcome)),
        _ => None,
    };
    assert_eq!(app.hear(outcome), [(8, abi::Outcome::Refused)]);
}
