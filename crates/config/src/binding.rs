//! `binding` and `[southbound.tls.datapaths]`: which certificate may be used for which datapath id, as the operator
//! writes it.
//!
//! In: words, datapath ids and fingerprints. Out: the types of `southbound`, or a message that says what to write. It
//! reads no certificate.

use flow::DatapathId;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use southbound::{Binding, Fingerprint, NotAFingerprint};
use std::collections::BTreeMap;
use std::fmt;

/// How datapath ids are bound to certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TlsBinding {
    /// By the table, then by the names in the certificate, then by the first certificate that is used for the id.
    #[default]
    Pin,
    /// By the table or by the names in the certificate.
    Named,
    /// No id is bound.
    None,
}

impl TlsBinding {
    /// The same as a type of `southbound`.
    pub fn to_southbound(self) -> Binding {
        match self {
            TlsBinding::Pin => Binding::Pin,
            TlsBinding::Named => Binding::Named,
            TlsBinding::None => Binding::None,
        }
    }
}

/// A certificate's fingerprint that can be read from and written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WrittenFingerprint(pub Fingerprint);

impl TryFrom<String> for WrittenFingerprint {
    type Error = NotAFingerprint;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(WrittenFingerprint)
    }
}

impl From<WrittenFingerprint> for String {
    fn from(print: WrittenFingerprint) -> String {
        print.0.to_string()
    }
}

/// The certificates for one id: one, or a list, since a switch has two while its certificate is renewed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Fingerprints(pub Vec<WrittenFingerprint>);

/// The table `[southbound.tls.datapaths]`.
pub type Datapaths = BTreeMap<DatapathId, Fingerprints>;

/// The same as a type of `southbound`.
pub fn to_southbound(datapaths: &Datapaths) -> BTreeMap<DatapathId, Vec<Fingerprint>> {
    let plain = |prints: &Fingerprints| prints.0.iter().map(|print| print.0).collect();
    datapaths.iter().map(|(datapath, prints)| (*datapath, plain(prints))).collect()
}

impl<'de> Deserialize<'de> for Fingerprints {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(OneOrMore)
    }
}

struct OneOrMore;

impl<'de> Visitor<'de> for OneOrMore {
    type Value = Fingerprints;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the SHA-256 fingerprint of a certificate, or a list of them")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Fingerprints, E> {
        let print = text.parse().map_err(E::custom)?;
        Ok(Fingerprints(vec![WrittenFingerprint(print)]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Fingerprints, A::Error> {
        let mut prints = Vec::new();
        while let Some(print) = list.next_element()? {
            prints.push(print);
        }
        if prints.is_empty() {
            return Err(A::Error::custom(
                "the list is empty: write at least one fingerprint, or leave the id out",
            ));
        }
        Ok(Fingerprints(prints))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Datapaths, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_no_id_or_no_fingerprint_is_refused_with_what_to_write() {
        let check = |text: &str, expected: &str| {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        };
        check("x = 'AB'", "'x' is not a datapath id");
        check("1 = 'AB'", "'AB' is not a SHA-256 fingerprint");
        check("1 = ['AB']", "'AB' is not a SHA-256 fingerprint");
        check("1 = []", "write at least one fingerprint");
        check("1 = 7", "the SHA-256 fingerprint of a certificate, or a list of them");
    }

    #[test]
    fn one_and_several_are_read_and_handed_on() {
        let (one, two) = (Fingerprint::of(b"1"), Fingerprint::of(b"2"));
        let read = read(&format!("1 = '{one}'\n'00:00:00:00:00:00:00:a1' = ['{one}', '{two}']")).unwrap();
        assert_eq!(
            to_southbound(&read),
            [(DatapathId(1), vec![one]), (DatapathId(0xa1), vec![one, two])].into()
        );
        let handed_on = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<Datapaths>(&handed_on).unwrap(), read);
    }
}
