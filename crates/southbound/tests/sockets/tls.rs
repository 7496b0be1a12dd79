//! TLS with certificates on both sides, beside plain OpenFlow on the same port.

use crate::node::Node;
use crate::switch::{Switch, packet_in};
use openflow::Version;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use southbound::SouthboundConfig;
use southbound::tls::{TlsFiles, load};
use std::path::PathBuf;
use std::sync::Arc;

/// An authority, and what it has signed.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Authority {
    /// With a folder of its own for this test's files.
    fn new(name: &str) -> Authority {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Authority { issuer, folder }
    }

    /// A certificate and its key, in PEM.
    fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.folder.join(name);
        std::fs::write(&file, text).unwrap();
        file
    }

    /// The controller's files.
    fn files(&self) -> TlsFiles {
        let (certificate, key) = self.sign("127.0.0.1");
        TlsFiles {
            certificate: self.write("controller.pem", &certificate),
            private_key: self.write("controller.key", &key),
            client_ca: self.write("ca.pem", &self.issuer.pem()),
        }
    }

    /// A switch that believes this authority and shows a certificate of `shown`, or none.
    fn client(&self, shown: Option<&Authority>) -> ClientConnection {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match shown {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let (certificate, key) = authority.sign("switch");
                let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        ClientConnection::new(Arc::new(config), "127.0.0.1".try_into().unwrap()).unwrap()
    }

    fn node(&self, tls_required: bool) -> Node {
        let tls = Some(load(&self.files()).unwrap());
        Node::new(SouthboundConfig { tls, tls_required, ..Default::default() })
    }
}

/// The connection ends without a switch coming up.
fn check_refused(node: &mut Node, mut switch: Switch) {
    node.until("the controller closes", |_| {
        switch.pump();
        switch.closed
    });
    assert_eq!((node.ups(), node.roster.switches().len()), (0, 0));
}

#[test]
fn a_switch_without_a_certificate_is_refused() {
    let authority = Authority::new("without");
    let mut node = authority.node(false);
    let mut switch = Switch::by_tls(&node, authority.client(None));
    switch.shake_hands(Version::V1_3, 7);
    check_refused(&mut node, switch);
}

#[test]
fn a_switch_with_a_certificate_of_another_authority_is_refused() {
    let (authority, other) = (Authority::new("ours"), Authority::new("other"));
    let mut node = authority.node(false);
    let mut switch = Switch::by_tls(&node, authority.client(Some(&other)));
    switch.shake_hands(Version::V1_3, 7);
    check_refused(&mut node, switch);
}

#[test]
fn plain_openflow_is_refused_where_tls_is_required() {
    let authority = Authority::new("required");
    let mut node = authority.node(true);
    let mut switch = Switch::silent(&node);
    switch.shake_hands(Version::V1_3, 7);
    check_refused(&mut node, switch);
}

#[test]
fn one_port_speaks_both() {
    let authority = Authority::new("both");
    let mut node = authority.node(false);
    let mut by_tls = Switch::by_tls(&node, authority.client(Some(&authority)));
    by_tls.come_up(&mut node, Version::V1_3, 1);
    let _plain = Switch::up(&mut node, Version::V1_0, 2);
    let tls: Vec<bool> = node.roster.switches().iter().map(|record| record.tls).collect();
    assert_eq!(tls, [true, false]);
    (0..100).for_each(|_| by_tls.say(Version::V1_3, packet_in(1_400)));
    node.until("the packet-ins", |node| {
        by_tls.pump();
        node.packet_ins() == 100
    });
}

#[test]
fn a_plain_switch_that_waits_for_our_hello_gets_it() {
    let authority = Authority::new("waiting");
    let mut node = authority.node(false);
    let mut switch = Switch::silent(&node);
    node.until("it is accepted", |node| node.roster.connections() == 1);
    node.tick(2_000);
    node.until("a hello", |_| switch.has_heard(|body| matches!(body, openflow::Body::Hello(_))));
}

#[test]
fn files_that_are_missing_or_wrong_are_named_with_what_to_do() {
    let authority = Authority::new("files");
    let good = authority.files();
    let check = |files: TlsFiles, expected: &str| {
        let refused = load(&files).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    };
    let missing = authority.folder.join("missing.pem");
    let empty = authority.write("empty.pem", "");
    let (_, other_key) = authority.sign("127.0.0.1");
    let other_key = authority.write("other.key", &other_key);
    check(
        TlsFiles { certificate: missing.clone(), ..good.clone() },
        "missing.pem: there is no such file; the certificate is to be there, in PEM",
    );
    check(
        TlsFiles { private_key: missing, ..good.clone() },
        "missing.pem: there is no such file; the private key",
    );
    check(TlsFiles { client_ca: empty.clone(), ..good.clone() }, "empty.pem: it holds no certificate");
    check(TlsFiles { private_key: empty, ..good.clone() }, "empty.pem: it holds no private key");
    check(TlsFiles { private_key: other_key, ..good }, "cannot be used together");
}
