//! Who is believed to be the other side.

use std::{io::Write, net::TcpListener, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

use super::{
    server::{Server, read_request, read_to_close},
    world::{World, ask, patient, policy_for, short},
};
use crate::{ConnectError, Plan, Sent, connect, tls::bundle};

pub(super) type Issuer = CertifiedIssuer<'static, KeyPair>;

pub(super) fn authority() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server whose certificate is for `name`; it returns the request that it could read, if any.
pub(super) fn server(issuer: &Issuer, name: &str) -> Server<Option<String>> {
    certified(issuer, &params_for(name))
}

fn params_for(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).unwrap()
}

fn certified(issuer: &Issuer, params: &CertificateParams) -> Server<Option<String>> {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    Server::start(move |stream| {
        let tls = ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = StreamOwned::new(tls, stream);
        stream.conn.complete_io(&mut stream.sock).ok()?;
        let request = read_request(&mut stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .unwrap();
        Some(request)
    })
}

fn plan_for<T: Send + 'static>(server: &Server<T>, ca: Option<&Issuer>) -> Plan {
    let ca = ca.map_or_else(String::new, |ca| format!("ca = '''\n{}'''", ca.pem()));
    policy_for("https", server.address, &ca)
        .plan(ask("GET", "/builds/1"))
        .unwrap()
}

async fn refusal(plan: &Plan) -> ConnectError {
    let world = World::new();
    let permit = world.permit(plan).await;
    connect(&permit, plan, &patient()).await.unwrap_err()
}

#[test]
fn the_first_bundle_that_is_there_is_believed_without_what_is_damaged_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let odd = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let two = authority().pem() + odd + &authority().pem();
    std::fs::write(path("two.pem"), two).unwrap();
    std::fs::write(path("odd.pem"), odd).unwrap();
    let found = |names: &[&str]| {
        let paths: Vec<_> = names.iter().map(|name| path(name)).collect();
        bundle(&paths).map(|roots| roots.len())
    };

    assert_eq!(found(&["absent.pem", "two.pem", "odd.pem"]), Some(2));
    assert_eq!(found(&["odd.pem"]), None);
    assert_eq!(found(&["absent.pem"]), None);
}

#[tokio::test]
async fn a_certificate_of_the_channels_own_authority_is_believed() {
    let ca = authority();
    let server = server(&ca, "127.0.0.1");
    let plan = plan_for(&server, Some(&ca));

    let sent = World::new().call(&plan, patient()).await;

    assert!(matches!(sent, Sent::Answered(answer) if answer.body == b"ok"));
    assert!(server.end().unwrap().starts_with("GET /api/builds/1"));
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused_before_anything_is_sent() {
    let ca = authority();
    for name in ["127.0.0.2", "api.example.com"] {
        let server = server(&ca, name);
        let plan = plan_for(&server, Some(&ca));

        let error = refusal(&plan).await;

        assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
        assert_eq!(server.end(), None, "no request may have been read");
    }
}

#[tokio::test]
async fn a_certificate_outside_of_its_time_is_refused_before_anything_is_sent() {
    let ca = authority();
    let (mut past, mut future) = (params_for("127.0.0.1"), params_for("127.0.0.1"));
    past.not_after = date_time_ymd(2020, 1, 1);
    future.not_before = date_time_ymd(3000, 1, 1);
    for params in [past, future] {
        let server = certified(&ca, &params);
        let plan = plan_for(&server, Some(&ca));

        let error = refusal(&plan).await;

        assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
        assert_eq!(server.end(), None, "no request may have been read");
    }
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let (ca, other) = (authority(), authority());
    for believed in [Some(&other), None] {
        let server = server(&ca, "127.0.0.1");
        let plan = plan_for(&server, believed);

        let error = refusal(&plan).await;

        let known = matches!(error, ConnectError::Tls { .. } | ConnectError::NoRoots);
        assert!(known, "{error}");
        server.end();
    }
}

#[tokio::test]
async fn a_server_that_never_shakes_hands_is_given_up() {
    let server = Server::start(|mut stream| read_to_close(&mut stream));
    let plan = plan_for(&server, Some(&authority()));
    let world = World::new();
    let permit = world.permit(&plan).await;

    let error = connect(&permit, &plan, &short()).await.unwrap_err();

    assert!(matches!(error, ConnectError::TimedOut(_)), "{error}");
    server.end();
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_not_dialled() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let draft = format!(
        "[channel.builds]\nkind = \"http\"\nbase = \"https://localhost:{port}\"\n\
         [[channel.builds.operation]]\nname = \"all\"\nallow = [\"GET /**\"]\n"
    );
    let policy = crate::Policy::parse_draft(&draft).unwrap();
    let plan = policy.plan(ask("GET", "/")).unwrap();

    let error = refusal(&plan).await;

    assert!(matches!(error, ConnectError::AddressRefused(_)), "{error}");
    assert_eq!(
        listener.accept().unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
}
