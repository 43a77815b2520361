//! Future jobs, drawn from past ones: a bootstrap of whole blocks of time.
//!
//! The time before the forecast is cut into blocks, whole days where there are enough, and the time after it is put together
//! from blocks drawn at random. A block keeps its time of day, so daily rhythms and bursts remain; a trend from week to week
//! does not.

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
/// The fewest whole days: a shorter time is cut into shorter blocks.
const DAYS_MIN: f64 = 3.0;
/// Number of shorter blocks.
const N_SHORTER: usize = 6;
/// The least time for which jobs must have arrived, in rounds: three jobs submitted at once would come again every second.
const ROUNDS_MIN: f64 = 10.0;

/// A job of a block, which may be drawn again.
#[derive(Clone, Debug)]
struct Template {
    /// Arrival after the start of its block, s.
    offset_s: f64,
    job: Job,
    work: Work,
}

/// The time before a forecast, cut into blocks of equal length.
#[derive(Clone, Debug)]
pub struct Blocks {
    at: Seconds,
    /// Length of a block.
    pub length: Seconds,
    /// Jobs of each block, in order of arrival.
    jobs: Vec<Vec<Template>>,
}

impl Blocks {
    /// The shortest time before an instant that tells how jobs arrive, by the length of a round.
    pub fn history_min(round_length: Seconds) -> Seconds {
        round_length * ROUNDS_MIN
    }

    /// Blocks of the jobs that arrived in a time before an instant, at most since the first arrival. The steps of those that
    /// have not ended are drawn anew each time, as `works` has them.
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

    /// Number of blocks.
    pub fn n_blocks(&self) -> usize {
        self.jobs.len()
    }

    /// Number of jobs in all blocks.
    pub fn n_jobs(&self) -> usize {
        self.jobs.iter().map(Vec::len).sum()
    }
}

/// Endless sequence of future jobs: block after block, each drawn from all blocks.
#[derive(Debug)]
pub struct Resampled {
    blocks: Arc<Blocks>,
    stream: Stream,
    /// Number of blocks begun.
    n_begun: usize,
    /// Block of the last job, and position of the next job in it.
    place: (usize, usize),
}

impl Resampled {
    /// The future jobs from the instant of the forecast on.
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
