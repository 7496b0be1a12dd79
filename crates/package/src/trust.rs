//! The trust store, and the validity of a package's signatures.
//!
//! ```text
//!   trust.toml ──> TrustStore ──> opinions(digest, signatures, now) ──> require(opinions, "developer") ──> may be used, or why not
//! ```
//!
//! In: the text of the store, signatures, the time. Out: the standing of each signature, and a sentence if they are not
//! enough. It reads no clock and no file.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::key::{KeyId, KeyName, NamedKey, PublicKey};
use crate::moment::Moment;
use crate::signature::{Role, Signature, Signatures};
use crate::toml_text::{self, Fault};

/// The maximum number of keys in a trust store, including revoked ones. One more is refused.
pub const KEYS_MAX: usize = 1024;

/// The maximum size of a trust store in bytes: its keys at their longest.
pub const TRUST_BYTES_MAX: usize = KEYS_MAX * 512;

/// A trusted or revoked key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedKey {
    /// Its name on this node.
    pub name: KeyName,
    /// Its role. An operator's key also counts as a developer's.
    pub role: Role,
    /// The whole key.
    pub public: PublicKey,
    /// The start of the trust.
    pub since: Moment,
    /// The end of the trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Moment>,
    /// The time of its revocation. It stays in the store, so that messages can name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Moment>,
}

/// The trusted and revoked keys. Keys and names are unique.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustStore {
    #[serde(default, rename = "key")]
    keys: Vec<TrustedKey>,
}

/// The signature that a package needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Require {
    /// That of a trusted operator.
    Operator,
    /// That of a trusted developer or operator.
    #[default]
    Developer,
    /// None.
    None,
}

/// The standing of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureStatus {
    /// It counts.
    Counts,
    /// The key is unknown.
    Unknown,
    /// The key is trusted only as a developer's.
    NotAsOperator,
    /// The signature has expired.
    Expired(Moment),
    /// The key has expired.
    KeyExpired(Moment),
    /// The key was revoked.
    Revoked(Moment),
    /// The key did not sign this.
    Altered,
}

/// A signature with its standing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureCheck {
    /// The signer's role.
    pub role: Role,
    /// The signer's key.
    pub key: KeyId,
    /// The key's name on this node, if it is known.
    pub name: Option<KeyName>,
    /// The time that the signer states.
    pub time: Moment,
    /// Its standing.
    pub standing: SignatureStatus,
}

impl fmt::Display for SignatureCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SignatureCheck { role, key, name, time, standing } = self;
        let who = name.as_ref().map_or_else(|| format!("key {key}"), |name| format!("{name}, key {key}"));
        write!(f, "{role} ({who}), {time}: ")?;
        match standing {
            SignatureStatus::Counts => f.write_str("counts"),
            SignatureStatus::Unknown => f.write_str("this key is not trusted here"),
            SignatureStatus::NotAsOperator => f.write_str("this key is trusted only as a developer key"),
            SignatureStatus::Expired(at) => write!(f, "the signature expired at {at}"),
            SignatureStatus::KeyExpired(at) => write!(f, "the key expired at {at}"),
            SignatureStatus::Revoked(at) => write!(f, "the key was revoked at {at}"),
            SignatureStatus::Altered => f.write_str("the key did not sign this content"),
        }
    }
}

impl TrustStore {
    /// Reads a `trust.toml`.
    ///
    /// # Errors
    /// The faulty line, a duplicate key or name, or too many keys.
    pub fn parse(text: &str) -> Result<TrustStore, Fault> {
        let read: TrustStore = toml_text::parse(text)?;
        let fault = |reason: String| Err(Fault { line: 1, reason });
        if read.keys.len() > KEYS_MAX {
            return fault(format!("{} keys are more than the limit of {KEYS_MAX}", read.keys.len()));
        }
        for (index, key) in read.keys.iter().enumerate() {
            if read.keys[..index].iter().any(|other| other.name == key.name || other.public == key.public) {
                return fault(format!("the key {} is in it twice: leave one out", key.name));
            }
        }
        Ok(read)
    }

    /// The text of a `trust.toml`.
    pub fn to_text(&self) -> String {
        let heading = "# Keys that are trusted to sign packages; written by burnet key trust and distrust.\n";
        let keys =
            if self.keys.is_empty() { String::new() } else { toml::to_string(self).unwrap_or_default() };
        format!("{heading}{keys}")
    }

    /// All keys, in the order of their addition.
    pub fn keys(&self) -> &[TrustedKey] {
        &self.keys
    }

