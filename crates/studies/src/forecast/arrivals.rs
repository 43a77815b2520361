//! Jobs to come, drawn from those that came before: a bootstrap of whole blocks of time.
//!
//! The time before the forecast is cut into blocks, whole days where there are some, and the time after it is put together
//! from blocks drawn at random. A block keeps its time of day, so the rhythm of the day and bursts remain; that jobs
//! come more often from week to week does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::forecast::durations::Work;
use crate::forecast::error::ForecastError;
use crate::forecast::past::Situation;
use crate::forecast::whole::whole;
use crate::sweep::Run;
use apportion::index::JobId;
use apportion::units::Seconds;
use apportion::workload::random::Stream;
use apportion::workload::{Arrivals, Job};

/// A day.
const DAY: Seconds = Seconds::new(86_400.0);
/// Fewer whole days are cut into shorter blocks.
const DAYS_MIN: f64 = 3.0;
/// So many of them.
const N_SHORTER: usize = 6;
/// The least time for which jobs must have arrived, in rounds: three submitted at once would come again every second.
const ROUNDS_MIN: f64 = 10.0;

/// A job of a block: what may come again.
#[derive(Clone, Debug)]
struct Template {
    /// From the start of its block, s.
    offset_s: f64,
    job: Job,
    work: Work,
}

/// The time before a forecast in blocks of equal length.
#[derive(Clone, Debug)]
pub struct Blocks {
    at: Seconds,
    /// How long each is.
    pub length: Seconds,
    /// Of each block, in order of arrival.
    jobs: Vec<Vec<Template>>,
}

impl Blocks {
    /// The shortest time before an instant that says how jobs arrive, by the length of a round.
    pub fn history_min(round_length: Seconds) -> Seconds {
        round_length * ROUNDS_MIN
    }

    /// The jobs that arrived in a time before an instant, at most since the first arrival. The steps of those that have not
    /// ended are drawn anew each time, as `works` has them.
    ///
    /// # Errors
    /// If there are none, or that time is [too short](Self::history_min).
    pub fn of(
        run: &Run,
        situation: &Situation,
        history: Seconds,
        works: &BTreeMap<JobId, Work>,
    ) -> Result<Self, ForecastError> {
        let at = situation.at;
        let first = situation.jobs.first().map_or(at, |known| known.job.arrival);
        let history = history.min(at - first);
        let needed = Self::history_min(run.options.round_length);
        let n_days = (history / DAY).floor();
        let is_days = n_days >= DAYS_MIN;
        let length = if is_days { DAY } else { history / N_SHORTER as f64 };
        let n_blocks = if is_days { whole(n_days) } else { N_SHORTER };
        let nothing = || ForecastError::NothingArrived { history_h: history.hours(), at_h: at.hours() };
        if history < needed {
            return Err(ForecastError::TooShort { history_s: history.get(), needed_s: needed.get() });
        }
        let start = at - length * n_blocks as f64;
        let mut blocks = vec![Vec::new(); n_blocks];
        let active: BTreeMap<usize, &Work> =
            situation.active.iter().filter_map(|(id, position)| Some((*position, works.get(id)?))).collect();
        for (position, known) in situation.jobs.iter().enumerate() {
            if known.job.arrival < start {
                continue;
            }
            let since_s = (known.job.arrival - start).get();
            let block = whole((since_s / length.get()).floor()).min(n_blocks - 1);
            let offset_s = since_s - block as f64 * length.get();
            let mut job = known.job.clone();
            (job.name, job.duration) = (None, None);
            let work = active.get(&position).map_or(Work::Known(job.total_steps), |work| (*work).clone());
            blocks[block].push(Template { offset_s, job, work });
        }
        if blocks.iter().all(Vec::is_empty) {
            return Err(nothing());
        }
        Ok(Self { at, length, jobs: blocks })
    }

    /// How many there are.
    pub fn n_blocks(&self) -> usize {
        self.jobs.len()
    }

    /// Jobs in all of them.
    pub fn n_jobs(&self) -> usize {
        self.jobs.iter().map(Vec::len).sum()
    }
}

/// Jobs to come without end: block after block, each drawn from all.
#[derive(Debug)]
pub struct Resampled {
    blocks: Arc<Blocks>,
    stream: Stream,
    /// Blocks begun.
    n_begun: usize,
    /// The block of the last job, and the position of the next one there.
    place: (usize, usize),
}

impl Resampled {
    /// From the instant of the forecast on.
    pub fn new(blocks: Arc<Blocks>, stream: Stream) -> Self {
        let place = (0, blocks.jobs[0].len());
        Self { blocks, stream, n_begun: 0, place }
    }
}

impl Arrivals for Resampled {
    fn next_job(&mut self) -> Option<Job> {
        let Blocks { at, length, jobs: blocks } = &*self.blocks;
        while self.place.1 >= blocks[self.place.0].len() {
            self.place = (self.stream.below(blocks.len()), 0);
            self.n_begun += 1;
        }
        let Template { offset_s, job, work } = &blocks[self.place.0][self.place.1];
        self.place.1 += 1;
        let start_s = at.get() + length.get() * (self.n_begun - 1) as f64;
        let steps = work.at(self.stream.uniform());
        Some(job.clone().total_steps(steps).arrival(Seconds::new(start_s + offset_s)))
    }
}
