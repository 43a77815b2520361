//! The certificate and the key by which the front speaks https.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{Error as TlsFault, InconsistentKeys, ServerConfig};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

/// The first byte that a client sends in TLS.
pub(super) const HANDSHAKE: u8 = 0x16;

/// The certificate that the front shows, and its key.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// Why https cannot be spoken.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// The file of the certificate has no certificate.
    #[error(
        "{path} has no certificate in PEM, expected `-----BEGIN CERTIFICATE-----`, the server's own first and then the \
         intermediate ones{why}"
    )]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Why a part of it cannot be read, in words; empty if nothing is known.
        why: String,
    },
    /// The file of the key has no key.
    #[error(
        "{path} has no private key in PEM, expected `-----BEGIN PRIVATE KEY-----` without a pass phrase{why}"
    )]
    Key {
        /// The file.
        path: PathBuf,
        /// Why a part of it cannot be read, in words; empty if nothing is known.
        why: String,
    },
    /// The key belongs to another certificate.
    #[error(
        "the key in {key} does not belong to the first certificate in {certificate}: name the two that were made together"
    )]
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// They cannot be used for another reason.
    #[error("the certificate in {certificate} and the key in {key} cannot be used: {source}")]
    Unusable {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// The error of TLS.
        source: TlsFault,
    },
}

impl Tls {
    /// Reads a certificate, with the intermediate ones behind it, and its private key, each from a file in PEM.
    ///
    /// # Errors
    /// If a file cannot be read or lacks a certificate or a key, or the key does not belong to the certificate.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let chain = read_chain(certificate)?;
        let private = read_key(key)?;
        let files = || (certificate.to_owned(), key.to_owned());
        let unusable = |source| {
            let (certificate, key) = files();
            match source {
                TlsFault::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                    TlsError::Mismatch { certificate, key }
                }
                source => TlsError::Unusable { certificate, key, source },
            }
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .map_err(unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { acceptor: Arc::new(config).into() })
    }

    pub(super) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let fault = |why| TlsError::Certificate { path: path.to_owned(), why };
    match certificates {
        Ok(chain) if chain.is_empty() => Err(fault(String::new())),
        Ok(chain) => Ok(chain),
        Err(PemError::Io(source)) => Err(TlsError::Io { path: path.to_owned(), source }),
        Err(error) => Err(fault(format!(" ({error})"))),
    }
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let fault = |why| TlsError::Key { path: path.to_owned(), why };
    PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        PemError::Io(source) => TlsError::Io { path: path.to_owned(), source },
        PemError::NoItemsFound => fault(String::new()),
        error => fault(format!(" ({error})")),
    })
}
