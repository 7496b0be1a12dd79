//! Keys: a private key signs, a public key verifies.
//!
//! In: 32 random bytes, or the text of a key file. Out: keys, and the text of key files. It draws no random number and
//! opens no file.

use std::fmt;

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};

use crate::digest::{Digest, from_hex, hex};
use crate::toml_text::{self, Fault};

/// The maximum length of a key's name in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// The maximum size of a key file in bytes. Ours have about 200.
pub const KEY_FILE_BYTES_MAX: usize = 4096;

/// Bytes of an ed25519 signature (RFC 8032, 5.1.6).
pub const SIGNATURE_BYTES: usize = ed25519_dalek::SIGNATURE_LENGTH;

/// A key's name, which is also a file name: 1 to [`NAME_BYTES_MAX`] letters, digits, `-`, `_` and `.`, starting with a
/// letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct KeyName(String);

impl KeyName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for KeyName {
    type Error = String;

    fn try_from(text: String) -> Result<KeyName, String> {
        if crate::manifest::is_plain_name(&text, NAME_BYTES_MAX) {
            return Ok(KeyName(text));
        }
        Err(format!(
            "{text:?} cannot be a key's name: write 1 to {NAME_BYTES_MAX} letters, digits, '-', '_' or '.', a letter or \
             digit first"
        ))
    }
}

impl std::str::FromStr for KeyName {
    type Err = String;

    fn from_str(text: &str) -> Result<KeyName, String> {
        text.to_owned().try_into()
    }
}

