//! Least squares for the [`resource`](super::resource) model.
//!
//!   minimise  Σ (ρ(a | b; d, w, κ) − measured)²  +  ridge · |p − prior|²
//!
//! over p = (x, y, z) with d = logistic(x), w = e^y, κ = logistic(z), by Levenberg–Marquardt from several random
//! starts. ρ is smooth but where the most starved resource, or which of φ and 1 − d binds, changes. Two variants are
//! fitted and the one that predicts held-out pairs better is kept: demands of each worker type on their own, or
//! shared ones with a scale per worker type and resource, d = logistic(x_r(a) + s_r(t)).

use std::collections::BTreeMap;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;
use rayon::prelude::*;

use super::fit::{FitError, FitReport, FitSettings, Observation, Predict, Trial, logistic, uniform};
use super::levenberg_marquardt::{Minimum, Prior, Residuals, Visitor, minimize};
use super::resource::{Demands, ResourceModel, SharedWorker, retained};
use crate::index::Id;
use crate::throughput::Throughputs;

/// Fits demands to every measured pair of `throughputs`, and judges them on held-out pairs.
///
/// Pairs of one scale factor at which none was measured are not observations; a pair that stands still although both members run
/// alone goes to `cannot_share`.
///
/// # Errors
/// If the settings are out of range or too few pairs are measured.
pub fn fit_resource(
    throughputs: &Throughputs,
    resources: &[String],
    settings: &FitSettings,
) -> Result<(ResourceModel, FitReport), FitError> {
    if resources.is_empty() {
        return Err(FitError::NoResource);
    }
    let pairs = MeasuredPairs::of(throughputs);
    let layout = Layout {
        n_types: pairs.worker_types.len(),
        n_jobs: pairs.job_types.len(),
        n_resources: resources.len(),
    };
    let trial = Trial::new(&pairs.observations, &pairs.worker_types, settings)?;
    let variants = [
        ("resource, demands per worker type", Variant::PerWorkerType),
        ("resource, shared demands scaled per worker type", Variant::Scaled),
    ];
    let candidates = variants
        .into_iter()
        .filter(|(_, variant)| *variant == Variant::PerWorkerType || pairs.worker_types.len() > 1)
        .map(|(name, variant)| trial.try_out(name, |seen| Fitted::to(variant, seen, &layout, settings)))
        .collect();
    let (fitted, report) = trial.choose(candidates);
    Ok((fitted.into_model(&pairs, resources), report))
}

/// The measured pairs, by position of worker type and job type.
struct MeasuredPairs {
    worker_types: Vec<String>,
    job_types: Vec<String>,
    observations: Vec<Observation>,
    /// The pairs that stand still together.
    apart: Vec<Apart>,
}

/// Two job types that stand still together on a worker type, by position, the first job type no higher than the second.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Apart {
    worker_type: usize,
    jobs: [usize; 2],
}

