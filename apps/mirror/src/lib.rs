//! The app `mirror`: copies packets to a port, and leaves their forwarding to other apps.
//!
//! ```text
//!   table: packets of a mirror ──> a copy to the port, or with a tag on the way to it; then, as all others, to the next table
//!   next table: the rules of apps that forward; packets without a rule ──> the apps
//! ```
//!
//! In: settings, and the switches, links and hosts of the network view. Out: one set of rules for each switch, in the service `flows`. It sees no packet.
//! It changes no packet: a tag that it pushes for a copy is popped before the packet goes on.

mod settings;

use crate::settings::{Mirror as Wanted, MirrorSettings};
use burnet_sdk::flow::Match;
use burnet_sdk::flow::canonical::{ActionWriter, write_match};
use burnet_sdk::stream::Update;
use burnet_sdk::view::{Batch, ConnectPoint, Kind, Snapshot, Switch};
use burnet_sdk::{
    App, AppTable, Commands, DatapathId, Field, InstructionWriter, Interests, Level, PortNo, QueryReply,
    Receipt, Settings, Ticket,
};
use burnet_sdk_rules::tree::{self, Tree};
use burnet_sdk_rules::{Items, Notes, Rule, RuleSets, Told, copy_items};
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// The priorities: all packets go on; packets of mirrors, the first mirror on top; copies on their way.
mod priority {
    pub const PASS_ON: u16 = 31_000;
    pub const FIRST_MIRROR: u16 = 31_800;
    pub const COPY: u16 = 31_900;
}

/// The bit of a VLAN field that marks a tag (OpenFlow 1.3.5, 7.2.3.7), and the EtherType of a tag.
const PRESENT: u16 = 0x1000;
const TAG: u16 = 0x8100;

/// The most rules that copy in one switch: more than mirrors, as a port can have several hosts. Further ones are left out, and the operator is told.
const RULES_MAX: usize = 500;

/// The mirror.
pub struct Mirror {
    settings: MirrorSettings,
    sets: RuleSets,
    notes: Notes,
}

/// The app's table, for the kernel process of a node that has it built in. It is here and not there so that its code is built as the app's is.
pub static TABLE: AppTable = burnet_sdk::table::<Mirror>();

/// Serves a zone until that ends, for a node that has the app built in.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Mirror>()
}

impl App for Mirror {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings = MirrorSettings::read(settings)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let sets = RuleSets::new(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        Ok(Mirror { settings, sets, notes: Notes::default() })
    }

    fn interests(&self) -> Interests {
        Interests::none().ticks().view(&[Kind::Link, Kind::Host])
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
                Some(format!("{} makes no copies: {}", failure.switch, failure.reason))
            }
        });
        self.notes.log(of_sets, Level::Error, out);
    }

    fn on_stream(&mut self, stream: Ticket, update: &Update, out: &mut Commands) {
        self.sets.on_stream(stream, update, out);
    }

    fn on_query_reply(&mut self, reply: &QueryReply, out: &mut Commands) {
        self.sets.on_reply(reply, out);
    }

    fn on_receipt(&mut self, _: DatapathId, receipt: &Receipt, _: &mut Commands) {
        self.sets.on_refusal(Ticket(receipt.ticket), receipt.reason);
    }
}

impl Mirror {
    fn renew(&mut self, view: &Snapshot) {
        let ends = self.settings.mirrors.iter().map(|mirror| mirror.to.switch);
        let trees: BTreeMap<DatapathId, Tree> = ends.map(|end| (end, tree::to(view, end))).collect();
        for switch in view.switches() {
            let mut items = Vec::new();
            self.write_switch(switch, view, &trees, &mut Items::new(&mut items));
            self.sets.want(&format!("switch/{}", switch.id), |out| copy_items(&items, out));
        }
    }

    fn write_switch(
        &mut self,
        switch: &Switch,
        view: &Snapshot,
        trees: &BTreeMap<DatapathId, Tree>,
        items: &mut Items<'_>,
    ) {
        let MirrorSettings { table, next_table, mirrors } = self.settings.clone();
        let is_v10 = switch.openflow == "1.0";
        let here = Here { switch: switch.id, table: if is_v10 { 0 } else { table }, next_table };
        // Several mirrors may share an end and its VLAN.
        let ends: BTreeSet<_> = mirrors.iter().filter_map(|mirror| Some((mirror.vlan?, mirror.to))).collect();
        for (vlan, to) in ends {
            here.write_transit(vlan, to, &trees[&to.switch], items);
        }
        for (number, (matching, copies)) in (0..).zip(self.copies(switch, view, trees, &here, is_v10)) {
            here.write_copies(priority::FIRST_MIRROR - number, &matching, &copies, items);
        }
        if !is_v10 {
            here.write_rest(items);
        }
    }

