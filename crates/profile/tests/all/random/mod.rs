//! Random profiles from a seed, valid ones.

use flow::Field;
use profile::*;

/// SplitMix64.
pub struct Draw(pub u64);

impl Draw {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// From 0 to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn yes(&mut self) -> bool {
        self.below(2) == 1
    }

    fn count(&mut self) -> u32 {
        1 + u32::try_from(self.below(1_000_000)).expect("small")
    }

    fn number(&mut self) -> f64 {
        if self.yes() { self.below(100_000) as f64 } else { self.unit() * 1e5 }
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Draw) -> T) -> Option<T> {
        self.yes().then(|| make(self))
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).expect("small")]
    }

    fn text(&mut self) -> String {
        self.one_of(&["", "plain", "with \"quotes\" and \\", "Ünïcødé = [x]", "K.15.06.5008", "it's"])
            .to_owned()
    }

    pub fn quantiles(&mut self) -> Quantiles {
        if self.yes() {
            return Quantiles::constant(self.number());
        }
        let (mut p, mut value) = (0.0, self.number());
        let mut points = vec![(0.0, value)];
        for _ in 0..self.below(40) {
            p += (1.0 - p) * (0.01 + 0.5 * self.unit());
            value += if self.yes() { self.number() } else { 0.0 };
            points.push((p, value));
        }
        points.push((1.0, value + self.number()));
        Quantiles::new(&points).expect("rising points")
    }

    fn curve(&mut self) -> Curve {
        let mut rules = 0.0;
        let mut point = |draw: &mut Draw| {
            rules += 1.0 + draw.number();
            (rules, draw.number())
        };
        let count = 1 + self.below(6);
        Curve::new(&(0..count).map(|_| point(self)).collect::<Vec<_>>()).expect("rising points")
    }
}

pub fn profile(seed: u64) -> Profile {
    let draw = &mut Draw(seed);
    let mut profile = Profile { name: format!("random-{seed}"), about: draw.text(), ..Profile::default() };
    profile.switch = Switch {
        vendor: draw.text(),
        hardware: draw.text(),
        firmware: draw.text(),
        link_bits_per_s: draw.maybe(|draw| 1e3 + draw.number()),
        openflow: draw.maybe(|_| vec![OpenFlowVersion::V13, OpenFlowVersion::V10]).unwrap_or_default(),
        recognised_by: (0..draw.below(3)).map(|_| recognition(draw)).collect(),
    };
    profile.cpu.queue_messages = draw.maybe(Draw::count);
    profile.cpu.queue_full = draw.one_of(&[QueueFull::LosePacketIns, QueueFull::LoseAny]);
    profile.cpu.statistics_entry_us = draw.number();
    for message in MessageType::ALL {
        let rank = u8::try_from(draw.below(4)).expect("small");
        *profile.cpu.service_mut(message) = Service { rank, service_us: draw.quantiles() };
    }
    profile.delay = Delay { ingress_us: draw.quantiles(), egress_us: draw.quantiles() };
    profile.packet_in = PacketIn {
        limit: draw
            .maybe(|draw| PacketInRate { rate_per_s: 0.5 + draw.number(), burst_packets: draw.count() }),
        buffers_packets: Some(draw.count()),
        buffer_life_us: 1.0 + draw.number(),
        miss_send_bytes: draw.one_of(&[0, 64, 128, u16::MAX]),
    };
    tables(&mut profile, draw);
    profile.timeouts = Timeouts { scan_period_us: draw.number(), counter_period_us: draw.number() };
    let late = draw.quantiles();
    profile.barrier = match draw.below(3) {
        0 => Barrier::default(),
        1 => Barrier { kind: BarrierKind::Early(late), rules_in_order: draw.yes() },
        _ => Barrier { kind: BarrierKind::NotOrdering(late), rules_in_order: draw.yes() },
    };
    profile.measurement = measurement(draw);
    // Each value has a path of its own, as a probe writes it.
    for (path, _) in file::values(&profile) {
        if !["name", "about", "measurement"].iter().any(|free| path.starts_with(free)) {
            profile.sources.set(path, provenance(draw));
        }
    }
    profile
}

fn recognition(draw: &mut Draw) -> Recognition {
    Recognition { manufacturer: "Nicira*".to_owned(), hardware: draw.text(), software: draw.text() }
}

