//! Parses printed multipart messages and flow removeds.

use flow::Match;
use flow::text::{BadText, parse_instructions, parse_match};

use super::super::super::meter::RESERVED;
use super::super::super::rule::{DEFAULT_PRIORITY, FLAGS, REMOVED_REASONS};
use super::super::rule::only;
use super::super::words::{Token, fault, fault_in, number, split, split_actions};
use super::super::{group, meter};
use super::{connection, incomplete, nothing};
use openflow::message::*;
use openflow::version::Version;

/// `flags=[more]` if there are flags, and their length in the text.
pub(super) fn flags(text: &str) -> Result<(u16, usize), BadText> {
    let Some(word) = split(text).next().filter(|word| word.offset == 0 && word.key == "flags") else {
        return Ok((0, 0));
    };
    match word.value {
        Some("[more]") => Ok((MULTIPART_MORE, word.whole.len())),
        _ => Err(word.fault("expected flags=[more]")),
    }
}

pub(super) fn request(kind: &str, text: &str) -> Result<RequestBody, BadText> {
    Ok(match kind {
        "DESC" => nothing(text, RequestBody::Desc)?,
        "FLOW" => RequestBody::Flow(which(text)?),
        "AGGREGATE" => RequestBody::Aggregate(which(text)?),
        "TABLE" => nothing(text, RequestBody::Table)?,
        "PORT" => RequestBody::PortStats(connection::only_port(text, "port_no")?),
        "QUEUE" => queue(text)?,
        "GROUP" => RequestBody::Group(group_id(text)?),
        "GROUP_DESC" if text == "group_id=ALL" => RequestBody::GroupDesc,
        "GROUP_FEATURES" => nothing(text, RequestBody::GroupFeatures)?,
        "METER" => RequestBody::Meter(meter_id(text)?),
        "METER_CONFIG" => RequestBody::MeterConfig(meter_id(text)?),
        "METER_FEATURES" => nothing(text, RequestBody::MeterFeatures)?,
        "TABLE_FEATURES" => nothing(text, RequestBody::TableFeatures(Vec::new()))?,
        "PORT_DESC" if text == "port=ANY" => RequestBody::PortDesc,
        "EXPERIMENTER" => RequestBody::Experimenter(experimenter(text)?),
        _ => return Err(fault(0, text, format!("this is not understood in a request of the type {kind}"))),
    })
}

pub(super) fn reply(kind: &str, version: Version, text: &str) -> Result<ReplyBody, BadText> {
    Ok(match kind {
        "DESC" => ReplyBody::Desc(switch_desc(text)?),
        "FLOW" => ReplyBody::Flow(each_line(text, |line| flow_stats(version, line))?),
        "AGGREGATE" => ReplyBody::Aggregate(aggregate(text)?),
        "GROUP_DESC" => ReplyBody::GroupDesc(each_line(text, |line| group::group(line, true))?),
        "METER_CONFIG" => ReplyBody::MeterConfig(meters(text)?),
        "EXPERIMENTER" => ReplyBody::Experimenter(experimenter(text)?),
        "TABLE" => {
            return Err(incomplete(
                text,
                "wildcards without a name, and tables that are like the one before",
            ));
        }
        "PORT" | "QUEUE" | "GROUP" | "METER" => {
            return Err(incomplete(text, "counters that a switch does not have"));
        }
        "GROUP_FEATURES" | "METER_FEATURES" | "TABLE_FEATURES" => {
            return Err(incomplete(text, "bits that have no name"));
        }
        "PORT_DESC" => return Err(incomplete(text, "the bits of ports that have no name, and exact speeds")),
        _ => return Err(fault(0, text, format!("no multipart message has the type {kind}"))),
    })
}

/// Reads each line that is not empty. The offset of an error is in the whole text.
fn each_line<T>(text: &str, read: impl Fn(&str) -> Result<T, BadText>) -> Result<Vec<T>, BadText> {
    let place = |line: &str| line.as_ptr().addr() - text.as_ptr().addr();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| read(line).map_err(|bad| bad.shifted(place(line)))).collect()
}

