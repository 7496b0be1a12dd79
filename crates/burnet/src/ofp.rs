//! `burnet ofp`: converts OpenFlow messages between hexadecimal, JSON and the text of ovs-ofctl, line by line.
//!
//! ```text
//!   decode          hex, one message per line  ──> one JSON object per line
//!   decode --text   hex, one message per line  ──> the lines that ovs-ofctl prints
//!   encode          one JSON object per line   ──> hex, one message per line
//!   encode --text   ovs-ofctl's syntax, and the output of decode --text  ──> hex, one message per line
//! ```
//!
//! Each line is answered in order, as soon as it is read. For an invalid line, the answer is `{"error":{…}}`, and the
//! next line is read. Invalid input never ends the command and never changes its exit code. Empty lines are skipped.
//! Only an error on standard output ends it early.
//!
//! It never opens a file or a connection.

use std::io::{self, BufRead, Write};

use clap::{Args, Subcommand};
use openflow::hex;
use openflow::{Message, Version};
use openflow_text::{json, text};
use serde_json::{Value, json};

/// The longest line that is read, in bytes. The longest message (65535 bytes) is well below, even as an object with
/// its bytes beside it. The rest of a longer line is skipped, with an error.
const MAX_LINE: usize = 4 << 20;

/// Translate OpenFlow messages, a line at a time
#[derive(Debug, Args)]
pub struct OfpArgs {
    #[command(subcommand)]
    command: OfpCommand,
}

#[derive(Debug, Subcommand)]
enum OfpCommand {
    /// Read one message in hexadecimal a line and print it as a JSON object
    ///
    /// Blanks, colons, a leading 0x and either case are accepted. A line that is no message gives an object with an "error"
    /// in it.
    Decode {
        /// Print what ovs-ofctl prints instead of JSON; some messages have several lines then
        #[arg(long)]
        text: bool,
    },
    /// Read one JSON object a line and print the message in hexadecimal
    ///
    /// Takes what decode prints. A line that says no message gives an object with an "error" in it.
    Encode {
        /// Read ovs-ofctl's syntax instead of JSON: "add priority=1,in_port=1,actions=output:2", "group add …", "meter add …",
        /// "packet-out …", and what decode --text prints
        #[arg(long)]
        text: bool,
        /// The version of text that does not say its own
        #[arg(long, value_parser = version, default_value = "1.3", requires = "text")]
        version: Version,
        /// The transaction id of text that does not say its own
        #[arg(long, default_value_t = 0, requires = "text")]
        xid: u32,
    },
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "1.0" => Ok(Version::V1_0),
        "1.3" => Ok(Version::V1_3),
        _ => Err("write 1.0 or 1.3".to_owned()),
    }
}

/// Answers every line of `input`.
///
/// # Errors
/// Only errors of reading `input` and writing `output`.
pub fn run(args: &OfpArgs, input: impl BufRead, output: impl Write) -> io::Result<()> {
    match args.command {
        OfpCommand::Decode { text: false } => each_line(input, output, decode_line),
        OfpCommand::Decode { text: true } => each_line(input, output, decode_line_to_text),
        OfpCommand::Encode { text: false, .. } => each_line(input, output, encode_line),
        OfpCommand::Encode { text: true, version, xid } => each_text(input, output, version, xid),
    }
}

/// Passes each line that is not empty to `answer`, and writes the result.
fn each_line(
    mut input: impl BufRead,
    mut output: impl Write,
    answer: impl Fn(&str) -> String,
) -> io::Result<()> {
    let mut line = Vec::new();
    while let Some(whole) = read_line(&mut input, &mut line)? {
        match legible(&line, whole) {
            Ok("") => {}
            Ok(text) => print(&mut output, &answer(text))?,
            Err(refused) => print(&mut output, &refused)?,
        }
    }
    Ok(())
}

fn print(output: &mut impl Write, answered: &str) -> io::Result<()> {
    writeln!(output, "{answered}")?;
    output.flush()
}

/// The line as text without surrounding blanks, or the error to print.
fn legible(line: &[u8], whole: bool) -> Result<&str, String> {
    if !whole {
        return Err(refuse("line_too_long", MAX_LINE, format!("the line is longer than {MAX_LINE} bytes")));
    }
    match std::str::from_utf8(line) {
        Ok(text) => Ok(text.trim()),
        Err(bad) => Err(refuse("not_utf8", bad.valid_up_to(), "the line is no UTF-8".to_owned())),
    }
}