fn measurement(draw: &mut Draw) -> Measurement {
    let fit = |draw: &mut Draw| Fit {
        what: "delay.ingress_us".to_owned(),
        samples: draw.count(),
        ks: draw.unit(),
        ks_limit: draw.unit(),
    };
    Measurement {
        incomplete: draw.yes(),
        not_measured: (0..draw.below(3))
            .map(|_| NotMeasured { what: draw.text(), why: draw.text() })
            .collect(),
        fits: (0..draw.below(3)).map(|_| fit(draw)).collect(),
    }
}

fn provenance(draw: &mut Draw) -> Provenance {
    let text = "Table 1 says \"40\"".to_owned();
    match draw.below(4) {
        0 => Provenance::Published(text),
        1 => Provenance::Reconstructed(text),
        2 => Provenance::Assumed(text),
        _ => Provenance::Measured {
            date: "2026-11-25".to_owned(),
            firmware: "3.1.0".to_owned(),
            samples: draw.count(),
        },
    }
}

fn tables(profile: &mut Profile, draw: &mut Draw) {
    if draw.yes() {
        profile.software = draw.maybe(|draw| software(draw, &[SoftwareUse::Only], false));
        return;
    }
    let above = SoftwareUse::AboveRate { rate_per_s: 0.5 + draw.number(), burst_rules: draw.count() };
    profile.software = draw.maybe(|draw| software(draw, &[SoftwareUse::WhenFull, above], true));
    let spills = profile.software.is_some();
    let size_rules = draw.count();
    profile.install = draw.maybe(|draw| Install {
        size_rules,
        rate_per_s: 0.5 + draw.number(),
        batch_rules: 1 + size_rules / 3,
        when_full: if spills { BufferFull::Spill } else { BufferFull::Refuse },
    });
    let when_full = draw.one_of(&[WhenFull::Refuse, WhenFull::Ignore, WhenFull::Spill, WhenFull::Evict]);
    let when_full = if when_full == WhenFull::Spill && !spills { WhenFull::Refuse } else { when_full };
    let evict = match when_full {
        WhenFull::Evict => vec![draw.one_of(&[Victim::Oldest, Victim::LeastUsed]), Victim::LowestPriority],
        _ => Vec::new(),
    };
    let narrow = Capacity {
        fields: vec![Field::EthDst, Field::VlanVid],
        exact: draw.yes(),
        entries: draw.count(),
        at_least: draw.yes(),
        memory: u8::try_from(draw.below(3)).expect("small"),
    };
    let capacities = vec![narrow, Capacity::any(draw.count())];
    profile.hardware = Some(Hardware {
        capacities,
        add: AddCost {
            same: draw.curve(),
            ascending: draw.curve(),
            descending: draw.curve(),
            random: draw.maybe(Draw::curve),
        },
        modify: draw.curve(),
        modify_kind: draw.one_of(&[ModifyKind::InPlace, ModifyKind::DeleteAndAdd]),
        delete: draw.curve(),
        cpu_waits: draw.yes(),
        stall: draw.maybe(|draw| Stall {
            interval: match draw.yes() {
                true => StallInterval::TimeUs(draw.quantiles().plus_us(1.0)),
                false => StallInterval::Changes(draw.count()),
            },
            lasts_us: draw.quantiles(),
        }),
        when_full,
        evict,
    });
}

fn software(draw: &mut Draw, uses: &[SoftwareUse], promotes: bool) -> Software {
    let order = draw.one_of(&[PromotionOrder::Oldest, PromotionOrder::MostUsed, PromotionOrder::Random]);
    let period_us = 1000.0 + draw.number();
    let batch_rules = 1 + u32::try_from(draw.below(4096)).expect("small");
    Software {
        when: draw.one_of(uses),
        entries: Some(draw.count()),
        at_least: draw.yes(),
        forward_bits_per_s: draw.maybe(|draw| 1e3 + draw.number()),
        forward_packets_per_s: draw.maybe(|draw| 0.5 + draw.number()),
        forward_us: draw.quantiles(),
        promotion: draw.maybe(|_| Promotion { period_us, batch_rules, order }).filter(|_| promotes),
    }
}
