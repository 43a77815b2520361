//! The admission of requests: those with a token or, where there are no tokens, those from this machine.

use std::fmt;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, Method, StatusCode};
use hmac_sha256::Hash;
use thiserror::Error;

/// The prefix of a digest in a file of tokens.
const PREFIX: &str = "sha256:";

/// The word between the digest of a server's token and the names of the servers that may have it.
const AGENT: &str = "agent";

/// The prefix of the paths that are for agents.
const OF_AGENTS: &str = "/v1/agents/";

/// The tokens that are let in. Only their digests are kept.
#[derive(Clone, PartialEq, Eq)]
pub struct Tokens {
    known: Vec<Known>,
}

/// A token as it is kept here: its digest, its role and its servers.
#[derive(Clone, PartialEq, Eq)]
struct Known {
    digest: [u8; 32],
    role: Role,
    fence: Fence,
}

/// The servers that a token speaks for; none for all servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fence(Option<Arc<[String]>>);

impl Fence {
    /// A fence around these servers; around all if none is named.
    fn around(servers: Vec<String>) -> Self {
        Self(Some(servers).filter(|servers| !servers.is_empty()).map(Arc::from))
    }

    /// A fence around the servers of both.
    fn and(&self, other: &Self) -> Self {
        let both = self.0.as_ref().zip(other.0.as_ref());
        Self(both.map(|(one, other)| one.iter().chain(other.iter()).cloned().collect()))
    }

    /// Refuses a server that the token does not speak for.
    ///
    /// # Errors
    /// The servers that the token is for, in words.
    pub(super) fn check(&self, server: &str) -> Result<(), String> {
        match &self.0 {
            Some(servers) if !servers.iter().any(|other| other == server) => Err(format!(
                "this token is not for the server `{server}`: the scheduler's token file has it for {}",
                servers.join(", ")
            )),
            _ => Ok(()),
        }
    }
}

/// The use of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// People and their programs: all requests but those of agents.
    Person,
    /// Agents of servers: `/v1/agents/…`, and nothing else.
    Agent,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.known.len())
    }
}

/// Why tokens cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// A line of the file has no digest.
    #[error(
        "{path}:{line}: this is no digest of a token, expected `sha256:` and 64 hexadecimal digits, and behind them `agent` \
         if it is for agents, with the names of their servers"
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
    },
    /// A token is in the file in two roles.
    #[error(
        "{path}:{line}: this token is in the file already, in another role: draw one token for each role"
    )]
    Roles {
        /// The file.
        path: PathBuf,
        /// The number of the second line, from 1.
        line: usize,
    },
    /// The file has no tokens.
    #[error("{path}: this file has no digest of a token")]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl Tokens {
    /// Reads the digests of tokens from a file: `sha256:` and the digest in hexadecimal, one a line, followed by `agent` if the
    /// token is an agent's, and the names of the servers that may have it; all may if none is named. Empty lines and lines that
    /// begin with `#` are skipped.
    ///
    /// # Errors
    /// If the file cannot be read, has a line of another form, no digest, or a digest in two roles.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let text =
            fs::read_to_string(path).map_err(|source| TokenError::Io { path: path.to_owned(), source })?;
        let mut known: Vec<Known> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let token = read_line(text).ok_or_else(|| TokenError::Line { path: path.to_owned(), line })?;
            match known.iter_mut().find(|other| other.digest == token.digest) {
                Some(other) if other.role != token.role => {
                    return Err(TokenError::Roles { path: path.to_owned(), line });
                }
                Some(other) => other.fence = other.fence.and(&token.fence),
                None => known.push(token),
            }
        }
        if known.is_empty() {
            return Err(TokenError::Empty { path: path.to_owned() });
        }
        Ok(Self { known })
    }

    /// One token, given by its text, for people.
    pub fn of(token: &str) -> Self {
        Self { known: Vec::new() }.and(token, Role::Person)
    }

    /// These tokens and one more, given by its text, in this role.
    #[must_use]
    pub fn and(mut self, token: &str, role: Role) -> Self {
        self.known.push(Known { digest: Hash::hash(token.as_bytes()), role, fence: Fence::default() });
        self
    }

    /// These tokens and one more, given by its text, for the agents of these servers.
    #[must_use]
    pub fn and_of(mut self, token: &str, servers: &[&str]) -> Self {
        let fence = Fence::around(servers.iter().map(|name| (*name).to_owned()).collect());
        self.known.push(Known { digest: Hash::hash(token.as_bytes()), role: Role::Agent, fence });
        self
    }

    /// The entry of a token; none if it is not one of them. The time that this takes does not depend on the token.
    fn find(&self, token: &[u8]) -> Option<&Known> {
        let given = Hash::hash(token);
        let mut found = None;
        for known in &self.known {
            let differs =
                known.digest.iter().zip(&given).fold(0u8, |differs, (one, other)| differs | (one ^ other));
            if std::hint::black_box(differs) == 0 {
                found = Some(known);
            }
        }
        found
    }
}

