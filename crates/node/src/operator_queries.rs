//! Open requests of operators that wait for answers of workers or switches.
//!
//! In: a request, then counts and statistics as they arrive. Out: the answer, when it is complete or its time is over. An
//! incomplete answer names what is missing. Late and repeated data is ignored. It sends and receives nothing itself.

use crate::switch_view::switch_view;
use abi::event::{Event, StatsReply};
use abi::{Frame, Outcome, ZoneId};
use flow::DatapathId;
use kernel::OfSwitch;
use kernel::zone_set::is_zone_number;
use monitor_channel::{AppStatus, ZoneCounts};
use openflow::message::{Body, FlowStats, Message, MultipartReply, ReplyBody};
use operator::contract::{Answer, AppView, FlowView, FlowsView, ReloadView};
use southbound::{SessionSnapshot, SwitchRecord};
use std::collections::BTreeMap;

/// How long a request waits. The answer names each switch that takes longer.
pub const PATIENCE_MS: u64 = 2_000;

/// How long the monitor may take to reload the configuration: it checks every file of every package. Less than an
/// operator's command waits.
const RELOAD_PATIENCE_MS: u64 = 9_000;

/// How many requests may be open. The next one is handled when one of them is answered.
pub const QUESTIONS_MAX: usize = 16;

/// Bytes of flow entries in all answers that are being assembled: about 200,000 short entries. The answer says if
/// entries are missing.
const FLOW_BYTES_MAX: usize = 64 << 20;

/// The size of an entry, in addition to the text of its match and actions.
const FLOW_BYTES: usize = 320;

/// Identifies an operator's connection.
pub type OperatorId = usize;

/// The request that an answer is assembled for.
#[derive(Debug)]
enum Waiting {
    Switches {
        records: Vec<SwitchRecord>,
        sessions: Vec<SessionSnapshot>,
        kept: Vec<OfSwitch>,
    },
    Apps {
        apps: Vec<AppStatus>,
        counts: Vec<ZoneCounts>,
    },
    Flows {
        switches: BTreeMap<u64, SwitchFlows>,
        bytes: usize,
    },
    /// The monitor's answer, once it has arrived, and the refusal if it is late.
    Monitor {
        said: Option<Answer>,
        late: String,
    },
}

/// The flow entries of one switch that have arrived.
#[derive(Debug)]
struct SwitchFlows {
    view: FlowsView,
    /// Whether its last part is still missing. Later parts are ignored.
    awaited: bool,
    /// Whether an entry did not fit.
    left_out: bool,
}

#[derive(Debug)]
struct Open {
    operator_id: OperatorId,
    waiting: Waiting,
    /// Answers of workers, or last parts of switches, that are still missing.
    missing: usize,
    until_ms: u64,
}

/// The open requests, by ticket.
#[derive(Debug, Default)]
pub struct OperatorQueries {
    open: BTreeMap<u64, Open>,
    last_ticket: u64,
}

/// An answer and its operator.
pub type Answered = (OperatorId, Answer);

impl OperatorQueries {
    /// Whether one more request may be opened.
    pub fn has_room(&self) -> bool {
        self.open.len() < QUESTIONS_MAX
    }

    /// Opens the request for the switches. The caller must ask every worker for its counters with the ticket.
    pub fn open_switches(
        &mut self,
        operator_id: OperatorId,
        records: Vec<SwitchRecord>,
        workers: usize,
        now_ms: u64,
    ) -> u64 {
        self.open(
            operator_id,
            Waiting::Switches { records, sessions: Vec::new(), kept: Vec::new() },
            workers,
            now_ms,
        )
    }

    /// Opens the request for the apps. The caller must ask every worker for its counters with the ticket.
    pub fn open_apps(
        &mut self,
        operator_id: OperatorId,
        apps: Vec<AppStatus>,
        workers: usize,
        now_ms: u64,
    ) -> u64 {
        self.open(operator_id, Waiting::Apps { apps, counts: Vec::new() }, workers, now_ms)
    }

