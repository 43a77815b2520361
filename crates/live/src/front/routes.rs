//! The routes over HTTP, and their answers.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::agents::{self, Closing};
use super::form::Form;
use super::guard::{self, Tokens};
use super::{Served, Situated, metrics};
use crate::core::{Answer, Refusal, Request as Asked};
use crate::driver::{Client, Unanswered};
use crate::protocol::{self, JobNumber};
use crate::store::Lines;

/// The most bytes of a body.
const BODY_MAX: usize = 1 << 20;

/// The longest time that a body may take.
const BODY_LIMIT: Duration = Duration::from_secs(10);

/// The longest wait for the scheduler: longer than a decision takes.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// The most lines of the event log in one answer.
const EVENTS_MAX: u32 = 5_000;

const LAST_EVENT: HeaderName = HeaderName::from_static(protocol::LAST_EVENT);

const VERSION: (HeaderName, HeaderValue) =
    (HeaderName::from_static(protocol::VERSION), HeaderValue::from_static(env!("CARGO_PKG_VERSION")));

/// The page, which loads nothing from elsewhere and may not be framed.
const PAGE: &str = include_str!("page.html");
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                           connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Why a request is not granted, for its sender.
pub(super) struct Fault(pub(super) StatusCode, pub(super) String);

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let mut response = json(self.0, &json!({"error": self.1}));
        if self.0 == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.0 == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => (status, [(CONTENT_TYPE, "application/json")], text + "\n").into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// All routes.
pub(super) fn router((client, served): (Client, Served), tokens: Option<Tokens>, closing: Closing) -> Router {
    let tokens = Arc::new(tokens);
    let is_local = served.is_local;
    Router::new()
        .route("/", get(page))
        .route("/metrics", get(all_metrics))
        .route("/v1/jobs", get(jobs).post(move |State(client), body| submit(client, body, is_local)))
        .route("/v1/jobs/{number}", get(why).delete(cancel))
        .route("/v1/next", get(next))
        .route("/v1/situation", get(move |State(client)| situation(client, served.clone())))
        .route("/v1/servers", get(servers))
        .route("/v1/servers/{name}/drain", post(drain))
        .route("/v1/servers/{name}/resume", post(resume))
        .route("/v1/servers/{name}/remove", post(remove))
        .route("/v1/health", get(health))
        .route("/v1/notes", get(notes))
        .route("/v1/events", get(events))
        .merge(agents::router(client.clone(), closing))
        .fallback(async |uri: Uri| {
            Fault(StatusCode::NOT_FOUND, format!("there is nothing at {}; see docs/live.md", uri.path()))
        })
        .method_not_allowed_fallback(async |request: Request| {
            let text = format!("{} cannot be asked by {}", request.uri().path(), request.method());
            Fault(StatusCode::METHOD_NOT_ALLOWED, text)
        })
        .layer(middleware::from_fn(move |request: Request, next: Next| {
            let tokens = Arc::clone(&tokens);
            async move { guarded(request, next, tokens.as_ref().as_ref()).await }
        }))
        .with_state(client)
}

/// The answer to clients that speak http where https is spoken.
pub(super) fn only_https() -> Router {
    let text = "this scheduler speaks https: write https:// in place of http://";
    Router::new().fallback(async move || ([VERSION], Fault(StatusCode::BAD_REQUEST, text.to_owned())))
}