/// `table=3 out_port=4 in_port=1`
fn which(text: &str) -> Result<FlowStatsRequest, BadText> {
    let mut read = FlowStatsRequest::default();
    let mut matching = Vec::new();
    for word in split(text) {
        match word.key {
            "table" => read.table_id = word.number("a table's number")?,
            "out_port" => read.out_port = word.port()?,
            _ => matching.push(word),
        }
    }
    read.matching = parse_match(&only(text, &matching))?;
    Ok(read)
}

fn queue(text: &str) -> Result<RequestBody, BadText> {
    match split(text).collect::<Vec<Token<'_>>>()[..] {
        [port, queue] if port.key == "port" && queue.key == "queue" => Ok(RequestBody::Queue {
            port: port.port()?,
            queue_id: queue.named(&[(u32::MAX, "ALL")], "a queue's number or ALL")?,
        }),
        _ => Err(fault(0, text, "expected port=… queue=…")),
    }
}

fn group_id(text: &str) -> Result<u32, BadText> {
    match split(text).collect::<Vec<Token<'_>>>()[..] {
        [word] if word.key == "group_id" => {
            word.named(&[(GROUP_ALL, "ALL"), (GROUP_ANY, "ANY")], "a group's number, ALL or ANY")
        }
        _ => Err(fault(0, text, "expected group_id=…")),
    }
}

fn meter_id(text: &str) -> Result<u32, BadText> {
    match split(text).collect::<Vec<Token<'_>>>()[..] {
        [word] if word.key == "meter" => {
            word.named(&RESERVED, "a meter's number, 'all', 'controller' or 'slowpath'")
        }
        _ => Err(fault(0, text, "expected meter=…")),
    }
}

fn experimenter(text: &str) -> Result<ExperimenterStats, BadText> {
    let Experimenter { experimenter, exp_type, data } = connection::experimenter(text)?;
    Ok(ExperimenterStats { experimenter, exp_type, data })
}

fn switch_desc(text: &str) -> Result<SwitchDesc, BadText> {
    let mut read = SwitchDesc::default();
    for line in text.lines() {
        let (label, value) =
            line.split_once(": ").or(line.strip_suffix(':').map(|label| (label, ""))).unwrap_or((line, ""));
        let field = match label {
            "Manufacturer" => &mut read.mfr_desc,
            "Hardware" => &mut read.hw_desc,
            "Software" => &mut read.sw_desc,
            "Serial Num" => &mut read.serial_num,
            "DP Description" => &mut read.dp_desc,
            _ => {
                return Err(fault_in(
                    text,
                    line,
                    "expected Manufacturer, Hardware, Software, Serial Num or DP Description and a colon",
                ));
            }
        };
        *field = value.to_owned();
    }
    Ok(read)
}

fn aggregate(text: &str) -> Result<AggregateStats, BadText> {
    let mut read = AggregateStats::default();
    for word in split(text) {
        match word.key {
            "packet_count" => read.packet_count = word.number("a count")?,
            "byte_count" => read.byte_count = word.number("a count")?,
            "flow_count" => read.flow_count = word.number("a count")?,
            _ => return Err(word.unknown("packet_count, byte_count, flow_count")),
        }
    }
    Ok(read)
}

/// Each begins with its number; its bands are on the lines below it.
fn meters(text: &str) -> Result<Vec<MeterConfig>, BadText> {
    let starts = split(text).filter(|word| word.key == "meter").map(|word| word.offset);
    let starts: Vec<usize> = starts.collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(start, end)| meter::meter(&text[*start..end]).map_err(|bad| bad.shifted(*start)))
        .collect()
}

