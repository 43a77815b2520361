//! How much one job says of another: which jobs are alike, found in what has happened.
//!
//! People submit jobs in batches, so jobs that arrive near one another may take similarly long; so may jobs of one type, and
//! jobs of one owner. How much each of the three matters differs from cluster to cluster. A [`Likeness`] is a weight for each.
//! [`Likeness::chosen`] tries a grid of them: it foretells each of the jobs that arrived last from the jobs before it, by a
//! life table with a few intervals of work, and takes the likeness under which what happened was most likely.
//!
//! What such a table gets wrong, it gets wrong of many jobs at once: [`together`] says how much.

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use crate::forecast::survival::Observed;

/// Jobs by which an arrival further away counts half, from near to far; none where it counts as much.
const HALVES_AFTER: [Option<f64>; 6] = [None, Some(300.0), Some(100.0), Some(30.0), Some(10.0), Some(3.0)];
/// What a job of another type counts, and of another owner.
const OTHERS_COUNT: [f64; 3] = [1.0, 0.25, 0.0625];
/// Jobs that are foretold to choose between likenesses: the last that arrived.
const FORETOLD_MAX: usize = 400;
/// Intervals of work in the life table.
const N_INTERVALS: usize = 12;
/// A likeness that counts fewer jobs is taken only if it foretells better by so much, in units of the standard error.
const BETTER_BY: f64 = 1.0;
/// Jobs that arrived within so many of one another are compared for what they have in common.
const NEAR: usize = 10;

/// A job that is compared with others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Its position in order of arrival.
    pub position: usize,
    /// A number for its job type and scale factor.
    pub kind: usize,
    /// A number for its owner; none if it has none.
    pub owner: Option<usize>,
    /// What is known of its work.
    pub observed: Observed,
}

/// How much jobs count for one another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Likeness {
    /// A job counts half as much for each so many jobs that arrived between the two; null if arrivals do not matter.
    pub halves_after_jobs: Option<f64>,
    /// What a job of another type or scale factor counts beside one of the same, from 0 to 1.
    pub other_type: f64,
    /// What a job of another owner counts beside one of the same, from 0 to 1.
    pub other_owner: f64,
}

impl Likeness {
    /// All jobs count the same.
    pub const ALL_ALIKE: Self = Self { halves_after_jobs: None, other_type: 1.0, other_owner: 1.0 };

    /// What one job counts for another, above 0. All `n_jobs` together count at least as one more job, so that where no job
    /// is like the other, all of them speak.
    pub fn weight(&self, one: &Compared, other: &Compared, n_jobs: usize) -> f64 {
        let far = one.position.abs_diff(other.position) as f64;
        let near = self.halves_after_jobs.map_or(1.0, |half| (-far / half).exp2());
        let kind = if one.kind == other.kind { 1.0 } else { self.other_type };
        let owner = if one.owner == other.owner { 1.0 } else { self.other_owner };
        near * kind * owner + 1.0 / n_jobs as f64
    }

    /// The likeness under which the last of these jobs, which are in order of arrival, would have been foretold best. One that
    /// counts all alike stays unless another is better by more than chance.
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

/// How much jobs that arrived near one another are short or long together, beyond what the jobs before them say: the variance of a
/// factor of mean 1 by which all of them end sooner or later than was foretold, as of a shared frailty. It is the mean product of
/// what two of them are off by, over that of what was foretold of them; 0 where too few jobs ended to tell. These are in order of
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

/// Intervals of work, and where each job ended or is.
#[derive(Debug)]
struct Intervals {
    /// Of each job, in order of arrival.
    at: Vec<usize>,
    /// Jobs from here on are foretold.
    first: usize,
}

impl Intervals {
    /// Each with as many ends; none where too few jobs ended to tell.
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
        // The first jobs have none before them that would foretell them.
        let first = (jobs.len() / 4).max(jobs.len().saturating_sub(FORETOLD_MAX));
        Some(Self { at: jobs.iter().map(at).collect(), first })
    }

    /// The logarithm of the probability of what each of the last jobs did, from the jobs before it.
    fn scores(&self, jobs: &[Compared], likeness: &Likeness) -> Vec<f64> {
        (self.first..jobs.len()).map(|index| self.score(jobs, index, likeness)).collect()
    }

    fn score(&self, jobs: &[Compared], index: usize, likeness: &Likeness) -> f64 {
        let (at, hazards) = (self.at[index], self.hazards(jobs, index, likeness));
        let before: f64 = hazards[..at].iter().map(|hazard| (1.0 - hazard).ln()).sum();
        let is_told = jobs[index].observed.has_ended && at + 1 < N_INTERVALS;
        if is_told { before + hazards[at].ln() } else { before }
    }

    /// Of each interval, the part of the jobs before one that ended there, of those that reached it.
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
        // The job to come counts as one that is like the mean one, and ends in any of the intervals that are left.
        let own = reached[0] / index as f64;
        std::array::from_fn(|interval| {
            let left = (N_INTERVALS - interval) as f64;
            (ended[interval] + own / left) / (reached[interval] + own)
        })
    }
}
