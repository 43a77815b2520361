//! A level program without one: the numbers of members that share worker types, each with its time and its demand.
//!
//!   time:      Σ_j Y`[m,j]` ≤ n_m                               for every member
//!   demand:    Σ_j T`[m,j]`·Y`[m,j]` / n_m ≥ b_m + d_m·t          for every member
//!   capacity:  Σ_m s_m·Y`[m,j]` ≤ w_j                           for every worker type
//!
//! Either the level t is raised, from nothing or from what members have (b), or it is held and the most is made of what
//! members get. That is what [`with_demands`](super::BoundObjective::with_demands) writes down term by term; where a
//! million members have terms of their own, to write them takes longer than to solve them. Or nobody demands anything, and
//! logarithms of what members get are added up, which a program has a cone each for.

use super::bound::BoundObjective;
use super::expression::{Expr, Fold, Node, Subject};
use super::instance::Instance;
use super::inversion::{self, Inversion, StepKind};
use super::objective::Route;
use super::standard::Sense;

/// Members alone on worker types, and what each asks for.
#[derive(Clone, Debug)]
pub struct Sharing<'a> {
    instance: &'a Instance,
    /// Throughput per unit of the level, ≥ 0: `[members]`.
    pub demand: Vec<f64>,
}

/// What is wanted of members that share.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// The highest level.
    Level,
    /// The highest level above what members have: throughput ≥ base + demand·t.
    Above {
        /// What a member's throughput is to be at a level of zero, ≥ 0: `[members]`.
        base: &'a [f64],
        /// Class times at which members have that: `[members × K]`.
        given: &'a [f64],
    },
    /// The largest Σ worth·by_type·throughput from that type at a level that is held.
    Worth {
        /// That level.
        level: f64,
        /// Of a unit of each member's throughput, ≥ 0: `[members]`.
        worth: &'a [f64],
        /// Of throughput from each worker type, ≥ 0: `[K]`.
        by_type: &'a [f64],
        /// Class times at which members have that level, to begin with: `[members × K]`, or empty.
        given: &'a [f64],
    },
    /// The largest sum of these.
    Logarithms(&'a Logarithms),
}

/// Logarithms of what members get, and what they are worth: Σ weight·log(throughput) + constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Logarithms {
    /// Of all jobs of a member, > 0: `[members]`.
    pub weight: Vec<f64>,
    /// What is added to their sum.
    pub constant: f64,
}

impl Wanted<'_> {
    /// The throughput that a member has at a level of zero.
    pub fn base(self, member: usize) -> f64 {
        if let Self::Above { base, .. } = self { base[member] } else { 0.0 }
    }
}

impl BoundObjective<'_> {
    /// Members that share, of these demands `[members]`; nothing where there is more to the program: pairs, the policy's
    /// own constraints, levels of something other than throughputs, demands that are no finite numbers from 0, or no demand at all.
    pub fn sharing(&self, demand: Vec<f64>) -> Option<Sharing<'_>> {
        let finite = demand.iter().all(|demand| *demand >= 0.0 && demand.is_finite());
        let fits = self.is_of_throughputs() && self.instance.pairs.is_empty() && finite;
        (fits && demand.iter().any(|demand| *demand > 0.0))
            .then_some(Sharing { instance: self.instance, demand })
    }

    /// Members that share and demand nothing, and the logarithms of their throughputs that the objective adds up; nothing
    /// where there is more to it: pairs, constraints, other functions, weights that are no finite numbers above 0.
    pub fn logarithms(&self) -> Option<(Sharing<'_>, Logarithms)> {
        let Node::Reduce(reduction, inner) = &self.objective.expression().node else { return None };
        let summed = reduction.fold == Fold::Sum && reduction.over == Subject::Job;
        let fits = summed && self.objective.route() == Route::Conic && self.is_plain();
        if !fits || self.objective.sense() != Sense::Maximize {
            return None;
        }
        let part = Inversion::trace(inner, inversion::Bound::AtLeast, self.objective.vocabulary())?;
        if !part.is_of_throughput() {
            return None;
        }
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
        known.then_some((Sharing { instance: self.instance, demand }, logarithms))
    }

    /// Does the objective add up weighted logarithms of throughputs and constants, and nothing else, of jobs alone without
    /// constraints? As far as its form tells: weights may still be no finite numbers above 0.
    pub fn adds_logarithms(&self) -> bool {
        let Node::Reduce(reduction, inner) = &self.objective.expression().node else { return false };
        let summed = reduction.fold == Fold::Sum && reduction.over == Subject::Job;
        let fits = summed && self.objective.route() == Route::Conic && self.is_plain();
        if !fits || self.objective.sense() != Sense::Maximize {
            return false;
        }
        let part = Inversion::trace(inner, inversion::Bound::AtLeast, self.objective.vocabulary());
        part.is_some_and(|part| {
            part.is_of_throughput() && logarithm(part.steps.iter().map(|step| (step.kind, 1.0))).is_some()
        })
    }

    /// Are levels of throughputs, and are there no constraints of the policy's own?
    pub fn is_of_throughputs(&self) -> bool {
        let by_throughput = self.objective.inversion().is_some_and(Inversion::is_of_throughput);
        by_throughput && self.objective.constraints().is_empty()
    }

    /// Are there neither pairs nor constraints of the policy's own?
    fn is_plain(&self) -> bool {
        self.instance.pairs.is_empty() && self.objective.constraints().is_empty()
    }
}

/// The weight a and the constant b with which steps from the whole to the throughput x, each with its datum, make a·log x + b of
/// it; nothing if they make anything else of it, or a is no finite number above 0.
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

impl<'a> Sharing<'a> {
    /// Members alone that demand this, `[members]`.
    pub fn new(instance: &'a Instance, demand: Vec<f64>) -> Self {
        Self { instance, demand }
    }
}

impl Sharing<'_> {
    /// The numbers that members have but their demands.
    pub fn instance(&self) -> &Instance {
        self.instance
    }

    /// May a member have time of a worker type?
    #[inline]
    pub fn runs(&self, member: usize, worker_type: usize) -> bool {
        self.instance.runs_alone(member, worker_type)
    }

    /// The most class time that a member can have of a worker type: 0 where it cannot run.
    #[inline]
    pub fn most(&self, member: usize, worker_type: usize) -> f64 {
        let Instance { capacity, multiplicity, scale_factor, .. } = self.instance;
        let most = (capacity[worker_type] / scale_factor[member]).min(multiplicity[member]);
        if self.runs(member, worker_type) { most } else { 0.0 }
    }

    /// The throughput of a member that has all of its time where it is fastest.
    #[inline]
    pub fn fastest(&self, member: usize) -> f64 {
        let speeds = self.instance.alone(member).iter().enumerate();
        let faster =
            |most: f64, (j, speed): (usize, &f64)| if self.runs(member, j) { most.max(*speed) } else { most };
        speeds.fold(0.0, faster)
    }

    /// A level that a member alone could not better, with all of its time where it is fastest.
    pub fn limit(&self, member: usize) -> f64 {
        self.limit_above(member, 0.0)
    }

    /// The same of a level above a throughput that it has.
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
            let (_, logarithms) = bound.logarithms().unwrap();
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
