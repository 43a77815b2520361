//! Runs points on all cores and hands over each outcome as it comes.
//!
//! Workers take tasks in order, one at a time; outcomes arrive in the order in which runs end, and are written by
//! the calling thread alone, so a store needs no lock of its own. An outcome may call for another run: it joins the
//! end of the queue, which is how ladders of runs are climbed.

use std::borrow::Borrow;
use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::available_parallelism;

use crate::sweep::grid::Point;
use crate::sweep::outcome::{Outcome, Status};
use crate::sweep::simulation::Standing;
use crate::sweep::store::StoreError;
use apportion::solver::timing::Stopwatch;
use apportion::units::JobsPerHour;

/// Stack of a thread that runs points, bytes: a policy may be a function of Python that asks the engine again, and recursion there is
/// as deep as Python lets it be.
const STACK: usize = 64 << 20;

/// What is reported while runs go on, from any thread.
pub trait Progress: Sync {
    /// A run starts.
    fn started(&self, point: &Point) {
        let _ = point;
    }
    /// A run goes on; told now and then.
    fn went_on(&self, point: &Point, standing: &Standing) {
        let _ = (point, standing);
    }
    /// A run ended, and its outcome is kept.
    fn finished(&self, point: &Point, outcome: &Outcome) {
        let _ = (point, outcome);
    }
    /// One more run is called for.
    fn added(&self, point: &Point) {
        let _ = point;
    }
}

/// Reports nothing.
impl Progress for () {}

/// How many runs of a sweep ended, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Runs that ended in each way: [`Status::ALL`].
    pub by_status: [usize; Status::ALL.len()],
    /// Runs that were to be made.
    pub n_tasks: usize,
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
    /// Set to true to stop.
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
    /// Runs tasks. `execute` runs one, on a worker thread, and gives `None` if it was interrupted; a panic in it is
    /// a failed run. `keep` takes each with its outcome and its wall time in seconds, on the calling thread, and
    /// gives the task that follows from it, if one does; the first error it gives stops the sweep.
    ///
    /// # Errors
    /// What `keep` says, or if no threads can be had.
    pub fn run<T: Borrow<Point> + Send>(
        &self,
        mut tasks: Vec<T>,
        execute: impl Fn(&T) -> Option<Outcome> + Sync,
        mut keep: impl FnMut(&T, &Outcome, f64) -> Result<Option<T>, StoreError>,
    ) -> Result<Summary, StoreError> {
        // More than runs or cores would only wait.
        let n_useful = available_parallelism().map_or(1, NonZeroUsize::get).max(tasks.len());
        let n_threads = self.n_threads.map_or(0, |n| n.get().min(n_useful));
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(n_threads)
            .stack_size(STACK)
            .build()
            .map_err(|error| StoreError::Threads { message: error.to_string() })?;
        busiest_first(&mut tasks);
        let mut summary = Summary { n_tasks: tasks.len(), ..Summary::default() };
        let stop = AtomicBool::new(false);
        let is_over = || self.interrupt.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
        let (queue, waiting) = mpsc::channel();
        let waiting = Mutex::new(waiting);
        let (sender, receiver) = mpsc::channel();
        let work = |sender: mpsc::Sender<(T, Option<Outcome>, f64)>| {
            while !is_over() {
                let Ok(task) = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv() else { return };
                if is_over() {
                    return;
                }
                self.progress.started(T::borrow(&task));
                let stopwatch = Stopwatch::start();
                let outcome = catch_unwind(AssertUnwindSafe(|| execute(&task)))
                    .unwrap_or_else(|panic| Some(failed(panic.as_ref())));
                if sender.send((task, outcome, stopwatch.elapsed().as_secs_f64())).is_err() {
                    return;
                }
            }
        };
        let mut result = Ok(());
        pool.in_place_scope(|scope| {
            for _ in 0..pool.current_num_threads() {
                let sender = sender.clone();
                scope.spawn(|_| work(sender));
            }
            drop(sender);
            let mut n_open = tasks.len();
            for task in tasks {
                let _ = queue.send(task);
            }
            // Closed as soon as no run can call for another, so that workers who wait for one end.
            let mut queue = Some(queue).filter(|_| n_open > 0);
            for (task, outcome, seconds) in receiver {
                n_open -= 1;
                if let (Some(outcome), true) = (outcome, result.is_ok()) {
                    match keep(&task, &outcome, seconds) {
                        Err(error) => {
                            result = Err(error);
                            stop.store(true, Ordering::Relaxed);
                        }
                        Ok(next) => {
                            summary.by_status[outcome.status as usize] += 1;
                            self.progress.finished(T::borrow(&task), &outcome);
                            if let (Some(next), Some(queue)) = (next, &queue) {
                                summary.n_tasks += 1;
                                n_open += 1;
                                self.progress.added(T::borrow(&next));
                                let _ = queue.send(next);
                            }
                        }
                    }
                }
                if n_open == 0 || is_over() {
                    queue = None;
                }
            }
        });
        summary.interrupted = summary.n_ended() < summary.n_tasks;
        result.map(|()| summary)
    }
}

/// Puts tasks in the order of falling arrival rates: their runs take longest, and a long one that began last would leave
/// the other cores idle.
fn busiest_first<T: Borrow<Point>>(tasks: &mut [T]) {
    let rate = |task: &T| T::borrow(task).spec.workload.rate.map_or(0.0, JobsPerHour::get);
    tasks.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
}

fn failed(panic: &(dyn std::any::Any + Send)) -> Outcome {
    let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Outcome::without_metrics(Status::Failed, format!("a bug of apportion, please report it: {said}"))
}

#[cfg(test)]
mod tests;