/// Lets a request in, or answers why not; answers are marked as not to be stored.
async fn guarded(mut request: Request, next: Next, tokens: Option<&Tokens>) -> Response {
    let let_in = guard::refuse(tokens, request.method(), request.uri().path(), request.headers());
    let mut response = match let_in {
        Ok(fence) => {
            request.extensions_mut().insert(fence);
            next.run(request).await
        }
        Err((status, text)) => Fault(status, text.to_owned()).into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    // By this header clients tell schedulers from other programs.
    headers.insert(VERSION.0, VERSION.1);
    response
}

/// Sends a request to the scheduler, on a thread that may wait.
async fn ask(client: Client, request: Asked) -> Result<Answer, Fault> {
    if !request.is_question() {
        well(&client)?;
    }
    let asked = tokio::task::spawn_blocking(move || client.ask_within(request, PATIENCE)).await;
    match asked {
        Ok(Ok(Ok(answer))) => Ok(answer),
        Ok(Ok(Err(refusal))) => Err(Fault(
            match refusal {
                Refusal::Invalid { .. } => StatusCode::BAD_REQUEST,
                Refusal::Unknown { .. } => StatusCode::NOT_FOUND,
            },
            refusal.to_string(),
        )),
        Ok(Err(why)) => Err(unanswered(why)),
        Err(_) => Err(unavailable("the request broke off".to_owned())),
    }
}

/// Refuses a request that would change something while the disk refuses: it gets 503 instead of a wait.
pub(super) fn well(client: &Client) -> Result<(), Fault> {
    match client.health().disk {
        None => Ok(()),
        Some(disk) => {
            Err(unavailable(format!("the disk refuses, and nothing is taken until it does not: {disk}")))
        }
    }
}

pub(super) fn unavailable(text: String) -> Fault {
    Fault(StatusCode::SERVICE_UNAVAILABLE, text)
}

fn unanswered(why: Unanswered) -> Fault {
    unavailable(match why {
        Unanswered::Closed(_) => format!("{why}; jobs go on"),
        Unanswered::Late => {
            format!("{why}: what was asked may be done all the same; ask again, with the same key")
        }
    })
}

async fn answered(client: Client, request: Asked) -> Result<Response, Fault> {
    ask(client, request).await.map(|answer| json(StatusCode::OK, &answer))
}

async fn jobs(State(client): State<Client>) -> Result<Response, Fault> {
    answered(client, Asked::Jobs).await
}

async fn submit(client: Client, body: Body, is_local: bool) -> Result<Response, Fault> {
    let form: Form = document(&read(body).await?)?;
    if let Some(directory) =
        form.program.directory.as_ref().filter(|path| !std::path::Path::new(path).is_absolute())
    {
        let text = format!(
            "the program's folder is `{directory}`, expected a path from the root, as it is on the servers"
        );
        return Err(bad(text));
    }
    if let Some(directory) =
        form.program.directory.as_ref().filter(|path| is_local && !std::path::Path::new(path).is_dir())
    {
        return Err(bad(format!(
            "the program's folder is `{directory}`, which is no folder of this machine"
        )));
    }
    let answer = ask(client, Asked::Submit(Box::new(form.into()))).await?;
    Ok(json(StatusCode::CREATED, &answer))
}

async fn why(State(client): State<Client>, Path(number): Path<String>) -> Result<Response, Fault> {
    answered(client, Asked::Why(job_number(&number)?)).await
}

async fn cancel(State(client): State<Client>, Path(number): Path<String>) -> Result<Response, Fault> {
    answered(client, Asked::Cancel(job_number(&number)?)).await
}

async fn next(State(client): State<Client>) -> Result<Response, Fault> {
    answered(client, Asked::Next).await
}

async fn situation(client: Client, served: Served) -> Result<Response, Fault> {
    match ask(client, Asked::Situation).await? {
        Answer::Situation(situation) => Ok(json(StatusCode::OK, &Situated { served, situation: *situation })),
        _ => Err(unavailable("the scheduler answered something else".to_owned())),
    }
}

async fn servers(State(client): State<Client>) -> Result<Response, Fault> {
    answered(client, Asked::Servers).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DrainForm {
    #[serde(default)]
    reason: Option<String>,
}

async fn drain(
    State(client): State<Client>,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, Fault> {
    let body = read(body).await?;
    let form = if body.is_empty() { DrainForm { reason: None } } else { document(&body)? };
    let reason = form.reason.filter(|reason| !reason.trim().is_empty());
    let reason = reason.unwrap_or_else(|| "its operator asked for it".to_owned());
    answered(client, Asked::Drain(name, reason)).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

async fn resume(
    State(client): State<Client>,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, Fault> {
    let body = read(body).await?;
    if !body.is_empty() {
        let Nothing {} = document(&body)?;
    }
    answered(client, Asked::Resume(name)).await
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RemoveForm {
    #[serde(default)]
    is_off: bool,
}

async fn remove(
    State(client): State<Client>,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, Fault> {
    let body = read(body).await?;
    let form = if body.is_empty() { RemoveForm::default() } else { document(&body)? };
    answered(client, Asked::Remove(name, form.is_off)).await
}

async fn health(State(client): State<Client>) -> Response {
    let health = client.health();
    let status = if health.disk.is_some() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    json(status, &health)
}

async fn notes(State(client): State<Client>) -> Response {
    let notes: Vec<_> = client
        .notes()
        .into_iter()
        .map(|(at, note)| {
            json!({"at_s": at.get(), "text": note.text, "job": note.job, "server": note.server,
                   "is_warning": note.is_warning})
        })
        .collect();
    json(StatusCode::OK, &notes)
}

async fn events(State(client): State<Client>, uri: Uri) -> Result<Response, Fault> {
    let (mut after, mut most, mut newest) = (0i64, EVENTS_MAX, None);
    for pair in uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let wrong = || bad(format!("`{name}` is `{value}`, expected a number"));
        match name {
            "after" => after = value.parse().map_err(|_| wrong())?,
            "most" => most = value.parse().map(|most: u32| most.min(EVENTS_MAX)).map_err(|_| wrong())?,
            "last" => newest = Some(value.parse().map(|n: u32| n.min(EVENTS_MAX)).map_err(|_| wrong())?),
            _ => {
                return Err(bad(format!(
                    "unknown parameter `{name}`, expected `after` and `most`, or `last`"
                )));
            }
        }
    }
    let which = newest.map_or(Lines::After(after, most), Lines::Last);
    let read = tokio::task::spawn_blocking(move || client.events(which, PATIENCE)).await;
    let lines = match read {
        Ok(Ok(Ok(lines))) => lines,
        Ok(Ok(Err(text))) => return Err(unavailable(text)),
        Ok(Err(why)) => return Err(unanswered(why)),
        Err(_) => return Err(unavailable("the request broke off".to_owned())),
    };
    let last = lines.last().map_or(after, |(number, _)| *number);
    let mut text = String::new();
    for (_, line) in lines {
        text.push_str(&line);
        text.push('\n');
    }
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson")),
        (LAST_EVENT, HeaderValue::from(last)),
    ];
    Ok((headers, text).into_response())
}

async fn all_metrics(State(client): State<Client>) -> Response {
    let health = client.health();
    // Metrics that the scheduler cannot give now are left out: the others show why.
    let jobs = match ask(client.clone(), Asked::Jobs).await {
        Ok(Answer::Jobs(jobs)) => Some(jobs),
        _ => None,
    };
    let servers = match ask(client, Asked::Servers).await {
        Ok(Answer::Servers(servers)) => Some(servers),
        _ => None,
    };
    let text = metrics::text(&health, jobs.as_deref(), servers.as_deref());
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

async fn page() -> Response {
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, PAGE_POLICY)];
    (headers, PAGE).into_response()
}

pub(super) fn bad(text: String) -> Fault {
    Fault(StatusCode::BAD_REQUEST, text)
}

fn job_number(text: &str) -> Result<JobNumber, Fault> {
    text.parse().map(JobNumber).map_err(|_| bad(format!("`{text}` is no job's number")))
}

/// A request's body, unless it is vast or slow.
pub(super) async fn read(body: Body) -> Result<Bytes, Fault> {
    match tokio::time::timeout(BODY_LIMIT, to_bytes(body, BODY_MAX)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(Fault(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body broke off, or has more than {BODY_MAX} bytes"),
        )),
        Err(_) => Err(Fault(
            StatusCode::REQUEST_TIMEOUT,
            format!("the body did not come within {} s", BODY_LIMIT.as_secs()),
        )),
    }
}

pub(super) fn document<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    // A list would be read as the values of an object, in order.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(bad("the body is not as expected: expected an object, in braces".to_owned()));
    }
    serde_json::from_slice(body).map_err(|error| bad(format!("the body is not as expected: {error}")))
}