    /// Opens the request for flow entries. The caller must ask each switch with its own ticket; the tickets are
    /// returned.
    pub fn open_flows(
        &mut self,
        operator_id: OperatorId,
        datapaths: &[DatapathId],
        now_ms: u64,
    ) -> Vec<(DatapathId, u64)> {
        let first = self.last_ticket + 1;
        let tickets: Vec<_> =
            datapaths.iter().zip(first..).map(|(datapath, ticket)| (*datapath, ticket)).collect();
        let switches =
            tickets.iter().map(|(datapath, ticket)| (*ticket, SwitchFlows::none_yet(*datapath))).collect();
        self.open(operator_id, Waiting::Flows { switches, bytes: 0 }, tickets.len(), now_ms);
        self.last_ticket += tickets.len() as u64;
        tickets
    }

    /// Opens the request to reload the configuration. The caller must ask the monitor with the ticket.
    pub fn open_reload(&mut self, operator_id: OperatorId, now_ms: u64) -> u64 {
        let late = "the configuration was not read within {} ms; see the log of the node for the result";
        self.open_for_monitor(operator_id, late, now_ms)
    }

    /// Opens the request for a copy of the store. The caller must ask the monitor with the ticket.
    pub fn open_save(&mut self, operator_id: OperatorId, now_ms: u64) -> u64 {
        self.open_for_monitor(operator_id, "the store was not copied within {} ms: try again", now_ms)
    }

    fn open_for_monitor(&mut self, operator_id: OperatorId, late: &str, now_ms: u64) -> u64 {
        let late = late.replace("{}", &RELOAD_PATIENCE_MS.to_string());
        let waiting = Waiting::Monitor { said: None, late };
        self.open(operator_id, waiting, 1, now_ms + RELOAD_PATIENCE_MS - PATIENCE_MS)
    }

    /// The monitor reports the result of a reload.
    pub fn on_reloaded(&mut self, ticket: u64, outcome: Result<ReloadView, String>) {
        self.on_monitor(ticket, outcome.map_or_else(Answer::Refused, Answer::Reloaded));
    }

    /// The monitor reports whether the copy of the store exists.
    pub fn on_saved(&mut self, ticket: u64, trouble: Option<String>) {
        self.on_monitor(ticket, trouble.map_or(Answer::Done, Answer::Refused));
    }

    fn on_monitor(&mut self, ticket: u64, answer: Answer) {
        if let Some(open) = self.open.get_mut(&ticket)
            && let Waiting::Monitor { said, .. } = &mut open.waiting
        {
            *said = Some(answer);
            open.missing = 0;
        }
    }

    fn open(&mut self, operator_id: OperatorId, waiting: Waiting, missing: usize, now_ms: u64) -> u64 {
        self.last_ticket += 1;
        self.open
            .insert(self.last_ticket, Open { operator_id, waiting, missing, until_ms: now_ms + PATIENCE_MS });
        self.last_ticket
    }

    /// Takes a worker's counters.
    pub fn on_counts(
        &mut self,
        ticket: u64,
        of_sessions: Vec<SessionSnapshot>,
        of_zones: Vec<ZoneCounts>,
        of_switches: Vec<OfSwitch>,
    ) {
        let Some(open) = self.open.get_mut(&ticket) else { return };
        match &mut open.waiting {
            Waiting::Switches { sessions, kept, .. } => {
                sessions.extend(of_sessions);
                kept.extend(of_switches);
            }
            Waiting::Apps { counts, .. } => counts.extend(of_zones),
            Waiting::Flows { .. } | Waiting::Monitor { .. } => return,
        }
        open.missing = open.missing.saturating_sub(1);
    }

