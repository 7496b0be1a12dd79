//! `burnet app top`: shows what the apps of the running node use, updated continuously.
//!
//! ```text
//!   node ──UsageView──> text, a table with a small curve of the last ten seconds ──> the terminal, drawn over the previous table
//! ```
//!
//! It uses no terminal library, because it only draws a table over itself. The table has as many columns as fit into
//! the terminal. Keys sort it, and `q` and Ctrl-C end it.
//! It only asks the node for what it shows, and changes nothing.

use std::io::{self, IsTerminal, Read, Write};
use std::time::{Duration, Instant};

use monitor::{AppState, AppStatus, ZoneKind};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use zone::{Resource, Sample};

use super::stop_signal::StopSignal;
use super::table::{columns, line};
use super::{ask, json, unexpected};
use crate::cli::{AppTopArgs, CommandError, TopOrder};
use operator::contract::{Answer, AppUsageView, Question, UsageView};

/// Samples in a curve, one character each.
const CURVE_SAMPLES: usize = 20;

/// The characters of a curve, from nothing to the maximum.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The assumed size of a terminal that does not report it.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// Shows the table until Ctrl-C. Shows it once if `--once` is set or standard output is no terminal. Returns what is
/// left to print.
pub fn show(args: &AppTopArgs) -> Result<String, CommandError> {
    let usage = usage(args)?;
    if args.asking.json {
        return json(&usage);
    }
    if args.once || !io::stdout().is_terminal() {
        let width = io::stdout().is_terminal().then(|| size().0);
        return Ok(text(&usage, args.sort, width));
    }
    let stop = StopSignal::listen()?;
    let mut screen = Screen::take()?;
    let mut order = args.sort;
    screen.draw(&text(&usage, order, Some(size().0)))?;
    let interval = Duration::from_millis(usage.interval_ms.max(100));
    while !stop.came_within(Duration::ZERO) {
        match screen.key_within(interval, &stop) {
            Some(Key::Quit) => break,
            Some(Key::Sort(by)) => order = by,
            None => {}
        }
        // A node that restarts will answer soon.
        let shown = |usage: UsageView| text(&usage, order, Some(size().0));
        screen.draw(&self::usage(args).map_or_else(|error| format!("{error}\n"), shown))?;
    }
    Ok(String::new())
}

/// The requests that a user can make with keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Quit,
    Sort(TopOrder),
}

fn key(byte: u8) -> Option<Key> {
    Some(match byte {
        b'q' => Key::Quit,
        b'n' => Key::Sort(TopOrder::Node),
        b'c' => Key::Sort(TopOrder::Cpu),
        b'm' => Key::Sort(TopOrder::Memory),
        b'e' => Key::Sort(TopOrder::Events),
        b'o' => Key::Sort(TopOrder::Commands),
        b'r' => Key::Sort(TopOrder::Refused),
        _ => return None,
    })
}

fn usage(args: &AppTopArgs) -> Result<UsageView, CommandError> {
    match ask(&args.asking, &Question::Usage)? {
        Answer::Usage(usage) => Ok(usage),
        _ => Err(unexpected()),
    }
}

/// The line below the table.
const KEYS: &str = "q ends it; sort by: c cpu  m memory  e events  o commands  r refused  n none";

/// The time that a read waits for a key, in tenths of a second, which is the unit of terminals.
const KEY_TENTHS: u8 = 1;

/// The terminal. Its content and mode are restored when this is dropped.
struct Screen {
    out: io::Stdout,
    /// The previous mode, if keys can be read.
    before: Option<Termios>,
}

impl Screen {
    fn take() -> io::Result<Screen> {
        let mut out = io::stdout();
        // Switches to the alternate screen, without a cursor.
        out.write_all(b"\x1b[?1049h\x1b[?25l")?;
        Ok(Screen { out, before: keys_as_they_come() })
    }

