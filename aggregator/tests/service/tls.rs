//! TLS, with real handshakes.

use std::{
    io::{self, Read},
    net::{SocketAddr, TcpStream},
    process::Command,
    sync::Arc,
    time::Duration,
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::{
    common::client::{Response, metric, send, try_send_over, until},
    server::{Place, TestServer},
};

type Authority = CertifiedIssuer<'static, KeyPair>;

/// A certificate and its key, as PEM.
struct Pair {
    cert: String,
    key: String,
}

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn issue(authority: &Authority, name: &str) -> Pair {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([name.to_owned()]).unwrap();
    let cert = params.signed_by(&key, authority).unwrap();
    Pair {
        cert: cert.pem(),
        key: key.serialize_pem(),
    }
}

fn write(place: &Place, pair: &Pair) {
    place.write("cert.pem", &pair.cert);
    place.write("key.pem", &pair.key);
}

/// A place whose service speaks TLS with this pair.
fn place(pair: &Pair) -> Place {
    let mut place = Place::new();
    write(&place, pair);
    place.settings.tls_cert = Some(place.file("cert.pem"));
    place.settings.tls_key = Some(place.file("key.pem"));
    place
}

struct Client {
    trusts: CertificateDer<'static>,
    shows: Option<Pair>,
    protocols: Vec<Vec<u8>>,
}

impl Client {
    fn of(authority: &Authority) -> Self {
        Self {
            trusts: CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap(),
            shows: None,
            protocols: Vec::new(),
        }
    }

    fn showing(authority: &Authority, pair: Pair) -> Self {
        Self {
            shows: Some(pair),
            ..Self::of(authority)
        }
    }

    fn connect(&self, to: SocketAddr) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.trusts.clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match &self.shows {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let chain = CertificateDer::from_pem_slice(pair.cert.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![chain], key).unwrap()
            }
        };
        config.alpn_protocols.clone_from(&self.protocols);
        let name = "localhost".try_into().unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect(to)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let mut stream = StreamOwned::new(connection, stream);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(stream)
    }

    fn get(&self, to: SocketAddr, path: &str) -> io::Result<Response> {
        try_send_over(self.connect(to)?, "GET", path, "", b"")
    }
}

fn refused(server: &TestServer, client: &Client, reason: &str) -> u64 {
    let label = format!("reason=\"{reason}\"");
    let text = client.get(server.address, "/metrics").unwrap().text();
    crate::common::client::metric_in(&text, "weir_connections_refused_total", &label)
}

#[test]
fn requests_are_answered_over_tls_to_those_who_know_the_authority() {
    let authority = authority();
    let place = place(&issue(&authority, "localhost"));
    let server = place.launch();
    let client = Client::of(&authority);
    assert_eq!(client.get(server.address, "/healthz").unwrap().status, 200);
    let stranger = Client::of(&self::authority());
    let answer = stranger.get(server.address, "/healthz").map(|r| r.status);
    let error = answer.unwrap_err().to_string();
    assert!(error.contains("invalid peer certificate"), "{error}");
    until("it is counted", || {
        refused(&server, &client, "handshake_failed") == 1
    });
}

#[test]
fn http_2_is_announced_and_http_1_is_enough() {
    let authority = authority();
    let place = place(&issue(&authority, "localhost"));
    let server = place.launch();
    for (offered, chosen) in [
        (vec!["h2", "http/1.1"], "h2"),
        (vec!["http/1.1"], "http/1.1"),
    ] {
        let mut client = Client::of(&authority);
        client.protocols = offered
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        let stream = client.connect(server.address).unwrap();
        assert_eq!(stream.conn.alpn_protocol(), Some(chosen.as_bytes()));
    }
}

#[test]
fn who_speaks_plain_http_to_it_is_told_so() {
    let authority = authority();
    let place = place(&issue(&authority, "localhost"));
    let server = place.launch();
    let answer = send(server.address, "GET", "/healthz", b"");
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("https://"), "{}", answer.text());
    let client = Client::of(&authority);
    until("it is counted", || {
        refused(&server, &client, "not_tls") == 1
    });
}

#[test]
fn a_handshake_that_does_not_come_ends_in_time() {
    let authority = authority();
    let mut place = place(&issue(&authority, "localhost"));
    place.settings.handshake_timeout_ms = Some(50);
    let server = place.launch();
    let mut silent = TcpStream::connect(server.address).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0, "it is closed");
    let client = Client::of(&authority);
    until("it is counted", || {
        refused(&server, &client, "handshake_late") == 1
    });
}