impl From<KeyName> for String {
    fn from(name: KeyName) -> String {
        name.0
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A key's id: the first 8 bytes of the SHA-256 of the public key. It serves to find a key. Trust is in the whole key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct KeyId([u8; 8]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<KeyId> for String {
    fn from(id: KeyId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for KeyId {
    type Error = String;

    fn try_from(text: String) -> Result<KeyId, String> {
        from_hex(&text)
            .map(KeyId)
            .ok_or_else(|| format!("{text:?} is not a key id: a key id has 16 hexadecimal digits"))
    }
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Its id.
    pub fn id(&self) -> KeyId {
        let digits = Digest::of(self.0.as_bytes()).to_string();
        KeyId(from_hex(&digits[..16]).unwrap_or_default())
    }

    /// Whether the private key of this public key signed the message. Keys and points of small order are refused,
    /// because one signature with them would be valid for many messages.
    pub fn verifies(&self, message: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        self.0.verify_strict(message, &ed25519_dalek::Signature::from_bytes(signature)).is_ok()
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> String {
        hex(key.0.as_bytes())
    }
}

impl TryFrom<String> for PublicKey {
    type Error = String;

    fn try_from(text: String) -> Result<PublicKey, String> {
        let bytes = from_hex(&text).ok_or("a public key has 64 hexadecimal digits, in lower case")?;
        let key = VerifyingKey::from_bytes(&bytes)
            .map_err(|_| "this is not a valid public key: a digit is wrong")?;
        if key.is_weak() {
            return Err("this key is weak (small order): anyone could sign with it".to_owned());
        }
        Ok(PublicKey(key))
    }
}

/// A public key with its name: the contents of a `.pub` file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedKey {
    /// The name that its owner chose.
    pub name: KeyName,
    /// The key.
    pub public: PublicKey,
}

impl NamedKey {
    /// Reads a `.pub` file.
    ///
    /// # Errors
    /// The faulty line.
    pub fn parse(text: &str) -> Result<NamedKey, Fault> {
        toml_text::parse(text)
    }

    /// The text of a `.pub` file.
    pub fn to_text(&self) -> String {
        let NamedKey { name, public } = self;
        let digits = String::from(public.clone());
        format!(
            "# A public key for burnet key trust; its id is {}.\nname = \"{name}\"\npublic = \"{digits}\"\n",
            public.id()
        )
    }
}

/// A private key. Erased from memory when it is dropped.
pub struct PrivateKey {
    name: KeyName,
    signing: SigningKey,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PrivateFile {
    name: KeyName,
    private: String,
}

impl PrivateKey {
    /// Makes a key of 32 random bytes.
    pub fn from_random(name: KeyName, bytes: &[u8; 32]) -> PrivateKey {
        PrivateKey { name, signing: SigningKey::from_bytes(bytes) }
    }

    /// Reads a `.key` file.
    ///
    /// # Errors
    /// The faulty line.
    pub fn parse(text: &str) -> Result<PrivateKey, Fault> {
        let PrivateFile { name, private } = toml_text::parse(text)?;
        let bytes = from_hex(&private).ok_or_else(|| Fault {
            line: 1,
            reason: "`private` is not a private key: it has 64 hexadecimal digits, in lower case".to_owned(),
        })?;
        Ok(PrivateKey::from_random(name, &bytes))
    }

    /// The text of a `.key` file.
    pub fn to_text(&self) -> String {
        let PrivateKey { name, signing } = self;
        let digits = hex(signing.as_bytes());
        format!(
            "# A private key of Burnet: anyone who can read it can sign with it.\nname = \"{name}\"\nprivate = \"{digits}\"\n"
        )
    }

    /// Its public key.
    pub fn public(&self) -> NamedKey {
        NamedKey { name: self.name.clone(), public: PublicKey(self.signing.verifying_key()) }
    }

    /// Signs a message.
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.signing.sign(message).to_bytes()
    }
}

impl fmt::Debug for PrivateKey {
    /// Omits the secret part, which must not get into a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the private key {}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> PrivateKey {
        PrivateKey::from_random("alice".parse().unwrap(), &[7; 32])
    }

    fn refused(public: &str, expected: &str) {
        let text = format!("name = 'alice'\npublic = '{public}'\n");
        let fault = NamedKey::parse(&text).unwrap_err().to_string();
        assert!(fault.starts_with("line 2") && fault.contains(expected), "{fault}");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        refused("", "64 hexadecimal digits");
        refused(&"g".repeat(64), "64 hexadecimal digits");
        refused(&"AB".repeat(32), "64 hexadecimal digits");
        // The neutral element: with it, every signature is valid for every message.
        refused(&format!("01{}", "00".repeat(31)), "small order");
        // No point of the curve has y = 2.
        refused(&format!("02{}", "00".repeat(31)), "not a valid public key");
        assert!(
            NamedKey::parse("name = '../x'\npublic = ''")
                .unwrap_err()
                .to_string()
                .contains("cannot be a key's name")
        );
        assert!(
            PrivateKey::parse("name = 'a'\nprivate = '00'").unwrap_err().reason.contains("64 hexadecimal")
        );
        assert!(PrivateKey::parse("name = 'a'\npublic = '00'").is_err());
    }

    #[test]
    fn a_key_signs_as_the_standard_says() {
        // RFC 8032, 7.1, TEST 1: the empty message.
        let seed = from_hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").unwrap();
        let key = PrivateKey::from_random("test".parse().unwrap(), &seed);
        assert_eq!(
            String::from(key.public().public),
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
        );
        assert_eq!(
            hex(&key.sign(b"")),
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
        );
    }

    #[test]
    fn another_message_another_key_and_another_bit_are_not_verified() {
        let signature = key().sign(b"message");
        let public = key().public().public;
        assert!(public.verifies(b"message", &signature));
        assert!(!public.verifies(b"massage", &signature));
        let other = PrivateKey::from_random("bob".parse().unwrap(), &[8; 32]);
        assert!(!other.public().public.verifies(b"message", &signature));
        for bit in 0..SIGNATURE_BYTES * 8 {
            let mut bent = signature;
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(!public.verifies(b"message", &bent), "bit {bit}");
        }
    }

    #[test]
    fn key_files_read_as_they_were_written() {
        let read = PrivateKey::parse(&key().to_text()).unwrap();
        assert_eq!(read.sign(b"x"), key().sign(b"x"));
        assert_eq!(NamedKey::parse(&key().public().to_text()).unwrap(), key().public());
    }

    #[test]
    fn a_private_key_does_not_get_into_a_log() {
        assert_eq!(format!("{:?}", key()), "the private key alice");
    }
}
