//! The table `[capabilities]` of `app.toml` and of `burnet.toml`: what an app may do with the network.
//!
//! ```toml
//! [capabilities]
//! "packet.in" = { match = ["arp"] }
//! "packet.out" = { ports = [1, 2] }
//! "rule.write" = { match = ["ip,nw_dst=10.0.0.0/24"], tables = [0], priority = [100, 200] }
//! "stats.read" = true
//! "query" = ["paths"]
//! ```
//!
//! In: TOML, or its JSON form. Out: [`Capabilities`] with only what was written, and whether one grants no more than
//! another. It never enforces anything: the kernel does.

use std::collections::BTreeSet;

use flow::{DatapathId, PortNo};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::asks::{All, Ask, Requestable, Visit};
use super::bounds::{self, Flowspace, Names, Priorities, listed, narrower};
use super::keys::{Keys, Mixed};
use super::services::{self, ServiceCapabilities};
use super::switches::{self, BySwitch, Scope};
use super::vendors::VendorList;

/// What an app may do. `None` means not granted. A bound that is `None` does not limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Capabilities {
    /// Receive packet-ins.
    #[serde(rename = "packet.in", deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub packet_in: Option<PacketIn>,
    /// Send packet-outs.
    #[serde(rename = "packet.out", deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub packet_out: Option<PacketOut>,
    /// Add, change and delete its own rules, groups and meters.
    #[serde(rename = "rule.write", deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub rule_write: Option<RuleWrite>,
    /// Change and delete the rules of others.
    #[serde(rename = "rule.write.others", skip_serializing_if = "Option::is_none")]
    pub rule_write_others: Option<Whole>,
    /// Delete rules that no app of the node added.
    #[serde(rename = "rule.delete.foreign", skip_serializing_if = "Option::is_none")]
    pub rule_delete_foreign: Option<Whole>,
    /// Read flow entries.
    #[serde(rename = "rule.read", skip_serializing_if = "Option::is_none")]
    pub rule_read: Option<Whole>,
    /// Request statistics from switches.
    #[serde(rename = "stats.read", skip_serializing_if = "Option::is_none")]
    pub stats_read: Option<Whole>,
    /// Receive events about switches, ports, links and removed rules.
    #[serde(rename = "view.read", skip_serializing_if = "Option::is_none")]
    pub view_read: Option<Whole>,
    /// Write annotations into the network view.
    #[serde(rename = "view.annotate", skip_serializing_if = "Option::is_none")]
    pub view_annotate: Option<Whole>,
    /// Receive the locations of hosts.
    #[serde(rename = "host.read", skip_serializing_if = "Option::is_none")]
    pub host_read: Option<Whole>,
    /// Change ports.
    #[serde(rename = "port.write", deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub port_write: Option<PortWrite>,
    /// What services permit, by the names that they declare.
    #[serde(flatten, skip_deserializing)]
    pub services: ServiceCapabilities,
    /// Use vendor extensions of OpenFlow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<VendorList>,
    /// Send queries to services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<Names>,
    /// Publish on topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publish: Option<Names>,
    /// Receive what is published on topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<Names>,
}

/// The keys of [`Capabilities`] that are not declared by a service.
const FIELDS: &[&str] = &[
    "packet.in",
    "packet.out",
    "rule.write",
    "rule.write.others",
    "rule.delete.foreign",
    "rule.read",
    "stats.read",
    "view.read",
    "view.annotate",
    "host.read",
    "port.write",
    "vendor",
    "query",
    "publish",
    "subscribe",
];

/// All keys that a table may have, without services that are not built in.
pub(super) fn keys() -> Keys {
    Keys::new::<contract::Capability>(FIELDS, services::reserved_names())
}

impl Serialize for Capabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Capabilities::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Table;

        impl<'de> Visitor<'de> for Table {
            type Value = Capabilities;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a table of capabilities")
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Capabilities, A::Error> {
                let (keys, mut found) = (keys(), ServiceCapabilities::new());
                let table = Mixed { table, keys: &keys, found: &mut found };
                let written = Capabilities::deserialize(MapAccessDeserializer::new(table))?;
                Ok(Capabilities { services: found, ..written })
            }
        }

        input.deserialize_map(Table)
    }
}

