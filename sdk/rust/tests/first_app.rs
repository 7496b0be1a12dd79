//! The app of docs/guide/first-app-rust.md, with its test. A check in xtask compares the page with this file.
//!
//! In: nothing. Out: whether the app of the guide compiles and does what the guide says.

#![allow(clippy::unwrap_used, missing_docs, reason = "it is what a beginner writes")]

use burnet_sdk::{App, Commands, DatapathId, Field, Interests, Level, Outcome, Receipt, Settings, SwitchUp};
use serde::Deserialize;
use std::net::Ipv4Addr;

/// The settings of the app, from `[app.block-host.settings]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockSettings {
    address: Ipv4Addr,
}

pub struct BlockHost {
    address: Ipv4Addr,
}

impl App for BlockHost {
    fn new(settings: &Settings) -> Result<Self, String> {
        let BlockSettings { address } = settings.read()?;
        Ok(BlockHost { address })
    }

    fn interests(&self) -> Interests {
        Interests::none().switches()
    }

    fn on_switch_up(&mut self, up: &SwitchUp, out: &mut Commands) {
        // A rule without actions drops the packet.
        out.rule(up.datapath)
            .priority(20_000)
            .matching(|m| {
                m.field(Field::EthType, 0x0800_u16).field(Field::Ipv4Src, self.address);
            })
            .send_with_receipt();
    }

    fn on_receipt(&mut self, datapath: DatapathId, receipt: &Receipt, out: &mut Commands) {
        if receipt.outcome != Outcome::Programmed {
            out.log(Level::Error, &format!("{datapath} does not block {}: {}", self.address, receipt.reason));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::testing::Trial;

    #[test]
    fn the_rule_is_added_to_each_switch() {
        let mut app = Trial::<BlockHost>::start(r#"{"address": "10.0.0.4"}"#).unwrap();
        let rule = "add-rule of:0000000000000001 priority=20000 match=[eth_type=0x800,ipv4_src=0xa000004] actions=[]";
        assert_eq!(app.switch_up(1, &[1, 2]), [rule]);
    }

    #[test]
    fn a_setting_that_is_no_address_is_refused() {
        assert!(Trial::<BlockHost>::start(r#"{"address": "ten"}"#).is_err());
    }
}
