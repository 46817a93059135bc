//! Who is believed to be the other side: the system's certificate authorities, or those a channel names.
//!
//! Nothing of the environment is read: not `SSL_CERT_FILE`, which could name an authority of somebody's own,
//! and not `SSLKEYLOGFILE`, which would give the session keys away.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use rustls::{
    ClientConfig, RootCertStore,
    client::Resumption,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

/// Returns the configuration for one connection; none if there is no certificate authority to believe.
pub(crate) fn config(ca: Option<&str>) -> Option<Arc<ClientConfig>> {
    static SYSTEM: OnceLock<Option<Arc<ClientConfig>>> = OnceLock::new();
    match ca {
        Some(pem) => build(roots_from(pem)?),
        None => SYSTEM.get_or_init(|| build(bundle(&BUNDLES)?)).clone(),
    }
}

/// Reads certificates in PEM form; none if there is none, or one that is damaged.
pub(crate) fn roots_from(pem: &str) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots.add(certificate.ok()?).ok()?;
    }
    (!roots.is_empty()).then_some(roots)
}

/// The first of these bundles that is there. A certificate in it that cannot be read is left out: bundles hold
/// odd ones.
pub(crate) fn bundle(paths: &[impl AsRef<Path>]) -> Option<RootCertStore> {
    let bundle = paths.iter().find_map(|path| std::fs::read(path).ok())?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&bundle).flatten());
    (!roots.is_empty()).then_some(roots)
}

fn build(roots: RootCertStore) -> Option<Arc<ClientConfig>> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Nothing of one call is kept for the next.
    config.resumption = Resumption::disabled();
    Some(Arc::new(config))
}

/// Debian and its kin; Red Hat and its kin (new, old); SUSE; Alpine and macOS.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
