//! Evidence that a simulation makes no progress, and the record of its course from which it is taken.
//!
//! | what        | evidence                                                                                          |
//! |-------------|---------------------------------------------------------------------------------------------------|
//! | livelock    | workers are leased round after round, no job runs a step, and nothing is to come                   |
//! |             | or jobs run, each so slowly that it would end after more than a century of simulated time           |
//! | starved     | active jobs get no worker, and nothing is to come; or a measured job has run no step, or hardly any of its remaining steps, while jobs that came later are done, and the number of jobs that have arrived doubled again and again |
//! | growing     | the average number of active jobs doubles with the number of jobs that have arrived, again and again, |
//! |             | and over the last doubling their number grew by more than four times the standard error of its growth |
//! | unresolved  | what comes next is so late that the clock cannot tell apart the parts of a round                    |
//!
//! All of it counts rounds, jobs and simulated time, so the same simulation ends the same way on every machine, and after a save
//! and resume.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::outcome::{Ids, Patience};
use super::simulation::Simulation;
use crate::index::JobId;
use crate::scheduler::active::{LastRun, Progress};
use crate::spec::snapshot::Label;
use crate::units::{Decimals, Seconds};

/// The least number of arrived jobs from which doublings are counted.
const MILESTONE_MIN: u32 = 1000;
/// The growth of an average, with twice the arrivals, from which it counts as growing steadily; a bounded average grows less.
const GROWTH_MIN: f64 = 1.8;
/// The number of equal parts into which the arrivals between two milestones are divided. The changes of the number of active jobs
/// over these parts give its mean growth and the standard error of that.
const PARTS: u32 = 32;
/// The number of standard errors by which the number of active jobs must grow. Below the capacity, their number goes up and down at
/// random, and at loads near it so slowly that averages alone double three times in some of a hundred simulations.
const ERRORS_MIN: f64 = 4.0;
/// The part of its remaining steps up to which a job counts as running next to nothing: at that pace, the rest takes a hundred
/// times as many arrivals.
const PART_MIN: f64 = 0.01;
/// The factor on the rounds in vain that are needed if workers or jobs fail at random.
const CHANCE: u64 = 100;
/// The simulated time after which a job must have ended at its pace; a slower one counts as none.
const PACE_MAX_YEARS: f64 = 100.0;
const HOURS_A_YEAR: f64 = 8766.0;
/// The most years that are said.
const YEARS_MAX: f64 = 1e300;
/// The part of a round that the clock must be able to show.
pub(super) const RESOLUTION: f64 = 1e-6;

/// Why a simulation makes no progress, with the evidence; as text, the evidence in words.
#[derive(Clone, Debug, PartialEq)]
pub enum Standstill {
    /// Workers are leased, no job runs a step, and nothing is to come that could change it.
    Livelock {
        /// The instant since when no job has run a step.
        since: Seconds,
        /// Number of rounds since then.
        rounds: u64,
        /// Number of leases granted since then.
        leases: u64,
        /// The active jobs.
        jobs: Vec<Label>,
    },
    /// Jobs run, each so slowly that it would end after more than a century, and nothing is to come that could change it.
    Endless {
        /// Since when no job has run faster.
        since: Seconds,
        /// Rounds since then.
        rounds: u64,
        /// The least time to its end of a job that ran since, at its pace, in years of simulated time.
        years: f64,
        /// The active jobs.
        jobs: Vec<Label>,
    },
    /// No active job has workers, and nothing is to come that could change it.
    Starved {
        /// The instant since when no job has had workers.
        since: Seconds,
        /// Number of rounds since then.
        rounds: u64,
        /// The active jobs.
        jobs: Vec<Label>,
    },
    /// Measured jobs have run no step while others came later and are done.
    Overtaken {
        /// The instant since when the first of them has run none.
        since: Seconds,
        /// The measured jobs that have run none for this long.
        jobs: Vec<Label>,
        /// Number of jobs that had arrived when that one last ran, or arrived itself.
        n_before: u32,
        /// Number of jobs that have arrived by now.
        n_arrived: u32,
        /// Number of active jobs.
        n_active: usize,
    },
    /// Measured jobs have run next to nothing of their remaining steps while others came later and are done.
    Crawling {
        /// The measured jobs that have run next to nothing.
        jobs: Vec<Label>,
        /// The largest part of its remaining steps that one of them has run.
        part: f64,
        /// Number of jobs that had arrived when these steps were counted first.
        n_before: u32,
        /// Number of jobs that have arrived by now.
        n_arrived: u32,
        /// Number of active jobs.
        n_active: usize,
    },
    /// The number of active jobs grows with the number of jobs that have arrived.
    Growing {
        /// Pairs: the number of jobs that had arrived, and the mean number of active jobs since the previous pair.
        course: Vec<(u32, f64)>,
        /// Number of active jobs.
        n_active: usize,
        /// The growth of their number since the last pair but one.
        growth: Growth,
    },
    /// The next event is at an instant at which the clock cannot tell the parts of a round apart.
    Unresolved {
        /// The instant.
        at: Seconds,
        /// The length of a round.
        round_length: Seconds,
    },
}

