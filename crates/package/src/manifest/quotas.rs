//! The table `[quotas]`: how much an app may do with the network and with services.
//!
//! In: TOML, or its JSON form. Out: [`Quotas`] with only what was written. It never knows the defaults of a node, and
//! enforces nothing.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::amounts::Amount;
use super::asks::Visit;
use super::keys::{Keys, Mixed};
use super::services::{self, ServiceQuotas};

/// `[quotas]`: how much it may do with the network. `None` means the node's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Quotas {
    /// Commands a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands_per_s: Option<Amount>,
    /// Packets a second that packet-outs make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_outs_per_s: Option<Amount>,
    /// Bytes of these packets a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_out_bytes_per_s: Option<Amount>,
    /// Packets a second at one switch, beyond the first few of each packet-out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies_per_switch_per_s: Option<Amount>,
    /// Packet-ins a second that its rules and packet-outs cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_ins_caused_per_s: Option<Amount>,
    /// Statistics a second: each request, and each KiB of its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats_per_s: Option<Amount>,
    /// How much it may take of services, by the names that they declare.
    #[serde(flatten, skip_deserializing)]
    pub services: ServiceQuotas,
}

/// The keys of [`Quotas`] that are not declared by a service.
const FIELDS: &[&str] = &[
    "commands_per_s",
    "packet_outs_per_s",
    "packet_out_bytes_per_s",
    "copies_per_switch_per_s",
    "packet_ins_caused_per_s",
    "stats_per_s",
];

impl Serialize for Quotas {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Quotas::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Quotas {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Table;

        impl<'de> Visitor<'de> for Table {
            type Value = Quotas;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a table of quotas")
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Quotas, A::Error> {
                let (keys, mut found) =
                    (Keys::new::<contract::Quota>(FIELDS, Vec::new()), ServiceQuotas::new());
                let table = Mixed { table, keys: &keys, found: &mut found };
                let written = Quotas::deserialize(MapAccessDeserializer::new(table))?;
                Ok(Quotas { services: found, ..written })
            }
        }

        input.deserialize_map(Table)
    }
}

impl Quotas {
    /// Fills missing quotas from `others`.
    #[must_use]
    pub fn or(self, others: Quotas) -> Quotas {
        let mut services = others.services;
        services.extend(self.services);
        Quotas {
            commands_per_s: self.commands_per_s.or(others.commands_per_s),
            packet_outs_per_s: self.packet_outs_per_s.or(others.packet_outs_per_s),
            packet_out_bytes_per_s: self.packet_out_bytes_per_s.or(others.packet_out_bytes_per_s),
            copies_per_switch_per_s: self.copies_per_switch_per_s.or(others.copies_per_switch_per_s),
            packet_ins_caused_per_s: self.packet_ins_caused_per_s.or(others.packet_ins_caused_per_s),
            stats_per_s: self.stats_per_s.or(others.stats_per_s),
            services,
        }
    }

    pub(super) fn visit(&self, before: &Quotas, visitor: &mut impl Visit) {
        visitor.visit("quotas.commands_per_s", &self.commands_per_s, &before.commands_per_s);
        visitor.visit("quotas.packet_outs_per_s", &self.packet_outs_per_s, &before.packet_outs_per_s);
        let (now, then) = (&self.packet_out_bytes_per_s, &before.packet_out_bytes_per_s);
        visitor.visit("quotas.packet_out_bytes_per_s", now, then);
        let (now, then) = (&self.copies_per_switch_per_s, &before.copies_per_switch_per_s);
        visitor.visit("quotas.copies_per_switch_per_s", now, then);
        let (now, then) = (&self.packet_ins_caused_per_s, &before.packet_ins_caused_per_s);
        visitor.visit("quotas.packet_ins_caused_per_s", now, then);
        visitor.visit("quotas.stats_per_s", &self.stats_per_s, &before.stats_per_s);
        services::visit("quotas.", &self.services, &before.services, visitor);
    }

    /// Only the entries whose names `kept` accepts.
    pub fn only(&self, kept: impl Fn(&str) -> bool) -> Quotas {
        Quotas {
            commands_per_s: self.commands_per_s.filter(|_| kept("quotas.commands_per_s")),
            packet_outs_per_s: self.packet_outs_per_s.filter(|_| kept("quotas.packet_outs_per_s")),
            packet_out_bytes_per_s: self
                .packet_out_bytes_per_s
                .filter(|_| kept("quotas.packet_out_bytes_per_s")),
            copies_per_switch_per_s: self
                .copies_per_switch_per_s
                .filter(|_| kept("quotas.copies_per_switch_per_s")),
            packet_ins_caused_per_s: self
                .packet_ins_caused_per_s
                .filter(|_| kept("quotas.packet_ins_caused_per_s")),
            stats_per_s: self.stats_per_s.filter(|_| kept("quotas.stats_per_s")),
            services: services::only("quotas.", &self.services, &kept),
        }
    }
}
