//! The app `qos`: limits rates by meters, puts classes of packets into queues, and leaves forwarding to other apps.
//!
//! ```text
//!   limits: packets of a host, a port or a match ──> a meter ──┐
//!   classes: packets of a match ──> a queue ───────────────────┴──> next table: the rules of apps that forward
//! ```
//!
//! In: settings, the switches and hosts of the network view, and the queues that switches report. Out: one set of rules and meters for each switch, in the
//! service `flows`, and log lines. It creates no queue: OpenFlow cannot. It sees no packet.

mod queues;
mod settings;

use crate::queues::Queues;
use crate::settings::{Class, QosSettings};
use burnet_sdk::flow::Match;
use burnet_sdk::flow::canonical::write_match;
use burnet_sdk::stream::Update;
use burnet_sdk::view::{Batch, Kind, Snapshot, Switch};
use burnet_sdk::{
    App, AppTable, Commands, DatapathId, InstructionWriter, Interests, Level, QueryReply, Receipt, Settings,
    StatsReply, SwitchUp, Ticket,
};
use burnet_sdk_rules::traffic::Way;
use burnet_sdk_rules::{Items, Meter, Notes, Rule, RuleSets, Told, copy_items};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// The priorities: all packets go on; above it limits or classes, the first on top.
mod priority {
    pub const PASS_ON: u16 = 30_000;
    pub const FIRST: u16 = 30_999;
}

/// The flags of a meter (OpenFlow 1.3.5, 7.3.4.3): kbit/s, burst, statistics.
const METER_FLAGS: u16 = 1 | 1 << 2 | 1 << 3;

/// Quality of service.
pub struct Qos {
    settings: QosSettings,
    sets: RuleSets,
    queues: Queues,
    notes: Notes,
}

/// The app's table, for the kernel process of a node that has it built in. It is here and not there so that its code is built as the app's is.
pub static TABLE: AppTable = burnet_sdk::table::<Qos>();

/// Serves a zone until that ends, for a node that has the app built in.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Qos>()
}

impl App for Qos {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings = QosSettings::read(settings)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let sets = RuleSets::new(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        let queues = Queues::default();
        Ok(Qos { settings, sets, queues, notes: Notes::default() })
    }

    fn interests(&self) -> Interests {
        Interests::none().ticks().switches().view(&[Kind::Switch, Kind::Host])
    }

    fn on_switch_up(&mut self, up: &SwitchUp, out: &mut Commands) {
        if self.settings.classes.iter().any(|class| class.is_at(up.datapath)) {
            self.queues.ask(up.datapath, out);
        }
    }

    fn on_stats_reply(&mut self, reply: &StatsReply, _: &mut Commands) {
        let Some((switch, there)) = self.queues.hear(reply) else { return };
        let missing =
            self.settings.classes.iter().filter(|it| it.is_at(switch) && !there.contains(&it.queue));
        let lines: Vec<String> = missing.map(|class| no_queue(switch, class)).collect();
        lines.into_iter().for_each(|line| self.notes.tell(line));
    }

    fn on_view(&mut self, changes: &Batch, view: &Snapshot, out: &mut Commands) {
        if !changes.iter().all(|notice| notice.kind() == Kind::Port) {
            self.renew(view);
            self.sets.send(out);
        }
    }

    fn on_tick(&mut self, now_ms: u64, out: &mut Commands) {
        self.sets.on_tick_with_view(now_ms, out);
        let of_sets = self.sets.take_told().into_iter().filter_map(|told| match told {
            Told::Installed(_) => None,
            Told::Complaint(why) => Some(why),
            Told::Failed(_, failure) => {
                Some(format!("{} does not limit rates and choose queues: {}", failure.switch, failure.reason))
            }
        });
        self.notes.log(of_sets, Level::Warning, out);
    }

    fn on_stream(&mut self, stream: Ticket, update: &Update, out: &mut Commands) {
        self.sets.on_stream(stream, update, out);
    }

    fn on_query_reply(&mut self, reply: &QueryReply, out: &mut Commands) {
        self.sets.on_reply(reply, out);
    }

    fn on_receipt(&mut self, _: DatapathId, receipt: &Receipt, _: &mut Commands) {
        if !self.queues.forget(receipt.ticket) {
            self.sets.on_refusal(Ticket(receipt.ticket), receipt.reason);
        }
    }
}

impl Class {
    fn is_at(&self, switch: DatapathId) -> bool {
        self.switches.is_empty() || self.switches.contains(&switch)
    }
}

fn no_queue(switch: DatapathId, class: &Class) -> String {
    format!(
        "{switch} has no queue {} at any port: the packets of {:?} are sent like all others. OpenFlow cannot create a queue: configure it \
         at the switch, and let the switch connect again",
        class.queue, class.text
    )
}

impl Qos {
    fn renew(&mut self, view: &Snapshot) {
        for switch in view.switches() {
            let mut items = Vec::new();
            self.write_switch(switch, view, &mut Items::new(&mut items));
            self.sets.want(&format!("switch/{}", switch.id), |out| copy_items(&items, out));
        }
    }

