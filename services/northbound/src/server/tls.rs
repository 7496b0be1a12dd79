//! TLS for clients of the interface.
//!
//! In: a certificate with its key, and accepted connections. Out: encrypted connections. Clients show no certificate: they have tokens. A client that
//! speaks plain HTTP gets an answer that says so.

use crate::http::problem::PROBLEM_JSON;
use burnet_sdk_tokio::tokio;
use burnet_sdk_tokio::tokio::io::{AsyncReadExt, AsyncWriteExt};
use burnet_sdk_tokio::tokio::net::TcpStream;
use northbound_contract::Identity;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// How long a client may take for the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The first byte of a TLS connection: a handshake record (RFC 8446, 5.1).
const HANDSHAKE: u8 = 22;

/// What encrypts connections.
///
/// # Errors
/// The certificate or the key is wrong, or they do not belong together: a sentence that begins with the key of the configuration.
pub fn acceptor(identity: &Identity) -> Result<TlsAcceptor, String> {
    let certificates = CertificateDer::pem_slice_iter(identity.certificate.as_bytes());
    let certificates = certificates.collect::<Result<Vec<_>, _>>();
    let certificates =
        certificates.map_err(|why| format!("tls.certificate: it is no certificate in PEM: {why}"))?;
    if certificates.is_empty() {
        return Err("tls.certificate: the line '-----BEGIN CERTIFICATE-----' is missing".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(identity.private_key.as_bytes());
    let key = key.map_err(|why| format!("tls.private_key: it is no private key in PEM: {why}"))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|why| format!("tls: it cannot be set up: {why}"))?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|why| format!("tls.certificate: it cannot be used with the key: {why}"))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The encrypted connection. `None`: the client has left, is too slow, or speaks no TLS.
pub async fn accept(acceptor: TlsAcceptor, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    let handshake = async {
        let mut first = [0];
        if stream.peek(&mut first).await.ok()? == 1 && first[0] != HANDSHAKE {
            refuse(stream).await;
            return None;
        }
        acceptor.accept(stream).await.ok()
    };
    tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await.ok().flatten()
}

/// Tells a client of plain HTTP what to do.
async fn refuse(mut stream: TcpStream) {
    let detail = "this address needs TLS: begin the address with https";
    let body = serde_json::json!({
        "type": "urn:burnet:problem:needs-tls",
        "title": "The address needs TLS",
        "status": 400,
        "detail": detail,
        "instance": "/",
    });
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: {PROBLEM_JSON}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // What is not read ends the connection before the client has the answer. The client may have left.
    let _ = stream.read(&mut [0; 4_096]).await;
    let _ = stream.write_all((head + &body).as_bytes()).await;
    let _ = stream.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    fn identity() -> Identity {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        Identity { certificate: certificate.pem(), private_key: key.serialize_pem() }
    }

    #[test]
    fn what_cannot_be_used_is_named_by_its_key() {
        let check = |change: fn(&mut Identity), expected: &str| {
            let mut identity = identity();
            change(&mut identity);
            let refused = acceptor(&identity).err().unwrap_or_default();
            assert!(refused.starts_with(expected) && refused.is_empty() == expected.is_empty(), "{refused}");
        };
        check(|_| {}, "");
        check(|it| it.certificate.clear(), "tls.certificate: the line");
        check(|it| it.certificate = it.certificate.replace("END", "ENDE"), "tls.certificate: it is no");
        check(|it| it.private_key.clear(), "tls.private_key: it is no");
        check(
            |it| it.private_key = identity().private_key,
            "tls.certificate: it cannot be used with the key",
        );
    }

    /// A connection to a server that answers "hello" over TLS, and the authority that issued its certificate.
    async fn server(seen: impl AsyncFnOnce(TcpStream, CertificateDer<'static>) -> Vec<u8>) -> Vec<u8> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = names.signed_by(&key, &issuer).unwrap();
        let identity = Identity { certificate: certificate.pem(), private_key: key.serialize_pem() };
        let acceptor = acceptor(&identity).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            if let Some(mut stream) = accept(acceptor, stream).await {
                stream.write_all(b"hello").await.unwrap();
                let _ = stream.shutdown().await;
            }
        });
        seen(TcpStream::connect(address).await.unwrap(), issuer.der().clone()).await
    }

    fn run(test: impl Future<Output = Vec<u8>>) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        String::from_utf8(runtime.block_on(test)).unwrap()
    }

    #[test]
    fn a_client_without_tls_is_told_so() {
        let said = run(server(async |mut stream: TcpStream, _| {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
            let mut answer = Vec::new();
            // What was not read of the request ends the connection with a reset, after the answer.
            let _ = stream.read_to_end(&mut answer).await;
            answer
        }));
        assert!(said.starts_with("HTTP/1.1 400 ") && said.contains("urn:burnet:problem:needs-tls"), "{said}");
    }

    #[test]
    fn a_client_that_trusts_the_authority_is_connected() {
        let said = run(server(async |stream, authority| {
            let mut roots = RootCertStore::empty();
            roots.add(authority).unwrap();
            let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
            let connector = TlsConnector::from(Arc::new(config));
            let mut stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            answer
        }));
        assert_eq!(said, "hello");
    }

    #[test]
    fn a_log_does_not_get_the_key() {
        assert_eq!(format!("{:?}", identity()), "Identity");
    }
}
