//! Attacks by commands to switches, queries to services and writes to the store, without the capability for them.
//!
//! It never sends a packet that a host would answer.

use super::{Attack, NOWHERE};
use burnet_sdk::store::VALUE_BYTES_MAX;
use burnet_sdk::{Ask, Commands, DatapathId, Field, MeterMod, What};

/// The datapath id of a switch that does not exist.
const NO_SUCH_SWITCH: DatapathId = DatapathId(0xbad);

/// The number of rules in a flood of rules, and of packets in a flood of packets. It is several times what the table
/// of a real switch holds.
const FLOOD: u16 = 20_000;

/// The first Ethernet address in the flood's rules. It is locally administered, and no host of a trial has it.
const FIRST_ADDRESS: u64 = 0x0200_0000_0000;

/// The number of queries in a flood of queries, and the length of each. Together they are many times what may wait
/// for an app.
const ASKS: u32 = 400;
const ASK_BYTES: usize = 48 << 10;

/// The number of values in a flood of the store: about ten MiB in all, and more than an app may have open at once.
const VALUES: u32 = 320;

/// Keys that the app does not own: another app's, all keys, and one whose name is similar to its own.
const OTHERS_KEYS: [&str; 4] = ["firewall/rules", "learning-switch/", "m", "misbehaving-too/key"];

/// The number of long rules, and their length: several times what may wait for a switch. They are shorter than the
/// longest message, so that the switch can still report them.
const LONG_RULES: u16 = 600;
const LONG_RULE_OUTPUTS: usize = 1_000;

/// OFPM_SLOWPATH and OFPM_CONTROLLER (1.3.5, 7.3.4.3): the meters of the packets that a switch sends to the
/// controller.
const METERS_OF_ALL: [u32; 2] = [0xffff_fffd, 0xffff_fffe];

/// The upper bits of a cookie are the number of its owner. The first zones are the first apps in the configuration.
const OWNER_SHIFT: u32 = 48;

/// Carries out an attack. `turn` is different for each repetition.
pub(crate) fn attack(attack: Attack, turn: u32, switches: &[DatapathId], out: &mut Commands) {
    match attack {
        Attack::ForgedDatapath => (0..100).for_each(|_| {
            out.rule(NO_SUCH_SWITCH).send_with_receipt();
        }),
        // The kernel refuses the commands one by one. It has refused the subscription before.
        Attack::Uninvited => uninvited(switches, out),
        Attack::AskFlood => (0..ASKS).for_each(|_| {
            let ask = Ask::query("learning-switch", &[0x55; ASK_BYTES]);
            out.command(DatapathId(0), What::Query(ask));
        }),
        Attack::StoreFlood => (0..VALUES).for_each(|number| {
            out.store_put(&format!("misbehaving/{number}"), &[0x55; VALUE_BYTES_MAX]);
        }),
        Attack::StoreOthers => OTHERS_KEYS.iter().for_each(|key| {
            out.store_get(key);
            out.store_put(key, b"mine");
            out.store_delete(key);
            out.store_list(key, "");
            out.store_list("", key);
        }),
        _ => switches.iter().for_each(|datapath| on_switch(attack, turn, *datapath, out)),
    }
}

