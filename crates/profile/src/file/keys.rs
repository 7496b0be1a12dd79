//! The keys of a profile: the one description by which a file is read, written and listed.
//!
//! In: a profile and a visitor. The visitor receives every key in the order of the file, with the form of its value. A reader changes
//! the values, a writer only looks at them.

use super::form::{Cost, Count, Fields, Form, Maybe, Name, Number, Table, Text, Truth, Word, WordList};
use crate::barrier::{Barrier, BarrierKind};
use crate::cpu::{Cpu, MessageType, QueueFull, Service};
use crate::curve::Curve;
use crate::delay::Delay;
use crate::hardware::{
    AddCost, CAPACITIES_MAX, Capacity, Hardware, ModifyKind, Stall, StallInterval, VICTIMS_MAX, Victim,
    WhenFull,
};
use crate::install::{BufferFull, Install};
use crate::measurement::{FITS_MAX, Fit, Measurement, NOT_MEASURED_MAX, NotMeasured};
use crate::packet_in::{PacketIn, PacketInRate};
use crate::quantiles::{Quantiles, VALUE_MAX_US};
use crate::software::{
    PROMOTION_BATCH_MAX, PROMOTION_PERIOD_MIN_US, Promotion, PromotionOrder, Software, SoftwareUse,
};
use crate::switch::{OpenFlowVersion, RECOGNITIONS_MAX, Recognition, Switch};
use crate::timeouts::Timeouts;
use crate::whole::Profile;
use std::ops::RangeInclusive;

/// The schema that this version reads and writes.
pub const SCHEMA: u32 = 1;

