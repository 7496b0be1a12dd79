//! Rules of its own above, beside or just below another app's rules. No rule is replaced, but none has its effect any
//! more.

use super::Try;
use super::identity::{PRIORITY, blocked};
use burnet_sdk::{Commands, DatapathId, Field, PortNo};

pub(super) const TRIES: &[Try] = &[
    Try::once("shadow-higher", |_, datapath, out| flood(datapath, 65_000, blocked, out)),
    Try::once("shadow-wider", |_, datapath, out| {
        flood(
            datapath,
            65_000,
            |m| {
                m.field(Field::EthType, 0x0800u16);
            },
            out,
        )
    }),
    Try::once("shadow-narrower", |_, datapath, out| {
        flood(
            datapath,
            PRIORITY,
            |m| {
                blocked(m);
                m.field(Field::IpProto, 1u8);
            },
            out,
        )
    }),
    Try::once("shadow-drop", |_, datapath, out| {
        out.rule(datapath).priority(u16::MAX).send_with_receipt();
        1
    }),
    Try::once("shadow-goto", |_, datapath, out| {
        let rule = out.rule(datapath).priority(65_000);
        rule.instructions(|i| {
            i.goto_table(1);
        })
        .send_with_receipt();
        1
    }),
    // Packets that no rule matches yet do not reach the learning switch any more.
    Try::once("undercut", |_, datapath, out| {
        (1..=3).for_each(|priority| {
            out.rule(datapath).priority(priority).send_with_receipt();
        });
        3
    }),
    Try::once("shadow-by-port", |_, datapath, out| {
        (1..=4u32).for_each(|port| {
            let rule = out.rule(datapath).priority(u16::MAX).matching(|m| {
                m.field(Field::InPort, PortNo(port));
            });
            rule.send_with_receipt();
        });
        4
    }),
];

fn flood(
    datapath: DatapathId,
    priority: u16,
    matching: impl FnOnce(&mut burnet_sdk::MatchWriter<'_>),
    out: &mut Commands,
) -> u32 {
    let rule = out.rule(datapath).priority(priority).matching(matching);
    rule.apply(|a| {
        a.output(PortNo::FLOOD, 0);
    })
    .send_with_receipt();
    1
}
