//! What a command changes in a switch's tables, and whether two commands must keep their order.
//!
//! In: flow mods, as the kernel has accepted them. Out: yes or no. In doubt the answer is that they must. It knows neither time nor queues.

use abi::command::{FlowMod, GroupMod, MeterMod};
use abi::zone_id::COOKIE_MASK;
use flow::canonical::{actions_raw, buckets_raw, instructions_raw, read_match};
use flow::relation::{covers, is_nothing, overlaps};
use flow::{Action, Match};
use openflow::Version;

/// OFPTT_ALL: a delete in all tables.
const ALL_TABLES: u8 = 0xff;

/// OFPFF_CHECK_OVERLAP, in all versions.
const CHECK_OVERLAP: u16 = 1 << 1;

/// OFPG_ALL and OFPM_ALL: in a delete, all of them.
const ALL_GROUPS: u32 = 0xffff_fffc;
const ALL_METERS: u32 = 0xffff_ffff;

/// OFPGC_DELETE and OFPMC_DELETE.
const DELETE: u16 = 2;

/// What a command changes.
#[derive(Clone, Debug)]
pub enum Concern {
    /// No table: a barrier, a port mod, a packet-out, a question. It only keeps its place among the commands of its zone.
    Nothing,
    /// Rules: one flow mod, or those of a bundle.
    Rules(Vec<RuleChange>),
    /// A group or a meter, which rules may use.
    Shared(SharedChange),
}

/// A group or a meter, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// A group.
    Group(u32),
    /// A meter.
    Meter(u32),
}

impl Shared {
    /// Whether one of them is the other, or all of its kind.
    fn is(self, other: Shared) -> bool {
        let all = [Shared::Group(ALL_GROUPS), Shared::Meter(ALL_METERS)];
        let is_kind = matches!(
            (self, other),
            (Shared::Group(_), Shared::Group(_)) | (Shared::Meter(_), Shared::Meter(_))
        );
        self == other || is_kind && (all.contains(&self) || all.contains(&other))
    }
}

/// A group mod or a meter mod.
#[derive(Clone, Debug)]
pub struct SharedChange {
    of: Shared,
    /// The groups in its buckets.
    uses: Vec<Shared>,
    /// Whether it deletes the group or the meter, and so the rules that use it.
    deletes: bool,
}

impl SharedChange {
    /// Of a group mod.
    pub fn of_group(it: &GroupMod<'_>) -> Self {
        let buckets = buckets_raw(it.buckets).map_while(Result::ok);
        let uses = buckets.flat_map(|bucket| {
            let watched = Shared::Group(bucket.watch_group);
            groups_in(bucket.actions).chain([watched]).collect::<Vec<_>>()
        });
        SharedChange { of: Shared::Group(it.group_id), uses: uses.collect(), deletes: it.command == DELETE }
    }

    /// Of a meter mod.
    pub fn of_meter(it: &MeterMod<'_>) -> Self {
        SharedChange { of: Shared::Meter(it.meter_id), uses: Vec::new(), deletes: it.command == DELETE }
    }

    fn commutes(&self, other: &SharedChange) -> bool {
        let touches = |one: &SharedChange, other: &SharedChange| one.uses.iter().any(|it| it.is(other.of));
        !self.of.is(other.of) && !touches(self, other) && !touches(other, self)
    }
}

/// The groups to which actions send packets.
fn groups_in(actions: &[u8]) -> impl Iterator<Item = Shared> + '_ {
    actions_raw(actions).map_while(Result::ok).filter_map(|raw| match raw.read() {
        Ok(Action::Group(group_id)) => Some(Shared::Group(group_id)),
        _ => None,
    })
}

/// The groups and meters of a rule.
fn used_by(instructions: &[u8]) -> Vec<Shared> {
    let mut uses = Vec::new();
    for raw in instructions_raw(instructions).map_while(Result::ok) {
        uses.extend(raw.meter().map(Shared::Meter));
        uses.extend(raw.action_bytes().into_iter().flat_map(groups_in));
    }
    uses
}

/// How a flow mod changes rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It adds one, or replaces the same.
    Add,
    /// It changes rules that are there. In 1.0 it adds one if there is none.
    Modify,
    /// It deletes rules.
    Delete,
}

/// One flow mod.
#[derive(Clone, Debug)]
pub struct RuleChange {
    /// What it does.
    pub kind: ChangeKind,
    /// Its priority.
    pub priority: u16,
    /// The table; `None`: all.
    table_id: Option<u8>,
    /// The match. `None`: it is not known what it meets.
    matching: Option<Match>,
    cookie: u64,
    /// The bits of the cookie by which a modify or a delete selects rules.
    cookie_mask: u64,
    checks_overlap: bool,
    may_add: bool,
    /// The groups and meters that the rule uses.
    uses: Vec<Shared>,
}

