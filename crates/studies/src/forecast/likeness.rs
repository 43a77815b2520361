//! Likeness of jobs: how much one job tells about another, estimated from past jobs.
//!
//! People submit jobs in batches, so jobs that arrive near one another may have similar work; so may jobs of one type, and
//! jobs of one owner. How much each of the three matters differs from cluster to cluster. A [`Likeness`] has a weight for
//! each. [`Likeness::chosen`] tries a grid of weights: it predicts each of the last arrivals from the jobs before it, by a
//! life table with a few intervals of work, and takes the likeness with the largest likelihood.
//!
//! Errors of such a table are common to many jobs at once: [`together`] measures how much.

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use crate::forecast::survival::Observed;

/// Numbers of jobs by which an arrival further away counts half, in descending order; none where distance does not matter.
const HALVES_AFTER: [Option<f64>; 6] = [None, Some(300.0), Some(100.0), Some(30.0), Some(10.0), Some(3.0)];
/// Weights of a job of another type, and of one of another owner.
const OTHERS_COUNT: [f64; 3] = [1.0, 0.25, 0.0625];
/// The most jobs that are predicted to choose between likenesses: the last arrivals.
const FORETOLD_MAX: usize = 400;
/// Number of intervals of work in the life table.
const N_INTERVALS: usize = 12;
/// Margin by which a likeness that counts fewer jobs must predict better, in standard errors.
const BETTER_BY: f64 = 1.0;
/// Distance in arrivals up to which jobs are compared for a common factor.
const NEAR: usize = 10;

/// A job in comparison with others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Position in order of arrival.
    pub position: usize,
    /// Number of its job type and scale factor.
    pub kind: usize,
    /// Number of its owner; none if it has none.
    pub owner: Option<usize>,
    /// Observed work.
    pub observed: Observed,
}

/// Weights of jobs for one another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Likeness {
    /// Number of jobs arriving between two jobs that halves the weight; null if arrivals do not matter.
    pub halves_after_jobs: Option<f64>,
    /// Weight of a job of another type or scale factor relative to one of the same, from 0 to 1.
    pub other_type: f64,
    /// Weight of a job of another owner relative to one of the same, from 0 to 1.
    pub other_owner: f64,
}

impl Likeness {
    /// The likeness under which all jobs count the same.
    pub const ALL_ALIKE: Self = Self { halves_after_jobs: None, other_type: 1.0, other_owner: 1.0 };

    /// Weight of one job for another, above 0. All `n_jobs` together weigh at least as much as one more job, so that where
    /// no job is like the other, all of them count.
    pub fn weight(&self, one: &Compared, other: &Compared, n_jobs: usize) -> f64 {
        let far = one.position.abs_diff(other.position) as f64;
        let near = self.halves_after_jobs.map_or(1.0, |half| (-far / half).exp2());
        let kind = if one.kind == other.kind { 1.0 } else { self.other_type };
        let owner = if one.owner == other.owner { 1.0 } else { self.other_owner };
        near * kind * owner + 1.0 / n_jobs as f64
    }

    /// The likeness that predicts the last of these jobs best; they are in order of arrival. The one that counts all alike
    /// stays unless another is better by more than chance.
    pub fn chosen(jobs: &[Compared]) -> Self {
        let Some(table) = Intervals::of(jobs) else { return Self::ALL_ALIKE };
        let has_owners = jobs.iter().any(|job| job.owner != jobs[0].owner);
        let has_kinds = jobs.iter().any(|job| job.kind != jobs[0].kind);
        let counts = |matters: bool| if matters { &OTHERS_COUNT[..] } else { &OTHERS_COUNT[..1] };
        let mut grid = Vec::new();
        for halves_after_jobs in HALVES_AFTER {
            for other_type in counts(has_kinds) {
                for other_owner in counts(has_owners) {
                    grid.push(Self { halves_after_jobs, other_type: *other_type, other_owner: *other_owner });
                }
            }
        }
        let scores: Vec<Vec<f64>> = grid.par_iter().map(|one| table.scores(jobs, one)).collect();
        let (mut chosen, mut best) = (0, 0.0);
        for (index, of_one) in scores.iter().enumerate().skip(1) {
            let gains: Vec<f64> = of_one.iter().zip(&scores[0]).map(|(one, all)| one - all).collect();
            let n = gains.len() as f64;
            let mean = gains.iter().sum::<f64>() / n;
            let variance = gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>() / n;
            let sure = mean - BETTER_BY * (variance / n).sqrt();
            if sure > best {
                (chosen, best) = (index, sure);
            }
        }
        grid[chosen]
    }
}