    fn write_switch(&mut self, switch: &Switch, view: &Snapshot, items: &mut Items<'_>) {
        let is_v10 = switch.openflow == "1.0";
        let here = Here { switch: switch.id, is_v10 };
        if is_v10 {
            self.write_v10(&here, view, items);
            return;
        }
        self.write_limits(&here, view, items);
        let settings = &self.settings;
        let classes = settings.classes.iter().filter(|class| class.is_at(switch.id));
        for (number, class) in (0..).zip(classes) {
            here.write_class(
                settings.classes_table,
                priority::FIRST - number,
                class,
                settings.next_table,
                items,
            );
        }
        let Some(next) = settings.next_table else { return };
        let (first, second) = (settings.limits_table, settings.classes_table);
        if first != second {
            here.pass_on(first, second, items);
        }
        here.pass_on(second, next, items);
    }

    fn write_limits(&self, here: &Here, view: &Snapshot, items: &mut Items<'_>) {
        let QosSettings { limits, first_meter, limits_table, classes_table, next_table, .. } = &self.settings;
        let next = if limits_table == classes_table { *next_table } else { Some(*classes_table) };
        // Settings with limits have a next table.
        let Some(next) = next else { return };
        for (number, limit) in (0..).zip(limits) {
            let mut has_meter = [false; 2];
            for (way, matching) in limit.traffic.at(here.switch, view) {
                let direction = usize::from(way == Way::To);
                let meter_id = first_meter + 2 * u32::from(number) + u32::from(way == Way::To);
                if !std::mem::replace(&mut has_meter[direction], true) {
                    here.write_meter(meter_id, limit.rate_kbps, limit.burst_kbit, items);
                }
                let instructions = |it: &mut InstructionWriter<'_>| {
                    it.meter(meter_id).goto_table(next);
                };
                here.rule(*limits_table, priority::FIRST - number, &matching, instructions, items);
            }
        }
    }

    /// With OpenFlow 1.0 there are no meters and one table. Only classes with a port of their own are possible.
    fn write_v10(&mut self, here: &Here, view: &Snapshot, items: &mut Items<'_>) {
        let switch = here.switch;
        if self.settings.limits.iter().any(|limit| !limit.traffic.at(switch, view).is_empty()) {
            self.notes.tell(format!("{switch} limits no rates: OpenFlow 1.0 has no meters"));
        }
        let classes: Vec<Class> =
            self.settings.classes.iter().filter(|class| class.is_at(switch)).cloned().collect();
        for (number, class) in (0..).zip(&classes) {
            match class.out {
                Some(_) => here.write_class(0, priority::FIRST - number, class, None, items),
                None => self.notes.tell(format!(
                    "{switch} puts the packets of {:?} into no queue: OpenFlow 1.0 has one table, so the class needs a port `out`",
                    class.text
                )),
            }
        }
    }
}

/// A switch that gets rules.
struct Here {
    switch: DatapathId,
    is_v10: bool,
}

impl Here {
    fn rule(
        &self,
        table_id: u8,
        priority: u16,
        matching: &Match,
        instructions: impl FnOnce(&mut InstructionWriter<'_>),
        items: &mut Items<'_>,
    ) {
        let (mut match_bytes, mut bytes) = (Vec::new(), Vec::new());
        write_match(matching, &mut match_bytes);
        instructions(&mut InstructionWriter::new(&mut bytes));
        items.rule(&Rule {
            switch: self.switch,
            table_id,
            stage: 0,
            priority,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            matching: &match_bytes,
            instructions: &bytes,
        });
    }

    fn write_class(&self, table: u8, priority: u16, class: &Class, next: Option<u8>, items: &mut Items<'_>) {
        let instructions = |it: &mut InstructionWriter<'_>| {
            it.apply_actions(|actions| {
                actions.set_queue(class.queue);
                if let Some(port) = class.out {
                    actions.output(port, 0);
                }
            });
            if let Some(next) = next.filter(|_| class.out.is_none() && !self.is_v10) {
                it.goto_table(next);
            }
        };
        self.rule(table, priority, &class.matching, instructions, items);
    }

    /// A meter with one band, which drops (`ofp_meter_band_drop`).
    fn write_meter(&self, meter_id: u32, rate_kbps: u32, burst_kbit: u32, items: &mut Items<'_>) {
        let head = [0, 1, 0, 16];
        let bands = [&head[..], &rate_kbps.to_be_bytes(), &burst_kbit.to_be_bytes(), &[0; 4]].concat();
        items.meter(&Meter { switch: self.switch, meter_id, flags: METER_FLAGS, bands: &bands });
    }

    /// All packets of a table go on to another.
    fn pass_on(&self, table: u8, next: u8, items: &mut Items<'_>) {
        let go_on = |it: &mut InstructionWriter<'_>| {
            it.goto_table(next);
        };
        self.rule(table, priority::PASS_ON, &Match::any(), go_on, items);
    }
}

#[cfg(test)]
mod tests;
