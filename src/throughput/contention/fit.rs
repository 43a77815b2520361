//! Judgement of a contention model: errors in and out of sample, beside trivial predictions.
//!
//! Errors are in retained fraction (0…1) and unweighted. Held out means k-fold: unordered pairs are dealt at random into k folds,
//! each fold is predicted by a model fitted to the others, and every pair is held out once, with both of its directions and on
//! every worker type; so no measurement of a pair helps to predict it.

use std::fmt;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A measurement: the fraction of its isolated throughput that `job` keeps beside `other`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Position of the worker type.
    pub worker_type: usize,
    /// Position of the job type (or configuration) measured.
    pub job: usize,
    /// Position of its neighbour.
    pub other: usize,
    /// The fraction of its isolated throughput that `job` keeps.
    pub retained: f64,
}

/// The settings of a fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitSettings {
    /// The fraction of pairs held out at a time, in (0, 0.5]; the number of folds is its inverse, rounded.
    pub held_out: f64,
    /// Random starts per fit, ≥ 1; the one of least cost is kept.
    pub starts: usize,
    /// The seed of folds and starts.
    pub seed: u64,
}

impl Default for FitSettings {
    /// The default: five folds, four starts, seed 0.
    fn default() -> Self {
        Self { held_out: 0.2, starts: 4, seed: 0 }
    }
}

impl FitSettings {
    /// The number of folds.
    ///
    /// # Errors
    /// If `held_out` is outside (0, 0.5] or the number of starts is 0.
    pub fn folds(&self) -> Result<usize, FitError> {
        if !(self.held_out > 0.0 && self.held_out <= 0.5) {
            return Err(FitError::HeldOut { value: self.held_out });
        }
        if self.starts == 0 {
            return Err(FitError::NoStart);
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "2 to 1000 after the clamp"
        )]
        let folds = (1.0 / self.held_out).round().min(1000.0) as usize;
        Ok(folds)
    }
}

/// Why measurements cannot be fitted.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum FitError {
    /// A fraction to hold out that leaves no pairs to fit, or none to judge by.
    #[error("held-out fraction {value}, expected a number above 0, at most 0.5")]
    HeldOut {
        /// The fraction.
        value: f64,
    },
    /// No random start.
    #[error("0 starts, expected at least 1")]
    NoStart,
    /// No resource to share.
    #[error("no shared resource, expected at least one name")]
    NoResource,
    /// Too few pairs to fit and judge by.
    #[error("{found} measured pairs, expected at least {expected}: one per fold")]
    TooFew {
        /// Number of unordered pairs.
        found: usize,
        /// Number of folds.
        expected: usize,
    },
}

/// Deviations of predictions from measurements, in retained fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Errors {
    /// Number of measurements.
    pub count: usize,
    /// Root of the mean squared error.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
    /// Largest absolute error.
    pub max: f64,
}

impl Errors {
    /// The errors of pairs (predicted, measured).
    pub fn of(pairs: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut errors = Self::default();
        let (mut squares, mut absolutes) = (0.0, 0.0);
        for (predicted, measured) in pairs {
            let miss: f64 = (predicted - measured).abs();
            errors.count += 1;
            squares += miss * miss;
            absolutes += miss;
            errors.max = errors.max.max(miss);
        }
        if errors.count > 0 {
            errors.rmse = (squares / errors.count as f64).sqrt();
            errors.mae = absolutes / errors.count as f64;
        }
        errors
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rmse {:.4}, mae {:.4}, max {:.4} ({} measurements)",
            self.rmse, self.mae, self.max, self.count
        )
    }
}

/// A prediction with its errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judged {
    /// The name of the model, or of the trivial prediction, that is judged.
    pub name: String,
    /// Errors on the measurements that it was fitted to.
    pub in_sample: Errors,
    /// Errors on measurements that it was not fitted to.
    pub held_out: Errors,
}

/// The quality of a fitted model's predictions, beside trivial predictions and rejected variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitReport {
    /// The model with its variant.
    pub model: Judged,
    /// The quality of the model's predictions by worker type; empty if there is only one type.
    pub by_worker_type: Vec<Judged>,
    /// Trivial predictions of the same measurements.
    pub baselines: Vec<Judged>,
    /// Variants of the model that were tried and were worse on held-out pairs.
    pub rejected: Vec<Judged>,
    /// Number of folds of the held-out errors.
    pub folds: usize,
    /// The seed of folds and starts.
    pub seed: u64,
}

/// The fold of every observation: [observation], in 0..folds.
fn deal(observations: &[Observation], folds: usize, seed: u64) -> Result<Vec<usize>, FitError> {
    let pair = |o: &Observation| (o.job.min(o.other), o.job.max(o.other));
    let mut pairs: Vec<_> = observations.iter().map(pair).collect();
    pairs.sort_unstable();
    pairs.dedup();
    if pairs.len() < folds {
        return Err(FitError::TooFew { found: pairs.len(), expected: folds });
    }
    let mut generator = Pcg64::seed_from_u64(seed);
    let mut dealt: Vec<(u64, (usize, usize))> =
        pairs.into_iter().map(|pair| (generator.next_u64(), pair)).collect();
    dealt.sort_unstable();
    let mut fold_of: Vec<_> =
        dealt.into_iter().enumerate().map(|(rank, (_, pair))| (pair, rank % folds)).collect();
    fold_of.sort_unstable();
    let find = |o: &Observation| {
        let place = fold_of.binary_search_by_key(&pair(o), |(pair, _)| *pair);
        fold_of[place.unwrap_or_else(|_| unreachable!("every pair was dealt"))].1
    };
    Ok(observations.iter().map(find).collect())
}

