//! The way to a scheduler over the network: its address, the token that lets requests in, and the authorities whose certificates
//! are trusted. Agents use [`HttpLink`], and commands use [`Access`].

mod link;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::{CertificateError, Error as TlsFault};
use thiserror::Error;
use ureq::http::header::{AUTHORIZATION, CONTENT_TYPE};
use ureq::http::{Method, Request};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, AsSendBody};

use crate::protocol;

pub use link::{HttpLink, News};

/// The longest time that a connection may take to open.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// The most bytes of an answer.
const ANSWER_MAX: u64 = 1 << 30;

/// Why there is no way to a scheduler.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AccessError {
    /// The address is not one.
    #[error("`{0}` is no address of a scheduler: expected http://HOST:PORT or https://HOST:PORT")]
    Url(String),
    /// The file with the token cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file with the token holds no token.
    #[error("{0} holds no token: expected one word, in ASCII")]
    Token(PathBuf),
    /// The file with the token holds its digest instead.
    #[error("{0} holds the digest of a token, which only `serve` reads: name the file with the token itself")]
    Digest(PathBuf),
    /// The file with an authority's certificate holds no certificate.
    #[error("{path} holds no certificate of an authority in PEM{why}")]
    Authority {
        /// The file.
        path: PathBuf,
        /// Why a part of it cannot be read, in words, with a colon before it; empty if nothing is known.
        why: String,
    },
}

/// A scheduler to which requests can be sent.
#[derive(Clone, Debug)]
pub struct Access {
    agent: Agent,
    url: String,
    bearer: Option<String>,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub text: String,
    /// The number of the last line, if the answer is a part of the event log.
    pub last: Option<i64>,
    /// Whether it is a scheduler's answer, by its header.
    pub is_schedulers: bool,
}

/// Why there is no answer.
#[derive(Debug, Error)]
#[error("{why}")]
pub struct Lost {
    /// Whether no connection was made, so that the scheduler has not taken the request.
    pub is_unheard: bool,
    /// Whether something answers there with which no https can be spoken.
    pub is_distrusted: bool,
    why: String,
    kind: io::ErrorKind,
}

impl Lost {
    /// This error as an error of the system.
    pub fn into_io(self) -> io::Error {
        io::Error::new(self.kind, self.why)
    }
}

/// Reads a token from a file of its own.
///
/// # Errors
/// If the file cannot be read, or holds anything but one word in ASCII.
pub fn read_token(path: &Path) -> Result<String, AccessError> {
    let token = read(path)?.trim().to_owned();
    if token.starts_with("sha256:") {
        return Err(AccessError::Digest(path.to_owned()));
    }
    if token.is_empty() || token.contains(|letter: char| !letter.is_ascii_graphic()) {
        return Err(AccessError::Token(path.to_owned()));
    }
    Ok(token)
}

fn read(path: &Path) -> Result<String, AccessError> {
    fs::read_to_string(path).map_err(|source| AccessError::Io { path: path.to_owned(), source })
}

/// The certificates in a file of authorities.
fn authorities(path: &Path) -> Result<RootCerts, AccessError> {
    let fault = |why: String| AccessError::Authority { path: path.to_owned(), why };
    let text = read(path)?;
    let mut certificates: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(text.as_bytes()) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| fault(format!(": {error}")))? {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() {
        return Err(fault(String::new()));
    }
    Ok(RootCerts::Specific(Arc::new(certificates)))
}

