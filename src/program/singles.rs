//! The data of a problem in which no two jobs share workers, for methods that write no program.
//!
//!   time:      Σ_j Y`[m,j]` ≤ n_m                               for every member
//!   demand:    Σ_j T`[m,j]`·Y`[m,j]` / n_m ≥ b_m + d_m·t          for every member
//!   capacity:  Σ_m s_m·Y`[m,j]` ≤ w_j                           for every worker type
//!
//! A member m is a class of n_m identical jobs; Y is class time (see [`instance`](super::instance)).
//!
//! The [`Goal`] is the highest level t, the highest level above the throughputs b that members already have, a linear
//! objective at a fixed level, or a sum of logarithms without demands.
//! [`with_demands`](super::BoundObjective::with_demands) writes the same rows term by term; for a million members
//! writing them takes longer than solving them.

use super::binding::BoundObjective;
use super::expression::{Expr, Fold, Node, Subject};
use super::instance::Instance;
use super::inversion::{self, Inversion, StepKind};
use super::objective::Route;
use super::standard::Sense;

/// Members that share no workers, and the throughput that a level requires of each.
#[derive(Clone, Debug)]
pub struct Singles<'a> {
    instance: &'a Instance,
    /// Throughput required per unit of the level, ≥ 0: `[members]`.
    pub demand: Vec<f64>,
}

/// The objective of a search over [`Singles`].
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    /// The highest level.
    Level,
    /// The highest level t with throughput ≥ base + demand·t.
    Above {
        /// Throughput required at a level of zero, ≥ 0: `[members]`.
        base: &'a [f64],
        /// Class times that provide it: `[members × K]`.
        given: &'a [f64],
    },
    /// The largest Σ worth·by_type·throughput, over members and types, at a fixed level.
    Worth {
        /// The level that every member must have.
        level: f64,
        /// Value of a unit of each member's throughput, ≥ 0: `[members]`.
        worth: &'a [f64],
        /// Factor of throughput on each worker type, ≥ 0: `[K]`.
        by_type: &'a [f64],
        /// Class times that provide the level, to start from: `[members × K]`, or empty.
        given: &'a [f64],
    },
    /// The largest sum of logarithms.
    Logarithms(&'a Logarithms),
}

/// A sum of logarithms: Σ weight·log(throughput) + constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Logarithms {
    /// Weight of each member's logarithm, for all its jobs together, > 0: `[members]`.
    pub weight: Vec<f64>,
    /// The constant term.
    pub constant: f64,
}

/// A sum of logarithms that is maximized over members alone.
#[derive(Clone, Debug)]
pub struct LogarithmicSum<'a> {
    /// The members; none requires any throughput.
    pub singles: Singles<'a>,
    /// The sum.
    pub logarithms: Logarithms,
}

impl Goal<'_> {
    /// The throughput required of a member at a level of zero.
    pub fn base(self, member: usize) -> f64 {
        if let Self::Above { base, .. } = self { base[member] } else { 0.0 }
    }
}