/// The growth of the number of active jobs while the number of jobs that have arrived doubled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Growth {
    /// Active jobs more for each job that arrived.
    pub per_arrival: f64,
    /// Its standard error, from the changes in equal parts of the arrivals.
    pub error: f64,
}

impl Growth {
    /// The growth over a number of arrivals, of numbers of active jobs at the beginning and after each of its parts; none if there are
    /// not as many.
    fn of(n_active: &[f64], n_arrivals: u32) -> Option<Self> {
        if n_active.len() != PARTS as usize + 1 {
            return None;
        }
        let changes: Vec<f64> = n_active.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let n = f64::from(PARTS);
        let mean = changes.iter().sum::<f64>() / n;
        let variance = changes.iter().map(|change| (change - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let per_part = n / f64::from(n_arrivals);
        Some(Self { per_arrival: mean * per_part, error: (variance / n).sqrt() * per_part })
    }

    /// Whether it is more than chance.
    fn is_sure(self) -> bool {
        self.per_arrival > ERRORS_MIN * self.error
    }
}

impl Standstill {
    /// The name of the standstill in results.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Livelock { .. } | Self::Endless { .. } => "livelock",
            Self::Starved { .. } | Self::Overtaken { .. } | Self::Crawling { .. } => "starved",
            Self::Growing { .. } => "growing",
            Self::Unresolved { .. } => "unresolved",
        }
    }
}

/// The word after a number of rounds.
const fn rounds_of(n: u64) -> &'static str {
    if n == 1 { "round" } else { "rounds" }
}

