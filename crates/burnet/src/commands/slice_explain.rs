//! `burnet slice explain`: what a flow mod of a tenant becomes in the switches, or why it is refused.
//!
//! ```text
//!   flow mod in the syntax of ovs-ofctl ──> message ──> the zone of the slice, or the slice of a file without rules ──> pieces
//! ```
//!
//! In: parsed options. Out: text or JSON, and whether some switch takes it. It changes nothing.

use super::{json, slice_zones, slices, unexpected};
use crate::cli::CommandError;
use crate::cli::slice::SliceExplainArgs;
use crate::slices::{NodeServices, settings};
use config::ConfigFile;
use config::slices::{parse_switch, switch_name};
use flow::DatapathId;
use openflow::message::{FLOW_ADD, FLOW_MODIFY_STRICT};
use openflow::{Body, Version};
use openflow_text::text;
use slice::explain::{Explained, explain_without_rules};
use slice::state::{Answer, Question};
use std::path::Path;
use std::process::ExitCode;

/// `burnet slice explain`.
pub fn explain(args: &SliceExplainArgs) -> Result<(String, ExitCode), CommandError> {
    let message = message(&args.flow_mod).map_err(CommandError::Usage)?;
    let at = args.switch.as_deref().map(parse_switch).transpose().map_err(CommandError::Usage)?;
    let explained = match &args.file {
        Some(file) => of_file(file, &args.name, at, &message)?,
        None => of_node(args, at, message)?,
    };
    let is_taken = explained.iter().any(|it| it.refused.is_none());
    let text = if args.asking.json { json(&explained)? } else { explained.iter().map(shown).collect() };
    Ok((text, if is_taken { ExitCode::SUCCESS } else { ExitCode::from(1) }))
}

/// The flow mod as a controller sends it.
fn message(flow_mod: &str) -> Result<Vec<u8>, String> {
    let message = text::parse(flow_mod, Version::V1_3, 1).map_err(|bad| format!("the flow mod: {bad}"))?;
    match &message.body {
        Body::FlowMod(it) if (FLOW_ADD..=FLOW_MODIFY_STRICT).contains(&it.command) => {}
        Body::FlowMod(_) => {
            return Err(
                "a delete becomes deletes of the rules that it finds: write the rule, without delete"
                    .to_owned(),
            );
        }
        _ => return Err("write a flow mod, as in priority=5,in_port=1,actions=output:2".to_owned()),
    }
    let mut bytes = Vec::new();
    message.encode(&mut bytes).map_err(|why| format!("the flow mod cannot be sent: {why}"))?;
    Ok(bytes)
}

fn of_node(
    args: &SliceExplainArgs,
    at: Option<DatapathId>,
    message: Vec<u8>,
) -> Result<Vec<Explained>, CommandError> {
    slices::check_known(&args.asking, &args.name)?;
    match slice_zones::ask(&args.asking, &args.name, &Question::Explain { at, message })? {
        Answer::Explained(explained) => Ok(explained),
        _ => Err(unexpected()),
    }
}

fn of_file(
    file: &Path,
    name: &str,
    at: Option<DatapathId>,
    message: &[u8],
) -> Result<Vec<Explained>, CommandError> {
    let slices = ConfigFile::read(file)?.slices;
    let path = file.display();
    let slice = slices.iter().find(|slice| slice.name == name);
    let slice = slice.ok_or_else(|| CommandError::Usage(format!("{path} has no slice {name}")))?;
    let settings = settings(slice, Vec::new(), NodeServices::default()).map_err(CommandError::Usage)?;
    explain_without_rules(&settings, Version::V1_3, at, message).map_err(CommandError::DidNotWork)
}

fn shown(it: &Explained) -> String {
    let mut text = format!("switch {}", switch_name(it.datapath));
    if it.shown_as != it.datapath {
        text += &format!(", shown as {}", switch_name(it.shown_as));
    }
    match &it.refused {
        Some(why) => text + &format!(": refused: {why}\n"),
        None if it.pieces.is_empty() => text + ": no rule, since it matches no packet of the slice here\n",
        None => text + "\n" + &it.pieces.iter().map(|piece| format!("  {piece}\n")).collect::<String>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_rule_is_refused_with_what_to_write() {
        let check = |text: &str, part: &str| {
            let why = message(text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        };
        check("in_prot=1,actions=drop", "the flow mod: ");
        check("delete in_port=1", "write the rule, without delete");
        check("group add group_id=1,type=all", "write a flow mod");
        assert!(message("priority=5,in_port=1,actions=output:2").is_ok());
        assert!(message("modify tcp,actions=drop").is_ok());
    }

    #[test]
    fn each_switch_has_its_pieces_or_its_reason() {
        let explained = |pieces: &[&str], refused: Option<&str>| Explained {
            datapath: DatapathId(1),
            shown_as: DatapathId(2),
            pieces: pieces.iter().map(|it| (*it).to_owned()).collect(),
            refused: refused.map(str::to_owned),
        };
        assert_eq!(shown(&explained(&["a", "b"], None)), "switch s1, shown as s2\n  a\n  b\n");
        assert_eq!(shown(&explained(&[], Some("no"))), "switch s1, shown as s2: refused: no\n");
        assert!(shown(&explained(&[], None)).contains("no rule"));
    }
}
