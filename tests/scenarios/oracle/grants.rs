//! The grants of apps: as a grant for the kernel, and as plain facts for the judge.
//!
//! In: a random generator. Out: both, from the same values. The judge compares frames with matches, and uses no code
//! of the kernel.

use super::dice::Dice;
use flow::frame::FrameFields;
use flow::text::parse_match;
use flow::vendor::{NICIRA, PartKind};
use flow::{DatapathId, Match, PortNo};
use kernel::{Bounds, Capability, Grant, VendorParts, Vendors};

/// The packets of possible flowspaces.
pub const SPACES: [&str; 9] = [
    "ip,nw_dst=10.0.0.0/31",
    "ip,nw_dst=10.0.0.2",
    "tcp,tp_dst=80",
    "ip",
    "arp",
    "in_port=1",
    "dl_vlan=5",
    "dl_dst=02:00:00:00:00:01",
    "ip,nw_src=10.0.0.1",
];

/// The bounds of a capability; `None` is no bound.
#[derive(Clone, Debug)]
pub struct Reach {
    pub spaces: Option<Vec<Match>>,
    pub tables: Option<Vec<u8>>,
    pub priorities: (u16, u16),
    pub ports: Option<Vec<u32>>,
    pub elsewhere: bool,
    /// The bounds as text.
    pub words: String,
}

/// The grant of one app.
#[derive(Clone, Debug)]
pub struct Facts {
    pub packet_in: bool,
    pub packet_out: Option<Reach>,
    pub rules: Option<Reach>,
    pub ports: bool,
    pub others: bool,
    pub reads_rules: bool,
    pub asks: bool,
    pub vendor: bool,
}

impl Reach {
    fn roll(dice: &mut Dice) -> Reach {
        let mut words = Vec::new();
        let spaces = dice.chance(55).then(|| {
            let texts: Vec<&str> = (0..1 + dice.below(2)).map(|_| dice.pick(&SPACES)).collect();
            words.push(format!("packets {texts:?}"));
            texts.iter().map(|text| parse_match(text).unwrap()).collect()
        });
        let tables = dice.chance(30).then(|| dice.pick(&[vec![0], vec![0, 1], vec![1, 2]]));
        let priorities =
            if dice.chance(40) { dice.pick(&[(0, 10), (5, 20), (10, 100)]) } else { (0, u16::MAX) };
        let ports = dice.chance(50).then(|| {
            dice.pick(&[vec![1, 2], vec![2], vec![1, 3, PortNo::IN_PORT.0], vec![2, PortNo::FLOOD.0]])
        });
        let elsewhere = dice.chance(5);
        words.push(format!("tables {tables:?} priorities {priorities:?} ports {ports:?}"));
        words.extend(elsewhere.then(|| "another switch alone".to_owned()));
        Reach { spaces, tables, priorities, ports, elsewhere, words: words.join(", ") }
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            flowspace: self.spaces.clone(),
            tables: self.tables.as_ref().map(|tables| tables.iter().copied().collect()),
            priorities: self.priorities.0..=self.priorities.1,
            ports: self.ports.as_ref().map(|ports| ports.iter().map(|port| PortNo(*port)).collect()),
            datapaths: self.elsewhere.then(|| vec![DatapathId(0x99)]),
            own_ports: Vec::new(),
            switches: Default::default(),
        }
    }

    /// Whether the app may affect this packet.
    pub fn has_packet(&self, fields: &FrameFields) -> bool {
        self.spaces.as_ref().is_none_or(|spaces| spaces.iter().any(|space| space.matches(fields)))
    }

    /// Whether a packet from port `in_port` may leave through `port`.
    pub fn has_port(&self, port: u32, in_port: u32) -> bool {
        self.ports.as_ref().is_none_or(|ports| {
            let flooded = [PortNo::FLOOD, PortNo::ALL].iter().any(|all| ports.contains(&all.0));
            let back = port == in_port && ports.contains(&PortNo::IN_PORT.0);
            ports.contains(&port) || flooded || back
        })
    }
}

impl Facts {
    pub fn roll(dice: &mut Dice, others: bool) -> Facts {
        Facts {
            packet_in: dice.chance(60),
            packet_out: dice.chance(75).then(|| Reach::roll(dice)),
            rules: dice.chance(92).then(|| Reach::roll(dice)),
            ports: dice.chance(20),
            others,
            reads_rules: dice.chance(30),
            asks: dice.chance(60),
            vendor: dice.chance(20),
        }
    }

    pub fn grant(&self) -> Grant {
        let mut grant = Grant::everywhere(&[Capability::ViewRead]);
        let held = [
            (self.packet_in, Capability::PacketIn),
            (self.others, Capability::RuleWriteOthers),
            (self.reads_rules, Capability::RuleRead),
            (self.asks, Capability::StatsRead),
            (self.ports, Capability::PortWrite),
        ];
        for (_, capability) in held.into_iter().filter(|(is_held, _)| *is_held) {
            grant = grant.with(capability);
        }
        if let Some(reach) = &self.packet_out {
            grant =
                grant.with_packets_out(Bounds { tables: None, priorities: 0..=u16::MAX, ..reach.bounds() });
        }
        if let Some(reach) = &self.rules {
            grant = grant.with_rules(reach.bounds());
        }
        if self.vendor {
            let fields = VendorParts { vendor: NICIRA, kind: Some(PartKind::Field), subtype: None };
            grant = grant.with_vendors(Vendors::new(vec![fields]));
        }
        grant
    }

    /// The grant as text.
    pub fn words(&self) -> String {
        let reach = |name, reach: &Option<Reach>| match reach {
            Some(reach) => format!("; {name}: {}", reach.words),
            None => String::new(),
        };
        let held = [
            (self.packet_in, "packet.in"),
            (self.others, "rule.write.others"),
            (self.reads_rules, "rule.read"),
            (self.asks, "stats.read"),
            (self.ports, "port.write"),
            (self.vendor, "vendor nicira:field"),
        ];
        let held: Vec<&str> =
            held.into_iter().filter(|(is_held, _)| *is_held).map(|(_, name)| name).collect();
        format!(
            "{}{}{}",
            held.join(" "),
            reach("packet.out", &self.packet_out),
            reach("rule.write", &self.rules)
        )
    }
}