/// The token of a line in the file.
fn read_line(text: &str) -> Option<Known> {
    let mut words = text.strip_prefix(PREFIX)?.split_whitespace();
    let digest = digest_of_hex(words.next()?)?;
    let role = match words.next() {
        None => Role::Person,
        Some(AGENT) => Role::Agent,
        Some(_) => return None,
    };
    Some(Known { digest, role, fence: Fence::around(words.map(str::to_owned).collect()) })
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

/// The servers that a request may speak for, if it is let in; else why it is not.
pub(super) fn refuse(
    tokens: Option<&Tokens>,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Result<Fence, (StatusCode, &'static str)> {
    let mut fence = Fence::default();
    match tokens {
        // The page itself says nothing about the cluster: it asks for the token.
        Some(_) if path == "/" => {}
        Some(tokens) => fence = check_token(tokens, path, headers)?,
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
    Ok(fence)
}

/// The servers that a request's token speaks for, if the token has the role that the path needs.
fn check_token(
    tokens: &Tokens,
    path: &str,
    headers: &HeaderMap,
) -> Result<Fence, (StatusCode, &'static str)> {
    let needed = if path.starts_with(OF_AGENTS) { Role::Agent } else { Role::Person };
    let Some(token) = headers.get(AUTHORIZATION).and_then(|value| bearer(value.as_bytes())) else {
        return Err((
            StatusCode::UNAUTHORIZED,
            "a token is needed: `Authorization: Bearer TOKEN`, or `--token-file` of the commands",
        ));
    };
    let Some(known) = tokens.find(token) else {
        return Err((StatusCode::UNAUTHORIZED, "this token is not one of the scheduler's"));
    };
    match (known.role, needed) {
        (Role::Person, Role::Agent) => Err((
            StatusCode::FORBIDDEN,
            "this token is for people, and an agent needs one of its own: a line `sha256:DIGEST agent` in the scheduler's \
             token file",
        )),
        (Role::Agent, Role::Person) => Err((
            StatusCode::FORBIDDEN,
            "this token is for agents, which may only report and be ordered: use the token of a line without `agent` in the \
             scheduler's token file",
        )),
        _ => Ok(known.fence.clone()),
    }
}

/// The token in `Bearer TOKEN`.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Whether this host, with or without a port, is a name that always means this machine.
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
        let role = |tokens: &Tokens, token: &[u8]| tokens.find(token).map(|known| known.role);
        assert_eq!(
            (role(&tokens, b"abc"), role(&tokens, b"abd"), role(&tokens, b"")),
            (Some(Role::Person), None, None)
        );
        fs::write(&path, format!("sha256:{digest}  agent \n")).unwrap();
        assert_eq!(role(&Tokens::read(&path).unwrap(), b"abc"), Some(Role::Agent));
        for (text, says) in [
            ("abc\n", ":1: this is no digest"),
            ("\n# x\n", "no digest of a token"),
            ("sha256:ba78\n", ":1:"),
            ("sha256:DIGEST agents\n", ":1: this is no digest"),
            ("sha256:DIGEST agents node-1\n", ":1: this is no digest"),
            (
                "sha256:DIGEST agent\nsha256:DIGEST\n",
                ":2: this token is in the file already, in another role",
            ),
        ] {
            fs::write(&path, text.replace("DIGEST", digest)).unwrap();
            let said = Tokens::read(&path).unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn a_token_speaks_for_the_servers_that_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let lets = |text: &str| {
            fs::write(&path, text.replace("DIGEST", &format!("sha256:{digest}"))).unwrap();
            let tokens = Tokens::read(&path).unwrap();
            ["a", "b", "c"].map(|server| tokens.find(b"abc").unwrap().fence.check(server).is_ok())
        };
        assert_eq!(lets("DIGEST agent\n"), [true; 3]);
        assert_eq!(lets("DIGEST agent b\n"), [false, true, false]);
        assert_eq!(lets("DIGEST agent a\nDIGEST agent c\n"), [true, false, true]);
        assert_eq!(lets("DIGEST agent a\nDIGEST agent\n"), [true; 3], "a line without names is for all");
    }
}