    /// Trusts a key. A key that is trusted already gets the new role and time.
    ///
    /// # Errors
    /// The key was revoked, another key has its name, or the store is full: a sentence.
    pub fn trust(
        &mut self,
        key: NamedKey,
        role: Role,
        now: Moment,
        expires: Option<Moment>,
    ) -> Result<(), String> {
        let NamedKey { name, public } = key;
        if expires.is_some_and(|expires| expires <= now) {
            return Err(format!("the trust in {name} would already be expired: choose a time after {now}"));
        }
        if let Some(other) = self.keys.iter().find(|other| other.name == name && other.public != public) {
            return Err(format!(
                "there is another key called {name} ({}): give this one another name with --name",
                other.public.id()
            ));
        }
        let place = self.keys.iter().position(|other| other.public == public);
        if let Some(at) = place.and_then(|place| self.keys[place].revoked) {
            return Err(format!(
                "this key was revoked at {at} and cannot be trusted again: its owner must create a new key (burnet key new)"
            ));
        }
        let trusted = TrustedKey { name, role, public, since: now, expires, revoked: None };
        match place {
            Some(place) => self.keys[place] = trusted,
            None if self.keys.len() == KEYS_MAX => {
                return Err(format!("there are already {KEYS_MAX} keys: remove some from trust.toml first"));
            }
            None => self.keys.push(trusted),
        }
        Ok(())
    }

    /// Revokes the key of this name or id permanently.
    ///
    /// # Errors
    /// It does not exist, or was revoked before: a sentence.
    pub fn distrust(&mut self, which: &str, now: Moment) -> Result<&TrustedKey, String> {
        let named =
            |key: &&mut TrustedKey| key.name.as_str() == which || key.public.id().to_string() == which;
        let Some(key) = self.keys.iter_mut().find(named) else {
            return Err(format!("no key {which} is trusted: burnet key list shows the trusted keys"));
        };
        if let Some(at) = key.revoked {
            return Err(format!("{which} was revoked already, at {at}"));
        }
        key.revoked = Some(now);
        Ok(key)
    }

    /// The standing of each signature of a package at this time.
    pub fn checks(&self, digest: &Digest, signatures: &Signatures, now: Moment) -> Vec<SignatureCheck> {
        let check = |signature: &Signature| {
            let known = self.keys.iter().find(|key| key.public.id() == signature.key);
            SignatureCheck {
                role: signature.role,
                key: signature.key,
                name: known.map(|key| key.name.clone()),
                time: signature.time,
                standing: known.map_or(SignatureStatus::Unknown, |key| standing(key, digest, signature, now)),
            }
        };
        signatures.all().iter().map(check).collect()
    }
}

fn standing(key: &TrustedKey, digest: &Digest, signature: &Signature, now: Moment) -> SignatureStatus {
    let over = |until: Option<Moment>| until.filter(|until| *until <= now);
    if !signature.verifies(digest, &key.public) {
        return SignatureStatus::Altered;
    }
    // The time in the signature does not matter: the holder of the key can write any time.
    if let Some(at) = key.revoked {
        return SignatureStatus::Revoked(at);
    }
    if let Some(at) = over(key.expires) {
        return SignatureStatus::KeyExpired(at);
    }
    if let Some(at) = over(signature.expires) {
        return SignatureStatus::Expired(at);
    }
    if signature.role > key.role { SignatureStatus::NotAsOperator } else { SignatureStatus::Counts }
}

/// Checks whether the signatures are enough.
///
/// # Errors
/// The fault, and what to do: a phrase to follow the package's name.
pub fn require(checks: &[SignatureCheck], require: Require) -> Result<(), String> {
    let enough = |check: &SignatureCheck| {
        check.standing == SignatureStatus::Counts
            && (require == Require::Developer || check.role == Role::Operator)
    };
    if require == Require::None || checks.iter().any(enough) {
        return Ok(());
    }
    let of = |rank: u8| checks.iter().find(|check| telling(check.standing) == rank);
    // The most informative standing comes first.
    let Some(worst) = (0..=6).find_map(of) else {
        return Err("is unsigned: have its developer sign it (burnet app sign)".to_owned());
    };
    let what = match worst.standing {
        SignatureStatus::Altered => {
            "was altered: a signature does not match its content; get it from its developer again"
        }
        SignatureStatus::Revoked(_) => "is signed with a revoked key: have it signed with another key",
        SignatureStatus::KeyExpired(_) => {
            "is signed with an expired key: trust the key for longer (burnet key trust), or have it signed with another"
        }
        SignatureStatus::Expired(_) => {
            "has an expired signature: have it signed again, or get a newer version"
        }
        SignatureStatus::NotAsOperator => {
            "is signed with the role operator, by a key that is trusted only as a developer key"
        }
        SignatureStatus::Unknown => "has no signature of a trusted key: burnet key trust FILE.pub",
        SignatureStatus::Counts => {
            "is signed only by its developer, and an operator signature is required: burnet app sign --role operator"
        }
    };
    Err(format!("{what} [{worst}]"))
}

