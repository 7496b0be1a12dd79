//! The settings of a slice's zone: its plan and its controllers.
//!
//! In: JSON that the node made of the configuration. Out: a plan for the virtual switches, or the sentence that says what is wrong. It reads
//! no file.

use crate::tls::{self, TlsSettings};
use abi::ZoneId;
use flow::{DatapathId, Match, PortNo};
use serde::{Deserialize, Serialize};
use slicer::{
    AddressPlan, BadPlan, CONTROLLERS_MAX, End, HostPlan, Isolation, LabelForm, Limit, Limits, LinkPlan,
    Numbers, PortPlan, SlicePlan, Slicer, SwitchPlan, Vnic,
};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;

/// The most connections of a slice: one for each switch and controller. The zone waits for all of them at once.
pub const CONNECTIONS_MAX: usize = 2_048;
/// The place of the learning switch among the controllers of a slice that is standalone: the last.
pub(crate) const STANDALONE: usize = CONTROLLERS_MAX - 1;
/// Groups of one slice at one switch. Each zone has numbers of its own.
const GROUPS: u32 = 4_096;
/// Meters of one slice at one switch. Switches with numbers up to 65,535 are common, and there are 1,023 zones.
const METERS: u32 = 64;

/// A slice as its zone gets it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SliceSettings {
    /// Its name.
    pub name: String,
    /// The tenant's controllers. Each switch connects to all of them.
    pub controllers: Vec<SocketAddr>,
    /// TLS with the controllers. `None`: without.
    #[serde(default)]
    pub tls: Option<TlsSettings>,
    /// How its packets differ from those of other slices.
    pub isolation: IsolationSettings,
    /// Whether the tenant only observes.
    #[serde(default)]
    pub is_read_only: bool,
    /// Whether the slice forwards as a learning switch while no controller is connected.
    #[serde(default)]
    pub is_standalone: bool,
    /// Its switches.
    pub switches: Vec<SwitchSettings>,
    /// Its links, by their two ends.
    #[serde(default)]
    pub links: Vec<[EndSettings; 2]>,
    /// Its VNICs by name, each with its port.
    #[serde(default)]
    pub vnics: BTreeMap<String, EndSettings>,
    /// The ports of its VNICs, for meters.
    #[serde(default)]
    pub vnic_ports: Vec<VnicPortSettings>,
    /// How the tenant's controllers receive labels.
    #[serde(default)]
    pub labels: LabelSettings,
    /// Whether the node has labels: the slice reports its flows, and follows its labels.
    #[serde(default)]
    pub has_labels: bool,
    /// Whether the node lays links: the slice follows whether its own are up.
    #[serde(default)]
    pub follows_links: bool,
    /// What it may use of each switch.
    #[serde(default)]
    pub limits: LimitsSettings,
    /// Its groups in the physical switches: the first, and the one behind the last. `None`: numbers that no other zone has.
    #[serde(default)]
    pub groups: Option<(u32, u32)>,
    /// Its meters, likewise.
    #[serde(default)]
    pub meters: Option<(u32, u32)>,
    /// The folder in which it keeps what the tenant has made. `None`: it keeps nothing.
    #[serde(default)]
    pub journals: Option<PathBuf>,
}

/// How the packets of a slice differ from those of others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IsolationSettings {
    /// By this VLAN tag.
    Vlan(u16),
    /// They are within one of these matches.
    Flowspace(Vec<Match>),
    /// By addresses between switches.
    Address(AddressSettings),
}

/// The addresses of a slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddressSettings {
    /// The first address that the tenant sees.
    pub tenant: Ipv4Addr,
    /// The first address between switches.
    pub physical: Ipv4Addr,
    /// How many bits of both are fixed.
    pub length: u8,
    /// The hosts: address, switch and port of the physical switch.
    pub hosts: Vec<(Ipv4Addr, DatapathId, PortNo)>,
}

impl IsolationSettings {
    fn of(isolation: &Isolation) -> IsolationSettings {
        match isolation {
            Isolation::Vlan(tag) => IsolationSettings::Vlan(*tag),
            Isolation::Flowspace(matches) => IsolationSettings::Flowspace(matches.clone()),
            Isolation::Address(AddressPlan { tenant, physical, length, hosts }) => {
                let hosts = hosts.iter().map(|host| (host.address, host.datapath, host.port)).collect();
                let (tenant, physical, length) = (*tenant, *physical, *length);
                IsolationSettings::Address(AddressSettings { tenant, physical, length, hosts })
            }
        }
    }