/// Variance of a factor common to jobs that arrive near one another, beyond what the jobs before them predict: a factor of
/// mean 1 by which all of them end sooner or later than predicted, as a shared frailty. It is the mean product of two such
/// jobs' residuals divided by that of their predictions; 0 where too few jobs ended to tell. The jobs are in order of
/// arrival.
pub fn together(jobs: &[Compared]) -> f64 {
    let Some(table) = Intervals::of(jobs) else { return 0.0 };
    let foretold = |index: usize| {
        let (at, has_ended) = (table.at[index], jobs[index].observed.has_ended);
        let hazards = table.hazards(jobs, index, &Likeness::ALL_ALIKE);
        hazards[..at + usize::from(has_ended)].iter().sum::<f64>()
    };
    let off = |(index, foretold): (usize, &f64)| f64::from(jobs[index].observed.has_ended) - foretold;
    let foretold: Vec<f64> = (table.first..jobs.len()).map(foretold).collect();
    let off: Vec<f64> = (table.first..).zip(&foretold).map(off).collect();
    let product =
        |of: &[f64], gap: usize| of.iter().zip(&of[gap..]).map(|(one, other)| one * other).sum::<f64>();
    let products = |of: &[f64]| (1..=NEAR).map(|gap| product(of, gap)).sum::<f64>();
    let found = products(&off) / products(&foretold);
    if found.is_finite() { found.max(0.0) } else { 0.0 }
}

/// Intervals of work, and the interval in which each job ended or is.
#[derive(Debug)]
struct Intervals {
    /// Interval of each job, in order of arrival.
    at: Vec<usize>,
    /// Position of the first job that is predicted.
    first: usize,
}

impl Intervals {
    /// Intervals with equal numbers of ends; none where too few jobs ended to tell.
    fn of(jobs: &[Compared]) -> Option<Self> {
        let ended = jobs.iter().map(|job| job.observed).filter(|one| one.has_ended);
        let mut works: Vec<f64> = ended.map(|one| one.work_s).collect();
        if works.len() < 2 * N_INTERVALS {
            return None;
        }
        works.sort_by(f64::total_cmp);
        let edge = |index: usize| works[index * works.len() / N_INTERVALS];
        let edges: Vec<f64> = (1..N_INTERVALS).map(edge).collect();
        let at = |job: &Compared| edges.partition_point(|edge| *edge <= job.observed.work_s);
        // The first jobs have too few before them to be predicted.
        let first = (jobs.len() / 4).max(jobs.len().saturating_sub(FORETOLD_MAX));
        Some(Self { at: jobs.iter().map(at).collect(), first })
    }

    /// Log-likelihood of each of the last jobs, given the jobs before it.
    fn scores(&self, jobs: &[Compared], likeness: &Likeness) -> Vec<f64> {
        (self.first..jobs.len()).map(|index| self.score(jobs, index, likeness)).collect()
    }

    fn score(&self, jobs: &[Compared], index: usize, likeness: &Likeness) -> f64 {
        let (at, hazards) = (self.at[index], self.hazards(jobs, index, likeness));
        let before: f64 = hazards[..at].iter().map(|hazard| (1.0 - hazard).ln()).sum();
        let is_told = jobs[index].observed.has_ended && at + 1 < N_INTERVALS;
        if is_told { before + hazards[at].ln() } else { before }
    }

    /// Hazard of each interval for a job, from the jobs before it: the weight that ended there divided by the weight that
    /// reached it.
    fn hazards(&self, jobs: &[Compared], index: usize, likeness: &Likeness) -> [f64; N_INTERVALS] {
        let (mut ended, mut reached) = ([0.0; N_INTERVALS], [0.0; N_INTERVALS]);
        for (job, at) in jobs[..index].iter().zip(&self.at) {
            let weight = likeness.weight(&jobs[index], job, index);
            reached[*at] += weight;
            if job.observed.has_ended {
                ended[*at] += weight;
            }
        }
        for interval in (0..N_INTERVALS - 1).rev() {
            reached[interval] += reached[interval + 1];
        }
        // The predicted job itself counts with the mean weight, and ends in any of the remaining intervals.
        let own = reached[0] / index as f64;
        std::array::from_fn(|interval| {
            let left = (N_INTERVALS - interval) as f64;
            (ended[interval] + own / left) / (reached[interval] + own)
        })
    }
}