impl fmt::Display for Standstill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Livelock { since, rounds, leases, jobs } => {
                let (since, ids) = (Decimals(since.hours(), 2), Ids(jobs));
                write!(
                    f,
                    "no job has run a step since {since} simulated hours, in {rounds} {} with ",
                    rounds_of(*rounds)
                )?;
                let of_leases = if *leases == 1 { "lease" } else { "leases" };
                write!(f, "{leases} {of_leases}, and nothing is to come: {ids}")
            }
            Self::Endless { since, rounds, years, jobs } => {
                let (since, ids, word) = (Decimals(since.hours(), 2), Ids(jobs), rounds_of(*rounds));
                write!(
                    f,
                    "at the pace since {since} simulated hours, in {rounds} {word}, no job would end in less "
                )?;
                write!(f, "than {years:.1e} simulated years, and nothing is to come: {ids}")
            }
            Self::Starved { since, rounds, jobs } => {
                let (since, ids) = (Decimals(since.hours(), 2), Ids(jobs));
                write!(
                    f,
                    "the policy gives nothing to {ids}; nothing has changed since {since} simulated hours"
                )?;
                write!(f, " ({rounds} {}), and nothing is to come", rounds_of(*rounds))
            }
            Self::Overtaken { since, jobs, n_before, n_arrived, n_active } => {
                let (since, ids, later) = (Decimals(since.hours(), 2), Ids(jobs), n_arrived - n_before);
                write!(
                    f,
                    "no step of measured jobs for long: {ids}, the first since {since} simulated hours; "
                )?;
                let of_jobs = if later == 1 { "job has" } else { "jobs have" };
                write!(f, "{later} {of_jobs} arrived since, and all but {n_active} of {n_arrived} are done")
            }
            Self::Crawling { jobs, part, n_before, n_arrived, n_active } => {
                let (ids, percent, later) = (Ids(jobs), Decimals(100.0 * part, 2), n_arrived - n_before);
                write!(
                    f,
                    "measured jobs hardly run: {ids}, at most {percent} % of the steps that they had left when "
                )?;
                write!(
                    f,
                    "{n_before} jobs had arrived; {later} have arrived since, and all but {n_active} of {n_arrived} "
                )?;
                f.write_str("are done")
            }
            Self::Growing { course, n_active, growth } => {
                let steps: Vec<String> =
                    course.iter().map(|(n, active)| format!("{active:.0} up to job {n}")).collect();
                write!(f, "the queue grows steadily: jobs active on average {}; ", steps.join(", "))?;
                write!(
                    f,
                    "now {n_active}, more by {:.3} ± {:.3} for each job that ",
                    growth.per_arrival, growth.error
                )?;
                f.write_str("arrives")
            }
            Self::Unresolved { at, round_length } => {
                write!(f, "what comes next is at {:e} s, where the clock cannot tell apart ", at.get())?;
                write!(f, "the parts of a round of {} s", round_length.get())
            }
        }
    }
}

/// The record of a simulation's course that shows whether it makes progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vigil {
    /// The instant at which a job last ran a step, came or went, or a price changed, s.
    since: f64,
    /// Number of rounds that had started by then.
    round: u64,
    /// Number of leases granted since.
    leases: u64,
    /// The least time to its end, in years, of a job that ran since, each slower than counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    years: Option<f64>,
    /// Active jobs, summed over the arrivals since the last milestone.
    n_active_sum: f64,
    /// Milestones: the number of arrived jobs, twice as many as at the previous one, and the mean number of active jobs since that.
    milestones: Vec<(u32, f64)>,
    /// At each milestone, the measured jobs that were active, and the steps that each had run.
    #[serde(default)]
    steps_run: Vec<Vec<(JobId, f64)>>,
    /// The number of active jobs at the last milestone, and after each part of the arrivals until the next one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    n_active_at: Vec<f64>,
    /// The growth of that number between the last two milestones; none if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    growth: Option<Growth>,
    /// Whether a milestone has been reached that has not been examined yet.
    is_news: bool,
}

impl Vigil {
    /// Notes a change at `now`.
    pub(super) fn note(&mut self, now: f64, round: u64) {
        (self.since, self.round, self.leases, self.years) = (now, round, 0, None);
    }

    /// Notes that a job has run some steps in a round of `length`, with as many left: a change, unless at this pace it would not end in
    /// a century.
    pub(super) fn note_steps(
        &mut self,
        (now, round): (f64, u64),
        (steps, left): (f64, f64),
        length: Seconds,
    ) {
        let years = left / steps * length.hours() / HOURS_A_YEAR;
        if years <= PACE_MAX_YEARS {
            self.note(now, round);
        } else {
            self.years = Some(self.years.unwrap_or(YEARS_MAX).min(years));
        }
    }

    pub(super) fn leased(&mut self, n_leases: usize) {
        self.leases += n_leases as u64;
    }

