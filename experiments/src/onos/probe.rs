//! The probe: an app in a process zone of the node under test, which sees the network as every app does and notes when.
//!
//! ```text
//!   node ──events, changes of the view, answers──> probe ──lines──> experiment
//!        <──questions to services────────────────        <──orders──
//! ```
//!
//! This program is the app if it is started by the name [`NAME`], through a link. It judges nothing, and programs no
//! switch.

use super::clock::now_ns;
use super::planner::{Planner, Wish};
use super::protocol::{Asked, Counted, Order, Payload, ProbeSettings, Sight, Word, to_line};
use burnet_sdk::view::{Batch, IntentState, Key, Kind, LinkState, Notice, Object, Snapshot, SwitchState};
use burnet_sdk::{
    App, AppLoop, Commands, DatapathId, Interests, PortStatus, QueryReply, Receipt, Settings, State,
    SwitchUp, query_status,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::Duration;

/// The name of the app.
pub const NAME: &str = "onos-probe";

/// The most sights that are kept for a report. Later ones are not noted.
const SIGHTS_MAX: usize = 1_000_000;

/// How long the probe waits after a service was busy.
const BUSY_TIME: Duration = Duration::from_millis(1);

/// The most batches of rules that are not answered yet: what a service has room for.
const BATCHES_AT_ONCE: usize = 3;

/// The most reasons of failures that are told.
const FAILURES_MAX: usize = 5;

/// The app.
pub struct Probe {
    settings: ProbeSettings,
    line: TcpStream,
    sights: Vec<Sight>,
    service: String,
    payloads: Vec<Vec<u8>>,
    planner: Planner,
    /// Paths that are not computed yet, and the number of the next one.
    planning: Option<(Wish, u32)>,
    task: Task,
}

/// What is under way.
enum Task {
    None,
    Asking { asked: Asked, next: usize, open: HashMap<u64, usize>, again: Vec<usize> },
    Polling { interval: Duration, until: String, most: usize, questions: usize },
}

impl App for Probe {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings: ProbeSettings = settings.read()?;
        let line = TcpStream::connect(&settings.line)
            .map_err(|error| format!("the experiment does not listen at {}: {error}", settings.line))?;
        let (sights, service, payloads, planner) = Default::default();
        Ok(Probe { settings, line, sights, service, payloads, planner, planning: None, task: Task::None })
    }

    fn interests(&self) -> Interests {
        let interests = Interests::none().view(&self.settings.kinds);
        if self.settings.raw { interests.switches().ports() } else { interests }
    }

    fn on_switch_up(&mut self, up: &SwitchUp, _: &mut Commands) {
        self.saw(true, format!("switch/{}", up.datapath), true);
    }

    fn on_switch_down(&mut self, datapath: DatapathId, _: &mut Commands) {
        self.saw(true, format!("switch/{datapath}"), false);
    }

    fn on_port_status(&mut self, status: &PortStatus, _: &mut Commands) {
        let facts = status.port.facts();
        self.saw(
            true,
            format!("port/{}/{}", status.datapath, facts.port_no),
            facts.live && !status.is_gone(),
        );
    }

    fn on_view(&mut self, changes: &Batch, _: &Snapshot, _: &mut Commands) {
        let at_ns = now_ns();
        for notice in changes.iter() {
            self.saw_at(at_ns, false, notice.key().to_string(), is_up(notice));
            match (notice.now(), notice.key()) {
                (Some(Object::Link(link)), _) => self.planner.put(link),
                (None, Key::Link(id)) => self.planner.remove(id),
                _ => {}
            }
        }
    }

    fn on_query_reply(&mut self, reply: &QueryReply, out: &mut Commands) {
        self.on_answer(reply.ticket, reply.status, reply.payload, out);
    }

    fn on_receipt(&mut self, _: DatapathId, receipt: &Receipt, out: &mut Commands) {
        if receipt.outcome != burnet_sdk::Outcome::Programmed {
            self.on_answer(receipt.ticket, u16::MAX, receipt.reason.as_bytes(), out);
        }
    }

    fn on_wake(&mut self, out: &mut Commands) {
        match &mut self.task {
            Task::Polling { questions, .. } => {
                *questions += 1;
                self.ask_first(out);
            }
            Task::Asking { .. } => self.ask_again(out),
            Task::None => {}
        }
    }
}