    /// Takes a frame for the node: a part of a switch's flow entries, or an error.
    pub fn on_frame(&mut self, frame: &[u8]) {
        let Some(event) = Frame::read(frame).ok().and_then(|frame| Event::read(&frame).ok()) else { return };
        match event {
            Event::StatsReply(reply) => self.on_part(&reply),
            // The session's receipt for a complete answer: the last part has already shown that.
            Event::Receipt(_, receipt) if receipt.outcome == Outcome::Programmed => {}
            Event::Receipt(_, receipt) => self.on_trouble(receipt.ticket, receipt.reason),
            Event::SwitchError(error) => self.on_trouble(error.ticket, error.reason),
            _ => {}
        }
    }

    fn on_part(&mut self, reply: &StatsReply<'_>) {
        let mut room = FLOW_BYTES_MAX.saturating_sub(self.flow_bytes());
        let Some((of_switch, kept, missing)) = self.awaited(reply.ticket) else { return };
        let views = match flow_views(reply) {
            Ok(views) => views,
            Err(trouble) => return of_switch.end(Some(trouble), missing),
        };
        for view in views {
            let bytes = FLOW_BYTES + view.matching.len() + view.actions.len();
            if bytes > room {
                of_switch.left_out = true;
                break;
            }
            (room, *kept) = (room - bytes, *kept + bytes);
            of_switch.view.flows.push(view);
        }
        if !reply.more {
            let trouble = of_switch.left_out.then(|| {
                format!("an answer holds {FLOW_BYTES_MAX} bytes of entries: the rest is missing; ask for a single switch")
            });
            of_switch.end(trouble, missing);
        }
    }

    /// The bytes of all requests together.
    fn flow_bytes(&self) -> usize {
        let of = |open: &Open| if let Waiting::Flows { bytes, .. } = open.waiting { bytes } else { 0 };
        self.open.values().map(of).sum()
    }

    /// The flow entries are not available.
    pub fn on_trouble(&mut self, ticket: u64, reason: &str) {
        if let Some((of_switch, _, missing)) = self.awaited(ticket) {
            of_switch.end(Some(reason.to_owned()), missing);
        }
    }

    /// The switch whose answer has this ticket, with the number of stored bytes and of missing switches.
    fn awaited(&mut self, ticket: u64) -> Option<(&mut SwitchFlows, &mut usize, &mut usize)> {
        self.open.values_mut().find_map(|open| match &mut open.waiting {
            Waiting::Flows { switches, bytes } => {
                let of_switch = switches.get_mut(&ticket).filter(|of_switch| of_switch.awaited)?;
                Some((of_switch, bytes, &mut open.missing))
            }
            _ => None,
        })
    }

    /// Returns the answers that are complete, or whose time limit has passed.
    pub fn take_answers(&mut self, now_ms: u64) -> Vec<Answered> {
        let ready: Vec<_> = self
            .open
            .iter()
            .filter(|(_, open)| open.missing == 0 || open.until_ms <= now_ms)
            .map(|(ticket, _)| *ticket)
            .collect();
        let answers = ready.iter().filter_map(|ticket| self.open.remove(ticket));
        answers.map(|open| (open.operator_id, answer(open, now_ms))).collect()
    }

    /// The operator has disconnected.
    pub fn forget(&mut self, operator_id: OperatorId) {
        self.open.retain(|_, open| open.operator_id != operator_id);
    }
}

impl SwitchFlows {
    fn none_yet(datapath: DatapathId) -> SwitchFlows {
        let trouble = Some("it did not answer in time".to_owned());
        let view = FlowsView { datapath, flows: Vec::new(), trouble };
        SwitchFlows { view, awaited: true, left_out: false }
    }

    /// The switch's answer has ended.
    fn end(&mut self, trouble: Option<String>, missing: &mut usize) {
        self.awaited = false;
        self.view.trouble = trouble;
        *missing -= 1;
    }
}