    /// The next key with a meaning, if one arrives in this time and before the signal.
    fn key_within(&self, patience: Duration, stop: &StopSignal) -> Option<Key> {
        let until = Instant::now() + patience;
        while Instant::now() < until {
            if self.before.is_none() {
                stop.came_within(patience);
                return None;
            }
            let mut byte = [0];
            // Without a key the read returns after a tenth of a second.
            let read = io::stdin().read(&mut byte).unwrap_or_default();
            if let Some(key) = key(byte[0]).filter(|_| read == 1) {
                return Some(key);
            }
            if stop.came_within(Duration::ZERO) {
                return None;
            }
        }
        None
    }

    fn draw(&mut self, text: &str) -> io::Result<()> {
        let (width, height) = size();
        let lines = text.lines().chain(["", KEYS]).take(height);
        // Clears each line behind its end, and the screen behind the last line.
        let drawn: Vec<String> =
            lines.map(|line| line.chars().take(width).collect::<String>() + "\x1b[K").collect();
        write!(self.out, "\x1b[H{}\x1b[J", drawn.join("\r\n"))?;
        self.out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the terminal is gone, nothing needs to be restored.
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
        let _ = self.out.write_all(b"\x1b[?25h\x1b[?1049l");
        let _ = self.out.flush();
    }
}

/// Makes the terminal pass on each key at once, without showing it. Returns the previous mode; `None` if standard
/// input is no terminal.
fn keys_as_they_come() -> Option<Termios> {
    let before = tcgetattr(io::stdin()).ok()?;
    let mut ways = before.clone();
    // Ctrl-C still sends a signal.
    ways.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    ways.special_codes[SpecialCodeIndex::VMIN] = 0;
    ways.special_codes[SpecialCodeIndex::VTIME] = KEY_TENTHS;
    tcsetattr(io::stdin(), OptionalActions::Now, &ways).ok()?;
    Some(before)
}

fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => USUAL_SIZE,
    }
}

const HEADINGS: [&str; 18] = [
    "APP",
    "STATE",
    "RESTARTS",
    "CPU",
    "LIMIT",
    "",
    "MEMORY",
    "LIMIT",
    "",
    "FILES",
    "THREADS",
    "LAG",
    "STORE",
    "EVENTS/S",
    "DROPPED/S",
    "COMMANDS/S",
    "OUTS/S",
    "REFUSED/S",
];

/// The columns by importance. If not all fit, the first ones stay.
const BY_WORTH: [usize; 18] = [0, 1, 3, 6, 13, 15, 17, 2, 11, 14, 9, 10, 16, 12, 7, 4, 8, 5];

/// The longest name that is shown if not all columns fit.
const NAME_CHARS_MAX: usize = 24;

/// As many columns as fit into this width. All of them if the width is unknown.
fn text(usage: &UsageView, order: TopOrder, width: Option<usize>) -> String {
    let own = [("(kernel)", &usage.kernel), ("(monitor)", &usage.monitor)];
    let apps = sorted(&usage.apps, order);
    let apps = apps.into_iter().map(app_row);
    let rows: Vec<_> = apps.chain(own.map(|(name, samples)| node_row(name, samples))).collect();
    let over = |app: &AppUsageView| -> Vec<String> {
        app.over.iter().map(|excess| format!("{}: {excess}\n", app.status.app)).collect()
    };
    let over: String = usage.apps.iter().flat_map(over).collect();
    width.map_or_else(|| columns(HEADINGS, &rows), |width| fitting(&rows, width)) + &over
}

/// The table with the columns that fit.
fn fitting(rows: &[[String; 18]], width: usize) -> String {
    let cut = |row: &[String; 18]| {
        let mut row = row.clone();
        row[0] = row[0].chars().take(NAME_CHARS_MAX).collect();
        row
    };
    let rows: Vec<_> = [HEADINGS.map(str::to_owned)].into_iter().chain(rows.iter().map(cut)).collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let mut kept: Vec<usize> = Vec::new();
    let mut taken = 0;
    for column in BY_WORTH {
        let wanted = widest(column) + if kept.is_empty() { 0 } else { 2 };
        if taken + wanted <= width {
            taken += wanted;
            kept.push(column);
        }
    }
    kept.sort_unstable();
    let widths: Vec<usize> = kept.iter().map(|column| widest(*column)).collect();
    let cells = |row: &[String; 18]| kept.iter().map(|column| row[*column].clone()).collect::<Vec<_>>();
    rows.iter().map(|row| line(&cells(row), &widths)).collect()
}

