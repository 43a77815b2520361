//! The requests of agents: a report is posted, and orders are waited for.
//!
//! The two are plain HTTP with JSON and not gRPC: each document is the whole state of its sender, so that one exchange is all
//! there is, whatever was lost before it. A report is answered with the orders that follow from it. Orders that follow from
//! something else, such as the end of a round, come by the second request, which waits for them on a task and not on a
//! thread; only the newest for a server are kept.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use tokio::sync::watch;
use tokio::time::timeout;

use super::guard::Fence;
use super::routes::{Fault, PATIENCE, bad, document, json, read, unavailable, well};
use crate::driver::Client;
use crate::protocol::{Heard, Orders, Report, check_server};

/// The longest time for which orders are waited for, also where the request states none.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// A flag that becomes true when the front is to end.
pub(super) type Closing = watch::Receiver<bool>;

/// The state that requests of agents need.
#[derive(Clone, Debug)]
struct AgentRoutes {
    client: Client,
    closing: Closing,
}

/// The routes of agents.
pub(super) fn router<S: Clone + Send + Sync + 'static>(client: Client, closing: Closing) -> Router<S> {
    Router::new()
        .route("/v1/agents/report", post(report))
        .route("/v1/agents/{name}/orders", get(orders))
        .with_state(AgentRoutes { client, closing })
}

async fn report(
    State(routes): State<AgentRoutes>,
    Extension(fence): Extension<Fence>,
    body: Body,
) -> Result<Response, Fault> {
    let report: Report = document(&read(body).await?)?;
    check_server(&report.server, &report.worker_type, report.n_workers)
        .map_err(|fault| bad(fault.to_string()))?;
    fenced(&fence, &report.server)?;
    well(&routes.client)?;
    let (server, boot, taken) = (report.server.clone(), report.id.boot, report.taken);
    let heard = routes.client.report_and_hear(report).map_err(|error| unavailable(error.to_string()))?;
    let beat = match timeout(PATIENCE, heard).await {
        Ok(Ok(Ok(beat))) => beat,
        Ok(Ok(Err(refused))) => return Err(Fault(StatusCode::CONFLICT, refused)),
        Ok(Err(_)) => return Err(unavailable("the scheduler is ending, or its disk refuses".to_owned())),
        Err(_) => return Err(unavailable("the scheduler has not taken the report in time".to_owned())),
    };
    let newest = routes.client.newest_orders(&server).map(|orders| Arc::clone(&orders.borrow()));
    let is_new = |orders: &Arc<Orders>| orders.answers.boot == boot && number(orders) != taken;
    let orders = newest.filter(is_new).map(|orders| (*orders).clone());
    Ok(json(StatusCode::OK, &Heard { beat_s: beat.get(), orders }))
}

fn number(orders: &Orders) -> (u64, u64) {
    (orders.epoch, orders.number)
}

/// Refuses a request that concerns another server than those of its token.
fn fenced(fence: &Fence, server: &str) -> Result<(), Fault> {
    fence.check(server).map_err(|why| Fault(StatusCode::FORBIDDEN, why))
}

async fn orders(
    State(mut routes): State<AgentRoutes>,
    Extension(fence): Extension<Fence>,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Response, Fault> {
    fenced(&fence, &name)?;
    let (after, wait) = asked(uri.query().unwrap_or_default())?;
    let Some(mut newest) = routes.client.newest_orders(&name) else {
        let text = "there are no orders for this server: its agent reports first, and is heeded".to_owned();
        return Err(Fault(StatusCode::NOT_FOUND, text));
    };
    tokio::select! {
        orders = newest.wait_for(|orders| number(orders) != after) => match orders {
            Ok(orders) => Ok(json(StatusCode::OK, &**orders)),
            Err(_) => Err(unavailable("the scheduler is ending".to_owned())),
        },
        _ = routes.closing.wait_for(|closing| *closing) => Err(unavailable("the scheduler is ending".to_owned())),
        () = tokio::time::sleep(wait) => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// The orders that the agent has, by epoch and number, and the time for which it waits for others.
fn asked(query: &str) -> Result<((u64, u64), Duration), Fault> {
    let (mut after, mut wait) = ((0, 0), WAIT_MAX);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "after" => {
                let numbers = value
                    .split_once('.')
                    .and_then(|(epoch, number)| Some((epoch.parse().ok()?, number.parse().ok()?)));
                after = numbers.ok_or_else(|| bad(format!("`after` is `{value}`, expected EPOCH.NUMBER")))?;
            }
            "wait" => {
                let wrong = || bad(format!("`wait` is `{value}`, expected a number of seconds"));
                let seconds = value.parse().map_err(|_| wrong())?;
                wait = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?.min(WAIT_MAX);
            }
            _ => return Err(bad(format!("unknown parameter `{name}`, expected `after` or `wait`"))),
        }
    }
    Ok((after, wait))
}
