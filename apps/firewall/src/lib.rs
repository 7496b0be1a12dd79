//! The firewall: drops the packets that the operator lists, in every switch.
//!
//! ```text
//!   settings ──> matches;   switch up ──> a rule for each match, of a high priority and without an action, in table 0
//! ```
//!
//! It leaves all other packets to other apps. It receives no packet-ins. Its rules stay in the switches while it is
//! down, so a firewall that crashes still blocks.

use burnet_sdk::AppTable;
use burnet_sdk::flow::Match;
use burnet_sdk::flow::canonical::write_match;
use burnet_sdk::flow::text::parse_match;
use burnet_sdk::{App, Commands, DatapathId, Interests, Level, Outcome, Receipt, Settings, SwitchUp};
use serde::Deserialize;
use std::process::ExitCode;

/// What the operator may set under `[app.firewall.settings]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FirewallSettings {
    /// The matches whose packets are dropped, in the syntax of `ovs-ofctl`.
    block: Vec<String>,
    /// The priority of its rules. Other apps should use lower ones.
    priority: u16,
}

impl Default for FirewallSettings {
    /// Far above what forwarding apps use, but not the highest priority, so that an operator has room above it.
    fn default() -> Self {
        FirewallSettings { block: Vec::new(), priority: 60_000 }
    }
}

/// The most rules of one firewall. With more it refuses to start: flow tables are small, and each switch gets all
/// rules.
pub const RULES_MAX: usize = 1000;

/// The firewall.
pub struct Firewall {
    blocked: Vec<Match>,
    priority: u16,
}

/// The app's table, for the kernel process of a node that has it built in. It is here and not there so that its code is built as the app's is.
pub static TABLE: AppTable = burnet_sdk::table::<Firewall>();

/// Serves a zone until that ends, for a node that has the app built in.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Firewall>()
}

impl App for Firewall {
    fn new(settings: &Settings) -> Result<Self, String> {
        let FirewallSettings { block, priority } = settings.read()?;
        if block.len() > RULES_MAX {
            return Err(format!("{} matches are to be blocked; at most {RULES_MAX} can be", block.len()));
        }
        let read = |text: &String| {
            parse_match(text).map_err(|bad| format!("`{text}` in its setting `block` is no match: {bad}"))
        };
        Ok(Firewall { blocked: block.iter().map(read).collect::<Result<_, _>>()?, priority })
    }

    fn serves_switches_apart(_: &Settings) -> bool {
        true
    }

    fn interests(&self) -> Interests {
        Interests::none().switches()
    }

    fn on_switch_up(&mut self, up: &SwitchUp, out: &mut Commands) {
        for blocked in &self.blocked {
            let mut bytes = Vec::new();
            write_match(blocked, &mut bytes);
            out.rule(up.datapath).priority(self.priority).matching_bytes(&bytes).send_with_receipt();
        }
    }

    fn on_receipt(&mut self, datapath: DatapathId, receipt: &Receipt, out: &mut Commands) {
        if receipt.outcome != Outcome::Programmed {
            let text = format!("{datapath} forwards packets that must be blocked: {}", receipt.reason);
            out.log(Level::Error, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::testing::Trial;

    fn check_refused(settings: &str, part: &str) {
        let refusal = Trial::<Firewall>::start(settings).err().unwrap();
        assert!(refusal.contains(part), "{refusal}");
    }

    #[test]
    fn what_is_no_match_is_refused_with_its_text() {
        check_refused(r#"{"block": ["nw_src=10.0.0.300"]}"#, "nw_src=10.0.0.300");
        check_refused(r#"{"blocks": []}"#, "unknown field `blocks`");
        let many = vec!["\"arp\""; RULES_MAX + 1].join(",");
        check_refused(&format!("{{\"block\": [{many}]}}"), "at most 1000");
    }

    #[test]
    fn each_switch_drops_what_is_blocked() {
        let mut firewall =
            Trial::<Firewall>::start(r#"{"block": ["ip,nw_src=10.0.0.1,nw_dst=10.0.0.4"]}"#).unwrap();
        let rule = "add-rule of:0000000000000007 priority=60000 \
                    match=[eth_type=0x800,ipv4_src=0xa000001,ipv4_dst=0xa000004] actions=[]";
        assert_eq!(firewall.switch_up(7, &[1, 2]), [rule]);
    }
}