fn is_up(notice: &Notice) -> bool {
    match notice.now() {
        None => false,
        Some(Object::Switch(switch)) => switch.state == SwitchState::Up,
        Some(Object::Port(port)) => port.live,
        Some(Object::Link(link)) => link.state == LinkState::Up,
        Some(Object::Intent(intent)) => intent.state == IntentState::Installed,
        Some(_) => true,
    }
}

impl Probe {
    fn saw(&mut self, raw: bool, key: String, up: bool) {
        self.saw_at(now_ns(), raw, key, up);
    }

    fn saw_at(&mut self, at_ns: u64, raw: bool, key: String, up: bool) {
        if self.sights.len() < SIGHTS_MAX {
            self.sights.push(Sight { at_ns, raw, key, up });
        }
    }

    fn say(&mut self, word: &Word) {
        // The experiment may be over; then the node ends this process.
        let _ = self.line.write_all(to_line(word).as_bytes());
    }

    fn on_order(&mut self, order: Order, out: &mut Commands) {
        match order {
            Order::Load { service, payloads } => {
                self.service = service;
                self.payloads = payloads.iter().map(Payload::to_bytes).collect();
            }
            Order::Ask { at_once } => {
                let asked = Asked { began_ns: now_ns(), ..Asked::default() };
                self.task = Task::Asking { asked, next: 0, open: HashMap::new(), again: Vec::new() };
                self.ask_more(at_once, out);
                self.end_if_all_are_answered();
            }
            Order::Install(wish) => self.install(wish, out),
            Order::Poll { interval_us, until, most } => {
                let interval = Duration::from_micros(interval_us);
                self.task = Task::Polling { interval, until, most, questions: 1 };
                self.ask_first(out);
            }
            Order::Report => {
                let sights = std::mem::take(&mut self.sights);
                self.say(&Word::Seen(sights));
            }
            Order::Count => {
                let counted = count(&out.view(), out.view_is_current());
                self.say(&Word::Counted(counted));
            }
        }
    }

    /// Begins to install paths. Each batch is sent before the paths of the next one are computed.
    fn install(&mut self, wish: Wish, out: &mut Commands) {
        let asked = Asked { began_ns: now_ns(), ..Asked::default() };
        self.payloads.clear();
        self.service = flows_contract::SERVICE.to_owned();
        self.task = Task::Asking { asked, next: 0, open: HashMap::new(), again: Vec::new() };
        let first = wish.first;
        self.planning = Some((wish, first));
        self.plan_more(out);
    }

    /// Computes the paths of one more batch, and sends it if the service has room.
    fn plan_more(&mut self, out: &mut Commands) {
        let Probe { planner, planning, payloads, task, .. } = self;
        let Some((wish, next)) = planning else { return };
        match planner.plan(wish, *next) {
            Ok(Some((batch, after))) => {
                payloads.push(batch.as_bytes().to_vec());
                *next = after;
            }
            ended => {
                if let (Err(why), Task::Asking { asked, .. }) = (ended, task) {
                    asked.failures.push(why);
                }
                *planning = None;
            }
        }
        if let Task::Asking { open, .. } = &self.task
            && open.len() < BATCHES_AT_ONCE
        {
            self.ask_more(1, out);
        }
        self.end_if_all_are_answered();
    }

    fn ask_first(&mut self, out: &mut Commands) {
        if let Some(payload) = self.payloads.first() {
            out.query(&self.service, payload);
        }
    }

    fn ask_more(&mut self, at_most: usize, out: &mut Commands) {
        let Probe { service, payloads, task: Task::Asking { next, open, .. }, .. } = self else { return };
        let until = payloads.len().min(*next + at_most);
        for (number, payload) in payloads.iter().enumerate().take(until).skip(*next) {
            open.insert(out.query(service, payload).0, number);
        }
        *next = until;
    }

    /// Asks again what found the service busy.
    fn ask_again(&mut self, out: &mut Commands) {
        let Probe { service, payloads, task: Task::Asking { open, again, .. }, .. } = self else { return };
        for number in again.drain(..) {
            if let Some(payload) = payloads.get(number) {
                open.insert(out.query(service, payload).0, number);
            }
        }
    }

