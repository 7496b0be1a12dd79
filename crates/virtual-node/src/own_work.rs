//! What the node itself sends to switches: the kernel's questions, and its table-miss rule.
//!
//! In: effects of the kernel. Out: commands of the node. It decides nothing: the kernel does.

use abi::command::{Command, FlowMod, StatsRequest, What};
use flow::canonical::InstructionWriter;
use flow::{DatapathId, PortNo};
use kernel::{Asked, Wanted};
use node::switch_requests::{all_flows, of_the_kernel};
use southbound::Tag;

/// Bytes of a packet in a packet-in: all.
const WHOLE_PACKETS: u16 = 0xffff;

/// A command of the node with the tag under which its answer comes.
pub(crate) struct OwnCommand<'a> {
    pub(crate) command: Command<'a>,
    pub(crate) cookie: u64,
    pub(crate) tag: Tag,
}

/// Sends a question of the kernel. Returns whether it was sent.
pub(crate) fn ask(
    datapath: DatapathId,
    asked: Asked,
    wanted: Option<&Wanted>,
    mut send: impl FnMut(&OwnCommand<'_>) -> bool,
) -> bool {
    // Behind all earlier commands. A question about owners needs no barrier: the kernel knows what it has sent.
    let is_of_owners = matches!(asked, Asked::Owners | Asked::Groups | Asked::Meters);
    let is_behind = is_of_owners || say(datapath, asked, What::Barrier, false, &mut send);
    let mut question = |(multipart, body): (u16, Vec<u8>)| {
        say(datapath, asked, What::StatsRequest(StatsRequest { multipart, body: &body }), false, &mut send)
    };
    // 1.0 cannot filter by cookie: the switch must report all of its rules.
    let may_ask_for_all = matches!(asked, Asked::RulesOf(_) | Asked::Rule);
    let is_asked =
        is_behind && (question(of_the_kernel(asked, wanted)) || may_ask_for_all && question(all_flows()));
    if is_asked && matches!(asked, Asked::TableSizes | Asked::Owners) {
        // The reply shows at once that the switch has ignored the question.
        say(datapath, asked, What::Barrier, true, &mut send);
    }
    is_asked
}

/// Sends a command under the ticket of a question.
fn say(
    datapath: DatapathId,
    asked: Asked,
    what: What<'_>,
    wants_receipt: bool,
    send: &mut impl FnMut(&OwnCommand<'_>) -> bool,
) -> bool {
    let ticket = asked.ticket();
    let command = Command { datapath, ticket, wants_receipt, what };
    send(&OwnCommand { command, cookie: 0, tag: Tag::of_node(ticket) })
}

/// Sends the kernel's table-miss rule of a table, or deletes it.
pub(crate) fn punt(
    datapath: DatapathId,
    table_id: u8,
    is_wanted: bool,
    mut send: impl FnMut(&OwnCommand<'_>) -> bool,
) -> bool {
    /// OFPFC_DELETE_STRICT.
    const DELETE_STRICT: u8 = 4;
    let mut instructions = Vec::new();
    InstructionWriter::new(&mut instructions).apply_actions(|actions| {
        actions.output(PortNo::CONTROLLER, WHOLE_PACKETS);
    });
    let rule = match is_wanted {
        true => FlowMod { table_id, instructions: &instructions, ..FlowMod::ADD },
        false => FlowMod {
            command: DELETE_STRICT,
            cookie: kernel::OWN_COOKIE,
            cookie_mask: u64::MAX,
            table_id,
            ..FlowMod::ADD
        },
    };
    let command = Command { datapath, ticket: 0, wants_receipt: false, what: What::FlowMod(rule) };
    send(&OwnCommand { command, cookie: kernel::OWN_COOKIE, tag: Tag::of_node(0) })
}
