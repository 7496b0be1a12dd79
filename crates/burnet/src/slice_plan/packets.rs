//! What only a rehearsal with packets shows, and the rules that controllers add in it.
//!
//! In: texts of the command line. Out: values. Who rehearses with packets is the laboratory: this program has no emulated switch.

use config::slices::parse_switch;
use flow::DatapathId;
use openflow::{Body, Version};
use openflow_text::text;
use std::str::FromStr;

/// The latest start of a flow or a rule, and the longest time after it.
pub const SECONDS_MAX: u64 = 600;

/// What packets have shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packets {
    /// The rules of each slice at each of its switches, at the end.
    pub rules: Vec<RulesAt>,
    /// What each tenant's controller got, in the order of the slices.
    pub tenants: Vec<Heard>,
    /// Frames of one slice that reached a VNIC of another. More than 0 is a fault of Burnet.
    pub crossed: u64,
    /// How often packets circulated.
    pub storms: u64,
    /// Frames that links lost.
    pub lost: u64,
    /// What the log of a node would say.
    pub log: Vec<String>,
    /// A digest of all frames and messages. The same input has the same one.
    pub digest: u64,
}

/// The rules of a slice at a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesAt {
    /// The slice.
    pub slice: String,
    /// The switch.
    pub switch: String,
    /// Those of the tenant.
    pub rules: usize,
    /// The entries of the switch that they are.
    pub entries: usize,
}

/// What a tenant's controller got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Its slice.
    pub slice: String,
    /// Its version of OpenFlow.
    pub openflow: String,
    /// Packet-ins.
    pub packet_ins: u64,
    /// Errors, each with how often it came.
    pub errors: Vec<(HeardError, u64)>,
}

/// An error that a tenant's controller got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeardError {
    /// The switch.
    pub switch: String,
    /// The message that it answers.
    pub message: String,
    /// Its names in the specification.
    pub error: String,
    /// The reason, if the slice or the kernel has given one.
    pub why: Option<String>,
}

/// A rule that the controller of a slice adds: `red:s5:priority=5,in_port=1,actions=output:3@1.5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSpec {
    /// The name of the slice.
    pub slice: String,
    /// The switch, by its physical datapath id.
    pub switch: DatapathId,
    /// The flow mod.
    pub flow_mod: Body,
    /// When it is sent.
    pub at_ms: u64,
}

impl FromStr for RuleSpec {
    type Err = String;

    fn from_str(written: &str) -> Result<RuleSpec, String> {
        let wrong = |why: &str| {
            format!(
                "{why}: write SLICE:SWITCH:FLOW or SLICE:SWITCH:FLOW@SECONDS, such as red:s5:in_port=1,actions=output:3@1.5"
            )
        };
        let (slice, rest) = written.split_once(':').ok_or_else(|| wrong("no `:` after the slice"))?;
        let (switch, rest) = rest.split_once(':').ok_or_else(|| wrong("no `:` after the switch"))?;
        let (flow, at) = rest.rsplit_once('@').map_or((rest, "0"), |(flow, at)| (flow, at));
        let at_ms = match at.parse::<f64>() {
            Ok(seconds) if (0.0..=SECONDS_MAX as f64).contains(&seconds) => (seconds * 1e3).round() as u64,
            _ => return Err(wrong(&format!("`{at}` is no number of seconds from 0 to {SECONDS_MAX}"))),
        };
        let switch = parse_switch(switch).map_err(|why| wrong(&why))?;
        let message = text::parse(flow, Version::V1_3, 1).map_err(|bad| wrong(&bad.to_string()))?;
        match message.body {
            Body::FlowMod(_) => {
                Ok(RuleSpec { slice: slice.to_owned(), switch, flow_mod: message.body, at_ms })
            }
            _ => Err(wrong("it is no flow mod")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_written_as_slice_switch_flow_and_time() {
        let read = "red:s5:in_port=1,dl_dst=02:00:00:00:00:01,actions=output:3@1.5"
            .parse::<RuleSpec>()
            .expect("a rule");
        assert_eq!((read.slice.as_str(), read.switch, read.at_ms), ("red", DatapathId(5), 1_500));
        let Body::FlowMod(flow_mod) = read.flow_mod else { panic!("no flow mod") };
        assert_eq!(flow::text::match_to_string(&flow_mod.matching), "in_port=1,dl_dst=02:00:00:00:00:01");
        let check = |text: &str, expected: &str| {
            let why = text.parse::<RuleSpec>().expect_err("it is wrong");
            assert!(why.starts_with(expected), "{why}");
        };
        check("red", "no `:` after the slice");
        check("red:s5", "no `:` after the switch");
        check("red:s5:in_port=1,actions=output:3@soon", "`soon` is no number of seconds");
        check("red:nowhere:actions=drop", "");
    }
}
