//! A link between an agent and a scheduler, by two requests at a time: one reports, one waits for orders.
//!
//! Each runs on a thread of its own and is sent again for ever, after a pause that grows up to a bound while it fails. Only the
//! newest report waits to be sent, and only the newest orders wait to be taken.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use serde_json::Value;
use ureq::http::Method;

use super::{Access, Lost, Reply, escaped};
use crate::agent::{Link, LinkError};
use crate::protocol::{Heard, Orders, Report};

/// The first pause after a failure; twice as long after each further one.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The beat while the scheduler has not stated one.
const BEAT: Duration = Duration::from_secs(1);

/// The time for which an answer to a report is waited for, in beats, and its bounds.
const ANSWER_BEATS: u32 = 10;
const ANSWER_MIN: Duration = Duration::from_secs(2);
const ANSWER_MAX: Duration = Duration::from_secs(15);

/// The time for which a request waits for orders, in beats, and its bounds.
const WAIT_BEATS: u32 = 5;
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(20);

/// The additional time that the answer may take.
const WAIT_MORE: Duration = Duration::from_secs(5);

/// News for an agent's operator. Each is told once, until other news follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The scheduler takes the server's reports.
    Heeded,
    /// The scheduler does not take the server's reports, for this reason.
    Refused(String),
    /// The scheduler is not reached, or takes nothing at present, for this reason.
    Unreached(String),
    /// The agent's disk is full, and nothing is started for this reason; none once there is room again.
    Disk(Option<String>),
}

/// A function that the link's threads call with each piece of news.
type Told = Box<dyn Fn(&News) + Send + Sync>;

/// A link to a scheduler over HTTP. When it is dropped, its threads end with their requests.
#[derive(Debug)]
pub struct HttpLink {
    shared: Arc<Shared>,
}

/// The state that the threads and the agent share.
struct Shared {
    access: Access,
    state: Mutex<State>,
    /// Signals that a part of the state has changed.
    changed: Condvar,
    /// Ends the agent if its token is refused before it was ever heeded.
    stop: Arc<AtomicBool>,
    told: Told,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("access", &self.access)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    /// The newest report that is not sent yet.
    report: Option<Report>,
    /// The newest orders that are not taken yet.
    orders: Option<Orders>,
    /// The epoch and number of the newest orders that have come.
    newest: (u64, u64),
    /// The interval at which the scheduler wants reports; none if it has not stated one.
    beat: Option<Duration>,
    /// The fixed interval that is used in place of it; none if there is none.
    set_beat: Option<Duration>,
    /// Whether the last report was heeded.
    is_heeded: bool,
    was_ever_heeded: bool,
    said: Option<News>,
    /// Why the token was refused at the start; none if it was not.
    denied: Option<String>,
    is_over: bool,
}

impl State {
    /// Takes orders that are newer than all before. Returns whether they are newer.
    fn offer(&mut self, orders: Orders) -> bool {
        let number = (orders.epoch, orders.number);
        let is_new = number > self.newest;
        if is_new {
            self.newest = number;
            self.orders = Some(orders);
        }
        is_new
    }

    fn beat(&self) -> Duration {
        self.set_beat.or(self.beat).unwrap_or(BEAT)
    }
}

impl HttpLink {
    /// A link for the agent of one server. `stop` is raised if the scheduler refuses the token before it has heeded any report;
    /// [`denied`](Self::denied) has the reason. `told` is called by the link's threads.
    ///
    /// # Errors
    /// If the system has no threads for it.
    pub fn start(
        access: Access,
        server: &str,
        stop: Arc<AtomicBool>,
        told: impl Fn(&News) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let (state, changed, told) = (Mutex::default(), Condvar::new(), Box::new(told));
        let shared = Arc::new(Shared { access, state, changed, stop, told });
        let link = Self { shared: Arc::clone(&shared) };
        let reporter = Arc::clone(&shared);
        Builder::new().name("reports".into()).spawn(move || reporter.report_all())?;
        let path = format!("/v1/agents/{}/orders", escaped(server));
        Builder::new().name("orders".into()).spawn(move || shared.wait_for_all(&path))?;
        Ok(link)
    }

    /// Sets a fixed interval between reports, whatever the scheduler wants. A server whose agent reports more seldom than the
    /// scheduler waits gets no jobs.
    pub fn set_beat(&mut self, beat: Duration) {
        self.shared.state().set_beat = Some(beat);
    }