/// `cookie=0x0, duration=5.25s, table=0, n_packets=1, n_bytes=60, priority=1,in_port=1 actions=output:2`
fn flow_stats(version: Version, text: &str) -> Result<FlowStats, BadText> {
    let (before, actions) = split_actions(text);
    let (actions, at) = actions.ok_or_else(|| fault(text.len(), "", "expected actions=…"))?;
    let mut read = FlowStats {
        table_id: 0,
        duration_s: 0,
        duration_ns: 0,
        priority: DEFAULT_PRIORITY,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        flags: 0,
        cookie: 0,
        packet_count: 0,
        byte_count: 0,
        matching: Match::any(),
        instructions: parse_instructions(actions).map_err(|bad| bad.shifted(at))?,
    };
    let mut matching = Vec::new();
    for word in split(before) {
        match word.key {
            "cookie" => read.cookie = word.number("a cookie")?,
            "duration" => (read.duration_s, read.duration_ns) = duration(&word, word.needed("seconds")?)?,
            "table" => read.table_id = word.number("a table's number")?,
            "n_packets" => read.packet_count = counter(&word)?,
            "n_bytes" => read.byte_count = counter(&word)?,
            "idle_timeout" => read.idle_timeout_s = word.number("seconds from 0 to 65535")?,
            "hard_timeout" => read.hard_timeout_s = word.number("seconds from 0 to 65535")?,
            "priority" => read.priority = word.number("a priority from 0 to 65535")?,
            key => match FLAGS.iter().find(|(_, name)| *name == key && version != Version::V1_0) {
                Some((flag, _)) => read.flags |= flag,
                None => matching.push(word),
            },
        }
    }
    read.matching = parse_match(&only(before, &matching))?;
    Ok(read)
}

fn counter(word: &Token<'_>) -> Result<u64, BadText> {
    word.named(&[(u64::MAX, "?")], "a count, or ? for none")
}

/// `5.25s`
fn duration(word: &Token<'_>, text: &str) -> Result<(u32, u32), BadText> {
    let read = || {
        let text = text.strip_suffix('s')?;
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let nanoseconds = format!("{fraction:0<9}");
        Some((number(seconds)?, if nanoseconds.len() == 9 { number(&nanoseconds)? } else { return None }))
    };
    read().ok_or_else(|| word.fault("expected seconds, such as 5.25s"))
}

/// `priority=1,in_port=1 reason=idle table_id=0 cookie:0x5 duration5.25s idle10 hard20 pkts1 bytes60`
pub(super) fn flow_removed(version: Version, text: &str) -> Result<FlowRemoved, BadText> {
    let reasons: Vec<(u8, &str)> = (0..).zip(REMOVED_REASONS).collect();
    let mut read = FlowRemoved {
        matching: Match::any(),
        cookie: 0,
        priority: DEFAULT_PRIORITY,
        reason: 0,
        table_id: if version == Version::V1_0 { 0 } else { TABLE_ALL },
        duration_s: 0,
        duration_ns: 0,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        packet_count: 0,
        byte_count: 0,
    };
    let mut matching = Vec::new();
    // The text before the reason is the match. Its words must not be taken for those after the reason.
    let mut behind = false;
    for word in split(text) {
        match word.key {
            "priority" if !behind => read.priority = word.number("a priority from 0 to 65535")?,
            "reason" => {
                read.reason = word.named(&reasons, "idle, hard, delete or group_delete")?;
                behind = true;
            }
            _ if !behind => matching.push(word),
            "table_id" => read.table_id = word.number("a table's number")?,
            "cookie" => read.cookie = word.number("a cookie")?,
            _ => removed_word(&word, &mut read)?,
        }
    }
    if !behind {
        return Err(fault(text.len(), "", "expected reason=…"));
    }
    read.matching = parse_match(&only(text, &matching))?;
    Ok(read)
}

/// Parses a word whose number directly follows its name.
fn removed_word(word: &Token<'_>, read: &mut FlowRemoved) -> Result<(), BadText> {
    let behind = |name: &str| word.whole.strip_prefix(name);
    let malformed = || word.fault("expected a number right behind the word");
    if let Some(text) = behind("duration") {
        (read.duration_s, read.duration_ns) = duration(word, text)?;
    } else if let Some(text) = behind("idle") {
        read.idle_timeout_s = number(text).ok_or_else(malformed)?;
    } else if let Some(text) = behind("hard") {
        read.hard_timeout_s = number(text).ok_or_else(malformed)?;
    } else if let Some(text) = behind("pkts") {
        read.packet_count = number(text).ok_or_else(malformed)?;
    } else if let Some(text) = behind("bytes") {
        read.byte_count = number(text).ok_or_else(malformed)?;
    } else {
        return Err(word.unknown("table_id, cookie, duration, idle, hard, pkts, bytes"));
    }
    Ok(())
}
