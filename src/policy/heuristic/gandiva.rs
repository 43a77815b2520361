//! Gandiva: time shared equally, and random pairs of jobs on the same workers when there are too few workers.
//!
//! While Σ_m s_m ≤ Σ_j w_j every job gets the isolated share. Beyond that, jobs without a partner are paired at
//! random with jobs of the same scale factor; a pair stays until a member finishes or it proves to gain nothing.
//! All m combinations, pairs and single jobs alike, then share the cluster equally:
//!
//!   X`[c,j]` = w_j / (m · s_c), each row divided by max(1, its sum)
//!
//! | symbol    | meaning                                                                              |
//! |-----------|--------------------------------------------------------------------------------------|
//! | N_j(a, b) | T[a,{a,b},j]/T`[a,j]` + T[b,{a,b},j]/T`[b,j]`, the pair's normalized throughput on type j |
//!
//! Source: Xiao et al., OSDI '18, as Gavel implements it for comparison.
//!
//! Where the two fidelities differ:
//! - when a pair is broken: `published`: when it cannot run on some type, or Σ_j N_j < `threshold`, a sum over
//!   types held against what one type ought to reach; `corrected`: when Σ_j w_j·N_j / Σ_j w_j < `threshold`, the
//!   mean over the workers on which it gets its time, N_j = 0 where it cannot run;
//! - how pairs are drawn: `published` draws two of the n unpaired jobs n times, and drops the draw if their
//!   scale factors differ; `corrected` shuffles the jobs of each scale factor and pairs neighbours that can share
//!   some type.
//!
//! In both, a pair gets no time where it cannot run: Gavel allots it, but never schedules it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::index::{Id, JobId, JobIndex, WorkerTypeId};
use crate::policy::decision::{Decision, Policy, PolicyError, RoundRules};
use crate::policy::heuristic::workers::{
    alphabetical, by_arrival, decide, keep_where_it_runs, positions, restored,
};
use crate::policy::heuristic::{Parameters, THRESHOLD_MAX, expect};
use crate::problem::Problem;
use crate::spec::Fidelity;
use crate::workload::Combination;
use crate::workload::python_random::PythonRandom;
use crate::workload::random::{SeedStreams, Stream};

const NAME: &str = "gandiva";

/// Parameters of the rule `gandiva`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct GandivaParameters {
    /// Normalized throughput below which a pair is broken, from 0 to 100. At 1 the two together do as much as one alone.
    pub threshold: f64,
    /// Whether the rule is as published or corrected: the run's `semantics` decide.
    #[serde(skip)]
    pub fidelity: Fidelity,
}

impl Parameters for GandivaParameters {
    fn check(&self) -> Result<(), (&'static str, String)> {
        let is_fine = (0.0..=THRESHOLD_MAX).contains(&self.threshold);
        expect(is_fine, "threshold", self.threshold, "a number from 0 to 100")
    }
}

impl Default for GandivaParameters {
    fn default() -> Self {
        Self { threshold: 1.0, fidelity: Fidelity::Corrected }
    }
}

/// Gandiva. Its state: the pairs and the random generator.
#[derive(Clone, Debug)]
pub struct Gandiva {
    parameters: GandivaParameters,
    state: State,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    pairs: BTreeSet<Combination<JobId>>,
    generator: Generator,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Generator {
    Published(Box<PythonRandom>),
    Corrected(Stream),
}

impl Gandiva {
    /// The rule with these parameters; no pairs yet.
    pub fn new(parameters: GandivaParameters, seed: u64) -> Self {
        let generator = match parameters.fidelity {
            Fidelity::Published => Generator::Published(Box::new(PythonRandom::new(seed))),
            Fidelity::Corrected => Generator::Corrected(SeedStreams::new(seed).stream(NAME)),
        };
        Self { parameters, state: State { pairs: BTreeSet::new(), generator } }
    }

    /// Forgets pairs of which a member is gone or that gain nothing.
    fn break_pairs(&mut self, problem: &Problem) {
        let positions = positions(problem);
        let Self { parameters, state } = self;
        state.pairs.retain(|pair| {
            let active = pair.members().all(|job| positions.contains_key(&job));
            active && {
                let pair = pair.map(|job| positions[&job]);
                let throughput = match parameters.fidelity {
                    Fidelity::Published => published_throughput(problem, pair),
                    Fidelity::Corrected => mean_throughput(problem, pair),
                };
                throughput >= parameters.threshold
            }
        });
    }

