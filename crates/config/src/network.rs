//! `[network]`: the services of the network view, and the settings of each.
//!
//! ```toml
//! [network]
//! services = ["discovery", "hosts"]   # without this key: all
//!
//! [network.discovery]
//! probe_interval_ms = 3000
//! ```
//!
//! In: the table. Out: which services run, with their settings. The settings are the service's own. Only `listen`, `limits` and
//! `shared_bytes` belong to the node. It starts no service.

use std::collections::BTreeMap;
use std::fmt;

use contract::ServiceAddress;
use monitor_channel::app::{REGION_BYTES_MAX, REGION_BYTES_MIN};
use package::manifest::amounts::flaw_of_memory;
use package::manifest::services::OF_NETWORK;
use package::toml_text;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};
use zone::Limits;

/// The key of the list of services.
const SERVICES: &str = "services";

/// `[network]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkTable {
    /// The services that run. `None`: all.
    pub services: Option<Vec<String>>,
    /// `[network.NAME]`, by the service's name.
    pub of: BTreeMap<String, ServiceSettings>,
}

/// `[network.NAME]`: the settings of one service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceSettings {
    /// Where it accepts connections, in place of its default.
    pub listen: Option<Vec<ServiceAddress>>,
    /// What its process may use of the machine, in place of its default.
    pub limits: Option<Limits>,
    /// The size of its shared memory in bytes, in place of its default. 0: none.
    pub shared_bytes: Option<usize>,
    /// All other keys, which the service receives.
    pub settings: Map<String, Value>,
}

impl NetworkTable {
    /// Whether the node runs this service of the network.
    pub fn runs(&self, service: &str) -> bool {
        self.services.as_ref().is_none_or(|services| services.iter().any(|one| one == service))
    }
}

impl<'de> Deserialize<'de> for NetworkTable {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Table;

        impl<'de> Visitor<'de> for Table {
            type Value = NetworkTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table with the services of the network")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<NetworkTable, A::Error> {
                let mut read = NetworkTable::default();
                while let Some(key) = table.next_key::<NetworkKey>()? {
                    match key {
                        NetworkKey::Services => {
                            let names: Vec<ServiceName> = table.next_value()?;
                            read.services = Some(names.into_iter().map(|ServiceName(name)| name).collect());
                        }
                        NetworkKey::Of(name) => {
                            read.of.insert(name, table.next_value()?);
                        }
                    }
                }
                Ok(read)
            }
        }

        input.deserialize_map(Table)
    }
}

/// A key of `[network]`.
enum NetworkKey {
    Services,
    Of(String),
}

impl<'de> Deserialize<'de> for NetworkKey {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let name = String::deserialize(input)?;
        if name == SERVICES {
            return Ok(NetworkKey::Services);
        }
        if is_of_network(&name) {
            return Ok(NetworkKey::Of(name));
        }
        let known = std::iter::once(SERVICES).chain(OF_NETWORK.iter().map(|service| service.name.as_ref()));
        let known: Vec<String> = known.map(|one| format!("`{one}`")).collect();
        // The form of serde's own error, which `toml_text` rewrites.
        Err(D::Error::custom(format_args!("unknown field `{name}`, expected one of {}", known.join(", "))))
    }
}

/// The name of a service of the network.
struct ServiceName(String);

impl<'de> Deserialize<'de> for ServiceName {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let name = String::deserialize(input)?;
        if is_of_network(&name) {
            return Ok(ServiceName(name));
        }
        let known: Vec<&str> = OF_NETWORK.iter().map(|service| service.name.as_ref()).collect();
        let known = known.join(", ");
        Err(D::Error::custom(format_args!("`{name}` is no service of the network: write some of {known}")))
    }
}

fn is_of_network(name: &str) -> bool {
    OF_NETWORK.iter().any(|service| service.name == name)
}

impl<'de> Deserialize<'de> for ServiceSettings {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let mut table = toml::Table::deserialize(input)?;
        let of_key = |key: &'static str| {
            move |why: toml::de::Error| D::Error::custom(format_args!("{key}: {}", why.message()))
        };
        let listen = table.remove("listen").map(|value| value.try_into().map_err(of_key("listen")));
        let limits = table.remove("limits").map(|value| value.try_into().map_err(of_key("limits")));
        let limits: Option<Limits> = limits.transpose()?;
        if let Some(flaw) = limits.as_ref().and_then(|limits| flaw_of_memory(limits.memory_bytes)) {
            return Err(D::Error::custom(flaw));
        }
        let shared_bytes =
            table.remove("shared_bytes").map(|value| value.try_into().map_err(of_key("shared_bytes")));
        let shared_bytes: Option<usize> = shared_bytes.transpose()?;
        if let Some(flaw) = shared_bytes.and_then(flaw_of_shared) {
            return Err(D::Error::custom(flaw));
        }
        let settings = toml_text::json_object(table).map_err(D::Error::custom)?;
        Ok(ServiceSettings { listen: listen.transpose()?, limits, shared_bytes, settings })
    }
}

/// What is wrong with a size of shared memory, if something is.
fn flaw_of_shared(bytes: usize) -> Option<String> {
    let is_size = bytes == 0 || (REGION_BYTES_MIN..=REGION_BYTES_MAX).contains(&bytes);
    (!is_size).then(|| {
        format!("shared_bytes: {bytes} is not possible: write 0 for none, or {REGION_BYTES_MIN} to {REGION_BYTES_MAX}")
    })
}
