//! A slice and a controller with TLS, in one process: what passes, and who is refused.

use super::*;
use crate::connection::Socket;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::event::{PollFd, PollFlags, poll};
use rustls::server::WebPkiClientVerifier;
use rustls::{ServerConfig, ServerConnection, Stream};
use std::net::TcpListener;
use std::thread::JoinHandle;

/// More than one record of TLS, and more than the slice reads at once.
const LONG: usize = 100_000;

/// An authority that signs certificates without a name.
struct Signer(CertifiedIssuer<'static, KeyPair>);

impl Signer {
    fn new() -> Signer {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Signer(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate and its key, in PEM.
    fn sign(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(Vec::new()).unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    /// A slice that shows a certificate of this authority, and trusts that one.
    fn slice(&self, trusted: &Signer) -> Arc<ClientConfig> {
        let (certificate, private_key) = self.sign();
        client(&TlsSettings { certificate, private_key, ca_certificate: trusted.0.pem() }).unwrap()
    }

    /// A controller that shows a certificate of this authority, and trusts that one.
    fn controller(&self, trusted: &Signer) -> Arc<ServerConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.0.der().clone()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let (certificate, key) = self.sign();
        let chain = certificates("c", &certificate).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap());
        Arc::new(config.unwrap())
    }
}

/// Accepts one connection, and answers all that comes with the same.
fn echo(config: Arc<ServerConfig>) -> (SocketAddr, JoinHandle<io::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = move || {
        let (mut stream, _) = listener.accept()?;
        let mut tls = ServerConnection::new(config).unwrap();
        let mut both = Stream::new(&mut tls, &mut stream);
        let mut bytes = vec![0; LONG];
        both.read_exact(&mut bytes)?;
        both.write_all(&bytes)?;
        both.flush()
    };
    (address, std::thread::spawn(serve))
}

/// Sends a long message, and returns what comes back, or why the connection ended.
fn talk(address: SocketAddr, config: &Arc<ClientConfig>) -> Result<usize, String> {
    let mut socket = Socket::dial(address, Some(config), 0)?;
    let (mut buffer, mut got) = (vec![0; 1_000], 0);
    while got < LONG {
        let room = if socket.wants_room() { PollFlags::OUT } else { PollFlags::empty() };
        let ready = {
            let mut waits = [PollFd::new(&socket, PollFlags::IN | room)];
            poll(&mut waits, None).unwrap();
            waits[0].revents()
        };
        if !socket.is_connected() {
            socket.finish_dial(0)?;
            // It waits for the end of the handshake.
            socket.tell(&[9; LONG], 0)?;
        }
        if ready.contains(PollFlags::IN) {
            socket.read(&mut buffer)?;
            got = socket.inbox.waiting();
        }
        socket.flush(0)?;
    }
    Ok(got)
}

#[test]
fn both_sides_of_one_authority_speak() {
    let authority = Signer::new();
    let (address, controller) = echo(authority.controller(&authority));
    assert_eq!(talk(address, &authority.slice(&authority)), Ok(LONG));
    controller.join().unwrap().unwrap();
}

#[test]
fn a_controller_of_another_authority_is_refused() {
    let (ours, strangers) = (Signer::new(), Signer::new());
    let (address, controller) = echo(strangers.controller(&ours));
    let why = talk(address, &ours.slice(&ours)).unwrap_err();
    // Both authorities have the same name, so the signature decides.
    assert!(why.contains("TLS: invalid peer certificate"), "{why}");
    assert!(controller.join().unwrap().is_err());
}

#[test]
fn a_slice_of_another_authority_is_refused_and_says_so() {
    let (ours, strangers) = (Signer::new(), Signer::new());
    let (address, controller) = echo(ours.controller(&ours));
    let why = talk(address, &strangers.slice(&ours)).unwrap_err();
    assert!(why.contains("fatal alert") || why.contains("the connection failed"), "{why}");
    assert!(controller.join().unwrap().is_err());
}

#[test]
fn a_wrong_file_is_named_by_its_key() {
    let check = |certificate: &str, key: &str, ca: &str, expected: &str| {
        let [certificate, private_key, ca_certificate] = [certificate, key, ca].map(str::to_owned);
        let settings = TlsSettings { certificate, private_key, ca_certificate };
        let why = client(&settings).unwrap_err();
        assert!(why.starts_with(expected), "{why}");
        assert!(!format!("{settings:?}").contains("secret"), "a key is shown to nobody");
    };
    let authority = Signer::new();
    let ((certificate, key), other) = (authority.sign(), authority.sign().1);
    let ca = authority.0.pem();
    let empty = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n";
    check("", &key, &ca, "tls.certificate: the line '-----BEGIN CERTIFICATE-----' is missing");
    check(&certificate, "secret", &ca, "tls.private_key: it is no private key in PEM");
    check(&certificate, &key, "", "tls.ca_certificate: the line '-----BEGIN CERTIFICATE-----' is missing");
    check(&certificate, &key, empty, "tls.ca_certificate: a certificate in it is not that of an authority");
    check(&certificate, &other, &ca, "tls.certificate: it cannot be used with the key");
}
