//! What tshark's dissector says of a message agrees with what is read of it here.
//!
//! Writes the messages as packets to a file, one TCP connection each, and reads back what `tshark` makes of the file. Needs
//! `tshark`; without it the test says so by name and passes.

#![allow(clippy::unwrap_used, reason = "a test may")]

#[path = "../../openflow/tests/captured/mod.rs"]
mod captured;
#[path = "../../openflow/tests/corpus/mod.rs"]
mod corpus;

use std::process::Command;
use std::{env, fs, process};

use flow::{Match, MatchEntry};
use openflow::message::*;
use openflow::{Body, Message, Version};

/// The columns that tshark is asked for: those of 1.3 first, the same of 1.0 behind them.
const COLUMNS: [&str; 20] = [
    "openflow_v4.version",
    "openflow_v4.type",
    "openflow_v4.length",
    "openflow_v4.xid",
    "openflow_v4.flowmod.cookie",
    "openflow_v4.flowmod.command",
    "openflow_v4.flowmod.priority",
    "openflow_v4.flowmod.idle_timeout",
    "openflow_v4.packet_in.reason",
    "openflow_v4.oxm.field",
    "openflow.version",
    "openflow_1_0.type",
    "openflow.length",
    "openflow.xid",
    "openflow.cookie",
    "openflow.command",
    "openflow.priority",
    "openflow.idle_timeout",
    "openflow.reason",
    "_ws.malformed",
];
/// How many columns 1.0 has, and 1.3 without the fields of the match.
const COLUMNS_1_0: usize = 9;

/// One message as a packet of a connection of its own, in the format of pcap files.
fn record(number: usize, message: &[u8]) -> Vec<u8> {
    const ETHERNET_AND_IP_AND_TCP: usize = 14 + 20 + 20;
    let length = u32::try_from(ETHERNET_AND_IP_AND_TCP + message.len()).unwrap();
    let source = 10_000 + u16::try_from(number).unwrap();
    let mut record = Vec::new();
    for word in [0, 0, length, length] {
        record.extend(u32::to_le_bytes(word));
    }
    record.extend([0; 12]);
    record.extend([8, 0, 0x45, 0]);
    record.extend(u16::try_from(length - 14).unwrap().to_be_bytes());
    record.extend([0, 0, 0, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 2]);
    record.extend(source.to_be_bytes());
    record.extend(6653u16.to_be_bytes());
    record.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
    record.extend(message);
    record
}

fn pcap(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4_u32.to_le_bytes());
    file.extend([2, 0, 4, 0]);
    for word in [0u32, 0, 0x4_0000, 1] {
        file.extend(word.to_le_bytes());
    }
    messages.iter().enumerate().for_each(|(number, message)| file.extend(record(number, message)));
    file
}

/// A row for each message; `None` if there is no `tshark`.
fn dissect(messages: &[Vec<u8>]) -> Option<Vec<Vec<String>>> {
    let path = env::temp_dir().join(format!("burnet-openflow-{}.pcap", process::id()));
    fs::write(&path, pcap(messages)).unwrap();
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-d", "tcp.port==6653,openflow", "-T", "fields"]);
    tshark.args(["-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"]);
    for column in COLUMNS {
        tshark.args(["-e", column]);
    }
    let output = tshark.output().ok();
    fs::remove_file(&path).unwrap();
    let text = String::from_utf8(output?.stdout).unwrap();
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

/// A number as tshark writes it, decimal or hexadecimal; of several the first, since an error's own stand before those
/// of the message within it.
fn number(cell: &str) -> Option<u64> {
    let first = cell.split(',').next()?;
    match first.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => first.parse().ok(),
    }
}

/// What we say, in the order of the columns; `None` where the message has no such thing.
fn ours(message: &Message, bytes: &[u8]) -> [Option<u64>; COLUMNS_1_0] {
    let mut row = [None; COLUMNS_1_0];
    row[0] = Some(message.version.0.into());
    row[1] = message.body.type_number(message.version).map(u64::from);
    row[2] = Some(bytes.len() as u64);
    row[3] = Some(message.xid.into());
    match &message.body {
        Body::FlowMod(flow_mod) => {
            row[4] = Some(flow_mod.cookie);
            row[5] = Some(flow_mod.command.into());
            row[6] = Some(flow_mod.priority.into());
            row[7] = Some(flow_mod.idle_timeout_s.into());
        }
        Body::PacketIn(packet_in) => row[8] = Some(packet_in.reason.into()),
        _ => {}
    }
    row
}

