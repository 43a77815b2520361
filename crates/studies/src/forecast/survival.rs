//! Distribution of the work of jobs, estimated from jobs that ended and jobs that have not.
//!
//! The estimate is Kaplan and Meier's, with work in place of time and weights on the jobs (Beran, *Nonparametric regression
//! with randomly censored survival data*, 1981): at the work of each job that ended, the hazard is its weight divided by the
//! weight of all jobs with at least as much work. Jobs that have not ended count with the work that they have run: without
//! them jobs would look short, because the long ones are those that still run. The predicted job itself counts with the mean
//! weight, so that with n jobs of equal weight it ends between any two neighbours with probability 1/(n + 1), and beyond the
//! longest with the same probability.
//!
//! Beyond the longest job that ended, work is drawn from a Pareto distribution, whose exponent is Hill's estimate from the
//! longest fifth.

use crate::forecast::whole::whole;

/// Part of the jobs from which the tail is estimated.
const TAIL: f64 = 0.2;
/// Range of accepted exponents of tails: below it there is no useful mean, above it no real tail.
const EXPONENTS: [f64; 2] = [0.5, 20.0];
/// Largest work that is drawn for a job: a hundred years, s.
const WORK_MAX_S: f64 = 100.0 * 365.25 * 86_400.0;

/// Observed work of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// Work that it has run, s alone on its fastest worker type.
    pub work_s: f64,
    /// Whether it has ended, so that this is all of its work.
    pub has_ended: bool,
}

/// Jobs that ended at the same work.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ends {
    work_s: f64,
    n_ended: u32,
    /// Probability that a job takes more than this work.
    survival: f64,
}

/// Distribution of a job's work, given the work that it has run.
#[derive(Clone, Debug, PartialEq)]
pub struct Survival {
    /// Work that the job has run, s.
    above_s: f64,
    /// Ends of other jobs above that.
    ends: Vec<Ends>,
    /// Exponent of the tail.
    exponent: f64,
}

impl Survival {
    /// The distribution of the work of a job that takes more than `above_s`, from jobs in ascending order of work with their
    /// weights, and the exponent of the [tail](exponent).
    pub fn of(observed: &[Observed], weights: &[f64], above_s: f64, exponent: f64) -> Self {
        let first = observed.partition_point(|one| one.work_s <= above_s);
        let (observed, weights) = (&observed[first..], &weights[first..]);
        let own = if weights.is_empty() { 1.0 } else { weights.iter().sum::<f64>() / weights.len() as f64 };
        let mut at_risk = weights.iter().rev().sum::<f64>() + own;
        let (mut ends, mut survival, mut position) = (Vec::new(), 1.0, 0);
        while position < observed.len() {
            let work_s = observed[position].work_s;
            let alike = observed[position..].iter().take_while(|one| one.work_s.total_cmp(&work_s).is_eq());
            let last = position + alike.count();
            let (mut n_ended, mut ended, mut all) = (0, 0.0, 0.0);
            for (one, weight) in observed[position..last].iter().zip(&weights[position..last]) {
                all += weight;
                if one.has_ended {
                    n_ended += 1;
                    ended += weight;
                }
            }
            if n_ended > 0 {
                survival *= 1.0 - (ended / at_risk).min(1.0);
                ends.push(Ends { work_s, n_ended, survival });
            }
            // Rounding must not take it below the weight of the predicted job.
            at_risk = (at_risk - all).max(own);
            position = last;
        }
        Self { above_s, ends, exponent }
    }

    /// Quantile of the job's work, s, by a uniform number in [0, 1), with which it ascends.
    pub fn quantile(&self, uniform: f64) -> f64 {
        let Self { above_s, ends, exponent } = self;
        let sought = 1.0 - uniform;
        let position = ends.partition_point(|ends| ends.survival >= sought);
        let Some(found) = ends.get(position) else {
            let (longest, left) = ends.last().map_or((*above_s, 1.0), |ends| (ends.work_s, ends.survival));
            return (longest * (sought / left).powf(-1.0 / exponent)).min(WORK_MAX_S);
        };
        let before = position.checked_sub(1).map(|before| ends[before]);
        let (from, survival) = before.map_or((*above_s, 1.0), |ends| (ends.work_s, ends.survival));
        // The first of several equal ends stands for the work up to it, the others for exactly this work.
        let place = (survival - sought) / (survival - found.survival) * f64::from(found.n_ended);
        from + (found.work_s - from) * place.min(1.0)
    }
}

/// Hill's estimate of the tail's exponent from the longest of these jobs, which are in order of work; jobs that have not
/// ended count with the work that they have run.
pub fn exponent(observed: &[Observed]) -> f64 {
    let n_tail = whole((observed.len() as f64 * TAIL).ceil());
    let (shorter, longest) = observed.split_at(observed.len() - n_tail);
    let from = shorter.last().or(longest.first()).map_or(0.0, |one| one.work_s);
    let excess = |one: &Observed| if from > 0.0 { (one.work_s / from).ln() } else { 0.0 };
    let sum: f64 = longest.iter().map(excess).sum();
    let n_ended = longest.iter().filter(|one| one.has_ended).count() as f64;
    if n_ended == 0.0 || sum <= 0.0 {
        return 1.0;
    }
    (n_ended / sum).clamp(EXPONENTS[0], EXPONENTS[1])
}
