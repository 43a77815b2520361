//! How much one job says of another: which jobs are alike, found in what has happened.
//!
//! People submit jobs in batches, so jobs that arrive near one another may take similarly long; so may jobs of one type, and
//! jobs of one owner. How much each of the three matters differs from cluster to cluster. A [`Likeness`] is a weight for each.
//! [`Likeness::chosen`] tries a grid of them: it foretells each of the jobs that arrived last from the jobs before it, by a
//! life table with a few intervals of work, and takes the likeness under which what happened was most likely.

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

/// A correlation that is smaller than so many standard errors could be chance.
const CHANCE: f64 = 2.0;
/// Jobs that arrive one after the other are never taken to be alike more often.
const REPEATS_MAX: f64 = 0.98;

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

/// How often a job takes the same place among all as the one that arrived before it: Spearman's correlation of the work of
/// jobs that arrived one after the other, from 0 to 1; 0 where it could be chance. These are in order of arrival.
pub fn repeats(jobs: &[Compared]) -> f64 {
    let neighbours = |pair: &&[Compared]| {
        pair[0].position + 1 == pair[1].position && pair.iter().all(|job| job.observed.has_ended)
    };
    let pairs: Vec<&[Compared]> = jobs.windows(2).filter(neighbours).collect();
    let ranks = [0, 1].map(|side| ranks(pairs.iter().map(|pair| pair[side].observed.work_s)));
    let n = pairs.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let product = |one: &[f64], other: &[f64]| {
        one.iter().zip(other).map(|(one, other)| (one - middle) * (other - middle)).sum::<f64>()
    };
    let spread = (product(&ranks[0], &ranks[0]) * product(&ranks[1], &ranks[1])).sqrt();
    let found = product(&ranks[0], &ranks[1]) / spread;
    // (without pairs, or where all are equal, there is no number)
    if found.is_finite() && found * n.sqrt() > CHANCE { found.min(REPEATS_MAX) } else { 0.0 }
}

/// The rank of each value from 0, the mean one of values that are equal.
fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let equal = order[first..]
            .iter()
            .take_while(|other| values[**other].total_cmp(&values[order[first]]).is_eq());
        let last = first + equal.count();
        for index in &order[first..last] {
            ranks[*index] = (first + last - 1) as f64 / 2.0;
        }
        first = last;
    }
    ranks
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
        // (the first jobs have none before them that would foretell them)
        let first = (jobs.len() / 4).max(jobs.len().saturating_sub(FORETOLD_MAX));
        Some(Self { at: jobs.iter().map(at).collect(), first })
    }

    /// The logarithm of the probability of what each of the last jobs did, from the jobs before it.
    fn scores(&self, jobs: &[Compared], likeness: &Likeness) -> Vec<f64> {
        (self.first..jobs.len()).map(|index| self.score(jobs, index, likeness)).collect()
    }

    fn score(&self, jobs: &[Compared], index: usize, likeness: &Likeness) -> f64 {
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
        // (the job to come counts as one that is like the mean one, and ends in any of the intervals that are left)
        let own = reached[0] / index as f64;
        let hazard = |interval: usize| {
            let left = (N_INTERVALS - interval) as f64;
            (ended[interval] + own / left) / (reached[interval] + own)
        };
        let at = self.at[index];
        let before: f64 = (0..at).map(|interval| (1.0 - hazard(interval)).ln()).sum();
        if jobs[index].observed.has_ended && at + 1 < N_INTERVALS { before + hazard(at).ln() } else { before }
    }
}
