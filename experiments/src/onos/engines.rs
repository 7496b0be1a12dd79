//! The engines of the services `paths` and `flows` in this process, for what needs no node: how much they compute in a second.
//!
//! ```text
//!   flows of the paper ──> paths::Engine ──batches──> flows::Engine ──flow mods──> a counter
//! ```
//!
//! In: a network and flows. Out: counts and times. Nothing is stored, sent or confirmed by a switch.

use super::flows::add;
use super::wan::{Wan, datapath};
use burnet_sdk::Outcome;
use flow::{DatapathId, ErrorCode};
use flows::change::Put;
use flows_contract::{Batch, Change, SetOptions, read_batch};
use paths::engine::{Effect, Engine, Event, Kept};
use paths_contract::Addition;
use std::time::{Duration, Instant};
use view::{IntentId, Link, LinkId, LinkKind, LinkState, Switch, SwitchState};

/// The engine of intents, and the batches that it wrote.
pub struct PathsEngine {
    engine: Engine,
    effects: Vec<Effect>,
    batch: Batch,
    /// The payloads of all batches that were full.
    pub full: Vec<Vec<u8>>,
    keeps: bool,
    /// How many sets of rules were written.
    pub written: usize,
}

impl PathsEngine {
    /// An engine that knows this network. `keeps`: it keeps the batches.
    pub fn new(wan: &Wan, keeps: bool) -> PathsEngine {
        let mut paths = PathsEngine {
            engine: Engine::new(1, 0, 0),
            effects: Vec::new(),
            batch: Batch::new(),
            full: Vec::new(),
            keeps,
            written: 0,
        };
        for index in 0..wan.switches() {
            paths.tell(Event::Switch(&switch(datapath(index))));
        }
        for cable in &wan.cables {
            paths.set_cable(wan, *cable, LinkState::Up);
        }
        paths.tell(Event::Loaded);
        paths
    }

    /// A cable fails or heals.
    pub fn set_cable(&mut self, wan: &Wan, cable: (usize, usize), state: LinkState) {
        let Some((from, to)) = wan.ends(cable) else { return };
        for id in [LinkId { from, to }, LinkId { from: to, to: from }] {
            self.tell(Event::Link(&link(id, state)));
        }
    }

    /// Adds a flow.
    pub fn add(&mut self, wan: &Wan, pair: (usize, usize), number: u32) {
        let Addition { name, intent, annotations } = add(wan, pair, number);
        let (id, owner) = (IntentId(u64::from(number) + 1), "probe".to_owned());
        self.tell(Event::Stored(Kept {
            id,
            owner,
            name,
            wanted: Box::new(intent),
            annotations,
            places: None,
        }));
    }

    /// Compiles all that waits.
    pub fn compile(&mut self) {
        while self.engine.next_due_ms(0).is_some() {
            self.tell(Event::Time);
        }
    }

    fn tell(&mut self, event: Event<'_>) {
        self.engine.on_event(event, 0, &mut self.effects);
        for effect in std::mem::take(&mut self.effects) {
            if let Effect::PutRules(id) = effect {
                self.written += 1;
                if !self.write(id) {
                    self.finish_batch();
                    self.write(id);
                }
            }
        }
    }

    fn write(&mut self, id: u64) -> bool {
        let PathsEngine { engine, batch, .. } = self;
        batch.put(&format!("intent/{id}"), 1, SetOptions::default(), |items| engine.write_rules(id, items))
    }

    /// Keeps the batch as it is, and begins another.
    pub fn finish_batch(&mut self) {
        if self.keeps && !self.batch.is_empty() {
            self.full.push(self.batch.as_bytes().to_vec());
        }
        self.batch.clear();
    }
}

fn switch(id: DatapathId) -> Switch {
    let (description, annotations) = Default::default();
    let (state, openflow) = (SwitchState::Up, "1.3".to_owned());
    Switch { id, state, openflow, n_tables: 1, n_buffers: 0, description, since_ms: 0, annotations }
}

fn link(id: LinkId, state: LinkState) -> Link {
    let (found, capacity_kbps, annotations) = (LinkKind::Direct, 10_000_000, Default::default());
    Link { id, found, state, capacity_kbps, latency_us: None, since_ms: 0, annotations }
}

/// The engine of rules. Its switches are connected, and every command is confirmed at once.
pub struct FlowsEngine {
    engine: flows::engine::Engine,
    owner: u32,
    ticket: u64,
    sent: Vec<(DatapathId, u64)>,
    /// How many commands were sent.
    pub commands: u64,
}

