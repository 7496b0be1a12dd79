//! Signatures of a package: key, role, time and expiry.
//!
//! ```text
//!   digest, key, role, time ──> Signature::make ──> the text that is signed, and the signature over it
//!   package.signatures (TOML) ──> Signatures::parse ──> verifies(digest, key)
//! ```
//!
//! It does not know which keys to trust; `trust` does. It reads no clock.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, from_hex, hex};
use crate::key::{KeyId, PrivateKey, PublicKey, SIGNATURE_BYTES};
use crate::moment::Moment;
use crate::toml_text::{self, Fault};

/// The maximum number of signatures of a package. One more is not added, and a file with more is refused.
pub const SIGNATURES_MAX: usize = 16;

/// The maximum size of `package.signatures` in bytes.
pub const SIGNATURES_BYTES_MAX: usize = 64 << 10;

/// The role of a signer, and the role for which a key is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The developer made the app.
    Developer,
    /// The operator admits it to a network.
    Operator,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Developer => "developer",
            Role::Operator => "operator",
        })
    }
}

/// One signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// The signer's role.
    pub role: Role,
    /// The signer's key.
    pub key: KeyId,
    /// The time that the signer states.
    pub time: Moment,
    /// The end of its validity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Moment>,
    signature: SignatureBytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
struct SignatureBytes([u8; SIGNATURE_BYTES]);

impl From<SignatureBytes> for String {
    fn from(bytes: SignatureBytes) -> String {
        hex(&bytes.0)
    }
}

impl TryFrom<String> for SignatureBytes {
    type Error = &'static str;

    fn try_from(text: String) -> Result<SignatureBytes, Self::Error> {
        from_hex(&text).map(SignatureBytes).ok_or("a signature has 128 hexadecimal digits, in lower case")
    }
}

impl Signature {
    /// Signs a package.
    pub fn make(
        digest: &Digest,
        with: &PrivateKey,
        role: Role,
        time: Moment,
        expires: Option<Moment>,
    ) -> Signature {
        let key = with.public().public.id();
        let signature = SignatureBytes(with.sign(text(digest, role, key, time, expires).as_bytes()));
        Signature { role, key, time, expires, signature }
    }

    /// Whether this key made it for this package.
    pub fn verifies(&self, digest: &Digest, by: &PublicKey) -> bool {
        let text = text(digest, self.role, self.key, self.time, self.expires);
        by.id() == self.key && by.verifies(text.as_bytes(), &self.signature.0)
    }
}

/// The signed text. Its first line distinguishes it from other texts that a key may sign in future.
fn text(digest: &Digest, role: Role, key: KeyId, time: Moment, expires: Option<Moment>) -> String {
    let expires = expires.map_or_else(|| "never".to_owned(), |moment| moment.to_string());
    format!(
        "burnet package signature 1\ndigest {digest}\nrole {role}\nkey {key}\ntime {time}\nexpires {expires}\n"
    )
}

/// The signatures of a package: a key signs once in each role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signatures {
    #[serde(default, rename = "signature")]
    all: Vec<Signature>,
}

impl Signatures {
    /// Reads a `package.signatures`.
    ///
    /// # Errors
    /// The faulty line, or too many signatures.
    pub fn parse(text: &str) -> Result<Signatures, Fault> {
        let read: Signatures = toml_text::parse(text)?;
        let count = read.all.len();
        if count > SIGNATURES_MAX {
            let reason = format!("{count} signatures are more than the limit of {SIGNATURES_MAX}");
            return Err(Fault { line: 1, reason });
        }
        Ok(read)
    }

    /// The text of a `package.signatures`; empty without signatures.
    pub fn to_text(&self) -> String {
        // Only strings: TOML can express all of it.
        if self.all.is_empty() { String::new() } else { toml::to_string(self).unwrap_or_default() }
    }

    /// The signatures, in the order of their creation.
    pub fn all(&self) -> &[Signature] {
        &self.all
    }

    /// Adds a signature. It replaces one by the same key in the same role.
    ///
    /// # Errors
    /// There are [`SIGNATURES_MAX`] already.
    pub fn add(&mut self, signature: Signature) -> Result<(), String> {
        self.all.retain(|other| (other.key, other.role) != (signature.key, signature.role));
        if self.all.len() == SIGNATURES_MAX {
            return Err(format!("the package already has {SIGNATURES_MAX} signatures, which is the limit"));
        }
        self.all.push(signature);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> PrivateKey {
        PrivateKey::from_random(format!("key-{number}").parse().unwrap(), &[number; 32])
    }

    fn made() -> Signature {
        Signature::make(&Digest::of(b"list"), &key(1), Role::Developer, Moment::from_unix_s(1), None)
    }

    /// Checks that a changed signature does not verify.
    fn bent(change: impl FnOnce(&mut Signature)) {
        let mut signature = made();
        change(&mut signature);
        assert!(!signature.verifies(&Digest::of(b"list"), &key(1).public().public), "{signature:?}");
    }

    #[test]
    fn a_signature_binds_all_that_it_says() {
        bent(|signature| signature.role = Role::Operator);
        bent(|signature| signature.time = Moment::from_unix_s(2));
        bent(|signature| signature.expires = Some(Moment::from_unix_s(2)));
        bent(|signature| signature.key = key(2).public().public.id());
        bent(|signature| signature.signature.0[0] ^= 1);
        assert!(!made().verifies(&Digest::of(b"lost"), &key(1).public().public));
        assert!(!made().verifies(&Digest::of(b"list"), &key(2).public().public));
        assert!(made().verifies(&Digest::of(b"list"), &key(1).public().public));
    }

    #[test]
    fn what_is_no_signature_is_refused_with_its_line() {
        let mut signatures = Signatures::default();
        signatures.add(made()).unwrap();
        let sound = signatures.to_text();
        let refused = |text: String, expected: &str| {
            let fault = Signatures::parse(&text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        refused(sound.replace("developer", "king"), "unknown variant `king`");
        refused(sound.replace("role", "rule"), "did you mean `role`?");
        refused(sound.replace("1970-01-01T00:00:01Z", "yesterday"), "\"yesterday\" is not a time");
        refused(sound.replace("signature = \"", "signature = \"00"), "128 hexadecimal digits");
        refused(sound.repeat(SIGNATURES_MAX + 1), "17 signatures are more than the limit of 16");
        assert_eq!(Signatures::parse(&sound), Ok(signatures));
        assert_eq!(Signatures::parse(""), Ok(Signatures::default()));
    }

    #[test]
    fn a_key_signs_once_in_each_role_and_there_is_an_end_to_them() {
        let mut signatures = Signatures::default();
        signatures.add(made()).unwrap();
        signatures.add(made()).unwrap();
        assert_eq!(signatures.all().len(), 1);
        let digest = Digest::of(b"list");
        let mut add = |number| {
            signatures.add(Signature::make(
                &digest,
                &key(number),
                Role::Operator,
                Moment::from_unix_s(1),
                None,
            ))
        };
        for number in 1..=15 {
            add(number).unwrap();
        }
        assert!(add(16).unwrap_err().contains("already has 16 signatures"));
        assert!(add(15).is_ok());
    }
}
