//! Talks to a scheduler that runs: one request, one answer, and what went wrong in words.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use ureq::http::Response;
use ureq::{Agent, Body};

use crate::exit::Failure;

/// How long an answer is waited for: longer than the scheduler takes to say that it has none.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most bytes of an answer.
const ANSWER_MAX: u64 = 1 << 30;

/// The address of the scheduler, and the token that lets the command in.
#[derive(Args, Clone, Debug)]
pub(super) struct RemoteArguments {
    /// Where the scheduler is
    #[arg(
        long,
        value_name = "URL",
        env = "APPORTION_SCHEDULER",
        hide_env_values = true,
        default_value = "http://127.0.0.1:7070",
        display_order = 800
    )]
    scheduler: String,
    /// A file that holds the scheduler's token, where it asks for one
    #[arg(long, value_name = "FILE", display_order = 801)]
    token_file: Option<PathBuf>,
}

/// A scheduler that can be asked.
#[derive(Debug)]
pub(super) struct Remote {
    agent: Agent,
    url: String,
    token: Option<String>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Lost {
    /// No connection was made, so the scheduler has not taken the request.
    pub(super) is_unheard: bool,
    error: ureq::Error,
}

impl Remote {
    /// # Errors
    /// If the address is none that can be asked, or the token cannot be read.
    pub(super) fn new(arguments: &RemoteArguments) -> Result<Self, Failure> {
        let url = arguments.scheduler.trim_end_matches('/').to_owned();
        if !url.starts_with("http://") {
            let help = "write http://HOST:PORT; for https put a proxy before it, or go through an SSH tunnel";
            let message = format!("`{url}` is no address of a scheduler: only http is spoken");
            return Err(Failure::usage(message, Some(help.to_owned())));
        }
        let token = match &arguments.token_file {
            None => None,
            Some(path) => {
                let text = fs::read_to_string(path).map_err(|error| {
                    Failure::usage(format!("cannot read {}: {error}", path.display()), None)
                })?;
                let token = text.trim().to_owned();
                if token.is_empty() || token.contains(|letter: char| !letter.is_ascii_graphic()) {
                    let message = format!("{} holds no token: expected one word, in ASCII", path.display());
                    return Err(Failure::usage(message, None));
                }
                if token.starts_with("sha256:") {
                    let message =
                        format!("{} holds the digest of a token, which only `serve` reads", path.display());
                    return Err(Failure::usage(
                        message,
                        Some("name the file with the token itself".to_owned()),
                    ));
                }
                Some(token)
            }
        };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(PATIENCE))
            .max_redirects(0)
            .proxy(None)
            .build();
        Ok(Self { agent: config.into(), url, token })
    }

    /// What a path is answered with.
    pub(super) fn get(&self, path: &str) -> Result<Value, Failure> {
        let request = self.agent.get(self.place(path));
        let request = match self.bearer() {
            Some(bearer) => request.header("authorization", bearer),
            None => request,
        };
        self.answer(request.call()).map_err(|lost| self.failure(lost))?
    }

    pub(super) fn delete(&self, path: &str) -> Result<Value, Failure> {
        let request = self.agent.delete(self.place(path));
        let request = match self.bearer() {
            Some(bearer) => request.header("authorization", bearer),
            None => request,
        };
        self.answer(request.call()).map_err(|lost| self.failure(lost))?
    }

    pub(super) fn post(&self, path: &str, document: &impl Serialize) -> Result<Value, Failure> {
        self.try_post(path, document).map_err(|lost| self.failure(lost))?
    }

    /// Posts a document. Where the answer is lost, the caller may post it again.
    pub(super) fn try_post(
        &self,
        path: &str,
        document: &impl Serialize,
    ) -> Result<Result<Value, Failure>, Lost> {
        let body = match serde_json::to_vec(document) {
            Ok(body) => body,
            Err(error) => {
                return Ok(Err(Failure::Bug { message: format!("a question is not JSON: {error}") }));
            }
        };
        let request = self.agent.post(self.place(path)).content_type("application/json");
        let request = match self.bearer() {
            Some(bearer) => request.header("authorization", bearer),
            None => request,
        };
        self.answer(request.send(&body[..]))
    }

    fn place(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    fn bearer(&self) -> Option<String> {
        self.token.as_ref().map(|token| format!("Bearer {token}"))
    }

    fn answer(&self, answer: Result<Response<Body>, ureq::Error>) -> Result<Result<Value, Failure>, Lost> {
        let mut answer = answer.map_err(lost)?;
        let status = answer.status().as_u16();
        let text = answer.body_mut().with_config().limit(ANSWER_MAX).read_to_string().map_err(lost)?;
        let value: Option<Value> = serde_json::from_str(&text).ok();
        let said = value.as_ref().and_then(|value| value["error"].as_str()).map(str::to_owned);
        Ok(match (status, value, said) {
            (200..300, Some(value), _) => Ok(value),
            (401, _, Some(said)) => {
                Err(Failure::usage(said, Some("`--token-file FILE` names the file with the token".into())))
            }
            (503, _, Some(said)) => Err(Failure::Io {
                action: format!("ask the scheduler at {}", self.url),
                source: io::Error::other(said),
            }),
            (400..500, _, Some(said)) => Err(Failure::usage(said, None)),
            _ => Err(self.not_a_scheduler(status)),
        })
    }

    fn not_a_scheduler(&self, status: u16) -> Failure {
        let message = format!("what answers at {} is no scheduler of this kind (status {status})", self.url);
        Failure::usage(message, Some("`--scheduler URL` names another".to_owned()))
    }

    /// What is said when there is no answer.
    pub(super) fn failure(&self, lost: Lost) -> Failure {
        if lost.is_unheard {
            let message = format!("no scheduler answers at {}: {}", self.url, lost.error);
            let help =
                "start one by `apportion serve`, or name another by `--scheduler URL` or APPORTION_SCHEDULER";
            return Failure::usage(message, Some(help.to_owned()));
        }
        let action = format!("hear the answer of the scheduler at {}", self.url);
        Failure::Io { action, source: lost.error.into_io() }
    }
}

fn lost(error: ureq::Error) -> Lost {
    let is_unheard = match &error {
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed | ureq::Error::BadUri(_) => true,
        ureq::Error::Io(error) => error.kind() == io::ErrorKind::ConnectionRefused,
        ureq::Error::Timeout(timeout) => matches!(timeout, ureq::Timeout::Connect | ureq::Timeout::Resolve),
        _ => false,
    };
    Lost { is_unheard, error }
}

/// A part of a path, so that no name of a server or a job leads elsewhere.
pub(super) fn escaped(part: &str) -> String {
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
}