/// The numbers of the match's fields, as tshark lists them before those of the actions.
fn fields(matching: &Match) -> Option<Vec<String>> {
    let number = |entry: &MatchEntry| match entry {
        MatchEntry::Field { field, .. } => Some(field.number().to_string()),
        MatchEntry::Unknown { .. } => None,
    };
    matching.entries().iter().map(number).collect()
}

fn compare(message: &Message, bytes: &[u8], row: &[String]) -> Result<(), String> {
    let theirs = if message.version == Version::V1_0 { &row[10..] } else { row };
    for (column, said) in ours(message, bytes).into_iter().enumerate() {
        let found = number(&theirs[column]);
        if said.is_some() && found != said {
            return Err(format!("{}: ours {said:?}, tshark's {found:?}", COLUMNS[column]));
        }
    }
    let matching = match &message.body {
        Body::FlowMod(flow_mod) if message.version == Version::V1_3 => fields(&flow_mod.matching),
        _ => None,
    };
    let theirs: Vec<&str> = row[9].split(',').collect();
    match matching {
        Some(matching)
            if !matching.is_empty()
                && !theirs.starts_with(&matching.iter().map(String::as_str).collect::<Vec<_>>()) =>
        {
            Err(format!("fields of the match: ours {matching:?}, tshark's {theirs:?}"))
        }
        _ => Ok(()),
    }
}

/// Why tshark may call a message malformed that is not; `None`: it may not.
fn excuse(message: &Message) -> Option<&'static str> {
    const HEADER_LEN: usize = 14;
    let has_band_of_an_experimenter = |bands: &[MeterBand]| {
        bands.iter().any(|band| matches!(band.kind, MeterBandKind::Experimenter { .. }))
    };
    match &message.body {
        Body::FlowMod(FlowMod { instructions, .. })
            if message.version == Version::V1_0 && instructions.is_empty() =>
        {
            Some("tshark reads an action of 1.0 where there is none")
        }
        Body::PacketOut(PacketOut { actions, .. })
            if message.version == Version::V1_0 && actions.is_empty() =>
        {
            Some("the same")
        }
        Body::Error(_) => Some("what an error carries may be cut off or wrong, which is why it is there"),
        Body::PacketIn(PacketIn { data, .. }) | Body::PacketOut(PacketOut { data, .. })
            if data.len() < HEADER_LEN =>
        {
            Some("the frame is shorter than an Ethernet header")
        }
        Body::MeterMod(MeterMod { bands, .. }) if has_band_of_an_experimenter(bands) => {
            Some("tshark takes what an experimenter says for padding of whole words")
        }
        Body::MultipartReply(MultipartReply { body: ReplyBody::MeterConfig(meters), .. })
            if meters.iter().any(|meter| has_band_of_an_experimenter(&meter.bands)) =>
        {
            Some("the same")
        }
        Body::MultipartReply(MultipartReply { body: ReplyBody::Experimenter(_), .. }) => Some("the same"),
        _ => None,
    }
}

#[test]
fn tshark_says_of_each_message_what_we_say() {
    let mut messages = captured::messages();
    for version in [Version::V1_0, Version::V1_3] {
        for body in corpus::bodies().into_iter().chain(corpus::variants()) {
            let mut bytes = Vec::new();
            if (Message { version, xid: 7, body }).encode(&mut bytes).is_ok() {
                messages.push(bytes);
            }
        }
    }
    messages.retain(|bytes| Message::decode(bytes).is_ok());
    let Some(rows) = dissect(&messages) else {
        eprintln!("left out: tshark_says_of_each_message_what_we_say (there is no tshark)");
        return;
    };
    assert_eq!(rows.len(), messages.len());
    let mut differing = Vec::new();
    for (bytes, row) in messages.iter().zip(&rows) {
        let message = Message::decode(bytes).unwrap();
        if let Err(difference) = compare(&message, bytes, row) {
            differing.push(format!("{}\n{difference}", captured::hex(bytes)));
        }
        if !row[19].is_empty() && excuse(&message).is_none() {
            differing.push(format!(
                "{}\nmalformed for tshark: {}",
                captured::hex(bytes),
                openflow_text::text::to_text(&message)
            ));
        }
    }
    assert!(differing.is_empty(), "{} of {} differ:\n{}", differing.len(), rows.len(), differing.join("\n"));
}
