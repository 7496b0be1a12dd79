//! The app `bystander`: installs a group and a meter in each switch, and a rule that refers to both. It shows whether
//! other apps can remove them.
//!
//! ```text
//!   switch up ──> group ──receipt──> meter ──receipt──> rule for frames that nobody sends
//! ```
//!
//! Only for `burnet attack`. A switch that removes a group or a meter also removes the rules that refer to it (1.3.5,
//! 6.5 and 6.6). The app never installs them again.

use burnet_sdk::{
    App, Commands, DatapathId, Field, GroupMod, Interests, MeterMod, Outcome, Receipt, Settings, SwitchUp,
    What,
};
use misbehaving::tries::FOREIGN;
use std::collections::BTreeMap;

/// The EtherType of the frames: one for local experiments, which the attacker does not use.
const ETHERTYPE: u16 = 0x88b6;
/// Their destination. It is no host, so no rule of the learning switch overlaps with this rule. Otherwise the rule
/// would be deleted.
const NOBODY: u64 = 0x0200_0000_00cc;
const PRIORITY: u16 = 30_000;

/// The next step at each switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Meter,
    Rule,
}

/// The bystander. It takes no settings.
pub struct Bystander {
    next: BTreeMap<DatapathId, Next>,
}

impl App for Bystander {
    fn new(_: &Settings) -> Result<Self, String> {
        Ok(Bystander { next: BTreeMap::new() })
    }

    fn interests(&self) -> Interests {
        Interests::none().switches()
    }

    fn on_switch_up(&mut self, up: &SwitchUp, out: &mut Commands) {
        self.next.insert(up.datapath, Next::Meter);
        // A group of type OFPGT_ALL with an empty bucket drops packets.
        let group = GroupMod { command: 0, group_type: 0, group_id: FOREIGN, buckets: &[] };
        out.command(up.datapath, What::GroupMod(group));
    }

    fn on_receipt(&mut self, datapath: DatapathId, receipt: &Receipt, out: &mut Commands) {
        if receipt.outcome != Outcome::Programmed {
            return;
        }
        match self.next.remove(&datapath) {
            Some(Next::Meter) => {
                self.next.insert(datapath, Next::Rule);
                // OFPMF_KBPS, and one band that drops above 1 kbit/s.
                let band = [0, 1, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
                let meter = MeterMod { command: 0, flags: 1, meter_id: FOREIGN, bands: &band };
                out.command(datapath, What::MeterMod(meter));
            }
            Some(Next::Rule) => refer_to_both(datapath, out),
            None => {}
        }
    }
}

fn refer_to_both(datapath: DatapathId, out: &mut Commands) {
    let rule = out.rule(datapath).priority(PRIORITY).matching(|m| {
        m.field(Field::EthDst, NOBODY).field(Field::EthType, ETHERTYPE);
    });
    rule.instructions(|i| {
        i.meter(FOREIGN).apply_actions(|a| {
            a.group(FOREIGN);
        });
    })
    .send_with_receipt();
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::testing::Trial;

    #[test]
    fn it_begins_with_the_group() {
        let mut bystander = Trial::<Bystander>::start("{}").unwrap();
        let commands = bystander.switch_up(7, &[1]);
        assert!(commands.len() == 1 && commands[0].contains("group"), "{commands:?}");
    }
}
