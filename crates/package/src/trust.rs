//! Whom to believe: the trust store, and what the signatures of a package are worth.
//!
//! ```text
//!   trust.toml ──> TrustStore ──> opinions(digest, signatures, now) ──> require(opinions, "developer") ──> may be used, or why not
//! ```
//!
//! In: the text of the store, signatures, the time. Out: what each signature is worth, and a sentence where that is not enough. It
//! reads no clock and no file.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::key::{KeyId, KeyName, NamedKey, PublicKey};
use crate::moment::Moment;
use crate::signature::{Role, Signature, Signatures};
use crate::toml_text::{self, Fault};

/// Most keys in a trust store, revoked ones included. One more is refused.
pub const KEYS_MAX: usize = 1024;

/// Largest trust store in bytes: its keys at their longest.
pub const TRUST_BYTES_MAX: usize = KEYS_MAX * 512;

/// A key that is trusted, or was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedKey {
    /// What it is called here.
    pub name: KeyName,
    /// As what it is trusted; an operator's key is trusted as a developer's too.
    pub role: Role,
    /// The whole key.
    pub public: PublicKey,
    /// Since when.
    pub since: Moment,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Moment>,
    /// When it was revoked. It stays in the store, so that this can be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Moment>,
}

/// The keys that are trusted, or were: each once, each with a name of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustStore {
    #[serde(default, rename = "key")]
    keys: Vec<TrustedKey>,
}

/// Whose signature a package needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Require {
    /// A trusted operator's.
    Operator,
    /// A trusted developer's or operator's.
    #[default]
    Developer,
    /// Nobody's.
    None,
}

/// What a signature is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It counts.
    Counts,
    /// Nobody said who this key is.
    Unknown,
    /// The key is trusted, but only as a developer's.
    NotAsOperator,
    /// Its own time is over.
    Expired(Moment),
    /// Its key's time is over.
    KeyExpired(Moment),
    /// Its key was revoked.
    Revoked(Moment),
    /// The key did not sign this.
    Altered,
}

/// A signature with what it is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opinion {
    /// As what somebody signed.
    pub role: Role,
    /// With which key.
    pub key: KeyId,
    /// What the key is called here, if it is known.
    pub name: Option<KeyName>,
    /// When, as the signer says.
    pub time: Moment,
    /// What it is worth.
    pub standing: Standing,
}

impl fmt::Display for Opinion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Opinion { role, key, name, time, standing } = self;
        let who = name.as_ref().map_or_else(|| format!("key {key}"), |name| format!("{name}, key {key}"));
        write!(f, "{role} ({who}), {time}: ")?;
        match standing {
            Standing::Counts => f.write_str("counts"),
            Standing::Unknown => f.write_str("this key is not trusted here"),
            Standing::NotAsOperator => f.write_str("this key is trusted only as a developer's"),
            Standing::Expired(at) => write!(f, "the signature expired at {at}"),
            Standing::KeyExpired(at) => write!(f, "the key expired at {at}"),
            Standing::Revoked(at) => write!(f, "the key was revoked at {at}"),
            Standing::Altered => f.write_str("the key did not sign what is in this package"),
        }
    }
}

impl TrustStore {
    /// Reads a `trust.toml`.
    ///
    /// # Errors
    /// The line that is wrong; a key or a name twice; too many of them.
    pub fn parse(text: &str) -> Result<TrustStore, Fault> {
        let read: TrustStore = toml_text::parse(text)?;
        let fault = |reason: String| Err(Fault { line: 1, reason });
        if read.keys.len() > KEYS_MAX {
            return fault(format!("{} keys are more than the {KEYS_MAX} there may be", read.keys.len()));
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

    /// All keys, in the order in which they came.
    pub fn keys(&self) -> &[TrustedKey] {
        &self.keys
    }

    /// Trusts a key. One that is trusted already is trusted anew, with this role and time.
    ///
    /// # Errors
    /// It was revoked, its name is another key's, or the store is full: a sentence.
    pub fn trust(
        &mut self,
        key: NamedKey,
        role: Role,
        now: Moment,
        expires: Option<Moment>,
    ) -> Result<(), String> {
        let NamedKey { name, public } = key;
        if expires.is_some_and(|expires| expires <= now) {
            return Err(format!("{name} would not be trusted for a moment: let it expire after {now}"));
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
                "this key was revoked at {at} and is not trusted again: its owner makes a new one (burnet key new)"
            ));
        }
        let trusted = TrustedKey { name, role, public, since: now, expires, revoked: None };
        match place {
            Some(place) => self.keys[place] = trusted,
            None if self.keys.len() == KEYS_MAX => {
                return Err(format!("there are {KEYS_MAX} keys already: take some out of trust.toml first"));
            }
            None => self.keys.push(trusted),
        }
        Ok(())
    }

