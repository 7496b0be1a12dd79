//! Reads a JSON object whose `type` determines its keys. Errors name the key.

use crate::port::PortNo;
use crate::value;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// How many keys an object may have. No action or instruction has more than four; a longer one is refused.
const MAX_KEYS: usize = 16;

/// A JSON value that is not an array or object.
#[derive(Clone, Debug)]
pub(super) enum Scalar {
    Number(u64),
    Text(String),
    /// A value that no key accepts, with its kind.
    Other(&'static str),
}

impl Scalar {
    /// The value as it is written in text.
    pub(super) fn text(&self) -> Result<String, String> {
        match self {
            Scalar::Number(number) => Ok(number.to_string()),
            Scalar::Text(text) => Ok(text.clone()),
            Scalar::Other(what) => Err(format!("expected a number or a string, found {what}")),
        }
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a string")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
        Ok(Scalar::Number(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
        Ok(u64::try_from(number).map_or(Scalar::Other("a negative number"), Scalar::Number))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Scalar, E> {
        Ok(Scalar::Other("a number that is not whole"))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Scalar, E> {
        Ok(Scalar::Other("true or false"))
    }

    fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
        Ok(Scalar::Other("null"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other("a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Scalar, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other("an object"))
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

/// The keys of an object that have not been read yet.
#[derive(Debug)]
pub(super) struct Object {
    kind: String,
    keys: Vec<(String, Scalar)>,
}

impl Object {
    /// Reads an object. `list` gets each key first and returns whether it has read the value.
    pub(super) fn read<'de, A: MapAccess<'de>>(
        mut map: A,
        mut list: impl FnMut(&str, &mut A) -> Result<bool, A::Error>,
    ) -> Result<Self, A::Error> {
        let mut keys: Vec<(String, Scalar)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if keys.len() == MAX_KEYS {
                return Err(A::Error::custom(format!("more than {MAX_KEYS} keys")));
            }
            if keys.iter().any(|(there, _)| *there == key) {
                return Err(A::Error::custom(format!("the key '{key}' appears twice")));
            }
            if !list(&key, &mut map)? {
                let scalar = map.next_value()?;
                keys.push((key, scalar));
            }
        }
        let mut object = Object { kind: "type".to_owned(), keys };
        object.kind = object.text("type").map_err(A::Error::custom)?;
        Ok(object)
    }

    /// The value of `type`.
    pub(super) fn kind(&self) -> &str {
        &self.kind
    }

    /// An error about this object.
    pub(super) fn fault(&self, message: impl fmt::Display) -> String {
        format!("{}: {message}", self.kind)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|(there, _)| there == key)
    }

    fn take(&mut self, key: &'static str) -> Option<Scalar> {
        let at = self.keys.iter().position(|(there, _)| there == key)?;
        Some(self.keys.swap_remove(at).1)
    }

    /// A string, or a number in decimal.
    pub(super) fn text(&mut self, key: &'static str) -> Result<String, String> {
        let scalar = self.take(key).ok_or_else(|| self.fault(format!("the key '{key}' is missing")))?;
        scalar.text().map_err(|fault| self.fault(format!("{key}: {fault}")))
    }

    /// A value that is parsed from a string.
    pub(super) fn parsed<T>(&mut self, key: &'static str) -> Result<T, String>
    where
        T: std::str::FromStr<Err: fmt::Display>,
    {
        self.text(key)?.parse().map_err(|fault| self.fault(format!("{key}: {fault}")))
    }

    /// A number that fits `T`, as a number or a string.
    pub(super) fn number<T: TryFrom<u128>>(&mut self, key: &'static str) -> Result<T, String> {
        let text = self.text(key)?;
        let bits = 8 * size_of::<T>();
        let fits = value::read_number(&text).and_then(|number| T::try_from(number).ok());
        fits.ok_or_else(|| self.fault(format!("{key}: expected a number of {bits} bits, found '{text}'")))
    }

    /// A port, by number or name.
    pub(super) fn port(&mut self, key: &'static str) -> Result<PortNo, String> {
        self.parsed(key)
    }

    /// Bytes in hexadecimal.
    pub(super) fn bytes(&mut self, key: &'static str) -> Result<Vec<u8>, String> {
        value::read_hex(&self.text(key)?).map_err(|fault| self.fault(format!("{key}: {fault}")))
    }

    /// Refuses keys that were not read.
    pub(super) fn end<T>(self, read: T) -> Result<T, String> {
        match self.keys.first() {
            None => Ok(read),
            Some((key, _)) => Err(self.fault(format!("the key '{key}' is unknown here"))),
        }
    }
}