/// The largest value comes first. Equal apps stay in the operator's order.
fn sorted(apps: &[AppUsageView], order: TopOrder) -> Vec<&AppUsageView> {
    let used = |app: &&AppUsageView| {
        let last = app.samples.last().copied().unwrap_or_default();
        std::cmp::Reverse(match order {
            TopOrder::Node => 0,
            TopOrder::Cpu => u64::from(last.cpu_percent),
            TopOrder::Memory => last.memory_bytes.unwrap_or_default(),
            TopOrder::Events => u64::from(last.events_per_s),
            TopOrder::Commands => u64::from(last.commands_per_s),
            TopOrder::Refused => u64::from(last.refusals_per_s),
        })
    };
    let mut apps: Vec<&AppUsageView> = apps.iter().collect();
    apps.sort_by_key(used);
    apps
}

fn app_row(app: &AppUsageView) -> [String; 18] {
    let AppStatus { app: name, state, restarts, pid, kind, .. } = &app.status;
    // For an app that does not run, the present use is shown: nothing.
    let is_trusted = *kind == ZoneKind::Trusted;
    let runs = pid.is_some() || is_trusted && *state == AppState::Running;
    let now = app.samples.last().copied().filter(|_| runs);
    let of = |resource: Resource| now.and_then(|sample| used_of(app, resource, &sample)).unwrap_or_else(dash);
    let rate = |rate: fn(&Sample) -> u32| now.map_or_else(dash, |sample| rate(&sample).to_string());
    [
        name.clone(),
        if is_trusted { format!("{}, trusted", word(*state)) } else { word(*state).to_owned() },
        restarts.to_string(),
        of(Resource::CpuPercent),
        hard_limit(app, Resource::CpuPercent).map_or_else(dash, |hard| Resource::CpuPercent.amount(hard)),
        curve(&app.samples, Resource::CpuPercent, hard_limit(app, Resource::CpuPercent)),
        if runs && is_trusted { "shared".to_owned() } else { of(Resource::MemoryBytes) },
        hard_limit(app, Resource::MemoryBytes).map_or_else(dash, |hard| Resource::MemoryBytes.amount(hard)),
        curve(&app.samples, Resource::MemoryBytes, hard_limit(app, Resource::MemoryBytes)),
        counted(app, Resource::OpenFiles, &of),
        counted(app, Resource::Processes, &of),
        of(Resource::LagMs),
        stored(app, &of),
        rate(|sample| sample.events_per_s),
        rate(|sample| sample.dropped_per_s),
        rate(|sample| sample.commands_per_s),
        rate(|sample| sample.packet_outs_per_s),
        rate(|sample| sample.refusals_per_s),
    ]
}

fn hard_limit(app: &AppUsageView, resource: Resource) -> Option<u64> {
    app.limits.iter().find(|limit| limit.resource == resource).map(|limit| limit.hard)
}

/// With a mark if usage is above the soft limit.
fn used_of(app: &AppUsageView, resource: Resource, sample: &Sample) -> Option<String> {
    let mark = if app.over.iter().any(|excess| excess.resource == resource) { "!" } else { "" };
    Some(resource.amount(resource.used(sample)?) + mark)
}

/// `12 KiB/1.0 MiB`, for an app that may write to the store.
fn stored(app: &AppUsageView, of: &impl Fn(Resource) -> String) -> String {
    let share = |hard| format!("{}/{}", of(Resource::StoreBytes), Resource::StoreBytes.amount(hard));
    hard_limit(app, Resource::StoreBytes).map_or_else(dash, share)
}

/// `17/64`.
fn counted(app: &AppUsageView, resource: Resource, of: &impl Fn(Resource) -> String) -> String {
    let hard = hard_limit(app, resource).map(|hard| format!("/{hard}")).unwrap_or_default();
    of(resource) + &hard
}