    fn plan(&self) -> Isolation {
        match self {
            IsolationSettings::Vlan(tag) => Isolation::Vlan(*tag),
            IsolationSettings::Flowspace(matches) => Isolation::Flowspace(matches.clone()),
            IsolationSettings::Address(AddressSettings { tenant, physical, length, hosts }) => {
                let host = |(address, datapath, port): &(Ipv4Addr, DatapathId, PortNo)| HostPlan {
                    address: *address,
                    datapath: *datapath,
                    port: *port,
                };
                let hosts = hosts.iter().map(host).collect();
                let (tenant, physical, length) = (*tenant, *physical, *length);
                Isolation::Address(AddressPlan { tenant, physical, length, hosts })
            }
        }
    }
}

/// How controllers receive labels: [`LabelForm`] in the words of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LabelSettings {
    /// Not at all.
    #[default]
    None,
    /// As a field behind each description of a port.
    Paper,
    /// In messages of an experimenter.
    Experimenter,
    /// As the current speed of a port.
    Speed,
}

impl LabelSettings {
    fn form(self) -> LabelForm {
        match self {
            LabelSettings::None => LabelForm::None,
            LabelSettings::Paper => LabelForm::Paper,
            LabelSettings::Experimenter => LabelForm::Experimenter,
            LabelSettings::Speed => LabelForm::Speed,
        }
    }
}

/// A switch of a slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchSettings {
    /// The physical switch.
    pub datapath: DatapathId,
    /// The datapath id that the tenant sees.
    pub shown_as: DatapathId,
    /// The ports.
    pub ports: Vec<PortSettings>,
}

/// A port of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortSettings {
    /// The port of the physical switch.
    pub port: PortNo,
    /// The number that the tenant sees.
    pub shown_as: PortNo,
    /// Whether no other slice has the port.
    pub is_edge: bool,
}

/// An end of a virtual link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndSettings {
    /// The physical switch.
    pub datapath: DatapathId,
    /// The number of the port that the tenant sees.
    pub shown_as: PortNo,
}

/// A port behind which VNICs are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VnicPortSettings {
    /// The port.
    pub at: EndSettings,
    /// The rates of its VNICs together.
    pub rate_kbps: u32,
    /// The names of its VNICs.
    pub vnics: Vec<String>,
    /// Their agents.
    pub agents: Vec<u32>,
    /// Whether the switch is to meter them while no agent is there.
    pub meter: bool,
}

/// What a slice may use of each switch. `None`: the default of [`Limits`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSettings {
    /// Packet-ins per second.
    pub packet_ins_per_s: Option<LimitSettings>,
    /// Packet-outs per second.
    pub packet_outs_per_s: Option<LimitSettings>,
    /// Flow mods per second.
    pub flow_mods_per_s: Option<LimitSettings>,
    /// Statistics requests per second.
    pub statistics_per_s: Option<LimitSettings>,
    /// Rules.
    pub rules: Option<LimitSettings>,
}

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    /// Above it, the operator is told.
    pub soft: u32,
    /// Above it, the use is refused.
    pub hard: u32,
}

impl SliceSettings {
    /// The settings for this plan and these controllers.
    pub fn of(plan: &SlicePlan, controllers: Vec<SocketAddr>) -> SliceSettings {
        let range = |range: &Range<u32>| (!range.is_empty()).then_some((range.start, range.end));
        SliceSettings {
            name: plan.name.clone(),
            controllers,
            tls: None,
            isolation: IsolationSettings::of(&plan.isolation),
            is_read_only: plan.is_read_only,
            is_standalone: false,
            switches: plan.switches.iter().map(SwitchSettings::of).collect(),
            links: plan.links.iter().map(|link| [link.from, link.to].map(EndSettings::of)).collect(),
            vnics: BTreeMap::new(),
            vnic_ports: Vec::new(),
            labels: LabelSettings::None,
            has_labels: false,
            follows_links: false,
            limits: LimitsSettings::of(&plan.limits),
            groups: range(&plan.numbers.groups),
            meters: range(&plan.numbers.meters),
            journals: None,
        }
    }

    /// How many connections the slice has while all of its switches are up.
    pub fn connections(&self) -> usize {
        self.controllers.len() * self.switches.len()
    }

    /// The same without certificates and key, for operators.
    pub fn without_key(&self) -> SliceSettings {
        SliceSettings { tls: None, ..self.clone() }
    }

    /// Checks all that the plan does not: the controllers.
    ///
    /// # Errors
    /// A sentence that names the slice.
    pub fn check(&self) -> Result<(), String> {
        let (controllers, switches) = (self.controllers.len(), self.switches.len());
        let most = if self.is_standalone { STANDALONE } else { CONTROLLERS_MAX };
        if controllers > most {
            let mode = if self.is_standalone { " of a slice with fail = \"standalone\"" } else { "" };
            return Err(format!("slice {}: {controllers} controllers{mode} are more than {most}", self.name));
        }
        if self.connections() > CONNECTIONS_MAX {
            return Err(format!(
                "slice {}: {switches} switches with {controllers} controllers are more than {CONNECTIONS_MAX} connections",
                self.name
            ));
        }
        if let Some(tls) = &self.tls {
            tls::client(tls).map_err(|why| format!("slice {}: {why}", self.name))?;
        }
        // The numbers of groups and meters are within their bounds for each zone.
        self.slicer(ZoneId(1)).map(drop).map_err(|bad| bad.to_string())
    }

