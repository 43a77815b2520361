//! Which requests are let in: those with a token or, where there are no tokens, those from this machine.

use std::fmt;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, Method, StatusCode};
use hmac_sha256::Hash;
use thiserror::Error;

/// What stands before a digest in a file of tokens.
const PREFIX: &str = "sha256:";

/// Tokens that are let in. Only their digests are known.
#[derive(Clone, PartialEq, Eq)]
pub struct Tokens {
    digests: Vec<[u8; 32]>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.digests.len())
    }
}

/// Why tokens cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file.
    #[error("cannot read {path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line of it.
    #[error("{path}:{line}: this is no digest of a token, expected `sha256:` and 64 hexadecimal digits")]
    Line {
        /// The file.
        path: PathBuf,
        /// Which, from 1.
        line: usize,
    },
    /// It has none.
    #[error("{path}: this file has no digest of a token")]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl Tokens {
    /// Reads the digests of tokens from a file: `sha256:` and the digest in hexadecimal, one a line. Empty lines and those
    /// that begin with `#` say nothing.
    ///
    /// # Errors
    /// If the file cannot be read, has another line, or no digest.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let text =
            fs::read_to_string(path).map_err(|source| TokenError::Io { path: path.to_owned(), source })?;
        let mut digests = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let digest = text.strip_prefix(PREFIX).and_then(digest_of_hex);
            digests.push(digest.ok_or_else(|| TokenError::Line { path: path.to_owned(), line })?);
        }
        if digests.is_empty() {
            return Err(TokenError::Empty { path: path.to_owned() });
        }
        Ok(Self { digests })
    }

    /// The one token, itself.
    pub fn of(token: &str) -> Self {
        Self { digests: vec![Hash::hash(token.as_bytes())] }
    }

    /// Is this one of them? It takes as long whichever it is, and whether it is one.
    fn has(&self, token: &[u8]) -> bool {
        let given = Hash::hash(token);
        let mut found = false;
        for digest in &self.digests {
            let differs =
                digest.iter().zip(&given).fold(0u8, |differs, (one, other)| differs | (one ^ other));
            found |= std::hint::black_box(differs) == 0;
        }
        found
    }
}

fn digest_of_hex(text: &str) -> Option<[u8; 32]> {
    let text = text.trim();
    if text.len() != 64 || !text.bytes().all(|letter| letter.is_ascii_hexdigit()) {
        return None;
    }
    let mut digest = [0; 32];
    for (place, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(digest)
}

/// Why a request is not let in; nothing if it is.
pub(super) fn refuse(
    tokens: Option<&Tokens>,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Result<(), (StatusCode, &'static str)> {
    match tokens {
        // The page itself says nothing of the cluster: it asks for the token.
        Some(_) if path == "/" => {}
        Some(tokens) => {
            let given = headers.get(AUTHORIZATION).and_then(|value| bearer(value.as_bytes()));
            match given {
                Some(token) if tokens.has(token) => {}
                Some(_) => {
                    return Err((StatusCode::UNAUTHORIZED, "this token is not one of the scheduler's"));
                }
                None => {
                    return Err((
                        StatusCode::UNAUTHORIZED,
                        "a token is needed: `Authorization: Bearer TOKEN`, or `--token-file` of the commands",
                    ));
                }
            }
        }
        None => {
            let host = headers.get(HOST).and_then(|host| host.to_str().ok());
            if !host.is_some_and(is_loopback) {
                return Err((
                    StatusCode::FORBIDDEN,
                    "this scheduler has no token and answers only to a name of this machine: 127.0.0.1, [::1] or localhost",
                ));
            }
        }
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if *method == Method::POST && !kind.eq_ignore_ascii_case("application/json") {
        return Err((
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must be JSON and said to be: `Content-Type: application/json`",
        ));
    }
    Ok(())
}

/// The token of `Bearer TOKEN`.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Is this host, with or without a port, a name that always means this machine?
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, port)) if port.is_empty() || port.starts_with(':') => name,
            _ => return false,
        },
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_are_known() {
        for host in
            ["localhost", "LOCALHOST:7070", "127.0.0.1", "127.0.0.1:1", "127.9.9.9:80", "[::1]", "[::1]:7070"]
        {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:7070",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]:7070",
            "[::1]x",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_token_is_known_by_its_digest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        // printf %s abc | sha256sum
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        fs::write(&path, format!("# of the admins\n\nsha256:{digest}\n")).unwrap();
        let tokens = Tokens::read(&path).unwrap();
        assert_eq!(tokens, Tokens::of("abc"));
        assert!(tokens.has(b"abc") && !tokens.has(b"abd") && !tokens.has(b""));
        for (text, says) in [
            ("abc\n", ":1: this is no digest"),
            ("\n# x\n", "no digest of a token"),
            ("sha256:ba78\n", ":1:"),
        ] {
            fs::write(&path, text).unwrap();
            let said = Tokens::read(&path).unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
    }
}
