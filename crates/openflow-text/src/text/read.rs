//! Parses text to messages: what `ovs-ofctl` accepts, and what [`super::to_text`] prints.
//!
//! ```text
//!   add priority=1,in_port=1,actions=output:2                        a flow mod; also modify, modify_strict, delete, delete_strict
//!   flow modify tcp,actions=drop                                     the same, as in a bundle's file; without a command: add
//!   group add group_id=1,type=select,bucket=output:1,bucket=output:2
//!   meter add meter=1,kbps,band=type=drop,rate=1000
//!   packet-out in_port=1,packet=ffffffffffff…,actions=output:2
//!   OFPT_BARRIER_REQUEST (OF1.3) (xid=0x7):                          a printed message, its further lines behind it
//! ```
//!
//! Missing values have ovs-ofctl's defaults (priority 32768, no time-outs …). Never guesses what a printed text left
//! out: such a text is refused, and the error names what is missing.

mod group;
mod meter;
mod packet_out;
mod printed;
mod rule;
mod words;

use flow::text::BadText;

use openflow::message::{Body, Message};
use openflow::version::Version;

/// Reads one message.
///
/// `version` and `xid` are for text that does not have its own, as a printed message does.
///
/// # Errors
/// The wrong word, its place in `text`, and what was expected. Whether the version can express the message is checked
/// when it is encoded, not here.
///
/// ```
/// use openflow::Version;
/// use openflow_text::text;
/// let add = text::parse("priority=1,in_port=1,actions=output:2", Version::V1_3, 7).unwrap();
/// assert_eq!(text::to_text(&add), "OFPT_FLOW_MOD (OF1.3) (xid=0x7): ADD priority=1,in_port=1 actions=output:2\n");
/// let wrong = text::parse("in_prot=1,actions=output:2", Version::V1_3, 7).unwrap_err();
/// assert_eq!((wrong.offset, wrong.word.as_str()), (0, "in_prot=1"));
/// ```
pub fn parse(text: &str, version: Version, xid: u32) -> Result<Message, BadText> {
    let start = text.len() - text.trim_start().len();
    let shift = |bad: BadText| bad.shifted(start);
    if text[start..].starts_with("OFP") || text[start..].starts_with("ONFT_") {
        return printed::message(&text[start..]).map_err(shift);
    }
    let body = typed(&text[start..], version).map_err(shift)?;
    Ok(Message { version, xid, body })
}

/// Parses typed text: an optional keyword for the kind of message, then one for the command.
fn typed(text: &str, version: Version) -> Result<Body, BadText> {
    let (first, rest) = words::first(text);
    let shift = |bad: BadText| bad.shifted(text.len() - rest.len());
    match first {
        "flow" => rule::typed(rest, version).map(Body::FlowMod).map_err(shift),
        "group" => group::typed(rest).map(Body::GroupMod).map_err(shift),
        "meter" => meter::typed(rest).map(Body::MeterMod).map_err(shift),
        "packet-out" => packet_out::typed(rest).map(Body::PacketOut).map_err(shift),
        _ => rule::typed(text, version).map(Body::FlowMod),
    }
}
