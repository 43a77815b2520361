//! Requests to a running scheduler: one request, one answer, and faults in words.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use ureq::http::Method;

use crate::Session;
use crate::exit::Failure;
use crate::file::{Named, at};
use apportion_live::network::{Access, AccessError, Lost, Reply, read_token};

/// The longest wait for an answer: longer than the scheduler takes to report that it has none.
const PATIENCE: Duration = Duration::from_secs(30);

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
    /// A file with the certificate of the authority that signed the scheduler's, in PEM; the public ones where not given
    #[arg(long, value_name = "FILE", env = "APPORTION_CA", hide_env_values = true, display_order = 802)]
    ca: Option<PathBuf>,
}

impl RemoteArguments {
    /// The files that are read.
    pub(super) fn files(&self) -> [Named<'_>; 2] {
        [at("--token-file", self.token_file.as_deref()), at("--ca", self.ca.as_deref())]
    }

    /// The way to the scheduler.
    ///
    /// # Errors
    /// If the address is none, or a file does not have the content that it ought to have.
    pub(super) fn access(&self) -> Result<Access, Failure> {
        let usage = |error: AccessError| Failure::usage(error.to_string(), None);
        let token = self.token_file.as_deref().map(read_token).transpose().map_err(usage)?;
        Access::new(&self.scheduler, token.as_deref(), self.ca.as_deref()).map_err(usage)
    }
}

/// A scheduler to which requests can be sent.
#[derive(Debug)]
pub(super) struct Remote {
    access: Access,
}

impl Remote {
    /// A scheduler at the address of the arguments.
    ///
    /// # Errors
    /// If the address is none, or a file does not have the content that it ought to have.
    pub(super) fn new(arguments: &RemoteArguments) -> Result<Self, Failure> {
        arguments.access().map(|access| Self { access })
    }

    /// The answer for a path.
    pub(super) fn get(&self, path: &str) -> Result<Value, Failure> {
        self.ask(Method::GET, path)
    }

    /// The answer to a question. If the scheduler's disk refuses, so that the answer may be out of date, that is noted.
    pub(super) fn get_noting(&self, path: &str, session: &Session) -> Result<Value, Failure> {
        let answer = self.get(path)?;
        let health = self.access.ask(Method::GET, "/v1/health", PATIENCE).ok();
        let health = health.and_then(|reply| serde_json::from_str::<Value>(&reply.text).ok());
        if let Some(disk) = health.as_ref().and_then(|health| health["disk"].as_str()) {
            session.note(format!(
                "warning: the scheduler's disk refuses, and nothing is taken or ordered until it does not: {disk}"
            ));
        }
        Ok(answer)
    }

    /// The lines of the event log after the one of this number, and the number of the last of them.
    pub(super) fn get_events(&self, after: i64) -> Result<(String, i64), Failure> {
        let path = format!("/v1/events?after={after}");
        let reply = self.access.ask(Method::GET, &path, PATIENCE).map_err(|lost| self.failure(lost))?;
        match reply.last.filter(|_| reply.is_schedulers) {
            Some(last) => Ok((reply.text, last)),
            // An answer that is no part of a log is an error, in JSON.
            None => self.answer(reply).and_then(|_| Err(self.not_a_scheduler(200))),
        }
    }

    pub(super) fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.ask(Method::DELETE, path)
    }

    fn ask(&self, method: Method, path: &str) -> Result<Value, Failure> {
        let reply = self.access.ask(method, path, PATIENCE).map_err(|lost| self.failure(lost))?;
        self.answer(reply)
    }

    pub(super) fn post(&self, path: &str, document: &impl Serialize) -> Result<Value, Failure> {
        self.try_post(path, document).map_err(|lost| self.failure(lost))?
    }

    /// Posts a document. If the answer is lost, the caller may post it again.
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
        self.access.post(path, &body, PATIENCE).map(|reply| self.answer(reply))
    }

    fn answer(&self, Reply { status, text, is_schedulers, .. }: Reply) -> Result<Value, Failure> {
        if !is_schedulers {
            return Err(self.not_a_scheduler(status));
        }
        let value: Option<Value> = serde_json::from_str(&text).ok();
        let said = value.as_ref().and_then(|value| value["error"].as_str()).map(str::to_owned);
        match (status, value, said) {
            (200..300, Some(value), _) => Ok(value),
            (401, _, Some(said)) => {
                Err(Failure::usage(said, Some("`--token-file FILE` names the file with the token".into())))
            }
            (503, _, Some(said)) => Err(Failure::Io {
                action: format!("ask the scheduler at {}", self.access.url()),
                source: io::Error::other(said),
            }),
            (400..500, _, Some(said)) => Err(Failure::usage(said, None)),
            _ => Err(self.not_a_scheduler(status)),
        }
    }

    fn not_a_scheduler(&self, status: u16) -> Failure {
        let url = self.access.url();
        let message = format!("what answers at {url} is no scheduler of this kind (status {status})");
        Failure::usage(message, Some("`--scheduler URL` names another".to_owned()))
    }

    /// The failure of a request without an answer.
    pub(super) fn failure(&self, lost: Lost) -> Failure {
        if lost.is_distrusted {
            let message = format!("what answers at {} is not spoken with: {lost}", self.access.url());
            return Failure::usage(message, None);
        }
        if lost.is_unheard {
            let message = format!("no scheduler answers at {}: {lost}", self.access.url());
            let help =
                "start one by `apportion serve`, or name another by `--scheduler URL` or APPORTION_SCHEDULER";
            return Failure::usage(message, Some(help.to_owned()));
        }
        let action = format!("hear the answer of the scheduler at {}", self.access.url());
        Failure::Io { action, source: lost.into_io() }
    }
}
