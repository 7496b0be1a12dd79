//! TLS with the tenant's controllers: what the slice shows, whom it trusts, and the encrypted bytes of a connection.
//!
//! In: certificates and a key as PEM, and a socket. Out: a configuration of rustls, and plain bytes. It reads no file, and reads no message.
//!
//! TLS is always mutual. A controller must show a certificate of the authority in the slice's settings. Names in it are not compared: tenants
//! give addresses, and certificates of Open vSwitch's own tools have no names.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// The certificates and the key of a slice, as PEM. The node has read them from the operator's files.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSettings {
    /// The certificate that the slice shows, and those of its issuers.
    pub certificate: String,
    /// Its private key.
    pub private_key: String,
    /// The certificates of the controllers' authority.
    pub ca_certificate: String,
}

impl fmt::Debug for TlsSettings {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSettings").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// The authority of the controllers: a certificate must be signed by it.
#[derive(Debug)]
struct Authority {
    roots: RootCertStore,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Authority {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&certificate, &self.roots, intermediates, now, algorithms)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// What encrypts connections to the controllers.
///
/// # Errors
/// A certificate or the key is wrong, or they do not belong together: a sentence that begins with the key of the configuration.
pub fn client(settings: &TlsSettings) -> Result<Arc<ClientConfig>, String> {
    let chain = certificates("tls.certificate", &settings.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(settings.private_key.as_bytes());
    let key = key.map_err(|why| format!("tls.private_key: it is no private key in PEM: {why}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates("tls.ca_certificate", &settings.ca_certificate)? {
        roots.add(certificate).map_err(|why| {
            format!("tls.ca_certificate: a certificate in it is not that of an authority: {why}")
        })?;
    }
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|why| format!("tls: it cannot be set up: {why}"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Authority { roots, provider }))
        .with_client_auth_cert(chain, key)
        .map_err(|why| format!("tls.certificate: it cannot be used with the key: {why}"))?;
    // Open vSwitch's controllers end a session that is resumed: they verify peers, and name no context of sessions.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

fn certificates(key: &str, pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|why| format!("{key}: it is no certificate in PEM: {why}"))?;
    if all.is_empty() {
        return Err(format!("{key}: the line '-----BEGIN CERTIFICATE-----' is missing"));
    }
    Ok(all)
}

/// The bytes of one connection, plain or with TLS.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl Wire {
    /// A connection to this address, which is under way.
    ///
    /// # Errors
    /// TLS cannot begin.
    pub(crate) fn new(
        stream: TcpStream,
        address: SocketAddr,
        tls: Option<&Arc<ClientConfig>>,
    ) -> Result<Wire, String> {
        let begin = |config: &Arc<ClientConfig>| {
            ClientConnection::new(config.clone(), ServerName::IpAddress(address.ip().into())).map(Box::new)
        };
        let tls = tls.map(begin).transpose().map_err(|why| format!("TLS cannot begin: {why}"))?;
        Ok(Wire { stream, tls })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether records of TLS wait for room in the socket.
    pub(crate) fn wants_room(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Whether the handshake of TLS is under way. Until its end, no message leaves.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Sends the records that wait, as far as there is room.
    ///
    /// # Errors
    /// The connection has failed.
    pub(crate) fn push(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        match send_records(tls, &mut self.stream) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            sent => sent,
        }
    }

    /// More of what was read from the socket already. `None`: nothing.
    pub(crate) fn decrypted(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let tls = self.tls.as_mut()?;
        tls.reader().read(buffer).ok().filter(|count| *count > 0)
    }

    /// Says that no more will come. The connection ends, so an error does not matter.
    pub(crate) fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        let _ = self.push();
    }
}

impl Read for Wire {
    /// As that of a socket: 0 is the end.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.stream.read(buffer) };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Many peers close the socket without a message of TLS. The records before were complete.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            if tls.read_tls(&mut self.stream)? == 0 {
                return Ok(0);
            }
            let processed = tls.process_new_packets();
            let told = send_records(tls, &mut self.stream);
            processed.map_err(|why| io::Error::new(ErrorKind::InvalidData, format!("TLS: {why}")))?;
            told.or_else(|error| if error.kind() == ErrorKind::WouldBlock { Ok(()) } else { Err(error) })?;
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.stream.write(bytes) };
        send_records(tls, &mut self.stream)?;
        let taken = tls.writer().write(bytes)?;
        match send_records(tls, &mut self.stream) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ if taken == 0 => Err(ErrorKind::WouldBlock.into()),
            _ => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.push()
    }
}

fn send_records(tls: &mut ClientConnection, stream: &mut TcpStream) -> io::Result<()> {
    while tls.wants_write() {
        if tls.write_tls(stream)? == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
    }
    Ok(())
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests;