/// Answers each message in text. Most have one line. A message with several lines ends before an empty line, before
/// the next heading or command, and at the end of the input. Only such a message is answered late.
fn each_text(mut input: impl BufRead, mut output: impl Write, version: Version, xid: u32) -> io::Result<()> {
    let mut line = Vec::new();
    let mut printed = String::new();
    while let Some(whole) = read_line(&mut input, &mut line)? {
        let text = legible(&line, whole);
        let continues =
            !printed.is_empty() && text.as_ref().is_ok_and(|text| continues_a_message(text, &printed));
        // A message that exceeds the longest line is answered with the lines so far.
        if continues && printed.len() + line.len() < MAX_LINE {
            printed.push('\n');
            printed.push_str(&String::from_utf8_lossy(&line));
            continue;
        }
        if !printed.is_empty() {
            print(&mut output, &encode_text(&std::mem::take(&mut printed), version, xid))?;
        }
        match text {
            Ok("") => {}
            Ok(text) if may_have_more_lines(text) => text.clone_into(&mut printed),
            Ok(text) => print(&mut output, &encode_text(text, version, xid))?,
            Err(refused) => print(&mut output, &refused)?,
        }
    }
    if printed.is_empty() { Ok(()) } else { print(&mut output, &encode_text(&printed, version, xid)) }
}

/// Whether a printed message of this type can have lines below its heading.
fn may_have_more_lines(text: &str) -> bool {
    let one_line =
        ["OFPT_FLOW_MOD ", "OFPT_FLOW_REMOVED ", "OFPT_BARRIER_", "OFPT_ROLE_", "OFPT_EXPERIMENTER "];
    text.starts_with("OFP") && !one_line.iter().any(|kind| text.starts_with(kind))
}

/// Whether the line belongs to the message before it. It does, unless it is empty or begins another message.
fn continues_a_message(text: &str, printed: &str) -> bool {
    const FIRST_WORDS: [&str; 9] =
        ["add", "modify", "modify_strict", "delete", "delete_strict", "flow", "group", "meter", "packet-out"];
    // Below an error is the message that it carries. Below a failed hello is only text.
    let only_an_error =
        printed.starts_with("OFPT_ERROR ") && !printed.contains('\n') && !printed.contains("OFPHFC_");
    let first = text.split([' ', ',']).next().unwrap_or_default();
    let begins_another = text.starts_with("OFP") && !only_an_error || FIRST_WORDS.contains(&first);
    !text.is_empty() && !begins_another
}

fn encode_text(line: &str, version: Version, xid: u32) -> String {
    let message = match text::parse(line, version, xid) {
        Ok(message) => message,
        Err(bad) => {
            let error = json!({"type": "bad_text", "code": "not_understood", "offset": bad.offset, "field": bad.word, "message": bad.to_string()});
            return json!({ "error": error }).to_string();
        }
    };
    let mut bytes = Vec::new();
    match message.encode(&mut bytes) {
        Ok(()) => hex::to_text(&bytes),
        Err(bad) => json!({"error": {"type": "bad_text", "code": "unwritable", "offset": 0, "message": bad.to_string()}}).to_string(),
    }
}

/// Reads a line into `line`, without its end. `Some(false)`: it was longer than [`MAX_LINE`], and its rest was
/// skipped. `None`: the input has ended.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<bool>> {
    line.clear();
    let mut any = false;
    let mut whole = true;
    loop {
        let available = input.fill_buf()?;
        if available.is_empty() {
            return Ok(any.then_some(whole));
        }
        any = true;
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(available.len());
        let room = MAX_LINE - line.len();
        whole &= taken <= room;
        line.extend_from_slice(&available[..taken.min(room)]);
        input.consume(end.map_or(taken, |end| end + 1));
        if end.is_some() {
            return Ok(Some(whole));
        }
    }
}

/// An error of a line before it is parsed as OpenFlow. `offset` is in bytes of the line.
fn refuse(code: &str, offset: usize, message: String) -> String {
    json!({"error": {"type": "bad_line", "code": code, "offset": offset, "message": message}}).to_string()
}

