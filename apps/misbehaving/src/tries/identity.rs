//! Rules that are written differently from another app's rule, but have the same identity for the switch. An app that
//! may add such a rule has replaced or deleted the other one.

use super::Try;
use super::bytes::{NXM_0, NXM_1, field, masked};
use burnet_sdk::{Field, FlowBuilder, MatchWriter, PortNo};

pub(super) const TRIES: &[Try] = &[
    Try::once("alias-of-field", |_, datapath, out| {
        flood_instead(out.rule(datapath).matching(ip).matching_bytes(&aliases()))
    }),
    Try::once("zero-register", |_, datapath, out| {
        flood_instead(out.rule(datapath).matching(blocked).matching_bytes(&no_register()))
    }),
    Try::once("ones-mask", |_, datapath, out| {
        flood_instead(out.rule(datapath).matching(|m| {
            ip(m);
            m.masked(Field::Ipv4Src, SOURCE, u32::MAX).masked(Field::Ipv4Dst, DESTINATION, u32::MAX);
        }))
    }),
    Try::once("zero-mask", |_, datapath, out| {
        flood_instead(out.rule(datapath).matching(|m| {
            m.masked(Field::EthDst, 0u64, 0u64);
            blocked(m);
        }))
    }),
    Try::once("other-order", |_, datapath, out| {
        flood_instead(out.rule(datapath).matching(|m| {
            ip(m);
            m.field(Field::Ipv4Dst, DESTINATION).field(Field::Ipv4Src, SOURCE);
        }))
    }),
    Try::once("delete-by-alias", |_, datapath, out| {
        out.rule(datapath)
            .priority(PRIORITY)
            .matching(ip)
            .matching_bytes(&aliases())
            .delete()
            .send_with_receipt();
        out.rule(datapath)
            .priority(PRIORITY)
            .matching(blocked)
            .matching_bytes(&no_register())
            .delete()
            .send_with_receipt();
        2
    }),
    Try::once("modify-by-alias", |_, datapath, out| {
        flood_instead(out.rule(datapath).matching(ip).matching_bytes(&aliases()).modify())
    }),
    Try::once("miss-rule", |_, datapath, out| {
        drop_all(out.rule(datapath).priority(0))
            + drop_all(out.rule(datapath).priority(0).matching(|m| {
                m.masked(Field::EthSrc, 0u64, 0u64);
            }))
    }),
    Try::once("miss-rule-by-register", |_, datapath, out| {
        drop_all(out.rule(datapath).priority(0).matching_bytes(&no_register()))
    }),
    Try::once("table-255", |_, datapath, out| {
        out.rule(datapath).table(255).priority(PRIORITY).matching(blocked).delete().send_with_receipt();
        flood_instead(out.rule(datapath).table(255).matching(blocked).modify());
        flood_instead(out.rule(datapath).table(255).matching(blocked)) + 2
    }),
    Try::once("exact-priority", |_, datapath, out| {
        let rule = out.rule(datapath).priority(50).matching(exact);
        rule.apply(|a| {
            a.output(crate::NOWHERE, 0);
        })
        .send_with_receipt();
        1
    }),
    Try::once("untagged-priority", |_, datapath, out| {
        for port in 1..=PORTS {
            let rule = out.rule(datapath).priority(50).matching(|m| blocked_echo(m, PortNo(port)));
            rule.apply(|a| {
                a.output(PortNo::FLOOD, 0);
            })
            .send_with_receipt();
        }
        PORTS
    }),
    Try::once("ignored-field", |_, datapath, out| {
        // 1.0 ignores a port if the match names no protocol.
        flood_instead(out.rule(datapath).matching(|m| {
            blocked(m);
            m.field(Field::TcpDst, 80u16);
        }))
    }),
];

/// The firewall's rule of the trial: its priority, and the hosts that it keeps apart.
pub(super) const PRIORITY: u16 = 60_000;
pub(super) const SOURCE: u32 = 0x0a00_0001;
pub(super) const DESTINATION: u32 = 0x0a00_0004;

fn ip(m: &mut MatchWriter<'_>) {
    m.field(Field::EthType, 0x0800u16);
}

/// The match that the firewall blocks.
pub(super) fn blocked(m: &mut MatchWriter<'_>) {
    ip(m);
    m.field(Field::Ipv4Src, SOURCE).field(Field::Ipv4Dst, DESTINATION);
}

/// NXM_OF_IP_SRC and NXM_OF_IP_DST.
fn aliases() -> Vec<u8> {
    [field(NXM_0, 7, &SOURCE.to_be_bytes()), field(NXM_0, 8, &DESTINATION.to_be_bytes())].concat()
}

/// A register with a mask of all zeros.
fn no_register() -> Vec<u8> {
    masked(NXM_1, 0, &[0; 4], &[0; 4])
}

/// A match with every field that 1.0 has.
fn exact(m: &mut MatchWriter<'_>) {
    m.field(Field::InPort, PortNo(1))
        .field(Field::EthDst, 0x0200_0000_0001u64)
        .field(Field::EthSrc, 0x0200_0000_0002u64);
    m.field(Field::EthType, 0x0800u16)
        .field(Field::VlanVid, 0x1007u16)
        .field(Field::VlanPcp, 3u8)
        .field(Field::IpDscp, 0u8);
    m.field(Field::IpProto, 6u8).field(Field::Ipv4Src, 0x0a09_0001u32).field(Field::Ipv4Dst, 0x0a09_0002u32);
    m.field(Field::TcpSrc, 1u16).field(Field::TcpDst, 2u16);
}

/// The ports of a switch of the trial.
const PORTS: u32 = 3;

/// A match with every field that 1.0 has of untagged packets: the pings that the firewall blocks.
fn blocked_echo(m: &mut MatchWriter<'_>, port: PortNo) {
    m.field(Field::InPort, port).field(Field::EthDst, 4u64).field(Field::EthSrc, 1u64);
    m.field(Field::EthType, 0x0800u16).field(Field::VlanVid, 0u16).field(Field::IpDscp, 0u8);
    m.field(Field::IpProto, 1u8).field(Field::Ipv4Src, SOURCE).field(Field::Ipv4Dst, DESTINATION);
    m.field(Field::Icmpv4Type, 8u8).field(Field::Icmpv4Code, 0u8);
}

/// Forwards the packets that the firewall blocks.
fn flood_instead(rule: FlowBuilder<'_>) -> u32 {
    let rule = rule.priority(PRIORITY).apply(|a| {
        a.output(PortNo::FLOOD, 0);
    });
    rule.send_with_receipt();
    1
}

fn drop_all(rule: FlowBuilder<'_>) -> u32 {
    rule.send_with_receipt();
    1
}
