//! A TLS front before a target that speaks plain HTTP: what an API looks like from outside.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

/// The front; its threads end with their connections, and the last with the test.
pub struct Front {
    /// Where it listens.
    pub address: SocketAddr,
    /// The authority that vouches for it, as PEM text.
    pub ca: String,
}

impl Front {
    /// Starts a front before a target.
    pub fn before(target: SocketAddr) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"))
            .expect("an authority");
        let key = KeyPair::generate().expect("a key");
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])
            .expect("a name")
            .signed_by(&key, &ca)
            .expect("a certificate");
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("a key that fits");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let address = listener.local_addr().expect("a bound socket");
        let config = Arc::new(config);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let config = Arc::clone(&config);
                // A connection that breaks is the test's business, which sees the call fail.
                thread::spawn(move || drop(forward(config, stream, target)));
            }
        });
        Self {
            address,
            ca: ca.pem(),
        }
    }
}

/// One request and one answer: our side closes after each.
fn forward(config: Arc<ServerConfig>, stream: TcpStream, target: SocketAddr) -> io::Result<()> {
    let tls = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut outside = StreamOwned::new(tls, stream);
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && outside.read(&mut byte)? == 1 {
        head.push(byte[0]);
    }
    let mut inside = TcpStream::connect(target)?;
    inside.write_all(&head)?;
    inside.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    inside.read_to_end(&mut answer)?;
    outside.write_all(&answer)?;
    outside.conn.send_close_notify();
    outside.flush()
}