impl BoundObjective<'_> {
    /// The members with these demands, `[members]`; `None` if the program has more than that: pairs, the policy's own
    /// constraints, or levels of other quantities than throughput; or if demands are not finite and ≥ 0, or are all 0.
    pub fn singles(&self, demand: Vec<f64>) -> Option<Singles<'_>> {
        let finite = demand.iter().all(|demand| *demand >= 0.0 && demand.is_finite());
        let fits = self.is_of_throughputs() && self.instance.pairs.is_empty() && finite;
        (fits && demand.iter().any(|demand| *demand > 0.0))
            .then_some(Singles { instance: self.instance, demand })
    }

    /// The members and the sum of logarithms that is the objective; `None` for any other objective, with pairs or the
    /// policy's own constraints, or if a weight is not finite and > 0.
    pub fn logarithms(&self) -> Option<LogarithmicSum<'_>> {
        let part = self.summand_of_logarithms()?;
        let steps: Vec<Option<&Expr>> = part.steps.iter().map(|step| step.datum.as_ref()).collect();
        let data = self.step_data(&steps);
        let mut logarithms = Logarithms { weight: Vec::new(), constant: 0.0 };
        for (jobs, data) in self.instance.multiplicity.iter().zip(data.chunks_exact(steps.len().max(1))) {
            let kinds = part.steps.iter().map(|step| step.kind);
            let (weight, constant) = logarithm(kinds.zip(data.iter().copied()))?;
            logarithms.weight.push(jobs * weight);
            logarithms.constant += jobs * constant;
        }
        let known = logarithms.weight.len() == self.instance.n_members() && logarithms.constant.is_finite();
        let demand = vec![0.0; self.instance.n_members()];
        known.then_some(LogarithmicSum { singles: Singles { instance: self.instance, demand }, logarithms })
    }

    /// Whether the objective is a weighted sum of logarithms of throughputs plus constants, without pairs and
    /// constraints. The values of weights are not checked.
    pub fn adds_logarithms(&self) -> bool {
        let ones = |part: Inversion| logarithm(part.steps.iter().map(|step| (step.kind, 1.0)));
        self.summand_of_logarithms().and_then(ones).is_some()
    }

    /// The steps from one job's summand to its throughput, where the objective is a concave sum over jobs.
    fn summand_of_logarithms(&self) -> Option<Inversion> {
        let Node::Reduce(reduction, inner) = &self.objective.expression().node else { return None };
        let summed = reduction.fold == Fold::Sum && reduction.over == Subject::Job;
        let plain = self.instance.pairs.is_empty() && self.objective.constraints().is_empty();
        if !summed
            || !plain
            || self.objective.route() != Route::Conic
            || self.objective.sense() != Sense::Maximize
        {
            return None;
        }
        let part = Inversion::trace(inner, inversion::Bound::AtLeast, self.objective.vocabulary())?;
        part.is_of_throughput().then_some(part)
    }

    /// Whether levels are in terms of throughput and the policy has no constraints of its own.
    pub fn is_of_throughputs(&self) -> bool {
        let by_throughput = self.objective.inversion().is_some_and(Inversion::is_of_throughput);
        by_throughput && self.objective.constraints().is_empty()
    }
}

/// The weight a and the constant b of steps, each with its datum, that make a·log x + b of a throughput x; `None` if they
/// make another function of it, or if a is not finite and > 0.
fn logarithm(steps: impl Iterator<Item = (StepKind, f64)>) -> Option<(f64, f64)> {
    let (mut weight, mut constant, mut inside) = (1.0, 0.0, false);
    for (kind, datum) in steps {
        match (kind, inside) {
            (StepKind::Plus, false) => constant += weight * datum,
            (StepKind::Minus, false) => constant -= weight * datum,
            (StepKind::Times, false) => weight *= datum,
            (StepKind::Over, false) => weight /= datum,
            (StepKind::Log, false) => inside = true,
            (StepKind::Times, true) => constant += weight * datum.ln(),
            (StepKind::Over, true) => constant -= weight * datum.ln(),
            _ => return None,
        }
    }
    (inside && weight > 0.0 && weight.is_finite()).then_some((weight, constant))
}

impl<'a> Singles<'a> {
    /// The members of an instance with these demands, `[members]`.
    pub fn new(instance: &'a Instance, demand: Vec<f64>) -> Self {
        Self { instance, demand }
    }
}

