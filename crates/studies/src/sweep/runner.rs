//! Execution of points on all cores, with each outcome handed over as it comes.
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

/// Stack of a thread that runs points, bytes: a policy may be a Python function that calls the engine again, and Python
/// allows deep recursion.
const STACK: usize = 64 << 20;

/// A task after its run.
struct Executed<T> {
    task: T,
    /// None if the run was broken off.
    outcome: Option<Outcome>,
    /// Wall time of the run, s.
    seconds: f64,
}

/// Reports while runs are made, from any thread.
pub trait Progress: Sync {
    /// A run starts.
    fn started(&self, point: &Point) {
        let _ = point;
    }
    /// A run has made progress; reported now and then.
    fn went_on(&self, point: &Point, standing: &Standing) {
        let _ = (point, standing);
    }
    /// A run ended, and its outcome was kept.
    fn finished(&self, point: &Point, outcome: &Outcome) {
        let _ = (point, outcome);
    }
    /// One more run was added.
    fn added(&self, point: &Point) {
        let _ = point;
    }
}

/// Reporter that reports nothing.
impl Progress for () {}

/// Number of runs of a sweep that ended, by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of runs by status, in the order of [`Status::ALL`].
    pub by_status: [usize; Status::ALL.len()],
    /// Number of runs that were to be made.
    pub n_tasks: usize,
    /// Whether it was stopped before the end; ended runs are kept.
    pub interrupted: bool,
}

impl Summary {
    /// Number of runs that ended.
    pub fn n_ended(&self) -> usize {
        self.by_status.iter().sum()
    }

    /// Number of runs that ended with this status.
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

/// Settings for running points.
#[derive(Clone, Copy)]
pub struct Runner<'a> {
    /// Flag that stops the runs.
    pub interrupt: &'a AtomicBool,
    /// Number of runs at once; the number of cores if not given.
    pub n_threads: Option<NonZeroUsize>,
    /// Receiver of the reports.
    pub progress: &'a dyn Progress,
}

impl fmt::Debug for Runner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("n_threads", &self.n_threads).finish_non_exhaustive()
    }
}

impl Runner<'_> {
    /// Runs tasks. `execute` runs one, on a worker thread, and returns `None` if it was interrupted; a panic in it is a
    /// failed run. `keep` gets each with its outcome and its wall time, s, on the calling thread, and returns the task that
    /// follows from it, if there is one; its first error stops the sweep.
    ///
    /// # Errors
    /// The error of `keep`, or one if no threads can be started.
    pub fn run<T: Borrow<Point> + Send>(
        &self,
        mut tasks: Vec<T>,
        execute: impl Fn(&T) -> Option<Outcome> + Sync,
        mut keep: impl FnMut(&T, &Outcome, f64) -> Result<Option<T>, StoreError>,
    ) -> Result<Summary, StoreError> {
        // More threads than runs or cores would only wait.
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
        let work = |sender: mpsc::Sender<Executed<T>>| {
            while !is_over() {
                let Ok(task) = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv() else { return };
                if is_over() {
                    return;
                }
                self.progress.started(T::borrow(&task));
                let stopwatch = Stopwatch::start();
                let outcome = catch_unwind(AssertUnwindSafe(|| execute(&task)))
                    .unwrap_or_else(|panic| Some(failed(panic.as_ref())));
                let seconds = stopwatch.elapsed().as_secs_f64();
                if sender.send(Executed { task, outcome, seconds }).is_err() {
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
            // The queue is closed as soon as no run can add another, so that waiting workers end.
            let mut queue = Some(queue).filter(|_| n_open > 0);
            for Executed { task, outcome, seconds } in receiver {
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

/// Sorts tasks by falling arrival rate: high rates take longest, and a long run that began last would leave other cores
/// idle.
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
