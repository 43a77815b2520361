//! The scheduler's front, for people and programs: HTTP with JSON, metrics, and one page to look at.
//!
//! | request | is answered with |
//! |---|---|
//! | `POST /v1/jobs` | the number of the job that is taken in ([`Form`]) |
//! | `GET /v1/jobs` | all jobs that are active, and the last that were |
//! | `GET /v1/jobs/N` | a job, and what binds it |
//! | `DELETE /v1/jobs/N` | its cancellation |
//! | `GET /v1/next` | the round, and the next one where it is decided |
//! | `GET /v1/situation` | what a simulation needs to go on from here ([`Situated`]) |
//! | `GET /v1/servers` | all servers that have joined |
//! | `POST /v1/servers/NAME/drain`, `…/resume` | a server gets no new job, for a reason; or jobs again |
//! | `POST /v1/servers/NAME/remove` | a server that is gone for good leaves the cluster: its place is free for another |
//! | `GET /v1/health` | how the scheduler is; 503 while the disk refuses |
//! | `GET /v1/notes` | the newest notes |
//! | `GET /v1/events?after=N&most=M` | lines of the event log, one JSON document each; `?last=M`: the newest |
//! | `GET /metrics` | numbers, as Prometheus reads them |
//! | `GET /` | the page |
//! | `POST /v1/agents/report` | an agent's [`Report`](crate::protocol::Report): [`Heard`](crate::protocol::Heard) |
//! | `GET /v1/agents/NAME/orders?after=E.N&wait=S` | [`Orders`](crate::protocol::Orders) that are not the ones of this epoch and number, as soon as there are some; 204 after S seconds |
//!
//! A refused request is answered with `{"error": text}`: 400 if the request is at fault, 401 and 403 if it is not let in, 404 if
//! there is no such thing, 409 if an agent is not heeded, 503 if the scheduler cannot answer now.
//!
//! Without a token nothing but loopback is listened on, and only requests by a name of loopback are let in, so that no page
//! of another site reaches it through a name of its own.

mod agents;
mod form;
mod guard;
mod metrics;
mod routes;
mod tls;

use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use agents::Closing;

pub use form::{Form, JobForm};
pub use guard::{Role, TokenError, Tokens};
pub use tls::{Tls, TlsError};

use crate::core::SituationView;
use crate::driver::Client;

/// The most connections that are served at once; more are closed. An agent has two.
const CONNECTIONS_MAX: usize = 2048;

/// The longest time that a request's head may take.
const HEAD_LIMIT: Duration = Duration::from_secs(10);

/// The interval at which the front looks whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// The longest time that answers may take that are under way when the front stops.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// The most threads on which requests wait for the scheduler.
const WAITING_MAX: usize = 64;

/// The settings of the front.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The tokens of which a request needs one. Without tokens, every request from this machine is let in.
    pub tokens: Option<Tokens>,
    /// The certificate and key of https; without them the front speaks http.
    pub tls: Option<Tls>,
    /// The names of the scheduler's documents, for clients that simulate it.
    pub served: Served,
}

/// The documents by which the scheduler decides, named for clients that simulate it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// The policy: a name, or a path on the scheduler's machine.
    pub policy: String,
    /// The throughputs: a name, or a path on the scheduler's machine.
    pub throughputs: String,
    /// Whether all servers are this machine, so that a job's folder has to be here.
    #[serde(skip)]
    pub is_local: bool,
}

/// The answer of `/v1/situation`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Situated {
    /// The documents by which the scheduler decides.
    #[serde(flatten)]
    pub served: Served,
    /// The scheduler's state.
    #[serde(flatten)]
    pub situation: SituationView,
}

/// Why nothing can be served.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FrontError {
    /// Other machines could connect, and there is no token.
    #[error("{address} can be reached from other machines: give a token, or listen on 127.0.0.1")]
    NeedsToken {
        /// The address that would be listened on.
        address: SocketAddr,
    },
    /// The system does not let it serve.
    #[error("cannot serve: {0}")]
    Io(#[from] std::io::Error),
}

/// Answers requests until `stop` is raised. Jobs go on afterwards: only the front ends.
///
/// # Errors
/// If the listener can be reached from elsewhere and there is no token, or the system does not let it serve.
pub fn serve(
    client: Client,
    listener: TcpListener,
    options: Options,
    stop: &Arc<AtomicBool>,
) -> Result<(), FrontError> {
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() && options.tokens.is_none() {
        return Err(FrontError::NeedsToken { address });
    }
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(WAITING_MAX)
        .thread_name("front")
        .build()?;
    let served = runtime.block_on(accept(client, listener, options, stop));
    // Requests that still wait for the scheduler get no answer.
    runtime.shutdown_timeout(Duration::ZERO);
    served
}

async fn accept(
    client: Client,
    listener: TcpListener,
    options: Options,
    stop: &AtomicBool,
) -> Result<(), FrontError> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (close, closing) = watch::channel(false);
    let services = Services {
        router: routes::router((client, options.served), options.tokens, closing.clone()),
        tls: options.tls.map(|tls| (tls, routes::only_https())),
    };
    while !stop.load(Ordering::Relaxed) {
        let Ok(accepted) = timeout(LOOK, listener.accept()).await else { continue };
        let Ok((stream, _)) = accepted else {
            // There are no descriptors left, or the client is gone.
            tokio::time::sleep(LOOK).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            // There are too many at once: this client comes again.
            continue;
        };
        let (services, closing) = (services.clone(), closing.clone());
        drop(tokio::spawn(async move {
            services.connection(stream, closing).await;
            drop(place);
        }));
    }
    drop(listener);
    // Connections without a request are closed, agents that wait for orders answered, and the other answers waited for.
    close.send_replace(true);
    let n_places = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    let _ = timeout(LAST_ANSWERS, places.acquire_many(n_places)).await;
    Ok(())
}

/// The services for one connection.
#[derive(Clone, Debug)]
struct Services {
    router: Router,
    /// The certificate of https, and the answers for clients that speak http.
    tls: Option<(Tls, Router)>,
}

impl Services {
    async fn connection(self, stream: TcpStream, closing: Closing) {
        let Some((tls, only_https)) = self.tls else {
            return connection(stream, self.router, closing).await;
        };
        let mut first = [0];
        match timeout(HEAD_LIMIT, stream.peek(&mut first)).await {
            Ok(Ok(1)) if first[0] == tls::HANDSHAKE => {}
            Ok(Ok(1)) => return connection(stream, only_https, closing).await,
            _ => return,
        }
        // A client that does not trust the certificate breaks off, and reports it on its side.
        if let Ok(Ok(stream)) = timeout(HEAD_LIMIT, tls.acceptor().accept(stream)).await {
            connection(stream, self.router, closing).await;
        }
    }
}

/// Answers the requests of a connection.
async fn connection(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    router: Router,
    mut closing: Closing,
) {
    let service = TowerToHyperService::new(router);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // A client that breaks off gets no further answers.
        _ = connection.as_mut() => return,
        _ = closing.wait_for(|closing| *closing) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
