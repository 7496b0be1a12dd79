//! `burnet flows`: the flow entries of the node's switches, in the syntax of ovs-ofctl, with their owners.

use super::{ask, json, unexpected};
use crate::cli::{CommandError, FlowsArgs};
use operator::contract::{Answer, FlowView, FlowsView, Question};

/// Prints the entries, as text or JSON.
pub fn flows(args: &FlowsArgs) -> Result<String, CommandError> {
    let question = Question::Flows { datapath: args.datapath };
    let Answer::Flows(switches) = ask(&args.asking, &question)? else { return Err(unexpected()) };
    if args.asking.json { json(&switches) } else { Ok(switches.iter().map(text).collect()) }
}

fn text(switch: &FlowsView) -> String {
    let mut text = format!("{}: {} entries\n", switch.datapath, switch.flows.len());
    if let Some(trouble) = &switch.trouble {
        text += &format!("  (not all: {trouble})\n");
    }
    switch.flows.iter().for_each(|flow| text += &line(flow));
    text
}

fn line(flow: &FlowView) -> String {
    let timeouts = [("idle_timeout", flow.idle_timeout_s), ("hard_timeout", flow.hard_timeout_s)];
    let timeouts = timeouts.iter().filter(|(_, seconds)| *seconds > 0);
    let timeouts: String = timeouts.map(|(name, seconds)| format!(" {name}={seconds},")).collect();
    let matching = if flow.matching.is_empty() { String::new() } else { format!(",{}", flow.matching) };
    format!(
        "  owner={}, cookie={}, duration={:.3}s, table={}, n_packets={}, n_bytes={},{timeouts} priority={}{matching} actions={}\n",
        flow.owner,
        flow.cookie,
        flow.duration_s,
        flow.table,
        flow.packets,
        flow.bytes,
        flow.priority,
        flow.actions
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_as_ovs_ofctl_shows_it_with_its_owner_before_it() {
        let flow = FlowView {
            table: 0,
            priority: 100,
            owner: "learning-switch".into(),
            cookie: "0x1000000000000".into(),
            duration_s: 1.5,
            idle_timeout_s: 60,
            hard_timeout_s: 0,
            packets: 3,
            bytes: 294,
            matching: "in_port=1".into(),
            actions: "output:2".into(),
        };
        let expected = "  owner=learning-switch, cookie=0x1000000000000, duration=1.500s, table=0, n_packets=3, n_bytes=294, \
                        idle_timeout=60, priority=100,in_port=1 actions=output:2\n";
        assert_eq!(line(&flow), expected);
    }
}
