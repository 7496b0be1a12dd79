//! A node with the services of the network view, its probe, and what an experiment asks of both.
//!
//! ```text
//!   experiment ──Node──> burnet run, with [network] and the probe
//!              ──Line──> probe: orders, and what it saw
//!              ──Handle─> emulated switches in this process
//! ```
//!
//! In: which services run, and what the probe follows. Out: words of the probe. It measures nothing by itself.

use super::planner::Wish;
use super::probe;
use super::protocol::{Asked, Counted, Order, Payload, ProbeSettings, Sight, Word, to_line};
use crate::lab::Lab;
use crate::network;
use crate::node::{Kind as NodeKind, Node};
use emulator::{Handle, SwitchOptions, Topology};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use view::Kind;

/// How long anything may take that an experiment waits for.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Between looks whether something holds.
const LOOK: Duration = Duration::from_millis(5);

/// What a node runs.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'p> {
    /// The services of the network view.
    pub services: &'p [&'p str],
    /// What the probe follows.
    pub kinds: &'p [Kind],
    /// Whether the probe also receives the kernel's events.
    pub raw: bool,
    /// More lines of configuration.
    pub more: &'p str,
}

/// A node with its probe.
pub struct Bed {
    node: Node,
    line: Line,
    // The node starts the probe by it again if it has to.
    _link: Link,
    /// Where switches connect.
    pub controller: SocketAddr,
}

/// The connection to the probe.
struct Line(BufReader<TcpStream>);