impl MeasuredPairs {
    fn of(throughputs: &Throughputs) -> Self {
        let mut job_types: Vec<String> = Vec::new();
        let mut job_of = Vec::new();
        for key in throughputs.rows() {
            let known = job_types.iter().position(|name| *name == key.job_type);
            job_of.push(known.unwrap_or_else(|| {
                job_types.push(key.job_type.clone());
                job_types.len() - 1
            }));
        }
        let mut pairs = Self {
            worker_types: throughputs.worker_types().iter().cloned().collect(),
            job_types,
            observations: Vec::new(),
            apart: Vec::new(),
        };
        let scale_factor = |row| throughputs.rows()[row].scale_factor;
        for (worker_type, column) in throughputs.worker_types().ids().enumerate() {
            let together = |row, other| {
                throughputs.colocated(row, other, column) > 0.0
                    && throughputs.colocated(other, row, column) > 0.0
            };
            let rows: Vec<_> =
                throughputs.rows().ids().filter(|row| throughputs.alone(*row, column) > 0.0).collect();
            for (row, other) in rows.iter().flat_map(|row| rows.iter().map(move |other| (*row, *other))) {
                if scale_factor(row) != scale_factor(other) {
                    continue;
                }
                let position = |row| job_of[Id::index(row)];
                let (job, neighbour) = (position(row), position(other));
                if together(row, other) {
                    let retained = throughputs.colocated(row, other, column) / throughputs.alone(row, column);
                    pairs.observations.push(Observation { worker_type, job, other: neighbour, retained });
                } else if job <= neighbour {
                    let alike = |a: &_| scale_factor(*a) == scale_factor(row);
                    let measured =
                        rows.iter().filter(|a| alike(a)).any(|a| rows.iter().any(|b| together(*a, *b)));
                    let apart = Apart { worker_type, jobs: [job, neighbour] };
                    if measured && !pairs.apart.contains(&apart) {
                        pairs.apart.push(apart);
                    }
                }
            }
        }
        pairs
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    PerWorkerType,
    Scaled,
}

/// Fitted demands and efficiency: [type], each [job type].
struct Fitted {
    demands: Vec<Vec<Demands>>,
    efficiency: Vec<f64>,
}

impl Fitted {
    fn to(variant: Variant, observations: &[Observation], all: &Layout, settings: &FitSettings) -> Self {
        let groups: Vec<Vec<usize>> = match variant {
            Variant::PerWorkerType => (0..all.n_types).map(|only| vec![only]).collect(),
            Variant::Scaled => vec![(0..all.n_types).collect()],
        };
        let mut fitted = Self { demands: Vec::new(), efficiency: Vec::new() };
        for group in groups {
            let layout = Layout { n_types: group.len(), ..*all };
            let first = group[0];
            let own: Vec<Observation> = observations
                .iter()
                .filter(|o| group.contains(&o.worker_type))
                .map(|o| Observation { worker_type: o.worker_type - first, ..*o })
                .collect();
            let best = layout.best_of_starts(&own, settings);
            for column in 0..group.len() {
                fitted.efficiency.push(logistic(best[layout.efficiency(column)]));
                let demands = (0..all.n_jobs).map(|job| layout.demands(&best, column, job)).collect();
                fitted.demands.push(demands);
            }
        }
        fitted
    }

    /// The model, its resources ordered by mean demand on each worker type so that the most wanted comes first.
    fn into_model(self, pairs: &MeasuredPairs, resources: &[String]) -> ResourceModel {
        let mut worker_types = BTreeMap::new();
        for (column, (demands, efficiency)) in self.demands.into_iter().zip(self.efficiency).enumerate() {
            let mut order: Vec<usize> = (0..resources.len()).collect();
            let total = |r: &usize| demands.iter().map(|d| d.demand[*r]).sum::<f64>();
            order.sort_by(|one, other| total(other).total_cmp(&total(one)).then(one.cmp(other)));
            let sorted = |values: &[f64]| order.iter().map(|r| values[*r]).collect::<Vec<f64>>();
            let by_name = |(job, d): (usize, &Demands)| {
                (
                    pairs.job_types[job].clone(),
                    Demands { demand: sorted(&d.demand), weight: sorted(&d.weight) },
                )
            };
            let name = |job: usize| pairs.job_types[job].clone();
            let here = pairs.apart.iter().filter(|apart| apart.worker_type == column);
            let shared = SharedWorker {
                efficiency,
                demands: demands.iter().enumerate().map(by_name).collect(),
                cannot_share: here.map(|apart| apart.jobs.map(name)).collect(),
            };
            worker_types.insert(pairs.worker_types[column].clone(), shared);
        }
        ResourceModel { resources: resources.to_vec(), worker_types }
    }
}

impl Predict for Fitted {
    fn predict(&self, o: &Observation) -> f64 {
        let demands = &self.demands[o.worker_type];
        self.efficiency[o.worker_type] * demands[o.job].beside(&demands[o.other])
    }
}

/// The positions of the quantities in the vector of parameters: x, y, z, then s if there are several worker types.
#[derive(Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "counts of three things")]
struct Layout {
    n_types: usize,
    n_jobs: usize,
    n_resources: usize,
}

/// The strength of the prior: a parameter one unit from its prior costs as much as one measurement missed by 0.03.
const RIDGE: f64 = 1e-3;
/// The prior of logit κ: κ = 0.95 in the absence of evidence.
const EFFICIENCY_PRIOR: f64 = 3.0;

impl Layout {
    fn demand(self, job: usize, resource: usize) -> usize {
        job * self.n_resources + resource
    }

    fn weight(self, job: usize, resource: usize) -> usize {
        (self.n_jobs + job) * self.n_resources + resource
    }

    fn efficiency(self, worker_type: usize) -> usize {
        2 * self.n_jobs * self.n_resources + worker_type
    }