fn answer(open: Open, now_ms: u64) -> Answer {
    match open.waiting {
        Waiting::Monitor { said, late } => said.unwrap_or(Answer::Refused(late)),
        Waiting::Switches { records, sessions, kept } => Answer::Switches(
            records.iter().map(|record| switch_view(record, &sessions, &kept, now_ms)).collect(),
        ),
        Waiting::Apps { apps, counts } => {
            let missing = (open.missing > 0)
                .then(|| format!("{} workers did not send their counters in time", open.missing));
            Answer::Apps(apps.into_iter().map(|app| app_view(app, &counts, missing.clone())).collect())
        }
        Waiting::Flows { switches, .. } => {
            Answer::Flows(switches.into_values().map(|of_switch| of_switch.view).collect())
        }
    }
}

/// A zone has a counter at each worker; the operator sees their sum.
fn app_view(status: AppStatus, counts: &[ZoneCounts], trouble: Option<String>) -> AppView {
    let sum =
        |of: fn(&ZoneCounts) -> u64| counts.iter().filter(|count| count.zone == status.zone).map(of).sum();
    AppView {
        events: sum(|count| count.events),
        dropped: sum(|count| count.dropped),
        commands: sum(|count| count.commands),
        refusals: sum(|count| count.refusals),
        trouble,
        // The caller adds packages and refusals.
        package: None,
        shortfalls: Vec::new(),
        over: Vec::new(),
        used: None,
        status,
    }
}

/// The entries in a part of an answer. A malformed entry is shown as bytes, and the others are still shown.
fn flow_views(reply: &StatsReply<'_>) -> Result<Vec<FlowView>, String> {
    let whole = flow_stats(reply.multipart, reply.body);
    if let Ok(entries) = whole {
        return Ok(entries.iter().map(flow_view).collect());
    }
    let (mut views, mut rest) = (Vec::new(), reply.body);
    while !rest.is_empty() {
        let length = rest.first_chunk().map_or(0, |length| usize::from(u16::from_be_bytes(*length)));
        let cut = rest.split_at_checked(length).filter(|_| length >= ENTRY_LEN_MIN);
        // With wrong lengths, the start of the next entry is unknown.
        let Some((entry, behind)) = cut else { return whole.map(|_| views) };
        rest = behind;
        views.push(match flow_stats(reply.multipart, entry).as_deref() {
            Ok([read]) => flow_view(read),
            _ => unreadable_view(entry),
        });
    }
    Ok(views)
}

/// The length of an entry without match and instructions (1.3.5, 7.3.5.2), and the offset of its match.
const ENTRY_LEN_MIN: usize = 56;
const MATCH_AT: usize = 48;

/// The view of a malformed entry: its numbers, and its match and instructions as bytes.
fn unreadable_view(entry: &[u8]) -> FlowView {
    let number = |at: usize, length: usize| {
        let bytes = entry.get(at..at + length).unwrap_or_default();
        bytes.iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte))
    };
    let small = |at: usize| u16::try_from(number(at, 2)).unwrap_or_default();
    let cookie = number(24, 8);
    let bytes = entry.get(MATCH_AT..).unwrap_or_default();
    FlowView {
        table: entry.get(2).copied().unwrap_or_default(),
        priority: small(12),
        owner: ZoneId::owner_of(cookie).to_string(),
        cookie: format!("{cookie:#x}"),
        duration_s: number(4, 4) as f64 + number(8, 4) as f64 / 1e9,
        idle_timeout_s: small(14),
        hard_timeout_s: small(16),
        packets: number(32, 8),
        bytes: number(40, 8),
        matching: "unreadable".to_owned(),
        actions: bytes.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}")),
    }
}

/// Parses entries as the body of an OpenFlow 1.3 multipart reply.
fn flow_stats(multipart: u16, body: &[u8]) -> Result<Vec<FlowStats>, String> {
    const HEADERS: usize = 16;
    let length = u16::try_from(HEADERS + body.len()).map_err(|_| "its answer is too long".to_owned())?;
    let mut bytes = vec![openflow::Version::V1_3.0, 19];
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&multipart.to_be_bytes());
    bytes.extend_from_slice(&[0; 6]);
    bytes.extend_from_slice(body);
    match Message::decode(&bytes).map(|message| message.body) {
        Ok(Body::MultipartReply(MultipartReply { body: ReplyBody::Flow(entries), .. })) => Ok(entries),
        Ok(_) => Err("it answered something else".to_owned()),
        Err(bad) => Err(format!("its answer cannot be read: {bad}")),
    }
}