    /// What is copied at a switch, and how the copies leave it. Mirrors of the same packets share a rule.
    fn copies(
        &mut self,
        switch: &Switch,
        view: &Snapshot,
        trees: &BTreeMap<DatapathId, Tree>,
        here: &Here,
        is_v10: bool,
    ) -> Vec<(Match, Vec<Exit>)> {
        let mut copies: Vec<(Match, Vec<Exit>)> = Vec::new();
        for mirror in self.settings.mirrors.clone() {
            for (_, matching) in mirror.traffic.at(switch.id, view) {
                let copy = here.copy(&mirror, &trees[&mirror.to.switch]).filter(|_| !is_v10);
                let known = copies.iter().position(|(other, _)| *other == matching);
                match (copy, known) {
                    (Some(copy), Some(at)) => copies[at].1.push(copy),
                    (Some(copy), None) if copies.len() < RULES_MAX => copies.push((matching, vec![copy])),
                    (Some(_), None) => {
                        self.notes.tell(format!("{} has {RULES_MAX} rules that copy: further ones are left out", switch.id));
                    }
                    (None, _) if is_v10 => self.notes.tell(format!(
                        "{} makes no copies: OpenFlow 1.0 has one table, so a packet cannot be copied and then be forwarded by another app",
                        switch.id
                    )),
                    (None, _) => self.notes.tell(format!(
                        "no path leads from {} to {}: its packets are not copied",
                        switch.id, mirror.to
                    )),
                }
            }
        }
        copies
    }
}

/// A switch, and the tables of its rules.
struct Here {
    switch: DatapathId,
    table: u8,
    next_table: u8,
}

/// How a copy leaves a switch.
#[derive(Clone, Copy, Debug)]
struct Exit {
    port: PortNo,
    tag: Option<u16>,
}

impl Exit {
    fn write(self, actions: &mut ActionWriter<'_>) {
        if let Some(vlan) = self.tag {
            actions.push_vlan(TAG).set_field(Field::VlanVid, vlan | PRESENT);
        }
        actions.output(self.port, 0);
        if self.tag.is_some() {
            actions.pop_vlan();
        }
    }
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

    /// How a copy for this mirror leaves here. `None`: no path leads to its end.
    fn copy(&self, mirror: &Wanted, tree: &Tree) -> Option<Exit> {
        if self.switch == mirror.to.switch {
            return Some(Exit { port: mirror.to.port, tag: None });
        }
        let link = tree.get(&self.switch)?;
        Some(Exit { port: link.from.port, tag: Some(mirror.vlan?) })
    }

    /// Packets of a mirror: copies leave, and the packet goes on as it was.
    fn write_copies(&self, priority: u16, matching: &Match, copies: &[Exit], items: &mut Items<'_>) {
        let instructions = |it: &mut InstructionWriter<'_>| {
            it.apply_actions(|actions| copies.iter().for_each(|copy| copy.write(actions)));
            it.goto_table(self.next_table);
        };
        self.rule(self.table, priority, matching, instructions, items);
    }

    /// Copies that come by a link: on to the end, and there out without the tag.
    fn write_transit(&self, vlan: u16, to: ConnectPoint, tree: &Tree, items: &mut Items<'_>) {
        let is_end = to.switch == self.switch;
        let Some(exit) = tree.get(&self.switch).map(|link| link.from.port).or(is_end.then_some(to.port))
        else {
            return;
        };
        for link in tree.values().filter(|link| link.to.switch == self.switch) {
            let matching =
                Match::any().with(Field::InPort, link.to.port).with(Field::VlanVid, vlan | PRESENT);
            let actions = |actions: &mut ActionWriter<'_>| {
                if is_end {
                    actions.pop_vlan();
                }
                actions.output(exit, 0);
            };
            let instructions = |it: &mut InstructionWriter<'_>| {
                it.apply_actions(actions);
            };
            self.rule(self.table, priority::COPY, &matching, instructions, items);
        }
    }

    /// All packets go on to the next table. The node brings those up that it has no rule for.
    fn write_rest(&self, items: &mut Items<'_>) {
        let go_on = |it: &mut InstructionWriter<'_>| {
            it.goto_table(self.next_table);
        };
        self.rule(self.table, priority::PASS_ON, &Match::any(), go_on, items);
    }
}

#[cfg(test)]
mod tests;