/// A fitted predictor.
pub(super) trait Predict {
    /// The fraction retained.
    fn predict(&self, observation: &Observation) -> f64;
}

/// Observations, and the folds by which variants are judged.
pub(super) struct Trial<'a> {
    pub(super) observations: &'a [Observation],
    pub(super) worker_types: &'a [String],
    pub(super) folds: usize,
    pub(super) settings: &'a FitSettings,
    fold_of: Vec<usize>,
}

/// A variant fitted to all observations, and its prediction of each observation when that is held out.
pub(super) struct Candidate<M> {
    name: &'static str,
    fitted: M,
    held_out: Vec<f64>,
}

impl<'a> Trial<'a> {
    pub(super) fn new(
        observations: &'a [Observation],
        worker_types: &'a [String],
        settings: &'a FitSettings,
    ) -> Result<Self, FitError> {
        let folds = settings.folds()?;
        let fold_of = deal(observations, folds, settings.seed)?;
        Ok(Self { observations, worker_types, folds, settings, fold_of })
    }

    /// Fits a variant to all observations, and to all but each fold.
    pub(super) fn try_out<M: Predict + Send>(
        &self,
        name: &'static str,
        fit: impl Fn(&[Observation]) -> M + Sync,
    ) -> Candidate<M> {
        // The last fit holds nothing out.
        let without = |fold: usize| -> Vec<Observation> {
            let all = self.observations.iter().zip(&self.fold_of);
            all.filter(|(_, own)| **own != fold).map(|(o, _)| *o).collect()
        };
        let mut fits: Vec<M> = (0..=self.folds).into_par_iter().map(|fold| fit(&without(fold))).collect();
        let fitted = fits.remove(self.folds);
        let held_out =
            self.observations.iter().zip(&self.fold_of).map(|(o, fold)| fits[*fold].predict(o)).collect();
        Candidate { name, fitted, held_out }
    }

    /// The candidate that predicts held-out pairs best (the earlier one of equals), with the errors of all.
    ///
    /// # Panics
    /// If there is no candidate.
    pub(super) fn choose<M: Predict>(&self, mut candidates: Vec<Candidate<M>>) -> (M, FitReport) {
        candidates.sort_by(|one, other| {
            let rmse = |candidate| self.judged(candidate, candidate.name, None).held_out.rmse;
            rmse(one).total_cmp(&rmse(other))
        });
        let best = candidates.remove(0);
        let on = |(column, name): (usize, &String)| self.judged(&best, name, Some(column));
        let report = FitReport {
            by_worker_type: self
                .worker_types
                .iter()
                .enumerate()
                .map(on)
                .filter(|j| j.in_sample.count > 0)
                .collect(),
            model: self.judged(&best, best.name, None),
            baselines: baselines(self.observations, &self.fold_of, self.folds),
            rejected: candidates.iter().map(|other| self.judged(other, other.name, None)).collect(),
            folds: self.folds,
            seed: self.settings.seed,
        };
        (best.fitted, report)
    }

    /// The errors on one worker type, or on all.
    fn judged<M: Predict>(&self, candidate: &Candidate<M>, name: &str, worker_type: Option<usize>) -> Judged {
        let wanted = |o: &&Observation| worker_type.is_none_or(|only| only == o.worker_type);
        let seen = self.observations.iter().filter(wanted).map(|o| (candidate.fitted.predict(o), o.retained));
        let unseen = self.observations.iter().zip(&candidate.held_out);
        let unseen = unseen.filter(|(o, _)| wanted(o)).map(|(o, predicted)| (*predicted, o.retained));
        Judged { name: name.to_owned(), in_sample: Errors::of(seen), held_out: Errors::of(unseen) }
    }
}

/// Predictions that ignore the neighbour: no contention, the mean, and the job's mean; per worker type.
fn baselines(observations: &[Observation], fold_of: &[usize], folds: usize) -> Vec<Judged> {
    type Key = fn(&Observation) -> (usize, usize);
    let means: [(&str, Key); 2] = [
        ("mean of the worker type", |o| (o.worker_type, 0)),
        ("mean of the job type", |o| (o.worker_type, o.job)),
    ];
    let unity = Errors::of(observations.iter().map(|o| (1.0, o.retained)));
    let mut judged = vec![Judged { name: "no contention".to_owned(), in_sample: unity, held_out: unity }];
    for (name, key) in means {
        let mean_over = |skip: Option<usize>, of: &Observation| {
            let alike = |(o, fold): &(&Observation, &usize)| Some(**fold) != skip && key(o) == key(of);
            mean(observations.iter().zip(fold_of).filter(alike).map(|(o, _)| o.retained))
        };
        let overall = mean(observations.iter().map(|o| o.retained)).unwrap_or(1.0);
        let predict = |skip: Option<usize>| {
            observations
                .iter()
                .zip(fold_of)
                .filter(move |(_, fold)| skip.is_none_or(|k| **fold == k))
                .map(move |(o, _)| (mean_over(skip, o).unwrap_or(overall), o.retained))
        };
        let in_sample = Errors::of(predict(None));
        let held_out = Errors::of((0..folds).flat_map(|k| predict(Some(k)).collect::<Vec<_>>()));
        judged.push(Judged { name: name.to_owned(), in_sample, held_out });
    }
    judged
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_usize, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}

/// A number uniform on [low, high).
pub(super) fn uniform(generator: &mut Pcg64, low: f64, high: f64) -> f64 {
    // 53 random bits fill a double's mantissa.
    let unit = (generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    low + (high - low) * unit
}

/// The logistic function 1 / (1 + e^−x), which maps all numbers to (0, 1).
pub(super) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
