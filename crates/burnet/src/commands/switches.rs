//! `burnet switches`: the switches of the running node.

use super::{ago, ask, json, table::columns, unexpected};
use crate::cli::{CommandError, SwitchesArgs};
use operator::contract::{Answer, MeterView, PaceView, Question, SwitchView};

/// Prints the switches, as text or JSON.
pub fn switches(args: &SwitchesArgs) -> Result<String, CommandError> {
    let Answer::Switches(switches) = ask(&args.asking, &Question::Switches)? else {
        return Err(unexpected());
    };
    if args.asking.json { json(&switches) } else { Ok(text(&switches)) }
}

fn text(switches: &[SwitchView]) -> String {
    if switches.is_empty() {
        return "no switch is connected; point one here, for example: ovs-vsctl set-controller br0 tcp:127.0.0.1:6653\n".to_owned();
    }
    let rows: Vec<_> = switches.iter().map(row).collect();
    let table = columns(
        [
            "DATAPATH",
            "OPENFLOW",
            "PEER",
            "UP",
            "PORTS",
            "PACKET-INS",
            "DROPPED",
            "METER",
            "FLOW-MODS",
            "PACKET-OUTS",
            "ERRORS",
            "PROFILE",
            "WAITING",
        ],
        &rows,
    );
    let troubled = switches.iter().filter_map(|switch| Some((switch.datapath, switch.trouble.as_ref()?)));
    let unmetered = switches.iter().filter_map(|switch| match &switch.meter {
        Some(MeterView::Without { reason }) => Some(format!("{}: no meter: {reason}\n", switch.datapath)),
        _ => None,
    });
    let troubles = troubled.map(|(datapath, trouble)| format!("{datapath}: {trouble}\n"));
    table + &troubles.chain(unmetered).collect::<String>()
}

/// The rate of the punt meter, and how many packets it dropped.
fn meter(view: Option<&MeterView>) -> String {
    match view {
        None => "-".to_owned(),
        Some(MeterView::Pending) => "pending".to_owned(),
        Some(MeterView::On { per_s, dropped: 0, .. }) => format!("{per_s}/s"),
        Some(MeterView::On { per_s, dropped, .. }) => format!("{per_s}/s -{dropped}"),
        Some(MeterView::Without { .. }) => "no".to_owned(),
    }
}

/// How many commands wait for the switch, and how long the last of them will.
fn waiting(pace: &PaceView) -> String {
    match pace.waiting {
        0 => "0".to_owned(),
        count => format!("{count} ({})", ago(pace.wait_ms)),
    }
}

fn row(switch: &SwitchView) -> [String; 13] {
    let live = switch.ports.iter().filter(|port| port.live).count();
    [
        switch.datapath.to_string(),
        format!("{}{}", switch.version, if switch.tls { " tls" } else { "" }),
        switch.peer.clone(),
        ago(switch.up_ms),
        format!("{live}/{}", switch.ports.len()),
        switch.packet_ins.to_string(),
        (switch.control_dropped + switch.data_dropped + switch.unheard).to_string(),
        meter(switch.meter.as_ref()),
        switch.flow_mods.to_string(),
        switch.packet_outs.to_string(),
        switch.errors.to_string(),
        switch.pace.as_ref().map_or_else(|| "-".to_owned(), |pace| pace.profile.clone()),
        switch.pace.as_ref().map_or_else(|| "-".to_owned(), waiting),
    ]
}
