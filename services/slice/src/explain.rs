//! What a flow mod of the tenant becomes in the switches of a slice, or why it is refused.
//!
//! ```text
//!   flow mod, rules of the slice ──> at each switch: its pieces in the syntax of ovs-ofctl, or the refusal
//! ```
//!
//! In: a flow mod, and the virtual switches. Out: text. It changes nothing. The flow mod is taken for an add, whatever its command.

use crate::settings::SliceSettings;
use abi::ZoneId;
use flow::{DatapathId, MacAddr};
use openflow::message::FlowMod;
use openflow::{Body, Message, Version};
use serde::{Deserialize, Serialize};
use slicer::{Event, PortFacts, Slicer, SwitchPlan};

/// What a flow mod becomes at one switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// The physical switch.
    pub datapath: DatapathId,
    /// The datapath id that the tenant sees.
    pub shown_as: DatapathId,
    /// The flow mods that the physical switch gets. Empty if it is refused, or if it matches no packet of the slice.
    pub pieces: Vec<String>,
    /// Why it is refused, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// What a message becomes at this switch of the slice, or at all.
///
/// # Errors
/// A sentence: it is no flow mod, or the slice does not have the switch.
pub fn explain(
    slicer: &Slicer,
    settings: &SliceSettings,
    at: Option<DatapathId>,
    message: &[u8],
) -> Result<Vec<Explained>, String> {
    let message = Message::decode(message).map_err(|bad| format!("the message cannot be read: {bad}"))?;
    let Body::FlowMod(flow_mod) = message.body else { return Err("the message is no flow mod".to_owned()) };
    let is_meant = |datapath, shown_as| at.is_none_or(|at| at == datapath || at == shown_as);
    let switches = settings.switches.iter().filter(|it| is_meant(it.datapath, it.shown_as));
    let explained: Vec<Explained> =
        switches.map(|it| at_one(slicer, (it.datapath, it.shown_as), &flow_mod)).collect();
    match (explained.is_empty(), at) {
        (true, Some(at)) => Err(format!("the slice {} has no switch {at}", settings.name)),
        _ => Ok(explained),
    }
}

fn at_one(slicer: &Slicer, (datapath, shown_as): (DatapathId, DatapathId), flow_mod: &FlowMod) -> Explained {
    let (pieces, refused) = match slicer.explain(datapath, flow_mod) {
        Ok(pieces) => (pieces, None),
        Err(Some(refusal)) => (Vec::new(), Some(refusal.to_string())),
        Err(None) => (Vec::new(), Some("the slice does not have the switch".to_owned())),
    };
    Explained { datapath, shown_as, pieces, refused }
}

/// The same for a slice that does not run: it has no rules, and all of its switches are up and speak this version.
///
/// # Errors
/// A sentence: the slice cannot run, or as for [`explain`].
pub fn explain_without_rules(
    settings: &SliceSettings,
    openflow: Version,
    at: Option<DatapathId>,
    message: &[u8],
) -> Result<Vec<Explained>, String> {
    let plan = settings.plan(ZoneId(1));
    let mut slicer = Slicer::new(&plan).map_err(|bad| bad.to_string())?;
    for switch in &plan.switches {
        let (datapath, version, ports) = (switch.datapath, openflow, ports(switch));
        slicer.on_event(0, Event::SwitchUp { datapath, version, ports }, &mut Vec::new());
    }
    explain(&slicer, settings, at, message)
}

/// All ports of a switch, live.
fn ports(switch: &SwitchPlan) -> Vec<PortFacts> {
    let facts = |port: &slicer::PortPlan| PortFacts {
        port: port.port,
        hw_addr: MacAddr::default(),
        name: format!("port {}", port.port),
        is_live: true,
        curr_speed_kbps: 0,
    };
    switch.ports.iter().map(facts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{Action, Field, Instruction, Match, PortNo};
    use openflow::message::FlowModFields;

    const BLUE: &str = r#"{"name": "blue", "controllers": [], "isolation": {"vlan": 7}, "switches": [
        {"datapath": "1", "shown_as": "11", "ports": [{"port": 3, "shown_as": 1, "is_edge": true}, {"port": 4, "shown_as": 2, "is_edge": false}]},
        {"datapath": "2", "shown_as": "12", "ports": [{"port": 5, "shown_as": 9, "is_edge": true}]}]}"#;

    fn flow_mod(in_port: u32, to: u32) -> Vec<u8> {
        let (matching, port) = (Match::any().with(Field::InPort, in_port), PortNo(to));
        let fields = FlowModFields { priority: 5, ..FlowModFields::default() };
        let body =
            Body::FlowMod(fields.with(matching, vec![Instruction::ApplyActions(vec![Action::output(port)])]));
        let mut bytes = Vec::new();
        Message { version: Version::V1_3, xid: 1, body }.encode(&mut bytes).unwrap();
        bytes
    }

    fn explained(at: Option<u64>, message: &[u8]) -> Result<Vec<Explained>, String> {
        let settings: SliceSettings = serde_json::from_str(BLUE).unwrap();
        explain_without_rules(&settings, Version::V1_3, at.map(DatapathId), message)
    }

    #[test]
    fn a_flow_mod_is_its_pieces_at_one_switch_and_refused_at_another() {
        let both = explained(None, &flow_mod(1, 2)).unwrap();
        let [one, two] = &both[..] else { panic!("{both:?}") };
        assert_eq!((one.datapath, one.shown_as, &one.refused), (DatapathId(1), DatapathId(11), &None));
        assert!(one.pieces.len() == 1 && one.pieces[0].contains("in_port=3"), "{one:?}");
        assert!(one.pieces[0].contains("output:4"), "{one:?}");
        assert!(two.pieces.is_empty() && two.refused.is_some(), "{two:?}");
        assert_eq!(explained(Some(2), &flow_mod(1, 2)).unwrap(), std::slice::from_ref(two));
        assert_eq!(
            explained(Some(12), &flow_mod(1, 2)).unwrap(),
            std::slice::from_ref(two),
            "by the tenant's name"
        );
    }

    #[test]
    fn what_cannot_be_explained_is_said() {
        let check = |at, message: &[u8], part: &str| {
            let why = explained(at, message).unwrap_err();
            assert!(why.contains(part), "{why}");
        };
        check(None, b"", "cannot be read");
        check(None, &[4, 0, 0, 8, 0, 0, 0, 1], "is no flow mod");
        check(Some(3), &flow_mod(1, 2), "the slice blue has no switch of:0000000000000003");
    }
}