    /// The virtual switches in this zone.
    ///
    /// # Errors
    /// The plan cannot be carried out, or a VNIC is at a port that the slice does not have.
    pub fn slicer(&self, own: ZoneId) -> Result<Slicer, BadPlan> {
        let plan = self.plan(own);
        let shaped = self.vnic_ports.iter().filter(|port| port.meter && !self.is_read_only);
        let shaped = shaped.map(|port| (port.at.plan(), port.rate_kbps));
        let slicer = Slicer::new(&plan)?.telling_labels(self.labels.form()).shaping_ports(shaped);
        if !self.has_labels {
            return Ok(slicer);
        }
        let vnic = |(name, at): (&String, &EndSettings)| Vnic { name: name.clone(), at: at.plan() };
        slicer.tracing(&plan, &self.vnics.iter().map(vnic).collect::<Vec<_>>())
    }

    /// The plan for a slice in this zone.
    pub fn plan(&self, own: ZoneId) -> SlicePlan {
        let zone = u32::from(own.0);
        let of = |written: Option<(u32, u32)>, count: u32| {
            let (first, end) = written.unwrap_or((zone * count, (zone + 1) * count));
            first..end
        };
        SlicePlan {
            name: self.name.clone(),
            isolation: self.isolation.plan(),
            is_read_only: self.is_read_only,
            switches: self.switches.iter().map(SwitchSettings::plan).collect(),
            links: self
                .links
                .iter()
                .map(|[from, to]| LinkPlan { from: from.plan(), to: to.plan() })
                .collect(),
            limits: self.limits.plan(),
            numbers: Numbers { groups: of(self.groups, GROUPS), meters: of(self.meters, METERS) },
        }
    }
}

impl SwitchSettings {
    fn of(plan: &SwitchPlan) -> SwitchSettings {
        let port = |it: &PortPlan| PortSettings { port: it.port, shown_as: it.shown_as, is_edge: it.is_edge };
        SwitchSettings {
            datapath: plan.datapath,
            shown_as: plan.shown_as,
            ports: plan.ports.iter().map(port).collect(),
        }
    }

    fn plan(&self) -> SwitchPlan {
        let port = |it: &PortSettings| PortPlan { port: it.port, shown_as: it.shown_as, is_edge: it.is_edge };
        SwitchPlan {
            datapath: self.datapath,
            shown_as: self.shown_as,
            ports: self.ports.iter().map(port).collect(),
        }
    }
}

impl EndSettings {
    /// This end.
    pub fn of(end: End) -> EndSettings {
        EndSettings { datapath: end.datapath, shown_as: end.port }
    }

    pub(crate) fn plan(self) -> End {
        End { datapath: self.datapath, port: self.shown_as }
    }
}

impl LimitsSettings {
    fn of(limits: &Limits) -> LimitsSettings {
        let of = |limit: Limit| Some(LimitSettings { soft: limit.soft, hard: limit.hard });
        LimitsSettings {
            packet_ins_per_s: of(limits.packet_ins_per_s),
            packet_outs_per_s: of(limits.packet_outs_per_s),
            flow_mods_per_s: of(limits.flow_mods_per_s),
            statistics_per_s: of(limits.statistics_per_s),
            rules: of(limits.rules),
        }
    }