impl Access {
    /// The way to the scheduler at `url`, with a token if it needs one. Without a file of authorities, the public authorities are
    /// trusted.
    ///
    /// # Errors
    /// If `url` is no address, or the file has no certificate.
    pub fn new(url: &str, token: Option<&str>, ca: Option<&Path>) -> Result<Self, AccessError> {
        let url = url.trim_end_matches('/').to_owned();
        let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        if host.is_none_or(|host| host.is_empty() || host.contains(['/', '@', '?', '#'])) {
            return Err(AccessError::Url(url));
        }
        let mut tls = TlsConfig::builder();
        if let Some(path) = ca {
            tls = tls.root_certs(authorities(path)?);
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_LIMIT))
            .max_redirects(0)
            .proxy(None)
            .tls_config(tls.build())
            .build();
        let bearer = token.map(|token| format!("Bearer {token}"));
        Ok(Self { agent: config.into(), url, bearer })
    }

    /// The scheduler's address, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Gets the answer for a path, and waits at most `limit` for all of it.
    ///
    /// # Errors
    /// If there is no answer in time.
    pub fn ask(&self, method: Method, path: &str, limit: Duration) -> Result<Reply, Lost> {
        self.send((method, path), (), limit)
    }

    /// Posts a JSON document, and waits at most `limit` for the whole answer.
    ///
    /// # Errors
    /// If there is no answer in time.
    pub fn post(&self, path: &str, document: &[u8], limit: Duration) -> Result<Reply, Lost> {
        self.send((Method::POST, path), document, limit)
    }

    fn send(
        &self,
        (method, path): (Method, &str),
        body: impl AsSendBody,
        limit: Duration,
    ) -> Result<Reply, Lost> {
        let mut request = Request::builder().method(&method).uri(format!("{}{path}", self.url));
        if let Some(bearer) = &self.bearer {
            request = request.header(AUTHORIZATION, bearer);
        }
        if method == Method::POST {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(body).map_err(|error| lost(ureq::Error::Http(error)))?;
        let request = self.agent.configure_request(request).timeout_global(Some(limit)).build();
        let mut answer = self.agent.run(request).map_err(lost)?;
        let status = answer.status().as_u16();
        let last =
            answer.headers().get(protocol::LAST_EVENT).and_then(|last| last.to_str().ok()?.parse().ok());
        let is_schedulers = answer.headers().contains_key(protocol::VERSION);
        let text = answer.body_mut().with_config().limit(ANSWER_MAX).read_to_string().map_err(lost)?;
        Ok(Reply { status, text, last, is_schedulers })
    }
}

fn lost(error: ureq::Error) -> Lost {
    let tls = tls_fault(&error);
    let is_unheard = tls.is_some()
        || match &error {
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed | ureq::Error::BadUri(_) => true,
            ureq::Error::Io(error) => error.kind() == io::ErrorKind::ConnectionRefused,
            ureq::Error::Timeout(timeout) => {
                matches!(timeout, ureq::Timeout::Connect | ureq::Timeout::Resolve)
            }
            _ => false,
        };
    let is_distrusted = tls.is_some();
    let why = tls.map_or_else(|| error.to_string(), in_words);
    Lost { is_unheard, is_distrusted, why, kind: error.into_io().kind() }
}

/// The fault of TLS in an error; none if the error is another.
fn tls_fault(error: &ureq::Error) -> Option<&TlsFault> {
    match error {
        ureq::Error::Rustls(fault) => Some(fault),
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// A fault of TLS, and its remedy, in words.
fn in_words(fault: &TlsFault) -> String {
    match fault {
        TlsFault::InvalidMessage(_) => {
            "what answers there speaks no https; write http:// if it is the scheduler".to_owned()
        }
        TlsFault::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "its certificate is of no authority that is trusted here; `--ca FILE` or APPORTION_CA names the file with the \
             certificate of an authority of your own"
                .to_owned()
        }
        TlsFault::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => format!("{fault}; the URL must call it by a name that its certificate has"),
        fault => fault.to_string(),
    }
}

/// A part of a path, escaped so that no name of a server or a job leads elsewhere.
pub fn escaped(part: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_~".contains(&byte);
    part.bytes()
        .map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_part_of_a_path() {
        assert_eq!(escaped("node-1_a"), "node-1_a");
        assert_eq!(escaped("../v1/ä?x"), "%2E%2E%2Fv1%2F%C3%A4%3Fx");
    }

    #[test]
    fn what_is_no_way_to_a_scheduler_is_refused() {
        for url in
            ["", "head:7070", "ftp://head", "http://", "http://head/v1", "https://a@head", "http://head?x"]
        {
            assert!(matches!(Access::new(url, None, None), Err(AccessError::Url(_))), "{url}");
        }
        assert_eq!(Access::new("https://head:7070/", None, None).unwrap().url(), "https://head:7070");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for (text, says) in [
            ("", "holds no token"),
            ("two words\n", "holds no token"),
            ("sha256:ab\n", "holds the digest of a token"),
        ] {
            fs::write(&path, text).unwrap();
            let said = read_token(&path).unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
            let said = Access::new("https://head", None, Some(&path)).unwrap_err().to_string();
            assert!(said.contains("file holds no certificate of an authority"), "{said}");
        }
        fs::write(&path, " word\n").unwrap();
        assert_eq!(read_token(&path).unwrap(), "word");
        assert!(read_token(folder.path()).unwrap_err().to_string().contains("cannot read"));
    }
}