/// The bounds of `packet.in`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PacketIn {
    /// The packets that the app may receive.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub flowspace: Option<Flowspace>,
    /// The switches whose packet-ins the app may receive.
    #[serde(deserialize_with = "bounds::set", skip_serializing_if = "Option::is_none")]
    pub datapaths: Option<BTreeSet<DatapathId>>,
    /// The ports that are the app's alone: any packet may come in and leave by them.
    #[serde(deserialize_with = "switches::own_ports", skip_serializing_if = "Option::is_none")]
    pub own_ports: Option<BTreeSet<PortNo>>,
    /// Switches with bounds of their own.
    #[serde(deserialize_with = "switches::without_ports", skip_serializing_if = "Option::is_none")]
    pub switches: Option<BySwitch>,
}

/// The bounds of `packet.out`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PacketOut {
    /// The packets that the app may send. The results of the actions must be within it too.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub flowspace: Option<Flowspace>,
    /// The ports to which packets may be sent.
    #[serde(deserialize_with = "bounds::ports", skip_serializing_if = "Option::is_none")]
    pub ports: Option<BTreeSet<PortNo>>,
    /// The switches that may send them.
    #[serde(deserialize_with = "bounds::set", skip_serializing_if = "Option::is_none")]
    pub datapaths: Option<BTreeSet<DatapathId>>,
    /// The ports that are the app's alone: any packet may come in and leave by them.
    #[serde(deserialize_with = "switches::own_ports", skip_serializing_if = "Option::is_none")]
    pub own_ports: Option<BTreeSet<PortNo>>,
    /// Switches with bounds of their own.
    #[serde(deserialize_with = "switches::with_all", skip_serializing_if = "Option::is_none")]
    pub switches: Option<BySwitch>,
}

/// The bounds of `rule.write`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuleWrite {
    /// The packets that rules may match. The results of the actions must be within it too.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub flowspace: Option<Flowspace>,
    /// The tables of the rules.
    #[serde(deserialize_with = "bounds::tables", skip_serializing_if = "Option::is_none")]
    pub tables: Option<BTreeSet<u8>>,
    /// The priorities of the rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priorities>,
    /// The ports to which rules may send packets.
    #[serde(deserialize_with = "bounds::ports", skip_serializing_if = "Option::is_none")]
    pub ports: Option<BTreeSet<PortNo>>,
    /// The switches of the rules.
    #[serde(deserialize_with = "bounds::set", skip_serializing_if = "Option::is_none")]
    pub datapaths: Option<BTreeSet<DatapathId>>,
    /// The ports that are the app's alone: any packet may come in and leave by them.
    #[serde(deserialize_with = "switches::own_ports", skip_serializing_if = "Option::is_none")]
    pub own_ports: Option<BTreeSet<PortNo>>,
    /// Switches with bounds of their own.
    #[serde(deserialize_with = "switches::with_all", skip_serializing_if = "Option::is_none")]
    pub switches: Option<BySwitch>,
    /// The number of rules that a switch may hold at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules_per_datapath: Option<u32>,
}

/// The bounds of `port.write`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PortWrite {
    /// The ports that may be changed.
    #[serde(deserialize_with = "bounds::ports", skip_serializing_if = "Option::is_none")]
    pub ports: Option<BTreeSet<PortNo>>,
    /// The switches whose ports may be changed.
    #[serde(deserialize_with = "bounds::set", skip_serializing_if = "Option::is_none")]
    pub datapaths: Option<BTreeSet<DatapathId>>,
    /// Switches with bounds of their own.
    #[serde(deserialize_with = "switches::only_ports", skip_serializing_if = "Option::is_none")]
    pub switches: Option<BySwitch>,
}

/// A capability without bounds: `true`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Whole;

impl Serialize for Whole {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(true)
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let granted = bool::deserialize(input)?;
        if granted { Ok(Whole) } else { Err(serde::de::Error::custom(super::NOT_FALSE)) }
    }
}

/// `true`, or a table of bounds.
fn bounded<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    input: D,
) -> Result<Option<T>, D::Error> {
    struct WholeOrBounds<T>(std::marker::PhantomData<T>);

    impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for WholeOrBounds<T> {
        type Value = T;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("true, or a table of bounds")
        }

        fn visit_bool<E: serde::de::Error>(self, whole: bool) -> Result<T, E> {
            if whole { Ok(T::default()) } else { Err(E::custom(super::NOT_FALSE)) }
        }

        fn visit_map<A: MapAccess<'de>>(self, bounds: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(bounds))
        }
    }

    input.deserialize_any(WholeOrBounds(std::marker::PhantomData)).map(Some)
}