    /// Pairs jobs that have no partner.
    fn form_pairs(&mut self, problem: &Problem) {
        let paired: BTreeSet<JobId> = self.state.pairs.iter().flat_map(Combination::members).collect();
        let mut alone = by_arrival(problem);
        alone.retain(|job| !paired.contains(&problem.jobs()[*job].id));
        let formed = match &mut self.state.generator {
            Generator::Published(python) => pairs_as_published(problem, alone, python),
            Generator::Corrected(stream) => pairs_as_meant(problem, &alone, stream),
        };
        self.state.pairs.extend(formed.into_iter().map(|pair| pair.map(|job| problem.jobs()[job].id)));
    }
}

/// Pairs drawn as by Gavel: two draws, as often as there are jobs at first.
fn pairs_as_published(
    problem: &Problem,
    mut alone: Vec<JobIndex>,
    python: &mut PythonRandom,
) -> Vec<Combination<JobIndex>> {
    let scale_factor = |job: JobIndex| problem.jobs()[job].scale_factor;
    let mut pairs = Vec::new();
    for _ in 0..alone.len() {
        if alone.len() < 2 {
            break;
        }
        let drawn = python.sample(&alone, 2);
        if scale_factor(drawn[0]) == scale_factor(drawn[1]) {
            alone.retain(|job| !drawn.contains(job));
            pairs.push(Combination::pair(drawn[0], drawn[1]));
        }
    }
    pairs
}

/// Pairs of neighbours in a random order of the jobs of each scale factor, where they can share a type.
fn pairs_as_meant(problem: &Problem, alone: &[JobIndex], stream: &mut Stream) -> Vec<Combination<JobIndex>> {
    let mut by_scale_factor: BTreeMap<u32, Vec<JobIndex>> = BTreeMap::new();
    for job in alone {
        by_scale_factor.entry(problem.jobs()[*job].scale_factor).or_default().push(*job);
    }
    let types = problem.cluster().types();
    let mut pairs = Vec::new();
    for mut jobs in by_scale_factor.into_values() {
        stream.shuffle(&mut jobs);
        for neighbours in jobs.chunks_exact(2) {
            let pair = Combination::pair(neighbours[0], neighbours[1]);
            if types.ids().any(|worker_type| problem.colocated(pair, worker_type).is_some()) {
                pairs.push(pair);
            }
        }
    }
    pairs
}

/// N_j of a pair; none where it cannot run.
fn normalized(problem: &Problem, pair: Combination<JobIndex>, worker_type: WorkerTypeId) -> Option<[f64; 2]> {
    let both = problem.colocated(pair, worker_type)?;
    let second = pair.second()?;
    let alone = |job| problem.throughput()[(job, worker_type)];
    Some([both[0] / alone(pair.first()), both[1] / alone(second)])
}

/// Σ_j N_j over types that have workers, in the order and grouping of Gavel's sum; 0 if one cannot run the pair.
fn published_throughput(problem: &Problem, pair: Combination<JobIndex>) -> f64 {
    let mut sum = 0.0;
    for worker_type in alphabetical(problem) {
        if problem.cluster().types()[worker_type].n_workers == 0 {
            continue;
        }
        let Some([first, second]) = normalized(problem, pair, worker_type) else { return 0.0 };
        sum += first;
        sum += second;
    }
    sum
}

/// Σ_j w_j·N_j / Σ_j w_j.
fn mean_throughput(problem: &Problem, pair: Combination<JobIndex>) -> f64 {
    let (mut gained, mut workers) = (0.0, 0.0);
    for (worker_type, kind) in problem.cluster().types().enumerate() {
        let w = f64::from(kind.n_workers);
        gained += w * normalized(problem, pair, worker_type).map_or(0.0, |[first, second]| first + second);
        workers += w;
    }
    gained / workers
}

/// The equal shares of each combination, per type. A pair gets nothing where it cannot run; a single job likewise, except
/// under `Published`.
fn equal_shares(
    problem: &Problem,
    combinations: Vec<Combination<JobIndex>>,
    fidelity: Fidelity,
) -> Vec<(Combination<JobIndex>, Vec<f64>)> {
    let m = combinations.len() as f64;
    let types = problem.cluster().types();
    let order = alphabetical(problem);
    let row = |combination: Combination<JobIndex>| {
        let s = f64::from(problem.jobs()[combination.first()].scale_factor);
        let mut shares: Vec<f64> = types.iter().map(|kind| f64::from(kind.n_workers) / m / s).collect();
        let sum: f64 = order.iter().map(|worker_type| shares[worker_type.index()]).sum();
        for (worker_type, share) in types.ids().zip(&mut shares) {
            let cannot = combination.is_pair() && problem.colocated(combination, worker_type).is_none();
            *share = if cannot { 0.0 } else { *share / sum.max(1.0) };
        }
        if fidelity == Fidelity::Corrected {
            keep_where_it_runs(problem, combination.first(), &mut shares);
        }
        (combination, shares)
    };
    combinations.into_iter().map(row).collect()
}

impl Policy for Gandiva {
    fn name(&self) -> &str {
        NAME
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        self.break_pairs(problem);
        let requested: u64 = problem.jobs().iter().map(|active| u64::from(active.scale_factor)).sum();
        let combinations = if requested <= problem.cluster().n_workers() {
            problem.jobs().ids().map(Combination::single).collect()
        } else {
            self.form_pairs(problem);
            let positions = positions(problem);
            let pairs = self.state.pairs.iter().map(|pair| pair.map(|job| positions[&job]));
            let mut combinations: Vec<_> = pairs.collect();
            let paired: BTreeSet<JobIndex> = combinations.iter().flat_map(Combination::members).collect();
            let alone = problem.jobs().ids().filter(|job| !paired.contains(job));
            combinations.extend(alone.map(Combination::single));
            combinations.sort_by_key(|combination| (combination.is_pair(), *combination));
            combinations
        };
        let rules = RoundRules { pair_fillers: true, ..RoundRules::default() };
        decide(NAME, problem, equal_shares(problem, combinations, self.parameters.fidelity), rules)
    }

    fn state(&self) -> serde_json::Value {
        serde_json::json!(self.state)
    }

    fn restore(&mut self, state: &serde_json::Value) -> Result<(), PolicyError> {
        let state: State = restored(NAME, state)?;
        let published = matches!(state.generator, Generator::Published(_));
        if published != (self.parameters.fidelity == Fidelity::Published) {
            return Err(PolicyError::State { policy: NAME.to_owned() });
        }
        self.state = state;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