impl Singles<'_> {
    /// The instance that the members belong to.
    pub fn instance(&self) -> &Instance {
        self.instance
    }

    /// Whether a member can have time on a worker type.
    #[inline]
    pub fn runs(&self, member: usize, worker_type: usize) -> bool {
        self.instance.runs_alone(member, worker_type)
    }

    /// The most class time that a member can have on a worker type; 0 where it cannot run.
    #[inline]
    pub fn most(&self, member: usize, worker_type: usize) -> f64 {
        let Instance { capacity, multiplicity, scale_factor, .. } = self.instance;
        let most = (capacity[worker_type] / scale_factor[member]).min(multiplicity[member]);
        if self.runs(member, worker_type) { most } else { 0.0 }
    }

    /// The throughput of a job of a member that has all of its time on its fastest worker type, steps/s.
    #[inline]
    pub fn fastest(&self, member: usize) -> f64 {
        let speeds = self.instance.alone(member).iter().enumerate();
        let faster =
            |most: f64, (j, speed): (usize, &f64)| if self.runs(member, j) { most.max(*speed) } else { most };
        speeds.fold(0.0, faster)
    }

    /// The level of a member that has all of its time on its fastest worker type.
    pub fn limit(&self, member: usize) -> f64 {
        self.limit_above(member, 0.0)
    }

    /// The level that a member reaches above throughput `base` with all of its time on its fastest worker type; +∞ if the
    /// level demands nothing of it.
    #[inline]
    pub fn limit_above(&self, member: usize, base: f64) -> f64 {
        let demand = self.demand[member];
        if demand > 0.0 { (self.fastest(member) - base) / demand } else { f64::INFINITY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::expression::Vocabulary;
    use crate::program::{Objective, ObjectiveText};

    fn instance() -> Instance {
        let mut instance = Instance {
            capacity: vec![2.0, 1.0],
            multiplicity: vec![1.0, 2.0, 1.0],
            worker_types: vec!["fast".to_owned(), "slow".to_owned()],
            scale_factor: vec![1.0, 1.0, 2.0],
            throughput: vec![4.0, 1.0, 0.5, 0.4, 3.0, 2.0],
            ..Instance::default()
        };
        for (name, values) in [("weight", [1.0, 2.5, 0.5]), ("equal_share_throughput", [2.0, 0.3, 1.5])] {
            instance.data.insert(name.to_owned(), values.to_vec());
        }
        instance
    }

    fn objective(text: &str) -> Objective {
        Objective::check(&ObjectiveText::new(Sense::Maximize, text), Vocabulary::default()).unwrap()
    }

    #[test]
    fn sums_of_logarithms_are_what_the_objective_says_they_are() {
        let instance = instance();
        for text in [
            "sum_over_jobs(log(throughput))",
            "sum_over_jobs(weight * log(throughput))",
            "sum_over_jobs(weight * log(throughput / equal_share_throughput))",
            "sum_over_jobs(3 * (weight * (log(2 * throughput) - 1) / 2 + weight))",
        ] {
            let objective = objective(text);
            let bound = objective.bind(&instance).unwrap();
            let LogarithmicSum { logarithms, .. } = bound.logarithms().unwrap();
            let point = bound.point(&bound.isolated());
            let terms = logarithms.weight.iter().zip(point.throughput());
            let sum: f64 = terms.map(|(weight, throughput)| weight * throughput.ln()).sum();
            assert!(
                (sum + logarithms.constant - bound.value(&point)).abs() < 1e-12,
                "{text}: {logarithms:?}"
            );
        }
    }

    #[test]
    fn other_sums_are_no_sums_of_logarithms() {
        let instance = instance();
        for text in [
            "sum_over_jobs(sqrt(throughput))",
            "sum_over_jobs(log(throughput + 1[steps/s]))",
            "sum_over_jobs(log(throughput) - inv(throughput) * 1[steps/s])",
            "sum_over_jobs(throughput)",
            "min_over_jobs(log(throughput))",
        ] {
            let objective = objective(text);
            assert!(objective.bind(&instance).unwrap().logarithms().is_none(), "{text}");
        }
        let mut worthless = instance.clone();
        worthless.data.insert("weight".to_owned(), vec![1.0, 0.0, 1.0]);
        let objective = objective("sum_over_jobs(weight * log(throughput))");
        if let Ok(bound) = objective.bind(&worthless) {
            assert!(bound.logarithms().is_none());
        }
        let mut free = ObjectiveText::new(Sense::Maximize, "sum_over_jobs(log(throughput))");
        free.for_each_job = vec![crate::program::ConstraintText::hard("throughput >= 0.1[steps/s]")];
        let constrained = Objective::check(&free, Vocabulary::default()).unwrap();
        assert!(constrained.bind(&instance).unwrap().logarithms().is_none());
    }
}