fn on_switch(attack: Attack, turn: u32, datapath: DatapathId, out: &mut Commands) {
    match attack {
        Attack::ForgedCookie => (1..8).for_each(|owner| {
            let cookie = owner << OWNER_SHIFT;
            out.rule(datapath)
                .cookie(cookie)
                .priority(1)
                .matching(|m| {
                    m.field(Field::EthDst, FIRST_ADDRESS);
                })
                .apply(|a| {
                    a.output(NOWHERE, 0);
                })
                .send_with_receipt();
        }),
        // The match and priority of the firewall's rule, in order to forward what it blocks.
        Attack::ChangeOthers => {
            let rule = out.rule(datapath).priority(60_000).matching(blocked);
            rule.apply(|a| {
                a.output(burnet_sdk::PortNo::FLOOD, 0);
            })
            .modify()
            .send_with_receipt();
        }
        // The same by an add, which replaces the existing rule in a switch; then once more with the fields in another
        // order.
        Attack::ReplaceOthers => {
            for matching in [blocked as fn(&mut burnet_sdk::MatchWriter<'_>), blocked_in_another_order] {
                let rule = out.rule(datapath).priority(60_000).matching(matching);
                rule.apply(|a| {
                    a.output(burnet_sdk::PortNo::FLOOD, 0);
                })
                .send_with_receipt();
            }
        }
        Attack::DeleteOthers => {
            out.rule(datapath).priority(60_000).matching(blocked).delete().send_with_receipt();
        }
        Attack::ClearTables => {
            out.rule(datapath).delete_within().send_with_receipt();
        }
        // Commands for which there was no room on the way to the switch are followed by others at the next turn,
        // until its table is full.
        Attack::TableFlood => {
            let first = FIRST_ADDRESS + u64::from(turn) * u64::from(FLOOD);
            (first..first + u64::from(FLOOD)).for_each(|address| flood(address, datapath, out));
        }
        Attack::RuleFlood => (0..FLOOD).for_each(|_| flood(FIRST_ADDRESS, datapath, out)),
        Attack::PacketOutFlood => (0..FLOOD).for_each(|_| {
            out.packet_out(datapath).frame(&[0x02; 60]).output(NOWHERE).send();
        }),
        Attack::SilenceAll => silence(datapath, out),
        Attack::OutputFlood => (0..LONG_RULES).for_each(|_| long_rule(datapath, out)),
        Attack::Malformed => malformed(datapath, out),
        Attack::RewriteEscape => escape(datapath, out),
        _ => {}
    }
}

/// Writes the match that the trial's firewall blocks.
fn blocked(m: &mut burnet_sdk::MatchWriter<'_>) {
    m.field(Field::EthType, 0x0800u16)
        .field(Field::Ipv4Src, 0x0a00_0001u32)
        .field(Field::Ipv4Dst, 0x0a00_0004u32);
}

/// The same packets, by a match that is written differently.
fn blocked_in_another_order(m: &mut burnet_sdk::MatchWriter<'_>) {
    m.field(Field::EthType, 0x0800u16)
        .masked(Field::Ipv4Dst, 0x0a00_0004u32, u32::MAX)
        .masked(Field::EthDst, 0u64, 0u64)
        .field(Field::Ipv4Src, 0x0a00_0001u32);
}

/// Adds many rules. If their matches differ, they fill a table; the same rule repeated fills the way to the switch.
fn flood(address: u64, datapath: DatapathId, out: &mut Commands) {
    let rule = out.rule(datapath).priority(1).matching(|m| {
        m.field(Field::EthDst, u128::from(address));
    });
    rule.apply(|a| {
        a.output(NOWHERE, 0);
    })
    .send_with_receipt();
}

/// Sends one command for each capability.
fn uninvited(switches: &[DatapathId], out: &mut Commands) {
    for datapath in switches {
        out.rule(*datapath).send_with_receipt();
        out.packet_out(*datapath).frame(&[0x02; 60]).output(NOWHERE).send_with_receipt();
        out.request_stats(*datapath, 1, &[]);
    }
    out.publish("host.moved", b"not so");
    out.query("paths", b"all of them");
}

/// Lets a switch send only one packet-in a second, to all apps together.
fn silence(datapath: DatapathId, out: &mut Commands) {
    let drop_beyond_one_a_second = [0, 1, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    for meter_id in METERS_OF_ALL {
        // OFPMF_PKTPS.
        let meter = MeterMod { command: 0, flags: 2, meter_id, bands: &drop_beyond_one_a_second };
        out.command(datapath, What::MeterMod(meter));
    }
}

/// Adds a long rule. Adding it again replaces it, so the tables stay small.
fn long_rule(datapath: DatapathId, out: &mut Commands) {
    let rule = out.rule(datapath).priority(1).matching(|m| {
        m.field(Field::EthDst, FIRST_ADDRESS);
    });
    rule.apply(|a| {
        (0..LONG_RULE_OUTPUTS).for_each(|_| {
            a.output(NOWHERE, 0);
        });
    })
    .send_with_receipt();
}

/// Sends a flow mod whose match and instructions are malformed.
fn malformed(datapath: DatapathId, out: &mut Commands) {
    for bytes in [&[0xff; 3][..], &[0x80, 0, 0, 0xff], &[0; 64]] {
        out.rule(datapath).matching_bytes(bytes).send_with_receipt();
        out.rule(datapath).instruction_bytes(bytes).send_with_receipt();
    }
}

/// Adds a rule within the granted bounds, whose actions send the packet on with another host's address.
fn escape(datapath: DatapathId, out: &mut Commands) {
    let within = |m: &mut burnet_sdk::MatchWriter<'_>| {
        m.field(Field::EthType, 0x0800u16).field(Field::Ipv4Dst, 0x0a09_0001u32);
    };
    let rule = out.rule(datapath).priority(5).matching(within);
    rule.apply(|a| {
        a.set_field(Field::Ipv4Dst, 0x0a00_0001u32).output(NOWHERE, 0);
    })
    .send_with_receipt();
    out.rule(datapath)
        .priority(5)
        .apply(|a| {
            a.output(NOWHERE, 0);
        })
        .send_with_receipt();
}