    fn scale(self, worker_type: usize, resource: usize) -> Option<usize> {
        let start = 2 * self.n_jobs * self.n_resources + self.n_types;
        (self.n_types > 1).then_some(start + worker_type * self.n_resources + resource)
    }

    fn n_parameters(self) -> usize {
        let scales = if self.n_types > 1 { self.n_types * self.n_resources } else { 0 };
        2 * self.n_jobs * self.n_resources + self.n_types + scales
    }

    fn demand_of(self, parameters: &[f64], worker_type: usize, job: usize, resource: usize) -> f64 {
        let scale = self.scale(worker_type, resource).map_or(0.0, |at| parameters[at]);
        logistic(parameters[self.demand(job, resource)] + scale)
    }

    fn demands(self, parameters: &[f64], worker_type: usize, job: usize) -> Demands {
        let resources = 0..self.n_resources;
        Demands {
            demand: resources.clone().map(|r| self.demand_of(parameters, worker_type, job, r)).collect(),
            weight: resources.map(|r| parameters[self.weight(job, r)].exp()).collect(),
        }
    }

    fn best_of_starts(self, observations: &[Observation], settings: &FitSettings) -> Vec<f64> {
        let mut center = vec![0.0; self.n_parameters()];
        for column in 0..self.n_types {
            center[self.efficiency(column)] = EFFICIENCY_PRIOR;
        }
        let prior = Prior { center, ridge: RIDGE };
        let residuals = ResourceResiduals { layout: self, observations };
        let mut generator = Pcg64::seed_from_u64(settings.seed);
        let starts: Vec<Vec<f64>> =
            (0..settings.starts).map(|_| self.start(&prior, &mut generator)).collect();
        let minima: Vec<Minimum> =
            starts.into_par_iter().map(|start| minimize(&residuals, &prior, start)).collect();
        let best = minima.into_iter().min_by(|one, other| one.cost.total_cmp(&other.cost));
        best.map_or(prior.center, |best| best.parameters)
    }

    fn start(self, prior: &Prior, generator: &mut Pcg64) -> Vec<f64> {
        let mut start = prior.center.clone();
        for job in 0..self.n_jobs {
            for r in 0..self.n_resources {
                start[self.demand(job, r)] = uniform(generator, -1.0, 2.0);
                start[self.weight(job, r)] = uniform(generator, -0.5, 0.5);
            }
        }
        start
    }
}

struct ResourceResiduals<'a> {
    layout: Layout,
    observations: &'a [Observation],
}

impl Residuals for ResourceResiduals<'_> {
    fn each(&self, parameters: &[f64], visit: &mut Visitor<'_>) {
        let layout = self.layout;
        for o in self.observations {
            let demand = |job, r| layout.demand_of(parameters, o.worker_type, job, r);
            let fair =
                |r| logistic(parameters[layout.weight(o.job, r)] - parameters[layout.weight(o.other, r)]);
            let kept = |r| retained(demand(o.job, r), demand(o.other, r), fair(r));
            let (starved, share) = (0..layout.n_resources)
                .map(|r| (r, kept(r)))
                .min_by(|one, other| one.1.total_cmp(&other.1))
                .unwrap_or((0, 1.0));
            let at = layout.efficiency(o.worker_type);
            let efficiency = logistic(parameters[at]);
            let mut slopes = [(at, share * efficiency * (1.0 - efficiency)); 7];
            let mut n_slopes = 1;
            let mut add = |slope: (usize, f64)| {
                slopes[n_slopes] = slope;
                n_slopes += 1;
            };
            if share < 1.0 {
                let (own, other, fair) = (demand(o.job, starved), demand(o.other, starved), fair(starved));
                let by_own = -efficiency * share * (1.0 - own);
                let mut by_scale = by_own;
                add((layout.demand(o.job, starved), by_own));
                if fair >= 1.0 - other {
                    let by_fair = efficiency * fair * (1.0 - fair) / own;
                    add((layout.weight(o.job, starved), by_fair));
                    add((layout.weight(o.other, starved), -by_fair));
                } else {
                    let by_other = -efficiency * other * (1.0 - other) / own;
                    by_scale += by_other;
                    add((layout.demand(o.other, starved), by_other));
                }
                if let Some(at) = layout.scale(o.worker_type, starved) {
                    add((at, by_scale));
                }
            }
            visit(efficiency * share - o.retained, &slopes[..n_slopes]);
        }
    }
}
