//! `burnet slice labels`, `flows` and `report`: what a slice shares with others, and what is left for it.
//!
//! ```text
//!   burnet slice labels blue ──GET /api/v1/slices/blue/labels──> service northbound ──> service labels ──> table or JSON
//! ```
//!
//! In: parsed options. Out: text or JSON. The commands keep nothing.

use super::network::{self, client, encoded};
use super::table::columns;
use super::{json, slice_zones};
use crate::cli::audit::Since;
use crate::cli::slice::{SliceReportArgs, SliceShowArgs};
use crate::cli::{CommandError, NodeArgs};
use burnet_sdk::view::{Link, LinkId};
use config::slices::link_name;
use hose::Bandwidth;
use labels_contract::{Flow, Label};
use node::now_unix_ms;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use slice::state::{Answer, Question, SliceLinkState};
use std::collections::BTreeSet;

/// How long a node keeps what slices got, in seconds.
const KEPT_S: u64 = 24 * 3_600;

/// The labels of a slice.
#[derive(Deserialize)]
struct Labels {
    items: Vec<Label>,
    stale: bool,
}

/// The VNICs of a slice.
#[derive(Deserialize)]
struct Vnics {
    items: Vec<VnicLine>,
    /// The time that the means are about, in seconds.
    covers_s: Option<u64>,
}

/// What a VNIC is promised and gets.
#[derive(Deserialize)]
struct VnicLine {
    vnic: String,
    promised_bps: u64,
    sends_bps: u64,
    receives_bps: u64,
    why_less: Option<String>,
}

/// The flows of a slice.
#[derive(Deserialize)]
struct Flows {
    items: Vec<ShapedFlow>,
}

/// A flow, and what holds its sender to its rate.
#[derive(Deserialize)]
struct ShapedFlow {
    #[serde(flatten)]
    flow: Flow,
    shaped: Option<String>,
}

impl ShapedFlow {
    /// In the words of `burnet slice show`, with the cap if there is one.
    fn shaped(&self) -> String {
        let shaped = self.shaped.as_deref().unwrap_or("-");
        let cap = self.flow.cap_bps.map(|cap_bps| format!(", capped at {}", Bandwidth::from_bps(cap_bps)));
        format!("{shaped}{}", cap.unwrap_or_default())
    }
}

/// `burnet slice labels`.
pub fn labels(args: &SliceShowArgs) -> Result<String, CommandError> {
    let mut answer = asked(&args.asking, &args.name, "labels")?;
    let without_speed = without_speed(&args.asking, &args.name);
    if !args.asking.json {
        let lines = without_speed.iter().map(|link| no_speed_line(*link)).collect::<String>();
        return Ok(labels_text(&args.name, &read(answer)?) + &lines);
    }
    if let Value::Object(members) = &mut answer {
        let ids: Vec<String> = without_speed.iter().map(ToString::to_string).collect();
        members.insert("without_speed".to_owned(), ids.into());
    }
    json(&answer)
}

/// The links of the slice that can have no label, because a switch does not say how fast its port is. None if the slice or the view does not answer.
fn without_speed(asking: &NodeArgs, slice: &str) -> Vec<LinkId> {
    let Ok(Answer::State(state)) = slice_zones::ask(asking, slice, &Question::State) else {
        return Vec::new();
    };
    let network = network::description(asking).map(|network| network.links).unwrap_or_default();
    of_unknown_speed(&state.links, &network)
}

fn of_unknown_speed(links: &[SliceLinkState], network: &[Link]) -> Vec<LinkId> {
    let unknown: BTreeSet<LinkId> =
        network.iter().filter(|link| link.capacity_kbps == 0).map(|link| link.id).collect();
    let is_unknown = |link: &LinkId| unknown.contains(link) || unknown.contains(&link.reversed());
    let is_part = |link: &&SliceLinkState| is_unknown(&link.link) || link.hops.iter().any(is_unknown);
    links.iter().filter(is_part).map(|link| link.link).collect()
}

fn no_speed_line(link: LinkId) -> String {
    format!(
        "link {} has no label: the speed of its ports is not known; write it into port_speeds of [network.discovery]\n",
        link_name(link)
    )
}

/// `burnet slice flows`.
pub fn flows(args: &SliceShowArgs) -> Result<String, CommandError> {
    let answer = asked(&args.asking, &args.name, "flows")?;
    if args.asking.json { json(&answer) } else { Ok(flows_text(&args.name, &read::<Flows>(answer)?.items)) }
}