/// Whether a key must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// It must.
    Required,
    /// It has this value otherwise, as TOML.
    Default(&'static str),
    /// Without it, this holds.
    Absent(&'static str),
}

/// What receives the keys.
pub(super) trait Visitor {
    /// A key with a value.
    fn value(&mut self, key: &'static str, need: Need, form: &mut dyn Form);
    /// The start of a table. False: it is not there, and its keys are left out. `there` says whether the profile has it now.
    fn open(&mut self, key: &'static str, need: Need, there: bool) -> bool;
    /// Its end.
    fn close(&mut self);
    /// A list of tables. Out: how many there are. `have` says how many the profile has now.
    fn list(&mut self, key: &'static str, need: Need, have: usize, max: usize) -> usize;
    /// The start of one of them.
    fn open_item(&mut self, key: &'static str, index: usize);
    /// Whether keys are visited that the profile's other values exclude.
    fn wants_all(&self) -> bool {
        false
    }
}

/// A rate. Zero would stop the switch.
const RATE: RangeInclusive<f64> = 0.001..=1e9;
/// A rate in bits a second.
const BIT_RATE: RangeInclusive<f64> = 1e3..=1e13;
/// A time.
const TIME_US: RangeInclusive<f64> = 0.0..=VALUE_MAX_US;
/// A time that passes between two of something.
const PERIOD_US: RangeInclusive<f64> = 1.0..=VALUE_MAX_US;
/// Rules, messages or packets.
const COUNT: RangeInclusive<u32> = 1..=100_000_000;
/// Characters of a name for people.
const NAME_CHARS: usize = 200;
/// Characters of a sentence.
const SENTENCE_CHARS: usize = 1000;

const NO_BOUND: Need = Need::Absent("no bound");

/// Visits every key.
pub(super) fn visit(profile: &mut Profile, v: &mut dyn Visitor) {
    v.value("name", Need::Required, &mut Name(&mut profile.name));
    v.value("about", Need::Default("\"\""), &mut Text(&mut profile.about, SENTENCE_CHARS));
    table(v, "switch", &mut profile.switch, switch);
    table(v, "cpu", &mut profile.cpu, cpu);
    table(v, "delay", &mut profile.delay, delay);
    table(v, "packet_in", &mut profile.packet_in, packet_in);
    optional_table(v, "hardware", "no hardware table", &mut profile.hardware, hardware);
    optional_table(v, "install", "rules go to the hardware at once", &mut profile.install, install);
    optional_table(v, "software", "no software table", &mut profile.software, software);
    table(v, "timeouts", &mut profile.timeouts, timeouts);
    table(v, "barrier", &mut profile.barrier, barrier);
    table(v, "measurement", &mut profile.measurement, measurement);
}

/// A table that every profile has; without its header, all its keys have their defaults.
fn table<T>(v: &mut dyn Visitor, key: &'static str, part: &mut T, keys: fn(&mut T, &mut dyn Visitor)) {
    if v.open(key, Need::Absent("all defaults"), true) {
        keys(part, v);
        v.close();
    }
}

fn optional_table<T: Default>(
    v: &mut dyn Visitor,
    key: &'static str,
    otherwise: &'static str,
    part: &mut Option<T>,
    keys: fn(&mut T, &mut dyn Visitor),
) {
    if v.open(key, Need::Absent(otherwise), part.is_some()) {
        keys(part.get_or_insert_default(), v);
        v.close();
    }
}

fn list<T: Clone + Default>(
    v: &mut dyn Visitor,
    (key, need, max): (&'static str, Need, usize),
    items: &mut Vec<T>,
    keys: fn(&mut T, &mut dyn Visitor),
) {
    let count = v.list(key, need, items.len(), max);
    items.resize(count, T::default());
    for (index, item) in items.iter_mut().enumerate() {
        v.open_item(key, index);
        keys(item, v);
        v.close();
    }
}

fn switch(switch: &mut Switch, v: &mut dyn Visitor) {
    for (key, text) in [
        ("vendor", &mut switch.vendor),
        ("hardware", &mut switch.hardware),
        ("firmware", &mut switch.firmware),
    ] {
        v.value(key, Need::Default("\"\""), &mut Text(text, NAME_CHARS));
    }
    v.value("link_bits_per_s", Need::Absent("any rate"), &mut maybe_bit_rate(&mut switch.link_bits_per_s));
    let versions = &[("1.0", OpenFlowVersion::V10), ("1.3", OpenFlowVersion::V13)];
    v.value("openflow", Need::Default("[]"), &mut WordList(&mut switch.openflow, versions, 2));
    let need = Need::Absent("no switch is recognised");
    list(v, ("recognised_by", need, RECOGNITIONS_MAX), &mut switch.recognised_by, recognition);
}

fn recognition(pattern: &mut Recognition, v: &mut dyn Visitor) {
    for (key, text) in [
        ("manufacturer", &mut pattern.manufacturer),
        ("hardware", &mut pattern.hardware),
        ("software", &mut pattern.software),
    ] {
        v.value(key, Need::Default("\"\""), &mut Text(text, NAME_CHARS));
    }
}

fn cpu(cpu: &mut Cpu, v: &mut dyn Visitor) {
    v.value("queue_messages", NO_BOUND, &mut maybe_count(&mut cpu.queue_messages));
    let words = &[("lose_packet_ins", QueueFull::LosePacketIns), ("lose_any", QueueFull::LoseAny)];
    v.value("queue_full", Need::Default("\"lose_packet_ins\""), &mut Word(&mut cpu.queue_full, words));
    for message in MessageType::ALL {
        if v.open(message.key(), Need::Absent("no cost"), true) {
            service(cpu.service_mut(message), v);
            if message == MessageType::Statistics {
                let per_entry = &mut Number(&mut cpu.statistics_entry_us, TIME_US);
                v.value("entry_us", Need::Default("0"), per_entry);
            }
            v.close();
        }
    }
}

fn service(service: &mut Service, v: &mut dyn Visitor) {
    v.value("rank", Need::Default("0"), &mut Count(&mut service.rank, 0..=u8::MAX));
    v.value("service_us", Need::Default("0"), &mut Table(&mut service.service_us));
}

fn delay(delay: &mut Delay, v: &mut dyn Visitor) {
    v.value("ingress_us", Need::Default("0"), &mut Table(&mut delay.ingress_us));
    v.value("egress_us", Need::Default("0"), &mut Table(&mut delay.egress_us));
}

fn packet_in(packet_in: &mut PacketIn, v: &mut dyn Visitor) {
    let buffers = &mut Maybe {
        slot: &mut packet_in.buffers_packets,
        form: |count| Box::new(Count(count, 0..=*COUNT.end())),
    };
    v.value("buffers_packets", Need::Absent("as the switch has that plays it"), buffers);
    v.value(
        "buffer_life_us",
        Need::Default("1000000"),
        &mut Number(&mut packet_in.buffer_life_us, PERIOD_US),
    );
    v.value(
        "miss_send_bytes",
        Need::Default("128"),
        &mut Count(&mut packet_in.miss_send_bytes, 0..=u16::MAX),
    );
    optional_table(v, "limit", "no bound", &mut packet_in.limit, packet_in_limit);
}

fn packet_in_limit(limit: &mut PacketInRate, v: &mut dyn Visitor) {
    v.value("rate_per_s", Need::Required, &mut Number(&mut limit.rate_per_s, RATE));
    v.value("burst_packets", Need::Required, &mut Count(&mut limit.burst_packets, COUNT));
}

fn hardware(hardware: &mut Hardware, v: &mut dyn Visitor) {
    let words = &[
        ("refuse", WhenFull::Refuse),
        ("ignore", WhenFull::Ignore),
        ("spill", WhenFull::Spill),
        ("evict", WhenFull::Evict),
    ];
    v.value("when_full", Need::Default("\"refuse\""), &mut Word(&mut hardware.when_full, words));
    v.value("evict", Need::Default("[]"), &mut WordList(&mut hardware.evict, VICTIMS, VICTIMS_MAX));
    v.value("cpu_waits", Need::Default("false"), &mut Truth(&mut hardware.cpu_waits));
    let words = &[("in_place", ModifyKind::InPlace), ("delete_and_add", ModifyKind::DeleteAndAdd)];
    v.value("modify", Need::Default("\"in_place\""), &mut Word(&mut hardware.modify_kind, words));
    v.value("modify_us", Need::Default("0"), &mut Cost(&mut hardware.modify));
    v.value("delete_us", Need::Default("0"), &mut Cost(&mut hardware.delete));
    table(v, "add_us", &mut hardware.add, add_cost);
    optional_table(v, "stall", "no stalls", &mut hardware.stall, stall);
    list(v, ("capacity", Need::Required, CAPACITIES_MAX), &mut hardware.capacities, capacity);
}

const VICTIMS: &[(&str, Victim)] = &[
    ("oldest", Victim::Oldest),
    ("newest", Victim::Newest),
    ("least_recently_used", Victim::LeastRecentlyUsed),
    ("most_recently_used", Victim::MostRecentlyUsed),
    ("least_used", Victim::LeastUsed),
    ("most_used", Victim::MostUsed),
    ("lowest_priority", Victim::LowestPriority),
    ("highest_priority", Victim::HighestPriority),
    ("random", Victim::Random),
];

fn add_cost(add: &mut AddCost, v: &mut dyn Visitor) {
    v.value("same", Need::Default("0"), &mut Cost(&mut add.same));
    v.value("ascending", Need::Default("0"), &mut Cost(&mut add.ascending));
    v.value("descending", Need::Default("0"), &mut Cost(&mut add.descending));
    let random = &mut Maybe { slot: &mut add.random, form: |curve: &mut Curve| Box::new(Cost(curve)) };
    v.value("random", Need::Absent("the mean of ascending and descending"), random);
}

fn stall(stall: &mut Stall, v: &mut dyn Visitor) {
    let (mut time, mut changes) = match &stall.interval {
        StallInterval::TimeUs(time) => (Some(time.clone()), None),
        StallInterval::Changes(changes) => (None, Some(*changes)),
    };
    if v.wants_all() {
        (time, changes) = (Some(time.unwrap_or_default()), Some(changes.unwrap_or(1)));
    }
    let mut every_us = Maybe { slot: &mut time, form: |table: &mut Quantiles| Box::new(Table(table)) };
    v.value("every_us", Need::Absent("every_changes counts"), &mut every_us);
    v.value("every_changes", Need::Absent("every_us counts"), &mut maybe_count(&mut changes));
    v.value("lasts_us", Need::Required, &mut Table(&mut stall.lasts_us));
    stall.interval = match (time, changes) {
        (_, Some(changes)) => StallInterval::Changes(changes),
        (time, None) => StallInterval::TimeUs(time.unwrap_or_default()),
    };
}

fn capacity(capacity: &mut Capacity, v: &mut dyn Visitor) {
    v.value("entries", Need::Required, &mut Count(&mut capacity.entries, COUNT));
    v.value("at_least", Need::Default("false"), &mut Truth(&mut capacity.at_least));
    v.value("fields", Need::Default("[]"), &mut Fields(&mut capacity.fields));
    v.value("exact", Need::Default("false"), &mut Truth(&mut capacity.exact));
    v.value("memory", Need::Default("0"), &mut Count(&mut capacity.memory, 0..=u8::MAX));
}

fn install(install: &mut Install, v: &mut dyn Visitor) {
    v.value("size_rules", Need::Required, &mut Count(&mut install.size_rules, COUNT));
    v.value("rate_per_s", Need::Required, &mut Number(&mut install.rate_per_s, RATE));
    v.value("batch_rules", Need::Default("1"), &mut Count(&mut install.batch_rules, COUNT));
    let words = &[("wait", BufferFull::Wait), ("spill", BufferFull::Spill), ("refuse", BufferFull::Refuse)];
    v.value("when_full", Need::Default("\"wait\""), &mut Word(&mut install.when_full, words));
}

/// [`SoftwareUse`] without its numbers.
#[derive(Clone, Copy, PartialEq)]
enum UseWord {
    Only,
    WhenFull,
    AboveRate,
}

fn software(software: &mut Software, v: &mut dyn Visitor) {
    software_use(&mut software.when, v);
    v.value("entries", NO_BOUND, &mut maybe_count(&mut software.entries));
    v.value("at_least", Need::Default("false"), &mut Truth(&mut software.at_least));
    v.value("forward_bits_per_s", NO_BOUND, &mut maybe_bit_rate(&mut software.forward_bits_per_s));
    let packets =
        &mut Maybe { slot: &mut software.forward_packets_per_s, form: |rate| Box::new(Number(rate, RATE)) };
    v.value("forward_packets_per_s", NO_BOUND, packets);
    v.value("forward_us", Need::Default("0"), &mut Table(&mut software.forward_us));
    optional_table(v, "promotion", "rules stay in software", &mut software.promotion, promotion);
}

fn software_use(when: &mut SoftwareUse, v: &mut dyn Visitor) {
    let (mut word, mut rate_per_s, mut burst_rules) = match *when {
        SoftwareUse::Only => (UseWord::Only, 1.0, 1),
        SoftwareUse::WhenFull => (UseWord::WhenFull, 1.0, 1),
        SoftwareUse::AboveRate { rate_per_s, burst_rules } => (UseWord::AboveRate, rate_per_s, burst_rules),
    };
    let words =
        &[("only", UseWord::Only), ("when_full", UseWord::WhenFull), ("above_rate", UseWord::AboveRate)];
    v.value("use", Need::Required, &mut Word(&mut word, words));
    if word == UseWord::AboveRate || v.wants_all() {
        v.value("above_per_s", Need::Required, &mut Number(&mut rate_per_s, RATE));
        v.value("burst_rules", Need::Default("1"), &mut Count(&mut burst_rules, COUNT));
    }
    *when = match word {
        UseWord::Only => SoftwareUse::Only,
        UseWord::WhenFull => SoftwareUse::WhenFull,
        UseWord::AboveRate => SoftwareUse::AboveRate { rate_per_s, burst_rules },
    };
}

fn promotion(promotion: &mut Promotion, v: &mut dyn Visitor) {
    let period = &mut Number(&mut promotion.period_us, PROMOTION_PERIOD_MIN_US..=VALUE_MAX_US);
    v.value("period_us", Need::Required, period);
    v.value("batch_rules", Need::Required, &mut Count(&mut promotion.batch_rules, 1..=PROMOTION_BATCH_MAX));
    let words = &[
        ("oldest", PromotionOrder::Oldest),
        ("newest", PromotionOrder::Newest),
        ("most_used", PromotionOrder::MostUsed),
        ("most_recently_used", PromotionOrder::MostRecentlyUsed),
        ("highest_priority", PromotionOrder::HighestPriority),
        ("random", PromotionOrder::Random),
    ];
    v.value("order", Need::Default("\"oldest\""), &mut Word(&mut promotion.order, words));
}

fn timeouts(timeouts: &mut Timeouts, v: &mut dyn Visitor) {
    v.value("scan_period_us", Need::Default("0"), &mut Number(&mut timeouts.scan_period_us, TIME_US));
    v.value("counter_period_us", Need::Default("0"), &mut Number(&mut timeouts.counter_period_us, TIME_US));
}

/// [`BarrierKind`] without its table.
#[derive(Clone, Copy, PartialEq)]
enum BarrierWord {
    Honest,
    Early,
    NotOrdering,
}

fn barrier(barrier: &mut Barrier, v: &mut dyn Visitor) {
    let (mut word, mut late_us) = match &barrier.kind {
        BarrierKind::Honest => (BarrierWord::Honest, Quantiles::default()),
        BarrierKind::Early(late) => (BarrierWord::Early, late.clone()),
        BarrierKind::NotOrdering(late) => (BarrierWord::NotOrdering, late.clone()),
    };
    let words = &[
        ("honest", BarrierWord::Honest),
        ("early", BarrierWord::Early),
        ("not_ordering", BarrierWord::NotOrdering),
    ];
    v.value("reply", Need::Default("\"honest\""), &mut Word(&mut word, words));
    if word != BarrierWord::Honest || v.wants_all() {
        v.value("rules_late_us", Need::Required, &mut Table(&mut late_us));
    }
    v.value("rules_in_order", Need::Default("true"), &mut Truth(&mut barrier.rules_in_order));
    barrier.kind = match word {
        BarrierWord::Honest => BarrierKind::Honest,
        BarrierWord::Early => BarrierKind::Early(late_us),
        BarrierWord::NotOrdering => BarrierKind::NotOrdering(late_us),
    };
}

fn measurement(measurement: &mut Measurement, v: &mut dyn Visitor) {
    v.value("incomplete", Need::Default("false"), &mut Truth(&mut measurement.incomplete));
    let need = Need::Absent("nothing");
    list(v, ("not_measured", need, NOT_MEASURED_MAX), &mut measurement.not_measured, not_measured);
    list(v, ("fit", need, FITS_MAX), &mut measurement.fits, fit);
}

fn not_measured(left_out: &mut NotMeasured, v: &mut dyn Visitor) {
    v.value("what", Need::Required, &mut Text(&mut left_out.what, NAME_CHARS));
    v.value("why", Need::Required, &mut Text(&mut left_out.why, SENTENCE_CHARS));
}

fn fit(fit: &mut Fit, v: &mut dyn Visitor) {
    v.value("what", Need::Required, &mut Text(&mut fit.what, NAME_CHARS));
    v.value("samples", Need::Required, &mut Count(&mut fit.samples, 1..=u32::MAX));
    v.value("ks", Need::Required, &mut Number(&mut fit.ks, 0.0..=1.0));
    v.value("ks_limit", Need::Required, &mut Number(&mut fit.ks_limit, 0.0..=1.0));
}

fn maybe_count(slot: &mut Option<u32>) -> Maybe<'_, u32> {
    Maybe { slot, form: |count| Box::new(Count(count, COUNT)) }
}

fn maybe_bit_rate(slot: &mut Option<f64>) -> Maybe<'_, f64> {
    Maybe { slot, form: |rate| Box::new(Number(rate, BIT_RATE)) }
}