#[test]
fn a_handshake_under_way_does_not_keep_the_service_from_stopping() {
    let authority = authority();
    let mut place = place(&issue(&authority, "localhost"));
    // Longer than stopping may take, and than a test.
    place.settings.handshake_timeout_ms = Some(60_000);
    let mut server = place.launch();
    let client = Client::of(&authority);
    let mut silent = TcpStream::connect(server.address).unwrap();
    silent
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    // Connections are taken in order: this one is answered after it was.
    client.get(server.address, "/healthz").unwrap();
    server.begin_stop();
    let closed = silent.read(&mut [0]);
    assert_eq!(closed.expect("sooner than requests get to finish"), 0);
    server.end().unwrap();
}

#[test]
fn with_an_authority_for_clients_only_its_clients_get_in() {
    let (ours, theirs) = (authority(), authority());
    let mut place = place(&issue(&ours, "localhost"));
    place.settings.tls_client_ca = Some(place.write("clients.pem", &theirs.pem()));
    let server = place.launch();
    let good = Client::showing(&ours, issue(&theirs, "edge"));
    assert_eq!(good.get(server.address, "/healthz").unwrap().status, 200);
    let nobody = Client::of(&ours);
    let stranger = Client::showing(&ours, issue(&ours, "edge"));
    for client in [nobody, stranger] {
        assert!(client.get(server.address, "/healthz").is_err());
    }
    until("both are counted", || {
        refused(&server, &good, "handshake_failed") == 2
    });
}

#[test]
fn a_new_certificate_is_shown_to_new_connections_and_a_wrong_one_never() {
    let (old, new) = (authority(), authority());
    let place = place(&issue(&old, "localhost"));
    let server = place.launch();
    let status = |authority: &Authority| {
        let answer = Client::of(authority).get(server.address, "/healthz");
        answer.map(|answer| answer.status).ok()
    };
    assert_eq!(status(&old), Some(200));
    let next = issue(&new, "localhost");
    // The key has not come yet: the two do not match.
    place.write("cert.pem", &next.cert);
    let client = Client::of(&old);
    until("it is refused", || {
        let text = client.get(server.address, "/metrics").unwrap().text();
        crate::common::client::metric_in(&text, "weir_tls_files_refused_total", "") == 1
    });
    assert_eq!((status(&old), status(&new)), (Some(200), None));
    place.write("key.pem", &next.key);
    until("the new one is shown", || status(&new) == Some(200));
    assert_eq!(status(&old), None);
}

#[test]
fn the_command_shows_its_certificate_where_one_is_asked_for() {
    let (ours, theirs) = (authority(), authority());
    let mut place = place(&issue(&ours, "localhost"));
    place.settings.tls_client_ca = Some(place.write("clients.pem", &theirs.pem()));
    let server = place.launch();
    let client = Client::showing(&ours, issue(&theirs, "edge"));
    until("ready", || {
        client.get(server.address, "/readyz").unwrap().status == 200
    });
    let mine = issue(&theirs, "me");
    let [ca, cert, key] = [
        ("ca.pem", ours.pem()),
        ("my-cert.pem", mine.cert),
        ("my-key.pem", mine.key),
    ]
    .map(|(name, pem)| place.write(name, &pem).to_str().unwrap().to_owned());
    let url = format!("https://localhost:{}", server.address.port());
    let weir = |more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["check", "wide", "a", "--url", &url, "--ca", &ca])
            .args(more)
            .output()
            .unwrap()
    };
    let shown = weir(&["--cert", &cert, "--key-file", &key]);
    let error = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert_eq!(shown.status.code(), Some(0), "{error}");
    assert_eq!(weir(&[]).status.code(), Some(69));
    assert_eq!(weir(&["--cert", &cert]).status.code(), Some(2));
}

#[test]
fn the_command_asks_over_tls_and_trusts_only_whom_it_is_told_to() {
    let authority = authority();
    let place = place(&issue(&authority, "localhost"));
    let server = place.launch();
    let client = Client::of(&authority);
    until("ready", || {
        client.get(server.address, "/readyz").unwrap().status == 200
    });
    let url = format!("https://localhost:{}", server.address.port());
    let ca = place.write("ca.pem", &authority.pem());
    let weir = |more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["check", "wide", "a", "--url", &url])
            .args(more)
            .output()
            .unwrap()
    };
    let asked = weir(&["--ca", ca.to_str().unwrap()]);
    let error = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert_eq!(asked.status.code(), Some(0), "{error}");
    let asked = weir(&[]);
    assert_eq!(asked.status.code(), Some(69));
    let error = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(error.contains("certificate"), "{error}");
}

#[test]
fn without_tls_files_nothing_of_it_is_asked_for() {
    let place = Place::new();
    let server = place.start();
    assert_eq!(
        metric(server.address, "weir_tls_files_refused_total", ""),
        0
    );
}