impl Capabilities {
    /// Passes each capability to a visitor, together with the same one in `before`.
    pub(super) fn visit(&self, before: &Capabilities, visitor: &mut impl Visit) {
        visitor.visit("packet.in", &self.packet_in, &before.packet_in);
        visitor.visit("packet.out", &self.packet_out, &before.packet_out);
        visitor.visit("rule.write", &self.rule_write, &before.rule_write);
        visitor.visit("rule.write.others", &self.rule_write_others, &before.rule_write_others);
        visitor.visit("rule.delete.foreign", &self.rule_delete_foreign, &before.rule_delete_foreign);
        visitor.visit("rule.read", &self.rule_read, &before.rule_read);
        visitor.visit("stats.read", &self.stats_read, &before.stats_read);
        visitor.visit("view.read", &self.view_read, &before.view_read);
        visitor.visit("view.annotate", &self.view_annotate, &before.view_annotate);
        visitor.visit("host.read", &self.host_read, &before.host_read);
        visitor.visit("port.write", &self.port_write, &before.port_write);
        services::visit("", &self.services, &before.services, visitor);
        visitor.visit("vendor", &self.vendor, &before.vendor);
        visitor.visit("query", &self.query, &before.query);
        visitor.visit("publish", &self.publish, &before.publish);
        visitor.visit("subscribe", &self.subscribe, &before.subscribe);
    }

    /// The capabilities without bounds that services declare and the kernel knows, and whether each is present.
    pub(super) fn wholes(&self) -> [(&'static str, bool); 3] {
        [
            ("view.read", self.view_read.is_some()),
            ("view.annotate", self.view_annotate.is_some()),
            ("host.read", self.host_read.is_some()),
        ]
    }

    /// The services whose tables an app with these capabilities may read in shared memory.
    pub fn shared_tables(&self) -> Vec<String> {
        let wholes = self.wholes();
        let holds = |name: &&str| wholes.contains(&(*name, true));
        let readable = services::SHARED.iter().filter(|table| table.capabilities.iter().all(holds));
        readable.map(|table| table.service.to_owned()).collect()
    }

    /// All present capabilities as requests.
    pub fn asks(&self) -> Vec<Ask> {
        let mut all = All::default();
        self.visit(&Capabilities::default(), &mut all);
        all.0
    }

    /// Only the capabilities whose names `kept` accepts, with their bounds.
    pub fn only(&self, kept: impl Fn(&str) -> bool) -> Capabilities {
        fn keep<T: Clone>(kept: bool, one: &Option<T>) -> Option<T> {
            one.clone().filter(|_| kept)
        }
        Capabilities {
            packet_in: keep(kept("packet.in"), &self.packet_in),
            packet_out: keep(kept("packet.out"), &self.packet_out),
            rule_write: keep(kept("rule.write"), &self.rule_write),
            rule_write_others: keep(kept("rule.write.others"), &self.rule_write_others),
            rule_delete_foreign: keep(kept("rule.delete.foreign"), &self.rule_delete_foreign),
            rule_read: keep(kept("rule.read"), &self.rule_read),
            stats_read: keep(kept("stats.read"), &self.stats_read),
            view_read: keep(kept("view.read"), &self.view_read),
            view_annotate: keep(kept("view.annotate"), &self.view_annotate),
            host_read: keep(kept("host.read"), &self.host_read),
            port_write: keep(kept("port.write"), &self.port_write),
            services: services::only("", &self.services, &kept),
            vendor: keep(kept("vendor"), &self.vendor),
            query: keep(kept("query"), &self.query),
            publish: keep(kept("publish"), &self.publish),
            subscribe: keep(kept("subscribe"), &self.subscribe),
        }
    }
}

impl PacketIn {
    /// Where it applies.
    pub fn scope(&self) -> Scope<'_> {
        let PacketIn { flowspace, datapaths, own_ports, switches } = self;
        Scope { flowspace, ports: &None, own_ports, datapaths, switches }
    }
}

impl Requestable for PacketIn {
    fn words(&self, _: &str) -> String {
        let scope = self.scope();
        let own = scope.of_own_ports();
        format!("receive the packet-ins of switches{}{own}{}", scope.packets(), scope.of_switches())
    }