fn decode_line(line: &str) -> String {
    match read_hex(line) {
        Ok(bytes) => json::describe(&bytes).to_string(),
        Err(refused) => refused,
    }
}

fn decode_line_to_text(line: &str) -> String {
    let bytes = match read_hex(line) {
        Ok(bytes) => bytes,
        Err(refused) => return refused,
    };
    match Message::decode(&bytes) {
        // Every answer gets the end of its last line there.
        Ok(message) => text::to_text(&message).trim_end_matches('\n').to_owned(),
        Err(bad) => json::error_to_json(&bad).to_string(),
    }
}

/// The bytes of a line, or the error to print.
fn read_hex(line: &str) -> Result<Vec<u8>, String> {
    let digits = line.strip_prefix("0x").or_else(|| line.strip_prefix("0X")).unwrap_or(line);
    let skipped = line.len() - digits.len();
    let is_separator = |character: char| character.is_ascii_whitespace() || character == ':';
    let dense: String = digits.chars().filter(|character| !is_separator(*character)).collect();
    hex::from_text(&dense).map_err(|bad| {
        // Converts the position among the digits into one in the line.
        let places = digits.char_indices().filter(|(_, character)| !is_separator(*character));
        let mut before = 0;
        let place = places.into_iter().find(|(_, character)| {
            let here = before == bad.position;
            before += character.len_utf8();
            here
        });
        let offset = skipped + place.map_or(digits.len(), |(place, _)| place);
        refuse("not_hex", offset, bad.to_string())
    })
}