fn telling(standing: SignatureStatus) -> u8 {
    match standing {
        SignatureStatus::Altered => 0,
        SignatureStatus::Revoked(_) => 1,
        SignatureStatus::KeyExpired(_) => 2,
        SignatureStatus::Expired(_) => 3,
        SignatureStatus::NotAsOperator => 4,
        SignatureStatus::Counts => 5,
        SignatureStatus::Unknown => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::PrivateKey;

    const NOW: u64 = 1000;

    fn at(seconds: u64) -> Moment {
        Moment::from_unix_s(seconds)
    }

    fn key(name: &str) -> PrivateKey {
        PrivateKey::from_random(name.parse().unwrap(), &[name.len() as u8; 32])
    }

    fn digest() -> Digest {
        Digest::of(b"list")
    }

    fn signed(by: &str, role: Role, expires: Option<u64>) -> Signature {
        Signature::make(&digest(), &key(by), role, at(1), expires.map(at))
    }

    /// dev is a developer, boss an operator, gone was revoked, stale has expired; the rest is unknown.
    fn store() -> TrustStore {
        let mut store = TrustStore::default();
        store.trust(key("dev").public(), Role::Developer, at(1), None).unwrap();
        store.trust(key("boss").public(), Role::Operator, at(1), None).unwrap();
        store.trust(key("g-one").public(), Role::Operator, at(1), None).unwrap();
        store.distrust("g-one", at(500)).unwrap();
        store.trust(key("stale1").public(), Role::Operator, at(1), Some(at(NOW))).unwrap();
        store
    }

    fn judged(signatures: &[Signature], policy: Require) -> Result<(), String> {
        let mut all = Signatures::default();
        signatures.iter().for_each(|signature| all.add(signature.clone()).unwrap());
        require(&store().checks(&digest(), &all, at(NOW)), policy)
    }

    fn refused(signatures: &[Signature], policy: Require, expected: &str) {
        let why = judged(signatures, policy).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }

    #[test]
    fn what_is_not_signed_as_it_must_be_is_refused_by_name() {
        let developer = Require::Developer;
        refused(&[], developer, "is unsigned");
        refused(&[signed("stranger", Role::Operator, None)], developer, "has no signature of a trusted key");
        refused(&[signed("g-one", Role::Operator, None)], developer, "revoked key");
        refused(&[signed("g-one", Role::Operator, None)], developer, "revoked at 1970-01-01T00:08:20Z");
        refused(&[signed("stale1", Role::Developer, None)], developer, "expired key");
        refused(&[signed("dev", Role::Developer, Some(NOW))], developer, "expired signature");
        refused(&[signed("dev", Role::Operator, None)], developer, "trusted only as a developer key");
        refused(
            &[signed("dev", Role::Developer, None)],
            Require::Operator,
            "an operator signature is required",
        );
        let other = Signature::make(&Digest::of(b"lost"), &key("dev"), Role::Developer, at(1), None);
        refused(&[other], developer, "was altered");
    }

    #[test]
    fn a_signature_that_counts_is_enough_whatever_else_there_is() {
        let (dev, boss) =
            (signed("dev", Role::Developer, Some(NOW + 1)), signed("boss", Role::Operator, None));
        assert_eq!(judged(std::slice::from_ref(&dev), Require::Developer), Ok(()));
        assert_eq!(judged(std::slice::from_ref(&boss), Require::Developer), Ok(()));
        assert_eq!(judged(&[signed("boss", Role::Developer, None)], Require::Developer), Ok(()));
        assert_eq!(judged(&[signed("g-one", Role::Operator, None), dev, boss], Require::Operator), Ok(()));
        assert_eq!(judged(&[], Require::None), Ok(()));
    }

    #[test]
    fn a_key_cannot_be_trusted_in_the_wrong_way() {
        let mut store = store();
        let mut refused = |key: NamedKey, expires: Option<u64>, expected: &str| {
            let why = store.trust(key, Role::Developer, at(NOW), expires.map(at)).unwrap_err();
            assert!(why.contains(expected), "{why}");
        };
        refused(key("g-one").public(), None, "was revoked at");
        refused(
            NamedKey { name: "dev".parse().unwrap(), ..key("another").public() },
            None,
            "another key called dev",
        );
        refused(key("another").public(), Some(NOW), "would already be expired");
        assert!(store.distrust("nobody", at(1)).unwrap_err().contains("no key nobody is trusted"));
        assert!(store.distrust("g-one", at(1)).unwrap_err().contains("revoked already"));
    }

    #[test]
    fn a_key_is_revoked_by_its_id_too_and_trusted_for_longer() {
        let mut store = store();
        let id = key("dev").public().public.id().to_string();
        assert_eq!(store.distrust(&id, at(5)).unwrap().name.as_str(), "dev");
        store.trust(key("stale1").public(), Role::Developer, at(NOW), Some(at(NOW + 1))).unwrap();
        let stale = store.keys().iter().find(|key| key.name.as_str() == "stale1").unwrap();
        assert_eq!((stale.role, stale.expires), (Role::Developer, Some(at(NOW + 1))));
    }

    #[test]
    fn a_store_reads_as_it_was_written_and_twice_is_refused() {
        let text = store().to_text();
        assert_eq!(TrustStore::parse(&text), Ok(store()));
        assert_eq!(TrustStore::parse(&TrustStore::default().to_text()), Ok(TrustStore::default()));
        let (_, first) = text.split_once("[[key]]").unwrap();
        let twice = format!("{text}[[key]]{first}");
        assert!(TrustStore::parse(&twice).unwrap_err().reason.contains("dev is in it twice"));
        let fault = TrustStore::parse(&text.replace("role = \"developer\"", "role = \"root\"")).unwrap_err();
        assert!(fault.to_string().starts_with("line 4: unknown variant `root`"), "{fault}");
    }
}