    fn lies_within(&self, wider: &PacketIn) -> bool {
        self.scope().lies_within(&wider.scope())
    }
}

impl PacketOut {
    /// Where it applies.
    pub fn scope(&self) -> Scope<'_> {
        let PacketOut { flowspace, ports, datapaths, own_ports, switches } = self;
        Scope { flowspace, ports, own_ports, datapaths, switches }
    }
}

impl Requestable for PacketOut {
    fn words(&self, _: &str) -> String {
        let scope = self.scope();
        let ports = scope.output_ports() + &scope.of_own_ports();
        format!("send packets of its own{}{ports}{}", scope.packets(), scope.of_switches())
    }

    fn lies_within(&self, wider: &PacketOut) -> bool {
        self.scope().lies_within(&wider.scope())
    }
}

impl RuleWrite {
    /// Where it applies.
    pub fn scope(&self) -> Scope<'_> {
        let RuleWrite { flowspace, ports, datapaths, own_ports, switches, .. } = self;
        Scope { flowspace, ports, own_ports, datapaths, switches }
    }
}

impl Requestable for RuleWrite {
    fn words(&self, _: &str) -> String {
        let scope = self.scope();
        let tables = self.tables.as_ref().map(|tables| format!(", in tables {}", listed(tables)));
        let priority =
            self.priority.map(|range| format!(", with priorities {} to {}", range.low, range.high));
        let most = self.rules_per_datapath.map(|most| format!(", at most {most} in a switch"));
        let bounds = [
            tables.unwrap_or_default(),
            priority.unwrap_or_default(),
            scope.output_ports(),
            scope.of_own_ports(),
            scope.of_switches(),
            most.unwrap_or_default(),
        ];
        format!("write rules into switches{}{}", scope.packets(), bounds.concat())
    }

    fn lies_within(&self, wider: &RuleWrite) -> bool {
        self.scope().lies_within(&wider.scope())
            && narrower(&self.tables, &wider.tables, BTreeSet::is_subset)
            && narrower(&self.priority, &wider.priority, |this, wider| {
                wider.contains(this.low) && wider.contains(this.high)
            })
            && narrower(&self.rules_per_datapath, &wider.rules_per_datapath, |this, wider| this <= wider)
    }
}

impl PortWrite {
    /// Where it applies.
    pub fn scope(&self) -> Scope<'_> {
        let PortWrite { ports, datapaths, switches } = self;
        Scope { flowspace: &None, ports, own_ports: &None, datapaths, switches }
    }
}

impl Requestable for PortWrite {
    fn words(&self, _: &str) -> String {
        let ports = self.ports.as_ref().map(|ports| format!(" {}", listed(ports)));
        format!("change ports{}{}", ports.unwrap_or_default(), self.scope().of_switches())
    }

    fn lies_within(&self, wider: &PortWrite) -> bool {
        self.scope().lies_within(&wider.scope())
    }
}

impl Requestable for Names {
    fn words(&self, name: &str) -> String {
        let (what, all) = match name {
            "query" => ("ask the services", "ask every service"),
            "publish" => ("publish on the topics", "publish on every topic"),
            _ => ("receive messages of the topics", "receive messages of every topic"),
        };
        match self {
            Names::All => all.to_owned(),
            Names::Only(names) => format!("{what} {}", listed(names)),
        }
    }

    fn lies_within(&self, wider: &Names) -> bool {
        self.lie_within(wider)
    }
}

impl Requestable for Whole {
    fn words(&self, name: &str) -> String {
        match name {
            "rule.write.others" => "change and delete the rules of other apps",
            "rule.delete.foreign" => "delete rules that no app of this node added",
            "rule.read" => "read the flow entries of switches",
            "stats.read" => "request statistics from switches",
            "view.read" => "receive events about switches, ports, links and removed rules",
            "view.annotate" => "write annotations into the network view",
            "host.read" => "read the locations and addresses of hosts",
            "spawn" => "start other programs",
            other => other,
        }
        .to_owned()
    }

    fn lies_within(&self, _: &Whole) -> bool {
        true
    }

    fn danger(&self, name: &str) -> Option<&str> {
        match name {
            "rule.write.others" => Some("it can delete the rules of every other app, including a firewall"),
            "rule.delete.foreign" => Some("it can delete the rules of other controllers"),
            _ => None,
        }
    }
}