fn encode_line(line: &str) -> String {
    let object: Value = match serde_json::from_str(line) {
        Ok(object) => object,
        Err(bad) => return refuse("not_json", bad.column().saturating_sub(1), bad.to_string()),
    };
    if let Some(error) = object.get("error") {
        return refuse("error_object", 0, format!("the object is an error and no message: {error}"));
    }
    match json::bytes_of(&object) {
        Ok(bytes) => hex::to_text(&bytes),
        Err(bad) => {
            let message = bad.to_string();
            json!({"error": {"type": "bad_object", "code": "no_message", "offset": 0, "field": bad.key, "message": message}})
                .to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(command: OfpCommand, input: &[u8]) -> Vec<String> {
        let mut output = Vec::new();
        run(&OfpArgs { command }, input, &mut output).unwrap();
        String::from_utf8(output).unwrap().lines().map(str::to_owned).collect()
    }

    /// Checks that the line's answer is an error with this code at this offset.
    fn refused(command: OfpCommand, line: &[u8], code: &str, offset: usize) {
        let answered = answers(command, line);
        assert_eq!(answered.len(), 1, "{answered:?}");
        let answer: Value = serde_json::from_str(&answered[0]).unwrap();
        assert_eq!((&answer["error"]["code"], &answer["error"]["offset"]), (&json!(code), &json!(offset)));
    }

    fn encode() -> OfpCommand {
        OfpCommand::Encode { text: false, version: Version::V1_3, xid: 0 }
    }

    fn encode_text_as(version: Version, xid: u32) -> OfpCommand {
        OfpCommand::Encode { text: true, version, xid }
    }

    const BARRIER: &str = "0414000800000007";

    #[test]
    fn what_is_no_hexadecimal_is_refused_with_its_place() {
        refused(OfpCommand::Decode { text: false }, b"04 14 0g", "not_hex", 7);
        refused(OfpCommand::Decode { text: false }, b"0x041", "not_hex", 5);
        refused(OfpCommand::Decode { text: false }, b"04:14:0\xff", "not_utf8", 7);
        refused(OfpCommand::Decode { text: false }, "é".as_bytes(), "not_hex", 0);
        refused(OfpCommand::Decode { text: false }, b"0x0x", "not_hex", 3);
    }

    #[test]
    fn a_line_without_end_is_skipped_and_the_next_one_read() {
        let mut input = vec![b'0'; MAX_LINE + 1];
        input.extend_from_slice(format!("\n{BARRIER}\n").as_bytes());
        let answered = answers(OfpCommand::Decode { text: false }, &input);
        assert!(answered[0].contains("line_too_long"), "{}", answered[0]);
        assert!(answered[1].contains("barrier_request"), "{}", answered[1]);
    }

    #[test]
    fn what_follows_a_message_on_its_line_is_refused() {
        let answered =
            answers(OfpCommand::Decode { text: false }, format!("{BARRIER}{BARRIER}\n0x\n0414").as_bytes());
        assert_eq!(answered.len(), 3, "{answered:?}");
        assert!(answered.iter().all(|answer| answer.contains("OFPBRC_BAD_LEN")), "{answered:?}");
    }

    #[test]
    fn an_object_that_is_no_message_is_refused_in_its_place() {
        let barrier = r#"{"version":"1.3","type":"barrier_request","xid":7}"#;
        let input = format!("{{\n[]\n{barrier}\n{{\"error\":{{}}}}\n{{\"version\":\"1.3\"}}\n{barrier}\n");
        let answered = answers(encode(), input.as_bytes());
        let codes = ["not_json", "no_message", BARRIER, "error_object", "no_message", BARRIER];
        assert_eq!(answered.len(), codes.len());
        for (answer, code) in answered.iter().zip(codes) {
            assert!(answer.contains(code), "{answer} lacks {code}");
        }
    }

    #[test]
    fn blanks_colons_case_and_a_prefix_do_not_matter() {
        let lines = "04 14 00 08 00 00 00 0a\n04:14:00:08:00:00:00:0A\n0X041400080000000a\n\n  \r\n041400080000000A\r\n";
        let answered = answers(OfpCommand::Decode { text: false }, lines.as_bytes());
        assert_eq!(answered, [r#"{"version":"1.3","type":"barrier_request","xid":10}"#; 4]);
    }

    #[test]
    fn text_that_is_wrong_is_refused_in_its_place() {
        let answered = answers(
            encode_text_as(Version::V1_0, 1),
            b"add in_prot=1,actions=drop\n\ngroup delete\nactions=drop\n",
        );
        assert_eq!(answered.len(), 3, "{answered:?}");
        let bad: Value = serde_json::from_str(&answered[0]).unwrap();
        assert_eq!((&bad["error"]["offset"], &bad["error"]["field"]), (&json!(4), &json!("in_prot=1")));
        assert!(answered[1].contains("unwritable"), "1.0 has no groups: {}", answered[1]);
        assert!(answered[2].starts_with("010e0048"), "{}", answered[2]);
        refused(encode_text_as(Version::V1_3, 0), b"add \xff", "not_utf8", 4);
    }

    #[test]
    fn text_that_is_printed_is_encoded_again() {
        let messages = [
            BARRIER,
            "04000010000000010001000800000012",
            "0402000c0000000901020304",
            "041800180000000700000002000000000000000000000001",
            "041d00200000000700000001000000050001001000000001 0000000000000000",
            "0401001400000007 00010006 0414000800000009",
            BARRIER,
        ];
        let messages = messages.map(|message| message.replace(' ', ""));
        let text = answers(OfpCommand::Decode { text: true }, messages.join("\n").as_bytes()).join("\n");
        assert_eq!(answers(encode_text_as(Version::V1_0, 99), text.as_bytes()), messages);
    }

    #[test]
    fn text_has_as_many_lines_as_the_message() {
        let decode = OfpCommand::Decode { text: true };
        let hello = "040000100000000100010008 00000012";
        let input = format!("{BARRIER}\n04\n{hello}\n{BARRIER}\n");
        let barrier = "OFPT_BARRIER_REQUEST (OF1.3) (xid=0x7):";
        let answered = answers(decode, input.as_bytes());
        assert_eq!(answered.len(), 5, "{answered:?}");
        assert_eq!((answered[0].as_str(), answered[4].as_str()), (barrier, barrier));
        assert!(answered[1].contains("OFPBRC_BAD_LEN"), "{}", answered[1]);
        assert_eq!(answered[2..4], ["OFPT_HELLO (OF1.3) (xid=0x1):", " version bitmap: 0x01, 0x04"]);
    }

    #[test]
    fn what_is_decoded_is_encoded_again() {
        let padded = "0418001800000007000000020badf00d0000000000000001";
        let input = format!("{BARRIER}\n{padded}\n");
        let decoded = answers(OfpCommand::Decode { text: false }, input.as_bytes()).join("\n");
        assert_eq!(answers(encode(), decoded.as_bytes()), [BARRIER, padded]);
    }
}
