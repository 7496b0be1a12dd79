//! Certificates and keys for TLS with switches, from PEM files.
//!
//! TLS is always mutual here. Switches must show a certificate of the operator's authority, and we show ours. This
//! module does not run the TLS protocol. It keeps keys only inside rustls's configuration.

use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::server::WebPkiClientVerifier;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The paths of the PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The controller's certificate, followed by the intermediate certificates up to an authority that the switches
    /// trust.
    pub certificate: PathBuf,
    /// The certificate's private key (PKCS #8, PKCS #1 or SEC 1).
    pub private_key: PathBuf,
    /// The certificates of the authorities that issue the switches' certificates.
    pub client_ca: PathBuf,
}

/// TLS cannot be configured. The operator must fix the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    /// The file with the error.
    pub file: PathBuf,
    /// What is wrong with it and what to do, in one sentence.
    pub reason: String,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.reason)
    }
}

impl std::error::Error for TlsError {}

/// Reads the files and configures TLS 1.2 and 1.3.
///
/// # Errors
/// A file is missing, cannot be read, has the wrong content, or does not match the others.
pub fn load(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = certificates(&files.certificate)?;
    let key = private_key(&files.private_key)?;
    let provider = Arc::new(default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(authorities(&files.client_ca)?, provider.clone())
            .build()
            .map_err(|error| wrong(&files.client_ca, format!("the authority cannot be used: {error}")))?;
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&files.certificate, format!("TLS cannot be set up: {error}")))?;
    let config =
        builder.with_client_cert_verifier(verifier).with_single_cert(chain, key).map_err(|error| {
            let key = files.private_key.display();
            wrong(
                &files.certificate,
                format!("the certificate and the key {key} cannot be used together: {error}"),
            )
        })?;
    Ok(Arc::new(config))
}

fn wrong(file: &Path, reason: String) -> TlsError {
    TlsError { file: file.to_owned(), reason }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(file, "certificate", &error))?;
    if certificates.is_empty() {
        return Err(wrong(file, holds_no("certificate")));
    }
    Ok(certificates)
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| unreadable(file, "private key", &error))
}

fn authorities(file: &Path) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots
            .add(certificate)
            .map_err(|error| wrong(file, format!("a certificate in it is not a CA certificate: {error}")))?;
    }
    Ok(Arc::new(roots))
}

fn unreadable(file: &Path, what: &str, error: &pem::Error) -> TlsError {
    let reason = match error {
        pem::Error::NoItemsFound => holds_no(what),
        pem::Error::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("there is no such file; it must hold the {what} in PEM")
        }
        pem::Error::Io(error) => format!("the {what} cannot be read: {error}"),
        error => format!("it is not PEM: {error}; it must hold the {what} in PEM"),
    };
    wrong(file, reason)
}

fn holds_no(what: &str) -> String {
    let label = what.to_uppercase();
    format!("it holds no {what}; a line '-----BEGIN {label}-----' is missing")
}
