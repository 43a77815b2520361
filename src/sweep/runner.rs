//! Runs points on all cores and hands over each outcome as it comes.
//!
//! Workers take points in grid order, one at a time; outcomes arrive in the order in which runs end, and are
//! written by the calling thread alone, so a store needs no lock of its own.

use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::solver::timing::Stopwatch;
use crate::sweep::grid::Point;
use crate::sweep::outcome::{Outcome, Status};
use crate::sweep::store::StoreError;

/// What may be told to people while runs go on.
pub trait Progress: Sync {
    /// A run starts.
    fn started(&self, point: &Point) {
        let _ = point;
    }
    /// A run ended, and its outcome is kept.
    fn finished(&self, point: &Point, outcome: &Outcome) {
        let _ = (point, outcome);
    }
}

/// Tells nobody.
impl Progress for () {}

/// What became of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Runs that ended in each way: [`Status::ALL`].
    pub by_status: [usize; 4],
    /// Stopped before the end; what had ended is kept.
    pub interrupted: bool,
}

impl Summary {
    /// Runs that ended.
    pub fn n_ended(&self) -> usize {
        self.by_status.iter().sum()
    }

    /// Runs that ended this way.
    pub fn of(&self, status: Status) -> usize {
        self.by_status[status as usize]
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pieces: Vec<String> = Status::ALL
            .into_iter()
            .filter(|status| self.of(*status) > 0)
            .map(|status| format!("{} {status}", self.of(status)))
            .collect();
        f.write_str(if pieces.is_empty() { "nothing run".to_owned() } else { pieces.join(", ") }.as_str())
    }
}

/// How points are run.
#[derive(Clone, Copy)]
pub struct Runner<'a> {
    /// Set by someone else to stop.
    pub interrupt: &'a AtomicBool,
    /// Runs at once; as many as there are cores if not given.
    pub n_threads: Option<NonZeroUsize>,
    /// Told of each run.
    pub progress: &'a dyn Progress,
}

impl fmt::Debug for Runner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("n_threads", &self.n_threads).finish_non_exhaustive()
    }
}

impl Runner<'_> {
    /// Runs points. `execute` runs the one at a position, on a worker thread, and gives `None` if it was
    /// interrupted; a panic in it is a failed run. `keep` takes each outcome with its wall time in seconds, on the
    /// calling thread; the first error it gives stops the sweep.
    ///
    /// # Errors
    /// What `keep` says, or if no threads can be had.
    pub fn run(
        &self,
        points: &[Point],
        execute: impl Fn(usize) -> Option<Outcome> + Sync,
        mut keep: impl FnMut(usize, &Outcome, f64) -> Result<(), StoreError>,
    ) -> Result<Summary, StoreError> {
        let n_threads = self.n_threads.map_or(0, NonZeroUsize::get);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(n_threads)
            .build()
            .map_err(|error| StoreError::Threads { message: error.to_string() })?;
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let (sender, receiver) = mpsc::channel();
        let work = |sender: mpsc::Sender<(usize, Option<Outcome>, f64)>| {
            while !self.interrupt.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
                let position = next.fetch_add(1, Ordering::Relaxed);
                let Some(point) = points.get(position) else { return };
                self.progress.started(point);
                let stopwatch = Stopwatch::start();
                let outcome = catch_unwind(AssertUnwindSafe(|| execute(position)))
                    .unwrap_or_else(|panic| Some(failed(panic.as_ref())));
                if sender.send((position, outcome, stopwatch.elapsed().as_secs_f64())).is_err() {
                    return;
                }
            }
        };
        let mut summary = Summary::default();
        let mut result = Ok(());
        pool.in_place_scope(|scope| {
            for _ in 0..pool.current_num_threads() {
                let sender = sender.clone();
                scope.spawn(|_| work(sender));
            }
            drop(sender);
            for (position, outcome, seconds) in receiver {
                let Some(outcome) = outcome else { continue };
                if result.is_err() {
                    continue;
                }
                result = keep(position, &outcome, seconds);
                if result.is_err() {
                    stop.store(true, Ordering::Relaxed);
                    continue;
                }
                summary.by_status[outcome.status as usize] += 1;
                self.progress.finished(&points[position], &outcome);
            }
        });
        summary.interrupted = summary.n_ended() < points.len();
        result.map(|()| summary)
    }
}

fn failed(panic: &(dyn std::any::Any + Send)) -> Outcome {
    let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Outcome::without_metrics(Status::Failed, format!("a bug of apportion, please report it: {said}"))
}

#[cfg(test)]
mod tests;