    /// Notes an arrival. Returns whether it reaches a milestone.
    fn arrived(&mut self, n_arrived: u32, n_active: usize, first: u32) -> bool {
        self.n_active_sum += n_active as f64;
        let last = self.milestones.last().map_or(0, |(n_arrived, _)| *n_arrived);
        let next = first.max(last.saturating_mul(2));
        let n_arrivals = next.saturating_sub(last);
        let part_of = |n: u32| u64::from(n) * u64::from(PARTS) / u64::from(n_arrivals.max(1));
        let since = n_arrived.saturating_sub(last);
        if !self.n_active_at.is_empty() && part_of(since) > part_of(since.saturating_sub(1)) {
            self.n_active_at.push(n_active as f64);
        }
        let is_reached = n_arrived == next;
        if is_reached {
            self.growth = Growth::of(&self.n_active_at, n_arrivals);
            self.n_active_at = vec![n_active as f64];
            let mean = self.n_active_sum / f64::from(n_arrived - last).max(1.0);
            self.milestones.push((n_arrived, mean));
            (self.n_active_sum, self.is_news) = (0.0, true);
        }
        is_reached
    }

    /// The steps that a job had run this many doublings ago; none if that is not known.
    fn steps_run_before(&self, doublings: u32, job: JobId) -> Option<f64> {
        let at = self.steps_run.len().checked_sub(doublings as usize + 1)?;
        self.steps_run[at].iter().find(|(other, _)| *other == job).map(|(_, steps)| *steps)
    }

    /// The milestones of the last doublings, this many; none if there were fewer.
    fn doubled(&self, doublings: u32) -> Option<&[(u32, f64)]> {
        let first = self.milestones.len().checked_sub(doublings as usize + 1)?;
        Some(&self.milestones[first..])
    }
}

impl Simulation {
    /// Why the simulation makes no progress, once a run has ended with [`Stalled`] or [`Standstill`].
    ///
    /// [`Stalled`]: super::Outcome::Stalled
    /// [`Standstill`]: super::Outcome::Standstill
    pub fn standstill(&self) -> Option<&Standstill> {
        self.standstill.as_ref()
    }

    /// Notes a change now.
    pub(super) fn note_progress(&mut self) {
        self.vigil.note(self.clock.now, self.clock.round);
    }

    /// Notes an arrival.
    pub(super) fn note_arrival(&mut self) {
        self.note_progress();
        let window = self.setting.options.measure.as_ref();
        let first = window.map_or(0, |window| window.end).max(MILESTONE_MIN);
        if self.vigil.arrived(self.arrivals.n_taken(), self.table.jobs.len(), first) {
            let measured = self.table.jobs.iter().map(|active| &active.progress).filter(|job| job.measured);
            let steps_run = measured.map(|progress| (progress.id, progress.steps_run)).collect();
            self.vigil.steps_run.push(steps_run);
        }
    }

    /// The present instant, in the form of a job's last run.
    pub(super) fn last_run(&self) -> LastRun {
        LastRun { now: self.clock.now, n_arrived: self.arrivals.n_taken() }
    }

    /// Whether the clock can show the parts of a round at this instant. If not, the reason is kept for
    /// [`standstill`](Self::standstill).
    pub(super) fn resolves(&mut self, at: f64) -> bool {
        let round_length = self.setting.options.round_length;
        let resolves = at.is_finite() && at + round_length.get() * RESOLUTION > at;
        if !resolves {
            self.standstill = Some(Standstill::Unresolved { at: Seconds::new(at), round_length });
        }
        resolves
    }

    /// Keeps the reason for a simulation in which nothing can ever happen again.
    pub(super) fn note_stalled(&mut self) {
        self.standstill = Some(self.in_vain());
    }

    /// Whether the simulation has made no progress for longer than the patience. Then the reason is kept.
    pub(super) fn is_in_vain(&mut self, patience: &Patience) -> bool {
        let news = std::mem::take(&mut self.vigil.is_news);
        let found = if patience.rounds.is_some_and(|most| self.rounds_in_vain() > most) {
            Some(self.in_vain())
        } else {
            patience.doublings.filter(|_| news).and_then(|doublings| self.falls_behind(doublings))
        };
        let is_found = found.is_some();
        self.standstill = found;
        is_found
    }