fn node_row(name: &str, samples: &[Sample]) -> [String; 18] {
    let now = samples.last();
    let of = |resource: Resource| {
        now.and_then(|sample| resource.used(sample)).map_or_else(dash, |used| resource.amount(used))
    };
    let mut row: [String; 18] = std::array::from_fn(|_| dash());
    row[0] = name.to_owned();
    row[3] = of(Resource::CpuPercent);
    row[5] = curve(samples, Resource::CpuPercent, None);
    row[6] = of(Resource::MemoryBytes);
    row[8] = curve(samples, Resource::MemoryBytes, None);
    row[9] = of(Resource::OpenFiles);
    row[10] = of(Resource::Processes);
    row
}

fn dash() -> String {
    "-".to_owned()
}

fn word(state: AppState) -> &'static str {
    match state {
        AppState::Starting => "starting",
        AppState::Running => "running",
        AppState::Ending => "ending",
        AppState::BackingOff { .. } => "starts again",
        AppState::Quarantined => "quarantined",
        AppState::Stopped => "stopped",
        AppState::Held => "held",
        AppState::Refused => "refused",
    }
}

/// The last samples as one line. Its full height is the hard limit, or the largest sample if there is no limit.
fn curve(samples: &[Sample], resource: Resource, hard: Option<u64>) -> String {
    let last = &samples[samples.len().saturating_sub(CURVE_SAMPLES)..];
    let used: Vec<u64> = last.iter().filter_map(|sample| resource.used(sample)).collect();
    let all = hard.or_else(|| used.iter().copied().max()).unwrap_or_default().max(1);
    let height = |used: &u64| {
        let eighth = u128::from(*used) * HEIGHTS.len() as u128 / u128::from(all);
        HEIGHTS[usize::try_from(eighth).unwrap_or(usize::MAX).min(HEIGHTS.len() - 1)]
    };
    used.iter().map(height).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use monitor::AppRole;
    use operator::contract::LimitView;
    use zone::Excess;

    const MIB: u64 = 1 << 20;

    fn memory(mib: &[u64]) -> Vec<Sample> {
        mib.iter().map(|mib| Sample { memory_bytes: Some(mib * MIB), ..Sample::default() }).collect()
    }

    #[test]
    fn a_curve_is_as_high_as_the_limit_and_no_higher() {
        let check = |samples: &[u64], hard, expected: &str| {
            assert_eq!(curve(&memory(samples), Resource::MemoryBytes, hard), expected);
        };
        check(&[], None, "");
        check(&[0], None, "▁");
        check(&[0, 4, 8], None, "▁▅█");
        check(&[0, 32, 63, 64, 500], Some(64 * MIB), "▁▅███");
        check(&[1; 60], Some(u64::MAX), &"▁".repeat(CURVE_SAMPLES));
        check(&[1], Some(0), "█");
    }

    #[test]
    fn each_key_below_the_table_does_what_it_says() {
        for letter in ["q ", "c ", "m ", "e ", "o ", "r ", "n "] {
            assert!(KEYS.contains(letter) && key(letter.as_bytes()[0]).is_some(), "{letter}");
        }
        assert_eq!((key(b'q'), key(b'x')), (Some(Key::Quit), None));
        assert!(KEYS.len() <= 80);
    }

    fn status(app: &str) -> AppStatus {
        AppStatus {
            app: app.into(),
            role: AppRole::App,
            zone: 1,
            kind: ZoneKind::Process,
            demoted: None,
            state: AppState::Running,
            since_unix_ms: 0,
            restarts: 2,
            generation: 3,
            pid: Some(7),
            last_end: None,
            not_enforced: Vec::new(),
            note: None,
            listens: Vec::new(),
        }
    }

    fn leaky() -> AppUsageView {
        let excess =
            Excess { resource: Resource::MemoryBytes, used: 60 * MIB, soft: 51 * MIB, hard: 64 * MIB };
        let limits = vec![
            LimitView { resource: Resource::MemoryBytes, soft: 51 * MIB, hard: 64 * MIB },
            LimitView { resource: Resource::OpenFiles, soft: 51, hard: 64 },
            LimitView { resource: Resource::StoreBytes, soft: MIB / 2, hard: MIB },
        ];
        let last = Sample {
            open_files: Some(9),
            processes: Some(1),
            lag_ms: Some(0),
            store_bytes: 12 << 10,
            commands_per_s: 5,
            ..memory(&[60])[0]
        };
        let samples = memory(&[8]).into_iter().chain([last]).collect();
        AppUsageView { status: status("leaky"), limits, over: vec![excess], samples }
    }

    fn trusted() -> AppUsageView {
        AppUsageView {
            status: AppStatus { kind: ZoneKind::Trusted, pid: None, ..status("inside") },
            limits: vec![LimitView { resource: Resource::CpuPercent, soft: 40, hard: 50 }],
            over: Vec::new(),
            samples: vec![Sample { cpu_percent: 25, packet_outs_per_s: 7, ..Sample::default() }],
        }
    }

    fn usage(apps: Vec<AppUsageView>) -> UsageView {
        UsageView {
            interval_ms: 500,
            apps,
            kernel: vec![Sample { open_files: Some(0), processes: Some(0), ..memory(&[3])[0] }],
            monitor: Vec::new(),
        }
    }

    #[test]
    fn the_table_shows_use_beside_limits() {
        let expected = "\
APP        STATE             RESTARTS  CPU   LIMIT      MEMORY     LIMIT         FILES  THREADS  LAG    STORE           EVENTS/S  DROPPED/S  COMMANDS/S  OUTS/S  REFUSED/S
leaky      running           2         0 %   -      ▁▁  60.0 MiB!  64.0 MiB  ▂█  9/64   1        0.0 s  12 KiB/1.0 MiB  0         0          5           0       0
inside     running, trusted  2         25 %  50 %   ▅   shared     -             -      -        -      -               0         0          0           7       0
(kernel)   -                 -         0 %   -      ▁   3.0 MiB    -         █   0      0        -      -               -         -          -           -       -
(monitor)  -                 -         -     -          -          -             -      -        -      -               -         -          -           -       -
leaky: memory_bytes: 60.0 MiB, with a soft limit of 51.0 MiB and a hard one of 64.0 MiB
";
        assert_eq!(text(&usage(vec![leaky(), trusted()]), TopOrder::Node, None), expected);
    }

    #[test]
    fn a_narrow_table_leaves_columns_out() {
        let usage = usage(vec![leaky(), trusted()]);
        let narrow = "\
APP        STATE             CPU   MEMORY     EVENTS/S  COMMANDS/S  REFUSED/S
leaky      running           0 %   60.0 MiB!  0         5           0
inside     running, trusted  25 %  shared     0         0           0
(kernel)   -                 0 %   3.0 MiB    -         -           -
(monitor)  -                 -     -          -         -           -
leaky: memory_bytes: 60.0 MiB, with a soft limit of 51.0 MiB and a hard one of 64.0 MiB
";
        assert_eq!(text(&usage, TopOrder::Node, Some(80)), narrow);
        let tiny = text(&usage, TopOrder::Node, Some(10));
        assert!(tiny.starts_with("APP\nleaky\n"), "{tiny}");
    }

    #[test]
    fn the_table_is_in_the_order_that_was_asked_for() {
        let usage = usage(vec![leaky(), trusted()]);
        let second = |order| text(&usage, order, Some(80)).lines().nth(1).unwrap().to_owned();
        assert!(second(TopOrder::Cpu).starts_with("inside"));
        assert!(second(TopOrder::Memory).starts_with("leaky"));
        assert!(second(TopOrder::Commands).starts_with("leaky"));
    }

    #[test]
    fn an_app_that_does_not_run_uses_nothing() {
        let mut app = AppUsageView { over: Vec::new(), ..leaky() };
        (app.status.pid, app.status.state) = (None, AppState::Quarantined);
        let all = text(&usage(vec![app]), TopOrder::Node, None);
        assert!(all.contains("leaky      quarantined  2         -    -      ▁▁  -        64.0 MiB"));
    }
}
