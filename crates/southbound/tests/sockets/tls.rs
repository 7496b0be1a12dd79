//! TLS with certificates on both sides, beside plain OpenFlow on the same port.

use crate::log;
use crate::node::Node;
use crate::switch::{Switch, packet_in};
use flow::DatapathId;
use openflow::Version;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use southbound::tls::{TlsFiles, load};
use southbound::{Binding, Fault, Fingerprint, Plain, SouthboundConfig};
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
        self.sign_names(vec![if name == "127.0.0.1" {
            SanType::IpAddress(name.parse().unwrap())
        } else {
            SanType::DnsName(name.try_into().unwrap())
        }])
    }

    fn sign_names(&self, names: Vec<SanType>) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = names;
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
        self.client_with(shown.map(|authority| authority.sign("switch")))
    }

    /// The same with this certificate and its key.
    fn client_with(&self, shown: Option<(String, String)>) -> ClientConnection {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match shown {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        ClientConnection::new(Arc::new(config), "127.0.0.1".try_into().unwrap()).unwrap()
    }

    /// A switch that shows this certificate, and says all of a handshake.
    fn switch(&self, node: &mut Node, shown: &(String, String), datapath: u64) -> Switch {
        let mut switch = Switch::by_tls(node, self.client_with(Some(shown.clone())));
        switch.shake_hands(Version::V1_3, datapath);
        switch
    }

    fn node(&self, plain: Plain) -> Node {
        let tls = Some(load(&self.files()).unwrap());
        Node::new(SouthboundConfig { tls, plain, ..Default::default() })
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
    let mut node = authority.node(Plain::default());
    let mut switch = Switch::by_tls(&node, authority.client(None));
    switch.shake_hands(Version::V1_3, 7);
    check_refused(&mut node, switch);
}

#[test]
fn a_switch_with_a_certificate_of_another_authority_is_refused() {
    let (authority, other) = (Authority::new("ours"), Authority::new("other"));
    let mut node = authority.node(Plain::default());
    let mut switch = Switch::by_tls(&node, authority.client(Some(&other)));
    switch.shake_hands(Version::V1_3, 7);
    check_refused(&mut node, switch);
}

#[test]
fn plain_openflow_is_refused_where_tls_is_required() {
    let authority = Authority::new("required");
    let mut node = authority.node(Plain::Nobody);
    let mut switch = Switch::silent(&node);
    switch.shake_hands(Version::V1_3, 7);
    check_refused(&mut node, switch);
}

#[test]
fn plain_openflow_is_refused_off_this_machine_unless_it_is_allowed() {
    let authority = Authority::new("elsewhere");
    let elsewhere = Some("10.0.0.9".parse().unwrap());
    let mut node = authority.node(Plain::default());
    node.as_if_from = elsewhere;
    let mut switch = Switch::silent(&node);
    switch.shake_hands(Version::V1_3, 7);
    check_refused(&mut node, switch);
    let [(None, end)] = &node.ended[..] else { panic!("{:?}", node.ended) };
    assert!(end.is_refusal && end.fault == Fault::Operator, "{end:?}");
    assert!(end.reason.contains("southbound.tls.allow_plain = true"), "{end:?}");
    let mut by_tls = Switch::by_tls(&node, authority.client(Some(&authority)));
    by_tls.come_up(&mut node, Version::V1_3, 7);
    let mut node = authority.node(Plain::Everybody);
    node.as_if_from = elsewhere;
    Switch::up(&mut node, Version::V1_3, 7);
}

#[test]
fn an_address_that_tries_again_and_again_without_tls_leaves_one_line() {
    let authority = Authority::new("again");
    let lines = log::lines_of(|| {
        let mut node = authority.node(Plain::default());
        node.as_if_from = Some("10.0.0.9".parse().unwrap());
        for _ in 0..20 {
            let mut switch = Switch::silent(&node);
            switch.shake_hands(Version::V1_0, 7);
            check_refused(&mut node, switch);
        }
        assert_eq!(node.ended.len(), 20);
    });
    log::check(
        &lines,
        &["WARN", "peer=10.0.0.9:", "connection refused: it connects without TLS", "allow_plain = true"],
    );
}

#[test]
fn a_peer_elsewhere_that_says_nothing_hears_nothing_in_plain() {
    let authority = Authority::new("silent");
    let mut node = authority.node(Plain::default());
    node.as_if_from = Some("10.0.0.9".parse().unwrap());
    let mut switch = Switch::silent(&node);
    node.until("it is accepted", |node| node.roster.connections() == 1);
    node.tick(2_000);
    node.turn();
    assert!(!switch.has_heard(|_| true));
    node.tick(10_000);
    check_refused(&mut node, switch);
}

fn fingerprint((certificate, _): &(String, String)) -> Fingerprint {
    Fingerprint::of(&CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap())
}

/// It comes up, and goes.
fn check_up(node: &mut Node, mut switch: Switch) {
    let (ups, downs) = (node.ups() + 1, node.downs() + 1);
    node.until("it is up", |node| {
        switch.pump();
        node.ups() == ups
    });
    drop(switch);
    node.until("it is down", |node| node.downs() == downs);
}

/// It is refused with these words.
fn check_not_bound(node: &mut Node, mut switch: Switch, expected: &[&str]) {
    let (ups, ended) = (node.ups(), node.ended.len());
    node.until("the controller closes", |_| {
        switch.pump();
        switch.closed
    });
    let (_, end) = &node.ended[ended];
    assert!(end.is_refusal && end.fault == Fault::Operator, "{end:?}");
    assert!(expected.iter().all(|part| end.reason.contains(part)), "{end:?}");
    assert_eq!(node.ups(), ups);
}

#[test]
fn the_first_certificate_that_speaks_for_an_id_is_the_only_one_also_after_the_node_was_started_anew() {
    let authority = Authority::new("pinned");
    let (mine, other) = (authority.sign("switch"), authority.sign("other"));
    let mut node = authority.node(Plain::Everybody);
    let switch = authority.switch(&mut node, &mine, 7);
    check_up(&mut node, switch);
    assert_eq!(node.roster.pins(), [(DatapathId(7), fingerprint(&mine))]);
    let mut later = authority.node(Plain::Everybody);
    later.roster.restore_pins(&node.roster.pins());
    for node in [&mut node, &mut later] {
        let (mine_text, other_text) = (fingerprint(&mine).to_string(), fingerprint(&other).to_string());
        let switch = authority.switch(node, &other, 7);
        check_not_bound(
            node,
            switch,
            &["of:0000000000000007", &mine_text, &other_text, "burnet tls forget of:0000000000000007"],
        );
        let mut plain = Switch::silent(node);
        plain.shake_hands(Version::V1_3, 7);
        check_not_bound(node, plain, &["of:0000000000000007", &mine_text, "without TLS"]);
        let switch = authority.switch(node, &mine, 7);
        check_up(node, switch);
    }
    node.roster.forget_pin(DatapathId(7));
    let switch = authority.switch(&mut node, &other, 7);
    check_up(&mut node, switch);
}

#[test]
fn a_bound_id_is_claimed_by_another_without_the_one_who_has_it_being_asked() {
    let authority = Authority::new("unasked");
    let (mine, other) = (authority.sign("switch"), authority.sign("other"));
    let mut node = authority.node(Plain::Everybody);
    let mut switch = Switch::by_tls(&node, authority.client_with(Some(mine)));
    switch.come_up(&mut node, Version::V1_3, 7);
    let stranger = authority.switch(&mut node, &other, 7);
    check_not_bound(&mut node, stranger, &["is pinned to the certificate"]);
    assert!(!switch.has_heard(|body| matches!(body, openflow::Body::EchoRequest(_))));
}

#[test]
fn a_certificate_that_names_its_switch_speaks_for_no_other() {
    let authority = Authority::new("named");
    let uri = SanType::URI("of:0000000000000007".try_into().unwrap());
    let dns = SanType::DnsName("of-0000000000000007".try_into().unwrap());
    for name in [uri, dns] {
        let mut node = authority.node(Plain::default());
        let named = authority.sign_names(vec![name]);
        let switch = authority.switch(&mut node, &named, 8);
        check_not_bound(&mut node, switch, &["names of:0000000000000007", "URI:of:0000000000000008"]);
        let switch = authority.switch(&mut node, &named, 7);
        check_up(&mut node, switch);
        // While it is away, nobody without that name takes its place.
        let unnamed = authority.sign("switch");
        let switch = authority.switch(&mut node, &unnamed, 7);
        check_not_bound(&mut node, switch, &["is pinned to the certificate"]);
    }
}

#[test]
fn what_the_operator_has_written_down_goes_before_all_and_nothing_binds_where_he_says_so() {
    let authority = Authority::new("table");
    let (mine, other) = (authority.sign("switch"), authority.sign("other"));
    let tls = Some(load(&authority.files()).unwrap());
    let datapaths = Arc::new([(DatapathId(7), vec![fingerprint(&mine)])].into());
    let mut node =
        Node::new(SouthboundConfig { tls, binding: Binding::Named, datapaths, ..Default::default() });
    let switch = authority.switch(&mut node, &other, 7);
    check_not_bound(&mut node, switch, &["southbound.tls.datapaths binds"]);
    let switch = authority.switch(&mut node, &other, 8);
    check_not_bound(&mut node, switch, &["names no datapath id"]);
    let switch = authority.switch(&mut node, &mine, 7);
    check_up(&mut node, switch);
    let tls = Some(load(&authority.files()).unwrap());
    node.southbound.reconfigure(SouthboundConfig { tls, binding: Binding::None, ..Default::default() });
    let switch = authority.switch(&mut node, &other, 7);
    check_up(&mut node, switch);
}

#[test]
fn one_port_speaks_both() {
    let authority = Authority::new("both");
    let mut node = authority.node(Plain::default());
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
    let mut node = authority.node(Plain::default());
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
        "missing.pem: there is no such file; it must hold the certificate in PEM",
    );
    check(
        TlsFiles { private_key: missing, ..good.clone() },
        "missing.pem: there is no such file; it must hold the private key in PEM",
    );
    check(TlsFiles { client_ca: empty.clone(), ..good.clone() }, "empty.pem: it holds no certificate");
    check(TlsFiles { private_key: empty, ..good.clone() }, "empty.pem: it holds no private key");
    check(TlsFiles { private_key: other_key, ..good }, "cannot be used together");
}