    fn plan(self) -> Limits {
        let default = Limits::default();
        let of = |written: Option<LimitSettings>, default: Limit| {
            written.map_or(default, |it| Limit { soft: it.soft, hard: it.hard })
        };
        Limits {
            packet_ins_per_s: of(self.packet_ins_per_s, default.packet_ins_per_s),
            packet_outs_per_s: of(self.packet_outs_per_s, default.packet_outs_per_s),
            flow_mods_per_s: of(self.flow_mods_per_s, default.flow_mods_per_s),
            statistics_per_s: of(self.statistics_per_s, default.statistics_per_s),
            rules: of(self.rules, default.rules),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(), String> {
        let settings: SliceSettings = serde_json::from_str(text).map_err(|error| error.to_string())?;
        settings.check()
    }

    fn check(rest: &str, expected: &str) {
        let text = format!(
            r#"{{"name": "blue", "isolation": {{"vlan": 7}}, "controllers": ["127.0.0.1:1"], {rest}}}"#
        );
        let refused = read(&text).err().unwrap_or_default();
        assert!(refused.contains(expected) && refused.is_empty() == expected.is_empty(), "{text}: {refused}");
    }

    #[test]
    fn what_cannot_be_carried_out_is_refused_with_the_slices_name() {
        check(r#""switches": [], "colour": 1"#, "unknown field `colour`");
        check(
            r#""switches": [], "links": [[{"datapath": "1", "shown_as": 2}, {"datapath": "1", "shown_as": 3}]]"#,
            "slice blue: a link ends at port 2",
        );
        let port = r#"{"port": 1, "shown_as": 0, "is_edge": true}"#;
        let switch = format!(r#""switches": [{{"datapath": "1", "shown_as": "1", "ports": [{port}]}}]"#);
        check(&switch, "slice blue: switch of:0000000000000001: port 1 is shown as 0");
        check(r#""switches": []"#, "");
    }

    #[test]
    fn more_connections_than_a_zone_waits_for_are_refused() {
        let switch = |datapath| SwitchSettings {
            datapath: DatapathId(datapath),
            shown_as: DatapathId(datapath),
            ports: Vec::new(),
        };
        let mut settings = SliceSettings {
            name: "blue".to_owned(),
            controllers: vec![SocketAddr::from(([127, 0, 0, 1], 1)); 2],
            tls: None,
            isolation: IsolationSettings::Vlan(7),
            is_read_only: false,
            is_standalone: false,
            switches: (1..=1_024).map(switch).collect(),
            links: Vec::new(),
            vnics: BTreeMap::new(),
            vnic_ports: Vec::new(),
            labels: LabelSettings::None,
            has_labels: false,
            follows_links: false,
            limits: LimitsSettings::default(),
            groups: None,
            meters: None,
            journals: None,
        };
        assert_eq!(settings.check(), Ok(()));
        settings.switches.push(switch(9_999));
        assert!(settings.check().unwrap_err().contains("are more than 2048 connections"));
        settings.switches.clear();
        settings.controllers = vec![settings.controllers[0]; 9];
        assert!(settings.check().unwrap_err().contains("9 controllers are more than 8"));
        settings.controllers.pop();
        assert_eq!(settings.check(), Ok(()));
        settings.is_standalone = true;
        let refused = settings.check().unwrap_err();
        assert!(
            refused.contains("8 controllers of a slice with fail = \"standalone\" are more than 7"),
            "{refused}"
        );
    }

    #[test]
    fn a_plan_is_the_same_behind_its_settings() {
        let port = PortPlan { port: PortNo(3), shown_as: PortNo(1), is_edge: true };
        let ports = vec![port];
        let end = End { datapath: DatapathId(5), port: PortNo(1) };
        let plan = SlicePlan {
            name: "blue".to_owned(),
            isolation: Isolation::Flowspace(vec![flow::text::parse_match("ip,nw_dst=10.0.0.0/8").unwrap()]),
            is_read_only: true,
            switches: vec![SwitchPlan { datapath: DatapathId(5), shown_as: DatapathId(6), ports }],
            links: vec![LinkPlan { from: end, to: end }],
            limits: Limits { rules: Limit { soft: 1, hard: 2 }, ..Limits::default() },
            numbers: Numbers { groups: 5..9, meters: 3..4 },
        };
        let json = serde_json::to_string(&SliceSettings::of(&plan, Vec::new())).unwrap();
        let settings: SliceSettings = serde_json::from_str(&json).unwrap();
        assert_eq!(settings.plan(ZoneId(9)), plan);
    }

    #[test]
    fn no_two_zones_have_a_group_or_meter_in_common() {
        let settings = SliceSettings {
            name: "blue".to_owned(),
            controllers: Vec::new(),
            tls: None,
            isolation: IsolationSettings::Vlan(7),
            is_read_only: false,
            is_standalone: false,
            switches: Vec::new(),
            links: Vec::new(),
            vnics: BTreeMap::new(),
            vnic_ports: Vec::new(),
            labels: LabelSettings::None,
            has_labels: false,
            follows_links: false,
            limits: LimitsSettings::default(),
            groups: None,
            meters: None,
            journals: None,
        };
        let numbers: Vec<Numbers> = (1..=1_023).map(|zone| settings.plan(ZoneId(zone)).numbers).collect();
        assert!(numbers.windows(2).all(|two| two[0].groups.end <= two[1].groups.start));
        assert!(numbers.windows(2).all(|two| two[0].meters.end <= two[1].meters.start));
        // OFPG_MAX (1.3.5, 7.3.4.2). Open vSwitch takes no meter above 65,535.
        assert!(numbers[0].meters.start > 0 && numbers[1_022].groups.end <= 0xffff_ff00);
        assert!(numbers[1_022].meters.end <= 65_536);
    }
}