/// `burnet slice report`.
pub fn report(args: &SliceReportArgs) -> Result<String, CommandError> {
    let what = match args.since {
        None => "vnics".to_owned(),
        Some(since) => format!("vnics?since_s={}", ago_s(since, now_unix_ms())?),
    };
    let answer = asked(&args.asking, &args.name, &what)?;
    if args.asking.json { json(&answer) } else { Ok(report_text(&args.name, &read(answer)?)) }
}

/// How long ago that was.
fn ago_s(since: Since, now_ms: u64) -> Result<u64, CommandError> {
    match (now_ms.saturating_sub(since.unix_ms(now_ms)) / 1_000).max(1) {
        ago_s @ 1..=KEPT_S => Ok(ago_s),
        _ => Err(CommandError::DidNotWork("--since: the node keeps a day; write 1d or less".to_owned())),
    }
}

fn asked(asking: &NodeArgs, slice: &str, what: &str) -> Result<Value, CommandError> {
    let target = format!("/api/v1/slices/{}/{what}", encoded(slice).replace('/', "%2F"));
    client(asking)?.ask("GET", &target, None).map_err(CommandError::DidNotWork)
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, CommandError> {
    serde_json::from_value(answer).map_err(|why| {
        CommandError::DidNotWork(format!("the node has another version than this program: {why}"))
    })
}

fn labels_text(slice: &str, labels: &Labels) -> String {
    if labels.items.is_empty() {
        return format!("slice {slice} has no labels: it has shown no link to its tenant yet\n");
    }
    let rate = |kbps: u64| Bandwidth::from_kbps(kbps).to_string();
    let row = |it: &Label| [link_name(it.link), rate(it.capacity_kbps), rate(it.label_kbps)];
    let rows: Vec<_> = labels.items.iter().map(row).collect();
    let mut text = columns(["LINK", "CAPACITY", "LABEL"], &rows);
    if labels.stale {
        text += "stale: the labels may be too high, because not all slices have reported their flows yet\n";
    }
    text
}

fn flows_text(slice: &str, flows: &[ShapedFlow]) -> String {
    if flows.is_empty() {
        return format!(
            "slice {slice} has no flow: no rules bring packets from one of its VNICs to another\n"
        );
    }
    let row = |shaped: &ShapedFlow| {
        let it = &shaped.flow;
        let rate = if it.counts { Bandwidth::from_bps(it.rate_bps).to_string() } else { "silent".to_owned() };
        let links: Vec<String> = it.links.iter().map(|link| link_name(*link)).collect();
        let path = if links.is_empty() { "at one switch".to_owned() } else { links.join(" ") };
        let measured = it.measured_bps.map_or("-".to_owned(), |bps| Bandwidth::from_bps(bps).to_string());
        [it.from.clone(), it.to.clone(), rate, measured, it.rules.to_string(), path, shaped.shaped()]
    };
    let rows: Vec<_> = flows.iter().map(row).collect();
    columns(["FROM", "TO", "RATE", "MEASURED", "RULES", "PATH", "SENDER"], &rows)
}

fn report_text(slice: &str, vnics: &Vnics) -> String {
    if vnics.items.is_empty() {
        return format!("slice {slice} has no VNICs, so it is promised no bandwidth\n");
    }
    let rate = |bps: u64| Bandwidth::from_bps(bps).to_string();
    let row = |it: &VnicLine| {
        let why = it.why_less.clone().unwrap_or_default();
        [it.vnic.clone(), rate(it.promised_bps), rate(it.sends_bps), rate(it.receives_bps), why]
    };
    let rows: Vec<_> = vnics.items.iter().map(row).collect();
    let mut text = columns(["VNIC", "PROMISED", "SENDS", "RECEIVES", "SENDS LESS BECAUSE"], &rows);
    if let Some(covers_s) = vnics.covers_s {
        let (minutes, seconds) = (covers_s / 60, covers_s % 60);
        text += &format!("means over the last {minutes} min {seconds} s, by looks 5 s apart\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slice_plan::substrate::plain_link;
    use config::slices::parse_link;
    use serde_json::json;

    #[test]
    fn links_of_unknown_speed_are_listed_also_if_one_of_their_hops_is() {
        let link = |text: &str| parse_link(text).unwrap();
        let of_slice = |text: &str, hops: &[&str]| SliceLinkState {
            link: link(text),
            is_up: true,
            why: None,
            lack: None,
            hops: hops.iter().map(|hop| link(hop)).collect(),
        };
        let known = plain_link(link("s1:1-s2:1"), Bandwidth::from_kbps(1));
        let unknown = |text: &str| Link { capacity_kbps: 0, ..plain_link(link(text), Bandwidth::ZERO) };
        let network = [known, unknown("s1:2-s2:2"), unknown("s3:2-s2:3")];
        let links = [
            of_slice("s1:1-s2:1", &[]),
            of_slice("s2:2-s1:2", &[]),
            of_slice("s1:3-s2:3", &["s1:3-s3:1", "s3:2-s2:3"]),
        ];
        assert_eq!(of_unknown_speed(&links, &network), [link("s2:2-s1:2"), link("s1:3-s2:3")]);
        assert!(no_speed_line(link("s1:2-s2:2")).starts_with("link s1:2-s2:2 has no label: "));
    }

    #[test]
    fn labels_are_shown_in_the_words_of_the_slices_file() {
        let label = |link: &str, label_kbps: u64| json!({"link": link, "capacity_kbps": 10_000, "label_kbps": label_kbps});
        let items = json!([label("3/1-1/1", 2_000), label("3/2-2/1", 10_000)]);
        let shown = |stale: bool| {
            labels_text("blue", &read(json!({"items": items, "total": 2, "stale": stale})).unwrap())
        };
        let table = "LINK       CAPACITY  LABEL\ns3:1-s1:1  10.0M     2.0M\ns3:2-s2:1  10.0M     10.0M\n";
        assert_eq!(shown(false), table);
        assert!(shown(true).starts_with(table) && shown(true).contains("stale: the labels may be too high"));
        let none = labels_text("blue", &Labels { items: Vec::new(), stale: false });
        assert!(none.starts_with("slice blue has no labels"), "{none}");
    }

    #[test]
    fn a_report_has_what_is_promised_what_is_got_and_why_less() {
        let line = |vnic: &str, sends_bps: u64, why: Option<&str>| {
            let mut line = json!({"vnic": vnic, "promised_bps": 8_000_000, "sends_bps": sends_bps, "receives_bps": 0, "flows": 1});
            if let Some(why) = why {
                line["why_less"] = why.into();
            }
            line
        };
        let items =
            json!([line("A", 8_000_000, None), line("B", 2_000_000, Some("A receives all that it may"))]);
        let mut vnics: Vnics = read(json!({"items": items, "total": 2})).unwrap();
        let expected = "VNIC  PROMISED  SENDS  RECEIVES  SENDS LESS BECAUSE\nA     8.0M      8.0M   0\n\
                        B     8.0M      2.0M   0         A receives all that it may\n";
        assert_eq!(report_text("blue", &vnics), expected);
        vnics.covers_s = Some(3_125);
        assert!(report_text("blue", &vnics).contains("\nmeans over the last 52 min 5 s"));
        vnics.items.clear();
        assert!(report_text("blue", &vnics).starts_with("slice blue has no VNICs"));
    }

    #[test]
    fn a_report_goes_back_a_day_at_most() {
        let now_ms = 200_000_000;
        for (ago, expected) in [(0, Some(1)), (3_600, Some(3_600)), (86_400, Some(86_400)), (86_401, None)] {
            assert_eq!(ago_s(Since::Seconds(ago), now_ms).ok(), expected, "{ago}");
        }
    }

    #[test]
    fn a_flow_is_shown_with_its_path_and_a_silent_one_without_a_rate() {
        let flow = |to: &str, links: &[&str], rate_bps: u64| json!({"from": "E", "to": to, "links": links, "rules": 2, "counts": rate_bps > 0, "rate_bps": rate_bps});
        let mut items = json!([flow("F", &["3/1-1/1", "1/2-4/1"], 8_000_000), flow("G", &[], 0)]);
        (items[0]["shaped"], items[0]["cap_bps"]) = ("shaped by agent 2".into(), 4_000_000.into());
        items[0]["measured_bps"] = 3_900_000.into();
        let Flows { items } = read(json!({"items": items, "total": 2})).unwrap();
        let expected = "FROM  TO  RATE    MEASURED  RULES  PATH                 SENDER\n\
                        E     F   8.0M    3.9M      2      s3:1-s1:1 s1:2-s4:1  shaped by agent 2, capped at 4.0M\n\
                        E     G   silent  -         2      at one switch        -\n";
        assert_eq!(flows_text("blue", &items), expected);
        assert!(flows_text("blue", &[]).starts_with("slice blue has no flow"));
    }
}
