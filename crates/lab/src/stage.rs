//! The lines that `burnet demo` and `burnet emulate` print about a running network.
//!
//! ```text
//!   events of an emulated network ──> Stage ──> lines with the time, on standard output or standard error
//! ```
//!
//! It never changes the network.

use emulator::{NetworkEvent, Observer};
use openflow::message::FlowMod;
use std::io::{IsTerminal, Write};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// How many lines of one kind are printed. Further ones are only counted.
const LINES_OF_A_KIND: u64 = 12;

/// Kinds of lines that [`LINES_OF_A_KIND`] bounds.
#[derive(Clone, Copy)]
enum Kind {
    Connected,
    Disconnected,
    PacketIn,
    FlowMod,
    Error,
    PingOk,
    PingLost,
}

/// How many kinds there are.
const KINDS: usize = Kind::PingLost as usize + 1;

/// Prints lines, each with the time since the stage was made.
pub(crate) struct Stage {
    began: Instant,
    to: Box<dyn Write + Send>,
    colours: bool,
    shown: [u64; KINDS],
    /// How many lines of each kind are printed.
    at_most: [u64; KINDS],
}

impl Stage {
    /// For output whose lines are the result: every ping and connection is printed.
    pub(crate) fn on_stdout() -> Self {
        let mut at_most = [u64::MAX; KINDS];
        at_most[Kind::PacketIn as usize] = LINES_OF_A_KIND;
        at_most[Kind::FlowMod as usize] = LINES_OF_A_KIND;
        let out = std::io::stdout();
        Stage { colours: out.is_terminal(), to: Box::new(out), at_most, ..Stage::on_stderr() }
    }

    /// For output whose lines only accompany a result: the first few of each kind are printed.
    pub(crate) fn on_stderr() -> Self {
        let err = std::io::stderr();
        Stage {
            began: Instant::now(),
            colours: err.is_terminal(),
            to: Box::new(err),
            shown: [0; KINDS],
            at_most: [LINES_OF_A_KIND; KINDS],
        }
    }

    /// Prints nothing.
    pub(crate) fn silent() -> Self {
        Stage { colours: false, to: Box::new(std::io::sink()), ..Stage::on_stderr() }
    }

    /// Prints no single packet-ins, flow mods and answered pings.
    pub(crate) fn only_trouble(mut self) -> Self {
        for kind in [Kind::PacketIn, Kind::FlowMod, Kind::PingOk, Kind::Connected] {
            self.at_most[kind as usize] = 0;
        }
        self
    }

    /// The time since the stage was made.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Shows a line.
    pub(crate) fn say(&mut self, line: &str) {
        let time = self.began.elapsed().as_secs_f64();
        // If the reader has closed the output, the network goes on.
        let _ = if self.colours {
            writeln!(self.to, "\x1b[2m{time:8.3}s\x1b[0m  {line}")
        } else {
            writeln!(self.to, "{time:8.3}s  {line}")
        };
    }

    /// Prints all events until now.
    pub(crate) fn show_all(&mut self, observer: &Observer) {
        while let Ok(event) = observer.try_next() {
            self.show(&event);
        }
    }

    /// Prints events for this time.
    pub(crate) fn show_within(&mut self, observer: &Observer, time: Duration) {
        match observer.next_within(time) {
            Ok(event) => self.show(&event),
            // The network has ended. The caller learns of that elsewhere. The sleep keeps it from a busy loop in the
            // meantime.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(time),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }

    /// Prints an event.
    pub(crate) fn show(&mut self, event: &NetworkEvent) {
        match event {
            NetworkEvent::SwitchConnected { datapath_id, version, .. } => {
                self.one_of(Kind::Connected, || format!("{datapath_id} connected, OpenFlow {version}"));
            }
            NetworkEvent::SwitchDisconnected { datapath_id, why, .. } => {
                self.one_of(Kind::Disconnected, || format!("{datapath_id} disconnected: {why}"));
            }
            NetworkEvent::PacketIn { datapath_id, in_port, total_len, buffered, .. } => {
                let kept = if *buffered { ", kept by the switch" } else { "" };
                self.one_of(Kind::PacketIn, || {
                    format!("OFPT_PACKET_IN   {datapath_id} port {in_port}, {total_len} bytes{kept}")
                });
            }
            NetworkEvent::FlowMod { datapath_id, flow_mod } => {
                self.one_of(Kind::FlowMod, || format!("OFPT_FLOW_MOD    {datapath_id} {}", rule(flow_mod)));
            }
            NetworkEvent::ErrorSent { datapath_id, kind, code } => {
                self.one_of(Kind::Error, || {
                    format!("OFPT_ERROR       {datapath_id} type {kind} code {code}")
                });
            }
            NetworkEvent::PingOk { from, to, round_trip } => self.one_of(Kind::PingOk, || {
                format!("{from} -> {to}  {:.3} ms", round_trip.as_secs_f64() * 1000.0)
            }),
            NetworkEvent::PingLost { from, to } => {
                self.one_of(Kind::PingLost, || format!("{from} -> {to}  lost"))
            }
            _ => {}
        }
    }

    fn one_of(&mut self, kind: Kind, line: impl FnOnce() -> String) {
        let at_most = self.at_most[kind as usize];
        let shown = &mut self.shown[kind as usize];
        *shown = shown.saturating_add(1);
        match *shown {
            number if number <= at_most => self.say(&line()),
            number if at_most > 0 && number == at_most + 1 => {
                self.say("… (further ones are only counted)");
            }
            _ => {}
        }
    }
}

fn rule(flow_mod: &FlowMod) -> String {
    let matching = flow::text::match_to_string(&flow_mod.matching);
    let actions = flow::text::instructions_to_string(&flow_mod.instructions);
    format!("priority={} {matching} actions={actions}", flow_mod.priority)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{DatapathId, PortNo};
    use std::sync::{Arc, Mutex};

    /// Lines that can be read while the stage owns the writer.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Written {
        fn stage(&self, stage: Stage) -> Stage {
            Stage { to: Box::new(self.clone()), colours: false, ..stage }
        }

        /// The lines without their times.
        fn lines(&self) -> Vec<String> {
            let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            text.lines().map(|line| line.split_once("s  ").unwrap().1.to_owned()).collect()
        }
    }

    fn packet_in() -> NetworkEvent {
        NetworkEvent::PacketIn {
            datapath_id: DatapathId(1),
            in_port: PortNo(2),
            reason: 0,
            total_len: 42,
            buffered: true,
        }
    }

    #[test]
    fn of_what_comes_often_the_first_are_shown() {
        let written = Written::default();
        let mut stage = written.stage(Stage::on_stdout());
        (0..50).for_each(|_| stage.show(&packet_in()));
        let lines = written.lines();
        assert_eq!(lines.len() as u64, LINES_OF_A_KIND + 1);
        assert_eq!(lines[0], "OFPT_PACKET_IN   of:0000000000000001 port 2, 42 bytes, kept by the switch");
        assert_eq!(lines[12], "… (further ones are only counted)");
    }

    #[test]
    fn where_only_trouble_is_shown_a_lost_ping_is() {
        let written = Written::default();
        let mut stage = written.stage(Stage::on_stderr().only_trouble());
        let (from, to) = ("h1".to_owned(), "h2".to_owned());
        stage.show(&packet_in());
        stage.show(&NetworkEvent::PingOk { from: from.clone(), to: to.clone(), round_trip: Duration::ZERO });
        stage.show(&NetworkEvent::PingLost { from, to });
        assert_eq!(written.lines(), ["h1 -> h2  lost"]);
    }
}