/// The owner that the operator sees for a rule that no app of this node made.
const FOREIGN: &str = "foreign";

/// The owner of a rule by its cookie: the zone's number. The control thread replaces it by the app's name.
fn owner(cookie: u64) -> String {
    match ZoneId::owner_of(cookie) {
        _ if cookie == kernel::OWN_COOKIE => "kernel".to_owned(),
        zone if !is_zone_number(zone.0) => FOREIGN.to_owned(),
        zone => zone.to_string(),
    }
}

fn flow_view(entry: &FlowStats) -> FlowView {
    FlowView {
        table: entry.table_id,
        priority: entry.priority,
        owner: owner(entry.cookie),
        cookie: format!("{:#x}", entry.cookie),
        duration_s: f64::from(entry.duration_s) + f64::from(entry.duration_ns) / 1e9,
        idle_timeout_s: entry.idle_timeout_s,
        hard_timeout_s: entry.hard_timeout_s,
        packets: entry.packet_count,
        bytes: entry.byte_count,
        matching: flow::text::match_to_string(&entry.matching),
        actions: flow::text::instructions_to_string(&entry.instructions),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::event::write;

    fn part(ticket: u64, more: bool, body: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        let reply = StatsReply { datapath: DatapathId(1), ticket, multipart: 1, more, body };
        assert!(write::stats_reply(&mut frame, 1, &reply));
        frame
    }

    /// A flow entry that drops every packet.
    fn entry() -> Vec<u8> {
        let mut bytes = vec![0; 56];
        bytes[1] = 56;
        bytes[48..52].copy_from_slice(&[0, 1, 0, 4]);
        bytes
    }

    fn programmed(ticket: u64) -> Vec<u8> {
        let mut frame = Vec::new();
        let none = flow::ErrorCode { kind: 0, code: 0 };
        let receipt = abi::Receipt { ticket, outcome: Outcome::Programmed, error: none, reason: "" };
        assert!(write::receipt(&mut frame, 1, DatapathId(1), &receipt));
        frame
    }

    fn flows(answers: &[Answered]) -> Vec<(usize, Option<&str>)> {
        match answers {
            [(7, Answer::Flows(views))] => {
                views.iter().map(|view| (view.flows.len(), view.trouble.as_deref())).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_answer_that_is_damaged_is_said_to_be() {
        let mut queries = OperatorQueries::default();
        let tickets = queries.open_flows(7, &[DatapathId(1)], 0);
        queries.on_frame(&part(tickets[0].1, false, &[0, 1]));
        let answers = queries.take_answers(0);
        assert!(flows(&answers)[0].1.is_some_and(|trouble| trouble.contains("cannot be read")));
    }

    #[test]
    fn an_entry_that_cannot_be_read_is_shown_as_bytes_and_hides_no_other() {
        let mut queries = OperatorQueries::default();
        let tickets = queries.open_flows(7, &[DatapathId(1)], 0);
        let mut unreadable = entry();
        unreadable[12..14].copy_from_slice(&[0, 9]);
        // A match that is longer than its entry.
        unreadable[50..52].copy_from_slice(&[0, 99]);
        queries.on_frame(&part(tickets[0].1, false, &[entry(), unreadable, entry()].concat()));
        let answers = queries.take_answers(0);
        assert_eq!(flows(&answers), [(3, None)]);
        let [(_, Answer::Flows(views))] = &answers[..] else { panic!("{answers:?}") };
        let shown = &views[0].flows[1];
        let found = (shown.priority, shown.matching.as_str(), shown.actions.as_str());
        assert_eq!(found, (9, "unreadable", "0x0001006300000000"));
    }

    #[test]
    fn a_switch_that_says_nothing_is_named_when_its_time_is_over() {
        let mut queries = OperatorQueries::default();
        let tickets = queries.open_flows(7, &[DatapathId(1), DatapathId(2)], 0);
        queries.on_frame(&part(tickets[0].1, false, &entry()));
        assert!(queries.take_answers(PATIENCE_MS - 1).is_empty());
        let answers = queries.take_answers(PATIENCE_MS);
        assert_eq!(flows(&answers), [(1, None), (0, Some("it did not answer in time"))]);
    }

    #[test]
    fn what_a_switch_says_twice_counts_once() {
        let mut queries = OperatorQueries::default();
        let tickets = queries.open_flows(7, &[DatapathId(1), DatapathId(2)], 0);
        let (first, second) = (tickets[0].1, tickets[1].1);
        queries.on_frame(&part(first, false, &entry()));
        queries.on_frame(&programmed(first));
        queries.on_frame(&part(first, false, &[0, 1]));
        queries.on_trouble(first, "it is gone");
        assert!(queries.take_answers(0).is_empty());
        queries.on_frame(&part(second, false, &entry()));
        assert_eq!(flows(&queries.take_answers(0)), [(1, None), (1, None)]);
    }

    #[test]
    fn an_answer_that_was_given_up_is_heard_no_more() {
        let mut queries = OperatorQueries::default();
        let tickets = queries.open_flows(7, &[DatapathId(1), DatapathId(2)], 0);
        queries.on_frame(&part(tickets[0].1, true, &[0, 1]));
        queries.on_frame(&part(tickets[0].1, true, &[0, 1]));
        queries.on_frame(&part(tickets[0].1, false, &[]));
        assert!(queries.take_answers(0).is_empty());
        queries.on_frame(&part(tickets[1].1, false, &[]));
        let answers = queries.take_answers(0);
        assert!(flows(&answers)[0].1.is_some_and(|trouble| trouble.contains("cannot be read")));
    }

    #[test]
    fn what_is_left_out_is_said_whatever_the_last_part_holds() {
        let mut queries = OperatorQueries::default();
        let tickets = queries.open_flows(7, &[DatapathId(1), DatapathId(2)], 0);
        let thousand = entry().repeat(1_000);
        let parts = FLOW_BYTES_MAX / FLOW_BYTES / 1_000 + 1;
        (0..parts).for_each(|_| queries.on_frame(&part(tickets[0].1, true, &thousand)));
        let other = queries.open_flows(8, &[DatapathId(1)], 0);
        queries.on_frame(&part(other[0].1, false, &entry()));
        queries.on_frame(&part(tickets[0].1, false, &[]));
        queries.on_frame(&part(tickets[1].1, false, &entry()));
        let mut answers = queries.take_answers(0);
        let Some((8, Answer::Flows(others))) = answers.pop() else { panic!("{answers:?}") };
        assert!(others[0].flows.is_empty(), "all questions have one room together");
        let left_out =
            "an answer holds 67108864 bytes of entries: the rest is missing; ask for a single switch";
        let found = flows(&answers);
        assert!(found[0].0 > 100_000 && found[0].1 == Some(left_out), "{found:?}");
        assert_eq!(found[1], (0, Some(left_out)));
    }

    #[test]
    fn a_rule_is_the_kernels_by_its_mark_alone_and_that_of_another_controller_is_foreign() {
        assert_eq!(owner(kernel::OWN_COOKIE), "kernel");
        for cookie in [0, 1, 1024 << 48, u64::MAX, kernel::OWN_COOKIE ^ 1] {
            assert_eq!(owner(cookie), "foreign", "{cookie:#x}");
        }
        assert_eq!(owner(ZoneId(1023).stamp(kernel::OWN_COOKIE)), "1023");
    }

    #[test]
    fn parts_are_put_together() {
        let mut queries = OperatorQueries::default();
        let tickets = queries.open_flows(7, &[DatapathId(1)], 0);
        queries.on_frame(&part(tickets[0].1, true, &entry()));
        assert!(queries.take_answers(0).is_empty());
        queries.on_frame(&part(tickets[0].1, false, &entry()));
        assert_eq!(flows(&queries.take_answers(0)), [(2, None)]);
    }

    #[test]
    fn counts_of_all_workers_are_waited_for() {
        let mut queries = OperatorQueries::default();
        let ticket = queries.open_apps(7, Vec::new(), 2, 0);
        queries.on_counts(ticket, Vec::new(), Vec::new(), Vec::new());
        assert!(queries.take_answers(0).is_empty());
        queries.on_counts(ticket, Vec::new(), Vec::new(), Vec::new());
        assert_eq!(queries.take_answers(0), [(7, Answer::Apps(Vec::new()))]);
    }

    #[test]
    fn counts_that_did_not_come_are_not_shown_as_none() {
        let mut queries = OperatorQueries::default();
        let apps = vec![an_app()];
        let ticket = queries.open_apps(7, apps, 2, 0);
        queries.on_counts(ticket, Vec::new(), Vec::new(), Vec::new());
        let answers = queries.take_answers(PATIENCE_MS);
        let [(7, Answer::Apps(apps))] = answers.as_slice() else { panic!("{answers:?}") };
        let said = "1 workers did not send their counters in time";
        assert_eq!(apps[0].trouble.as_deref(), Some(said));
    }

    fn an_app() -> AppStatus {
        AppStatus {
            app: "hub".into(),
            role: Default::default(),
            zone: 1,
            kind: monitor_channel::ZoneKind::Process,
            demoted: None,
            state: monitor_channel::AppState::Running,
            since_unix_ms: 0,
            restarts: 0,
            generation: 1,
            pid: None,
            last_end: None,
            not_enforced: Vec::new(),
            note: None,
            listens: Vec::new(),
        }
    }

    #[test]
    fn what_the_monitor_says_of_a_configuration_answers_who_asked() {
        let mut queries = OperatorQueries::default();
        let (first, second) = (queries.open_reload(7, 0), queries.open_reload(8, 0));
        queries.on_reloaded(second, Err("line 3".to_owned()));
        queries.on_counts(first, Vec::new(), Vec::new(), Vec::new());
        assert_eq!(queries.take_answers(PATIENCE_MS), [(8, Answer::Refused("line 3".to_owned()))]);
        let late = queries.take_answers(RELOAD_PATIENCE_MS);
        assert!(
            matches!(late.as_slice(), [(7, Answer::Refused(why))] if why.contains("was not read")),
            "{late:?}"
        );
        queries.on_reloaded(first, Ok(ReloadView::default()));
        assert!(queries.take_answers(u64::MAX).is_empty());
    }

    #[test]
    fn who_asked_for_a_copy_of_the_store_learns_whether_it_exists() {
        let mut queries = OperatorQueries::default();
        let tickets = [7, 8, 9].map(|operator_id| queries.open_save(operator_id, 0));
        queries.on_saved(tickets[0], None);
        queries.on_saved(tickets[1], Some("the disk is full".to_owned()));
        let refused = Answer::Refused("the disk is full".to_owned());
        assert_eq!(queries.take_answers(PATIENCE_MS), [(7, Answer::Done), (8, refused)]);
        let late = queries.take_answers(RELOAD_PATIENCE_MS);
        assert!(
            matches!(late.as_slice(), [(9, Answer::Refused(why))] if why.contains("was not copied")),
            "{late:?}"
        );
    }

    #[test]
    fn who_is_gone_gets_no_answer() {
        let mut queries = OperatorQueries::default();
        queries.open_apps(7, Vec::new(), 0, 0);
        queries.forget(7);
        assert!(queries.take_answers(0).is_empty());
    }
}