    /// Why the scheduler refused the token at the start; none if it did not.
    pub fn denied(&self) -> Option<String> {
        self.shared.state().denied.clone()
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl Link for HttpLink {
    fn send(&mut self, report: &Report) -> Result<(), LinkError> {
        self.shared.state().report = Some(report.clone());
        self.shared.changed.notify_all();
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> Option<Orders> {
        self.shared.wait(wait, |state| state.orders.is_some()).orders.take()
    }

    fn beat(&self) -> Option<Duration> {
        let state = self.shared.state();
        state.set_beat.or(state.beat)
    }

    fn note_disk(&mut self, full: Option<&str>) {
        (self.shared.told)(&News::Disk(full.map(str::to_owned)));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the condition holds, at most for `wait`.
    fn wait(&self, wait: Duration, is_so: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let waited = self.changed.wait_timeout_while(self.state(), wait, |state| !is_so(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until the condition holds. False if the link is to end before.
    fn wait_until(&self, is_so: impl Fn(&State) -> bool) -> bool {
        let waited = self.changed.wait_while(self.state(), |state| !is_so(state) && !state.is_over);
        !waited.unwrap_or_else(PoisonError::into_inner).is_over
    }

    /// Pauses after this many failures in a row. The pause is shortened by a random part, so that agents do not come back all at
    /// once.
    fn pause(&self, n_failures: u32) {
        let whole = PAUSE.saturating_mul(1 << n_failures.min(10)).min(PAUSE_MAX);
        let drawn = getrandom::u32().unwrap_or_default() % 1024;
        let part = 0.5 + f64::from(drawn) / 2048.0;
        drop(self.wait(whole.mul_f64(part), |state| state.is_over));
    }

    /// Tells news that were not told last. A new reason for which the scheduler is not reached is not told.
    fn say(&self, news: &News) {
        let mut state = self.state();
        let is_known = match (&state.said, news) {
            (Some(News::Unreached(_)), News::Unreached(_)) => true,
            (said, news) => said.as_ref() == Some(news),
        };
        if !is_known {
            state.said = Some(news.clone());
            drop(state);
            (self.told)(news);
        }
    }

    /// Sends reports as they come.
    fn report_all(&self) {
        let mut n_failures = 0;
        while self.wait_until(|state| state.report.is_some()) {
            let (report, beat) = {
                let mut state = self.state();
                (state.report.take(), state.beat())
            };
            let Some(report) = report else { continue };
            let is_heeded = self.report(&report, beat);
            let mut state = self.state();
            state.is_heeded = is_heeded;
            if is_heeded {
                n_failures = 0;
                continue;
            }
            // A report may be sent twice without harm: it is sent again, unless a newer one is there.
            state.report.get_or_insert(report);
            drop(state);
            self.pause(n_failures);
            n_failures += 1;
        }
    }

    /// Sends a report. Returns whether it is heeded.
    fn report(&self, report: &Report, beat: Duration) -> bool {
        let Ok(body) = serde_json::to_vec(report) else { return false };
        let limit = (beat * ANSWER_BEATS).clamp(ANSWER_MIN, ANSWER_MAX);
        let news = match self.access.post("/v1/agents/report", &body, limit) {
            Ok(Reply { status: 200, text, .. }) => match serde_json::from_str(&text) {
                Ok(heard) => self.take(heard),
                Err(_) => News::Unreached(self.not_a_scheduler(200)),
            },
            Ok(reply) => self.refused(&reply),
            Err(lost) => News::Unreached(self.unreached(&lost)),
        };
        let is_heeded = news == News::Heeded;
        self.say(&news);
        is_heeded
    }

    fn take(&self, heard: Heard) -> News {
        let mut state = self.state();
        state.beat = Duration::try_from_secs_f64(heard.beat_s).ok().map(|beat| beat.max(PAUSE / 2));
        state.was_ever_heeded = true;
        state.is_heeded = true;
        if let Some(orders) = heard.orders {
            state.offer(orders);
        }
        drop(state);
        self.changed.notify_all();
        News::Heeded
    }

    fn refused(&self, reply: &Reply) -> News {
        let value: Option<Value> = serde_json::from_str(&reply.text).ok();
        let said = value.as_ref().and_then(|value| value["error"].as_str());
        let Some(said) = said else { return News::Unreached(self.not_a_scheduler(reply.status)) };
        if reply.status >= 500 {
            return News::Unreached(format!("the scheduler at {} takes nothing: {said}", self.access.url()));
        }
        if matches!(reply.status, 401 | 403) {
            let mut state = self.state();
            if !state.was_ever_heeded {
                let news = News::Refused(said.to_owned());
                // The agent's end reports it.
                state.said = Some(news.clone());
                state.denied = Some(said.to_owned());
                drop(state);
                self.stop.store(true, Ordering::Relaxed);
                return news;
            }
        }
        News::Refused(said.to_owned())
    }

    fn unreached(&self, lost: &Lost) -> String {
        format!("no scheduler answers at {}: {lost}", self.access.url())
    }

    fn not_a_scheduler(&self, status: u16) -> String {
        let url = self.access.url();
        format!("what answers at {url} is no scheduler of this kind (status {status})")
    }

    /// Waits for orders, as long as reports are heeded.
    fn wait_for_all(&self, path: &str) {
        let mut n_failures = 0;
        while self.wait_until(|state| state.is_heeded) {
            let ((epoch, number), beat) = {
                let state = self.state();
                (state.newest, state.beat())
            };
            let wait = (beat * WAIT_BEATS).clamp(WAIT_MIN, WAIT_MAX);
            let path = format!("{path}?after={epoch}.{number}&wait={}", wait.as_secs_f64());
            let has_come = match self.access.ask(Method::GET, &path, wait + WAIT_MORE) {
                Ok(Reply { status: 200, text, .. }) => {
                    serde_json::from_str(&text).is_ok_and(|orders| self.state().offer(orders))
                }
                Ok(Reply { status: 204, .. }) => true,
                // The fault is told with the report that follows.
                Ok(_) | Err(_) => false,
            };
            if has_come {
                n_failures = 0;
                self.changed.notify_all();
            } else {
                self.pause(n_failures);
                n_failures += 1;
            }
        }
    }
}