    /// Revokes the key of this name or id, for good.
    ///
    /// # Errors
    /// There is none, or it was revoked before: a sentence.
    pub fn distrust(&mut self, which: &str, now: Moment) -> Result<&TrustedKey, String> {
        let named =
            |key: &&mut TrustedKey| key.name.as_str() == which || key.public.id().to_string() == which;
        let Some(key) = self.keys.iter_mut().find(named) else {
            return Err(format!("no key {which} is trusted: burnet key list shows those that are"));
        };
        if let Some(at) = key.revoked {
            return Err(format!("{which} was revoked already, at {at}"));
        }
        key.revoked = Some(now);
        Ok(key)
    }

    /// What each signature of a package is worth now.
    pub fn opinions(&self, digest: &Digest, signatures: &Signatures, now: Moment) -> Vec<Opinion> {
        let opinion = |signature: &Signature| {
            let known = self.keys.iter().find(|key| key.public.id() == signature.key);
            Opinion {
                role: signature.role,
                key: signature.key,
                name: known.map(|key| key.name.clone()),
                time: signature.time,
                standing: known.map_or(Standing::Unknown, |key| standing(key, digest, signature, now)),
            }
        };
        signatures.all().iter().map(opinion).collect()
    }
}

fn standing(key: &TrustedKey, digest: &Digest, signature: &Signature, now: Moment) -> Standing {
    let over = |until: Option<Moment>| until.filter(|until| *until <= now);
    if !signature.verifies(digest, &key.public) {
        return Standing::Altered;
    }
    // Whenever the signature says that it was made: who has the key can write any time.
    if let Some(at) = key.revoked {
        return Standing::Revoked(at);
    }
    if let Some(at) = over(key.expires) {
        return Standing::KeyExpired(at);
    }
    if let Some(at) = over(signature.expires) {
        return Standing::Expired(at);
    }
    if signature.role > key.role { Standing::NotAsOperator } else { Standing::Counts }
}

/// Whether the signatures are enough.
///
/// # Errors
/// What is wrong with them, and what to do: a phrase that follows on the package's name.
pub fn require(opinions: &[Opinion], require: Require) -> Result<(), String> {
    let enough = |opinion: &Opinion| {
        opinion.standing == Standing::Counts
            && (require == Require::Developer || opinion.role == Role::Operator)
    };
    if require == Require::None || opinions.iter().any(enough) {
        return Ok(());
    }
    let of = |rank: u8| opinions.iter().find(|opinion| telling(opinion.standing) == rank);
    // What tells most of what happened goes first.
    let Some(worst) = (0..=6).find_map(of) else {
        return Err("is unsigned: have its developer sign it (burnet app sign)".to_owned());
    };
    let what = match worst.standing {
        Standing::Altered => {
            "was altered: a signature is not for what is in it; get it anew from its developer"
        }
        Standing::Revoked(_) => "is signed with a revoked key: have it signed with another",
        Standing::KeyExpired(_) => {
            "is signed with an expired key: trust the key for longer (burnet key trust), or have it signed with another"
        }
        Standing::Expired(_) => "has an expired signature: have it signed again, or get a newer version",
        Standing::NotAsOperator => {
            "is signed as an operator's by a key that is trusted only as a developer's"
        }
        Standing::Unknown => "is signed by nobody who is trusted here: burnet key trust FILE.pub",
        Standing::Counts => {
            "is signed by its developer only, and an operator's signature is required: burnet app sign --role operator"
        }
    };
    Err(format!("{what} [{worst}]"))
}

fn telling(standing: Standing) -> u8 {
    match standing {
        Standing::Altered => 0,
        Standing::Revoked(_) => 1,
        Standing::KeyExpired(_) => 2,
        Standing::Expired(_) => 3,
        Standing::NotAsOperator => 4,
        Standing::Counts => 5,
        Standing::Unknown => 6,
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
        require(&store().opinions(&digest(), &all, at(NOW)), policy)
    }

    fn refused(signatures: &[Signature], policy: Require, expected: &str) {
        let why = judged(signatures, policy).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }

    #[test]
    fn what_is_not_signed_as_it_must_be_is_refused_by_name() {
        let developer = Require::Developer;
        refused(&[], developer, "is unsigned");
        refused(
            &[signed("stranger", Role::Operator, None)],
            developer,
            "signed by nobody who is trusted here",
        );
        refused(&[signed("g-one", Role::Operator, None)], developer, "revoked key");
        refused(&[signed("g-one", Role::Operator, None)], developer, "revoked at 1970-01-01T00:08:20Z");
        refused(&[signed("stale1", Role::Developer, None)], developer, "expired key");
        refused(&[signed("dev", Role::Developer, Some(NOW))], developer, "expired signature");
        refused(&[signed("dev", Role::Operator, None)], developer, "trusted only as a developer's");
        refused(
            &[signed("dev", Role::Developer, None)],
            Require::Operator,
            "an operator's signature is required",
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
        refused(key("another").public(), Some(NOW), "not be trusted for a moment");
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