    /// The number of rounds without a change after which nothing is to come; divided by a hundred if workers or jobs fail at
    /// random.
    fn rounds_in_vain(&self) -> u64 {
        let is_over = self.arrivals.next_arrival().is_none()
            && self.clock.n_prices == self.setting.options.prices.len();
        let stands = self.clock.now.total_cmp(&self.vigil.since).is_eq();
        if !(is_over || stands) {
            return 0;
        }
        let faults = &self.setting.options.faults;
        let chance = faults.workers.is_some() || faults.jobs.probability > 0.0;
        (self.clock.round - self.vigil.round) / if chance { CHANCE } else { 1 }
    }

    fn in_vain(&self) -> Standstill {
        let since = Seconds::new(self.vigil.since);
        let (rounds, leases) = (self.clock.round - self.vigil.round, self.vigil.leases);
        let jobs = self.table.jobs.iter().map(|active| active.progress.label()).collect();
        match (leases, self.vigil.years) {
            (0, _) => Standstill::Starved { since, rounds, jobs },
            (_, Some(years)) => Standstill::Endless { since, rounds, years, jobs },
            _ => Standstill::Livelock { since, rounds, leases, jobs },
        }
    }

    /// The standstill that the last doublings of the number of arrived jobs show; none if they show none.
    fn falls_behind(&self, doublings: u32) -> Option<Standstill> {
        let course = self.vigil.doubled(doublings)?;
        let (n_first, n_active) = (course.first()?.0, self.table.jobs.len());
        let waiting = || {
            let all = self.table.jobs.iter().map(|active| &active.progress);
            all.filter(|progress| progress.measured && progress.last_run.n_arrived <= n_first)
        };
        // More jobs are done than had arrived by then: some came later.
        let overtaken = self.arrivals.n_taken() as usize - n_active > n_first as usize;
        let last = waiting().map(|progress| progress.last_run).min_by_key(|last| last.n_arrived);
        if let Some(last) = last.filter(|_| overtaken) {
            return Some(Standstill::Overtaken {
                since: Seconds::new(last.now),
                jobs: waiting().map(Progress::label).collect(),
                n_before: last.n_arrived,
                n_arrived: self.arrivals.n_taken(),
                n_active,
            });
        }
        if overtaken && let Some(crawling) = self.crawling(doublings, n_first) {
            return Some(crawling);
        }
        let growth = self.vigil.growth.filter(|growth| growth.is_sure())?;
        let means = &course[1..];
        let grows = means.windows(2).all(|pair| pair[1].1 >= GROWTH_MIN * pair[0].1);
        let waits = means.last()?.1 > self.driver.workers().len() as f64;
        (means.len() > 1 && grows && waits).then(|| Standstill::Growing {
            course: means.to_vec(),
            n_active,
            growth,
        })
    }

    /// The measured jobs that have run next to nothing over the last doublings of the number of arrived jobs; none if there are
    /// none. `n_before` jobs had arrived at their beginning.
    fn crawling(&self, doublings: u32, n_before: u32) -> Option<Standstill> {
        let part = |progress: &Progress| {
            let before = self.vigil.steps_run_before(doublings, progress.id)?;
            Some((progress.steps_run - before) / (progress.job.total_steps.get() - before))
        };
        let all = self.table.jobs.iter().map(|active| &active.progress).filter(|job| job.measured);
        let hardly: Vec<(Label, f64)> = all
            .filter_map(|progress| Some((progress.label(), part(progress)?)))
            .filter(|(_, part)| *part < PART_MIN)
            .collect();
        let part = hardly.iter().map(|(_, part)| *part).reduce(f64::max)?;
        Some(Standstill::Crawling {
            jobs: hardly.into_iter().map(|(label, _)| label).collect(),
            part,
            n_before,
            n_arrived: self.arrivals.n_taken(),
            n_active: self.table.jobs.len(),
        })
    }
}

#[cfg(test)]
mod tests;
