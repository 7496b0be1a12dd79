//! Reads a table whose keys are partly fields of a struct, and partly names that services declare.
//!
//! ```text
//!   table ──> Mixed ──> keys of the struct ──> its derived reader
//!                └────> names of services ──> a map
//! ```
//!
//! In: a table of TOML or JSON, and the names of the struct's fields. Out: both parts. An unknown key is an error at
//! its own line.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};

use super::services::{self, Declaration, OfService};

/// The entries of services in a table, by name.
pub(super) type Entries<D> = BTreeMap<String, OfService<<D as Declaration>::Value, D>>;

/// The keys that a table may have.
#[derive(Debug)]
pub(super) struct Keys {
    /// Fields of the struct.
    fields: &'static [&'static str],
    /// What built-in services declare.
    services: Vec<&'static str>,
    /// Names that exist and are always refused.
    reserved: Vec<String>,
}

impl Keys {
    pub(super) fn new<D: Declaration>(fields: &'static [&'static str], reserved: Vec<String>) -> Keys {
        // The kernel enforces some capabilities that a service declares too. Those are fields.
        let of_services = services::built_in_names::<D>().into_iter();
        let services = of_services.filter(|name| !fields.contains(name)).collect();
        Keys { fields, services, reserved }
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<&str> {
        let known = self.fields.iter().chain(&self.services).copied();
        known.chain(self.reserved.iter().map(String::as_str)).collect()
    }

    fn sort<E: Error>(&self, name: String) -> Result<Key, E> {
        if self.fields.contains(&name.as_str()) {
            return Ok(Key::Field(name));
        }
        if self.reserved.contains(&name) {
            return Err(E::custom("only services of the node have this capability: leave it out"));
        }
        let known = self.all();
        if self.services.contains(&name.as_str()) || services::may_be_declared_elsewhere(&name, &known) {
            return Ok(Key::Service(name));
        }
        let known: Vec<String> = known.iter().map(|one| format!("`{one}`")).collect();
        // The form of serde's own error, which `toml_text` rewrites.
        Err(E::custom(format_args!("unknown field `{name}`, expected one of {}", known.join(", "))))
    }
}

/// A key of a table.
pub(super) enum Key {
    /// Of the struct.
    Field(String),
    /// Declared by a service.
    Service(String),
}

/// A table that yields the keys of the struct, and puts the others into `found`.
pub(super) struct Mixed<'k, A, D: Declaration> {
    pub(super) table: A,
    pub(super) keys: &'k Keys,
    pub(super) found: &'k mut Entries<D>,
}

impl<'de, A: MapAccess<'de>, D: Declaration> MapAccess<'de> for Mixed<'_, A, D> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        loop {
            match self.table.next_key_seed(self.keys)? {
                None => return Ok(None),
                Some(Key::Field(name)) => return seed.deserialize(name.into_deserializer()).map(Some),
                Some(Key::Service(name)) => {
                    let entry = self.table.next_value_seed(Entry::<D>(&name, std::marker::PhantomData))?;
                    self.found.insert(name, entry);
                }
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.table.next_value_seed(seed)
    }
}

impl<'de> DeserializeSeed<'de> for &Keys {
    type Value = Key;

    fn deserialize<I: Deserializer<'de>>(self, input: I) -> Result<Key, I::Error> {
        input.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for &Keys {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Key, E> {
        self.sort(name.to_owned())
    }
}

/// The value behind this name.
struct Entry<'n, D>(&'n str, std::marker::PhantomData<D>);

impl<'de, D: Declaration> DeserializeSeed<'de> for Entry<'_, D> {
    type Value = OfService<D::Value, D>;

    fn deserialize<I: Deserializer<'de>>(self, input: I) -> Result<Self::Value, I::Error> {
        let value = serde::Deserialize::deserialize(input)?;
        services::entry(self.0, value).map_err(I::Error::custom)
    }
}
