//! What a switch's certificate contains: its fingerprint, and the datapath ids that it names.
//!
//! Pure: DER goes in. It does not verify the certificate, because the TLS handshake has done that.

use flow::DatapathId;
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use std::fmt::{self, Write as _};
use std::str::FromStr;
use webpki::EndEntityCert;

/// How many ids of one certificate are read. Further ids are ignored. A rack of bridges behind one certificate has
/// tens.
const NAMED_MAX: usize = 256;

/// SHA-256 over a certificate, as `openssl x509 -noout -fingerprint -sha256` prints it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a certificate in DER.
    pub fn of(der: &[u8]) -> Fingerprint {
        Fingerprint(Sha256::digest(der).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_char(':')?;
            }
            write!(f, "{byte:02X}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAFingerprint(String);

impl FromStr for Fingerprint {
    type Err = NotAFingerprint;

    /// Accepts 64 hexadecimal digits in any case, with or without colons between the bytes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read(text.trim()).map(Fingerprint).ok_or_else(|| NotAFingerprint(text.to_owned()))
    }
}

fn read(text: &str) -> Option<[u8; 32]> {
    let digits = if text.contains(':') {
        let pairs: Vec<&str> = text.split(':').collect();
        pairs.iter().all(|pair| pair.len() == 2).then(|| pairs.concat())?
    } else {
        text.to_owned()
    };
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

impl fmt::Display for NotAFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not a SHA-256 fingerprint: write the output of `openssl x509 -noout -fingerprint -sha256 -in FILE` after the =",
            self.0
        )
    }
}

impl std::error::Error for NotAFingerprint {}

/// The certificate that a switch showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The certificate's SHA-256 fingerprint.
    pub fingerprint: Fingerprint,
    /// The datapath ids that it names. Empty if it names none; then other rules bind the id.
    pub names: Vec<DatapathId>,
}

impl Certificate {
    /// Reads a certificate that the TLS handshake accepted.
    pub fn read(der: &CertificateDer<'_>) -> Certificate {
        let names = EndEntityCert::try_from(der).map(|parsed| names(&parsed)).unwrap_or_default();
        Certificate { fingerprint: Fingerprint::of(der), names }
    }
}

fn names(certificate: &EndEntityCert<'_>) -> Vec<DatapathId> {
    let uris = certificate.valid_uri_names().filter_map(|uri| named(uri, "of:"));
    let names = certificate.valid_dns_names().filter_map(|name| named(name, "of-"));
    uris.chain(names).take(NAMED_MAX).collect()
}

/// A datapath id in a name: `of:0000000000000001`, as it is printed elsewhere, or `of-0000000000000001` for tools
/// that accept host names only.
fn named(name: &str, prefix: &str) -> Option<DatapathId> {
    let lower = name.to_ascii_lowercase();
    let digits = lower.strip_prefix(prefix)?;
    let is_whole = digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_whole.then(|| u64::from_str_radix(digits, 16).ok()).flatten().map(DatapathId)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, SanType};

    fn named_by(names: Vec<SanType>) -> Vec<DatapathId> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = names;
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        Certificate::read(certificate.der()).names
    }

    fn uri(text: &str) -> SanType {
        SanType::URI(text.try_into().unwrap())
    }

    fn dns(text: &str) -> SanType {
        SanType::DnsName(text.try_into().unwrap())
    }

    #[test]
    fn what_names_no_datapath_id_is_passed_over() {
        for name in [
            dns("switch.example"),
            // The name that ovs-pki makes by default.
            dns("s1 id:5a0a2b1c-0000-0000-0000-000000000000"),
            dns("of-01"),
            dns("*.of-00000000000000a1"),
            dns("of-00000000000000a1.example"),
            uri("of:01"),
            uri("of:00000000000000a1/x"),
            uri("of:000000000000000g"),
            uri("https://of:00000000000000a1"),
        ] {
            assert_eq!(named_by(vec![name.clone()]), [], "{name:?}");
        }
        let no_certificate = CertificateDer::from(vec![1, 2, 3]);
        assert_eq!(Certificate::read(&no_certificate).names, []);
    }

    #[test]
    fn both_forms_are_read_in_any_case_and_several_at_once() {
        let names = vec![uri("of:00000000000000A1"), dns("switch.example"), dns("OF-00000000000000b2")];
        assert_eq!(named_by(names), [DatapathId(0xa1), DatapathId(0xb2)]);
        let many = (0..1_000).map(|number| uri(&format!("of:{number:016x}"))).collect();
        assert_eq!(named_by(many).len(), NAMED_MAX);
    }

    #[test]
    fn a_fingerprint_is_read_as_openssl_prints_it() {
        let print = Fingerprint::of(b"abc");
        let text = print.to_string();
        assert!(text.starts_with("BA:78:16:BF:8F:01"), "{text}");
        assert_eq!(text.parse(), Ok(print));
        assert_eq!(text.replace(':', "").to_lowercase().parse(), Ok(print));
        for wrong in [
            "",
            "BA:78",
            &text[1..],
            &text.replace("BA:", "BA7:"),
            &text.replace('B', "G"),
            &format!("{text}:00"),
        ] {
            let refused = wrong.parse::<Fingerprint>().unwrap_err().to_string();
            assert!(refused.contains("openssl x509 -noout -fingerprint -sha256"), "{refused}");
        }
    }
}