impl RuleChange {
    /// Of a flow mod that goes out with this cookie. A switch of 1.0 has one table for its controller, and selects nothing by cookie.
    pub fn of(it: &FlowMod<'_>, cookie: u64, version: Version) -> Self {
        let kind = match it.command {
            0 => ChangeKind::Add,
            1 | 2 => ChangeKind::Modify,
            _ => ChangeKind::Delete,
        };
        let is_1_0 = version == Version::V1_0;
        let is_everywhere = it.table_id == ALL_TABLES && kind == ChangeKind::Delete;
        RuleChange {
            kind,
            priority: it.priority,
            table_id: (!is_everywhere || is_1_0).then_some(if is_1_0 { 0 } else { it.table_id }),
            // What contradicts itself meets nothing, and is still a rule.
            matching: read_match(it.matching).ok().filter(|matching| !is_nothing(matching)),
            cookie,
            cookie_mask: if is_1_0 { 0 } else { it.cookie_mask },
            checks_overlap: it.flags & CHECK_OVERLAP != 0,
            may_add: kind == ChangeKind::Add || is_1_0 && kind == ChangeKind::Modify,
            uses: used_by(it.instructions),
        }
    }

    /// Whether a flow mod may leave one more rule in a table: an add, and in 1.0 a modify. Returns the table.
    pub fn may_add_to(&self) -> Option<u8> {
        self.may_add.then_some(self.table_id)?
    }

    /// Its match. `None`: it is not known what it meets.
    pub fn matching(&self) -> Option<&Match> {
        self.matching.as_ref()
    }

    /// Whether a packet may match rules of both.
    fn meets(&self, other: &RuleChange) -> bool {
        let in_one_table = match (self.table_id, other.table_id) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        in_one_table
            && match (&self.matching, &other.matching) {
                (Some(one), Some(other)) => overlaps(one, other),
                _ => true,
            }
    }

    /// Whether both match the same packets. A switch can take them for one rule only then.
    fn is_same(&self, other: &RuleChange) -> bool {
        match (&self.matching, &other.matching) {
            (Some(one), Some(other)) => covers(one, other) && covers(other, one),
            _ => true,
        }
    }

    /// Whether this modify or delete selects by cookie, and so leaves rules with that cookie alone.
    fn spares(&self, cookie: u64, known: u64) -> bool {
        (self.cookie ^ cookie) & self.cookie_mask & known != 0
    }

    /// Whether the tables are the same afterwards, whichever comes first.
    fn commutes(&self, other: &RuleChange) -> bool {
        use ChangeKind::{Add, Delete, Modify};
        match (self.kind, other.kind) {
            (Delete, Delete) => true,
            (Add, Add) => {
                let may_refuse = self.checks_overlap || other.checks_overlap;
                !self.meets(other) || !(self.is_same(other) || may_refuse && self.priority == other.priority)
            }
            (Add, _) => !self.checks_overlap && other.spares(self.cookie, u64::MAX) || !self.meets(other),
            (_, Add) => !other.checks_overlap && self.spares(other.cookie, u64::MAX) || !self.meets(other),
            (Modify, _) | (_, Modify) => self.spares(other.cookie, other.cookie_mask) || !self.meets(other),
        }
    }

    /// The same for a group or a meter. Its delete deletes the rules that use it (1.3.5, 6.7). A modify may change such a rule, unless
    /// it selects the rules of its own zone, which use no other zone's groups. The delete
    /// also deletes rules, and while such a rule is there, the switch may refuse an add that checks for overlap.
    fn commutes_with_shared(&self, other: &SharedChange) -> bool {
        let is_wide = self.kind == ChangeKind::Modify && self.cookie_mask & !COOKIE_MASK != !COOKIE_MASK;
        let may_be_refused = self.checks_overlap && other.deletes;
        !is_wide && !may_be_refused && !self.uses.iter().any(|it| it.is(other.of))
    }
}

impl Concern {
    /// Whether two commands of different zones must keep their order, so that the tables end as the kernel expects.
    pub fn must_keep_order(&self, other: &Concern) -> bool {
        match (self, other) {
            (Concern::Nothing, _) | (_, Concern::Nothing) => false,
            (Concern::Shared(this), Concern::Shared(that)) => !this.commutes(that),
            (Concern::Shared(shared), Concern::Rules(rules))
            | (Concern::Rules(rules), Concern::Shared(shared)) => {
                rules.iter().any(|rule| !rule.commutes_with_shared(shared))
            }
            (Concern::Rules(these), Concern::Rules(those)) => {
                these.iter().any(|this| those.iter().any(|that| !this.commutes(that)))
            }
        }
    }

    /// The flow mods.
    pub fn rules(&self) -> &[RuleChange] {
        match self {
            Concern::Rules(changes) => changes,
            Concern::Nothing | Concern::Shared(_) => &[],
        }
    }

    /// The add, if it is one: not a bundle, and no other command.
    pub fn as_add(&self) -> Option<&RuleChange> {
        match self {
            Concern::Rules(changes) => match &changes[..] {
                [add] if add.kind == ChangeKind::Add => Some(add),
                _ => None,
            },
            Concern::Nothing | Concern::Shared(_) => None,
        }
    }

    /// Whether two adds of one zone may change places: no packet ever matches both.
    pub fn may_swap(&self, other: &Concern) -> bool {
        match (self.as_add(), other.as_add()) {
            (Some(one), Some(other)) => !one.meets(other),
            _ => false,
        }
    }

    /// How many comparisons one with another costs at most.
    pub fn size(&self) -> usize {
        match self {
            Concern::Rules(changes) => changes.len(),
            Concern::Nothing | Concern::Shared(_) => 1,
        }
    }
}
