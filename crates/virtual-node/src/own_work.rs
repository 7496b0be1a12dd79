//! What the node itself sends to switches without a question: the kernel's table-miss rule.
//!
//! In: effects of the kernel. Out: commands of the node. It decides nothing: the kernel does.

use abi::command::{Command, FlowMod, What};
use flow::canonical::InstructionWriter;
use flow::{DatapathId, PortNo};
use southbound::Tag;

/// Bytes of a packet in a packet-in: all.
const WHOLE_PACKETS: u16 = 0xffff;

/// A command of the node with the tag under which its answer comes.
pub(crate) struct OwnCommand<'a> {
    pub(crate) command: Command<'a>,
    pub(crate) cookie: u64,
    pub(crate) tag: Tag,
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