impl FlowsEngine {
    /// With so many switches.
    ///
    /// # Errors
    /// The usual settings are refused.
    pub fn new(switches: usize) -> Result<FlowsEngine, String> {
        let mut engine = flows::engine::Engine::new(&flows::policy::Settings::default(), 0)?;
        let owner = engine.owner("paths");
        let mut flows = FlowsEngine { engine, owner, ticket: 0, sent: Vec::new(), commands: 0 };
        for index in 0..switches {
            flows.act(|engine, send| engine.on_up(datapath(index), false, 0, send));
        }
        while let Some((switch, ticket)) = flows.sent.pop() {
            flows.act(|engine, send| {
                engine.on_report(switch, (ticket, false), &[], 0, send);
            });
        }
        flows.commands = 0;
        Ok(flows)
    }

    fn act(&mut self, act: impl FnOnce(&mut flows::engine::Engine, &mut flows::outgoing::Sender<'_>)) {
        let FlowsEngine { engine, ticket, sent, commands, .. } = self;
        act(engine, &mut |switch, _| {
            *ticket += 1;
            *commands += 1;
            sent.push((switch, *ticket));
            *ticket
        });
    }

    /// Takes a batch, and confirms what it sends.
    ///
    /// # Errors
    /// The batch cannot be read, or a set is refused.
    pub fn take(&mut self, batch: &[u8], version: u64) -> Result<(), String> {
        for change in read_batch(batch)? {
            let Change::Put { name, options, items, .. } = change else { continue };
            let put = Put { owner: self.owner, name, version, options, items };
            let mut done = Ok(());
            self.act(|engine, send| done = engine.put(&put, 0, send));
            done.map_err(|(_, why)| why)?;
            self.confirm();
        }
        Ok(())
    }

    fn confirm(&mut self) {
        let nothing = ErrorCode { kind: 0, code: 0 };
        while !self.sent.is_empty() {
            for (switch, ticket) in std::mem::take(&mut self.sent) {
                let receipt = (ticket, Outcome::Programmed, nothing);
                self.act(|engine, send| engine.on_receipt(switch, receipt, "", 0, send));
            }
        }
    }
}

/// How many paths of six switches the engine of intents computes and writes in a second, beside others.
pub fn paths_per_s(wan: &Wan, six: &[(usize, usize)], beside: u32, time: Duration) -> f64 {
    let mut paths = PathsEngine::new(wan, false);
    let pair = |number: u32| six.get(number as usize % six.len().max(1)).copied().unwrap_or_default();
    for number in 0..beside {
        paths.add(wan, pair(number), number);
    }
    paths.compile();
    let (mut number, mut spent, mut done) = (beside, Duration::ZERO, 0_u32);
    while spent < time && done < 150_000 {
        let begin = number;
        let questions: Vec<_> = (0..1_000).map(|offset| (pair(begin + offset), begin + offset)).collect();
        let began = Instant::now();
        for (pair, number) in questions {
            paths.add(wan, pair, number);
        }
        paths.compile();
        spent += began.elapsed();
        (number, done) = (number + 1_000, done + 1_000);
    }
    f64::from(done) / spent.as_secs_f64().max(1e-9)
}

/// How many rules the engine of rules makes commands of and takes confirmations for in a second.
///
/// # Errors
/// A set is refused.
pub fn rules_per_s(wan: &Wan, six: &[(usize, usize)], paths: u32) -> Result<f64, String> {
    let mut writer = PathsEngine::new(wan, true);
    for number in 0..paths {
        writer.add(wan, six.get(number as usize % six.len().max(1)).copied().unwrap_or_default(), number);
    }
    writer.compile();
    writer.finish_batch();
    let mut flows = FlowsEngine::new(wan.switches())?;
    let began = Instant::now();
    for batch in &writer.full {
        flows.take(batch, 1)?;
    }
    Ok(flows.commands as f64 / began.elapsed().as_secs_f64().max(1e-9))
}

/// How many intents both engines together compile, decide and take confirmations for in a second.
///
/// # Errors
/// A set is refused.
pub fn intents_per_s(wan: &Wan, six: &[(usize, usize)], intents: u32) -> Result<f64, String> {
    let mut paths = PathsEngine::new(wan, true);
    let mut flows = FlowsEngine::new(wan.switches())?;
    let began = Instant::now();
    for number in 0..intents {
        paths.add(wan, six.get(number as usize % six.len().max(1)).copied().unwrap_or_default(), number);
        if number % 200 == 199 || number + 1 == intents {
            paths.compile();
            paths.finish_batch();
            for batch in std::mem::take(&mut paths.full) {
                flows.take(&batch, 1)?;
            }
        }
    }
    Ok(f64::from(intents) / began.elapsed().as_secs_f64().max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_six_switches_becomes_six_commands() {
        let wan = Wan::new(8, 8, 1);
        let mut paths = PathsEngine::new(&wan, true);
        paths.add(&wan, (0, 3), 0);
        paths.compile();
        paths.finish_batch();
        assert_eq!((paths.written, paths.full.len()), (1, 1));
        let mut flows = FlowsEngine::new(wan.switches()).unwrap();
        flows.take(&paths.full[0], 1).unwrap();
        assert_eq!(flows.commands, 4, "a ring of eight: three links");
    }
}