impl Bed {
    /// Starts a node, and waits until its probe is connected.
    ///
    /// # Errors
    /// It does not start: a sentence.
    pub fn start(lab: &Lab, plan: Plan<'_>) -> Result<Bed, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| format!("no socket: {error}"))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let settings = ProbeSettings { line: address.to_string(), kinds: plan.kinds.to_vec(), raw: plan.raw };
        let link = Link::place()?;
        let node = Node::start(lab, NodeKind::Burnet, &configuration(plan, &settings, &link.program()))?;
        let line = Line::accept(&listener, &node)?;
        let mut ready: Vec<&str> = plan.services.to_vec();
        ready.push(probe::NAME);
        let controller = node.wait(&ready)?;
        Ok(Bed { node, line, _link: link, controller })
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Starts switches that connect to the node, and waits for them.
    ///
    /// # Errors
    /// They do not connect: a sentence.
    pub fn network(&self, topology: &Topology) -> Result<Handle, String> {
        let network = network::begin(topology, self.controller, SwitchOptions::default())?;
        network.wait_connected(PATIENCE).map_err(|error| error.to_string())?;
        Ok(network)
    }

    fn order(&mut self, order: &Order) -> Result<(), String> {
        self.line.say(order)
    }

    fn order_and_wait(&mut self, order: &Order) -> Result<Word, String> {
        self.order(order)?;
        self.line.hear()
    }

    /// What the probe saw since the last report.
    ///
    /// # Errors
    /// The probe does not answer.
    pub fn report(&mut self) -> Result<Vec<Sight>, String> {
        match self.order_and_wait(&Order::Report)? {
            Word::Seen(sights) => Ok(sights),
            other => Err(unexpected(&other)),
        }
    }

    /// How much the probe's view has.
    ///
    /// # Errors
    /// The probe does not answer.
    pub fn count(&mut self) -> Result<Counted, String> {
        match self.order_and_wait(&Order::Count)? {
            Word::Counted(counted) => Ok(counted),
            other => Err(unexpected(&other)),
        }
    }

    /// Hands questions to the probe, which keeps them.
    ///
    /// # Errors
    /// The probe is gone.
    pub fn load(&mut self, service: &str, payloads: Vec<Payload>) -> Result<(), String> {
        self.order(&Order::Load { service: service.to_owned(), payloads })
    }

    /// Begins to ask the kept questions. [`Bed::asked`] waits for the end.
    ///
    /// # Errors
    /// The probe is gone.
    pub fn ask(&mut self, at_once: usize) -> Result<(), String> {
        self.order(&Order::Ask { at_once })
    }

    /// Begins to install paths that the probe computes. [`Bed::asked`] waits for the end.
    ///
    /// # Errors
    /// The probe is gone.
    pub fn install(&mut self, wish: &Wish) -> Result<(), String> {
        self.order(&Order::Install(wish.clone()))
    }

    /// Waits until all questions are answered, and each with success.
    ///
    /// # Errors
    /// A question was refused, or the probe does not answer.
    pub fn asked(&mut self) -> Result<Asked, String> {
        match self.line.hear()? {
            Word::Asked(asked) => match asked.failures.first() {
                None => Ok(asked),
                Some(why) => {
                    Err(format!("{} questions were refused, the first with {why}", asked.failures.len()))
                }
            },
            other => Err(unexpected(&other)),
        }
    }

    /// Asks one question.
    ///
    /// # Errors
    /// It was refused.
    pub fn question(&mut self, service: &str, text: &str) -> Result<String, String> {
        self.load(service, vec![Payload::Text(text.to_owned())])?;
        self.ask(1)?;
        self.asked().map(|asked| asked.last)
    }

    /// Begins to ask a question again and again, until the answer has this part. [`Bed::polled`] waits for the end.
    ///
    /// # Errors
    /// The probe is gone.
    pub fn poll(&mut self, service: &str, text: &str, interval: Duration, until: &str) -> Result<(), String> {
        self.load(service, vec![Payload::Text(text.to_owned())])?;
        let interval_us = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
        // Less than the patience for a word of the probe, so that the probe is the one that gives up.
        let most = PATIENCE.as_micros() / 2 / interval.as_micros().max(1);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        self.order(&Order::Poll { interval_us, until: until.to_owned(), most })
    }

    /// Asks a question so often, for an answer that never comes.
    ///
    /// # Errors
    /// The probe is gone.
    pub fn poll_in_vain(
        &mut self,
        service: &str,
        text: &str,
        interval: Duration,
        most: usize,
    ) -> Result<(), String> {
        self.load(service, vec![Payload::Text(text.to_owned())])?;
        let interval_us = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
        let until = "what no answer has".to_owned();
        match self.order_and_wait(&Order::Poll { interval_us, until, most })? {
            Word::Polled { .. } => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// When the answer had the part, and how many questions that took.
    ///
    /// # Errors
    /// It never had.
    pub fn polled(&mut self) -> Result<(u64, usize), String> {
        match self.line.hear()? {
            Word::Polled { at_ns: Some(at_ns), questions } => Ok((at_ns, questions)),
            Word::Polled { at_ns: None, questions } => {
                Err(format!("the answer was not as awaited after {questions} questions"))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Waits until the probe's view is complete, and has so many links that are up, each direction for itself.
    ///
    /// # Errors
    /// It has not in time.
    pub fn wait_links(&mut self, links: usize) -> Result<(), String> {
        let mut last = Counted::default();
        wait_until(&format!("{links} links are up"), || {
            last = self.count()?;
            Ok(last.is_current && last.links == links)
        })
        .map_err(|why| format!("{why}; the last was {last:?}"))
    }
}

/// Waits until something holds.
///
/// # Errors
/// It does not in time, or cannot be looked at.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    let began = Instant::now();
    while !holds()? {
        if began.elapsed() > PATIENCE {
            return Err(format!("within {} s it was not so that {what}", PATIENCE.as_secs()));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn unexpected(word: &Word) -> String {
    format!("the probe said something else than it was asked: {:.100}", format!("{word:?}"))
}

/// A folder with a link to this program by the name of the probe. It is removed with the value.
struct Link(PathBuf);

impl Drop for Link {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Link {
    fn place() -> Result<Link, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("burnet-probe-{}-{number}", std::process::id()));
        let trouble = |error: std::io::Error| format!("the probe cannot be placed: {error}");
        std::fs::create_dir_all(&folder).map_err(trouble)?;
        let link = Link(folder);
        symlink(std::env::current_exe().map_err(trouble)?, link.program()).map_err(trouble)?;
        Ok(link)
    }

    fn program(&self) -> PathBuf {
        self.0.join(probe::NAME)
    }
}

fn configuration(plan: Plan<'_>, settings: &ProbeSettings, program: &Path) -> String {
    let name = probe::NAME;
    let list = |words: &[&str]| words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ");
    let kinds: Vec<&str> = settings.kinds.iter().map(|kind| kind.word()).collect();
    format!(
        "[node]\nlog = \"warn\"\n[network]\nservices = [{services}]\n{more}\n\
         [app.{name}]\npath = '{program}'\n\
         [app.{name}.capabilities]\n'view.read' = true\n'host.read' = true\n'intent.read' = true\n'intent.write' = true\n\
         'flows.read' = true\n'flows.write' = true\n\
         [app.{name}.sandbox]\nnet.connect = ['{line}']\n\
         [app.{name}.limits]\nmemory_bytes = 1073741824\n\
         [app.{name}.settings]\nline = '{line}'\nkinds = [{kinds}]\nraw = {raw}\n",
        services = list(plan.services),
        more = plan.more,
        program = program.display(),
        line = settings.line,
        kinds = list(&kinds),
        raw = settings.raw,
    )
}

impl Line {
    /// Waits for the probe of a node.
    fn accept(listener: &TcpListener, node: &Node) -> Result<Line, String> {
        let trouble = |error: std::io::Error| format!("the probe cannot be heard: {error}");
        listener.set_nonblocking(true).map_err(trouble)?;
        let began = Instant::now();
        let stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(trouble(error)),
            }
            if began.elapsed() > PATIENCE || node.has_ended() {
                return Err(format!("the probe did not connect; the node's log: {}", node.log()));
            }
            std::thread::sleep(LOOK);
        };
        stream.set_nonblocking(false).map_err(trouble)?;
        stream.set_nodelay(true).map_err(trouble)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(trouble)?;
        let mut line = Line(BufReader::new(stream));
        match line.hear()? {
            Word::Ready => Ok(line),
            other => Err(unexpected(&other)),
        }
    }

    fn say(&mut self, order: &Order) -> Result<(), String> {
        let sent = self.0.get_mut().write_all(to_line(order).as_bytes());
        sent.map_err(|error| format!("the probe is gone: {error}"))
    }

    fn hear(&mut self) -> Result<Word, String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => Err("the probe has ended".to_owned()),
            Ok(_) => serde_json::from_str(&line).map_err(|error| format!("a word of the probe: {error}")),
            Err(error) => Err(format!("the probe does not answer: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_names_what_the_probe_may_do() {
        let plan = Plan { services: &["discovery"], kinds: &[Kind::Link], raw: true, more: "" };
        let settings = ProbeSettings { line: "127.0.0.1:1".to_owned(), kinds: vec![Kind::Link], raw: true };
        let text = configuration(plan, &settings, Path::new("/x/onos-probe"));
        for part in
            ["services = ['discovery']", "kinds = ['link']", "net.connect = ['127.0.0.1:1']", "raw = true"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