    fn on_answer(&mut self, ticket: u64, status: u16, payload: &[u8], out: &mut Commands) {
        match &mut self.task {
            Task::None => {}
            Task::Asking { asked, open, again, .. } => {
                let number = open.remove(&ticket);
                if status == query_status::SERVICE_BUSY {
                    again.extend(number);
                    return out.wake_after(BUSY_TIME);
                }
                asked.ended_ns = now_ns();
                match status {
                    0 => {
                        asked.done += 1;
                        asked.last = String::from_utf8_lossy(payload).into_owned();
                    }
                    _ if asked.failures.len() < FAILURES_MAX => {
                        asked.failures.push(format!("{status}: {}", String::from_utf8_lossy(payload)));
                    }
                    _ => {}
                }
                self.ask_more(1, out);
                self.end_if_all_are_answered();
            }
            Task::Polling { interval, until, most, questions } => {
                let found = String::from_utf8_lossy(payload).contains(until.as_str());
                if !found && questions < most {
                    return out.wake_after(*interval);
                }
                let word = Word::Polled { at_ns: found.then(now_ns), questions: *questions };
                self.task = Task::None;
                self.say(&word);
            }
        }
    }

    fn end_if_all_are_answered(&mut self) {
        let Task::Asking { asked, next, open, again } = &mut self.task else { return };
        let is_planned = self.planning.is_none();
        if is_planned && open.is_empty() && again.is_empty() && *next >= self.payloads.len() {
            let word = Word::Asked(std::mem::take(asked));
            self.task = Task::None;
            self.say(&word);
        }
    }
}

fn count(view: &Snapshot, is_current: bool) -> Counted {
    Counted {
        switches: view.switches().filter(|switch| switch.state == SwitchState::Up).count(),
        links: view.links().filter(|link| link.state == LinkState::Up).count(),
        hosts: view.count(Kind::Host),
        is_current,
    }
}

/// Whether this process was started as the app.
pub fn is_started() -> bool {
    std::env::args_os().next().is_some_and(|name| std::path::Path::new(&name).ends_with(NAME))
}

/// Serves the zone until it ends.
pub fn run() -> ExitCode {
    let ended = AppLoop::<Probe>::start().map_err(|error| (error.exit_code, error.reason));
    match ended.and_then(|app| serve(app).map_err(|why| (1, why))) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, why)) => {
            eprintln!("{why}");
            ExitCode::from(code)
        }
    }
}

/// Waits for the node and for orders. Orders are read as they come: an order never waits for the next one.
fn serve(mut app: AppLoop<Probe>) -> Result<(), String> {
    let line = app.act(|probe, _| probe.line.try_clone()).map_err(|error| error.reason)?;
    let line = line.map_err(|error| error.to_string())?;
    let mut orders = BufReader::with_capacity(1 << 20, line);
    app.act(|probe, _| probe.say(&Word::Ready)).map_err(|error| error.reason)?;
    let mut is_busy = true;
    loop {
        let (has_events, has_orders) = {
            let mut fds = [PollFd::new(&app, PollFlags::IN), PollFd::new(orders.get_ref(), PollFlags::IN)];
            let no_time = Timespec { tv_sec: 0, tv_nsec: 0 };
            let _ = poll(&mut fds, is_busy.then_some(&no_time));
            (!fds[0].revents().is_empty(), !fds[1].revents().is_empty())
        };
        if has_events || is_busy {
            match app.turn().map_err(|error| error.reason)? {
                State::Ended => return Ok(()),
                state => is_busy = state == State::Busy,
            }
        }
        if has_orders && !take_orders(&mut orders, &mut app)? {
            return Ok(());
        }
        let plans = |probe: &mut Probe, out: &mut Commands| {
            probe.plan_more(out);
            probe.planning.is_some()
        };
        is_busy |= app.act(plans).map_err(|error| error.reason)?;
    }
}

/// Carries out the orders that have arrived. Returns whether the experiment is still there.
fn take_orders(orders: &mut BufReader<TcpStream>, app: &mut AppLoop<Probe>) -> Result<bool, String> {
    loop {
        let mut line = String::new();
        if orders.read_line(&mut line).map_err(|error| error.to_string())? == 0 {
            return Ok(false);
        }
        let order: Order = serde_json::from_str(&line).map_err(|error| format!("an order: {error}"))?;
        app.act(|probe, out| probe.on_order(order, out)).map_err(|error| error.reason)?;
        if orders.buffer().is_empty() {
            return Ok(true);
        }
    }
}
