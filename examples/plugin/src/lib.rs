//! A plug-in with a kind of policies of its own: the heaviest jobs first, each on its fastest worker type with room for it.
//!
//! A policy file has `kind: weighted_first` and, optionally, the most jobs that run at once: `at_most: 8`.

use apportion::Problem;
use apportion::allocation::Allocation;
use apportion::catalog::{Catalog, CatalogError, Plugin, PolicyOptions, Ready};
use apportion::policy::{Decision, Policy, PolicyError};
use apportion::spec::policy::Plugged;
use apportion::spec::{PolicyDocument, SpecError};
use apportion::workload::Combination;
use serde::Deserialize;

/// The fields that policy files of this kind have beside `name`, `summary` and the like.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(default = "unbounded")]
    at_most: usize,
}

fn unbounded() -> usize {
    usize::MAX
}

/// The plug-in: `Catalog::embedded().with(WeightedFirst)`.
#[derive(Clone, Copy, Debug)]
pub struct WeightedFirst;

impl Plugin for WeightedFirst {
    fn kind(&self) -> &'static str {
        "weighted_first"
    }

    fn read(&self, document: &PolicyDocument) -> Result<Plugged, SpecError> {
        document.own_fields::<Fields>()?;
        Ok(Plugged { kind: self.kind().to_owned(), inside_rounds: false, pairs: false })
    }

    fn build(
        &self,
        _: &Catalog,
        document: &PolicyDocument,
        _: &PolicyOptions,
    ) -> Result<Ready, CatalogError> {
        let Fields { at_most } = document.own_fields()?;
        Ok(Ready::Allocating(Box::new(Heaviest { name: document.name.clone(), at_most })))
    }
}

#[derive(Debug)]
struct Heaviest {
    name: String,
    at_most: usize,
}

impl Policy for Heaviest {
    fn name(&self) -> &str {
        &self.name
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let (jobs, types) = (problem.jobs(), problem.cluster().types());
        let mut free: Vec<u32> = types.iter().map(|kind| kind.n_workers).collect();
        let mut order: Vec<_> = jobs.ids().collect();
        order.sort_by(|one, other| jobs[*other].weight.total_cmp(&jobs[*one].weight));
        let mut rows = Vec::new();
        for job in order.into_iter().take(self.at_most) {
            let speed = |kind: &_| problem.throughput()[(job, *kind)];
            let fits = |(kind, free): (_, &u32)| {
                (*free >= jobs[job].scale_factor && speed(&kind) > 0.0).then_some(kind)
            };
            let fastest =
                types.ids().zip(&free).filter_map(fits).max_by(|a, b| speed(a).total_cmp(&speed(b)));
            let Some(fastest) = fastest else { continue };
            let shares: Vec<f64> = types.ids().map(|kind| f64::from(u8::from(kind == fastest))).collect();
            if let Some((_, free)) = types.ids().zip(&mut free).find(|(kind, _)| *kind == fastest) {
                *free -= jobs[job].scale_factor;
            }
            rows.push((Combination::single(job), shares));
        }
        let allocation = Allocation::check(problem, rows);
        allocation
            .map(Decision::of)
            .map_err(|source| PolicyError::Allocation { policy: self.name.clone(), source })
    }
}
